"""What forward draws by NumPy and Python becomes what it draws by PyTorch, of the same distribution.

Where a file is written, the drawn numbers are tensors, and the file has the draws; where PyTorch computes, they are the
numbers or arrays that NumPy and Python give, of what PyTorch has drawn, so that a comparison has the same ones.
"""
from __future__ import annotations

import dis
import math
import random
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch

from .._generators import GLOBAL
from ._branches import item
from ._graph import place_of
from ._refused import Refused
from ._spans import is_span_mask, span_mask


def _shape(size: Any) -> Tuple[int, ...]:
    return () if size is None else (int(size),) if not isinstance(size, (tuple, list)) else tuple(map(int, size))


def _uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    return low + (high - low) * torch.rand(_shape(size))


def _random(size: Any = None, dtype: Any = None, out: None = None) -> Any:
    return torch.rand(_shape(size))


def _normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    return loc + scale * torch.randn(_shape(size))


def _standard_normal(size: Any = None, dtype: Any = None, out: None = None) -> Any:
    return torch.randn(_shape(size))


def _integers(low: Any, high: Any = None, size: Any = None, dtype: Any = None, endpoint: bool = False) -> Any:
    low, high = (0, low) if high is None else (low, high)
    high = high + 1 if endpoint else high
    return low + torch.floor(torch.rand(_shape(size)) * (high - low)).long()


def _permutation(x: Any, axis: int = 0) -> Any:
    if not isinstance(x, (torch.Tensor, np.ndarray, list)):
        return torch.randperm(int(x))
    x = torch.as_tensor(x)
    return x.index_select(axis, torch.randperm(x.size(axis)))


def _choice(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
    values = None if not isinstance(a, (torch.Tensor, np.ndarray, list, tuple, range)) else torch.as_tensor(np.asarray(a))
    count, shape = int(a) if values is None else values.size(0), _shape(size)
    number = math.prod(shape)
    if p is not None:
        weights = torch.as_tensor(np.asarray(p), dtype=torch.float32)
        if replace:
            bounds = weights.cumsum(0)[:-1]
            places = (torch.rand((number, 1)) >= bounds).sum(-1)
        else:  # the one that is reached first at these rates comes first
            places = torch.argsort(-torch.log1p(-torch.rand(count)) / weights)[:number]
    else:
        places = _integers(0, count, number) if replace else torch.randperm(count)[:number]
    places = places.reshape(shape)
    return places if values is None else values[places]


def _exponential(scale: Any = 1.0, size: Any = None) -> Any:
    return -scale * torch.log1p(-torch.rand(_shape(size)))


def _log_gamma(shape: Any, size: Any) -> Any:
    """The logarithm of a gamma variate, by Marsaglia and Tsang: of eight proposals the first that is taken; all are
    refused once in 10^10 draws."""
    d = shape + 2 / 3  # of shape + 1, which a power of a uniform number makes shape
    dims = _shape(size)
    normal, even = torch.randn((8, *dims)), torch.rand((8, *dims))
    v = (1 + normal / math.sqrt(9 * d)) ** 3
    positive = v > 0
    logarithm = torch.log(torch.where(positive, v, torch.ones(())))
    taken = positive & (torch.log1p(-even) < 0.5 * normal * normal + d - d * v + d * logarithm)
    value = logarithm[7]
    for at in range(6, -1, -1):
        value = torch.where(taken[at], logarithm[at], value)
    return math.log(d) + value + torch.log1p(-torch.rand(dims)) / shape


def _gamma(shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
    return scale * torch.exp(_log_gamma(shape, size))


def _beta(a: Any, b: Any, size: Any = None) -> Any:
    return torch.sigmoid(_log_gamma(a, size) - _log_gamma(b, size))


def _binomial(n: int, p: Any, size: Any = None) -> Any:
    return (torch.rand((n, *_shape(size))) < p).sum(0)


_OF_GENERATORS: Dict[str, Callable[..., Any]] = {
    "random": _random, "uniform": _uniform, "normal": _normal, "standard_normal": _standard_normal, "integers": _integers,
    "permutation": _permutation, "choice": _choice, "exponential": _exponential, "gamma": _gamma, "beta": _beta, "binomial": _binomial}
_OF_STATES: Dict[str, Callable[..., Any]] = {
    **{name: call for name, call in _OF_GENERATORS.items() if name not in ("integers", "random")},
    "rand": lambda *dims: torch.rand(dims), "randn": lambda *dims: torch.randn(dims), "random": _random, "random_sample": _random,
    "ranf": _random, "sample": _random, "randint": lambda low, high=None, size=None, dtype=None: _integers(low, high, size)}
_OF_PYTHON: Dict[str, Callable[..., Any]] = {
    "choice": item, "random": lambda: torch.rand(()), "uniform": lambda a, b: _uniform(a, b), "gauss": lambda mu=0.0, sigma=1.0: _normal(mu, sigma),
    "normalvariate": lambda mu=0.0, sigma=1.0: _normal(mu, sigma), "randint": lambda a, b: _integers(a, b + 1),
    "randrange": lambda start, stop=None: _integers(start, stop), "betavariate": lambda alpha, beta: _beta(alpha, beta),
    "expovariate": lambda lambd=1.0: _exponential(1 / lambd), "gammavariate": lambda alpha, beta: _gamma(alpha, beta)}
_SEEDS = ("seed", "setstate", "set_state", "bit_generator")
_LARGEST_COUNT = 4096  # of the trials of a binomial number, which are drawn one by one

_active: List["Outside"] = []


def _table(generator: Any) -> Dict[str, Callable[..., Any]]:
    if isinstance(generator, random.Random):
        return {} if isinstance(generator, random.SystemRandom) else _OF_PYTHON
    return _OF_GENERATORS if isinstance(generator, np.random.Generator) else _OF_STATES


def drawing(generator: Any, name: str) -> Optional[Callable[..., Any]]:
    """What draws in the place of a generator's method, while forward runs."""
    return _active[-1].drawing(generator, name) if _active else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) or (isinstance(value, torch.Tensor) and value.dim() == 0)


class _Casting(type):
    """A class of Python's numbers that leaves a drawn number what it is: a tensor."""
    kind: Any
    cast: Any

    def __call__(cls, *values: Any, **keywords: Any) -> Any:
        if len(values) == 1 and isinstance(values[0], torch.Tensor) and _active and _active[-1].is_drawn(values[0]):
            return cls.cast(values[0])
        return cls.kind(*values, **keywords)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.kind)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, cls.kind)


