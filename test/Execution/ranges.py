"""Logarithms, norms and losses of ready ONNX files at zeros, subnormals and far out, beside numpy in double.

usage: ranges.py DSOPT

Each case is a few operators of `h`, the points plus a parameter of zeros, and of `y`, targets. The loss is the sum of
all results, each times one more than another parameter: one step of SGD with a learning rate of 1 turns the first into
the gradients' negatives, the second into the results'.
"""
import os
import sys
import tempfile

import numpy as np

from small import check, initializer, node, train, value, write

dsopt = sys.argv[1]
folder = tempfile.mkdtemp()
POINTS = np.array([0.0, -0.0, 1e-40, -1e-40, 1e-10, -1e-10, 0.3, -1.7, 20, -20, 89, -89, 104, -104, 1e4, -1e4], np.float32)
TARGETS = [0.0, 1.0, 0.25]
x, y = (np.array(column, np.float32) for column in zip(*((point, target) for point in POINTS for target in TARGETS)))
numbers = {"one": 1.0, "two": 2.0, "three": 3.0, "third": 1 / 3, "half": 0.5, "least": -100.0, "few": 0.75}
factor = np.array([[1, 1, 1], [1, -1, 0.5], [2, 0, -0.25]], np.float32)[np.arange(len(x)) % 3]


def sigmoid(h):
    small = np.exp(-np.abs(h))
    return np.where(h < 0, small, 1) / (1 + small)


def softplus(h):
    return np.maximum(h, 0) + np.log1p(np.exp(-np.abs(h)))


def cross_entropy(h, y):
    """PyTorch's, of probabilities that are rounded to 24 digits."""
    p = (1 / (1 + np.exp(-h).astype(np.float32))).astype(np.float32).astype(np.float64)
    loss = -(1 - y) * np.maximum(np.log1p(-p), -100) - y * np.maximum(np.log(p), -100)
    return loss, (p - y) / np.maximum(p * (1 - p), 1e-12) * p * (1 - p)


def norm(power, n):
    """Of each row h * factor, with a mean's factor 1 / n."""
    def of(h, y):
        rows = h[:, None] * factor
        # A power that float32 cannot hold is zero.
        size = (np.sum((np.abs(rows) ** power).astype(np.float32).astype(np.float64), 1) / n) ** (1 / power)
        # It grows as h does.
        return size, np.divide(size, h, out=np.zeros_like(size), where=(h != 0) & (size != 0))
    return of


binary = "sigmoid h p; neg p n; add n one q; log q a; max a least b; sub y one c; mul c b d; log p e; max e least f; mul y f g; sub d g result"
#: Operators, inputs and a result each; values and gradients; where these are differences, the size of what is subtracted.
cases = {
    "logarithm of a sigmoid": ("sigmoid h p; log p result", lambda h, y: (-softplus(-h), sigmoid(-h))),
    "logarithm of what a sigmoid lacks": ("sigmoid h p; sub one p q; log q result", lambda h, y: (-softplus(h), -sigmoid(h))),
    "softplus": ("softplus h result", lambda h, y: (softplus(h), sigmoid(h))),
    "softplus, written out": ("exp h e; add e one s; log s result", lambda h, y: (softplus(h), sigmoid(h))),
    "its stable form": ("abs h a; neg a n; exp n e; add one e s; log s l; relu h r; add l r result",
                        lambda h, y: (softplus(h), np.where(h == 0, 0, sigmoid(h)))),
    "logaddexp": ("neg h n; exp h a; exp n b; add a b s; log s result",
                  lambda h, y: (np.logaddexp(h, -h), sigmoid(2 * h) - sigmoid(-2 * h)), 0, 1),
    "powers of two": ("pow two h a; add a three s; log s result",
                      lambda h, y: (np.logaddexp(h * np.log(2), np.log(3)), np.log(2) * sigmoid(h * np.log(2) - np.log(3)))),
    "log1p": ("abs h a; add one a s; log s result", lambda h, y: (np.log1p(np.abs(h)), np.sign(h) / (1 + np.abs(h)))),
    "cross entropy of scores": ("sub one y r; mul r h a; sigmoid h p; log p l; sub a l result",
                                lambda h, y: (y * softplus(-h) + (1 - y) * softplus(h), (1 - y) * sigmoid(h) - y * sigmoid(-h))),
    "cross entropy of sigmoids": ("sigmoid h p; log p a; mul y a b; sub one p q; log q c; sub one y r; mul r c d; add b d e; neg e result",
                                  lambda h, y: (y * softplus(-h) + (1 - y) * softplus(h), (1 - y) * sigmoid(h) - y * sigmoid(-h))),
    "cross entropy of probabilities": (binary, cross_entropy),
    "the same by Clip": (binary.replace("max a least", "clip a least").replace("max e least", "clip e least"), cross_entropy),
    "logarithm of a sum": ("mul column factor m; exp m e; sum e s; log s result", lambda h, y: (
        np.logaddexp.reduce(h[:, None] * factor, 1),
        (np.exp(h[:, None] * factor - np.logaddexp.reduce(h[:, None] * factor, 1)[:, None]) * factor).sum(1)), 0, 2),
    "logarithm of a softmax": ("mul column factor m; softmax m p; log p q; sum q result", lambda h, y: (
        (h[:, None] * factor).sum(1) - 3 * np.logaddexp.reduce(h[:, None] * factor, 1),
        factor.sum(1) - 3 * (np.exp(h[:, None] * factor - np.logaddexp.reduce(h[:, None] * factor, 1)[:, None]) * factor).sum(1)), 0, 6),
    "norm": ("mul column factor m; mul m m q; sum q s; sqrt s result", norm(2, 1)),
    "root of a mean": ("mul column factor m; pow m two q; mean q s; sqrt s result", norm(2, 3)),
    # A third has seven digits, too.
    "norm of cubes": ("mul column factor m; abs m a; pow a three q; sum q s; pow s third result", norm(3, 1), 0, 4),
    "norm of roots": ("mul column factor m; abs m a; pow a half q; sum q s; pow s two result", norm(0.5, 1)),
    "clip between equal bounds": ("sub y y z; clip h z z result", lambda h, y: (0 * h, np.where(h == 0, 1.0, 0))),
}
operators = {"sum": "ReduceSum", "mean": "ReduceMean"}


