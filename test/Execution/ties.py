"""Gradients where elements are equal, or at a bound: those of PyTorch 2.15, recorded here.

usage: ties.py DSOPT

The values are a parameter, the loss the sum of what an operator makes of them: one step of SGD with a learning
rate of 1 moves them by the gradient.
"""
import os
import sys
import tempfile

import numpy as np

from small import check, initializer, node, train, value, write

dsopt = sys.argv[1]
folder = tempfile.mkdtemp()


def number(name, x):
    return node("Constant", [], [name], value=initializer(name, np.float32(x)))


def integers(name, *x):
    return node("Constant", [], [name], value=initializer(name, np.array(x, np.int64)))


def made_from(target, operator):
    """Says what PyTorch's operator was, as its exporter does."""
    entry = operator.metadata_props.add()
    entry.key, entry.value = "pkg.torch.onnx.fx_node", f"%y : [num_users=1] = call_function[target=torch.ops.aten.{target}](args = (%x,))"
    return operator


def gradient(nodes, values, name, *options):
    """Of the sum of `y`, with respect to the values in `x`."""
    values = np.asarray(values, np.float32)
    # The input keeps the rows of what is summed from being constants.
    all_axes = [node("Mul", "y one", "s"), node("ReduceSum", "s", "loss", keepdims=0)]
    path = write(os.path.join(folder, "model.onnx"), [*nodes, *all_axes], [value("one", (1,))], [initializer("x", values)])
    _, weights = train(dsopt, path, {"one": np.ones((1, 1), np.float32)}, "-optimizer=sgd", "-lr=1", "-steps=1", "-micro-batches=1", "-train=x", *options)
    return values - weights["x"]


def expect(name, nodes, values, want):
    for options in ([], ["-precision=bf16"]):
        got = gradient(nodes, values, name, *options)
        check(np.allclose(got, want, rtol=1e-2 if options else 1e-6, atol=1e-6), f"{name} {options}: gradient {got.tolist()}, PyTorch's {want}")
    print(f"{name}: as PyTorch", flush=True)


tied = [1.0, 1, 0, 1]
third = [1 / 3, 1 / 3, 0, 1 / 3]
expect("amax", [made_from("amax.default", node("ReduceMax", "x", "y"))], tied, third)
expect("max over all", [made_from("max.default", node("ReduceMax", "x", "y", keepdims=0))], tied, third)
expect("max along a dimension", [integers("a", 1), made_from("max.dim", node("ReduceMax", "x a", "y"))], [tied, [0, 2, 2, 1]], [[1, 0, 0, 0], [0, 1, 0, 0]])
expect("min along a dimension", [integers("a", 1), made_from("min.dim", node("ReduceMin", "x a", "y"))], [tied, [2, 0, 2, 0]], [[0, 0, 1, 0], [0, 1, 0, 0]])
expect("amin", [integers("a", 0), made_from("amin.default", node("ReduceMin", "x a", "y"))], [[1, 2], [1, 0]], [[0.5, 0], [0.5, 1]])
expect("maxima of a middle dimension", [integers("a", 1), node("ReduceMax", "x a", "y")], [[[1, 2], [1, 0]]], [[[0.5, 1], [0.5, 0]]])
expect("max_pool1d", [node("MaxPool", "x", "y", kernel_shape=[2], strides=[2])], [[tied]], [[[1, 0, 0, 1]]])
expect("max_pool2d", [node("MaxPool", "x", "y", kernel_shape=[2, 2], strides=[1, 1])], [[[[1, 1, 1], [1, 1, 1]]]], [[[[1, 1, 0], [0, 0, 0]]]])
expect("adaptive_max_pool1d to 1", [node("GlobalMaxPool", "x", "y")], [[tied]], [[[1, 0, 0, 0]]])
expect("adaptive_max_pool, as the newer exporter has it", [integers("a", -1), made_from("adaptive_max_pool2d.default", node("ReduceMax", "x a", "y"))], [[tied]], [[[1, 0, 0, 0]]])
expect("maximum", [number("c", 1), made_from("maximum.default", node("Max", "x c", "y"))], tied, [0.5, 0.5, 0, 0.5])
expect("minimum of two tensors", [node("Neg", "x", "n"), node("Neg", "n", "o"), node("Min", "x o", "y")], [0, 1.0], [1, 1])
expect("clamp_min", [number("c", 0), made_from("clamp_min.default", node("Max", "x c", "y"))], [0, 1, -1], [0, 1, 0])
expect("clamp with numbers", [number("a", 0), number("b", 1), node("Clip", "x a b", "y")], [0, 1, 0.5, -1, 2], [0, 0, 1, 0, 0])
expect("relu6", [number("a", 0), number("b", 6), node("Clip", "x a b", "y")], [0, 6, 3], [0, 0, 1])
expect("relu", [node("Relu", "x", "y")], [0, 1, -1], [0, 1, 0])
expect("leaky_relu", [node("LeakyRelu", "x", "y", alpha=0.25)], [0, 1], [0.25, 1])
expect("prelu", [number("c", 0.25), node("PRelu", "x c", "y")], [0, 1], [0.25, 1])
expect("elu", [node("Elu", "x", "y")], [0], [1])
expect("selu", [node("Selu", "x", "y")], [0], [1.7580993])
expect("celu", [node("Celu", "x", "y", alpha=2.0)], [0], [1])
expect("hardsigmoid", [node("HardSigmoid", "x", "y", alpha=1 / 6)], [-3, 0, 3], [0, 1 / 6, 0])
expect("hardswish", [node("HardSwish", "x", "y")], [-3, 3], [0, 1])
expect("softplus", [node("Softplus", "x", "y")], [0], [0.5])
expect("softsign", [node("Softsign", "x", "y")], [0], [1])
expect("mish", [node("Mish", "x", "y")], [0], [0.6])
expect("abs and sign", [node("Abs", "x", "y")], [0, 1, -2], [0, 1, -1])
expect("sort", [integers("k", 2), node("TopK", "x k", "y i")], tied, [1, 1, 0, 0])
expect("huber", [node("Abs", "x", "a"), number("b", 1), node("Less", "a b", "c"), number("h", 0.5), node("Mul", "x x", "q"), node("Mul", "q h", "i"),
                 node("Sub", "a h", "o"), node("Where", "c i o", "y")], [-1, 0, 1], [-1, 0, 1])
print("passed")
