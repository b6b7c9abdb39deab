"""Lightning's Trainer over dsopt: a strategy whose training step is the compiled program.

    trainer = lightning.Trainer(devices=2, strategy=dsopt.lightning.Strategy(zero=2), max_steps=1000)
    trainer.fit(model, loader)

Lightning's own loop calls it: epochs, loggers, callbacks, schedulers and validation are Lightning's. A device is
a data-parallel rank (devices=); one Python process feeds all of them. docs/Lightning.md says what is taken over and
what is refused.
"""
from __future__ import annotations

import importlib
import itertools
import os
import shutil
import sys
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from ._compat import (TRAINER_KEY, changes_of, detects_anomaly, forget_loaders, loader_of_rank, note_step, shares_data,
                      synchronizes_batchnorm, train_loaders)
from ._engine import Engine, Loss
from ._export import pick_loss
from ._export._settings import exporting
from ._fronts import Batch, Fixed, Rates, one_of, own_options, step_of
from ._tools import DsoptError

# The package that the script uses, where it has imported one.
_name = "pytorch_lightning" if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules else "lightning.pytorch"
try:
    _pl = importlib.import_module(_name)
except ImportError:
    _name = "pytorch_lightning"
    _pl = importlib.import_module(_name)
_is_overridden = importlib.import_module(_name + ".utilities.model_helpers").is_overridden
_takes = importlib.import_module(_name + ".utilities.signature_utils").is_param_in_hook_signature
_Base = importlib.import_module(_name + ".strategies").SingleDeviceStrategy

__all__ = ["Strategy"]

#: What a step in one program never calls, of a module and of callbacks.
_INSIDE = ("backward", "configure_gradient_clipping", "on_after_backward", "on_before_backward", "on_before_optimizer_step",
           "on_before_zero_grad", "optimizer_step", "optimizer_zero_grad")
_TRANSFERS = ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer")
#: What of a Trainer changes from step to step.
_MOVES = ("current_epoch", "global_step", "callback_metrics", "logged_metrics", "progress_bar_metrics", "is_last_batch", "fit_loop",
          "optimizers", "lr_scheduler_configs", "should_stop", "logger", "loggers")
#: Callbacks that change how steps are made, or weights behind them.
_CALLBACKS = {"GradientAccumulationScheduler", "StochasticWeightAveraging", "WeightAveraging"}


class _Ranks:
    """A loader of the batches that all ranks have at the same time, as one; reads `window` of them ahead. `place` says
    in which epoch training is and how many batches of it are behind it, which is the loader's state."""

    def __init__(self, loaders: List[Any], window: int, place: Callable[[], Tuple[int, int]]):
        self._loaders, self._window, self._place = loaders, window, place
        self._skipped = 0
        self.sampler = self  #: what Lightning tells the epoch
        self.ahead: List[Any] = []  #: batches of the step that the latest one is of

    def set_epoch(self, epoch: int) -> None:
        for loader in self._loaders:
            if hasattr(getattr(loader, "sampler", None), "set_epoch"):
                loader.sampler.set_epoch(epoch)

    def state_dict(self) -> Dict[str, int]:
        return {"batches": self._place()[1] % len(self)}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        self._skipped = state["batches"]
        self.set_epoch(self._place()[0])

    def __len__(self) -> int:
        return len(self._loaders[0])

    def __iter__(self) -> Iterator[Any]:
        self.ahead = []
        skipped, self._skipped = self._skipped, 0
        return self._read(skipped)

    def _read(self, skipped: int) -> Iterator[Any]:
        for batches in itertools.islice(zip(*self._loaders), skipped, None):
            self.ahead.append(one_of(list(batches)))
            if len(self.ahead) == self._window:
                yield from self.ahead
                self.ahead = []
        if self.ahead:
            raise DsoptError(f"the train loader ended after {len(self.ahead)} batches of a step, which takes {self._window} "
                             "(accumulate_grad_batches)")


