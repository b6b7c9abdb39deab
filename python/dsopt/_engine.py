"""The four calls of DeepSpeed's engine, on one machine's ranks.

    engine = dsopt.initialize(model, example_inputs, config)
    for batch in loader:
        loss = engine(batch)
        engine.backward(loss)
        engine.step()
    engine.finish()

One Python process feeds all ranks. A step is one program: forward, backward and update
of all its micro-batches at once. So engine(batch) does not compute; it notes the
micro-batch, backward puts it into the step, and the step() that completes the
accumulation hands the step over. A loss has its value once its step is done:
float(loss) waits for that.
"""
from __future__ import annotations

import os
import shutil
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import numpy as np

from ._export import export, named_inputs
from ._run import Result, Run
from ._stream import to_array
from ._tools import DsoptError
from ._weights import load_weights


class Loss:
    """The loss of one micro-batch of each data-parallel rank: their mean, as a number, once its step is
    done."""

    def __init__(self, engine: "Engine", step: int, micro_step: int):
        self._engine = engine
        self._step = step
        self._micro_step = micro_step
        self._value: Optional[float] = None

    @property
    def ready(self) -> bool:
        """Whether the value is there already."""
        return self._value is not None or self._engine._loss_of(self._step, self._micro_step, wait=False) is not None

    def item(self) -> float:
        """The value; waits for its step."""
        if self._value is None:
            self._value = self._engine._loss_of(self._step, self._micro_step, wait=True)
        return self._value  # type: ignore[return-value]

    def __float__(self) -> float:
        return self.item()

    def __format__(self, form: str) -> str:
        return format(self.item(), form)

    def __repr__(self) -> str:
        return f"Loss({self.item()})" if self.ready else f"Loss(of step {self._step}, not computed yet)"


