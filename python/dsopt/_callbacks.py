"""What watches a run: callbacks that may end it, early stopping, the best checkpoint."""
from __future__ import annotations

import json
import math
import os
import re
import shutil
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ._tools import DsoptError, given_count, given_values, warn

Record = Dict[str, Any]
_SMALLER = ("loss", "perplexity", "mse", "mae", "rmse", "error", "norm")
_LARGER = ("accuracy", "f1", "precision", "recall", "auc", "r2")


class Stop:
    """What a callback returns to end the run, with the reason that `Result.stopped` shows. The class itself,
    and False, do without one."""

    def __init__(self, reason: str = ""):
        self.reason = reason


class Callback:
    """What a run calls. Each method but on_start and on_end may return False or `Stop` to end the run: it
    finishes its step, saves where save= and save_weights= say, and ends with the status "stopped"."""

    def on_start(self, words: List[str]) -> None:
        """Before the program starts; `words` are its options."""

    def on_run(self, run: Record) -> Any:
        """What the log says of the run: layout, batch, plan."""

    def on_step(self, record: Record) -> Any:
        """The metrics of a step."""

    def on_evaluation(self, record: Record) -> Any:
        """Those of an evaluation."""

    def on_save(self, path: str, step: int) -> Any:
        """A checkpoint is complete, after `step` steps. Those that a later one has removed meanwhile are not seen."""

    def on_pause(self, run: Any) -> Any:
        """The program waits between two steps, where a run was told to pause: `run.checkpoint` has its state."""

    def on_end(self, status: str) -> None:
        """The run is over: "ok", "stopped", "interrupted" or "failed"."""


class _Functions(Callback):
    """The functions that on_step=, on_evaluation= and on_save= name."""

    def __init__(self, on_step: Any, on_evaluation: Any, on_save: Any):
        for name, function in (("on_step", on_step), ("on_evaluation", on_evaluation), ("on_save", on_save)):
            if function is not None:
                setattr(self, name, function)


def metric_of(record: Record, metric: str) -> Optional[float]:
    """A metric's value in the records that have it; an error where it should be and is not. One whose name
    begins with eval_ is an evaluation's."""
    if metric in record:
        return float("nan") if record[metric] is None else float(record[metric])
    if is_evaluation(record) == metric.startswith("eval_"):
        there = ", ".join(name for name, value in record.items() if isinstance(value, (int, float)) and name != "step")
        raise DsoptError(f"no metric '{metric}' is logged; there are {there}")
    return None


def is_evaluation(record: Record) -> bool:
    return any(name.startswith("eval_") for name in record)


def mode_of(metric: str, mode: Optional[str]) -> str:
    """Whether smaller or larger is better."""
    if mode in ("min", "max"):
        return mode
    if mode is not None:
        raise ValueError(f"mode={mode!r}: expected 'min' or 'max'")
    if re.search(r"top\d+$", metric):
        return "max"
    for endings, what in ((_SMALLER, "min"), (_LARGER, "max")):
        if metric.endswith(endings):
            return what
    raise ValueError(f"whether '{metric}' is better when it is smaller or larger is not known: give mode='min' or 'max'")


def is_better(value: float, best: Optional[float], mode: str, least: float = 0.0) -> bool:
    """Whether `value` is better than `best` by more than `least`; what is no number never is."""
    if not math.isfinite(value):
        return False
    return best is None or (value < best - least if mode == "min" else value > best + least)


