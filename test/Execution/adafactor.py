"""Adafactor: 20 steps as plain numpy does them in double, by factors of shapes of any rank, one result in all layouts,
resumed in another; what it does not take.

usage: adafactor.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np

import small
from optimizer_layouts import LaidOut, layouts
from runs import check, execute, model, train
from saved_weights import safetensors
from small import initializer, node, value

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="adafactor-")
STEPS, ROWS = 20, 8
LEAST = float(np.finfo(np.float32).eps)


def rms(x):
    return np.sqrt((x * x).mean())


def adafactor(p, g, state, t, lr, decay):
    """torch.optim.Adafactor, eps=(None, 1e-3), d=1, beta2_decay=-0.8."""
    takes, length = t**-0.8, max(1e-3, rms(p)) * min(lr, t**-0.5)

    def moved(name, mean):
        return state.setdefault(name, 0 * mean) * (1 - takes) + takes * mean

    if p.ndim < 2:
        variance = state["variance"] = moved("variance", g * g)
    else:
        rows = state["row_var"] = moved("row_var", (g * g).mean(-1, keepdims=True))
        columns = state["col_var"] = moved("col_var", (g * g).mean(-2, keepdims=True))
        variance = rows * columns / np.maximum(rows.mean(-2, keepdims=True), LEAST)
    update = g / np.sqrt(np.maximum(variance, LEAST**2))
    return p * (1 - lr * decay) - length * update / max(1, rms(update))


# It is the same of a transposed matrix.
random = np.random.default_rng(11)
one, other, states = (p := random.normal(0, 1, (5, 3))), p.T, ({}, {})
for t in range(1, 6):
    g = random.normal(0, 1, (5, 3))
    one, other = adafactor(one, g, states[0], t, 0.1, 0.1), adafactor(other, g.T, states[1], t, 0.1, 0.1)
check(np.abs(one - other.T).max() < 1e-14, "a transposed matrix is updated otherwise")

# The mean of (tanh(tanh(x a + c) w^T) b - y)^2 and of (tanh(s sum(u k) + sum(v l)) - z)^2: `k` and `l` are batches of
# matrices, `s` is a number, `n` is that small that its steps have the least length.
start = {"a": random.normal(0, 0.5, (7, 13)), "c": random.normal(0, 0.5, (13,)), "w": random.normal(0, 0.5, (6, 13)), "b": random.normal(0, 0.5, (6, 5)),
         "k": random.normal(0, 0.1, (2, 3, 4)), "l": random.normal(0, 0.1, (2, 2, 5, 3)), "s": np.array(0.7), "n": random.normal(0, 1e-5, (5,))}
start = {key: array.astype(np.float32) for key, array in start.items()}
shapes = {"x": (7,), "y": (5,), "u": (2, 3, 4), "v": (2, 2, 5, 3), "z": ()}
data = {key: random.normal(0, 1, (STEPS * ROWS, *shape)).astype(np.float32) for key, shape in shapes.items()}
own = small.write(os.path.join(folder, "own.onnx"),
                  [node("MatMul", "x a", "xa"), node("Add", "xa c", "i"), node("Tanh", "i", "h"), node("Gemm", "h w", "hw", transB=1), node("Tanh", "hw", "o"),
                   node("MatMul", "o b", "ob"), node("Add", "ob n", "obn"), node("Sub", "obn y", "e"), node("Mul", "e e", "q"), node("ReduceMean", "q", "first", keepdims=0),
                   node("Mul", "u k", "uk"), node("ReduceSum", "uk axes3", "suk", keepdims=0), node("Mul", "suk s", "ssuk"),
                   node("Mul", "v l", "vl"), node("ReduceSum", "vl axes4", "svl", keepdims=0), node("Add", "ssuk svl", "j"), node("Tanh", "j", "m"),
                   node("Sub", "m z", "d"), node("Mul", "d d", "dd"), node("ReduceMean", "dd", "second", keepdims=0), node("Add", "first second", "loss")],
                  [value(key, (ROWS, *shape)) for key, shape in shapes.items()],
                  [*(initializer(key, array) for key, array in start.items()), initializer("axes3", np.array([1, 2, 3])), initializer("axes4", np.array([1, 2, 3, 4]))])


def gradients(p, x, y, u, v, z):
    h = np.tanh(x @ p["a"] + p["c"])
    o = np.tanh(h @ p["w"].T)
    e = 2 * (o @ p["b"] + p["n"] - y) / y.size
    r = (e @ p["b"].T) * (1 - o * o)
    i = (r @ p["w"]) * (1 - h * h)
    suk = (u * p["k"]).sum((1, 2, 3))
    m = np.tanh(p["s"] * suk + (v * p["l"]).sum((1, 2, 3, 4)))
    d = 2 * (m - z) / z.size * (1 - m * m)
    return {"a": x.T @ i, "c": i.sum(0), "w": r.T @ h, "b": o.T @ e, "n": e.sum(0), "k": np.einsum("r,rbij->bij", d * p["s"], u),
            "l": np.einsum("r,rcbij->cbij", d, v), "s": (d * suk).sum()}


def reference(lr=0.01, decay=0, clip=0):
    p, states = {key: array.astype(np.float64) for key, array in start.items()}, {key: {} for key in start}
    for step in range(STEPS):
        rows = slice(step * ROWS, (step + 1) * ROWS)
        g = gradients(p, *(data[key][rows].astype(np.float64) for key in shapes))
        whole = np.concatenate([np.ravel(one) for one in g.values()])
        factor = min(1, clip / (np.sqrt((whole * whole).sum()) + 1e-6)) if clip else 1
        p = {key: adafactor(p[key], g[key] * factor, states[key], step + 1, lr, decay) for key in p}
    return p


worst = 0
for words, given in (([], {}), (["-lr=0.5", "-weight-decay=0.1"], {"lr": 0.5, "decay": 0.1}), (["-grad-clip=1e-4"], {"clip": 1e-4})):
    _, weights = small.train(dsopt, own, data, "-optimizer=adafactor", "-micro-batches=1", f"-steps={STEPS}", "-quiet", *words)
    want = reference(**given)
    for key in want:
        moved = np.max(np.abs(want[key] - start[key]))
        apart = np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key]))
        worst = max(worst, apart)
        check(apart < 1e-5 < moved, f"adafactor {words}: {key} is {apart} off, moved by {moved}")
print(f"adafactor: {STEPS} steps, at most {worst:.1e} of the largest weight off", flush=True)

LAYOUTS = layouts(folder, "-reduce-bucket-size=2000")
laid_out = LaidOut(dsopt, "-optimizer=adafactor", "-weight-decay=0.1")
hashes = laid_out.check(LAYOUTS, "-lr-scale=*bias*=0.5")

# What is kept of whole parameters is saved once, by a rank that has it.
for layout in (LAYOUTS[3], LAYOUTS[-1]):
    path = os.path.join(folder, "saved" + layout[0])
    laid_out(layout, "-steps=2", "-accumulate=local", f"-save={path}")
    saved = os.path.join(path, "step-00000002")
    states = {}
    for file in os.listdir(saved):
        if file.startswith("optimizer"):
            states.update(safetensors(os.path.join(saved, file)))
    check({key.rsplit(".", 1)[1] for key in states} == {"row_var", "col_var", "variance"}, f"saves {sorted(states)}")
    for key, array in states.items():
        extents = {"row_var": array.shape[-1:], "col_var": array.shape[-2:-1], "variance": ()}[key.rsplit(".", 1)[1]]
        check(all(extent == 1 for extent in extents) and np.all(array >= 0) and np.any(array > 0), f"{key}: {array.shape}")
    for other in (LAYOUTS[0], LAYOUTS[4], LAYOUTS[6], LAYOUTS[9]):
        resumed = laid_out(other, "-steps=4", "-accumulate=local", f"-resume={saved}")
        check(resumed.hash == hashes[("-accumulate=local",)][tuple(LAYOUTS[0])][0], f"from {layout} resumed as {other}: {resumed.hash}")
said = execute([dsopt, model("gpt2-tiny")[0], "-run", f"-data={model('gpt2-tiny')[1]}", "-micro-batches=4", "-reduction-shards=4", "-accumulate=local", f"-resume={saved}", "-steps=4"], status=1).stderr
check("was written with -optimizer=adafactor; the program has adamw" in said, said)
print(f"adafactor: {sum(map(len, hashes.values()))} layouts of {len(hashes)} computations, one hash each; resumed in others", flush=True)

# Convolutions have a matrix for each pair of channels; shared parameters and the shapes of others.
for name in ("resnet-tiny", "bert-tiny"):
    found = {tuple(layout): train(dsopt, name, "-optimizer=adafactor", *layout, "-reduction-shards=2", "-steps=2", "-accumulate=local").hash
             for layout in (["-micro-batches=2"], ["-dp=2", "-zero=3", "-micro-batches=1"], ["-pp=2", "-micro-batches=2"])}
    check(len(set(found.values())) == 1, f"{name}: {found}")

for options, message in ((["-betas=0.9,0.99"], "option -betas has no meaning with -optimizer=adafactor"), (["-eps=1e-8"], "option -eps has no meaning with -optimizer=adafactor"),
                         (["-momentum=0.9"], "option -momentum has no meaning with -optimizer=adafactor"), (["-adam-lr=0.1"], "option -adam-lr has no meaning with -optimizer=adafactor"),
                         (["-delayed-update=2"], "-optimizer=adafactor sees whole parameters: expected no -delayed-update"),
                         (["-precision=fp16", "-gradient-type=param"], "-optimizer=adafactor works in the gradients' place: expected -gradient-type=fp32, got param")):
    said = small.train(dsopt, own, data, "-micro-batches=1", "-optimizer=adafactor", *options, status=1)
    check(message in said, f"{options}: {said}")
print("passed")
