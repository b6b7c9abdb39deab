"""Random numbers that are part of a model: those of a reference, in every layout, in training and evaluation.

usage: random_numbers.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from own_models import check_layouts, evaluate, run, save
from runs import SOURCE, check, model

sys.path.append(os.path.join(SOURCE, "test", "Conversion", "KernelToLLVM", "Inputs"))
from philox import uniform

dsopt = sys.argv[1]


def normal(shape, number, **key):
    which = key.pop("which", 0)
    first, second = uniform(shape, number, which=which, **key), uniform(shape, number, which=which + 1, **key)
    return np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second)


def seeded(seed):
    """What ONNX's attribute `seed` puts in the place of an operation's number."""
    return {"number": int(np.float32(seed).view(np.uint32)), "which": 2}


def check_values(folder, shape, opset):
    """The gradient of sum(numbers * w) are the numbers, element by element."""
    path, data = os.path.join(folder, "values.onnx"), os.path.join(folder, "values.npz")
    p = np.linspace(0, 1, int(np.prod(shape))).reshape(shape).astype(np.float32)
    nodes = [helper.make_node("RandomUniform", [], ["n0"], shape=shape, low=-1.5, high=2.0),
             helper.make_node("RandomNormalLike", ["x"], ["n1"], mean=0.5, scale=3.0),
             helper.make_node("RandomUniformLike", ["x"], ["n2"], seed=7.5),
             helper.make_node("RandomNormal", [], ["n3"], shape=shape, seed=7.5),
             helper.make_node("Bernoulli", ["p"], ["n4"]),
             helper.make_node("Bernoulli", ["p"], ["b5"], dtype=TensorProto.INT64, seed=2.0), helper.make_node("Cast", ["b5"], ["n5"], to=1),
             helper.make_node("RandomUniformLike", ["x"], ["n6"], seed=7.5)]
    expected = [lambda **key: -1.5 + 3.5 * uniform(shape, 0, **key), lambda **key: 0.5 + 3 * normal(shape, 1, **key),
                lambda **key: uniform(shape, **seeded(7.5), **key), lambda **key: normal(shape, **seeded(7.5), **key),
                lambda **key: uniform(shape, 4, **key) < p, lambda **key: uniform(shape, **seeded(2.0), **key) < p,
                lambda **key: uniform(shape, **seeded(7.5), **key)]
    terms, weights = [], []
    for k in range(len(expected)):
        nodes += [helper.make_node("Mul", [f"n{k}", f"w{k}"], [f"m{k}"]), helper.make_node("ReduceSum", [f"m{k}"], [f"s{k}"], keepdims=0)]
        terms.append(f"s{k}")
        weights.append(numpy_helper.from_array(np.zeros(shape, np.float32), f"w{k}"))
    # What comes first in the model has the lower number, whatever reads it.
    nodes += [helper.make_node("Sum", terms, ["sum"]), helper.make_node("ReduceSum", ["x"], ["rest"], keepdims=0), helper.make_node("Add", ["sum", "rest"], ["loss"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "p")]
    save(path, nodes, inputs, weights, opset)
    np.savez(data, x=np.zeros((2, *shape), np.float32), p=np.stack([p, p]))
    for seed in (0, 3 + (9 << 32)):
        for steps in (1, 2):
            got = run(dsopt, path, data, f"-steps={steps}", "-optimizer=sgd", "-lr=1", f"-seed={seed}").weights
            for k, rule in enumerate(expected):
                want = -sum(np.asarray(rule(step=step, seed=seed), np.float64) for step in range(steps))
                worst = np.max(np.abs(got[f"w{k}"] - want) / (1 + np.abs(want)))
                check(worst < 5e-6, f"{nodes[k].op_type} of shape {shape}, seed {seed}, {steps} steps: differs from the reference by {worst}")
    check(np.array_equal(got["w2"], got["w6"]), "equal seeds give two streams")
    print(f"values of shape {shape}, opset {opset}: as the reference", flush=True)


def check_distribution(folder):
    path, data, shape = os.path.join(folder, "many.onnx"), os.path.join(folder, "many.npz"), [200, 1000]
    scores = np.log(np.array([0.5, 0.0001, 0.2, 0.2999], np.float32))
    initializers = [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name in ("w0", "w1", "w2", "w3")]
    initializers.append(numpy_helper.from_array(np.tile(scores, (200, 1)), "scores"))
    nodes = [helper.make_node("RandomUniform", [], ["n0"], shape=shape), helper.make_node("RandomNormal", [], ["n1"], shape=shape),
             helper.make_node("Constant", [], ["p"], value=numpy_helper.from_array(np.full(shape, 0.3, np.float32))),
             helper.make_node("Bernoulli", ["p"], ["n2"]),
             helper.make_node("Add", ["scores", "zero"], ["moved"]),
             helper.make_node("Multinomial", ["moved"], ["m"], sample_size=1000), helper.make_node("Cast", ["m"], ["n3"], to=1)]
    for k in range(4):
        nodes += [helper.make_node("Mul", [f"n{k}", f"w{k}"], [f"m{k}"]), helper.make_node("ReduceSum", [f"m{k}"], [f"s{k}"], keepdims=0)]
    nodes += [helper.make_node("Sum", ["s0", "s1", "s2", "s3"], ["sum"]), helper.make_node("ReduceSum", ["zero"], ["rest"], keepdims=0), helper.make_node("Add", ["sum", "rest"], ["loss"])]
    save(path, nodes, [helper.make_tensor_value_info("zero", TensorProto.FLOAT, [200, 4])], initializers, 20)
    np.savez(data, zero=np.zeros((1, 200, 4), np.float32))
    got = run(dsopt, path, data, "-steps=1", "-optimizer=sgd", "-lr=1", "-freeze=scores").weights
    even, bell, coin, classes = (-got[f"w{k}"].astype(np.float64).ravel() for k in range(4))
    n = even.size

    def near(value, want, deviation, what):
        check(abs(value - want) < 5 * deviation / np.sqrt(n), f"{what} is {value}, expected {want}")

    near(even.mean(), 0.5, np.sqrt(1 / 12), "the mean of even numbers")
    near((even**2).mean(), 1 / 3, np.sqrt(4 / 45), "their second moment")
    check(even.min() >= 0 and even.max() < 1, "even numbers leave 0 to 1")
    near(bell.mean(), 0, 1, "the mean of normal numbers")
    near((bell**2).mean(), 1, np.sqrt(2), "their variance")
    near((bell**4).mean(), 3, np.sqrt(96), "their fourth moment")
    for bound, share in ((1, 0.682689), (2, 0.954500), (3, 0.997300)):
        near((np.abs(bell) < bound).mean(), share, np.sqrt(share * (1 - share)), f"the share of normal numbers within {bound}")
    near(coin.mean(), 0.3, np.sqrt(0.21), "the share of ones")
    near((bell[1:] * bell[:-1]).mean(), 0, 1, "the correlation of neighbours")
    for k, share in enumerate(np.exp(scores.astype(np.float64))):
        near((classes == k).mean(), share, np.sqrt(share * (1 - share)), f"the share of class {k}")
    print("distributions: as they should be", flush=True)


def noisy_gpt(folder):
    """gpt2-tiny with noise on what each product with a bias gives, and whole rows of it left out at random."""
    path, data = os.path.join(folder, "gpt.onnx"), model("gpt2-tiny")[1]
    m = onnx.load(model("gpt2-tiny")[0])
    nodes, renamed = [helper.make_node("Constant", [], ["kept"], value=numpy_helper.from_array(np.full((1, 1), 0.9, np.float32))),
                      helper.make_node("Constant", [], ["little"], value=numpy_helper.from_array(np.float32(0.01)))], {}
    for node in m.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
        nodes.append(node)
        if node.op_type == "Gemm":
            output = node.output[0]
            renamed[output] = output + ".noisy"
            nodes += [helper.make_node("RandomNormalLike", [output], [output + ".n"]), helper.make_node("Mul", [output + ".n", "little"], [output + ".l"]),
                      helper.make_node("Add", [output, output + ".l"], [output + ".a"]),
                      helper.make_node("Bernoulli", ["kept"], [output + ".b"]), helper.make_node("Mul", [output + ".a", output + ".b"], [renamed[output]])]
    check(len(renamed) > 3, "gpt2-tiny has no Gemm any more")
    del m.graph.node[:]
    m.graph.node.extend(nodes)
    onnx.save(m, path)
    return path, data


def check_gpt(folder):
    path, data = noisy_gpt(folder)
    base = ["-steps=4", "-lr=3e-3", "-grad-clip=1", "-reduction-shards=4"]

    def layout(dp, pp, zero, *more, k=4):
        return run(dsopt, path, data, *base, f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={k // dp}", *more)

    runs = {"dp 4": (4, 1, 0), "dp 2, pp 2, zero 3": (2, 2, 3), "pp 4": (1, 4, 0), "one thread": (1, 1, 0, "-threads=1"), "three threads": (1, 1, 0, "-threads=3")}
    first = check_layouts(folder, layout, runs)
    check(layout(1, 1, 0, "-dropout=off").hash == first.hash, "-dropout=off leaves out what is no dropout")
    # They are drawn in evaluations too, the same for each group of micro-batches.
    evaluations = [evaluate(dsopt, path, data, f"-dp={dp}", f"-pp={pp}", f"-micro-batches={4 // dp}") for dp, pp in ((1, 1), (2, 1), (1, 2), (1, 1))]
    check(len(set(evaluations)) == 1, f"evaluations differ by layout: {evaluations}")
    plain = evaluate(dsopt, model("gpt2-tiny")[0], data)
    check(evaluations[0] != evaluate(dsopt, path, data, "-micro-batches=4", "-seed=1") and evaluations[0] != plain, "an evaluation draws nothing")
    print(f"gpt2-tiny with noise: {len(runs) + 2} layouts, one hash {first.hash[:16]}, losses {', '.join(first.loss_text)}; evaluated {evaluations[0]}, without noise {plain}", flush=True)


with tempfile.TemporaryDirectory() as folder:
    check_values(folder, [15, 1023], 22)
    check_values(folder, [3, 5, 7, 17], 15)
    check_values(folder, [2049], 20)
    check_distribution(folder)
    check_gpt(folder)
