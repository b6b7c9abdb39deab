"""Recipes for what moves, repeats, picks and scatters values."""
from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from builder import Builder
from recipes import axis_of, idiom, need, recipe


@recipe("Transpose")
def transpose(b: Builder, op: str) -> None:
    x = b.real()
    b.offer(b(op, x) if b.chance(0.2) else b(op, x, perm=[int(a) for a in b.rng.permutation(b.rank(x))]))


@recipe("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(b: Builder, op: str) -> None:
    x = b.real()
    shape = b.shape_of(x)
    if op == "Reshape":
        y = b.refold(x, int(b.rng.integers(1, 6)))
        if y == x or b.chance(0.3):
            y = b(op, x, b.whole(*[0 if b.chance(0.5) else size for size in shape[:-1]], -1))
    elif op == "Flatten":
        y = b(op, x, axis=int(b.rng.integers(-len(shape), len(shape) + 1)))
    elif op == "Squeeze":
        ones = [a for a, size in enumerate(shape) if size == 1]
        if not ones:
            x = b("Unsqueeze", x, b.whole(*(ones := [int(b.rng.integers(len(shape) + 1))])))
        y = b(op, x) if b.chance(0.3) else b(op, x, b.whole(*ones))
    else:
        need(len(shape) < 5, "rank")
        rank = len(shape) + int(b.rng.integers(1, 3))
        y = b(op, x, b.whole(*[int(a) for a in b.rng.permutation(rank)[:rank - len(shape)]]))
    b.offer(y)


@recipe("Expand", "Tile")
def repeat(b: Builder, op: str) -> None:
    x = b.real(most=b.limit // 4)
    shape = b.shape_of(x)
    if op == "Tile":
        counts = [b.choose(1, 1, 2, 3) for _ in shape]
        need(math.prod(counts) * math.prod(shape) <= b.limit, "size")
        b.offer(b(op, x, b.whole(*counts)))
        return
    target = [b.size(most=5) if size == 1 else b.choose(1, size) for size in shape]
    target = [b.size(most=3)] * b.choose(0, 0, 1) + target
    need(math.prod(np.broadcast_shapes(shape, tuple(target))) <= b.limit, "size")
    b.offer(b(op, x, b.whole(*target)))


@recipe("Concat")
def concat(b: Builder, op: str) -> None:
    x = b.real()
    axis = axis_of(b, b.rank(x))
    shape = b.shape_of(x)

    def same(other) -> bool:
        return len(other) == len(shape) and all(p == q for a, (p, q) in enumerate(zip(shape, other)) if a != axis % len(shape))

    parts = [x]
    for _ in range(b.choose(1, 1, 2, 3)):
        found = [name for name in b.pool if same(b.shape_of(name))]
        if found and b.chance(0.6):
            parts.append(b.choose(*found))
        else:
            other = list(shape)
            other[axis] = b.size(most=5)
            parts.append(b.parameter(*other, scale=1.0))
    need(sum(b.value(p).size for p in parts) <= b.limit, "size")
    b.offer(b(op, *[parts[k] for k in b.rng.permutation(len(parts))], axis=axis))


def pieces(b: Builder, size: int) -> list[int]:
    """Sizes that add up to a size."""
    count = b.choose(1, 2, 3) if size >= 3 else size
    cuts = sorted(int(c) for c in b.rng.choice(np.arange(1, size), count - 1, replace=False)) if count > 1 else []
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, size])]


@recipe("Split")
def split(b: Builder, op: str) -> None:
    x = b.real()
    axis = axis_of(b, b.rank(x))
    sizes = pieces(b, b.shape_of(x)[axis])
    count = len(sizes)
    b.offer(*(b(op, x, b.whole(*sizes), outputs=count, axis=axis) if count > 1 else [b(op, x, b.whole(*sizes), axis=axis)]))


@recipe("Slice")
def cut(b: Builder, op: str) -> None:
    x = b.real()
    axes = b.axes(b.rank(x))
    begins, ends, steps = [], [], []
    for axis in axes:
        size = b.shape_of(x)[axis]
        step = b.choose(1, 1, 1, 2, -1, -2)
        first = int(b.rng.integers(size))
        last = int(b.rng.integers(first + 1, size + 1)) if step > 0 else int(b.rng.integers(-1, first))
        if step < 0:
            last = last if last >= 0 else -size - 1
        elif b.chance(0.2):
            last = 2 ** 31 - 1
        begins.append(first - (size if b.chance(0.3) else 0))
        ends.append(last)
        steps.append(step)
    inputs = [b.whole(*begins), b.whole(*ends), b.whole(*axes)]
    b.offer(b(op, x, *inputs, b.whole(*steps)) if any(s != 1 for s in steps) or b.chance(0.5) else b(op, x, *inputs))


