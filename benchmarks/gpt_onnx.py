"""Writes the benchmark's GPT as ONNX without PyTorch, and without its weights: a file of a megabyte.

usage: gpt_onnx.py OUT.onnx --size gpt2
Programs read the weights when they run: -weights=FILE.safetensors, which gpt.save_weights writes.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import gpt


def save(path, args):
    """The model of torch_gpt.py, with its parameters' names and shapes."""
    B, T, D, H, V = args.rows, args.tokens, args.width, args.heads, args.vocabulary
    nodes, initializers, shapes, offset = [], [], set(), 0

    def weight(name, *shape):
        nonlocal offset
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        size = 4 * int(np.prod(shape))
        for key, value in (("location", "absent.bin"), ("offset", str(offset)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        offset += size
        initializers.append(tensor)
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
        return node("LayerNormalization", x, weight(name + ".weight", D), weight(name + ".bias", D), axis=-1, epsilon=1e-5)

    def linear(x, name, outputs, inputs):
        return node("Gemm", x, weight(name + ".weight", outputs, inputs), weight(name + ".bias", outputs), transB=1)

    def heads(x):
        return node("Transpose", node("Reshape", x, ints(B, T, H, D // H)), perm=[0, 2, 1, 3])

    # What is no parameter is a node of its own: float initializers are trained.
    constant("causal_mask", np.where(np.tril(np.ones((T, T), bool)), 0, -np.inf).astype(np.float32).reshape(1, 1, T, T))
    constant("attention_scale", np.float32((D // H) ** -0.5))
    wte = weight("wte.weight", V, D)
    x = node("Add", node("Gather", wte, "input_ids"), weight("wpe.weight", T, D))
    for i in range(args.layers):
        layer = f"layers.{i}"
        y = node("Reshape", norm(x, layer + ".norm1"), ints(-1, D))
        q, k, v = node("Split", linear(y, layer + ".qkv", 3 * D, D), outputs=3, axis=1, num_outputs=3)
        scores = node("Mul", node("MatMul", heads(q), node("Transpose", heads(k), perm=[0, 1, 3, 2])), "attention_scale")
        y = node("MatMul", node("Softmax", node("Add", scores, "causal_mask"), axis=-1), heads(v))
        y = linear(node("Reshape", node("Transpose", y, perm=[0, 2, 1, 3]), ints(-1, D)), layer + ".proj", D, D)
        x = node("Add", x, node("Reshape", y, ints(B, T, D)))
        y = linear(node("Reshape", norm(x, layer + ".norm2"), ints(-1, D)), layer + ".up", 4 * D, D)
        y = linear(node("Gelu", y, approximate="tanh"), layer + ".down", D, 4 * D)
        x = node("Add", x, node("Reshape", y, ints(B, T, D)))
    x = node("Reshape", norm(x, "norm"), ints(-1, D))
    logits = node("MatMul", x, node("Transpose", wte, perm=[1, 0]))
    nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [logits, node("Reshape", "labels", ints(-1))], ["loss"], name="node_loss",
                                  ignore_index=-100, reduction="mean"))
    graph = helper.make_graph(
        nodes, "gpt", [helper.make_tensor_value_info(name, TensorProto.INT64, [B, T]) for name in ("input_ids", "labels")],
        [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name="dsopt"), path)


if __name__ == "__main__":
    import sys

    out = sys.argv.pop(1)
    sys.argv.insert(1, "onnx")
    save(out, gpt.arguments("onnx"))
