"""ONNX's multi-device annotations: what a model's nodes say of initializers is cut so, whether it pays or not, with the same bits at every degree;
what is not done is warned of, and contradictions are refused with both places.

usage: tensor_annotations.py DSOPT
"""
import json
import os
import re
import sys
import tempfile

import numpy as np
import onnx

from runs import check, execute
from small import TensorProto, initializer, node, train, value, write

dsopt = sys.argv[1]
SHAPES = {"w0": (16, 4), "w1": (4, 64), "bias": (64,), "w2": (64, 4), "w3": (4, 16)}


def configured(model, name="tp2", devices=2):
    configuration = model.configuration.add()
    configuration.name, configuration.num_devices = name, devices
    return model


def annotate(model, node_name, tensor, *dims, configuration="tp2", sizes=(), stage=None):
    """Of node `node_name`: `tensor` cut along each (axis, shards) of `dims`."""
    found = next(one for one in model.graph.node if one.name == node_name)
    own = found.device_configurations.add()
    own.configuration_id = configuration
    if stage is not None:
        own.pipeline_stage = stage
    if tensor is None:
        return model
    spec = own.sharding_spec.add()
    spec.tensor_name = tensor
    spec.device.extend([0, 1])
    for axis, shards in dims:
        dim = spec.sharded_dim.add()
        dim.axis = axis
        simple = dim.simple_sharding.add()
        simple.num_shards = shards
        if sizes:
            simple.dim_value = sizes[0]
    return model


