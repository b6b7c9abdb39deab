"""shipped.py BIN SCRATCH: the models that onnx ships with inputs and outputs, through dsopt's compiled kernels.

Those of opset 6 have to be refused by their opset, and run as onnx's converter writes them in opset 7. Of the
"light" models, whose weights are made by ConstantOfShape, the first output is compared where it is shipped.
Prints what fails, what is refused and by which message, and a line `N right, N refused, N failed`."""
import collections
import glob
import os
import subprocess
import sys
import types
import warnings

import onnx
from onnx import numpy_helper, version_converter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from onnx_cases import Case, run_all  # noqa: E402
from sampled import sampled  # noqa: E402

warnings.simplefilter("ignore")
folder, scratch = sys.argv[1:]
data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
# What a model may be refused with.
REFUSALS = ("has an operator that is not available", "element type STRING", "expected a constant")


def read(path, kind):
    with open(path, "rb") as file:
        if kind.HasField("tensor_type"):
            return numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))
    return None


def opset_of(model):
    return next(opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx"))


cases, skipped, old = [], collections.Counter(), []
for path in sorted(glob.glob(os.path.join(data, "simple", "*", "model.onnx")) +
                   glob.glob(os.path.join(data, "pytorch-*", "*", "model.onnx"))):
    name = "_".join(path.split(os.sep)[-3:-1])
    model = onnx.load(path)
    if not any(opset.domain in ("", "ai.onnx") for opset in model.opset_import):
        skipped["no opset"] += 1
        continue
    if opset_of(model) < 7:
        old.append(path)
        model = version_converter.convert_version(model, 7)
        model.ir_version = 3
    given = [value for value in model.graph.input if value.name not in {tensor.name for tensor in model.graph.initializer}]
    tensors = os.path.join(os.path.dirname(path), "test_data_set_0")
    inputs = [read(os.path.join(tensors, f"input_{k}.pb"), value.type) for k, value in enumerate(given)]
    for value, array in zip(given, inputs):  # what data would say
        for dim, size in zip(value.type.tensor_type.shape.dim, () if array is None else array.shape):
            dim.dim_value = size
    outputs = [read(os.path.join(tensors, f"output_{k}.pb"), value.type) for k, value in enumerate(model.graph.output)]
    case = Case(types.SimpleNamespace(name=name, model=model, rtol=1e-3, atol=1e-6, data_sets=[(inputs, outputs)]), "shipped")
    case.own_inputs = []
    reason = "a slope of PRelu by channel, which onnx's converter takes along to opset 7" if "PReLU" in name and "multiparam" in name else \
        case.unsuitable()
    if reason:
        skipped[reason] += 1
    else:
        cases.append(case)

importer = os.path.join(folder, "dsopt-import")
for path in sampled(old, 3):
    result = subprocess.run([importer, path], capture_output=True, text=True)
    if "uses opset 6, expected 7 to 28" not in result.stderr:
        print("failed", path, result.stderr.strip()[:200])
cases = sampled(cases, 60)
run_all([os.path.join(folder, "dsopt-forward")], Case.compare, cases, scratch)
refused = [case for case in cases if case.problem and any(text in case.problem for text in REFUSALS)]
failed = [case for case in cases if case.problem and case not in refused]
for case in refused:
    print("refused", case.name, case.problem[:200])
for case in failed:
    print("failed", case.name, case.problem[:200])
for reason, count in sorted(skipped.items()):
    print(f"skipped: {count} with {reason}")
for path in sampled(sorted(glob.glob(os.path.join(data, "light", "*.onnx"))), 3):
    output = onnx.load(path).graph.output[0].name
    result = subprocess.run([importer, path, f"--loss=cross-entropy:{output},labels"], capture_output=True, text=True)
    print("light:", os.path.basename(path), "imported" if result.returncode == 0 else "failed " + result.stderr.strip()[:300])
print(f"{len(cases) - len(refused) - len(failed)} right, {len(refused)} refused, {len(failed)} failed")
