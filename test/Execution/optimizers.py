"""Optimizers beside those of the reference models: 20 steps as plain numpy does them in double, one result in all layouts,
saved under names of their own and resumed in another layout; options that mean nothing.

usage: optimizers.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np

import small
from runs import check, execute, model, train
from sampled import NIGHTLY, sampled
from saved_weights import safetensors
from small import initializer, node, value

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="optimizers-")
STEPS, ROWS = 20, 8


def norm(x):
    return np.sqrt((x * x).sum())


# The rules. `state` is empty before the first step, `t` counts from 1.


def lion(p, g, state, t, lr, decay, beta1=0.9, beta2=0.99):
    m = state.get("m", 0 * p)
    state["m"] = beta2 * m + (1 - beta2) * g
    return p * (1 - lr * decay) - lr * np.sign(beta1 * m + (1 - beta1) * g)


def adagrad(p, g, state, t, lr, decay, eps=1e-10):
    g = g + decay * p
    state["sum"] = state.get("sum", 0 * p) + g * g
    return p - lr * g / (np.sqrt(state["sum"]) + eps)


def lamb(p, g, state, t, lr, decay, beta1=0.9, beta2=0.999, eps=1e-8):
    """DeepSpeed's FusedLamb."""
    m = state["m"] = beta1 * state.get("m", 0 * p) + (1 - beta1) * g
    v = state["v"] = beta2 * state.get("v", 0 * p) + (1 - beta2) * g * g
    direction = m / (np.sqrt(v) + eps) + decay * p
    ratio = min(max(norm(p) / norm(direction), 0.01), 10) if norm(p) and norm(direction) else 1
    return p - lr * np.sqrt(1 - beta2**t) / (1 - beta1**t) * ratio * direction


RULES = {
    "lion": (lion, 1e-4, {"-betas=0.8,0.95": {"beta1": 0.8, "beta2": 0.95}}),
    "adagrad": (adagrad, 1e-2, {"-eps=0.001": {"eps": 0.001}}),
    "lamb": (lamb, 1e-3, {"-betas=0.8,0.95": {"beta1": 0.8, "beta2": 0.95}, "-eps=0.001": {"eps": 0.001}}),
}

# A model whose gradients are short to write: the mean of (tanh(x a + c) b - y)^2. Its sizes divide by nothing.
random = np.random.default_rng(7)
start = {"a": random.normal(0, 0.5, (7, 13)), "c": random.normal(0, 0.5, (13,)), "b": random.normal(0, 0.5, (13, 5))}
start = {key: array.astype(np.float32) for key, array in start.items()}
data = {"x": random.normal(0, 1, (STEPS * ROWS, 7)).astype(np.float32), "y": random.normal(0, 1, (STEPS * ROWS, 5)).astype(np.float32)}
own = small.write(os.path.join(folder, "own.onnx"),
                  [node("MatMul", "x a", "xa"), node("Add", "xa c", "s"), node("Tanh", "s", "h"), node("MatMul", "h b", "hb"),
                   node("Sub", "hb y", "e"), node("Mul", "e e", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                  [value("x", (ROWS, 7)), value("y", (ROWS, 5))], [initializer(key, array) for key, array in start.items()])


def gradients(p, x, y):
    h = np.tanh(x @ p["a"] + p["c"])
    e = 2 * (h @ p["b"] - y) / y.size
    s = (e @ p["b"].T) * (1 - h * h)
    return {"a": x.T @ s, "c": s.sum(0), "b": h.T @ e}


def reference(rule, lr, decay, clip, scale=lambda key: 1, **given):
    p, states = {key: array.astype(np.float64) for key, array in start.items()}, {key: {} for key in start}
    for step in range(STEPS):
        rows = slice(step * ROWS, (step + 1) * ROWS)
        g = gradients(p, data["x"][rows].astype(np.float64), data["y"][rows].astype(np.float64))
        factor = min(1, clip / (norm(np.concatenate([one.ravel() for one in g.values()])) + 1e-6)) if clip else 1
        p = {key: rule(p[key], g[key] * factor, states[key], step + 1, lr * scale(key), decay, **given) for key in p}
    return p


for name, (rule, rate, options) in RULES.items():
    worst = 0
    for spelled, given in [("", {}), *options.items()]:
        for decay, clip in ((0, 0), (0.1, 0.05)):
            words = [word for word in (spelled, f"-weight-decay={decay}" if decay else "", f"-grad-clip={clip}" if clip else "") if word]
            _, weights = small.train(dsopt, own, data, f"-optimizer={name}", "-micro-batches=1", f"-steps={STEPS}", "-quiet", *words)
            want = reference(rule, rate, decay, clip, **given)
            for key in want:
                moved = np.max(np.abs(want[key] - start[key]))
                apart = np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key]))
                worst = max(worst, apart)
                check(apart < 1e-5 < moved, f"{name} {words}: {key} is {apart} off, moved by {moved}")
    # A learning rate of its own.
    _, weights = small.train(dsopt, own, data, f"-optimizer={name}", "-micro-batches=1", f"-steps={STEPS}", "-quiet", "-lr=0.01", "-lr-scale=b=0.5")
    want = reference(rule, 0.01, 0, 0, scale=lambda key: 0.5 if key == "b" else 1)
    check(all(np.max(np.abs(weights[key] - want[key])) < 1e-5 for key in want), f"{name}: rates by parameter")
    print(f"{name}: {STEPS} steps, at most {worst:.1e} of the largest weight off", flush=True)

