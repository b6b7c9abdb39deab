"""Writers of metrics: callbacks that put what a run logs where other tools look for it.

    dsopt.train(..., callbacks=[dsopt.writers.TensorBoard("runs/first")])
    dsopt.writers.write("run.jsonl", dsopt.writers.CSV("run.csv"))       # of a finished run

Each number of a line of the log is a scalar: train/loss, train/lr, eval/loss ... at the log's
own step. TensorBoard, WandB and Comet use their own packages, which have to be installed.
"""
from __future__ import annotations

import csv
import importlib
import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._callbacks import Callback, Record, is_evaluation
from ._tools import DsoptError

__all__ = ["CSV", "Comet", "TensorBoard", "WandB", "scalars", "write"]


def scalars(record: Record) -> Dict[str, float]:
    """The numbers of a line by name. What the log has as null is no number; norms are named by their parameters,
    and of what each rank has the largest counts."""
    prefix = "eval/" if is_evaluation(record) else "train/"
    found: Dict[str, float] = {}
    for name, value in record.items():
        name = prefix + (name[5:] if name.startswith("eval_") else name)
        if name == prefix + "step" or name == prefix + "losses" or isinstance(value, str):
            continue
        if isinstance(value, Mapping):
            found.update({f"{name}/{key}": _number(one) for key, one in value.items()})
        elif isinstance(value, list):
            found[name] = max(map(_number, value), default=0.0)
        else:
            found[name] = _number(value)
    return found


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _package(name: str, install: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DsoptError(f"{what} needs the package '{install}', which cannot be imported here ({error}): pip install "
                         f"{install}") from None


class _Writer(Callback):
    """Writes each record's scalars."""

    def on_step(self, record: Record) -> None:
        self._write(record["step"], scalars(record))

    on_evaluation = on_step

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        raise NotImplementedError


class TensorBoard(_Writer):
    """Event files for TensorBoard, by the package tensorboard. Values are float32 there."""

    def __init__(self, folder: "os.PathLike[str] | str"):
        self.folder = os.fspath(folder)
        what = "dsopt.writers.TensorBoard"
        self._events = _package("tensorboard.compat.proto.event_pb2", "tensorboard", what)
        self._summaries = _package("tensorboard.compat.proto.summary_pb2", "tensorboard", what)
        self._files = _package("tensorboard.summary.writer.event_file_writer", "tensorboard", what)
        self._file: Any = None

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        import time

        if self._file is None:
            self._file = self._files.EventFileWriter(self.folder)
        value = self._summaries.Summary.Value
        summary = self._summaries.Summary(value=[value(tag=name, simple_value=one) for name, one in values.items()])
        self._file.add_event(self._events.Event(wall_time=time.time(), step=step, summary=summary))

    def on_end(self, status: str) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class WandB(_Writer):
    """A run of Weights & Biases, by the package wandb; `options` are those of wandb.init (project=, entity=, group=,
    name=, mode= ...). What the log says of the run is its configuration."""

    def __init__(self, **options: Any):
        self._wandb = _package("wandb", "wandb", "dsopt.writers.WandB")
        self._options = options
        self._run: Any = None

    def _open(self) -> Any:
        if self._run is None:
            self._run = self._wandb.init(**self._options)
        return self._run

    def on_run(self, run: Record) -> None:
        self._open().config.update({"dsopt": run}, allow_val_change=True)

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        self._open().log(dict(values), step=step)

    def on_end(self, status: str) -> None:
        if self._run is not None:
            self._run.finish(exit_code=1 if status == "failed" else 0)
            self._run = None


class Comet(_Writer):
    """An experiment of Comet, by the package comet_ml; `options` are those of comet_ml.start (project=, workspace=,
    api_key=, experiment_key=, mode=, online=). `every` leaves out steps between, not evaluations."""

    def __init__(self, every: int = 1, name: Optional[str] = None, **options: Any):
        self._comet = _package("comet_ml", "comet_ml", "dsopt.writers.Comet")
        self._every, self._name, self._options = every, name, options
        self._experiment: Any = None

    def on_run(self, run: Record) -> None:
        if self._experiment is None:
            self._experiment = self._comet.start(**self._options)
            if self._name is not None:
                self._experiment.set_name(self._name)

    def on_step(self, record: Record) -> None:
        if record["step"] % self._every == 0 or is_evaluation(record):
            super().on_step(record)

    on_evaluation = on_step

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        self.on_run({})
        self._experiment.log_metrics(dict(values), step=step)

    def on_end(self, status: str) -> None:
        if self._experiment is not None:
            self._experiment.end()
            self._experiment = None


class CSV(_Writer):
    """A table: a row for each line of the log, a column for each scalar that has come. A file that is there is
    written anew."""

    def __init__(self, path: "os.PathLike[str] | str"):
        self.path = os.fspath(path)
        self._columns: List[str] = []
        self._file: Any = None

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        new = [name for name in values if name not in self._columns]
        if new:
            self._widen(new)
        row = [step, *(values.get(name, "") for name in self._columns)]
        csv.writer(self._file, lineterminator="\n").writerow(row)
        self._file.flush()

    def _widen(self, names: List[str]) -> None:
        """Gives the rows that are there more columns."""
        rows: List[List[str]] = []
        if self._file is not None:
            self._file.close()
            with open(self.path, newline="") as file:
                rows = list(csv.reader(file))[1:]
        elif folder := os.path.dirname(self.path):
            os.makedirs(folder, exist_ok=True)
        self._columns += names
        self._file = open(self.path + ".tmp", "w", newline="")
        table = csv.writer(self._file, lineterminator="\n")
        table.writerow(["step", *self._columns])
        table.writerows([*row, *[""] * (1 + len(self._columns) - len(row))] for row in rows)
        os.replace(self.path + ".tmp", self.path)

    def on_end(self, status: str) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._columns = []


def _lines(path: "os.PathLike[str] | str") -> Iterator[Tuple[int, Record]]:
    with open(path) as file:
        for at, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return  # it is still being written, or was cut
            try:
                yield at, json.loads(line)
            except ValueError:
                raise DsoptError(f"{os.fspath(path)}:{at}: not a line of a log: {line[:60].strip()!r}") from None


def write(log: "os.PathLike[str] | str", *writers: Callback) -> None:
    """Shows writers (or other callbacks) a log that a run has left, as the run itself would have."""
    status = "interrupted"
    try:
        for _, line in _lines(log):
            name = "on_run" if "run" in line else "on_evaluation" if is_evaluation(line) else "on_step"
            status = line["end"]["status"] if "end" in line else status
            if "run" in line or "step" in line:
                for writer in writers:
                    getattr(writer, name)(line["run"] if "run" in line else line)
    finally:
        for writer in writers:
            writer.on_end(status)


# DeepSpeed's configuration.


def configured(config: Any) -> List[Callback]:
    """The writers that a DeepSpeed configuration asks for, with DeepSpeed's defaults. What is wrong with it is for
    the compiler to say."""
    if isinstance(config, (str, os.PathLike)):
        try:
            with open(config) as file:
                config = json.load(file)
        except (OSError, ValueError):
            return []
    found: List[Callback] = []

    def given(name: str) -> Optional[Dict[str, Any]]:
        block = config.get(name) if isinstance(config, Mapping) else None
        block = {key: value for key, value in block.items() if value != "auto"} if isinstance(block, Mapping) else {}
        return block if block.get("enabled") is True else None

    if (block := given("tensorboard")) is not None:
        found.append(TensorBoard(_place(block)))
    if (block := given("wandb")) is not None:
        names = {"group": "group", "team": "entity", "project": "project"}
        options = {theirs: block[ours] for ours, theirs in names.items() if block.get(ours) is not None}
        found.append(WandB(**{"project": "deepspeed", **options}))
    if (block := given("csv_monitor")) is not None:
        found.append(CSV(os.path.join(_place(block), "metrics.csv")))
    if (block := given("comet")) is not None:
        names = {name: name for name in ("project", "workspace", "api_key", "experiment_key", "online", "mode")}
        options = {name: block[name] for name in names if block.get(name) is not None}
        found.append(Comet(every=block.get("samples_log_interval", 100), name=block.get("experiment_name"), **options))
    return found


def _place(block: Mapping[str, Any]) -> str:
    return os.path.join(block.get("output_path") or "", block.get("job_name", "DeepSpeedJobName"))
