"""What a draw decides: both sides of a branch run, and what they leave is selected.

`Branches` knows the functions in which a draw decides, and puts their rewritten code (_rewrite.py) in the place of theirs
while a file is written; the other names here are what that code calls.
"""
from __future__ import annotations

import functools
import gc
import operator
import types
from typing import Any, Callable, Dict, List, Sequence, Set

import torch

from .._compat import buffers_of, changes_of, plainly, storage_key, tree_leaves
from . import _operators as operators
from ._random import Sides
from ._refused import Refused
from ._rewrite import refuse, rewritten

__all__ = ["Branch", "Branches", "augmented", "choose", "every", "inverse", "is_drawn", "item", "refuse", "rows", "some"]


class Branches:
    """The lines of a model's functions at which a draw decides."""

    def __init__(self) -> None:
        self.lines: Dict[Any, Set[int]] = {}  #: by a function's own code
        self.codes: Dict[Any, Any] = {}  #: what takes its place
        self.own: Dict[Any, Any] = {}  #: the other way
        self.chooses = False  #: whether a draw has chosen an element of a list

    def any(self) -> bool:
        """Whether a draw decides anything."""
        return bool(self.codes) or self.chooses

    def add(self, code: Any, line: int) -> bool:
        """Notes a line; whether that changes anything."""
        code = self.own.get(code, code)
        lines = self.lines.setdefault(code, set())
        if line in lines:
            return False
        lines.add(line)
        new = rewritten(code, lines)
        if new is None:
            lines.remove(line)
            return False
        self.own.pop(self.codes.get(code), None)
        self.codes[code], self.own[new] = new, code
        return True

    def begin(self, recorder: Any) -> None:
        """Functions run their rewritten code from here on."""
        self._functions = [(function, code) for code in self.codes for function in gc.get_referrers(code)
                           if isinstance(function, types.FunctionType) and function.__code__ is code]
        for function, code in self._functions:
            function.__code__ = self.codes[code]
        _active.append(recorder)

    def end(self) -> None:
        _active.pop()
        for function, code in self._functions:
            function.__code__ = code


_active: List[Any] = []  #: recorders


class _Reached:
    """Whether the data choose an iteration of a loop over what they choose."""

    def __init__(self, there: Any):
        self.there = there


def rows(values: Any) -> Any:
    """What a loop goes over, each with whether it is gone over."""
    found = _active[-1].rows.elements(values) if _active else None
    return ((True, one) for one in values) if found is None else ((_Reached(there), one) for there, one in found)


def is_drawn(value: Any) -> bool:
    """Whether a value is one that forward draws, or the data choose, which decides nothing while a file is written."""
    return isinstance(value, _Reached) or (
        isinstance(value, torch.Tensor) and value.numel() == 1 and bool(_active) and _active[-1].decides_by_draw(value))


def _truth(value: Any) -> Any:
    value = value.there if isinstance(value, _Reached) else value.reshape(())
    return value if value.dtype == torch.bool else value != 0


class _Side:
    """While one side runs: whether it is the one that is taken, where that is known."""

    def __init__(self, condition: Any, which: bool):
        self.draws = _active[-1].draws
        self.live = self.draws.live
        if isinstance(self.draws, Sides):
            self.draws.live = self.live and plainly(condition) == which

    def end(self) -> None:
        self.draws.live = self.live


class _Neither:
    """What two sides leave under one name and no one value can be: nothing may use it."""

    def __init__(self, words: str):
        object.__setattr__(self, "words", words)

    def _refuse(self, *arguments: Any, **keywords: Any) -> Any:
        raise Refused(object.__getattribute__(self, "words"))

    __getattribute__ = __getitem__ = __iter__ = __bool__ = __len__ = __call__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __float__ = __int__ = __index__ = _refuse

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        for one in tree_leaves((arguments, keywords)):
            if type(one) is _Neither:
                one._refuse()
        return NotImplemented


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {list(value.shape)} of {str(value.dtype).rpartition('.')[2]}"
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else f"a {type(value).__name__}"


