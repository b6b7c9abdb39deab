"""Gradients by a method, with error feedback: as plain numpy does it in double, for 2 to 8 ranks and sizes that do not divide; one
result in all layouts of equal ranks; saved and resumed; bytes between ranks; what it refuses.

usage: compress.py DSOPT onebit|topk|powersgd [folder of the software device's libraries: then there alone]
"""
import json
import os
import re
import shutil
import sys
import tempfile

import numpy as np

import small
import tanh_model
from runs import MPIRUN, check, execute, model, relative, train
from saved_weights import safetensors
from small import initializer, node, value
from tanh_model import ROWS, buckets, gradients

dsopt, method, *driver = sys.argv[1:]
folder = tempfile.mkdtemp(prefix="compress-")
STEPS, LR = 20, 0.05

random = np.random.default_rng(12)
start = {"a": random.normal(0, 0.5, (7, 33)), "c": random.normal(0, 0.5, (33,)), "b": random.normal(0, 0.5, (33, 5))}
start = {key: array.astype(np.float32) for key, array in start.items()}
own = tanh_model.write(os.path.join(folder, "own.onnx"), start)


#: How far from a reference in double a run may be, and how much of it rounding may take.
BOUND, ROUNDED = 1e-6, 5e-7


def signs(c, real):
    """Signs by the mean magnitude."""
    return np.where(c < 0, -1.0, 1.0) * np.abs(c).sum() / max(real.sum(), 1) * real


def largest(k, block):
    """The k largest of each block, the first of equal ones."""
    def sent(c, _):
        made = np.zeros_like(c)
        for begin in range(0, c.size, block):
            at = begin + np.argsort(-np.abs(c[begin:begin + block]), kind="stable")[:k]
            made[at] = c[at]
        return made
    return sent


# Of each method: what it makes of a unit (or its rank) by the options it is tried with, how far the loss of gpt2-tiny may be off, and how many times
# less it sends.
METHODS = {"onebit": ({"onebit": signs}, 0.02, 31),
           "topk": ({"topk": largest(1, 64), "topk{k=3,block=128}": largest(3, 128)}, 0.02, 51),
           "powersgd": ({"powersgd": 2, "powersgd{rank=5}": 5}, 0.02, 63)}
ways, off, less = METHODS[method]


def exchanged(parts, places, errors, makes):
    """Karimireddy et al. (2019), algorithm 1 (or 2), at each worker, on each slice of each bucket: the mean of what ranks send of their `parts`."""
    g, ranks = {}, len(parts)
    for (padded, first), left in zip(places, errors):
        real = np.zeros(padded, bool)
        for key, begin in first.items():
            real[begin:begin + parts[0][key].size] = True
        total = np.zeros(padded)
        for rank in range(ranks):
            c = left[rank].copy()
            for key, begin in first.items():
                c[begin:begin + parts[0][key].size] += parts[rank][key].ravel() / ranks
            for unit in np.split(np.arange(padded), ranks):
                sent = makes(c[unit], real[unit])
                total[unit] += sent
                left[rank, unit] = c[unit] - sent
        for key, begin in first.items():
            g[key] = total[begin:begin + parts[0][key].size].reshape(parts[0][key].shape)
    return g


