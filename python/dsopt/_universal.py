"""Checkpoints in DeepSpeed's universal layout: zero/NAME/{fp32,exp_avg,exp_avg_sq,step}.pt, whole tensors by
parameter. Both ways, with PyTorch's own files."""
from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
import warnings
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np

from ._weights import parameter_rows, read_weights
from ._xxh3 import chunk_hashes, xxh3

Path = Union["os.PathLike[str]", str]
#: What DeepSpeed calls a parameter's states, by what a checkpoint of Adam and AdamW calls them.
_STATES = {"m": "exp_avg", "v": "exp_avg_sq"}
_TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16",
          "i8": "int8", "ui8": "uint8", "i1": "bool"}


def _newest(checkpoint: Path) -> str:
    """A checkpoint's own folder, or the newest one in a folder of them."""
    given = os.fspath(checkpoint)
    if os.path.exists(os.path.join(given, "manifest.json")):
        return given
    steps = [name for name in (os.listdir(given) if os.path.isdir(given) else [])
             if re.fullmatch(r"step-\d{1,18}", name) and os.path.exists(os.path.join(given, name, "manifest.json"))]
    if not steps:
        raise ValueError(f"there is no checkpoint in {given}")
    return os.path.join(given, max(steps, key=lambda name: int(name[5:])))


def _manifest_text(manifest: Dict[str, Any]) -> str:
    """As it is hashed and written."""
    return json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _read_manifest(folder: str) -> Dict[str, Any]:
    path = os.path.join(folder, "manifest.json")
    with open(path, encoding="utf-8") as file:
        try:
            whole = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    manifest = whole.get("manifest") if isinstance(whole, dict) else None
    if not isinstance(manifest, dict) or "xxh3" not in whole:
        raise ValueError(f"{path} is damaged: it is no manifest")
    if xxh3(_manifest_text(manifest).encode()) != whole["xxh3"]:
        raise ValueError(f"{path} is damaged: its text is not what was written")
    if "format" not in manifest:
        raise ValueError(f"{path} is damaged: it says no format")
    if manifest["format"] != 1:
        raise ValueError(f"{path} has format {manifest['format']}, this dsopt reads format 1")
    if manifest["optimizer"] not in ("adam", "adamw"):
        raise ValueError(f"{path} is of {manifest['optimizer']}: the universal layout is read and written for adam and adamw")
    return manifest


def _read_tensors(folder: str, manifest: Dict[str, Any]) -> Dict[str, np.ndarray]:
    """All tensors of a checkpoint, by name, as its manifest says they are."""
    tensors: Dict[str, np.ndarray] = {}
    for file in sorted({row["file"] for row in manifest["tensors"]}):
        tensors.update(read_weights(os.path.join(folder, file)))
    for row in manifest["tensors"]:
        if row["name"] not in tensors or chunk_hashes(tensors[row["name"]]) != row["hashes"]:
            raise ValueError(f"tensor '{row['name']}' in {os.path.join(folder, row['file'])} has changed since the "
                             "checkpoint was written")
    return tensors


def _split(manifest: Dict[str, Any]) -> Dict[str, Dict[str, str]]:
    """Of each parameter the tensors that are its states, by DeepSpeed's names; none for what is not trained."""
    parameters = [row["name"] for row in manifest["tensors"] if row["file"].startswith("model")]
    states = {row["name"] for row in manifest["tensors"] if row["file"].startswith("optimizer")}
    taken = set(parameters)
    found: Dict[str, Dict[str, str]] = {}
    for parameter in parameters:
        found[parameter] = {}
        if f"{parameter}.steps" in states:
            raise ValueError(f"parameter '{parameter}' counts the steps that reach it, as a draw decides whether one does: the universal "
                             "layout has one count for all")
        for state, key in _STATES.items():
            name = f"{parameter}.{state}"
            while name in taken:  # a parameter may be called like another one's state
                name += "~"
            if name in states:
                found[parameter][key] = name
    return found


def _names(parameters: Dict[str, Any], like: Optional[Path]) -> Dict[str, Tuple[str, bool]]:
    """What each parameter is called outside, and whether it lies the other way round there."""
    rows = parameter_rows(like) if like is not None else []
    known = {row["onnx"]: (row["torch"], bool(row.get("transposed"))) for row in rows}
    names = {parameter: known.get(parameter, (parameter, False)) for parameter in parameters}
    if like is not None and not any(parameter in known for parameter in parameters):
        raise ValueError(f"{os.fspath(like)} is of another model: it has none of the checkpoint's parameters")
    for name, _ in names.values():
        if "/" in name or name in ("", ".", ".."):
            raise ValueError(f"'{name}' cannot be the name of a folder; like=MODEL.onnx has the names of PyTorch")
    return names


