"""The fuzzer's own test: what is broken on purpose is found and made small.

usage: itself.py DSOPT DSOPT-IMPORT FOLDER
"""
import collections
import dataclasses
import os
import stat
import subprocess
import sys
import warnings

import numpy as np

import compare
import expand
import generate
import recipes
import reference
import tool
from checks import Layout, Property
from fuzz import Worker
from gradients import Gradients
from graph import Graph

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from sampled import sampled

dsopt, importer, folder = map(os.path.abspath, sys.argv[1:])
warnings.simplefilter("ignore")
# Broken by hand, the oracle is the reference's.
compare.Gradients = Gradients


def check(holds: bool, message: str) -> None:
    if not holds:
        sys.exit("FAILED: " + message)


def operators() -> None:
    listed = subprocess.run([importer, "--list-operators"], check=True, capture_output=True, text=True).stdout
    missing = {line.split()[0] for line in listed.splitlines()} - set(recipes.RECIPES) - recipes.ALWAYS - recipes.OLDER
    check(not missing, f"no recipe draws {', '.join(sorted(missing))}")
    print("operators: every one has a recipe")


def repeatable() -> None:
    for seed in sampled(range(20), 8):
        first, second = (generate.generate(seed) for _ in range(2))
        check(first.graph.to_onnx().SerializeToString() == second.graph.to_onnx().SerializeToString()
              and first.arguments() == second.arguments(), f"seed {seed} gives two cases")
    print("seeds: equal files")


