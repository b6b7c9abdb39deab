"""Hugging Face's accelerate over dsopt: a script for it changes its import.

    from dsopt.accelerate import Accelerator
    accelerator = Accelerator(dp=2, zero=2)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

One process feeds all ranks: batches of the loader go to them in turn, and dp times as many as on one process of accelerate
make a step. In training, what the model gives and what the script makes of it is noted, not computed; the first step
compiles the loss that backward() got, with all batches of a step. docs/Accelerate.md says what is taken over and what is refused.
"""
from __future__ import annotations

import atexit
import builtins
import contextlib
import functools
import itertools
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from ._compat import note_step, scheduler_steps, skip_scheduler_step
from ._engine import Engine, Number
from ._export._settings import exporting
from ._fronts import Fixed, Rates, own_options, step_of
from ._lazy import Expression, Pending, Value
from ._tools import DsoptError

__all__ = ["Accelerator"]

#: Arguments of accelerate that have no counterpart, with the value that asks for nothing.
_WITHOUT = {"split_batches": False, "deepspeed_plugin": None, "deepspeed_plugins": None, "fsdp_plugin": None, "torch_tp_plugin": None,
            "megatron_lm_plugin": None, "rng_types": None, "log_with": None, "gradient_accumulation_plugin": None,
            "kwargs_handlers": None, "dynamo_backend": None, "dynamo_plugin": None, "parallelism_config": None,
            "dataloader_config": None, "project_config": None}


