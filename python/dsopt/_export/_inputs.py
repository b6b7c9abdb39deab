"""A model's inputs by name, and the scalar that is trained."""
from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ._refused import NoLoss, Refused


def named_inputs(model: Any, example_inputs: Any) -> Dict[str, Any]:
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


def split_inputs(inputs: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The tensors, each a copy of its own (exporters make one input of a tensor that is given twice), and what
    is fixed."""
    import torch

    tensors = {name: value.detach().clone() for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    fixed = {name: value for name, value in inputs.items() if name not in tensors}
    for name, value in fixed.items():
        inside = torch.utils._pytree.tree_leaves(value)
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


class Job:
    """A model, its example and its loss: what is to be exported."""

    def __init__(self, model: Any, example_inputs: Any, loss: Optional[Callable[..., Any]]):
        self.model, self.loss = model, loss
        self.tensors, self.fixed = split_inputs(named_inputs(model, example_inputs))
        self.names, self.values = list(self.tensors), list(self.tensors.values())
        self.left_out: List[str] = []  #: parameters that are not to be trained, though they could

    def module(self, mode: Any, model: Any = None) -> Any:
        """A module of the tensors in order whose output is the loss, with what `mode` says of buffers behind it;
        `mode` is active while it computes."""
        import torch

        names, fixed, loss = self.names, self.fixed, self.loss

        class WithLoss(torch.nn.Module):
            def __init__(self, inner: Any) -> None:
                super().__init__()
                self.model = inner

            def forward(self, *values: Any) -> Any:
                inputs = dict(zip(names, values))
                with mode:
                    if isinstance(mode, contextlib.nullcontext):
                        return pick_loss(self.model(**inputs, **fixed), inputs, loss)
                    mode.takes(values)
                    value = pick_loss(self.model(**inputs, **fixed), inputs, loss)
                    return (value, *buffers) if (buffers := mode.changed_buffers()) else value

        wrapped = WithLoss(self.model if model is None else model)
        wrapped.training = self.model.training  # as the model is, without touching its parts
        return wrapped


def shape_list(names: Sequence[str], dynamic_shapes: Any) -> Optional[List[Any]]:
    """What `dynamic_shapes` says of each input, in order."""
    if dynamic_shapes is None:
        return None
    return [dynamic_shapes[name] if isinstance(dynamic_shapes, Mapping) else one
            for name, one in zip(names, dynamic_shapes)]
