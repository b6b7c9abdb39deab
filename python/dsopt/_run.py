"""Plans and runs: the tools, their metrics and what they leave."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from . import writers
from ._callbacks import Best, Watch, gather
from ._data import Arrays, Loader, Steps, is_loader, write_rows
from ._stream import StreamWriter, to_array
from ._tools import (DsoptError, config_words, find_tool, given_checkpoint, given_count, given_inputs, given_sizes,
                     given_values, message_of, option_words, pass_on_warnings, run_tool, spoken, warn, writing)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

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
    status: str  #: "ok", "stopped" by a callback, or "interrupted"
    metrics: List[Dict[str, Any]] = field(repr=False, default_factory=list)  #: all lines of the log
    stopped: Optional[str] = None  #: why a callback ended it
    best: Optional[Best] = None  #: the checkpoint that keep_best= kept
    model: Optional[str] = None  #: that was trained


class Evaluation(float):
    """A mean loss, and as `metrics` what else was measured (metric=, log_outputs=), by name."""
    metrics: Dict[str, float]

    @classmethod
    def of(cls, lines: Iterable[Dict[str, Any]]) -> "Evaluation":
        """That of a log's first evaluation."""
        line = next(line for line in lines if "eval_loss" in line)
        measured = cls(float("nan") if line["eval_loss"] is None else line["eval_loss"])
        own = ("eval_loss", "eval_batches", "eval_ms")
        measured.metrics = {name[5:]: float(value) for name, value in line.items()
                            if name.startswith("eval_") and name not in own}
        return measured


def plan(path: "os.PathLike[str] | str", *, config: Any = None, data: Any = None, **options: "Unpack[Options]") -> Dict[str, Any]:
    """What would happen: layout, batch, memory and traffic of each rank (-plan=json). `data` may be a
    path or a dict of arrays; only shapes are read."""
    with tempfile.TemporaryDirectory(prefix="dsopt-") as folder:
        if isinstance(data, Mapping):
            data = _save(data, os.path.join(folder, "data.npz"))
        words = [os.fspath(path), "-plan=json", *config_words(config, folder), *option_words(options)]
        if data is not None:
            words.append(f"-data={os.fspath(data)}")
        return json.loads(run_tool(words, folder=folder))


def _save(arrays: Mapping[str, Any], path: str) -> str:
    with writing(path):
        np.savez(path, **{name: to_array(value) for name, value in arrays.items()})
    return path


def _as_file(data: Any, path: str, file: str, words: List[str]) -> "Tuple[str, Optional[Loader]]":
    """The path of data to measure a loss on: arrays and what a loader yields are written into `file`."""
    if isinstance(data, Mapping):
        return _save(data, file), None
    if not is_loader(data):
        return os.fspath(data), None
    loader = Loader(data, path, given_inputs(words))
    write_rows(loader, file)
    return file, loader


def _given_rows(words: List[str], loader: "Optional[Loader]") -> List[str]:
    """The rows of a loader's batches, where nothing else says how many a micro-batch has."""
    if loader and loader.common and any(isinstance(dims[0], str) for dims in loader.inputs.values() if dims):
        if not given_values(words, "micro-batch-size") and not given_sizes(words):
            return [f"-micro-batch-size={loader.rows}"]
    return []


def evaluate(path: "os.PathLike[str] | str", data: Any, *, config: Any = None, **options: "Unpack[Options]") -> Evaluation:
    """The mean loss of a model over the micro-batches of `data`, forward only (-eval): a path, a dict of
    arrays, or a loader, which is read once, whole. Metrics (metric="accuracy") are the result's `metrics`."""
    path = os.fspath(path)
    with tempfile.TemporaryDirectory(prefix="dsopt-") as folder:
        words = [*config_words(config, folder), *option_words(options)]
        data, loader = _as_file(data, path, os.path.join(folder, "data.npz"), words)
        words += _given_rows(words, loader)
        log = os.path.join(folder, "log.jsonl")
        run_tool([path, "-eval", f"-data={data}", f"-log={log}", "-quiet", *words], folder=folder)
        with open(log) as lines:
            return Evaluation.of(map(json.loads, lines))