def factors(rank, ranks):
    """Vogels et al. (2019), algorithms 1 and 2, of sums in the place of means; what is no larger than its factors goes whole."""
    last, left = {}, {}

    def begun(q):
        place = np.arange(q.size, dtype=np.int64).reshape(rank, -1)
        first = (place * 1664525 + 1013904223) & 0x7fffffff
        mixed = ((first // 32768) * first) & 0x7fffffff
        return np.where(np.any(q != 0, axis=0), q, (np.float32(mixed) * 2.0**-31 - 0.5).T)

    def send(parts):
        g = {}
        for key, one in parts[0].items():
            shape = one.shape if one.ndim == 1 else (one.shape[0], one.size // one.shape[0])
            m = [left.get((key, worker), 0) + part[key].reshape(shape) / ranks for worker, part in enumerate(parts)]
            if one.ndim == 1 or rank * sum(shape) >= one.size:
                g[key] = sum(m).reshape(one.shape)
                continue
            q = begun(last.get(key, np.zeros((shape[1], rank))))
            p = sum(each @ q for each in m)
            sizes = np.linalg.norm(p, axis=0)
            for i in range(rank):
                size = np.linalg.norm(p[:, i])
                p[:, i] = 0 if size < 1e-5 * sizes[i] else p[:, i] / max(size, 1e-30)
                for other in range(i + 1, rank):
                    p[:, other] -= p[:, i] * (p[:, i] @ p[:, other])
            last[key] = q = sum(each.T @ p for each in m)
            for worker, each in enumerate(m):
                left[key, worker] = each - p @ q.T / ranks
            g[key] = (p @ q.T).reshape(one.shape)
        return g
    return send


def exchange(makes, ranks, places):
    """What becomes of all ranks' parts of each parameter in a step."""
    if isinstance(makes, int):
        return factors(makes, ranks)
    errors = [np.zeros((ranks, padded)) for padded, _ in places]
    return lambda parts: exchanged(parts, places, errors, makes)


def reference(data, ranks, clip, makes, places, rounded=None):
    """The weights after all steps, by SGD; with numbers to draw from, gradients and weights are off by up to half a unit of fp32's last place."""
    p = {key: array.astype(np.float64) for key, array in start.items()}
    send = exchange(makes, ranks, places)
    near = (lambda array: array * (1 + rounded.uniform(-1, 1, array.shape) * 2.0**-24)) if rounded else lambda array: array
    for step in range(STEPS):
        parts = []
        for rank in range(ranks):
            rows = slice((step * ranks + rank) * ROWS, (step * ranks + rank + 1) * ROWS)
            parts.append({key: near(g) for key, g in gradients(p, data["x"][rows].astype(np.float64), data["y"][rows].astype(np.float64)).items()})
        g = send(parts)
        norm = np.sqrt(sum((part**2).sum() for part in g.values()))
        for key in p:
            p[key] = near(p[key] - LR * g[key] * (min(1, clip / norm) if clip else 1))
    return p


def drawn(ranks, clip, makes):
    """Micro-batches and the weights after them. A method of few factors or signs decides between almost equal things now and then, and rounding
    then decides: these are the first for which rounding alone leaves the result where it is, whatever the processor."""
    places = buckets(dsopt, own, ranks)
    for seed in range(ranks, 2000, 100):
        data = tanh_model.batches(STEPS, ranks, seed)
        want = reference(data, ranks, clip, makes, places)
        if all(far(reference(data, ranks, clip, makes, places, np.random.default_rng(i)), want) < ROUNDED for i in range(8)):
            return data, want
    sys.exit(f"FAILED: rounding decides what {makes} makes of all micro-batches")


def run(ranks, data, *options, way=method, **keywords):
    return small.train(dsopt, own, data, f"-compress-gradients={way}", "-optimizer=sgd", "-momentum=0", f"-lr={LR}", f"-dp={ranks}", "-micro-batches=1",
                       "-quiet", "-threads=1", *options, **keywords)


def far(weights, want):
    return max(np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key])) for key in want)


if driver:
    # On GPUs: as close.
    os.environ.update(LD_LIBRARY_PATH=driver[0], SOFT_DEVICE="seed=1")
    STEPS = 8
    for way, makes in ways.items():
        data, want = drawn(2, 0, makes)
        _, weights = run(2, data, "-target=cuda", "-arch=sm_80", "-zero=2", f"-steps={STEPS}", way=way)
        apart = far(weights, want)
        check(apart < BOUND, f"on GPUs, {way}: {apart} off")
        print(f"on GPUs, {way}: {apart:.1e} of the largest weight off")
    sys.exit()

for ranks in (2, 3, 4, 8):
    for way, clip in [(way, 0) for way in ways] + ([(method, 0.05)] if ranks == 2 else []):
        data, want = drawn(ranks, clip, ways[way])
        _, weights = run(ranks, data, f"-steps={STEPS}", f"-grad-clip={clip}", way=way)
        apart = far(weights, want)
        moved = min(np.max(np.abs(want[key] - start[key])) for key in want)
        check(apart < BOUND < moved, f"{way}, {ranks} ranks, clip {clip}: {apart} off, moved by {moved}")
        print(f"{way}, {ranks} ranks, clip {clip}: {apart:.1e} of the largest weight off", flush=True)

# One result in all layouts of equal ranks.
LAYOUTS = (["-dp=2"], ["-dp=2", "-zero=1", "-threads=2"], ["-dp=2", "-zero=2", "-recompute=full"], ["-dp=2", "-zero=1", "-pp=2"], ["-dp=2", "-zero=3"],
           ["-dp=2", "-zero=1", "-offload-optimizer=cpu"])


