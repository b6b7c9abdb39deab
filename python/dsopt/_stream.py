"""Micro-batches on their way to a running program: the folder of -data=stream:DIR."""
from __future__ import annotations

import fcntl
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._tools import writing

_RATE = "dsopt.lr"  # what the program calls a step's learning rate
_PLACE = "dsopt.place"  # and where its data is after the step


def to_array(value: Any) -> np.ndarray:
    """A numpy array of a tensor, an array or a list."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    return np.ascontiguousarray(value)


def to_micro_batch(item: Any, names: Sequence[str]) -> Dict[str, np.ndarray]:
    """A dict of arrays from what a loader yields: a dict, or a tuple in the order of the inputs `names`."""
    if isinstance(item, Mapping) or hasattr(item, "keys"):
        return {key: to_array(item[key]) for key in item.keys()}
    if isinstance(item, (tuple, list)):
        if len(item) != len(names):
            raise ValueError(f"a micro-batch has {len(item)} parts, the model's inputs are {', '.join(names)}")
        return {name: to_array(value) for name, value in zip(names, item)}
    raise TypeError(f"a micro-batch is a {type(item).__name__}; expected a dict of arrays by input name, or a tuple")


class StreamWriter:
    """Writes one file a step. Files come into place whole, and go once their step is done. As long as
    this process lives it holds the lock by which the program knows that more may come."""

    def __init__(self, folder: str, micro_batches: int):
        self.folder = folder
        self.micro_batches = micro_batches
        self.written = 0
        self._removed = 0
        self.ended = False
        self._lock = open(os.path.join(folder, "lock"), "w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    @property
    def data(self) -> str:
        """What -data names."""
        return "stream:" + self.folder

    def _path(self, step: int) -> str:
        return os.path.join(self.folder, f"step-{step:08d}.npz")

    def write(self, items: List[Dict[str, np.ndarray]], lr: Optional[float] = None, place: str = "") -> None:
        """The micro-batches of the next step, its learning rate under -lr-schedule=stream, and what a checkpoint after it
        keeps as the data's place."""
        first = items[0]
        for at, item in enumerate(items):
            for name, value in item.items():
                if name not in first or value.shape != first[name].shape:
                    raise ValueError(f"micro-batch {at} of step {self.written}: '{name}' has shape "
                                     f"{list(value.shape)}, the step's first "
                                     f"{list(first[name].shape) if name in first else 'has no such input'}")
        path = self._path(self.written)
        with writing(path), open(path + ".tmp", "wb") as file:
            arrays = {name: np.stack([item[name] for item in items]) for name in first}
            if lr is not None:
                arrays[_RATE] = np.asarray(lr, np.float64)
            if place:
                arrays[_PLACE] = np.frombuffer(place.encode(), np.uint8)
            np.savez(file, **arrays)
        os.rename(path + ".tmp", path)
        self.written += 1

    def done(self, steps: int) -> None:
        """Removes what `steps` steps have read."""
        while self._removed < min(steps, self.written):
            os.remove(self._path(self._removed))
            self._removed += 1

    def ask(self, *wishes: Tuple[str, str]) -> None:
        """Asks for something after the steps that were written: ("save", folder) for a checkpoint, ("write", file) for
        the weights, ("take", file) to go on with those of a file. `answered` says when all is done."""
        for word, place in wishes:
            if "\n" in place:
                raise ValueError(f"cannot {word} {place!r}: expected a path of one line")
        path = os.path.join(self.folder, "ask")
        with open(path + ".tmp", "w") as file:
            file.writelines(f"{word} {place}\n" for word, place in wishes)
        os.rename(path + ".tmp", path)

    def answered(self) -> bool:
        """Whether all that was asked for is done."""
        path = os.path.join(self.folder, "answered")
        if not os.path.exists(path):
            return False
        os.remove(path)
        return True

    def end(self) -> None:
        """There will be no more."""
        if not self.ended:
            open(os.path.join(self.folder, "end"), "w").close()
            self.ended = True

    def close(self) -> None:
        self._lock.close()