def predict(path: "os.PathLike[str] | str", data: Any, *, config: Any = None,
            save_outputs: "Optional[os.PathLike[str] | str]" = None, **options: "Unpack[Options]") -> Dict[str, np.ndarray]:
    """The outputs of a model on `data`, forward only (-predict), by name and in the order of the data: a path, a dict
    of arrays, or a loader, which is read once, whole. outputs=["logits"] (globs) chooses some of them;
    resume="run" and weights="trained.safetensors" say whose weights. `save_outputs` keeps the .npz file."""
    path = os.fspath(path)
    with tempfile.TemporaryDirectory(prefix="dsopt-") as folder:
        words = [*config_words(config, folder), *option_words(options)]
        data, loader = _as_file(data, path, os.path.join(folder, "data.npz"), words)
        words += _given_rows(words, loader)
        file = os.fspath(save_outputs) if save_outputs else os.path.join(folder, "outputs.npz")
        run_tool([path, "-predict", f"-data={data}", f"-save-outputs={file}", "-quiet", *words], folder=folder)
        with np.load(file) as arrays:
            return {name: arrays[name] for name in arrays.files}


class Run:
    """A program that runs. Iterating it yields one dict of metrics a step, as it comes; `result()`
    waits for the end. Without data, steps are handed over by `open_stream` and `submit`. With a
    stream, iterating is also what feeds it; leaving the loop early ends the run. Callbacks are those of
    `train`. Of a loader, `pause` says after which steps the program waits until callbacks have seen that (on_pause)."""

    def __init__(self, path: "os.PathLike[str] | str", data: Any, *, config: Any = None,
                 save_weights: "Optional[os.PathLike[str] | str]" = None,
                 log: "Optional[os.PathLike[str] | str]" = None, eval_data: Any = None, folder: Optional[str] = None,
                 on_step: Optional[Callable[[Dict[str, Any]], Any]] = None,
                 on_evaluation: Optional[Callable[[Dict[str, Any]], Any]] = None,
                 on_save: Optional[Callable[[str, int], Any]] = None, callbacks: Sequence[Any] = (),
                 stop_after: Any = None, keep_best: Any = None, pause: Optional[Callable[[int], bool]] = None,
                 **options: "Unpack[Options]"):
        self._own = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="dsopt-")
        self.weights = os.fspath(save_weights) if save_weights else None
        self.log = os.fspath(log) if log else os.path.join(self.folder, "log.jsonl")
        self.metrics: List[Dict[str, Any]] = []
        self._seen: Optional[int] = None  # the last step with a loss
        self._words = [os.fspath(path), *config_words(config, self.folder), *option_words(options)]
        self._process: Optional[subprocess.Popen] = None
        self._errors: Any = None
        self._said = ""  # there
        self._before = 0  # bytes of the log that earlier runs wrote
        self._lines: Any = None
        self._partial = ""
        self._ended = False
        self._failure: Optional[DsoptError] = None
        self._warned: Set[str] = set()
        self._end: Optional[Dict[str, Any]] = None
        self._cut: Optional[Steps] = None
        self._steps_to_come: Optional[Iterator[List[Arrays]]] = None
        self.first = 0  # step, of those before a checkpoint that was resumed
        self._to_write: Optional[int] = None  # steps of a stream, None: until it ends
        self.stream: Optional[StreamWriter] = None
        self.batch: Dict[str, Any] = {}
        self._asked = False  # to stop
        self._pause = pause
        self._paused = 0  # steps of this run after which it was
        self._watch: Optional[Watch] = None
        try:
            if pause is not None and not is_loader(data):
                raise ValueError("pause= needs a loader, whose steps this process hands over one by one")
            if eval_data is not None:
                measured, _ = _as_file(eval_data, self._words[0], os.path.join(self.folder, "eval.npz"), self._words)
                self._words.append(f"-eval-data={measured}")
            watching = gather([*writers.configured(config), *callbacks], on_step, on_evaluation, on_save, stop_after, keep_best)
            self._watch = Watch(watching, self._words)
            if isinstance(data, Mapping):
                self._launch(_save(data, os.path.join(self.folder, "data.npz")))
            elif is_loader(data):
                self._open_loader(Loader(data, self._words[0], given_inputs(self._words)))
                self._feed()
            elif data is not None:
                self._launch(os.fspath(data))
        except BaseException:
            self.close()
            raise

    # A stream.

    def open_stream(self, first: Mapping[str, np.ndarray]) -> StreamWriter:
        """Asks the compiler how many micro-batches of this shape a step has, and makes their folder."""
        shapes = _save({name: np.asarray(value)[None] for name, value in first.items()},
                       os.path.join(self.folder, "shapes.npz"))
        # One micro-batch is enough to know every shape; that a step has more is for the run.
        not_planned = ("data=", "log=", "eval-data=", "keep-best", "best-metric=")
        self._plan_words = [word for word in self._words if not word.lstrip("-").startswith(not_planned)]
        self._plan_words += ["-plan=json", f"-data={shapes}"]
        self.batch = json.loads(run_tool(self._plan_words, self._warned))
        stream = os.path.join(self.folder, "stream")
        os.makedirs(stream)
        self.stream = StreamWriter(stream, self.batch["batch"]["K"])
        return self.stream

    def twin_words(self) -> List[str]:
        """The options of another run of the same model and layout, without what this one reads and writes."""
        own = ("data=", "log=", "eval-data=", "eval-every=", "eval-batches=", "save=", "save-every=", "save-keep=",
               "save-async", "save-existing=", "save-weights=", "save-onnx=", "resume=", "weights=", "init=", "steps=", "trace=",
               "compare=", "keep-best", "best-metric=", "stop-after=")
        return [word for word in self._words if not word.lstrip("-").startswith(own)]

    @property
    def resumes(self) -> bool:
        """Whether it was told to go on from a checkpoint."""
        return any(word.lstrip("-").startswith("resume") for word in self._words)

    def submit(self, items: List[Dict[str, np.ndarray]], lr: Optional[float] = None, place: str = "") -> None:
        """Hands over the micro-batches of a step, with its rate under lr_schedule="stream" and the data's place after it;
        the first of them starts the program."""
        assert self.stream is not None
        self.stream.write(items, lr, place)
        if self._process is None:
            self._launch(self.stream.data)

    def ask(self, *wishes: Tuple[str, str]) -> None:
        """Asks the program for something after the steps that were handed over (StreamWriter.ask), and waits for it."""
        assert self.stream is not None
        if self._process is None:
            self._launch(self.stream.data)
        self.stream.ask(*wishes)
        while True:
            running = self.running
            if self.stream.answered():
                return
            self.poll()
            if not running:
                raise DsoptError(f"the run ended before it could {wishes[0][0]} {wishes[0][1]}", 3)
            time.sleep(_PAUSE / 2)

    def _short_rows(self, loader: Loader) -> Tuple[List[int], str]:
        """The rows that a pass's last step may have in a micro-batch, or why it has none of its own. Where the
        model's first dimension is open and the loader says how its last micro-batch will be, the program
        is compiled for that size too."""
        assert self.stream is not None
        open_names = {dims[0] for dims in loader.inputs.values() if dims and isinstance(dims[0], str) and dims[0]}
        sizes = given_sizes(self._words)
        given = [size for name in open_names for size in sizes.get(name, [])]
        if given:
            return sorted({size for size in given if size < loader.rows}), f"-dim has {sorted(set(given))} for them"
        if not open_names or not loader.common:
            return [], "the model takes no other number (exported with dynamic_shapes it would)"
        if sizes:
            return [], f"-dim gives {', '.join(sizes)} the sizes that a program can have"
        last = loader.last_rows()
        if last is None:
            return [], "nothing said so before it came"
        if last == loader.rows:
            return [], ""
        assert loader.length is not None
        count = self.stream.micro_batches
        rows = ((loader.length - 1) % count * loader.rows + last) // count
        if not rows:
            return [], f"a step has {count} micro-batches"
        words = [f"-dim={name}={loader.rows},{rows}" for name in sorted(open_names)]
        try:
            run_tool([*self._plan_words, *words], self._warned)
        except DsoptError as error:
            return [], f"the model does not compile for {rows} rows beside {loader.rows}: {error}"
        self._words += words
        return [rows], ""

    def _open_loader(self, loader: Loader) -> None:
        """Plans what of a loader is trained on, and says what is not."""
        steps, epochs = given_count(self._words, "steps"), given_count(self._words, "epochs")
        if steps and epochs:
            raise DsoptError("options -steps and -epochs exclude each other")
        self._words = [word for word in self._words if not word.lstrip("-").startswith("epochs=")]
        checkpoint = given_checkpoint(self._words)
        if loader.again:
            # With -resume-new-batch it is told that it goes on otherwise.
            same = checkpoint is not None and not any(word.lstrip("-").startswith("resume-new-batch") for word in self._words)
            loader.order.begin(checkpoint.get("data_place", ""), checkpoint["place"]) if same and checkpoint else loader.order.begin()
        stream = self.open_stream(loader.open())
        short_rows, why_not = self._short_rows(loader)
        self._cut = cut = Steps(loader, stream.micro_batches, steps=steps, epochs=epochs, short_rows=short_rows,
                                why_not=why_not)
        cut.announce()
        planned = cut.planned()
        if cut.of_pass() == 0:
            cut.refuse()
        done = checkpoint["step"] if checkpoint else 0
        if planned is not None and not steps:
            self._words.append(f"-steps={planned}")
        if planned is not None:
            self._to_write = max(planned - done, 0)
        if checkpoint and self._to_write != 0:
            cut.skip(done, checkpoint["micro_batches"], checkpoint["place"])
        self._steps_to_come = iter(cut)
        if self._to_write == 0:  # the program says so, and writes what it should
            self.submit([loader.example] * stream.micro_batches)
            self._end_feed()

    def _feed(self) -> None:
        """Writes steps until enough lie ready, or the data ends."""
        # Steps that are not logged are not seen either.
        ahead = _AHEAD - 1 + (given_count(self._words, "log-every") or 1)
        while self._steps_to_come is not None and self.stream.written - self._done() < ahead:  # type: ignore[union-attr]
            if self._asked:
                self._steps_to_come = None
                return
            if self._is_due(self.stream.written):  # type: ignore[union-attr]
                if self._done() < self.stream.written:  # type: ignore[union-attr]
                    return
                self._paused = self.stream.written  # type: ignore[union-attr]
                self._watch.pause(self)  # type: ignore[union-attr]
                if self.stopped is not None:
                    self._ask_to_stop()
                continue
            items = next(self._steps_to_come, None)
            if items is not None:
                self.submit(items, place=self._cut.place())  # type: ignore[union-attr]
            elif self._process is None:
                self._cut.refuse()  # type: ignore[union-attr]
            if items is None or self.stream.written == self._to_write:  # type: ignore[union-attr]
                self._end_feed()

    def _is_due(self, written: int) -> bool:
        """Whether the program waits after so many steps of this run."""
        return self._pause is not None and written > self._paused and self._pause(self.first + written)

    def checkpoint(self, folder: str) -> str:
        """Writes a checkpoint of the steps that were handed over into a folder, and returns its path."""
        assert self.stream is not None
        os.makedirs(folder, exist_ok=True)
        self.ask(("save", folder))
        return os.path.join(folder, f"step-{self.first + self.stream.written:08d}")

    def write_weights(self, file: str) -> None:
        """Writes the weights after the steps that were handed over, as save_weights= does after the last."""
        self.ask(("write", file))

    def _end_feed(self) -> None:
        self._steps_to_come = None
        self.end_stream()

    def end_stream(self) -> None:
        if self.stream is not None:
            self.stream.end()

    # The program.

    def _launch(self, data: str) -> None:
        words = [find_tool(), *self._words, "-run", f"-data={data}", f"-log={self.log}", "-quiet"]
        if self.weights:
            words.append(f"-save-weights={self.weights}")
        errors = os.path.join(self.folder, "errors")
        checkpoint = given_checkpoint(self._words)
        self.first = checkpoint["step"] if checkpoint else 0
        if checkpoint and self.stream is not None:
            # The steps that are written follow this one: the program must not choose another.
            words = [word for word in words if not word.lstrip("-").startswith("resume=")]
            words.append(f"-resume={checkpoint['place']}")
        if os.path.exists(self.log) and not self.resumes:
            os.remove(self.log)
        self._before = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        # Ctrl-C is for this process, which then asks the program to stop.
        with open(errors, "w") as written:
            self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=written, start_new_session=True)
        self._errors = open(errors)

    def _steps(self) -> List[Dict[str, Any]]:
        return [line for line in self.metrics if "step" in line and "loss" in line]

    def _done(self) -> int:
        """Steps of this run that are seen to be done."""
        return self._seen + 1 - self.first if self._seen is not None else 0

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
            if "step" in line and "loss" in line:
                self._seen = line["step"]
            if "end" in line:
                self._end = line["end"]
            if "run" in line:
                self._say_passes(line["run"])
        if self.stream is not None and new:
            self.stream.done(self._done())
        if said := self._errors.read():
            self._said += said
            pass_on_warnings(self._said, self._warned, self.folder)
        assert self._watch is not None
        self._watch.see(new)
        if self._watch.stopped is not None and not ended:
            self._ask_to_stop()
        if ended and not self._ended:
            self._ended = True
            status = self._process.returncode
            self._watch.saved()
            self._watch.end(self._status() if status in (0, 3) else "failed")
            if status not in (0, 3):
                self._failure = DsoptError(message_of(spoken(self._said, self.folder)) or f"dsopt ended with status {status}", status)
        if self._failure:
            raise self._failure
        return new

    def _say_passes(self, run: Dict[str, Any]) -> None:
        """Says that steps that were asked for go through the data more than once."""
        count = run.get("micro_batches")
        if count and given_values(self._words, "steps") and run["steps"] * run["K"] > count:
            warn(f"{run['steps']} steps of {run['K']} micro-batches go {run['steps'] * run['K'] / count:.1f} times "
                 f"through the data's {count}")

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

    @property
    def stopped(self) -> Optional[str]:
        """Why a callback ends the run, where one does."""
        return self._watch.stopped if self._watch else None

    def _status(self) -> str:
        status = (self._end or {}).get("status", "interrupted")
        return "stopped" if status == "interrupted" and self.stopped is not None else status

    def _ask_to_stop(self) -> None:
        # Once: the second signal would end the program without saving.
        if not self._asked and self.running:
            self._asked = True
            self._process.terminate()  # type: ignore[union-attr]

    def stop(self) -> None:
        """Asks the program to finish its step, to save what it should, and to end."""
        if self.running:
            assert self._process is not None
            self._ask_to_stop()
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
                        self._status(), list(self.metrics), self.stopped, self._watch.best if self._watch else None,
                        self._words[0])
        self.close()
        return result

    def note_saved(self, path: str, step: int) -> None:
        """Shows callbacks a checkpoint that was asked for."""
        assert self._watch is not None
        self._watch.note(path, step)
        if self.stopped is not None:
            self._ask_to_stop()

    def close(self) -> None:
        """Ends the program, if it still runs, and removes what was temporary."""
        self.stop()
        if self._watch is not None:
            self._watch.end("interrupted")
        if self.stream is not None:
            self.stream.close()
        if self._lines is not None:
            self._lines.close()
            self._lines = None
        if self._errors is not None:
            self._errors.close()
        if self._own:
            shutil.rmtree(self.folder, ignore_errors=True)


