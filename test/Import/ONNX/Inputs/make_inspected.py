"""Models that dsopt inspect looks into. usage: make_inspected.py FOLDER"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(3)
folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)


def node(op, inputs, outputs, domain="", **attributes):
    return helper.make_node(op, inputs.split(" "), outputs.split(), name=f"the_{op}", domain=domain, **attributes)


def value(name, shape=None, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, shape)


def tensor(name, *shape):
    return numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)


def number(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def write(name, nodes, inputs, outputs, initializers=(), opset=17, domains=(), functions=(), **external):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    sets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=7, producer_name="maker", producer_version="1.2", functions=list(functions))
    onnx.save(model, os.path.join(folder, name), **external)


product = node("Gemm", "x w b", "y")
weights = [tensor("w", 6, 5), tensor("b", 5)]
rows = [value("x", ["batch", 6])]

# A classifier that ends in probabilities, with a number that nothing says what it is.
write("classifier.onnx", [product, node("Mul", "y scale", "z"), node("Softmax", "z", "p"), node("ArgMax", "z", "choice", axis=1, keepdims=0)],
      rows, [value("p", ["batch", 5]), value("choice", ["batch"], TensorProto.INT64)], [*weights, number("scale", np.float32(1.5))])
# The same of an old opset, where the softmax is written anew.
for name, axis in (("old-rows", 2), ("old-all", 1)):
    write(f"{name}.onnx", [product, node("Unsqueeze", "y", "u", axes=[1]), node("Softmax", "u", "p", axis=axis)], rows, [value("p", ["batch", 1, 5])],
          weights, opset=9)
write("old-wide.onnx", [product, node("Unsqueeze", "y", "u", axes=[1]), node("Concat", "u u u u u", "v", axis=1), node("Softmax", "v", "p", axis=1)], rows,
      [value("p", ["batch", 5, 5])], weights, opset=9)
# Written out, and one that is scaled since.
SHIFTED = [product, node("ReduceMax", "y", "m", axes=[1]), node("Sub", "y m", "d"), node("Exp", "d", "e"), node("ReduceSum", "e axes", "s")]
for name, end, more in (("written", [*SHIFTED, node("Div", "e s", "p")], [number("axes", np.array([1]))]),
                        ("written-log", [*SHIFTED, node("Log", "s", "l"), node("Sub", "d l", "p")], [number("axes", np.array([1]))]),
                        ("written-sigmoid", [product, node("Neg", "y", "n"), node("Exp", "n", "e"), node("Add", "e one", "q"), node("Div", "one q", "p")], [number("one", np.float32(1))]),
                        ("scaled", [product, node("Softmax", "y", "t"), node("Mul", "t two", "p")], [number("two", np.float32(2))])):
    write(f"{name}.onnx", end, rows, [value("p", ["batch", 5])], [*weights, *more])
write("old.onnx", [product, node("Softmax", "y", "p")], rows, [value("p", ["batch", 5])], weights, opset=9)
write("heads.onnx", [node("MatMul", "x w", "a"), node("MatMul", "x v", "c")], rows, [value("a"), value("c")], [tensor("w", 6, 5), tensor("v", 6, 3)])
# One number is no class.
write("regression.onnx", [node("MatMul", "x v", "y")], rows, [value("y", ["batch", 1])], [tensor("v", 6, 1)])
write("binary.onnx", [node("MatMul", "x v", "s"), node("Sigmoid", "s", "p")], rows, [value("p", ["batch", 1])], [tensor("v", 6, 1)])
write("image.onnx", [node("Conv", "x k", "y"), node("Softmax", "y", "p", axis=1)], [value("x", ["n", 3, "h", "w"])], [value("p")], [tensor("k", 4, 3, 3, 3)])
write("loss.onnx", [product, node("SoftmaxCrossEntropyLoss", "y labels", "objective")], [*rows, value("labels", ["batch"], TensorProto.INT64)],
      [value("objective", []), value("y", ["batch", 5])], weights)
# Declared as one number, but one for each row: no loss.
write("misdeclared.onnx", [node("MatMul", "x v", "y"), node("Squeeze", "y last", "score")], rows, [value("score", [])], [tensor("v", 6, 1), number("last", [1])])
# States have their rows second.
write("states.onnx", [node("LSTM", "x w r   h c", "all last", hidden_size=4), node("Squeeze", "last first", "y")],
      [value("x", ["steps", "batch", 3]), value("h", [1, "batch", 4]), value("c", [1, "batch", 4]), value("unused", [2])], [value("y", ["batch", 4])],
      [tensor("w", 1, 16, 3), tensor("r", 1, 16, 4), number("first", [0])])
# Ids, a mask, and rows of different symbols.
write("tokens.onnx", [node("Gather", "table ids", "e"), node("Unsqueeze", "mask last", "m"), node("Cast", "m", "f", to=1), node("Mul", "e f", "y")],
      [value("ids", ["a", "b"], TensorProto.INT32), value("mask", ["c", "d"], TensorProto.BOOL)], [value("y")], [tensor("table", 11, 8), number("last", [2])])
# Sizes that only the weights say; only the second is found by trying.
write("open.onnx", [node("MatMul", "x w", "y")], [value("x", ["n", "wide"])], [value("y")], [tensor("w", 77, 3)])
write("guessed.onnx", [node("MatMul", "x w", "y")], [value("x", ["n", "wide"])], [value("y")], [tensor("w", 128, 3)])
write("many.onnx", [node("Sum", " ".join(f"t{i}" for i in range(30)), "s"), node("Add", "x s", "y")], [value("x", [4, 3])], [value("y", [4, 3])],
      [tensor(f"t{i}", 4, 3) for i in range(30)])
write("shapeless.onnx", [product], [value("x")], [value("y")], weights)
write("text.onnx", [node("StringNormalizer", "x", "y")], [value("x", [2], TensorProto.STRING)], [value("y", [2], TensorProto.STRING)])
write("nothing.onnx", [node("Relu", "x", "y")], rows, [value("y", ["batch", 6])])
write("double.onnx", [node("MatMul", "x w", "y")], [value("x", [4, 6], TensorProto.DOUBLE)], [value("y", [4, 5], TensorProto.DOUBLE)],
      [numpy_helper.from_array(random.standard_normal((6, 5)), "w")])
function = helper.make_function("own", "Twice", ["a"], ["c"], [helper.make_node("Add", ["a", "a"], ["c"])], [helper.make_opsetid("", 17)])
write("function.onnx", [product, node("Twice", "y", "z", "own")], rows, [value("z", ["batch", 5])], weights, domains=["own"], functions=[function])
# Weights that are not there: alone, and with the constants.
reshaped = [product, node("Reshape", "y shape", "z")]
for name, least in (("no-weights.onnx", 100), ("no-constants.onnx", 0)):
    data = name.replace("onnx", "data")
    write(name, reshaped, [value("x", [4, 6])], [value("z", [2, 10])], [tensor("w", 6, 5), number("b", np.zeros(5, np.float32)), number("shape", [2, 10])],
          save_as_external_data=True, location=data, size_threshold=least)
    os.remove(os.path.join(folder, data))
# Some of it is refused, all for other reasons; the softmax needs none of that.
write("refused.onnx", [product, node("FusedGelu", "y", "fused", "com.microsoft"), node("Relu", "fused", "behind"), node("DynamicQuantizeLinear", "y", "q s z"),
                       node("Greater", "y zero", "m"), node("NonZero", "m", "found"), node("Unique", "y", "unique"), node("Unique", "m", "other"),
                       node("Softmax", "y", "p")], rows,
      [value("behind"), value("p", ["batch", 5]), value("q", None, TensorProto.UINT8), value("found", None, TensorProto.INT64), value("unique"),
       value("other", None, TensorProto.BOOL)], [*weights, number("zero", np.float32(0))], domains=["com.microsoft"])
write("pieces.onnx", [product, node("SplitToSequence", "y", "pieces")], rows,
      [helper.make_tensor_sequence_value_info("pieces", TensorProto.FLOAT, None), value("y", ["batch", 5])], weights)
# Which branch is taken is known: what is in the other one counts nothing.
branches = [helper.make_graph([node(op, "y", name)], name, [], [value(name)]) for op, name in (("Relu", "taken"), ("Unique", "other"))]
write("branch.onnx", [product, node("If", "yes", "z", then_branch=branches[0], else_branch=branches[1])], rows, [value("z", ["batch", 5])],
      [*weights, number("yes", True)])
branches = [helper.make_graph([node("MatMul", f"x {name}", f"{name}y")], name, [], [value(f"{name}y")]) for name in ("fast", "slow")]
write("rate.onnx", [node("Equal", "rate high", "is"), node("If", "is", "y", then_branch=branches[0], else_branch=branches[1])],
      [value("x", [4, 6]), value("rate", [], TensorProto.INT64)], [value("y")], [tensor("fast", 6, 3), tensor("slow", 6, 3), number("high", 16000)])
write("cycle.onnx", [node("Add", "x b", "a"), node("Relu", "a", "b")], rows, [value("a")])
