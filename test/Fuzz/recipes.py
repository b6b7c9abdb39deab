"""What the generator knows to draw: a recipe for each operator, taking floats of the pool and
putting its results back. Recipes of larger pieces, which are no one operator's, are idioms."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto

from builder import Builder, Unsuitable

Recipe = Callable[[Builder, str], None]
RECIPES: dict[str, Recipe] = {}
IDIOMS: dict[str, Callable[[Builder], None]] = {}
#: Operators from which opset on there is one.
HISTORY = sorted(onnx.defs.get_all_schemas_with_history(), key=lambda schema: -schema.since_version)
SINCE = {schema.name: schema.since_version for schema in HISTORY if schema.domain == ""}
# Before, its scale and bias were those of groups.
SINCE["GroupNormalization"] = 21
#: Numbers cannot be had without these: every graph has some.
ALWAYS = {"Constant"}
#: Only opsets that are older than those of graphs have these: test/Conformance/older.test.
OLDER = {"Scatter", "Upsample"}


def recipe(*ops: str):
    def register(function: Recipe) -> Recipe:
        for op in ops:
            RECIPES[op] = function
        return function
    return register


def idiom(function: Callable[[Builder], None]):
    IDIOMS[function.__name__] = function
    return function


def axis_of(b: Builder, rank: int) -> int:
    """An axis, sometimes counted from behind."""
    axis = int(b.rng.integers(rank))
    return axis - rank if b.chance(0.4) else axis


# Elementwise.

@recipe("Abs", "Cos", "Erf", "Exp", "HardSwish", "Identity", "Mish", "Neg", "Relu", "Selu", "Sigmoid", "Sin", "Softplus",
        "Softsign", "Tanh", "Asinh", "Atan", "Cosh", "Sinh", "Celu", "Elu", "HardSigmoid", "LeakyRelu", "Shrink", "ThresholdedRelu", "Gelu", "Swish")
def unary(b: Builder, op: str) -> None:
    attributes = {}
    if b.chance(0.5):
        number = round(float(b.rng.uniform(0.1, 1.5)), 2)
        if op in ("Celu", "Elu", "LeakyRelu", "ThresholdedRelu", "Swish"):
            attributes["alpha"] = number
        elif op == "HardSigmoid":
            attributes.update(alpha=number / 4, beta=0.4)
        elif op == "Shrink":
            attributes.update(lambd=number, bias=number / 2)
        elif op == "Gelu":
            attributes["approximate"] = "tanh"
    x = b.real(scalar=True)
    b.offer(b(op, b.bounded(x) if op in ("Cosh", "Exp", "Sinh", "Tanh", "Sigmoid") else x, **attributes))


@recipe("Log", "Reciprocal", "Sqrt")
def positive(b: Builder, op: str) -> None:
    b.offer(b(op, b.positive(b.real())))


@recipe("Acos", "Asin", "Atanh", "Acosh")
def inverse(b: Builder, op: str) -> None:
    x = b("Mul", b("Tanh", b.real()), b.constant(0.9))
    b.offer(b(op, b("Add", x, b.constant(2.1)) if op == "Acosh" else x))


@recipe("Tan")
def tangent(b: Builder, op: str) -> None:
    b.offer(b(op, b.bounded(b.real(), 1.2)))


@recipe("Add", "Sub", "Mul", "Sum", "Mean", "Div", "Pow", "Max", "Min", "Mod", "PRelu", "SwiGLU")
def binary(b: Builder, op: str) -> None:
    x = b.real(scalar=op != "PRelu")
    y = b.beside(x)
    if op == "Div":
        y = b.positive(y)
    elif op == "Pow":
        if b.chance(0.4):
            x, y = b.bounded(x), b.constant(b.choose(2.0, 3.0, 1.0))
        else:
            x, y = b.positive(x), b.bounded(y, 1.5)
    elif op in ("Max", "Min"):
        x, y = b.apart(x), b.bounded(y)
    elif op == "Mod":
        x, y = b.positive(x), b.positive(y)
        b.offer(b(op, b("Mul", x, b.constant(3.7)), y, fmod=1))
        return
    elif op == "PRelu":
        # The slope broadcasts to x, not the other way.
        y = b.parameter(*[size if b.chance(0.7) else 1 for size in b.shape_of(x)][int(b.rng.integers(b.rank(x) + 1)):])
    elif op == "SwiGLU":
        y = b.parameter(*b.shape_of(x), scale=1.0)
    inputs = [x, y] if b.chance(0.5) or op in ("Div", "Pow", "PRelu", "Mod") else [y, x]
    if op in ("Sum", "Mean", "Max", "Min") and b.chance(0.4):
        inputs.append(b.bounded(b.beside(x)))
    b.offer(b(op, *inputs))


@recipe("Clip")
def clip(b: Builder, op: str) -> None:
    x = b.real()
    inputs = [x, b.constant(-round(float(b.rng.uniform(0.2, 2)), 3)), b.constant(round(float(b.rng.uniform(0.2, 2)), 3))]
    if b.chance(0.3):
        inputs[int(b.rng.integers(1, 3))] = ""
    b.offer(b(op, *(inputs if inputs[2] else inputs[:2])))


@recipe("Where")
def where(b: Builder, op: str) -> None:
    x = b.real()
    b.offer(b(op, condition(b, x), x, b.beside(x)))


@recipe("Dropout")
def dropout(b: Builder, op: str) -> None:
    x = b.real()
    if b.chance(0.3):
        b.offer(b(op, x))
        return
    b.offer(b(op, x, b.known(b.choose(0.4, 0.1, 0.0)), b.known(b.chance(0.6), np.bool_)))


@recipe("Cast", "CastLike")
def cast(b: Builder, op: str) -> None:
    """Float to integer and back, or a mask as numbers: no gradient, but where floats stay floats."""
    x = b.real()
    if op == "CastLike":
        mask = b.input(*b.shape_of(x), kind="mask", dtype="bool")
        b.offer(b("Mul", x, b("CastLike", mask, x)))
        return
    kind = b.choose(TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.FLOAT)
    y = b("Cast", b("Cast", b("Mul", b.bounded(x), b.constant(3.3)), to=kind), to=TensorProto.FLOAT)
    b.offer(y if kind == TensorProto.FLOAT else b("Add", b("Mul", y, b.constant(0.3)), x))


# Conditions and integers: no gradient passes, so they choose or weigh floats.

def condition(b: Builder, x: str) -> str:
    """A condition that broadcasts with x: a mask, or a comparison of numbers that are apart."""
    shape = [size if b.chance(0.8) else 1 for size in b.shape_of(x)]
    if b.chance(0.4):
        return b.input(*shape, kind="mask", dtype="bool")
    if b.chance(0.3):
        ids = b.input(*shape, kind="ids", bound=5, dtype="int64")
        return b(b.choose("Less", "Equal", "Greater"), ids, b.constant(2, np.int64))
    return b(b.choose("Less", "Greater", "LessOrEqual", "GreaterOrEqual"), b.apart(x), b.constant(0.0123))


def weigh(b: Builder, x: str, flags: str) -> None:
    """Numbers 0.5 and 1 made of flags, times x."""
    number = b("Cast", flags, to=TensorProto.FLOAT)
    b.offer(b("Mul", x, b("Add", b("Mul", number, b.constant(0.5)), b.constant(0.5))))


@recipe("And", "Or", "Xor", "Not")
def logic(b: Builder, op: str) -> None:
    x = b.real()
    a = condition(b, x)
    weigh(b, x, b(op, a) if op == "Not" else b(op, a, condition(b, x)))


@recipe("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
def comparison(b: Builder, op: str) -> None:
    x = b.real()
    if b.chance(0.5) and op != "Equal":
        weigh(b, x, b(op, b.apart(x), b.beside(x)))
        return
    kind = b.choose("int64", "int32")
    ids = b.input(*b.shape_of(x), kind="ids", bound=3, dtype=kind)
    weigh(b, x, b(op, ids, b.constant(1, kind)))


@recipe("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
def bits(b: Builder, op: str) -> None:
    """Bits of integers that broadcast, of which some below 0, as flags."""
    x, kind = b.real(), b.choose("int64", "int32")
    ids = b("Sub", b.input(*b.shape_of(x), kind="ids", bound=9, dtype=kind), b.constant(b.choose(0, 4), kind))
    others = [b.input(*b.shape_of(x)[-1:], kind="ids", bound=7, dtype=kind) if b.chance(0.5) else b.constant(b.choose(1, 3, 5, -2), kind)]
    y = b(op, ids) if op == "BitwiseNot" else b(op, *([ids, *others] if b.chance(0.5) else [*others, ids]))
    weigh(b, x, b("Less", y, b.constant(2, kind)))


@recipe("IsInf", "IsNaN")
def finite(b: Builder, op: str) -> None:
    x = b.real()
    bad = b("Where", b.input(*b.shape_of(x), kind="mask", dtype="bool"), x, b.constant(np.inf if op == "IsInf" else np.nan))
    b.offer(b("Where", b(op, bad), b.beside(x), x))


@recipe("Ceil", "Floor", "Round", "Sign")
def stair(b: Builder, op: str) -> None:
    x = b.real()
    y = b(op, b("Mul", b.apart(x), b.constant(1.7)))
    b.offer(b("Add", x, b("Mul", y, b.constant(0.25))))


@recipe("ArgMax", "ArgMin")
def arg(b: Builder, op: str) -> None:
    x = b.apart(b.real())
    axis = axis_of(b, b.rank(x))
    place = b(op, x, axis=axis, keepdims=1, select_last_index=b.choose(0, 1))
    if b.chance(0.5):
        b.offer(b("GatherElements", x, place, axis=axis))
    else:
        weigh(b, x, b("Equal", place, b.constant(0, np.int64)))


@recipe("Hardmax")
def hardmax(b: Builder, op: str) -> None:
    x = b.real()
    b.offer(b("Mul", x, b(op, b.apart(x), axis=axis_of(b, b.rank(x)))))


@recipe("OneHot")
def one_hot(b: Builder, op: str) -> None:
    depth, rank = b.size(2), int(b.rng.integers(1, 3))
    ids = b.input(*b.shape(rank, b.limit // depth), kind="ids", bound=depth, dtype=b.choose("int64", "int32"))
    values = b.constant([0, 1]) if b.chance(0.5) else b.parameter(2, scale=1.0)
    b.offer(b(op, ids, b.constant(depth, np.int64), values, axis=int(b.rng.integers(-1, rank + 1))))


@recipe("Shape", "Size", "ConstantOfShape", "Range", "EyeLike", "NonZero")
def shapes(b: Builder, op: str) -> None:
    """Numbers made of shapes, which the compiler has to know."""
    x = b.real(rank=2) if op == "EyeLike" else b.real()
    if op == "Shape":
        b.offer(b("Reshape", x, b("Concat", b.whole(-1), b("Shape", x, start=-1) if b.opset >= 15 else b("Slice", b("Shape", x), b.whole(-1), b.whole(99)), axis=0)))
    elif op == "Size":
        b.offer(b("Div", x, b("Sqrt", b("Cast", b("Size", x), to=TensorProto.FLOAT))))
    elif op == "ConstantOfShape":
        b.offer(b("Add", x, b(op, b("Shape", x), value=tensor([0.7]))))
    elif op == "Range":
        rows = b("Squeeze", b("Gather", b("Shape", x), b.whole(-1)))
        b.offer(b("Add", x, b("Sin", b("Cast", b(op, b.constant(0, np.int64), rows, b.constant(1, np.int64)), to=TensorProto.FLOAT))))
    elif op == "EyeLike":
        b.offer(b("Sub", x, b(op, x, k=int(b.rng.integers(-1, 2)), dtype=TensorProto.FLOAT)))
    else:
        flags = b.rng.random(b.shape_of(x)[0]) < 0.6
        flags[0] = True
        rows = b(op, b.constant(flags, np.bool_))
        b.offer(b("Gather", x, b("Squeeze", rows, b.whole(0)), axis=0))


def tensor(values, dtype=np.float32):
    from onnx import numpy_helper
    return numpy_helper.from_array(np.asarray(values, dtype))


# Reductions.

@recipe("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare",
        "ReduceMax", "ReduceMin")
def reduction(b: Builder, op: str) -> None:
    x = b.real()
    if op in ("ReduceLogSum", "ReduceProd", "ReduceL1", "ReduceL2"):
        x = b.positive(x)
    elif op in ("ReduceMax", "ReduceMin"):
        x = b.apart(x)
    elif op == "ReduceLogSumExp":
        x = b.bounded(x)
    axes = None if b.chance(0.1) else b.axes(b.rank(x), 1)
    keep = b.choose(0, 1)
    y = b.reduce(op, x, axes, keep)
    b.offer(b("Mul", x, y) if keep and b.chance(0.4) else y)


@recipe("Softmax", "LogSoftmax")
def softmax(b: Builder, op: str) -> None:
    x = b.real()
    b.offer(b(op, x, axis=axis_of(b, b.rank(x))))


@recipe("LpNormalization")
def lp_normalization(b: Builder, op: str) -> None:
    x = b.positive(b.real())
    b.offer(b(op, x, axis=axis_of(b, b.rank(x)), p=b.choose(1, 2)))


@recipe("CumSum")
def cumsum(b: Builder, op: str) -> None:
    x = b.real()
    axis = b.constant(axis_of(b, b.rank(x)), np.int64)
    b.offer(b(op, x, axis, exclusive=b.choose(0, 1), reverse=b.choose(0, 1)))


@recipe("CumProd")
def cumprod(b: Builder, op: str) -> None:
    x = b.positive(b.real())
    axis = axis_of(b, b.rank(x))
    # Of one element the product of those before is no function of it.
    exclusive = b.choose(0, 1) if b.shape_of(x)[axis] > 1 else 0
    b.offer(b("Tanh", b(op, x, b.constant(axis, np.int64), exclusive=exclusive, reverse=b.choose(0, 1))))


@recipe("TopK")
def top_k(b: Builder, op: str) -> None:
    x = b.apart(b.real())
    axis = axis_of(b, b.rank(x))
    count = int(b.rng.integers(1, b.shape_of(x)[axis] + 1))
    values, places = b(op, x, b.whole(count), outputs=2, axis=axis, largest=b.choose(0, 1), sorted=1)
    b.offer(values)
    if b.chance(0.3):
        b.offer(b("GatherElements", b("Sin", x), places, axis=axis))


def product_of(shape) -> int:
    return math.prod(shape)


def need(holds: bool, why: str) -> None:
    if not holds:
        raise Unsuitable(why)
