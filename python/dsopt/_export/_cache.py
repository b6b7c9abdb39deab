"""What PyTorch's exporter makes of a traced graph, kept for the next time that the same graph is traced.

The key is all that the exporter reads: each node with its operator, arguments, sizes, module and line; the constants' bytes;
which weights share memory; versions. Weights are no part of it, and come from the model each time. A graph with anything else
in it, or with operators whose meaning is not PyTorch's own, is not kept.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
import zlib
from typing import Any, Callable, Dict, Iterator, Optional

import onnx
import torch

from ._parameters import bits_of

_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout, torch.memory_format)
_NAMESPACES = ("aten", "prims", "dsopt")
_MOST = 64  # graphs that are kept
_MARK = "dsopt.kept"  # metadata of an initializer whose value is the model's


class _Unknown(Exception):
    """Something whose meaning the key cannot hold."""


def _folder() -> Optional[str]:
    """Beside compiled kernels; None where these are kept nowhere."""
    given = os.environ.get("DSOPT_CACHE")
    if given in ("", "off"):
        return None
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(given or os.path.join(caches, "dsopt"), "graphs")


@functools.lru_cache(maxsize=None)
def _versions() -> str:
    """Of the packages that write a graph, and of this one's sources."""
    import onnxscript

    here = os.path.dirname(__file__)
    text = [torch.__version__, onnx.__version__, onnxscript.__version__]
    for name in sorted(os.listdir(here)):
        if name.endswith(".py"):
            with open(os.path.join(here, name)) as file:
                text.append(file.read())
    return "\n".join(text)


def _said(value: Any) -> str:
    """An argument or what is known of a value, as text that tells it from all others."""
    if isinstance(value, torch.fx.Node):
        return f"%{value.name}"
    if isinstance(value, torch.Tensor):
        return f"{type(value).__name__}{tuple(map(_said, value.shape))}{tuple(map(_said, value.stride()))}{value.dtype}{value.device}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({','.join(map(_said, value))})"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_said(name)}:{_said(one)}" for name, one in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice{_said((value.start, value.stop, value.step))}"
    if type(value) in _PLAIN or isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
        return f"{type(value).__name__}:{value!r}"
    raise _Unknown(type(value).__name__)


def _target(node: Any) -> str:
    target = node.target
    if isinstance(target, str) and node.op in ("placeholder", "output"):
        return target
    if getattr(target, "namespace", None) in _NAMESPACES and hasattr(target, "overloadpacket"):
        return str(target)
    if node.op == "call_function" and getattr(target, "__module__", "") in ("_operator", "operator", "math"):
        return f"{target.__module__}.{target.__name__}"
    raise _Unknown(str(target))


def _lines(program: Any) -> Iterator[str]:
    yield _versions()
    yield repr(program.graph_signature)
    for node in program.graph.nodes:
        modules = [(path, str(kind)) for path, kind in (node.meta.get("nn_module_stack") or {}).values()]
        value = node.meta.get("val")
        yield (f"{node.op} {node.name} {_target(node)} {_said(node.args)} {_said(dict(node.kwargs))} -> "
               f"{_said(value) if node.op != 'output' else ''} {modules} {node.meta.get('stack_trace')}")
    for name, value in program.constants.items():
        if not isinstance(value, torch.Tensor) or value.is_complex():
            raise _Unknown(type(value).__name__)
        yield f"{name} {_said(value)} {hashlib.sha256(bits_of(value).tobytes()).hexdigest()}"
    places: Dict[Any, str] = {}
    for name, value in program.state_dict.items():
        if value.is_complex():
            raise _Unknown("complex weights")
        same = places.setdefault((value.data_ptr(), value.storage_offset(), tuple(value.shape)) if value.numel() else name, name)
        yield f"{name} {_said(value)} {value.requires_grad} {same}"


def _key(program: Any, settings: Any) -> Optional[str]:
    """None where the graph has something that no key can hold."""
    digest = hashlib.sha256(repr(settings).encode())
    try:
        for line in _lines(program):
            digest.update(line.encode() + b"\0")
    except _Unknown:
        return None
    return digest.hexdigest()


def _values(program: Any) -> Dict[str, Any]:
    return {**{name: one for name, one in program.constants.items() if isinstance(one, torch.Tensor)}, **program.state_dict}


def _emptied(proto: Any, values: Dict[str, Any]) -> Optional[Any]:
    """A copy without the weights; None where one is not a weight's own value."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for one in copy.graph.initializer:
        value = values.get(one.name)
        if value is None or not one.raw_data or one.raw_data != bits_of(value).tobytes():
            return None
        one.ClearField("raw_data")
        one.doc_string = _MARK
    return copy


def _filled(proto: Any, values: Dict[str, Any]) -> Any:
    for one in proto.graph.initializer:
        one.raw_data = bits_of(values[one.name]).tobytes()
        one.ClearField("doc_string")
    return proto


def _read(path: str) -> Optional[Any]:
    """A kept graph that is whole."""
    try:
        with open(path, "rb") as file:
            digest, body = file.read(32), file.read()
    except OSError:
        return None
    if hashlib.sha256(body).digest() != digest:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return onnx.load_from_string(zlib.decompress(body))


def _keep(folder: str, path: str, proto: Any) -> None:
    """Writes it whole or not at all; what was used longest ago goes."""
    try:
        body = zlib.compress(proto.SerializeToString(deterministic=True), 1)
        os.makedirs(folder, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(hashlib.sha256(body).digest() + body)
        os.replace(file.name, path)
        known = sorted((os.path.join(folder, name) for name in os.listdir(folder)), key=os.path.getmtime)
        for old in known[:-_MOST]:
            os.remove(old)
    except (OSError, ValueError):  # a cache alone: no room, no right, too large for one message
        return


def kept(program: Any, settings: Any, write: Callable[[], Any]) -> Any:
    """What `write` makes of a traced program, or made of an equal one."""
    folder = _folder()
    key = _key(program, settings) if folder else None
    if folder is None or key is None:
        return write()
    path, values = os.path.join(folder, key + ".onnx"), _values(program)
    found = _read(path)
    if found is not None:
        return _filled(found, values)
    proto = write()
    empty = _emptied(proto, values)
    if empty is not None:
        _keep(folder, path, empty)
    return proto
