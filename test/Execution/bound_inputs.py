"""Inputs bound to values (-input): outputs as ONNX's reference has them whichever branch that takes, training as of a model with constants in their place,
in every layout; and what plans, checkpoints, saved models and programs say of it.

usage: bound_inputs.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from runs import Run, check, execute

dsopt = sys.argv[1]
random = np.random.default_rng(5)
ROWS, SIZE, HIDDEN = 4, 6, 8


def array(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=outputs.split()[0], **attributes)


def body(nodes, output):
    return helper.make_graph(nodes, "body", [], [helper.make_empty_tensor_value_info(output)])


def real(*shape):
    return (random.standard_normal(shape) * 0.4).astype(np.float32)


WEIGHTS = [array("wide", real(SIZE, HIDDEN)), array("narrow", real(SIZE // 2, HIDDEN)), array("head", real(HIDDEN, 3)), array("16k", np.array(16000)),
           array("none", np.array([0])), array("half", np.array([SIZE // 2])), array("columns", np.array([1]))]
SETTINGS = {"rate": (TensorProto.INT64, []), "training": (TensorProto.BOOL, []), "temperature": (TensorProto.FLOAT, []), "sizes": (TensorProto.INT64, [2])}
# The other branch of `rate` has another weight; that of `training` gives another shape, so both cannot be computed.
NODES = [node("Equal", "rate 16k", "is16k"),
         node("If", "is16k", "h", then_branch=body([node("MatMul", "x wide", "t1")], "t1"),
              else_branch=body([node("Slice", "x none half columns", "part"), node("MatMul", "part narrow", "t2")], "t2")),
         node("If", "training", "g", then_branch=body([node("Tanh", "h", "t3")], "t3"), else_branch=body([node("Concat", "h h", "t4", axis=0)], "t4")),
         node("MatMul", "g head", "logits"), node("Div", "logits temperature", "scaled"), node("Reshape", "scaled sizes", "y")]


def save(path, constants=None):
    inputs = [helper.make_tensor_value_info(name, *SETTINGS[name]) for name in SETTINGS if not constants]
    nodes = [helper.make_node("Constant", [], [name], value=array(name, value)) for name, value in (constants or {}).items()]
    graph = helper.make_graph([*nodes, *NODES], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", SIZE]), *inputs],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["P", "Q"])], WEIGHTS)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def words(values):
    def text(value):
        return str(bool(value)).lower() if np.asarray(value).dtype == bool else ",".join(map(str, np.ravel(value)))

    return [f"-input={name}={text(value)}" for name, value in values.items()]


def settings(rate, training, temperature=0.5):
    return {"rate": np.int64(rate), "training": np.bool_(training), "temperature": np.float32(temperature),
            "sizes": np.array([ROWS * 3 // 2 * (1 if training else 2), 2])}


with tempfile.TemporaryDirectory() as folder:

    def at(name):
        return os.path.join(folder, name)

    x = random.standard_normal((12, ROWS, SIZE)).astype(np.float32)
    np.savez(at("x.npz"), x=x, T=random.standard_normal((12, 6, 2)).astype(np.float32))
    path = save(at("model.onnx"))

    def outputs(model, values, *options):
        execute([dsopt, model, "-predict", f"-data={at('x.npz')}", f"-save-outputs={at('y.npz')}", "-quiet", *words(values), *options])
        with np.load(at("y.npz")) as got:
            return got["y"]

    def compare(model, values, *options):
        got, reference = outputs(model, values, *options), ReferenceEvaluator(model)
        expected = np.stack([reference.run(None, {"x": one, **values})[0] for one in x])
        check(got.shape == expected.shape and np.abs(got - expected).max() <= 1e-5, f"{values}: {got.shape} of {expected.shape}")
        return got

    results = [compare(path, settings(rate, training)) for rate in (16000, 8000) for training in (True, False)]
    check(len({one.tobytes() for one in results}) == 4, "values that change nothing")
    said = execute([dsopt, path, "-predict", f"-data={at('x.npz')}", f"-save-outputs={at('y.npz')}", *words(settings(16000, True))[:1]], status=1).stderr
    check("expected equal types; -input=training=VALUE makes 'training' known when the model is compiled" in said, said)

    # Training, beside a model with constants.
    def run(model, *options, program=None, status=0, data="x.npz"):
        command = [program] if program else [dsopt, model, "-run", "-loss=mse:y,T", "-reduction-shards=2", "-accumulate=sharded"]
        done = execute([*command, f"-data={at(data)}", f"-log={at('log.jsonl')}", "-lr=0.01", "-quiet", *options], status=status)
        got = Run(at("log.jsonl")) if status == 0 else None
        if os.path.exists(at("log.jsonl")):
            os.remove(at("log.jsonl"))
        return got, done.stderr

    bound = words(settings(16000, True))
    twin = save(at("twin.onnx"), settings(16000, True))
    expected, _ = run(twin, "-micro-batches=4", "-steps=3")
    check(len(set(expected.loss_text)) == 3, f"losses {expected.loss_text}")
    for options in (("-micro-batches=4",), ("-micro-batches=2", "-dp=2", "-zero=3"), ("-micro-batches=4", "-pp=2")):
        got, _ = run(path, *bound, "-steps=3", *options)
        check((got.hash, got.loss_text) == (expected.hash, expected.loss_text), f"{options}: {got.loss_text}, with constants {expected.loss_text}")
    other, _ = run(path, *words(settings(8000, True)), "-steps=3", "-micro-batches=4")
    check(other.hash != expected.hash, "the other branch trains the same weights")
    rows = json.loads(execute([dsopt, path, "-loss=mse:y,T", f"-data={at('x.npz')}", "-list-parameters=json", *bound, "-train=*"]).stdout)
    uses = {row["name"]: row["use"] for row in (rows if isinstance(rows, list) else rows["parameters"])}
    check(uses == {"wide": "trained", "head": "trained", "narrow": "unused", "temperature": "constant"}, f"{uses}")

    # What a plan and a program say.
    plan = [dsopt, path, "-loss=mse:y,T", f"-data={at('x.npz')}", *bound]
    check("rate=16000, sizes=6,2, temperature=0.5, training=true (bound)\n" in execute([*plan, "-plan"]).stdout, "-plan is silent about bound inputs")
    check(json.loads(execute([*plan, "-plan=json"]).stdout)["bound_inputs"] == {"rate": "16000", "sizes": "6,2", "temperature": "0.5", "training": "true"},
          "-plan=json has other bound inputs")
    text = execute([*plan, "-o", at("program"), "-micro-batches=4", "-reduction-shards=2", "-accumulate=sharded"]).stdout
    check("-input=rate=16000" in text, text)
    got, _ = run(None, "-steps=3", program=at("program"))
    check(got.hash == expected.hash, "an executable trains otherwise")
    np.savez(at("both.npz"), **np.load(at("x.npz")), rate=np.full(12, 16000))
    _, said = run(None, "-steps=3", program=at("program"), status=1, data="both.npz")
    check("both.npz: array 'rate' is for an input that the program has bound to 16000 (-input): leave one of them out" in said, said)
    said = execute([at("program"), f"-data={at('x.npz')}", "-input=rate=8000"], status=1).stderr
    check("option -input is compiled in; use: dsopt" in said, said)

    # A checkpoint goes on with the same value without a word; with another it says so. An evaluation is of what it is asked for.
    run(path, *bound, "-micro-batches=4", "-steps=2", f"-save={at('saved')}")
    got, said = run(path, *bound[::-1], "-micro-batches=4", "-steps=3", f"-resume={at('saved')}")
    check(got.hash == expected.hash and "-input" not in said, f"a resumed run: {said}")
    warm = words(settings(16000, True, 0.25))
    got, said = run(path, *warm, "-micro-batches=4", "-steps=3", f"-resume={at('saved')}")
    check("-input is rate=16000 -input=sizes=6,2 -input=temperature=0.25" in said and
          "the checkpoint was written with rate=16000 -input=sizes=6,2 -input=temperature=0.5" in said, f"another value: {said}")
    check(got.hash != expected.hash, "another temperature changes nothing")
    said = execute([dsopt, path, "-eval", "-loss=mse:y,T", f"-data={at('x.npz')}", f"-resume={at('saved')}", "-micro-batches=4", "-reduction-shards=2",
                    "-accumulate=sharded", *warm]).stderr
    check("-input" not in said, said)

    # The saved model has its inputs still: another value, the other branch with the weight that was not trained.
    run(path, *bound, "-micro-batches=4", "-steps=3", f"-save-onnx={at('trained.onnx')}")
    trained = onnx.load(at("trained.onnx"))
    onnx.checker.check_model(trained)
    check([value.name for value in trained.graph.input] == ["x", *SETTINGS], f"inputs {[value.name for value in trained.graph.input]}")
    kept = {one.name: numpy_helper.to_array(one) for one in trained.graph.initializer}
    check((kept["narrow"] == numpy_helper.to_array(WEIGHTS[1])).all() and (kept["wide"] != numpy_helper.to_array(WEIGHTS[0])).any(), "what was trained")
    for rate in (16000, 8000):
        compare(at("trained.onnx"), settings(rate, True))
print("bound inputs: both branches as the reference has them, the bits of constants, losses", ", ".join(expected.loss_text))
