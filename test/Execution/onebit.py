"""1-bit Adam: steps before and behind its freeze as plain numpy does them in double, for 1 to 8 ranks and sizes that do not divide;
one result in all layouts of equal ranks; saved and resumed behind the freeze; bytes between ranks; what it refuses.

usage: onebit.py DSOPT [folder of the software device's libraries: then there alone]
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import numpy as np

import small
import tanh_model
from runs import MPIRUN, Run, check, execute, model, relative, train
from sampled import sampled
from saved_weights import safetensors
from small import initializer, node, value
from tanh_model import ROWS, buckets, compress, gradients

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="onebit-")
FREEZE, STEPS = 5, 25

random = np.random.default_rng(11)
start = {"a": random.normal(0, 0.5, (7, 33)), "c": random.normal(0, 0.5, (33,)), "b": random.normal(0, 0.5, (33, 5))}
start = {key: array.astype(np.float32) for key, array in start.items()}
own = tanh_model.write(os.path.join(folder, "own.onnx"), start)


def batches(ranks):
    return tanh_model.batches(STEPS, ranks)


def reference(data, ranks, lr, decay, beta1=0.9, beta2=0.999, eps=1e-8):
    """Tang et al. (2021), Algorithm 1, on each bucket; Adam with its bias corrected before the freeze."""
    p = {key: array.astype(np.float64) for key, array in start.items()}
    m, v = ({key: np.zeros(array.shape) for key, array in start.items()} for _ in range(2))
    places = buckets(dsopt, own, ranks)
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
            def flat(values):
                return np.concatenate([np.zeros(0)] + [np.pad(values[key].ravel(), (0, end - begin - values[key].size))
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


if len(sys.argv) > 2:
    # On GPUs, which have orders of their own for sums: as close, and one result in all layouts.
    data = batches(2)
    os.environ.update(LD_LIBRARY_PATH=sys.argv[2], SOFT_DEVICE="seed=1")
    found = set()
    for options in ([], ["-pp=2", "-zero=1"], ["-offload-optimizer=cpu"], ["-zero=2", "-onebit-gather=parameters"]):
        log, weights = run(2, data, "-target=cuda", "-arch=sm_80", "-steps=8", "-lr=0.001", *options)
        found.add((log.hash, *log.loss_text))
    STEPS = 8
    want = reference(data, 2, 1e-3, 0)
    apart = max(np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key])) for key in want)
    check(len(found) == 1 and apart < 1e-6, f"on GPUs: {apart} off, {found}")
    print(f"on GPUs: {apart:.1e} of the largest weight off, one result in all layouts")
    sys.exit()

for ranks in (1, 2, 3, 4, 8):
    data = batches(ranks)
    for lr, decay in ((1e-3, 0), (1e-3, 0.1)):
        if decay and ranks not in (2, 3):
            continue
        _, weights = run(ranks, data, f"-steps={STEPS}", f"-lr={lr}", f"-weight-decay={decay}")
        want = reference(data, ranks, lr, decay)
        apart = max(np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key])) for key in want)
        moved = min(np.max(np.abs(want[key] - start[key])) for key in want)
        check(apart < 1e-6 < moved, f"{ranks} ranks, lr {lr}, decay {decay}: {apart} off, moved by {moved}")
        print(f"{ranks} ranks: {FREEZE} steps and {STEPS - FREEZE} behind the freeze, {apart:.1e} of the largest weight off", flush=True)

# One result in all layouts of equal ranks, in each computation.
LAYOUTS = (["-dp=2"], ["-dp=2", "-zero=1", "-threads=2"], ["-dp=2", "-zero=2", "-recompute=full"], ["-dp=2", "-zero=2", "-pp=2"],
           ["-dp=2", "-zero=1", "-pp=2", "-offload-optimizer=cpu", "-offload-ratio=0.5"], ["-dp=2", "-offload-optimizer=cpu", "-offload-activations=cpu"],
           ["-dp=2", "-zero=2", "-pp=2", "-onebit-gather=parameters"], ["-dp=2", "-zero=1", "-threads=2", "-onebit-gather=parameters"])


def laid_out(layout, *options, **keywords):
    return train(dsopt, "gpt2-tiny", "-optimizer=onebit-adam", "-freeze-step=2", "-micro-batches=2", "-reduction-shards=4", "-lr=0.002", "-weight-decay=0.1",
                 *layout, *options, **keywords)


hashes = {}
for computation in ((), ("-precision=bf16", "-grad-clip=0.5"), ("-precision=fp16",), ("-precision=bf16", "-gradient-type=param")):
    for layout in LAYOUTS if not computation else sampled((LAYOUTS[0], LAYOUTS[4], LAYOUTS[6]), 2):
        run_ = laid_out(layout, "-steps=6", *computation)
        hashes.setdefault(computation, {})[tuple(layout)] = (run_.hash, *run_.loss_text)
hashes[()]["mpi"] = (lambda run_: (run_.hash, *run_.loss_text))(laid_out(LAYOUTS[0], "-steps=6", prefix=[*MPIRUN, "2"]))
# As on two hosts: over TCP.
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = str(probe.getsockname()[1])
path, data = model("gpt2-tiny")
log = os.path.join(folder, "tcp.jsonl")
apart = [subprocess.Popen([dsopt, path, "-run", f"-data={data}", "-insecure", "-optimizer=onebit-adam", "-freeze-step=2", "-micro-batches=2", "-reduction-shards=4",
                           "-lr=0.002", "-weight-decay=0.1", "-dp=2", "-steps=6", f"-log={log}", "-quiet"],
                          env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port, DSOPT_HOST=f"h{rank}"))
         for rank in range(2)]
check([one.wait() for one in apart] == [0, 0], "ranks of two hosts")
check(Run(log).head["engine"] == "TCP", Run(log).head["engine"])
hashes[()]["tcp"] = (Run(log).hash, *Run(log).loss_text)
check(all(len(set(found.values())) == 1 for found in hashes.values()), str(hashes))
plain = train(dsopt, "gpt2-tiny", "-micro-batches=2", "-reduction-shards=4", "-lr=0.002", "-weight-decay=0.1", "-dp=2", "-steps=6")
check(plain.loss_text[:3] == list(hashes[()][tuple(LAYOUTS[0])][1:4]) and plain.loss_text[3] != hashes[()][tuple(LAYOUTS[0])][4],
      f"AdamW before the freeze: {plain.loss_text}")
print(f"{sum(map(len, hashes.values()))} layouts of {len(hashes)} computations, one hash each", flush=True)

# Behind the freeze what was left out is saved, of each worker and of the servers: the bits go on in all layouts of equal ranks.
saved = os.path.join(folder, "saved")
laid_out(LAYOUTS[3], "-steps=4", f"-save={saved}", "-save-every=1", "-save-keep=9")


def states(step):
    found = {}
    for file in os.listdir(os.path.join(saved, f"step-{step:08}")):
        if file.startswith("optimizer"):
            found.update(safetensors(os.path.join(saved, f"step-{step:08}", file)))
    return found


check({name.rsplit(".", 1)[1] for name in states(2)} == {"m", "v"}, f"saved before the freeze: {sorted(states(2))[:8]}")
kinds = {re.search(r"\.(m|v|server_error|worker_error\.\d)$", name).group(1) for name in states(3)}
check(kinds == {"m", "v", "server_error", "worker_error.0", "worker_error.1"}, f"saved behind it: {kinds}")
for step, layout in ((2, LAYOUTS[0]), (3, LAYOUTS[4]), (4, LAYOUTS[0]), (4, LAYOUTS[5]), (4, LAYOUTS[3]), (2, LAYOUTS[6]), (4, LAYOUTS[7])):
    resumed = laid_out(layout, "-steps=6", f"-resume={saved}/step-{step:08}")
    check(resumed.hash == hashes[()][tuple(LAYOUTS[0])][0], f"resumed after {step} steps as {layout}: {resumed.hash}")
# What ranks have in slices is saved as what they have whole.
sliced = os.path.join(folder, "sliced")
laid_out(LAYOUTS[7], "-steps=3", f"-save={sliced}")
resumed = laid_out(LAYOUTS[0], "-steps=6", f"-resume={sliced}")
check(resumed.hash == hashes[()][tuple(LAYOUTS[0])][0], f"saved as {LAYOUTS[7]}: {resumed.hash}")
# Other ranks go on with the mean of the workers' errors, or not at all.
again = os.path.join(folder, "again")
other = ["-optimizer=onebit-adam", "-freeze-step=2", "-lr=0.002", "-weight-decay=0.1", "-dp=1", "-micro-batches=4", f"-resume={saved}/step-00000004"]
path, data = model("gpt2-tiny")
said = execute([dsopt, path, "-run", f"-data={data}", *other, "-steps=6"], status=1).stderr
check("left out, which 1 cannot go on with: expected -dp=2, or -resume-new-batch" in said, said)
train(dsopt, "gpt2-tiny", *other, "-resume-new-batch", "-steps=4", f"-save-weights={folder}/ignored")
folded = train(dsopt, "gpt2-tiny", *other, "-resume-new-batch", "-steps=6")
check(relative(folded.losses[-1], plain.losses[-1]) < 0.01, f"folded errors: {folded.losses}")
said = execute([dsopt, path, "-run", f"-data={data}", *[word.replace("freeze-step=2", "freeze-step=3") for word in other if not word.startswith("-dp")], "-dp=2",
                "-micro-batches=2", "-steps=6"], status=1).stderr
check("was written with -freeze-step=2 after 4 applied steps, got -freeze-step=3" in said, said)
print("saved behind the freeze and resumed, by other ranks with the mean of errors", flush=True)

# Bytes between ranks, counted: one parameter of 1 Mi elements, 8 ranks.
wide = small.write(os.path.join(folder, "wide.onnx"),
                   [node("MatMul", "x a", "h"), node("Mul", "h h", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                   [value("x", (1, 1024))], [initializer("a", random.normal(0, 0.02, (1024, 1024)).astype(np.float32))])
rows = {"x": random.normal(0, 1, (4 * 8, 1024)).astype(np.float32)}
sent = {}
for name, options in (("adam", ["-optimizer=adam"]), ("onebit", ["-optimizer=onebit-adam", "-freeze-step=2"]),
                      ("parameters", ["-optimizer=onebit-adam", "-freeze-step=2", "-zero=1", "-onebit-gather=parameters"])):
    counted, _ = small.train(dsopt, wide, rows, *options, "-dp=8", "-micro-batches=1", "-steps=4", "-quiet", "-threads=1", "-lr=0.0001")
    sent[name] = [max(step["sent_bytes"]) for step in counted.steps]
ratio = sent["adam"][3] / sent["onebit"][3]
check(sent["adam"][1] == sent["onebit"][1] and ratio > 31.8, f"bytes a step: {sent}")
print(f"8 ranks, 1 Mi elements: {sent['adam'][3]} bytes a step before the freeze, {sent['onebit'][3]} behind it, {ratio:.2f} x less", flush=True)
# Two all-gathers and an exchange of signs; behind the first such step, which gathers momenta as well.
ratio = sent["adam"][3] / sent["parameters"][3]
check(1.88 < ratio < 1.89 and sent["parameters"][1] == sent["adam"][1], f"bytes a step: {sent}")
print(f"with -onebit-gather=parameters {sent['parameters'][3]}, {ratio:.2f} x less", flush=True)
planned = json.loads(execute([dsopt, wide, "-plan=json", "-optimizer=onebit-adam", "-freeze-step=2", "-zero=1", "-onebit-gather=parameters", "-dp=8", "-threads=1"]).stdout)
check(all(sum(rank["traffic"].values()) == sent["parameters"][3] for rank in planned["ranks"]), str(planned["ranks"][0]["traffic"]))
check({rank["memory"]["total"] for rank in planned["ranks"]} == set(counted.steps[3]["peak_bytes"]), f"planned bytes: {counted.steps[3]['peak_bytes']}")
# Of each element momentum and error, an eighth of error and variance, and a bit for whether it takes part.
check(planned["ranks"][0]["memory"]["optimizer"] == 4 * 2**20 * (2 + 2 / 8 + 1 / 32), str(planned["ranks"][0]["memory"]))

# What goes wrong.
data = batches(2)
said = run(2, {key: np.where(np.arange(len(array))[:, None] == 7 * 2 * ROWS + 1, np.float32(3e38), array) for key, array in data.items()}, f"-save={again}", "-steps=9",
           "-save-every=7", status=2)
check("the loss of step 7 is not finite" in said, said)
check(os.listdir(again) and max(name for name in os.listdir(again) if name.startswith("step-")) == "step-00000007", str(os.listdir(again)))
# A gradient that overflows on one rank behind the freeze, of a finite loss: none of it goes into what is saved.
flat = small.write(os.path.join(folder, "flat.onnx"), [node("MatMul", "x a", "h"), node("Mul", "h h", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                   [value("x", (1, 16))], [initializer("a", np.full((16, 8), 1e-20, np.float32))])
rows = {"x": np.random.default_rng(3).normal(0, 1e10, (2 * 9, 16)).astype(np.float32)}
rows["x"][2 * 7 + 1] = 1e30
ended = os.path.join(folder, "ended")
said = small.train(dsopt, flat, rows, "-optimizer=onebit-adam", "-freeze-step=5", "-dp=2", "-micro-batches=1", "-steps=9", "-lr=1e-22", "-quiet", f"-save={ended}",
                   "-save-every=1", "-save-keep=9", status=2)
check("the gradient of parameter 'a' is not finite in step 7 (stage 0); the run ends before anything of it is saved" in said, said)
check(max(os.listdir(ended)) == "step-00000007", str(os.listdir(ended)))
# In fp16 ranks skip such a step alike: weights, moments and what was left out stay.
saved, scaling = os.path.join(folder, "skipped"), ["-precision=fp16", "-loss-scale-window=1", "-loss-scale-hysteresis=1", "-steps=10"]
scaled = [laid_out(layout, *scaling, *more) for layout, more in ((LAYOUTS[0], [f"-save={saved}", "-save-every=1", "-save-keep=10"]), (LAYOUTS[3], []))]
skipped = [step["step"] for step in scaled[0].steps if step["skipped"]]
check(skipped and min(skipped) > 2 and len({(one.hash, *one.loss_text) for one in scaled}) == 1, f"skipped {skipped}: {[one.hash for one in scaled]}")
folders = [os.path.join(saved, f"step-{step:08}") for step in (skipped[0], skipped[0] + 1)]
files = [{name for name in os.listdir(place) if name.endswith(".safetensors")} for place in folders]
check(files[0] == files[1] and any(name.startswith("optimizer") for name in files[0]), str(files))
for name in files[0]:
    before, after = (safetensors(os.path.join(place, name)) for place in folders)
    check(before.keys() == after.keys() and all(np.array_equal(before[key], after[key]) for key in before), f"a step that is skipped changes {name}")
for options, message in ((["-zero=3"], "-optimizer=onebit-adam does not go with -zero=3: ranks exchange whole momenta behind the freeze; expected -zero=0, 1 or 2"),
                         (["-accumulate=sharded"], "does not go with -accumulate=sharded: behind the freeze each rank has its own gradient whole; expected -accumulate=local"),
                         (["-zero=0", "-onebit-gather=parameters"], "-onebit-gather=parameters does not go with -zero=0: variances and masters are cut by stages 1 and 2"),
                         (["-zero=1", "-onebit-gather=parameters", "-offload-optimizer=cpu"], "-onebit-gather=parameters does not go with -offload-optimizer=cpu"),
                         (["-delayed-update=3"], "does not go with -delayed-update"), (["-offload-optimizer=nvme"], "does not go with -offload-optimizer=nvme"),
                         (["-eps=0"], "option -eps=0: -optimizer=onebit-adam divides by it"), (["-momentum=0.9"], "option -momentum has no meaning with -optimizer=onebit-adam"),
                         (["-optimizer=adam"], "-freeze-step=5 has no meaning with -optimizer=adam: expected -optimizer=onebit-adam")):
    said = run(2, data, *options, status=1)
    check(message in said, f"{options}: {said}")
said = small.train(dsopt, own, data, "-optimizer=onebit-adam", status=1)
check("-optimizer=onebit-adam needs -freeze-step=N" in said, said)
late, _ = small.train(dsopt, own, data, "-optimizer=onebit-adam", f"-freeze-step={FREEZE}", "-dp=2", "-micro-batches=1", "-steps=5")
check("-freeze-step=5 is not reached in 5 steps: all of them exchange gradients" in late.said, late.said)
shutil.rmtree(folder)
print("what goes wrong is named", flush=True)
