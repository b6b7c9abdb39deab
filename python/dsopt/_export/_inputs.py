"""A model's inputs by name, and the scalar that is trained."""
from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from .._compat import tree_leaves, uncompiled
from ._refused import NoLoss, Refused


def _signature(model: Any) -> Mapping[str, inspect.Parameter]:
    """The arguments of a model's forward; of a compiled one's too."""
    return inspect.signature(uncompiled(model).forward).parameters


def named_inputs(model: Any, example_inputs: Any, loss: Optional[Callable[..., Any]] = None) -> Dict[str, Any]:
    """The inputs by name; a tuple takes the names of forward's arguments, and one element more, for a loss of its own,
    is `labels`."""
    if isinstance(example_inputs, Mapping) or hasattr(example_inputs, "keys"):
        return {name: example_inputs[name] for name in example_inputs.keys()}
    values = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    names = [name for name, parameter in _signature(model).items()
             if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]
    if loss is not None and len(names) == len(values) - 1 and "labels" not in names:
        names.append("labels")
    if len(names) < len(values):
        raise ValueError(f"{len(values)} example inputs, but forward takes {', '.join(names) or 'none by name'}; "
                         "give a dict of inputs by name")
    return dict(zip(names, values))


def taken_inputs(model: Any, names: Sequence[str], loss: Optional[Callable[..., Any]]) -> Dict[str, str]:
    """Which inputs forward takes, as which of its arguments. With a loss of its own that is what its signature has: by
    name, and what it cannot do without in the order of the inputs; the loss alone takes the others."""
    arguments = _signature(model)
    if any(one.kind is one.VAR_KEYWORD for one in arguments.values()):
        return {name: name for name in names}
    known = [name for name in names if name in arguments and arguments[name].kind is not inspect.Parameter.POSITIONAL_ONLY]
    others = [name for name in names if name not in known]
    lacking = [name for name, one in arguments.items() if one.default is one.empty and one.kind is not one.VAR_POSITIONAL
               and name not in known]
    if not lacking and not others:
        return {name: name for name in names}
    if loss is None or len(lacking) > len(others):
        raise Refused(f"forward takes {', '.join(arguments) or 'nothing'}, the example has {', '.join(names)}: name its "
                      "inputs as forward does" + ("" if loss else "; labels that it does not take go to "
                      "loss=lambda outputs, inputs: ..., where they are inputs[\"labels\"]"))
    return {**{name: name for name in known}, **dict(zip(lacking, others))}


