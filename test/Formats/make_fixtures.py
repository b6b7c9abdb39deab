"""Makes fixtures of today's formats with today's tools: Inputs/vN, which is not there yet. It takes a minute, most of it for -tune.

A format that changes gets a new folder: make_fixtures.py BUILD v2, of which the files of the formats that did not change may be
removed again. Folders that are there are never made anew: they are what users have on their disks. Each test's line GETS says what
its file of the new folder gets, and of the old ones what they get now.

usage: make_fixtures.py BUILD VERSION
"""
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile

from formats import ARCH, FOLDER, execute

import numpy as np
from dsopt._stream import StreamWriter
from small import initializer, node, value, write

build, version = sys.argv[1:]
target = os.path.join(FOLDER, "Inputs", version)
if os.path.exists(target):
    sys.exit(f"{target} is there: old files stay as they are, give another version")
dsopt, runtime = (os.path.join(build, "bin", name) for name in ("dsopt", "dsopt-run"))
WIDTHS, ROWS = (8, 16, 12, 4), 4
random = np.random.default_rng(7)


def model(path):
    """Three layers, so that a pipeline has something to cut."""
    weights = [random.normal(0, 0.5, shape).astype(np.float32) for shape in zip(WIDTHS, WIDTHS[1:])]
    nodes, last = [], "x"
    for at, _ in enumerate(weights):
        nodes += [node("MatMul", f"{last} w{at}", f"y{at}"), node("Tanh", f"y{at}", f"h{at}")]
        last = f"h{at}"
    nodes += [node("Sub", f"{last} target", "d"), node("Mul", "d d", "square"), node("ReduceMean", "square", "loss", keepdims=0)]
    return write(path, nodes, [value("x", (ROWS, WIDTHS[0])), value("target", (ROWS, WIDTHS[-1]))],
                 [initializer(f"w{at}", weight) for at, weight in enumerate(weights)])


def losses(log):
    return [json.loads(line)["loss"] for line in open(log) if '"loss":' in line]


with tempfile.TemporaryDirectory(prefix="dsopt-formats-") as folder:
    # Names in what is written are those that are given, so nothing of this machine is in them but the folder's, in the program.
    os.chdir(folder)
    os.environ["DSOPT_CACHE"] = "off"
    model("model.onnx")
    count = 22  # no multiple of a step's: a run's place in the data counts
    np.savez_compressed("data.npz", x=random.normal(0, 1, (count, ROWS, WIDTHS[0])).astype(np.float32),
                        target=random.uniform(-0.9, 0.9, (count, ROWS, WIDTHS[-1])).astype(np.float32))
    expected = {}
    common = [dsopt, "model.onnx", "-data=data.npz", ARCH]
    train = [*common, "-run", "-quiet", "-steps=10", "-lr=0.05", "-dp=2", "-micro-batches=2", "-reduction-shards=2"]

    def save(name, at, *options):
        """The checkpoint after `at` steps, and the losses of the run that went on."""
        execute([*train, f"-save=saves-{name}", f"-save-every={at}", f"-log={name}.jsonl", *options])
        shutil.move(f"saves-{name}/step-{at:08d}", name)
        expected[name] = losses(f"{name}.jsonl")

    # A place in shuffled data, Adam's moments, a learning rate that is on its way.
    save("checkpoint", 5, "-zero=2", "-shuffle", "-seed=3", "-lr-schedule=cosine", "-warmup-steps=2", "-grad-clip=1", "-log-norms",
         "-eval-data=data.npz", "-eval-every=4")
    # A loss scale, masters, gradients that wait for their update.
    save("checkpoint-fp16", 5, "-zero=1", "-precision=fp16", "-delayed-update=2")
    # Factors, and what each rank has left out.
    save("checkpoint-powersgd", 5, "-zero=1", "-compress-gradients=powersgd")
    # What ranks have of their own between two steps that join, and errors of both sides.
    save("checkpoint-apart", 6, "-optimizer=zero-one-adam", "-freeze-step=2", "-var-update-scaler=1", "-local-step-scaler=1",
         "-local-step-clipper=4")

    for stage in ("graph", "dist", "exec"):
        execute([*common, f"-emit={stage}", "-o", f"{stage}.mlir", "-dp=2", "-zero=2", "-micro-batches=2", "-steps=3", "-lr=0.05"])
    execute([dsopt, "exec.mlir", "-run", "-data=data.npz", "-quiet", "-log=exec.jsonl"])
    expected["exec"] = losses("exec.jsonl")

    execute([*common, "-o", "train", "-dp=2", "-zero=2", "-micro-batches=2", "-steps=3", "-lr=0.05"])
    execute(["./train", "-data=data.npz", "-quiet", "-log=train.jsonl"])
    expected["executable"] = losses("train.jsonl")

    os.mkdir("stream")
    writer = StreamWriter("stream", 2)
    batches = np.load("data.npz")
    for step in range(3):
        writer.write([{name: batches[name][2 * step + at] for name in batches} for at in range(2)], lr=0.05 / 2**step)
    open("stream/end", "w").close()
    execute([dsopt, "model.onnx", ARCH, "-run", "-quiet", "-dp=2", "-lr-schedule=stream", "-data=stream:stream", "-log=stream.jsonl"])
    expected["stream"] = losses("stream.jsonl")

    execute([*common, "-tune=gemm.json", "-threads=1"])

    os.makedirs(target)
    for name in ("model.onnx", "data.npz", "graph.mlir", "dist.mlir", "exec.mlir", "gemm.json"):
        shutil.copyfile(name, os.path.join(target, name))
    with open("checkpoint.jsonl") as file, open(os.path.join(target, "run.jsonl"), "w") as out:
        out.write(file.read().replace(os.path.dirname(os.path.realpath(runtime)) + "/", ""))
    for name in ("checkpoint", "checkpoint-fp16", "checkpoint-powersgd", "checkpoint-apart", "stream"):
        shutil.copytree(name, os.path.join(target, name))
    # Behind the runtime, which is of no format and 100 times as large, lie the program and the footer.
    with open("train", "rb") as file, lzma.open(os.path.join(target, "executable.xz"), "wb", preset=9) as out:
        file.seek(-(-os.path.getsize(runtime) // 4096) * 4096)
        out.write(file.read())
    with open(os.path.join(target, "expected.json"), "w") as file:
        json.dump(expected, file, indent=1)
subprocess.run(["du", "-a", "-b", target], check=True)