def export_universal(checkpoint: Path, folder: Path, like: Optional[Path] = None) -> None:
    """Writes a checkpoint (or the newest one of a folder) into `folder` as DeepSpeed's universal layout has it.
    With the exported model `like`, parameters have their names and orientation in PyTorch. What is not trained has
    its value alone. Gradients that wait for their update (delayed_update) have no place there: they are left out."""
    import torch

    source = _newest(checkpoint)
    manifest = _read_manifest(source)
    if "pending" in manifest:
        warnings.warn(f"{source} has gradients that wait for their update; the universal layout has no place for them", stacklevel=2)
    parts = _split(manifest)
    names = _names(parts, like)
    tensors = _read_tensors(source, manifest)
    target = os.path.join(os.fspath(folder), "zero")
    if os.path.exists(target):
        raise ValueError(f"{target} is there already")
    os.makedirs(os.fspath(folder), exist_ok=True)
    draft = tempfile.mkdtemp(prefix="zero.", dir=os.fspath(folder))
    try:
        for parameter, states in parts.items():
            name, transposed = names[parameter]
            place = os.path.join(draft, name)
            os.mkdir(place)
            for key, tensor in {"fp32": parameter, **states}.items():
                value = tensors[tensor].T if transposed else tensors[tensor]
                torch.save({"param": torch.from_numpy(np.ascontiguousarray(value))}, os.path.join(place, f"{key}.pt"))
            if states:
                torch.save(torch.tensor(float(manifest["applied"])), os.path.join(place, "step.pt"))
        os.chmod(draft, 0o777 & ~_umask())
        os.rename(draft, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _load(path: str) -> Any:
    import torch

    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path} cannot be read as tensors alone: {error}") from error
    return value["param"] if isinstance(value, dict) and "param" in value else value


def _value(path: str, row: Dict[str, Any], transposed: bool) -> np.ndarray:
    """The tensor of a file in the form that the checkpoint has it in."""
    import torch

    value = _load(path)
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{path} holds no tensor")
    shape = row["shape"][::-1] if transposed else row["shape"]
    if list(value.shape) != shape and not (value.dim() == 1 and value.numel() == int(np.prod(shape))):
        raise ValueError(f"{path} has shape {list(value.shape)}, the model's {row['name']} {shape}")
    if row["type"] == "f32" and value.is_floating_point():
        value = value.float()
    array = value.reshape(shape).contiguous().numpy()
    if array.dtype.name != _TYPES.get(row["type"]):
        raise ValueError(f"{path} is of {value.dtype}, the model's {row['name']} of {row['type']}")
    return np.ascontiguousarray(array.T if transposed else array)


def _steps(source: str, names: List[str]) -> int:
    found = {}
    for name in names:
        path = os.path.join(source, name, "step.pt")
        if not os.path.exists(path):
            raise ValueError(f"{path} is not there: say after how many steps it was written (step=N)")
        found[float(_load(path))] = path
    if len(found) != 1 or not next(iter(found)).is_integer() or next(iter(found)) < 0:
        raise ValueError(f"the parameters have different numbers of steps behind them: {found}")
    return int(next(iter(found)))


def import_universal(source: Path, template: Path, folder: Path, like: Optional[Path] = None,
                     step: Optional[int] = None) -> str:
    """Makes a checkpoint that `resume=` takes out of a folder in DeepSpeed's universal layout, and returns its path
    below `folder`. `template` is any checkpoint of the model by dsopt (one step's will do): its layout of the batch
    and its options are taken, its values are not. `like` is the exported model, where parameters have PyTorch's
    names. Without `step` all parameters' step.pt say it."""
    base = _newest(template)
    manifest = _read_manifest(base)
    if "pending" in manifest:
        raise ValueError(f"{base} has gradients that wait for their update, which the universal layout has no place for: "
                         "expected a template without (of a step before delayed_update)")
    parts = _split(manifest)
    names = _names(parts, like)
    zero = os.path.join(os.fspath(source), "zero")
    if not os.path.isdir(zero):
        raise ValueError(f"{os.fspath(source)} has no folder zero: it is not in DeepSpeed's universal layout")
    files = {tensor: (os.path.join(zero, names[parameter][0], f"{key}.pt"), names[parameter][1])
             for parameter, states in parts.items() for key, tensor in {"fp32": parameter, **states}.items()}
    missing = [path for path, _ in files.values() if not os.path.exists(path)]
    if missing:
        raise ValueError(f"{missing[0]} is not there{f', nor are {len(missing) - 1} others' if missing[1:] else ''}")
    known = {name for name, _ in names.values()}
    unknown = sorted(name for name in os.listdir(zero) if os.path.isdir(os.path.join(zero, name)) and name not in known)
    if unknown:
        raise ValueError(f"{zero} is of another model: it has {', '.join(unknown[:3])}"
                         f"{' and more' if unknown[3:] else ''}, which the template lacks")
    trained = [names[parameter][0] for parameter, states in parts.items() if states]
    step = _steps(zero, trained) if step is None else step
    target = os.path.join(os.fspath(folder), f"step-{step:08d}")
    if os.path.exists(target):
        raise ValueError(f"{target} is there already")
    os.makedirs(os.fspath(folder), exist_ok=True)
    draft = tempfile.mkdtemp(prefix="import.", dir=os.fspath(folder))
    try:
        for file in {row["file"] for row in manifest["tensors"]}:
            shutil.copyfile(os.path.join(base, file), os.path.join(draft, file))
        for row in manifest["tensors"]:
            path, transposed = files[row["name"]]
            value = _value(path, row, transposed)
            with open(os.path.join(draft, row["file"]), "r+b") as out:
                out.seek(row["offset"])
                out.write(value.tobytes())
            row["hashes"] = chunk_hashes(value)
        manifest.update(step=step, applied=step, micro_batches=step * manifest["K"], run=secrets.token_hex(16))
        manifest.pop("parent", None)
        manifest.pop("ranks", None)
        body = _manifest_text(manifest)
        with open(os.path.join(draft, "manifest.json"), "w", encoding="utf-8") as out:
            out.write(f'{{"manifest":{body},"xxh3":"{xxh3(body.encode())}"}}\n')
        os.chmod(draft, 0o777 & ~_umask())
        os.rename(draft, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return target
