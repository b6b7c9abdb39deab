"""Values of no elements, as slices and rolls over an axis of one element leave them: within blocks, between them, kept, recomputed, sent
and offloaded. The numbers are those of the model without.

usage: no_elements.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from own_models import check_equal, run, save
from runs import check

dsopt = sys.argv[1]
ROWS, WIDTH, LAYERS = 3, 17, 4


def build(folder, empty):
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array((rng.standard_normal((WIDTH, WIDTH)) * 0.3).astype(np.float32), f"w{layer}") for layer in range(LAYERS)]
    bounds = [numpy_helper.from_array(np.array([number], np.int64), name) for number, name in ((0, "zero"), (1, "axis"))]
    nodes, at = [], "x"
    for layer in range(LAYERS):
        nodes.append(helper.make_node("MatMul", [at, f"w{layer}"], [f"h{layer}"]))
        nodes.append(helper.make_node("Tanh", [f"h{layer}"], [f"t{layer}"]))
        at = f"t{layer}"
        if not empty:
            continue
        # The first layer's is read in all later ones, too.
        nodes.append(helper.make_node("Slice", [at, "zero", "zero", "axis"], [f"e{layer}"]))
        nodes.append(helper.make_node("Concat", [f"e{layer}", at, "e0"], [f"c{layer}"], axis=1))
        at = f"c{layer}"
    nodes += [helper.make_node("Mul", [at, at], ["squares"]), helper.make_node("ReduceMean", ["squares"], ["loss"], keepdims=0)]
    path = os.path.join(folder, f"{'with' if empty else 'without'}.onnx")
    save(path, nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, 1, WIDTH])], weights + (bounds if empty else []), 17)
    return path


with tempfile.TemporaryDirectory() as folder:
    data = os.path.join(folder, "data.npz")
    np.savez(data, x=np.random.default_rng(1).standard_normal((8, ROWS, 1, WIDTH)).astype(np.float32))
    common = ["-steps=2", "-reduction-shards=4", "-accumulate=local"]
    first = run(dsopt, build(folder, False), data, *common, "-micro-batches=4")
    check(len(set(first.loss_text)) == 2, f"losses {first.loss_text}")
    path = build(folder, True)
    for layout in (["-micro-batches=4"], ["-micro-batches=4", "-recompute=full"], ["-micro-batches=4", "-pp=3"], ["-micro-batches=4", "-pp=4", "-recompute=full"],
                   ["-micro-batches=2", "-dp=2", "-zero=3", "-pp=2", "-offload-activations=cpu"]):
        check_equal(f"{layout}", run(dsopt, path, data, *common, *layout), first)
print("values of no elements change nothing")
