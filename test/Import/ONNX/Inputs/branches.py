"""branches.py FOLDER: writes models with branches that cannot be imported, most of which are not taken."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, *shape, type=FLOAT):
    return helper.make_tensor_value_info(name, type, shape)


def array(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name="the_" + outputs.split()[0], **attributes)


def body(nodes, inputs, outputs, initializers=()):
    any_value = helper.make_empty_tensor_value_info
    return helper.make_graph(nodes, "body", [any_value(n) for n in inputs.split()], [any_value(n) for n in outputs.split()], list(initializers))


CONSTANTS = [array("w", np.full((3, 2), 0.5, np.float32)), array("yes", np.array(True)), array("no", np.array(False)), array("two", np.array(2)),
             array("rate", np.array(16000)), array("five", np.array(5)), array("zero", np.float32(0))]


def save(name, nodes, inputs=(), initializers=(), rows=4, functions=()):
    """The nodes give y [rows, 3] of x."""
    end = [node("MatMul", "y w", "z"), node("ReduceMean", "z", "loss", keepdims=0)]
    graph = helper.make_graph([*nodes, *end], "g", [info("x", rows, 3), *inputs], [info("loss")], [*CONSTANTS, *initializers])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my.company", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=functions), os.path.join(folder, name + ".onnx"))


GOOD = body([node("Exp", "x", "t")], "", "t")


def choose(condition, then, other, output="y"):
    return node("If", condition, output, then_branch=then, else_branch=other)


# What is wrong with a branch.
UNKNOWN = body([helper.make_node("Mine", ["x"], ["m"], domain="my.company", name="mine")], "", "m")
SHAPES = body([node("MatMul", "x x", "m")], "", "m")
OUTPUTS = body([node("Neg", "x", "m"), node("Neg", "x", "n")], "", "m n")
DOUBLES = body([node("Cast", "x", "d", to=TensorProto.DOUBLE), node("MatMul", "d weights64", "m")], "", "m", [array("weights64", np.ones((3, 3)) * 0.3)])
WORDS = body([node("Identity", "words", "m")], "", "m", [helper.make_tensor("words", TensorProto.STRING, [1], [b"a"])])
for name, wrong in (("unknown", UNKNOWN), ("shapes", SHAPES), ("outputs", OUTPUTS), ("doubles", DOUBLES), ("words", WORDS)):
    save(f"then-{name}", [choose("yes", GOOD, wrong)])
    save(f"else-{name}", [choose("no", wrong, GOOD)])
    save(f"wrong-{name}", [choose("no", GOOD, wrong)])

# Calls of the model's own functions that cannot be replaced: of another opset, endless, with too many inputs; one within another.
CALL = body([helper.make_node("Own", ["x", "x"], ["m"], domain="my.company", name="call")], "", "m")


def own(name, body, inputs="a b", opset=18):
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("my.company", 1)]
    return helper.make_function("my.company", name, inputs.split(), ["o"], body, imports)


again = helper.make_node("Own", ["a", "b"], ["o"], domain="my.company", name="again")
inner = helper.make_node("Inner", ["a"], ["o"], domain="my.company", name="inner")
for name, functions in (("opset", [own("Own", [node("Add", "a b", "o")], opset=17)]), ("endless", [own("Own", [again])]), ("many", [own("Own", [node("Neg", "a", "o")], "a")]),
                        ("inner", [own("Own", [inner]), own("Inner", [node("Neg", "a", "o")], "a", opset=17)])):
    save(f"then-{name}", [choose("yes", GOOD, CALL)], functions=functions)
    save(f"else-{name}", [choose("no", CALL, GOOD)], functions=functions)
    save(f"wrong-{name}", [choose("no", GOOD, CALL)], functions=functions)

# What only a branch reads is before it: a chain that cannot be built, and an input of unknown shape.
chain = [node("MatMul", "x x", "a"), node("Neg", "a", "b"), node("Identity", "b", "c")]
captures = body([node("Add", "c x", "m")], "", "m")
save("before", [*chain, choose("yes", GOOD, captures)])
save("before-taken", [*chain, choose("no", GOOD, captures)])
reads = body([node("ReduceMean", "other", "mean", keepdims=0), node("Add", "x mean", "m")], "", "m")
other = [info("other", "M", 7)]
save("input", [choose("yes", GOOD, reads)], other)
save("input-taken", [choose("no", GOOD, reads)], other)
# What two branches read, one of which is taken, is said once.
save("both", [*chain, choose("yes", body([node("Neg", "x", "t")], "", "t"), captures, "y0"), choose("no", GOOD, captures)])

# Outputs and inputs that are left out have no name, and nothing in common.
unnamed = helper.make_node("TopK", ["x", "one64"], ["c", ""], axis=5, name="top")
clipped = helper.make_node("Clip", ["x", "", "zero"], ["low"], name="clip")
save("unnamed", [unnamed, clipped, choose("yes", body([node("Exp", "low", "t")], "", "t"), captures)], initializers=[array("one64", np.array([1]))])
save("unnamed-before", [unnamed, choose("yes", GOOD, captures, "y0"), helper.make_node("Clip", ["y0", "", "zero"], ["y"], name="clip")],
     initializers=[array("one64", np.array([1]))])

# Within each other, and in the body of a loop, whose count decides.
inner = body([choose("no", UNKNOWN, GOOD, "t1")], "", "t1")
save("nested", [choose("yes", inner, SHAPES)])
small = [node("Less", "i five", "few"), node("MatMul", "h h", "bad"), node("Neg", "bad", "worse"),
         choose("few", body([node("Tanh", "h", "t")], "", "t"), body([node("Add", "h worse", "m")], "", "m"), "new"), node("Identity", "go", "on")]
save("loop", [node("Loop", "two yes x", "y", body=body(small, "i go h", "on new"))])
late = [node("Less", "i two", "few"), *small[1:]]
save("loop-taken", [node("Loop", "five yes x", "y", body=body(late, "i go h", "on new"))])

# Known by a size or a value.
save("size", [node("Shape", "x", "s", start=0, end=1), node("Squeeze", "s", "n"), node("Equal", "n five", "c"), choose("c", SHAPES, GOOD)], rows="N")
of = body([node("Slice", "x none two64", "part"), node("ReduceMean", "part", "mean", keepdims=0), node("Add", "x mean", "t")], "", "t",
          [array("none", np.array([0])), array("two64", np.array([2]))])
save("value", [node("Equal", "sr rate", "c"), choose("c", of, SHAPES)], [info("sr", type=INT64)])
save("flag", [choose("training", GOOD, UNKNOWN)], [info("training", type=BOOL)])
save("compared", [node("Less", "limit zero", "c"), choose("c", GOOD, SHAPES)], initializers=[array("limit", np.float32(-1))])
# By the data itself.
save("data", [node("ReduceSum", "x", "sum", keepdims=0), node("Less", "sum zero", "c"), choose("c", GOOD, SHAPES)])
save("types", [node("Equal", "sr rate", "c"), choose("c", GOOD, body([node("Transpose", "x", "u")], "", "u"))], [info("sr", type=INT64)])
count = [node("Add", "h h", "twice"), node("Identity", "go", "on")]
save("count", [node("Loop", "times yes x", "y", body=body(count, "i go h", "on twice"))], [info("times", type=INT64)])
