"""A training graph as the fuzzer holds it, simple to change, and its ONNX file.

Parameters are trained, constants are not, running statistics are folded; all are numpy arrays by name. Inputs say how
their values are drawn. Every value is float32, int64 (int32) or bool, as the model has it;
the oracle widens floats to float64 by itself.
"""
from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#: What the file's numbers are called in ONNX.
ELEMENT = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
           np.dtype(np.int32): TensorProto.INT32, np.dtype(np.bool_): TensorProto.BOOL,
           np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
           np.dtype(np.float16): TensorProto.FLOAT16, np.dtype(np.float64): TensorProto.DOUBLE}


@dataclasses.dataclass
class Node:
    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    #: The opset whose meaning the node has; 0: the graph's.
    opset: int = 0


@dataclasses.dataclass
class Input:
    """An input of the model: `kind` is normal, positive, ids, labels or mask."""
    shape: tuple[int, ...]
    kind: str = "normal"
    #: Of ids and labels: how many there are.
    bound: int = 0
    #: Of labels: what a label that counts nothing is, and how many are.
    ignored: int = -100
    share: float = 0.0
    dtype: str = "float32"

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        if self.kind == "mask":
            values = rng.random(self.shape) < 0.6
        elif self.kind == "ids":
            values = rng.integers(0, self.bound, self.shape)
        elif self.kind == "labels":
            values = rng.integers(0, self.bound, self.shape)
            values = np.where(rng.random(self.shape) < self.share, self.ignored, values)
            # A micro-batch without a valid label is an error.
            values.reshape(-1)[int(rng.integers(values.size))] = (self.ignored + 1) % self.bound if 0 <= self.ignored else 0
        elif self.kind == "positive":
            values = rng.uniform(0.5, 2.0, self.shape)
        else:
            values = rng.normal(size=self.shape)
        return np.asarray(values).astype(self.dtype)


def element_of(dtype: str) -> int:
    return ELEMENT[np.dtype(dtype)]


def to_proto(node: Node, name_of: Callable[[str], str], spell: Callable[[str], str], label: str,
             held: list[onnx.TensorProto] | None = None) -> onnx.NodeProto:
    """A node as ONNX has it, with other names; a graph inside of it holds what it captures by name, or as initializers of its own."""
    inputs, attributes = [name_of(name) for name in node.inputs], {}
    own = len(inputs)
    for key, value in node.attributes.items():
        if hasattr(value, "captures"):
            own = len(inputs) - value.captures
            value = value.to_onnx(f"{label}.{key}", inputs[own:], spell)
            value.initializer.extend(held or [])
        attributes[key] = value
    return helper.make_node(node.op, inputs[:own], [name_of(name) for name in node.outputs], **attributes)


class Graph:
    def __init__(self, opset: int):
        self.opset = opset
        self.nodes: list[Node] = []
        self.inputs: dict[str, Input] = {}
        self.parameters: dict[str, np.ndarray] = {}
        self.statistics: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.loss = ""
        #: Other outputs of the file, which training does not need.
        self.extra: dict[str, str] = {}
        #: Whether constants are nodes or, as older exporters have them, initializers.
        self.constant_nodes = True
        #: Whether parameters that one loop alone captures are its body's initializers.
        self.inner_parameters = False
        #: Names of dimensions by their size; other dimensions are numbers in the file.
        self.symbols: dict[int, str] = {}
        #: How names are spelled in the file; {} is the name here.
        self.spelling = "{}"
        #: A loss that -loss attaches instead of the file: "mse" or "cross-entropy", of an output and a target that becomes
        #: an input, and how many of the last nodes it stands for.
        self.attached: tuple[str, str, str, int] | None = None

    def copy(self) -> "Graph":
        return copy.deepcopy(self)

    def spell(self, name: str) -> str:
        return self.spelling.replace("{}", name) if name else ""

    def loss_option(self) -> list[str]:
        if self.attached:
            kind, output, target, _ = self.attached
            return [f"-loss={kind}:{self.spell(output)},{self.spell(target)}"]
        return [f"-loss={self.spell(self.loss)}"] if self.extra else []

    def needed(self, roots: list[str]) -> set[str]:
        """The values that the roots are computed from, and they."""
        wanted = set(roots)
        for node in reversed(self.nodes):
            if wanted.intersection(node.outputs):
                wanted.update(filter(None, node.inputs))
        return wanted

    def prune(self) -> "Graph":
        """Drops what neither the loss nor another output needs."""
        wanted = self.needed([self.loss, *self.extra])
        self.nodes = [node for node in self.nodes if wanted.intersection(node.outputs)]
        for table in (self.inputs, self.parameters, self.statistics, self.constants):
            for name in set(table) - wanted:
                del table[name]
        return self

    def may_be_weight(self, name: str) -> bool:
        """Whether an option has to say that a constant is none that is trained: of nodes only floats of more than one element or axis."""
        array = self.constants[name]
        return name.startswith("c") and (not self.constant_nodes or (array.dtype.kind == "f" and (array.size > 1 or array.ndim > 1)))

    def inside(self, nodes: list[Node]) -> set[str]:
        """Parameters that are initializers of the graph inside of the one node that reads them."""
        if not self.inner_parameters:
            return set()
        found = set()
        for node in nodes:
            captures = getattr(node.attributes.get("body"), "captures", 0)
            found.update(name for name in node.inputs[len(node.inputs) - captures:] if name in self.parameters)
        return {name for name in found if sum(node.inputs.count(name) for node in nodes) == 1}

    def to_onnx(self) -> onnx.ModelProto:
        nodes, initializers = [], []
        for name, array in self.constants.items():
            if self.constant_nodes:
                nodes.append(helper.make_node("Constant", [], [self.spell(name)], value=numpy_helper.from_array(array)))
            else:
                initializers.append(numpy_helper.from_array(array, self.spell(name)))
        kept = self.nodes[:-self.attached[3]] if self.attached else self.nodes
        inside = self.inside(kept)
        initializers += [numpy_helper.from_array(array, self.spell(name)) for name, array in (self.parameters | self.statistics).items()
                         if name not in inside]
        for node in kept:
            held = [numpy_helper.from_array(self.parameters[name], self.spell(name)) for name in dict.fromkeys(node.inputs) if name in inside]
            nodes.append(to_proto(node, self.spell, self.spell, node.outputs[0], held))
            nodes[-1].name = f"n{len(nodes) - 1}"
        inputs = [helper.make_tensor_value_info(self.spell(name), element_of(value.dtype),
                                                [self.symbols.get(size, size) for size in value.shape])
                  for name, value in self.inputs.items() if not self.attached or name != self.attached[2]]
        outputs = [helper.make_tensor_value_info(self.spell(name), element_of(dtype), None) for name, dtype in self.extra.items()]
        if self.attached:
            outputs.append(helper.make_tensor_value_info(self.spell(self.attached[1]), TensorProto.FLOAT, None))
        else:
            outputs.insert(0, helper.make_tensor_value_info(self.spell(self.loss), TensorProto.FLOAT, []))
        graph = helper.make_graph(nodes, "fuzz", inputs, outputs, initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=8 if self.opset < 18 else 9 if self.opset < 21 else 10)
