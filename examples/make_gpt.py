"""Writes a byte-level GPT with its loss as ONNX, the way exporters do.

usage: make_gpt.py OUT.onnx [--layers 4] [--width 128] [--heads 4] [--tokens 64] [--rows 4] [--seed 0]
examples/gpt.onnx is its output with the defaults. Needs numpy and onnx.
"""
import argparse
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

parser = argparse.ArgumentParser()
parser.add_argument("out")
for name, value in dict(layers=4, width=128, heads=4, tokens=64, rows=4, seed=0).items():
    parser.add_argument("--" + name, type=int, default=value)
args = parser.parse_args()
B, T, D, H = args.rows, args.tokens, args.width, args.heads
rng = np.random.default_rng(args.seed)
nodes, initializers = [], []


def weight(name, *shape, std=0.02, fill=None):
    value = np.full(shape, fill) if fill is not None else rng.normal(0, std, shape)
    initializers.append(numpy_helper.from_array(value.astype(np.float32), name))
    return name


def constant(name, value):
    nodes.append(helper.make_node("Constant", [], [name], name="node_" + name, value=numpy_helper.from_array(value, name)))


def ints(*values):
    name = "shape_" + "_".join(map(str, values)).replace("-", "m")
    if all(t.name != name for t in initializers):
        initializers.append(numpy_helper.from_array(np.array(values, np.int64), name))
    return name


def node(op, *inputs, outputs=1, **attributes):
    names = [f"{op.lower()}_{len(nodes)}_{i}" for i in range(outputs)]
    nodes.append(helper.make_node(op, list(inputs), names, name=f"node_{op}_{len(nodes)}", **attributes))
    return names[0] if outputs == 1 else names


def norm(x, name):
    return node("LayerNormalization", x, weight(name + ".weight", D, fill=1), weight(name + ".bias", D, fill=0),
                axis=-1, epsilon=1e-5)


def linear(x, name, rows, columns, std=0.02):
    return node("Gemm", x, weight(name + ".weight", rows, columns, std=std), weight(name + ".bias", columns, fill=0))


def heads(x):
    return node("Transpose", node("Reshape", x, ints(B, T, H, D // H)), perm=[0, 2, 1, 3])


mask = np.where(np.tril(np.ones((T, T), bool)), 0, -np.inf).astype(np.float32)
# What is no parameter is a node of its own: float initializers are trained.
constant("causal_mask", mask.reshape(1, 1, T, T))
constant("attention_scale", np.float32((D // H) ** -0.5))

wte = weight("wte", 256, D)
x = node("Add", node("Gather", wte, "input_ids"), weight("wpe", T, D))
for i in range(args.layers):
    layer = f"layer{i}"
    y = node("Reshape", norm(x, layer + ".norm1"), ints(-1, D))
    q, k, v = node("Split", linear(y, layer + ".qkv", D, 3 * D), outputs=3, axis=1, num_outputs=3)
    scores = node("Mul", node("MatMul", heads(q), node("Transpose", heads(k), perm=[0, 1, 3, 2])), "attention_scale")
    y = node("MatMul", node("Softmax", node("Add", scores, "causal_mask"), axis=-1), heads(v))
    y = node("Reshape", node("Transpose", y, perm=[0, 2, 1, 3]), ints(-1, D))
    y = linear(y, layer + ".proj", D, D, 0.02 / (2 * args.layers) ** 0.5)
    x = node("Add", x, node("Reshape", y, ints(B, T, D)))
    y = node("Reshape", norm(x, layer + ".norm2"), ints(-1, D))
    y = linear(node("Gelu", linear(y, layer + ".up", D, 4 * D), approximate="tanh"), layer + ".down", 4 * D, D,
               0.02 / (2 * args.layers) ** 0.5)
    x = node("Add", x, node("Reshape", y, ints(B, T, D)))
x = node("Reshape", norm(x, "norm"), ints(-1, D))
logits = node("MatMul", x, node("Transpose", wte, perm=[1, 0]))
labels = node("Reshape", "labels", ints(-1))
nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [logits, labels], ["loss"], name="node_loss",
                              ignore_index=-100, reduction="mean"))

graph = helper.make_graph(
    nodes, "gpt", [helper.make_tensor_value_info(n, TensorProto.INT64, [B, T]) for n in ("input_ids", "labels")],
    [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], initializers)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name="dsopt")
onnx.checker.check_model(model, full_check=True)
onnx.save(model, args.out)
