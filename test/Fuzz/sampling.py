"""Expansions of what reads images between their pixels; borders are PyTorch's."""
from __future__ import annotations

import itertools
import math

import numpy as np
from onnx import TensorProto

from expand import Arrays, Body, add_bias, expansion, given
from graph import Node


class Sampler:
    def __init__(self, body: Body, mode: str, padding: str, aligned: bool):
        self.body, self.padding, self.aligned = body, padding, aligned
        self.mode = mode.removeprefix("bi")

    def number(self, value: float) -> str:
        return self.body.constant(value, np.float64)

    def reflected(self, place: str, size: int) -> str:
        """The place in a row of images that are mirrored in turn."""
        body, (low, high) = self.body, (0.0, size - 1.0) if self.aligned else (-0.5, size - 0.5)
        if low == high:
            return body("Mul", place, self.number(0.0))
        away = body("Abs", body("Sub", place, self.number(low)))
        flips = body("Floor", body("Div", away, self.number(high - low)))
        rest = body("Sub", away, body("Mul", flips, self.number(high - low)))
        half = body("Floor", body("Mul", flips, self.number(0.5)))
        even = body("Equal", flips, body("Add", half, half))
        return body("Where", even, body("Add", rest, self.number(low)), body("Sub", self.number(high), rest))

    def taps(self, place: str, size: int) -> list[tuple[str, str]]:
        """Pixels along an axis, as integers within it, and their weights."""
        body, one = self.body, self.number(1.0)
        if self.mode != "cubic" and self.padding == "reflection":
            place = self.reflected(place, size)
        if self.mode != "cubic" and self.padding != "zeros":
            place = body("Clip", place, self.number(0.0), self.number(size - 1.0))
        if self.mode == "nearest":
            return [self.tap(body("Round", place), one, size)]
        before = body("Floor", place)
        t = body("Sub", place, before)
        if self.mode == "linear":
            weights = {0: body("Sub", one, t), 1: t}
        else:
            weights = {k: self.cubic(body("Abs", body("Sub", t, self.number(k))), k in (0, 1)) for k in (-1, 0, 1, 2)}
        return [self.tap(body("Add", before, self.number(k)), weight, size) for k, weight in weights.items()]

    def cubic(self, x: str, near: bool) -> str:
        """Keys's function with a slope of -0.75, as a polynomial of the distance."""
        y = self.number(1.25 if near else -0.75)
        for c in (-2.25, 0.0, 1.0) if near else (3.75, -6.0, 3.0):
            y = self.body("Add", self.body("Mul", y, x), self.number(c))
        return y

    def tap(self, index: str, weight: str, size: int) -> tuple[str, str]:
        body = self.body
        if self.mode == "cubic" and self.padding == "reflection":
            index = self.reflected(index, size)
        low, high = self.number(0.0), self.number(size - 1.0)
        if self.padding == "zeros":
            inside = body("And", body("GreaterOrEqual", index, low), body("LessOrEqual", index, high))
            weight = body("Where", inside, weight, self.number(0.0))
        return body("Cast", body("Clip", index, low, high), to=TensorProto.INT64), weight

    def sample(self, image: str, shape: tuple[int, ...], places: list[str], count: int) -> str:
        """[N, C, samples] of [N, C, sizes...] at places [N, samples] for each axis, in pixels."""
        body, (rows, channels, *sizes) = self.body, shape
        flat, total = body.reshape(image, rows, channels, -1), None
        for taps in itertools.product(*(self.taps(place, size) for place, size in zip(places, sizes))):
            index, weight = taps[0]
            for (other, factor), size in zip(taps[1:], sizes[1:]):
                index = body("Add", body("Mul", index, body.constant(size, np.int64)), other)
                weight = body("Mul", weight, factor)
            index = body("Expand", body("Unsqueeze", index, body.whole(1)), body.whole(rows, channels, count))
            value = body("GatherElements", flat, index, axis=2)
            value = body("Mul", value, body("Unsqueeze", body("Expand", weight, body.whole(rows, count)), body.whole(1)))
            total = value if total is None else body("Add", total, value)
        return total


def text(node: Node, name: str, otherwise: str) -> str:
    value = node.attributes.get(name, otherwise)
    return value.decode() if isinstance(value, bytes) else value


@expansion("GridSample")
def grid_sample(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, grid, aligned = arrays[0], arrays[1], bool(node.attributes.get("align_corners", 0))
    rank, count, places = x.ndim - 2, math.prod(arrays[1].shape[1:-1]), []
    for axis in range(rank):
        place = body("Gather", node.inputs[1], body.constant(rank - 1 - axis, np.int64), axis=rank + 1)
        size = x.shape[2 + axis]
        slope, begin = ((size - 1) / 2, (size - 1) / 2) if aligned else (size / 2, (size - 1) / 2)
        place = body("Add", body("Mul", place, body.constant(slope, np.float64)), body.constant(begin, np.float64))
        places.append(body.reshape(place, x.shape[0], count))
    sampler = Sampler(body, text(node, "mode", "linear"), text(node, "padding_mode", "zeros"), aligned)
    return [body.reshape(sampler.sample(node.inputs[0], x.shape, places, count), *x.shape[:2], *grid.shape[1:-1])]


@expansion("DeformConv")
def deform_conv(body: Body, node: Node, arrays: Arrays) -> list[str]:
    (x, w, offset), get = arrays[:3], node.attributes.get
    groups, image_groups = get("group", 1), get("offset_group", 1)
    strides, dilations, pads = get("strides") or [1, 1], get("dilations") or [1, 1], get("pads") or [0] * 4
    rows, channels, kernel, size = *x.shape[:2], w.shape[2:], offset.shape[2:]
    taps, count = math.prod(kernel), math.prod(size)
    images, each = rows * image_groups, channels // image_groups
    pairs, places = body.reshape(node.inputs[2], images, taps, 2, count), []
    for axis in range(2):
        tap = np.indices(kernel)[axis].reshape(-1, 1) * dilations[axis]
        start = tap + np.indices(size)[axis].reshape(1, -1) * strides[axis] - pads[axis]
        moved = body("Gather", pairs, body.constant(axis, np.int64), axis=2)
        places.append(body.reshape(body("Add", moved, body.constant(start)), images, taps * count))
    image = body.reshape(node.inputs[0], images, each, *x.shape[2:])
    y = Sampler(body, "linear", "zeros", True).sample(image, (images, each, *x.shape[2:]), places, taps * count)
    if given(node, 4):
        y = body("Mul", y, body.reshape(node.inputs[4], images, 1, taps * count))
    columns = body.reshape(y, rows, groups, channels // groups * taps, count)
    y = body("MatMul", body.reshape(node.inputs[1], groups, w.shape[0] // groups, -1), columns)
    return [add_bias(body, body.reshape(y, rows, w.shape[0], *size), given(node, 3), 4)]


@expansion("AffineGrid")
def affine_grid(body: Body, node: Node, arrays: Arrays) -> list[str]:
    sizes = [int(size) for size in arrays[1][2:]]
    aligned, rank = node.attributes.get("align_corners", 0), len(arrays[1]) - 2
    axes = [np.linspace(-1, 1, size) if aligned else (2 * np.arange(size) + 1) / size - 1 for size in sizes]
    pixels = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(sizes)], -1).reshape(-1, rank + 1)
    y = body("MatMul", body.constant(pixels, np.float64), body.permute(node.inputs[0], 0, 2, 1))
    return [body.reshape(y, arrays[0].shape[0], *sizes, rank)]
