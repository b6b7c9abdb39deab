"""Optimizer state and parameters in the host's memory: the bits of a run that keeps them on the device, in the bytes that
were planned of each memory; saved, resumed, recomputed, in part.

usage: offload.py DSOPT
"""
import json
import os
import sys
import tempfile

from runs import check, execute, model, train
from sampled import sampled

dsopt = sys.argv[1]
LAYOUTS = ([], ["-dp=2"], ["-zero=1", "-dp=2"], ["-zero=2", "-dp=2", "-grad-clip=1"], ["-zero=3"], ["-zero=3", "-dp=2", "-gather-window=2"],
           ["-zero=3", "-dp=2", "-pp=2", "-recompute=full"],
           ["-pp=2", "-schedule=gpipe", "-grad-clip=1"])
KINDS = {"device": "arena_bytes", "host": "host_bytes"}


def planned(name, *options, status=0):
    path, data = model(name)
    done = execute([dsopt, path, f"-data={data}", "-plan=json", *options], status)
    return json.loads(done.stdout)["ranks"] if status == 0 else done.stderr


def bytes_of(rank, kind):
    return sum(memory["bytes"] for memory in rank["memories"] if memory["kind"] == kind)


for name, optimizer, states in sampled((("gpt2-toy", "adamw", 2), ("mlp", "sgd", 1), ("resnet-tiny", "adam", 2)), 2):
    hashes = {}
    # One model in all layouts, the others where they differ most.
    layouts = [*sampled(LAYOUTS[:-2], 1), *sampled(LAYOUTS[-2:], 1)] if name == "gpt2-toy" else sampled(LAYOUTS[-2:], 1)
    for layout in layouts:
        for precision in ("fp32", "bf16"):
            dp = 2 if "-dp=2" in layout else 1
            options = [*layout, f"-precision={precision}", f"-optimizer={optimizer}", f"-micro-batches={4 // dp}", "-reduction-shards=2", "-prefetch=1",
                       "-accumulate=local", *(["-momentum=0.9"] if optimizer == "sgd" else [])]
            kept = planned(name, *options)
            for ratio in ("0", "0.5", *(["parameters"] if "-zero=3" in layout else [])):
                offload = [*options, "-offload-optimizer=cpu", "-offload-params=cpu" if ratio == "parameters" else f"-offload-ratio={ratio}"]
                budget = max(bytes_of(rank, "device") for rank in planned(name, *offload))
                # Ranks that need less than the largest may get some more of what there is.
                plan = planned(name, *offload, f"-device-memory={budget}")
                run = train(dsopt, name, *offload, "-steps=3", f"-device-memory={budget}")
                clip = "-grad-clip=1" in layout
                hashes.setdefault((precision, clip), set()).add((run.hash, *run.loss_text))
                for kind, key in KINDS.items():
                    check(run.head["plan"][key] == [bytes_of(rank, kind) for rank in plan], f"{name} {offload}: {kind} has {run.head['plan'][key]}")
                below = planned(name, *offload, f"-device-memory={budget - 4096}", status=1)
                check("more than the" in below, below)
                for before, rank in zip(kept, plan):
                    host = rank["memories"][1]
                    if ratio == "parameters":
                        # Only statistics and what several stages share stays; slices go up for each gather, gradients down once.
                        stays = rank["memory"]["parameters"]
                        check(rank["memory"]["optimizer"] == 0 and host["parameters"] + stays == before["memory"]["parameters"]
                              and host["parameters"] > 2 * stays, f"{name} {offload}: {rank}, kept {before}")
                        check(rank["copied"]["device"] > host["parameters"] and 0 < rank["copied"]["host"] < 3 * host["optimizer"], f"{name} {offload}: {rank}")
                        continue
                    moved = before["memory"]["optimizer"] - rank["memory"]["optimizer"]
                    check(host["optimizer"] == moved and (ratio != "0" or rank["memory"]["optimizer"] == 0), f"{name} {offload}: {rank}")
                    # The gradient and, where there is no master, the parameters go down; parameters go up.
                    elements = moved // (4 * (states + (precision == "bf16")))
                    width = 2 if precision == "bf16" else 4
                    padding = elements // 4 + 8192
                    up, down = rank["copied"]["device"], rank["copied"]["host"]
                    check(width * elements <= up <= width * (elements + padding), f"{name} {offload}: {up} bytes up of {elements} elements")
                    least = (4 if precision == "bf16" else 8) * elements
                    check(least <= down <= least + 8 * padding, f"{name} {offload}: {down} bytes down of {elements} elements")
            hashes[precision, "-grad-clip=1" in layout].add((lambda run: (run.hash, *run.loss_text))(train(dsopt, name, *options, "-steps=3")))
    check(all(len(found) == 1 for found in hashes.values()), f"{name}: {hashes}")
    print(f"{name}: {len(layouts)} layouts, offloaded whole, by half, with parameters and not: one hash each of {len(hashes)} computations", flush=True)

