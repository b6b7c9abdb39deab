"""check_model.py IMPORT MODEL-FOLDER SCRATCH: imports a reference model and
compares its parameters with the recorded list, the losses of step 0, computed by
folding, with PyTorch's, and a saved model with the original."""
import json
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

tool, folder, scratch = sys.argv[1:4]
os.makedirs(scratch, exist_ok=True)
model = os.path.join(folder, "model.onnx")
meta = json.load(open(os.path.join(folder, "meta.json")))
batches = np.load(os.path.join(folder, "batches.npz"))
reference = np.load(os.path.join(folder, "reference.npz"))
shapes = [f"--input-shape={n}={','.join(map(str, batches[n].shape))}" for n in meta["graph_inputs"]]


def run(*arguments):
    return subprocess.run([tool, model, *shapes, *arguments], check=True, stdout=subprocess.PIPE).stdout


listed = [line.split() for line in run("--list-parameters").decode().splitlines()[1:-1]]
trained = {name: type for name, type, _, use, *_ in listed if use == "trained"}
expected = {t["name"]: "x".join(map(str, t["shape"])) + "xf32" for t in meta["trainable"]}
assert trained == expected, (trained, expected)

for j, loss in enumerate(reference["step0/loss_micro"]):
    inputs = []
    for name in meta["graph_inputs"]:
        path = os.path.join(scratch, name)
        batches[name][0, j].tofile(path)
        inputs.append(f"--input={name}={path}")
    got = float(run("--evaluate", *inputs))
    assert abs(got - loss) <= 2e-6 * abs(loss), (j, got, loss)

# The saved model with the initializers appended, as the runtime does it.
weights = {t.name: t for t in onnx.load(model).graph.initializer}
fragment = onnx.ModelProto()
fragment.graph.initializer.extend(weights[name] for name in trained)
saved = onnx.load_from_string(run("--save-onnx") + fragment.SerializeToString())
onnx.checker.check_model(saved)
if "GatherElements" not in meta["ops"]:  # wrong in onnx 1.23's evaluator
    feeds = {name: batches[name][0, 0] for name in meta["graph_inputs"]}
    loss = ReferenceEvaluator(saved).run(["loss"], feeds)[0]
    assert abs(loss - reference["step0/loss_micro"][0]) <= 1e-5 * abs(loss), loss
print("checked", len(trained), "parameters")
