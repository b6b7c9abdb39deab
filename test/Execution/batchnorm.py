"""Batch normalization that trains: PyTorch's running statistics, one hash in all layouts.

usage: batchnorm.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from runs import MODELS, Run, check, execute, model, relative
from saved_weights import safetensors

dsopt = sys.argv[1]
path, data = model("resnet-tiny")
base = ["-lr=1e-3", "-weight-decay=0.01", "-reduction-shards=4"]
recorded = np.load(os.path.join(MODELS, "resnet-tiny", "statistics.npz"))
names = [name for name in recorded.files if "running" in name]


def run(*options, name=path, status=0):
    with tempfile.TemporaryDirectory() as folder:
        log, weights = os.path.join(folder, "log.jsonl"), os.path.join(folder, "weights.safetensors")
        done = execute([dsopt, name, "-run", "-quiet", f"-data={data}", f"-log={log}", f"-save-weights={weights}", *base, *options], status)
        if status:
            return done
        result = Run(log)
        result.weights, result.messages = safetensors(weights), done.stderr
        result.evaluations = [json.loads(line)["eval_loss"] for line in open(log) if "eval_loss" in line]
        return result


def layout(dp, pp, zero, *more, steps=8):
    return run(f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={4 // dp}", f"-steps={steps}", *more)


def initial(file):
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(file).graph.initializer}


# PyTorch's statistics after 8 steps, and the loss they give when they are used.
first = layout(1, 1, 0, f"-eval-data={data}", "-eval-batches=4")
for name in names:
    worst = np.max(np.abs(first.weights[name] - recorded[name]))
    check(np.allclose(first.weights[name], recorded[name], rtol=1e-4, atol=1e-5), f"{name} differs from PyTorch's by {worst}")
check(relative(first.evaluations[-1:], recorded["eval_loss"]) < 1e-4, f"evaluation {first.evaluations}, PyTorch {recorded['eval_loss']}")
print(f"{len(names)} running statistics as PyTorch's, evaluation {first.evaluations[-1]} ({recorded['eval_loss']:.7f})", flush=True)

runs = {"dp 4": (4, 1, 0), "dp 2, pp 2, zero 3": (2, 2, 3), "pp 4": (1, 4, 0), "gpipe": (2, 2, 0, "-schedule=gpipe"),
        "zero 2, sharded": (2, 1, 2, "-accumulate=sharded"), "clipped": (4, 1, 1, "-grad-clip=1e9"),
        "one thread": (1, 1, 0, "-threads=1"), "three threads": (1, 1, 0, "-threads=3")}
for name, arguments in runs.items():
    other = layout(*arguments)
    check((other.hash, other.loss_text) == (first.hash, first.loss_text),
          f"{name}: {other.loss_text} {other.hash}, expected {first.loss_text} {first.hash}")
    planned = json.loads(execute([dsopt, path, "-plan=json", f"-data={data}", *base, f"-dp={arguments[0]}", f"-pp={arguments[1]}",
                                  f"-zero={arguments[2]}", f"-micro-batches={4 // arguments[0]}", *arguments[3:]]).stdout)
    for rank, entry in enumerate(planned["ranks"]):
        sent, total = other.steps[-1]["sent_bytes"][rank], sum(entry["traffic"].values())
        check(sent == total, f"{name}: rank {rank} sent {sent} bytes, planned {total}")
        peak, total = other.steps[-1]["peak_bytes"][rank], entry["memory"]["total"]
        check(peak == total, f"{name}: rank {rank} maps {peak} bytes, planned {total}")

# More micro-batches than a shard has: two orders of accumulation, of which each has its bits; statistics are
# folded by index in both.
orders = {}
for order in ("local", "sharded"):
    both = [run(f"-dp={dp}", "-zero=2", f"-micro-batches={8 // dp}", "-reduction-shards=2", f"-accumulate={order}", "-steps=2") for dp in (1, 2)]
    check(both[0].hash == both[1].hash, f"accumulate {order}: two hashes")
    orders[order] = both[0]
for name in names:
    check(np.allclose(orders["local"].weights[name], orders["sharded"].weights[name], rtol=1e-5), f"{name} depends on the order")

with tempfile.TemporaryDirectory() as folder:
    saved = os.path.join(folder, "saved")
    layout(2, 1, 1, f"-save={saved}", steps=4)
    resumed = layout(1, 2, 0, f"-resume={saved}")
    check((resumed.hash, resumed.loss_text) == (first.hash, first.loss_text[4:]), f"resumed: {resumed.loss_text}")
    # The saved model holds the statistics; it trains on and evaluates as the run itself.
    trained = os.path.join(folder, "trained.onnx")
    layout(2, 2, 3, f"-save-onnx={trained}")
    for name in names:
        check(np.array_equal(initial(trained)[name], first.weights[name]), f"{name} is not in the saved model")
    log = os.path.join(folder, "log.jsonl")
    execute([dsopt, trained, "-eval", f"-data={data}", "-eval-batches=4", f"-log={log}", "-quiet"])
    alone = [json.loads(line)["eval_loss"] for line in open(log) if "eval_loss" in line]
    check(alone == first.evaluations[-1:], f"the saved model evaluates to {alone}, expected {first.evaluations}")

    # The form for inference says so, and trains when it is told to.
    inference = onnx.load(path)
    for node in inference.graph.node:
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            kept = [a for a in node.attribute if a.name != "training_mode"]
            del node.attribute[:]
            node.attribute.extend(kept)
    file = os.path.join(folder, "inference.onnx")
    onnx.save(inference, file)
    told = run("-micro-batches=4", "-steps=8", "-batchnorm=train", name=file)
    check(told.loss_text == first.loss_text and told.hash == first.hash, "-batchnorm=train differs from a model in training form")
    check("inference" not in told.messages, told.messages)
    silent = run("-micro-batches=4", "-steps=2", name=file)
    check("6 batch normalizations in the form for inference" in silent.messages and "-batchnorm=train" in silent.messages, silent.messages)
    frozen = [run("-micro-batches=4", "-steps=2", "-batchnorm=frozen", name=name) for name in (path, file)]
    check(frozen[0].loss_text == silent.loss_text == frozen[1].loss_text, "-batchnorm=frozen differs by the model's form")
    check("inference" not in frozen[1].messages, frozen[1].messages)
    start = layout(1, 1, 0, "-lr=0", steps=1)
    before = initial(path)
    check(all(np.array_equal(start.weights[name], before[name]) == ("running" not in name) for name in start.weights),
          "a step without a learning rate changes weights, or no statistics")

    # One parameter that is the statistic of two normalizations.
    merged = onnx.load(path)
    norms = [node for node in merged.graph.node if node.op_type == "BatchNormalization"]
    norms[1].input[3] = norms[0].input[3]
    file = os.path.join(folder, "merged.onnx")
    onnx.save(merged, file)
    done = run("-steps=1", name=file, status=1)
    check("running statistic 'm.stem.1.running_mean' belongs to two batch normalizations" in done.stderr, done.stderr)
print(f"{len(runs) + 2} layouts, one hash {first.hash[:16]}, losses {', '.join(first.loss_text)}")
