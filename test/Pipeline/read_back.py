"""read_back.py DSOPT DSOPT-OPT FOLDER-OF-MODELS MODEL...: each pass of the pipeline in a process of its own, which
reads what the one before has printed, ends in the program that all of them in one process give, to the letter."""
import os
import subprocess
import sys
import tempfile

dsopt, opt, models, *names = sys.argv[1:]
LAYOUT = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2"]


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(command)}\n{done.stderr[:2000]}")
    return done.stdout


for name in names:
    path = os.path.join(models, name)
    options = [os.path.join(path, "model.onnx"), f"-data={path}/batches.npz", *LAYOUT]
    with tempfile.TemporaryDirectory() as folder:
        graph = os.path.join(folder, "graph.mlir")
        run([dsopt, *options, "-emit=graph", "-o", graph])
        text = open(graph).read()
    passes = run([dsopt, *options, "-print-pipeline"]).strip().removeprefix("builtin.module(").removesuffix(")").split(",")
    passes = passes[:passes.index("verify-exec") + 1]
    whole = run([opt, f"-pass-pipeline=builtin.module({','.join(passes)})"], text)
    for one in passes:
        text = run([opt, f"-pass-pipeline=builtin.module({one})"], text)
    if text != whole:
        first = next(i for i, (a, b) in enumerate(zip(text.splitlines(), whole.splitlines())) if a != b)
        sys.exit(f"FAILED: {name}: line {first + 1} is\n{text.splitlines()[first]}\nexpected\n{whole.splitlines()[first]}")
    print(f"{name}: {len(passes)} passes, {len(whole.splitlines())} lines, equal", flush=True)
