"""Writers: what they hand to the packages of TensorBoard, Weights & Biases and Comet, tables, and the keys of DeepSpeed's
configurations that ask for them. Where tensorboard is installed its own reader reads the files.

usage: writers.py SOURCE BUILD
"""
import csv
import importlib.util
import json
import math
import os
import sys
import tempfile
import types
import warnings

source, build = map(os.path.abspath, sys.argv[1:3])
os.environ["DSOPT_BUILD"] = build
sys.path.insert(0, os.path.join(source, "python"))

import numpy as np

import dsopt
from checks import check, fails
from dsopt import writers

folder = tempfile.mkdtemp()
os.chdir(folder)
model = os.path.join(source, "test", "Models", "mlp", "model.onnx")
data = os.path.join(source, "test", "Models", "mlp", "batches.npz")
arrays = np.load(data)
held = {name: arrays[name].reshape(-1, *arrays[name].shape[2:])[:4] for name in ("x", "labels")}
common = {"dp": 2, "steps": 6, "eval_data": held, "eval_every": 4, "log_norms": True, "lr": 1e-2}


class Recorder(dsopt.Callback):
    """What the writers should have written."""

    def __init__(self):
        self.rows = []

    def on_step(self, record):
        self.rows.append((record["step"], writers.scalars(record)))

    on_evaluation = on_step


def stand_in(name, **content):
    """A module of this name, until `restore`."""
    parts = name.split(".")
    for at in range(1, len(parts)):
        sys.modules.setdefault(".".join(parts[:at]), types.ModuleType(".".join(parts[:at])))
    sys.modules[name] = types.SimpleNamespace(**content)


# The scalars of a line.
line = {"step": 3, "loss": 1.5, "grad_norm": None, "peak_bytes": [10, 20], "losses": [1, 2], "skipped": True, "grad_norms": {"w": 0.5}}
got = writers.scalars(line)
check(math.isnan(got.pop("train/grad_norm")), got)
check(got == {"train/loss": 1.5, "train/peak_bytes": 20, "train/skipped": 1, "train/grad_norms/w": 0.5}, got)
check(writers.scalars({"step": 3, "eval_loss": 2.0, "eval_ms": 1}) == {"eval/loss": 2.0, "eval/ms": 1.0}, "an evaluation")

# A table, while the run goes on and afterwards from its log.
recorder = Recorder()
result = dsopt.train(model, data, log="run.jsonl", callbacks=[recorder, writers.CSV("deep/run.csv")], **common)
check(len(recorder.rows) == 6 + len(result.eval_losses) == 8, recorder.rows)


