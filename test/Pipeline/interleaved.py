"""interleaved.py DSOPT FOLDER-OF-MODELS [--each] MODEL...: `canonicalize` and `cse` behind every pass of the
pipeline change no bit of what training gives, in three layouts; with --each behind one pass at a time."""
import json
import os
import re
import subprocess
import sys
import tempfile

dsopt, models, *names = sys.argv[1:]
each = "--each" in names
names = [name for name in names if name != "--each"]
LAYOUTS = (["-dp=1", "-micro-batches=4"], ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2"],
           ["-dp=2", "-zero=1", "-micro-batches=2", "-accumulate=local"])


def train(name, options):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        path = os.path.join(models, name)
        command = [dsopt, f"{path}/model.onnx", "-run", "-quiet", "-steps=2", "-lr=3e-3", "-reduction-shards=2", "-grad-clip=1",
                   f"-data={path}/batches.npz", f"-log={log}", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return f"status {done.returncode}: {done.stderr.strip()[:300]}"
        lines = [json.loads(line) for line in open(log)]
        return [line["loss"] for line in lines if "loss" in line], lines[-1]["end"]["weights_hash"]


def pipeline(name):
    path = os.path.join(models, name)
    text = subprocess.run([dsopt, f"{path}/model.onnx", f"-data={path}/batches.npz", "-print-pipeline"], check=True,
                          capture_output=True, text=True).stdout
    # Those of kernels stand in a pipeline inside.
    passes = [p for p in re.findall(r"[\w.-]+", text) if p not in ("builtin.module", "func.func")]
    # Behind the last there is nothing left of ours.
    return [p for i, p in enumerate(passes[:-1]) if p not in ("canonicalize", "cse")]


wrong = 0
for name in names:
    for layout in LAYOUTS[:1] if each else LAYOUTS:
        plain = train(name, layout)
        groups = [[p] for p in pipeline(name)] if each else [pipeline(name)]
        for passes in groups:
            inserted = [f"-insert-pass=after:{p}:{new}" for p in passes for new in ("cse", "canonicalize")]
            got = train(name, [*layout, *inserted])
            if got != plain:
                wrong += 1
                print(f"{name} {' '.join(layout)}, behind {passes[0] if each else 'every pass'}: {got}, expected {plain}", flush=True)
print(f"{len(names)} models, {wrong} differences")
sys.exit(wrong > 0)
