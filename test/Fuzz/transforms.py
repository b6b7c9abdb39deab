"""Recipes for transforms of signals, and for images that are read between their pixels."""
from __future__ import annotations

import math

import numpy as np

from builder import Builder
from recipes import need, recipe


@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def window(b: Builder, op: str) -> None:
    x = b.real()
    b.offer(b("Mul", x, b(op, b.constant(b.shape_of(x)[-1], np.int64), periodic=b.choose(0, 1) if b.shape_of(x)[-1] > 1 else 1)))


@recipe("MelWeightMatrix")
def mel(b: Builder, op: str) -> None:
    points = b.choose(8, 16, 30)
    x = b.input(b.batch, points // 2 + 1) if b.chance(0.5) else b.parameter(b.batch, points // 2 + 1, scale=1.0)
    numbers = [b.constant(value, np.int64) for value in (b.size(2, 6), points, b.choose(8000, 16000))]
    b.offer(b("MatMul", x, b(op, *numbers, b.known(b.choose(0.0, 100.0)), b.known(b.choose(3000.0, 4000.0)))))


@recipe("DFT")
def dft(b: Builder, op: str) -> None:
    parts = b.choose(1, 1, 2)
    x = b.real(most=150, accept=lambda shape: 2 <= len(shape) <= 3)
    if parts == 2:
        x = b("Concat", *[b("Unsqueeze", name, b.whole(b.rank(x))) for name in (x, b("Sin", x))], axis=b.rank(x))
    else:
        x = b("Unsqueeze", x, b.whole(b.rank(x)))
    rank, attributes, inputs = b.rank(x), {"inverse": b.choose(0, 1)}, [x]
    axis = int(b.rng.integers(rank - 1))
    size = b.shape_of(x)[axis]
    if attributes["inverse"] == parts - 1 and b.chance(0.5) and (parts == 1 or b.opset >= 20):
        attributes["onesided"] = 1
    asked = b.chance(0.4) or (attributes.get("onesided") and parts == 2 and size < 2)
    if asked:
        inputs.append(b.constant(max(1, size + int(b.rng.integers(-2, 4))), np.int64))
    axis = axis - rank if b.chance(0.4) else axis
    if b.opset < 20:
        attributes["axis"] = axis
    elif axis != -2 or b.chance(0.5):
        inputs += [""] * (2 - len(inputs)) + [b.constant(axis, np.int64)]
    y = b(op, *inputs, **attributes)
    b.offer(b.reduce("ReduceSumSquare", y, [-1], 0) if b.chance(0.3) else y)


@recipe("STFT")
def stft(b: Builder, op: str) -> None:
    rows, length = b.choose(1, 2, 3), b.size(5, 17)
    size, step = int(b.rng.integers(2, length + 1)), b.choose(1, 2, 3, 5)
    need(rows * size * ((length - size) // step + 1) <= 200, "size")
    parts = b.choose((), (1,), (2,))
    x = b.input(rows, length, *parts) if b.chance(0.5) else b.parameter(rows, length, *parts, scale=1.0)
    kind = b.choose("none", "trained", "hann", "known")
    taper = {"none": lambda: "", "trained": lambda: b.parameter(size, scale=0.3, shift=1.0), "known": lambda: b.constant(b.rng.uniform(0.5, 1, size)),
             "hann": lambda: b("HannWindow", b.constant(size, np.int64))}[kind]()
    inputs = [x, b.constant(step, np.int64), taper] + ([b.constant(size, np.int64)] if not taper or b.chance(0.4) else [])
    y = b(op, *inputs, **({"onesided": 0} if parts == (2,) else {"onesided": b.choose(0, 1)} if b.chance(0.5) else {}))
    b.offer(b.reduce("ReduceSumSquare", y, [-1], 0) if b.chance(0.5) else y)


@recipe("Col2Im")
def col2im(b: Builder, op: str) -> None:
    rank = b.choose(1, 2, 2, 3)
    size = [b.size(most=6) for _ in range(rank)]
    kernel = [int(b.rng.integers(1, min(3, s) + 1)) for s in size]
    strides, pads = [b.choose(1, 1, 2) for _ in size], [int(b.rng.integers(0, k)) for k in kernel] * 2
    counts = [(s + 2 * p - k) // step + 1 for s, p, k, step in zip(size, pads, kernel, strides)]
    shape = (b.choose(1, 2), b.choose(1, 2, 3) * math.prod(kernel), math.prod(counts))
    need(math.prod(shape) <= b.limit, "size")
    x = b.input(*shape) if b.chance(0.5) else b.parameter(*shape, scale=1.0)
    b.offer(b(op, x, b.whole(*size), b.whole(*kernel), strides=strides, pads=pads))


@recipe("AffineGrid", "GridSample")
def grid_sample(b: Builder, op: str) -> None:
    rank = b.choose(2, 2, 2, 1, 3) if b.opset >= 20 else 2
    x = b.real(rank=rank + 2, most=60, accept=lambda shape: shape[0] <= 3 and shape[1] <= 3 and max(shape[2:]) <= 6)
    rows, aligned = b.shape_of(x)[0], b.choose(0, 1)
    if (op == "AffineGrid" or b.chance(0.3)) and rank > 1 and b.opset >= 20:
        sizes = [b.size(2, 4) for _ in range(rank)]
        theta = b("Add", b.parameter(rows, rank, rank + 1, scale=0.3), b.constant(0.83 * np.eye(rank, rank + 1)))
        grid = b("AffineGrid", theta, b.whole(rows, 1, *sizes), align_corners=aligned)
        if op == "AffineGrid" and b.chance(0.4):
            b.offer(grid)
            return
    else:
        shape = (rows, *[b.size(most=4) for _ in range(rank)], rank)
        grid = b("Mul", b.input(*shape), b.constant(0.7)) if b.chance(0.5) else b.parameter(*shape, scale=0.7)
    need(b.value(grid).size <= 150, "size")
    mode = b.choose("linear", "linear", "nearest", "cubic") if rank == 2 else b.choose("linear", "nearest")
    if b.opset < 20 and mode != "nearest":
        mode = "bi" + mode
    padding = b.choose("zeros", "border", "reflection")
    b.offer(b("GridSample", x, grid, mode=mode, padding_mode=padding, align_corners=aligned))


@recipe("DeformConv")
def deform_conv(b: Builder, op: str) -> None:
    rows, groups, image_groups = b.choose(1, 2), b.choose(1, 2), b.choose(1, 2)
    channels, filters = math.lcm(groups, image_groups) * b.choose(1, 2), groups * b.choose(1, 2)
    size = (b.size(3, 5), b.size(3, 5))
    kernel = (b.choose(1, 2, 3), b.choose(1, 2))
    attributes = {"kernel_shape": list(kernel), "strides": [b.choose(1, 2), b.choose(1, 2)], "dilations": [b.choose(1, 1, 2), 1],
                  "pads": [b.choose(0, 1) for _ in range(4)], "group": groups, "offset_group": image_groups}
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, attributes["dilations"])]
    room = [s + attributes["pads"][a] + attributes["pads"][a + 2] - reach[a] for a, s in enumerate(size)]
    need(min(room) >= 0, "kernel")
    out = [r // s + 1 for r, s in zip(room, attributes["strides"])]
    taps = math.prod(kernel) * image_groups
    need(rows * taps * math.prod(out) * 2 <= 200, "size")
    x = b.real(rank=4, accept=lambda shape: shape == (rows, channels, *size)) if b.chance(0.3) else b.input(rows, channels, *size)
    make = b.choose(lambda *shape: b.parameter(*shape, scale=0.6), lambda *shape: b("Mul", b.input(*shape), b.constant(0.6)))
    inputs = [x, b.parameter(filters, channels // groups, *kernel, scale=(channels // groups * math.prod(kernel)) ** -0.5), make(rows, 2 * taps, *out)]
    if b.chance(0.5):
        inputs.append(b.parameter(filters, scale=0.5) if b.chance(0.5) else "")
        inputs.append(b("Sigmoid", make(rows, taps, *out)))
    b.offer(b(op, *inputs, **attributes))
