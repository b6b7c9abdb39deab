"""Tables and losses over a vocabulary in tensor shards: tied or not, of sizes that shards do not divide, with biases, caps, rows that are
ignored and indices from the end. One hash at every degree and in every layout, losses and weights beside those of one shard.

usage: tensor_vocabulary.py DSOPT [COUNT [SEED]]
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import Run, check, execute, relative
from saved_weights import safetensors
from shard_kernels import check_kernels

dsopt = sys.argv[1]
count, first = int(sys.argv[2]) if len(sys.argv) > 2 else 5, int(sys.argv[3]) if len(sys.argv) > 3 else 1
ROWS, LENGTH, WIDTH = 4, 6, 16
LAYOUTS = ["-tp=2", "-tp=4", "-tp=2 -dp=2 -zero=1", "-tp=2 -dp=2 -zero=3", "-tp=2 -pp=2", "-dp=2 -zero=2", "-tp=4 -dp=2 -zero=3", "-tp=2 -recompute=full",
           "-tp=2 -pp=2 -dp=2 -zero=3 -offload-optimizer=cpu", "-tp=4 -pp=2", "-tp=2 -threads=1"]


class Model:
    """What a seed chooses."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

        def any(choices):
            return choices[self.random.integers(len(choices))]

        self.classes = any([97, 101, 128, 131, 254, 255, 256, 257])
        self.shards = any([2, 4, 4, 8])
        self.head = any(["tied", "tied", "rows", "columns"])
        self.bias, self.cap, self.ignores, self.from_end, self.shaped = (self.random.random() < 0.5 for _ in range(5))
        self.precision = any(["fp32", "fp32", "bf16", "fp16"])
        self.rule = any(["adamw", "sgd", "lion", "adagrad"])

    def __str__(self):
        return f"{self.classes} classes in {self.shards} shards, {self.head}{' bias' * self.bias}{' cap' * self.cap}{' ignores' * self.ignores}" \
               f"{' from the end' * self.from_end}{' shaped' * self.shaped}, {self.precision}, {self.rule}"

    def save(self, path):
        weights = {"table": (self.classes, WIDTH), "w": (WIDTH, WIDTH)}
        make = helper.make_node
        ids = "negative" if self.from_end else "ids"
        nodes = [make("Sub", ["ids", "classes"], ["negative"])] if self.from_end else []
        nodes += [make("Gather", ["table", ids], ["x"]), make("MatMul", ["x", "w"], ["y"]), make("Tanh", ["y"], ["z"]), make("Add", ["x", "z"], ["h"])]
        if self.head == "columns":
            weights["head"] = (WIDTH, self.classes)
        else:
            if self.head == "rows":
                weights["head"] = (self.classes, WIDTH)
            nodes.append(make("Transpose", ["table" if self.head == "tied" else "head"], ["columns"], perm=[1, 0]))
        nodes.append(make("MatMul", ["h", "head" if self.head == "columns" else "columns"], ["products"]))
        logits = "products"
        if self.bias:
            weights["bias"] = (self.classes,)
            nodes.append(make("Add", [logits, "bias"], ["biased"]))
            logits = "biased"
        if self.cap:
            nodes.append(make("Constant", [], ["five"], value=numpy_helper.from_array(np.float32(5))))
            for name, op, operands in (("small", "Div", [logits, "five"]), ("capped", "Tanh", ["small"]), ("logits", "Mul", ["capped", "five"])):
                nodes.append(make(op, operands, [name]))
            logits = "logits"
        if self.shaped:  # [rows, classes, length], as PyTorch has it
            nodes.append(make("Transpose", [logits], ["scores"], perm=[0, 2, 1]))
            labels = "labels"
        else:
            nodes += [make("Reshape", [logits, "flat"], ["scores"]), make("Reshape", ["labels", "line"], ["targets"])]
            labels = "targets"
        nodes.append(make("SoftmaxCrossEntropyLoss", ["scores", labels], ["loss"], ignore_index=-100))
        tensors = [numpy_helper.from_array((self.random.standard_normal(shape) / 4).astype(np.float32), name) for name, shape in weights.items()]
        tensors += [numpy_helper.from_array(np.array(value, kind), name)
                    for name, value, kind in (("classes", self.classes, np.int64), ("flat", [-1, self.classes], np.int64), ("line", [-1], np.int64))]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [ROWS, LENGTH]) for name in ("ids", "labels")]
        graph = helper.make_graph(nodes, "graph", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], tensors)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)

    def data(self, path):
        ids, labels = self.random.integers(0, self.classes, (2, 8, ROWS, LENGTH))
        # The first and the last of each shard, and the edges of the whole.
        ids[0].flat[:4] = labels[1].flat[:4] = [0, self.classes - 1, self.classes // 2, (self.classes + 1) // 2]
        if self.ignores:
            labels[self.random.random(labels.shape) < 0.3] = -100
        np.savez(path, ids=ids, labels=labels)


with tempfile.TemporaryDirectory() as folder:
    path, data, log, weights = (os.path.join(folder, name) for name in ("model.onnx", "data.npz", "log.jsonl", "weights.safetensors"))

    def train(model, words, steps=3):
        execute([dsopt, path, "-run", f"-data={data}", f"-steps={steps}", "-lr=1e-2", "-weight-decay=0.1", "-grad-clip=1", "-global-batch=32", "-micro-batch-size=4",
                 "-reduction-shards=4", "-accumulate=sharded", "-quiet", f"-log={log}", f"-save-weights={weights}", f"-precision={model.precision}",
                 f"-optimizer={model.rule}", *words.split()])
        return Run(log), safetensors(weights)

    for seed in range(first, first + count):
        model = Model(seed)
        model.save(path)
        model.data(data)
        plan = execute([dsopt, path, f"-tensor-shards={model.shards}", f"-tp={min(model.shards, 4)}", "-plan=sharding"]).stdout
        cut = [line.split()[0] for line in plan.splitlines() if "over tp" in line]
        expected = {"table"} if model.head == "tied" else {"table", "head"} if model.head == "rows" or model.classes % model.shards == 0 else {"table"}
        check(expected <= set(cut), f"seed {seed}, {model}: cuts {cut}, expected {expected}")
        check_kernels(f"seed {seed}, {model}", dsopt, [path, f"-tensor-shards={model.shards}", f"-precision={model.precision}"], [1, 2, min(model.shards, 8)])
        one, expected_weights = train(model, f"-tensor-shards={model.shards}")
        layouts = [words for words in model.random.permutation(LAYOUTS)[:4] if model.shards >= 4 or "-tp=4" not in words]
        for words in layouts:
            run, _ = train(model, f"-tensor-shards={model.shards} {words}")
            check(run.hash == one.hash and run.loss_text == one.loss_text,
                  f"seed {seed}, {model}: {words} differs: {run.loss_text} {run.hash}, expected {one.loss_text} {one.hash}")
        saved = os.path.join(folder, f"saved-{seed}")
        before, behind = model.random.choice(layouts, 2, replace=False)
        train(model, f"-tensor-shards={model.shards} {before} -save={saved}", steps=2)
        run, _ = train(model, f"-tensor-shards={model.shards} {behind} -resume={saved}")
        check(run.hash == one.hash, f"seed {seed}, {model}: from {before} to {behind}: {run.hash}, expected {one.hash}")
        whole, whole_weights = train(model, "")
        bound = 1e-5 if model.precision == "fp32" else 2e-2
        check(relative(one.losses, whole.losses) < bound, f"seed {seed}, {model}: {one.losses}, of one shard {whole.losses}")
        if model.precision == "fp32" and model.rule == "sgd":
            for name, value in whole_weights.items():
                check(np.allclose(value, expected_weights[name], rtol=1e-4, atol=1e-6), f"seed {seed}, {model}: other weights '{name}'")
        print(f"{model}: {1 + len(layouts)} layouts, one hash {one.hash[:16]}, losses {', '.join(one.loss_text)}", flush=True)
    print(f"{count} vocabularies, one hash each at every degree")
