"""Writes a byte-level GPT with its loss as ONNX, the way exporters do.

usage: make_gpt.py OUT.onnx [--layers 4] [--width 128] [--heads 4] [--tokens 64] [--rows 4] [--seed 0]
examples/gpt.onnx is its output with the defaults. Needs numpy and onnx.
"""
import argparse
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def build(sizes, make, embeddings=("wte", "wpe"), layer="layer{}", transposed=False):
    """The model of `sizes` (layers, width, heads, tokens, rows, vocabulary). make(name, shape, std, fill) is a parameter's
    tensor: of normal numbers of a deviation, or filled with one. Linear weights are [inputs, outputs], or `transposed`."""
    B, T, D, H = sizes.rows, sizes.tokens, sizes.width, sizes.heads
    residual = 0.02 / (2 * sizes.layers) ** 0.5
    nodes, initializers, shapes = [], [], set()

    def weight(name, *shape, std=0.02, fill=None):
        initializers.append(make(name, shape, std, fill))
        return name

    def constant(name, value):
        nodes.append(helper.make_node("Constant", [], [name], name="node_" + name, value=numpy_helper.from_array(value, name)))

    def ints(*values):
        name = "shape_" + "_".join(map(str, values)).replace("-", "m")
        if name not in shapes:
            shapes.add(name)
            initializers.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def node(op, *inputs, outputs=1, **attributes):
        names = [f"{op.lower()}_{len(nodes)}_{i}" for i in range(outputs)]
        nodes.append(helper.make_node(op, list(inputs), names, name=f"node_{op}_{len(nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def norm(x, name):
        return node("LayerNormalization", x, weight(name + ".weight", D, fill=1), weight(name + ".bias", D, fill=0),
                    axis=-1, epsilon=1e-5)

    def linear(x, name, inputs, outputs, std=0.02):
        shape, options = ((outputs, inputs), {"transB": 1}) if transposed else ((inputs, outputs), {})
        return node("Gemm", x, weight(name + ".weight", *shape, std=std), weight(name + ".bias", outputs, fill=0), **options)

    def heads(x):
        return node("Transpose", node("Reshape", x, ints(B, T, H, D // H)), perm=[0, 2, 1, 3])

    mask = np.where(np.tril(np.ones((T, T), bool)), 0, -np.inf).astype(np.float32)
    # What is no parameter is a node of its own: float initializers are trained.
    constant("causal_mask", mask.reshape(1, 1, T, T))
    constant("attention_scale", np.float32((D // H) ** -0.5))

    wte = weight(embeddings[0], sizes.vocabulary, D)
    x = node("Add", node("Gather", wte, "input_ids"), weight(embeddings[1], T, D))
    for i in range(sizes.layers):
        name = layer.format(i)
        y = node("Reshape", norm(x, name + ".norm1"), ints(-1, D))
        q, k, v = node("Split", linear(y, name + ".qkv", D, 3 * D), outputs=3, axis=1, num_outputs=3)
        scores = node("Mul", node("MatMul", heads(q), node("Transpose", heads(k), perm=[0, 1, 3, 2])), "attention_scale")
        y = node("MatMul", node("Softmax", node("Add", scores, "causal_mask"), axis=-1), heads(v))
        y = node("Reshape", node("Transpose", y, perm=[0, 2, 1, 3]), ints(-1, D))
        y = linear(y, name + ".proj", D, D, residual)
        x = node("Add", x, node("Reshape", y, ints(B, T, D)))
        y = node("Reshape", norm(x, name + ".norm2"), ints(-1, D))
        y = linear(node("Gelu", linear(y, name + ".up", D, 4 * D), approximate="tanh"), name + ".down", 4 * D, D, residual)
        x = node("Add", x, node("Reshape", y, ints(B, T, D)))
    x = node("Reshape", norm(x, "norm"), ints(-1, D))
    logits = node("MatMul", x, node("Transpose", wte, perm=[1, 0]))
    labels = node("Reshape", "labels", ints(-1))
    nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [logits, labels], ["loss"], name="node_loss",
                                  ignore_index=-100, reduction="mean"))
    graph = helper.make_graph(
        nodes, "gpt", [helper.make_tensor_value_info(n, TensorProto.INT64, [B, T]) for n in ("input_ids", "labels")],
        [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name="dsopt")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    for name, value in dict(layers=4, width=128, heads=4, tokens=64, rows=4, seed=0).items():
        parser.add_argument("--" + name, type=int, default=value)
    sizes = parser.parse_args()
    sizes.vocabulary = 256
    random = np.random.default_rng(sizes.seed)

    def draw(name, shape, std, fill):
        value = np.full(shape, fill) if fill is not None else random.normal(0, std, shape)
        return numpy_helper.from_array(value.astype(np.float32), name)

    model = build(sizes, draw)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, sizes.out)


if __name__ == "__main__":
    main()
