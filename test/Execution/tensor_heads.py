"""Attention whose key and value heads are too few to be cut, a bias by head, and experts that tokens choose: at equal tensor shards one hash
at every degree, losses beside those of one shard, and what must be cut is.

usage: tensor_heads.py DSOPT
"""
import os
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

from own_models import Nodes
from runs import Run, check, execute, relative
from shard_kernels import check_kernels

dsopt = sys.argv[1]
ROWS, LENGTH, WIDTH, SIZE = 4, 6, 24, 4


class Graph(Nodes):
    def __init__(self):
        super().__init__(seed=7)

    def weight(self, name, *shape):
        return self.parameter(name, self.random.standard_normal(shape) / np.sqrt(WIDTH))

    def heads(self, x, name, count):
        x = self.shaped(self.make("MatMul", x, self.weight(name, WIDTH, count * SIZE)), ROWS, LENGTH, count, SIZE)
        return self.make("Transpose", x, perm=[0, 2, 1, 3])

    def repeated(self, x, count, times):
        x = self.make("Expand", self.shaped(x, ROWS, count, 1, LENGTH, SIZE), self.constant([ROWS, count, times, LENGTH, SIZE], np.int64))
        return self.shaped(x, ROWS, count * times, LENGTH, SIZE)

    def attention(self, x, heads, few, bias):
        q = self.heads(x, "q", heads)
        k, v = (self.repeated(self.heads(x, name, few), few, heads // few) for name in ("k", "v"))
        scores = self.make("Mul", self.make("MatMul", q, self.make("Transpose", k, perm=[0, 1, 3, 2])), self.constant(SIZE**-0.5))
        if bias:
            slopes = 2.0 ** -np.arange(1, heads + 1)
            scores = self.make("Add", scores, self.constant((slopes[:, None, None] * np.arange(LENGTH))[None]))
        y = self.make("Transpose", self.make("MatMul", self.make("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.make("MatMul", self.shaped(y, ROWS, LENGTH, heads * SIZE), self.weight("o", heads * SIZE, WIDTH))

    def experts(self, x, count=4, inner=16):
        """Each token's best expert, as products with that expert's matrices."""
        x = self.shaped(x, ROWS * LENGTH, WIDTH)
        scores = self.make("Softmax", self.make("MatMul", x, self.weight("gate", WIDTH, count)), axis=-1)
        best = self.make("ArgMax", scores, axis=1, keepdims=0)
        share = self.make("ReduceMax", scores, axes=[1], keepdims=1)
        both = self.shaped(self.make("MatMul", self.make("Gather", self.weight("up", count, 2 * inner, WIDTH), best), self.shaped(x, ROWS * LENGTH, WIDTH, 1)), ROWS * LENGTH, 2 * inner)
        parts = [self.make("Slice", both, self.constant([begin], np.int64), self.constant([begin + inner], np.int64), self.constant([1], np.int64)) for begin in (0, inner)]
        h = self.shaped(self.make("Mul", self.make("Sigmoid", parts[0]), parts[1]), ROWS * LENGTH, inner, 1)
        y = self.shaped(self.make("MatMul", self.make("Gather", self.weight("down", count, WIDTH, inner), best), h), ROWS * LENGTH, WIDTH)
        return self.shaped(self.make("Mul", y, share), ROWS, LENGTH, WIDTH)

    def save(self, path, heads, few, bias):
        x = self.make("Add", "x", self.attention("x", heads, few, bias))
        x = self.make("Add", x, self.experts(x))
        d = self.make("Sub", x, "t")
        self.nodes.append(helper.make_node("ReduceMean", [self.make("Mul", d, d)], ["loss"], keepdims=0))
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, LENGTH, WIDTH]) for name in ("x", "t")]
        graph = helper.make_graph(self.nodes, "graph", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], self.initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


with tempfile.TemporaryDirectory() as folder:
    path, data, log = (os.path.join(folder, name) for name in ("model.onnx", "data.npz", "log.jsonl"))
    random = np.random.default_rng(0)
    np.savez(data, **{name: random.standard_normal((4, ROWS, LENGTH, WIDTH)).astype(np.float32) for name in ("x", "t")})

    def train(*words):
        execute([dsopt, path, "-run", f"-data={data}", "-steps=3", "-lr=1e-2", "-optimizer=sgd", "-micro-batches=4", "-reduction-shards=4", "-accumulate=sharded", "-quiet", f"-log={log}", *words])
        return Run(log)

    # A head for several shards, one for each shard, several for a shard and not alike.
    for heads, few, shards, bias in ((4, 2, 4, False), (8, 2, 4, True), (6, 3, 2, True), (6, 1, 2, False), (8, 4, 4, True)):
        Graph().save(path, heads, few, bias)
        what = f"{heads} heads over {few}{', biased' if bias else ''}, T = {shards}"
        said = execute([dsopt, path, f"-data={data}", f"-tp={shards}", "-plan=sharding"]).stdout
        cut = dict(re.findall(r"^([a-z]+) +\S+ +dimension (\d) over tp", said, re.M))
        expected = {"q": "1", "o": "0", "up": "1", "down": "2"} | ({"k": "1", "v": "1"} if few % shards == 0 else {})
        check(cut == expected, f"{what}: cut are {cut}, expected {expected}")
        check_kernels(what, dsopt, [path, f"-data={data}", f"-tensor-shards={shards}"], sorted({1, 2, shards}))
        one, first = train(), None
        for words in ("-tp=1", "-tp=2", f"-tp={shards}", "-tp=2 -dp=2 -zero=3 -micro-batches=2", "-tp=2 -recompute=full"):
            run = train(f"-tensor-shards={shards}", *words.split())
            first = first or run
            check(run.hash == first.hash and run.loss_text == first.loss_text, f"{what}: {words} differs: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
        check(relative(first.losses, one.losses) < 1e-6, f"{what}: {first.losses}, one shard: {one.losses}")
        narrow = [train(f"-tensor-shards={shards}", "-precision=bf16", words) for words in ("-tp=1", "-tp=2", f"-tp={shards}")]
        check(len({run.hash for run in narrow}) == 1 and relative(narrow[0].losses, one.losses) < 1e-2, f"{what}, bf16: {[(run.loss_text, run.hash) for run in narrow]}")
        print(f"{what}: one hash", flush=True)
