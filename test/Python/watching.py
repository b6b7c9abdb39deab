"""Callbacks that end a run, early stopping, the best checkpoint, the learning-rate finder.

usage: watching.py SOURCE BUILD
"""
import functools
import os
import sys
import tempfile
import warnings

source, build = map(os.path.abspath, sys.argv[1:3])
os.environ["DSOPT_BUILD"] = build
sys.path.insert(0, os.path.join(source, "python"))

import numpy as np

import dsopt
from checks import check, fails

warnings.filterwarnings("ignore", category=UserWarning)
folder = tempfile.mkdtemp()
fails = functools.partial(fails, kinds=(dsopt.DsoptError, ValueError, TypeError, ZeroDivisionError))
model = os.path.join(source, "test", "Models", "mlp", "model.onnx")
arrays = np.load(os.path.join(source, "test", "Models", "mlp", "batches.npz"))
x, labels = arrays["x"].reshape(-1, 8, 32), arrays["labels"].reshape(-1, 8)
items = [{"x": x[at], "labels": labels[at]} for at in range(32)]
held = {"x": x[:4], "labels": labels[:4]}
common = {"lr": 1e-2, "steps": 400}


def path(name):
    return os.path.join(folder, name)


# Each may end the run, which saves then.
for answer, why in ((False, "on_step of Functions said so"), (dsopt.Stop, "on_step of Functions said so"), (dsopt.Stop("enough"), "enough")):
    steps = []

    def on_step(record):
        steps.append(record["step"])
        return answer if record["step"] == 5 else None

    place = path(f"stopped{why}{answer is False}")
    saved = []
    result = dsopt.train(model, items, on_step=on_step, on_save=lambda *what: saved.append(what), save=place,
                         save_weights=path("stopped"), **common)
    check(result.status == "stopped" and result.stopped == why, result)
    # Steps that lie ready are done, and seen.
    check(6 <= result.steps <= 9 and steps == list(range(result.steps)), f"{result.steps}, {steps}")
    check(saved == [(os.path.join(place, f"step-{result.steps:08d}"), result.steps)], saved)
    check(result.weights and len(dsopt.read_weights(result.weights)) == 6, "no weights")
rest = dsopt.train(model, items, resume=place, lr=1e-2, steps=result.steps + 2)
check(rest.steps == result.steps + 2 and rest.status == "ok" and rest.stopped is None, rest)

seen = []
result = dsopt.train(model, items, eval_data=held, eval_every=3, dp=2, zero=3, on_step=lambda record: seen.append("loss" in record),
                     on_evaluation=lambda record: "eval_loss" in record and record["step"] < 8, **common)
check(result.status == "stopped" and 9 <= result.steps <= 13 and all(seen), result)
result = dsopt.train(model, items, save=path("by-save"), save_every=4, on_save=lambda where, step: step < 8, **common)
check(result.status == "stopped" and 8 <= result.steps <= 12, result)


class Pauses(dsopt.Callback):
    """Sees how far a run is whenever it waits, and measures there."""

    def __init__(self, last):
        self.last, self.steps, self.seen, self.losses = last, 0, [], []

    def on_step(self, record):
        self.steps = record["step"] + 1

    def on_pause(self, run):
        place = run.checkpoint(path("paused"))
        self.seen.append((self.steps, os.path.basename(place)))
        self.losses.append(dsopt.evaluate(model, held, resume=place))
        return self.steps < self.last


plain = dsopt.train(model, items, eval_data=held, eval_every=3, lr=1e-2, steps=9)
for last, status in ((100, "ok"), (6, "stopped")):
    pauses = Pauses(last)
    result = dsopt.train(model, items, callbacks=[pauses], pause=lambda step: step % 3 == 0 and step < 9, lr=1e-2, steps=9)
    check(pauses.seen == [(3, "step-00000003"), (6, "step-00000006")] and result.status == status, f"{pauses.seen}, {result}")
    check(pauses.losses == plain.eval_losses[:2], f"{pauses.losses}, expected {plain.eval_losses}")
    check(result.steps == min(last, 9) and (result.weights_hash == plain.weights_hash or last == 6), f"{result.steps} steps")
