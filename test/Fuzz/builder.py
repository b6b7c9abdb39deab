"""Builds a graph node by node, with every value at hand: of the first micro-batch, in float64.

So shapes need no inference, ranges stay where float32 has a meaning, and what the reference
cannot compute is never written.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradients import STOPS
from graph import Graph, Input, Node
from reference import Trace

#: Sizes of dimensions: odd ones and primes, and 1.
SIZES = [1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 11, 13, 16, 17]
#: Elements that a value may have.
LIMIT = 700


class Unsuitable(Exception):
    """What was drawn does not fit together: something else is drawn."""


class Builder:
    def __init__(self, rng: np.random.Generator, opset: int, limit: int = LIMIT):
        self.rng, self.opset, self.limit = rng, opset, limit
        self.graph = Graph(opset)
        self.trace = Trace(opset)
        #: Floats that a recipe may take, in order of making.
        self.pool: list[str] = []
        self.used: set[str] = set()
        #: Values that have a gradient of a parameter.
        self.trained: set[str] = set()
        self.count = 0
        #: A first dimension that many inputs share.
        self.batch = self.size()

    # Choices.

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def choose(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def size(self, least: int = 1, most: int = 17) -> int:
        return int(self.rng.choice([size for size in SIZES if least <= size <= most]))

    def shape(self, rank: int, limit: int | None = None) -> tuple[int, ...]:
        while True:
            shape = tuple(self.size(most=17 if rank < 4 else 7) for _ in range(rank))
            if math.prod(shape) <= (limit or self.limit):
                return shape

    def axes(self, rank: int, least: int = 1) -> list[int]:
        """Some axes, in any order, some counted from behind."""
        count = int(self.rng.integers(least, rank + 1))
        chosen = self.rng.permutation(rank)[:count]
        return [int(axis) - (rank if self.chance(0.3) else 0) for axis in chosen]

    # Values.

    def value(self, name: str) -> np.ndarray:
        return self.trace.values[name]

    def shape_of(self, name: str) -> tuple[int, ...]:
        return self.value(name).shape

    def rank(self, name: str) -> int:
        return self.value(name).ndim

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def input(self, *shape: int, **kind: Any) -> str:
        given = Input(tuple(shape), **kind)
        name = self.fresh("x")
        self.graph.inputs[name] = given
        self.trace.start(name, given.draw(self.rng), True)
        return name

    def parameter(self, *shape: int, scale: float | None = None, shift: float = 0.0) -> str:
        """A trained value; sometimes one that is there already."""
        same = [name for name, array in self.graph.parameters.items() if array.shape == shape]
        if same and shift == 0 and self.chance(0.25):
            return self.choose(*same)
        fan = shape[-2] if len(shape) > 1 else 1
        array = self.rng.normal(shift, scale if scale is not None else 1 / math.sqrt(fan), shape)
        name = self.fresh("p")
        self.graph.parameters[name] = np.asarray(array, np.float32)
        self.trace.start(name, self.graph.parameters[name], True)
        self.trained.add(name)
        return name

    def statistic(self, value: np.ndarray) -> str:
        """A running statistic."""
        name = self.fresh("s")
        self.graph.statistics[name] = np.asarray(value, np.float32)
        self.trace.start(name, self.graph.statistics[name], True)
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = self.fresh("c")
        self.graph.constants[name] = np.asarray(value, dtype)
        self.trace.start(name, self.graph.constants[name], False)
        return name

    def known(self, values: Any, dtype: Any = np.float32) -> str:
        """Floats that have to be constants: no option that names constants names them."""
        name = self.fresh("k")
        self.graph.constants[name] = np.asarray(values, dtype)
        self.trace.start(name, self.graph.constants[name], False)
        return name

    def whole(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any):
        """Writes a node and computes it."""
        base = self.fresh("v")
        names = [base] if outputs == 1 else [f"{base}_{k}" for k in range(outputs)]
        made = Node(op, list(inputs), names, attributes)
        steps = len(self.trace.steps)
        try:
            self.trace.run(made)
        except (ValueError, IndexError, TypeError, KeyError, AttributeError, RuntimeError, NotImplementedError, ZeroDivisionError) as error:
            del self.trace.steps[steps:]
            raise Unsuitable(f"{op}: {type(error).__name__} {error}") from error
        self.graph.nodes.append(made)
        self.used.update(inputs)
        for step in self.trace.steps[steps:]:
            if step.op not in STOPS and self.trained.intersection(step.inputs):
                self.trained.update(output for output in step.outputs if output and self.value(output).dtype.kind == "f")
        return names[0] if outputs == 1 else names

    __call__ = node

    def reduce(self, op: str, x: str, axes: list[int] | None, keepdims: int = 1) -> str:
        """Axes are an input from opset 18 on (of ReduceSum from 13 on)."""
        if axes is None:
            return self(op, x, keepdims=keepdims)
        if self.opset < (13 if op == "ReduceSum" else 18):
            return self(op, x, axes=axes, keepdims=keepdims)
        return self(op, x, self.whole(*axes), keepdims=keepdims)

    def reshape(self, x: str, *shape: int) -> str:
        return self("Reshape", x, self.whole(*shape)) if self.shape_of(x) != shape else x

    # Floats of some kind.

    def real(self, rank: int | None = None, least: int = 1, accept=None, most: int | None = None, scalar: bool = False) -> str:
        """A float of the pool, newer ones first, unused ones before them; or a new input or parameter.
        One of rank 0 only where `scalar` says so."""
        def fits(name: str) -> bool:
            array = self.value(name)
            return ((rank is None or array.ndim == rank) and least <= array.size <= (most or self.limit)
                    and (array.ndim > 0 or scalar) and (accept is None or accept(array.shape)))

        found = [name for name in self.pool if fits(name)]
        if found and self.chance(0.9):
            unused = [name for name in found if name not in self.used]
            if unused and self.chance(0.6):
                return self.choose(*unused[-3:])
            return self.choose(*found[-6:])
        if rank is not None and accept is None and self.pool and self.chance(0.5):
            reshaped = self.refold(self.choose(*self.pool[-6:]), rank)
            if fits(reshaped):
                return reshaped
        for _ in range(40):
            shape = self.shape(int(self.rng.integers(1, 5)) if rank is None else rank, most)
            if self.chance(0.6) and shape:
                shape = (self.batch, *shape[1:])
            if math.prod(shape) <= (most or self.limit) and math.prod(shape) >= least and (accept is None or accept(shape)):
                return self.input(*shape) if self.chance(0.7) else self.parameter(*shape, scale=1.0)
        raise Unsuitable("no such shape")

    def refold(self, x: str, rank: int) -> str:
        """The same elements in another number of axes."""
        shape = list(self.shape_of(x))
        while len(shape) > rank:
            at = int(self.rng.integers(len(shape) - 1)) if len(shape) > 1 else 0
            shape[at:at + 2] = [math.prod(shape[at:at + 2])]
            if not rank and len(shape) == 1:
                raise Unsuitable("only one element has rank 0")
        while len(shape) < rank:
            at = int(self.rng.integers(len(shape))) if shape else 0
            factors = [f for f in range(1, (shape[at] if shape else 1) + 1) if (shape[at] if shape else 1) % f == 0]
            factor = int(self.choose(*factors))
            shape[at:at + 1] = [factor, (shape[at] if shape else 1) // factor]
        return self.reshape(x, *shape)

    def beside(self, x: str) -> str:
        """A float that broadcasts with x: of the pool, or a parameter, input or constant."""
        shape = self.shape_of(x)

        def fits(other: tuple[int, ...]) -> bool:
            try:
                return math.prod(np.broadcast_shapes(shape, other)) <= self.limit
            except ValueError:
                return False

        found = [name for name in self.pool if name != x and fits(self.shape_of(name))]
        if found and self.chance(0.5):
            return self.choose(*found[-6:])
        other = [size if self.chance(0.7) else 1 for size in shape]
        other = other[int(self.rng.integers(len(other) + 1)):] if self.chance(0.5) else other
        if self.chance(0.1) and math.prod(shape) < 100:
            other = [self.size(most=4), *([1] * (len(shape) - len(other))), *other]
        kind = self.choose("parameter", "parameter", "parameter", "input", "constant")
        if kind == "parameter":
            return self.parameter(*other, scale=1.0)
        if kind == "input":
            return self.input(*other)
        return self.constant(self.rng.normal(size=other))

    def positive(self, x: str) -> str:
        """A float between about 0.3 and 3 made of x."""
        shape = self.choose("Sigmoid", "Softplus", "square", "Exp")
        if shape == "square":
            x = self.bounded(x)
            return self("Add", self("Mul", x, x), self.constant(0.5))
        if shape == "Exp":
            return self("Exp", self("Tanh", x))
        return self("Add", self(shape, self.bounded(x)), self.constant(0.3))

    def bounded(self, x: str, bound: float = 2.5) -> str:
        """x where it is small, else scaled or squashed."""
        most = float(np.max(np.abs(self.value(x)), initial=0.0))
        if most <= bound:
            return x
        if self.chance(0.3):
            return self("Tanh", x)
        return self("Mul", x, self.constant(round(0.8 * bound / most, 4)))

    def apart(self, x: str) -> str:
        """x plus numbers that are apart, so that no two elements are equal."""
        size = self.value(x).size
        offsets = self.rng.permutation(size).reshape(self.shape_of(x)) * (4.0 / max(size, 4))
        return self("Add", self.bounded(x), self.constant(offsets - offsets.mean()))

    def settle(self, x: str) -> str | None:
        """x with values of moderate size; None where it is no float to go on with, or too large for float32."""
        value = self.value(x)
        if value.dtype.kind != "f" or value.size == 0 or value.size > 4 * self.limit or not np.all(np.isfinite(value)):
            return None
        most = float(np.max(np.abs(value)))
        if most > 1e30:
            return None
        if most > 5:
            x = self.bounded(x, 3.0)
        elif most < 1e-6:
            return None
        elif most < 0.05:
            x = self("Mul", x, self.constant(round(0.5 / most, 3)))
        return x

    def offer(self, *names: str) -> None:
        """Puts floats into the pool."""
        for name in names:
            settled = self.settle(name)
            if settled is not None:
                self.pool.append(settled)
