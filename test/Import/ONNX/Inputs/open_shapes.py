"""open_shapes.py BIN SCRATCH: shapes that a file leaves open or says wrongly, and data in double, by `dsopt predict`."""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

dsopt, scratch = os.path.join(sys.argv[1], "dsopt"), sys.argv[2]
os.makedirs(scratch, exist_ok=True)
os.chdir(scratch)
count = 0


def predict(data, expected, *options, shape=("?", "?"), declared=("?", "?"), says=()):
    """Of y = relu(x): the outputs, or a refusal's text; and what is said beside."""
    global count
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [info("x", TensorProto.FLOAT, shape)],
                              [info("y", TensorProto.FLOAT, declared)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4), "model.onnx")
    np.savez("data.npz", x=data)
    result = subprocess.run([dsopt, "predict", "model.onnx", "-data=data.npz", "-save-outputs=o.npz", *options], capture_output=True, text=True)
    for text in says:
        assert text in result.stderr + result.stdout, (text, result.stderr, result.stdout)
    if expected is None:
        assert result.returncode != 0, result.stdout
    else:
        assert result.returncode == 0, result.stderr
        np.testing.assert_array_equal(np.load("o.npz")["y"].reshape(expected.shape), expected)
    count += 1


x = np.random.default_rng(3).normal(size=(1, 4, 6)).astype(np.float32)
y = x.clip(0)
# Two open dimensions of one name, or none, are two sizes; a stream of micro-batches says both.
for shape in (("?", "?"), (None, None), (-1, 6), (-1, -1)):
    predict(x, y, shape=shape)
# Rows: their number a micro-batch has to be said, by the option or by the axis.
predict(x[0], y[0], "-micro-batch-size=2")
predict(x[0], y[0], "-dim=x:0=2", "-dim=x:1=6")
predict(x[0], None, says=["dimension 0 of input 'x' is symbolic: give it a value with -dim=x:0=VALUE, or say how many rows of its data's "
                          "[4, 6] a micro-batch has with -micro-batch-size=B"])
predict(x[0], None, "-dim=x:2=6", says=["-dim=x:2=6 names no symbolic dimension of the model, expected one of x:0, x:1"])
# Without a shape the data's is the input's.
predict(x[0], y[0], "-micro-batch-size=4", shape=None)
predict(x, y, "-dim=x:0=4", "-dim=x:1=6", shape=None)
# What is computed counts.
predict(x, y, declared=(4, 6, 1), says=["output 'y' is declared with the shape [4, 6, 1], but is computed as 'tensor<4x6xf32>', which is what counts"])
predict(x, y, declared=(-1, 6))
# Python's numbers are double.
double = x.astype(np.float64) * 1.0000000001
predict(double, double.astype(np.float32).clip(0), says=["array 'x' has type f64 and is rounded to f32"])
predict(np.where(x == x[0, 0, 0], 1e300, double), None, says=["a value of type f64 does not fit into f32"])
print(f"{count} as expected")
