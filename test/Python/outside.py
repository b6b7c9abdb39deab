"""What forward draws by NumPy and Python is drawn anew in each micro-batch; what it keeps or reads outside of PyTorch is refused by
its line; an export leaves no trace of either.

usage: outside.py SOURCE BUILD
"""
import collections
import itertools
import os
import random
import secrets
import time
import types
import uuid
from random import gauss

from exports import Net, check, layers, path, refused, told
from replay import draws_of, replayed
from sampled import sampled
import numpy as np
from numpy.random import rand
import scipy.stats
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
example = {"x": x, "y": y}


def base(m, x, y):
    return F.cross_entropy(m.o(torch.tanh(m.a(x))), y)


class Schedule:
    shared = 0

    def __init__(self):
        self.n, self.inner = 0, types.SimpleNamespace(n=0)

    def step(self):
        self.n += 1
        return 1 + 0.1 * self.n

    def deep(self):
        self.inner.n += 1
        return 1 + 0.1 * self.inner.n

    @classmethod
    def common(cls):
        cls.shared += 1
        return 1 + 0.1 * cls.shared


class Slotted:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.factor * gradient, None


G = {"n": 0}
N = 0
RNG = np.random.default_rng(5)


def by_global_number(m, x, y):
    global N
    N += 1
    return base(m, x, y) * (1 + 0.1 * N)


def by_global_dict(m, x, y):
    G["n"] += 1
    return base(m, x, y) * (1 + 0.1 * G["n"])


def by_closure():
    n = 0

    def forward(m, x, y):
        nonlocal n
        n += 1
        return base(m, x, y) * (1 + 0.1 * n)
    return forward


def by_default(m, x, y, seen=[]):
    seen.append(1)
    return base(m, x, y) * (1 + 0.1 * len(seen))


def by_function(m, x, y):
    by_function.n = getattr(by_function, "n", 0) + 1
    return base(m, x, y) * (1 + 0.1 * by_function.n)


def appended(m, x, y):
    m.c.append(1)
    return base(m, x, y) * (1 + 0.1 * len(m.c))


def counted(m, x, y):
    m.c += 1
    return base(m, x, y) * (1 + 0.1 * float(m.c[0]))


def slot(m, x, y):
    m.c.n += 1
    return base(m, x, y) * (1 + 0.1 * m.c.n)


def beside(m, x, y):
    m.last = torch.tanh(m.a(x)).detach()  # which nothing reads
    m.c.n += 1
    return base(m, x, y) * (1 + 0.1 * m.c.n)


def bank(m, x, y):
    h = torch.tanh(m.a(x))
    loss = F.cross_entropy(m.o(h + sum(m.c, torch.zeros(8))), y)
    m.c.append(h.detach().mean(0))
    return loss


def late(m, x, y):
    m.c[0] += 1
    return base(m, x, y) * (1.0 if m.c[0] < 900 else 0.5)


def reversal(m, x, y):
    return F.cross_entropy(m.o(Reversal.apply(torch.tanh(m.a(x)), m.c.step())), y)


def seeded(m, x, y):
    torch.manual_seed(3)
    return base(m, x + torch.randn_like(x), y)


def of_fresh(m, x, y):
    return base(m, x + torch.randn(8, 6, generator=torch.Generator().manual_seed(1)), y)


def forked(m, x, y):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return base(m, x + torch.randn_like(x), y)


def reseeds(m, x, y):
    np.random.seed(0)
    return base(m, x, y) * float(np.random.rand())


def shuffled(m, x, y):
    order = list(range(8))
    random.shuffle(order)
    return base(m, x, y) + 0.1 * x[order[0]].sum()