COMPILED = (f"-compress-gradients={method}", "-accumulate=local", "-micro-batches=2", "-reduction-shards=4")


def laid_out(layout, *options, **keywords):
    return train(dsopt, "gpt2-tiny", *COMPILED, "-lr=0.002", *layout, *options, **keywords)


runs_ = [laid_out(layout, "-steps=6") for layout in LAYOUTS] + [laid_out(LAYOUTS[1], "-steps=6", prefix=[*MPIRUN, "2"])]
for layout, one in zip(LAYOUTS, runs_):
    planned = json.loads(execute([dsopt, model("gpt2-tiny")[0], "-plan=json", f"-data={model('gpt2-tiny')[1]}", *COMPILED, *layout]).stdout)
    for got, entry in (("peak_bytes", lambda rank: rank["memory"]["total"]), ("sent_bytes", lambda rank: sum(rank["traffic"].values()))):
        want = [entry(rank) for rank in planned["ranks"]]
        check(one.steps[-1][got] == want, f"{layout}: {got} {one.steps[-1][got]}, planned {want}")
check(len({(one.hash, *one.loss_text) for one in runs_}) == 1, f"hashes {[one.hash for one in runs_]}")
plain = train(dsopt, "gpt2-tiny", "-accumulate=local", "-micro-batches=2", "-reduction-shards=4", "-lr=0.002", "-dp=2", "-steps=6")
apart = relative(runs_[0].losses[-1], plain.losses[-1])
check(0 < apart < off, f"losses {runs_[0].losses}, without {plain.losses}")
print(f"{len(runs_)} layouts, one hash; the last loss is {apart:.2%} off", flush=True)

# What was left out is saved, of each worker: the bits go on in all layouts of equal ranks.
saved = os.path.join(folder, "saved")
laid_out(LAYOUTS[3], "-steps=4", f"-save={saved}", "-save-every=2", "-save-keep=9")
states = {}
for file in os.listdir(os.path.join(saved, "step-00000002")):
    if file.startswith("optimizer"):
        states.update(safetensors(os.path.join(saved, "step-00000002", file)))
kinds = {re.search(r"\.(m|v|factor|worker_error\.\d)$", name).group(1) for name in states}
check(kinds == {"m", "v", "worker_error.0", "worker_error.1"} | ({"factor"} if method == "powersgd" else set()), f"saved: {kinds}")
for step, layout in ((2, LAYOUTS[0]), (4, LAYOUTS[4]), (4, LAYOUTS[3])):
    resumed = laid_out(layout, "-steps=6", f"-resume={saved}/step-{step:08}")
    check(resumed.hash == runs_[0].hash, f"resumed after {step} steps as {layout}: {resumed.hash}")
path, tokens = model("gpt2-tiny")
other = [dsopt, path, "-run", "-quiet", f"-data={tokens}", f"-compress-gradients={method}", "-accumulate=local", "-lr=0.002", f"-resume={saved}/step-00000004", "-steps=6"]
said = execute([*other, "-dp=4", "-micro-batches=1"], status=1).stderr
check("left out, which 4 cannot go on with: expected -dp=2, or -resume-new-batch" in said, said)
execute([*other, "-dp=4", "-micro-batches=1", "-resume-new-batch"])
if method == "powersgd":
    wider = [word.replace("=powersgd", "=powersgd{rank=3}") for word in other]
    said = execute([*wider, "-dp=2", "-micro-batches=2", "-reduction-shards=4"], status=1).stderr
    check(".factor' f32 [" in said and "is of another model or optimizer" in said, said)
print("saved and resumed, by other ranks with the mean of errors", flush=True)

