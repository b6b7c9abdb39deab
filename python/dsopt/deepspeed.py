"""DeepSpeed's initialize over dsopt's engine.

    from dsopt import deepspeed
    engine, optimizer, loader, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)

The first batch that the engine is called with is the example that the model is exported with, and each batch holds the
rows of all data-parallel ranks (dp=2 says how many there are): docs/FromDeepSpeed.md.
"""
from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._engine import Engine, Number
from ._export import named_inputs
from ._tools import DsoptError

__all__ = ["FirstBatchEngine", "initialize"]


class FirstBatchEngine(Engine):
    """An engine that exports and plans when its first batch comes; until then it knows no sizes."""

    def __init__(self, model: Any, config: Any, **options: Any):
        self.module, self._config, self._options = model, config, options
        self._result = None
        self._opened = False
        self.training = True

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and not self.__dict__.get("_opened", True):
            raise RuntimeError(f"engine.{name.lstrip('_')} is not known before the first batch")
        raise AttributeError(f"'Engine' object has no attribute '{name}'")

    def __call__(self, *args: Any, **kwargs: Any) -> Number:
        if not self._opened:
            training = self.training
            super().__init__(self.module, self._first(args, kwargs), self._config, **self._options)
            self._opened, self.training = True, training
        return super().__call__(*args, **kwargs)

    forward = __call__

    def _first(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
        """One rank's part of the batch."""
        first = args[0] if len(args) == 1 and hasattr(args[0], "keys") else args
        inputs = {**(named_inputs(self.module, first, self._options.get("loss")) if args else {}),
                  **kwargs}
        ranks = int(self._options.get("dp") or 1)
        found = {}
        for name, value in inputs.items():
            rows = value.shape[0] if getattr(value, "ndim", 0) else None
            if rows is not None and rows % ranks:
                raise ValueError(f"input '{name}' has {rows} rows, expected as many for each of {ranks} data-parallel ranks")
            found[name] = value if rows is None else value[:rows // ranks]
        return found

    @property
    def stopped(self) -> Optional[str]:
        return super().stopped if self._opened else None

    def parameters(self) -> Iterator[Any]:
        return super().parameters() if self._opened else self.module.parameters()

    def named_parameters(self) -> Iterator[Any]:
        return super().named_parameters() if self._opened else self.module.named_parameters()

    def finish(self, load: bool = True) -> Any:
        if not self._opened:
            raise DsoptError("no batch has come: nothing was trained")
        return super().finish(load)

    def close(self) -> None:
        if self._opened:
            super().close()


def _trained(model: Any, parameters: Any, optimizer: Any) -> Optional[List[Any]]:
    """The part of the model's parameters that is trained; None: all that have a gradient, or what an optimizer says."""
    if parameters is None:
        return None
    given: List[Any] = list(parameters)
    if any(isinstance(one, Mapping) for one in given):
        raise DsoptError("model_parameters has groups: give them as optimizer=torch.optim.AdamW(groups), which says what "
                         "becomes of them")
    own = {id(one) for one in model.parameters()}
    if not given or any(id(one) not in own for one in given):
        raise DsoptError("model_parameters are not the model's: expected all of model.parameters(), or some of them")
    if optimizer is not None:
        grouped = {id(one) for group in optimizer.param_groups for one in group["params"]}
        if any(id(one) not in grouped for one in given if one.requires_grad):
            raise DsoptError("model_parameters has parameters that no group of the optimizer has: expected the same in both")
        return None
    return given


def _rows(config: Any, ranks: int) -> int:
    """A rank's rows of a batch, as a configuration gives them."""
    if isinstance(config, (str, os.PathLike)):
        with open(config) as file:
            config = json.load(file)
    given = config if isinstance(config, Mapping) else {}
    rows = given.get("train_micro_batch_size_per_gpu")
    if isinstance(rows, int):
        return rows
    whole, steps = given.get("train_batch_size"), given.get("gradient_accumulation_steps", 1)
    if isinstance(whole, int) and isinstance(steps, int) and whole % (steps * ranks) == 0:
        return whole // (steps * ranks)
    raise DsoptError("training_data needs train_micro_batch_size_per_gpu, or a train_batch_size that divides by "
                     "gradient_accumulation_steps x dp")


def initialize(args: Any = None, model: Any = None, optimizer: Any = None, model_parameters: Any = None,
               training_data: Any = None, lr_scheduler: Any = None, distributed_port: Any = None, mpu: Any = None,
               dist_init_required: Any = None, collate_fn: Any = None, config: Any = None, mesh_param: Any = None,
               config_params: Any = None, **options: Any) -> "Tuple[FirstBatchEngine, Any, Any, None]":
    """deepspeed.initialize: an engine, the optimizer that was given, a loader of training_data, and None.

    optimizer   a new one of torch.optim: its rates and groups are taken, where the configuration has none
    model_parameters   all of the model's or some of them; others are not trained
    options     as on the command line (dp=2, pp=2, save="run"), callbacks (docs/Watching.md), loss= and path=
    """
    for name, value, instead in (("lr_scheduler", lr_scheduler, "the configuration's scheduler, or lr_schedule="),
                                 ("mpu", mpu, "pp="), ("mesh_param", mesh_param, "dp= and sp=")):
        if value is not None:
            raise DsoptError(f"initialize({name}=) is not available: {instead} does it")
    if model is None:
        raise DsoptError("initialize needs model=")
    config = config if config is not None else config_params
    config = config if config is not None else getattr(args, "deepspeed_config", None)
    trained = _trained(model, model_parameters, optimizer)
    loader = None
    if training_data is not None:
        import torch

        ranks = int(options.get("dp") or 1)
        loader = torch.utils.data.DataLoader(training_data, batch_size=_rows(config, ranks) * ranks, shuffle=True,
                                             drop_last=True, collate_fn=collate_fn)
    if optimizer is not None:
        options["optimizer"] = optimizer
    return FirstBatchEngine(model, config, parameters=trained, **options), optimizer, loader, None
