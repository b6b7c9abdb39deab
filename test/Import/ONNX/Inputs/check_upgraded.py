"""Nodes of old opsets as -save-onnx writes them: valid, and what they were, as onnx's evaluator computes them.

usage: check_upgraded.py IMPORT CONFORMANCE-INPUTS FOLDER
"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

tool, inputs, folder = sys.argv[1:]
sys.path.insert(0, inputs)
import old_forms  # noqa: E402

os.makedirs(folder, exist_ok=True)
failures = checked = 0
for case in old_forms.CASES:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = 8
    graph = model.graph
    # Floats of more than one dimension are data, all else is known. The loss reads all outputs.
    values, expected = case.data_sets[0]
    data = {info.name: value for info, value in zip(graph.input, values) if value.dtype.kind == "f" and value.ndim > 1}
    graph.initializer.extend(numpy_helper.from_array(value, info.name) for info, value in zip(graph.input, values) if info.name not in data)
    kept = [info for info in graph.input if info.name in data]
    del graph.input[:]
    graph.input.extend(kept)
    names = [info.name for info in graph.output]
    for name in names:
        graph.node.append(helper.make_node("Cast", [name], [f"{name}_float"], to=TensorProto.FLOAT))
        graph.node.append(helper.make_node("ReduceMean", [f"{name}_float"], [f"{name}_mean"], keepdims=0))
    graph.node.append(helper.make_node("Sum", [f"{name}_mean" for name in names], ["loss"]))
    graph.output.append(helper.make_tensor_value_info("loss", TensorProto.FLOAT, []))
    path = os.path.join(folder, case.name + ".onnx")
    onnx.save(model, path)
    done = subprocess.run([tool, path, "--save-onnx"], capture_output=True)
    if done.returncode:
        continue
    saved = onnx.load_from_string(done.stdout)
    present = {tensor.name for tensor in saved.graph.initializer}
    saved.graph.initializer.extend(tensor for tensor in graph.initializer if tensor.name not in present)
    try:
        onnx.checker.check_model(saved, full_check=True)
        got = ReferenceEvaluator(saved).run(names, data)
        wrong = [name for name, one, other in zip(names, got, expected) if one.shape != other.shape or not np.allclose(one, other, case.rtol, case.atol)]
    except Exception as error:
        wrong = [str(error)]
    checked += 1
    failures += bool(wrong)
    if wrong:
        print(f"{case.name}: {wrong}")
print(f"{checked} of {len(old_forms.CASES)} forms, {failures} wrong")
sys.exit(failures > 0)
