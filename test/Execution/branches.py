"""Blocks that a draw decides about: both sides are computed, one is taken. A parameter that no micro-batch of a step reached is not
updated, its optimizer's state and its count of steps stand still: as numpy does it in double with an `if`, and one result in all layouts.

usage: branches.py DSOPT
"""
import os
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from own_models import check_equal, run, save
from runs import SOURCE, check, execute

sys.path.append(os.path.join(SOURCE, "test", "Conversion", "KernelToLLVM", "Inputs"))
from philox import uniform

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="branches-")
path, data = os.path.join(folder, "branches.onnx"), os.path.join(folder, "branches.npz")
ROWS, WIDTH, STEPS, MICRO_BATCHES = 3, 5, 6, 2
random = np.random.default_rng(5)
NAMES = ["in", "l0", "l1", "l2", "l3", "shared", "both", "inner", "never", "plain", "a", "b", "out"]
start = {name: random.normal(0, 0.3, (WIDTH, WIDTH)).astype(np.float32) for name in NAMES}
start["bias"] = random.normal(0, 0.5, (WIDTH,)).astype(np.float32)
x = random.normal(0, 1, (STEPS * MICRO_BATCHES, ROWS, WIDTH)).astype(np.float32)
y = random.normal(0, 1, (STEPS * MICRO_BATCHES, ROWS, WIDTH)).astype(np.float32)


class Graph:
    def __init__(self):
        self.nodes, self.count = [], 0

    def __call__(self, op, *inputs, branch=False, **attributes):
        self.count += 1
        self.nodes.append(helper.make_node(op, list(inputs), [f"{op}{self.count}"], **attributes))
        if branch:
            self.nodes[-1].metadata_props.add(key="dsopt.operator", value="branch")
        return self.nodes[-1].output[0]

    def draw(self):
        return self("RandomUniform", shape=[1])

    def constant(self, value):
        return self("Constant", value=numpy_helper.from_array(np.asarray(value, np.float32)))

    def layer(self, h, weight):
        return self("Tanh", self("MatMul", h, weight))


def write(rows=ROWS):
    g = Graph()
    half = g.constant(0.5)
    draws = [g.draw() for _ in range(8)]
    takes = [g("Less", one, half) for one in draws]
    h = g("MatMul", "x", "in")
    for k, name in enumerate(("l0", "l1", "l2", "l3")):  # LayerDrop: half of them
        inside = g("Add", h, g("Add", g.layer(h, name), "bias") if k < 2 else g.layer(h, name))
        if k in (1, 3):  # in two branches
            inside = g("Add", inside, g.layer(inside, "shared"))
        if k == 2:  # a branch in a branch
            inside = g("Where", g("Not", takes[4]), inside, g.layer(inside, "inner"), branch=True)
            inside = g("Add", inside, g.layer(h, "both"))
        h = g("Where", takes[k], inside, h, branch=True)
    h = g("Add", h, g.layer(h, "both"))  # outside, too
    root = g("Sqrt", g("Sub", g("Neg", g("Mul", h, h)), g.constant(1)))  # no number, values and gradients
    h = g("Where", g("Less", draws[5], g.constant(-1)), g("Add", g("MatMul", root, "never"), h), h, branch=True)
    h = g("Add", h, g("Where", takes[6], g("MatMul", h, "plain"), g("Mul", h, half)))  # no branch: a zero gradient is one
    # A choice of two, with a part of each assigned twice, by a condition of another shape.
    one = g("Squeeze", takes[7])
    a, b = g("MatMul", h, "a"), g("MatMul", h, "b")
    h = g("Add", g("Where", one, a, b, branch=True), g("Where", one, b, a))
    h = g("Add", h, g("Where", g("And", takes[7], takes[0]), g("Tanh", a), h, branch=True))
    error = g("Sub", g("MatMul", h, "out"), "y")
    g.nodes.append(helper.make_node("ReduceMean", [g("Mul", error, error)], ["loss"], keepdims=0))
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, WIDTH]) for name in ("x", "y")]
    save(path, g.nodes, inputs, [numpy_helper.from_array(value, name) for name, value in start.items()], 18)
    np.savez(data, x=x, y=y)


