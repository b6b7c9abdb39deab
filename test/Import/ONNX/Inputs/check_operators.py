"""check_operators.py IMPORT SCRATCH: for each case a model of one node, whose
result is weighted and summed; the sum, computed by folding, must be the one of
onnx's reference evaluator. Integers and bools are compared as floats."""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

tool, scratch = sys.argv[1:3]
os.makedirs(scratch, exist_ok=True)
random = np.random.default_rng(0)


def f(*shape):
    return random.standard_normal(shape).astype(np.float32)


def i(*shape, low=0, high=4):
    return random.integers(low, high, shape).astype(np.int64)


def b(*shape):
    return random.integers(0, 2, shape).astype(bool)


class Const:
    """An operand that is an initializer of the model (integers are folded)."""

    def __init__(self, value, type=np.int64):
        self.value = np.array(value, dtype=type)


def check(op, operands, opset=18, outputs=1, tolerance=2e-6, **attributes):
    inputs, feeds, constants = [], {}, []
    for k, operand in enumerate(operands):
        name = "" if operand is None else f"in{k}"
        inputs.append(name)
        if isinstance(operand, Const):
            constants.append(numpy_helper.from_array(operand.value, name))
        elif operand is not None:
            feeds[name] = operand
    names = [f"out{k}" for k in range(outputs)]
    nodes = [helper.make_node(op, inputs, names, name="the_node", **attributes)]
    graph_inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()
    ]

    def model(nodes, output, constants):
        graph = helper.make_graph(nodes, "g", graph_inputs, [output], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)

    # The shapes of the outputs decide the weights.
    terms = []
    for name in names:
        probe = model(nodes, helper.make_empty_tensor_value_info(name), constants)
        shape = np.shape(ReferenceEvaluator(probe).run([name], feeds)[0])
        weights = random.uniform(0.5, 1.5, shape).astype(np.float32)
        axes = helper.make_tensor(f"{name}_axes", TensorProto.INT64, [len(shape)], list(range(len(shape))))
        constants += [axes]
        nodes += [
            helper.make_node("Constant", [], [f"{name}_weights"], value=numpy_helper.from_array(weights)),
            helper.make_node("Cast", [name], [f"{name}_float"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{name}_float", f"{name}_weights"], [f"{name}_product"]),
            helper.make_node("ReduceSum", [f"{name}_product", f"{name}_axes"], [f"{name}_sum"], keepdims=0),
        ]
        terms.append(f"{name}_sum")
    while len(terms) > 1:
        nodes.append(helper.make_node("Add", terms[:2], [terms[0] + "+"]))
        terms[:2] = [terms[0] + "+"]
    nodes.append(helper.make_node("Identity", terms, ["loss"]))
    whole = model(nodes, helper.make_tensor_value_info("loss", TensorProto.FLOAT, []), constants)
    expected = float(ReferenceEvaluator(whole).run(["loss"], feeds)[0])

    path = os.path.join(scratch, "model.onnx")
    onnx.save(whole, path)
    arguments = []
    for name, value in feeds.items():
        value.tofile(os.path.join(scratch, name))
        arguments.append(f"--input={name}={os.path.join(scratch, name)}")
    run = subprocess.run([tool, path, "--evaluate", *arguments], capture_output=True)
    text = run.stdout.decode()
    what = (op, opset, attributes, text, run.stderr.decode(), expected)
    assert run.returncode == 0, what
    assert abs(float(text) - expected) <= tolerance * max(1, abs(expected), np.size(expected)) * 10, what
    global checked
    checked += 1


checked = 0
for op in ["Neg", "Abs", "Sign", "Exp", "Tanh", "Sigmoid", "Relu", "Erf", "Reciprocal"]:
    check(op, [f(3, 4)])
for op in ["Log", "Sqrt"]:
    check(op, [np.abs(f(3, 4)) + 0.1])
for approximate in ["none", "tanh"]:
    check("Gelu", [f(3, 4)], opset=20, approximate=approximate)
for op in ["Add", "Sub", "Mul", "Div", "Min", "Max", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]:
    check(op, [f(3, 1, 4), f(2, 1)])
    check(op, [i(3, 4, low=-9, high=9), i(4, low=1, high=9)])
check("Max", [f(3), f(2, 3), f(1)])
check("Pow", [np.abs(f(3, 4)), f(4)])
check("Pow", [f(3, 4), np.array(2, np.int64)])
check("Pow", [i(3, 4), Const(3)])
for op in ["And", "Or"]:
    check(op, [b(3, 4), b(4)])
check("Not", [b(3)])
check("IsNaN", [np.array([1, np.nan, 2], np.float32)])
check("Where", [b(3, 1), f(3, 4), f(4)])
check("Cast", [f(3, 4) * 9], to=TensorProto.INT64)
check("Cast", [f(3, 4)], to=TensorProto.FLOAT16, opset=19)
check("Cast", [i(3, 4)], to=TensorProto.BOOL)
check("CastLike", [f(3), i(1)])
check("Dropout", [f(3, 4), Const(0, np.float32), Const(True, bool)])
check("Dropout", [f(3, 4)], outputs=2)

check("MatMul", [f(2, 3, 4), f(4, 5)])
check("MatMul", [f(2, 1, 3, 4), f(3, 4, 5)])
check("MatMul", [f(4), f(4, 5)])
check("MatMul", [f(2, 3, 4), f(4)])
check("MatMul", [f(4), f(4)])
check("Gemm", [f(3, 4), f(4, 5), f(5)])
check("Gemm", [f(4, 3), f(5, 4), f(3, 1)], transA=1, transB=1, alpha=0.5, beta=2.0)
check("Gemm", [f(3, 4), f(4, 5)])
for opset in [13, 17, 18, 23]:
    for op in ["ReduceMean", "ReduceMax", "ReduceMin"]:
        if opset < 18:
            check(op, [f(3, 4, 5)], opset=opset, axes=[-1, 0], keepdims=0)
        else:
            check(op, [f(3, 4, 5), Const([-1, 0])], opset=opset, keepdims=0)
        check(op, [f(3, 4)], opset=opset)
    check("ReduceSum", [f(3, 4, 5), Const([1])], opset=opset)
check("ReduceSum", [f(3, 4)], noop_with_empty_axes=1)
check("Softmax", [f(3, 4, 5)])
check("Softmax", [f(3, 4, 5)], axis=1)
check("LayerNormalization", [f(3, 4, 5), f(5), f(5)], outputs=3)
check("LayerNormalization", [f(3, 4, 5), f(4, 5)], axis=1, epsilon=1e-2)

for equation, shapes in [("ij,jk->ik", [(3, 4), (4, 5)]), ("bij,bjk", [(2, 3, 4), (2, 4, 5)]), ("ii->i", [(3, 3)]),
                         ("ij->", [(3, 4)]), ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
                         ("...ij,jk->...ik", [(2, 3, 4), (4, 5)]), ("i,j,k->kij", [(2,), (3,), (4,)]),
                         ("bhld,bhmd->bhlm", [(2, 2, 3, 4), (2, 2, 5, 4)]), ("gsec,gsm->egcm", [(2, 3, 4, 5), (2, 3, 6)])]:
    check("Einsum", [f(*shape) for shape in shapes], equation=equation)
check("Reshape", [f(2, 3, 4), Const([0, -1])])
check("Reshape", [f(2, 3, 4), Const([4, -1, 2])], opset=13)
check("Transpose", [f(2, 3, 4)])
check("Transpose", [f(2, 3, 4)], perm=[1, 2, 0])
check("Flatten", [f(2, 3, 4)], axis=-1)
check("Flatten", [f(2, 3, 4)], axis=0)
check("Unsqueeze", [f(2, 3), Const([0, -1])])
check("Squeeze", [f(1, 2, 1), Const([-1])])
check("Squeeze", [f(1, 2, 1)])
check("Expand", [f(3, 1), Const([2, 1, 4])])
check("Identity", [f(3)])
check("Shape", [f(2, 3, 4)], start=-2)
check("Shape", [f(2, 3, 4)], opset=13)
check("Size", [f(2, 3, 4)])
check("ConstantOfShape", [Const([2, 3])], value=helper.make_tensor("v", TensorProto.INT64, [1], [7]))
check("Range", [Const(5), Const(-3), Const(-2)])
check("Range", [Const(0.5, np.float32), Const(3, np.float32), Const(1, np.float32)])
check("Concat", [f(2, 3), f(2, 1)], axis=-1)
check("Slice", [f(4, 5), Const([1, -1]), Const([9, -9]), Const([0, 1]), Const([2, -2])])
check("Slice", [f(4, 5), Const([-3]), Const([2**63 - 1])])
check("Slice", [f(4, 5), Const([9]), Const([-(2**63)]), Const([-1]), Const([-1])])
check("Split", [f(2, 6), Const([1, 2, 3])], axis=1, outputs=3)
check("Split", [f(2, 7)], axis=-1, outputs=3, num_outputs=3)
check("Split", [f(2, 6)], axis=1, outputs=2, opset=13)
check("Pad", [f(2, 3), Const([1, 0, 0, 2]), Const(5, np.float32)])
check("Pad", [f(2, 3), Const([1, 2]), None, Const([-1])])
check("Gather", [f(4, 5), i(2, 3, low=-4)])
check("Gather", [f(4, 5), Const([1, -1])], axis=-1)
check("GatherElements", [f(4, 3), i(2, 3, low=-4)])
check("GatherND", [f(4, 5), Const([[0, 1], [3, -1]])])
check("GatherND", [f(4, 5, 2), Const([[0], [3]])])
check("GatherND", [Const(i(2, 4, 5)), Const(i(2, 3, 1))], batch_dims=1)
check("CumSum", [Const(i(3, 4)), Const(1)], exclusive=1, reverse=1)
check("CumSum", [Const(i(3, 4)), Const(0)])
for upper in [0, 1]:
    check("Trilu", [f(2, 3, 4), Const(1)], upper=upper)

labels = np.array([1, 0, 4, 2], np.int64)
for reduction in ["mean", "sum", "none"]:
    check("SoftmaxCrossEntropyLoss", [f(4, 5), labels], reduction=reduction)
    check("SoftmaxCrossEntropyLoss", [f(4, 5), labels], reduction=reduction, ignore_index=2)
check("SoftmaxCrossEntropyLoss", [f(4, 5, 3), i(4, 3)], ignore_index=1)

q, k, v = f(2, 4, 3, 8), f(2, 4, 5, 8), f(2, 4, 5, 6)
check("Attention", [q, k, v], opset=23)
check("Attention", [q, k, v, f(3, 5)], opset=23, scale=0.3)
mask = b(2, 1, 3, 5)
mask[..., 0] = True
check("Attention", [q, k, v, mask], opset=23)
check("Attention", [q, k, v], opset=23, is_causal=1)
check("Attention", [q, k[:, :2], v[:, :2]], opset=23)
check("Attention", [f(2, 3, 8), f(2, 5, 4), f(2, 5, 6)], opset=23, q_num_heads=4, kv_num_heads=2)
print("checked", checked, "cases")