@recipe("Pad")
def pad(b: Builder, op: str) -> None:
    x = b.real(most=b.limit // 2)
    shape, mode = b.shape_of(x), b.choose("constant", "constant", "reflect", "edge", "wrap")
    need(mode != "wrap" or b.opset >= 19, "opset")
    pads = [int(b.rng.integers(0, 3)) for _ in range(2 * len(shape))]
    if mode == "constant" and b.chance(0.2):
        pads = [-1 if b.chance(0.3) and size > 3 else p for p, size in zip(pads, shape * 2)]
    if mode in ("reflect", "wrap"):
        pads = [min(p, size - 1) for p, size in zip(pads, shape * 2)]
    inputs = [x, b.whole(*pads)] + ([b.known(1.5)] if mode == "constant" and b.chance(0.5) else [])
    need(math.prod(s + p + q for s, p, q in zip(shape, pads, pads[len(shape):])) <= 2 * b.limit, "size")
    b.offer(b(op, *inputs, mode=mode))


@recipe("Gather")
def gather(b: Builder, op: str) -> None:
    """An embedding's rows, or some places of a value, given or known."""
    if b.chance(0.5):
        table = b.parameter(b.size(3), b.size(), scale=1.0)
        axis = 0
    else:
        table = b.real()
        axis = axis_of(b, b.rank(table))
    shape = b.shape_of(table)
    rank = b.choose(0, 1, 1, 2, 2)
    picked = (b.batch, *b.shape(rank - 1)) if rank and b.chance(0.6) else b.shape(rank)
    need(math.prod(picked) * math.prod(shape) // max(1, shape[axis]) <= b.limit, "size")
    if b.chance(0.7):
        ids = b.input(*picked, kind="ids", bound=shape[axis], dtype=b.choose("int64", "int64", "int32"))
    else:
        ids = b.constant(b.rng.integers(-shape[axis], shape[axis], picked), np.int64)
    b.offer(b(op, table, ids, axis=axis))


@recipe("GatherElements")
def gather_elements(b: Builder, op: str) -> None:
    x = b.real()
    axis = axis_of(b, b.rank(x))
    shape = list(b.shape_of(x))
    bound = shape[axis]
    shape[axis] = b.size(most=7)
    need(math.prod(shape) <= b.limit, "size")
    b.offer(b(op, x, b.input(*shape, kind="ids", bound=bound, dtype="int64"), axis=axis))


def places(b: Builder, sizes, *shape: int) -> str:
    """Coordinates along the last axis; given as ids of the smallest size, or known."""
    if b.chance(0.5):
        return b.input(*shape, len(sizes), kind="ids", bound=min(sizes), dtype="int64")
    columns = [b.rng.integers(0, size, shape) for size in sizes]
    return b.constant(np.stack(columns, -1), np.int64)


@recipe("GatherND")
def gather_nd(b: Builder, op: str) -> None:
    x = b.real()
    shape = b.shape_of(x)
    batch = b.choose(0, 1) if len(shape) > 1 else 0
    depth = int(b.rng.integers(1, len(shape) - batch + 1))
    picked = (*shape[:batch], b.size(most=7))
    need(math.prod(picked) * math.prod(shape[batch + depth:]) <= b.limit, "size")
    b.offer(b(op, x, places(b, shape[batch:batch + depth], *picked), batch_dims=batch))


@recipe("ScatterElements")
def scatter_elements(b: Builder, op: str) -> None:
    x = b.real()
    shape, axis = b.shape_of(x), axis_of(b, b.rank(x))
    mode = b.choose("none", "add", "add", "mul", "max", "min")
    need(mode == "none" or b.opset >= (16 if mode in ("add", "mul") else 18), "opset")
    picked = [int(b.rng.integers(1, size + 1)) for size in shape]
    if mode == "none" or mode in ("max", "min") and b.chance(0.5):
        # Each place at most once, or the order decides.
        rows = [b.rng.permutation(shape[axis])[:picked[axis]] for _ in range(math.prod(picked) // picked[axis])]
        indices = np.moveaxis(np.reshape(rows, [p for a, p in enumerate(picked) if a != axis % len(shape)] + [picked[axis]]), -1, axis)
        indices = b.constant(indices, np.int64)
    else:
        indices = b.input(*picked, kind="ids", bound=shape[axis], dtype="int64")
    if mode in ("mul", "max", "min"):
        x = b.positive(x)
    updates = b.parameter(*picked, scale=1.0) if b.chance(0.5) else b.input(*picked)
    if mode == "mul":
        updates = b.positive(updates)
    elif mode in ("max", "min"):
        updates = b.apart(updates)
    b.offer(b(op, x, indices, updates, axis=axis, **({} if mode == "none" else {"reduction": mode})))


@recipe("ScatterND")
def scatter_nd(b: Builder, op: str) -> None:
    x = b.real()
    shape = b.shape_of(x)
    depth = int(b.rng.integers(1, len(shape) + 1))
    mode = b.choose("none", "add", "add", "mul")
    need(mode == "none" or b.opset >= 16, "opset")
    if mode == "none":
        count = min(math.prod(shape[:depth]), b.size(most=7))
        chosen = b.rng.permutation(math.prod(shape[:depth]))[:count]
        indices = b.constant(np.stack(np.unravel_index(chosen, shape[:depth]), -1), np.int64)
    else:
        count = b.size(most=7)
        indices = places(b, shape[:depth], count)
    updates = b.parameter(count, *shape[depth:], scale=1.0)
    if mode == "mul":
        x, updates = b.positive(x), b.positive(updates)
    b.offer(b(op, x, indices, updates, **({} if mode == "none" else {"reduction": mode})))


@recipe("Trilu")
def trilu(b: Builder, op: str) -> None:
    x = b.real(accept=lambda shape: len(shape) >= 2)
    b.offer(b(op, x, b.constant(int(b.rng.integers(-2, 3)), np.int64), upper=b.choose(0, 1)) if b.chance(0.8) else b(op, x))


@recipe("CenterCropPad")
def center(b: Builder, op: str) -> None:
    x = b.real(most=b.limit // 2)
    shape, axes = b.shape_of(x), b.axes(b.rank(x)) if b.chance(0.7) else None
    sizes = [max(1, shape[axis] + int(b.rng.integers(-3, 4))) for axis in (range(len(shape)) if axes is None else axes)]
    y = b(op, x, b.whole(*sizes), **({} if axes is None else {"axes": axes}))
    need(b.value(y).size <= 2 * b.limit, "size")
    b.offer(y)


@recipe("Compress")
def compress(b: Builder, op: str) -> None:
    """Places that are known; behind the condition's end there are none."""
    x = b.real()
    axis = axis_of(b, b.rank(x)) if b.chance(0.7) else None
    size = b.value(x).size if axis is None else b.shape_of(x)[axis]
    flags = b.rng.random(int(b.rng.integers(1, size + 1))) < 0.6
    flags[int(b.rng.integers(len(flags)))] = True
    b.offer(b(op, x, b.constant(flags, np.bool_), **({} if axis is None else {"axis": axis})))


@recipe("ReverseSequence")
def reverse_sequence(b: Builder, op: str) -> None:
    x = b.real(accept=lambda shape: len(shape) >= 2)
    time, batch = (int(axis) for axis in b.rng.permutation(2))
    length, rows = b.shape_of(x)[time], b.shape_of(x)[batch]
    if b.chance(0.5):
        lengths = b("Add", b.input(rows, kind="ids", bound=length, dtype="int64"), b.constant(1, np.int64))
    else:
        lengths = b.constant(b.rng.integers(1, length + 1, rows), np.int64)
    b.offer(b(op, x, lengths, time_axis=time, batch_axis=batch))


@recipe("DepthToSpace", "SpaceToDepth")
def blocks(b: Builder, op: str) -> None:
    size = b.choose(2, 2, 3)
    n, c, h, w = b.choose(1, 2, b.batch), b.choose(1, 2, 3), b.choose(1, 2, 3), b.choose(1, 2, 3)
    if op == "DepthToSpace":
        c *= size * size
        attributes = {"mode": b.choose("DCR", "CRD")}
    else:
        h, w, attributes = h * size, w * size, {}
    need(n * c * h * w <= b.limit, "size")
    x = b.real(rank=4, accept=lambda shape: shape == (n, c, h, w)) if b.chance(0.2) else b.input(n, c, h, w)
    b.offer(b(op, x, blocksize=size, **attributes))


@recipe("Resize")
def resize(b: Builder, op: str) -> None:
    x = b.real(rank=b.choose(3, 4), most=200, accept=lambda shape: max(shape[2:]) <= 7)
    shape = b.shape_of(x)
    mode = b.choose("nearest", "linear", "linear", "cubic")
    how = b.choose("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes = {"mode": mode, "coordinate_transformation_mode": how}
    if mode == "nearest":
        attributes["nearest_mode"] = b.choose("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")
    if mode == "cubic":
        attributes["cubic_coeff_a"] = b.choose(-0.75, -0.5)
    if b.chance(0.5):
        sizes = [*shape[:2], *[b.size(most=9) for _ in shape[2:]]]
        b.offer(b(op, x, "", "", b.whole(*sizes), **attributes))
    else:
        scales = [1.0, 1.0, *[b.choose(2.0, 0.5, 1.5, 3.0) for _ in shape[2:]]]
        need(all(int(s * f) >= 1 for s, f in zip(shape, scales)), "size")
        b.offer(b(op, x, "", b.known(scales), **attributes))


@idiom
def integers(b: Builder) -> None:
    """Arithmetic of whole numbers that ends in rows of a table or in weights."""
    kind = b.choose("int64", "int64", "int32")
    shape = (b.batch, *b.shape(b.choose(0, 1, 1, 2), 60))
    ids = b.input(*shape, kind="ids", bound=9, dtype=kind)

    def number(value: int) -> str:
        return b.constant(value, kind)

    for _ in range(b.choose(1, 2, 3, 5)):
        op = b.choose("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Abs", "Neg", "Clip", "Where", "CumSum", "Gather", "Cast", "Reduce", "Sign")
        if op in ("Add", "Sub", "Max", "Min"):
            ids = b(op, ids, b.choose(number(b.choose(1, 2, 3)), b.input(*[s if b.chance(0.6) else 1 for s in b.shape_of(ids)],
                                                                        kind="ids", bound=4, dtype=kind)))
        elif op == "Mul":
            ids = b(op, ids, number(b.choose(2, -1, 3)))
        elif op in ("Div", "Mod"):
            # Of numbers below 0, quotients are rounded in more than one way.
            ids = b(op, b("Abs", ids), number(b.choose(2, 3, 5)))
        elif op in ("Abs", "Neg", "Sign"):
            ids = b(op, ids)
        elif op == "Clip":
            ids = b(op, ids, number(-2), number(5))
        elif op == "Where":
            ids = b(op, b("Greater", ids, number(2)), ids, number(1))
        elif op == "CumSum" and b.rank(ids):
            ids = b(op, ids, b.constant(axis_of(b, b.rank(ids)), np.int64))
        elif op == "Gather" and b.rank(ids):
            ids = b(op, b.constant(b.rng.integers(0, 7, 12), kind), b("Mod", b("Abs", ids), number(12)))
        elif op == "Cast":
            ids = b("Cast", b("Cast", ids, to=b.choose(TensorProto.INT64, TensorProto.INT32)), to=TensorProto.INT64)
            kind = "int64"
        elif op == "Reduce" and b.rank(ids) > 1:
            ids = b.reduce(b.choose("ReduceSum", "ReduceMax", "ReduceMin"), ids, [axis_of(b, b.rank(ids))], b.choose(0, 1))
    if b.chance(0.6):
        rows = b.size(3, 9)
        picked = b("Mod", b("Abs", ids), number(rows))
        width = b.size(most=7)
        need(b.value(ids).size * width <= b.limit, "size")
        b.offer(b("Gather", b.parameter(rows, width, scale=1.0), picked))
    else:
        weights = b("Sin", b("Cast", ids, to=TensorProto.FLOAT))
        b.offer(b("Mul", weights, b.parameter(*[s if b.chance(0.7) else 1 for s in b.shape_of(weights)], scale=1.0)))
