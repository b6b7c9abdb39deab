"""What a model keeps from one forward to the next, in PyTorch and in Python."""
from __future__ import annotations

import collections
import functools
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import numpy as np
import torch

from .._compat import buffers_of, forward_hooks_of
from .._generators import GLOBAL, is_generator, set_state, state_of
from ._graph import is_code_of_users, is_the_models

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS = (list, dict, set, collections.deque)
#: Of modules, whatever they are: parts, buffers and hooks, which are looked at by themselves.
_OF_MODULES = set(vars(torch.nn.Module())) - {"training"}
#: Packages whose objects keep nothing that forward computes with, or are the loop around it.
_ALIEN = {"torch", "numpy", "builtins", "logging", "threading", "_thread", "re", "inspect", "weakref", "functools", "typing", "abc",
          "enum", "onnx", "onnxscript", "dsopt", "lightning", "pytorch_lightning", "accelerate", "datasets", "tokenizers"}
#: Larger arrays are not copied, nor looked at.
_LARGEST = 1 << 30
_MOST = 200_000  # objects


def plain_copy(value: Any) -> Any:
    """A copy of a plain value or a short container of such; None of anything else, in a tuple either."""
    if isinstance(value, _PLAIN):
        return (value,)
    if type(value) in (list, tuple, set) and len(value) < 64 and all(isinstance(one, _PLAIN) for one in value):
        return (type(value)(value),)
    return None


class Watched:
    """An iterator in the place of another one, whose values can be taken again."""

    def __init__(self, source: Any):
        self.source, self.taken, self.at = source, [], 0  # type: Any, List[Any], int

    def __iter__(self) -> "Watched":
        return self

    def __next__(self) -> Any:
        if self.at == len(self.taken):
            self.taken.append(next(self.source))
        self.at += 1
        return self.taken[self.at - 1]

    def rest(self) -> Any:
        """What yields what the iterator would have."""
        import itertools

        return itertools.chain(self.taken, self.source) if self.taken else self.source


class StandIn:
    """Stands for a generator of Python or NumPy, so that its draws can be PyTorch's."""

    def __init__(self, original: Any):
        self.__dict__["original"] = original

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.original)

    def __getattr__(self, name: str) -> Any:
        from ._outside import drawing

        return drawing(self.original, name) or getattr(self.original, name)


