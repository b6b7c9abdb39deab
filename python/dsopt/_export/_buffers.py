"""Buffers that forward changes: what each micro-batch leaves of them becomes part of the step.

An UpdateBuffers node around the loss names them. Where the loss reads what forward changes,
a micro-batch sees what the ones before it left, so that a step can have one alone.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

import numpy as np
import onnx
from onnx import numpy_helper

from ._graph import depends_on
from ._operators import DOMAIN

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE)


def fold_buffers(graph: Any, changed: Mapping[str, str], loss: str = "loss") -> List[str]:
    """Adds the node where it is needed. `changed` are new values and their buffers. Returns the buffers that keep
    their values: counters that nothing reads."""
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    read = set(depends_on(graph, loss))
    rows, kept = [], []
    for value, name in changed.items():
        tensor = initializers.get(name)
        if tensor is None:
            continue
        is_read = name in read
        if tensor.data_type not in _FLOATS:
            if not is_read:
                kept.append(name)
                continue
            value = _as_float(graph, tensor, value)
        share = None if is_read else _Affine(graph, name).share(value)
        if share is None:
            rows.append((name, value, 0.0, 1))
        else:
            rows.append((name, _contribution(graph, tensor, value, share), share, 0))
    if rows:
        _add_node(graph, rows, loss)
    return kept


def _add_node(graph: Any, rows: Any, loss: str) -> None:
    inner = f"{loss}/computed"
    for node in graph.node:
        for at, name in enumerate(node.output):
            if name == loss:
                node.output[at] = inner
        for at, name in enumerate(node.input):
            if name == loss:
                node.input[at] = inner
    graph.node.append(onnx.helper.make_node(
        "UpdateBuffers", [inner, *(row[0] for row in rows), *(row[1] for row in rows)], [loss], domain=DOMAIN,
        name="update_buffers", momenta=[row[2] for row in rows], sequential=[row[3] for row in rows]))


def _as_float(graph: Any, tensor: Any, value: str) -> str:
    """Makes a counter a float: what reads it reads its integer, and its new value is a float. Returns that."""
    kind, inside = tensor.data_type, f"{tensor.name}/integer"
    number = numpy_helper.to_array(tensor)
    if np.abs(number).max(initial=0) >= 1 << 24:
        from ._refused import Refused

        raise Refused(f"buffer '{tensor.name}' counts in integers beyond 2^24, which the file cannot change exactly: "
                      "make it a float")
    tensor.CopyFrom(numpy_helper.from_array(number.astype(np.float32), tensor.name))
    for node in graph.node:
        for at, name in enumerate(node.input):
            if name == tensor.name:
                node.input[at] = inside
    graph.node.insert(0, onnx.helper.make_node("Cast", [tensor.name], [inside], name=inside, to=kind))
    graph.node.append(onnx.helper.make_node("Cast", [value], [f"{tensor.name}/new"], name=f"{tensor.name}/new",
                                            to=onnx.TensorProto.FLOAT))
    return f"{tensor.name}/new"


def _contribution(graph: Any, tensor: Any, value: str, share: float) -> str:
    """(value - share * buffer) / (1 - share): what a micro-batch adds to its share of the buffer."""
    name = tensor.name
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    constants = {f"{name}/share": share, f"{name}/rest": 1 - share}
    for key, number in constants.items():
        graph.node.append(onnx.helper.make_node("Constant", [], [key], name=key,
                                                value=numpy_helper.from_array(np.array(number, dtype), key)))
    steps = [("Mul", [name, f"{name}/share"], f"{name}/old"), ("Sub", [value, f"{name}/old"], f"{name}/added"),
             ("Div", [f"{name}/added", f"{name}/rest"], f"{name}/contribution")]
    graph.node.extend(onnx.helper.make_node(op, inputs, [output], name=output) for op, inputs, output in steps)
    return steps[-1][2]


class _Affine:
    """Whether a value is share * buffer + something else, elementwise, with one share."""

    def __init__(self, graph: Any, buffer: str):
        self.buffer = buffer
        self.producers: Dict[str, Any] = {name: node for node in graph.node for name in node.output}
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.shares: Dict[str, Optional[float]] = {}

    def share(self, value: str) -> Optional[float]:
        """The share, if it is a number in (0, 1)."""
        share = self._of(value)
        return share if share is not None and 0 < share < 1 else None

    def _of(self, name: str) -> Optional[float]:
        if name == self.buffer:
            return 1.0
        if name not in self.producers:
            return 0.0
        if name not in self.shares:
            self.shares[name] = None  # of a cycle
            self.shares[name] = self._compute(self.producers[name])
        return self.shares[name]

    def _compute(self, node: Any) -> Optional[float]:
        inputs = node.input[:1] if node.op_type == "CastLike" else node.input
        known = [self._of(name) for name in inputs if name]
        if all(share == 0 for share in known):
            return 0.0
        shares = [share for share in known if share is not None]
        if len(shares) < len(known):
            return None
        if node.op_type in ("Identity", "Cast", "CastLike", "StopGradient"):
            return shares[0] if all(share == 0 for share in shares[1:]) else None
        if node.op_type == "Where":  # on either side the same
            same = shares[0] == 0 and abs(shares[1] - shares[2]) < 1e-9
            return shares[1] if same else None
        if node.op_type == "Neg":
            return -shares[0]
        if node.op_type in ("Add", "Sub"):
            return shares[0] + shares[1] if node.op_type == "Add" else shares[0] - shares[1]
        if node.op_type in ("Mul", "Div"):
            for at in ((0, 1), (1, 0)) if node.op_type == "Mul" else ((0, 1),):
                number = self._number(node.input[at[1]])
                if shares[at[1]] == 0 and number is not None:
                    return shares[at[0]] * number if node.op_type == "Mul" else shares[at[0]] / number
        return None

    def _number(self, name: str) -> Optional[float]:
        """The number that a constant of one element is."""
        if name in self.initializers:
            array = numpy_helper.to_array(self.initializers[name])
            return float(array.reshape(())) if array.size == 1 else None
        node = self.producers.get(name)
        if node is None:
            return None
        if node.op_type == "Constant":
            value = next((one for one in node.attribute if one.name in ("value", "value_float")), None)
            if value is None:
                return None
            array = numpy_helper.to_array(value.t) if value.name == "value" else np.array(value.f)
            return float(array.reshape(())) if array.size == 1 else None
        if node.op_type in ("Add", "Sub"):
            a, b = map(self._number, node.input)
            return None if a is None or b is None else a + b if node.op_type == "Add" else a - b
        return self._number(node.input[0]) if node.op_type in ("Cast", "CastLike", "Identity") else None
