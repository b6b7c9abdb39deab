"""Models that a test writes itself: their training, evaluation and layouts."""
import json
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import check, execute, Run
from saved_weights import safetensors


def save(path, nodes, inputs, initializers, opset, *domains):
    """Writes a model whose only output is a number named `loss`."""
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    opsets = [helper.make_opsetid(*one) for one in (("", opset), *domains)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, [loss], initializers), opset_imports=opsets, ir_version=10), path)


class Nodes:
    """A graph's nodes as they are made, each by the name of its value."""

    def __init__(self, seed):
        self.random, self.nodes, self.initializers = np.random.default_rng(seed), [], []

    def make(self, op, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attributes))
        return f"v{len(self.nodes) - 1}"

    def parameter(self, name, value):
        self.initializers.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def constant(self, value, type=np.float32):
        return self.make("Constant", value=numpy_helper.from_array(np.array(value, type)))

    def shaped(self, x, *shape):
        return self.make("Reshape", x, self.constant(shape, np.int64))


def wide_layers(folder, rows, inputs, width, wide, opset, batches, activation="Relu"):
    """A layer with a weight [out, in], one with [in, out], a residual around them, small layers beside them; with data."""
    random = np.random.default_rng(0)
    weights = [numpy_helper.from_array((random.standard_normal(shape) * 0.05).astype(np.float32), name)
               for name, shape in (("in", (inputs, width)), ("up", (wide, width)), ("bias", (wide,)), ("down", (wide, width)), ("out", (7, width)))]
    nodes = [helper.make_node(*node, **attributes) for node, attributes in (
        (("MatMul", ["x", "in"], ["a"]), {}), (("Tanh", ["a"], ["h"]), {}), (("Gemm", ["h", "up", "bias"], ["u"]), {"transB": 1}),
        ((activation, ["u"], ["r"]), {"approximate": "tanh"} if activation == "Gelu" else {}), (("MatMul", ["r", "down"], ["d"]), {}), (("Add", ["d", "h"], ["s"]), {}),
        (("Gemm", ["s", "out"], ["logits"]), {"transB": 1}), (("SoftmaxCrossEntropyLoss", ["logits", "labels"], ["loss"]), {}))]
    path, data = os.path.join(folder, f"layers{rows}.onnx"), os.path.join(folder, f"layers{rows}.npz")
    save(path, nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, inputs]),
                       helper.make_tensor_value_info("labels", TensorProto.INT64, [rows])], weights, opset)
    np.savez(data, x=random.standard_normal((batches * rows, inputs)).astype(np.float32), labels=random.integers(0, 7, batches * rows))
    return path, data


def run(dsopt, path, data, *options, status=0):
    """The run with its weights by name; the finished process where another status is expected."""
    with tempfile.TemporaryDirectory() as folder:
        log, weights = os.path.join(folder, "log.jsonl"), os.path.join(folder, "weights.safetensors")
        done = execute([dsopt, path, "-run", "-quiet", f"-data={data}", f"-log={log}", f"-save-weights={weights}", *options], status)
        if status:
            return done
        result = Run(log)
        result.weights = safetensors(weights)
        return result


def evaluate(dsopt, path, data, *options):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        execute([dsopt, path, "-eval", "-quiet", f"-data={data}", f"-log={log}", *options])
        return next(line["eval_loss"] for line in map(json.loads, open(log)) if "eval_loss" in line)


def check_equal(name, other, first, skipped=0):
    """That a run has the weights of the first, and its losses but for those of the first steps."""
    check((other.hash, other.loss_text) == (first.hash, first.loss_text[skipped:]),
          f"{name}: {other.loss_text} {other.hash}, expected {first.loss_text} {first.hash}")


def check_layouts(folder, layout, others):
    """`layout(dp, pp, zero, *options)` trains four steps: one result, in the other layouts and resumed in
    another one too; another seed gives another. Returns the run on one rank."""
    first = layout(1, 1, 0)
    check(len(set(first.loss_text)) == 4, f"losses {first.loss_text}")
    for name, arguments in others.items():
        check_equal(name, layout(*arguments), first)
    saved = os.path.join(folder, "saved")
    layout(2, 1, 1, "-steps=2", f"-save={saved}")
    check_equal("resumed", layout(1, 2, 0, f"-resume={saved}"), first, skipped=2)
    check(layout(1, 1, 0, "-seed=1").hash != first.hash, "two seeds give the same weights")
    return first