def differences() -> None:
    """Gradients in a random direction; a kink beside the values may be in the way of some."""
    compared, off, rng = 0, [], np.random.default_rng(1)
    for seed in sampled(range(1, 121), 15):
        case = generate.generate(seed)
        oracle = compare.Oracle(case)
        forward, values = oracle.forward, oracle.weights() | oracle.values(0, 0)
        gradients = forward(values)[1]
        for name, gradient in gradients.items():
            direction, h = rng.standard_normal(gradient.shape), 1e-6
            ends = [forward(values | {name: values[name] + step * direction}, loss_only=True)[0] for step in (h, -h)]
            slope, expected = (ends[0] - ends[1]) / (2 * h), float(np.sum(gradient * direction))
            compared += 1
            if not abs(slope - expected) <= 1e-5 * (abs(slope) + abs(expected)) + 1e-7:
                off.append(f"seed {seed}, {name}: {expected}, differences {slope}")
    check(len(off) <= compared // 200, "\n".join(off))
    print(f"oracle: {compared} gradients as differences have them")


#: Expansions of which the reference has sound values; of LRN, of transposed convolutions in groups and of some others it has not.
SOUND = set("AffineGrid Col2Im Conv CumProd CumSum DFT DeformConv GRU GridSample InstanceNormalization LSTM LayerNormalization LpNormalization "
            "MaxUnpool RNN Resize STFT Softmax SoftmaxCrossEntropyLoss".split())


def values() -> None:
    """Expansions as the reference has them, but for cubic samples outside of an image, which it moves to the border first."""
    compared, off = collections.Counter(), []
    for seed in range(1, 121):
        graph, micro_batch = (case := generate.generate(seed)).graph, case.micro_batch(0)
        values = reference.trace(graph, micro_batch, [graph.loss]).values
        for node in graph.nodes:
            if node.op not in SOUND or node.outputs[0] not in values or node.attributes.get("mode") == "cubic":
                continue
            try:
                with np.errstate(all="ignore"):
                    expected = reference.implementation(node, graph.opset)(*[values[name] if name else None for name in node.inputs])[0]
            except Exception:  # the reference has none, or not of these attributes
                continue
            compared[node.op] += 1
            found = values[node.outputs[0]]
            if found.shape != expected.shape or not np.allclose(found, expected, 1e-4, 1e-5):
                off.append(f"seed {seed}: {node.op} {node.attributes}")
    check(len(compared) > 12 and not off, "\n".join(off) or f"only {dict(compared)} are compared")
    print(f"expansions: {sum(compared.values())} values as the reference has them")


def first_case(wanted) -> generate.Case:
    return next(case for case in map(generate.generate, range(1, 2000)) if wanted(case))


def uses(op: str):
    """Cases whose loss depends on an operator, and that on data, and that are not too large."""
    def wanted(case: generate.Case) -> bool:
        graph = case.graph
        live = graph.needed([graph.loss])
        return len(graph.nodes) < 40 and any(node.op == op and live.intersection(node.outputs) and graph.needed(node.outputs).intersection(graph.inputs)
                                             for node in graph.nodes)
    return wanted


def broken(case: generate.Case, properties: list, name: str):
    """How a case fails that does, and the smallest one found."""
    worker = Worker(dsopt, folder, 2, "cpu")
    worker.scratch, worker.notes = os.path.join(folder, name + ".run"), collections.Counter()
    failure = worker.attempt(case, properties)
    check(failure is not None, f"{name}: nothing is found")
    worker.minimize(case.seed, failure, (case, properties))
    written = open(os.path.join(folder, str(case.seed), "what")).read().splitlines()
    return failure, written


def wrong_derivative() -> None:
    case, right = first_case(uses("Softmax")), expand.EXPANSIONS["Softmax"]

    def wrong(body, node, arrays):
        return [body("Mul", right(body, node, arrays)[0], body.constant(1.01))]

    expand.EXPANSIONS["Softmax"] = wrong
    failure, written = broken(case, [], "derivative")
    expand.EXPANSIONS["Softmax"] = right
    check(failure.kind == "numbers", f"a wrong softmax is {failure.kind}: {failure.what}")
    ops = written[1].split(": ")[1].split()
    check("Softmax" in ops and len(ops) <= 4, f"a wrong softmax is made no smaller than {ops}")
    print("found: wrong derivative")


def other_model() -> None:
    case, right = first_case(uses("Tanh")), Graph.to_onnx

    def mutated(self):
        model = right(self)
        for node in model.graph.node:
            node.op_type = "Sigmoid" if node.op_type == "Tanh" else node.op_type
        return model

    Graph.to_onnx = mutated
    failure, written = broken(case, [], "model")
    Graph.to_onnx = right
    ops = written[1].split(": ")[1].split()
    check(failure.kind == "numbers" and "Tanh" in ops and len(ops) <= 4, f"another model is {failure.kind}, made as small as {ops}")
    print("found: other model")


def other_bits() -> None:
    case, right = first_case(lambda case: case.options.shards >= 2 and uses("MatMul")(case)), tool.Tool.train

    def changed(self, model, *options, **keywords):
        run = right(self, model, *options, **keywords)
        if "-dp=2" in options:
            run.text[0] = (run.text[0][0] + "1", run.text[0][1])
        return run

    tool.Tool.train = changed
    layout = Layout(2, 2, 3, "gpipe", 2, 2)
    failure, written = broken(case, [Property("layout", layout, layout)], "bits")
    tool.Tool.train = right
    simple = str(dataclasses.replace(Layout(), dp=2))
    check(failure.kind == "layout" and f"layout={simple}" in written[2], f"other bits are {failure.kind}: {written}")
    print("found: other bits")


def ends() -> None:
    """Crashes, hangs and messages of programs that are none of dsopt's."""
    os.makedirs(folder, exist_ok=True)
    for kind, text in (("crash", "kill -SEGV $$"), ("hang", "sleep 60"), ("nameless", "echo dsopt: error: no >&2; exit 1"),
                       ("refused", "echo \"dsopt: error: node 'n1' is not available\" >&2; exit 1"),
                       ("internal", "echo \"dsopt: error: 'exec.run' op touches bytes\" >&2; exit 1")):
        path = os.path.join(folder, kind + ".sh")
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        try:
            tool.Tool(path, os.path.join(folder, "ends"), 2).execute([path])
            found = "nothing"
        except tool.Failure as failure:
            found = failure.kind
        check(found == kind, f"a {kind} is found to be {found}")
    print("found: ends of all kinds")


operators()
repeatable()
differences()
values()
wrong_derivative()
other_model()
other_bits()
ends()