def split_inputs(inputs: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The tensors, each a copy of its own (exporters make one input of a tensor that is given twice), and what
    is fixed."""
    import torch

    tensors = {name: value.detach().clone() for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    fixed = {name: value for name, value in inputs.items() if name not in tensors}
    for name, value in fixed.items():
        inside = tree_leaves(value)
        if any(isinstance(leaf, torch.Tensor) for leaf in inside):
            raise Refused(f"input '{name}' is a {type(value).__name__} that holds tensors, whose values the file "
                          "would keep: give each tensor as an input of its own")
    return tensors, fixed


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


def _part(outputs: Any, name: str) -> Tuple[Any, List[str]]:
    """What is of this name, or at this place, in a container, and what there is."""
    import torch

    if isinstance(outputs, Mapping):
        return outputs.get(name, outputs.get(int(name)) if name.isdigit() else None), [str(key) for key in outputs]
    if isinstance(outputs, (tuple, list)) and not hasattr(outputs, "_fields"):
        return outputs[int(name)] if name.isdigit() and int(name) < len(outputs) else None, [str(at) for at in range(len(outputs))]
    there = list(getattr(outputs, "_fields", [])) or list(getattr(outputs, "__dict__", {}))
    return getattr(outputs, name, None) if not isinstance(outputs, torch.Tensor) else None, there


def pick_outputs(outputs: Any, names: Sequence[str]) -> List[Any]:
    """The tensors of these names, or places in a tuple, among what forward returned."""
    import torch

    found = []
    for name in names:
        value, there = _part(outputs, name)
        if value is None and "." in name:
            value = outputs
            for step in name.split("."):
                value = _part(value, step)[0]
        if not isinstance(value, torch.Tensor):
            raise Refused(f"outputs has '{name}', but forward returns " + (f"{', '.join(there)}" if there else
                          f"a {type(outputs).__name__} without names") + ", expected one that is a tensor")
        # A name of its own, whatever it is a view of.
        found.append(value + 0 if value.dtype != torch.bool else value & True)
    return found


def output_name(name: str) -> str:
    """An output's name in the file."""
    return f"output{name}" if name.split(".")[0].isdigit() else name


class Job:
    """A model, its example, its loss and other outputs: what is to be exported."""

    def __init__(self, model: Any, example_inputs: Any, loss: Optional[Callable[..., Any]],
                 outputs: Sequence[str] = ()):
        self.model, self.loss = model, loss
        if isinstance(outputs, str):
            raise ValueError(f"outputs={outputs!r}: expected a list of names")
        self.outputs = list(outputs)
        self.output_names = [output_name(name) for name in self.outputs]  #: in the file
        named = named_inputs(model, example_inputs, loss)
        self.takes = taken_inputs(model, list(named), loss)  #: forward's arguments, and which inputs they are
        self.tensors, self.fixed = split_inputs(named)
        self.names, self.values = list(self.tensors), list(self.tensors.values())
        for name in self.outputs:
            if name in (*self.names, "loss") or self.outputs.count(name) > 1:
                raise Refused(f"outputs has '{name}', " + ("which it has twice" if self.outputs.count(name) > 1 else
                              "which is the loss's name" if name == "loss" else "which is an input's name"))
        self.unreached: List[str] = []  #: parameters that the compiler found no gradient of
        self.left_out: List[str] = []  #: parameters that are not to be trained, though they could
        self.code: List[Any] = []  #: pieces of code that forward runs, with their globals and functions
        from ._branches import Branches  # the package is read without PyTorch, too

        self.branches = Branches()  #: where a draw decides, as far as that is known
        self.draws = True  #: whether forward draws anything
        self.told: List[str] = []  #: what there is to warn about

    def outside(self, mode: Any) -> Any:
        """What makes draws of NumPy and Python PyTorch's, where `mode` sees these."""
        from ._outside import Outside

        return Outside(self.code, mode if getattr(mode, "writes", False) else None, self.draws)

    def module(self, mode: Any, model: Any = None, outside: Any = None) -> Any:
        """A module of the tensors in order whose output is the loss, with the other outputs, where `mode` writes a
        file, and what it says of buffers behind it; `mode` is active while it computes."""
        import torch

        self_, names, fixed, loss, takes = self, self.names, self.fixed, self.loss, self.takes
        positional = [name for name, one in _signature(self.model).items() if one.kind is one.POSITIONAL_ONLY]
        shown = self.outputs if getattr(mode, "writes", False) else []

        class WithLoss(torch.nn.Module):
            def __init__(self, inner: Any) -> None:
                super().__init__()
                self.model = inner

            def forward(self, *values: Any) -> Any:
                inputs = dict(zip(names, values))
                given = {**inputs, **fixed}
                by_name = {argument: given[name] for argument, name in takes.items()}
                by_place = [by_name.pop(name) for name in positional if name in by_name]
                with outside or self_.outside(mode), mode:
                    if isinstance(mode, contextlib.nullcontext):
                        return pick_loss(self.model(*by_place, **by_name), inputs, loss)
                    mode.takes(values)
                    outputs = self.model(*by_place, **by_name)
                    value = pick_loss(outputs, inputs, loss)
                    behind = (*pick_outputs(outputs, shown), *mode.changed_buffers())
                    return (value, *behind) if behind else value

        wrapped = WithLoss(self.model if model is None else model)
        wrapped.training = self.model.training  # as the model is, without touching its parts
        return wrapped


def shape_list(names: Sequence[str], dynamic_shapes: Any) -> Optional[List[Any]]:
    """What `dynamic_shapes` says of each input, in order."""
    if dynamic_shapes is None:
        return None
    return [dynamic_shapes[name] if isinstance(dynamic_shapes, Mapping) else one
            for name, one in zip(names, dynamic_shapes)]
