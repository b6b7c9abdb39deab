"""Pieces of real models that are no one operator's, and the losses at a graph's end."""
from __future__ import annotations

import math

import numpy as np

from builder import Builder, Unsuitable
from layers import affine, linear
from recipes import idiom, need, recipe

SMOOTH = ["Sin", "Tanh", "Sigmoid", "Cos", "Softsign", "Erf", "Softplus", "Relu", "Neg", "Identity"]


@idiom
def perceptron(b: Builder) -> None:
    """Several products, so that pipelines have something to cut."""
    x = b.real(accept=lambda shape: len(shape) >= 2)
    size = b.size(2, 13)
    for _ in range(b.choose(2, 3, 4)):
        x = b(b.choose(*SMOOTH), linear(b, x, size if b.chance(0.7) else b.size(2, 13)))
    b.offer(x)


@idiom
def residual_blocks(b: Builder) -> None:
    """Equal blocks, sometimes with the same weights."""
    x = b.real(accept=lambda shape: len(shape) >= 2 and shape[-1] > 2)
    size, inner = b.shape_of(x)[-1], b.size(2, 11)
    shared = b.chance(0.3)
    weights = None
    for _ in range(b.choose(2, 3)):
        if weights is None or not shared:
            weights = [b.parameter(size, inner), b.parameter(inner, scale=0.3), b.parameter(inner, size)]
        h = b("Relu", b("Add", b("MatMul", x, weights[0]), weights[1])) if b.chance(0.5) else \
            b("Tanh", b("Add", b("MatMul", x, weights[0]), weights[1]))
        x = b("Add", x, b("MatMul", h, weights[2]))
        if b.chance(0.4):
            x = normalized(b, x)
    b.offer(x)


def normalized(b: Builder, x: str) -> str:
    """A layer or root-mean-square normalization written by hand."""
    scale, bias = affine(b, b.shape_of(x)[-1])
    centered = b("Sub", x, b.reduce("ReduceMean", x, [-1])) if b.chance(0.6) else x
    square = b("Mul", centered, centered) if b.chance(0.5) else b("Pow", centered, b.constant(2.0))
    spread = b("Sqrt", b("Add", b.reduce("ReduceMean", square, [-1]), b.constant(1e-3)))
    y = b("Div", centered, spread) if b.chance(0.5) else b("Mul", centered, b("Reciprocal", spread))
    y = b("Mul", y, scale) if b.chance(0.5) else b("Mul", scale, y)
    return b("Add", y, bias) if b.chance(0.6) else y


@idiom
def layer_norm_by_hand(b: Builder) -> None:
    x = b.real(accept=lambda shape: shape[-1] > 2)
    b.offer(normalized(b, x))


@idiom
def gelu_by_hand(b: Builder) -> None:
    x = b.real()
    if b.chance(0.5):
        y = b("Add", b("Erf", b("Div", x, b.constant(math.sqrt(2)))), b.constant(1.0))
        b.offer(b("Mul", b("Mul", x, b.constant(0.5)), y))
    else:
        b.offer(b("Mul", x, b("Sigmoid", x)))


@idiom
def attention_by_hand(b: Builder) -> None:
    """Products around a softmax, with or without heads and masks."""
    x = b.real(rank=3, most=200, accept=lambda s: 1 < s[2] and s[1] <= 9)
    rows, length, size = b.shape_of(x)
    heads, inner = b.choose(1, 2, 3), b.choose(1, 2, 4)
    q, k, v = (linear(b, x, heads * inner) for _ in range(3))
    split = [b("Transpose", b.reshape(n, rows, length, heads, inner), perm=[0, 2, 1, 3]) for n in (q, k, v)]
    scores = b("MatMul", split[0], b("Transpose", split[1], perm=[0, 1, 3, 2]))
    scores = b("Mul", scores, b.constant(inner ** -0.5)) if b.chance(0.7) else scores
    kind = b.choose("none", "causal", "padding", "chosen", "bias")
    if kind == "causal":
        scores = b("Add", scores, b.constant(np.triu(np.full((length, length), -1e4), 1)))
    elif kind == "padding":
        seen = b("Cast", b.input(rows, 1, 1, length, kind="mask", dtype="bool"), to=1)
        scores = b("Add", scores, b("Mul", b("Sub", b.constant(1.0), seen), b.constant(-30.0)))
    elif kind == "chosen":
        seen = b.input(1, 1, length, length, kind="mask", dtype="bool")
        scores = b("Where", seen, scores, b.constant(-30.0))
    elif kind == "bias":
        scores = b("Add", scores, b.parameter(heads, length, length, scale=0.5))
    y = b("MatMul", b("Softmax", scores, axis=-1), split[2])
    y = b.reshape(b("Transpose", y, perm=[0, 2, 1, 3]), rows, length, heads * inner)
    y = linear(b, y, size)
    b.offer(b("Add", x, y) if b.chance(0.6) else y)