# Ahead of time; saved in the middle, resumed with and without; evaluated.
with tempfile.TemporaryDirectory() as folder:
    base, data = ["-dp=2", "-zero=3", "-micro-batches=2"], model("gpt2-toy")[1]
    whole = train(dsopt, "gpt2-toy", *base, "-steps=6", f"-eval-data={data}")
    program, log = os.path.join(folder, "train"), os.path.join(folder, "log.jsonl")
    execute([dsopt, model("gpt2-toy")[0], f"-data={data}", *base, "-offload-optimizer=cpu", "-offload-params=cpu", "-o", program])
    saved = train(dsopt, "gpt2-toy", "-steps=3", f"-save={folder}/c", program=program)
    for resumed in (train(dsopt, "gpt2-toy", "-steps=6", f"-resume={folder}/c/step-00000003", f"-eval-data={data}", program=program),
                    train(dsopt, "gpt2-toy", *base, "-steps=6", f"-resume={folder}/c/step-00000003")):
        check(resumed.hash == whole.hash, f"resumed {resumed.hash}, expected {whole.hash}")
    for options, message in ((["-offload-ratio=1.5", "-offload-optimizer=cpu"], "expected a number from 0 to 1"),
                             (["-offload-optimizer=tape"], "tape"), (["-offload-params=cpu", "-offload-optimizer=cpu"], "-offload-params=cpu needs -zero=3"),
                             (["-offload-params=cpu", "-zero=3"], "-offload-params=cpu needs -offload-optimizer=cpu or nvme")):
        done = execute([dsopt, model("mlp")[0], f"-data={model('mlp')[1]}", "-plan", *options], status=1)
        check(message in done.stderr, done.stderr)
    done = execute([dsopt, model("mlp")[0], f"-data={model('mlp')[1]}", "-plan", "-optimizer=sgd", "-offload-optimizer=cpu"])
    check("nothing is offloaded" in done.stderr, done.stderr)
# Parameters are updated where they are, with state or without, whatever share of updates stays.
for options in (["-optimizer=sgd"], ["-optimizer=adamw", "-offload-ratio=0.5"]):
    base, offload = ["-zero=3", "-dp=2", "-micro-batches=2", options[0]], ["-offload-optimizer=cpu", "-offload-params=cpu", *options[1:]]
    check(train(dsopt, "mlp", *base, "-steps=3").hash == train(dsopt, "mlp", *base, *offload, "-steps=3").hash, f"{options}: other bits")
path, data = model("mlp")
done = execute([dsopt, path, f"-data={data}", "-plan", "-zero=3", "-offload-optimizer=cpu", "-offload-params=cpu", "-offload-ratio=0.5"])
check("offload_ratio = 0.5 is not for parameters that are kept on the host" in done.stderr, done.stderr)
print("an offloaded run saves, evaluates and resumes, with and without")
