"""0/1 Adam: steps of all four kinds as plain numpy does them in double, for 1 to 8 ranks and sizes that do not divide; one result in all layouts
of equal ranks; saved and resumed where gradients are compressed and where ranks are apart; bytes between ranks; what it refuses.

usage: zeroone.py DSOPT [folder of the software device's libraries: then there alone]
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
folder = tempfile.mkdtemp(prefix="zeroone-")
FREEZE, STEPS = 18, 42
VAR_SCALER, LOCAL_SCALER, CLIPPER = 4, 3, 4

random = np.random.default_rng(11)
start = {"a": random.normal(0, 0.5, (7, 33)), "c": random.normal(0, 0.5, (33,)), "b": random.normal(0, 0.5, (33, 5))}
start = {key: array.astype(np.float32) for key, array in start.items()}
own = tanh_model.write(os.path.join(folder, "own.onnx"), start)


def batches(ranks):
    data = tanh_model.batches(STEPS, ranks)
    data["x"][:, 0] = 0 # so that a row of `a` has no gradient
    return data


class Exchange:
    """Ranks' values as signs, with what they leave out: of one bucket."""

    def __init__(self, ranks, padded, first, sizes):
        self.ranks, self.padded, self.first, self.sizes = ranks, padded, first, sizes
        self.clear()

    def clear(self):
        self.worker, self.server = np.zeros((self.ranks, self.padded)), np.zeros((self.ranks, self.padded // self.ranks))

    def flat(self, values):
        whole = np.zeros(self.padded)
        for key, begin in self.first.items():
            whole[begin:begin + self.sizes[key]] = values[key].ravel()
        return whole

    def mean(self, all_values, v, into):
        part, units = self.flat(v) > 0, np.split(np.arange(self.padded), self.ranks)
        packed, new = np.zeros((self.ranks, self.padded)), np.zeros(self.padded)
        for rank, values in enumerate(all_values):
            c = (self.flat(values) + self.worker[rank]) * part
            for unit in units:
                packed[rank, unit], self.worker[rank, unit] = compress(c[unit], part[unit])
        for rank, unit in enumerate(units):
            new[unit], self.server[rank] = compress((packed[:, unit].mean(0) + self.server[rank]) * part[unit], part[unit])
        for key, begin in self.first.items():
            into[key] = new[begin:begin + self.sizes[key]].reshape(v[key].shape)


def reference(data, ranks, rates, decay, steps=STEPS, scales={}, beta1=0.9, beta2=0.999, eps=1e-8):
    """DeepSpeed's ZeroOneAdam as its counters run, but that bias is corrected and ranks add their ways to the point they have in common. Returns that point, and kinds of steps."""
    p = {key: array.astype(np.float64) for key, array in start.items()}

    def zeros():
        return {key: np.zeros(array.shape) for key, array in start.items()}

    m, v = zeros(), zeros()
    exchanges = [Exchange(ranks, padded, first, {key: start[key].size for key in start}) for padded, first in buckets(dsopt, own, ranks)]
    own_m, u, sum_of_rates = None, [zeros() for _ in range(ranks)], 0.0
    var_interval, var_counter, local_interval, local_counter, kinds = 1, 0, 1, 0, []

    def exchange(all_values):
        mean = {}
        for one in exchanges:
            one.mean(all_values, v, mean)
        return mean

    # Parameters may have rates of their own, and a bias no decay.
    scale = {key: scales.get(key, 1.0) for key in p}
    updates = 0 # of v

    def root(key):
        return np.sqrt(v[key] / (1 - beta2 ** updates)) + eps

    decay = {key: 0.0 if scales and p[key].ndim == 1 else decay for key in p}
    for step in range(steps):
        t, lr, parts = step + 1, {key: rates[step] * scale[key] for key in p}, []
        for rank in range(ranks):
            rows = slice((step * ranks + rank) * ROWS, (step * ranks + rank + 1) * ROWS)
            here = {key: p[key] + u[rank][key] for key in p}
            parts.append(gradients(here, data["x"][rows].astype(np.float64), data["y"][rows].astype(np.float64)))
        if t <= FREEZE:
            whole = t % var_interval == 0
            updates += whole
            g = {key: sum(part[key] for part in parts) / ranks for key in p} if whole else exchange(parts)
            for key in p:
                m[key] = beta1 * m[key] + (1 - beta1) * g[key]
                if whole:
                    v[key] = beta2 * v[key] + (1 - beta2) * g[key] * g[key]
                moved = m[key] / (1 - beta1 ** t) / root(key) + decay[key] * p[key]
                p[key] = p[key] - lr[key] * (moved if whole else np.where(v[key] > 0, moved, 0))
            kinds.append("whole" if whole else "compressed")
            if whole:
                var_counter += 1
                if var_counter == VAR_SCALER:
                    var_counter, var_interval = 0, 2 * var_interval
            continue
        if t == FREEZE + 1:
            own_m = [{key: m[key].copy() for key in m} for _ in range(ranks)]
            for one in exchanges:
                one.clear()
        sum_of_rates += rates[step]
        for rank in range(ranks):
            for key in p:
                own_m[rank][key] = beta1 * own_m[rank][key] + (1 - beta1) * parts[rank][key]
                moved = own_m[rank][key] / root(key) + decay[key] * (p[key] + u[rank][key])
                u[rank][key] = u[rank][key] - lr[key] * np.where(v[key] > 0, moved, 0)
        joins = t % local_interval == 0
        kinds.append("join" if joins else "local")
        if joins:
            mean = exchange([{key: u[rank][key] * root(key) for key in p} for rank in range(ranks)])
            own_m = [{key: -mean[key] / (sum_of_rates * scale[key]) for key in p} for _ in range(ranks)]
            p = {key: p[key] + mean[key] / root(key) for key in p}
            u, sum_of_rates = [zeros() for _ in range(ranks)], 0.0
        local_counter += 1
        if local_counter == LOCAL_SCALER:
            local_counter, local_interval = 0, min(CLIPPER, 2 * local_interval)
    return p, kinds


OPTIONS = ["-optimizer=zero-one-adam", f"-freeze-step={FREEZE}", f"-var-update-scaler={VAR_SCALER}", f"-local-step-scaler={LOCAL_SCALER}",
           f"-local-step-clipper={CLIPPER}"]


def run(ranks, data, *options, **keywords):
    return small.train(dsopt, own, data, *OPTIONS, f"-dp={ranks}", "-micro-batches=1", "-quiet", "-threads=1", *options, **keywords)


def compare(name, log, weights, data, ranks, decay, steps=STEPS, scales={}):
    want, kinds = reference(data, ranks, [step["lr"] for step in log.steps], decay, steps, scales)
    apart = max(np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key])) for key in want)
    moved = min(np.max(np.abs(want[key] - start[key])) for key in want)
    check(apart < 1e-6 < moved, f"{name}: {apart} off, moved by {moved}")
    return apart, kinds