def forward(p, inputs, targets, u):
    """The loss, and which parameters it was made of."""
    used = {"in", "both", "plain", "a", "b", "out"}  # a and b stand in a plain where, too
    takes = u < 0.5
    h = inputs @ p["in"]
    for k, name in enumerate(("l0", "l1", "l2", "l3")):
        if takes[k]:
            used.add(name)
            inside = h + np.tanh(h @ p[name])
            if k < 2:
                used.add("bias")
                inside = inside + p["bias"]
            if k in (1, 3):
                used.add("shared")
                inside = inside + np.tanh(inside @ p["shared"])
            if k == 2:
                if takes[4]:
                    used.add("inner")
                    inside = np.tanh(inside @ p["inner"])
                inside = inside + np.tanh(h @ p["both"])
            h = inside
    h = h + np.tanh(h @ p["both"])
    h = h + (h @ p["plain"] if takes[6] else h * 0.5)
    a, b = h @ p["a"], h @ p["b"]
    h = (a if takes[7] else b) + (b if takes[7] else a)
    h = h + (np.tanh(a) if takes[7] and takes[0] else h)
    error = h @ p["out"] - targets
    return (error * error).mean(), used


def gradients(p, *batch):
    """By imaginary steps (Squire and Trapp 1998), of what was used alone."""
    loss, used = forward(p, *batch)
    found = {}
    for name in used:
        found[name] = np.zeros(p[name].shape)
        for at in np.ndindex(p[name].shape):
            moved = p[name].astype(complex)
            moved[at] += 1e-30j
            found[name][at] = forward({**p, name: moved}, *batch)[0].imag / 1e-30
    return loss, found


def adam(decoupled):
    def rule(p, g, state, lr, decay):
        if decoupled:
            p = p * (1 - lr * decay)
        else:
            g = g + decay * p
        t = state["t"] = state.get("t", 0) + 1
        m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
        v = state["v"] = 0.999 * state.get("v", 0) + 0.001 * g * g
        return p - lr / (1 - 0.9**t) * m / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return rule


def momentum(p, g, state, lr, decay):
    g = g + decay * p
    state["buffer"] = 0.9 * state["buffer"] + g if state else g
    return p - lr * state["buffer"]


def lion(p, g, state, lr, decay):
    m = state.get("m", 0)
    state["m"] = 0.99 * m + 0.01 * g
    return p * (1 - lr * decay) - lr * np.sign(0.9 * m + 0.1 * g)


def adagrad(p, g, state, lr, decay):
    g = g + decay * p
    state["sum"] = state.get("sum", 0) + g * g
    return p - lr * g / (np.sqrt(state["sum"]) + 1e-10)


def reference(rule, lr, decay):
    p, states, losses = {name: value.astype(float) for name, value in start.items()}, {name: {} for name in start}, []
    idle = set()
    for step in range(STEPS):
        summed, total = {}, 0
        for place in range(MICRO_BATCHES):
            u = np.array([uniform((1,), number, step=step, micro_batch=place) for number in range(8)]).reshape(-1)
            at = step * MICRO_BATCHES + place
            loss, found = gradients(p, x[at].astype(float), y[at].astype(float), u)
            total += loss / MICRO_BATCHES
            for name, one in found.items():
                summed[name] = summed.get(name, 0) + one / MICRO_BATCHES
        idle |= {(step, name) for name in start if name not in summed}
        for name, one in summed.items():
            p[name] = rule(p[name], one, states[name], lr, decay)
        losses.append(total)
    return p, losses, idle


def near(name, got, want):
    check(np.allclose(got.losses, want[1], rtol=2e-5), f"{name}: losses {got.losses}, expected {want[1]}")
    for parameter, value in want[0].items():
        moved = np.abs(value - start[parameter]).max()
        off = np.abs(got.weights[parameter] - value).max()
        check(off <= 2e-4 * moved, f"{name}: '{parameter}' is off by {off}, it moved by {moved}")


