"""Element types: casts that round and overflow, unsigned integers, f64 products, models in f16 and bf16.

usage: element_types.py DSOPT
"""
import os
import sys
import tempfile

import ml_dtypes
import numpy as np

from small import TensorProto, check, initializer, node, train, value, write

dsopt = sys.argv[1]
folder = tempfile.mkdtemp()
random = np.random.default_rng(3)
x = random.standard_normal((4, 5)).astype(np.float32) * 3
w = random.standard_normal((5, 3)).astype(np.float32)
SGD = ["-optimizer=sgd", "-lr=1", "-steps=1", "-micro-batches=1"]


def path(name):
    return os.path.join(folder, name + ".onnx")


def near(got, want, what, tolerance=1e-6):
    check(np.allclose(got, want, rtol=tolerance, atol=tolerance), f"{what}: {got}, expected {want}")


def mean_of_product(rows):
    """Loss and gradient of w for mean(rows @ w)."""
    rows, weight = np.asarray(rows, np.float64), w.astype(np.float64)
    return (rows @ weight).mean(), np.repeat(rows.sum(0)[:, None], 3, 1) / (len(rows) * 3)


def run_product(name, nodes, inputs, data, rows, *options):
    """A model that makes `r` of its inputs; the loss is mean(r @ w)."""
    model = write(path(name), [*nodes, node("MatMul", "r w", "y"), node("ReduceMean", "y", "loss", keepdims=0)], inputs,
                  [initializer("w", w)])
    run, weights = train(dsopt, model, data, *SGD, *options)
    loss, gradient = mean_of_product(rows)
    near(run.losses[0], loss, name)
    near(w - weights["w"], gradient, f"{name}, gradient", 1e-5)
    print(name, "as numpy has it")


