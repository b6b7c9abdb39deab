"""From a PyTorch model to an ONNX model that trains.

What an exporter writes by default loses parameters: it folds, transposes and merges
them. Here the settings keep every one, each is then looked for in the file, and the
file says what each initializer is called in PyTorch.
"""
from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._tools import need
from ._weights import METADATA_KEY

_INLINE_LIMIT = 1_500_000_000  # a protobuf of 2 GB cannot be written


@dataclass
class ExportReport:
    """What became of a model's parameters."""
    path: str
    parameters: int  #: initializers that are parameters or buffers of the model
    transposed: List[str]  #: stored the other way round
    unused: List[str]  #: the loss does not depend on them; they are not in the file
    inputs: List[str]


def _named_inputs(model: Any, example_inputs: Any) -> Dict[str, Any]:
    """The inputs by name; a tuple takes the names of forward's arguments."""
    if isinstance(example_inputs, Mapping) or hasattr(example_inputs, "keys"):
        return {name: example_inputs[name] for name in example_inputs.keys()}
    values = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    names = [name for name, parameter in inspect.signature(model.forward).parameters.items()
             if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]
    if len(names) < len(values):
        raise ValueError(f"{len(values)} example inputs, but forward takes {', '.join(names) or 'none by name'}; "
                         "give a dict of inputs by name")
    return dict(zip(names, values))


class NoLoss(ValueError):
    """A model that gives no scalar to train."""


def pick_loss(outputs: Any, inputs: Mapping[str, Any], loss: Optional[Callable[..., Any]]) -> Any:
    """The scalar to train: what `loss(outputs, inputs)` computes, or the outputs' own."""
    import torch

    if loss is not None:
        value = loss(outputs, inputs)
    elif isinstance(outputs, torch.Tensor):
        value = outputs
    elif getattr(outputs, "loss", None) is not None:
        value = outputs.loss
    elif isinstance(outputs, Mapping) and "loss" in outputs:
        value = outputs["loss"]
    elif isinstance(outputs, (tuple, list)) and outputs:
        value = outputs[0]
    else:
        value = None
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise NoLoss("the model gives no scalar loss: it has to return one, or an output with .loss (give "
                         "labels among the inputs), or take loss=lambda outputs, inputs: ...")
    return value.reshape(())


def _with_loss(model: Any, names: Sequence[str], fixed: Mapping[str, Any], loss: Optional[Callable[..., Any]]) -> Any:
    import torch

    class WithLoss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: Any) -> Any:
            inputs = dict(zip(names, values))
            return pick_loss(self.model(**inputs, **fixed), inputs, loss)

    wrapped = WithLoss()
    wrapped.training = model.training  # as the model is, without touching its parts
    return wrapped


@contextlib.contextmanager
def _quiet(model: Any) -> Iterator[None]:
    """No cache of keys and values, which is no part of training, and no warnings of the exporter."""
    config = getattr(model, "config", None)
    cached = getattr(config, "use_cache", None)
    if cached:
        config.use_cache = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if cached:
            config.use_cache = cached


def _torch_tensors(model: Any) -> Dict[str, List[Tuple[str, Any]]]:
    """Parameters and buffers: by the name that state_dict and named_parameters use first, all names of
    that tensor with it."""
    groups: Dict[int, List[Tuple[str, Any]]] = {}
    for source in (model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False)):
        for name, tensor in source:
            groups.setdefault(id(tensor), []).append((name, tensor))
    return {names[0][0]: names for names in groups.values()}


def _array_of(tensor: Any) -> np.ndarray:
    value = tensor.detach().cpu()
    return value.float().numpy() if str(value.dtype) == "torch.bfloat16" else value.numpy()


