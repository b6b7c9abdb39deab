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

import builtins
import contextlib
import json
import operator
import os
import shutil
import tempfile
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ._export import export, named_inputs
from ._run import Evaluation, Result, Run
from ._stream import to_array
from ._tools import DsoptError, run_tool, writing
from ._turns import Turns
from ._weights import Stored, check_stored, load_weights, parameter_rows, read_stored, stored_of, write_stored


class Number:
    """A number that is known once the steps that it depends on are done. Arithmetic with it gives another."""

    def __init__(self, compute: Callable[..., float], *operands: Any):
        self._compute, self._operands = compute, operands
        self._value: Optional[float] = None
        # A sum over all steps holds none of those that are known.
        self._ready()

    def item(self) -> float:
        """The value; waits for it."""
        if self._value is None:
            self._value = float(self._compute(*map(float, self._operands)))
            self._operands = ()
        return self._value

    def _ready(self) -> bool:
        if self._value is None and all(one._ready() for one in self._operands if isinstance(one, Number)):
            self.item()
        return self._value is not None

    @property
    def ready(self) -> bool:
        """Whether the value is there already."""
        return self._ready()

    def detach(self) -> "Number":
        return self

    clone = cpu = mean = float = detach

    def __float__(self) -> builtins.float:
        return self.item()

    def __format__(self, form: str) -> str:
        return format(self.item(), form)

    def __repr__(self) -> str:
        return f"Number({self.item()})" if self.ready else "Number(not computed yet)"

    def __bool__(self) -> bool:
        return bool(self.item())

    def __hash__(self) -> int:
        return id(self)


def _later(name: str) -> Callable[..., Number]:
    function = getattr(operator, name)

    return lambda *operands: Number(function, *operands)


def _swapped(name: str) -> Callable[..., Number]:
    function = getattr(operator, name)
    return lambda self, other: Number(function, other, self)


def _compared(name: str) -> Callable[..., bool]:
    function = getattr(operator, name)
    return lambda self, other: function(self.item(), float(other))


for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(Number, f"__{_name}__", _later(_name))
    setattr(Number, f"__r{_name}__", _swapped(_name))
for _name in ("neg", "abs"):
    setattr(Number, f"__{_name}__", _later(_name))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Number, f"__{_name}__", _compared(_name))


class Loss(Number):
    """The loss of one micro-batch of each data-parallel rank: their mean, as a number, once its step is
    done."""

    def __init__(self, engine: "Engine", step: int, micro_step: int):
        self._engine = engine
        self._step = step
        self._micro_step = micro_step
        super().__init__(lambda: engine._loss_of(step, micro_step, wait=True))  # type: ignore[arg-type,return-value]

    def _ready(self) -> bool:
        if self._value is None:
            self._value = self._engine._loss_of(self._step, self._micro_step, wait=False)
        return self._value is not None

    @property
    def loss(self) -> "Loss":
        """Itself: what scripts take from the outputs of a model."""
        return self

    def __repr__(self) -> str:
        return f"Loss({self.item()})" if self.ready else f"Loss(of step {self._step}, not computed yet)"


@contextlib.contextmanager
def _training(model: Any, parameters: Optional[Iterable[Any]]) -> Iterator[None]:
    """While this lasts no other parameters of a model are trained; None: as it is."""
    kept = None if parameters is None else {id(one) for one in parameters}
    others = [one for one in model.parameters() if one.requires_grad and kept is not None and id(one) not in kept]
    for one in others:
        one.requires_grad_(False)
    try:
        yield
    finally:
        for one in others:
            one.requires_grad_(True)


