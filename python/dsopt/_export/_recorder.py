"""Sees what a model calls while it is traced, and calls what can be exported with the same meaning.

Tracing follows values; of gradients it knows nothing. Here every call is seen with what
PyTorch knows of it: whether gradients are on, which tensors carry one, which memory is
shared. Where a gradient ends, an operation says so.
"""
from __future__ import annotations

import contextlib
import sys
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.functional
import torch.nn.functional
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from .._compat import (buffers_of, changes_of, derivatives_module, destination_of, reads_of, storage_key, tensor_module, tree_leaves,
                       tree_map)
from . import _operators as operators
from ._branches import Branches
from ._graph import is_the_models, place_of
from ._quantize import modules_instead, switches_of
from ._random import Draws, is_random
from ._refused import Decides, Refused
from ._rows import Follower, check_counts

_IN_PLACE = {f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
                                         "lshift", "rshift", "div")} | {"__setitem__"}
#: Methods by which Python decides by a tensor's values.
_DECIDES = {"__bool__", "item", "__int__", "__float__", "__index__", "tolist", "numpy", "is_nonzero", "equal", "allclose"}
#: Functions of which values decide how many elements they give.
_COUNTED = {"nonzero", "argwhere", "unique", "unique_consecutive", "masked_select"}
_OF_SIZES = {torch.Tensor.size, torch.Tensor.shape.__get__, torch.Tensor.numel, torch.numel, torch.Tensor.dim,
             torch.Tensor.__len__}
_NO_CHANGE = {"requires_grad_", "retain_grad", "share_memory_", "rename_"}
#: Methods of modules that move them, and where to.
_MOVES = {"float": torch.float32, "double": torch.float64, "half": torch.float16, "bfloat16": torch.bfloat16, "cpu": "cpu"}
#: Functions of PyTorch in Python that would hide from the recorder what they call.
_OPAQUE = (torch.nn.functional, torch.functional, tensor_module())
_CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")

#: What is called instead: rule(recorder, function, arguments, keywords).
Rule = Callable[["Recorder", Any, Tuple[Any, ...], Dict[str, Any]], Any]
RULES: Dict[Any, Rule] = {}


def rule(*functions: Any) -> Callable[[Rule], Rule]:
    """Registers what is called instead of these functions."""
    def register(call: Rule) -> Rule:
        for function in dict.fromkeys(functions):
            if RULES.setdefault(function, call) is not call:
                raise TypeError(f"{function} has two rules, {RULES[function].__name__} and {call.__name__}")
        return call
    return register


#: Functions of torch.nn.functional that the model calls instead, by name.
REPLACEMENTS: Dict[str, Callable[..., Any]] = {}


