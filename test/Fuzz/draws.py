"""Random numbers: values that a trace is given from outside, for each step and micro-batch others.

They follow from the run's seed, the step, the micro-batch, the element, and the number of the
operation among the random ones; ONNX's attribute `seed` takes the place of the latter.
"""
from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from graph import Node

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Conversion", "KernelToLLVM", "Inputs"))
from philox import kept, uniform  # noqa: E402

if TYPE_CHECKING:
    from reference import Trace

#: What an operation draws in a step and a micro-batch.
Draw = Callable[[int, int], np.ndarray]


def start(trace: Trace, example: np.ndarray, draw: Draw) -> str:
    """A value from outside, and an example of it."""
    name = f"random/{len(trace.draws)}"
    trace.draws[name] = draw
    trace.start(name, example, True)
    return name


def uniforms(node: Node, shape: tuple[int, ...], number: int, second: bool = False) -> Draw:
    chosen = "seed" in node.attributes
    if chosen:
        number = int(np.float32(node.attributes["seed"]).view(np.int32))
    return lambda step, place: uniform(shape, number, step, place, which=2 * chosen + second)


def dropout(trace: Trace, node: Node) -> bool:
    """In training a product; other dropouts are none."""
    if len(node.inputs) < 3 or not trace.values[node.inputs[2]] or not trace.values[node.inputs[1]]:
        return False
    number, shape, ratio = len(trace.draws), trace.values[node.inputs[0]].shape, float(trace.values[node.inputs[1]])
    name = start(trace, np.ones(shape), lambda step, place: kept(ratio, shape, number, step, place) / (1 - ratio))
    trace.run(Node("Mul", [node.inputs[0], name], node.outputs[:1]))
    return True


def numbers(trace: Trace, node: Node) -> bool:
    """Uniform or normal ones, of a shape that is given or another value's."""
    get = node.attributes.get
    shape = trace.values[node.inputs[0]].shape if node.inputs else tuple(get("shape"))
    first = uniforms(node, shape, len(trace.draws))
    if "Uniform" in node.op:
        low, high = get("low", 0.0), get("high", 1.0)
        name = start(trace, np.full(shape, (low + high) / 2), lambda step, place: low + (high - low) * first(step, place))
    else:
        second, mean, scale = uniforms(node, shape, len(trace.draws), True), get("mean", 0.0), get("scale", 1.0)

        def normal(step: int, place: int) -> np.ndarray:
            return mean + scale * np.sqrt(-2 * np.log(1 - first(step, place))) * np.cos(2 * math.pi * second(step, place))

        name = start(trace, np.full(shape, mean + scale / 2), normal)
    trace.run(Node("Identity", [name], node.outputs))
    return True


def bernoulli(trace: Trace, node: Node) -> bool:
    shape = trace.values[node.inputs[0]].shape
    name = start(trace, np.full(shape, 0.5), uniforms(node, shape, len(trace.draws)))
    trace.run(Node("Less", [name, node.inputs[0]], [node.outputs[0] + "/hit"]))
    trace.run(Node("Cast", [node.outputs[0] + "/hit"], node.outputs, {"to": node.attributes.get("dtype", TensorProto.FLOAT)}))
    return True


def multinomial(trace: Trace, node: Node) -> bool:
    """As many classes as lie below a random part of the sum of all."""
    scores, base = trace.values[node.inputs[0]], node.outputs[0]
    rows, classes = scores.shape
    shape = rows, node.attributes.get("sample_size", 1), 1
    name = start(trace, np.full(shape, 0.5), uniforms(node, shape, len(trace.draws)))
    for letter, array in (("axis", np.array(1)), ("last", np.array([classes - 1])), ("middle", np.array([1])), ("behind", np.array([2]))):
        trace.start(f"{base}/{letter}", array, False)
    steps = [("Softmax", [node.inputs[0]], "parts", {"axis": 1}), ("CumSum", [f"{base}/parts", f"{base}/axis"], "sums", {}),
             ("Unsqueeze", [f"{base}/sums", f"{base}/middle"], "all", {}), ("LessOrEqual", [f"{base}/all", name], "passed", {}),
             ("Cast", [f"{base}/passed"], "ones", {"to": TensorProto.INT64}),
             ("ReduceSum", [f"{base}/ones", f"{base}/behind"], "count", {"keepdims": 0}),
             ("Min", [f"{base}/count", f"{base}/last"], "class", {})]
    for op, inputs, result, attributes in steps:
        trace.run(Node(op, inputs, [f"{base}/{result}"], attributes, 13))
    trace.run(Node("Cast", [f"{base}/class"], node.outputs, {"to": node.attributes.get("dtype", TensorProto.INT32)}))
    return True


#: What a trace runs so; False where nothing is drawn after all.
RANDOM: dict[str, Callable[[Trace, Node], bool]] = {
    "Bernoulli": bernoulli, "Dropout": dropout, "Multinomial": multinomial,
    **dict.fromkeys(("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), numbers)}