def nodes_of(number, text):
    made = {}

    def name(given):
        return made.get(given, given)

    for step in text.split("; "):
        operator, *inputs, result = step.split()
        kind = operators.get(operator, operator.capitalize())
        reads = [name(one) for one in inputs] + (["last"] if operator in operators else [])
        made[result] = f"{result}/{number}"
        yield node(kind, reads, [made[result]], **({"keepdims": 0} if operator in operators else {}))


def model():
    nodes, weights, terms = [], [], []
    for number, (text, *_) in enumerate(cases.values()):
        nodes.append(node("Add", f"x p{number}", f"h/{number}"))
        if "column" in text:
            nodes.append(node("Unsqueeze", f"h/{number} last", f"column/{number}"))
        own = " ".join({"h": f"h/{number}", "column": f"column/{number}"}.get(word, word) for word in text.replace(";", " ;").split(" ")).replace(" ;", ";")
        nodes += nodes_of(number, own)
        nodes += [node("Add", f"v{number} one", f"weight/{number}"), node("Mul", f"result/{number} weight/{number}", f"terms/{number}"),
                  node("ReduceSum", f"terms/{number}", f"total/{number}", keepdims=0)]
        terms.append(f"total/{number}")
        weights += [initializer(f"{kind}{number}", np.zeros_like(x)) for kind in "pv"]
    constants = [node("Constant", [], [name], value=initializer(name, np.float32(number))) for name, number in numbers.items()]
    constants += [node("Constant", [], ["factor"], value=initializer("factor", factor)),
                  node("Constant", [], ["last"], value=initializer("last", np.array([-1], np.int64)))]
    return write(os.path.join(folder, "model.onnx"), [*constants, *nodes, node("Sum", terms, "loss")],
                 [value("x", x.shape), value("y", y.shape)], weights)


def rounded(values, digits):
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.round(mantissa * 2 ** digits), exponent - digits).astype(np.float32)


path = model()
train_all = ["-optimizer=sgd", "-lr=1", "-steps=1", "-train=p*", "-train=v*"]
for precision, digits, relative, least in (("fp32", 24, 1e-6, 2e-38), ("bf16", 8, 2 ** -8, 2e-38), ("fp16", 11, 2 ** -10, 2 ** -24)):
    points = x if precision == "fp32" else rounded(np.where(np.abs(x) < 1e-37, 0, x), digits)
    if precision == "fp16":
        points = points.astype(np.float16).astype(np.float32)
    data = {"x": np.stack([points, points]), "y": np.stack([y, y])}
    scale = ["-initial-scale-power=0"] if precision == "fp16" else []
    _, weights = train(dsopt, path, data, *train_all, f"-precision={precision}", "-micro-batches=2", *scale)
    for number, (name, (_, of, *sizes)) in enumerate(cases.items()):
        with np.errstate(divide="ignore", over="ignore"):
            wants = of(points.astype(np.float64), y.astype(np.float64))
        pairs = zip(("values", "gradients"), wants, (-weights[f"v{number}"], -weights[f"p{number}"]), sizes or (0, 0))
        for kind, want, got, size in pairs:
            off = ~(np.abs(got.astype(np.float64) - want) <= relative * (np.abs(want) + size) + least)
            for i in np.flatnonzero(off)[:4]:
                print(f"{name}, {kind} in {precision} at {points[i]:g}, {y[i]:g}: {got[i]:.9g}, exactly {want[i]:.9g}")
            check(np.isfinite(got).all() and not off.any(), f"{name}: {kind} in {precision}")
    print(f"{precision}: {len(cases)} functions", flush=True)
    _, again = train(dsopt, path, data, *train_all, f"-precision={precision}", "-micro-batches=1", "-dp=2", "-zero=3", *scale)
    check(all(np.array_equal(weights[name], again[name]) for name in weights), f"bits of two ranks in {precision}")
print("passed")