class StopAfter(Callback):
    """Ends a run when `metric` has not improved by more than `min_delta` in `patience` values one after the other."""

    def __init__(self, metric: str = "eval_loss", patience: int = 3, min_delta: float = 0.0,
                 mode: Optional[str] = None):
        if patience < 1 or min_delta < 0:
            raise ValueError(f"patience={patience}, min_delta={min_delta}: expected 1 or more, and 0 or more")
        self.metric, self.patience, self.min_delta, self.mode = metric, patience, min_delta, mode_of(metric, mode)
        self.best: Optional[float] = None
        self.waited = 0  #: values since the best

    def on_start(self, words: List[str]) -> None:
        self.best, self.waited = None, 0
        if self.metric.startswith("eval_") and not (given_values(words, "eval-data") and given_values(words, "eval-every")):
            raise ValueError(f"stop_after looks at {self.metric}: it needs eval_data= and eval_every=")

    def _see(self, record: Record) -> Any:
        value = metric_of(record, self.metric)
        if value is None:
            return None
        if is_better(value, self.best, self.mode, self.min_delta):
            self.best, self.waited = value, 0
            return None
        self.waited += 1
        if self.waited < self.patience:
            return None
        return Stop(f"{self.metric} has not improved on {self.best} for {self.waited} values, up to step {record['step']}")

    on_step = on_evaluation = _see


@dataclass
class Best:
    """The best checkpoint of a run."""
    path: str  #: what resume= takes
    step: int  #: steps before it
    metric: str
    value: float

    def keep(self, checkpoint: str) -> bool:
        """Puts a checkpoint here in place of the one before; False where it has gone meanwhile."""
        if not take(checkpoint, self.path):
            return False
        with open(self.path + ".json.tmp", "w") as file:
            json.dump({"metric": self.metric, "value": self.value, "step": self.step}, file)
        os.replace(self.path + ".json.tmp", self.path + ".json")
        return True

    @classmethod
    def kept(cls, folder: str, metric: str) -> "Optional[Best]":
        """What `keep` left in a folder, where it is the best of this metric."""
        try:
            with open(os.path.join(folder, "best.json")) as file:
                before = json.load(file)
        except (OSError, ValueError):
            return None
        return cls(os.path.join(folder, "best"), before["step"], metric, before["value"]) if before.get("metric") == metric else None


class KeepBest(Callback):
    """Keeps the checkpoint of the best evaluation as DIR/best, where DIR is that of save=: the program's own -keep-best,
    so that none is missed however far this process lags behind. `best` is known when the run is over."""

    def __init__(self, metric: str = "eval_loss", mode: Optional[str] = None):
        if not metric.startswith("eval_"):
            raise ValueError(f"keep_best compares evaluations: expected a metric like eval_loss, got '{metric}'")
        self.metric, self.mode = metric, mode_of(metric, mode)
        self.best: Optional[Best] = None
        self._folder = ""
        self._compares = False  #: what lies in the folder is this run's, or what it goes on from

    def on_start(self, words: List[str]) -> None:
        if not given_values(words, "save"):
            raise ValueError("keep_best keeps a checkpoint: it needs save=")
        if not given_values(words, "eval-data") or not given_count(words, "eval-every"):
            raise ValueError(f"keep_best looks at {self.metric}: it needs eval_data= and eval_every=")
        words += ["-keep-best", f"-best-metric={self.metric}:{self.mode}"]
        self.best, self._folder, self._compares = None, given_values(words, "save")[-1], bool(given_values(words, "resume"))

    def on_evaluation(self, record: Record) -> None:
        self._compares |= metric_of(record, self.metric) is not None

    def on_end(self, status: str) -> None:
        self.best = Best.kept(self._folder, self.metric) if self._compares else None
        if self.best is None and status in ("ok", "stopped"):
            warn(f"keep_best found no checkpoint with a value of {self.metric}")


