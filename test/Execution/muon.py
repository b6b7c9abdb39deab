"""Muon: 20 steps as plain numpy does them in double, AdamW for what is no hidden matrix, one result in all layouts,
resumed in another; what it does not take.

usage: muon.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np

import small
from optimizer_layouts import LaidOut, layouts
from runs import check, execute, model
from saved_weights import safetensors
from small import initializer, node, value

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="muon-")
STEPS, ROWS = 20, 8


def newton_schulz(u):
    """PyTorch's, without its bfloat16."""
    x = u.T if u.shape[0] > u.shape[1] else u
    x = x / max(np.sqrt((x * x).sum()), 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    return x.T if u.shape[0] > u.shape[1] else x


def muon(p, g, state, lr, decay, momentum, ratio):
    m = state["momentum"] = momentum * state.get("momentum", 0 * p) + (1 - momentum) * g
    return p * (1 - lr * decay) - lr * ratio * newton_schulz(momentum * m + (1 - momentum) * g)


def adamw(p, g, state, t, lr, decay, beta1=0.9, beta2=0.999, eps=1e-8):
    m = state["m"] = beta1 * state.get("m", 0 * p) + (1 - beta1) * g
    v = state["v"] = beta2 * state.get("v", 0 * p) + (1 - beta2) * g * g
    return p * (1 - lr * decay) - lr / (1 - beta1**t) * m / (np.sqrt(v / (1 - beta2**t)) + eps)


# The mean of (tanh(tanh(x a + c) w^T) b - y)^2: the rows of `a` are inputs, those of `w` outputs, `b` makes the output.
random = np.random.default_rng(7)
start = {"a": random.normal(0, 0.5, (7, 13)), "c": random.normal(0, 0.5, (13,)), "w": random.normal(0, 0.5, (6, 13)),
         "b": random.normal(0, 0.5, (6, 5))}
start = {key: array.astype(np.float32) for key, array in start.items()}
data = {"x": random.normal(0, 1, (STEPS * ROWS, 7)).astype(np.float32), "y": random.normal(0, 1, (STEPS * ROWS, 5)).astype(np.float32)}
own = small.write(os.path.join(folder, "own.onnx"),
                  [node("MatMul", "x a", "xa"), node("Add", "xa c", "s"), node("Tanh", "s", "h"), node("Gemm", "h w", "hw", transB=1), node("Tanh", "hw", "k"),
                   node("MatMul", "k b", "kb"), node("Sub", "kb y", "e"), node("Mul", "e e", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                  [value("x", (ROWS, 7)), value("y", (ROWS, 5))], [initializer(key, array) for key, array in start.items()])


def gradients(p, x, y):
    h = np.tanh(x @ p["a"] + p["c"])
    k = np.tanh(h @ p["w"].T)
    e = 2 * (k @ p["b"] - y) / y.size
    r = (e @ p["b"].T) * (1 - k * k)
    s = (r @ p["w"]) * (1 - h * h)
    return {"a": x.T @ s, "c": s.sum(0), "w": r.T @ h, "b": k.T @ e}


def reference(ratios, lr=1e-3, adam=None, decay=0.1, clip=0, momentum=0.95, **given):
    p, states = {key: array.astype(np.float64) for key, array in start.items()}, {key: {} for key in start}
    for step in range(STEPS):
        rows = slice(step * ROWS, (step + 1) * ROWS)
        g = gradients(p, data["x"][rows].astype(np.float64), data["y"][rows].astype(np.float64))
        whole = np.concatenate([one.ravel() for one in g.values()])
        factor = min(1, clip / (np.sqrt((whole * whole).sum()) + 1e-6)) if clip else 1
        p = {key: muon(p[key], g[key] * factor, states[key], lr, decay, momentum, ratios[key]) if key in ratios else
             adamw(p[key], g[key] * factor, states[key], step + 1, adam or lr, decay, **given) for key in p}
    return p


ORIGINAL, RMS = {"a": np.sqrt(13 / 7), "w": 1}, {"a": 0.2 * np.sqrt(13), "w": 0.2 * np.sqrt(13)}
worst = 0
for words, ratios, given in (([], ORIGINAL, {}), (["-muon-adjust=match-rms-adamw", "-lr=0.01"], RMS, {"lr": 0.01}),
                             (["-muon-except=a"], {"w": 1}, {}), (["-adam-lr=0.004", "-lr=0.002", "-weight-decay=0"], ORIGINAL, {"lr": 0.002, "adam": 0.004, "decay": 0}),
                             (["-momentum=0.8", "-betas=0.8,0.95", "-eps=0.001", "-grad-clip=0.05"], ORIGINAL, {"momentum": 0.8, "beta1": 0.8, "beta2": 0.95, "eps": 0.001, "clip": 0.05})):
    _, weights = small.train(dsopt, own, data, "-optimizer=muon", "-micro-batches=1", f"-steps={STEPS}", "-quiet", *words)
    want = reference(ratios, **given)
    for key in want:
        moved = np.max(np.abs(want[key] - start[key]))
        apart = np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key]))
        worst = max(worst, apart)
        check(apart < 1e-5 < moved, f"muon {words}: {key} is {apart} off, moved by {moved}")