def is_the_log(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    table = [(int(row.pop("step")), {name: float(value) for name, value in row.items() if value != ""}) for row in rows]
    check(table == recorder.rows, f"{path}: {table[:1]} against {recorder.rows[:1]}")


is_the_log("deep/run.csv")
writers.write("run.jsonl", writers.CSV("again.csv"))
is_the_log("again.csv")
check(not [name for name in os.listdir("deep") + os.listdir(".") if name.endswith(".tmp")], "a file is left over")
with open("cut.jsonl", "w") as file:
    file.write(open("run.jsonl").read()[:-30])
writers.write("cut.jsonl", writers.CSV("cut.csv"))
is_the_log("cut.csv")
with open("wrong.jsonl", "w") as file:
    file.write("loss 1\n")
fails(lambda: writers.write("wrong.jsonl", writers.CSV("none.csv")), "wrong.jsonl:1: not a line of a log: 'loss 1'")
print("tables", flush=True)

# Weights & Biases and Comet, of which the calls are seen.
calls = []


class Told:
    """Notes every call of a method."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name == "config":
            return Told(self._name + ".config")
        return lambda *values, **options: calls.append((f"{self._name}.{name}", values, options))


def opens(name):
    return lambda **options: calls.append((name, (), options)) or Told(name)


for name in ("wandb", "comet_ml"):
    sys.modules[name] = None  # as where it is not installed
fails(lambda: writers.WandB(project="p"), "dsopt.writers.WandB needs the package 'wandb'", "pip install wandb")
fails(lambda: writers.Comet(), "pip install comet_ml")
stand_in("wandb", init=opens("run"))
stand_in("comet_ml", start=opens("experiment"))
writers.write("run.jsonl", writers.WandB(project="p", mode="offline"))
check(calls[0] == ("run", (), {"project": "p", "mode": "offline"}) and calls[1][0] == "run.config.update", calls[:2])
check(calls[1][1][0]["dsopt"]["layout"]["dp"] == 2, calls[1])
check([(call[2]["step"], call[1][0]) for call in calls if call[0] == "run.log"] == recorder.rows, "the values of wandb")
check(calls[-1] == ("run.finish", (), {"exit_code": 0}), calls[-1])
calls.clear()
writers.write("run.jsonl", writers.Comet(every=3, name="first", project="p"))
check(calls[:2] == [("experiment", (), {"project": "p"}), ("experiment.set_name", ("first",), {})], calls[:2])
logged = [(call[2]["step"], call[1][0]) for call in calls if call[0] == "experiment.log_metrics"]
check(logged == [row for row in recorder.rows if row[0] % 3 == 0 or "eval/loss" in row[1]], "the values of comet")
check(calls[-1][0] == "experiment.end", calls[-1])
print("wandb and comet", flush=True)

# The keys of a configuration, with DeepSpeed's defaults; there is no warning that they have no effect.
blocks = {"csv_monitor": {"enabled": True, "output_path": "monitor", "job_name": "job"},
          "wandb": {"enabled": True, "team": "us", "group": None, "project": "auto"},
          "comet": {"enabled": True, "samples_log_interval": 2, "experiment_name": "first", "mode": "create"},
          "tensorboard": {"enabled": False, "output_path": "none"}}
with open("ds_config.json", "w") as file:
    json.dump({**blocks, "timers": {}}, file)
for config in (blocks, "ds_config.json"):
    calls.clear()
    recorder = Recorder()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dsopt.train(model, data, config=config, callbacks=[recorder], **common)
    said = [str(one.message) for one in caught]
    check(not any("monitor" in one or "wandb" in one for one in said), said)
    check(any("timers" in one for one in said) == (config is not blocks), said)
    is_the_log("monitor/job/metrics.csv")
    check(("run", (), {"project": "deepspeed", "entity": "us"}) in calls, calls[:3])
    check(("experiment", (), {"mode": "create"}) in calls and ("experiment.set_name", ("first",), {}) in calls, calls[:3])
    check(len([call for call in calls if call[0] == "experiment.log_metrics"]) == 3 + 2, "samples_log_interval")
check(writers.configured({"csv_monitor": {"enabled": True}})[0].path == "DeepSpeedJobName/metrics.csv", "the job's name")
check(writers.configured({"csv_monitor": {}}) == writers.configured({"csv_monitor": True}) == writers.configured("nowhere") == [], "not enabled")
fails(lambda: dsopt.train(model, data, config={"csv_monitor": {"enabled": True, "jobname": "x"}}), "did you mean 'job_name'?")
print("configurations", flush=True)

# TensorBoard: the calls, or its own reader.
def in_the_log():
    """Each scalar's steps and values, as float32."""
    recorder, found = Recorder(), {}
    writers.write("run.jsonl", recorder)
    for step, values in recorder.rows:
        for name, value in values.items():
            found.setdefault(name, []).append((step, float(np.float32(value))))
    return found


if importlib.util.find_spec("tensorboard") is None:
    fails(lambda: writers.TensorBoard("board"), "dsopt.writers.TensorBoard needs the package 'tensorboard'")
    events = []

    class Files:
        def __init__(self, place):
            check(place == "board", place)

        add_event = events.append

        def close(self):
            events.append("closed")

    def keywords(**options):
        return types.SimpleNamespace(**options)

    keywords.Value = keywords
    stand_in("tensorboard.compat.proto.event_pb2", Event=keywords)
    stand_in("tensorboard.compat.proto.summary_pb2", Summary=keywords)
    stand_in("tensorboard.summary.writer.event_file_writer", EventFileWriter=Files)
    writers.write("run.jsonl", writers.TensorBoard("board"))
    expected = in_the_log()
    check(events.pop() == "closed", "the file is open")
    found = {}
    for event in events:
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, float(np.float32(value.simple_value))))
    print("tensorboard is not installed: a stand-in was called")
else:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    dsopt.train(model, data, config={"tensorboard": {"enabled": True, "output_path": "boards", "job_name": "board"}}, **common,
                log="run.jsonl")
    writers.write("run.jsonl", writers.TensorBoard("board"))
    expected = in_the_log()
    for place in ("boards/board", "board"):
        reader = EventAccumulator(place, size_guidance={"scalars": 0})
        reader.Reload()
        found = {name: [(one.step, one.value) for one in reader.Scalars(name)] for name in reader.Tags()["scalars"]}
        check(found == expected, f"{place}: {found} against {expected}")
    print("read by TensorBoard's own reader")
check(found == expected and len(found) > 10 and "eval/loss" in found, "the scalars")
print("passed")