def replacement(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function in the place of one of torch.nn.functional."""
    def register(call: Callable[..., Any]) -> Callable[..., Any]:
        REPLACEMENTS[name] = call
        return call
    return register


def changes_in_place(function: Any) -> bool:
    """Whether a function changes its first argument."""
    name = getattr(function, "__name__", "")
    return name in _IN_PLACE or (name.endswith("_") and not name.endswith("__") and name not in _NO_CHANGE)


def decides(function: Any) -> bool:
    """Whether Python gets to know a value by a function."""
    return getattr(function, "__name__", "") in _DECIDES


def is_counted(function: Any, arguments: Any, keywords: Any) -> bool:
    """Whether values decide how many elements a function gives."""
    name = getattr(function, "__name__", "")
    if name == "__getitem__":
        return any(key.dtype == torch.bool and key.dim() for key in tensors_in(arguments[1]))
    return name in _COUNTED or (name == "where" and len(arguments) + len(keywords) == 1)


def storage(tensor: Any) -> int:
    """What tells the memory of a tensor."""
    return storage_key(tensor)


def tensors_in(values: Any) -> Iterator[Any]:
    return (leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor))


class Seeing(TorchFunctionMode):
    """A mode that sees what functions of PyTorch in Python call, too, and what Python decides by values."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model
        self.modules = {id(module): name for name, module in model.named_modules(remove_duplicate=False)}
        #: What was decided, by place.
        self.decided: Dict[str, List[Any]] = {}

    def __enter__(self) -> Any:
        self._replaced: List[Tuple[Any, str, Any]] = []
        for module in _OPAQUE:
            for name in _CHECKS:
                if hasattr(module, name):
                    self._replace(module, name, lambda *arguments: False)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        for owner, name, old in reversed(self._replaced):
            setattr(owner, name, old)
        super().__exit__(*error)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._replaced.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def takes(self, values: Any) -> None:
        """The model's inputs, before it is called."""

    def changed_buffers(self) -> List[Any]:
        """New values of buffers, after it was called."""
        return []

    def place(self) -> str:
        """Where the model calls: "model.py:42, module 'encoder.layers.0'"."""
        frame: Optional[FrameType] = sys._getframe(1)
        line, module = place_of(frame) or "forward", ""
        while frame is not None and not module:
            module = self.modules.get(id(frame.f_locals.get("self")), "")
            frame = frame.f_back
        return line + (f", module '{module}'" if module else "")

    def line(self) -> Tuple[Any, int]:
        """The innermost code of the model that is running, and its line."""
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None and not is_the_models(frame.f_code.co_filename):
            frame = frame.f_back
        return (frame.f_code, frame.f_lineno) if frame is not None else (None, 0)

    def decide(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """A value that leaves the graph."""
        value = function(*arguments, **keywords)
        self.decided.setdefault(self.place(), []).append(value)
        return value


class Recorder(Seeing):
    """Active while the model's forward runs."""

    writes = True  #: a file

    def __init__(self, model: Any, draws: Optional[Draws] = None, branches: Optional[Branches] = None):
        super().__init__(model)
        self.branches = branches or Branches()  #: functions in which a draw decides
        self.switches = switches_of(model)  #: of modules that quantize
        self.draws = draws or Draws()
        self.inside = 0  #: functions with a gradient of their own that are being computed
        self.calls = 0  #: of such functions
        self.changed: List[str] = []  #: buffers that forward changes
        self.counted = ""  #: where values first decided how many elements there are
        #: Which rows of which embeddings have no gradient: by parameter, what each look-up says.
        self.padding: Dict[str, List[Any]] = {}

    def __enter__(self) -> "Recorder":
        self._parameters = {id(tensor): name for name, tensor in self.model.named_parameters()}
        self._memory = {storage(tensor): name for name, tensor in self.model.named_parameters()}
        self._valued = WeakIdKeyDictionary()  # tensors that are made of values, not of sizes
        self._drawn = WeakIdKeyDictionary()  # tensors that are made of what forward draws
        self._severed: Dict[int, str] = {}  # memory whose other owner keeps what is changed here
        self._kept: List[Any] = []  # so that no other memory takes its number
        self._buffers = [(module, name, buffer, changes_of(buffer)) for module in self.model.modules()
                         for name, buffer in buffers_of(module).items() if buffer is not None]
        self.rows = Follower(self, WeakIdKeyDictionary())  # tensors with rows of which the data decide which there are
        self.draws.begin()
        super().__enter__()
        from ._functions import apply

        self._replace(torch.Tensor, "__format__", _formatted)
        self._replace(torch.Tensor, "register_hook", lambda tensor, hook: self._refuse_hook())
        self._replace(torch.autograd, "grad", lambda *arguments, **keywords: self._refuse_grad("torch.autograd.grad"))
        for name in ("_vjp_with_argnums", "grad_and_value_impl"):
            self._replace(derivatives_module(), name, lambda *arguments, **keywords: self._refuse_grad(
                "torch.func.grad, vjp, jacrev or hessian"))
        self._replace(torch.nn.Module, "to", lambda module, *arguments, **keywords: self._moved(module, arguments, keywords))
        for name, target in _MOVES.items():
            self._replace(torch.nn.Module, name, lambda module, target=target: self._moved(module, (target,), {}))
        for kind, call in modules_instead().items():
            self._replace(kind, "forward", call(self))
        self._replace(torch.autograd.Function, "apply", apply(self))
        for name, call in REPLACEMENTS.items():
            self._replace(torch.nn.functional, name, call)
        self.branches.begin(self)
        return self

    def takes(self, values: Any) -> None:
        """The model's inputs, before it is called."""
        self._valued.update({tensor: True for tensor in values})

    def own_parameter(self, tensor: Any) -> str:
        """The name of the parameter that a tensor is; else empty."""
        return self._parameters.get(id(tensor), "")

    def parameter_of(self, tensor: Any) -> str:
        """The name of a parameter, or of the one whose memory a tensor shares; else empty."""
        return self.own_parameter(tensor) or self._memory.get(storage(tensor), "")

    def __exit__(self, *error: Any) -> None:
        self.branches.end()
        super().__exit__(*error)
        for module, name, buffer, _ in self._buffers:
            buffers_of(module)[name] = buffer

    def changed_buffers(self) -> List[Any]:
        """The new values of buffers that forward has changed; `changed` are their names then."""
        self.changed, values = [], []
        for module, name, buffer, version in self._buffers:
            value, path = buffers_of(module).get(name), self.modules.get(id(module))
            if value is buffer and changes_of(buffer) == version:
                continue
            full = f"{path}.{name}" if path else name
            if value is None or value.shape != buffer.shape or value.dtype != buffer.dtype:
                raise Refused(f"forward makes another of buffer '{full}', expected {list(buffer.shape)} of "
                              f"{buffer.dtype} as it was")
            self.changed.append(full)
            values.append(operators.stop_gradient(value) if value.requires_grad else value.clone())
        return values

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """While a function with a gradient of its own computes: nothing in it has another."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    # Calls.

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = keywords or {}
        inside = list(tensors_in((arguments, keywords)))
        values = any(tensor in self._valued or id(tensor) in self._parameters for tensor in inside)
        drawn = is_random(function) or any(tensor in self._drawn for tensor in inside)
        if decides(function):
            return self._leave(function, arguments, keywords, values, drawn)
        if not self.counted and is_counted(function, arguments, keywords):
            self.counted = f"{self.place()}: {getattr(function, '__name__', 'a function')}"
        numbers = [tensor for tensor in inside if drawn and tensor.numel() == 1 and tensor in self._drawn] \
            if torch.jit.is_tracing() and not self.draws.keeps and function not in _OF_SIZES else []
        reads = [(count, count()) for count in map(reads_of, numbers)]
        result = self._call(function, arguments, keywords)
        for count, before in reads:
            if count() == before and next(tensors_in(result), None) is not None:
                raise Refused(f"{self.place()} gives {getattr(function, '__name__', 'a function')} a number that forward draws, which the file "
                              "would keep as it is: use operations that take a tensor there")
        if function not in _OF_SIZES:
            for tensor in tensors_in(result) if values or drawn else ():
                if values:
                    self._valued[tensor] = True
                if drawn:
                    self._drawn[tensor] = True
        return result

    def is_drawn(self, tensor: Any) -> bool:
        """Whether a tensor is made of what forward draws."""
        return tensor in self._drawn

    def decides_by_draw(self, tensor: Any) -> bool:
        """Whether a tensor is made of what forward draws alone."""
        return tensor in self._drawn and tensor not in self._valued

    def _leave(self, function: Any, arguments: Any, keywords: Any, values: bool, drawn: bool) -> Any:
        """A value that leaves the graph: what is drawn alone cannot, as a number it stays a tensor."""
        if drawn and function is torch.Tensor.item:
            number = arguments[0].reshape(())
            self._drawn[number] = True
            if values:
                self._valued[number] = True
            return number
        if drawn and not values:
            raise Decides(f"{self.place()}: Python decides by what forward draws, or computes with it, in a way that the file cannot have "
                          "(it has if and else, conditional expressions, and, or, not, and a choice of a list's element, in functions whose "
                          "source is there): compute both and take torch.where(draw < p, a, b), or index tensors by the draw", *self.line())
        if not torch.jit.is_tracing():
            return function(*arguments, **keywords)
        return self.decide(function, arguments, keywords) if values else function(*arguments, **keywords)

    def _call(self, function: Any, arguments: Any, keywords: Any) -> Any:
        inside = list(tensors_in((arguments, keywords)))
        check_counts(function, arguments, keywords)
        if is_random(function):
            if any(tensor in self.rows.tags for tensor in inside):
                raise self.rows.refusal(function, follows=False)
            return self.draws.drawn(function, arguments, keywords)
        if self._chooses(function, arguments, keywords):
            return self._stopping(self.rows.choose(function, arguments, keywords), inside)
        if any(tensor in self.rows.tags for tensor in inside):
            return self._stopping(self.rows.follow(function, self._plain, arguments, keywords, inside), inside)
        return self.rows.note(function, arguments, keywords, self._plain(function, arguments, keywords))

    def _chooses(self, function: Any, arguments: Any, keywords: Any) -> bool:
        """Whether a function gives elements that inputs, parameters or draws choose."""
        if not is_counted(function, arguments, keywords):
            return False
        by = arguments[1] if function.__name__ == "__getitem__" else (arguments, keywords)
        return any(one in self._valued or one in self._drawn or id(one) in self._parameters for one in tensors_in(by))

    def _plain(self, function: Any, arguments: Any, keywords: Any) -> Any:
        call = RULES.get(function)
        if not call and (changes_in_place(function) or keywords.get("out") is not None):
            return self.change(function, arguments, keywords)
        result = call(self, function, arguments, keywords) if call else function(*arguments, **keywords)
        return self._stopping(result, (arguments, keywords))

    def _stopping(self, result: Any, arguments: Any) -> Any:
        return self.stopped(result, arguments) if not torch.is_grad_enabled() and not self.inside else result

    def stopped(self, result: Any, arguments: Any) -> Any:
        """A result through which no gradient goes."""
        carriers = [tensor for tensor in tensors_in(arguments) if tensor.requires_grad]
        if not carriers or not any(tensor.is_floating_point() for tensor in tensors_in(result)):
            return result
        return tree_map(lambda value: self.stop(value, carriers), result)

    def stop(self, value: Any, carriers: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        stopped = operators.stop_gradient(value)
        if value in self.rows.tags:
            self.rows.tags[stopped] = self.rows.tags[value]
        for carrier in carriers:
            if storage(carrier) == storage(value):
                self.sever(stopped, self.parameter_of(carrier))
        return stopped

    def sever(self, tensor: Any, parameter: str = "") -> None:
        """Notes a tensor that shares its memory in PyTorch, and has its own here: it cannot be changed in place."""
        self._severed[storage(tensor)] = parameter
        self._kept.append(tensor)

    def change(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """A function that changes its first argument, or `out`."""
        targets = list(tensors_in(keywords["out"] if keywords.get("out") is not None else arguments[0]))
        for target in targets:
            self.check_change(target)
        if torch.is_grad_enabled() or self.inside:
            return function(*arguments, **keywords)

        def stop(value: Any) -> Any:
            carries = isinstance(value, torch.Tensor) and value.requires_grad
            return operators.stop_gradient(value) if carries else value

        target = targets[0] if targets else None
        if target is None or not target.requires_grad or keywords.get("out") is not None:
            return function(arguments[0], *tree_map(stop, tuple(arguments[1:])), **tree_map(stop, keywords))
        # The value changes, the gradient goes on as before.
        fresh = operators.stop_gradient(target)
        function(fresh, *tree_map(stop, tuple(arguments[1:])), **tree_map(stop, keywords))
        self.calls += 1
        gradient = operators.result_gradient(fresh, self.calls, 0)
        with torch.enable_grad():
            value = operators.given_gradient(fresh, [target], [gradient], self.calls, 0)
            return target.copy_(value)

    def check_change(self, target: Any) -> None:
        """Raises where the file cannot say that a tensor is changed in place."""
        severed = self._severed.get(storage(target))
        parameter = severed or self.parameter_of(target)
        if parameter and not (torch.is_grad_enabled() and target.requires_grad):  # else PyTorch refuses it
            raise Refused(f"{self.place()} changes parameter '{parameter}' in forward, which training alone may "
                          "change here: make it a buffer, or change it between steps")
        if severed is not None:
            raise Refused(f"{self.place()} changes in place what shares its memory with a tensor that has a gradient "
                          "(by detach(), .data, as_strided() or a view under no_grad()): clone it first")

    def _refuse_hook(self) -> None:
        raise Refused(f"{self.place()} registers a hook on a gradient, which no file can hold: write it as the "
                      "backward of a torch.autograd.Function")

    def _refuse_grad(self, what: str) -> None:
        raise Refused(f"{self.place()} calls {what} in forward, which exporters cannot trace: torch.func.jvp "
                      "works (a derivative along a direction, forwards); else write the derivative with operations of its own")

    def _moved(self, module: Any, arguments: Any, keywords: Any) -> Any:
        """A module that forward moves to where it is already, as routers of experts do."""
        device, dtype = destination_of(arguments, keywords)
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            kind = dtype if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()) else tensor.dtype
            if kind != tensor.dtype or (device is not None and torch.device(device).type != tensor.device.type):
                raise Refused(f"{self.place()} makes '{name}' of a {type(module).__name__} {kind} on {device or tensor.device} "
                              f"in forward, where it is {tensor.dtype} on {tensor.device}: do that before it is exported")
        return module


def _formatted(tensor: Any, kind: str) -> str:
    """f"{tensor}" of a number: of a traced one PyTorch gives its type's name."""
    value = tensor.item() if tensor.dim() == 0 else tensor
    return object.__format__(tensor, kind) if isinstance(value, torch.Tensor) else format(value, kind)


def detached(recorder: Recorder, tensor: Any) -> Any:
    """`tensor` without its gradient, in the same memory where PyTorch's is."""
    if tensor.requires_grad and not recorder.inside:
        return recorder.stop(tensor, [tensor])
    return torch.Tensor.detach(tensor)


@rule(torch.Tensor.detach, torch.detach, torch.Tensor.data.__get__)
def _detach(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    return detached(recorder, arguments[0])


@rule(torch.Tensor.data.__set__)
def _set_data(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    target, value = arguments
    recorder.check_change(target)
    return torch.Tensor.copy_(target, detached(recorder, value))


@rule(torch.Tensor.detach_, torch.detach_)
def _detach_in_place(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    if arguments[0].requires_grad:
        raise Refused(f"{recorder.place()} calls detach_(), which the file cannot say of a tensor that others read: "
                      "x = x.detach()")
    return function(*arguments, **keywords)
