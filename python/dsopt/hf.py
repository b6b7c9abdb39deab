"""transformers' Trainer over dsopt: the same arguments, datasets and logs, trained by the compiled program.

    trainer = dsopt.hf.Trainer(model=model, args=args, train_dataset=data, dp=2, zero=2)
    trainer.train()

A device of `per_device_train_batch_size` is a data-parallel rank (dp=); one Python process feeds all of them.
Data, its order, parameter groups and logs are made by transformers' own code; docs/HuggingFace.md says what
is taken over and what is refused.
"""
from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
import warnings
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
import transformers
from transformers.trainer_utils import TrainOutput, speed_metrics

from ._callbacks import Callback
from ._compat import compute_steps, items_in, use_one_device
from ._export import export
from ._hf_best import BestModel
from ._hf_evaluation import Batch, Evaluation
from ._run import Run, train as run_to_end
from ._tools import DsoptError, given_checkpoint
from ._weights import load_weights, write_weights

__all__ = ["Trainer"]

_ITEMS = "num_items_in_batch"  # what models of transformers divide a summed loss by
_SCHEDULES = {"linear": "linear", "cosine": "cosine", "constant": "constant", "constant_with_warmup": "constant",
              "cosine_with_min_lr": "cosine"}
_OPTIMIZERS = ("adamw_torch", "adamw_torch_fused", "sgd", "adagrad")
#: Arguments that change what is trained or left behind, and have no counterpart: with the value that asks for nothing.
_WITHOUT = {"fp16": False, "fp16_full_eval": False, "bf16_full_eval": False, "label_smoothing_factor": 0.0,
            "neftune_noise_alpha": None, "auto_find_batch_size": False, "push_to_hub": False, "deepspeed": None, "fsdp": None,
            "parallelism_config": None, "use_liger_kernel": False, "optim_target_modules": None, "torch_compile": False,
            "tf32": None, "ignore_data_skip": False, "full_determinism": False}
#: Methods that a subclass may not have replaced: nothing calls them, or they call a model that has other weights.
_METHODS = ("compute_loss", "training_step", "create_scheduler", "prediction_step", "evaluation_loop", "get_batch_samples")


class _Steps:
    """Passes over transformers' loader, in which each micro-batch says by what its step's losses are divided."""

    def __init__(self, trainer: "Trainer", loader: Any, micro_batches: int, counts: bool):
        self._trainer, self._loader, self._micro_batches, self._counts = trainer, loader, micro_batches, counts
        self._pass = 0
        self.length = len(loader) // micro_batches * micro_batches

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        if hasattr(self._loader, "set_epoch"):
            self._loader.set_epoch(self._pass)
        self._pass += 1
        return self._read()

    def _read(self) -> Iterator[Dict[str, Any]]:
        step: List[Dict[str, Any]] = []
        for batch in self._loader:
            step.append(dict(batch))
            if len(step) == self._micro_batches:
                yield from (self._trainer._counted(step) if self._counts else step)
                step = []


class _Log(Callback):
    """Turns the lines of a run into those of transformers' log, at its steps."""

    def __init__(self, trainer: "Trainer", steps: int, of_pass: int, logging: int, evaluation: int):
        self._trainer, self._steps, self._of_pass = trainer, steps, of_pass
        self._logging, self._evaluation = logging, evaluation
        self._sum, self._count, self.total, self.done = 0.0, 0, 0.0, 0

    def _place(self, record: Dict[str, Any]) -> int:
        state = self._trainer.state
        state.global_step = record["step"] + 1
        state.epoch = state.global_step / self._of_pass
        return state.global_step

    def on_step(self, record: Dict[str, Any]) -> Any:
        trainer, step = self._trainer, self._place(record)
        self._sum, self._count = self._sum + record["loss"], self._count + 1
        self.total, self.done = self.total + record["loss"], self.done + 1
        if (self._logging and step % self._logging == 0) or (step == 1 and trainer.args.logging_first_step):
            trainer.log({"loss": self._sum / self._count, "grad_norm": record["grad_norm"], "learning_rate": record["lr"]})
            self._sum, self._count = 0.0, 0
        control = trainer.callback_handler.on_step_end(trainer.args, trainer.state, trainer.control)
        return not control.should_training_stop or step == self._steps

    def on_evaluation(self, record: Dict[str, Any]) -> Any:
        step = self._place(record)
        if step % self._evaluation == 0 or step == self._steps:
            trainer = self._trainer
            metrics = {name: value for name, value in record.items() if name.startswith("eval_")}
            metrics["eval_loss"] = trainer._measured(record["eval_loss"])
            metrics["eval_runtime"] = metrics.pop("eval_ms") / 1e3
            del metrics["eval_batches"]
            trainer.log(metrics)
            control = trainer.callback_handler.on_evaluate(trainer.args, trainer.state, trainer.control, metrics)
            return not control.should_training_stop or step == self._steps
        return None

    def on_pause(self, run: Run) -> Any:
        trainer, place = self._trainer, os.path.join(self._trainer._folder.name, "now")
        run.write_weights(place + ".safetensors")
        load_weights(trainer.model, place + ".safetensors")
        try:
            trainer._evaluate_at(lambda: run.checkpoint(place))
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return not trainer.control.should_training_stop

    def on_save(self, path: str, step: int) -> None:
        trainer, state = self._trainer, self._trainer.state
        if trainer._saves_best():
            return
        now = state.global_step, state.epoch  # later, where the program has gone on
        self._place({"step": step - 1})
        trainer.callback_handler.on_save(trainer.args, state, trainer.control)
        state.global_step, state.epoch = now


