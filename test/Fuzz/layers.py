"""Recipes for products, convolutions, pools, normalizations and recurrent layers."""
from __future__ import annotations

import math

import numpy as np

from builder import Builder
from recipes import axis_of, need, recipe


@recipe("MatMul")
def matmul(b: Builder, op: str) -> None:
    kind = b.choose("linear", "linear", "linear", "left", "batched", "vector", "two")
    if kind == "linear":
        x = b.real(accept=lambda shape: len(shape) >= 2)
        b.offer(linear(b, x, b.size()))
    elif kind == "left":
        x = b.real(accept=lambda shape: len(shape) >= 2)
        b.offer(b(op, b.parameter(b.size(), b.shape_of(x)[-2]), x))
    elif kind == "vector":
        x = b.real()
        w = b.parameter(b.shape_of(x)[-1], scale=0.5)
        b.offer(b(op, x, w) if b.chance(0.6) else b(op, b.parameter(b.size(), b.shape_of(x)[0], scale=0.5), x) if b.rank(x) == 1 else b(op, x, w))
    elif kind == "batched":
        x = b.real(accept=lambda shape: len(shape) >= 3)
        shape = b.shape_of(x)
        lead = [size if b.chance(0.6) else 1 for size in shape[:-2]][int(b.rng.integers(len(shape) - 1)):]
        y = b.parameter(*lead, shape[-1], b.size(most=9), scale=shape[-1] ** -0.5)
        b.offer(b(op, x, y))
    else:
        x = b.real(accept=lambda shape: len(shape) >= 2)
        found = [name for name in b.pool if b.rank(name) >= 2 and b.shape_of(name)[-1] == b.shape_of(x)[-1]
                 and b.shape_of(name)[:-2] == b.shape_of(x)[:-2]]
        other = b.choose(*found) if found else x
        perm = list(range(b.rank(other)))
        perm[-2:] = [perm[-1], perm[-2]]
        b.offer(b(op, x, b("Transpose", other, perm=perm)))


def linear(b: Builder, x: str, size: int, bias: bool | None = None) -> str:
    y = b("MatMul", x, b.parameter(b.shape_of(x)[-1], size))
    return b("Add", y, b.parameter(size, scale=0.5)) if (b.chance(0.6) if bias is None else bias) else y


@recipe("Gemm")
def gemm(b: Builder, op: str) -> None:
    x = b.real(rank=2)
    rows, inner = b.shape_of(x)
    size, flags = b.size(), {"transA": b.choose(0, 0, 1), "transB": b.choose(0, 1)}
    if flags["transA"]:
        rows, inner = inner, rows
    w = b.parameter(*((size, inner) if flags["transB"] else (inner, size)), scale=inner ** -0.5)
    if b.chance(0.3):
        flags.update(alpha=0.5, beta=1.5)
    bias = b.choose((), (size,), (1, size), (rows, 1), (rows, size), None)
    b.offer(b(op, x, w, *([] if bias is None else [b.parameter(*bias, scale=0.5)]), **flags))


@recipe("Einsum")
def einsum(b: Builder, op: str) -> None:
    x = b.real(rank=b.choose(2, 3, 4))
    letters = "abcdefg"[:b.rank(x)]
    shape = dict(zip(letters, b.shape_of(x)))
    shape["z"] = b.size(most=7)
    second = "".join(letter for letter in letters if b.chance(0.6)) + ("z" if b.chance(0.7) else "")
    need(bool(second), "scalar")
    second = "".join(second[k] for k in b.rng.permutation(len(second)))
    letters_left = [letter for letter in dict.fromkeys(letters + second) if b.chance(0.6)]
    result = "".join(letters_left[k] for k in b.rng.permutation(len(letters_left)))
    need(math.prod(shape[letter] for letter in result) <= b.limit, "size")
    summed = math.prod(size for letter, size in shape.items() if letter not in result and letter in letters + second)
    y = b.parameter(*[shape[letter] for letter in second], scale=summed ** -0.5)
    b.offer(b(op, x, y, equation=f"{letters},{second}->{result}"))


def image(b: Builder, ranks=(3, 4, 4, 4, 5), least: int = 1, most: int = 300) -> str:
    rank = b.choose(*ranks)
    return b.real(rank=rank, most=most, accept=lambda s: s[1] <= 12 and min(s[2:]) >= least and max(s[2:]) <= 9)