fails(lambda: dsopt.train(model, held, pause=lambda step: True, steps=2), "pause= needs a loader")
run = dsopt.start(model, items, on_step=lambda record: record["step"] < 3, **common)
count = sum(1 for _ in run)
check(4 <= count <= 7 and run.stopped and run.result().status == "stopped", count)
reads, then = [], []


def endless():
    while True:
        reads.append(1)
        yield items[len(reads) % 32]


dsopt.train(model, endless(), lr=1e-2, on_step=lambda record: record["step"] != 3 or then.append(len(reads)) is not None)
check(len(reads) == then[0], f"{len(reads)} reads, {then[0]} of them before the end was asked for")
fails(lambda: dsopt.train(model, items, on_step=lambda record: 1 / (3 - record["step"]), save=path("raised"), **common), "division by zero")
check(os.listdir(path("raised")), "an exception lost what was trained")


# A class, of which all is called in order.
class Names(dsopt.Callback):
    def __init__(self):
        self.names = []

    def on_start(self, words):
        self.names.append(("start", words[0]))

    def on_run(self, run):
        self.names.append(("run", run["layout"]["dp"]))

    def on_end(self, status):
        self.names.append(("end", status))


names = Names()
dsopt.train(model, items, dp=2, steps=2, callbacks=[names])
check(names.names == [("start", model), ("run", 2), ("end", "ok")], names.names)
names = Names()
fails(lambda: dsopt.train(model, ({"x": x[0] * np.nan, "labels": labels[0]} for _ in range(2)), callbacks=[names]), "is not finite")
check(names.names[-1] == ("end", "failed"), names.names)
print("callbacks", flush=True)

# Early stopping: a rate of 0 improves nothing; a rate that learns is not stopped.
stop = dsopt.StopAfter("eval_loss", patience=3)
still = {"eval_data": held, "eval_every": 2, "weight_decay": 0, "steps": 400}
for _ in range(2):
    result = dsopt.train(model, items, lr=0, stop_after=stop, **still)
    check(result.status == "stopped" and "eval_loss has not improved on" in result.stopped and "for 3 values, up to step 7" in result.stopped, result)
check(dsopt.train(model, items[:20], lr=1e-2, stop_after=dsopt.StopAfter(patience=2), eval_data=items[:20], eval_every=5).status == "ok", "it learns")
result = dsopt.train(model, items, stop_after=[dsopt.StopAfter("loss", patience=4, min_delta=100)], **common)
check("for 4 values, up to step 4" in result.stopped, result.stopped)
values = iter([3.0, 1.0, 2.0, None, 0.5, 0.5, 0.5])
alone = dsopt.StopAfter("loss", patience=3)
check([isinstance(alone.on_step({"step": 0, "loss": value}), dsopt.Stop) for value in values] == [False] * 6 + [False], "an improvement counts anew")
check(isinstance(alone.on_step({"step": 1, "loss": 0.5}), dsopt.Stop), "patience")
most = dsopt.StopAfter("eval_accuracy", patience=1)
check(most.on_evaluation({"step": 0, "eval_accuracy": 0.5}) is None and most.on_evaluation({"step": 1, "eval_accuracy": 0.6}) is None, "larger is better")
check(isinstance(most.on_evaluation({"step": 2, "eval_accuracy": 0.55}), dsopt.Stop), "and smaller is not")
fails(lambda: dsopt.StopAfter("eval_quality"), "give mode='min' or 'max'")
fails(lambda: dsopt.StopAfter("loss", mode="least"), "expected 'min' or 'max'")
fails(lambda: dsopt.train(model, items, stop_after=dsopt.StopAfter()), "it needs eval_data= and eval_every=")
fails(lambda: dsopt.train(model, items, stop_after=dsopt.StopAfter("eval_accuracy"), **still), "no metric 'eval_accuracy' is logged; there are eval_loss")
fails(lambda: dsopt.train(model, items, stop_after="eval_loss"), "expected dsopt.StopAfter")
print("early stopping", flush=True)