with tempfile.TemporaryDirectory() as folder:
    plain, path = os.path.join(folder, "plain.onnx"), os.path.join(folder, "model.onnx")
    draws = np.random.default_rng(3)
    nodes = [node("MatMul", "x w0", "a", name="n0"), node("Relu", "a", "b", name="r0"), node("MatMul", "b w1", "c", name="n1"),
             node("Add", "c bias", "d", name="n2"), node("Relu", "d", "e", name="r1"), node("MatMul", "e w2", "f", name="n3"),
             node("Relu", "f", "g", name="r2"), node("MatMul", "g w3", "h", name="n4"), node("Reshape", "h shape", "logits", name="s0"),
             node("SoftmaxCrossEntropyLoss", "logits labels", "loss", name="n5")]
    write(plain, nodes, [value("x", (4, 16)), value("labels", (4,), TensorProto.INT64)],
          [initializer(name, draws.normal(0, 0.3, shape).astype(np.float32)) for name, shape in SHAPES.items()] + [initializer("shape", np.array([4, 16]))])

    def model():
        return configured(onnx.load(plain))

    def plan(made, *words, status=0):
        """The cuts of a model, and what was said."""
        onnx.save(made, path)
        done = execute([dsopt, path, "-plan=json", *words], status)
        if status:
            check(done.stderr.count("error:") == 1, done.stderr)
            return done.stderr
        sharding = json.loads(done.stdout).get("sharding", {"parameters": []})
        return {one["name"]: one["cut"] and one["cut"]["dim"] for one in sharding["parameters"]}, done.stderr

    whole = dict.fromkeys(SHAPES)
    middle = {**whole, "w1": 1, "bias": 0, "w2": 0}
    outer = {**whole, "w0": 1, "w1": 0}
    free, said = plan(onnx.load(plain), "-tp=2")
    check(free["w1"] == 1 and free["w2"] == 0 and free["w0"] is None and not said, f"{free} {said}")

    # What initializers are cut along; axes may count from the end; "whole" is a wish, too.
    for made, expected in ((annotate(model(), "n0", "w0", (1, 2)), {"w0": 1, "w1": 0}), (annotate(model(), "n1", "w1", (-2, 2), sizes=(4,)), {"w0": 1, "w1": 0}),
                           (annotate(model(), "n3", "w2"), {"w1": None, "w2": None}), (annotate(model(), "n3", "w2", (0, 1)), {"w1": None, "w2": None}),
                           (annotate(annotate(model(), "n2", "bias", (0, 2)), "n3", "w2", (0, 2)), {"w1": 1, "bias": 0, "w2": 0})):
        found, said = plan(made, "-tp=2")
        check({name: found[name] for name in expected} == expected and not said, f"{expected}: {found} {said}")

    # The same bits at every degree, and other sums than the compiler's own.
    data = {"x": draws.normal(0, 1, (32, 16)).astype(np.float32), "labels": draws.integers(0, 16, 32)}
    onnx.save(annotate(model(), "n0", "w0", (1, 2)), path)
    runs = [train(dsopt, path, data, "-steps=3", "-tensor-shards=2", *words) for words in ([], ["-tp=2"], ["-tp=2", "-dp=2", "-zero=3", "-reduction-shards=2", "-micro-batches=1"])]
    runs[2:] = [train(dsopt, path, data, "-steps=3", "-tensor-shards=2", "-reduction-shards=2", "-micro-batches=2", "-accumulate=sharded")] + runs[2:]
    check(runs[0][0].hash == runs[1][0].hash and runs[2][0].hash == runs[3][0].hash, f"degrees differ: {[run.hash for run, *_ in runs]}")

    # One line for what is not done.
    for made, words, expected in (
            (annotate(model(), "n0", "w0", (1, 2)), ["-tp=1"], "device configurations have no effect here: they go with -tp or -tensor-shards of 2 or more"),
            (annotate(model(), "n0", "w0", (1, 2)), ["-tp=4"], "device configurations cut 1 initializer in 2 (node 'n0' (MatMul, opset 20) of device configuration 'tp2'): there are 4 tensor shards along the same dimension"),
            (annotate(model(), "n0", "b", (1, 2)), ["-tp=2"], "node 'n0' (MatMul, opset 20) of device configuration 'tp2' shards 'b', which it neither reads nor makes: that is not looked at"),
            (annotate(model(), "n0", "a", (1, 2)), ["-tp=2"], "device configurations shard 1 value that are no initializers ('a' of node 'n0' (MatMul, opset 20) of device configuration 'tp2'): the compiler cuts values as those of parameters lead to"),
            (annotate(model(), "n0", None, stage=1), ["-tp=2"], "device configurations give 1 node a pipeline stage (node 'n0' (MatMul, opset 20) of device configuration 'tp2'): -pp parts a model by cost"),
            (annotate(model(), "n1", "w1", (0, 2), (1, 2)), ["-tp=2"], "cuts initializer 'w1' along 2 dimensions, expected one, as tp is the only axis that cuts values: the compiler chooses"),
            (annotate(model(), "s0", "shape", (0, 2)), ["-tp=2"], "node 's0' (Reshape, opset 20) of device configuration 'tp2' asks for a cut of initializer 'shape', which is no parameter of what is computed"),
            (model(), ["-tp=2"], "the model has device configuration 'tp2', but no node says what is cut: the compiler chooses")):
        _, said = plan(made, *words)
        check(re.findall(r"^dsopt: warning: (.*)$", said, re.M) == [one for one in re.findall(r"^dsopt: warning: (.*)$", said, re.M) if expected in one] != [], f"{expected}: {said}")

    # What contradicts itself, or -shard.
    two = configured(configured(onnx.load(plain)), "tp4", 4)
    for made, words, expected in (
            (annotate(model(), "n0", "w0", (2, 2)), [], "cuts initializer 'w0' along axis 2, which has 2 dimensions"),
            (annotate(model(), "n0", "w0", (1, 0)), [], "cuts initializer 'w0' along axis 1 in 0 shards, expected 1 or more"),
            (annotate(model(), "n0", "w0", (1, 8)), [], "cuts initializer 'w0' along axis 1 in 8 shards of 4"),
            (annotate(model(), "n0", "w0", (0, 2), sizes=(4,)), [], "cuts initializer 'w0' along axis 0 as one of another size, which has 16"),
            (annotate(model(), "n0", "w0", (1, 2), configuration="tp3"), [], "node 'n0' (MatMul, opset 20) is of device configuration 'tp3', of which the model says nothing: it has tp2"),
            (annotate(annotate(two, "n0", "w0", (1, 2)), "n0", "w0", (0, 4), configuration="tp4"), [], "of device configuration 'tp2' and node 'n0' (MatMul, opset 20) of device configuration 'tp4' contradict each other: initializer 'w0' has one cut"),
            (annotate(model(), "n0", "w0", (1, 2)), ["-shard=w0=none"], "node 'n0' (MatMul, opset 20) of device configuration 'tp2' and -shard=w0=none contradict each other: parameter 'w0' has one cut"),
            (annotate(model(), "n0", "w0", (1, 2)), ["-shard=w2=tp:0"], "-shard=w2=tp:0: parameter 'w2' cannot be cut along dimension 0: what follows from node 'n0' (MatMul, opset 20) of device configuration 'tp2' for parameter 'w0' cuts it otherwise"),
            (annotate(annotate(model(), "n0", "w0", (1, 2)), "n1", "w1", (1, 2)), [], "contradict each other: to cut 'w0' takes a cut of 'w1' along dimension 0"),
            (annotate(model(), "n0", "w0", (0, 2)), [], "node 'n0' (MatMul, opset 20) of device configuration 'tp2': parameter 'w0' cannot be cut along dimension 0: an input would be cut")):
        said = plan(made, "-tp=2", *words, status=1)
        check(expected in said, f"{expected}: {said}")
    print("annotations are cut, warned of or refused", flush=True)
