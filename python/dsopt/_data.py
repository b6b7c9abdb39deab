"""Loaders as a run reads them: passes over micro-batches, cut into steps."""
from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import zipfile
from typing import Any, Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._compat import indices_left
from ._order import Order
from ._stream import to_micro_batch
from ._tools import DsoptError, warn, writing

Arrays = Dict[str, np.ndarray]


def model_inputs(path: str) -> Dict[str, List[Any]]:
    """The inputs of an ONNX model in order, each with its dimensions: numbers, or the names of symbolic ones, which
    are the input's and the axis' ("x:2") where the model gives them none."""
    if not path.endswith(".onnx"):
        return {}
    try:
        import onnx
    except ImportError:
        raise DsoptError("what a loader yields is matched with the inputs of the model by the package 'onnx', which is "
                         "not installed: pip install onnx") from None
    graph = onnx.load(path, load_external_data=False).graph
    constants = {initializer.name for initializer in graph.initializer}
    return {value.name: [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0
                         else dim.dim_param if dim.dim_param not in ("", "?") else f"{value.name}:{axis}"
                         for axis, dim in enumerate(value.type.tensor_type.shape.dim)]
            for value in graph.input if value.name not in constants}


def is_loader(data: Any) -> bool:
    """Whether `data` yields micro-batches: no path, and no arrays by name."""
    return data is not None and not isinstance(data, (str, os.PathLike, Mapping))


class Loader:
    """What yields micro-batches, once or in many passes. `open` looks at the first one."""

    def __init__(self, data: Any, path: str, bound: Collection[str] = ()):
        self._data = data
        self._bound = bound  # inputs that options give their values
        #: of the model that the micro-batches are for
        self.inputs = {name: dims for name, dims in model_inputs(path).items() if name not in bound}
        self.again = not hasattr(data, "__next__")  #: an iterator is read once
        try:
            self.length: Optional[int] = len(data)  #: micro-batches of a pass, where it is known
        except (TypeError, NotImplementedError):
            self.length = None
        self.example: Arrays = {}
        self.rows = 0  #: of a micro-batch, 0 where its arrays have no common first dimension
        self.common = True  #: all arrays have these rows
        self._opened: Optional[Tuple[Any, Iterator[Any]]] = None  # what came first, and where the rest comes from
        self.order = Order(data)

    def _arrays(self, raw: Any) -> Arrays:
        arrays = to_micro_batch(raw, list(self.inputs))
        for name in arrays:
            if name in self._bound:
                raise DsoptError(f"input '{name}' is bound to a value (input=), and the data has it as well: leave one of "
                                 "them out")
        return {name: value for name, value in arrays.items() if not self.inputs or name in self.inputs}

    def _new_pass(self) -> Iterator[Any]:
        self.order.next_pass()
        return iter(self._data)

    def open(self) -> Arrays:
        """The first micro-batch."""
        iterator = self._new_pass()
        for raw in iterator:
            self._opened = raw, iterator
            self.example = self._arrays(raw)
            rows = {value.shape[0] if value.ndim else 1 for value in self.example.values()}
            # What has one row serves all rows of the others, as positions do.
            self.common = len(rows) == 1
            self.rows = max(rows, default=0) if len(rows - {1}) <= 1 else 0
            return self.example
        raise DsoptError("the data is empty: it yields not one micro-batch")

    def last_rows(self) -> Optional[int]:
        """How many rows a pass's last micro-batch has, where something says so before it comes."""
        if self.length is None or not self.rows:
            return None
        if isinstance(self._data, Sequence):
            return self.rows_of(self._arrays(self._data[-1]))
        # A DataLoader of PyTorch; one that packs its batches otherwise has other rows than it says.
        size, drops = getattr(self._data, "batch_size", None), getattr(self._data, "drop_last", None)
        if size != self.rows or not isinstance(drops, bool):
            return None
        try:
            return self.rows if drops else (len(self._data.sampler) - 1) % self.rows + 1
        except (TypeError, NotImplementedError, AttributeError):
            return None

    def rows_of(self, arrays: Arrays) -> int:
        """Rows of a micro-batch; the first one's where its arrays differ."""
        rows = {value.shape[0] for name, value in arrays.items()
                if name in self.example and value.ndim and self.example[name].shape[:1] == (self.rows,)}
        return rows.pop() if self.rows and len(rows) == 1 else self.rows

    def skip_passes(self, count: int) -> None:
        """Leaves passes out. They are read, so that all that draws or counts has done so: of a DataLoader whose workers
        end with their pass the first batch and the sampler's indices, of any other all."""
        for _ in range(count):
            first, iterator = self._opened or (None, self._new_pass())
            self._opened = None
            if first is None:
                first = next(iterator, None)
            if first is None:
                return
            self.order.saw(self._arrays(first))
            left = indices_left(iterator)
            if left is not None:
                self.order.saw_first_only()
            for raw in iterator if left is None else left:
                if left is None:
                    self.order.saw(self._arrays(raw))

    def read(self, skip: int = 0) -> Iterator[Arrays]:
        """A pass, but for its first `skip` micro-batches."""
        if self._opened is None:
            iterator = self._new_pass()
        else:
            iterator = itertools.chain([self._opened[0]], self._opened[1])
        self._opened = None
        for at, raw in enumerate(iterator):
            arrays = self._arrays(raw)
            self.order.saw(arrays)
            if at >= skip:
                yield arrays

    def read_even(self, skip: int) -> Iterator[Arrays]:
        """The same; only the last may have fewer rows than the others."""
        short: Optional[Tuple[int, int]] = None
        for at, arrays in enumerate(self.read(skip), skip):
            rows = self.rows_of(arrays)
            if short is not None:
                raise DsoptError(f"micro-batch {short[0]} of the data has {short[1]} rows, the first has {self.rows}: "
                                 "only the last one of a pass may have fewer (epochs= goes through a loader several "
                                 "times, drop_last=True of a DataLoader leaves the last one out)")
            if rows > self.rows:
                raise DsoptError(f"micro-batch {at} of the data has {rows} rows, the first has {self.rows}")
            if rows < self.rows:
                short = at, rows
            yield arrays


