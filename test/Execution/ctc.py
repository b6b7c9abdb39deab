"""Connectionist temporal classification: losses and gradients of all paths added up, in every layout.

usage: ctc.py DSOPT
"""
import itertools
import os
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import own_models
from own_models import check_equal
from runs import check

dsopt = sys.argv[1]
random = np.random.default_rng(4)
FRAMES, BATCH, CLASSES, TARGETS = 5, 4, 4, 3


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def written(path, blank):
    """What a path over the frames says: repeats are one, blanks are nothing."""
    return tuple(c for c, before in zip(path, (None, *path)) if c != before and c != blank)


def losses(logits, targets, inputs, lengths, blank):
    logs, result = log_softmax(logits), []
    for n in range(logits.shape[1]):
        wanted = tuple(targets[n][: lengths[n]])
        with np.errstate(divide="ignore"):
            result.append(-np.log(sum(np.exp(sum(logs[t, n, c] for t, c in enumerate(path)))
                                      for path in itertools.product(range(logits.shape[2]), repeat=inputs[n]) if written(path, blank) == wanted)))
    return np.array(result)


def total(each, lengths, options):
    if options.get("zero_infinity"):
        each = np.where(np.isinf(each), 0, each)
    reduction = options.get("reduction", "mean")
    return (each / np.maximum(lengths, 1)).mean() if reduction == "mean" else each.sum() if reduction == "sum" else (each * np.arange(1, len(each) + 1)).sum()


def save(folder, targets, kind=TensorProto.INT64, single=False, frames=FRAMES, batch=BATCH, classes=CLASSES, **options):
    """The loss of a parameter, the logits, plus input x."""
    path = os.path.join(folder, "ctc.onnx")
    start = (random.standard_normal((frames, batch, classes)) * 1.5).astype(np.float32)
    shape = [frames, batch, classes]
    nodes = [helper.make_node("Add", ["logits", "x"], ["sum"]), helper.make_node("LogSoftmax", ["sum"], ["logs"], axis=-1)]
    logs, rows = "logs", [batch]
    if single:
        nodes.append(helper.make_node("Squeeze", ["logs", "one"], ["row"]))
        logs, rows = "row", []
    nodes.append(helper.make_node("CTCLoss", [logs, "targets", "inputs", "lengths"], ["each"], name="the_loss", domain="dsopt", **options))
    if options.get("reduction") == "none":
        nodes += [helper.make_node("Mul", ["each", "counts"], ["counted"]), helper.make_node("ReduceSum", ["counted"], ["loss"], keepdims=0)]
    else:
        nodes.append(helper.make_node("Identity", ["each"], ["loss"]))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), helper.make_tensor_value_info("targets", kind, targets),
              *(helper.make_tensor_value_info(name, kind, rows) for name in ("inputs", "lengths"))]
    initializers = [numpy_helper.from_array(start, "logits"), numpy_helper.from_array(np.array([1]), "one"),
                    numpy_helper.from_array(np.arange(1, batch + 1, dtype=np.float32), "counts")]
    own_models.save(path, nodes, inputs, initializers, 20, ("dsopt", 1))
    return path, start


def run(path, data, *options, status=0):
    return own_models.run(dsopt, path, data, "-optimizer=sgd", "-lr=1", *options, status=status)