print(f"muon: {STEPS} steps, at most {worst:.1e} of the largest weight off", flush=True)

LAYOUTS = layouts(folder)
laid_out = LaidOut(dsopt, "-optimizer=muon", "-lr=0.003")
hashes = laid_out.check(LAYOUTS)
path = os.path.join(folder, "saved")
laid_out(LAYOUTS[3], "-steps=2", "-accumulate=local", f"-save={path}")
saved = os.path.join(path, "step-00000002")
states = {}
for file in os.listdir(saved):
    if file.startswith("optimizer"):
        states.update(safetensors(os.path.join(saved, file)))
check({key.rsplit(".", 1)[1] for key in states} == {"momentum", "m", "v"}, f"saves {sorted(states)}")
check(all(not key.endswith(".momentum") or array.ndim == 2 for key, array in states.items()), "momenta are of matrices")
for layout in (LAYOUTS[0], LAYOUTS[4], LAYOUTS[6]):
    resumed = laid_out(layout, "-steps=4", "-accumulate=local", f"-resume={saved}")
    check(resumed.hash == hashes[("-accumulate=local",)][tuple(LAYOUTS[0])][0], f"resumed as {layout}: {resumed.hash}")
said = execute([dsopt, model("gpt2-tiny")[0], "-run", f"-data={model('gpt2-tiny')[1]}", "-micro-batches=4", "-reduction-shards=4", "-accumulate=local", f"-resume={saved}", "-steps=4"], status=1).stderr
check("was written with -optimizer=muon; the program has adamw" in said, said)
print(f"muon: {sum(map(len, hashes.values()))} layouts of {len(hashes)} computations, one hash each; resumed in others", flush=True)

for options, message in ((["-optimizer=muon", "-momentum=1"], "option -momentum=1: -optimizer=muon takes a mean by it, expected a number from 0 to below 1"),
                         (["-optimizer=muon", "-lr=0", "-adam-lr=0.1"], "option -adam-lr=0.1 needs -lr above 0"),
                         (["-optimizer=adam", "-adam-lr=0.1"], "option -adam-lr has no meaning with -optimizer=adam"),
                         (["-optimizer=muon", "-muon-except=z"], "-muon-except=z matches no parameter of the model"),
                         (["-optimizer=muon", "-delayed-update=2"], "-optimizer=muon sees whole matrices: expected no -delayed-update"),
                         (["-optimizer=muon", "-precision=fp16", "-gradient-type=param"], "-optimizer=muon works in the gradients' place: expected -gradient-type=fp32, got param")):
    said = small.train(dsopt, own, data, "-micro-batches=1", *options, status=1)
    check(message in said, f"{options}: {said}")
print("passed")
