"""Metrics beside the loss: numpy's numbers, one text in all layouts, and training as without them.

usage: metrics.py DSOPT DSOPT-REPORT FOLDER. FOLDER has the device in software.
"""
import json
import os
import sys
import tempfile

import numpy as np

from runs import Run, check, execute, model
from small import TensorProto, initializer, node, value, write

dsopt, report = sys.argv[1:3]
random = np.random.default_rng(3)
ROWS, CLASSES, COUNT = 6, 7, 12
LAYOUTS = [["-dp=2"], ["-dp=2", "-pp=2", "-zero=3"], ["-dp=4", "-zero=1", "-micro-batches=1"],
           ["-pp=2", "-micro-batches=4", "-schedule=gpipe"], ["-dp=2", "-zero=2", "-threads=2"]]
STEP = ["-micro-batches=2", "-reduction-shards=4", "-lr=0.01", "-steps=3"]


def lines(log, key):
    return [line for line in map(json.loads, open(log)) if key in line]


def weight(rows, columns):
    return random.standard_normal((rows, columns)).astype(np.float32)


def classifier(path, classes=CLASSES):
    """Three products; outputs of one element in the first and in the last of them."""
    weights = [weight(5, 8), weight(8, 8), weight(8, classes)]
    nodes = [node("MatMul", "x w0", "h0"), node("Relu", "h0", "r0"), node("MatMul", "r0 w1", "h1"), node("Tanh", "h1", "r1"),
             node("MatMul", "r1 w2", "logits"), node("SoftmaxCrossEntropyLoss", "logits labels", "loss", ignore_index=-100),
             node("ReduceMax", "h0", "largest", keepdims=0), node("Mul", "logits logits", "squares"),
             node("ReduceMean", "squares", "size", keepdims=0)]
    outputs = [value("loss"), value("logits", (ROWS, classes)), value("largest"), value("size")]
    write(path, nodes, [value("x", (ROWS, 5)), value("labels", (ROWS,), TensorProto.INT64)],
          [initializer(f"w{i}", w) for i, w in enumerate(weights)], outputs)
    return weights


def forward(weights, x):
    w0, w1, w2 = (w.astype(np.float64) for w in weights)
    hidden = x @ w0
    return hidden, np.tanh(np.maximum(hidden, 0) @ w1) @ w2


def measured(weights, x, labels, classes):
    """What numpy measures, over micro-batches that are rows of x."""
    hidden, logits = forward(weights, x.astype(np.float64))
    rows, there = logits.reshape(-1, classes), labels.reshape(-1)
    logs = rows - np.log(np.exp(rows - rows.max(1, keepdims=True)).sum(1, keepdims=True)) - rows.max(1, keepdims=True)
    counts = there != -100
    rows, logs, there = rows[counts], logs[counts], there[counts]
    predicted = rows.argmax(1)
    scores = []
    for kind in ("f1", "precision", "recall"):
        each = []
        for c in [1] if classes == 2 else sorted({*predicted, *there}):
            hits, given, right = ((predicted == c) & (there == c)).sum(), (predicted == c).sum(), (there == c).sum()
            divisor = {"f1": (given + right) / 2, "precision": given, "recall": right}[kind]
            each.append(hits / divisor if divisor else 0.0)
        scores.append(np.mean(each))
    return {"accuracy": np.mean(predicted == there),
            "top3": np.mean([label in np.argsort(-row, kind="stable")[:3] for row, label in zip(rows, there)]),
            "perplexity": np.exp(-np.mean(logs[np.arange(len(there)), there])),
            "f1": scores[0], "precision": scores[1], "recall": scores[2],
            "largest": np.mean(hidden.max((1, 2))), "size": np.mean((logits**2).mean((1, 2)))}, predicted, there


def close(got, expected, what):
    for name, number in expected.items():
        check(name in got and abs(got[name] - number) <= 2e-6 * max(abs(number), 1), f"{what}: {name} is {got.get(name)}, numpy has {number}")


