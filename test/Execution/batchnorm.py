"""Batch normalization that trains: PyTorch's running statistics, one hash in all layouts.

usage: batchnorm.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import MODELS, MPIRUN, Run, check, execute, model, relative
from saved_weights import safetensors

dsopt = sys.argv[1]
path, data = model("resnet-tiny")
base = ["-lr=1e-3", "-weight-decay=0.01", "-reduction-shards=4"]
recorded = np.load(os.path.join(MODELS, "resnet-tiny", "statistics.npz"))
names = [name for name in recorded.files if "running" in name]


def run(*options, name=path, data=data, prefix=(), status=0):
    with tempfile.TemporaryDirectory() as folder:
        log, weights = os.path.join(folder, "log.jsonl"), os.path.join(folder, "weights.safetensors")
        done = execute([*prefix, dsopt, name, "-run", "-quiet", f"-data={data}", f"-log={log}", f"-save-weights={weights}", *base, *options], status)
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

    # Every stage reads back to the same bits.
    shape = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-reduction-shards=4"]
    for stage in ("graph", "dist", "exec"):
        file, log = os.path.join(folder, f"{stage}.mlir"), os.path.join(folder, f"{stage}.jsonl")
        execute([dsopt, path, f"-data={data}", *shape, f"-emit={stage}", "-o", file])
        execute([dsopt, file, "-run", "-quiet", f"-data={data}", "-lr=1e-3", "-weight-decay=0.01", "-steps=8", f"-log={log}"])
        check(Run(log).hash == first.hash, f"stage {stage} read back: another hash")

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
    check("running statistic 'm.stem.1.running_mean', which belongs to two batch normalizations" in done.stderr, done.stderr)
print(f"{len(runs) + 2} layouts, one hash {first.hash[:16]}, losses {', '.join(first.loss_text)}")


def odd_sizes(folder):
    """Channels and batches of odd sizes; the first normalization is of an input, one has no places."""
    random = np.random.default_rng(5)
    path, data = os.path.join(folder, "odd.onnx"), os.path.join(folder, "odd.npz")

    def array(name, *shape, scale=0.5):
        return numpy_helper.from_array((random.standard_normal(shape) * scale).astype(np.float32), name)

    def norm(x, y, name):
        return helper.make_node("BatchNormalization", [x, *(f"{name}.{k}" for k in ("weight", "bias", "mean", "var"))], [y], momentum=0.75)

    initializers, nodes = [], [norm("x", "a", "n0"), helper.make_node("Conv", ["a", "w0"], ["b"]), norm("b", "c", "n1"), helper.make_node("Relu", ["c"], ["d"]),
                               helper.make_node("Flatten", ["d"], ["e"]), helper.make_node("MatMul", ["e", "w1"], ["f"]), norm("f", "g", "n2"),
                               helper.make_node("Tanh", ["g"], ["h"]), helper.make_node("MatMul", ["h", "w2"], ["y"]),
                               helper.make_node("SoftmaxCrossEntropyLoss", ["y", "labels"], ["loss"])]
    for name, channels in (("n0", 3), ("n1", 7), ("n2", 17)):
        initializers += [array(f"{name}.{k}", channels) for k in ("weight", "bias", "mean")]
        initializers.append(numpy_helper.from_array(np.ones(channels, np.float32), f"{name}.var"))
    initializers += [array("w0", 7, 3, 3, 1), array("w1", 7 * 3 * 3, 17), array("w2", 17, 5)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 3, 5, 3]), helper.make_tensor_value_info("labels", TensorProto.INT64, [5])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    x = random.standard_normal((12, 5, 3, 5, 3)).astype(np.float32) * 2 + 1
    np.savez(data, x=x, labels=random.integers(0, 5, (12, 5)))

    def train(dp, pp, zero, *more, **keywords):
        return run("-steps=2", "-batchnorm=train", "-reduction-shards=3", f"-dp={dp}", f"-pp={pp}", f"-zero={zero}",
                   f"-micro-batches={6 // dp}", "-accumulate=sharded", *more, name=path, data=data, **keywords)

    first, initials = train(1, 1, 0), initial(path)
    mean, var = initials["n0.mean"].astype(np.float64), initials["n0.var"].astype(np.float64)
    for batch in x.astype(np.float64):
        mean = 0.75 * mean + 0.25 * batch.mean((0, 2, 3))
        var = 0.75 * var + 0.25 * batch.transpose(1, 0, 2, 3).reshape(3, -1).var(1, ddof=1)
    check(np.allclose(first.weights["n0.mean"], mean, rtol=1e-5) and np.allclose(first.weights["n0.var"], var, rtol=1e-5),
          f"statistics of an input are {first.weights['n0.mean']}, {first.weights['n0.var']}, expected {mean}, {var}")
    others = {"dp 3": train(3, 1, 0), "dp 3, pp 2, zero 3": train(3, 2, 3), "pp 3": train(1, 3, 0), "dp 3, zero 1": train(3, 1, 1),
              "mpirun": train(3, 1, 2, prefix=[*MPIRUN, "3"])}
    for name, other in others.items():
        check(other.hash == first.hash, f"odd sizes, {name}: {other.hash}, expected {first.hash}")
    print(f"odd sizes, statistics of an input: {len(others) + 1} layouts, one hash {first.hash[:16]}")


def used_twice(folder):
    """Two views go through the same normalizations, one after the other: statistics are folded once for each."""
    random = np.random.default_rng(6)
    path, data, held = (os.path.join(folder, name) for name in ("twice.onnx", "twice.npz", "held.npz"))

    def array(name, *shape):
        return numpy_helper.from_array((random.standard_normal(shape) * 0.5).astype(np.float32), name)

    def norm(x, y, name, momentum):
        return helper.make_node("BatchNormalization", [x, *(f"{name}.{k}" for k in ("weight", "bias", "mean", "var"))], [y], momentum=momentum)

    nodes, initializers = [], [array("w0", 5, 7), array("w1", 7, 6), array("w2", 6, 4)]
    for name, channels in (("n0", 7), ("n1", 6)):
        initializers += [array(f"{name}.{k}", channels) for k in ("weight", "bias", "mean")] + [numpy_helper.from_array(np.ones(channels, np.float32), f"{name}.var")]
    for view in "ab":
        nodes += [helper.make_node("MatMul", [view, "w0"], [view + "0"]), norm(view + "0", view + "1", "n0", 0.75), helper.make_node("Tanh", [view + "1"], [view + "2"]),
                  helper.make_node("MatMul", [view + "2", "w1"], [view + "3"]), norm(view + "3", view + "4", "n1", 0.5), helper.make_node("Tanh", [view + "4"], [view + "5"]),
                  helper.make_node("MatMul", [view + "5", "w2"], [view + "6"])]
    nodes += [helper.make_node("Sub", ["a6", "b6"], ["d"]), helper.make_node("Mul", ["d", "d"], ["s"]), helper.make_node("ReduceMean", ["s"], ["loss"], keepdims=0)]
    inputs = [helper.make_tensor_value_info(view, TensorProto.FLOAT, [9, 5]) for view in "ab"]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    views = {view: random.standard_normal((8, 9, 5)).astype(np.float32) + (view == "b") for view in "ab"}
    np.savez(data, **views)
    np.savez(held, **{view: value[:4] for view, value in views.items()})

    def train(dp, pp, zero, *more):
        return run("-steps=2", "-batchnorm=train", f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={4 // dp}", "-accumulate=sharded", f"-eval-data={held}", *more,
                   name=path, data=data)

    first, start = train(1, 1, 0), initial(path)
    # Without an update both normalizations see what the first weights make.
    still, mean, var = train(1, 1, 0, "-lr=0"), start["n0.mean"].astype(np.float64), start["n0.var"].astype(np.float64)
    for batch in range(8):
        for view in "ab":
            seen = views[view][batch].astype(np.float64) @ start["w0"]
            mean, var = 0.75 * mean + 0.25 * seen.mean(0), 0.75 * var + 0.25 * seen.var(0, ddof=1)
    check(np.allclose(still.weights["n0.mean"], mean, rtol=1e-5, atol=1e-6) and np.allclose(still.weights["n0.var"], var, rtol=1e-5),
          f"statistics used twice are {still.weights['n0.mean']}, {still.weights['n0.var']}, expected {mean}, {var}")
    others = {"dp 2, zero 3": train(2, 1, 3), "pp 2": train(1, 2, 0), "dp 2, pp 3, zero 1": train(2, 3, 1), "pp 4, gpipe": train(1, 4, 0, "-schedule=gpipe"), "dp 4": train(4, 1, 2)}
    for name, other in others.items():
        check((other.hash, other.evaluations) == (first.hash, first.evaluations),
              f"used twice, {name}: {other.hash} {other.evaluations}, expected {first.hash} {first.evaluations}")
    # Another scale makes it another normalization.
    other = onnx.load(path)
    [n for n in other.graph.node if n.op_type == "BatchNormalization"][2].input[1] = "n0.bias"
    onnx.save(other, path)
    done = run("-steps=1", "-batchnorm=train", name=path, data=data, status=1)
    check("running statistic 'n0.mean', which belongs to two batch normalizations" in done.stderr, done.stderr)
    print(f"used twice: {len(others) + 1} layouts, one hash {first.hash[:16]}, evaluated {first.evaluations}")


with tempfile.TemporaryDirectory() as folder:
    odd_sizes(folder)
    used_twice(folder)
first, other = layout(1, 1, 0, "-precision=bf16", steps=3), layout(2, 2, 3, "-precision=bf16", steps=3)
check(first.hash == other.hash, "bf16: two hashes")
check(relative(first.losses, [2.32598996, 2.2892909, 2.34809709]) < 0.02, f"bf16: losses {first.losses}")
