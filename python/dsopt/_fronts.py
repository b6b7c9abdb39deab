"""What the front ends of other libraries' loops share: batches by name, steps that are functions of them, and
learning rates that Python's schedulers set."""
from __future__ import annotations

import contextlib
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, Set, Tuple

import numpy as np
import torch

from ._export._optimizer import optimizer_options
from ._export._refused import Refused
from ._export._state import plain_copy
from ._tools import DsoptError

#: Options that a front end says itself.
OWN = ("lr", "lr_schedule", "lr_params", "warmup_steps", "steps", "epochs", "micro_batches", "micro_batch_size",
       "global_batch", "optimizer", "weight_decay", "betas", "eps", "momentum", "grad_clip", "log_every", "eval_data",
       "eval_every", "save_weights", "resume")


class Batch:
    """The form of a batch: nested containers of tensors, which get names, and of what is the same in all batches."""

    def __init__(self, example: Any):
        self.fixed: Dict[str, Any] = {}
        self.inputs: Dict[str, torch.Tensor] = {}  #: of the example, by name
        self._join = self._open(example, "")

    def _open(self, value: Any, name: str) -> Callable[[Mapping[str, Any]], Any]:
        if isinstance(value, (torch.Tensor, np.ndarray)):
            own = name or "batch"
            while own in self.inputs:
                own += "_"
            self.inputs[own] = torch.as_tensor(value)
            return lambda given: given[own]
        if isinstance(value, Mapping) or hasattr(value, "keys"):
            parts = {key: self._open(value[key], self._inner(name, key)) for key in value.keys()}
            return lambda given: type(value)({key: part(given) for key, part in parts.items()})
        if isinstance(value, (list, tuple)):
            items = [self._open(one, self._inner(name or "batch", at)) for at, one in enumerate(value)]
            if hasattr(value, "_fields"):
                return lambda given: type(value)(*(part(given) for part in items))
            return lambda given: type(value)(part(given) for part in items)
        self.fixed[name] = value
        return lambda given: value

    @staticmethod
    def _inner(name: str, key: Any) -> str:
        own = re.sub(r"\W", "_", str(key))
        return f"{name}_{own}" if name else own

    def names(self, batch: Any) -> Dict[str, torch.Tensor]:
        """The tensors of another batch of this form."""
        other = Batch(batch)
        if other.inputs.keys() != self.inputs.keys() or other.fixed.keys() != self.fixed.keys():
            raise ValueError(f"a batch has {', '.join([*other.inputs, *other.fixed]) or 'nothing'}; the first has "
                             f"{', '.join([*self.inputs, *self.fixed])}")
        for name, value in other.fixed.items():
            if value is not self.fixed[name] and value != self.fixed[name]:
                raise ValueError(f"'{name}' of a batch is {value!r}, expected {self.fixed[name]!r} as in the first: what is "
                                 "no tensor is compiled in")
        return other.inputs

    def join(self, inputs: Mapping[str, Any]) -> Any:
        """A batch of these tensors."""
        return self._join(inputs)


def one_of(batches: List[Any]) -> Any:
    """One batch with the rows of all of them, which are of one form."""
    if len(batches) == 1:
        return batches[0]
    form = Batch(batches[0])
    parts = [form.inputs, *map(form.names, batches[1:])]
    joined = {}
    for name, value in form.inputs.items():
        values = [part[name] for part in parts]
        if not value.ndim and any(not torch.equal(value, one) for one in values):
            raise ValueError(f"'{name}' is a single number that differs between the batches of a step's ranks")
        joined[name] = torch.cat(values) if value.ndim else value
    return form.join(joined)


def step_of(model: torch.nn.Module, function: Callable[[Dict[str, Any]], Any]) -> torch.nn.Module:
    """The model, but that its forward is function(inputs): all else is the model's own."""

    class Step(torch.nn.Module):
        def __call__(self, **inputs: Any) -> Any:  # hooks are those of the model, where the function calls it
            return function(inputs)

        forward = __call__

    step = Step.__new__(Step)
    object.__setattr__(step, "__dict__", model.__dict__)
    return step


