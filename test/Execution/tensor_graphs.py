"""Random computations between columns and rows, with whole values and constants among what is cut: one hash at every degree of tensor parallelism. How
many shards a rank has decides how many read a whole value, and nothing else: no fusion, and no rounding.

usage: tensor_graphs.py DSOPT [COUNT [SEED]]
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import Run, check, execute, relative
from shard_kernels import check_kernels

dsopt = sys.argv[1]
count, first = int(sys.argv[2]) if len(sys.argv) > 2 else 8, int(sys.argv[3]) if len(sys.argv) > 3 else 1
ROWS, WIDTH, HIDDEN = 8, 24, 64


class Graph:
    """Nodes as they are made."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.values = [], 0

    def make(self, op, *inputs, **attributes):
        self.values += 1
        self.nodes.append(helper.make_node(op, inputs, [f"v{self.values}"], **attributes))
        return f"v{self.values}"

    def constant(self, value):
        return self.make("Constant", value=numpy_helper.from_array(np.array(value, np.float32)))

    def any(self, choices):
        return choices[self.random.integers(len(choices))]

    def with_constant(self, x):
        """A number for each column, or for each element (which is kept in a file), or whether to keep it."""
        kind = self.random.integers(4)
        numbers = self.random.standard_normal((ROWS, HIDDEN) if kind == 1 else HIDDEN)
        if kind == 2:
            kept = self.make("Constant", value=numpy_helper.from_array(numbers > 0))
            return self.make("Where", kept, x, self.constant(0.25))
        if kind == 3:
            x = self.make("Reshape", x, self.make("Constant", value=numpy_helper.from_array(np.array([ROWS, HIDDEN // 4, 4]))))
            x = self.make("Mul", x, self.constant(numbers[: HIDDEN // 4, None]))
            return self.make("Reshape", x, self.make("Constant", value=numpy_helper.from_array(np.array([ROWS, HIDDEN]))))
        return self.make("Mul", x, self.constant(numbers))

    def unary(self, x):
        op = self.any(["Tanh", "Sigmoid", "Relu", "Neg", "Abs", "Erf", "Softplus", "Sqrt", "Exp"])
        if op == "Sqrt":
            return self.make("Sqrt", self.make("Add", self.make("Mul", x, x), self.constant(0.5)))
        return self.make("Exp", self.make("Tanh", x)) if op == "Exp" else self.make(op, x)

    def binary(self, x, y):
        op = self.any(["Add", "Mul", "Sub", "Max", "Div"])
        return self.make("Div", x, self.make("Add", self.make("Mul", y, y), self.constant(1))) if op == "Div" else self.make(op, x, y)

    def of_rows(self, sources):
        """A number for each row."""
        value = self.make("ReduceMean", self.unary(self.any(sources)), axes=[-1], keepdims=1)
        for _ in range(self.random.integers(4)):
            value = self.unary(value) if self.random.random() < 0.6 else self.binary(value, self.constant(self.random.standard_normal()))
        return value

    def build(self):
        x = self.make("Tanh", self.make("MatMul", "x", "w0"))
        whole = [self.of_rows([x, "t"]) for _ in range(self.random.integers(1, 4))]
        cut = [self.make("MatMul", x, "w1")]
        if self.random.random() < 0.5:
            cut.append(self.make("MatMul", x, "w3"))
        if self.random.random() < 0.5:
            cut[0] = self.make("Add", cut[0], "b1")
        a = cut[0]
        for other in cut[1:]:
            a = self.binary(a, other)
        for _ in range(self.random.integers(2, 9)):
            kind = self.random.random()
            if kind < 0.2:
                a = self.with_constant(a)
            else:
                a = self.unary(a) if kind < 0.5 else self.binary(a, self.any(whole if kind < 0.8 else cut))
        z = self.make("Add", self.make("MatMul", a, "w2"), "b")
        for _ in range(self.random.integers(3)):
            z = self.unary(z) if self.random.random() < 0.5 else self.binary(z, self.any(whole))
        d = self.make("Sub", self.make("Add", z, x), "t")
        self.nodes.append(helper.make_node("ReduceMean", [self.make("Mul", d, d)], ["loss"], keepdims=0))
        shapes = {"w0": (WIDTH, WIDTH), "w1": (WIDTH, HIDDEN), "w2": (HIDDEN, WIDTH), "w3": (WIDTH, HIDDEN), "b": (WIDTH,), "b1": (HIDDEN,)}
        initializers = [numpy_helper.from_array((self.random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32), name) for name, shape in shapes.items()]
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, WIDTH]) for name in ("x", "t")]
        graph = helper.make_graph(self.nodes, "graph", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


with tempfile.TemporaryDirectory() as folder:
    path, data, log = (os.path.join(folder, name) for name in ("model.onnx", "data.npz", "log.jsonl"))
    random = np.random.default_rng(0)
    np.savez(data, **{name: random.standard_normal((4, ROWS, WIDTH)).astype(np.float32) for name in ("x", "t")})

    def train(words):
        execute([dsopt, path, "-run", f"-data={data}", "-steps=3", "-lr=1e-2", "-quiet", f"-log={log}", *words])
        return Run(log)

    for seed in range(first, first + count):
        graph = Graph(seed)
        onnx.save(graph.build(), path)
        shards = int(graph.any([2, 4, 8, 16]))
        words = [f"-tensor-shards={shards}", f"-precision={graph.any(['fp32', 'bf16', 'bf16'])}", f"-recompute={graph.any(['none', 'none', 'full'])}"]
        check_kernels(f"seed {seed}", dsopt, [path, *words], [1, 2, shards])
        hashes = {}
        one = train([*words[1:], "-tp=1"]) if words[1] == "-precision=fp32" else None
        for ranks in sorted({1, 2, min(shards, 4)}):
            run = train([*words, f"-tp={ranks}"])
            hashes[ranks] = run.hash
            check(not one or relative(run.losses[:1], one.losses[:1]) < 1e-5, f"seed {seed}, {' '.join(words)}: {run.losses}, one shard: {one and one.losses}")
        check(len(set(hashes.values())) == 1, f"seed {seed}, {' '.join(words)}: {hashes}")
    print(f"{count} graphs, one hash each at every degree")
