"""bound_inputs.py FOLDER: writes models with inputs of all types that a value can be bound to, and data for one of them."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
FLOAT = TensorProto.FLOAT


def info(name, *shape, type=FLOAT):
    return helper.make_tensor_value_info(name, type, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name="the_" + outputs.split()[0], **attributes)


def save(name, nodes, inputs, initializers=(), x=("N", 6)):
    """The nodes give y of x."""
    weights = [numpy_helper.from_array(np.full((6, 2), 0.5, np.float32), "w"), *initializers]
    graph = helper.make_graph([*nodes, node("ReduceMean", "y", "loss", keepdims=0)], "g", [info("x", *x), *inputs], [info("loss")], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), os.path.join(folder, name + ".onnx"))


TYPES = {"f32": FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "i8": TensorProto.INT8, "i32": TensorProto.INT32,
         "i64": TensorProto.INT64, "u8": TensorProto.UINT8, "u64": TensorProto.UINT64, "flag": TensorProto.BOOL}
# y is x w times the sum of all as floats.
casts = [node("Cast", name, f"{name}_float", to=FLOAT) for name in TYPES]
save("types", [*casts, node("Sum", " ".join(f"{name}_float" for name in TYPES), "sum"), node("MatMul", "x w", "z"), node("Mul", "z sum", "y")],
     [info(name, type=type) for name, type in TYPES.items()])
# Shapes: of x, of a list of as many as x has rows, of a table, and none at all.
save("shapes", [node("Reshape", "x sizes", "r"), node("Mul", "r scale", "s"), node("Add", "s table", "t"), node("Mul", "t free", "y")],
     [info("sizes", 2, type=TensorProto.INT64), info("scale", "N"), info("table", "A", "B"),
      helper.make_tensor_value_info("free", FLOAT, None)])
# A default of the file, a sequence, a word, a label and a learned temperature.
save("others", [node("MatMul", "x w", "z"), node("Div", "z default", "q"), node("Mul", "q temperature", "y")],
     [info("default"), info("temperature"), info("word", type=TensorProto.STRING), helper.make_tensor_sequence_value_info("list", FLOAT, None)],
     [numpy_helper.from_array(np.float32(2), "default")])
np.savez(os.path.join(folder, "data.npz"), x=np.ones((3, 4, 6), np.float32), temperature=np.ones(3, np.float32))
np.savez(os.path.join(folder, "x.npz"), x=np.ones((3, 4, 6), np.float32), T=np.ones((3, 4, 2), np.float32))
