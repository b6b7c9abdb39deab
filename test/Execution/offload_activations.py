"""Activations in the host's memory between forward and backward: the bits of a run that keeps them, in the bytes that were
planned of each memory, with a device that could not hold them.

usage: offload_activations.py DSOPT
"""
import json
import os
import subprocess
import sys
import tempfile

from runs import SOURCE, Run, check, execute

dsopt = sys.argv[1]
KINDS = {"device": "arena_bytes", "host": "host_bytes"}
LAYOUTS = ([], ["-zero=3", "-dp=2", "-gather-window=2"], ["-pp=2", "-schedule=gpipe"], ["-zero=2", "-dp=2", "-pp=2"],
           ["-zero=1", "-pp=2", "-dp=2", "-schedule=interleaved"], ["-precision=bf16"],
           ["-precision=bf16", "-zero=3", "-dp=2", "-pp=2"])
EXTRA = ([], ["-prefetch=0"], ["-prefetch=3"], ["-recompute=full"], ["-offload-optimizer=cpu"])

folder = tempfile.mkdtemp()
model, data, text = (os.path.join(folder, name) for name in ("gpt.onnx", "text.npz", "text"))
model = os.path.join(SOURCE, "examples", "gpt.onnx")
with open(text, "w") as file:
    file.write("".join(f"{i} squared is {i * i}, cubed {i ** 3}. " for i in range(2000)))
subprocess.run([sys.executable, os.path.join(SOURCE, "examples", "make_bytes.py"), text, data], check=True, capture_output=True)


def plan(*options, status=0):
    done = execute([dsopt, model, f"-data={data}", "-plan=json", *options], status)
    return json.loads(done.stdout)["ranks"] if status == 0 else done.stderr


def bytes_of(rank, kind):
    return sum(memory["bytes"] for memory in rank["memories"] if memory["kind"] == kind)


def most(ranks):
    return max(bytes_of(rank, "device") for rank in ranks)


def train(*options):
    log = os.path.join(folder, "log.jsonl")
    execute([dsopt, model, "-run", f"-data={data}", f"-log={log}", "-quiet", "-steps=2", *options])
    return Run(log)


hashes, saved = {}, []
for layout in LAYOUTS:
    dp = 2 if "-dp=2" in layout else 1
    options = [*layout, f"-micro-batches={4 // dp}", "-reduction-shards=2", "-prefetch=1", "-accumulate=local"]
    kept = plan(*options)
    found = hashes.setdefault("-precision=bf16" in layout, set())
    if not found:
        run = train(*options)
        found.add((run.hash, *run.loss_text))
    for extra in EXTRA if layout in LAYOUTS[:2] else EXTRA[:1]:
        offload = [*options, *extra, "-offload-activations=cpu"]
        planned, before = plan(*offload), plan(*options, *extra)
        budget = most(planned)
        run = train(*offload, f"-device-memory={budget}")
        found.add((run.hash, *run.loss_text))
        for kind, key in KINDS.items():
            check(run.head["plan"][key] == [bytes_of(rank, kind) for rank in planned], f"{offload}: {kind} has {run.head['plan'][key]}")
        check("more than the" in plan(*offload, f"-device-memory={budget - 4096}", status=1), f"{offload}: fits in less")
        for rank, had in zip(planned, before):
            host = rank["memories"][1]
            check(host["activations"] > 0 and rank["memory"]["activations"] < had["memory"]["activations"], f"{offload}: {rank}, kept {had}")
            copied = rank["copied"]
            check(copied["host"] >= host["activations"] and copied["device"] >= host["activations"], f"{offload}: {rank}")
        if not extra:
            saved.append(most(kept) - budget)
check(all(len(found) == 1 for found in hashes.values()), f"{hashes}")
check(min(saved) > 1 << 19, f"saved {saved}")
print(f"{len(LAYOUTS)} layouts: one hash for each precision; {saved} bytes less")

# What does not fit says what may; recomputation under a budget keeps what the host has room for.
base = ["-micro-batches=4", "-reduction-shards=2", "-accumulate=local"]
budget = most(plan(*base, "-recompute=full")) - 8192
said = plan(*base, "-recompute=full", f"-device-memory={budget}", status=1)
check("-offload-activations=cpu fits" in said, said)
run = train(*base, "-recompute=auto", "-offload-activations=cpu", f"-device-memory={budget}")
check((run.hash, *run.loss_text) in hashes[False] and run.head["plan"]["arena_bytes"][0] <= budget, f"{run.head['plan']}")
small = os.path.join(SOURCE, "test", "Models", "mlp")
done = execute([dsopt, f"{small}/model.onnx", f"-data={small}/batches.npz", "-plan", "-offload-activations=cpu"])
check("nothing is offloaded" in done.stderr, done.stderr)