held = {  # what holds it, forward, words of the refusal
    "an object's number": (Schedule(), lambda m, x, y: base(m, x, y) * m.c.step(), "attribute 'c.n' and depends on it"),
    "a number in an object's object": (Schedule(), lambda m, x, y: base(m, x, y) * m.c.deep(), "'c.inner.n'"),
    "a number of a class": (Schedule(), lambda m, x, y: base(m, x, y) * m.c.common(), "'Schedule.shared'"),
    "a slot": (Slotted(), slot, "'c.n'"),
    "a number beside what nothing reads": (Schedule(), beside, "'c.n' and depends on it"),
    "a list's length": ([], appended, "'c' and depends on it"),
    "a queue's length": (collections.deque(), appended, "'c' and depends on it"),
    "tensors in a list": ([], bank, "'c' and depends on it"),
    "an array": (np.zeros(1), counted, "array 'c' and depends on it"),
    "a number that matters late": ([0], late, "'c' and depends on it"),
    "a number that only gradients depend on": (Schedule(), reversal, "'c.n' and depends on it"),
    "a global number": (None, by_global_number, "'N' and depends on it"),
    "a global dict": (None, by_global_dict, "'G['n']' and depends on it"),
    "a closure's number": (None, by_closure(), "'n' and depends on it"),
    "a default": (None, by_default, "'seen' and depends on it"),
    "a function's attribute": (None, by_function, "'by_function.n' and depends on it"),
    "an iterator": (iter(range(1, 9)), lambda m, x, y: base(m, x, y) * next(m.c), "takes the next value of the iterator 'c'"),
    "a generator": ((n for n in range(1, 9)), lambda m, x, y: base(m, x, y) * next(m.c), "takes the next value of the iterator 'c'"),
    "a cycle": (itertools.cycle([1, 2]), lambda m, x, y: base(m, x, y) * next(m.c), "takes the next value of the iterator 'c'"),
    "the clock": (None, lambda m, x, y: base(m, x, y) * (time.time() % 7), "what it reads from the clock or the machine"),
    "another clock": (None, lambda m, x, y: base(m, x, y) * (1 + time.perf_counter_ns() % 1000003), "what it reads from the clock or the machine"),
    "the system's random numbers": (None, lambda m, x, y: base(m, x, y) * (0.5 if secrets.randbelow(1000) == 0 else 1.0), "asks the system"),
    "an identifier": (None, lambda m, x, y: base(m, x, y) * (uuid.uuid4().int % 7 + 1), "outside.py:"),
    "a seeded generator": (None, seeded, "draws from a generator that forward seeds"),
    "a fresh seeded generator": (None, of_fresh, "draws from a generator that forward seeds"),
    "a forked generator": (None, forked, "draws from a generator that forward seeds"),
    "NumPy seeded": (None, reseeds, "sets the state of a random generator"),
    "a shuffled list": (None, shuffled, "draws from Python's generator"),
    "NumPy's Poisson numbers": (np.random.default_rng(0), lambda m, x, y: base(m, x, y) * m.c.poisson(3), "draws from NumPy's generator 'c'"),
    "a branch without a function of its own": (None, lambda m, x, y: base(m, x, y) * (0.0 if random.random() < 0.2 else 1.0), "Python decides by what forward draws"),
    "a drawn slice": (None, lambda m, x, y: base(m, x, y) + x[np.random.randint(0, 4):].sum(), "slices by what forward draws"),
    "a drawn probability": (None, lambda m, x, y: base(m, F.dropout(x, random.random()), y), "outside.py:"),
}


def state():
    return (random.getstate(), [str(one) for one in np.random.get_state()], torch.get_rng_state().tolist(), RNG.bit_generator.state, N, dict(G))


for name, (value, forward, words) in held.items():
    model = Net(forward, **layers())
    model.c = value
    before, there = state(), dict(vars(model))
    kept = (vars(value).copy() if isinstance(value, Schedule) else list(value) if isinstance(value, (list, collections.deque)) else
            value.copy() if isinstance(value, np.ndarray) else None)
    refused(lambda: dsopt.export(model, example, path("refused.onnx")), words, "outside.py:", "(called in exports.py:", kind=ValueError)
    check(not os.path.exists(path("refused.onnx")), f"{name}: a file is left")
    check(state() == before and model.training and all(one.grad is None for one in model.parameters()), f"{name}: a trace in generators or globals")
    check(set(vars(model)) == set(there) and all(vars(model)[one] is there[one] for one in there if one != "c"), f"{name}: a trace in the model")
    now = value if kept is None else vars(value) if isinstance(value, Schedule) else list(value) if isinstance(kept, list) else value
    check(kept is None or np.array_equal(now, kept) if isinstance(kept, np.ndarray) else kept is None or now == kept, f"{name}: a trace in what it holds")
    if "iterator" in words:
        check([next(model.c) for _ in range(2)] == [1, 2], f"{name}: values are lost")
    print("refused:", name)


