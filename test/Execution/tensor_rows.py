"""What lies between the products of tensor shards is computed row by row: at equal shards one hash over grids of tp with everything else, masks of
dropout and losses as with one shard, the same elements travel.

usage: tensor_rows.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import own_models
from runs import check, execute, relative, same_bits, train

dsopt = sys.argv[1]
BASE = ["-steps=3", "-lr=3e-3", "-grad-clip=1"]
STEP = [*BASE, "-reduction-shards=2", "-accumulate=sharded"]
BATCH = ["-micro-batch-size=2", "-global-batch=8"]
FOUR = [*STEP, "-micro-batches=4"]
WIDTH, HEADS, SIZE, CLASSES = 64, 4, 16, 96
SCATTERED = {"reduce_scatter", "all_gather"}


class Llama:
    """Norms of squares, heads that share keys, gates, a vocabulary; dropout behind each product that ends in the stream."""

    def __init__(self, rows, length, few, layers=2, ratio=0.25):
        self.random, self.nodes, self.initializers = np.random.default_rng(3), [], []
        self.rows, self.length, self.few, self.ratio = rows, length, few, ratio
        x = self.make("Gather", self.weight("table", CLASSES, WIDTH), "ids")
        for layer in range(layers):
            for part in (self.attention, self.gates):
                y = self.make("Dropout", part(self.norm(x, f"{layer}.{part.__name__}"), str(layer)), self.constant(ratio), self.constant(True, np.bool_))
                x = self.make("Add", x, y)
        logits = self.product(self.norm(x, "last"), "head", CLASSES)
        self.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [self.shaped(logits, rows * length, CLASSES), "labels"], ["loss"]))

    def make(self, op, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attributes))
        return f"v{len(self.nodes) - 1}"

    def weight(self, name, *shape):
        values = np.ones(shape) if len(shape) == 1 else self.random.standard_normal(shape) / np.sqrt(WIDTH)
        self.initializers.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def constant(self, value, type=np.float32):
        return self.make("Constant", value=numpy_helper.from_array(np.array(value, type)))

    def shaped(self, x, *shape):
        return self.make("Reshape", x, self.constant(shape, np.int64))

    def norm(self, x, name):
        mean = self.make("ReduceMean", self.make("Mul", x, x), axes=[-1])
        return self.make("Mul", self.make("Div", x, self.make("Sqrt", self.make("Add", mean, self.constant(1e-6)))), self.weight(f"{name}.norm", WIDTH))

    def product(self, x, name, columns, rows=WIDTH):
        return self.make("MatMul", x, self.weight(name, rows, columns))

    def heads(self, x, name, count):
        return self.make("Transpose", self.shaped(self.product(x, name, count * SIZE), self.rows, self.length, count, SIZE), perm=[0, 2, 1, 3])

    def repeated(self, x):
        shape = self.rows, self.few, HEADS // self.few, self.length, SIZE
        x = self.make("Expand", self.shaped(x, self.rows, self.few, 1, self.length, SIZE), self.constant(shape, np.int64))
        return self.shaped(x, self.rows, HEADS, self.length, SIZE)

    def attention(self, x, layer):
        q = self.heads(x, f"{layer}.q", HEADS)
        k, v = (self.repeated(self.heads(x, f"{layer}.{name}", self.few)) for name in ("k", "v"))
        scores = self.make("Mul", self.make("MatMul", q, self.make("Transpose", k, perm=[0, 1, 3, 2])), self.constant(SIZE**-0.5))
        scores = self.make("Add", scores, self.constant(np.triu(np.full((self.length, self.length), -1e9), 1)))
        y = self.make("Transpose", self.make("MatMul", self.make("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.product(self.shaped(y, self.rows, self.length, WIDTH), f"{layer}.o", WIDTH)

    def gates(self, x, layer):
        gate = self.product(x, f"{layer}.gate", 2 * WIDTH)
        return self.product(self.make("Mul", self.make("Mul", gate, self.make("Sigmoid", gate)), self.product(x, f"{layer}.up", 2 * WIDTH)), f"{layer}.down", WIDTH, 2 * WIDTH)

    def save(self, folder):
        path, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "data.npz")
        own_models.save(path, self.nodes, [helper.make_tensor_value_info("ids", TensorProto.INT64, [self.rows, self.length]),
                                           helper.make_tensor_value_info("labels", TensorProto.INT64, [self.rows * self.length])], self.initializers, 17)
        ids = np.random.default_rng(0).integers(0, CLASSES, (4, self.rows, self.length))
        np.savez(data, ids=ids, labels=np.roll(ids, -1, 2).reshape(4, -1))
        return path, data


def sent(path, *words):
    """Kinds of collectives over tp by what a rank sends in a step."""
    plan, found = json.loads(execute([dsopt, path, "-plan=json", *words]).stdout), {}
    for one in plan["sharding"]["collectives"]:
        if one["axes"] == ["tp"]:
            found[one["kind"]] = found.get(one["kind"], 0) + one["bytes"]
    return found


def llamas(folder):
    """Sequences that the shards divide and positions of them; keys of fewer heads than shards, which are computed alike."""
    for rows, length, few, shards in ((4, 16, 2, 2), (2, 16, 2, 4), (3, 16, 4, 2)):
        path, data = Llama(rows, length, few).save(folder)
        kinds = sent(path, f"-data={data}", f"-tp={shards}")
        check(kinds.keys() >= SCATTERED, f"{rows} x {length}, T = {shards}: {kinds}")
        one = own_models.run(dsopt, path, data, *FOUR)
        first = own_models.run(dsopt, path, data, *FOUR, f"-tensor-shards={shards}")
        for words in ("-tp=2", f"-tp={shards}", "-dp=2 -zero=1 -micro-batches=2", f"-tp={shards} -dp=2 -zero=3 -micro-batches=2", "-tp=2 -pp=2", "-tp=2 -recompute=full", f"-tp={shards} -pp=2 -recompute=full"):
            own_models.check_equal(f"{rows} x {length}, T = {shards}: {words}", own_models.run(dsopt, path, data, *FOUR, f"-tensor-shards={shards}", *words.split()), first)
        check(relative(first.losses, one.losses) < 1e-5, f"{rows} x {length}, T = {shards}: {first.losses}, one shard: {one.losses}")
        first = None
        for words in ("-sp=1", "-sp=2", f"-tp={shards}", "-tp=2 -sp=2 -zero=3", "-tp=2 -sp=2 -sp-method=ring"):
            run = own_models.run(dsopt, path, data, *BASE, "-micro-batches=4", f"-tensor-shards={shards}", "-sequence-shards=2", *words.split())
            first = first or run
            own_models.check_equal(f"{rows} x {length}, T = {shards}, Q = 2: {words}", run, first)
        check(relative(first.losses, one.losses) < 1e-5, f"{rows} x {length}, T = {shards}, Q = 2: {first.losses}, one shard: {one.losses}")
        narrow = [own_models.run(dsopt, path, data, *FOUR, f"-tensor-shards={shards}", "-precision=bf16", words) for words in ("-tp=1", "-tp=2", f"-tp={shards}")]
        check(len({run.hash for run in narrow}) == 1, f"{rows} x {length}, T = {shards}, bf16: {[run.loss_text for run in narrow]}")
        print(f"{rows} sequences of {length}, {few} heads of keys, T = {shards}: one hash", flush=True)


def models():
    for name, shards in (("gpt2-tiny", 2), ("gpt2-tiny", 4), ("bert-tiny", 2)):
        base = [*STEP, *BATCH, f"-tensor-shards={shards}"]
        grids = ["-tp=1", "-tp=2", f"-tp={shards} -pp=2", "-tp=2 -dp=2 -zero=2", f"-tp={shards} -dp=2 -zero=3 -recompute=full", "-tp=2 -pp=2 -schedule=interleaved"]
        run = same_bits(dsopt, f"{name}, T = {shards}", name, grids, base)
        one = train(dsopt, name, *STEP, *BATCH)
        check(relative(run.losses, one.losses) < 1e-5, f"{name}, {shards} tensor shards: {run.losses}, one: {one.losses}")
        same_bits(dsopt, f"{name}, T = {shards}, Q = 2", name, ["-sp=1", "-tp=2", "-sp=2", "-tp=2 -sp=2 -zero=3", "-tp=2 -sp=2 -pp=2 -recompute=full"],
                  [*BASE, "-micro-batch-size=2", "-micro-batches=4", f"-tensor-shards={shards}", "-sequence-shards=2"])


def formulas(folder):
    """A layer has two sums and two reads: of each one's elements a rank sends (T-1)/T forward and as many backward, whatever lies between."""
    rows, length = 4, 16
    for shards in (2, 4):
        kinds = []
        for layers in (2, 3):
            path, data = Llama(rows, length, HEADS, layers, ratio=0.0).save(folder)
            kinds.append(sent(path, f"-data={data}", f"-tp={shards}", "-micro-batches=1"))
        each = rows * length * WIDTH * 4 * (shards - 1) // shards
        for kind in SCATTERED:
            check(kinds[1][kind] - kinds[0][kind] == 4 * each, f"T = {shards}: {kinds}, expected {4 * each} more each")
        check(kinds[1]["all_reduce"] - kinds[0]["all_reduce"] < each // 4, f"T = {shards}: {kinds}")
    print("as many bytes as all-reduces send", flush=True)


with tempfile.TemporaryDirectory() as temporary:
    formulas(temporary)
    llamas(temporary)
models()
