"""An infinite element of a weight whose gradient is zero stays as it is under every optimizer, in every layout and on a device,
and the others are trained; a NaN is named.

usage: infinities.py DSOPT [FOLDER]
FOLDER has the device in software.
"""
import os
import sys
import tempfile

import numpy as np

from runs import check, execute
from small import TensorProto, initializer, node, train, value, write

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="infinities-")
random = np.random.default_rng(2)
table = random.standard_normal((6, 5)).astype(np.float32)
table[0] = -np.inf  # nobody reads it
table[1, 2] = -np.inf  # behind a softmax
table[5] = np.inf
infinite = np.isinf(table)
out = random.standard_normal((5, 3)).astype(np.float32)
nodes = [node("Gather", "table ids", "e"), node("Add", "x e", "s"), node("Softmax", "s", "p"), node("MatMul", "p out", "y"), node("Sub", "y t", "d"),
         node("Mul", "d d", "q"), node("ReduceMean", "q", "loss", keepdims=0)]
inputs = [value("x", (4, 5)), value("ids", (4,), TensorProto.INT64), value("t", (4, 3))]


def build(name, values):
    return write(os.path.join(folder, name), nodes, inputs, [initializer("table", values), initializer("out", out)])


path = build("inf.onnx", table)
data = {"x": random.standard_normal((8, 4, 5)).astype(np.float32), "ids": np.tile([1, 2, 3, 4], (8, 1)), "t": random.standard_normal((8, 4, 3)).astype(np.float32)}
RULES = ["sgd", "sgd -momentum=0.9", "sgd -weight-decay=0.1", "adam -weight-decay=0", "adam -weight-decay=0.1", "adamw -weight-decay=0", "adamw -weight-decay=0.1", "lion", "adagrad",
         "lamb -weight-decay=0", "lamb -weight-decay=0.1", "muon", "adafactor", "onebit-adam -freeze-step=2", "zero-one-adam", "onebit-lamb -freeze-step=2"]
LAYOUTS = [["-dp=1", "-micro-batches=2"], ["-dp=2", "-zero=1", "-micro-batches=1"]]
device = []
if len(sys.argv) > 2:
    RULES, device = RULES[:3], ["-target=cuda", "-arch=sm_80"]
    os.environ.update({"LD_LIBRARY_PATH": sys.argv[2], "SOFT_DEVICE": "seed=1"})
for rule in RULES:
    name, *more = rule.split()
    hashes = set()
    for layout in LAYOUTS:
        run, saved = train(dsopt, path, data, *layout, f"-optimizer={name}", *more, *device, "-steps=3", "-lr=1e-2", "-reduction-shards=2")
        check(np.array_equal(saved["table"][infinite], table[infinite]), f"{rule} {layout}: {saved['table']}")
        used = saved["table"][1:5][~infinite[1:5]]
        check(np.isfinite(used).all() and np.isfinite(saved["out"]).all(), f"{rule} {layout}: {saved}")
        check(not np.array_equal(used, table[1:5][~infinite[1:5]]), f"{rule} {layout}: nothing is trained")
        hashes.add(run.hash)
    check(len(hashes) == 1 or "onebit" in rule or "zero-one" in rule, f"{rule}: layouts differ")
    print(f"{rule}: infinite elements stay", flush=True)

if not device:
    table[2, 1] = np.nan
    said = execute([dsopt, build("nan.onnx", table), "-o", os.path.join(folder, "program")]).stderr
    check("initializer 'table' has 1 elements that are NaN of 30, the first at 11" in said, said)
print("passed")