def _match(model: Any, graph: Any, folder: str) -> Tuple[Dict[str, Tuple[str, bool]], List[str]]:
    """Initializer -> (PyTorch's name, whether transposed), and the parameters that are not there."""
    from onnx import numpy_helper

    initializers = {tensor.name: tensor for tensor in graph.initializer}
    values: Dict[str, np.ndarray] = {}

    def value_of(name: str) -> np.ndarray:
        if name not in values:
            values[name] = numpy_helper.to_array(initializers[name], base_dir=folder)
        return values[name]

    found: Dict[str, Tuple[str, bool]] = {}
    missing: List[Tuple[str, Any]] = []
    parameters = {name for name, _ in model.named_parameters()}
    for first, aliases in _torch_tensors(model).items():
        names = [f"{prefix}{name}" for name, _ in aliases for prefix in ("model.", "")]
        mine = [name for name in names if name in initializers and name not in found]
        for name in mine:
            found[name] = (first, False)
        if not mine and first in parameters:
            missing.append((first, aliases[0][1]))
    # Under a name of the exporter's own: the same value, perhaps the other way round.
    for first, tensor in list(missing):
        array = _array_of(tensor)
        for name, initializer in initializers.items():
            dims = list(initializer.dims)
            if name in found or sorted(dims) != sorted(array.shape) or array.size < 2:
                continue
            straight = dims == list(array.shape) and np.array_equal(value_of(name), array)
            turned = array.ndim == 2 and dims == list(array.shape)[::-1] and np.array_equal(value_of(name), array.T)
            if straight or turned:
                found[name] = (first, not straight)
                missing.remove((first, tensor))
                break
    return found, [name for name, _ in missing]


def _check_values(model: Any, graph: Any, found: Mapping[str, Tuple[str, bool]], folder: str) -> None:
    from onnx import numpy_helper

    tensors = dict(model.named_parameters())
    tensors.update(model.named_buffers())
    for initializer in graph.initializer:
        if initializer.name not in found:
            continue
        name, transposed = found[initializer.name]
        want = _array_of(tensors[name])
        got = numpy_helper.to_array(initializer, base_dir=folder).astype(want.dtype)
        if not np.array_equal(got, want.T if transposed else want, equal_nan=want.dtype.kind == "f"):
            raise RuntimeError(f"the exporter changed the value of parameter '{name}'")


def _unused(model: Any, wrapped: Any, values: Sequence[Any]) -> List[str]:
    """Parameters that the loss does not depend on, as PyTorch itself sees it."""
    import torch

    before = {name: parameter.grad for name, parameter in model.named_parameters()}
    state = torch.random.get_rng_state()
    for parameter in model.parameters():
        parameter.grad = None
    try:
        with torch.enable_grad():
            wrapped(*values).backward()
        return [name for name, parameter in model.named_parameters()
                if parameter.requires_grad and parameter.grad is None]
    finally:
        torch.random.set_rng_state(state)
        for name, parameter in model.named_parameters():
            parameter.grad = before[name]


def _rename(graph: Any, names: Mapping[str, str]) -> None:
    """Other names for values, wherever they stand."""
    def renamed(values: Any) -> None:
        for at, value in enumerate(values):
            if value in names:
                values[at] = names[value]

    for initializer in graph.initializer:
        initializer.name = names.get(initializer.name, initializer.name)
    for info in graph.value_info:
        info.name = names.get(info.name, info.name)
    for node in graph.node:
        renamed(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, names)


def _export_dynamo(wrapped: Any, values: List[Any], names: List[str], opset: int, dynamic_shapes: Any) -> Any:
    import torch

    shapes = None if dynamic_shapes is None else {"values": tuple(
        dynamic_shapes[name] if isinstance(dynamic_shapes, Mapping) else one
        for name, one in zip(names, dynamic_shapes))}
    return torch.onnx.export(wrapped, tuple(values), None, input_names=names, output_names=["loss"],
                             opset_version=opset, dynamo=True, optimize=False, dynamic_shapes=shapes,
                             verbose=False).model_proto


