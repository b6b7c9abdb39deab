"""Graphs inside of nodes, and values that are no tensors: what a trace makes of branches, loops,
sequences and optionals. Branches and iterations become ordinary steps; sequences are lists of names.

A node's captured values stand among its inputs, behind those that ONNX has, and are the last
inputs of its regions: whoever renames or looks for inputs needs to know nothing of regions.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from onnx import GraphProto, TensorProto, helper, numpy_helper

from graph import Node, element_of, to_proto

if TYPE_CHECKING:
    from reference import Trace


@dataclasses.dataclass
class Region:
    """A graph as a function of its inputs, which has names of its own."""
    inputs: list[str]
    outputs: list[str]
    nodes: list[Node]
    constants: dict[str, np.ndarray]
    #: How many of the inputs, the last ones, are values around the node.
    captures: int = 0
    #: Of inputs and outputs that are not float32.
    types: dict[str, str] = dataclasses.field(default_factory=dict)

    def to_onnx(self, label: str, given: list[str], spell: Callable[[str], str]) -> GraphProto:
        """With names that no other graph of the file has; `given` are those of what is captured."""
        own = self.inputs[:len(self.inputs) - self.captures]
        around = dict(zip(self.inputs[len(own):], given))

        def name_of(name: str) -> str:
            return around.get(name) or (spell(f"{label}.{name}") if name else "")

        def typed(name: str):
            kind = self.types.get(name, "float32")
            if kind == "sequence":
                return helper.make_tensor_sequence_value_info(name_of(name), TensorProto.FLOAT, None)
            return helper.make_tensor_value_info(name_of(name), element_of(kind), None)

        nodes = [helper.make_node("Constant", [], [name_of(name)], value=numpy_helper.from_array(array)) for name, array in self.constants.items()]
        nodes += [to_proto(node, name_of, spell, f"{label}.{node.outputs[0]}") for node in self.nodes]
        return helper.make_graph(nodes, label, [typed(name) for name in own], [typed(name) for name in self.outputs])


def inline(trace: Trace, region: Region, given: list[str]) -> list[str]:
    """Runs a region's nodes with these values as its inputs; the names of its outputs."""
    prefix = f"region{trace.count}/"
    trace.count += 1
    names = {"": ""} | {name: prefix + name for node in region.nodes for name in node.outputs} | dict(zip(region.inputs, given))
    for name, array in region.constants.items():
        names[name] = prefix + name
        trace.start(names[name], array, False)
    for node in region.nodes:
        trace.run(dataclasses.replace(node, inputs=[names[name] for name in node.inputs], outputs=[names[name] for name in node.outputs]))
    return [names[name] for name in region.outputs]


def alias(trace: Trace, name: str, source: str) -> None:
    """Another name of a tensor, a sequence or an optional."""
    if not name:
        return
    if source in trace.sequences:
        trace.sequences[name] = trace.sequences[source]
    elif source in trace.optionals:
        trace.optionals[name] = trace.optionals[source]
    else:
        trace.run(Node("Identity", [source], [name]))


def branch(trace: Trace, node: Node) -> None:
    """A branch that is known is taken; of others both are computed, and a condition selects."""
    condition, *captured = node.inputs
    branches = [node.attributes[name] for name in ("then_branch", "else_branch")]
    if condition not in trace.varying:
        for name, source in zip(node.outputs, inline(trace, branches[0 if trace.values[condition].item() else 1], captured)):
            alias(trace, name, source)
        return
    left, right = (inline(trace, region, captured) for region in branches)
    trace.start(f"{node.outputs[0]}/shape", np.array([], np.int64), False)
    trace.run(Node("Reshape", [condition, f"{node.outputs[0]}/shape"], [f"{node.outputs[0]}/condition"]))
    for name, a, b in zip(node.outputs, left, right):
        trace.run(Node("Where", [f"{node.outputs[0]}/condition", a, b], [name]))


def stack(trace: Trace, name: str, parts: list[str], axis: int) -> None:
    rows = []
    trace.start(f"{name}/axis", np.array([axis]), False)
    for k, part in enumerate(parts):
        rows.append(f"{name}/{k}")
        trace.run(Node("Unsqueeze", [part, f"{name}/axis"], [rows[-1]], {}, 13))
    trace.run(Node("Concat", rows, [name], {"axis": axis}))


def loop(trace: Trace, node: Node) -> None:
    body: Region = node.attributes["body"]
    count = len(node.inputs) - 2 - body.captures
    carried, captured = node.inputs[2:2 + count], node.inputs[2 + count:]
    most, goes_on, stacks = node.inputs[0], node.inputs[1], []
    limit = int(trace.values[most]) if most else 1000
    for k in range(limit):
        if goes_on and not trace.values[goes_on].item():
            break
        if goes_on in trace.varying:
            raise NotImplementedError("a loop whose end depends on data")
        names = [f"{node.outputs[0]}/{what}{k}" for what in ("iteration", "condition")]
        trace.start(names[0], np.array(k), False)
        trace.start(names[1], np.array(True), False)
        goes_on, *results = inline(trace, body, names + carried + captured)
        carried = results[:count]
        stacks.append(results[count:])
    for name, source in zip(node.outputs, carried):
        alias(trace, name, source)
    for k, name in enumerate(node.outputs[count:]):
        stack(trace, name, [parts[k] for parts in stacks], 0)