# The best checkpoint: a rate far too large makes the loss worse after its first steps.
wild = {"optimizer": "sgd", "lr": 3.0, "eval_data": held, "eval_every": 2, "save_keep": 1}
result = dsopt.train(model, items, steps=10, save=path("best"), keep_best="eval_loss", **wild)
least = min(result.eval_losses)
at = 2 * result.eval_losses.index(least) + 2
check(at < 10, f"the last is the best: {result.eval_losses}")
check(result.best == dsopt.Best(path("best/best"), at, "eval_loss", least), result.best)
check(sorted(os.listdir(path("best"))) == ["best", "best.json", "step-00000010"] or "lock" in os.listdir(path("best")), os.listdir(path("best")))
check(dsopt.evaluate(model, held, resume=result.best.path, optimizer="sgd") == least, "another checkpoint lies there")
again = dsopt.train(model, items, steps=at, resume=result.best.path, save_weights=path("best-weights"), optimizer="sgd", lr=3.0)
check(again.losses == [] and dsopt.evaluate(model, held, weights=path("best-weights")) == least, again)
# Going on compares with what was; a new run does not.
more = dsopt.train(model, items, steps=12, save=path("best"), resume=path("best"), keep_best=dsopt.KeepBest("eval_loss"), **wild)
check(more.best == result.best or more.best.value < least, more.best)
worse = dsopt.train(model, items, steps=4, save=path("best"), save_existing="aside", keep_best="eval_loss", **{**wild, "lr": 0})
check(worse.best.value > least and worse.best.step <= 4, worse.best)
fails(lambda: dsopt.train(model, items, keep_best=True, eval_data=held, eval_every=2), "it needs save=")
fails(lambda: dsopt.train(model, items, keep_best="eval_loss", save=path("none")), "it needs eval_data= and eval_every=")
fails(lambda: dsopt.train(model, items, keep_best="loss", save=path("none")), "expected a metric like eval_loss, got 'loss'")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    none = dsopt.train(model, items, steps=200, keep_best=True, save=path("none"), save_every=50, eval_data=held, eval_every=200,
                       on_step=lambda record: False)
check(none.best is None and any("no checkpoint with a value of eval_loss" in str(one.message) for one in caught), none)
# Where a run measures nothing, what lies there is another's.
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    none = dsopt.train(model, items, steps=400, keep_best=True, save=path("best"), save_existing="aside", eval_data=held, eval_every=400,
                       optimizer="sgd", on_step=lambda record: False)
    check(none.best is None and any("no checkpoint with a value" in str(one.message) for one in caught), none)
print("the best", flush=True)

# The finder: rates rise in equal parts, the one it suggests trains.
found = dsopt.find_lr(model, items, min_lr=1e-4, max_lr=3e-2, steps=40, report=path("lr.html"))
check(np.allclose(found.rates, np.linspace(1e-4, 3e-2, 40)), found.rates)
check(1e-4 < found.suggestion <= found.lowest <= 3e-2 and len(found.losses) == len(found.smoothed) == 40, found)
check("<svg" in open(path("lr.html")).read() and str(found).splitlines()[-1].startswith("suggestion"), "the page and the table")
trained = dsopt.train(model, items, lr=found.suggestion)
check(np.mean(trained.losses[-4:]) < np.mean(trained.losses[:4]), trained.losses)
wild = dsopt.find_lr(model, items, optimizer="sgd", min_lr=1e-2, max_lr=50, steps=200)
check(len(wild.losses) < 100 and wild.lowest < 20, f"it goes on after {len(wild.losses)} steps, {wild}")
fails(lambda: dsopt.find_lr(model, items, lr=1), "find_lr decides lr by itself")
fails(lambda: dsopt.find_lr(model, items, min_lr=1), "expected 0 < min_lr < max_lr")
fails(lambda: dsopt.find_lr(model, items, optimizer="sgd", min_lr=1e2, max_lr=2e4, steps=10), "with a rate of", "give a smaller min_lr and max_lr")
fails(lambda: dsopt.find_lr(model, iter(items[:3])), "the data ended after 3 steps, expected 100")
print("passed")