class _Model:
    """A prepared model: notes its calls in training, and computes them with the weights of the steps so far else."""

    def __init__(self, accelerator: "Accelerator", module: torch.nn.Module):
        self.__dict__.update(_accelerator=accelerator, module=module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.module.training and torch.is_grad_enabled():
            return Value(self.module, args, kwargs)
        self._accelerator._bring_home()
        return self.module(*args, **kwargs)

    forward = __call__

    def train(self, mode: bool = True) -> "_Model":
        self.module.train(mode)
        return self

    def eval(self) -> "_Model":
        return self.train(False)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._accelerator._bring_home()
        return self.module.state_dict(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.module, name, value)


class _Optimizer(torch.optim.Optimizer):
    """A prepared optimizer: its rates are PyTorch's, its steps the program's."""

    def __init__(self, accelerator: "Accelerator", optimizer: torch.optim.Optimizer):
        self._accelerator, self.optimizer = accelerator, optimizer
        self.defaults = optimizer.defaults

    param_groups = property(lambda self: self.optimizer.param_groups)
    state = property(lambda self: self.optimizer.state)
    step_was_skipped = False

    def step(self, closure: Any = None) -> None:
        if closure is not None:
            raise DsoptError("dsopt.accelerate does not have: optimizer.step(closure)")
        note_step(self.optimizer)
        self._accelerator._step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        pass  # of each step only

    def state_dict(self) -> Any:
        raise DsoptError("dsopt.accelerate does not have: optimizer.state_dict() (save_state() writes the optimizer's state)")

    def load_state_dict(self, state: Any) -> None:
        raise DsoptError("dsopt.accelerate does not have: optimizer.load_state_dict() (load_state() goes on from save_state())")

    def __repr__(self) -> str:
        return repr(self.optimizer)


class _Scheduler:
    """A prepared scheduler: steps as often as accelerate's does."""

    def __init__(self, accelerator: "Accelerator", scheduler: Any):
        self._accelerator, self.scheduler = accelerator, scheduler

    def step(self, *args: Any, **kwargs: Any) -> None:
        accelerator, with_optimizer = self._accelerator, self._accelerator._with_optimizer
        if not accelerator._stepped:
            if with_optimizer and accelerator._batches and accelerator._batches % accelerator.num_processes == 0:
                skip_scheduler_step(self.scheduler)
            return
        for _ in range(accelerator.num_processes if with_optimizer else 1):
            if not hasattr(self.scheduler, "total_steps") or scheduler_steps(self.scheduler) <= self.scheduler.total_steps:
                self.scheduler.step(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scheduler, name)


class _Loader:
    """A prepared loader, which knows whether a batch is its last."""

    def __init__(self, accelerator: "Accelerator", loader: Any):
        self._accelerator, self.loader = accelerator, loader
        self.end_of_dataloader = False

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        before, self.end_of_dataloader = self._accelerator._active, False
        self._accelerator._active = self
        items, nothing = iter(self.loader), object()
        try:
            item = next(items, nothing)
            while item is not nothing:
                following = next(items, nothing)
                self.end_of_dataloader = following is nothing
                yield item
                item = following
        finally:
            self._accelerator._active = before

    def set_epoch(self, epoch: int) -> None:
        one: Any
        for one in (self.loader, getattr(self.loader, "sampler", None), getattr(self.loader, "dataset", None)):
            if hasattr(one, "set_epoch"):
                one.set_epoch(epoch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


class Accelerator:
    """accelerate's Accelerator. Keywords that it does not know are dsopt's options: dp=2 (ranks; what accelerate calls
    processes), zero=2, pp=2, recompute="full", path="model.onnx" (where the exported model is kept)."""

    def __init__(self, device_placement: bool = True, *, mixed_precision: Optional[str] = None, gradient_accumulation_steps: int = 1,
                 cpu: bool = True, project_dir: "Optional[os.PathLike[str] | str]" = None, step_scheduler_with_optimizer: bool = True,
                 path: "Optional[os.PathLike[str] | str]" = None, **options: Any):
        found = [f"{name}=" for name, without in _WITHOUT.items() if options.pop(name, without) != without]
        if mixed_precision not in (None, "no", "bf16"):
            found.append(f"mixed_precision='{mixed_precision}' (it has no and bf16)")
        if own := own_options(options):
            found.append(f"the options {', '.join(own)} (the optimizer, the loader and the loop say them)")
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            found.append("several Python processes (start it with python; dp= says how many ranks there are)")
        if found:
            raise DsoptError("dsopt.accelerate.Accelerator does not have: " + "; ".join(found))
        self.num_processes = int(options.pop("dp", None) or 1)
        self.gradient_accumulation_steps, self.project_dir = gradient_accumulation_steps, project_dir
        self.mixed_precision = mixed_precision or "no"
        self.sync_gradients = True
        self._with_optimizer = step_scheduler_with_optimizer
        self._options: Dict[str, Any] = {**({"precision": "bf16"} if self.mixed_precision == "bf16" else {}), **options}
        self._path = path
        self._model: Optional[_Model] = None
        self._optimizer: Optional[_Optimizer] = None
        self._schedulers: List[_Scheduler] = []
        self._active: Optional[_Loader] = None
        self._accumulates = False  # accumulate() says when a step is complete; else each dp-th optimizer.step() does
        self._batches = 0  # that accumulate() has seen, or calls of optimizer.step(), of a step
        self._stepped = True  # the latest optimizer.step() made one
        self._engine: Optional[Engine] = None
        self._first: Optional[Expression] = None
        self._losses: List[Tuple[Pending, Expression]] = []  # of the step under way
        self._clip = 0.0
        self._norms: List[Pending] = []
        self._opened = 0, 0.0  # losses of a step, and where it clips
        self._factor = 1.0
        atexit.register(self.free_memory)

    # What there is of processes: this one.

    device = torch.device("cpu")
    process_index = local_process_index = 0
    is_main_process = is_local_main_process = is_last_process = True
    optimizer_step_was_skipped = False

    @property
    def use_distributed(self) -> bool:
        return self.num_processes > 1

    print = staticmethod(builtins.print)

    def wait_for_everyone(self) -> None:
        pass

    def on_main_process(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    on_local_main_process = on_last_process = on_main_process

    def main_process_first(self) -> Any:
        return contextlib.nullcontext()

    local_main_process_first = main_process_first

    def gather(self, tensor: Any) -> Any:
        """What comes from all ranks: it is here already, as their batches come in turn."""
        return tensor._known("gather()") if isinstance(tensor, Value) else tensor

    def gather_for_metrics(self, input_data: Any, use_gather_object: bool = False) -> Any:
        return self.gather(input_data)

    def pad_across_processes(self, tensor: Any, dim: int = 0, pad_index: int = 0, pad_first: bool = False) -> Any:
        return tensor

    def reduce(self, tensor: Any, reduction: str = "sum", scale: float = 1.0) -> Any:
        return self.gather(tensor) * scale

    def autocast(self, autocast_handler: Any = None) -> Any:
        if self.mixed_precision == "bf16":
            return torch.autocast("cpu", torch.bfloat16)
        return contextlib.nullcontext()

    # Preparing.

    def prepare(self, *objects: Any, device_placement: Any = None) -> Any:
        """Models, optimizers, loaders and schedulers as the loop takes them; all else as it is."""
        prepared = [self._prepared(one) for one in objects]
        return prepared[0] if len(prepared) == 1 else tuple(prepared)

    prepare_model = prepare_optimizer = prepare_data_loader = prepare_scheduler = prepare

    def _prepared(self, one: Any) -> Any:
        if isinstance(one, torch.nn.Module):
            if self._model is not None:
                raise DsoptError("dsopt.accelerate does not have: several models (dsopt.in_turn joins engines that train in turn)")
            self._model = _Model(self, one)
            return self._model
        if isinstance(one, torch.optim.Optimizer) and not isinstance(one, _Optimizer):
            if self._optimizer is not None:
                raise DsoptError("dsopt.accelerate does not have: several optimizers (dsopt.in_turn joins engines that train in turn)")
            self._optimizer, self._rates = _Optimizer(self, one), Rates(one)
            if refused := self._rates.refused():
                raise DsoptError("dsopt.accelerate does not have: " + "; ".join(refused))
            return self._optimizer
        if isinstance(one, torch.utils.data.DataLoader):
            return _Loader(self, one)
        if hasattr(one, "get_last_lr") and hasattr(one, "step"):
            self._schedulers.append(_Scheduler(self, one))
            return self._schedulers[-1]
        return one

    def skip_first_batches(self, dataloader: Any, num_batches: int = 0) -> Any:
        return itertools.islice(dataloader, num_batches, None)

    # A step.

    @contextlib.contextmanager
    def accumulate(self, *models: Any) -> Iterator[None]:
        self._accumulates = True
        self._batches += 1
        at_end = self._active is not None and self._active.end_of_dataloader
        self.sync_gradients = at_end or self._batches == self.gradient_accumulation_steps * self.num_processes
        self._of_last = self._batches > (self.gradient_accumulation_steps - 1) * self.num_processes
        if self.sync_gradients:
            self._batches = 0
        yield

    @contextlib.contextmanager
    def no_sync(self, model: Any) -> Iterator[None]:
        yield

    def backward(self, loss: Any, **kwargs: Any) -> None:
        """Puts a loss that was made of the prepared model's outputs into the step."""
        if not isinstance(loss, Value) or loss._number is not None:
            raise RuntimeError(f"backward() takes a loss made of the outputs of the prepared model in training, once; got {loss!r}")
        assert self._model is not None
        expression = Expression(loss, self._model.module)
        self._first = self._first or expression
        if expression.key != self._first.key:
            raise DsoptError("a loss is computed otherwise than that of the first batch (other operations, shapes or numbers): "
                             "what a step computes is compiled once")
        loss._number = Pending()
        loss._args, loss._kwargs, loss._versions = (), {}, []  # the expression has them
        self._losses.append((loss._number, expression))

    def clip_grad_norm_(self, parameters: Any, max_norm: float, norm_type: float = 2) -> Number:
        """Clips in this step, as in all of them; the norm, once the step is done."""
        assert self._model is not None
        given = {id(one) for one in ([parameters] if isinstance(parameters, torch.Tensor) else parameters)}
        if norm_type != 2 or not given >= {id(one) for one in self._model.module.parameters() if one.requires_grad}:
            raise DsoptError("dsopt.accelerate does not have: clip_grad_norm_() of some parameters, or by another norm than 2")
        if self._accumulates and not self._of_last:
            raise DsoptError("dsopt.accelerate does not have: clip_grad_norm_() before a step is complete (guard it with "
                             "if accelerator.sync_gradients)")
        self._clip, norm = float(max_norm), Pending()
        self._norms.append(norm)
        return norm

    def clip_grad_value_(self, parameters: Any, clip_value: float) -> None:
        raise DsoptError("dsopt.accelerate does not have: clip_grad_value_()")

    def _open(self) -> None:
        """Compiles the first step."""
        assert self._model is not None and self._optimizer is not None and self._first is not None
        count, ranks = len(self._losses), self.num_processes
        refused = self._refused_data(count)
        if count % ranks:
            refused.append(f"{count} losses in a step, which {ranks} ranks cannot share")
        if refused:
            raise DsoptError("dsopt.accelerate does not have: " + "; ".join(refused))
        # The program's gradient is a mean over micro-batches, that of accelerate a mean over ranks of sums over
        # gradient_accumulation_steps.
        self._factor = count / (ranks * self.gradient_accumulation_steps)
        first, factor = self._first, self._factor

        def loss(inputs: Dict[str, Any]) -> Any:
            value = first.compute(inputs)
            return value if factor == 1 else value * factor

        self._fixed = Fixed(self._model.module)
        with exporting(self._model.module), torch.no_grad(), self._fixed.reading():
            loss(first.inputs)
        with self._rates.as_at_start():
            self._engine = Engine(step_of(self._model.module, loss), first.inputs, path=self._path, dp=ranks,
                                  micro_batches=count // ranks, lr_schedule="stream", grad_clip=self._clip, optimizer=self._optimizer.optimizer, **self._options)
        self._opened = count, self._clip

    def _refused_data(self, count: int) -> List[str]:
        loader = self._active.loader if self._active is not None else None
        found: List[str] = []
        if loader is None or isinstance(loader.dataset, torch.utils.data.IterableDataset):
            return found  # whose length nobody knows
        size, rows = loader.batch_size, len(loader.sampler)
        if size and not loader.drop_last and rows % size:
            found.append(f"a smaller last batch: the loader has {rows} rows, batches of {size} (drop_last=True leaves it out)")
        if size and len(loader) % count:
            whole = len(loader) // count * count
            found.append(f"a step of fewer batches: the loader has {len(loader)}, a step takes {count} (take {whole * size} rows)")
        return found

    def _step(self) -> None:
        """What optimizer.step() does: hands over the losses of a step, where it is complete."""
        if self._accumulates:
            self._stepped = self.sync_gradients
        else:
            self._batches = (self._batches + 1) % self.num_processes
            self._stepped = self._batches == 0
        if not self._stepped:
            return
        if not self._losses:
            raise RuntimeError("optimizer.step() without a loss that backward() got")
        if self._engine is None:
            self._open()
        engine = self._engine
        assert engine is not None
        self._fixed.check()
        if self._opened != (len(self._losses), self._clip):
            raise DsoptError(f"a step has {len(self._losses)} losses and clips at {self._clip}, expected {self._opened[0]} and "
                             f"{self._opened[1]} as in the first: what a step computes is compiled once")
        step = engine.whole_step([expression.inputs for _, expression in self._losses], self._rates.now())
        for at, (number, _) in enumerate(self._losses):
            number.source = functools.partial(self._loss_of, engine, step, at)
        for norm in self._norms:
            norm.source = functools.partial(self._norm_of, engine, step)
        self._losses, self._clip, self._norms = [], 0.0, []

    def _loss_of(self, engine: Engine, step: int, at: int, wait: bool) -> Optional[float]:
        value = engine.loss_of_one(step, at, wait)
        return None if value is None else value / self._factor

    @staticmethod
    def _norm_of(engine: Engine, step: int, wait: bool) -> Optional[float]:
        return None if engine.loss_of_one(step, 0, wait) is None else float(engine.metrics[step]["grad_norm"])

    # Weights and state.

    def _bring_home(self) -> None:
        if self._engine is not None:
            self._engine.bring_home()

    def unwrap_model(self, model: Any, keep_fp32_wrapper: bool = True, keep_torch_compile: bool = True) -> Any:
        """The model, with the weights of the steps so far."""
        self._bring_home()
        return model.module if isinstance(model, _Model) else model

    def get_state_dict(self, model: Any, unwrap: bool = True) -> Any:
        return self.unwrap_model(model).state_dict()

    def save(self, obj: Any, f: Any, safe_serialization: bool = False) -> None:
        torch.save(obj, f)

    def save_state(self, output_dir: "os.PathLike[str] | str") -> str:
        """Writes a checkpoint of the steps so far, and where schedulers are."""
        if self._engine is None:
            raise RuntimeError("there is nothing to save before the first step")
        path = self._engine.save_checkpoint(output_dir)
        torch.save([one.scheduler.state_dict() for one in self._schedulers], os.path.join(os.fspath(output_dir), "schedulers.pt"))
        return path

    def load_state(self, input_dir: "os.PathLike[str] | str") -> None:
        """Goes on from a checkpoint, before the first step; the loop hands over the batches behind it."""
        if self._engine is not None:
            raise DsoptError("dsopt.accelerate does not have: load_state() behind the first step")
        self._options["resume"] = os.fspath(input_dir)
        states = torch.load(os.path.join(os.fspath(input_dir), "schedulers.pt"), weights_only=False)
        for one, state in zip(self._schedulers, states):
            one.scheduler.load_state_dict(state)
        for group, rate in zip(self._rates.groups, self._schedulers[0].get_last_lr() if self._schedulers else ()):
            group["lr"] = rate

    def init_trackers(self, project_name: str, config: Any = None, init_kwargs: Any = None) -> None:
        pass  # log_with= is refused: there are none

    def log(self, values: Any, step: Any = None, log_kwargs: Any = None) -> None:
        pass

    def end_training(self) -> None:
        """Ends the run; the weights are in the model."""
        if self._engine is not None:
            self._engine.finish()

    def free_memory(self, *objects: Any) -> Any:
        """Ends the run at once."""
        if self._engine is not None:
            self._engine.close()
        return objects

    clear = free_memory