@idiom
def chain(b: Builder) -> None:
    """Sixty operations one after the other."""
    x = b.real(most=120)
    for step in range(60):
        kind = int(b.rng.integers(8))
        if kind < 4:
            x = b(b.choose(*SMOOTH), b.bounded(x, 2.0))
        elif kind == 4:
            x = b(b.choose("Add", "Mul", "Sub"), x, b.parameter(*[s if b.chance(0.7) else 1 for s in b.shape_of(x)], scale=1.0))
        elif kind == 5:
            x = b("Mul", x, b.constant(1.3))
        elif kind == 6:
            x = b("Add", x, b.choose(*([n for n in b.pool if b.shape_of(n) == b.shape_of(x)] or [x])))
        else:
            x = b("Transpose", x)
        x = b.bounded(x, 3.0)
        if step % 10 == 9 and float(np.std(b.value(x))) < 0.05:
            x = b("Mul", x, b.constant(5.0))
    b.offer(x)


@idiom
def long_sum(b: Builder) -> None:
    """Many terms of one value, each with its own weight."""
    x = b.real(most=100)
    total = None
    for _ in range(b.choose(9, 17, 33)):
        term = b("Mul", x, b.parameter(*[1] * b.rank(x), scale=0.5) if b.chance(0.3) else b.constant(b.rng.normal()))
        total = term if total is None else b("Add", total, term)
    b.offer(total)


@idiom
def embedding(b: Builder) -> None:
    """Tokens and positions, sometimes with the table's transpose as a head."""
    rows, length, size, bound = b.batch, b.size(1, 9), b.size(1, 11), b.size(3, 17)
    need(rows * length * size <= b.limit, "size")
    table = b.parameter(bound, size, scale=1.0)
    x = b("Gather", table, b.input(rows, length, kind="ids", bound=bound, dtype="int64"))
    if b.chance(0.6):
        x = b("Add", x, b.parameter(length, size, scale=0.5))
    if b.chance(0.4) and rows * length * bound <= b.limit:
        x = b("MatMul", x, b("Transpose", table, perm=[1, 0]))
    b.offer(x)


@idiom
def gate(b: Builder) -> None:
    """A trained number of one element, or of rank 0."""
    x = b.real()
    b.offer(b("Mul", x, b.parameter(*b.choose((), (1,), (1,) * b.rank(x)), scale=0.5, shift=1.0)))


@idiom
def unused(b: Builder) -> None:
    """A dead branch: parameters, and an input that nothing needs."""
    pool = list(b.pool)
    b("Sin", b("Mul", b.real(), b.parameter(scale=1.0)))
    b.pool = pool


@idiom
def wide_product(b: Builder) -> None:
    """Products of several tiles, or of a long contraction."""
    rows, inner, size = b.choose((3, 530, 40), (520, 9, 3), (2, 4100, 2), (33, 65, 129), (1, 17, 1031))
    x = b("Tanh", linear(b, b.input(rows, inner), size))
    b.offer(b.reduce("ReduceMean", x, [b.choose(0, 1)], 0))


# Losses.

def labels_for(b: Builder, scores: str, ignored: int | None) -> str:
    shape = b.shape_of(scores)
    share = 0.3 if ignored is not None else 0.0
    return b.input(shape[0], *shape[2:], kind="labels", bound=shape[1], ignored=0 if ignored is None else ignored, share=share, dtype="int64")


