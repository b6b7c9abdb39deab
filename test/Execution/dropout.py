"""Dropout: the masks that a reference of the random numbers gives, in every layout.

usage: dropout.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from own_models import check_layouts, evaluate, run, save
from runs import SOURCE, check, model

sys.path.append(os.path.join(SOURCE, "test", "Conversion", "KernelToLLVM", "Inputs"))
from philox import kept

dsopt = sys.argv[1]


def scalar(name, value, type=np.float32):
    return numpy_helper.from_array(np.array(value, type), name)


def check_masks(folder, shape, ratios):
    """The gradient of sum(dropout(... x) * w) is the masks' product: two dropouts, micro-batches and steps."""
    path, data = os.path.join(folder, "masks.onnx"), os.path.join(folder, "masks.npz")
    nodes = [helper.make_node("Dropout", ["x", "r0", "on"], ["a"]), helper.make_node("Dropout", ["a", "r1", "on"], ["b"]),
             helper.make_node("Mul", ["b", "w"], ["c"]), helper.make_node("ReduceSum", ["c"], ["loss"], keepdims=0)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    save(path, nodes, [x], [scalar("r0", ratios[0]), scalar("r1", ratios[1]), scalar("on", True, np.bool_),
                            numpy_helper.from_array(np.zeros(shape, np.float32), "w")], 18)
    # The second micro-batch counts 16 times, so that sums tell what each of the two has dropped.
    np.savez(data, x=np.stack([np.ones(shape), np.full(shape, 16)]).astype(np.float32)[None].repeat(2, 0))
    scale = 1 / (1 - ratios[0]) / (1 - ratios[1])
    masks = {}
    for seed in (0, 7 + (5 << 32)):
        expected = np.zeros(shape)
        for step in (0, 1):
            for m in (0, 1):
                mask = kept(ratios[0], shape, 0, step, m, seed) & kept(ratios[1], shape, 1, step, m, seed)
                masks[seed, step, m] = mask
                expected -= mask * (16.0**m) * scale / 2
                share, right = 1 - mask.mean(), 1 - (1 - ratios[0]) * (1 - ratios[1])
                check(abs(share - right) < 5 * np.sqrt(right * (1 - right) / mask.size), f"{share} of {shape} is dropped, expected {right}")
            got = run(dsopt, path, data, f"-steps={step + 1}", "-micro-batches=2", "-optimizer=sgd", "-lr=1", f"-seed={seed}").weights["w"]
            check(np.allclose(got, expected, rtol=1e-6), f"shape {shape}, seed {seed}, step {step}: masks differ from the reference")
    values = [mask.tobytes() for mask in masks.values()]
    check(len(set(values)) == len(values), f"shape {shape}: two micro-batches have the same mask")
    off = run(dsopt, path, data, "-steps=1", "-micro-batches=2", "-optimizer=sgd", "-lr=1", "-dropout=off").weights["w"]
    check(np.array_equal(off, np.full(shape, -8.5)), f"shape {shape}: -dropout=off drops something")
    print(f"masks of shape {shape}: as the reference, {share:.3f} dropped of {right:.3f}", flush=True)


def dropped_gpt(folder):
    """gpt2-tiny with dropout behind every softmax and every product with a bias."""
    path, data = os.path.join(folder, "gpt.onnx"), model("gpt2-tiny")[1]
    m = onnx.load(model("gpt2-tiny")[0])
    nodes, renamed = [], {}
    for node in m.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
        nodes.append(node)
        if node.op_type in ("Softmax", "Gemm"):
            output = node.output[0]
            renamed[output] = output + ".dropped"
            nodes.append(helper.make_node("Dropout", [output, "ratio", "on"], [renamed[output]], name="drop." + output))
    check(len(renamed) > 4, "gpt2-tiny has no softmax or Gemm any more")
    del m.graph.node[:]
    m.graph.node.extend(nodes)
    m.graph.initializer.extend([scalar("ratio", 0.1), scalar("on", True, np.bool_)])
    onnx.save(m, path)
    return path, data


def check_gpt(folder):
    path, data = dropped_gpt(folder)
    base = ["-steps=4", "-lr=3e-3", "-grad-clip=1", "-reduction-shards=4"]

    def layout(dp, pp, zero, *more, k=4):
        return run(dsopt, path, data, *base, f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={k // dp}", *more)

    runs = {"dp 4": (4, 1, 0), "dp 2, pp 2, zero 3": (2, 2, 3), "pp 4": (1, 4, 0), "gpipe": (2, 2, 0, "-schedule=gpipe"),
            "sharded": (2, 1, 2, "-accumulate=sharded"), "recomputed": (2, 2, 3, "-recompute=full"), "one thread": (1, 1, 0, "-threads=1"), "three threads": (1, 1, 0, "-threads=3")}
    first = check_layouts(folder, layout, runs)
    without, plain = layout(1, 1, 0, "-dropout=off"), run(dsopt, model("gpt2-tiny")[0], data, *base, "-micro-batches=4")
    check(without.loss_text != first.loss_text, "dropout does nothing")
    check(np.allclose(without.losses, plain.losses, rtol=1e-5), f"-dropout=off: {without.losses}, without dropout {plain.losses}")
    evaluated = [evaluate(dsopt, name, data) for name in (path, model("gpt2-tiny")[0])]
    check(evaluated[0] > 0 and abs(evaluated[0] / evaluated[1] - 1) < 1e-6, f"evaluation with dropout: {evaluated[0]}, without {evaluated[1]}")
    narrow = [layout(1, 1, 0, "-precision=bf16"), layout(2, 2, 3, "-precision=bf16")]
    check(narrow[0].hash == narrow[1].hash, "bf16: two hashes")
    check(np.allclose(narrow[0].losses, first.losses, rtol=0.02), f"bf16: {narrow[0].losses}, fp32 {first.losses}")
    print(f"gpt2-tiny with dropout: {len(runs) + 2} layouts, one hash {first.hash[:16]}, losses {', '.join(first.loss_text)}", flush=True)


with tempfile.TemporaryDirectory() as folder:
    check_masks(folder, (15, 1023), (0.25, 0.5))
    check_masks(folder, (3, 5, 7, 17), (0.1, 0.3))
    check_masks(folder, (2049,), (0.5, 0.01))
    check_gpt(folder)