class Steps:
    """A loader's micro-batches in steps of `micro_batches`. Under `steps` passes follow each other without a
    gap, under `epochs` each leaves out what does not fill a step. With `short_rows` the program takes steps
    whose micro-batches have that many rows: then each pass ends with one, made of all that is left."""

    def __init__(self, loader: Loader, micro_batches: int, *, steps: Optional[int] = None,
                 epochs: Optional[int] = None, short_rows: Sequence[int] = (), why_not: str = ""):
        self.loader, self.micro_batches = loader, micro_batches
        self.short_rows = sorted(short_rows, reverse=True)
        self.steps, self._why_not = steps, why_not
        self.passes = None if steps else epochs or 1
        self._gapless = steps is not None and not self.short_rows
        self._skipped: Tuple[int, int] = (0, 0)  # passes, and micro-batches of the next one
        self._dropped = 0  # steps
        self._said = False
        self._count = 0  # full micro-batches that came
        if not loader.again and (epochs or 1) > 1:
            raise DsoptError(f"epochs={epochs}: an iterator is read once; give what can be iterated again, as a list or "
                             "a DataLoader can")

    # What is known before.

    def _full(self) -> int:
        """Micro-batches of a pass that have all their rows; its length is known."""
        assert self.loader.length is not None
        return self.loader.length - ((self.loader.last_rows() or self.loader.rows) < self.loader.rows)

    def _rest(self) -> Optional[Tuple[int, int]]:
        """What a pass leaves after its full steps: micro-batches, and the rows of one more."""
        if self.loader.length is None:
            return None
        last = self.loader.last_rows() or self.loader.rows
        return self._full() % self.micro_batches, last if last < self.loader.rows else 0

    def short_step(self, micro_batches: int, rows: int) -> int:
        """Rows of a micro-batch of the step that is made of `micro_batches` and one of `rows`; 0: none is."""
        each = (micro_batches * self.loader.rows + rows) // self.micro_batches
        return next((size for size in self.short_rows if size <= each), 0)

    def of_pass(self) -> Optional[int]:
        """Steps of a pass, where its length is known."""
        rest = self._rest()
        if rest is None:
            return None
        return self._full() // self.micro_batches + (rest[1] > 0 and self.short_step(*rest) > 0)

    def planned(self) -> Optional[int]:
        """Steps in all, where they are known."""
        if self.steps:
            return self.steps
        count = self.of_pass()
        return None if count is None or self.passes is None else count * self.passes

    def announce(self) -> None:
        """Says what will be left out, and how often the data is gone through, where that is known."""
        rest = self._rest()
        if rest is None:
            return
        self._leave_out(*rest)
        once = self._full() / self.micro_batches if self._gapless else self.of_pass()
        if self.steps and self.loader.again and once and self.steps > once:
            warn(f"{self.steps} steps of {self.micro_batches} micro-batches go {self.steps / once:.1f} times through "
                 f"the data's {self.loader.length}")

    def _leave_out(self, micro_batches: int, rows: int) -> None:
        """Says it once: what is left after the last step of a pass."""
        size = self.short_step(micro_batches, rows) if rows else 0
        parts = []
        if size:
            lost = micro_batches * self.loader.rows + rows - size * self.micro_batches
            if lost:
                parts.append(f"the last {lost} rows do not fill the {self.micro_batches} micro-batches of {size} rows "
                             "of its last step")
        else:
            if rows:
                parts.append(f"the last micro-batch has {rows} rows instead of {self.loader.rows}"
                             + (f", and {self._why_not}" if self._why_not else ""))
            if micro_batches and not self._gapless:
                parts.append(f"the last {micro_batches} full micro-batches do not fill a step of {self.micro_batches}")
        if parts and not self._said:
            self._said = True
            warn(f"of each pass over the data, {'; '.join(parts)}: left out")

    def skip(self, step: int, micro_batches: int, where: str) -> None:
        """Goes on after the `step` steps of a checkpoint, which took `micro_batches`."""
        if not step:
            return
        rest = self._rest()
        if rest is None and self.loader.again and micro_batches == step * self.micro_batches:
            self._dropped = step
            warn(f"{where} is after {step} steps, which are read again and left out: the data does not say how long it is")
            return
        if rest is None or not self.loader.again:
            why = "an iterator" if self.loader.length is not None else "whose length is not known"
            warn(f"{where} is after {step} steps; the data, {why}, is read from its beginning")
            return
        once = self.of_pass() or 1
        if self._gapless or micro_batches != step * self.micro_batches:
            self._skipped = divmod(micro_batches, max(self._full(), 1))
        else:
            self._skipped = step // once, step % once * self.micro_batches
        passes, some = self._skipped
        warn(f"{where} is after {step} steps: {some} of the {self.loader.length} micro-batches of pass {passes + 1} "
             "over the data are skipped")

    # The steps.

    def place(self) -> str:
        """For a checkpoint after the step that came last, where the data can be read again."""
        return self.loader.order.text() if self.loader.again else ""

    def refuse(self) -> None:
        """Of data without one step."""
        count = self._count if self._count else self.loader.length
        raise DsoptError(f"the data ended after {count} micro-batches, before a step of {self.micro_batches} was full")

    def __iter__(self) -> Iterator[List[Arrays]]:
        return itertools.islice(self._all(), self._dropped, None)

    def _all(self) -> Iterator[List[Arrays]]:
        items: List[Arrays] = []
        number, skip = self._skipped
        self.loader.skip_passes(number)
        done = 0
        while (self.passes is None or number < self.passes) and (number == self._skipped[0] or self.loader.again):
            before, last = done, None
            for arrays in self.loader.read_even(skip):
                if self.loader.rows_of(arrays) < self.loader.rows:
                    last = arrays
                    continue
                items.append(arrays)
                self._count += 1
                if len(items) == self.micro_batches:
                    yield items
                    items, done = [], done + 1
            rows = self.loader.rows_of(last) if last else 0
            if size := self.short_step(len(items), rows) if rows else 0:
                self._leave_out(len(items), rows)
                yield self._equal_parts([*items, last], size)  # type: ignore[list-item]
                items, done = [], done + 1
            elif items or rows:
                self._leave_out(len(items), rows)
                items = items if self._gapless else []
            if done == before and not skip and not items:
                break  # a pass without one step: nor will the next have one
            number, skip = number + 1, 0
        if items:
            warn(f"the data ended: its last {len(items)} micro-batches do not fill a step of {self.micro_batches} and "
                 "are left out")

    def _equal_parts(self, items: List[Arrays], rows: int) -> List[Arrays]:
        """The rows of all items as `micro_batches` micro-batches of `rows`."""
        whole = {name: np.concatenate([item[name] for item in items]) for name in items[0]}
        return [{name: value[at * rows:(at + 1) * rows] for name, value in whole.items()}
                for at in range(self.micro_batches)]