def scan(trace: Trace, node: Node) -> None:
    body, get = node.attributes["body"], node.attributes.get
    scanned = get("num_scan_inputs")
    count = len(node.inputs) - scanned - body.captures
    state, rows, captured = node.inputs[:count], node.inputs[count:count + scanned], node.inputs[count + scanned:]
    axes, backward = (get(f"scan_input_{what}") or [0] * scanned for what in ("axes", "directions"))
    length, stacks = trace.values[rows[0]].shape[axes[0]], []
    for step in range(length):
        parts = []
        for k, row in enumerate(rows):
            parts.append(f"{node.outputs[0]}/{step}.{k}")
            trace.start(parts[-1] + "/at", np.array(length - 1 - step if backward[k] else step), False)
            trace.run(Node("Gather", [row, parts[-1] + "/at"], [parts[-1]], {"axis": axes[k]}))
        results = inline(trace, body, state + parts + captured)
        state = results[:count]
        stacks.append(results[count:])
    for name, source in zip(node.outputs, state):
        alias(trace, name, source)
    outputs = node.outputs[count:]
    axes, backward = (get(f"scan_output_{what}") or [0] * len(outputs) for what in ("axes", "directions"))
    for k, name in enumerate(outputs):
        parts = [parts[k] for parts in stacks]
        stack(trace, name, parts[::-1] if backward[k] else parts, axes[k])


def sequence_map(trace: Trace, node: Node) -> None:
    body: Region = node.attributes["body"]
    own = len(node.inputs) - body.captures
    results: list[list[str]] = [[] for _ in node.outputs]
    for k in range(len(trace.sequences[node.inputs[0]])):
        given = [trace.sequences[name][k] if name in trace.sequences else name for name in node.inputs[:own]]
        for list_of, name in zip(results, inline(trace, body, given + node.inputs[own:])):
            list_of.append(name)
    trace.sequences.update(zip(node.outputs, results))


def split_to_sequence(trace: Trace, node: Node) -> None:
    axis, (name, *split), result = node.attributes.get("axis", 0), node.inputs, node.outputs[0]
    size = trace.values[name].shape[axis]
    given = trace.values[split[0]] if split else np.array(1)
    sizes = given.tolist() if given.ndim else [min(int(given), size - k) for k in range(0, size, int(given))]
    names = [f"{result}/{k}" for k in range(len(sizes))]
    trace.start(f"{result}/sizes", np.array(sizes, np.int64), False)
    trace.run(Node("Split", [name, f"{result}/sizes"], names, {"axis": axis}, 18))
    if not split and not node.attributes.get("keepdims", 1):
        trace.start(f"{result}/axis", np.array([axis]), False)
        for k, part in enumerate(names):
            trace.run(Node("Squeeze", [part, f"{result}/axis"], [part + "/element"], {}, 13))
            names[k] = part + "/element"
    trace.sequences[result] = names


def sequence(trace: Trace, node: Node) -> None:
    """Sequences are lists of names; their elements are ordinary values."""
    if node.op in ("SequenceConstruct", "SequenceEmpty"):
        trace.sequences[node.outputs[0]] = list(node.inputs)
        return
    elements = list(trace.sequences[node.inputs[0]])
    places = [int(trace.values[name]) for name in node.inputs[2 if node.op == "SequenceInsert" else 1:]]
    if node.op == "SequenceAt":
        alias(trace, node.outputs[0], elements[places[0]])
    elif node.op == "SequenceLength":
        trace.start(node.outputs[0], np.array(len(elements), np.int64), False)
    elif node.op == "SequenceErase":
        del elements[places[0] if places else -1]
        trace.sequences[node.outputs[0]] = elements
    elif node.op == "SequenceInsert":
        place = places[0] if places else len(elements)
        elements.insert(place + len(elements) if place < 0 else place, node.inputs[1])
        trace.sequences[node.outputs[0]] = elements
    elif node.attributes.get("new_axis", 0):
        rank = trace.values[elements[0]].ndim + 1
        stack(trace, node.outputs[0], elements, node.attributes["axis"] % rank)
    else:
        trace.run(Node("Concat", elements, node.outputs, {"axis": node.attributes["axis"]}))


def optional(trace: Trace, node: Node) -> None:
    """What may be missing, which is known before anything runs."""
    source = node.inputs[0] if node.inputs else ""
    if node.op == "Optional":
        trace.optionals[node.outputs[0]] = source
        return
    source = trace.optionals.get(source, source)
    if node.op == "OptionalHasElement":
        trace.start(node.outputs[0], np.array(bool(source)), False)
    else:
        alias(trace, node.outputs[0], source)


#: What a trace runs so.
STRUCTURES: dict[str, Callable[[Trace, Node], None]] = {
    "If": branch, "Loop": loop, "Scan": scan, "SequenceMap": sequence_map, "SplitToSequence": split_to_sequence,
    **dict.fromkeys(("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
                     "SequenceLength"), sequence),
    **dict.fromkeys(("Optional", "OptionalGetElement", "OptionalHasElement"), optional)}
