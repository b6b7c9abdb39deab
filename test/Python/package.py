"""The package without torch: plans, runs, streams and their errors.

usage: package.py SOURCE BUILD
"""
import fcntl
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings

source, build = map(os.path.abspath, sys.argv[1:3])
os.environ["DSOPT_BUILD"] = build
sys.path.insert(0, os.path.join(source, "python"))

import numpy as np
import onnx
from onnx import numpy_helper

import dsopt
from checks import check, fails

warnings.filterwarnings("ignore", category=UserWarning)  # test/Python/loaders.py looks at them
folder = tempfile.mkdtemp()
mlp = os.path.join(source, "test", "Models", "mlp")
model, npz = os.path.join(mlp, "model.onnx"), os.path.join(mlp, "batches.npz")
arrays = dict(np.load(npz))
inputs = {name: value.reshape(-1, *value.shape[2:]) for name, value in arrays.items()}  # 32 micro-batches
fails = functools.partial(fails, kinds=(dsopt.DsoptError, ValueError, TypeError))


def items(count=32):
    for at in range(count):
        yield {name: value[at] for name, value in inputs.items()}


def path(name):
    return os.path.join(folder, name)


# A plan.
planned = dsopt.plan(model, zero=3, dp=2, micro_batches=2, config={"bf16": {"enabled": False}})
check(planned["batch"]["K"] == 4 and len(planned["ranks"]) == 2, planned["batch"])

# A path, arrays and a stream give the same bits, in every layout.
common = {"lr": 1e-2, "reduction_shards": 2, "accumulate": "local"}
seen = []
first = dsopt.train(model, npz, save_weights=path("weights"), on_step=seen.append, micro_batches=4, **common)
check(first.status == "ok" and first.steps == 8 and len(seen) == 8, first)
check(first.losses == [line["loss"] for line in seen] and first.losses[-1] < first.losses[0], "the losses")
check(dsopt.train(model, arrays, micro_batches=4, **common).weights_hash == first.weights_hash, "arrays")
for layout in ({"micro_batches": 4}, {"dp": 2, "zero": 2, "micro_batches": 2}, {"dp": 2, "pp": 2, "zero": 3, "micro_batches": 2}):
    run = dsopt.start(model, items(), **layout, **common)
    count = 0
    for line in run:
        count += 1
        check(len(line["losses"]) == 4 and abs(np.mean(line["losses"]) - line["loss"]) < 1e-6, line)
    result = run.result()
    check(count == 8 and result.weights_hash == first.weights_hash, f"a stream under {layout}: {result}")
    check(not os.path.exists(run.folder), "what was temporary is still there")
print("one hash:", first.weights_hash[:12])

# A stream's remainder is left out; its end is where -save saves.
result = dsopt.train(model, items(11), micro_batches=4, save=path("saved"), lr=1e-2)
check(result.steps == 2 and os.path.exists(path("saved/step-00000002/manifest.json")), result)
result = dsopt.train(model, items(8), micro_batches=4, resume=path("saved"), lr=1e-2)
check(result.steps == 4 and len(result.losses) == 2, result)

# Tuples take the model's order; -steps ends an endless stream.
endless = ((one["x"], one["labels"]) for _ in itertools.count() for one in items())
tuples = dsopt.train(model, endless, steps=8, micro_batches=4, **common)
check(tuples.weights_hash == first.weights_hash, tuples)

# What the compiler warns about is a warning here.
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    dsopt.train(model, npz, steps=1, config={"zero_optimization": {"stage": 1, "overlap_comm": False}})
check(len(caught) == 1 and "the compiler decides this by itself" in str(caught[0].message), caught)

# An evaluation among the metrics.
result = dsopt.train(model, items(8), lr=1e-2, micro_batches=2, eval_data=npz, eval_every=2)
check(len(result.eval_losses) == 2, result)

# Metrics: in records, as what an evaluation measured, and as what a callback looks at.
measured = dsopt.evaluate(model, npz, metric=["accuracy", "perplexity"])
check(measured == dsopt.evaluate(model, npz) and set(measured.metrics) == {"accuracy", "perplexity"}, measured.metrics)
check(abs(measured.metrics["perplexity"] / np.exp(measured) - 1) < 1e-5 and 0 < measured.metrics["accuracy"] < 1, measured.metrics)
result = dsopt.train(model, npz, lr=0, weight_decay=0, steps=8, micro_batches=2, eval_data=npz, eval_every=1, metric="accuracy",
                     stop_after=dsopt.StopAfter("eval_accuracy", patience=2))
check("eval_accuracy has not improved on" in result.stopped, result)
check([line["eval_accuracy"] for line in result.metrics if "eval_accuracy" in line][0] == measured.metrics["accuracy"], result.metrics)

# Outputs, of rows and of micro-batches.
outputs = dsopt.predict(model, npz, outputs=["logits"])
check(list(outputs) == ["logits"] and outputs["logits"].shape[:2] == (32, 8), outputs)
right = outputs["logits"].argmax(-1) == inputs[next(name for name in inputs if inputs[name].dtype.kind == "i")]
check(abs(right.mean() - measured.metrics["accuracy"]) < 1e-6, right.mean())
lists = {name: value.reshape(-1, *value.shape[2:])[:21] for name, value in inputs.items()}
rows = dsopt.predict(model, lists, outputs=["logits"], dp=2, save_outputs=path("outputs.npz"))["logits"]
check(np.array_equal(rows, outputs["logits"].reshape(-1, rows.shape[-1])[:21]), "rows")
check(np.array_equal(np.load(path("outputs.npz"))["logits"], rows), "the file")