if len(sys.argv) > 2:
    # On GPUs, which have orders of their own for sums: as close, and one result in all layouts.
    data, found, steps = batches(2), set(), 25
    os.environ.update(LD_LIBRARY_PATH=sys.argv[2], SOFT_DEVICE="seed=1")
    for options in ([], ["-pp=2", "-zero=1"], ["-offload-optimizer=cpu"]):
        log, weights = run(2, data, "-target=cuda", "-arch=sm_80", f"-steps={steps}", "-lr=0.001", *options)
        found.add((log.hash, *log.loss_text))
    apart, _ = compare("on GPUs", log, weights, data, 2, 0, steps)
    check(len(found) == 1, f"on GPUs: {found}")
    print(f"on GPUs: {apart:.1e} of the largest weight off, one result in all layouts")
    sys.exit()

for ranks in sampled((3, 1, 2, 4, 8), 2):
    data = batches(ranks)
    for options, decay, scales in (([], 0, {}), (["-weight-decay=0.1", "-lr-schedule=linear", "-no-decay=rank1", "-lr-scale=b=0.5"], 0.1, {"b": 0.5})):
        if decay and ranks not in (2, 3):
            continue
        log, weights = run(ranks, data, f"-steps={STEPS}", "-lr=0.001", *options)
        apart, kinds = compare(f"{ranks} ranks, {options}", log, weights, data, ranks, decay, scales=scales)
        counts = {kind: kinds.count(kind) for kind in ("whole", "compressed", "local", "join")}
        check(min(counts.values()) > 3 and kinds[-1] == "local", str(kinds))
        print(f"{ranks} ranks: {counts}, {apart:.1e} of the largest weight off", flush=True)