class Engine:
    """A model in training; `initialize` makes one."""

    def __init__(self, model: Any, example_inputs: Any, config: Any = None, *,
                 loss: Optional[Callable[..., Any]] = None, path: "Optional[os.PathLike[str] | str]" = None,
                 save_weights: "Optional[os.PathLike[str] | str]" = None, opset: int = 20, **options: Any):
        self.module = model
        self._folder = tempfile.mkdtemp(prefix="dsopt-engine-")
        self._result: Optional[Result] = None
        try:
            if options.get("log_every", 1) != 1:
                raise ValueError(f"log_every={options['log_every']}: the engine reads each step's line")
            model_path = os.fspath(path) if path else os.path.join(self._folder, "model.onnx")
            self.export_report = export(model, example_inputs, model_path, loss=loss, opset=opset)
            named = named_inputs(model, example_inputs)
            self._example = {name: to_array(named[name]) for name in self.export_report.inputs}
            self._run = Run(model_path, None, config=config, folder=self._folder,
                            save_weights=os.fspath(save_weights or os.path.join(self._folder, "weights")), **options)
            self._run.open_stream(self._example)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        batch, layout = self._run.batch["batch"], self._run.batch["layout"]
        self.data_parallel_size: int = layout["dp"]
        self.gradient_accumulation_steps: int = batch["K"] // layout["dp"]
        self.micro_steps = 0  #: micro-batches that backward was called for
        self._pending: Optional[Loss] = None
        self._forward: Optional[List[Dict[str, np.ndarray]]] = None
        self._step: List[List[Dict[str, np.ndarray]]] = []
        self._done: List[Dict[str, Any]] = []

    # The four calls.

    def __call__(self, *args: Any, **kwargs: Any) -> Loss:
        """Takes a micro-batch for each data-parallel rank: a dict of inputs, or inputs by name or in
        their order, of `data_parallel_size` times the example's rows. Its loss is known once its step is done."""
        self._check_open()
        if len(args) == 1 and not kwargs and (isinstance(args[0], Mapping) or hasattr(args[0], "keys")):
            inputs = {name: args[0][name] for name in args[0].keys()}
        else:
            inputs = {**dict(zip(self._example, args)), **kwargs}
        lacking = [name for name in self._example if name not in inputs]
        if lacking:
            raise ValueError(f"the batch lacks {', '.join(lacking)}; the model's inputs are {', '.join(self._example)}")
        self._forward = self._split({name: to_array(inputs[name]) for name in self._example})
        steps = self.gradient_accumulation_steps
        self._pending = Loss(self, self.micro_steps // steps, self.micro_steps % steps)
        return self._pending

    forward = __call__

    def backward(self, loss: Loss) -> Loss:
        """Puts the micro-batch of the latest forward into the step."""
        self._check_open()
        if loss is not self._pending or self._forward is None:
            raise RuntimeError("backward takes the loss of the latest engine(batch), once")
        self._step.append(self._forward)
        self._pending, self._forward = None, None
        self.micro_steps += 1
        return loss

    def is_gradient_accumulation_boundary(self) -> bool:
        """Whether the next step() completes a step."""
        return len(self._step) == self.gradient_accumulation_steps

    def step(self) -> None:
        """Hands the step over where its accumulation is complete; else does nothing, as in DeepSpeed."""
        self._check_open()
        if not self.is_gradient_accumulation_boundary():
            if len(self._step) > self.gradient_accumulation_steps:
                raise RuntimeError(f"{len(self._step)} micro-batches without a step(); a step takes "
                                   f"{self.gradient_accumulation_steps}")
            return
        # Rank d takes a contiguous block of the step's micro-batches.
        ranks = range(self.data_parallel_size)
        self._run.submit([micro[rank] for rank in ranks for micro in self._step])
        self._step = []
        # One step lies ready while one runs; more would only take memory.
        while self._run.stream.written - self._collect() > 2 and self.stopped is None:  # type: ignore[union-attr]
            self._wait()

    def train_batch(self, data_iter: Iterator[Any]) -> float:
        """One whole step from `gradient_accumulation_steps` batches of the iterator; the mean of their losses."""
        losses = []
        for _ in range(self.gradient_accumulation_steps):
            batch = next(data_iter)
            loss = self(batch) if isinstance(batch, Mapping) or hasattr(batch, "keys") else self(*batch)
            losses.append(self.backward(loss))
            self.step()
        losses[-1].item()
        return self._done[losses[-1]._step]["loss"]

    def save_checkpoint(self, folder: "os.PathLike[str] | str") -> str:
        """Writes a checkpoint of the steps so far and returns its path; initialize(..., resume=folder)
        goes on from the last one of a folder, in any layout. Micro-batches of a step that is not
        complete are no part of it."""
        self._check_open()
        steps = self._run.stream.written  # type: ignore[union-attr]
        if not steps:
            raise RuntimeError("there is nothing to save before the first step")
        folder = os.path.abspath(os.fspath(folder))
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"cannot write into {folder}")
        self._run.stream.ask_to_save(folder)  # type: ignore[union-attr]
        while not self._run.stream.saved():  # type: ignore[union-attr]
            running = self._run.running
            self._collect()
            if not running:
                raise DsoptError("the run ended before the checkpoint was written", 3)
            self._wait()
        path = os.path.join(folder, f"step-{self._run.first + steps:08d}")
        self._run.note_saved(path, self._run.first + steps)
        return path

    # What is known of it.

    @property
    def stopped(self) -> Optional[str]:
        """Why a callback has ended the run, where one has: the loop should end, too."""
        return self._run.stopped

    @property
    def global_steps(self) -> int:
        """Steps that are done."""
        return self._collect()

    @property
    def metrics(self) -> List[Dict[str, Any]]:
        """One dict for each step that is done: loss, grad_norm, lr, step_ms ..."""
        self._collect()
        return list(self._done)

    def get_lr(self) -> List[float]:
        """The learning rate of the latest step that is done."""
        return [self._last()["lr"]]

    def get_global_grad_norm(self) -> float:
        """Its gradient norm, before clipping."""
        return self._last()["grad_norm"]

    # The end.

    def finish(self, load: bool = True) -> Result:
        """Ends the run after the steps that were handed over, and loads the trained weights into the
        model. A step that is not complete is left out."""
        if self._result is None:
            if self._run.stream.written == 0:  # type: ignore[union-attr]
                self.close()
                raise DsoptError("no step was complete: nothing was trained")
            if self.stopped is None:  # else the program ends by itself, and says that it was told to
                self._run.end_stream()
            try:
                self._result = self._run.result()
                if load and self._result.weights:
                    load_weights(self.module, self._result.weights)
            finally:
                self._collect_from(self._run.metrics)
                self.close()
        return self._result

    def close(self) -> None:
        """Ends the run at once; finish() loads weights."""
        self._run.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.finish()
        else:
            self.close()

    # Parts.

    def _check_open(self) -> None:
        if self._result is not None:
            raise RuntimeError("the engine has finished")
        if self.stopped is not None:
            raise DsoptError(f"the run was stopped: {self.stopped} (engine.stopped says so; finish() ends it)", 3)

    def _split(self, inputs: Dict[str, np.ndarray]) -> List[Dict[str, np.ndarray]]:
        parts: List[Dict[str, np.ndarray]] = [{} for _ in range(self.data_parallel_size)]
        for name, value in inputs.items():
            one = self._example[name].shape
            want = (one[0] * len(parts), *one[1:]) if one else one
            if value.shape != want:
                raise ValueError(f"input '{name}' has shape {list(value.shape)}, expected {list(want)}: the example's, "
                                 f"for each of {len(parts)} data-parallel ranks (a loader's shorter last batch is left "
                                 "out by drop_last=True)")
            for rank, part in enumerate(parts):
                part[name] = value[rank * one[0]:(rank + 1) * one[0]] if one else value
        return parts

    def _collect_from(self, lines: List[Dict[str, Any]]) -> None:
        self._done = [line for line in lines if "step" in line and "loss" in line]

    def _collect(self) -> int:
        """Reads what came; the number of steps that are done."""
        if self._result is None:
            running = self._run.running
            self._run.poll()
            self._collect_from(self._run.metrics)
            ended = not running and self._run.stream.written > len(self._done)  # type: ignore[union-attr]
            if ended and self.stopped is None:
                raise DsoptError("the run was interrupted", 3)
        return len(self._done)

    def _wait(self) -> None:
        time.sleep(0.0005)

    def _last(self) -> Dict[str, Any]:
        if not self._collect():
            raise RuntimeError("no step is done yet")
        return self._done[-1]

    def _loss_of(self, step: int, micro_step: int, wait: bool) -> Optional[float]:
        while self._collect() <= step:
            if not wait:
                return None
            if self.stopped is not None and not self._run.running and self._collect() <= step:
                raise DsoptError(f"the run was stopped before step {step}: {self.stopped}", 3)
            if self._run.stream.written <= step:  # type: ignore[union-attr]
                raise RuntimeError(f"a loss is known once its step is done: {len(self._step)} of "
                                   f"{self.gradient_accumulation_steps} micro-batches of step {step} have come to "
                                   "backward(), and step() has not completed it")
            self._wait()
        losses, steps = self._done[step]["losses"], self.gradient_accumulation_steps
        mine = losses[micro_step::steps]
        return float(sum(mine) / len(mine))


def initialize(model: Any, example_inputs: Any, config: Any = None, **options: Any) -> Engine:
    """An engine that trains `model` (see Engine): exports it, plans the step, and waits for batches.

    example_inputs  a micro-batch of one rank, by input name
    config          a DeepSpeed configuration: a path or a dict
    options         as on the command line (dp=2, pp=2, save="run"); loss=, path=, save_weights=, opset= and callbacks
                    as in `export` and `train`
    """
    return Engine(model, example_inputs, config, **options)
