"""Cross-entropies that are attached to probabilities: taken of the scores before them, with the bits of a loss that names these.

usage: probabilities.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
import onnx

from runs import execute
from small import TensorProto, check, helper, initializer, node, train, value, write

dsopt = sys.argv[1]
random = np.random.default_rng(11)
ROWS, SIZE, HIDDEN, CLASSES, STEPS, RATE = 6, 5, 8, 4, 10, 0.5
W1, W2 = (random.standard_normal(shape).astype(np.float32) for shape in ((SIZE, HIDDEN), (HIDDEN, CLASSES)))
X = random.standard_normal((STEPS, ROWS, SIZE)).astype(np.float32)
LABELS = random.integers(0, CLASSES, (STEPS, ROWS))
TARGETS = random.random((STEPS, ROWS, CLASSES)).astype(np.float32)
TRAIN = [f"-steps={STEPS}", "-optimizer=sgd", f"-lr={RATE}"]
ONE, TEMPERATURE = initializer("one", [1.0]), initializer("Constant_temperature", 2.5)


def save(path, head, columns=CLASSES, outputs=("y",), constants=(), opset=20, functions=(), start=None):
    """A perceptron with the scores `z`, and a head behind them."""
    nodes = [node("MatMul", "x w1", "h"), node("Tanh", "h", "r"), node("MatMul", "r w2", "z"), *head]
    w2 = W2[:, :columns] if start is None else start
    write(path, nodes, [value("x", (ROWS, SIZE))], [initializer("w1", W1), initializer("w2", w2), *constants], [value(name, None) for name in outputs], opset=opset)
    if functions:
        model = onnx.load(path)
        model.functions.extend(functions)
        model.opset_import.append(helper.make_opsetid("own", 1))
        onnx.save(model, path)
    return path


def ints(name, *numbers):
    return initializer(name, np.array(numbers, np.int64))


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def of_classes(labels):
    def loss(z, step):
        rows = np.arange(len(z))
        there = np.eye(z.shape[1])[labels[step]]
        return -np.log(softmax(z)[rows, labels[step]]).mean(), (softmax(z) - there) / len(z)
    return loss


def of_elements(targets):
    def loss(z, step):
        t = targets[step].reshape(z.shape).astype(np.float64)
        return -(t * np.log(sigmoid(z)) + (1 - t) * np.log(1 - sigmoid(z))).mean(), (sigmoid(z) - t) / z.size
    return loss


def expected(loss, columns=CLASSES, scale=1.0, start=None):
    """10 steps in double: losses and weights."""
    w1, w2 = W1.astype(np.float64), (W2[:, :columns] if start is None else start).astype(np.float64)
    losses = []
    for step in range(STEPS):
        x = X[step].astype(np.float64)
        r = np.tanh(x @ w1)
        number, gradient = loss(r @ w2 / scale, step)
        losses.append(number)
        gradient = gradient / scale
        w1, w2 = w1 - RATE * x.T @ (gradient @ w2.T * (1 - r * r)), w2 - RATE * r.T @ gradient
    return losses, {"w1": w1, "w2": w2}


def close(got, weights, want, what):
    losses, there = want
    check(np.allclose(got.losses, losses, rtol=1e-6, atol=0), f"{what}: losses {got.losses}, expected {losses}")
    for name, array in there.items():
        worst = np.abs(weights[name] - array).max()
        check(worst < 2e-6, f"{what}: {name} is off by {worst}")


# A head: nodes behind z, and what says what it is.
softmax_of_own = helper.make_function("own", "Head", ["scores"], ["probabilities"], [node("Softmax", "scores", "probabilities", axis=-1)],
                                      [helper.make_opsetid("", 20)])
SHAPES = [ints("wide", ROWS, 1, CLASSES, 1), ints("rows", ROWS, CLASSES), ints("ends", 1, 3)]
HEADS = {
    "softmax": [node("Softmax", "z", "y", axis=-1)],
    "log-softmax": [node("LogSoftmax", "z", "y", axis=1)],
    "the logarithm of a softmax": [node("Softmax", "z", "p", axis=1), node("Log", "p", "y")],
    "the exponential of a log-softmax": [node("LogSoftmax", "z", "p", axis=1), node("Exp", "p", "y")],
    "views": [node("Reshape", "z wide", "a"), node("Softmax", "a", "b", axis=2), node("Identity", "b", "c"), node("Squeeze", "c ends", "d"),
              node("Cast", "d", "e", to=TensorProto.DOUBLE), node("Cast", "e", "y", to=TensorProto.FLOAT)],
    "views, transposed": [node("Softmax", "z", "p"), node("Transpose", "p", "q", perm=[1, 0]), node("Transpose", "q", "y", perm=[1, 0])],
    "views, along columns": [node("Transpose", "z", "t", perm=[1, 0]), node("Softmax", "t", "p", axis=0), node("Transpose", "p", "y", perm=[1, 0])],
    "a function": [node("Head", "z", "y", domain="own")],
    "written out": [node("Exp", "z", "e"), node("ReduceSum", "e last", "s"), node("Div", "e s", "y")],
    "written out, shifted": [node("ReduceMax", "z last", "m"), node("Sub", "z m", "u"), node("Exp", "u", "e"), node("ReduceSum", "e last", "s"),
                             node("Div", "e s", "y")],
    "log-softmax written out": [node("ReduceLogSumExp", "z last", "s"), node("Sub", "z s", "y")],
    "a reduced axis": [node("Exp", "z", "e"), node("ReduceSum", "e last", "s", keepdims=0), node("Unsqueeze", "s last", "t"), node("Div", "e t", "y")],
    "sigmoid": [node("Sigmoid", "z", "y")],
    "sigmoid written out": [node("Neg", "z", "n"), node("Exp", "n", "e"), node("Add", "e one", "s"), node("Div", "one s", "y")],
}
OLD = {
    "opset 11": [node("Softmax", "z", "y")],
    "views of opset 11": [node("Reshape", "z wide", "a"), node("Transpose", "a", "b", perm=[0, 2, 1, 3]), node("Softmax", "b", "c"), node("Flatten", "c", "y")],
    "opset 11, logarithms": [node("LogSoftmax", "z", "y", axis=-1)],
}

with tempfile.TemporaryDirectory() as folder:
    def place(name):
        return os.path.join(folder, name)

    data = {"x": X, "labels": LABELS}
    path = save(place("scores.onnx"), [], outputs=["z"])
    plain, weights = train(dsopt, path, data, "-loss=cross-entropy:z,labels", *TRAIN)
    numbers = expected(of_classes(LABELS))
    close(plain, weights, numbers, "scores")
    check("taken before it" not in plain.said, plain.said)
    for opset, heads in ((20, HEADS), (11, OLD)):
        for name, head in heads.items():
            path = save(place("model.onnx"), head, constants=[*SHAPES, ints("last", -1), ONE], opset=opset, functions=[softmax_of_own] * (name == "a function"))
            run, weights = train(dsopt, path, data, "-loss=cross-entropy:y,labels", *TRAIN)
            close(run, weights, numbers, name)
            # What shows the scores in another way may be compiled in another way.
            check(name.startswith("views") or (run.hash, run.loss_text) == (plain.hash, plain.loss_text), f"{name}: losses {run.losses}, those of the scores are {plain.losses}")
            said = [line for line in run.said.splitlines() if "taken before it" in line]
            check(len(said) == 1 and "-loss=cross-entropy:y,labels: 'y' comes from a " in said[0] and "before it, of '" in said[0] and (name.startswith("views") or "of 'z'" in said[0]), f"{name}: {run.said}")
    print(f"{len(HEADS) + len(OLD)} heads train as the scores before them")

    # What divides the scores stays.
    path = save(place("warm.onnx"), [node("Div", "z Constant_temperature", "t"), node("Softmax", "t", "y")], constants=[TEMPERATURE])
    run, weights = train(dsopt, path, data, "-loss=cross-entropy:y,labels", "-freeze=Constant_temperature", *TRAIN)
    close(run, weights, expected(of_classes(LABELS), scale=2.5), "a temperature")

    # Layouts; the model's outputs, evaluation and metrics.
    path = save(place("softmax.onnx"), HEADS["softmax"])
    metrics = ["-metric=accuracy", "-metric=accuracy:y,labels", "-metric=perplexity", "-metric=perplexity:y,labels"]
    layouts = [["-micro-batches=2", "-reduction-shards=2"], ["-dp=2", "-zero=3"], ["-dp=2", "-pp=2", "-zero=1", "-micro-batches=1"]]
    runs = [train(dsopt, path, data, "-loss=cross-entropy:y,labels", *metrics, *TRAIN, "-steps=5", *layout)[0] for layout in layouts]
    check(len({(run.hash, tuple(run.loss_text)) for run in runs}) == 1, f"layouts: {[run.hash for run in runs]}")
    for line in (line for run in runs for line in run.steps):
        check(line["accuracy"] == line["y_accuracy"] and abs(line["perplexity"] - line["y_perplexity"]) < 1e-5, f"metrics differ: {line}")
        check(abs(line["perplexity"] - np.exp(line["loss"])) < 1e-5, f"perplexity {line['perplexity']}, loss {line['loss']}")
    arrays, results = place("data.npz"), place("results.npz")
    np.savez(arrays, x=X, labels=LABELS)
    execute([dsopt, "predict", path, f"-data={arrays}", f"-save-outputs={results}"])
    z = np.tanh(X.astype(np.float64) @ W1) @ W2
    check(np.abs(np.load(results)["y"] - softmax(z)).max() < 1e-6, "predict gives no probabilities")
    log = place("eval.jsonl")
    execute([dsopt, path, "-eval", f"-data={arrays}", f"-log={log}", "-loss=cross-entropy:y,labels"])
    mean = np.mean([of_classes(LABELS)(z[step], step)[0] for step in range(STEPS)])
    evaluated = [line for line in open(log) if '"eval_loss"' in line]
    check(len(evaluated) == 1 and abs(float(evaluated[0].split('"eval_loss":')[1].split(",")[0]) - mean) < 1e-6, f"evaluation: {evaluated}, expected {mean}")

    # Probabilities in the place of labels; the squares of differences are of what the model gives.
    shares = TARGETS / TARGETS.sum(-1, keepdims=True)
    soft = {"x": X, "labels": shares}
    first, second = (train(dsopt, path, soft, f"-loss=cross-entropy:{name},labels", *TRAIN)[0] for name in ("z", "y"))
    check(first.hash == second.hash and first.losses == second.losses, "probabilities as labels")
    run, _ = train(dsopt, path, soft, "-loss=mse:y,labels", *TRAIN)
    check(abs(run.losses[0] - ((softmax(z[0]) - shares[0]) ** 2).mean()) < 1e-6 and "taken before" not in run.said, f"mse: {run.losses[0]}, {run.said}")

    # Two classes: one score for each label, of integers and of floats; many labels for each row. Scores of 0 have a gradient.
    zeros = np.zeros((HIDDEN, 1), np.float32)
    bits, elements = random.integers(0, 2, (STEPS, ROWS)), random.integers(0, 2, (STEPS, ROWS, CLASSES)).astype(np.float32)
    column = bits[..., None].astype(np.float32)
    single, squeezed = [node("Sigmoid", "z", "y")], [node("Sigmoid", "z", "p"), node("Squeeze", "p ends", "y")]
    for name, head, output, columns, labels, start in (
            ("a column", single, "y", 1, bits, None), ("a column of floats", single, "y", 1, column, None), ("a squeezed column", squeezed, "y", 1, bits, None),
            ("scores of a column", [], "z", 1, bits, None), ("scores of a column and floats", [], "z", 1, column, None), ("zeros", single, "y", 1, column, zeros),
            ("many labels", single, "y", CLASSES, elements, None), ("shares of labels", single, "y", CLASSES, TARGETS, None)):
        path = save(place("two.onnx"), head, columns, outputs=[output], constants=[ints("ends", 1)], start=start)
        options = [f"-loss=cross-entropy:{output},labels", *TRAIN]
        run, weights = train(dsopt, path, {"x": X, "labels": labels}, *options)
        close(run, weights, expected(of_elements(labels), columns, start=start), name)
        check("two classes" in run.said or "binary cross-entropy of each element" in run.said, f"{name}: {run.said}")
    layouts = [train(dsopt, path, {"x": X, "labels": TARGETS}, *options, "-steps=5", *layout)[0] for layout in (["-micro-batches=2", "-reduction-shards=2"], ["-dp=2", "-zero=2"])]
    check(layouts[0].hash == layouts[1].hash and layouts[0].loss_text == layouts[1].loss_text, "two layouts of many labels")
    measured, _ = train(dsopt, save(place("two.onnx"), single, 1), {"x": X, "labels": bits}, "-loss=cross-entropy:y,labels", *TRAIN, "-metric=accuracy", "-metric=accuracy:y,labels")
    z = (np.tanh(X[0].astype(np.float64) @ W1) @ W2[:, :1])[:, 0]
    check(measured.steps[0]["accuracy"] == np.float32(((z > 0) == bits[0]).mean()) and all(line["accuracy"] == line["y_accuracy"] for line in measured.steps), f"{measured.steps[0]}")

    # Images: classes second, as the softmax says.
    pixels = random.integers(0, CLASSES, (STEPS, ROWS, 2))
    image = [node("Reshape", "z long", "a"), node("Softmax", "a", "y", axis=1)]
    path = save(place("image.onnx"), image, 2 * CLASSES, constants=[ints("long", ROWS, CLASSES, 2)], start=random.standard_normal((HIDDEN, 2 * CLASSES)).astype(np.float32))
    run, _ = train(dsopt, path, {"x": X, "labels": pixels}, "-loss=cross-entropy:y,labels", *TRAIN)
    w2 = onnx.numpy_helper.to_array(onnx.load(path).graph.initializer[1]).astype(np.float64)
    scores = (np.tanh(X[0].astype(np.float64) @ W1) @ w2).reshape(ROWS, CLASSES, 2).transpose(0, 2, 1).reshape(-1, CLASSES)
    check(abs(run.losses[0] - of_classes(pixels.reshape(STEPS, -1))(scores, 0)[0]) < 1e-6, f"images: {run.losses[0]}")

    pixel = [node("Reshape", "z pixel", "y")]
    run, weights = train(dsopt, save(place("pixel.onnx"), pixel, constants=[ints("pixel", ROWS, CLASSES, 1, 1)]), {"x": X, "labels": LABELS[..., None, None]}, "-loss=cross-entropy:y,labels", *TRAIN)
    close(run, weights, numbers, "images of one pixel")

    # What has no scores of its shape is refused; what is made of more than probabilities is scores.
    tail = initializer("Constant_small", 1e-7)
    refused = {
        "'y' comes from a softmax (node 'S') along axis 0, expected axis 1, that of the classes; name what is before it: 'z'": [node("Softmax", "z", "y", name="S", axis=0)],
        "'y' comes from a softmax (node 'S') and then from node 'L', expected logits; name what is before it: 'z'":
            [node("Softmax", "z", "p", name="S"), node("Add", "p Constant_small", "q"), node("Log", "q", "y", name="L")],
        "'y' comes from a softmax (node 'S') and then from node 'M', expected logits": [node("Softmax", "z", "p", name="S"), node("Mul", "p Constant_temperature", "y", name="M")],
        "'y' comes from a sigmoid (node 'S') and then from node 'C', expected logits": [node("Sigmoid", "z", "p", name="S"), node("Sub", "one p", "q"), node("Concat", "q p", "y", name="C", axis=1)],
        "and then from node 'C', expected logits; name what is before it: 'z'": [node("Softmax", "z", "p"), node("Clip", "p Constant_small one0", "y", name="C")],
        "'y' comes from a softmax (node 'S') along what is no axis of it, expected the classes": [node("Softmax", "z", "p", name="S"), node("Reshape", "p other", "y")],
        "'y' comes from a softmax (node 'S') of one class, which is 1 whatever the model computes": [node("Reshape", "z thin", "t"), node("Softmax", "t", "y", name="S")],
    }
    constants = [tail, TEMPERATURE, ONE, initializer("one0", 1.0), ints("other", CLASSES, ROWS), ints("thin", ROWS * CLASSES, 1)]
    for text, head in refused.items():
        said = train(dsopt, save(place("refused.onnx"), head, constants=constants), data, "-loss=cross-entropy:y,labels", "-freeze=Constant_*", "-freeze=one*", *TRAIN, status=1)
        check(text in said and "-loss=cross-entropy:y,labels" in said, f"expected {text}, got {said}")
    shifted = [node("Sub", "z by_class", "u"), node("Exp", "u", "e"), node("ReduceSum", "e last", "s"), node("Div", "e s", "y")]
    by_class = random.standard_normal((1, CLASSES)).astype(np.float32)
    run, _ = train(dsopt, save(place("shifted.onnx"), shifted, constants=[initializer("by_class", by_class), ints("last", -1)]), data, "-loss=cross-entropy:y,labels", *TRAIN)
    z = np.tanh(X[0].astype(np.float64) @ W1) @ W2
    check(abs(run.losses[0] - of_classes(LABELS)(z - by_class, 0)[0]) < 1e-6, f"a bias of each class: {run.losses[0]}")
    gated = [node("Sigmoid", "z", "g"), node("Mul", "z g", "y")]
    run, _ = train(dsopt, save(place("gated.onnx"), gated), data, "-loss=cross-entropy:y,labels", *TRAIN)
    check(abs(run.losses[0] - of_classes(LABELS)(z * sigmoid(z), 0)[0]) < 1e-6 and "taken before" not in run.said, f"a gate: {run.losses[0]}, {run.said}")
    clipped = save(place("clipped.onnx"), [node("Softmax", "z", "p"), node("Clip", "p Constant_small", "y")], outputs=["z", "y"], constants=[tail])
    said = train(dsopt, clipped, data, "-loss=cross-entropy:z,labels", "-freeze=Constant_*", "-metric=perplexity:y,labels", *TRAIN, status=1)
    check("-metric=perplexity:y,labels: 'y' comes from a softmax and then from other operations, expected scores: name what is before it" in said, said)
    run, _ = train(dsopt, clipped, data, "-loss=cross-entropy:z,labels", "-freeze=Constant_*", "-metric=accuracy:y,labels", "-metric=accuracy", *TRAIN)
    check(all(line["accuracy"] == line["y_accuracy"] for line in run.steps), "the largest of clamped probabilities")
print("losses and weights of 10 steps as in double, predictions as the model has them")