def check_values(folder, name, concatenated=False, single=False, kind=TensorProto.INT64, **options):
    data, blank = os.path.join(folder, "data.npz"), options.get("blank", 0)
    batch = 1 if single else BATCH
    labels = [c for c in range(CLASSES) if c != blank]
    targets = random.choice(labels, (batch, TARGETS))
    inputs, lengths = np.array([5, 4, 3, 5])[:batch], np.array([3, 0, 2, 2])[:batch]
    targets[-1] = [labels[1], labels[1], labels[2]]  # a repeat needs a blank
    if options.get("zero_infinity"):
        inputs[-1], lengths[-1], inputs[0], lengths[0] = 2, 3, 5, 1
    given = np.concatenate([row[:n] for row, n in zip(targets, lengths)]) if concatenated else targets[0] if single else targets
    path, start = save(folder, list(given.shape), kind, single, batch=batch, **options)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    np.savez(data, x=np.zeros((1, *start.shape), np.float32), targets=given[None].astype(dtype), inputs=(inputs[0] if single else inputs)[None].astype(dtype),
             lengths=(lengths[0] if single else lengths)[None].astype(dtype))

    def loss(x):
        return total(losses(x, targets, inputs, lengths, blank), lengths, options)

    got = run(path, data, "-steps=1")
    exact = start.astype(np.float64)
    check(abs(got.losses[0] - loss(exact)) < 1e-6 * (1 + abs(loss(exact))), f"{name}: the loss is {got.losses[0]}, expected {loss(exact)}")
    gradient = np.zeros(start.shape)
    for index in np.ndindex(*start.shape):
        nearby = [exact.copy(), exact.copy()]
        for side, sign in zip(nearby, (1, -1)):
            side[index] += sign * 1e-5
        gradient[index] = (loss(nearby[0]) - loss(nearby[1])) / 2e-5
    worst = np.max(np.abs(start.astype(np.float64) - got.weights["logits"] - gradient))
    check(worst < 2e-6, f"{name}: the gradient is off by {worst}")
    print(f"{name}: loss and gradient of all paths, at worst {worst:.1e} off", flush=True)


def check_layouts(folder):
    data = os.path.join(folder, "many.npz")
    path, _ = save(folder, [7, 9], frames=40, batch=7, classes=31, zero_infinity=1)
    count = 8
    np.savez(data, x=random.standard_normal((count, 40, 7, 31)).astype(np.float32), targets=random.integers(1, 31, (count, 7, 9)),
             inputs=random.integers(18, 41, (count, 7)), lengths=random.integers(0, 10, (count, 7)))
    base = ["-steps=2", "-reduction-shards=2", "-accumulate=sharded"]
    first = run(path, data, *base, "-micro-batches=4")
    others = {"dp 2, zero 3": ("-dp=2", "-zero=3", "-micro-batches=2"), "one thread": ("-threads=1", "-micro-batches=4"), "three threads": ("-threads=3", "-micro-batches=4")}
    for name, options in others.items():
        other = run(path, data, *base, *options)
        check_equal(name, other, first)
    print(f"{len(others) + 1} layouts, one hash {first.hash[:16]}, losses {', '.join(first.loss_text)}", flush=True)
    arrays = dict(np.load(data))
    for name, value, what in (("targets", 31, "31"), ("inputs", 41, "41"), ("lengths", 10, "10")):
        wrong = {key: array.copy() for key, array in arrays.items()}
        wrong[name].reshape(count, -1)[0, 3] = value
        np.savez(data, **wrong)
        done = run(path, data, *base, "-micro-batches=4", status=1)
        check(what in done.stderr and name in done.stderr, done.stderr)


with tempfile.TemporaryDirectory() as folder:
    check_values(folder, "mean")
    check_values(folder, "sum, blank 2", reduction="sum", blank=2)
    check_values(folder, "none", reduction="none", kind=TensorProto.INT32)
    check_values(folder, "zero_infinity", zero_infinity=1)
    check_values(folder, "concatenated targets", concatenated=True)
    check_values(folder, "one sample", single=True, reduction="sum")
    check_layouts(folder)
    # What cannot be written in so few frames ends the run, which says why.
    path, _ = save(folder, [BATCH, TARGETS])
    data = os.path.join(folder, "data.npz")
    np.savez(data, x=np.zeros((1, FRAMES, BATCH, CLASSES), np.float32), targets=np.full((1, BATCH, TARGETS), 1), inputs=np.full((1, BATCH), 2), lengths=np.full((1, BATCH), 3))
    check("not finite" in run(path, data, "-steps=1", status=2).stderr, "an infinite loss is not named")
    done = run(save(folder, [BATCH, TARGETS], blank=4)[0], data, "-steps=1", status=1)
    check("node 'the_loss' (dsopt.CTCLoss, opset 1): 'graph.ctc' op has blank 4, expected 0 to 3" in done.stderr, done.stderr)
    done = run(save(folder, [BATCH, TARGETS], reduction="max")[0], data, "-steps=1", status=1)
    check("has reduction 'max', expected mean, sum or none" in done.stderr, done.stderr)
