"""Nothing is derived from what is not proved to be causal: each of these models lets a position see a later one, or mixes positions by no rule, and is refused in one
line that names the operation. Their causal twins are derived.

usage: generate_refused.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper

from own_models import Nodes, save
from runs import check, execute

dsopt = sys.argv[1]
ROWS, LENGTH, WIDTH, WORDS = 2, 8, 16, 32


def attention(nodes, x, mask=None, axis=-1):
    """One head over all positions, with a mask that is added."""
    q, k, v = (nodes.make("MatMul", x, nodes.parameter(f"{one}.weight", nodes.random.standard_normal((WIDTH, WIDTH)) / 4)) for one in "qkv")
    scores = nodes.make("MatMul", q, nodes.make("Transpose", k, perm=[0, 2, 1]))
    if mask is not None:
        scores = nodes.make("Add", scores, mask)
    return nodes.make("MatMul", nodes.make("Softmax", scores, axis=axis), v)


def band(nodes, future, low=-np.inf):
    """What a row may read: positions up to so many behind its own."""
    return nodes.constant(np.where(np.tri(LENGTH, k=future, dtype=bool), 0, low))


def slice_of(nodes, x, starts, ends, axes, steps=(1,)):
    return nodes.make("Slice", x, *(nodes.constant(list(one), np.int64) for one in (starts, ends, axes, steps)))


def shifted(nodes, x):
    """Each position has the one behind it."""
    return nodes.make("Pad", slice_of(nodes, x, [1], [LENGTH], [1]), nodes.constant([0, 0, 0, 0, 1, 0], np.int64))


def by_channels(nodes, x, op, *others, **attributes):
    return nodes.make("Transpose", nodes.make(op, nodes.make("Transpose", x, perm=[0, 2, 1]), *others, **attributes), perm=[0, 2, 1])


def recurrence(nodes, x, direction):
    count = 2 if direction == "bidirectional" else 1
    w, r = (nodes.parameter(name, nodes.random.standard_normal((count, 4 * WIDTH, WIDTH)) / 5) for name in ("w.weight", "r.weight"))
    y = nodes.make("LSTM", nodes.make("Transpose", x, perm=[1, 0, 2]), w, r, hidden_size=WIDTH, direction=direction)
    return nodes.make("Transpose", nodes.make("ReduceSum", y, nodes.constant([1], np.int64), keepdims=0), perm=[1, 0, 2])


def padded(nodes, x):
    """Columns of a padding token are hidden, and later ones are not."""
    is_padding = nodes.make("Equal", "input_ids", nodes.constant(0, np.int64))
    hidden = nodes.make("Where", is_padding, nodes.constant(-np.inf), nodes.constant(0.0))
    return attention(nodes, x, nodes.make("Unsqueeze", hidden, nodes.constant([1], np.int64)))


def capacity(nodes, x):
    """Of all positions the few that an expert takes."""
    scores = nodes.make("MatMul", x, nodes.parameter("gate", nodes.random.standard_normal((WIDTH, 1))))
    nodes.nodes.append(helper.make_node("TopK", [scores, nodes.constant([2], np.int64)], ["best", "places"], axis=1))
    return nodes.make("Add", x, nodes.make("ReduceSum", "best", nodes.constant([1], np.int64), keepdims=1))


REFUSED = {
    "no mask": ("graph.attention", attention),
    "a band into the future": ("lets position 0 read position 1", lambda nodes, x: attention(nodes, x, band(nodes, 1))),
    "a finite mask": ("graph.attention", lambda nodes, x: attention(nodes, x, band(nodes, 0, -1e4))),
    "a softmax over queries": ("graph.", lambda nodes, x: attention(nodes, x, band(nodes, 0), axis=-2)),
    "a padding mask": ("graph.attention", padded),
    "a mean over time": ("graph.reduce_mean", lambda nodes, x: nodes.make("Add", x, nodes.make("ReduceMean", x, nodes.constant([1], np.int64)))),
    "a flip of time": ("graph.slice", lambda nodes, x: nodes.make("Add", x, slice_of(nodes, x, [-1], [-LENGTH - 1], [1], [-1]))),
    "the next position": ("graph.slice", lambda nodes, x: nodes.make("Add", x, shifted(nodes, x))),
    "a norm over time": ("graph.", lambda nodes, x: by_channels(nodes, x, "InstanceNormalization", *(nodes.parameter(name, np.ones(WIDTH)) for name in ("scale", "bias")))),
    "a norm over groups and time": ("graph.", lambda nodes, x: by_channels(nodes, x, "GroupNormalization", *(nodes.parameter(name, np.ones(WIDTH)) for name in ("scale", "bias")), num_groups=4)),
    "a convolution": ("graph.", lambda nodes, x: by_channels(nodes, x, "Conv", nodes.parameter("kernel", nodes.random.standard_normal((WIDTH, WIDTH, 3)) / 5), pads=[1, 1])),
    "a recurrence of both directions": ("graph.", lambda nodes, x: recurrence(nodes, x, "bidirectional")),
    "a sum from the end": ("graph.", lambda nodes, x: nodes.make("CumSum", x, nodes.constant(1, np.int64), reverse=1)),
    "a largest of neighbours": ("graph.", lambda nodes, x: by_channels(nodes, x, "MaxPool", kernel_shape=[3], pads=[1, 1])),
    "a Fourier transform": ("graph.", lambda nodes, x: nodes.make("Add", x, nodes.make("ReduceSum", nodes.make("DFT", nodes.make("Unsqueeze", x, nodes.constant([3], np.int64)), "", nodes.constant(1, np.int64)), nodes.constant([3], np.int64), keepdims=0))),
    "weights by position": ("graph.matmul", lambda nodes, x: by_channels(nodes, x, "MatMul", nodes.parameter("mixing", nodes.random.standard_normal((LENGTH, LENGTH))))),
    "the best of all positions": ("graph.", capacity),
    "sequences that see each other": ("mixes sequences", lambda nodes, x: nodes.make("Add", x, nodes.make("ReduceMean", x, nodes.constant([0], np.int64)))),
    "labels": ("makes logits of labels", lambda nodes, x: nodes.make("Add", x, nodes.make("Unsqueeze", nodes.make("Cast", "labels", to=TensorProto.FLOAT), nodes.constant([2], np.int64)))),
}
DERIVED = {
    "causal attention": lambda nodes, x: attention(nodes, x, band(nodes, 0)),
    "a finite mask that hides": lambda nodes, x: attention(nodes, x, band(nodes, 0, -3.4e38)),
    "a window": lambda nodes, x: attention(nodes, x, nodes.constant(np.where(np.tri(LENGTH, dtype=bool) & ~np.tri(LENGTH, k=-3, dtype=bool), 0, -np.inf))),
    "a norm of each position": lambda nodes, x: nodes.make("LayerNormalization", x, *(nodes.parameter(name, np.ones(WIDTH)) for name in ("scale", "bias"))),
    "a table of positions": lambda nodes, x: nodes.make("Add", x, nodes.parameter("positions", nodes.random.standard_normal((LENGTH, WIDTH)))),
}


def write(folder, mix):
    nodes = Nodes(seed=3)
    x = mix(nodes, nodes.make("Gather", nodes.parameter("embedding", nodes.random.standard_normal((WORDS, WIDTH))), "input_ids"))
    logits = nodes.make("MatMul", x, nodes.parameter("head", nodes.random.standard_normal((WIDTH, WORDS)) / 4))
    nodes.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [nodes.make("Transpose", logits, perm=[0, 2, 1]), "labels"], ["loss"]))
    path = os.path.join(folder, "model.onnx")
    save(path, nodes.nodes, [helper.make_tensor_value_info(name, TensorProto.INT64, [ROWS, LENGTH]) for name in ("input_ids", "labels")], nodes.initializers, 21)
    return path


with tempfile.TemporaryDirectory() as folder:
    for what, (said, mix) in REFUSED.items():
        path = write(folder, mix)
        execute([dsopt, path, "-plan=json"])
        lines = [line for line in execute([dsopt, "generate", path, "-plan=json"], status=1).stderr.splitlines() if not line.startswith("dsopt: warning:")]
        check(len(lines) == 1 and lines[0].startswith("dsopt: error: ") and said in lines[0], f"{what}: expected one line with {said!r}: {lines}")
    print(f"{len(REFUSED)} models refused by name")
    for what, mix in DERIVED.items():
        execute([dsopt, "generate", write(folder, mix), "-plan=json"])
    print(f"{len(DERIVED)} models derived")
