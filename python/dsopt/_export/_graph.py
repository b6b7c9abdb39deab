"""What is left of an exported graph: names, places in the model's source, options that the file carries."""
from __future__ import annotations

import ast
import os
import re
from types import FrameType
from typing import Any, Dict, Iterator, List, Optional

import onnx
import onnxscript
import torch

#: Metadata of a node: the module that it is part of, and the line of source that it comes from.
MODULE_KEY, SOURCE_KEY = "dsopt.module", "dsopt.source"
#: Metadata of a node: PyTorch's operator, of which several become one of ONNX with other ties.
OPERATOR_KEY = "dsopt.operator"
#: Metadata of a model: defaults of options, as JSON.
OPTIONS_KEY = "dsopt.options"


def nodes_of(graph: Any) -> Iterator[Any]:
    """All nodes, those of subgraphs too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def keep_places(model: Any) -> None:
    """Leaves of an exporter's metadata the module, the line and the operator of each node: it holds stack traces of
    the machine it ran on."""
    for graph in [model.graph, *model.functions]:
        for node in nodes_of(graph):
            known = {entry.key: entry.value for entry in node.metadata_props}
            if node.domain == "dsopt" and node.op_type == "Branch":
                node.domain, node.op_type, known[OPERATOR_KEY] = "", "Where", "branch"
            places = {MODULE_KEY: _module(known, node.name), SOURCE_KEY: _source(known),
                      OPERATOR_KEY: known.get(OPERATOR_KEY) or _operator(known)}
            node.ClearField("metadata_props")
            node.ClearField("doc_string")
            for key, value in places.items():
                if value:
                    node.metadata_props.add(key=key, value=value)
        for field in ("doc_string", "metadata_props"):
            graph.ClearField(field)
        for info in graph.value_info:
            info.ClearField("metadata_props")


def _module(known: Dict[str, str], name: str) -> str:
    """The path of the module, as named_modules has it."""
    scopes = known.get("pkg.torch.onnx.name_scopes")
    if scopes:
        path = [scope for scope in ast.literal_eval(scopes)[:-1] if scope]
        whole = path[-1] if path else ""
    else:  # the older exporter's "/model/layers.0/Gemm"
        whole = ".".join(name.split("/")[1:-1]) if name.startswith("/") else ""
    return re.sub(r"^model(\.|$)", "", whole)


def _source(known: Dict[str, str]) -> str:
    """"model.py:42", of the innermost line."""
    lines = re.findall(r'File "([^"]+)", line (\d+)', known.get("pkg.torch.onnx.stack_trace", ""))
    mine = [(path, line) for path, line in lines if is_the_models(path)]
    return f"{mine[-1][0].replace(os.sep, '/').rpartition('/')[2]}:{mine[-1][1]}" if mine else ""


def _operator(known: Dict[str, str]) -> str:
    """"clamp_min", of "%y : ... = call_function[target=torch.ops.aten.clamp_min.default](...)"."""
    found = re.search(r"torch\.ops\.aten\.(\w+)", known.get("pkg.torch.onnx.fx_node", ""))
    return found[1] if found else ""


_FOREIGN = [os.path.dirname(module.__file__) + os.sep for module in (torch, onnx, onnxscript)]
_FOREIGN.append(os.path.dirname(os.path.dirname(__file__)) + os.sep)
_STANDARD = os.path.dirname(os.__file__) + os.sep


def is_the_models(path: str) -> bool:
    """Whether a source file is none of PyTorch's, Python's or ours."""
    if path.startswith("<") or path.startswith(tuple(_FOREIGN)):
        return False
    return not path.startswith(_STANDARD) or "-packages" in path


def is_code_of_users(code: Any) -> bool:
    """Whether code is none of PyTorch's, Python's or ours; what was typed or made by exec is the user's."""
    name: str = code.co_filename
    return not name.startswith("<frozen") and (name.startswith("<") or is_the_models(name))


def place_of(frame: Optional[FrameType], line: Optional[int] = None) -> str:
    """The innermost line of the model that runs: "model.py:42". In a function that modules call, with the module's line:
    "helpers.py:7 (called in model.py:42)"."""
    place = ""
    while frame is not None:
        if is_code_of_users(frame.f_code):
            own = f"{frame.f_code.co_filename.replace(os.sep, '/').rpartition('/')[2]}:{frame.f_lineno if line is None else line}"
            line = None
            if isinstance(frame.f_locals.get("self"), torch.nn.Module):
                return f"{place} (called in {own})" if place else own
            place = place or own
        frame = frame.f_back
    return place


def depends_on(graph: Any, output: str) -> List[str]:
    """All values that an output is computed from."""
    producers = {name: node for node in graph.node for name in node.output}
    seen: Dict[str, None] = {}
    open_ = [output]
    while open_:
        name = open_.pop()
        if name in seen or not name:
            continue
        seen[name] = None
        if name in producers:
            open_.extend(producers[name].input)
    return list(seen)
