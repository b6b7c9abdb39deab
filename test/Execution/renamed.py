"""Models whose inputs, parameters, nodes and values all have names that the compiler has use for itself, or that are
no identifiers: the same losses and weights as under their own names, in every layout.

usage: renamed.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
import onnx

from runs import check, model
from small import train

dsopt = sys.argv[1]
folder = tempfile.mkdtemp()
LAYOUTS = [["-dp=1", "-micro-batches=4"], ["-zero=3", "-dp=2", "-pp=2", "-micro-batches=2"]]
BASE = ["-reduction-shards=2", "-steps=3", "-lr=1e-2", "-optimizer=adamw", "-grad-clip=1", "-quiet"]
# What functions, programs, segments, kernels, buffers and their parts are called, at one stage or another.
COMPILERS = ["update", "evaluate", "micro_batch", "forward", "b0", "b0.param", "b1", "b0.full", "b0.grad.0", "block0.F", "block0.B",
             "block1.W", "block0.E", "position0", "position1", "evaluate0", "compute", "comm", "send", "device", "dp", "kernel0", "kernel1", "const_0", "constant0", "update.adam",
             "update.adamw", "convert", "scalars", "norms", "temp", "staging", "seed", "context", "loss", "step", "main", "dsopt_main",
             "block0.F.0", "b0.m", "b0.v", "b0.master", "input.seed", "b0.frozen", "tied.update", "malloc", "dsopt_rt_gemm"]
OTHERS = ["a b", "a/b", "a.b", "a\\b", "%0", "@update", "~update", "update~", '"', "'", "ü", "重み", "\t", "0", "-", "*", "[a-z]", "{", "$x", "a=b", "a,b"]
INPUTS = ["seed", "context", "loss", "step", "scalars", "norms", "temp", "labels", "update", "b0", "x/y", "入力", "a b"]


def rename(path, out, names, nodes):
    """Writes a model under other names; those of inputs and parameters are given."""
    proto = onnx.load(path)
    graph = proto.graph
    taken = set(names.values())
    for i, name in enumerate({output for node in graph.node for output in node.output if output}):
        # Values are numbered like the compiler's own.
        names[name] = next(word for word in (f"{i}", f"block0.F.{i}", f"v.{i}") if word not in taken)
        taken.add(names[name])
    for value in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        value.name = names.get(value.name, value.name)
    for i, node in enumerate(graph.node):
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        node.name = nodes[i % len(nodes)]
    graph.name = "micro_batch"
    onnx.checker.check_model(proto)
    onnx.save(proto, out)


for name in ("mlp", "gpt2-tiny"):
    path, batches = model(name)
    data = dict(np.load(batches))
    graph = onnx.load(path).graph
    parameters = [tensor.name for tensor in graph.initializer]
    inputs = [value.name for value in graph.input if value.name not in parameters]
    want = [train(dsopt, path, data, *layout, *BASE) for layout in LAYOUTS]
    rounds = -(-(len(COMPILERS) + len(OTHERS)) // len(parameters)) if len(parameters) > 8 else 4
    for turn in range(rounds):
        given = [INPUTS[(turn * len(inputs) + i) % len(INPUTS)] for i in range(len(inputs))]
        words = [word for word in np.roll(COMPILERS + OTHERS, -turn * len(parameters)).tolist() if word not in given]
        words += [f"block{i}.W" for i in range(2, len(parameters))]
        names = dict(zip(inputs, given)) | dict(zip(parameters, words))
        renamed = os.path.join(folder, "renamed.onnx")
        rename(path, renamed, dict(names), ["", "update", "a b", "loss"])
        for layout, (run, weights) in zip(LAYOUTS, want):
            got, mine = train(dsopt, renamed, {names[key]: array for key, array in data.items() if key in names}, *layout, *BASE)
            where = f"{name} under {layout}, {names}"
            check(got.loss_text == run.loss_text, f"{where}: losses {got.loss_text}, expected {run.loss_text}")
            check(set(mine) == {names[key] for key in weights}, f"{where}: saved {sorted(mine)}")
            for key, array in weights.items():
                check(np.array_equal(mine[names[key]], array), f"{where}: '{names[key]}' differs")
        print(f"{name}: inputs {given}, parameters {words[:len(parameters)][:4]} ...: as under its own names", flush=True)
print("passed")
