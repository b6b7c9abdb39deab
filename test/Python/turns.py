"""Programs that are asked between steps: for their weights, and to go on with others. Two of them that train parts of one
model in turn have the bits of a chain of runs, each of one step, in every layout.

usage: turns.py SOURCE BUILD [FOLDER of the device in software: programs for devices then]
"""
import os
import shutil
import sys
import tempfile

from start import source

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import dsopt
from checks import check, fails
from dsopt._run import Run
from dsopt._weights import read_stored, stored_of, write_stored
from sampled import sampled

folder = tempfile.mkdtemp()
model = os.path.join(source, "test", "Models", "mlp", "model.onnx")
arrays = np.load(os.path.join(source, "test", "Models", "mlp", "batches.npz"))
x, labels = arrays["x"].reshape(-1, 8, 32), arrays["labels"].reshape(-1, 8)
steps = [[{"x": x[at], "labels": labels[at]} for at in range(4 * step, 4 * step + 4)] for step in range(3)]
parts = (["net.0.weight", "net.4.bias"], ["net.0.bias", "net.2.weight", "net.2.bias", "net.4.weight"])
device = {"target": "cuda", "arch": "sm_80", "threads": 1} if sys.argv[3:] else {}
if device:
    os.environ.update(LD_LIBRARY_PATH=sys.argv[3], SOFT_DEVICE="seed=1")
common = {**device, "optimizer": "sgd", "lr": 0.2, "momentum": 0.0, "reduction_shards": 4, "gather_bucket_size": 3000}


def path(name):
    return os.path.join(folder, name)


