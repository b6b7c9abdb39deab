"""Branches and loops train as what they stand for: twins without them give the same bits, in every layout.

usage: control_flow.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import Run, check, execute

dsopt = sys.argv[1]
random = np.random.default_rng(2)
LENGTH, BATCH, SIZE, HIDDEN = 5, 3, 7, 6


def array(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def info(name, *shape, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=outputs.split()[0], **attributes)


def body(nodes, inputs, outputs):
    def any_value(name):
        return helper.make_empty_tensor_value_info(name)

    return helper.make_graph(nodes, "body", [any_value(n) for n in inputs.split()], [any_value(n) for n in outputs.split()])


def real(*shape):
    return (random.standard_normal(shape) * 0.4).astype(np.float32)


WEIGHTS = [array("w", real(SIZE, HIDDEN)), array("u", real(HIDDEN, HIDDEN)), array("b", real(HIDDEN)), array("head", real(HIDDEN, 2))]
CONSTANTS = [array("h0", np.zeros((BATCH, HIDDEN), np.float32)), array("axis", np.array([0])), array("length", np.array(LENGTH)), array("true", np.array(True)),
             array("one", np.array(1)), array("two", np.array(2)), array("zero", np.array(0)), array("half", np.float32(0.5))]


def save(folder, name, nodes, inputs=(), opset=20):
    """The nodes give `ys` [LENGTH, BATCH, HIDDEN] of x."""
    end = [node("MatMul", "ys head", "out"), node("Mul", "out out", "square"), node("ReduceMean", "square", "loss", keepdims=0)]
    graph = helper.make_graph([*nodes, *end], "g", [info("x", LENGTH, BATCH, SIZE), *inputs], [info("loss")], WEIGHTS + CONSTANTS)
    path = os.path.join(folder, name + ".onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)
    return path


def run(path, data, *options):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        execute([dsopt, path, "-run", "-quiet", f"-data={data}", f"-log={log}", "-steps=3", "-lr=0.01", "-reduction-shards=2", "-accumulate=sharded", *options])
        return Run(log)


def step(i, x, h, y, prefix=""):
    """One step of a recurrence."""

    def name(part):
        return f"{prefix}{part}{i}"

    return [node("MatMul", f"{x} w", name("xw")), node("MatMul", f"{h} u", name("hu")), node("Add", f"{name('xw')} {name('hu')}", name("s")),
            node("Add", f"{name('s')} b", name("sb")), node("Tanh", name("sb"), y)]


def unrolled():
    nodes, outputs = [], []
    for i in range(LENGTH):
        nodes += [node("Gather", f"x i{i}", f"x{i}"), *step(i, f"x{i}", f"h{i}" if i else "h0", f"h{i + 1}"), node("Unsqueeze", f"h{i + 1} axis", f"y{i}")]
        outputs.append(f"y{i}")
    constants = [helper.make_node("Constant", [], [f"i{i}"], value_int=i) for i in range(LENGTH)]
    return [*constants, *nodes, node("Concat", " ".join(outputs), "ys", axis=0)]


def loop():
    inner = [node("Gather", "x i", "xi"), *step("", "xi", "h", "new"), node("Identity", "go", "on"), node("Identity", "new", "y")]
    return [node("Loop", "length true h0", "last ys", body=body(inner, "i go h", "on new y"))]


def scan(reverse=False):
    # The body's names are used outside too; they are its own.
    return [node("Neg", "x", "new"), node("Neg", "new", "xi"),
            node("Scan", "h0 xi", "last ys", num_scan_inputs=1, body=body([*step("", "xi", "h", "new"), node("Identity", "new", "y")], "h xi", "new y"))]


def counted():
    """A loop that ends by its own count, with a branch that folds in each iteration and one loop within the other."""
    inner = [node("Gather", "x i", "xi"), node("Equal", "i zero", "isFirst"),
             node("If", "isFirst", "before", then_branch=body([node("Identity", "h0", "a")], "", "a"), else_branch=body([node("Identity", "h", "a")], "", "a")),
             node("Loop", "one  before", "same", body=body([node("Identity", "go2", "on2"), *step("", "xi", "h2", "new2")], "j go2 h2", "on2 new2")),
             node("Add", "i one", "next"), node("Less", "next length", "on"), node("SequenceInsert", "list same", "longer")]
    inner[3].input.insert(1, "")
    return [node("SequenceEmpty", "", "none"),
            node("Loop", "big true h0 none", "last all", body=body(inner, "i go h list", "on same longer")),
            node("ConcatFromSequence", "all", "ys", axis=0, new_axis=1)]


def selected(how):
    """A branch that data decides, or its selection."""
    nodes = [node("Gather", "x zero", "x0"), node("ReduceSum", "x0", "sum", keepdims=0), node("Less", "sum threshold", "small")]
    then, other = [node("MatMul", "x w", "t0"), node("Tanh", "t0", "t1")], [node("MatMul", "x w", "e0"), node("Mul", "e0 half", "e1")]
    if how == "If":
        return [*nodes, node("If", "small", "ys", then_branch=body(then, "", "t1"), else_branch=body(other, "", "e1"))]
    return [*nodes, *then, *other, node("Where", "small t1 e1", "ys")]


with tempfile.TemporaryDirectory() as folder:
    data = os.path.join(folder, "data.npz")
    x = random.standard_normal((12, LENGTH, BATCH, SIZE)).astype(np.float32)
    np.savez(data, x=x, threshold=np.zeros(12, np.float32))
    CONSTANTS.append(array("big", np.array(1000)))
    twin = run(save(folder, "unrolled", unrolled()), data, "-micro-batches=4")
    check(len(set(twin.loss_text)) == 3, f"losses {twin.loss_text}")
    layouts = [("-micro-batches=4",), ("-micro-batches=2", "-dp=2", "-zero=3"), ("-micro-batches=4", "-pp=2"), ("-micro-batches=4", "-threads=3")]
    for name, nodes, some in (("loop", loop(), layouts), ("scan", scan(), layouts[:1]), ("counted", counted(), layouts[:2])):
        path = save(folder, name, nodes)
        for options in some:
            got = run(path, data, *options)
            check((got.hash, got.loss_text) == (twin.hash, twin.loss_text), f"{name} {options}: {got.loss_text}, unrolled {twin.loss_text}")
    threshold = [info("threshold")]
    twin = run(save(folder, "where", selected("Where"), threshold), data, "-micro-batches=4")
    for options in (("-micro-batches=4",), ("-micro-batches=2", "-dp=2", "-zero=3")):
        got = run(save(folder, "if", selected("If"), threshold), data, *options)
        check((got.hash, got.loss_text) == (twin.hash, twin.loss_text), f"a branch by data: {got.loss_text}, selected {twin.loss_text}")
    signs = x[:, 0].sum((1, 2)) < 0
    check(signs.any() and not signs.all(), "the data takes one branch only")
    # What was trained can be written as a model, and read again.
    saved = os.path.join(folder, "saved.onnx")
    run(save(folder, "loop", loop()), data, "-micro-batches=4", f"-save-onnx={saved}")
    check(any(n.op_type == "Loop" for n in onnx.load(saved).graph.node), "the saved model lost its loop")
    check(run(saved, data, "-micro-batches=4").losses[0] < twin.losses[0], "the saved model does not go on")
print("loops and branches: the bits of their twins, losses", ", ".join(twin.loss_text))
