"""A model whose gradients are short to write: the mean of (tanh(x a + c) b - y)^2. Its sizes divide by nothing. For tests that compare what
ranks exchange with plain numpy: with it what is exchanged as one.
"""
import re

import numpy as np

import small
from runs import execute
from small import initializer, node, value

#: Of a micro-batch.
ROWS = 8


def write(path, start):
    """`start` has a of 7 x 33, c of 33 and b of 33 x 5. Returns the path."""
    return small.write(path,
                       [node("MatMul", "x a", "xa"), node("Add", "xa c", "s"), node("Tanh", "s", "h"), node("MatMul", "h b", "hb"),
                        node("Sub", "hb y", "e"), node("Mul", "e e", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                       [value("x", (ROWS, 7)), value("y", (ROWS, 5))], [initializer(key, array) for key, array in start.items()])


def batches(steps, ranks, seed=None):
    rows = np.random.default_rng(ranks if seed is None else seed)
    return {"x": rows.normal(0, 1, (steps * ranks * ROWS, 7)).astype(np.float32), "y": rows.normal(0, 1, (steps * ranks * ROWS, 5)).astype(np.float32)}


def gradients(p, x, y):
    h = np.tanh(x @ p["a"] + p["c"])
    e = 2 * (h @ p["b"] - y) / y.size
    s = (e @ p["b"].T) * (1 - h * h)
    return {"a": x.T @ s, "c": s.sum(0), "b": h.T @ e}


def buckets(dsopt, path, ranks):
    """(elements with padding, first element of each parameter): what is cut into a slice for each rank."""
    text = execute([dsopt, path, f"-dp={ranks}", "-micro-batches=1", "-emit=dist"]).stdout
    found = re.findall(r"dist\.bucket .*? : f32 of \[[^\]]*\] \[(.*?)\] elements \d+ padded (\d+)", text)
    return [(int(padded), {name: int(first) for name, first in re.findall(r"range<@(\w+), (\d+),", ranges)}) for ranges, padded in found]


def compress(c, part):
    """Signs by the root of the mean square of what takes part, and what they leave out."""
    scale = np.sqrt((c[part] ** 2).sum() / max(part.sum(), 1))
    signs = np.where(c < 0, -1.0, 1.0) * scale * part
    return signs, (c - signs) * part
