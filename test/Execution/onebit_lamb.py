"""1-bit LAMB: steps before and behind its freeze as plain numpy does them in double, for 1 to 8 ranks and sizes that do not divide;
one result in all layouts of equal ranks; saved and resumed behind the freeze; bytes planned and bytes between ranks; what it refuses.
On GPUs the same.

usage: onebit_lamb.py DSOPT numbers|layouts
       onebit_lamb.py DSOPT cuda LIBRARIES
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

dsopt, part, *libraries = sys.argv[1:]
folder = tempfile.mkdtemp(prefix="onebit-lamb-")
FREEZE, STEPS = 5, 25

# Of c, which starts as 0, the first ratio of norms is 1.
random = np.random.default_rng(13)
start = {"a": random.normal(0, 0.5, (7, 33)), "c": np.zeros(33), "b": random.normal(0, 0.5, (33, 5))}
start = {key: array.astype(np.float32) for key, array in start.items()}
own = tanh_model.write(os.path.join(folder, "own.onnx"), start)


def batches(ranks, silent=0, first=0):
    """`silent` steps' first columns of x from `first` on are 0: those rows of a have no gradient before the freeze."""
    data = tanh_model.batches(STEPS, ranks)
    data["x"][:silent * ranks * ROWS, first:] = 0
    return data


def norm(x):
    return np.sqrt((x * x).sum())


reached = set()  # bounds


def bounded(x, least, largest, name):
    if not least <= x <= largest:
        reached.add(f"{name} {'below' if x < least else 'above'}")
    return min(max(x, least), largest)