# One result in all layouts of equal ranks, in each computation.
LAYOUTS = (["-dp=2"], ["-dp=2", "-zero=1", "-threads=2"], ["-dp=2", "-zero=2", "-recompute=full"], ["-dp=2", "-zero=2", "-pp=2"],
           ["-dp=2", "-zero=1", "-pp=2", "-offload-optimizer=cpu", "-offload-ratio=0.5"], ["-dp=2", "-offload-optimizer=cpu", "-offload-activations=cpu"])
# Kinds of steps: whole 1, 2, 4; compressed 3, 5; joining 6, 8, 12; local 7, 9, 10, 11.
SMALL = ["-optimizer=zero-one-adam", "-freeze-step=5", "-var-update-scaler=1", "-local-step-scaler=1", "-local-step-clipper=4"]
LAST = 14


def laid_out(layout, *options, **keywords):
    return train(dsopt, "gpt2-toy", *SMALL, "-micro-batches=2", "-reduction-shards=4", "-lr=0.0002", "-weight-decay=0.1", *layout, *options, **keywords)


hashes, straight = {}, {}
for computation in ((), ("-precision=bf16", "-grad-clip=0.5"), *sampled((("-precision=fp16",), ("-precision=bf16", "-gradient-type=param")), 1)):
    for layout in sampled(LAYOUTS, 4) if not computation else (LAYOUTS[0], LAYOUTS[4]):
        run_ = laid_out(layout, f"-steps={LAST}", *computation)
        hashes.setdefault(computation, {})[tuple(layout)] = (run_.hash, *run_.loss_text)
        straight[computation] = run_.hash
hashes[()]["mpi"] = (lambda run_: (run_.hash, *run_.loss_text))(laid_out(LAYOUTS[0], f"-steps={LAST}", prefix=[*MPIRUN, "2"]))
# As on two hosts: over TCP.
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = str(probe.getsockname()[1])
path, data = model("gpt2-toy")
log = os.path.join(folder, "tcp.jsonl")
hosts = [subprocess.Popen([dsopt, path, "-run", f"-data={data}", "-insecure", *SMALL, "-micro-batches=2", "-reduction-shards=4", "-lr=0.0002", "-weight-decay=0.1",
                           "-dp=2", f"-steps={LAST}", f"-log={log}", "-quiet"],
                          env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port, DSOPT_HOST=f"h{rank}"))
         for rank in range(2)]
check([one.wait() for one in hosts] == [0, 0], "ranks of two hosts")
check(Run(log).head["engine"] == "TCP", Run(log).head["engine"])
hashes[()]["tcp"] = (Run(log).hash, *Run(log).loss_text)
check(all(len(set(found.values())) == 1 for found in hashes.values()), str(hashes))
print(f"{sum(map(len, hashes.values()))} layouts of {len(hashes)} computations, one hash each", flush=True)