def _export_torchscript(wrapped: Any, values: List[Any], names: List[str], opset: int, dynamic_shapes: Any) -> Any:
    import onnx
    import torch

    if dynamic_shapes is not None:
        raise ValueError("dynamic_shapes is for the exporter dynamo")
    # Of a model in training it merges what is one tensor; else what is equal. Only the wrapper says so.
    wrapped.training = True
    buffer = io.BytesIO()
    torch.onnx.export(wrapped, tuple(values), buffer, input_names=names, output_names=["loss"], opset_version=opset,
                      dynamo=False, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    return onnx.load_from_string(buffer.getvalue())


_EXPORTERS = {"dynamo": _export_dynamo, "torchscript": _export_torchscript}


def export(model: Any, example_inputs: Any, path: "os.PathLike[str] | str", *,
           loss: Optional[Callable[[Any, Dict[str, Any]], Any]] = None, opset: int = 20,
           dynamic_shapes: Any = None, exporter: str = "dynamo") -> ExportReport:
    """Writes a PyTorch model and its loss as an ONNX model that dsopt trains.

    example_inputs  a dict of inputs by name (a tuple takes forward's names): one micro-batch. Its shapes are the
                    program's, unless `dynamic_shapes` (as torch.onnx.export takes them, one for each input) says more.
                    What is no tensor (use_cache=False) is fixed.
    loss            loss(outputs, inputs) -> scalar. Without it, forward has to return the loss, or an output with
                    `.loss`, as models of transformers do when they are given labels.

    exporter        PyTorch's: "dynamo", or "torchscript", its older one, for what the first cannot do.

    The model is exported in the mode it is in. Every parameter that the loss depends on is found again in the
    file, with its value and under PyTorch's name, or this raises: none is folded, merged or dropped.
    """
    need("torch", "onnx", "onnxscript")
    import onnx
    import torch

    if exporter not in _EXPORTERS:
        raise ValueError(f"exporter={exporter!r}: expected one of {', '.join(_EXPORTERS)}")
    path = os.fspath(path)
    inputs = _named_inputs(model, example_inputs)
    fixed = {name: value for name, value in inputs.items() if not isinstance(value, torch.Tensor)}
    names = [name for name in inputs if name not in fixed]
    values = [inputs[name] for name in names]
    wrapped = _with_loss(model, names, fixed, loss)
    with _quiet(model):
        try:
            proto = _EXPORTERS[exporter](wrapped, values, names, opset, dynamic_shapes)
        except Exception as error:
            cause: Optional[BaseException] = error
            while cause is not None and not isinstance(cause, NoLoss):
                cause = cause.__cause__
            if cause is not None:
                raise cause from None
            raise
    graph = proto.graph
    folder = os.path.dirname(os.path.abspath(path))
    found, missing = _match(model, graph, folder)
    unused: List[str] = []
    if missing:
        with _quiet(model):
            unused = _unused(model, wrapped, values)
        lost = [name for name in missing if name not in unused and dict(model.named_parameters())[name].requires_grad]
        if lost:
            raise RuntimeError(f"the exporter lost {len(lost)} parameters: {', '.join(lost[:5])}"
                               f"{' and more' if len(lost) > 5 else ''}; torch {torch.__version__}, opset {opset}")
    _check_values(model, graph, found, folder)
    kept_inputs = [value.name for value in graph.input]
    # PyTorch's own names, where they are free.
    taken = {initializer.name for initializer in graph.initializer} | set(kept_inputs)
    taken |= {output for node in graph.node for output in node.output}
    new = {old: name for old, (name, _) in found.items() if old != name and name not in taken}
    new = {old: name for old, name in new.items() if list(new.values()).count(name) == 1}
    _rename(graph, new)
    rows = [{"onnx": new.get(old, old), "torch": name, **({"transposed": True} if transposed else {})}
            for old, (name, transposed) in sorted(found.items())]
    onnx.helper.set_model_props(proto, {METADATA_KEY: json.dumps(rows)})
    # Exporters leave stack traces of the machine they ran on.
    for node in graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    large = sum(len(initializer.raw_data) for initializer in graph.initializer) > _INLINE_LIMIT
    for old in (path, path + ".data"):
        if os.path.exists(old):
            os.remove(old)
    onnx.save(proto, path, save_as_external_data=large, location=os.path.basename(path) + ".data")
    unseen = [name for name in names if name not in kept_inputs]
    if unseen:
        warnings.warn(f"the loss does not depend on the inputs {', '.join(unseen)}: they are not in {path}")
    normalizes = any(isinstance(module, torch.nn.modules.batchnorm._BatchNorm) for module in model.modules())
    if normalizes and model.training and exporter == "dynamo":
        warnings.warn("PyTorch's exporter writes batch normalization in its inference form; "
                      "batchnorm=\"train\" trains it")
    return ExportReport(path, len(found), [name for _, (name, turned) in found.items() if turned],
                        [name for name in missing if name in unused], kept_inputs)
