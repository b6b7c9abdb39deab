"""Small models in one piece: what pipelines cut, what shares weights, what values live across many blocks."""
from __future__ import annotations

import numpy as np

from builder import Builder
from idioms import SMOOTH, normalized
from layers import linear
from recipes import idiom, need


@idiom
def skips(b: Builder) -> None:
    """Values that are used again many products later, and losses at several depths."""
    x = b.real(accept=lambda shape: len(shape) >= 2 and shape[-1] > 1)
    size, early = b.shape_of(x)[-1], [x]
    for _ in range(b.choose(3, 4, 6)):
        x = b(b.choose(*SMOOTH), linear(b, x, size))
        if b.chance(0.5):
            x = b(b.choose("Add", "Mul"), x, b.choose(*early))
        early.append(x)
    b.offer(*[name for name in early[1:-1] if b.chance(0.3)], x)


@idiom
def weights_in_a_loop(b: Builder) -> None:
    """The same layer again and again."""
    x = b.real(rank=2, accept=lambda shape: shape[1] > 1)
    size = b.shape_of(x)[1]
    w, u, bias = b.parameter(size, size), b.parameter(size, size), b.parameter(size, scale=0.3)
    h = b("Tanh", x)
    for _ in range(b.choose(2, 3, 5)):
        h = b("Tanh", b("Add", b("Add", b("MatMul", x, w), b("MatMul", h, u)), bias))
    b.offer(h)


@idiom
def transformer(b: Builder) -> None:
    """Blocks of attention and a perceptron, before or behind normalizations, perhaps all of one set of weights."""
    rows, length, heads, inner = b.choose(1, 2, 3), b.choose(1, 3, 5), b.choose(1, 2), b.choose(2, 3)
    size = heads * inner
    x = b("Gather", b.parameter(11, size, scale=1.0), b.input(rows, length, kind="ids", bound=11, dtype="int64"))
    x = b("Add", x, b.parameter(length, size, scale=0.5))
    causal = b.constant(np.where(np.tri(length) > 0, 0.0, -np.inf)) if b.chance(0.5) else None
    weights = None
    shared = b.chance(0.25)
    for _ in range(2):
        if weights is None or not shared:
            weights = [b.parameter(size, 3 * size), b.parameter(size, size), b.parameter(size, 4), b.parameter(4, size)]
        h = normalized(b, x)
        parts = b("Split", b("MatMul", h, weights[0]), b.whole(size, size, size), outputs=3, axis=-1)
        q, k, v = (b("Transpose", b.reshape(part, rows, length, heads, inner), perm=[0, 2, 1, 3]) for part in parts)
        scores = b("Div", b("MatMul", q, b("Transpose", k, perm=[0, 1, 3, 2])), b.constant(inner ** 0.5))
        scores = b("Add", scores, causal) if causal else scores
        y = b("MatMul", b("Softmax", scores, axis=-1), v)
        x = b("Add", x, b("MatMul", b.reshape(b("Transpose", y, perm=[0, 2, 1, 3]), rows, length, size), weights[1]))
        h = b("MatMul", normalized(b, x), weights[2])
        h = b("Mul", h, b("Sigmoid", h)) if b.chance(0.5) else b("Relu", h)
        x = b("Add", x, b("MatMul", h, weights[3]))
    b.offer(x)


@idiom
def experts(b: Builder) -> None:
    """A gate chooses some of several products."""
    x = b.real(rank=2, most=200)
    rows, size = b.shape_of(x)
    count, chosen, out = 4, b.choose(1, 2), b.size(most=5)
    scores = b("MatMul", x, b.parameter(size, count))
    spread = b.rng.permutation(rows * count).reshape(rows, count) * 0.11
    values, places = b("TopK", b("Add", scores, b.constant(spread)), b.whole(chosen), outputs=2, axis=-1)
    gates = b("Softmax", values, axis=-1)
    picked = b("Gather", b.parameter(count, size, out, scale=size ** -0.5), places)
    need(b.value(picked).size <= 3 * b.limit, "size")
    y = b("MatMul", b("Unsqueeze", b("Unsqueeze", x, b.whole(1)), b.whole(1)), picked)
    b.offer(b.reduce("ReduceSum", b("Mul", b.reshape(y, rows, chosen, out), b("Unsqueeze", gates, b.whole(2))), [1], 0))


@idiom
def weight_norm(b: Builder) -> None:
    x = b.real(accept=lambda shape: len(shape) >= 2 and shape[-1] > 1)
    size, out = b.shape_of(x)[-1], b.size(most=9)
    v = b.parameter(size, out, scale=1.0)
    unit = b("Div", v, b.reduce("ReduceL2", v, [0]))
    b.offer(b("MatMul", x, b("Mul", unit, b.parameter(1, out, scale=0.3, shift=1.0))))