def write_rows(loader: Loader, path: str) -> None:
    """Writes all that a loader yields into an .npz file: one row after the other, or one micro-batch after the
    other where they have no rows in common."""
    loader.open()
    rows = loader.rows > 0 and loader.common
    counts: Dict[str, int] = {}
    with writing(path), tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
        files = {name: open(os.path.join(folder, str(at)), "w+b") for at, name in enumerate(loader.example)}
        for at, arrays in enumerate(loader.read()):
            for name, first in loader.example.items():
                value = arrays.get(name)
                if value is None or value.dtype != first.dtype or value.shape[rows:] != first.shape[rows:]:
                    got = "nothing" if value is None else f"{value.dtype} {list(value.shape)}"
                    raise DsoptError(f"micro-batch {at} of the data has {got} for '{name}', the first has "
                                     f"{first.dtype} {list(first.shape)}")
                files[name].write(value.data)
                counts[name] = counts.get(name, 0) + (value.shape[0] if rows else 1)
        with zipfile.ZipFile(path, "w") as archive:
            for name, first in loader.example.items():
                files[name].seek(0)
                with archive.open(name + ".npy", "w", force_zip64=True) as member, files[name] as file:
                    shape = (counts[name], *first.shape[rows:])
                    np.lib.format.write_array_header_1_0(
                        member, {"descr": np.lib.format.dtype_to_descr(first.dtype), "fortran_order": False,
                                 "shape": shape})
                    shutil.copyfileobj(file, member, 1 << 20)