# Narrowing and widening again rounds, and overflows.
narrow = {"bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16), "float16": (TensorProto.FLOAT16, np.float16)}
for name, (kind, dtype) in narrow.items():
    there_and_back = [node("Cast", "x", "n", to=kind), node("Cast", "n", "r", to=TensorProto.FLOAT)]
    run_product(f"through-{name}", there_and_back, [value("x", x.shape)], {"x": x}, x.astype(dtype))
    between = [node("Cast", "x", "n", to=kind), node("Mul", "n n", "m"), node("Cast", "m", "r", to=TensorProto.FLOAT)]
    run_product(f"square-in-{name}", between, [value("x", x.shape)], {"x": x}, x.astype(dtype) * x.astype(dtype))
    # An input of the type: data may be wider, and is rounded.
    run_product(f"input-of-{name}", [node("Cast", "x", "r", to=TensorProto.FLOAT)], [value("x", x.shape, kind)], {"x": x}, x.astype(dtype))
run_product("input-of-float16, half the data", [node("Cast", "x", "r", to=TensorProto.FLOAT)], [value("x", x.shape, TensorProto.FLOAT16)],
            {"x": x.astype(np.float16)}, x.astype(np.float16))
large = write(path("overflow"), [node("Cast", "x", "n", to=TensorProto.FLOAT16), node("Cast", "n", "r", to=TensorProto.FLOAT),
                                 node("MatMul", "r w", "y"), node("ReduceMean", "y", "loss", keepdims=0)], [value("x", x.shape)], [initializer("w", w)])
check("the loss of step 0 is not finite" in train(dsopt, large, {"x": x * 1e6}, *SGD, status=2), "what f16 cannot hold is infinite")

# Integers without a sign: how images come, and arithmetic that wraps around.
pixels = random.integers(0, 256, (4, 5)).astype(np.uint8)
as_float = node("Cast", "u", "r", to=TensorProto.FLOAT)
run_product("pixels", [node("Cast", "x", "u", to=TensorProto.UINT8), as_float], [value("x", x.shape, TensorProto.UINT8)], {"x": pixels}, pixels)
for kind, dtype in ((TensorProto.UINT8, np.uint8), (TensorProto.UINT16, np.uint16), (TensorProto.UINT32, np.uint32), (TensorProto.UINT64, np.uint64)):
    name, big = np.dtype(dtype).name, random.integers(0, 256, (4, 5)).astype(dtype) * dtype(np.iinfo(dtype).max // 300)
    inputs = [value("x", x.shape, kind), value("z", x.shape, kind)]
    data = {"x": big, "z": big[::-1] // dtype(3) + dtype(1)}
    scale = [node("Cast", "u", "f", to=TensorProto.FLOAT), node("Div", "f top", "r")]
    top = node("Constant", [], ["top"], value=initializer("top", np.float32(np.iinfo(dtype).max)))
    for op, function in (("Div", np.floor_divide), ("Max", np.maximum), ("Min", np.minimum), ("Mod", np.mod)):
        want = function(data["x"], data["z"]).astype(np.float32) / np.float32(np.iinfo(dtype).max)
        run_product(f"{op} of {name}", [top, node(op, "x z", "u"), *scale], inputs, data, want)
    chosen = [top, node("Less", "x z", "c"), node("Where", "c x z", "u"), *scale]
    run_product(f"Less of {name}", chosen, inputs, data, np.where(data["x"] < data["z"], data["x"], data["z"]).astype(np.float32) / np.float32(np.iinfo(dtype).max))

# f64: products too.
double = [node("Cast", "x", "d", to=TensorProto.DOUBLE), node("Transpose", "d", "t", perm=[1, 0]), node("MatMul", "d t", "p"),
          node("MatMul", "p d", "q"), node("Cast", "q", "r", to=TensorProto.FLOAT)]
x64 = x.astype(np.float64)
run_product("products in f64", double, [value("x", x.shape)], {"x": x}, x64 @ x64.T @ x64)
refused = write(path("double"), [node("MatMul", "x w", "y"), node("ReduceMean", "y", "loss", keepdims=0)], [value("x", x.shape, TensorProto.DOUBLE)],
                [initializer("w", w.astype(np.float64))], outputs=[value("loss", (), TensorProto.DOUBLE)])
check("initializer 'w' is of type f64, expected a parameter of f32, bf16 or f16: convert the model (model.float() in PyTorch)" in
      train(dsopt, refused, {"x": x64}, *SGD, status=1), "parameters of f64")

# Models that are narrow throughout: fp32 masters, weights of the model's type.
for name, (kind, dtype) in narrow.items():
    small = w.astype(dtype)
    nodes = [node("MatMul", "x w", "y"), node("Add", "y b", "z"), node("Tanh", "z", "t"), node("ReduceMean", "t", "loss", keepdims=0)]
    model = write(path(name), nodes, [value("x", x.shape, kind)], [initializer("w", small), initializer("b", np.zeros(3, dtype))],
                  outputs=[value("loss", (), kind)])
    run, weights = train(dsopt, model, {"x": x}, "-optimizer=sgd", "-lr=1e-3", "-steps=40", "-micro-batches=1", "-precision=fp32")
    # Steps below the type's resolution add up in the masters.
    master, b = small.astype(np.float64), np.zeros(3)
    losses = []
    for _ in range(40):
        t = np.tanh(x @ master + b)
        losses.append(t.mean())
        g = (1 - t * t) / t.size
        master, b = master - 1e-3 * (x.T @ g), b - 1e-3 * g.sum(0)
    near(run.losses, losses, f"losses of a model in {name}", 1e-5)
    check(weights["w"].dtype == (np.uint16 if name == "bfloat16" else np.float16), f"weights of a model in {name} are {weights['w'].dtype}")
    got = weights["w"].view(dtype).astype(np.float64)
    near(got, master.astype(dtype).astype(np.float64), f"weights of a model in {name}", 1e-2)
    check(not np.array_equal(got, small.astype(np.float64)), "nothing was trained")
    again, _ = train(dsopt, model, {"x": x}, "-optimizer=sgd", "-lr=1e-3", "-steps=40", "-dp=1", "-threads=2", "-precision=fp32")
    check(again.hash == run.hash, "threads change bits")
    check(f"the model's parameters are {'bf16' if name == 'bfloat16' else 'f16'}: trained as fp32 masters" in run.said, run.said)
    print(f"a model in {name}: fp32 masters, weights as {weights['w'].dtype}")
print("passed")