def is_same(a: Any, b: Any) -> bool:
    """Whether two values are one, or equal as far as that is cheap."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, _PLAIN):
        return repr(a) == repr(b)
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(_bits(a), _bits(b))
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, (tuple, *_CONTAINERS)) and len(a) == len(b) and len(a) < 64:
        if isinstance(a, dict):
            return list(a) == list(b) and all(map(is_same, a.values(), b.values()))
        return a == b if isinstance(a, set) else all(map(is_same, a, b))
    return False


def _bits(tensor: Any) -> Any:
    return tensor.detach().resolve_conj().contiguous().reshape(-1).view(torch.uint8)


def _put_back(tensor: Any, value: Any) -> None:
    """Makes a tensor what it was, also one that was resized, as what observes ranges does."""
    if tensor.shape == value.shape:
        tensor.data.copy_(value)
    else:
        tensor.data = value.clone()


class Kept:
    """Something that can change, as it is now."""

    def __init__(self, path: str, what: str, value: Any, save: Any, load: Callable[[Any], None],
                 now: Callable[[], Any], differs: Callable[[Any, Any], List[str]]):
        self.path, self.what, self.value = path, what, value
        self.saved, self.load, self.now, self.differs = save, load, now, differs

    def changes(self, since: Any = None) -> List[str]:
        """What of it is another now, by path."""
        return self.differs(self.saved if since is None else since, self.now())

    def restore(self) -> None:
        if self.changes():
            self.load(self.saved)


_ABSENT = object()


def _setter(saved: Any, key: Any, put: Callable[[Any], Any]) -> Callable[[Any], None]:
    """What puts another object into a place, and has it put there again."""
    def set_(value: Any) -> None:
        saved[key] = value
        put(value)
    return set_


def _differing(path: Callable[[Any], str]) -> Callable[[Any, Any], List[str]]:
    def differs(before: Dict[Any, Any], now: Dict[Any, Any]) -> List[str]:
        return [path(name) for name in [*before, *(name for name in now if name not in before)]
                if not is_same(before.get(name, _ABSENT), now.get(name, _ABSENT))]
    return differs


def _names_in(code: Any) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _is_users(value: Any) -> bool:
    """Whether a function, a class or a module is none of Python's or PyTorch's."""
    if isinstance(value, types.FunctionType):
        return is_code_of_users(value.__code__)
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", ""))
    if module is None:
        return isinstance(value, type)
    if module.__name__ == "__main__":
        return True
    file = getattr(module, "__file__", None)
    return file is not None and is_the_models(file)


class State:
    """All that a model's forward can reach and change, as it is now: buffers, attributes of modules and of the objects
    that these hold, containers, arrays, generators, iterators, and what the globals and closures of its code name."""

    def __init__(self, model: Any, code: Any = ()):
        self.buffers: List[Tuple[Any, str, str, Any, Any]] = []
        self.hooks: List[Tuple[Dict[int, Any], Dict[int, Any]]] = []
        self.kept: List[Kept] = []
        self.iterators: List[Tuple[Callable[[Any], None], Watched, str]] = []
        self.generators: List[Tuple[Callable[[Any], None], Any]] = []
        self._named: Dict[int, Set[str]] = {}
        self._seen: Set[int] = {id(model)}
        self._model = {id(one) for one in (*model.parameters(), *model.buffers(), *model.modules())}
        self._alive: List[Any] = []
        self._open: List[Tuple[str, Any, Optional[Callable[[Any], None]]]] = []
        for path, module in model.named_modules():
            prefix = path + "." if path else ""
            for name, buffer in buffers_of(module).items():
                if buffer is not None:
                    self.buffers.append((module, name, prefix + name, buffer, buffer.detach().clone()))
            self.hooks.extend((hooks, dict(hooks)) for hooks in forward_hooks_of(module))
            self._names(module, prefix, "attribute")
            self._classes(type(module))
        for name, generator in GLOBAL.items():
            self._generator(name, generator)
        self._visit_all()
        for one in code:
            self.visit(*one)

    def visit(self, code: Any, names: Dict[str, Any], functions: Any = (), owner: Any = None) -> None:
        """What a piece of code names, and the object whose method it is."""
        if owner is not None and isinstance(type(owner), type) and _is_users(type(owner)):
            self._push(type(owner).__name__, owner, None)
        named = set(_names_in(code))
        self._globals(names, named)
        for function in functions:
            self._closure(function)
        self._visit_all()

    # What there is.

    def _push(self, path: str, value: Any, set_: Optional[Callable[[Any], None]]) -> None:
        if not isinstance(value, _PLAIN) and id(value) not in self._model:
            self._open.append((path, value, set_))

    def _visit_all(self) -> None:
        while self._open and len(self._seen) < _MOST:
            path, value, set_ = self._open.pop()
            if isinstance(value, (types.MethodType, types.BuiltinMethodType)) and not isinstance(value.__self__, types.ModuleType):
                self._push(path, value.__self__, None)
                value = getattr(value, "__func__", None)
            if value is None or id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._alive.append(value)
            self._look(path, value, set_)

    def _look(self, path: str, value: Any, set_: Optional[Callable[[Any], None]]) -> None:
        if isinstance(value, torch.Tensor):
            self._tensor(path, value)
        elif isinstance(value, np.ndarray):
            self._array(path, value)
        elif is_generator(value):
            self._generator(path, value)
            if set_ and not isinstance(value, (torch.Generator, np.random.BitGenerator)):
                set_(StandIn(value))
                self.generators.append((set_, value))
        elif isinstance(value, _CONTAINERS):
            self._container(path, value)
        elif isinstance(value, (tuple, frozenset)):
            for at, one in enumerate(value):
                self._push(f"{path}[{at}]", one, None)
        elif isinstance(value, types.FunctionType):
            if _is_users(value):  # what it names is looked at where it runs
                self._defaults(value)
                self._names(value, value.__name__ + ".", "attribute")
        elif isinstance(value, type):
            self._classes(value)
        elif isinstance(value, types.ModuleType):
            pass  # of which code names parts
        elif isinstance(value, torch.nn.Module):
            for inner, module in value.named_modules():
                self._seen.add(id(module))
                prefix = f"{path}.{inner}." if inner else path + "."
                self._names(module, prefix, "attribute")
                self._classes(type(module))
                for name, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
                    self._push(prefix + name, tensor, None)
        elif hasattr(type(value), "__next__") and not (hasattr(value, "__dict__") and _is_users(type(value))) \
                and not hasattr(value, "read"):
            if set_:
                watched = Watched(value)
                set_(watched)
                self.iterators.append((set_, watched, path))
        elif type(value).__module__.partition(".")[0] not in _ALIEN or isinstance(value, types.SimpleNamespace):
            if hasattr(value, "__dict__"):
                self._names(value, path + ".", "attribute")
            self._slots(path, value)
            self._classes(type(value))

    def _keep(self, *what: Any) -> None:
        self.kept.append(Kept(*what))

    def _space(self, space: Dict[str, Any], path: Callable[[str], str], what: str, owner: Any, skip: Any = (),
               only: Any = None, set_: Any = None) -> None:
        """A dict of names; one that makes something else of what it has, as registries of classes do, is read for what it has."""
        raw: Any = dict if isinstance(space, dict) else type(space)

        def now() -> Dict[str, Any]:
            return {name: raw.__getitem__(space, name) for name in (only if only is not None else list(raw.__iter__(space)))
                    if raw.__contains__(space, name) and name not in skip}

        def load(saved: Dict[str, Any]) -> None:
            for name in list(now()):
                if name not in saved:
                    delete(name)
            for name, value in saved.items():
                if raw.get(space, name, _ABSENT) is not value:
                    put(name, value)

        # Dicts that forbid changes, as outputs of models do, are changed by what they are made of.
        kind: Any = collections.OrderedDict if isinstance(space, collections.OrderedDict) else dict
        put = set_ or functools.partial(kind.__setitem__, space)
        delete = (lambda name: delattr(owner, name)) if isinstance(owner, type) else functools.partial(kind.__delitem__, space)
        saved = now()
        self._keep(path(""), what, owner, saved, load, now, _differing(path))
        for name, value in saved.items():
            if not isinstance(value, _PLAIN):
                self._push(path(name), value, _setter(saved, name, functools.partial(put, name)))

    def _names(self, value: Any, prefix: str, what: str) -> None:
        skip = _OF_MODULES if isinstance(value, torch.nn.Module) else ()
        self._space(vars(value), lambda name: prefix + name, what, value, skip)

    def _classes(self, kind: type) -> None:
        """What classes keep, and the defaults of their functions."""
        for one in kind.__mro__:
            if id(one) in self._seen or not _is_users(one):
                continue
            self._seen.add(id(one))
            plain = [name for name, value in vars(one).items()
                     if not name.startswith("__") and (isinstance(value, (*_PLAIN, np.ndarray, torch.Tensor, *_CONTAINERS)) or
                                                       is_generator(value) or hasattr(type(value), "__next__"))]
            space: Any = vars(one)
            if plain:
                self._space(space, f"{one.__name__}.{{}}".format, "class attribute", one, only=plain,
                            set_=functools.partial(setattr, one))
            for value in list(space.values()):
                function = getattr(value, "__func__", value)
                if isinstance(function, types.FunctionType) and _is_users(function):
                    self._defaults(function)

    def _slots(self, path: str, value: Any) -> None:
        for kind in type(value).__mro__:
            names = kind.__dict__.get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                if name in ("__dict__", "__weakref__") or not hasattr(value, name):
                    continue
                self._slot(f"{path}.{name}", value, name)

    def _slot(self, path: str, value: Any, name: str) -> None:
        saved = {name: getattr(value, name)}
        self._keep(path, "attribute", value, saved, lambda saved: setattr(value, name, saved[name]),
                   lambda: {name: getattr(value, name, _ABSENT)}, _differing(lambda name: path))
        self._push(path, saved[name], _setter(saved, name, functools.partial(setattr, value, name)))

    def _globals(self, space: Dict[str, Any], named: Set[str]) -> None:
        known = self._named.setdefault(id(space), set())
        only = sorted(name for name in named - known if not (name.startswith("__") and name.endswith("__")))
        known.update(only)
        inside = [space[name] for name in only if isinstance(space.get(name), types.ModuleType) and _is_users(space[name])]
        self._space(space, lambda name: name, "global", space, only=only)
        for module in inside:
            self._space(vars(module), f"{module.__name__}.{{}}".format, "global", module, only=only)

    def _defaults(self, function: Any) -> None:
        for name, value in zip(function.__code__.co_varnames[:function.__code__.co_argcount][::-1],
                               (function.__defaults__ or ())[::-1]):
            self._push(name, value, None)
        for name, value in (function.__kwdefaults__ or {}).items():
            self._push(name, value, None)

    def _closure(self, function: Any) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) in self._seen or name == "__class__":
                continue
            self._seen.add(id(cell))
            self._alive.append(cell)

            def now(cell: Any = cell, name: str = name) -> Dict[str, Any]:
                try:
                    return {name: cell.cell_contents}
                except ValueError:
                    return {}

            def put(value: Any, cell: Any = cell) -> None:
                cell.cell_contents = value

            saved = now()
            def load(saved: Dict[str, Any], put: Callable[[Any], None] = put) -> None:
                for one in saved.values():
                    put(one)

            self._keep(name, "variable", cell, saved, load, now,
                       _differing(lambda name: name))
            for value in saved.values():
                self._push(name, value, _setter(saved, name, put))

    def _container(self, path: str, value: Any) -> None:
        if isinstance(value, dict):
            self._space(value, lambda name: f"{path}[{name!r}]", "item", value)
            return

        def load(saved: Any) -> None:
            value.clear()
            (value.update if isinstance(value, set) else value.extend)(saved)

        saved = list(value)
        self._keep(path, "container", value, saved, load, lambda: list(value),
                   lambda before, now: [] if len(before) == len(now) and (
                       set(map(id, before)) == set(map(id, now)) if isinstance(value, set) else all(map(is_same, before, now)))
                   else [path])
        if not isinstance(value, set):
            for at, one in enumerate(value):
                self._push(f"{path}[{at}]", one, _setter(saved, at, functools.partial(value.__setitem__, at)))

    def _tensor(self, path: str, value: Any) -> None:
        if value.numel() * value.element_size() > _LARGEST or value.layout != torch.strided or value.is_meta:
            return

        def load(saved: Any) -> None:
            with torch.no_grad():
                _put_back(value, saved)

        self._keep(path, "attribute", value, value.detach().clone(), load, lambda: value.detach().clone(),
                   lambda before, now: [] if is_same(before, now) else [path])

    def _array(self, path: str, value: Any) -> None:
        if value.dtype == object or value.nbytes > _LARGEST:
            return

        def load(saved: Any) -> None:
            value[...] = saved

        self._keep(path, "array", value, value.copy(), load, value.copy, lambda before, now: [] if is_same(before, now) else [path])

    def _generator(self, path: str, value: Any) -> None:
        self._seen.add(id(value))
        self._keep(path, "generator", value, state_of(value), lambda saved: set_state(value, saved), lambda: state_of(value),
                   lambda before, now: [] if repr_of(before) == repr_of(now) else [path])

    # What became of it.

    def changed(self) -> List[Tuple[Kept, str]]:
        """What has another value now, with the path of what differs; iterators that were moved on, too."""
        return [(one, path) for one in self.kept for path in one.changes()]

    def moved(self) -> List[str]:
        """Iterators of which forward took something."""
        return [path for _, watched, path in self.iterators if watched.at]

    def restore_buffers(self) -> None:
        """Makes the buffers as they were."""
        with torch.no_grad():
            for module, name, _, buffer, value in self.buffers:
                buffers_of(module)[name] = buffer
                if not torch.equal(buffer, value):
                    _put_back(buffer, value)

    def restore(self) -> None:
        """Makes everything as it was."""
        self.restore_buffers()
        for hooks, saved in self.hooks:  # what records outputs registers them in its first call
            if list(hooks) != list(saved):
                hooks.clear()
                hooks.update(saved)
        for one in self.kept:
            one.restore()
        for _, watched, _ in self.iterators:
            watched.at = 0

    def close(self) -> None:
        """Makes everything as it was; other objects that stand for some leave their places."""
        self.restore()
        for set_, watched, _ in self.iterators:
            set_(watched.rest())
        for set_, generator in self.generators:
            set_(generator)


def repr_of(value: Any) -> str:
    """Of the state of a generator, whole."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{repr_of(one)}" for name, one in value.items()) + "}"
    return value.tobytes().hex() if isinstance(value, np.ndarray) else repr(value)