LAYOUTS = (["-dp=1"], ["-dp=2"], ["-dp=2", "-zero=1"], ["-dp=2", "-zero=2", "-pp=2"], ["-dp=2", "-zero=3", "-recompute=full", "-tile-products=16k"], ["-dp=4", "-zero=1", "-threads=2"],
           ["-dp=2", "-zero=3", "-offload-optimizer=cpu", "-offload-params=cpu"], ["-pp=2", "-offload-optimizer=cpu", "-offload-ratio=0.5"],
           ["-dp=2", "-zero=3", "-offload-optimizer=nvme", f"-nvme-path={folder}"])


def laid_out(name, layout, *options, **keywords):
    dp = next((int(word[4:]) for word in layout if word.startswith("-dp=")), 1)
    return train(dsopt, "gpt2-toy", f"-optimizer={name}", *layout, f"-micro-batches={4 // dp}", "-reduction-shards=4", "-accumulate=local",
                 "-lr=0.003", "-weight-decay=0.1", *options, **keywords)


for name in RULES:
    hashes = {}
    for layout in LAYOUTS:
        for computation in ((), ("-precision=bf16", "-grad-clip=0.5"), ("-precision=fp16",), ("-delayed-update=2",)):
            if computation[:1] in (("-precision=fp16",), ("-delayed-update=2",)) and layout not in (LAYOUTS[0], LAYOUTS[3], LAYOUTS[-3]):
                continue
            if not NIGHTLY and name != "lamb" and layout not in (LAYOUTS[0], LAYOUTS[3], LAYOUTS[-3]):
                continue
            if not NIGHTLY and computation[:1] == ("-precision=bf16",) and layout not in (LAYOUTS[0], LAYOUTS[3], LAYOUTS[-3]):
                continue
            run = laid_out(name, layout, "-steps=4", *computation)
            hashes.setdefault(computation, {})[tuple(layout)] = (run.hash, *run.loss_text)
    check(all(len(set(found.values())) == 1 for found in hashes.values()), f"{name}: {hashes}")
    # Saved in one layout, resumed in another.
    for saving, resuming in sampled(((3, (0, 4, 6, 8)), (8, (0, 8))), 2 if name == "lamb" else 1):
        path = os.path.join(folder, f"{name}-{saving}")
        laid_out(name, LAYOUTS[saving], "-steps=2", f"-save={path}")
        saved = os.path.join(path, "step-00000002")
        states = {}
        for file in os.listdir(saved):
            if file.startswith("optimizer"):
                states.update(safetensors(os.path.join(saved, file)))
        roles = {"lion": ["m"], "adagrad": ["sum"], "lamb": ["m", "v"]}[name]
        check({key.rsplit(".", 1)[1] for key in states} == set(roles), f"{name} saves {sorted(states)}")
        for number in sampled(resuming, 2):
            resumed = laid_out(name, LAYOUTS[number], "-steps=4", f"-resume={saved}")
            check(resumed.hash == hashes[()][tuple(LAYOUTS[0])][0], f"{name} saved as {LAYOUTS[saving]}, resumed as {LAYOUTS[number]}: {resumed.hash}")
    said = execute([dsopt, model("gpt2-toy")[0], "-run", f"-data={model('gpt2-toy')[1]}", "-micro-batches=4", "-optimizer=sgd", "-momentum=0.9", f"-resume={saved}",
                    "-steps=4"], status=1).stderr
    check(f"was written with -optimizer={name}; the program has sgd, to which its state means something else" in said, said)
    print(f"{name}: {sum(map(len, hashes.values()))} layouts of {len(hashes)} computations, one hash each; resumed in others", flush=True)

for options, message in ((["-optimizer=lion", "-eps=1e-6"], "option -eps has no meaning with -optimizer=lion"),
                         (["-optimizer=lion", "-betas=0.9,1"], "option -betas: expected two numbers from 0 to below 1"),
                         (["-optimizer=adagrad", "-betas=0.9,0.99"], "option -betas has no meaning with -optimizer=adagrad"),
                         (["-optimizer=adagrad", "-momentum=0.9"], "option -momentum has no meaning with -optimizer=adagrad"),
                         (["-optimizer=lamb", "-momentum=0.9"], "option -momentum has no meaning with -optimizer=lamb"),
                         (["-optimizer=lamb", "-precision=fp16", "-gradient-type=param"], "-optimizer=lamb works in the gradients' place: expected -gradient-type=fp32, got param"),
                         (["-optimizer=lamb", "-delayed-update=2", "-offload-optimizer=nvme", f"-nvme-path={folder}"], "error: -delayed-update with an optimizer that goes by norms of whole parameters: expected -offload-optimizer=cpu, got nvme"),
                         (["-optimizer=adagrad", "-eps=0"], "option -eps=0: -optimizer=adagrad divides by it where gradients are 0, expected a number above 0 in fp32"),
                         (["-optimizer=adam", "-eps=1e-60"], "option -eps=1e-60: -optimizer=adam divides by it")):
    said = small.train(dsopt, own, data, "-micro-batches=1", *options, status=1)
    check(message in said, f"{options}: {said}")
print("passed")
