"""Plans and runs: the tools, their metrics and what they leave."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import numpy as np

from ._stream import StreamWriter, to_array, to_micro_batch
from ._tools import DsoptError, config_words, find_tool, message_of, option_words, pass_on_warnings, run_tool

_AHEAD = 2  # steps of a stream that lie ready while one runs
_PAUSE = 0.001


@dataclass
class Result:
    """What a run leaves."""
    losses: List[float]  #: of each step that was logged
    steps: int  #: done, those before a resumed checkpoint included
    weights_hash: str  #: equal text means equal bits
    weights: Optional[str]  #: the safetensors file of trained weights
    eval_losses: List[float]  #: of -eval-data, each time it was measured
    status: str  #: "ok" or "interrupted"
    metrics: List[Dict[str, Any]] = field(repr=False, default_factory=list)  #: all lines of the log


def plan(path: "os.PathLike[str] | str", *, config: Any = None, data: Any = None, **options: Any) -> Dict[str, Any]:
    """What would happen: layout, batch, memory and traffic of each rank (-plan=json). `data` may be a
    path or a dict of arrays; only shapes are read."""
    with tempfile.TemporaryDirectory(prefix="dsopt-") as folder:
        if isinstance(data, Mapping):
            data = _save(data, os.path.join(folder, "data.npz"))
        words = [os.fspath(path), "-plan=json", *config_words(config, folder), *option_words(options)]
        if data is not None:
            words.append(f"-data={os.fspath(data)}")
        return json.loads(run_tool(words))


def _save(arrays: Mapping[str, Any], path: str) -> str:
    np.savez(path, **{name: to_array(value) for name, value in arrays.items()})
    return path


def evaluate(path: "os.PathLike[str] | str", data: Any, *, config: Any = None, **options: Any) -> float:
    """The mean loss of a model on `data` (a path or a dict of arrays), forward only (-eval)."""
    with tempfile.TemporaryDirectory(prefix="dsopt-") as folder:
        if isinstance(data, Mapping):
            data = _save(data, os.path.join(folder, "data.npz"))
        log = os.path.join(folder, "log.jsonl")
        run_tool([os.fspath(path), "-eval", f"-data={os.fspath(data)}", f"-log={log}", "-quiet",
                  *config_words(config, folder), *option_words(options)])
        with open(log) as lines:
            return next(line["eval_loss"] for line in map(json.loads, lines) if "eval_loss" in line)


class Run:
    """A program that runs. Iterating it yields one dict of metrics a step, as it comes; `result()`
    waits for the end. Without data, steps are handed over by `open_stream` and `submit`. With a
    stream, iterating is also what feeds it; leaving the loop early ends the run."""

    def __init__(self, path: "os.PathLike[str] | str", data: Any, *, config: Any = None,
                 save_weights: "Optional[os.PathLike[str] | str]" = None,
                 log: "Optional[os.PathLike[str] | str]" = None, folder: Optional[str] = None, **options: Any):
        self._own = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="dsopt-")
        self.weights = os.fspath(save_weights) if save_weights else None
        self.log = os.fspath(log) if log else os.path.join(self.folder, "log.jsonl")
        self.metrics: List[Dict[str, Any]] = []
        self._words = [os.fspath(path), *config_words(config, self.folder), *option_words(options)]
        self._process: Optional[subprocess.Popen] = None
        self._errors: Any = None
        self._before = 0  # bytes of the log that earlier runs wrote
        self._lines: Any = None
        self._partial = ""
        self._ended = False
        self._failure: Optional[DsoptError] = None
        self._names: List[str] = []
        self._end: Optional[Dict[str, Any]] = None
        self._items: Optional[Iterator[Any]] = None
        self.stream: Optional[StreamWriter] = None
        self.batch: Dict[str, Any] = {}
        try:
            if isinstance(data, (str, os.PathLike)):
                self._launch(os.fspath(data))
            elif isinstance(data, Mapping):
                self._launch(_save(data, os.path.join(self.folder, "data.npz")))
            elif data is not None:
                self._items = iter(data)
                self._feed()
        except BaseException:
            self.close()
            raise

    # A stream.

    def open_stream(self, first: Mapping[str, np.ndarray]) -> StreamWriter:
        """Asks the compiler how many micro-batches of this shape a step has, and makes their folder."""
        shapes = _save({name: np.asarray(value)[None] for name, value in first.items()},
                       os.path.join(self.folder, "shapes.npz"))
        # One micro-batch is enough to know every shape; that a step has more is for the run.
        words = [word for word in self._words if not word.startswith(("-data=", "-log="))]
        self.batch = json.loads(run_tool([*words, "-plan=json", f"-data={shapes}"]))
        stream = os.path.join(self.folder, "stream")
        os.makedirs(stream)
        self.stream = StreamWriter(stream, self.batch["batch"]["K"])
        return self.stream

    def submit(self, items: List[Dict[str, np.ndarray]]) -> None:
        """Hands over the micro-batches of a step; the first of them starts the program."""
        assert self.stream is not None
        self.stream.write(items)
        if self._process is None:
            self._launch(self.stream.data)

    def _feed(self) -> None:
        """Writes steps until enough lie ready, or the items end."""
        while self._items is not None and (self.stream is None or
                                           self.stream.written - len(self._steps()) < _AHEAD):
            items: List[Dict[str, np.ndarray]] = []
            wanted = self.stream.micro_batches if self.stream else 1
            while len(items) < wanted:
                try:
                    item = to_micro_batch(next(self._items), self._input_names)
                except StopIteration:
                    self._items = None
                    if self._process is None:
                        raise DsoptError(f"the data ended after {len(items)} micro-batches, before a step was full")
                    self.end_stream()
                    return  # what does not fill a step is left out
                items.append(item)
                if self.stream is None:
                    wanted = self.open_stream(item).micro_batches
            self.submit(items)

    def _input_names(self) -> List[str]:
        """The model's inputs in their order, for micro-batches that are tuples."""
        if not self._names:
            import onnx

            self._names = [value.name for value in onnx.load(self._words[0], load_external_data=False).graph.input]
        return self._names

    def end_stream(self) -> None:
        if self.stream is not None:
            self.stream.end()

    # The program.

    def _launch(self, data: str) -> None:
        words = [find_tool(), *self._words, "-run", f"-data={data}", f"-log={self.log}", "-quiet"]
        if self.weights:
            words.append(f"-save-weights={self.weights}")
        self._errors = open(os.path.join(self.folder, "errors"), "w+")
        resumes = any(word.lstrip("-").startswith("resume") for word in self._words)
        if os.path.exists(self.log) and not resumes:
            os.remove(self.log)
        self._before = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        # Ctrl-C is for this process, which then asks the program to stop.
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=self._errors,
                                         start_new_session=True)

    def _steps(self) -> List[Dict[str, Any]]:
        return [line for line in self.metrics if "step" in line and "loss" in line]

    def poll(self) -> List[Dict[str, Any]]:
        """Reads the metrics that have come since the last call; raises if the program failed."""
        if self._process is None:
            return []
        ended = self._process.poll() is not None  # before reading: nothing comes after
        if self._lines is None and os.path.exists(self.log):
            self._lines = open(self.log)
            self._lines.seek(self._before)
        new: List[Dict[str, Any]] = []
        if self._lines is not None:
            self._partial += self._lines.read()
            *whole, self._partial = self._partial.split("\n")
            new = [json.loads(line) for line in whole if line]
        self.metrics += new
        for line in new:
            if "end" in line:
                self._end = line["end"]
        steps = len(self._steps())
        if self.stream is not None and steps:
            self.stream.done(steps)
        if ended and not self._ended:
            self._ended = True
            self._errors.seek(0)
            said, status = self._errors.read(), self._process.returncode
            if status not in (0, 3):
                self._failure = DsoptError(message_of(said) or f"dsopt ended with status {status}", status)
            elif self.stream is None:  # whose plan was warned about already
                pass_on_warnings(said)
        if self._failure:
            raise self._failure
        return new

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        try:
            while True:
                self._feed()
                was_running = self.running
                for line in self.poll():
                    if "step" in line:
                        yield line
                if not was_running:
                    return
                time.sleep(_PAUSE)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Asks the program to finish its step, to save what it should, and to end."""
        if self.running:
            assert self._process is not None
            self._process.terminate()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def result(self) -> Result:
        """Waits for the end."""
        for _ in self:
            pass
        self.poll()
        end = self._end or {}
        losses = [line["loss"] for line in self._steps()]
        written = self.weights if self.weights and os.path.exists(self.weights) else None
        result = Result(losses, end.get("steps", len(losses)), end.get("weights_hash", ""), written,
                        [line["eval_loss"] for line in self.metrics if "eval_loss" in line],
                        end.get("status", "interrupted"), list(self.metrics))
        self.close()
        return result

    def close(self) -> None:
        """Ends the program, if it still runs, and removes what was temporary."""
        self.stop()
        if self.stream is not None:
            self.stream.close()
        if self._lines is not None:
            self._lines.close()
            self._lines = None
        if self._errors is not None:
            self._errors.close()
        if self._own:
            shutil.rmtree(self.folder, ignore_errors=True)


def start(path: "os.PathLike[str] | str", data: Any, **options: Any) -> Run:
    """Compiles and starts a run; see `train`. Iterate what it returns for metrics as they come."""
    return Run(path, data, **options)


def train(path: "os.PathLike[str] | str", data: Any, *, config: Any = None,
          save_weights: "Optional[os.PathLike[str] | str]" = None,
          log: "Optional[os.PathLike[str] | str]" = None, on_step: Optional[Callable[[Dict[str, Any]], None]] = None,
          **options: Any) -> Result:
    """Compiles a model and trains it on ranks of this machine.

    data     a path (.npz, or tokens), a dict of arrays by input name, or an iterable of micro-batches: dicts of
             tensors or arrays (or tuples in the order of the model's inputs), as a DataLoader yields them. An
             iterable is read once, a few steps ahead.
    config   a DeepSpeed configuration: a path or a dict
    save_weights   the safetensors file to write trained weights to; `load_weights` reads it
    log      keeps the metrics there
    on_step  called with each line of metrics: a step's, or an evaluation's (eval_data=, eval_every=)
    options  as on the command line: zero=3, dp=2, steps=100, betas=(0.9, 0.95), shuffle=True
    """
    run = Run(path, data, config=config, save_weights=save_weights, log=log, **options)
    try:
        for metrics in run:
            if on_step:
                on_step(metrics)
        return run.result()
    finally:
        run.close()