def window(b: Builder, x: str, most: int = 3, same_pads: bool = False) -> dict:
    """A kernel that fits somewhere into the padded image."""
    size = b.shape_of(x)[2:]
    kernel = [int(b.rng.integers(1, min(most, s + 1) + 1)) for s in size]
    attributes: dict = {"kernel_shape": kernel}
    pads = [int(b.rng.integers(0, k)) for k in kernel] * 2 if b.chance(0.5) else [0] * (2 * len(size))
    if not same_pads and b.chance(0.3):
        pads = [int(b.rng.integers(0, k)) for k in kernel * 2]
    if b.chance(0.4):
        attributes["strides"] = [b.choose(1, 2, 2, 3) for _ in size]
    if b.chance(0.2) and b.opset >= 19:
        attributes["dilations"] = [b.choose(1, 2) for _ in size]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, attributes.get("dilations", [1] * len(size)))]
    rank = len(size)
    need(all(s + pads[a] + pads[a + rank] >= reach[a] for a, s in enumerate(size)), "kernel")
    if any(pads):
        attributes["pads"] = pads
    return attributes


@recipe("Conv")
def conv(b: Builder, op: str) -> None:
    x = image(b)
    attributes = window(b, x)
    channels = b.shape_of(x)[1]
    group = b.choose(1, 1, *[g for g in range(2, channels + 1) if channels % g == 0])
    filters = group * b.size(most=4)
    kernel = attributes["kernel_shape"]
    if b.chance(0.15):
        attributes.pop("pads", None)
        attributes.pop("dilations", None)
        attributes["auto_pad"] = b.choose("SAME_UPPER", "SAME_LOWER", "VALID")
        need(attributes["auto_pad"] != "VALID" or all(k <= s for k, s in zip(kernel, b.shape_of(x)[2:])), "kernel")
    scale = (channels // group * math.prod(kernel)) ** -0.5
    inputs = [x, b.parameter(filters, channels // group, *kernel, scale=scale)]
    b.offer(b(op, *inputs, *([b.parameter(filters, scale=0.5)] if b.chance(0.6) else []), group=group, **attributes))


@recipe("ConvTranspose")
def conv_transpose(b: Builder, op: str) -> None:
    x = image(b, ranks=(3, 4, 4), most=120)
    shape = b.shape_of(x)
    kernel = [b.choose(1, 2, 3) for _ in shape[2:]]
    strides = [b.choose(1, 2) for _ in kernel]
    attributes = {"kernel_shape": kernel, "strides": strides}
    if b.chance(0.4):
        pads = [int(b.rng.integers(0, k)) for k in kernel] * 2
        need(all(s * (n - 1) + k - 2 * p >= 1 for s, n, k, p in zip(strides, shape[2:], kernel, pads)), "pads")
        attributes["pads"] = pads
    if b.chance(0.3):
        attributes["output_padding"] = [int(b.rng.integers(0, s)) for s in strides]
    group = b.choose(1, *[g for g in range(2, shape[1] + 1) if shape[1] % g == 0])
    filters = b.size(most=3)
    w = b.parameter(shape[1], filters, *kernel, scale=(shape[1] / group * math.prod(kernel)) ** -0.5)
    bias = [b.parameter(filters * group, scale=0.5)] if b.chance(0.6) else []
    y = b(op, x, w, *bias, group=group, **attributes)
    need(b.value(y).size <= 2 * b.limit, "size")
    b.offer(y)


@recipe("AveragePool", "MaxPool", "LpPool")
def pool(b: Builder, op: str) -> None:
    x = image(b)
    x = b.apart(x) if op == "MaxPool" else b.positive(x) if op == "LpPool" else x
    attributes = window(b, x)
    if op == "AveragePool":
        attributes["count_include_pad"] = b.choose(0, 1)
    if op == "LpPool":
        attributes["p"] = b.choose(1, 2)
        need(b.opset >= 18 or "dilations" not in attributes, "opset")
    elif b.chance(0.2):
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and b.opset < 19:
        attributes.pop("dilations", None)
    b.offer(b(op, x, **attributes))


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(b: Builder, op: str) -> None:
    x = image(b)
    if op == "GlobalLpPool":
        b.offer(b(op, b.positive(x), p=b.choose(1, 2, 2, 3)))
        return
    b.offer(b(op, b.apart(x) if op == "GlobalMaxPool" else x))


@recipe("MaxUnpool")
def unpool(b: Builder, op: str) -> None:
    """Back to where the largest of windows that do not overlap have been."""
    x = b.apart(image(b))
    size = b.shape_of(x)[2:]
    kernel = [b.choose(1, 2, 3) if length > 2 else 1 for length in size]
    need(all(length >= k for length, k in zip(size, kernel)), "kernel")
    attributes = {"kernel_shape": kernel, "strides": kernel}
    if any(length % k for length, k in zip(size, kernel)):
        # Places count the whole image's elements, which have to be the result's.
        x = b("Slice", x, b.whole(*[0] * len(size)), b.whole(*[length - length % k for length, k in zip(size, kernel)]), b.whole(*range(2, 2 + len(size))))
    y, places = b("MaxPool", x, outputs=2, **attributes)
    y = b("Sin", y) if b.chance(0.5) else b("Mul", y, b.parameter(*[s if b.chance(0.5) else 1 for s in b.shape_of(y)], scale=1.0))
    larger = [b.whole(*b.shape_of(x)[:2], *[length + b.choose(0, 1) for length in b.shape_of(x)[2:]])] if b.chance(0.4) else []
    y = b(op, y, places, *larger, **attributes)
    b.offer(b("Add", y, x) if not larger and b.chance(0.4) else y)


@recipe("Det")
def determinant(b: Builder, op: str) -> None:
    size, batch = b.choose(1, 2, 2, 3, 3, 4), b.shape(b.choose(0, 1, 2), 20)
    x = linear(b, b.input(*batch, size, b.size(most=5)), size, False)
    b.offer(b(op, b("Add", b.bounded(x, 1.0), b.constant(1.5 * np.eye(size)))))


def affine(b: Builder, *shape: int) -> list[str]:
    return [b.parameter(*shape, scale=0.3, shift=1.0), b.parameter(*shape, scale=0.3)]


@recipe("LayerNormalization", "RMSNormalization")
def layer_normalization(b: Builder, op: str) -> None:
    x = b.real(least=2)
    axis = axis_of(b, b.rank(x))
    shape = b.shape_of(x)[axis:]
    need(math.prod(shape) > 2, "variance")
    weights = affine(b, *shape)
    b.offer(b(op, x, *weights[:b.choose(1, 2) if op == "LayerNormalization" else 1], axis=axis, epsilon=1e-3))


@recipe("MeanVarianceNormalization")
def mean_variance(b: Builder, op: str) -> None:
    x = b.apart(b.real(rank=4))
    axes = [a % 4 for a in b.axes(4)]
    need(math.prod(b.shape_of(x)[a] for a in axes) > 3, "variance")
    b.offer(b(op, x, axes=sorted(axes)))


@recipe("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN")
def channel_normalization(b: Builder, op: str) -> None:
    x = b.real(accept=lambda s: 3 <= len(s) <= 4 and 2 <= math.prod(s[2:]) <= 60 and s[1] <= 12)
    channels = b.shape_of(x)[1]
    if op == "LRN":
        b.offer(b(op, x, size=b.choose(1, 3, 5), alpha=0.3, beta=0.75, bias=1.2))
        return
    if op == "BatchNormalization":
        make = b.choose(b.constant, b.statistic)
        statistics = [make(b.rng.normal(size=channels) * 0.3), make(b.rng.uniform(0.5, 2, channels))]
        if make == b.statistic and b.chance(0.6) and b.value(x).size // channels > 2:
            y, _, _ = b(op, x, *affine(b, channels), *statistics, outputs=3, epsilon=1e-2, training_mode=1, momentum=b.choose(0.9, 0.5))
        else:
            y = b(op, x, *affine(b, channels), *statistics, epsilon=1e-3)
        b.offer(y)
        return
    groups = b.choose(*[g for g in range(1, channels + 1) if channels % g == 0])
    need(b.value(x)[0].size // (channels if op == "InstanceNormalization" else groups) > 2, "variance")
    b.offer(b(op, x, *affine(b, channels), epsilon=1e-3, **({"num_groups": groups} if op == "GroupNormalization" else {})))


@recipe("LSTM", "GRU", "RNN")
def recurrent(b: Builder, op: str) -> None:
    x = b.real(rank=3, most=150, accept=lambda s: s[0] <= 6 and s[2] <= 11)
    _, rows, size = b.shape_of(x)
    hidden, gates = b.size(most=5), {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    mode = b.choose("forward", "reverse", "bidirectional")
    count = 2 if mode == "bidirectional" else 1
    weights = [b.parameter(count, gates * hidden, size, scale=size ** -0.5),
               b.parameter(count, gates * hidden, hidden, scale=hidden ** -0.5)]
    attributes = {"hidden_size": hidden, "direction": mode}
    if b.chance(0.7):
        weights.append(b.parameter(count, 2 * gates * hidden, scale=0.3))
        if b.chance(0.4):
            weights += ["", b.parameter(count, rows, hidden, scale=0.5)]
            if op == "LSTM" and b.chance(0.7):
                weights.append(b.parameter(count, rows, hidden, scale=0.5))
    if op == "GRU":
        attributes["linear_before_reset"] = b.choose(0, 1)
    y, last, *more = b(op, x, *weights, outputs=3 if op == "LSTM" else 2, **attributes)
    kept = b.choose([y], [last], [y, last, *more])
    b.offer(*[b("Squeeze", name, b.whole(1)) if name == y and count == 1 and b.chance(0.6) else name for name in kept])


@recipe("Attention")
def attention(b: Builder, op: str) -> None:
    rows, heads, size = b.choose(1, 2, 3), b.choose(1, 2, 4), b.choose(1, 2, 4, 5, 8)
    queries, keys = b.size(most=9), b.size(most=9)
    shared = b.choose(1, heads) if heads > 1 else 1
    attributes: dict = {}
    if b.chance(0.3):
        keys = queries
        attributes["is_causal"] = 1
    if b.chance(0.2):
        attributes["softcap"] = 1.5
    if b.chance(0.2):
        attributes["scale"] = 0.4
    x = b.input(rows, queries, heads * size)
    source = x if queries == keys and b.chance(0.7) else b.input(rows, keys, heads * size)
    q = linear(b, x, heads * size)
    k, v = linear(b, source, shared * size), linear(b, source, shared * size)
    if b.chance(0.5):
        attributes.update(q_num_heads=heads, kv_num_heads=shared)
    else:
        q, k, v = (b("Transpose", b.reshape(name, rows, length, count, size), perm=[0, 2, 1, 3])
                   for name, length, count in ((q, queries, heads), (k, keys, shared), (v, keys, shared)))
    mask = []
    if b.chance(0.4):
        shape = [rows if b.chance(0.5) else 1, heads if b.chance(0.5) else 1, queries, keys][b.choose(0, 2):]
        if b.chance(0.5):
            # A query sees one key at least.
            flags = b.input(*shape, kind="mask", dtype="bool")
            mask = [b("Or", flags, b.constant(np.arange(keys) == 0, np.bool_))]
        else:
            mask = [b.input(*shape) if b.chance(0.7) else b.parameter(*shape, scale=1.0)]
    b.offer(b(op, q, k, v, *mask, **attributes))


@recipe("RotaryEmbedding")
def rotary(b: Builder, op: str) -> None:
    rows, heads, length, size = b.choose(1, 2), b.choose(1, 3), b.size(most=7), b.choose(2, 4, 6)
    x = b.real(rank=4, accept=lambda s: s == (rows, heads, length, size))
    angles = b.rng.uniform(0, 3, (length, size // 2))
    attributes = {"interleaved": b.choose(0, 1)}
    if b.chance(0.5):
        ids = b.input(rows, length, kind="ids", bound=length, dtype="int64")
        b.offer(b(op, x, b.constant(np.cos(angles)), b.constant(np.sin(angles)), ids, **attributes))
    else:
        cos, sin = (b.constant(np.broadcast_to(f(angles), (rows, *angles.shape))) for f in (np.cos, np.sin))
        b.offer(b(op, x, cos, sin, **attributes))