def start(path: "os.PathLike[str] | str", data: Any, **options: "Unpack[Options]") -> Run:
    """Compiles and starts a run; see `train`. Iterate what it returns for metrics as they come."""
    return Run(path, data, **options)


def train(path: "os.PathLike[str] | str", data: Any, *, config: Any = None,
          save_weights: "Optional[os.PathLike[str] | str]" = None,
          log: "Optional[os.PathLike[str] | str]" = None, eval_data: Any = None,
          on_step: Optional[Callable[[Dict[str, Any]], Any]] = None,
          on_evaluation: Optional[Callable[[Dict[str, Any]], Any]] = None,
          on_save: Optional[Callable[[str, int], Any]] = None, callbacks: Sequence[Any] = (), stop_after: Any = None,
          keep_best: Any = None, **options: "Unpack[Options]") -> Result:
    """Compiles a model and trains it on ranks of this machine.

    data     a path (.npz, or tokens), a dict of arrays by input name, or an iterable of micro-batches: dicts of
             tensors or arrays (or tuples in the order of the model's inputs), as a DataLoader yields them. It is read
             a few steps ahead; `epochs` and `steps` go through it again where it can be iterated again. A shorter
             last micro-batch becomes a step of its own where the model's first dimension is open, else it is left
             out; a warning says what of the data is not trained on (docs/Data.md).
    config   a DeepSpeed configuration: a path or a dict
    save_weights   the safetensors file to write trained weights to; `load_weights` reads it
    log      keeps the metrics there
    eval_data   data to measure the loss on: a path, a dict of arrays, or a loader, which is read once, whole
    on_step, on_evaluation, on_save   called with the metrics of a step, with those of an evaluation (eval_every=), and
             with path and step of a checkpoint (save=). False or `Stop` as an answer ends the run (docs/Watching.md).
    callbacks   objects with such methods (`Callback`, `dsopt.writers`)
    stop_after  StopAfter("eval_loss", patience=3): ends the run when the metric improves no more
    keep_best   "eval_loss": keeps the checkpoint in which it is best as `best` in the folder of save=
    pause       of a loader: after which steps the program waits for on_pause of callbacks (docs/Watching.md)
    options  as on the command line: zero=3, dp=2, steps=100, betas=(0.9, 0.95), shuffle=True
    """
    run = Run(path, data, config=config, save_weights=save_weights, log=log, eval_data=eval_data, on_step=on_step,
              on_evaluation=on_evaluation, on_save=on_save, callbacks=callbacks, stop_after=stop_after,
              keep_best=keep_best, **options)
    try:
        return run.result()
    finally:
        run.close()