# Bytes between ranks, counted: one parameter of 256 Ki elements, 4 ranks.
wide = small.write(os.path.join(folder, "wide.onnx"),
                   [node("MatMul", "x a", "h"), node("Mul", "h h", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                   [value("x", (1, 512))], [initializer("a", random.normal(0, 0.02, (512, 512)).astype(np.float32))])
rows = {"x": random.normal(0, 1, (2 * 4, 512)).astype(np.float32)}
sent = []
for options in ([], [f"-compress-gradients={method}"]):
    counted, _ = small.train(dsopt, wide, rows, "-optimizer=sgd", *options, "-dp=4", "-zero=1", "-micro-batches=1", "-steps=2", "-quiet", "-threads=1", "-lr=0.0001")
    sent.append(max(counted.steps[1]["sent_bytes"]))
gathered = 3 * 512 * 512 // 4 * 4
ratio = (sent[0] - gathered) / (sent[1] - gathered)
check(ratio > less, f"bytes a step: {sent}, of them {gathered} gathered")
print(f"4 ranks, 256 Ki elements: reductions send {ratio:.2f} times less", flush=True)

# What goes wrong.
data = tanh_model.batches(STEPS, 2)
late = {key: np.where(np.arange(len(array))[:, None] == 7 * 2 * ROWS + 1, np.float32(3e38), array) for key, array in data.items()}
said = run(2, late, "-steps=9", status=2)
check("the loss of step 7 is not finite" in said, said)
# Gradients of equal magnitudes: of a mean of (x a) y.
steep = small.write(os.path.join(folder, "steep.onnx"),
                    [node("MatMul", "x a", "xa"), node("Mul", "xa y", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                    [value("x", (2, 70)), value("y", (2, 4))], [initializer("a", np.full((70, 4), 1e-30, np.float32))])
plain = ["-optimizer=sgd", "-momentum=0", "-dp=2", "-micro-batches=1", "-quiet", "-threads=1"]
equal = {"x": np.where(np.arange(12 * 4 * 70).reshape(-1, 70) % 70 % 3, 1, -1).astype(np.float32), "y": np.ones((12 * 4, 4), np.float32)}
for way, makes in ways.items():
    _, weights = small.train(dsopt, steep, equal, f"-compress-gradients={way}", *plain, "-lr=0.5")
    send, want = exchange(makes, 2, buckets(dsopt, steep, 2)), 0
    for _ in range(12):
        want -= 0.5 * send([{"a": equal["x"][:2].T @ equal["y"][:2] / 8.0}] * 2)["a"]
    apart = np.max(np.abs(weights["a"] - want)) / np.max(np.abs(want))
    check(apart < BOUND, f"{way}, equal magnitudes: {apart} off")
# One rank's has an infinite value, or one that is no number; the loss is finite.
for second in (1e30, -1e30):
    rows = {"x": random.normal(0, 1, (4 * 4, 70)).astype(np.float32), "y": np.ones((4 * 4, 4), np.float32)}
    rows["x"][10:12], rows["x"][10:12, 7], rows["y"][10], rows["y"][11] = 0, 1e30, 1e30, second
    for way in ways:
        said = small.train(dsopt, steep, rows, f"-compress-gradients={way}", *plain, "-lr=1e-33", status=2)
        check("the gradient of parameter 'a' is not finite in step 2" in said, f"{way}: {said}")
for options, message in ((["-reduce-type=int4"], f"-compress-gradients={method} does not go with -reduce-type=int4"),
                         (["-gradient-type=param"], "does not go with -gradient-type=param: what it leaves out is added in fp32; expected fp32"),
                         (["-precision=fp16"], "does not go with -precision=fp16"), (["-delayed-update=3"], "does not go with -delayed-update=3"),
                         (["-reduction=fast", "-target=cuda"], "does not go with -reduction=fast"),
                         (["-optimizer=onebit-adam", "-freeze-step=3"], "does not go with -optimizer=onebit-adam: behind its freeze ranks exchange momenta")):
    said = small.train(dsopt, own, data, f"-compress-gradients={method}", "-dp=2", "-micro-batches=1", *options, status=1)
    check(message in said, f"{options}: {said}")
for given, message in {"topk{k=1.5}": "topk got k='1.5', expected a whole number from 1 to 32", "topk{k=0}": "expected a whole number from 1 to 32",
                       "topk{block=100}": "topk got block='100', expected a multiple of 64 from 64 to 4096", "onebit{k=1}": "onebit has no option 'k', expected none"}.items():
    said = execute([dsopt, own, f"-compress-gradients={given}", "-dp=2", "-plan"], status=1).stderr
    check(message in said, f"{given}: {said}")
said = execute([dsopt, own, f"-compress-gradients={method}", "-plan"]).stderr
check(f"option -compress-gradients={method} has no effect here: it goes with -dp of 2 or more" in said, said)
shutil.rmtree(folder)
print("what goes wrong is named", flush=True)