@recipe("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def cross_entropy(b: Builder, op: str, x: str | None = None) -> None:
    x = x or b.real(accept=lambda shape: len(shape) >= 2)
    classes, attributes = b.shape_of(x)[1], {}
    if op == "NegativeLogLikelihoodLoss":
        x = b("LogSoftmax", x, axis=1)
    ignored = b.choose(None, -100, -1, 0 if classes > 1 else -1)
    if ignored is not None:
        attributes["ignore_index"] = ignored
    attributes["reduction"] = b.choose("mean", "mean", "sum", "none")
    weights = [b.constant(b.rng.uniform(0.5, 2, classes))] if b.chance(0.3) else []
    b.offer(b(op, x, labels_for(b, x, ignored), *weights, **attributes))


def scalar_loss(b: Builder, x: str) -> str:
    """A number made of x, in one of many ways."""
    kind = b.choose("weighed", "mse", "square", "softplus", "entropy", "hinge", "logsumexp", "huber", "bce", "mean", "product")
    shape = b.shape_of(x)
    if kind == "entropy" and len(shape) >= 2 and shape[1] > 1:
        ignored = b.choose(None, -100, -1)
        attributes = {} if ignored is None else {"ignore_index": ignored}
        return b("SoftmaxCrossEntropyLoss", x, labels_for(b, x, ignored), reduction="mean", **attributes)
    if kind == "mse":
        difference = b("Sub", x, b.input(*shape))
        y = b("Mul", difference, difference)
    elif kind == "square":
        y = b("Pow", x, b.constant(2.0))
    elif kind == "softplus":
        y = b("Softplus", x)
    elif kind == "hinge":
        y = b("Relu", b("Sub", b.constant(0.7), b("Mul", x, b.constant(np.sign(b.rng.normal(size=shape)) + 0.01))))
    elif kind == "huber":
        size = b("Abs", b("Sub", x, b.input(*shape)))
        y = b("Where", b("Less", size, b.constant(1.0)), b("Mul", b("Mul", size, size), b.constant(0.5)), b("Sub", size, b.constant(0.5)))
    elif kind == "bce":
        p = b("Clip", b("Sigmoid", x), b.constant(1e-4), b.constant(0.9999))
        t = b("Cast", b.input(*shape, kind="mask", dtype="bool"), to=1)
        a = b("Mul", t, b("Log", p))
        y = b("Neg", b("Add", a, b("Mul", b("Sub", b.constant(1.0), t), b("Log", b("Sub", b.constant(1.0), p)))))
    elif kind == "logsumexp":
        return b.reduce("ReduceLogSumExp", b.bounded(x), None, 0)
    elif kind == "mean":
        y = x
    elif kind == "product":
        y = b("Mul", x, b("Sin", x))
    else:
        y = b("Mul", x, b.constant(b.rng.normal(size=shape)))
    if b.chance(0.15):
        return b.reduce("ReduceSum", b("Mul", y, b.constant(1.0 / max(1, math.prod(shape)))), None, 0)
    return b.reduce("ReduceMean", y, None, 0)


def attach(b: Builder, x: str) -> None:
    """A loss that is not in the file: -loss attaches it to an output."""
    rank, begin = b.rank(x), len(b.graph.nodes)
    if rank >= 2 and b.shape_of(x)[-1] > 1 and b.chance(0.5):
        # Classes along the last axis.
        target = b.input(*b.shape_of(x)[:-1], kind="labels", bound=b.shape_of(x)[-1], share=b.choose(0.0, 0.3), dtype="int64")
        scores = b("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])
        loss = b("SoftmaxCrossEntropyLoss", scores, target, ignore_index=-100)
        kind = "cross-entropy"
    else:
        target = b.input(*b.shape_of(x))
        difference = b("Sub", x, target)
        loss = b.reduce("ReduceMean", b("Mul", difference, difference), None, 0)
        kind = "mse"
    b.graph.attached = (kind, x, target, len(b.graph.nodes) - begin)
    b.graph.loss = loss


def finish(b: Builder) -> None:
    """The loss: scalars of what nothing has used yet, added up."""
    trained = [name for name in b.pool if name in b.trained]
    if not trained:
        x = b.choose(*b.pool) if b.pool else b.input(b.batch, 3)
        b.offer(b("Mul", x, b.parameter(b.shape_of(x)[-1] if b.rank(x) else 1, scale=1.0)))
        trained = b.pool[-1:]
    if b.chance(0.06) and b.rank(trained[-1]):
        attach(b, trained[-1])
        return
    loose = [name for name in b.pool if name not in b.used]
    taken = [trained[-1]] + [name for name in loose if name != trained[-1] and b.chance(0.7)][-4:]
    total = None
    for name in taken:
        part = scalar_loss(b, name)
        if b.rank(part):
            part = b.reshape(part)
        part = b("Mul", part, b.constant(round(float(b.rng.uniform(0.2, 2)), 2))) if b.chance(0.4) else part
        total = part if total is None else b("Add", total, part)
    if total is None or not np.isfinite(b.value(total)) or abs(float(b.value(total))) > 1e3:
        raise Unsuitable("loss")
    b.graph.loss = total
