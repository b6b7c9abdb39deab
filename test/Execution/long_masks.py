"""Masks of long sequences, which are counted and not stored, beside numpy: causal ones in many spellings, and some that are nearly so.

usage: long_masks.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np

from runs import check, execute
from small import TensorProto, initializer, node, value, write

dsopt = sys.argv[1]
S, D, LOW = 4200, 4, -3e38  # S * S is more than a constant may have
random = np.random.default_rng(3)
q, k, v = (random.normal(0, 1, (1, 1, S, D)).astype(np.float32) for _ in range(3))
COUNTS = [initializer("zero", np.int64(0)), initializer("size", np.int64(S)), initializer("one", np.int64(1)), initializer("axis0", np.array([0])),
          initializer("axis1", np.array([1])), initializer("nothing", np.float32(0)), initializer("low", np.float32(LOW)), initializer("unit", np.float32(1)),
          initializer("square", np.array([S, S]))]
PLACES = [node("Range", "zero size one", "places"), node("Unsqueeze", "places axis0", "columns"), node("Unsqueeze", "places axis1", "rows")]
# The mask of each, and how many columns behind its own place a row reads (None: all but those).
MASKS = {
    "less or equal": (PLACES + [node("LessOrEqual", "columns rows", "reads"), node("Where", "reads nothing low", "mask")], 0),
    "not greater": (PLACES + [node("Greater", "columns rows", "behind"), node("Not", "behind", "reads"), node("Where", "reads nothing low", "mask")], 0),
    "greater, times": (PLACES + [node("Greater", "columns rows", "behind"), node("Cast", "behind", "number", to=TensorProto.FLOAT), node("Mul", "number low", "mask")], 0),
    "one less, times": (PLACES + [node("GreaterOrEqual", "rows columns", "reads"), node("Cast", "reads", "number", to=TensorProto.FLOAT),
                                  node("Sub", "unit number", "other"), node("Mul", "other low", "mask")], 0),
    "a triangle": ([node("ConstantOfShape", "square", "ones", value=initializer("", np.array([1], np.int64))), node("Trilu", "ones", "lower", upper=0),
                    node("Cast", "lower", "reads", to=TensorProto.BOOL), node("Where", "reads nothing low", "mask")], 0),
    "one column more": (PLACES + [node("Sub", "columns one", "before"), node("LessOrEqual", "before rows", "reads"), node("Where", "reads nothing low", "mask")], 1),
    "one column less": (PLACES + [node("Less", "columns rows", "reads"), node("Where", "reads nothing low", "mask")], -1),
}


def expected(more):
    scores = (q[0, 0] @ k[0, 0].T).astype(np.float64)
    scores += np.where(np.arange(S)[None] <= np.arange(S)[:, None] + more, 0, LOW)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ v[0, 0]


def result(folder, nodes, initializers, opset):
    path = write(os.path.join(folder, "model.onnx"), nodes, [value(name, (1, 1, S, D)) for name in "qkv"], initializers, [value("y", (1, 1, S, D))], opset)
    data, saved = os.path.join(folder, "data.npz"), os.path.join(folder, "outputs.npz")
    np.savez(data, q=q[None], k=k[None], v=v[None])
    execute([dsopt, path, "-predict", f"-data={data}", f"-save-outputs={saved}", "-quiet"])
    calls = json.loads(execute([dsopt, path, "-predict", f"-data={data}", "-plan=json"]).stdout)
    return np.load(saved)["y"].reshape(S, D), calls


with tempfile.TemporaryDirectory() as folder:
    for name, (nodes, more) in MASKS.items():
        attention = [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "s"), node("Add", "s mask", "m"),
                     node("Softmax", "m", "p", axis=-1), node("MatMul", "p v", "y")]
        got, plan = result(folder, nodes + attention, COUNTS, 20)
        error = np.abs(got - expected(more)).max()
        largest = max(rank["memory"]["total"] for rank in plan["ranks"])
        check(error < 1e-5, f"{name}: {error:.1e} from numpy's")
        # What is causal has no mask: no rank has room for one.
        check((largest < S * S) == (more == 0), f"{name}: a rank takes {largest} bytes")
        print(f"{name}: within {error:.1e}")
    got, plan = result(folder, [node("Attention", "q k v", "y", is_causal=1, scale=1.0)], [], 23)
    check(np.abs(got - expected(0)).max() < 1e-5 and max(rank["memory"]["total"] for rank in plan["ranks"]) < S * S, "Attention: other numbers, or a mask")