class Trainer(Evaluation, BestModel, transformers.Trainer):
    """transformers.Trainer, trained by dsopt. Keywords that transformers does not know are dsopt's options: dp=2,
    zero=3, pp=2, recompute="full", path="model.onnx" (where the exported model is kept). Arguments and hooks that
    have no counterpart are named in one error, before anything is done."""

    def __init__(self, model: Any = None, args: Any = None, data_collator: Any = None, train_dataset: Any = None,
                 eval_dataset: Any = None, processing_class: Any = None, *, model_init: Any = None,
                 compute_loss_func: Any = None, compute_metrics: Any = None, callbacks: Any = None,
                 optimizers: Any = (None, None), optimizer_cls_and_kwargs: Any = None,
                 preprocess_logits_for_metrics: Any = None, path: "Optional[os.PathLike[str] | str]" = None,
                 **options: Any):
        args = args if args is not None else transformers.TrainingArguments("tmp_trainer")
        self._options = options
        self._ranks = int(options.get("dp") or 1)
        hooks = {"model_init": model_init, "compute_loss_func": compute_loss_func, "optimizers": any(optimizers) or None,
                 "optimizer_cls_and_kwargs": optimizer_cls_and_kwargs}
        refused = [f"{name}=" for name, value in hooks.items() if value is not None]
        refused += self._refused(args)
        if model is None and model_init is None:
            refused.append("no model=")
        if refused:
            raise DsoptError("dsopt.hf.Trainer does not have: " + "; ".join(refused))
        super().__init__(model=model, args=args, data_collator=data_collator, train_dataset=train_dataset,
                         eval_dataset=eval_dataset, processing_class=processing_class, callbacks=callbacks,
                         compute_metrics=compute_metrics, preprocess_logits_for_metrics=preprocess_logits_for_metrics)
        use_one_device(self.args)
        self._train_batch_size = args.per_device_train_batch_size
        self._folder = tempfile.TemporaryDirectory(prefix="dsopt-hf-")
        self._path = os.fspath(path) if path else os.path.join(self._folder.name, "model.onnx")
        self._programs: List[Tuple[Batch, Sequence[str], str]] = []  # exported: for which batch, with which outputs, where
        self._counts = False  # whether losses are divided by what a step counts
        self._factor = 0.0  # of the loss, where transformers adds up a step's
        left_over = self._left_over() if train_dataset is not None else ""
        if left_over:
            raise DsoptError("dsopt.hf.Trainer does not have: " + left_over)

    # What it cannot do.

    def _refused(self, args: Any) -> List[str]:
        found = []
        for name, without in _WITHOUT.items():
            value = getattr(args, name, without)
            if value != without and value not in ([], "", False):
                found.append(f"{name}={value!r}")
        kind = getattr(args.lr_scheduler_type, "value", args.lr_scheduler_type)
        given = set(args.lr_scheduler_kwargs or {})
        takes = {"min_lr", "min_lr_rate"} if kind == "cosine_with_min_lr" else set()
        if kind not in _SCHEDULES:
            found.append(f"lr_scheduler_type={kind!r} (it has {', '.join(_SCHEDULES)})")
        elif given - takes:
            found.append(f"lr_scheduler_kwargs with {', '.join(sorted(given - takes))}")
        optimizer = getattr(args.optim, "value", args.optim)
        if optimizer not in _OPTIMIZERS:
            found.append(f"optim={optimizer!r} (it has {', '.join(_OPTIMIZERS)})")
        order = getattr(args, "train_sampling_strategy", "random")
        if getattr(order, "value", order) not in ("random", "sequential"):
            found.append(f"train_sampling_strategy={order!r}")
        if not args.average_tokens_across_devices and self._ranks > 1:
            found.append("average_tokens_across_devices=False")
        if getattr(getattr(args, "accelerator_config", None), "split_batches", False):
            found.append("accelerator_config with split_batches")
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            found.append("several Python processes (start it with python; dp= says how many ranks there are)")
        own = {"lr", "lr_schedule", "steps", "epochs", "micro_batches", "micro_batch_size", "eval_data", "eval_every",
               "save_weights", "optimizer", "weight_decay", "grad_clip", "warmup_steps", "log_every"} & set(self._options)
        if own:
            found.append(f"the options {', '.join(sorted(own))} (TrainingArguments has them)")
        found += [f"a {name}() of one's own" for name in _METHODS
                  if getattr(type(self), name, None) is not getattr(Trainer, name, None)]
        return found

    def _micro_batches(self) -> int:
        return self._ranks * self.args.gradient_accumulation_steps

    def _of_pass(self) -> int:
        """Steps of a pass, as transformers counts them."""
        batches = math.ceil(len(self.get_train_dataloader()) / self._ranks)
        return max(math.ceil(batches / self.args.gradient_accumulation_steps), 1)

    def _left_over(self) -> str:
        """Why steps that transformers would make of what is left of a pass cannot be made."""
        try:
            rows = len(self.train_dataset)
        except TypeError:
            return "a train_dataset without a length"
        of_step = self._micro_batches() * self.args.per_device_train_batch_size
        batches = len(self.get_train_dataloader())
        even = batches % self._micro_batches() == 0 and (self.args.dataloader_drop_last or rows % of_step == 0)
        if even or self._planned() <= rows // of_step:
            return ""
        return (f"steps of fewer rows: of the {rows} rows of train_dataset transformers makes {rows // of_step} steps of "
                f"{of_step} and a smaller one (take {rows // of_step * of_step} of them, or max_steps={rows // of_step})")

    def _planned(self) -> int:
        """Steps in all."""
        if self.args.max_steps > 0:
            return self.args.max_steps
        return math.ceil(self.args.num_train_epochs * self._of_pass())

    # From transformers' arguments to options.

    def _common(self, forward: bool = False) -> Dict[str, Any]:
        """What training needs to compile the model, and with its layout what measuring does."""
        found = {"precision": "bf16"} if self.args.bf16 else {}
        names = ["precision", "threads", "dropout", "batchnorm", *(["dp", "pp", "sp", "tp", "tensor_shards", "sequence_shards", "zero", "target", "arch", "matmul_precision"] if forward else [])]
        return {**found, **{name: value for name, value in self._options.items() if name in names}}

    def _schedule(self, steps: int) -> Dict[str, Any]:
        args = self.args
        kind = getattr(args.lr_scheduler_type, "value", args.lr_scheduler_type)
        warmup = 0 if kind == "constant" else args.get_warmup_steps(steps)
        options: Dict[str, Any] = {"lr_schedule": _SCHEDULES[kind], "warmup_steps": warmup}
        if warmup:
            options["lr_params"] = "warmup_from_zero=true"
        if _SCHEDULES[kind] != "constant":
            options["lr_decay_steps"] = steps
        if kind == "cosine_with_min_lr":
            given = args.lr_scheduler_kwargs or {}
            if ("min_lr" in given) == ("min_lr_rate" in given):
                raise DsoptError("lr_scheduler_type='cosine_with_min_lr' takes one of min_lr and min_lr_rate in "
                                 "lr_scheduler_kwargs")
            options["min_lr"] = given["min_lr"] if "min_lr" in given else given["min_lr_rate"] * args.learning_rate
        return options

    def _every(self, strategy: Any, steps: Any, of_pass: int) -> int:
        """Every how many steps a strategy does something; 0: never."""
        strategy = getattr(strategy, "value", strategy)
        if strategy in ("no", "best"):
            return 0
        if strategy == "epoch":
            return of_pass
        return int(steps) if steps >= 1 else math.ceil(self._planned() * steps)

    def _counted(self, batches: List[Dict[str, Any]]) -> Iterator[Dict[str, Any]]:
        """Micro-batches whose mean loss is their sum over what all of them count."""
        count = items_in(self, batches, torch.device("cpu"))
        if not torch.is_tensor(count) or not count.item():
            raise DsoptError("a step has no label that counts")
        share = (count.float() / len(batches)).reshape(())
        for batch in batches:
            yield {**batch, _ITEMS: share}

    def _divides(self, example: Dict[str, Any]) -> bool:
        """Whether the model divides its loss by what it is told that a step counts."""
        training = self.model.training
        self.model.eval()
        with torch.no_grad():
            one, two = (float(self._loss_of(self.model(**{**example, _ITEMS: torch.tensor(count)}))) for count in (1.0, 2.0))
        self.model.train(training)
        return one != two

    @staticmethod
    def _loss_of(outputs: Any) -> Any:
        return outputs["loss"] if isinstance(outputs, dict) else outputs[0]

    def _program(self, example: Batch, outputs: Sequence[str] = ()) -> str:
        """The model for batches of this form with these outputs, which is written once; with PyTorch's present weights
        each run starts from a file of them."""
        for known, names, path in self._programs:
            same = known.keys() == example.keys() and all(known[name].shape == value.shape for name, value in example.items())
            if same and set(outputs) <= set(names):
                return path
        counts = self.model_accepts_loss_kwargs and items_in(self, [example], torch.device("cpu")) is not None
        loss = None
        if counts and not self._divides(example):
            # transformers divides by nothing then: losses of a step are added up, those of an evaluation over ranks.
            counts, self._factor = False, float(self._micro_batches())
            loss = lambda outputs, inputs: self._loss_of(outputs) * self._factor  # noqa: E731
        self.model.train()
        path = os.path.join(self._folder.name, f"model{len(self._programs)}.onnx") if self._programs else self._path
        export(self.model, next(self._counted([example])) if counts else example, path, optimizer=self.create_optimizer(),
               loss=loss, outputs=outputs)
        self._programs.append((example, outputs, path))
        self._counts = counts
        return path

    def _first_example(self) -> Batch:
        """A batch that has all that the loss is made of."""
        if self._programs:
            return self._programs[0][0]
        if self.train_dataset is None:
            raise DsoptError("a dataset without labels is predicted by a Trainer that has a train_dataset: the model is exported "
                             "with its loss")
        return dict(next(iter(self.get_train_dataloader())))

    def _measured(self, loss: float) -> float:
        """An evaluation's loss as transformers has it."""
        return loss * self._ranks / self._factor if self._factor else loss

    def _start_weights(self) -> str:
        file = os.path.join(self._folder.name, "start.safetensors")
        write_weights(self.model, file, self._programs[0][2])
        return file

    # What transformers.Trainer does.

    def train(self, resume_from_checkpoint: Any = None, trial: Any = None, ignore_keys_for_eval: Any = None) -> TrainOutput:
        """Trains; the weights are in `model` afterwards. `resume_from_checkpoint` is one of dsopt's, or True: the
        newest in output_dir."""
        if trial is not None:
            raise DsoptError("dsopt.hf.Trainer does not have: trial=")
        self._ignored = ignore_keys_for_eval
        args = self.args
        if self.train_dataset is None:
            raise ValueError("training needs a train_dataset")
        loader = self.get_train_dataloader()
        steps, of_pass = self._planned(), self._of_pass()
        example = dict(next(iter(loader)))
        path = self._program(example, self._names_in(self._outputs_of(example, self._ignored)) if self.compute_metrics else ())
        options = {**self._schedule(steps), **self._common(), "seed": args.seed, "steps": steps,
                   "grad_clip": args.max_grad_norm or 0, "micro_batches": args.gradient_accumulation_steps,
                   "weights": self._start_weights(), "save_weights": os.path.join(self._folder.name, "trained.safetensors")}
        if args.gradient_checkpointing or getattr(args, "activation_checkpointing", None):
            options["recompute"] = "full"
        save = self._every(args.save_strategy, args.save_steps, of_pass)
        if save:
            os.makedirs(args.output_dir, exist_ok=True)
            options.update(save=args.output_dir, save_every=save, save_keep=args.save_total_limit or 1_000_000,
                           save_existing="aside")
        self._saves = lambda step: save > 0 and (step % save == 0 or step == steps)
        if resume_from_checkpoint:
            options["resume"] = args.output_dir if resume_from_checkpoint is True else os.fspath(resume_from_checkpoint)
        checkpoint = given_checkpoint([f"-resume={options['resume']}"]) if resume_from_checkpoint else None
        evaluation = self._every(args.eval_strategy, args.eval_steps or args.logging_steps, of_pass)
        between = bool(evaluation) and self._measures_between()

        def is_due(step: int) -> bool:
            delay = step / of_pass if args.eval_strategy == "epoch" else step
            return between and (step % evaluation == 0 or step == steps) and args.eval_delay <= delay

        if self._saves_best():
            self._put_aside(checkpoint)
            if is_due(steps):
                options["save"] = os.path.join(self._folder.name, "end")
                shutil.rmtree(options["save"], ignore_errors=True)
        if between:
            options["pause"] = lambda step: is_due(step) and step != steps
        elif evaluation:
            loader_of_evaluation = self.get_eval_dataloader(self.eval_dataset)
            options.update(eval_data=_Steps(self, loader_of_evaluation, self._ranks, self._counts), eval_every=evaluation)
        logging = self._every(args.logging_strategy, args.logging_steps, of_pass)
        log = _Log(self, steps, of_pass, logging, evaluation)
        compute_steps(self.state, args, steps)
        self.state.max_steps, self.state.num_train_epochs = steps, math.ceil(steps / of_pass)
        self.state.is_local_process_zero = self.state.is_world_process_zero = True
        start = time.time()
        self._go_on_comparing(checkpoint)
        self.control = self.callback_handler.on_train_begin(args, self.state, self.control)
        if args.eval_on_start:
            if resume_from_checkpoint:
                self._bring_home(options["resume"])
            self.evaluate(ignore_keys=self._ignored)
        data = _Steps(self, loader, self._micro_batches(), self._counts)
        with warnings.catch_warnings():
            # Several passes are what num_train_epochs and max_steps ask for.
            warnings.filterwarnings("ignore", r"\d+ steps of \d+ micro-batches go", UserWarning)
            result = run_to_end(path, data, callbacks=[log], **{**options, **self._options})
        if result.status == "interrupted":
            raise DsoptError("the run was interrupted", 3)
        load_weights(self.model, options["save_weights"])
        if log.done and is_due(self.state.global_step) and self.state.global_step == steps:
            self._evaluate_at(lambda: os.path.join(options["save"], f"step-{steps:08d}"))
        metrics = speed_metrics("train", start, num_samples=log.done * data._micro_batches * args.per_device_train_batch_size,
                                num_steps=log.done)
        metrics["train_loss"] = log.total / max(log.done, 1)
        self.log(metrics)
        if args.load_best_model_at_end and self.state.best_model_checkpoint:
            self._bring_home(self.state.best_model_checkpoint)
        self.control = self.callback_handler.on_train_end(args, self.state, self.control)
        return TrainOutput(self.state.global_step, metrics["train_loss"], metrics)

    def _is_watched(self) -> bool:
        """Whether somebody may look at the model when an evaluation has been made."""
        own = [type(one) for one in self.callback_handler.callbacks if not type(one).__module__.startswith("transformers.")]
        known = transformers.TrainerCallback
        return type(self).evaluate is not transformers.Trainer.evaluate or any(
            getattr(one, name) is not getattr(known, name) for one in own for name in ("on_evaluate", "on_prediction_step"))

    def _measures_between(self) -> bool:
        """Whether evaluations while training are made between its steps; else the program measures the loss itself."""
        args, data = self.args, self.eval_dataset
        if isinstance(data, dict) or self._is_watched() or self.compute_metrics or args.metric_for_best_model or args.eval_delay:
            return True
        if args.per_device_eval_batch_size != args.per_device_train_batch_size:
            return True
        try:
            return len(data) % (args.per_device_eval_batch_size * self._ranks) != 0
        except TypeError:
            raise DsoptError("dsopt.hf.Trainer does not have: an eval_dataset without a length") from None