def _calls_alone(code: Any, name: str) -> bool:
    """Whether code calls what a name is, and does nothing else with it: `dtype=float` is another use. Python says so
    from 3.11 on."""
    uses = [one for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME") and one.argval == name]
    return all("NULL" in one.argrepr for one in uses) and all(
        _calls_alone(one, name) for one in code.co_consts if isinstance(one, types.CodeType))


class _Float(metaclass=_Casting):
    kind, cast = float, staticmethod(lambda value: value.reshape(()).to(torch.float32))


class _Int(metaclass=_Casting):
    kind, cast = int, staticmethod(lambda value: value.reshape(()).trunc().long() if value.is_floating_point()
                                   else value.reshape(()).long())


class Outside:
    """Active while the model's forward runs: draws of NumPy and Python are PyTorch's."""

    def __init__(self, code: Any = (), recorder: Any = None, draws: bool = True):
        #: Pieces of code with their globals, of which some are replaced; whether anything is drawn.
        self.code, self.recorder, self.draws = list(code), recorder, draws
        self.count = 0  #: of draws

    def __enter__(self) -> "Outside":
        self._old: List[Tuple[Any, str, Any, bool]] = []
        self._known: Dict[int, Any] = {}
        for owner, generator in ((random, GLOBAL["random"]), (np.random, GLOBAL["numpy.random"])):
            for name in (*_table(generator), *_SEEDS):
                if hasattr(owner, name):
                    call = self.drawing(generator, name)
                    self._known[id(getattr(owner, name))] = call
                    self._replace(owner, name, call)
        fresh = np.random.default_rng
        self._replace(np.random, "default_rng", lambda seed=None: self._stand_in(fresh()) if seed is None else fresh(seed))
        if self.recorder is not None:
            plain = torch.from_numpy
            self._replace(torch, "from_numpy", lambda array: array if isinstance(array, torch.Tensor) else plain(array))
            self._replace(torch.Tensor, "astype", lambda tensor, dtype, **_: tensor.to(_dtype(dtype)))
        for code, names, *_ in self.code:
            self.visit(code, names)
        if self.recorder is not None and self.draws:
            for kind, casting in (("float", _Float), ("int", _Int)):
                spaces = {id(names): names for code, names, *_ in self.code if kind in code.co_names and kind not in names}
                used = {id(names) for code, names, *_ in self.code if not _calls_alone(code, kind)}
                for key in spaces.keys() - used:
                    self._replace(spaces[key], kind, casting)
        _active.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _active.remove(self)
        for owner, name, value, there in reversed(self._old):
            if isinstance(owner, dict):
                owner[name] = value
                if not there:
                    del owner[name]
            elif there:
                setattr(owner, name, value)
            else:
                delattr(owner, name)

    @staticmethod
    def _stand_in(generator: Any) -> Any:
        from ._state import StandIn

        return StandIn(generator)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        space = owner if isinstance(owner, dict) else vars(owner)
        self._old.append((owner, name, space.get(name), name in space))
        if isinstance(owner, dict):
            owner[name] = value
        else:
            setattr(owner, name, value)

    def visit(self, code: Any, names: Dict[str, Any]) -> None:
        """Replaces what a piece of code calls by a name of its own."""
        for name in code.co_names:
            value = names.get(name)
            if value is not None and id(value) in self._known:
                self._replace(names, name, self._known[id(value)])
            elif value is not None and is_span_mask(value):
                self._replace(names, name, self._call(span_mask, getattr(value, "__name__", name)))

    def is_drawn(self, tensor: Any) -> bool:
        return self.recorder is not None and self.recorder.is_drawn(tensor)

    def drawing(self, generator: Any, name: str) -> Optional[Callable[..., Any]]:
        """What is called instead of a generator's method; None where it draws by itself, which the probe sees."""
        if name in _SEEDS:
            def seeds(*arguments: Any, **keywords: Any) -> Any:
                raise Refused(f"{_place()} sets the state of a random generator in forward, whose numbers are then the same "
                              "in each call: draw them once, in __init__, and keep them as a buffer")
            return seeds if name != "bit_generator" else None
        if name == "choice" and isinstance(generator, random.Random):
            return self._choice(generator)
        call = _table(generator).get(name)
        if call is None:
            return None
        return self._call(call, name, generator)

    def _choice(self, generator: Any) -> Callable[..., Any]:
        """Python's choice among what is in a list, layers too."""
        def drawn(seq: Any) -> Any:
            if not isinstance(seq, (list, tuple, torch.nn.ModuleList)) or not len(seq):
                return generator.choice(seq)
            self.count += 1
            with torch.no_grad():
                place = _integers(0, len(seq))
            return item(seq, place) if self.recorder is not None else seq[int(place.item())]
        return drawn

    def _call(self, call: Callable[..., Any], name: str, generator: Any = None) -> Callable[..., Any]:
        def drawn(*arguments: Any, **keywords: Any) -> Any:
            if generator is not None and not _is_kept(name, arguments, keywords):
                return getattr(generator, name)(*arguments, **keywords)
            self.count += 1
            with torch.no_grad():
                value = call(*arguments, **keywords)
            if self.recorder is not None:
                return value
            value = value.detach()
            if value.dim() == 0 and generator is not None:
                return value.item()
            array = value.numpy()
            return array.astype(np.float64) if array.dtype == np.float32 else array
        return drawn


def _is_kept(name: str, arguments: Any, keywords: Any) -> bool:
    """Whether a draw's arguments are those that it is kept for."""
    values = {**dict(enumerate(arguments)), **keywords}
    if values.get("out") is not None:
        return False
    if name in ("choice", "permutation"):
        a = arguments[0] if arguments else keywords.get("a", keywords.get("x"))
        dense = isinstance(a, (list, tuple, range, np.ndarray)) and np.asarray(a).dtype.kind in "iufb" and np.asarray(a).ndim > 0
        return _is_number(a) or dense or isinstance(a, torch.Tensor)
    if name == "binomial":
        n = arguments[0] if arguments else keywords.get("n")
        return isinstance(n, (int, np.integer)) and n <= _LARGEST_COUNT
    sizes = {"size", "dtype", "endpoint"}
    numbers = [value for key, value in values.items() if key not in sizes and value is not None]
    if name in ("uniform", "normal", "gamma", "beta", "exponential", "randint", "integers"):  # the size may come last
        places = {"exponential": 1}.get(name, 2)
        numbers = [value for key, value in values.items() if key not in sizes and value is not None and
                   not (isinstance(key, int) and key >= places)]
        if name in ("gamma", "beta") and not all(isinstance(value, (int, float)) for value in numbers):
            return False
        return all(map(_is_number, numbers))
    return True


def _dtype(dtype: Any) -> Any:
    if isinstance(dtype, torch.dtype):
        return dtype
    if dtype is _Float or dtype is _Int:
        dtype = dtype.kind
    return torch.from_numpy(np.zeros(0, dtype)).dtype if np.dtype(dtype) != np.float64 else torch.float32


def _place() -> str:
    return place_of(sys._getframe(1)) or "forward"