# What ranks have of their own is saved of each: the bits go on in all layouts of equal ranks.
for computation, first in (((), [*LAYOUTS[3], "-save-async"]), (("-precision=bf16", "-grad-clip=0.5"), LAYOUTS[0])):
    saved = os.path.join(folder, "saved" + str(len(computation)))
    laid_out(first, f"-steps={LAST - 3}", *computation, f"-save={saved}", "-save-every=1", "-save-keep=99")
    resumes = ((6, LAYOUTS[3]), (1, LAYOUTS[0]), (3, LAYOUTS[4]), (5, LAYOUTS[0]), (7, LAYOUTS[5]), (9, LAYOUTS[3]), (10, LAYOUTS[4]), (11, LAYOUTS[0]))
    for step, layout in sampled(resumes, 3):
        resumed = laid_out(layout, f"-steps={LAST}", *computation, f"-resume={saved}/step-{step:08}")
        check(resumed.hash == straight[computation], f"{computation}: resumed after {step} steps as {layout}: {resumed.hash}, expected {straight[computation]}")
saved = os.path.join(folder, "saved0")


def states(step):
    found = {}
    for file in os.listdir(os.path.join(saved, f"step-{step:08}")):
        if file.startswith("optimizer"):
            found.update(safetensors(os.path.join(saved, f"step-{step:08}", file)))
    return {re.search(r"\.(m|v|u|server_error|worker_error)(\.\d)?$", name).group(0) for name in found}


together, errors = {".m", ".v"}, {".server_error", ".worker_error.0", ".worker_error.1"}
check(states(3) == together | errors and states(8) == together | errors, f"saved where ranks are together: {states(3)}, {states(8)}")
check(states(10) == {".m.0", ".m.1", ".u.0", ".u.1", ".v"} | errors, f"saved where they are apart: {states(10)}")
# Other ranks go on with the mean of what each had, or not at all.
other = [*SMALL, "-lr=0.0002", "-weight-decay=0.1", "-dp=1", "-micro-batches=4", f"-resume={saved}/step-00000010"]
path, data = model("gpt2-toy")
said = execute([dsopt, path, "-run", f"-data={data}", *other, "-steps=12"], status=1).stderr
check("which 1 cannot go on with: expected -dp=2, or -resume-new-batch" in said, said)
folded = train(dsopt, "gpt2-toy", *other, "-resume-new-batch", f"-steps={LAST}")
check(relative(folded.losses[-1], float(hashes[()][tuple(LAYOUTS[0])][-1])) < 0.02, f"folded: {folded.losses}")
for old, new in (("freeze-step=5", "freeze-step=6"), ("local-step-clipper=4", "local-step-clipper=8")):
    said = execute([dsopt, path, "-run", f"-data={data}", *[word.replace(old, new) for word in other if not word.startswith("-dp")], "-dp=2", "-micro-batches=2", "-steps=12"], status=1).stderr
    check(f"was written with -{old} after 10 applied steps, got -{new}" in said, said)
print("saved and resumed in all kinds of steps, by other ranks with the mean", flush=True)

