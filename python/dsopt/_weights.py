"""Trained weights from a safetensors file, with numpy alone."""
from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Sequence

import numpy as np

from ._tools import option_words, run_tool

#: The metadata entry of a model by which -save-weights and -weights know PyTorch's names.
METADATA_KEY = "dsopt.parameters"
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
          "U8": "u1", "BOOL": "?"}


@dataclass
class Stored:
    """A tensor as a safetensors file has it."""
    dtype: str
    shape: Sequence[int]
    data: Any  #: its bytes


def read_stored(path: "os.PathLike[str] | str") -> Dict[str, Stored]:
    """All tensors of a safetensors file by name; the file is mapped, not read."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    data = np.memmap(path, mode="r", offset=8 + length) if header else b""
    return {name: Stored(entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])]) for name, entry in header.items()}


def write_stored(file: "os.PathLike[str] | str", tensors: Mapping[str, Stored]) -> None:
    """A safetensors file of these tensors; what reads another of its name reads on."""
    header: Dict[str, Any] = {}
    offset = 0
    for name, one in tensors.items():
        header[name] = {"dtype": one.dtype, "shape": list(one.shape), "data_offsets": [offset, offset + len(one.data)]}
        offset += len(one.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    draft = os.fspath(file) + ".tmp"
    with open(draft, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for one in tensors.values():
            out.write(one.data)
    os.replace(draft, file)


def read_weights(path: "os.PathLike[str] | str") -> Dict[str, np.ndarray]:
    """All tensors of a safetensors file by name. bfloat16, which numpy lacks, comes as float32."""
    tensors = {}
    for name, one in read_stored(path).items():
        raw = np.array(one.data)
        if one.dtype == "BF16":
            value = (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
        elif one.dtype in _TYPES:
            value = raw.view(_TYPES[one.dtype])
        else:
            raise ValueError(f"{path}: tensor '{name}' has type {one.dtype}, which is not known here")
        tensors[name] = value.reshape(one.shape)
    return tensors


def parameter_rows(path: "os.PathLike[str] | str") -> List[Dict[str, Any]]:
    """What an exported model says of its parameters: "onnx" and "torch" names, "transposed" or not."""
    import onnx

    props = onnx.load(os.fspath(path), load_external_data=False).metadata_props
    rows = next((json.loads(entry.value) for entry in props if entry.key == METADATA_KEY), None)
    if rows is None:
        raise ValueError(f"{path} does not say what its parameters are in PyTorch; dsopt.export writes that")
    return rows


def _exported_names(path: "os.PathLike[str] | str", options: Mapping[str, Any]) -> List[str]:
    """PyTorch's names of what an exported model trains or keeps: not of constants."""
    rows = parameter_rows(path)
    table = json.loads(run_tool([os.fspath(path), "-list-parameters=json", *option_words(options)]))
    listed = {row["name"] for row in table if row["use"] in ("trained", "frozen")}
    return [row["torch"] for row in rows if row["onnx"] in listed]


def stored_of(tensor: Any, name: str) -> Stored:
    """A tensor of PyTorch, or an array, as a safetensors file has it; complex numbers are pairs."""
    types = {np.dtype(code).name: key for key, code in _TYPES.items()}
    types["bfloat16"] = "BF16"
    if not isinstance(tensor, np.ndarray) and tensor.is_complex():
        import torch

        tensor = torch.view_as_real(tensor.detach())
    code = types.get(str(tensor.dtype).rpartition(".")[2])
    if code is None:
        raise ValueError(f"tensor '{name}' has type {tensor.dtype}, which is not known here")
    if isinstance(tensor, np.ndarray):
        return Stored(code, tensor.shape, np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    import torch

    return Stored(code, tuple(tensor.shape), tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)


def write_weights(model: Any, file: "os.PathLike[str] | str", like: "os.PathLike[str] | str",
                  **options: Any) -> None:
    """Writes a PyTorch model's weights as the safetensors file that `train` and `evaluate` start from
    (weights=file): what the exported model `like` has. Options bind its dimensions, where it needs that."""
    tensors = dict(model.named_parameters())
    tensors.update(model.named_buffers())
    names = _exported_names(like, options)
    for name in names:
        if name not in tensors:
            raise ValueError(f"{like} is of another model: it has {name}, which the model lacks")
    write_stored(file, {name: stored_of(tensors[name], name) for name in names})


def tensors_of(model: Any) -> Dict[str, Any]:
    """A PyTorch model's parameters and buffers by all their names."""
    return {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers(remove_duplicate=False))}


def check_stored(model: Any, weights: Mapping[str, Stored], known: Iterable[str]) -> None:
    """Refuses weights that an exported model of this one, which has the `known`, cannot go on with."""
    tensors = tensors_of(model)
    known = set(known)
    if not weights:
        raise ValueError("there are no weights to load")
    for name, one in weights.items():
        if name not in known:
            raise ValueError(f"'{name}' is none of the program's weights: {', '.join(sorted(known)[:4])}{' ...' if len(known) > 4 else ''}")
        own = stored_of(tensors[name], name)
        if list(one.shape) != list(own.shape):
            raise ValueError(f"'{name}' has shape {list(one.shape)}, the model's {list(own.shape)}")
        if one.dtype != own.dtype and not {one.dtype, own.dtype} <= {"F32", "F16", "BF16"}:
            raise ValueError(f"'{name}' is {one.dtype}, the model's {own.dtype}")


def load_weights(model: Any, file: "os.PathLike[str] | str") -> List[str]:
    """Puts the weights of `file` into a PyTorch model by name, and returns the names of parameters
    that the file does not have: those the loss does not use, which training leaves alone. A weight
    of another model, or of another shape, is an error, and nothing is changed then."""
    import torch

    weights = read_weights(file)
    targets = tensors_of(model)
    owners = {name: id(one) for name, one in targets.items()}
    with torch.no_grad():  # complex numbers are pairs in a file
        targets = {name: torch.view_as_real(one) if one.is_complex() else one for name, one in targets.items()}
    unknown = [name for name in weights if name not in targets]
    if unknown or not weights:
        raise ValueError(f"{file} is of another model: it has {', '.join(unknown[:3]) or 'no tensors'}"
                         f"{' and more' if len(unknown) > 3 else ''}, which the model lacks")
    for name, value in weights.items():
        if tuple(targets[name].shape) != value.shape:
            raise ValueError(f"{file}: '{name}' has shape {list(value.shape)}, the model's {list(targets[name].shape)}")
    loaded = set()
    with torch.no_grad():
        for name, value in weights.items():
            targets[name].copy_(torch.from_numpy(value))
            loaded.add(owners[name])
    return [name for name, parameter in model.named_parameters() if id(parameter) not in loaded]