def take(path: str, place: str) -> bool:
    """Puts a second name, or a copy where that cannot be, of each file of a checkpoint into `place`; False where
    the checkpoint has gone meanwhile."""
    there, old = place + ".new", place + ".old"
    for leftover in (there, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        # A checkpoint has its name a moment before its mark of a draft is taken away.
        shutil.copytree(path, there, copy_function=_link, ignore=shutil.ignore_patterns("draft"))
    except (OSError, shutil.Error):
        shutil.rmtree(there, ignore_errors=True)
        if os.path.exists(path):
            raise
        return False
    if os.path.exists(place):
        os.rename(place, old)
    os.rename(there, place)
    shutil.rmtree(old, ignore_errors=True)
    return True


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


class Watch:
    """Shows the callbacks of a run what comes, and notes which of them ended it."""

    def __init__(self, callbacks: Sequence[Any], words: List[str]):
        self.callbacks = list(callbacks)
        self.stopped: Optional[str] = None
        self._ended = False
        for callback in self.callbacks:
            self._call(callback, "on_start", words)
        self._folder = (given_values(words, "save") or [""])[-1]
        self._known: Set[Tuple[str, int]] = set()
        self._known = {key for _, _, key in self._checkpoints()}

    def _call(self, callback: Any, name: str, *arguments: Any) -> None:
        method = getattr(callback, name, None)
        if method is None:
            return
        answer = method(*arguments)
        stops = answer is False or answer is Stop or isinstance(answer, Stop)
        if stops and self.stopped is None:
            who = getattr(callback, "__qualname__", type(callback).__name__).lstrip("_")
            self.stopped = (answer.reason if isinstance(answer, Stop) else "") or f"{name} of {who} said so"

    def _checkpoints(self) -> List[Tuple[int, str, Tuple[str, int]]]:
        """Complete ones that have not been seen: steps, path, and what tells it from another of its name."""
        found = []
        for name in os.listdir(self._folder) if self.callbacks and os.path.isdir(self._folder) else []:
            path = os.path.join(self._folder, name)
            if re.fullmatch(r"step-\d+", name):
                try:
                    key = (name, os.stat(os.path.join(path, "manifest.json")).st_mtime_ns)
                except OSError:
                    continue  # it is removed just now
                if key not in self._known:
                    found.append((int(name[5:]), path, key))
        return sorted(found)

    def saved(self) -> None:
        """Looks for new checkpoints in the folder of save=."""
        for step, path, key in self._checkpoints():
            self._known.add(key)
            self.note(path, step)

    def pause(self, run: Any) -> None:
        for callback in self.callbacks:
            self._call(callback, "on_pause", run)

    def note(self, path: str, step: int) -> None:
        for callback in self.callbacks:
            self._call(callback, "on_save", path, step)

    def see(self, lines: List[Record]) -> None:
        """New lines of the log."""
        for line in lines:
            name, what = "on_step", line
            if "run" in line:
                name, what = "on_run", line["run"]
            elif "step" not in line:
                continue
            elif is_evaluation(line):
                name = "on_evaluation"
            for callback in self.callbacks:
                self._call(callback, name, what)
        if lines:
            self.saved()

    def end(self, status: str) -> None:
        if not self._ended:
            self._ended = True
            for callback in self.callbacks:
                self._call(callback, "on_end", status)

    @property
    def best(self) -> Optional[Best]:
        return next((callback.best for callback in self.callbacks if isinstance(callback, KeepBest)), None)


def gather(callbacks: Sequence[Any], on_step: Optional[Callable[[Record], Any]],
           on_evaluation: Optional[Callable[[Record], Any]], on_save: Optional[Callable[[str, int], Any]],
           stop_after: Any, keep_best: Any) -> List[Any]:
    """All that watches a run, in the order it is called."""
    found = [*callbacks]
    if on_step or on_evaluation or on_save:
        found.append(_Functions(on_step, on_evaluation, on_save))
    for stop in stop_after if isinstance(stop_after, (list, tuple)) else [stop_after] if stop_after else []:
        if not isinstance(stop, StopAfter):
            raise TypeError(f"stop_after={stop!r}: expected dsopt.StopAfter(metric, patience=3)")
        found.append(stop)
    if isinstance(keep_best, (str, KeepBest)):
        found.append(KeepBest(keep_best) if isinstance(keep_best, str) else keep_best)
    elif keep_best:
        if keep_best is not True:
            raise TypeError(f"keep_best={keep_best!r}: expected True, a metric's name, or dsopt.KeepBest(metric, mode=)")
        found.append(KeepBest())
    return found
