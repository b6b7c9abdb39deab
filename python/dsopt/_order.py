"""The order in which a loader yields: what decides it at the beginning of a run, and what shows that it is the same
again. Checkpoints keep both, as the text of `Order.text`."""
from __future__ import annotations

import base64
import json
import random
import sys
import types
import zlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ._generators import GLOBAL, is_generator, set_state, state_of
from ._tools import DsoptError

_DEEPEST, _MOST = 6, 2000  # how far generators are looked for: attributes of attributes, and objects in all
_LONGEST = 64  # of containers that are looked into


def _pack(value: Any) -> Any:
    """A generator's state as JSON has it: tuples, and arrays of numbers."""
    if isinstance(value, Mapping):
        return {"dict": {name: _pack(one) for name, one in value.items()}}
    if isinstance(value, (tuple, list)):
        if len(value) > _LONGEST and all(isinstance(one, int) for one in value):
            return {"ints": _pack(np.array(value, np.uint64))}
        return {"tuple": [_pack(one) for one in value]}
    if isinstance(value, np.ndarray):
        return {"array": value.dtype.str, "bytes": base64.b85encode(zlib.compress(value.tobytes())).decode()}
    return value.item() if isinstance(value, np.generic) else value


def _unpack(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "dict" in value:
        return {name: _unpack(one) for name, one in value["dict"].items()}
    if "ints" in value:
        return tuple(map(int, _unpack(value["ints"])))
    if "tuple" in value:
        return tuple(map(_unpack, value["tuple"]))
    return np.frombuffer(zlib.decompress(base64.b85decode(value["bytes"])), np.dtype(value["array"])).copy()


def _parts(value: Any, torch: Any) -> Iterator[Tuple[str, Any]]:
    """What an object holds by name; nothing of what draws no order."""
    if isinstance(value, (type, types.ModuleType, types.FunctionType, np.ndarray, str, bytes)):
        return
    if torch and isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
        return
    if isinstance(value, (list, tuple)):
        if len(value) <= _LONGEST:
            yield from ((str(at), one) for at, one in enumerate(value))
    elif isinstance(value, dict):
        if len(value) <= _LONGEST:
            yield from ((str(name), one) for name, one in value.items())
    elif isinstance(getattr(value, "__dict__", None), dict):
        yield from vars(value).items()


def generators(data: Any) -> Dict[str, Any]:
    """The generators that a loader, its sampler, its data or what they hold may draw from, and those of the process."""
    torch = sys.modules.get("torch")
    found = {":python": GLOBAL["random"], ":numpy": GLOBAL["numpy.random"], **({":torch": torch.default_generator} if torch else {})}
    seen = {id(one) for one in found.values()}
    level: List[Tuple[str, Any]] = [("", data)]
    for _ in range(_DEEPEST):
        below: List[Tuple[str, Any]] = []
        for path, value in level:
            if id(value) in seen or len(seen) > _MOST:
                continue
            seen.add(id(value))
            if is_generator(value):
                if not isinstance(value, random.SystemRandom):  # which has no state
                    found[path] = value
            else:
                below += [(f"{path}.{name}", one) for name, one in _parts(value, torch)]
        level = below
    return found


def _counted(data: Any) -> Dict[str, Any]:
    """What is told the number of each pass, as DistributedSampler is."""
    if callable(getattr(data, "set_epoch", None)):
        return {"": data}
    batches = getattr(data, "batch_sampler", None)
    parts = {"sampler": getattr(data, "sampler", None), "batch_sampler": batches,
             "batch_sampler.sampler": getattr(batches, "sampler", None), "dataset": getattr(data, "dataset", None)}
    unique = {id(part): (name, part) for name, part in reversed(parts.items()) if callable(getattr(part, "set_epoch", None))}
    return dict(unique.values())


class Order:
    """What has come of a loader, and what it began with."""

    def __init__(self, data: Any):
        self._data = data
        self._start: Dict[str, Any] = {}
        self._pass, self._count = -1, 0  # micro-batches of it
        self._sum = 0  # of this pass's micro-batches
        self._firsts = 0  # of the first ones of all passes
        self._expected: Optional[Dict[str, Any]] = None
        self._where = ""

    def begin(self, text: str = "", where: str = "") -> None:
        """Before anything is read: keeps what the order follows from. With the text of a checkpoint that is what it was
        for the run before, and what comes is compared with what came then."""
        if text:
            self._expected = json.loads(text)
            self._where = where
            self._start = self._expected["start"]
            known = generators(self._data)
            for path, state in self._start["generators"].items():
                if path in known:
                    set_state(known[path], _unpack(state))
        else:
            self._start = {"generators": {path: _pack(state_of(one)) for path, one in generators(self._data).items()},
                           "epochs": {name: self._epoch(part) for name, part in _counted(self._data).items()}}

    @staticmethod
    def _epoch(part: Any) -> int:
        epoch = getattr(part, "epoch", 0)
        return epoch if isinstance(epoch, int) else 0

    def text(self) -> str:
        """For a checkpoint after the micro-batches that have come."""
        return json.dumps({"start": self._start, "pass": self._pass, "count": self._count, "sum": self._sum,
                           "firsts": self._firsts})

    def next_pass(self) -> None:
        """A pass begins."""
        if self._expected and self._pass >= self._expected["pass"]:
            self._refuse()
        self._pass, self._count, self._sum = self._pass + 1, 0, 0
        if self._pass or self._where:  # the first pass of a run begins as its loader came
            for name, part in _counted(self._data).items():
                part.set_epoch(self._start.get("epochs", {}).get(name, 0) + self._pass)

    def saw(self, arrays: Mapping[str, np.ndarray]) -> None:
        """A micro-batch has come."""
        for name in sorted(arrays):
            self._sum = zlib.crc32(arrays[name].reshape(-1).view(np.uint8), self._sum)
        self._count += 1
        if self._count == 1:
            self._firsts = zlib.crc32(self._sum.to_bytes(4, "little"), self._firsts)
        self._compare("count", "sum")

    def saw_first_only(self) -> None:
        """What comes after the first one of this pass is not looked at."""
        self._compare("pass", "firsts")

    def _compare(self, at: str, what: str) -> None:
        now = {"pass": self._pass, "count": self._count, "sum": self._sum, "firsts": self._firsts}
        if self._expected and now["pass"] == self._expected["pass"] and now[at] == self._expected[at]:
            if now[what] != self._expected[what]:
                self._refuse()
            self._expected = None

    def _refuse(self) -> None:
        assert self._expected
        raise DsoptError(
            f"{self._where} was written after {self._expected['count']} micro-batches of pass {self._expected['pass'] + 1} over "
            "the data, and the loader now yields others, or in another order. Give it as it was when that run began: the "
            "same data, batch size, seeds, samplers and workers; or iter(loader), to go on with it from its beginning "
            "(steps= then says how far)")
