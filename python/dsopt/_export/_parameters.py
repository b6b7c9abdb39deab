"""Which initializer is which tensor of the model, what it is, and under what name it goes."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np



@dataclass
class Found:
    """What an initializer is in PyTorch."""
    torch: str
    transposed: bool = False


def bits_of(tensor: Any) -> np.ndarray:
    """The bits of a tensor or an array, as unsigned integers of its shape; of complex numbers, of pairs."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().contiguous()
        tensor = tensor.view(tensor.real.dtype).reshape(*tensor.shape, 2) if tensor.is_complex() else tensor
        wide = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}[tensor.element_size()]
        import torch

        tensor = tensor.view(getattr(torch, wide)).numpy()
    return np.asarray(tensor).view(f"u{tensor.dtype.itemsize}")


def torch_tensors(model: Any) -> Dict[str, List[Tuple[str, Any]]]:
    """Parameters and buffers: by the name that state_dict and named_parameters use first, all names of
    that tensor with it."""
    groups: Dict[int, List[Tuple[str, Any]]] = {}
    for source in (model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False)):
        for name, tensor in source:
            groups.setdefault(id(tensor), []).append((name, tensor))
    return {names[0][0]: names for names in groups.values()}


def match(model: Any, graph: Any, folder: str, unused: Any) -> Tuple[Dict[str, Found], List[str]]:
    """What each initializer is, and the parameters that are not there. `unused()` names those that the loss
    does not depend on."""
    from onnx import numpy_helper

    initializers = {tensor.name: tensor for tensor in graph.initializer}
    found: Dict[str, Found] = {}
    missing: List[Tuple[str, Any]] = []
    parameters = {name for name, _ in model.named_parameters()}
    for first, aliases in torch_tensors(model).items():
        names = [f"{prefix}{name}" for name, _ in aliases for prefix in ("model.", "")]
        mine = [name for name in names if name in initializers and name not in found]
        found.update((name, Found(first)) for name in mine)
        if not mine and first in parameters:
            missing.append((first, aliases[0][1]))
    if not missing:
        return found, []
    # Under a name of the exporter's own: the same value, perhaps the other way round.
    left_out = set(unused())
    for first, tensor in [one for one in missing if one[0] not in left_out]:
        array = bits_of(tensor)
        for name, initializer in initializers.items():
            dims = list(initializer.dims)
            if name in found or array.size < 2 or sorted(dims) != sorted(array.shape):
                continue
            value = bits_of(numpy_helper.to_array(initializer, base_dir=folder))
            straight = dims == list(array.shape) and np.array_equal(value, array)
            turned = array.ndim == 2 and dims == list(array.shape)[::-1] and np.array_equal(value, array.T)
            if straight or turned:
                found[name] = Found(first, not straight)
                missing.remove((first, tensor))
                break
    return found, [name for name, _ in missing]


def check_values(model: Any, graph: Any, found: Mapping[str, Found], folder: str) -> None:
    """Raises where an initializer does not hold its tensor's value."""
    from onnx import numpy_helper

    tensors = dict(model.named_parameters())
    tensors.update(model.named_buffers())
    for initializer in graph.initializer:
        one = found.get(initializer.name)
        if one is None:
            continue
        want = bits_of(tensors[one.torch])
        got = bits_of(numpy_helper.to_array(initializer, base_dir=folder))
        if got.dtype != want.dtype or not np.array_equal(got, want.T if one.transposed else want):
            raise RuntimeError(f"the exporter changed the value of parameter '{one.torch}'")


def gradients_of(model: Any, loss: Callable[[], Any]) -> Tuple[Any, Dict[str, Any]]:
    """The loss, and its gradients by parameter, None where it does not depend on one; .grad stays as it is."""
    import torch

    before = {name: parameter.grad for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = None
    try:
        with torch.enable_grad():
            value = loss()
            if value.requires_grad:
                value.backward()
        def dense(gradient: Any) -> Any:
            return gradient.to_dense() if gradient is not None and gradient.is_sparse else gradient

        return value.detach(), {name: dense(parameter.grad) for name, parameter in model.named_parameters()
                                if parameter.requires_grad}
    finally:
        for name, parameter in model.named_parameters():
            parameter.grad = before[name]


def rename(graph: Any, names: Mapping[str, str]) -> None:
    """Other names for values, wherever they stand."""
    def renamed(values: Any) -> None:
        for at, value in enumerate(values):
            if value in names:
                values[at] = names[value]

    for initializer in graph.initializer:
        initializer.name = names.get(initializer.name, initializer.name)
    for info in [*graph.value_info, *graph.input, *graph.output]:
        info.name = names.get(info.name, info.name)
    for node in graph.node:
        renamed(node.input)
        renamed(node.output)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                rename(attribute.g, names)


def own_names(graph: Any, found: Mapping[str, Found]) -> Dict[str, str]:
    """PyTorch's own names for initializers, where they are free."""
    taken = {initializer.name for initializer in graph.initializer} | {value.name for value in graph.input}
    taken |= {output for node in graph.node for output in node.output}
    new = {old: one.torch for old, one in found.items() if old != one.torch and one.torch not in taken}
    return {old: name for old, name in new.items() if list(new.values()).count(name) == 1}


def rows_of(model: Any, found: Mapping[str, Found], new: Mapping[str, str]) -> List[Dict[str, Any]]:
    """What the file says of its initializers: of each one that has no row that it is a constant."""
    parameters = dict(model.named_parameters())
    rows = []
    for old, one in sorted(found.items()):
        row: Dict[str, Any] = {"onnx": new.get(old, old), "torch": one.torch}
        if one.transposed:
            row["transposed"] = True
        parameter: Optional[Any] = parameters.get(one.torch)
        row["kind"] = "buffer" if parameter is None else "parameter"
        if parameter is not None and not parameter.requires_grad:
            row["trainable"] = False
        rows.append(row)
    return rows
