"""Functions with a gradient of their own: torch.autograd.Function.

While the model is traced, backward is traced too, on tensors that stand for the
gradients of the results. In the graph it becomes the subgraph of one node.
"""
from __future__ import annotations

from typing import Any, Dict, List

import onnx
import torch

from . import _operators as operators
from ._refused import Refused


class Context:
    """What forward and backward of a function share."""

    def __init__(self, needs_input_grad: Any):
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: Any = ()
        self.dirty: Any = ()
        self.constant: List[int] = []

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        pass

    def mark_dirty(self, *tensors: Any) -> None:
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.constant = [id(tensor) for tensor in tensors]

    def set_materialize_grads(self, value: bool) -> None:
        pass


def apply(recorder: Any) -> Any:
    """torch.autograd.Function.apply, traced."""
    original = torch.autograd.Function.__dict__["apply"]

    @classmethod  # type: ignore[misc]
    def traced(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        if cls.__name__ == "CheckpointFunction" and cls.__module__.startswith("torch."):
            return _recompute(*arguments)
        if cls.__module__.startswith("torch."):
            return original.__get__(None, cls)(*arguments, **keywords)
        return _Call(recorder, cls, arguments).run()

    return traced


def _recompute(function: Any, preserve: Any, *arguments: Any) -> Any:
    """What a checkpoint computes again is what it computed; without an input that has a gradient it has none."""
    with torch.set_grad_enabled(torch.is_grad_enabled() and any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in arguments)):
        return function(*arguments)


class _Call:
    def __init__(self, recorder: Any, function: Any, arguments: Any):
        self.recorder, self.function, self.arguments = recorder, function, arguments
        self.needs = tuple(isinstance(value, torch.Tensor) and value.requires_grad for value in arguments)
        self.name = f"the torch.autograd.Function '{function.__name__}' at {recorder.place()}"
        recorder.calls += 1
        self.number = recorder.calls

    def run(self) -> Any:
        context = Context(self.needs)
        with torch.no_grad(), self.recorder.computing():
            result = self._forward(context)
        if context.dirty:
            raise Refused(f"{self.name} changes an input in place (mark_dirty): return a new tensor")
        if not any(self.needs) or not torch.is_grad_enabled():
            return result
        results = result if isinstance(result, tuple) else (result,)
        differentiable = [i for i, value in enumerate(results) if isinstance(value, torch.Tensor)
                          and value.is_floating_point() and id(value) not in context.constant]
        with torch.no_grad(), self.recorder.computing():
            gradients = self._backward(context, results, differentiable)
        inputs = [self.arguments[i] for i in gradients]
        for i in differentiable:
            value = operators.given_gradient(results[i], inputs, list(gradients.values()), self.number, i) \
                if inputs else operators.stop_gradient(results[i])
            results = (*results[:i], value, *results[i + 1:])
        return results if isinstance(result, tuple) else results[0]

    def _forward(self, context: Context) -> Any:
        if self.function.setup_context is torch.autograd.Function.setup_context:
            return self.function.forward(context, *self.arguments)
        result = self.function.forward(*self.arguments)
        self.function.setup_context(context, self.arguments, result)
        return result

    def _backward(self, context: Context, results: Any, differentiable: List[int]) -> Dict[int, Any]:
        """The gradients by argument."""
        given = [operators.result_gradient(value, self.number, i) if i in differentiable
                 else torch.zeros_like(value) if isinstance(value, torch.Tensor) else None
                 for i, value in enumerate(results)]
        try:
            found = self.function.backward(context, *given)
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"{self.name} has a backward that cannot be exported: {str(error).splitlines()[0]}; "
                          "write it with tensors alone, or detach what needs no gradient") from error
        found = found if isinstance(found, tuple) else (found,)
        gradients = {}
        for i, (value, gradient) in enumerate(zip(self.arguments, found)):
            if not self.needs[i] or gradient is None:
                continue
            gradients[i] = _summed_to(gradient, value.shape).to(value.dtype)
        return gradients


def _summed_to(gradient: Any, shape: Any) -> Any:
    """A gradient of a broadcast value as that of the value."""
    extra = gradient.dim() - len(shape)
    axes = [i for i in range(gradient.dim()) if i < extra or gradient.size(i) != shape[i - extra]]
    return gradient.sum(axes, keepdim=True).reshape(shape) if axes else gradient


def fold_backwards(graph: Any) -> None:
    """Makes one CustomGradient of the nodes of each call: what computes its gradients becomes its subgraph."""
    calls: Dict[int, List[Any]] = {}
    for node in graph.node:
        if node.domain == operators.DOMAIN and node.op_type == "GivenGradient":
            calls.setdefault(_attribute(node, "call"), []).append(node)
    for number, given in calls.items():
        _fold(graph, number, sorted(given, key=lambda node: _attribute(node, "index")))
    leftover = [node for node in graph.node if node.domain == operators.DOMAIN and node.op_type == "ResultGradient"]
    for node in leftover:
        graph.node.remove(node)


def _attribute(node: Any, name: str) -> int:
    return next(attribute.i for attribute in node.attribute if attribute.name == name)


def _fold(graph: Any, number: int, given: List[Any]) -> None:
    count = _attribute(given[0], "num_inputs")
    inputs, gradients = list(given[0].input[1:1 + count]), list(given[0].input[1 + count:])
    markers = [node for node in graph.node if node.domain == operators.DOMAIN and node.op_type == "ResultGradient"
               and _attribute(node, "call") == number]
    # What depends on the results' gradients, in order.
    inside: List[Any] = []
    made = {node.output[0] for node in markers}
    for node in graph.node:
        if any(name in made for name in node.input) and node not in given:
            inside.append(node)
            made.update(node.output)
    # A result that nothing reads still has its place, where backward reads its gradient.
    values = {_attribute(node, "index"): node.input[0] for node in [*markers, *given]}
    arguments = {i: f"{given[0].output[0]}/gradient{i}" for i in values}
    arguments.update((_attribute(node, "index"), node.output[0]) for node in markers)
    results = {i: f"{given[0].output[0]}/unread{i}" for i in values}
    results.update((_attribute(node, "index"), node.output[0]) for node in given)
    read = [name for node in inside for name in node.input] + gradients
    saved = [name for name in dict.fromkeys(read) if name and name not in made]
    order, empty = sorted(values), onnx.helper.make_empty_tensor_value_info
    backward = onnx.helper.make_graph(
        inside, "backward", [empty(name) for name in [*saved, *(arguments[i] for i in order)]],
        [empty(name) for name in gradients])
    node = onnx.helper.make_node(
        "CustomGradient", [*inputs, *(values[i] for i in order), *saved], [results[i] for i in order],
        domain=operators.DOMAIN, name=given[0].name, call=number, num_inputs=count, num_values=len(order), backward=backward)
    node.metadata_props.extend(given[0].metadata_props)
    graph.node.insert(list(graph.node).index(given[0]), node)
    for old in [*inside, *given, *markers]:
        graph.node.remove(old)
