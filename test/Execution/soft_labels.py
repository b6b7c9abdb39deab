"""A cross-entropy that is attached with -loss: labels, and probabilities in their place.

usage: soft_labels.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import Run, check, execute
from saved_weights import safetensors

dsopt = sys.argv[1]
random = np.random.default_rng(8)
ROWS, SIZE, CLASSES = 6, 5, 7


def save(path, *shape, target=None):
    start = random.standard_normal((SIZE, CLASSES)).astype(np.float32)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    nodes, outputs = [helper.make_node("MatMul", ["x", "w"], ["logits"])], [helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)]
    if target:
        inputs.append(helper.make_tensor_value_info("p", TensorProto.FLOAT, target))
        nodes.append(helper.make_node("Mul", ["p", "p"], ["squares"]))
        outputs.append(helper.make_tensor_value_info("squares", TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(start, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return start


def run(path, data, loss, *options, status=0):
    with tempfile.TemporaryDirectory() as folder:
        log, weights = os.path.join(folder, "log.jsonl"), os.path.join(folder, "weights.safetensors")
        done = execute([dsopt, path, "-run", "-quiet", f"-data={data}", f"-loss={loss}", "-steps=1", "-optimizer=sgd", "-lr=1", f"-log={log}", f"-save-weights={weights}", *options], status)
        if status:
            return done.stderr
        result = Run(log)
        result.weights = safetensors(weights)
        return result


def expected(x, w, shares):
    logits = x.astype(np.float64) @ w.astype(np.float64)
    logs = logits - logits.max(-1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(-1, keepdims=True))
    rows = logits.shape[0]
    gradient = x.T.astype(np.float64) @ (np.exp(logs) * shares.sum(-1, keepdims=True) - shares) / rows
    return -(shares * logs).sum() / rows, gradient


def same(got, w, want, what):
    loss, gradient = want
    worst = np.max(np.abs(w.astype(np.float64) - got.weights["w"] - gradient))
    check(abs(got.losses[0] - loss) < 1e-6 * loss and worst < 1e-6, f"{what}: loss {got.losses[0]}, expected {loss}; the gradient is off by {worst}")


with tempfile.TemporaryDirectory() as folder:
    path, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "data.npz")
    w = save(path, ROWS, SIZE)
    x, labels = random.standard_normal((4, ROWS, SIZE)).astype(np.float32), random.integers(0, CLASSES, (4, ROWS))
    smooth = (0.9 * np.eye(CLASSES)[labels] + 0.1 / CLASSES).astype(np.float32)
    shares = random.dirichlet(np.ones(CLASSES), (4, ROWS)).astype(np.float32)
    np.savez(data, x=x, labels=labels, smooth=smooth, shares=shares)
    same(run(path, data, "cross-entropy:logits,labels"), w, expected(x[0], w, np.eye(CLASSES)[labels[0]]), "labels")
    same(run(path, data, "cross-entropy:logits,smooth"), w, expected(x[0], w, smooth[0].astype(np.float64)), "smoothed labels")
    first = run(path, data, "cross-entropy:logits,shares", "-micro-batches=4", "-reduction-shards=2", "-accumulate=sharded")
    other = run(path, data, "cross-entropy:logits,shares", "-dp=2", "-micro-batches=2", "-zero=3")
    check((first.hash, first.loss_text) == (other.hash, other.loss_text), "two layouts give two hashes")
    # Rows of probabilities, cut into micro-batches; a target that the model computes.
    np.savez(data, x=x.reshape(-1, SIZE), shares=shares.reshape(-1, CLASSES))
    check(run(path, data, "cross-entropy:logits,shares", "-micro-batches=4").loss_text == first.loss_text, "rows and micro-batches differ")
    w = save(path, ROWS, SIZE, target=[ROWS, CLASSES])
    np.savez(data, x=x, p=shares)
    same(run(path, data, "cross-entropy:logits,squares"), w, expected(x[0], w, shares[0].astype(np.float64) ** 2), "a target of the model")
    # What is not clear is refused.
    save(path, 2, 3, SIZE)
    np.savez(data, x=x.reshape(4, 2, 3, SIZE), shares=shares.reshape(4, 2, 3, CLASSES))
    check("has probabilities as labels of logits of type 'tensor<2x3x7xf32>', expected rows and classes alone" in run(path, data, "cross-entropy:logits,shares", status=1), "rank 3")
    save(path, ROWS, SIZE, target=[ROWS, CLASSES + 1])
    np.savez(data, x=x, p=np.zeros((4, ROWS, CLASSES + 1), np.float32))
    check("has logits of type 'tensor<6x7xf32>' and probabilities of type 'tensor<6x8xf32>' as labels, expected equal shapes" in
          run(path, data, "cross-entropy:logits,squares", status=1), "other shapes")
print("labels and probabilities: loss and gradient as in double")
