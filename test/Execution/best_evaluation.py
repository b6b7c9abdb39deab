"""-stop-after ends a run whose evaluations get no better, -keep-best keeps the checkpoint of the best one, in all layouts alike.

usage: best_evaluation.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np

from runs import check, execute
from small import TensorProto, initializer, node, value, write

dsopt = sys.argv[1]
random = np.random.default_rng(5)
ROWS, WIDTH, CLASSES = 4, 12, 5


def classifier(path):
    weights = [random.normal(0, 0.5, shape).astype(np.float32) for shape in ((WIDTH, 32), (32, 32), (32, CLASSES))]
    nodes = [node("MatMul", "x w0", "a"), node("Tanh", "a", "b"), node("MatMul", "b w1", "c"), node("Tanh", "c", "d"),
             node("MatMul", "d w2", "logits"), node("SoftmaxCrossEntropyLoss", "logits labels", "loss"),
             node("Mul", "loss two", "odd"), node("ReduceMean", "logits", "level", keepdims=0)]
    return write(path, nodes, [value("x", (ROWS, WIDTH)), value("labels", (ROWS,), TensorProto.INT64)],
                 [initializer(f"w{at}", weight) for at, weight in enumerate(weights)] + [initializer("two", 2.0)],
                 [value("loss"), value("logits", (ROWS, CLASSES)), value("level")])


def save(path, count):
    """Labels that follow from nothing: what is learned by heart is worse on others."""
    np.savez(path, x=random.normal(0, 1, (count, ROWS, WIDTH)).astype(np.float32), labels=random.integers(0, CLASSES, (count, ROWS)))
    return path


with tempfile.TemporaryDirectory() as folder:
    def at(name):
        return os.path.join(folder, name)

    model, data, held = classifier(at("model.onnx")), save(at("data.npz"), 8), save(at("held.npz"), 16)
    base = [dsopt, model, "-run", f"-data={data}", "-steps=60", "-lr=0.02", "-micro-batches=2", "-reduction-shards=2", "-accumulate=sharded",
            "-metric=accuracy", "-log-outputs"]
    evaluates = [f"-eval-data={held}", "-eval-every=3"]

    def run(name, *options, status=0):
        done = execute([*base, *evaluates, f"-save={at(name)}", f"-log={at(name)}.jsonl", *options], status=status)
        lines = [json.loads(line) for line in open(at(name) + ".jsonl")]
        return done, [line for line in lines if "eval_loss" in line], lines[-1]["end"]

    def best_of(evaluations, key, larger):
        """The first of the best, and the step after which a run with so much patience ends."""
        values = [(one[key] if larger else -one[key]) for one in evaluations]
        return int(np.argmax(values))

    # Ends at the first evaluation that is the third without a better one; the best is what was kept, bit for bit.
    ends = set()
    for index, layout in enumerate([["-dp=1"], ["-dp=2", "-micro-batches=1"], ["-dp=2", "-micro-batches=1", "-zero=3"], ["-pp=3"]]):
        done, seen, end = run(f"loss{index}", "-stop-after=3", "-keep-best", "-save-every=1", "-save-keep=1", *layout)
        best = best_of(seen, "eval_loss", larger=False)
        check(best == len(seen) - 4 and end["steps"] == seen[-1]["step"] + 1 < 60, f"{layout}: best {best} of {len(seen)}, ended after {end['steps']}")
        check(end["status"] == "ok" and "in 3 evaluations" in end["ended"] and "eval_loss has not improved on" in done.stderr + done.stdout, f"{end}")
        kept = json.load(open(at(f"loss{index}/best.json")))
        check(kept == {"metric": "eval_loss", "value": seen[best]["eval_loss"], "step": seen[best]["step"] + 1}, f"{kept}")
        check(json.load(open(at(f"loss{index}/best/manifest.json")))["manifest"]["step"] == kept["step"], "best is of another step")
        evaluated = execute([dsopt, model, "-eval", f"-data={held}", f"-resume={at(f'loss{index}')}/best", f"-log={at(f'eval{index}.jsonl')}"])
        again = [json.loads(line)["eval_loss"] for line in open(at(f"eval{index}.jsonl")) if "eval_loss" in line]
        check(again == [kept["value"]], f"best has eval loss {again}, expected {kept['value']}")
        ends.add((end["steps"], end["weights_hash"], kept["value"], kept["step"]))
    check(len(ends) == 1, f"layouts differ: {ends}")

    # A metric that is better when it is larger; one whose name tells nothing; none that is as good ends nothing.
    _, seen, end = run("accuracy", "-keep-best", "-best-metric=accuracy")
    kept = json.load(open(at("accuracy/best.json")))
    check(end["steps"] == 60 and "ended" not in end, f"{end}")
    check(kept["value"] == max(one["eval_accuracy"] for one in seen) and kept["step"] == seen[best_of(seen, "eval_accuracy", True)]["step"] + 1, f"{kept}")
    _, seen, _ = run("level", "-keep-best", "-best-metric=eval_level:min", "-steps=12")
    check(json.load(open(at("level/best.json")))["value"] == min(one["eval_level"] for one in seen), "level:min")

    # Who goes on does not replace what was better; what a killed run left of `best` is put right.
    os.makedirs(at("loss0/best.tmp"))
    for name in ("draft", "manifest.json"):
        open(at(f"loss0/best.tmp/{name}"), "w").close()
    before = json.load(open(at("loss0/best.json")))
    done, seen, end = run("loss0", "-keep-best", "-resume=auto", "-save-existing=aside", "-steps=70")
    check(not os.path.exists(at("loss0/best.tmp")), "a killed run's draft of best stays")
    check(json.load(open(at("loss0/best.json"))) == before or min(one["eval_loss"] for one in seen) < before["value"], "a worse one is best")

    def refused(expected, *options):
        said = execute([*base, *options], status=1).stderr
        check(expected in said, f"expected {expected!r}, got {said}")

    refused("option -stop-after compares evaluations: it needs -eval-data and -eval-every", "-stop-after=2")
    refused("option -keep-best keeps a checkpoint in the folder of -save: give one", *evaluates, "-keep-best")
    refused("option -best-metric says what -stop-after and -keep-best go by: give one of them", *evaluates, "-best-metric=loss")
    refused("does not measure 'f1', it measures loss, level, accuracy; -metric=f1 compiles one in", *evaluates, "-stop-after=2", "-best-metric=f1")
    refused("level: whether it is better when it is smaller or larger is not known; give -best-metric=level:min or :max", *evaluates, "-stop-after=2", "-best-metric=level")
    refused("expected :min or :max at its end, got :up", *evaluates, "-stop-after=2", "-best-metric=level:up")
print("ok")