class _Still:
    """The trainer while training_step is exported: what moves cannot be asked for."""

    def __init__(self, trainer: Any):
        self.__dict__["_trainer"] = trainer

    def __getattr__(self, name: str) -> Any:
        if name in _MOVES:
            raise DsoptError(f"training_step reads trainer.{name} (or self.{name}), which changes from step to step: what it "
                             "computes is compiled once")
        return getattr(self._trainer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise DsoptError(f"training_step sets trainer.{name}: it is compiled once, and no step runs it")


class _AnyNumber:
    """batch_idx while training_step is exported: it may be shown and not computed with."""

    def __str__(self) -> str:
        return "?"

    def __getattr__(self, name: str) -> Any:
        self._refuse()

    def _refuse(self, *_: Any) -> Any:
        raise DsoptError("training_step computes with batch_idx, which changes from step to step: what it computes is compiled once")


for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod",
                  "eq", "ne", "lt", "le", "gt", "ge", "int", "index", "float", "bool", "neg"):
    setattr(_AnyNumber, f"__{_operator}__", _AnyNumber._refuse)


class Strategy(_Base):  # type: ignore[misc,valid-type]
    """What Trainer(strategy=) takes. Options are dsopt's, as on the command line: zero=2, pp=2, recompute="full",
    log="run.jsonl", save="run", path="model.onnx" (where the exported model is kept)."""

    strategy_name = "dsopt"

    def __init__(self, *, path: "Optional[os.PathLike[str] | str]" = None, **options: Any):
        self.parallel_devices: Optional[List[torch.device]] = None  # Trainer sets it, from devices=
        self.num_nodes = 1
        super().__init__("cpu")
        self._path, self._options = path, options
        self._kept: Optional[tempfile.TemporaryDirectory[str]] = None  # with the program's state after fit
        self._kept_for: List[Tuple[int, int]] = []
        self._start()

    def _start(self) -> None:
        self._engine: Optional[Engine] = None
        self._ranks: Optional[_Ranks] = None
        self._losses: List[Loss] = []
        self._logs: List[Tuple[str, Dict[str, Any]]] = []
        self._saved: Optional[Dict[str, Any]] = None  # of the checkpoint that ckpt_path= names
        self._resumed: Optional[tempfile.TemporaryDirectory[str]] = None

    @property
    def world_size(self) -> int:
        """Data-parallel ranks; there is one process."""
        return len(self.parallel_devices or [0])

    @world_size.setter
    def world_size(self, value: int) -> None:
        pass  # of the base class, which has one

    # What it cannot do.

    def _refused(self, trainer: Any) -> List[str]:
        module = self.lightning_module
        found = []
        if self.parallel_devices and self.parallel_devices[0].type != "cpu":
            found.append(f"accelerator='{self.parallel_devices[0].type}' (accelerator='cpu' is where Python is; target= says where "
                         "the program runs)")
        if self.num_nodes != 1 or int(os.environ.get("WORLD_SIZE", "1")) > 1:
            found.append("num_nodes= and several Python processes (start it with python; devices= says how many ranks there are)")
        if trainer.precision not in ("32-true", "bf16-mixed"):
            found.append(f"precision='{trainer.precision}' (it has 32-true and bf16-mixed)")
        if synchronizes_batchnorm(_name, trainer):
            found.append("sync_batchnorm=True")
        algorithm = getattr(trainer.gradient_clip_algorithm, "value", "norm")
        if trainer.gradient_clip_val and algorithm != "norm":
            found.append(f"gradient_clip_algorithm='{algorithm}' (it has norm)")
        if detects_anomaly(_name, trainer):
            found.append("detect_anomaly=True")
        if trainer.ckpt_path and self._saved is None:
            found.append(f"ckpt_path={str(trainer.ckpt_path)!r}, in which is no state of the optimizer (it has checkpoints that were "
                         "written under this strategy, between steps or after fit; load_from_checkpoint takes weights alone)")
        if own := own_options(self._options, "dp"):
            found.append(f"the options {', '.join(own)} (devices= of Trainer, the optimizer and the loader say them)")
        if not module.automatic_optimization:
            found.append("automatic_optimization=False")
        if _takes(module.training_step, "dataloader_iter", explicit=True):
            found.append("training_step(dataloader_iter)")
        inside = [*_INSIDE, *(_TRANSFERS if trainer.accumulate_grad_batches > 1 else ())]
        for name in inside:
            if _is_overridden(name, module):
                found.append(f"{name}() of {type(module).__name__}")
            found += [f"{name}() of {type(one).__name__}" for one in trainer.callbacks
                      if hasattr(_pl.Callback, name) and _is_overridden(name, one)]
            if name in _TRANSFERS and trainer.datamodule is not None and _is_overridden(name, trainer.datamodule):
                found.append(f"{name}() of {type(trainer.datamodule).__name__}")
        for one in trainer.callbacks:
            if _CALLBACKS & {kind.__name__ for kind in type(one).__mro__}:
                found.append(f"the callback {type(one).__name__}")
        if len(self.optimizers) != 1:
            found.append(f"{len(self.optimizers)} optimizers")
        else:
            found += Rates(self.optimizers[0]).refused()
        return found + self._refused_data(trainer)

    def _refused_data(self, trainer: Any) -> List[str]:
        """What is wrong with the loader, which is made here."""
        self._wrong: List[str] = []
        trainer.fit_loop.setup_data()
        batches, window = trainer.fit_loop.max_batches, trainer.accumulate_grad_batches
        if window > 1 and train_loaders(_name, trainer) is not self._ranks:
            self._wrong.append("several train loaders with accumulate_grad_batches")
        whole = batches if trainer.max_steps < 0 else min(batches, trainer.max_steps * window)
        if batches != float("inf") and whole % window:
            self._wrong.append(f"a last step of fewer batches: a pass has {batches}, accumulate_grad_batches is {window} "
                               f"(limit_train_batches={batches // window * window} leaves them out)")
        return self._wrong

    # Setting up.

    def setup(self, trainer: Any) -> None:
        super().setup(trainer)
        if trainer.state.fn != "fit":
            return
        self._kept = None
        refused = self._refused(trainer)
        if refused:
            raise DsoptError("dsopt.lightning.Strategy does not have: " + "; ".join(dict.fromkeys(refused)))
        self._rates = Rates(self.optimizers[0])

    def process_dataloader(self, dataloader: Any) -> Any:
        trainer = self.lightning_module.trainer
        if trainer.state.fn != "fit" or not trainer.training:
            return dataloader
        ranks, loaders = self.world_size, [dataloader]
        is_loader = isinstance(dataloader, torch.utils.data.DataLoader) and \
            not isinstance(dataloader.dataset, torch.utils.data.IterableDataset)
        if ranks > 1:
            shares = is_loader and not isinstance(dataloader.sampler, torch.utils.data.DistributedSampler)
            if not shares or not shares_data(_name, trainer):
                self._wrong.append("a train loader that ranks cannot share (a DataLoader of a dataset with a length, without a "
                                   "DistributedSampler, and use_distributed_sampler=True)")
                return dataloader
            loaders = [loader_of_rank(_name, dataloader, trainer, ranks, rank) for rank in range(ranks)]
        if is_loader and dataloader.batch_size and not dataloader.drop_last:
            rows, size = len(loaders[0].sampler), dataloader.batch_size
            limit = trainer.limit_train_batches
            full = rows // size
            within = isinstance(limit, int) and limit <= full or 0 < trainer.max_steps * trainer.accumulate_grad_batches <= full
            if rows % size and not within:
                self._wrong.append(f"a smaller last batch: a rank has {rows} rows, batches of {size} (drop_last=True leaves it out)")
        progress = trainer.fit_loop
        self._ranks = _Ranks(loaders, trainer.accumulate_grad_batches, lambda: (
            progress.epoch_progress.current.processed, progress.epoch_loop.batch_progress.current.ready))
        return self._ranks

    def _open(self, batch: Any, more: Tuple[Any, ...]) -> None:
        """Exports training_step with one rank's rows of the first batch, and plans."""
        module, trainer = self.lightning_module, self.lightning_module.trainer
        whole = Batch(batch)
        example = {name: value[:len(value) // self.world_size] if value.ndim else value for name, value in whole.inputs.items()}
        self._batch = Batch(whole.join(example))
        logs: List[Tuple[str, Any, Dict[str, Any]]] = []

        def log(name: str, value: Any, *rest: Any, **given: Any) -> None:
            logs.append((name, value, {**dict(zip(("prog_bar", "logger", "on_step", "on_epoch"), rest)), **given}))

        def log_dict(values: Any, *rest: Any, **given: Any) -> None:
            for name, value in values.items():
                log(name, value, *rest, **given)

        def step(inputs: Dict[str, Any]) -> Any:
            return module.training_step(self._batch.join(inputs), *(_AnyNumber() for _ in more))

        self._fixed = Fixed(module)
        before = {name: vars(module).get(name) for name in (TRAINER_KEY, "log", "log_dict")}
        module.__dict__.update({TRAINER_KEY: _Still(trainer), "log": log, "log_dict": log_dict})
        try:
            with exporting(module), torch.enable_grad(), self._fixed.reading():
                outputs = step(self._batch.inputs)
                loss = pick_loss(outputs, {}, None).detach()
            self._logs = [(name, given) for name, value, given in logs if self._is_loss(value, loss)]
            others = [f"self.log('{name}')" for name, value, _ in logs if not self._is_loss(value, loss)]
            others += [f"'{name}' in what it returns" for name in outputs if name != "loss"] if isinstance(outputs, dict) else []
            if others:
                raise DsoptError(f"training_step gives {', '.join(others)}: of a compiled step the loss alone is known "
                                 "(validation_step may log anything)")
            options = {"seed": int(os.environ.get("PL_GLOBAL_SEED", 0)), **self._options}
            if trainer.precision == "bf16-mixed":
                options.setdefault("precision", "bf16")
            if self._saved is not None:
                options["resume"] = self._unpack(self._saved["files"])
            with self._rates.as_at_start():
                self._engine = Engine(step_of(module, step), self._batch.inputs, path=self._path, dp=self.world_size,
                                      micro_batches=trainer.accumulate_grad_batches, lr_schedule="stream",
                                      grad_clip=trainer.gradient_clip_val or 0, optimizer=self.optimizers[0], **options)
        finally:
            for name, value in before.items():
                module.__dict__.pop(name, None)
                if value is not None:
                    module.__dict__[name] = value

    @staticmethod
    def _is_loss(value: Any, loss: torch.Tensor) -> bool:
        if isinstance(value, torch.Tensor):
            return value.data_ptr() == loss.data_ptr()
        return isinstance(value, float) and value == float(loss)

    # A step.

    def training_step(self, batch: Any, *more: Any) -> torch.Tensor:
        """Of the first batch of a step: the whole step, as one program. Of each: its loss, the mean over ranks."""
        trainer = self.lightning_module.trainer
        if self._engine is None:
            self._open(batch, more)
        engine = self._engine
        assert engine is not None and self._ranks is not None
        if not self._losses:
            self._fixed.check()
            window = trainer.accumulate_grad_batches
            for one in [batch] if window == 1 else self._ranks.ahead:
                loss = engine(self._batch.names(one))
                self._losses.append(engine.backward(loss))
            engine.step(self._rates.now())
        value = torch.tensor(self._losses.pop(0).item())
        for name, given in self._logs:
            self.lightning_module.log(name, value, **given)
        return value

    def backward(self, closure_loss: torch.Tensor, optimizer: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        return closure_loss

    def optimizer_step(self, optimizer: Any, closure: Any, model: Any = None, **kwargs: Any) -> Any:
        note_step(optimizer)
        return closure()

    # Weights.

    def _bring_home(self) -> None:
        if self._engine is not None and self._engine.global_steps:
            self._engine.bring_home()

    def on_validation_start(self) -> None:
        self._bring_home()

    def lightning_module_state_dict(self) -> Dict[str, Any]:
        self._bring_home()
        return super().lightning_module_state_dict()

    # Checkpoints: Lightning's files, with one of dsopt's inside.

    def save_checkpoint(self, checkpoint: Dict[str, Any], filepath: Any, storage_options: Any = None) -> None:
        # The state of optimizers is the program's: what PyTorch's has is rates.
        kept = {name: value for name, value in checkpoint.items() if name not in ("optimizer_states", "lr_schedulers")}
        folder = self._state_now() if "optimizer_states" in checkpoint else None
        if folder is not None:
            kept["dsopt"] = {"optimizer_states": checkpoint["optimizer_states"], "lr_schedulers": checkpoint["lr_schedulers"],
                             "files": self._pack(folder)}
        super().save_checkpoint(kept, filepath, storage_options)

    def _state_now(self) -> Optional[str]:
        """The program's checkpoint of the steps so far: it has none within a step's batches, nor after fit where the
        module has other weights since."""
        engine = self._engine
        if engine is not None and engine._is_open:
            return engine.checkpoint_now() if engine.global_steps and not self._losses else None
        if self._kept is None or self._kept_for != self._marks():
            return None
        return os.path.join(self._kept.name, os.listdir(self._kept.name)[0])

    def _marks(self) -> List[Tuple[int, int]]:
        """What changes where the module's weights do."""
        return [(one.data_ptr(), changes_of(one)) for one in super().lightning_module_state_dict().values() if isinstance(one, torch.Tensor)]

    @staticmethod
    def _pack(folder: str) -> Dict[str, torch.Tensor]:
        return {name: torch.from_file(path, size=os.path.getsize(path), dtype=torch.uint8).clone()
                for name in sorted(os.listdir(folder)) if os.path.isfile(path := os.path.join(folder, name))}

    def _unpack(self, files: Dict[str, torch.Tensor]) -> str:
        self._resumed = tempfile.TemporaryDirectory(prefix="dsopt-lightning-")
        for name, value in files.items():
            with open(os.path.join(self._resumed.name, os.path.basename(name)), "wb") as file:
                file.write(value.numpy().data)
        return self._resumed.name

    def load_checkpoint(self, checkpoint_path: Any, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        loaded = super().load_checkpoint(checkpoint_path, *args, **kwargs)
        self._saved = loaded.pop("dsopt", None)
        if self._saved is not None:
            loaded.update(optimizer_states=self._saved["optimizer_states"], lr_schedulers=self._saved["lr_schedulers"])
        return loaded

    def load_optimizer_state_dict(self, checkpoint: Any) -> None:
        super().load_optimizer_state_dict(checkpoint)  # rates
        # The loader was made before it was known where it goes on.
        forget_loaders(_name, self.lightning_module.trainer)

    # The end.

    def on_train_end(self) -> None:
        engine = self._engine
        if engine is None:
            return
        keeps = engine._is_open and not self._losses
        if keeps:
            engine.bring_home()  # first: there may be no place for the rest
            self._kept = tempfile.TemporaryDirectory(prefix="dsopt-lightning-")
            shutil.move(engine.checkpoint_now(), self._kept.name)
        engine.finish(load=not keeps)
        self._kept_for = self._marks()

    def on_exception(self, exception: BaseException) -> None:
        if self._engine is not None:
            self._engine.close()

    def teardown(self) -> None:
        if self._engine is not None:
            self._engine.close()
        if self._resumed is not None:
            self._resumed.cleanup()
        self._start()
        super().teardown()

    @classmethod
    def register_strategies(cls, strategy_registry: Any) -> None:
        pass  # it is given as an object