# A loss that is given is looked at, too, and what is called by hooks.
class Criterion:
    def __init__(self):
        self.n = 0

    def __call__(self, outputs, inputs):
        self.n += 1
        return outputs * (1 + 0.1 * self.n)

    def hook(self, module, inputs, output):
        self.n += 1
        return output * self.n


criterion = Criterion()
refused(lambda: dsopt.export(Net(base, **layers()), example, path("refused.onnx"), loss=criterion), "outside.py:", "'Criterion.n' and depends on it")
hooked = Net(base, **layers())
hooked.a.register_forward_hook(criterion.hook)
refused(lambda: dsopt.export(hooked, example, path("refused.onnx")), "outside.py:", "'Criterion.n' and depends on it")
check(criterion.n == 0, "a trace in the loss")


class Kinds(dict):
    """A registry that makes what it has the classes of, each time it is asked."""

    def __getitem__(self, name):
        return super().__getitem__(name)()


KINDS = Kinds(tanh=nn.Tanh)


def recorded(m, x, y):
    """Keeps what a module gives, by a hook of the first call."""
    if not m.hooked:
        m.a.register_forward_hook(lambda module, inputs, output: m.seen.append(output))
        m.hooked = True
    m.seen.clear()
    return base(m, x, y) + 0.1 * sum(one.square().mean() for one in m.seen)


# What the loss does not read is no reason to refuse, and said where it goes on.
def counting(m, x, y):
    m.n += 1
    if not hasattr(m, "made"):
        m.made = torch.ones(8)
    m.took = time.time()
    x = x + torch.randn(8, 6, generator=m.g)
    return F.cross_entropy(m.o(KINDS["tanh"](m.a(x)) * m.made), y)


class Parted(nn.Module):
    """Draws by all that NumPy and Python have, each once, in one forward."""

    def __init__(self):
        super().__init__()
        self.a, self.o, self.e, self.left = nn.Linear(6, 8), nn.Linear(8, 4), nn.Embedding(4, 6), nn.Linear(2, 2)
        self.rng, self.own, self.g = np.random.default_rng(1), random.Random(2), torch.Generator()

    def forward(self, x, y):
        share = np.random.beta(0.4, 0.4)
        x = share * x + (1 - share) * x[torch.from_numpy(np.random.permutation(8))]
        x = x + torch.tensor(np.random.randn(8, 6), dtype=torch.float32) * random.uniform(0.1, 0.2) + self.e.weight[random.randrange(4)]
        x = x + self.e(torch.as_tensor(self.rng.integers(0, 4, 8))) * float(self.rng.normal(0.5, 0.1))
        keep = (np.random.rand(8, 1) < 0.7).astype(np.float32)
        x = x * torch.from_numpy(keep) + torch.rand(8, 6, generator=self.g) * self.own.betavariate(2, 3)
        x[torch.tensor(np.random.rand(8) < 0.3)] = 0.5
        h = torch.tanh(self.a(x)) * rand() + gauss(0, 0.1) * torch.full((8, 8), RNG.random())
        start = int(np.random.randint(0, 4))
        return F.cross_entropy(self.o(h), y) * torch.rand(1).item() + 0.01 * h[:, start + torch.arange(4)].sum() + \
            torch.tensor([random.expovariate(2.0), np.random.gamma(0.5)]).sum() + 0.1 * x[start].sum()