# Bytes between ranks, counted, and planned: one parameter of 1 Mi elements, 8 ranks.
wide = small.write(os.path.join(folder, "wide.onnx"),
                   [node("MatMul", "x a", "h"), node("Mul", "h h", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                   [value("x", (1, 1024))], [initializer("a", random.normal(0, 0.02, (1024, 1024)).astype(np.float32))])
rows = {"x": random.normal(0, 1, (8 * 8, 1024)).astype(np.float32)}
words = [*SMALL, "-dp=8", "-micro-batches=1", "-threads=1"]
counted, _ = small.train(dsopt, wide, rows, *words, "-steps=8", "-quiet", "-lr=0.0001")
sent = [max(step["sent_bytes"]) for step in counted.steps]
whole, compressed, joined, local = sent[0], sent[2], sent[5], sent[6]
check(sent == [whole, whole, compressed, whole, compressed, joined, local, joined] and compressed == joined, f"bytes a step: {sent}")
check(whole / compressed > 31.8 and local < 1000, f"bytes a step: {sent}")
plan = json.loads(execute([dsopt, wide, "-plan=json", *words]).stdout)
check({**plan["local_steps"]["sent"], "mean": 0} == {"whole": whole, "compressed": compressed, "local": local, "join": joined, "mean": 0}, f"{plan['local_steps']}: {sent}")
for rank, entry in enumerate(plan["ranks"]):
    peak, total = counted.steps[-1]["peak_bytes"][rank], entry["memory"]["total"]
    check(peak == total, f"rank {rank} maps {peak} bytes, planned {total}")
print(f"8 ranks, 1 Mi elements: {whole} bytes of a whole step, {compressed} of a compressed one and of one that joins, {local} of a local one", flush=True)

# What goes wrong. A gradient that overflows on one rank, of a finite loss: none of it goes into what is saved.
flat = small.write(os.path.join(folder, "flat.onnx"), [node("MatMul", "x a", "h"), node("Mul", "h h", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                   [value("x", (1, 16))], [initializer("a", np.full((16, 8), 1e-20, np.float32))])
for bad, kind in ((2, "compressed"), (4, "compressed"), (5, "join"), (6, "local")):
    rows = {"x": np.random.default_rng(3).normal(0, 1e10, (2 * 9, 16)).astype(np.float32)}
    rows["x"][2 * bad + 1] = 1e30
    ended = os.path.join(folder, f"ended{bad}")
    said = small.train(dsopt, flat, rows, *SMALL, "-dp=2", "-micro-batches=1", "-steps=9", "-lr=1e-22", "-quiet", f"-save={ended}", "-save-every=1", "-save-keep=9", status=2)
    check(f"the gradient of parameter 'a' is not finite in step {bad} (stage 0); the run ends before anything of it is saved" in said, f"{kind}: {said}")
    check(max(os.listdir(ended)) == f"step-{bad:08}", str(os.listdir(ended)))
# In fp16 ranks skip such a step alike, and it does not count: weights, moments, ways and what was left out stay.
saved, scaling = os.path.join(folder, "skipped"), ["-precision=fp16", "-loss-scale-window=1", "-loss-scale-hysteresis=1", "-steps=16"]
scaled = [laid_out(layout, *scaling, *more) for layout, more in ((LAYOUTS[0], [f"-save={saved}", "-save-every=1", "-save-keep=16"]), (LAYOUTS[3], []))]
skipped = [step["step"] for step in scaled[0].steps if step["skipped"]]
check(len(skipped) > 2 and len({(one.hash, *one.loss_text) for one in scaled}) == 1, f"skipped {skipped}: {[one.hash for one in scaled]}")
for step in skipped:
    folders = [os.path.join(saved, f"step-{at:08}") for at in (step, step + 1)]
    if not os.path.isdir(folders[0]):
        continue
    files = [{name for name in os.listdir(place) if name.endswith(".safetensors")} for place in folders]
    check(files[0] == files[1] and any(name.startswith("optimizer") for name in files[0]), str(files))
    for name in files[0]:
        before, after = (safetensors(os.path.join(place, name)) for place in folders)
        check(before.keys() == after.keys() and all(np.array_equal(before[key], after[key]) for key in before), f"step {step}, which is skipped, changes {name}")
data = batches(2)
for options, message in ((["-zero=3"], "-optimizer=zero-one-adam does not go with -zero=3"), (["-accumulate=sharded"], "does not go with -accumulate=sharded"),
                         (["-delayed-update=3"], "does not go with -delayed-update"), (["-offload-optimizer=nvme"], "does not go with -offload-optimizer=nvme"),
                         (["-eps=0"], "option -eps=0: -optimizer=zero-one-adam divides by it"),
                         (["-momentum=0.9"], "option -momentum has no meaning with -optimizer=zero-one-adam"),
                         (["-compress-gradients=onebit"], "-compress-gradients=onebit does not go with -optimizer=zero-one-adam"),
                         (["-optimizer=onebit-adam"], "has no meaning with -optimizer=onebit-adam: expected -optimizer=zero-one-adam")):
    said = run(2, data, *options, status=1)
    check(message in said, f"{options}: {said}")
late, _ = small.train(dsopt, own, data, "-optimizer=zero-one-adam", "-dp=2", "-micro-batches=1", "-steps=5")
check("-freeze-step=100000 is not reached in 5 steps: none of them is local" in late.said, late.said)
shutil.rmtree(folder)
print("what goes wrong is named", flush=True)
