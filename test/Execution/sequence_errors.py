"""What sequence shards cannot be made of is refused in one line: data of another length, fewer positions than shards, models without attention,
operations that mix positions by no rule. Of what mixes them otherwise all ranks compute the whole, and shards of lengths that they do not divide
are filled up: the same bits at every degree.

usage: sequence_errors.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper

from own_models import Nodes, save
from runs import check, execute, model, relative, Run

dsopt = sys.argv[1]
ROWS, LENGTH, WIDTH = 2, 8, 8


def refused(what, command, said):
    done = execute(command, status=1)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("dsopt: warning:") and "left as they are" not in line]
    check(len(lines) == 1 and lines[0].startswith("dsopt: error: ") and said in lines[0], f"{what}: expected one line with {said!r}: {done.stderr}")


def same_bits(folder, what, path, data):
    """At equal sequence shards, and near one shard."""
    runs, log = [], os.path.join(folder, "log.jsonl")
    for words in ([], ["-sequence-shards=4"], ["-sequence-shards=4", "-sp=2"], ["-sp=4"]):
        execute([dsopt, path, "-run", f"-data={data}", f"-log={log}", "-steps=3", "-lr=1e-2", "-optimizer=sgd", "-quiet", *words])
        runs.append(Run(log))
    check(relative(runs[1].losses, runs[0].losses) < 1e-5, f"{what}: {runs[1].losses}, one shard: {runs[0].losses}")
    check(len({(run.hash, *run.loss_text) for run in runs[1:]}) == 1, f"{what}: {[run.loss_text for run in runs]}")


def mixing(folder, name, mix):
    """Attention whose rows something reads together."""
    nodes = Nodes(seed=3)
    q, k, v = (nodes.make("MatMul", "x", nodes.parameter(one, nodes.random.standard_normal((WIDTH, WIDTH)) / 3)) for one in "qkv")
    scores = nodes.make("MatMul", q, nodes.make("Transpose", k, perm=[0, 2, 1]))
    y = mix(nodes, nodes.make("MatMul", nodes.make("Softmax", scores, axis=-1), v))
    nodes.nodes.append(helper.make_node("ReduceMean", [nodes.make("Mul", y, y)], ["loss"], keepdims=0))
    path = os.path.join(folder, f"{name}.onnx")
    save(path, nodes.nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, LENGTH, WIDTH])], nodes.initializers, 17)
    return path


def convolved(pads, kernel, group=1, dilation=1, stride=1):
    """A convolution along time."""

    def mix(nodes, y):
        weight, bias = nodes.parameter("kernel", nodes.random.standard_normal((WIDTH, WIDTH // group, kernel)) / 5), nodes.parameter("bias", nodes.random.standard_normal(WIDTH))
        return nodes.make("Conv", nodes.make("Transpose", y, perm=[0, 2, 1]), weight, bias, pads=pads, group=group, dilations=[dilation], strides=[stride])

    return mix


def left_out(begin, end):
    """A causal convolution that is filled up on both sides, and some of its rows."""

    def mix(nodes, y):
        y = nodes.make("Sigmoid", convolved([2, 2], 3, WIDTH)(nodes, y))
        return nodes.make("Slice", y, *(nodes.constant([one], np.int64) for one in (begin, end, 2)))

    return mix


# What reads rows of the shards beside; with 4 shards of 2 rows.
CONVOLVED = {"centred": convolved([1, 1], 3), "causal": convolved([2, 0], 3, WIDTH), "dilated": convolved([2, 0], 2, 2, dilation=2), "forward": convolved([0, 1], 2), "of one row": convolved([0, 0], 1),
             "of fewer positions": convolved([0, 0], 3), "cut off": left_out(0, LENGTH), "cut off, from the second": left_out(1, LENGTH)}
NOT_CONVOLVED = {"wider than shards": convolved([3, 3], 7), "every second": convolved([1, 1], 3, stride=2), "all of more positions": left_out(0, LENGTH + 2), "positions behind the last": left_out(2, LENGTH + 2)}


def recurrent(nodes, y):
    sizes = {"w": (1, 4 * WIDTH, WIDTH), "r": (1, 4 * WIDTH, WIDTH)}
    return nodes.make("LSTM", nodes.make("Transpose", y, perm=[1, 0, 2]), *(nodes.parameter(one, nodes.random.standard_normal(size) / 5) for one, size in sizes.items()), hidden_size=WIDTH)


def mixed_by_weights(nodes, y):
    """A product over positions."""
    return nodes.make("MatMul", nodes.parameter("mix", nodes.random.standard_normal((LENGTH, LENGTH)) / 5), y)


def summed_up(nodes, y):
    return nodes.make("CumSum", y, nodes.constant(1, np.int64))


def sorted_rows(nodes, y):
    nodes.nodes.append(helper.make_node("TopK", [y, nodes.constant([3], np.int64)], ["top", "places"], axis=1))
    return "top"


with tempfile.TemporaryDirectory() as folder:
    gpt, data = model("gpt2-tiny")
    arrays = dict(np.load(data))
    files = {}
    for length in (48, 31):
        files[length] = os.path.join(folder, f"{length}.npz")
        np.savez(files[length], **{name: np.concatenate([value, value], -1)[..., :length] for name, value in arrays.items()})
    program = os.path.join(folder, "train")
    execute([dsopt, gpt, f"-data={data}", "-sp=2", "-o", program])
    for length, file in files.items():
        refused(f"windows of {length}", [dsopt, gpt, "-run", f"-data={file}", "-sp=2"], f"dimension 1 of input 'input_ids' is 32, but its data has micro-batches of shape [2, {length}]")
        refused(f"windows of {length} for a program", [program, f"-data={file}"], f"array 'input_ids' has shape [8, 4, 2, {length}], expected a stream of micro-batches of [2, 32]")
    open_length = model("gpt2-tiny-opset23-dynamic")[0]
    same_bits(folder, "48 positions", open_length, files[48])
    refused("shards of less than a row", [dsopt, gpt, "-run", f"-data={data}", "-sp=2", "-sequence-shards=64"], "has 32 positions, fewer than the 64 sequence shards (-sp, -sequence-shards) that would have them")
    for name in ("mlp", "conv-lstm", "resnet-tiny"):
        path, own = model(name)
        refused(name, [dsopt, path, "-run", f"-data={own}", "-sp=2"], "has no attention, whose rows sequence shards (-sp, -sequence-shards) would be of")
    x = os.path.join(folder, "x.npz")
    np.savez(x, x=np.random.default_rng(0).standard_normal((6, ROWS, LENGTH, WIDTH)).astype(np.float32))
    for name, mix in NOT_CONVOLVED.items():
        refused(name, [dsopt, mixing(folder, "convolved", mix), "-run", f"-data={x}", "-sp=2", "-sequence-shards=4"], "mixes positions, and says no rule by which sequence shards (-sp, -sequence-shards) could")
    for name, mix in CONVOLVED.items():
        same_bits(folder, name, mixing(folder, "convolved", mix), x)
    for mix in (recurrent, mixed_by_weights, summed_up, sorted_rows):
        same_bits(folder, mix.__name__, mixing(folder, mix.__name__, mix), x)
    # Lengths that shards do not divide.
    same_bits(folder, "31 positions", open_length, files[31])
    print("refused in one line")
