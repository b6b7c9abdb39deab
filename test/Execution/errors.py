"""Bad input ends in one clear message and status 1, without a trace.

usage: errors.py DSOPT
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import MPIRUN, check, execute, model, varied

dsopt = sys.argv[1]
mlp, data = model("mlp")
folder = tempfile.mkdtemp()
count = 0


def path(name):
    return os.path.join(folder, name)


def refused(what, command, *words, status=1, timeout=60):
    """The command ends with `status` and one message that holds all the words."""
    global count
    done = subprocess.run(varied(command), capture_output=True, text=True, timeout=timeout)
    text = done.stdout + done.stderr
    check(done.returncode == status, f"{what}: status {done.returncode}, expected {status}\n{text}")
    messages = [line for line in text.splitlines() if "error: " in line]
    check(len(messages) == 1, f"{what}: {len(messages)} messages, expected one\n{text}")
    for word in words:
        check(word in text, f"{what}: the message lacks '{word}'\n{text}")
    count += 1


def run(*options, model=mlp, batches=data):
    return [dsopt, model, "-run", f"-data={batches}", *options]


def npz(name, **arrays):
    np.savez(path(name), **arrays)
    return path(name)


batches = dict(np.load(data))
raw = open(mlp, "rb").read()
open(path("short.onnx"), "wb").write(raw[: len(raw) // 2])
refused("truncated model", run(model=path("short.onnx")), "short.onnx")
open(path("text.onnx"), "w").write("this is not a model\n" * 20)
refused("not a model", run(model=path("text.onnx")), "text.onnx")
open(path("empty.onnx"), "w").close()
refused("empty model", run(model=path("empty.onnx")), "empty.onnx")
refused("no model", run(model=path("absent.onnx")), "absent.onnx")

graph = onnx.load(mlp)
graph.graph.node[0].op_type, graph.graph.node[0].name = "Frobnicate", "my_node"
onnx.save(graph, path("unknown.onnx"))
refused("unknown operator", run(model=path("unknown.onnx")), "Frobnicate", "my_node", "18")

shape = dict(batches, x=batches["x"][..., :31])
refused("wrong shape", run(batches=npz("shape.npz", **shape)), "x", "31", "32")
types = dict(batches, labels=batches["labels"].astype(np.float32))
refused("wrong type", run(batches=npz("type.npz", **types)), "labels", "f32", "i64")
refused("missing array", run(batches=npz("missing.npz", x=batches["x"])), "labels")
few = {key: value[:1, :1] for key, value in batches.items()}
refused("too few micro-batches", run("-micro-batches=4", batches=npz("few.npz", **few)), "4", "1")
open(path("broken.npz"), "wb").write(open(data, "rb").read()[:200])
refused("truncated data", run(batches=path("broken.npz")), "broken.npz")
refused("no data", run(batches=path("absent.npz")), "absent.npz")

refused("misspelt option", run("-zeroo=3"), "zeroo", "-zero")
refused("bad value", run("-zero=4"), "zero", "4")
refused("not a number", run("-lr=fast"), "lr", "fast")
refused("not there yet", run("-ep=2"), "ep", "not available yet")
refused("too many stages", run("-pp=4"), "3 blocks", "-pp")
refused("shards", run("-dp=2", "-reduction-shards=3", "-micro-batches=3"), "reduction-shards")
refused("indivisible shards", run("-dp=2", "-micro-batches=2", "-reduction-shards=8"), "reduction-shards")
refused("integer in -train", run("-train=val_10", model=model("gpt2-tiny-opset23-dynamic")[0], batches=model("gpt2-tiny-opset23-dynamic")[1]),
        "val_10", "INT64")
refused("nothing in -freeze", run("-freeze=nothing*"), "nothing*")
refused("unwritable output", run("-save-weights=/proc/none/weights.safetensors"), "/proc/none")
refused("unwritable program", [dsopt, mlp, "-o", "/proc/none/train"], "/proc/none")
refused("unwritable program of a run", run("-o=/proc/none/train"), "-run and -o exclude each other")
if not re.search(r"\bamx_tile\b", open("/proc/cpuinfo").read()):
    refused("another processor", run("-arch=sapphirerapids"), "compiled for sapphirerapids, but this machine's CPU has no ", "-arch=native")
refused("budget", run("-device-memory=1k"), "the model needs", "more than the 1024 that -device-memory allows")
refused("budget names no operation", run("-device-memory=1k"), "error: the model needs")
refused("fixed rows", run("-micro-batch-size=4"), "-micro-batch-size=4 does not match input 'labels', whose first dimension is 8",
        "dynamic_shapes")
refused("all frozen", run("-freeze=*"), "the loss depends on no trained parameter", "-list-parameters")
for option in ("no-decay=bias", "lr-scale=bias=0.1", "freeze=bias", "train=bias", "untie=bias"):
    refused("a glob without a match", run("-" + option), "=bias matches no", "did you mean '*bias', as in net.0.bias, net.2.bias")
refused("a name spelt wrong", run("-no-decay=net.0.wieght"), "near it are net.0.weight")
objects = np.empty(2, object)
objects[:] = [[1, 2], [3]]
np.savez(path("objects.npz"), x=objects, labels=batches["labels"])
refused("an array of objects", run(batches=path("objects.npz")), "array 'x' has type '|O'", "rows of different lengths")

done = subprocess.run([*MPIRUN, "3", dsopt, mlp, "-run", f"-data={data}", "-dp=2"], capture_output=True, text=True, timeout=60)
check(done.returncode == 1 and "3" in done.stderr, f"world size: status {done.returncode}\n{done.stderr}")
count += 1

shutil.copytree(os.path.dirname(model("gpt2-tiny-opset23-dynamic")[0]), path("external"))
external, external_data = path("external/model.onnx"), path("external/batches.npz")
execute([dsopt, external, f"-data={external_data}", "-o", path("external/train")])
weights = path("external/model.onnx.data")
content = bytearray(open(weights, "rb").read())
program = [path("external/train"), f"-data={external_data}", "-steps=1"]
execute(program)
content[len(content) // 2] ^= 1
open(weights, "wb").write(content)
refused("weights changed", program, "model.onnx.data")
open(weights, "wb").write(content[:-4])
refused("weights short", program, "model.onnx.data")
refused("weights short, compiling", run(model=external, batches=external_data), "model.onnx.data")
os.remove(weights)
refused("weights absent", program, "model.onnx.data")
refused("weights absent, compiling", run(model=external, batches=external_data), "model.onnx.data")
refused("compiled-in option", [*program, "-zero=1"], "zero", "dsopt ")
refused("unknown run option", [*program, "-stepz=1"], "stepz", "-steps")

infinite = dict(batches, x=np.full_like(batches["x"], np.inf))
refused("loss not finite", run("-pp=2", "-micro-batches=2", batches=npz("inf.npz", **infinite)), "step 0", "stage 1", "micro-batch 0",
        status=2)
ignored = dict(np.load(model("gpt2-tiny")[1]))
ignored["labels"] = np.full_like(ignored["labels"], -100)
refused("no valid label", run(model=model("gpt2-tiny")[0], batches=npz("ignored.npz", **ignored)), "step 0", "micro-batch 0")
large = dict(np.load(model("gpt2-tiny")[1]))
large["input_ids"] = large["input_ids"].copy()
large["input_ids"][0, 0, 1, 3] = 512
refused("token out of range", run(model=model("gpt2-tiny")[0], batches=npz("large.npz", **large)), "step 0", "micro-batch 0",
        "large.npz at [0, 0, 1, 3]: input_ids[1, 3] is 512", "expected less than 512 and 0 or more")
# PyTorch's embeddings take no ids from the end, whatever ONNX's Gather does; labels neither.
for layout in (["-dp=1"], ["-pp=2", "-dp=2", "-micro-batches=2"]):
    negative = dict(large, input_ids=np.where(large["input_ids"] == 512, -1, large["input_ids"]))
    refused("negative token", run("-quiet", *layout, model=model("gpt2-tiny")[0], batches=npz("negative.npz", **negative)), "step 0",
            "negative.npz at [0, 0, 1, 3]: input_ids[1, 3] is -1", "an embedding's rows are not counted from its end")
    wrong = dict(np.load(model("gpt2-tiny")[1]))
    wrong["labels"] = wrong["labels"].copy()
    wrong["labels"][0, 0, 0, 2] = -5
    refused("negative label", run("-quiet", *layout, model=model("gpt2-tiny")[0], batches=npz("label.npz", **wrong)), "step 0",
            "label.npz at [0, 0, 0, 2]: labels[0, 2] is -5, expected less than 512 and 0 or more (or -100, ignored)")
refused("negative token in an evaluation", [dsopt, model("gpt2-tiny")[0], "-eval", f"-data={path('negative.npz')}"],
        "evaluation, micro-batch 0", "input_ids[1, 3] is -1")
# One input is both: the ids of an embedding, and the labels among which -100 is ignored.
def float_tensor(name, *shape):
    return numpy_helper.from_array(np.random.default_rng(0).normal(0, 0.1, shape).astype(np.float32), name)


refused("disk options", run("-aio=zz"), "option -aio: 'zz': expected block_size=BYTES or queue_depth=N")
# What changes nothing is said, and what does is not.
ranks = ("-zero=3", "-dp=2")
for given, met in (("-recompute=auto", ("-device-memory=1G",)), ("-gather-window=2", ranks), ("-prefetch=2", ranks), ("-prefetch-bucket-size=9", ranks),
                   ("-max-live-parameters=99999", ("-zero=3", "-offload-optimizer=cpu", "-offload-params=cpu")), ("-max-reuse-distance=9", ranks),
                   ("-param-persistence-threshold=9", ranks), ("-reductions-in-flight=1", ("-pp=2",)), ("-offload-ratio=0.5", ("-offload-optimizer=cpu",)),
                   ("-aio=queue_depth=4", ("-offload-optimizer=nvme",)), ("-sub-group-size=100", ("-offload-optimizer=nvme",))):
    said, silent = (execute([dsopt, mlp, "-plan", "-micro-batches=2", given, *more]).stderr for more in ((), met))
    check(f"dsopt: warning: option {given} has no effect here: it goes with -" in said, f"{given}: {said}")
    check("no effect" not in silent, f"{given} with {met}: {silent}")
both = helper.make_graph(
    [helper.make_node("Gather", ["table", "ids"], ["x"]), helper.make_node("MatMul", ["x", "head"], ["logits"]),
     helper.make_node("SoftmaxCrossEntropyLoss", ["logits", "ids"], ["loss"], ignore_index=-100)], "both",
    [helper.make_tensor_value_info("ids", TensorProto.INT64, [6])], [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
    [float_tensor("table", 9, 4), float_tensor("head", 4, 12)])
onnx.save(helper.make_model(both, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path("both.onnx"))
ids = np.array([[0, 8, 1, 2, 3, 4], [0, 8, -100, 2, 3, 4]])
refused("an ignored label that is looked up", run(model=path("both.onnx"), batches=npz("both.npz", ids=ids)), "step 1",
        "both.npz at [1, 2]: ids[2] is -100, expected less than 9 and 0 or more: it is looked up in an embedding too")
ids[1, 2] = 9
refused("a class that is no row", run(model=path("both.onnx"), batches=npz("both.npz", ids=ids)), "ids[2] is 9, expected less than 9")
left = [name for name in os.listdir(folder) if name.endswith((".safetensors", ".part"))]
check(not left, f"half-written files: {left}")
shutil.rmtree(folder)
print(f"{count} bad inputs, each one message")