def option(layout):
    return {**common, **layout, "micro_batches": 4 // layout.get("dp", 1)}


def begin(part, layout):
    """A program that trains one part of the model, as the steps come."""
    run = Run(model, None, train=parts[part], freeze=parts[1 - part], save_weights=path(f"end{part}"), **option(layout))
    run.open_stream(steps[0][0])
    return run


def give(run, to, part):
    """What one program trains, as it is now, becomes the other's."""
    run.ask(("write", path("all")))
    write_stored(path("some"), {name: one for name, one in read_stored(path("all")).items() if name in parts[part]})
    to.ask(("take", path("some")))


def in_turn(layout):
    """Hash and losses of both, and what their weights are at the end."""
    runs = begin(0, layout), begin(1, layout)
    for at, step in enumerate(steps):
        for mine in (0, 1):
            if at or mine:
                give(runs[1 - mine], runs[mine], 1 - mine)
            runs[mine].submit(step)
    give(runs[1], runs[0], 1)
    for run in runs:
        run.end_stream()
    results = [run.result() for run in runs]
    check(results[0].weights_hash == results[1].weights_hash, f"{layout}: two programs end with other weights")
    return results[0].weights_hash, results[0].losses, results[1].losses


def chain(layout):
    """The same as runs of one step each, from file to file."""
    losses, more, result = ([], []), {}, None
    for step in steps:
        data = {name: np.stack([item[name] for item in step]) for name in step[0]}
        for mine in (0, 1):
            result = dsopt.train(model, data, train=parts[mine], freeze=parts[1 - mine], save_weights=path("chain"), **more, **option(layout))
            losses[mine].append(result.losses[0])
            os.rename(path("chain"), path("before"))
            more = {"weights": path("before")}
    return result.weights_hash, *losses


LAYOUTS = [{}, {"dp": 2, "zero": 2}, {"dp": 2, "pp": 2, "zero": 3}] if device else [{}, {"dp": 2, "zero": 2, "threads": 2}, {"dp": 2, "pp": 2, "zero": 3},
           {"dp": 4, "zero": 3, "node_size": 2, "secondary_params": "node", "param_persistence_threshold": 100}]
KEPT = [{"dp": 2, "zero": 2, "offload_optimizer": "cpu"}]
if not device:
    KEPT.append({"dp": 2, "zero": 3, "offload_params": "nvme", "offload_optimizer": "nvme", "nvme_path": folder})
for precision, layouts in (("fp32", sampled([*LAYOUTS, {"dp": 2, "zero": 1}], 3)), ("bf16", sampled(LAYOUTS[1:3], 1))):
    want = chain({"precision": precision})
    check(len(set(want[1] + want[2])) == 6, want)
    for layout in layouts:
        got = in_turn({**layout, "precision": precision})
        check(got == want, f"{layout}: {got}, a chain of runs {want}")
        print(precision, layout, got[0][:16], flush=True)


write_stored(path("other"), {name: one for name, one in read_stored(path("before")).items() if name not in ("net.0.bias", "net.2.weight")})


def adam(layout, **options):
    """Trains all but one part, a step at a time."""
    run = Run(model, None, save_weights=path("end"), freeze=["net.2.bias", "net.4.weight"],
              **{**device, **layout, "reduction_shards": 4, "lr": 1e-2, "micro_batches": 4 // layout.get("dp", 1), **options})
    run.open_stream(steps[0][0])
    return run


def replaced(layout):
    """Adam goes on with other weights, trained and frozen, and its own state; and another layout from a checkpoint of that."""
    run = adam(layout)
    run.submit(steps[0])
    run.ask(("write", path("one")), ("take", path("other")), ("write", path("now")))
    run.submit(steps[1])
    run.ask(("save", path("saved")), ("write", path("two")))
    run.submit(steps[2])
    run.end_stream()
    result = run.result()
    one, now, two, other = (dsopt.read_weights(path(name)) for name in ("one", "now", "two", "other"))
    check(all(np.array_equal(now[name], other.get(name, one[name])) for name in now), f"{layout}: other weights than those it took")
    check(all(np.array_equal(two[name], now[name]) == (name in ("net.2.bias", "net.4.weight")) for name in now), f"{layout}: what a step changes")
    again = adam({**LAYOUTS[2], "precision": layout["precision"]}, resume=path("saved"))
    again.submit(steps[2])
    again.ask(("save", path("again")))  # has what the first one took, too
    again.end_stream()
    end = again.result()
    check(end.weights_hash == result.weights_hash, f"{layout}: a checkpoint changed the bits")
    held = [set(read_stored(f"{path(name)}/replaced.safetensors")) if layout["precision"] == "bf16" else not os.path.exists(f"{path(name)}/replaced.safetensors")
            for name in ("saved/step-00000002", "again/step-00000003")]
    check(held[0] == held[1] and held[0], held)
    for name in ("saved", "again"):
        shutil.rmtree(path(name))
    return result.weights_hash, result.losses


for precision in ("fp32", "bf16"):
    runs = [replaced({**layout, "precision": precision}) for layout in sampled([*LAYOUTS[1:], *KEPT], 2)]
    check(all(run == runs[0] for run in runs), f"{precision}: layouts differ: {runs}")
    print(precision, f"{len(runs)} layouts, {runs[0][0][:16]}", flush=True)


# What a model in f16 trains as fp32 masters is written, and taken, as these.
weight = np.linspace(-1, 1, 12, dtype=np.float16).reshape(4, 3)
nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Tanh", ["y"], ["t"]), helper.make_node("ReduceMean", ["t"], ["loss"], keepdims=0)]
graph = helper.make_graph(nodes, "half", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, (2, 4))],
                          [helper.make_tensor_value_info("loss", TensorProto.FLOAT16, ())], [numpy_helper.from_array(weight, "w")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path("half.onnx"))
run = Run(path("half.onnx"), None, **{**common, "micro_batches": 1, "reduction_shards": 1, "precision": "fp32"})
ones = {"x": np.ones((2, 4), np.float16)}
run.open_stream(ones)
run.submit([ones])
run.ask(("write", path("one")), ("take", path("one")), ("write", path("two")))
run.close()
one, two = (read_stored(path(name))["w"] for name in ("one", "two"))
check(one.dtype == "F32" and bytes(one.data) == bytes(two.data) and bytes(one.data) != weight.astype(np.float32).tobytes(), one)

if device:
    print("passed")
    sys.exit()


# What cannot be taken ends the run with one message, whichever rank met it.
def refused(wishes, *words, strikes="", before=1, **options):
    run = adam({"dp": 2, "zero": 3, **options})
    os.environ["DSOPT_FAULT"] = strikes
    try:
        for step in range(before):
            run.submit(steps[step % 3])
        error = fails(lambda: run.ask(*wishes), *words)
        check(str(error).count("\n") == 0, f"more than one message: {error}")
    finally:
        run.close()
        os.environ.pop("DSOPT_FAULT")


def wrong(name, value, like="net.0.bias"):
    write_stored(path("wrong"), {"net.4.bias": read_stored(path("other"))["net.4.bias"], name: stored_of(value, name)})
    return [("take", path("wrong"))]


refused(wrong("net.9.bias", np.zeros(3, np.float32)), "wrong: holds 'net.9.bias', which the model does not have")
refused(wrong("net.0.bias", np.zeros(3, np.float32)), "wrong: tensor 'net.0.bias' is 3, expected 64")
refused(wrong("net.0.bias", np.zeros(64)), "wrong: tensor 'net.0.bias' is of type F64, expected F32, BF16 or F16")
refused([("take", path("nowhere"))], "nowhere: it cannot be read: No such file or directory")
refused([("write", path("nowhere/file"))], "nowhere/file", "No such file or directory")
refused([("fetch", path("other"))], "ask: line 1: expected 'save FOLDER', 'write FILE' or 'take FILE'")
take = [("take", path("other"))]
refused(take, "other: its header cannot be read: Input/output error", strikes="pread,rank=1,step=0:error=EIO")
refused(take, "rank 1", strikes="replace,rank=1:kill")
refused(take, "'net.0.weight' cannot be replaced while each rank has values of its own", before=3, zero=1, optimizer="zero-one-adam",
        freeze_step=1, local_step_scaler=1)
print("passed")
