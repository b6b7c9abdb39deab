"""Values of nodes in float64, by onnx's reference evaluator.

A `Trace` runs a graph once and keeps what it ran as a list of primitive steps: composite
operations are replaced by their expansion (`expand.py`) or by the function that ONNX itself
defines them as, and what depends neither on inputs nor on parameters is computed once.
"""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference.ops import load_op

from draws import RANDOM, Draw
from expand import EXPANSIONS, Body
from graph import ELEMENT, Graph, Node
from regions import STRUCTURES

#: The one type for floats here.
WIDE = TensorProto.DOUBLE
#: Attributes that name an element type.
TYPE_ATTRIBUTES = {"to", "dtype", "stash_type", "softmax_precision", "output_datatype"}
#: Their results are known from types alone.
SHAPES = {"Shape", "Size"}
#: Taken apart as ONNX defines them: their derivatives are those of their parts.
FUNCTIONS = {"Attention", "Gelu", "GroupNormalization", "RMSNormalization", "RotaryEmbedding", "SwiGLU", "Swish"}
#: Types that a cast rounds to; wider floats all become float64.
ROUNDING = {TensorProto.FLOAT16, TensorProto.BFLOAT16}


@dataclasses.dataclass
class Step:
    """A primitive operation that depends on inputs or parameters."""
    node: Node
    compute: Callable[..., tuple]
    inputs: list[str]
    outputs: list[str]

    @property
    def op(self) -> str:
        return self.node.op


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def widened(attributes: dict, inputs: list) -> dict:
    """Attributes with float64 for float32."""
    result = {}
    for key, value in attributes.items():
        if key in TYPE_ATTRIBUTES and value == TensorProto.FLOAT:
            value = WIDE
        elif isinstance(value, onnx.TensorProto):
            value = numpy_helper.from_array(wide(numpy_helper.to_array(value)), value.name)
        result[key] = value
    return result


def round_to(element: int) -> Callable[..., tuple]:
    """A cast whose result is narrow, as float64 again: float32 is what the model rounds from."""
    dtype = helper.tensor_dtype_to_np_dtype(element)
    return lambda x: (np.asarray(x).astype(np.float32).astype(dtype).astype(np.float64),)


erf = np.vectorize(math.erf, otypes=[np.float64])


def implementation(node: Node, opset: int) -> Callable[..., tuple] | None:
    """How the reference computes a node; None where ONNX's function of it is taken."""
    if node.op == "Cast" and node.attributes["to"] in ROUNDING:
        return round_to(node.attributes["to"])
    if node.op == "Erf":
        return lambda x: (erf(x),)  # the reference's is rounded to float32
    if node.op in FUNCTIONS:
        return None
    attributes = widened(node.attributes, node.inputs)
    names = [f"i{k}" if name else "" for k, name in enumerate(node.inputs)]
    proto = helper.make_node(node.op, names, [f"o{k}" for k in range(len(node.outputs))], **attributes)
    made = load_op("", node.op, opset)
    settings = {"log": lambda *_: None, "opsets": {"": opset}, "verbose": 0, "new_ops": None, "existing_functions": {}}
    run = made(proto, settings).run
    return lambda *arrays: tuple(wide(np.asarray(value)) for value in run(*arrays))


def function_body(node: Node, opset: int, arrays: list[np.ndarray | None]) -> tuple[list[Node], list[str], list[str]] | None:
    """ONNX's own definition of a node: its nodes, formal inputs and outputs."""
    schema = onnx.defs.get_schema(node.op, opset)
    proto = helper.make_node(node.op, node.inputs, node.outputs, **node.attributes)
    if schema.has_context_dependent_function:
        version = max((v for v in schema.context_dependent_function_opset_versions if v <= opset), default=0)
        types = [helper.make_tensor_type_proto(WIDE if a.dtype.kind == "f" else ELEMENT[a.dtype], a.shape).SerializeToString()
                 for a in arrays if a is not None]
        text = version and schema.get_context_dependent_function_with_opset_version(version, proto.SerializeToString(), types)
    elif schema.has_function:
        version = max((v for v in schema.function_opset_versions if v <= opset), default=0)
        text = version and schema.get_function_with_opset_version(version)
    else:
        text = None
    if not text:
        return None
    body = onnx.FunctionProto()
    body.ParseFromString(text if isinstance(text, bytes) else text.SerializeToString())
    given = {a.name: a for a in body.attribute_proto} | {a.name: a for a in proto.attribute}
    for name in body.attribute:
        if name not in given and name in schema.attributes and schema.attributes[name].default_value.name:
            given[name] = schema.attributes[name].default_value
    nodes = []
    for inner in body.node:
        attributes = {}
        for attribute in inner.attribute:
            source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            if source is not None:
                attributes[attribute.name] = helper.get_attribute_value(source)
        version = next((o.version for o in body.opset_import if o.domain == ""), opset)
        nodes.append(Node(inner.op_type, list(inner.input), list(inner.output), attributes, version))
    return nodes, list(body.input), list(body.output)


