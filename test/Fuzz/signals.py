"""Expansions of transforms of signals, of what puts windows together again, and of products along an axis."""
from __future__ import annotations

import math

import numpy as np

from expand import Arrays, Body, Windows, expansion, given
from graph import Node


def spectrum(points: int, results: int, parts: int, inverse: bool = False, real: bool = False) -> np.ndarray:
    """A transform as a matrix from pairs (or reals, where there is one part) to pairs, or to reals."""
    units = np.eye(points * parts).reshape(-1, points, parts)
    signal = units[..., 0] + (1j * units[..., 1] if parts == 2 else 0)
    if real:
        return np.fft.irfft(signal, n=results, axis=1)
    made = (np.fft.ifft if inverse else np.fft.fft)(signal, axis=1)[:, :results]
    return np.stack([made.real, made.imag], -1).reshape(points * parts, -1)


def resized(body: Body, x: str, shape: list[int], axis: int, size: int) -> str:
    """With as many elements along an axis: what is too much goes, zeros come."""
    if shape[axis] > size:
        return body("Slice", x, body.whole(0), body.whole(size), body.whole(axis))
    pads = [0] * (2 * len(shape))
    pads[len(shape) + axis] = size - shape[axis]
    return body("Pad", x, body.whole(*pads)) if shape[axis] < size else x


@expansion("DFT")
def dft(body: Body, node: Node, arrays: Arrays) -> list[str]:
    get, x = node.attributes.get, arrays[0]
    axis = get("axis", 1) if body.opset < 20 else int(arrays[2]) if given(node, 2) else -2
    axis, parts = axis % x.ndim, x.shape[-1]
    inverse, one_sided = get("inverse", 0), get("onesided", 0)
    points = int(arrays[1]) if given(node, 1) else 2 * (x.shape[axis] - 1) if inverse and one_sided else x.shape[axis]
    real = bool(inverse and one_sided)
    read = points // 2 + 1 if real else points
    order = [a for a in range(x.ndim - 1) if a != axis] + [axis, x.ndim - 1]
    y = body.permute(resized(body, node.inputs[0], list(x.shape), axis, read), *order)
    results = points // 2 + 1 if one_sided and not inverse else points
    matrix = spectrum(read, results, parts, inverse, real)
    y = body("MatMul", body.reshape(y, -1, read * parts), body.constant(matrix, np.float64))
    lead = [x.shape[a] for a in order[:-2]]
    return [body.permute(body.reshape(y, *lead, results, 1 if real else 2), *np.argsort(order))]


@expansion("STFT")
def stft(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, step = arrays[0], int(arrays[1])
    batch, length, parts = *x.shape[:2], x.shape[2] if x.ndim == 3 else 1
    size = int(arrays[3]) if given(node, 3) else len(arrays[2]) if given(node, 2) else length
    count = (length - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    frames = body("Gather", body.reshape(node.inputs[0], batch, length, parts), body.constant(places, np.int64), axis=1)
    if given(node, 2):
        frames = body("Mul", frames, body.reshape(node.inputs[2], size, 1))
    results = size // 2 + 1 if node.attributes.get("onesided", 1) and parts == 1 else size
    y = body("MatMul", body.reshape(frames, batch * count, size * parts), body.constant(spectrum(size, results, parts), np.float64))
    return [body.reshape(y, batch, count, results, 2)]


@expansion("Col2Im")
def col2im(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, size, kernel = arrays[0], tuple(map(int, arrays[1])), tuple(map(int, arrays[2]))
    windows, inner = Windows(node, size, kernel), math.prod(kernel)
    target = windows.index.T[..., None] == np.arange(math.prod(size))
    rows = body.reshape(node.inputs[0], x.shape[0], x.shape[1] // inner, -1)
    y = body("MatMul", rows, body.constant(target.reshape(-1, math.prod(size))))
    return [body.reshape(y, x.shape[0], x.shape[1] // inner, *size)]


@expansion("MaxUnpool")
def max_unpool(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, get = arrays[0], node.attributes.get
    kernel, rank = get("kernel_shape"), x.ndim - 2
    strides, pads = get("strides") or [1] * rank, get("pads") or [0] * (2 * rank)
    shape = [*x.shape[:2], *((x.shape[2 + a] - 1) * strides[a] - pads[a] - pads[a + rank] + kernel[a] for a in range(rank))]
    zeros = body.constant(np.zeros(math.prod(shape)))
    y = body("ScatterElements", zeros, body.reshape(node.inputs[1], -1), body.reshape(node.inputs[0], -1), axis=0)
    y = body.reshape(y, *shape)
    if given(node, 2):
        y = body("Pad", y, body.whole(*[0] * x.ndim, *[int(size) - own for size, own in zip(arrays[2], shape)]))
    return [y]


@expansion("GlobalLpPool")
def global_lp_pool(body: Body, node: Node, arrays: Arrays) -> list[str]:
    p, axes = node.attributes.get("p", 2), range(2, arrays[0].ndim)
    if p in (1, 2):
        return [body.reduce(f"ReduceL{p}", node.inputs[0], axes)]
    powers = body("Pow", body("Abs", node.inputs[0]), body.constant(float(p)))
    return [body("Pow", body.reduce("ReduceSum", powers, axes), body.constant(1 / p, np.float64))]


@expansion("CumProd")
def cumprod(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, get = arrays[0], node.attributes.get
    axis = int(arrays[1]) % x.ndim
    parts = [body("Gather", node.inputs[0], body.whole(k), axis=axis) for k in range(x.shape[axis])]
    ones = body.constant(np.ones([1 if a == axis else size for a, size in enumerate(x.shape)]))
    total, results = ones, []
    for part in parts[::-1] if get("reverse", 0) else parts:
        before, total = total, body("Mul", total, part)
        results.append(before if get("exclusive", 0) else total)
    return [body("Concat", *(results[::-1] if get("reverse", 0) else results), axis=axis)]
