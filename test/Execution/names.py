"""Any name that ONNX allows, for parameters, inputs and outputs: the same bits as with plain names, in every
layout, in what is saved, and in a checkpoint.

usage: names.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
import onnx

from runs import execute
from small import TensorProto, check, initializer, node, train, value, write

dsopt = sys.argv[1]
folder = tempfile.mkdtemp()
random = np.random.default_rng(5)
x = random.standard_normal((8, 4, 6)).astype(np.float32)
labels = random.integers(0, 5, (8, 4))
weights = [random.standard_normal(shape).astype(np.float32) for shape in ((6, 7), (7,), (7, 5), (5,))]
PLAIN = ["w1", "b1", "w2", "b2"]


def build(name, names, x="x", labels="labels", loss="loss"):
    w1, b1, w2, b2 = names
    nodes = [node("Gemm", [x, w1, b1], ["h"]), node("Tanh", ["h"], ["t"]), node("Gemm", ["t", w2, b2], ["z"]),
             node("SoftmaxCrossEntropyLoss", ["z", labels], [loss])]
    inputs = [value(x, (4, 6)), value(labels, (4,), TensorProto.INT64)]
    return write(os.path.join(folder, name + ".onnx"), nodes, inputs, [initializer(n, v) for n, v in zip(names, weights)],
                 outputs=[value(loss)])


LAYOUTS = [["-dp=1", "-micro-batches=4"], ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2"], ["-dp=2", "-zero=1", "-micro-batches=2", "-precision=bf16"]]
BASE = ["-steps=2", "-lr=1e-2", "-reduction-shards=2"]


def go(path, data, layout, *more):
    return train(dsopt, path, data, *layout, *BASE, *more)


plain = build("plain", PLAIN)
data = {"x": x, "labels": labels}
want = [go(plain, data, layout) for layout in LAYOUTS]
# Names that the compiler has use for itself, or makes of others.
CASES = [["update", "evaluate", "micro_batch", "forward"], ["p", "p.m", "p.v", "p.grad.0"], ["p", "p.master", "p.m~", "p.m"],
         ["block0.F", "block1.W", "kernel0", "kernel1"], ["update.adamw", "convert", "b0", "b1"], ["seed", "scalars", "context", "staging"],
         ["input.x", "x.1", "step", "dsopt.options"], ["a b", "c/d", 'e"f', "g\\h"], ["%x", "@y", "*", "?[z]"], ["ü", "名前", "\n", "p.momentum"],
         ["tied.w", "frozen.w", "b0.loss", "b0.statistics"]]
for case, names in enumerate(CASES):
    path = build(f"case{case}", names)
    for layout, (run, saved) in zip(LAYOUTS, want):
        got, mine = go(path, data, layout)
        check(got.loss_text == run.loss_text, f"{names} under {layout}: {got.loss_text}, expected {run.loss_text}")
        check(set(mine) == set(names), f"{names}: saved {sorted(mine)}")
        for ours, theirs in zip(names, PLAIN):
            check(np.array_equal(mine[ours], saved[theirs]), f"{names} under {layout}: '{ours}' differs")
    listed = execute([dsopt, path, "-list-parameters"]).stdout
    check("4 of 4 initializers are trained" in listed, listed)
    print(f"parameters {names}: as with plain names", flush=True)

# A checkpoint keeps a parameter and the state of another of the same name apart.
path = build("checkpoint", ["p", "p.m", "p.v", "q"])
with tempfile.TemporaryDirectory() as checkpoints:
    go(path, data, LAYOUTS[0], f"-save={checkpoints}")
    resumed, mine = train(dsopt, path, data, "-dp=2", "-zero=2", "-pp=2", "-lr=1e-2", "-steps=4", f"-resume={checkpoints}")
    whole, expected = train(dsopt, path, data, *LAYOUTS[0], "-reduction-shards=2", "-lr=1e-2", "-steps=4")
    check(resumed.hash == whole.hash and resumed.loss_text == whole.loss_text[2:], "a resumed run has other bits")

# What is saved as ONNX has the model's names, and trains on.
saved = os.path.join(folder, "saved.onnx")
go(build("again", CASES[0]), data, LAYOUTS[0], f"-save-onnx={saved}")
check({tensor.name for tensor in onnx.load(saved).graph.initializer} == set(CASES[0]), "-save-onnx changes names")
go(saved, data, LAYOUTS[0])

# Weights in Constant nodes have the names of the nodes' results, in what is saved too.
path = os.path.join(folder, "nodes.onnx")
held = onnx.load(plain)
for tensor in reversed(list(held.graph.initializer)):
    held.graph.node.insert(0, onnx.helper.make_node("Constant", [], [tensor.name], value=tensor))
    held.graph.initializer.remove(tensor)
onnx.save(held, path)
for layout, (run, _) in zip(LAYOUTS, want):
    got, mine = go(path, data, layout, f"-save-onnx={saved}")
    check(got.hash == run.hash and set(mine) == set(PLAIN), f"weights in nodes under {layout}: {sorted(mine)}")
    check({tensor.name for tensor in onnx.load(saved).graph.initializer} == set(PLAIN), "-save-onnx loses weights of nodes")
    check(all(one.op_type != "Constant" for one in onnx.load(saved).graph.node), "-save-onnx leaves the nodes")
with tempfile.TemporaryDirectory() as checkpoints:
    go(path, data, LAYOUTS[0], f"-save={checkpoints}")
    resumed, mine = train(dsopt, plain, data, "-dp=2", "-zero=2", "-pp=2", "-lr=1e-2", "-steps=4", f"-resume={checkpoints}")
print("weights in nodes: as with initializers", flush=True)
# One that is frozen stays a constant, in what is saved too: the same options give the same bits of both.
batches = os.path.join(folder, "data.npz")
np.savez(batches, **data)
for frozen in ("w1", "b?", "*1", "*2"):
    freeze, start = f"-freeze={frozen}", os.path.join(folder, "start.safetensors")
    execute([dsopt, path, "-run", f"-data={batches}", *LAYOUTS[2], *BASE, freeze, f"-save-onnx={saved}", f"-save-weights={start}"])
    other, _ = train(dsopt, saved, data, *LAYOUTS[0], "-reduction-shards=2", "-steps=1", freeze)
    mine, _ = train(dsopt, path, data, *LAYOUTS[0], "-reduction-shards=2", "-steps=1", freeze, f"-weights={start}")
    check((other.loss_text, other.hash) == (mine.loss_text, mine.hash), f"{freeze}: what is saved gives {other.loss_text} {other.hash}, expected {mine.loss_text} {mine.hash}")
    listed = [execute([dsopt, one, "-list-parameters", freeze]).stdout.splitlines()[-1] for one in (path, saved)]
    check(listed[0] == listed[1], f"{freeze}: {listed[1]}, expected {listed[0]}")

# Options name parameters as the model does.
frozen, mine = go(build("frozen", CASES[0]), data, LAYOUTS[0], "-freeze=update")
check(np.array_equal(mine["update"], weights[0]) and not np.array_equal(mine["evaluate"], weights[1]), "-freeze by name")

# Inputs and outputs.
for names in (("seed", "scalars", "update"), ("context", "dsopt.context", "forward"), ("input.x", "x y", "*")):
    path = build("inputs", PLAIN, *names)
    got, mine = go(path, {names[0]: x, names[1]: labels}, LAYOUTS[1])
    check(got.loss_text == want[1][0].loss_text and got.hash == want[1][0].hash, f"inputs {names}")
    print(f"inputs {names}: as with plain names", flush=True)
print("passed")
