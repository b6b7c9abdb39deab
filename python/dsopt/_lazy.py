"""What a training loop computes of a batch, noted instead of computed: a model's outputs and the loss made of them."""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict, Mapping, Optional

import torch

from ._compat import changes_of, tree_leaves
from ._engine import Number
from ._export import named_inputs
from ._tools import DsoptError


class Pending(Number):
    """A number of a step: known once `source`, which is told whether to wait, gives it."""

    def __init__(self) -> None:
        self.source: Optional[Callable[[bool], Optional[float]]] = None
        super().__init__(self._get)

    def _get(self) -> float:
        if self.source is None:
            raise RuntimeError("a loss is known once its step is done, and optimizer.step() has not completed it (keep "
                               "loss.detach(), and read it where accelerator.sync_gradients)")
        value = self.source(True)
        assert value is not None
        return value

    def _ready(self) -> bool:
        if self._value is None and self.source is not None:
            self._value = self.source(False)
        return self._value is not None


class Value:
    """The outputs of a model in training, or what is made of them. The one that backward() gets is a number once its
    step is done; others never are."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]):
        self._function, self._args, self._kwargs = function, args, kwargs
        self._number: Optional[Pending] = None
        # What PyTorch would have computed at once must be what the program computes later.
        self._versions = [(one, changes_of(one)) for one in tree_leaves([list(args), dict(kwargs)])
                          if isinstance(one, torch.Tensor)]

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> "Value":
        return Value(function, args, kwargs or {})

    def _known(self, what: str) -> Pending:
        if self._number is None:
            raise RuntimeError(f"{what} of a value of a training step: of a compiled step the loss that backward() got is known, "
                               "and nothing else (after model.eval() all is)")
        return self._number

    def item(self) -> float:
        return self._known("item()").item()

    def tolist(self) -> float:
        return self.item()

    def __float__(self) -> float:
        return self.item()

    def __format__(self, form: str) -> str:
        return format(self._known("the text"), form)

    def __repr__(self) -> str:
        return repr(self._number) if self._number is not None else "Value(of a training step)"

    def __bool__(self) -> bool:
        return bool(self._known("the truth"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Value(_call, (self, *args), kwargs)

    def __getitem__(self, key: Any) -> "Value":
        return Value(operator.getitem, (self, key), {})

    def __iter__(self) -> Any:
        raise TypeError("outputs of a model in training are taken apart by name or by number (outputs.loss, outputs[0]): how "
                        "many there are is not known before they are computed")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        number = self.__dict__.get("_number")
        if number is not None and hasattr(number, name):
            return getattr(number, name)
        return Value(getattr, (self, name), {})


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _noted(name: str, swapped: bool) -> Callable[..., Any]:
    function = getattr(operator, name)

    def method(self: Value, *others: Any) -> Any:
        operands = (*others, self) if swapped else (self, *others)
        if self._number is not None:  # of a loss, numbers are computed
            return function(*(one._number if isinstance(one, Value) and one._number is not None else one for one in operands))
        return Value(function, operands, {})

    return method


for _name in ("add", "sub", "mul", "truediv", "pow", "matmul"):
    setattr(Value, f"__{_name}__", _noted(_name, False))
    setattr(Value, f"__r{_name}__", _noted(_name, True))
for _name in ("neg", "abs", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Value, f"__{_name}__", _noted(_name, False))
Value.__hash__ = object.__hash__  # type: ignore[method-assign]


class Expression:
    """How a loss is computed of a batch: a key that is equal for equal computations, its tensors by name, and the
    computation itself."""

    def __init__(self, loss: Value, model: torch.nn.Module):
        self._loss, self._model = Value(loss._function, loss._args, loss._kwargs), model
        self.inputs: Dict[str, torch.Tensor] = {}
        self._names: Dict[int, str] = {}
        self._seen: Dict[int, int] = {}
        self.key = self._walk(self._loss)

    def _walk(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Value):
            if id(value) in self._seen:
                return "seen", self._seen[id(value)]
            self._seen[id(value)] = len(self._seen)
            if any(changes_of(one) != version for one, version in value._versions):
                raise DsoptError("a tensor that a training step was given has been changed in place behind that (clone it before)")
            if value._function is self._model:
                # Inputs are called as forward calls them.
                names = {at: key for at, key in enumerate(named_inputs(self._model, value._args))} if value._args else {}
                parts = [self._walk(one, names.get(at, "")) for at, one in enumerate(value._args)]
            else:
                parts = [self._walk(one) for one in value._args]
            return value._function, parts, self._walk(value._kwargs)
        if isinstance(value, torch.Tensor):
            return self._tensor(value, name)
        if isinstance(value, Mapping) or hasattr(value, "keys"):
            return {key: self._walk(value[key], str(key)) for key in value.keys()}
        if isinstance(value, (list, tuple)):
            return type(value), [self._walk(one) for one in value]
        return value

    def _tensor(self, value: torch.Tensor, name: str) -> Any:
        if value.requires_grad:
            raise DsoptError("the loss is made of a tensor with a gradient that is no output of the prepared model, which "
                             "the compiled step cannot have (compute it in the model's forward)")
        if id(value) not in self._names:
            own = name or f"value_{len(self.inputs)}"
            while own in self.inputs:
                own += "_"
            self._names[id(value)], self.inputs[own] = own, value.detach().clone()  # a loop may fill it again
        return "tensor", self._names[id(value)], value.dtype, value.shape

    def compute(self, inputs: Mapping[str, Any]) -> Any:
        """The loss of other tensors."""
        done: Dict[int, Any] = {}

        def replay(value: Any) -> Any:
            if isinstance(value, Value):
                if id(value) not in done:
                    done[id(value)] = value._function(*replay(value._args), **replay(value._kwargs))
                return done[id(value)]
            if isinstance(value, torch.Tensor):
                return inputs.get(self._names[id(value)], value)
            if isinstance(value, dict):
                return {key: replay(one) for key, one in value.items()}
            if isinstance(value, Mapping) or hasattr(value, "keys"):
                return type(value)({key: replay(value[key]) for key in value.keys()})
            if isinstance(value, (list, tuple)):
                return type(value)(replay(one) for one in value) if not hasattr(value, "_fields") else type(value)(*map(replay, value))
            return value

        return replay(self._loss)
