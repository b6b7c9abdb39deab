"""Weights that lie in tensor shards: their values are those of the model's files by stride, they train as whole ones do, and checkpoints and
saved weights have them whole, under the model's names. A program without its own products in shards reads whole values again behind them.

usage: sharded_weights.py DSOPT
"""
import os
import re
import sys
import tempfile

import numpy as np

from own_models import run
from runs import check, execute
from small import TensorProto, initializer, node, value, write

dsopt = sys.argv[1]
ROWS, INPUTS, WIDE = 6, 10, 36
SHARDS = 4
# By dimension, and in how many equal parts of it each: columns, within each of three, rows, a vector.
CUTS = {"in": (1, 1), "fused": (1, 3), "down": (0, 1), "bias": (0, 1)}
random = np.random.default_rng(3)


def build(folder):
    weights = {"in": (INPUTS, WIDE), "fused": (WIDE, WIDE), "bias": (WIDE,), "down": (WIDE, 7), "last": (7, 5)}
    nodes = [node("MatMul", "x in", "a"), node("Tanh", "a", "h"), node("MatMul", "h fused", "b"), node("Add", "b bias", "c"), node("Tanh", "c", "d"),
             node("MatMul", "d down", "e"), node("Tanh", "e", "f"), node("MatMul", "f last", "logits"),
             node("SoftmaxCrossEntropyLoss", "logits labels", "loss")]
    path, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "data.npz")
    write(path, nodes, [value("x", (ROWS, INPUTS)), value("labels", (ROWS,), TensorProto.INT64)],
          [initializer(name, random.normal(0, 0.4, shape).astype(np.float32)) for name, shape in weights.items()])
    np.savez(data, x=random.normal(0, 1, (16 * ROWS, INPUTS)).astype(np.float32), labels=random.integers(0, 5, 16 * ROWS))
    return path, data


def sharded(text):
    """The module with the weights of CUTS in shards, which are joined where they are read."""
    for name, (dim, equal) in CUTS.items():
        (declared, shape), = re.findall(rf"( *graph\.parameter @{name} : tensor<([\dx]+)xf32> .*\n)", text)
        shape = [int(extent) for extent in shape.split("x")]
        inner = int(np.prod(shape[dim + 1 :]))
        length = shape[dim] // (equal * SHARDS) * inner
        runs = f"#graph.runs<{length} every {length * SHARDS} step {length * SHARDS}>"
        cut = [*shape[:dim], shape[dim] // SHARDS, *shape[dim + 1 :]]
        apart = [*shape[:dim], equal, shape[dim] // (equal * SHARDS), *shape[dim + 1 :]]
        joined = [*shape[:dim], equal, shape[dim] // equal, *shape[dim + 1 :]]
        of, apart, joined, whole = (f"tensor<{'x'.join(map(str, one))}xf32>" for one in (cut, apart, joined, shape))
        shards = ""
        reads = ""
        for shard in range(SHARDS):
            attributes = f'name = "{name}", part_of = @{name}, part_begin = {shard * length} : i64, part_runs = {runs}'
            shards += f'graph.parameter @{name}.shard.{shard} : {of} from "" at 0 bytes {4 * int(np.prod(cut))} {{{attributes}}}\n'
            reads += f"%{name}_{shard} = graph.read @{name}.shard.{shard} : {of}\n%{name}_{shard}a = graph.reshape %{name}_{shard} : ({of}) -> {apart}\n"
        parts, types = ", ".join(f"%{name}_{shard}a" for shard in range(SHARDS)), ", ".join([apart] * SHARDS)
        reads += f"%{name}_j = graph.concat {parts} {{axis = {dim + 1} : i64}} : ({types}) -> {joined}\n"
        text = text.replace(declared, declared + shards)
        (read, result), = re.findall(rf"( *(%\S+) = graph\.read @{name} : .*\n)", text)
        text = text.replace(read, reads + f"{result} = graph.reshape %{name}_j : ({joined}) -> {whole}\n")
    return text


with tempfile.TemporaryDirectory() as folder:
    model, data = build(folder)
    module = os.path.join(folder, "sharded.mlir")
    text = execute([dsopt, model, "-emit=graph"]).stdout
    # Lines are broken between attributes.
    open(module, "w").write(sharded(re.sub(r",\n +", ", ", text)))

    def train(path, *options, steps=4):
        return run(dsopt, path, data, "-micro-batches=4", "-reduction-shards=2", "-accumulate=local", f"-steps={steps}", "-lr=0.01", *options)

    def equal(name, one, other):
        check(one.hash == other.hash and all(np.array_equal(one.weights[key], other.weights[key]) for key in CUTS), f"{name}: other weights")

    # Read and written as they are, wherever they come from.
    still = ["-optimizer=sgd", "-lr=0"]
    check(train(model, *still, steps=1).weights["fused"].shape == (WIDE, WIDE), "shape of 'fused'")
    for source in ([], ["-init=normal:0.3", "-seed=5"], ["-precision=bf16"]):
        equal(f"{source}", train(module, *still, *source, steps=1), train(model, *still, *source, steps=1))

    # Trained: as whole weights, and with one result in all layouts.
    layouts = [["-dp=2", "-micro-batches=2", *options] for options in (["-zero=1"], ["-zero=2"], ["-zero=3"], ["-pp=2"], ["-zero=3", "-offload-optimizer=cpu"])]
    for rule in (["-optimizer=adamw", "-grad-clip=0.3"], ["-optimizer=sgd", "-momentum=0.9", "-precision=bf16"]):
        whole, first = train(model, *rule), train(module, *rule)
        check(np.allclose(whole.losses, first.losses, rtol=3e-2 if "-precision=bf16" in rule else 1e-5), f"{rule}: {first.losses}, expected {whole.losses}")
        for layout in layouts:
            other = train(module, *rule, *layout)
            check(other.loss_text == first.loss_text, f"{rule} {layout}: {other.loss_text}, expected {first.loss_text}")
            equal(f"{rule} {layout}", other, first)

    # A checkpoint is of whole tensors: one layout goes on from what another one wrote, and so does the model itself.
    rule, saved = ["-optimizer=adamw", "-grad-clip=0.3", "-log-norms"], os.path.join(folder, "saved")
    first = train(module, *rule)
    train(module, *rule, *layouts[2], f"-save={saved}", steps=2)
    other = train(module, *rule, f"-resume={saved}")
    check(other.loss_text == first.loss_text[2:], f"resumed: {other.loss_text}, expected {first.loss_text[2:]}")
    equal("resumed", other, first)
    check(np.allclose(train(model, *rule, f"-resume={saved}").losses, first.losses[2:], rtol=1e-5), "the model does not go on from the shards' checkpoint")
    whole = os.path.join(folder, "whole")
    train(model, *rule, f"-save={whole}", steps=2)
    check(np.allclose(train(module, *rule, *layouts[0], f"-resume={whole}").losses, first.losses[2:], rtol=1e-5), "shards do not go on from the model's checkpoint")

    said = execute([dsopt, module, "-run", f"-data={data}", "-optimizer=adafactor"], 1).stderr
    check("adafactor sees whole parameters, but @" in said and "is cut in tensor shards" in said, said)
    print(f"{SHARDS} shards of {', '.join(CUTS)}: read, trained and saved as whole weights")