def _merge(condition: Any, a: Any, b: Any, what: str, place: str) -> Any:
    """The first where the condition holds, else the second."""
    if a is b or type(a) is _Neither:
        return a
    if type(b) is _Neither:
        return b
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.shape == b.shape and a.dtype == b.dtype:
        return operators.branch(condition, a, b) if a.is_floating_point() else torch.where(condition, a, b)
    if type(a) is type(b):
        if isinstance(a, tuple) and len(a) == len(b):
            values = [_merge(condition, one, other, what, place) for one, other in zip(a, b)]
            return type(a)(*values) if hasattr(a, "_fields") else type(a)(values)
        if isinstance(a, list) and len(a) == len(b):
            return [_merge(condition, one, other, what, place) for one, other in zip(a, b)]
        if isinstance(a, dict) and list(a) == list(b):
            return type(a)(**{name: _merge(condition, a[name], b[name], what, place) for name in a}) if type(a) is not dict else {
                name: _merge(condition, a[name], b[name], what, place) for name in a}
        if isinstance(a, (str, type(None), torch.device, torch.dtype, torch.Size, bool, int, float)) and a == b:
            return a
    numbers = [one for one in (a, b) if isinstance(one, (int, float, torch.Tensor))]
    if len(numbers) == 2 and all(not isinstance(one, torch.Tensor) or one.dim() == 0 for one in numbers):
        tensors = [one if isinstance(one, torch.Tensor) else torch.tensor(one) for one in numbers]
        kind = torch.promote_types(tensors[0].dtype, tensors[1].dtype)
        return _merge(condition, tensors[0].to(kind), tensors[1].to(kind), what, place)
    return _Neither(f"{place}: {what} is {_kind(a)} on one side of a branch that a draw decides and {_kind(b)} on the other, of which "
                    "the file computes both: give it one shape and type on both")


def _changes() -> Dict[int, int]:
    """How often buffers have been changed in place, or replaced."""
    return {id(one): changes_of(one) for module in _active[-1].model.modules() for one in buffers_of(module).values() if one is not None}


class Branch:
    """An `if` by a draw. The first side runs, then the other one with what was there before."""

    def __init__(self, condition: Any, names: Dict[str, Any], place: str, changes: Sequence[str] = (), augmented: Sequence[str] = ()):
        self.condition, self.before, self.place = _truth(condition), dict(names), place
        other = [name for name in changes if name in names and not isinstance(names[name], torch.Tensor)]
        if other:
            raise Refused(f"{place}: a branch that a draw decides changes '{other[0]}', a {type(names[other[0]]).__name__}, of which the "
                          "file computes both sides: let both assign to a variable, and use it behind them")
        #: Tensors that a side changes in place, with what they were.
        changed = {id(names[name]): names[name] for name in (*changes, *augmented) if isinstance(names.get(name), torch.Tensor)}
        self.changed = [(one, one.clone()) for one in changed.values()]
        self.mine = {storage_key(one) for one, _ in self.changed}
        self.results: List[Any] = []
        self.tensors = [(name, one, changes_of(one)) for name, value in names.items() for one in tree_leaves(value)
                        if issubclass(type(one), torch.Tensor)]  # not isinstance, which asks what may refuse to be used
        self.buffers = _changes()
        self.side = _Side(self.condition, True)

    def _check(self) -> None:
        changed = [name for name, one, count in self.tensors if changes_of(one) != count and storage_key(one) not in self.mine]
        if changed or _changes() != self.buffers:
            what = f"'{changed[0]}'" if changed else "a buffer"
            raise Refused(f"{self.place}: a branch that a draw decides changes {what} in place, and the file computes both of its "
                          "sides: make another tensor, or change it outside of the branch (normalizations over batches keep their "
                          "statistics with track_running_stats=False)")

    def other(self, names: Dict[str, Any]) -> None:
        self.side.end()
        self._check()
        self.first = dict(names)
        self.results = [one.clone() for one, _ in self.changed]
        for one, was in self.changed:
            one.copy_(was)
        self.side = _Side(self.condition, False)

    def end(self, names: Dict[str, Any]) -> None:
        self.side.end()
        self._check()
        self.second = dict(names)
        for (one, _), result in zip(self.changed, self.results):
            one.copy_(_merge(self.condition, result, one.clone(), "what is changed in place", self.place))

    def was(self, name: str) -> bool:
        return name in self.before

    def has(self, name: str) -> bool:
        return name in self.first or name in self.second

    def merged(self, name: str) -> Any:
        """A name that one side alone binds is of that side."""
        a, b = (side.get(name, self.first.get(name, self.second.get(name))) for side in (self.first, self.second))
        return _merge(self.condition, a, b, f"'{name}'", self.place)