class Fixed:
    """What of a model is compiled in with its step: plain attributes that the step reads, and which parameters have a
    gradient."""

    def __init__(self, model: torch.nn.Module):
        self._model = model
        self._attributes: Dict[Tuple[str, str], Any] = {}
        self._trained = self._gradients()

    def _gradients(self) -> List[Tuple[str, bool]]:
        return [(name, one.requires_grad) for name, one in self._model.named_parameters()]

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """The step runs once here, so that it is seen what it reads."""
        read: Dict[int, Set[str]] = {}
        watched: Dict[type, type] = {}

        def watch(kind: Any) -> type:
            def read_one(self: Any, name: str) -> Any:
                read.setdefault(id(self), set()).add(name)
                return kind.__getattribute__(self, name)

            return type(kind.__name__, (kind,), {"__getattribute__": read_one, "__module__": kind.__module__})

        modules = [(path, one, type(one)) for path, one in self._model.named_modules() if not isinstance(one, torch.jit.ScriptModule)]
        try:
            for _, one, kind in modules:
                if kind not in watched:
                    watched[kind] = watch(kind)
                one.__class__ = watched[kind]
            yield
        finally:
            for _, one, kind in modules:
                one.__class__ = kind
        for path, one, _ in modules:
            for name in read.get(id(one), ()):
                if (value := plain_copy(vars(one).get(name))) is not None and name in vars(one):
                    self._attributes[path, name] = one, value

    def check(self) -> None:
        """An error where something of it has changed since."""
        for (path, name), (one, value) in self._attributes.items():
            now = vars(one).get(name)
            if plain_copy(now) != value:
                raise DsoptError(f"'{path + '.' if path else ''}{name}' of the model was {value[0]!r} in the first step and is {now!r} "
                                 "now: a step reads it, and what it computes is compiled once")
        if self._gradients() != self._trained:
            raise DsoptError("other parameters have requires_grad than in the first step: which are trained is compiled in")


class Rates:
    """The rates of a PyTorch optimizer whose groups schedulers change: the compiled step has their ratios, and
    is told one rate."""

    def __init__(self, optimizer: torch.optim.Optimizer):
        self._optimizer = optimizer
        self.groups = optimizer.param_groups
        self._start = [float(group.get("initial_lr", group["lr"])) for group in optimizer.param_groups]
        self._rest = self._others()

    def _others(self) -> List[Dict[str, Any]]:
        return [{name: value for name, value in group.items() if name not in ("params", "lr", "initial_lr", "max_lr", "min_lr")
                 and isinstance(value, (int, float, tuple, bool))} for group in self._optimizer.param_groups]

    def refused(self) -> List[str]:
        """Why the compiled step cannot be this optimizer's."""
        names = {id(one): str(at) for at, one in enumerate(one for group in self._optimizer.param_groups for one in group["params"])}
        try:
            with self.as_at_start():
                optimizer_options(self._optimizer, names)
        except Refused as error:
            return [str(error)]
        return []

    @contextlib.contextmanager
    def as_at_start(self) -> Iterator[None]:
        """The rates before any scheduler changed them, for a while."""
        groups = self._optimizer.param_groups
        now = [group["lr"] for group in groups]
        for group, rate in zip(groups, self._start):
            group["lr"] = rate
        try:
            yield
        finally:
            for group, rate in zip(groups, now):
                group["lr"] = rate

    def now(self) -> float:
        """The rate of the next step, of the group that has the largest."""
        if self._others() != self._rest:
            raise DsoptError("a scheduler has changed more of the optimizer than rates (momentum or betas, which are compiled "
                             "in: cycle_momentum=False leaves them)")
        rates = [float(group["lr"]) for group in self._optimizer.param_groups]
        largest = max(range(len(rates)), key=lambda at: self._start[at])
        if not self._start[largest]:
            return 0.0
        factor = rates[largest] / self._start[largest]
        for at, (rate, start) in enumerate(zip(rates, self._start)):
            if abs(rate - start * factor) > 1e-6 * max(rate, start * factor):
                raise DsoptError(f"parameter group {at} has the rate {rate}, expected {start * factor}: the ratios of rates "
                                 f"are compiled in, and group {largest} went from {self._start[largest]} to {rates[largest]}")
        return rates[largest]


def own_options(options: Mapping[str, Any], *more: str) -> List[str]:
    """The options that a front end says itself and that are given nevertheless."""
    return sorted(set(options) & {*OWN, *more})