def reference(data, ranks, lr, decay, beta1=0.9, beta2=0.999, eps=1e-8, min_coeff=0.01, max_coeff=10, coeff_beta=0.9, factor_min=0.5, factor_max=4,
              factor_threshold=0.1):
    """Li et al. (2021) as DeepSpeed has it, with a bucket's slice as the unit of compression."""
    p = {key: array.astype(np.float64) for key, array in start.items()}
    m, v = ({key: np.zeros(array.shape) for key, array in start.items()} for _ in range(2))
    mean, last = {key: 0.0 for key in p}, {key: 1.0 for key in p}
    places = buckets(dsopt, own, ranks)
    worker = [np.zeros((ranks, padded)) for padded, _ in places]
    server = [np.zeros((ranks, padded // ranks)) for padded, _ in places]
    for step in range(STEPS):
        parts = []
        for rank in range(ranks):
            rows = slice((step * ranks + rank) * ROWS, (step * ranks + rank + 1) * ROWS)
            parts.append(gradients(p, data["x"][rows].astype(np.float64), data["y"][rows].astype(np.float64)))
        if step < FREEZE:
            for key in p:
                g = sum(part[key] for part in parts) / ranks
                m[key] = beta1 * m[key] + (1 - beta1) * g
                v[key] = beta2 * v[key] + (1 - beta2) * g * g
                update = m[key] / (np.sqrt(v[key]) + eps) + decay * p[key]
                coeff = bounded(norm(p[key]) / norm(update), min_coeff, max_coeff, "coeff") if norm(p[key]) and norm(update) else 1
                if coeff != 1:
                    mean[key] = coeff_beta * mean[key] + (1 - coeff_beta) * coeff
                p[key] = p[key] - lr * coeff * update
            continue
        if step == FREEZE:
            fresh = {key: one.copy() for key, one in v.items()}
            lengths = {key: norm(one) / np.sqrt(one.size) for key, one in m.items()}
            united = sum(lengths.values()) / len(lengths)
            scaling = {key: united / one if one else 1 for key, one in lengths.items()}
        before = {key: one.copy() for key, one in m.items()}
        for (padded, first), errors, own_errors in zip(places, worker, server):
            def flat(values):
                return np.concatenate([np.zeros(0)] + [np.pad(values[key].ravel(), (0, end - begin - values[key].size))
                                                       for key, begin, end in zip(first, first.values(), [*list(first.values())[1:], padded])])

            part = flat({key: v[key] for key in first}) > 0
            packed = np.zeros((ranks, padded))
            for rank in range(ranks):
                scaled = {key: (beta1 * m[key] + (1 - beta1) * parts[rank][key]) * scaling[key] for key in first}
                c = (flat(scaled) + errors[rank]) * part
                for unit in np.split(np.arange(padded), ranks):
                    packed[rank, unit], errors[rank, unit] = compress(c[unit], part[unit])
            new = np.zeros(padded)
            for rank, unit in enumerate(np.split(np.arange(padded), ranks)):
                new[unit], own_errors[rank] = compress((packed[:, unit].mean(0) + own_errors[rank]) * part[unit], part[unit])
            for key, begin in first.items():
                m[key] = new[begin:begin + m[key].size].reshape(m[key].shape) / scaling[key]
        for key in p:
            takes = v[key] > 0
            g = np.where(takes, (m[key] - beta1 * before[key]) / (1 - beta1), 0)
            fresh[key] = np.where(takes, beta2 * fresh[key] + (1 - beta2) * g * g, fresh[key])
            denominator = np.sqrt(v[key]) + eps
            alone = np.where(takes, m[key] / denominator, 0)
            update = np.where(takes, m[key] / denominator + decay * p[key], 0)
            factor = (denominator / (np.sqrt(fresh[key]) + eps))[takes].max() if takes.any() else 1
            if decay and takes.any():
                share = min(1, norm(alone) / norm(update))
                factor = factor * share + 1 - share
            factor = bounded(factor, factor_min, factor_max, "factor")
            last[key] = bounded(factor, last[key] * (1 - factor_threshold), last[key] * (1 + factor_threshold), "change")
            p[key] = p[key] - lr * mean[key] * last[key] * update
    return p


def run(ranks, data, *options, **keywords):
    return small.train(dsopt, own, data, "-optimizer=onebit-lamb", f"-freeze-step={FREEZE}", f"-dp={ranks}", "-micro-batches=1", "-quiet", "-threads=1",
                       *options, **keywords)


def numbers():
    cases = [(ranks, {}, {}, 0) for ranks in sampled((8, 1, 2, 3, 4), 1)]
    cases += [(2, {"decay": 0.1}, {}, 0), (3, {"decay": 0.5}, {}, 0),
              (2, {"decay": 0.1}, {"max_coeff": 0.95, "min_coeff": 0.8, "coeff_beta": 0.7, "factor_threshold": 0.002, "beta2": 0.95}, 0),
              (3, {}, {"factor_min": 0.995, "factor_max": 1.003, "eps": 1e-4, "beta1": 0.8, "beta2": 0.95}, 0),
              # A row, and a whole parameter, without gradients before the freeze.
              (2, {"decay": 0.1}, {}, 6), (3, {}, {}, 0.5)]
    for ranks, given, bounds, silent in cases:
        data = batches(ranks, FREEZE if silent else 0, int(silent))
        lr, decay = 1e-2, given.get("decay", 0)
        bounds = dict(bounds)
        betas = (bounds.get("beta1", 0.9), bounds.get("beta2", 0.999))
        words = [f"-{key.replace('_', '-')}={number}" for key, number in bounds.items() if not key.startswith("beta")] + [f"-betas={betas[0]},{betas[1]}"]
        _, weights = run(ranks, data, f"-steps={STEPS}", f"-lr={lr}", f"-weight-decay={decay}", *words)
        want = reference(data, ranks, lr, decay, **bounds)
        apart = max(np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key])) for key in want)
        moved = min(np.max(np.abs(want[key] - start[key])) for key in want if not (key == "a" and silent == 0.5))
        check(apart < 1e-6 < moved, f"{ranks} ranks, {given} {bounds} {silent}: {apart} off, moved by {moved}")
        print(f"{ranks} ranks {given} {bounds}: {FREEZE} steps and {STEPS - FREEZE} behind the freeze, {apart:.1e} of the largest weight off", flush=True)
    bounds = {f"{name} {side}" for name in ("coeff", "factor", "change") for side in ("below", "above")}
    check(reached == bounds, f"bounds that no case reaches: {sorted(bounds - reached)}")

    # Bytes between ranks, counted: one parameter of 1 Mi elements, 8 ranks.
    wide = small.write(os.path.join(folder, "wide.onnx"),
                       [node("MatMul", "x a", "h"), node("Mul", "h h", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                       [value("x", (1, 1024))], [initializer("a", random.normal(0, 0.02, (1024, 1024)).astype(np.float32))])
    rows = {"x": random.normal(0, 1, (4 * 8, 1024)).astype(np.float32)}
    sent = {}
    for optimizer in ("onebit-adam", "onebit-lamb"):
        counted, _ = small.train(dsopt, wide, rows, f"-optimizer={optimizer}", "-freeze-step=2", "-dp=8", "-micro-batches=1", "-steps=4", "-quiet", "-threads=1",
                                 "-lr=0.0001")
        sent[optimizer] = [max(step["sent_bytes"]) for step in counted.steps]
    ratio = sent["onebit-lamb"][1] / sent["onebit-lamb"][3]
    check(sent["onebit-adam"] == sent["onebit-lamb"] and ratio > 31.8, f"bytes a step: {sent}")
    print(f"8 ranks, 1 Mi elements: {sent['onebit-lamb'][1]} bytes a step before the freeze, {sent['onebit-lamb'][3]} behind it, {ratio:.2f} x less", flush=True)

    # What goes wrong. A gradient that overflows on one rank behind the freeze, of a finite loss: none of it goes into what is saved.
    flat = small.write(os.path.join(folder, "flat.onnx"), [node("MatMul", "x a", "h"), node("Mul", "h h", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                       [value("x", (1, 16))], [initializer("a", np.full((16, 8), 1e-20, np.float32))])
    rows = {"x": np.random.default_rng(3).normal(0, 1e10, (2 * 9, 16)).astype(np.float32)}
    rows["x"][2 * 7 + 1] = 1e30
    ended = os.path.join(folder, "ended")
    said = small.train(dsopt, flat, rows, "-optimizer=onebit-lamb", "-freeze-step=5", "-dp=2", "-micro-batches=1", "-steps=9", "-lr=1e-21", "-quiet", f"-save={ended}",
                       "-save-every=1", "-save-keep=9", status=2)
    check("the gradient of parameter 'a' is not finite in step 7 (stage 0); the run ends before anything of it is saved" in said, said)
    check(max(os.listdir(ended)) == "step-00000007", str(os.listdir(ended)))
    data = batches(2)
    for options, message in ((["-zero=3"], "-optimizer=onebit-lamb does not go with -zero=3: ranks exchange whole momenta behind the freeze; expected -zero=0, 1 or 2"),
                             (["-accumulate=sharded"], "-optimizer=onebit-lamb does not go with -accumulate=sharded"),
                             (["-delayed-update=3"], "does not go with -delayed-update"), (["-offload-optimizer=nvme"], "does not go with -offload-optimizer=nvme"),
                             (["-offload-params=cpu"], "does not go with -offload-params=cpu"),
                             (["-compress-gradients=onebit"], "-compress-gradients=onebit does not go with -optimizer=onebit-lamb"),
                             (["-precision=fp16", "-gradient-type=param"], "works in the gradients' place: expected -gradient-type=fp32, got param"),
                             (["-eps=0"], "option -eps=0: -optimizer=onebit-lamb divides by it"), (["-momentum=0.9"], "option -momentum has no meaning with -optimizer=onebit-lamb"),
                             (["-coeff-beta=1"], "option -coeff-beta=1: expected a number from 0 to below 1"),
                             (["-factor-min=5"], "option -factor-min=5: expected at most -factor-max=4"),
                             (["-min-coeff=11"], "option -min-coeff=11: expected at most -max-coeff=10")):
        said = run(2, data, *options, status=1)
        check(message in said, f"{options}: {said}")
    said = small.train(dsopt, own, data, "-optimizer=onebit-lamb", status=1)
    check("-optimizer=onebit-lamb needs -freeze-step=N" in said, said)
    said = small.train(dsopt, own, data, "-optimizer=lamb", "-max-coeff=3", "-micro-batches=1", status=1)
    check("option -max-coeff has no meaning with -optimizer=lamb: expected -optimizer=onebit-lamb" in said, said)
    print("what goes wrong is named", flush=True)


# One result in all layouts of equal ranks, in each computation.
LAYOUTS = (["-dp=2"], ["-dp=2", "-zero=1", "-threads=2"], ["-dp=2", "-zero=2", "-recompute=full"], ["-dp=2", "-zero=2", "-pp=2"],
           ["-dp=2", "-zero=1", "-pp=2", "-offload-optimizer=cpu", "-offload-ratio=0.5"], ["-dp=2", "-offload-optimizer=cpu", "-offload-activations=cpu"])
SAME = ["-optimizer=onebit-lamb", "-freeze-step=2", "-micro-batches=2", "-reduction-shards=4", "-lr=0.01", "-weight-decay=0.1", "-no-decay=rank1"]


def laid_out(layout, *options, **keywords):
    return train(dsopt, "gpt2-toy", *SAME, *layout, *options, **keywords)


def layouts():
    path, data = model("gpt2-toy")
    hashes = {}
    for computation in sampled(((), ("-precision=bf16", "-grad-clip=0.5"), ("-precision=fp16",)), 2):
        for layout in sampled(LAYOUTS, 4) if not computation else (LAYOUTS[0], LAYOUTS[4]):
            run_ = laid_out(layout, "-steps=6", *computation)
            hashes.setdefault(computation, {})[tuple(layout)] = (run_.hash, *run_.loss_text)
    hashes[()]["mpi"] = (lambda run_: (run_.hash, *run_.loss_text))(laid_out(LAYOUTS[0], "-steps=6", prefix=[*MPIRUN, "2"]))
    # As on two hosts: over TCP.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    log = os.path.join(folder, "tcp.jsonl")
    apart = [subprocess.Popen([dsopt, path, "-run", f"-data={data}", "-insecure", *SAME, "-dp=2", "-steps=6", f"-log={log}", "-quiet"],
                              env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port, DSOPT_HOST=f"h{rank}"))
             for rank in range(2)]
    check([one.wait() for one in apart] == [0, 0] and Run(log).head["engine"] == "TCP", "ranks of two hosts")
    hashes[()]["tcp"] = (Run(log).hash, *Run(log).loss_text)
    check(all(len(set(found.values())) == 1 for found in hashes.values()), json.dumps({str(key): {str(layout): got for layout, got in found.items()}
                                                                                      for key, found in hashes.items()}, indent=1))
    check(len({next(iter(found.values())) for found in hashes.values()}) == len(hashes), str(hashes))
    print(f"{sum(map(len, hashes.values()))} layouts of {len(hashes)} computations, one hash each", flush=True)

    # What was planned is what a run has.
    for layout in sampled((LAYOUTS[4], LAYOUTS[3]), 1):
        plan = json.loads(execute([dsopt, path, *SAME, *layout, "-plan=json"]).stdout)
        run_ = laid_out(layout, "-steps=3")
        for what, planned in (("peak_bytes", [rank["memory"]["total"] for rank in plan["ranks"]]),
                              ("sent_bytes", [sum(rank["traffic"].values()) for rank in plan["ranks"]])):
            check(planned == run_.steps[-1][what], f"{layout}: {what} planned {planned}, has {run_.steps[-1][what]}")

    # Behind the freeze all of it is saved: the bits go on in all layouts of equal ranks.
    saved = os.path.join(folder, "saved")
    laid_out(LAYOUTS[3], "-steps=4", f"-save={saved}", "-save-every=1", "-save-keep=9")

    def states(step):
        found = {}
        for file in os.listdir(os.path.join(saved, f"step-{step:08}")):
            if file.startswith("optimizer"):
                found.update(safetensors(os.path.join(saved, f"step-{step:08}", file)))
        return found

    def kinds(step):
        return {re.search(r"\.(m|v|v_fresh|coefficients|server_error|worker_error\.\d)$", name).group(1) for name in states(step)}

    check(kinds(2) == {"m", "v", "v_fresh", "coefficients"}, f"saved before the freeze: {kinds(2)}")
    check(kinds(3) == {"m", "v", "v_fresh", "coefficients", "server_error", "worker_error.0", "worker_error.1"}, f"saved behind it: {kinds(3)}")
    numbers = {name: array for name, array in states(4).items() if name.endswith(".coefficients")}
    check(all(array.shape == (3,) and array.min() > 0 for array in numbers.values()) and len({float(array[2]) for array in numbers.values()}) > 10, str(numbers))
    for step, layout in sampled(((3, LAYOUTS[4]), (1, LAYOUTS[0]), (2, LAYOUTS[0]), (4, LAYOUTS[0]), (4, LAYOUTS[5]), (4, LAYOUTS[3])), 3):
        resumed = laid_out(layout, "-steps=6", f"-resume={saved}/step-{step:08}")
        check(resumed.hash == hashes[()][tuple(LAYOUTS[0])][0], f"resumed after {step} steps as {layout}: {resumed.hash}")
    # Other ranks go on with the mean of the workers' errors, or not at all.
    other = [*SAME[:2], *SAME[4:], "-dp=1", "-micro-batches=4", f"-resume={saved}/step-00000004"]
    said = execute([dsopt, path, "-run", f"-data={data}", *other, "-steps=6"], status=1).stderr
    check("left out, which 1 cannot go on with: expected -dp=2, or -resume-new-batch" in said, said)
    folded = train(dsopt, "gpt2-toy", *other, "-resume-new-batch", "-steps=6")
    plain = train(dsopt, "gpt2-toy", "-optimizer=lamb", *SAME[2:], "-dp=2", "-steps=6")
    check(relative(folded.losses[-1], plain.losses[-1]) < 0.05, f"folded errors: {folded.losses}, LAMB {plain.losses}")
    said = execute([dsopt, path, "-run", f"-data={data}", *SAME, "-optimizer=onebit-adam", "-dp=2", f"-resume={saved}/step-00000004", "-steps=6"], status=1).stderr
    check("was written with -optimizer=onebit-lamb" in said, said)
    print("saved behind the freeze and resumed, by other ranks with the mean of errors", flush=True)

    # In fp16 ranks skip steps that overflow alike: weights, moments, coefficients and what was left out stay.
    saved, scaling = os.path.join(folder, "skipped"), ["-precision=fp16", "-loss-scale-window=1", "-loss-scale-hysteresis=1", "-steps=10"]
    scaled = [laid_out(layout, *scaling, *more) for layout, more in ((LAYOUTS[0], [f"-save={saved}", "-save-every=1", "-save-keep=10"]), (LAYOUTS[3], []))]
    skipped = [step["step"] for step in scaled[0].steps if step["skipped"]]
    check(skipped and min(skipped) > 2 and len({(one.hash, *one.loss_text) for one in scaled}) == 1, f"skipped {skipped}: {[one.hash for one in scaled]}")

    def unchanged(saved, step):
        places = [os.path.join(saved, f"step-{number:08}") for number in (step, step + 1)]
        for name in {name for name in os.listdir(places[0]) if name.endswith(".safetensors")}:
            before, after = (safetensors(os.path.join(place, name)) for place in places)
            check(before.keys() == after.keys() and all(np.array_equal(before[key], after[key]) for key in before), f"step {step}, which is skipped, changes {name}")

    unchanged(saved, skipped[0])
    early = os.path.join(folder, "early")
    first = laid_out(LAYOUTS[0], "-precision=fp16", "-initial-scale-power=26", "-loss-scale-hysteresis=1", "-steps=3", f"-save={early}", "-save-every=1", "-save-keep=3")
    check([step["skipped"] for step in first.steps] == [True] * 3, str(first.steps))
    unchanged(early, 1)
    print("steps that overflow in fp16 change nothing", flush=True)


def cuda():
    """Devices have orders of their own for sums of gradients, but take coefficients to the bits of the host, which takes them where the optimizer is
    offloaded."""
    os.environ.update(LD_LIBRARY_PATH=libraries[0], SOFT_DEVICE="seed=1")
    placed = ([], ["-zero=2"], ["-pp=2", "-zero=1"], ["-offload-optimizer=cpu"], ["-pp=2", "-offload-optimizer=cpu", "-offload-ratio=0.5"])

    def same(data, options, layouts, steps=STEPS):
        """The first of runs that have one result."""
        options = ["-target=cuda", "-arch=sm_80", "-lr=0.01", f"-steps={steps}", *options]
        runs = [run(2, data, *options, *layout) for layout in layouts]
        found = {(log.hash, *log.loss_text) for log, _ in runs}
        check(len(found) == 1, f"on GPUs, {options}: {found}")
        return runs[0]

    # Bounds; a row, and a whole parameter, without gradients before the freeze.
    cases = ((0.1, {}, 0, placed),
             (0.1, {"max_coeff": 0.95, "min_coeff": 0.8, "coeff_beta": 0.7, "factor_threshold": 0.002, "beta2": 0.95}, 6, placed[::3]),
             (0, {"factor_min": 0.995, "factor_max": 1.003, "eps": 1e-4, "beta2": 0.95}, 0, placed[::3]), (0, {}, 0.5, placed[::3]))
    for decay, bounds, silent, layouts in sampled(cases, 2):
        layouts = sampled(layouts, 2)
        data = batches(2, FREEZE if silent else 0, int(silent))
        words = [f"-{key.replace('_', '-')}={number}" for key, number in bounds.items() if key != "beta2"]
        _, weights = same(data, [f"-weight-decay={decay}", f"-betas=0.9,{bounds.get('beta2', 0.999)}", *words], layouts)
        want = reference(data, 2, 1e-2, decay, **bounds)
        apart = max(np.max(np.abs(weights[key] - want[key])) / np.max(np.abs(want[key])) for key in want)
        check(apart < 1e-6, f"on GPUs, {decay} {bounds} {silent}: {apart} off")
        print(f"on GPUs, {decay} {bounds} {silent}: {apart:.1e} of the largest weight off, one result in {len(layouts)} layouts", flush=True)

    # In less, where the first steps overflow, and some behind the freeze: factors, which are on their way, stay where they are.
    data = batches(2)
    same(data, ["-weight-decay=0.1", "-precision=bf16", "-grad-clip=0.5"], placed[1::2])
    log, _ = same(data, ["-weight-decay=0.1", "-factor-threshold=0.001", "-precision=fp16", "-initial-scale-power=26", "-loss-scale-window=1",
                         "-loss-scale-hysteresis=1"], placed[::3])
    skipped = [step["step"] for step in log.steps if step["skipped"]]
    check(skipped[0] == 0 and skipped[-1] - len(skipped) > FREEZE, f"skipped {skipped}")

    # Saved by devices, before the freeze and behind it, and resumed where the host takes the coefficients; and the other way.
    for writer, reader in sampled(((placed[0], placed[4]), (placed[3], placed[2])), 1):
        saved = os.path.join(folder, "devices" + str(len(writer)))
        whole = same(data, ["-weight-decay=0.1", f"-save={saved}", "-save-every=1", "-save-keep=9"], [writer], 9)[0].hash
        for step in sampled((7, 3, FREEZE), 2):
            resumed = same(data, ["-weight-decay=0.1", f"-resume={saved}/step-{step:08}"], [reader], 9)[0].hash
            check(resumed == whole, f"saved by {writer}, resumed after {step} steps as {reader}: {resumed}, expected {whole}")

    # What was planned is what a run has.
    path, _ = model("gpt2-toy")
    for layout in sampled((LAYOUTS[4], LAYOUTS[3]), 1):
        plan = json.loads(execute([dsopt, path, *SAME, *layout, "-target=cuda", "-arch=sm_80", "-plan=json"]).stdout)
        run_ = laid_out(layout, "-target=cuda", "-arch=sm_80", "-steps=3")
        for what, planned in (("peak_bytes", [rank["memory"]["total"] for rank in plan["ranks"]]),
                              ("sent_bytes", [sum(rank["traffic"].values()) for rank in plan["ranks"]])):
            check(planned == run_.steps[-1][what], f"{layout} on GPUs: {what} planned {planned}, has {run_.steps[-1][what]}")
    print("on GPUs: saved and resumed, in bf16 and fp16, and as planned", flush=True)


{"numbers": numbers, "layouts": layouts, "cuda": cuda}[part]()
shutil.rmtree(folder)