def choose(condition: Any, first: Callable[[], Any], second: Callable[[], Any], place: str) -> Any:
    """first() if condition else second()"""
    if not is_drawn(condition):
        return first() if condition else second()
    branch = Branch(condition, {}, place)
    a = first()
    branch.other({})
    b = second()
    branch.end({})
    return _merge(branch.condition, a, b, "the expression", place)


def augmented(operation: str, a: Any, b: Any) -> Any:
    """a += b"""
    function = getattr(operator, "i" + operation.rstrip("_") if isinstance(a, torch.Tensor) else operation)
    return function(a, b)


def inverse(value: Any) -> Any:
    return torch.logical_not(_truth(value)) if is_drawn(value) else not value


def _joined(parts: Any, all_: bool) -> Any:
    """`and`, or `or`: parts behind one that decides run in the side that gets there."""
    found: Any = None
    value: Any = all_
    sides: List[_Side] = []
    try:
        for part in parts:
            value = part()
            if is_drawn(value):
                value = _truth(value)
                sides.append(_Side(value, all_))
                join = torch.logical_and if all_ else torch.logical_or
                value = found = value if found is None else join(found, value)
            elif bool(value) != all_:
                return value
        return value if found is None else found
    finally:
        for side in reversed(sides):
            side.end()


def every(*parts: Callable[[], Any]) -> Any:
    return _joined(parts, True)


def some(*parts: Callable[[], Any]) -> Any:
    return _joined(parts, False)


class _Choice:
    """A layer among several: all are called, and the chosen one's result is selected."""

    def __init__(self, parts: List[Any], index: Any):
        self.parts, self.index = parts, index

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return _chosen(self.index, [functools.partial(part, *arguments, **keywords) for part in self.parts])

    def __getattr__(self, name: str) -> Any:
        raise Refused(f"{_active[-1].place()} reads '{name}' of a layer that a draw chooses: call it, which computes all and takes one")


def _chosen(index: Any, parts: List[Callable[[], Any]]) -> Any:
    place = _active[-1].place()
    index = index.reshape(())
    index = torch.where(index < 0, index + len(parts), index)
    conditions = [index == at for at in range(len(parts))]
    before, values = _changes(), []
    for condition, part in zip(conditions, parts):
        side = _Side(condition, True)
        values.append(part())
        side.end()
    if _changes() != before:
        raise Refused(f"{place}: a layer that a draw chooses changes a buffer, and the file computes all of them: change it outside")
    result = values[-1]
    for condition, value in reversed(list(zip(conditions[:-1], values[:-1]))):
        result = _merge(condition, value, result, "what a chosen layer gives", place)
    return result


def item(container: Any, index: Any) -> Any:
    """container[index]"""
    sequences = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ParameterList, list, tuple)
    if not is_drawn(index) or index.dtype.is_floating_point or not isinstance(container, sequences):
        return container[index]
    _active[-1].branches.chooses = True
    parts = list(container)
    if all(callable(one) for one in parts):
        return _Choice(parts, index)
    return _chosen(index, [functools.partial(_same, part) for part in parts])


def _same(value: Any) -> Any:
    return value
