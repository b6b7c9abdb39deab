"""1-bit Adam: steps before and behind its freeze as plain numpy does them in double, for 1 to 8 ranks and sizes that do not divide;
one result in all layouts of equal ranks; saved and resumed behind the freeze; bytes between ranks; what it refuses.

usage: onebit.py DSOPT
"""
import os
import re
import shutil
import sys
import tempfile

import numpy as np

import small
from runs import MPIRUN, check, execute, model, relative, train
from saved_weights import safetensors
from small import initializer, node, value

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="onebit-")
FREEZE, STEPS, ROWS = 5, 25, 8

# A model whose gradients are short to write: the mean of (tanh(x a + c) b - y)^2. Its sizes divide by nothing.
random = np.random.default_rng(11)
start = {"a": random.normal(0, 0.5, (7, 33)), "c": random.normal(0, 0.5, (33,)), "b": random.normal(0, 0.5, (33, 5))}
start = {key: array.astype(np.float32) for key, array in start.items()}
own = small.write(os.path.join(folder, "own.onnx"),
                  [node("MatMul", "x a", "xa"), node("Add", "xa c", "s"), node("Tanh", "s", "h"), node("MatMul", "h b", "hb"),
                   node("Sub", "hb y", "e"), node("Mul", "e e", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                  [value("x", (ROWS, 7)), value("y", (ROWS, 5))], [initializer(key, array) for key, array in start.items()])


def batches(ranks):
    rows = np.random.default_rng(ranks)
    return {"x": rows.normal(0, 1, (STEPS * ranks * ROWS, 7)).astype(np.float32), "y": rows.normal(0, 1, (STEPS * ranks * ROWS, 5)).astype(np.float32)}


def gradients(p, x, y):
    h = np.tanh(x @ p["a"] + p["c"])
    e = 2 * (h @ p["b"] - y) / y.size
    s = (e @ p["b"].T) * (1 - h * h)
    return {"a": x.T @ s, "c": s.sum(0), "b": h.T @ e}


def buckets(ranks):
    """(elements with padding, first element of each parameter): what is cut into a slice for each rank."""
    text = execute([dsopt, own, f"-dp={ranks}", "-micro-batches=1", "-emit=dist"]).stdout
    found = re.findall(r"dist\.bucket .*? : f32 of \[[^\]]*\] \[(.*?)\] elements \d+ padded (\d+)", text)
    return [(int(padded), {name: int(first) for name, first in re.findall(r"range<@(\w+), (\d+),", ranges)}) for ranges, padded in found]


def compress(c, part):
    """Signs by the root of the mean square of what takes part, and what they leave out."""
    scale = np.sqrt((c[part] ** 2).sum() / max(part.sum(), 1))
    signs = np.where(c < 0, -1.0, 1.0) * scale * part
    return signs, (c - signs) * part


def reference(data, ranks, lr, decay, beta1=0.9, beta2=0.999, eps=1e-8):
    """Tang et al. (2021), Algorithm 1, on each bucket; Adam with its bias corrected before the freeze."""
    p = {key: array.astype(np.float64) for key, array in start.items()}
    m, v = ({key: np.zeros(array.shape) for key, array in start.items()} for _ in range(2))
    places = buckets(ranks)
    worker = [np.zeros((ranks, padded)) for padded, _ in places]
    server = [np.zeros((ranks, padded // ranks)) for padded, _ in places]
    for step in range(STEPS):
        parts = []
        for rank in range(ranks):
            rows = slice((step * ranks + rank) * ROWS, (step * ranks + rank + 1) * ROWS)
            parts.append(gradients(p, data["x"][rows].astype(np.float64), data["y"][rows].astype(np.float64)))
        t = step + 1
        if step < FREEZE:
            for key in p:
                g = sum(part[key] for part in parts) / ranks
                m[key] = beta1 * m[key] + (1 - beta1) * g
                v[key] = beta2 * v[key] + (1 - beta2) * g * g
                p[key] = p[key] * (1 - lr * decay) - lr * (m[key] / (1 - beta1**t)) / (np.sqrt(v[key] / (1 - beta2**t)) + eps)
            if t == FREEZE:
                v = {key: one / (1 - beta2**t) for key, one in v.items()}
            continue
        for (padded, first), errors, own_errors in zip(places, worker, server):
            flat = lambda values: np.concatenate([np.zeros(0)] + [np.pad(values[key].ravel(), (0, end - begin - values[key].size))
                                                                 for key, begin, end in zip(first, first.values(), [*list(first.values())[1:], padded])])
            part = flat({key: v[key] for key in first}) > 0
            packed = np.zeros((ranks, padded))
            for rank in range(ranks):
                c = (beta1 * flat(m) + (1 - beta1) * flat(parts[rank]) + errors[rank]) * part
                for unit in np.split(np.arange(padded), ranks):
                    packed[rank, unit], errors[rank, unit] = compress(c[unit], part[unit])
            new = np.zeros(padded)
            for rank, unit in enumerate(np.split(np.arange(padded), ranks)):
                new[unit], own_errors[rank] = compress((packed[:, unit].mean(0) + own_errors[rank]) * part[unit], part[unit])
            for key, begin in first.items():
                m[key] = new[begin:begin + m[key].size].reshape(m[key].shape)
        for key in p:
            moved = np.where(v[key] > 0, m[key] / (np.sqrt(v[key]) + eps) + decay * p[key], 0)
            p[key] = p[key] - lr * moved
    return p


def run(ranks, data, *options, **keywords):
    return small.train(dsopt, own, data, "-optimizer=onebit-adam", f"-freeze-step={FREEZE}", f"-dp={ranks}", "-micro-batches=1", "-quiet", "-threads=1",
                       *options, **keywords)


for ranks in (1, 2, 3, 4, 8):
    data = batches(ranks)
    for lr, decay in ((1e-3, 0), (2e-3, 0.1)):
        if decay and ranks not in (2, 3):
            continue
        _, weights = run(ranks, data, f"-steps={STEPS}", f"-lr={lr}", f"-weight-decay={decay}")
        want = reference(data, ranks, lr, decay)
        apart = max(np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key])) for key in want)
        moved = min(np.max(np.abs(want[key] - start[key])) for key in want)
        check(apart < 1e-6 < moved, f"{ranks} ranks, lr {lr}, decay {decay}: {apart} off, moved by {moved}")
        print(f"{ranks} ranks: {FREEZE} steps and {STEPS - FREEZE} behind the freeze, {apart:.1e} of the largest weight off", flush=True)