class Trace:
    """Runs nodes one by one, and keeps the steps that would have to run again for other inputs."""

    def __init__(self, opset: int):
        self.opset = opset
        self.values: dict[str, np.ndarray] = {}
        self.steps: list[Step] = []
        self.varying: set[str] = set()
        self.sequences: dict[str, list[str]] = {}
        self.optionals: dict[str, str] = {}
        #: Random numbers: values given from outside, by name in order.
        self.draws: dict[str, Draw] = {}
        #: Running statistics: the batch's value that each is folded with, the factor to unbias it, and the momentum.
        self.folds: dict[str, tuple[str, float, float]] = {}
        self.count = 0

    def start(self, name: str, array: np.ndarray, varying: bool) -> None:
        self.values[name] = wide(array)
        if varying:
            self.varying.add(name)

    def run(self, node: Node) -> None:
        if node.op in STRUCTURES:
            STRUCTURES[node.op](self, node)
            return
        if node.op in RANDOM and RANDOM[node.op](self, node):
            return
        opset = node.opset or self.opset
        arrays = [self.values[name] if name else None for name in node.inputs]
        if node.op in EXPANSIONS:
            body = Body(f"{node.outputs[0]}/{self.count}/", opset)
            self.count += 1
            results = EXPANSIONS[node.op](body, node, arrays)
            for name, array in body.constants.items():
                self.start(name, array, False)
            for inner in body.nodes:
                self.run(inner)
            self.finish(node.outputs, results)
            if node.op == "BatchNormalization" and node.attributes.get("training_mode", 0):
                count, momentum = arrays[0].size / arrays[0].shape[1], node.attributes.get("momentum", 0.9)
                self.folds[node.inputs[3]] = results[1], 1.0, momentum
                self.folds[node.inputs[4]] = results[2], count / (count - 1), momentum
            return
        compute = implementation(node, opset)
        if compute is None:
            self.run_function(node, opset, arrays)
            return
        if not self.varying.intersection(node.inputs) or node.op in SHAPES:
            for name, value in zip(node.outputs, compute(*arrays)):
                self.values[name] = value
            return
        with np.errstate(all="ignore"):
            results = compute(*arrays)
        step = Step(node, compute, list(node.inputs), [name for name in node.outputs])
        self.steps.append(step)
        for name, value in zip(node.outputs, results):
            self.values[name] = value
            self.varying.add(name)

    def run_function(self, node: Node, opset: int, arrays: list) -> None:
        found = function_body(node, opset, arrays)
        if found is None:
            raise NotImplementedError(f"{node.op} of opset {opset} has no reference")
        nodes, formal, results = found
        prefix = f"{node.outputs[0]}/{self.count}/"
        self.count += 1
        names = {name: prefix + name for inner in nodes for name in inner.outputs} | {"": ""}
        names.update(zip(formal, node.inputs + [""] * len(formal)))
        for inner in nodes:
            self.run(Node(inner.op, [names[n] for n in inner.inputs], [names[n] for n in inner.outputs],
                          inner.attributes, inner.opset))
        self.finish(node.outputs, [names.get(name, "") for name in results])

    def finish(self, outputs: list[str], results: list[str]) -> None:
        """Gives an expansion's results the names of the node's outputs."""
        for name, source in zip(outputs, results):
            if name:
                self.run(Node("Identity", [source], [name], {}, self.opset))


def trace(graph: Graph, inputs: dict[str, np.ndarray], roots: list[str]) -> Trace:
    """The graph's values for these inputs, as far as the roots need them."""
    made = Trace(graph.opset)
    for name, array in graph.constants.items():
        made.start(name, array, False)
    for name, array in (graph.parameters | graph.statistics | {name: inputs[name] for name in graph.inputs}).items():
        made.start(name, array, True)
    wanted = graph.needed(roots)
    for node in graph.nodes:
        if wanted.intersection(node.outputs):
            made.run(node)
    return made
