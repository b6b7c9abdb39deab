"""control_flow.py FOLDER: writes models with branches and loops, good and bad, by name."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)


def info(name, *shape, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, shape)


def array(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name="the_" + outputs.split()[0], **attributes)


def body(nodes, inputs, outputs, initializers=()):
    any_value = helper.make_empty_tensor_value_info
    return helper.make_graph(nodes, "body", [any_value(n) for n in inputs.split()], [any_value(n) for n in outputs.split()], list(initializers))


def save(name, nodes, inputs=(), initializers=(), functions=(), domains=()):
    """The nodes give y of x [4, 3]."""
    weights = [array("w", np.ones((3, 2), np.float32)), array("three", np.array(3)), array("true", np.array(True)), array("zero", np.float32(0)), *initializers]
    end = [node("MatMul", "y w", "z"), node("ReduceMean", "z", "loss", keepdims=0)]
    graph = helper.make_graph([*nodes, *end], "g", [info("x", 4, 3), *inputs], [info("loss")], weights)
    opsets = [helper.make_opsetid("", 18), *(helper.make_opsetid(d, 1) for d in domains)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=list(functions)), os.path.join(folder, name + ".onnx"))


double = [node("Add", "h h", "twice"), node("Identity", "go", "on")]
save("loop", [node("Loop", "three true x", "y", body=body(double, "i go h", "on twice"))])
# An initializer of the body is a parameter of the model, under a name of its own.
scaled = [node("Mul", "h w", "new"), node("Identity", "go", "on")]
save("initializer", [node("Loop", "three true x", "y", body=body(scaled, "i go h", "on new", [array("w", np.full((4, 3), 2, np.float32))]))])
# Siblings and inner graphs define names that are defined elsewhere.
inner = body([node("Mul", "t t", "s")], "", "s")
save("shadow", [node("Neg", "x", "t"), node("ReduceSum", "t", "sum", keepdims=0), node("Less", "sum zero", "c"),
                node("If", "c", "s", then_branch=body([node("Exp", "x", "t"), node("If", "true", "r", then_branch=inner, else_branch=inner)], "", "r"),
                     else_branch=body([node("Tanh", "t", "r")], "", "r")), node("Add", "s t", "y")])
branch = body([node("Mul", "v factor", "t")], "", "t")
function = helper.make_function("own", "Scaled", ["v", "on"], ["r"], [helper.make_node("Constant", [], ["factor"], value_float=0.25),
                                helper.make_node("If", ["on"], ["r"], then_branch=branch, else_branch=body([node("Neg", "v", "t")], "", "t"))],
                                [helper.make_opsetid("", 18)])
calls = body([helper.make_node("Scaled", ["a", "true"], ["b"], domain="own")], "", "b")
save("function", [helper.make_node("Scaled", ["x", "true"], ["a"], domain="own"),
                  node("If", "true", "y", then_branch=calls, else_branch=body([node("Neg", "a", "b")], "", "b"))],
     functions=[function], domains=["own"])

count = [info("count", type=TensorProto.INT64)]
save("data-count", [node("Loop", "count true x", "y", body=body(double, "i go h", "on twice"))], count)
ends = [node("Add", "h h", "twice"), node("ReduceSum", "twice", "sum", keepdims=0), node("Less", "sum zero", "on")]
save("data-end", [node("Loop", "three true x", "y", body=body(ends, "i go h", "on twice"))])
save("endless", [node("Loop", "many true x", "y", body=body(double, "i go h", "on twice"))], initializers=[array("many", np.array(100000))])
save("no-iteration", [node("Loop", "none true x", "h y", body=body([*double, node("Neg", "h", "n")], "i go h", "on twice n"))], initializers=[array("none", np.array(0))])
grows = [node("Concat", "h h", "twice", axis=0), node("Identity", "go", "on")]
save("grows", [node("Loop", "three true x", "y0 y1", body=body([*grows, node("Neg", "h", "n")], "i go h", "on twice n")), node("Slice", "y1 a b", "y")],
     initializers=[array("a", np.array([0, 0, 0])), array("b", np.array([1, 4, 3]))])
save("body-inputs", [node("Loop", "three true x", "y", body=body([node("Neg", "x", "n"), node("Identity", "go", "on")], "i go", "on n"))])
save("body-outputs", [node("Loop", "three true x", "y", body=body(double, "i go h", "on twice twice"))])
small = [node("ReduceSum", "x", "sum", keepdims=0), node("Less", "sum zero", "c")]
save("branch-types", [*small, node("If", "c", "y", then_branch=body([node("Exp", "x", "t")], "", "t"), else_branch=body([node("Transpose", "x", "u")], "", "u"))])
save("wide-condition", [node("Less", "x zero", "c"), node("If", "c", "y", then_branch=body([node("Exp", "x", "t")], "", "t"), else_branch=body([node("Neg", "x", "u")], "", "u"))])
norm = [node("BatchNormalization", "x s b m v", "t n1 n2", training_mode=1)]
statistics = [array(name, np.ones(3, np.float32) * k) for k, name in enumerate("sbmv")]
save("branch-norm", [*small, node("If", "c", "y", then_branch=body(norm, "", "t"), else_branch=body([node("Neg", "x", "u")], "", "u"))], initializers=statistics)
save("missing", [node("Loop", "three true x", "y", body=body([node("Add", "h nothing", "twice"), node("Identity", "go", "on")], "i go h", "on twice"))])
save("inner-error", [node("Loop", "three true x", "y", body=body([node("MatMul", "h h", "twice"), node("Identity", "go", "on")], "i go h", "on twice"))])
save("scan-lengths", [node("Scan", "x w", "y", num_scan_inputs=2, body=body([node("Add", "a a", "c")], "a b", "c"))])

# An EmbeddingBag as PyTorch's older exporter writes it.
bag = [node("Gather", "offsets i", "g0"), node("Gather", "ends i", "g1"), node("Unsqueeze", "g0 first", "from"), node("Unsqueeze", "g1 first", "to"),
       node("Slice", "ids from to first", "some"), node("Gather", "table some", "rows"), node("ReduceMean", "rows first", "mean", keepdims=0), node("Identity", "go", "on")]
outer = [node("Slice", "offsets one most first", "ends"), node("Loop", "three true", "y", body=body(bag, "i go", "on mean"))]
bag_inputs = [info("offsets", 4, type=TensorProto.INT64), info("ids", 9, type=TensorProto.INT64)]
bag_constants = [array("first", np.array([0])), array("one", np.array([1])), array("most", np.array([1 << 40])), array("table", np.ones((5, 3), np.float32))]
save("bag", outer, bag_inputs, bag_constants)
bag[6] = node("ReduceMin", "rows first", "mean", keepdims=0)
save("no-bag", outer[:1] + [node("Loop", "three true", "y", body=body(bag, "i go", "on mean"))], bag_inputs, bag_constants)