@idiom
def masked_mean(b: Builder) -> None:
    x = b.real(rank=3)
    shape = b.shape_of(x)
    seen = b("Cast", b("Or", b.input(*shape[:2], 1, kind="mask", dtype="bool"), b.known(np.arange(shape[1])[:, None] == 0, np.bool_)), to=1)
    b.offer(b("Div", b.reduce("ReduceSum", b("Mul", x, seen), [1], 0), b.reduce("ReduceSum", seen, [1], 0)))


@idiom
def contrast(b: Builder) -> None:
    """Two towers, a temperature of one element, cross-entropy both ways."""
    rows, size = b.size(2, 9), b.size(2, 9)
    towers = [linear(b, b.input(rows, b.size(2, 9)), size) for _ in range(2)]
    units = [b("Div", t, b("Sqrt", b("Add", b.reduce("ReduceSum", b("Mul", t, t), [1]), b.constant(1e-2)))) for t in towers]
    scale = b("Exp", b.parameter(*b.choose((), (1,)), scale=0.2, shift=1.0))
    logits = b("Mul", b("MatMul", units[0], b("Transpose", units[1], perm=[1, 0])), scale)
    own = b.known(np.arange(rows), np.int64)
    loss = b("Add", b("SoftmaxCrossEntropyLoss", logits, own), b("SoftmaxCrossEntropyLoss", b("Transpose", logits, perm=[1, 0]), own))
    b.offer(b.reshape(loss, 1))


@idiom
def smoothed(b: Builder) -> None:
    """Cross-entropy with smoothed labels, by hand."""
    x = b.real(rank=2, accept=lambda shape: shape[1] > 1)
    rows, classes = b.shape_of(x)
    logs = b("LogSoftmax", x, axis=1)
    ids = b.input(rows, kind="ids", bound=classes, dtype="int64")
    own = b("Mul", b("OneHot", ids, b.known([classes], np.int64), b.constant([0, 1])), b.constant(0.9))
    b.offer(b.reduce("ReduceSum", b("Mul", b("Neg", logs), b("Add", own, b.constant(0.1 / classes))), [1], 0))


@idiom
def convolutions(b: Builder) -> None:
    """Convolutions, normalizations, a pool and a residual."""
    rows, channels, size = b.choose(1, 2), b.choose(1, 2, 3), b.choose(5, 6, 7)
    x, filters = b.input(rows, channels, size, size), b.choose(2, 4)
    for step in range(b.choose(1, 2)):
        inside = b.shape_of(x)[1]
        y = b("Conv", x, b.parameter(filters, inside, 3, 3, scale=(9 * inside) ** -0.5), pads=[1, 1, 1, 1])
        scale, bias = b.parameter(filters, scale=0.2, shift=1.0), b.parameter(filters, scale=0.2)
        if b.chance(0.5):
            statistics = [b.statistic(b.rng.normal(size=filters)), b.statistic(b.rng.uniform(0.5, 2, filters))]
            y, _, _ = b("BatchNormalization", y, scale, bias, *statistics, outputs=3, training_mode=1, epsilon=1e-2)
        else:
            y = b("InstanceNormalization", y, scale, bias, epsilon=1e-2)
        y = b("Relu", y)
        x = b("Add", x, y) if inside == filters and b.chance(0.7) else y
    if b.chance(0.5):
        x = b("MaxPool", b.apart(x), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=b.choose(0, 1))
    b.offer(linear(b, b("Flatten", b("GlobalAveragePool", x) if b.chance(0.5) else x), b.size(2, 7)))


@idiom
def interactions(b: Builder) -> None:
    """Embeddings of several tables, their products in pairs."""
    rows, size = b.batch, b.choose(2, 3, 5)
    tables = [b.parameter(b.size(3, 9), size, scale=1.0) for _ in range(b.choose(2, 3))]
    parts = [b("Gather", t, b.input(rows, kind="ids", bound=b.shape_of(t)[0], dtype="int64")) for t in tables]
    stack = b("Concat", *[b("Unsqueeze", part, b.whole(1)) for part in parts], axis=1)
    dots = b("MatMul", stack, b("Transpose", stack, perm=[0, 2, 1]))
    below = np.argwhere(np.tri(len(parts), k=-1) > 0)
    b.offer(b("GatherND", b("Transpose", dots, perm=[1, 2, 0]), b.known(below, np.int64)))