def text(log):
    """The lines of metrics without times: equal text is equal bits."""
    own = ("step_ms", "samples_per_s", "eval_ms", "peak_bytes", "sent_bytes")
    return [{name: number for name, number in line.items() if name not in own} for line in lines(log, "step")]


with tempfile.TemporaryDirectory() as folder:
    def place(name):
        return os.path.join(folder, name)

    def run(path, data, *options, status=0):
        log = place("run.jsonl")
        if os.path.exists(log):
            os.remove(log)
        done = execute([dsopt, path, f"-data={data}", f"-log={log}", *options], status)
        return done if status else (log, done)

    # Classes: numbers of a step and of an evaluation, all layouts.
    weights = classifier(place("classes.onnx"))
    x = random.standard_normal((COUNT, ROWS, 5)).astype(np.float32)
    labels = random.integers(0, CLASSES, (COUNT, ROWS))
    labels[:, 0] = -100
    labels[3, 1:4] = -100
    np.savez(place("classes.npz"), x=x, labels=labels)
    np.savez(place("seven.npz"), x=x[5:], labels=labels[5:])
    names = ["accuracy", "top3", "perplexity", "f1", "precision", "recall"]
    metrics = [f"-metric={name}" for name in names] + ["-log-outputs"]
    path, data = place("classes.onnx"), place("classes.npz")
    plain = Run(run(path, data, "-run", *STEP, "-dp=2")[0])
    texts = []
    for layout in LAYOUTS:
        log, done = run(path, data, "-run", *STEP, *layout, *metrics, f"-eval-data={place('seven.npz')}", "-eval-every=3")
        texts.append(text(log))
        check(Run(log).hash == plain.hash and Run(log).losses == plain.losses, f"{layout}: measuring changes training")
        check(texts[-1] == texts[0], f"{layout} measures {texts[-1]}, {LAYOUTS[0]} {texts[0]}")
    step, evaluation = lines(log, "loss")[0], lines(log, "eval_loss")[-1]
    expected, predicted, there = measured(weights, x[:4], labels[:4], CLASSES)
    close(step, expected, "step 0")
    check(lines(log, "run")[0]["run"]["metrics"] == ["largest", "size", *names], f"the log has {lines(log, 'run')[0]['run'].get('metrics')}")
    check("  accuracy 0." in done.stdout and "  eval loss " in done.stdout and "largest" in done.stdout.split("eval loss")[1], done.stdout)
    on_device = dict(LD_LIBRARY_PATH=sys.argv[3], SOFT_DEVICE="seed=1")
    for layout in (["-micro-batches=4"], ["-dp=2", "-zero=3"]):
        log, device = place("device.jsonl"), [dsopt, path, f"-data={data}", "-run", *STEP, *metrics, "-target=cuda", "-arch=sm_80", *layout]
        execute([*device, f"-log={log}"], environment=on_device)
        close(lines(log, "loss")[0], expected, f"on a device {layout}")
    log, done = run(path, place("seven.npz"), "-eval", *metrics, "-dp=2", "-micro-batches=2")
    alone = lines(log, "eval_loss")[0]
    expected = measured(weights, x[5:], labels[5:], CLASSES)[0]
    close({name.removeprefix("eval_"): number for name, number in alone.items()}, expected, "-eval")
    page = place("page.html")
    run(path, data, "-run", *STEP, "-dp=2", *metrics, f"-eval-data={place('seven.npz')}")
    execute([report, place("run.jsonl"), "-o", page])
    check(all(f">{name}<" in open(page).read() for name in ("loss", "accuracy", "size")), "dsopt-report shows no accuracy")
    print(f"classes: {len(LAYOUTS)} layouts measure {alone}")

    try:
        from sklearn import metrics as known
        close(step, {"accuracy": known.accuracy_score(there, predicted), "f1": known.f1_score(there, predicted, average="macro")}, "scikit-learn")
    except ImportError:
        print("left out: scikit-learn is not installed")

    # Two classes; values of the model, by name.
    weights = classifier(place("two.onnx"), 2)
    labels = np.where(labels >= 0, labels % 2, labels)
    np.savez(place("two.npz"), x=x, labels=labels)
    names = ["f1", "precision", "recall", "accuracy", "perplexity"]
    log, _ = run(place("two.onnx"), place("two.npz"), "-eval", *[f"-metric={name}:logits,labels" for name in names], *[f"-metric={name}" for name in names])
    expected = measured(weights, x, labels, 2)[0]
    close(lines(log, "eval_loss")[0], {f"eval_{prefix}{name}": expected[name] for name in names for prefix in ("", "logits_")}, "two classes")

    # One sigmoid: scores of a column, some of them 0, and labels in floats; in both spellings of exporters.
    w0, w1 = weight(5, 8), weight(8, 1)
    one_row = np.zeros((COUNT, ROWS, 5), np.float32)
    one_row[:, 1:] = x[:, 1:]  # the first rows' scores are 0: no score above 0
    yes = random.integers(0, 2, (COUNT, ROWS)).astype(np.float32)
    yes[2] = 0
    np.savez(place("binary.npz"), x=one_row, y=yes)
    layers = [node("MatMul", "x w0", "h0"), node("Tanh", "h0", "r0"), node("MatMul", "r0 w1", "logits"), node("Sigmoid", "logits", "p"),
              node("Log", "p", "log"), node("Unsqueeze", "y axis", "labels"), node("Sub", "one labels", "no")]
    spellings = {"scores": [node("Mul", "no logits", "scored"), node("Sub", "scored log", "each")],
                 "logarithms": [node("Sub", "one p", "q"), node("Log", "q", "log_q"), node("Mul", "labels log", "a"), node("Mul", "no log_q", "b"),
                                node("Add", "a b", "ab"), node("Neg", "ab", "each")]}
    scores = np.tanh(one_row.astype(np.float64) @ w0) @ w1
    def of(scores, there):
        found, there = scores.reshape(-1) > 0, there.reshape(-1) > 0.5
        hits = (found & there).sum()
        return {"accuracy": np.mean(found == there), "f1": 2 * hits / (found.sum() + there.sum()), "precision": hits / found.sum(),
                "recall": hits / there.sum(), "perplexity": np.exp(np.mean(np.log1p(np.exp(np.where(there, -1, 1) * scores.reshape(-1)))))}
    for spelling, rest in spellings.items():
        write(place(spelling + ".onnx"), [*layers, *rest, node("ReduceMean", "each", "loss", keepdims=0)], [value("x", (ROWS, 5)), value("y", (ROWS,))],
              [initializer("w0", w0), initializer("w1", w1), initializer("one", np.float32(1)), initializer("axis", np.array([1]))],
              [value("loss"), value("logits", (ROWS, 1)), value("p", (ROWS, 1))])
        asked = [f"-metric={name}{suffix}" for name in of(scores, yes) for suffix in ("", ":logits,y", ":p,y")]
        texts = []
        for layout in LAYOUTS[:3] if spelling == "scores" else LAYOUTS[:1]:
            plain, log = (run(place(spelling + ".onnx"), place("binary.npz"), "-run", *STEP, *layout, *some)[0] and Run(place("run.jsonl")) for some in ([], asked))
            check(plain.hash == log.hash and plain.losses == log.losses, f"{spelling} {layout}: measuring changes training")
            texts.append(text(place("run.jsonl")))
            check(texts[-1] == texts[0], f"{spelling} {layout} measures {texts[-1]}, expected {texts[0]}")
            step = lines(place("run.jsonl"), "loss")[0]
            for prefix in ("", "logits_", "p_"):
                close(step, {prefix + name: number for name, number in of(scores[:4], yes[:4]).items()}, f"{spelling} {layout}")
        log, _ = run(place(spelling + ".onnx"), place("binary.npz"), "-eval", *asked, "-dp=2", "-zero=3")
        close(lines(log, "eval_loss")[0], {f"eval_{name}": number for name, number in of(scores, yes).items()}, f"{spelling}: evaluation")
        try:
            from sklearn import metrics as known
            close(step, {"f1": known.f1_score(yes[:4].reshape(-1), scores[:4].reshape(-1) > 0), "precision": known.precision_score(yes[:4].reshape(-1), scores[:4].reshape(-1) > 0)},
                  "scikit-learn")
        except ImportError:
            print("left out: scikit-learn is not installed")
    np.savez(place("none.npz"), x=np.zeros((2, ROWS, 5), np.float32), y=np.zeros((2, ROWS), np.float32))
    log, _ = run(place("scores.onnx"), place("none.npz"), "-eval", "-metric=f1", "-metric=accuracy")
    close(lines(log, "eval_loss")[0], {"eval_f1": 0.0, "eval_accuracy": 1.0}, "nothing is positive")

    # Distances, whose target no model has before -loss names it.
    w = weight(5, 3)
    write(place("line.onnx"), [node("MatMul", "x w", "out")], [value("x", (ROWS, 5))], [initializer("w", w)], [value("out", (ROWS, 3))])
    y = random.standard_normal((COUNT, ROWS, 3)).astype(np.float32)
    np.savez(place("line.npz"), x=x, y=y)
    difference = x.astype(np.float64) @ w - y
    expected = {"mse": np.mean(difference**2), "rmse": np.sqrt(np.mean(difference**2)), "mae": np.mean(np.abs(difference))}
    for suffix, prefix in (("", ""), (":out,y", "out_")):
        log, _ = run(place("line.onnx"), place("line.npz"), "-eval", "-loss=mse:out,y", *[f"-metric={name}{suffix}" for name in expected])
        close(lines(log, "eval_loss")[0], {f"eval_{prefix}{name}": number for name, number in expected.items()}, "distances")
    print("two classes and distances")

    # A language model: its loss keeps no logits, and has the bits that it has without metrics.
    gpt, batches = model("gpt2-tiny")
    plain, with_metrics = (Run(run(gpt, batches, "-run", "-steps=4", "-lr=3e-3", "-dp=2", "-zero=3", "-pp=2", *some)[0])
                           for some in ([], ["-metric=accuracy", "-metric=perplexity"]))
    check(plain.hash == with_metrics.hash and plain.loss_text == with_metrics.loss_text, "measuring changes a language model")
    check(all(abs(one["perplexity"] / np.exp(one["loss"]) - 1) < 1e-5 for one in with_metrics.steps), f"{with_metrics.steps}")

    # What cannot be measured.
    line = ["-loss=mse:out,y"]
    for path, data, options, message in [
        ("classes", "classes", ["-metric=acuracy"], "-metric=acuracy: expected accuracy, top5"),
        ("classes", "classes", ["-metric=top9"], "-metric=top9: the scores are of 7 classes, expected 9 or more"),
        ("classes", "classes", ["-metric=mse"], "-metric=mse:OUTPUT,TARGET"),
        ("line", "line", [*line, "-metric=accuracy"], "-metric=accuracy:LOGITS,LABELS"),
        ("line", "line", [*line, "-metric=accuracy:out,y"], "expected scores with the classes last or second, and integer labels"),
        ("scores", "binary", ["-metric=top3"], "-metric=top3: the scores are of 2 classes, expected 3 or more"),
        ("scores", "binary", ["-metric=f1:logits,x"], "or one score a row and as many labels"),
        ("classes", "classes", ["-metric=accuracy:logits,other"], "'other', which is not in the model"),
        ("classes", "classes", ["-metric=accuracy:logits"], "-metric=accuracy:logits: expected accuracy"),
        ("classes", "classes", ["-metric=f1", "-metric=f1"], "two metrics have the name 'f1'"),
        ("classes", "classes", ["-log-outputs=logits"], "-log-outputs=logits matches no output of one element beside the loss (other outputs: logits, largest, size)"),
        ("line", "line", [*line, "-log-outputs"], "(other outputs: none)"),
    ]:
        for how in ("-run", "-plan"):
            done = execute([dsopt, place(path + ".onnx"), f"-data={place(data + '.npz')}", how, *options], 1)
            check(message in done.stderr, f"{options}: {done.stderr}")