write()
RULES = {"adamw": (adam(True), 1e-2, []), "adam": (adam(False), 1e-2, []), "sgd": (momentum, 2e-3, ["-momentum=0.9"]),
         "lion": (lion, 1e-3, ["-betas=0.9,0.99"]), "adagrad": (adagrad, 1e-2, ["-eps=1e-10"])}
for name, (rule, lr, more) in RULES.items():
    want = reference(rule, lr, 0.1)
    if name == "adamw":
        idle = {one for _, one in want[2]}
        check({"l0", "shared", "inner", "bias", "never"} & idle == idle & {"l0", "shared", "inner", "bias", "never"} and len(idle) > 4,
              f"the draws leave out too little to tell: {idle}")
    base = [f"-optimizer={name}", f"-lr={lr}", "-weight-decay=0.1", f"-steps={STEPS}", *more]
    first = run(dsopt, path, data, *base, f"-micro-batches={MICRO_BATCHES}")
    near(name, first, want)
    check(np.array_equal(first.weights["never"], start["never"]), f"{name}: what is never reached moved")
print("weights: as numpy's", flush=True)

write()
base = ["-lr=1e-2", "-weight-decay=0.1", f"-steps={STEPS}", "-reduction-shards=2"]


def layout(dp, pp, zero, *more):
    return run(dsopt, path, data, *base, f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={MICRO_BATCHES // dp}", *more)


first = layout(1, 1, 0)
for dp, pp, zero, *more in ((2, 1, 0), (2, 1, 2), (2, 1, 3), (1, 2, 0), (2, 2, 3), (1, 3, 0), (2, 1, 1, "-accumulate=sharded"), (1, 1, 0, "-threads=3"),
                            (2, 1, 3, "-offload-optimizer=cpu", "-offload-params=cpu"), (1, 1, 0, "-recompute=full"), (2, 1, 0, "-node-size=1")):
    check_equal(f"dp {dp}, pp {pp}, zero {zero} {more}", layout(dp, pp, zero, *more), first)
print("layouts: one hash", flush=True)

# Stopped where layers had had unlike many updates, and resumed in another layout.
for at in (1, 3, 5):
    saved = os.path.join(folder, f"saved{at}")
    layout(2, 1, 3, f"-steps={at}", f"-save={saved}")
    check_equal(f"resumed at {at}", layout(1, 2, 0, f"-resume={saved}"), first, skipped=at)
    check_equal(f"resumed at {at}, zero 2", layout(2, 1, 2, f"-resume={saved}"), first, skipped=at)
print("resumed: the same bits", flush=True)

# In narrow types, with a loss scale that makes steps fail, and with gradients of an earlier step.
for words in (["-precision=bf16"], ["-precision=bf16", "-gradient-type=param"], ["-precision=fp16", "-loss-scale=dynamic"], ["-delayed-update=1"], ["-grad-clip=0.1"],
              ["-optimizer=sgd", "-lr=1e-3", "-momentum=0.9"]):
    one = layout(1, 1, 0, *words)
    check(np.array_equal(one.weights["never"], start["never"]), f"{words}: what is never reached moved")
    check_equal(f"{words}, dp 2, zero 3", layout(2, 1, 3, *words), one)
    check_equal(f"{words}, pp 2", layout(1, 2, 0, *words), one)
print("types: one hash each", flush=True)

# What cannot leave a parameter alone is refused by name.
for words, said in ((["-optimizer=lamb"], "-optimizer=lamb"), (["-optimizer=muon"], "-optimizer=muon"), (["-optimizer=adafactor"], "-optimizer=adafactor"),
                    (["-optimizer=onebit-adam", "-freeze-step=2"], "-optimizer=onebit-adam"), (["-dp=2", "-compress-gradients=topk{k=2}"], "-compress-gradients")):
    done = execute([dsopt, path, "-run", "-quiet", f"-data={data}", *base, "-micro-batches=2", *words], status=1)
    check(said in done.stderr and "a draw decides whether it is used" in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr)
print("passed")
