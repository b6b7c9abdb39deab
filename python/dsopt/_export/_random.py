"""What a model draws: a comparison needs the same numbers twice."""
from __future__ import annotations

from typing import Any, List

import torch

_NAMES = {"rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "bernoulli", "bernoulli_",
          "multinomial", "normal", "normal_", "uniform_", "exponential_", "cauchy_", "geometric_", "log_normal_",
          "random_", "poisson"}


def _uniform(x: Any, low: float = 0.0, high: float = 1.0) -> Any:
    return x.copy_(torch.rand_like(x) * (high - low) + low)


def _normal(x: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    return x.copy_(torch.randn_like(x) * std + mean)


def _randint(*arguments: Any, dtype: Any = None, size: Any = None, low: Any = 0, high: Any = None, **keywords: Any) -> Any:
    """randint(low, high, size) or randint(high, size): the place of an even number among equal parts."""
    numbers = list(arguments)
    if size is None:
        size = numbers.pop()
    if numbers:
        high = numbers.pop()
    if numbers:
        low = numbers.pop()
    places = torch.floor(torch.rand(size, **keywords) * (high - low)).long() + low
    return places if dtype is None else places.to(dtype)


#: What no exporter has, of what all have.
_SPELLED = {"randint": _randint, "randperm": lambda n, **_: torch.argsort(torch.rand(n)), "uniform_": _uniform, "normal_": _normal}


def is_random(function: Any) -> bool:
    """Whether a function draws; dropout is not meant."""
    return getattr(function, "__name__", "") in _NAMES


class Draws:
    """Numbers drawn in the order of the calls, kept where `keeps`, and given out again in later runs."""

    def __init__(self, keeps: bool = False):
        self.keeps = keeps
        self.kept: List[Any] = []
        self.count = 0
        self.live = True  #: whether what draws now is in sides of branches that are taken alone

    def begin(self) -> None:
        """A forward begins."""
        self.count = 0

    def drawn(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """What a call gives."""
        self.count += 1
        if not self.keeps:
            keywords = {name: value for name, value in keywords.items() if name != "generator"}  # each draw has its own
            return _SPELLED.get(function.__name__, function)(*arguments, **keywords)
        if self.count > len(self.kept):
            self.kept.append(function(*arguments, **keywords).detach().clone())
            value = self.kept[-1]
        else:
            value = self.kept[self.count - 1]
        if function.__name__.endswith("_"):
            with torch.no_grad():
                return arguments[0].copy_(value)
        return value.clone()


class Sides(Draws):
    """What a forward draws that computes both sides of its branches: in those that are taken the numbers that one drew which took
    them."""

    def __init__(self, taken: Draws):
        super().__init__(keeps=True)
        self.taken, self.used = taken, 0

    def drawn(self, function: Any, arguments: Any, keywords: Any) -> Any:
        if self.live and self.count == len(self.kept):
            self.kept.append(self.taken.kept[self.used])
            self.used += 1
        return super().drawn(function, arguments, keywords)