class Engine:
    """A model in training; `initialize` makes one."""

    _opened = True
    _closed = False
    _said_stop: Optional[str] = None  # what `stopped` said last: to the loop, or to its last step
    _turns: Optional[Turns] = None  # with other engines

    def __init__(self, model: Any, example_inputs: Any, config: Any = None, *,
                 loss: Optional[Callable[..., Any]] = None, path: "Optional[os.PathLike[str] | str]" = None,
                 save_weights: "Optional[os.PathLike[str] | str]" = None, opset: int = 20,
                 parameters: Optional[Iterable[Any]] = None, **options: Any):
        self.module = model
        self._folder = tempfile.mkdtemp(prefix="dsopt-engine-")
        self._result: Optional[Result] = None
        try:
            if options.get("log_every", 1) != 1:
                raise ValueError(f"log_every={options['log_every']}: the engine reads each step's line")
            self.model_path = os.fspath(path) if path else os.path.join(self._folder, "model.onnx")
            optimizer = options.pop("optimizer") if hasattr(options.get("optimizer"), "param_groups") else None
            with _training(model, parameters):
                self.export_report = export(model, example_inputs, self.model_path, loss=loss, opset=opset, optimizer=optimizer)
            named = named_inputs(model, example_inputs, loss)
            self._example = {name: to_array(named[name]) for name in self.export_report.inputs}
            self._run = Run(self.model_path, None, config=config, folder=self._folder,
                            save_weights=os.fspath(save_weights or os.path.join(self._folder, "weights")), **options)
            self._run.open_stream(self._example)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        batch, layout = self._run.batch["batch"], self._run.batch["layout"]
        self.data_parallel_size: int = layout["dp"]
        self.gradient_accumulation_steps: int = batch["K"] // layout["dp"]
        self.training = True
        self._takes = 0  # of weights, from outside the run
        self._written: Any = None  # state of which a file has the weights
        self._home: Any = None if self._has_changed() else self._state()  # state of the model's weights
        self.micro_steps = 0  #: micro-batches that backward was called for
        self._pending: Optional[Loss] = None
        self._forward: Optional[List[Dict[str, np.ndarray]]] = None
        self._step: List[List[Dict[str, np.ndarray]]] = []
        self._done: List[Dict[str, Any]] = []

    # The four calls.

    def __call__(self, *args: Any, **kwargs: Any) -> Number:
        """Takes a micro-batch for each data-parallel rank: a dict of inputs, or inputs by name or in
        their order, of `data_parallel_size` times the example's rows. Its loss is known once its step is done; after
        eval() it is measured at once, with the weights of the steps so far, and trains nothing."""
        self._check_open()
        if len(args) == 1 and not kwargs and (isinstance(args[0], Mapping) or hasattr(args[0], "keys")):
            inputs = {name: args[0][name] for name in args[0].keys()}
        else:
            inputs = {**dict(zip(self._example, args)), **kwargs}
        lacking = [name for name in self._example if name not in inputs]
        if lacking:
            raise ValueError(f"the batch lacks {', '.join(lacking)}; the model's inputs are {', '.join(self._example)}")
        parts = self._split({name: to_array(inputs[name]) for name in self._example})
        if not self.training:
            return Number(float, self._measure(parts))
        self._forward = parts
        steps = self.gradient_accumulation_steps
        self._pending = Loss(self, self.micro_steps // steps, self.micro_steps % steps)
        return self._pending

    forward = __call__

    def backward(self, loss: Number) -> Loss:
        """Puts the micro-batch of the latest forward into the step."""
        self._check_open()
        if type(loss) is Number:
            raise RuntimeError("backward takes the loss of the latest engine(batch) as it is: what is computed from it, or "
                               "measured after eval(), has no gradient (the model's loss is exported; give loss= to "
                               "initialize for another)")
        pending = self._pending
        if pending is None or loss is not pending or self._forward is None:
            raise RuntimeError("backward takes the loss of the latest engine(batch), once")
        self._step.append(self._forward)
        self._pending, self._forward = None, None
        self.micro_steps += 1
        return pending

    def is_gradient_accumulation_boundary(self) -> bool:
        """Whether the next step() completes a step."""
        return len(self._step) == self.gradient_accumulation_steps

    def step(self, lr: Optional[float] = None) -> None:
        """Hands the step over where its accumulation is complete; else does nothing, as in DeepSpeed. Under
        lr_schedule="stream" `lr` is its learning rate. A step for a run that has stopped meanwhile is left out."""
        self._check_open()
        if not self.is_gradient_accumulation_boundary():
            if len(self._step) > self.gradient_accumulation_steps:
                raise RuntimeError(f"{len(self._step)} micro-batches without a step(); a step takes "
                                   f"{self.gradient_accumulation_steps}")
            return
        if self.stopped is not None:
            self._step = []
            return
        self._catch_up()
        # Rank d takes a contiguous block of the step's micro-batches.
        ranks = range(self.data_parallel_size)
        self._run.submit([micro[rank] for rank in ranks for micro in self._step], lr)
        self._step = []
        if self._turns is not None:
            self._turns.note(self)
        # One step lies ready while one runs; more would only take memory.
        while self._run.stream.written - self._collect() > 2 and self.stopped is None:  # type: ignore[union-attr]
            self._wait()

    def whole_step(self, micro_batches: List[Mapping[str, Any]], lr: Optional[float] = None) -> int:
        """A step of all its micro-batches, of which ranks get one in turn; its number, under which `loss_of_one` knows
        their losses."""
        self._check_open()
        ranks = self.data_parallel_size
        if len(micro_batches) != ranks * self.gradient_accumulation_steps or self._step:
            raise RuntimeError(f"a step takes {ranks * self.gradient_accumulation_steps} micro-batches, got {len(micro_batches)}")
        parts = [{name: to_array(one[name]) for name in self._example} for one in micro_batches]
        self._step = [parts[at:at + ranks] for at in range(0, len(parts), ranks)]
        step = self._run.stream.written  # type: ignore[union-attr]
        self.step(lr)
        return step

    def loss_of_one(self, step: int, micro_batch: int, wait: bool) -> Optional[float]:
        """The loss of one micro-batch of a step; None where it is not done and `wait` is false."""
        if self._loss_of(step, 0, wait) is None:
            return None
        micro_step, rank = divmod(micro_batch, self.data_parallel_size)
        return float(self._done[step]["losses"][rank * self.gradient_accumulation_steps + micro_step])

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

    def train(self, mode: bool = True) -> "Engine":
        """What engine(batch) does from now on: train, or after train(False) measure."""
        self._check_open()
        self.training = mode
        return self

    def eval(self) -> "Engine":
        """From now on engine(batch) measures: forward only, without dropout. Each batch is a run of its own, with the
        weights of the steps so far; `eval_data=` and `eval_every=` measure many at less cost."""
        return self.train(False)

    def parameters(self) -> Iterator[Any]:
        """The model's parameters, as they are after the steps so far."""
        self.bring_home()
        return self.module.parameters()

    def named_parameters(self) -> Iterator[Any]:
        """The same with their names."""
        self.bring_home()
        return self.module.named_parameters()

    def load_weights(self, weights: "os.PathLike[str] | str | Mapping[str, Any]") -> None:
        """From the next step on these weights, some of the model's or all, are in place of those there are; what the
        optimizer keeps stays as it is. Tensors by PyTorch's names (a state_dict), or a safetensors file of them."""
        self._check_open()
        if isinstance(weights, (str, os.PathLike)):
            given = read_stored(weights)
        else:
            given = {name: stored_of(value, name) for name, value in weights.items()}
        known = {row["torch"] for row in parameter_rows(self.model_path)}
        check_stored(self.module, given, known)
        if self._turns is not None and (others := self._turns.trained_by_others(self, given)):
            raise ValueError(f"'{min(others)}' is trained by another engine in turn with this one: load it there")
        self._catch_up()
        self._take(given)
        if self._turns is not None:
            self._turns.note(self)

    def save_checkpoint(self, folder: "os.PathLike[str] | str") -> str:
        """Writes a checkpoint of the steps so far and returns its path; initialize(..., resume=folder)
        goes on from the last one of a folder, in any layout. Micro-batches of a step that is not
        complete are no part of it."""
        self._catch_up()
        path = self._save(folder)
        self._run.note_saved(path, self._run.first + self._run.stream.written)  # type: ignore[union-attr]
        return path

    def _save(self, folder: "os.PathLike[str] | str") -> str:
        self._check_open()
        if not self._run.stream.written:  # type: ignore[union-attr]
            raise RuntimeError("there is nothing to save before the first step")
        folder = os.path.abspath(os.fspath(folder))
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"cannot write into {folder}")
        return self._run.checkpoint(folder)

    # What is known of it.

    @property
    def stopped(self) -> Optional[str]:
        """Why a callback has ended the run, where one has: the loop should end, too."""
        self._said_stop = self._run.stopped
        return self._said_stop

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
                self._catch_up()
                self._run.end_stream()
            try:
                self._result = self._run.result()
                if load and self._result.weights:
                    load_weights(self.module, self._result.weights)
                if self._turns is not None:
                    self._turns.leave(self)
            finally:
                self._collect_from(self._run.metrics)
                self.close()
        return self._result

    def close(self) -> None:
        """Ends the run at once; finish() loads weights."""
        self._closed = True
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

    def checkpoint_now(self) -> str:
        """A checkpoint of the steps so far in a folder of the engine's, where the next one replaces it."""
        folder = os.path.join(self._folder, "now")
        shutil.rmtree(folder, ignore_errors=True)
        return self._save(folder)

    def _state(self) -> Tuple[int, int]:
        """What the weights follow from."""
        return self._run.stream.written, self._takes  # type: ignore[union-attr]

    def _has_changed(self) -> bool:
        """Whether the program may have other weights than the model had when it was exported."""
        return self._state() != (0, 0) or self._run.resumes

    def _catch_up(self) -> None:
        if self._turns is not None:
            self._turns.catch_up(self)

    def _weights_now(self) -> str:
        """The file of the weights of the steps so far."""
        if self._result is not None and not self._closed and self._result.weights:  # it is about to end
            return self._result.weights
        self._check_open()
        file = os.path.join(self._folder, "now.safetensors")
        if self._written != self._state():
            self._run.ask(("write", file))
            self._written = self._state()
        return file

    def _take(self, weights: Mapping[str, Stored]) -> None:
        """The program goes on with these."""
        file = os.path.join(self._folder, f"take-{self._takes}.safetensors")
        write_stored(file, weights)
        self._run.ask(("take", file))
        os.remove(file)
        self._takes += 1

    def _measure(self, parts: List[Dict[str, np.ndarray]]) -> Evaluation:
        """A run of the program's twin, with the weights of now."""
        self._catch_up()
        file, log = os.path.join(self._folder, "now.npz"), os.path.join(self._folder, "now.jsonl")
        with writing(file):
            np.savez(file, **{name: np.stack([part[name] for part in parts]) for name in self._example})
        if os.path.exists(log):
            os.remove(log)
        run_tool([*self._run.twin_words(), f"-weights={self._weights_now()}", "-eval", f"-data={file}", f"-log={log}", "-quiet"])
        with open(log) as lines:
            return Evaluation.of(map(json.loads, lines))

    def bring_home(self) -> None:
        """Loads the weights of the steps so far into the model, where that has not been done."""
        if self._result is not None:
            return
        self._catch_up()
        if self._home != self._state():
            load_weights(self.module, self._weights_now())
            self._home = self._state()

    @property
    def _is_open(self) -> bool:
        return self._result is None and not self._closed and self._run.stopped is None

    def _check_open(self) -> None:
        if self._result is not None:
            raise RuntimeError("the engine has finished")
        if self._closed:
            raise RuntimeError("the engine is closed")
        # Only what the loop could have seen: the run may stop at any moment between its look and the next step.
        if self._said_stop is not None:
            raise DsoptError(f"the run was stopped: {self._said_stop} (engine.stopped says so; finish() ends it)", 3)

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
            if ended and self._run.stopped is None:
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
            if self._run.stopped is not None and not self._run.running and self._collect() <= step:
                raise DsoptError(f"the run was stopped before step {step}: {self._run.stopped}", 3)
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
    parameters      those of the model that are trained; by default all that have a gradient (requires_grad)
    config          a DeepSpeed configuration: a path or a dict
    options         as on the command line (dp=2, pp=2, save="run"); loss=, path=, save_weights=, opset= and callbacks
                    as in `export` and `train`; optimizer= may be a new one of torch.optim
    """
    return Engine(model, example_inputs, config, **options)