steps = 6
data = {"x": torch.randn(steps, 8, 6), "y": torch.randint(0, 4, (steps, 8))}
model = Parted()
for exporter in sampled(("torchscript", "dynamo"), 1):
    before = state()
    report, lines = told(lambda: dsopt.export(model, example, path("draws.onnx"), exporter=exporter))
    check(state() == before and type(model.rng) is np.random.Generator and type(model.own) is random.Random, "a trace")
    check(report.checked.startswith("compared") and report.unused == ["left.weight", "left.bias"], report)
    check(any("left.weight, left.bias" in line for line in lines), lines)
    losses = dsopt.train(path("draws.onnx"), data, lr=0.0).losses
    want = replayed(model, data, steps, count=draws_of(path("draws.onnx")))
    check(len(set(losses)) == steps and np.allclose(losses, want, rtol=1e-5, atol=1e-6), f"{exporter}: {losses}, PyTorch's of the same draws {want}")
    print("kept:", exporter)

quiet = Net(counting, **layers())
quiet.n, quiet.g = 0, torch.Generator()
report, lines = told(lambda: dsopt.export(quiet, example, path("quiet.onnx")))
check(len(lines) == 1 and "forward changes n, took, which the loss does not read" in lines[0] and quiet.n == 0 and not hasattr(quiet, "made"), lines)
recording = Net(recorded, **layers())
recording.hooked, recording.seen = False, []
report, lines = told(lambda: dsopt.export(recording, example, path("recorded.onnx")))
check(report.checked.startswith("compared") and not lines and not recording.a._forward_hooks and not recording.hooked, (report, lines))
check(dict.get(KINDS, "tanh") is nn.Tanh, "a registry has objects in place of its classes")

# The numbers of a program follow NumPy's distributions: 10^5 of each, as the gradients of what they are multiplied with.
many = 100_000
kinds = {
    "beta": (lambda: np.random.beta(0.4, 0.4, many), scipy.stats.beta(0.4, 0.4)),
    "another beta": (lambda: np.random.beta(3.0, 0.5, many), scipy.stats.beta(3.0, 0.5)),
    "gamma": (lambda: np.random.gamma(0.7, 2.0, many), scipy.stats.gamma(0.7, scale=2.0)),
    "large gamma": (lambda: np.random.gamma(9.0, 1.0, many), scipy.stats.gamma(9.0)),
    "uniform": (lambda: np.random.uniform(-1, 3, many), scipy.stats.uniform(-1, 4)),
    "normal": (lambda: np.random.normal(1, 2, many), scipy.stats.norm(1, 2)),
    "exponential": (lambda: np.random.exponential(3.0, many), scipy.stats.expon(scale=3.0)),
    "integers": (lambda: np.random.randint(2, 9, many), scipy.stats.randint(2, 9)),
    "choice": (lambda: np.random.choice([1, 2, 5], many, p=[0.2, 0.5, 0.3]), {1: 0.2, 2: 0.5, 5: 0.3}),
    "binomial": (lambda: np.random.binomial(4, 0.3, many), scipy.stats.binom(4, 0.3)),
}
kinds = dict(sampled(kinds.items(), 5))


class Numbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.ParameterList([torch.zeros(many) for _ in kinds])

    def forward(self, x):
        return x.sum() + sum((torch.as_tensor(draw()).float() * w).sum() for w, (draw, _) in zip(self.w, kinds.values()))


dsopt.export(Numbers(), {"x": torch.zeros(1)}, path("many.onnx"), check=False)
result = dsopt.train(path("many.onnx"), {"x": torch.zeros(1, 1)}, optimizer="sgd", momentum=0.0, weight_decay=0.0, lr=1.0, save_weights=path("many"))
home = Numbers()
dsopt.load_weights(home, result.weights)
for w, (name, (_, law)) in zip(home.w, kinds.items()):
    drawn = -w.detach().double().numpy()
    if isinstance(law, dict) or hasattr(law.dist, "pmf"):
        values = sorted(law) if isinstance(law, dict) else [n for n in range(0, 10) if law.pmf(n) > 0]
        shares = np.array([law[n] if isinstance(law, dict) else law.pmf(n) for n in values])
        counts = np.array([(drawn == n).sum() for n in values])
        check(counts.sum() == many, f"{name}: {many - counts.sum()} numbers that NumPy does not give")
        p = scipy.stats.chisquare(counts, shares * many).pvalue
    else:
        p = scipy.stats.kstest(drawn, law.cdf).pvalue
    check(p > 1e-6, f"{name}: p {p}")
    print("distribution:", name, f"p {p:.3g}")
print("passed")