# PyTorch's names and orientation, from the map in the model.
proto = onnx.load(model)
names = [initializer.name for initializer in proto.graph.initializer]
matrix = next(one for one in proto.graph.initializer if one.name == "net.2.weight")
rows = [{"onnx": matrix.name, "torch": "second.kernel", "transposed": True}]
onnx.helper.set_model_props(proto, {"dsopt.parameters": json.dumps(rows)})
onnx.save(proto, path("named.onnx"))
named = dsopt.train(path("named.onnx"), npz, save_weights=path("named"), micro_batches=4, **common)
plain, mapped = dsopt.read_weights(first.weights), dsopt.read_weights(named.weights)
check(named.weights_hash == first.weights_hash, "the map changes training")
check("net.2.weight" not in mapped and np.array_equal(mapped["second.kernel"], plain["net.2.weight"].T), "transposed")
check(all(np.array_equal(mapped[name], plain[name]) for name in plain if name != "net.2.weight"), "the others")
check(mapped["second.kernel"].shape == tuple(reversed(numpy_helper.to_array(matrix).shape)), "the shape")

# What is wrong is said.
fails(lambda: dsopt.train(model, npz, zeroo=3), "unknown option -zeroo; did you mean -zero?")
fails(lambda: dsopt.train(model, items(1), micro_batches=4), "the data ended after 1 micro-batches")
fails(lambda: dsopt.train(model, [1]), "a micro-batch is a int; expected a dict of arrays by input name, or a tuple")
fails(lambda: dsopt.train(model, [(1, 2, 3)]), "a micro-batch has 3 parts, the model's inputs are x, labels")
fails(lambda: dsopt.train(model, ({"x": one["x"]} for one in items())), "no array 'labels'")
fails(lambda: dsopt.train(model, items(), lr_schedule="cosine"), "a stream's end is not known; give -lr-decay-steps or -steps")
fails(lambda: dsopt.train(model, items(), shuffle=True), "a stream comes in its writer's order")
fails(lambda: dsopt.plan(model, config={"train_batch_sise": 8}), "did you mean 'train_batch_size'?")


def uneven():
    yield from items(6)
    yield {"x": inputs["x"][0][:4], "labels": inputs["labels"][0][:4]}


fails(lambda: dsopt.train(model, uneven(), micro_batches=7), "the data ended after 6 micro-batches, before a step of 7 was full")
wide = ({"x": one["x"][:, :31 + at % 2], "labels": one["labels"]} for at, one in enumerate(items(), 1))
fails(lambda: dsopt.train(model, wide, micro_batches=2), "micro-batch 1 of step 0: 'x' has shape [8, 31]")
fails(lambda: dsopt.train(model, (dict(x=one["x"] * np.nan, labels=one["labels"]) for one in items())), "the loss of step 0 is not finite")

# However long a run is, each of its lines is looked at once while it goes on.
class Lines(list):
    looks = 0

    def __iter__(self):
        Lines.looks += 1
        return super().__iter__()


run = dsopt.Run(model, items(), micro_batches=4, log=path("lines.jsonl"))
run.metrics = Lines(run.metrics)
check([line["step"] for line in run] == list(range(8)), "steps as they come")
check(Lines.looks == 0 and run._done() == 8, f"looked at all lines {Lines.looks} times")
run.close()

# Steps that say their learning rate. Without one, or with what would say another, nothing is trained.
run = dsopt.Run(model, None, lr_schedule="stream", micro_batches=2, log=path("rates.jsonl"))
first = {name: value[0] for name, value in inputs.items()}
run.open_stream(first)
for rate in (1e-2, 0.0, 5e-4):
    run.submit([first] * 2, rate)
run.end_stream()
check([line["lr"] for line in run.result().metrics if "lr" in line] == [1e-2, 0.0, 5e-4], "rates of a stream")
check(run.metrics[1]["loss"] != run.metrics[2]["loss"] == run.metrics[3]["loss"], f"a rate of 0: {run.metrics}")
run.close()
run = dsopt.Run(model, None, lr_schedule="stream")
run.open_stream(first)
run.submit([first])
run.end_stream()
fails(run.result, "got no 'dsopt.lr', expected the scalar f64 'dsopt.lr' with the step's learning rate")
run.close()
fails(lambda: dsopt.train(model, inputs, lr_schedule="stream"), "the data says no learning rates; those of -data=stream:DIR may")
fails(lambda: dsopt.train(model, inputs, lr_schedule="stream", warmup_steps=2), "-warmup-steps has no meaning with -lr-schedule=stream")
fails(lambda: dsopt.train(model, inputs, lr_schedule="stream", lr_params="warmup_from_zero=true"), "-lr-schedule=stream takes none")

# A stream by hand: its writer's death and a request to stop end a program that waits.
for ending in ("writer", "signal"):
    stream = path(ending)
    os.makedirs(stream)
    lock = open(os.path.join(stream, "lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    np.savez(os.path.join(stream, "step-00000000.npz"), **{name: value[:2] for name, value in inputs.items()})
    log = path(ending + ".jsonl")
    process = subprocess.Popen([dsopt.find_tool(), model, "-run", f"-data=stream:{stream}", "-dp=2", "-quiet", f"-log={log}"],
                               stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 120
    while not (os.path.exists(log) and '"step":0' in open(log).read()) and time.time() < deadline:
        time.sleep(0.02)
    if ending == "writer":
        lock.close()
    else:
        process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    if ending == "writer":
        check(process.returncode == 2 and "its writer is gone before step 1" in said, f"{process.returncode}: {said}")
    else:
        check(process.returncode == 3, f"exit status {process.returncode} after SIGTERM: {said}")
    print("ended by", ending)
print("passed")
