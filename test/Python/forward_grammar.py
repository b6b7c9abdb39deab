"""Random forwards in Python: draws, state, branches, loops, containers and generators, as the source of a module.

`source(seed)` gives a file with a class Model, whose forward takes x, 8 rows of 6 numbers, and y, a class of 4 for each.
"""
import random

NUMBERS = ["torch.rand(())", "torch.rand(1).item()", "(1 + 0.1 * torch.randn(()))", "float(np.random.rand())", "np.random.uniform(0.5, 1.5)",
           "random.random()", "random.uniform(0.5, 1.5)", "random.gauss(1.0, 0.1)", "np.random.beta(0.4, 0.4)", "self.rng.normal(1.0, 0.2)",
           "self.own.random()", "float(RNG.uniform(0.2, 0.9))", "rand()", "torch.rand((), generator=self.g)", "random.betavariate(2, 3)",
           "np.random.exponential(0.5)", "np.random.randn()"]
PLACES = ["torch.randint(0, {n}, ())", "int(np.random.randint(0, {n}))", "random.randrange({n})", "random.randint(0, {n} - 1)",
          "int(self.rng.integers({n}))", "int(torch.randint({n}, (1,)))", "np.random.choice({n})"]
ARRAYS = ["torch.randn(8, 8)", "torch.rand_like(h)", "torch.from_numpy(np.random.randn(8, 8)).float()", "torch.randn_like(h)",
          "torch.tensor(np.random.rand(8, 8), dtype=torch.float32)", "torch.as_tensor(self.rng.normal(0, 1, (8, 8)), dtype=torch.float32)",
          "torch.rand(8, 1)", "torch.bernoulli(torch.full((8, 8), 0.6))", "torch.from_numpy((np.random.rand(8, 8) < 0.7).astype(np.float32))"]
ORDERS = ["torch.randperm(8)", "torch.from_numpy(np.random.permutation(8))", "torch.tensor(self.rng.permutation(8))",
          "torch.argsort(torch.rand(8))"]

#: Lines of forward, which go on with h, 8 rows of 8 numbers: {D} a drawn number, {I4} a drawn place, {A} an array, {P} an order.
PLAIN = [
    "h = torch.tanh(self.l{k}(h))", "h = h + F.gelu(self.l{k}(h))", "h = h * {D}", "h = h + 0.1 * {D}", "h = h + 0.1 * {A}",
    "h = torch.where({A} > 0.2, h, torch.zeros(()))", "h = h * ({A} > 0.1).float()", "h = h[{P}]",
    "s, p = {D}, {P}\nh = s * h + (1 - s) * h[p]", "h = h + 0.1 * h[{I8}]", "h = h + self.e.weight[{I4}]",
    "h = h + self.e(torch.randint(0, 4, (8,)))",
    "h = h.clone()\nh[torch.tensor(np.random.rand(8) < 0.3)] = 0.5",
]
LOOPS = [
    "for layer in self.blocks:\n    h = h + torch.tanh(layer(h)) * {D}", "for k in range(3):\n    h = h + 0.1 * k * {A}",
    "k = 0\nwhile k < 2:\n    h = h * {D}\n    k += 1", "for k, layer in enumerate(self.blocks):\n    if k == 1:\n        continue\n    h = layer(h) + {D}",
    "for a, b in zip(self.blocks, (0.5, 1.0)):\n    h = h + b * a(h)",
]
CONTAINERS = [
    "parts = [h * {D} for _ in range(2)]\nh = sum(parts) / 2", "d = {{'a': h, 'b': h * {D}}}\nh = d['a'] + 0.5 * d['b']",
    "h = torch.stack([h, h + 0.1 * {A}]).mean(0)", "a, b = h.chunk(2, 1)\nh = torch.cat([b, a * {D}], 1)",
    "weights = torch.tensor([{D}, {D}])\nh = h * weights[0] + weights[1]", "h = h * torch.full((8, 8), {D})",
]
GENERATORS = [
    "def parts(h=h):\n    yield h\n    yield 0.5 * h * {D}\nh = sum(parts())", "blocks = iter(self.blocks)\nh = next(blocks)(h) + {D}",
    "h = sum(w * h for w in (0.5, {D}))", "h = functools.reduce(lambda a, b: a + b(a), self.blocks, h)",
]
BRANCHES = [
    "if self.training:\n    h = h * {D}\nelse:\n    h = h * 2", "if h.shape[0] > 4:\n    h = h + {D}", "h = h * {D} if self.flag else h",
    "try:\n    h = h * {D}\nfinally:\n    h = h + 0.5", "with torch.no_grad():\n    t = h.mean() * {D}\nh = h + 0.1 * t", "h = h + 0.1 * h.detach() * {D}",
    "h = self.double(h, {D})",
]
#: What a draw decides: both sides are in the file.
DECIDED = [
    "if {D} < 0.5:\n    h = h * 2", "h = self.blocks[{I2}](h)", "if {D} > 0.4:\n    h = h + self.l0(h) * {D}\nelse:\n    h = torch.tanh(h + {A})",
    "h = self.l{k}(h) if {D} < 0.5 else h", "skip = self.training and {D} < 0.3\nif not skip:\n    h = h + self.l{k}(h)",
    "for layer in self.blocks:\n    if {D} < 0.4 or not self.training:\n        continue\n    h = torch.tanh(layer(h))",
    "if {D} < 0.6 and {D} > 0.2:\n    s, h = {D}, self.l0(h)\n    if {D} < 0.5:\n        h = h * s\nelse:\n    s = 0.5\nh = h + s",
    "h = [self.l0, self.l1][{I2}](h)", "h = h * (0.5, {D})[{I2}]", "h = self.dropped(h, {D})",
]
#: State that forward keeps and that a file can have, or that nothing reads.
KEPT = [
    "with torch.no_grad():\n    self.mean.mul_(0.9).add_(0.1 * h.mean())\nh = h - self.mean.clone()", "self.seen += len(x)", "self.last = h.detach()",
    "G['calls'] += 1", "self.log.append(1)", "self.obj.seen += 1", "if self.cache is None:\n    self.cache = torch.ones(8)\nh = h * self.cache",
]
#: What no file has.
LOST = [
    "self.n += 1\nh = h * (1 + 0.1 * self.n)", "self.obj.n += 1\nh = h * (1 + 0.1 * self.obj.n)", "G['n'] += 1\nh = h * (1 + 0.1 * G['n'])",
    "self.bank.append(h.detach().mean())\nh = h + sum(self.bank)", "self.array += 1\nh = h * float(self.array[0])", "h = h * next(self.steps)",
    "Model.total += 1\nh = h * (1 + 0.1 * Model.total)", "h = h * (1 + time.time() % 3)", "h = h * bump()",
    "random.shuffle(self.order)\nh = h[self.order]", "torch.manual_seed(1)\nh = h + torch.randn(8, 8)",
    "h = h * (1 + np.random.poisson(2))",
    "for k in range({I2}):\n    h = h * 0.5", "h = F.dropout(h, 0.5 * {D})",
]
#: How often each is taken; of a hundred forwards about six have one of the last.
KINDS = [(PLAIN, 40), (LOOPS, 14), (CONTAINERS, 14), (GENERATORS, 10), (BRANCHES, 14), (KEPT, 8), (DECIDED, 12)]

HEAD = '''import functools
import random
import time
import types

import numpy as np
from numpy.random import rand
import torch
import torch.nn.functional as F
from torch import nn

G = {"n": 0, "calls": 0}
RNG = np.random.default_rng(3)


def counter():
    n = 0

    def bump():
        nonlocal n
        n += 1
        return 1 + 0.1 * n
    return bump


bump = counter()


class Model(nn.Module):
    total = 0

    def __init__(self):
        super().__init__()
        self.i, self.o, self.e = nn.Linear(6, 8), nn.Linear(8, 4), nn.Embedding(4, 8)
        self.l0, self.l1 = nn.Linear(8, 8), nn.Linear(8, 8)
        self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.register_buffer("mean", torch.zeros(()))
        self.rng, self.own, self.g = np.random.default_rng(1), random.Random(2), torch.Generator()
        self.obj, self.array, self.steps = types.SimpleNamespace(n=0, seen=0), np.zeros(1), iter(range(1, 1000))
        self.n, self.seen, self.flag, self.log, self.bank, self.cache, self.order = 0, 0, True, [], [], None, list(range(8))

    def double(self, h, by=2.0):
        return h * by

    def dropped(self, h, by):
        if by < 0.5:
            return h
        h = h + torch.tanh(self.l1(h))
        return h * 0.5

    def forward(self, x, y):
        h = torch.tanh(self.i(x))
'''


def filled(line, rng):
    """A line with its draws."""
    while True:
        for mark, choices in (("{D}", NUMBERS), ("{A}", ARRAYS), ("{P}", ORDERS)):
            if mark in line:
                line = line.replace(mark, rng.choice(choices), 1)
                break
        else:
            for n in (2, 4, 8):
                line = line.replace(f"{{I{n}}}", rng.choice(PLACES).format(n=n))
            return line.replace("{k}", str(rng.randrange(2))).replace("{{", "{").replace("}}", "}")


def source(seed):
    """A module, and whether a line of it is of those that no file has."""
    rng = random.Random(seed)
    lines = [filled(rng.choice(rng.choices([kind for kind, _ in KINDS], [share for _, share in KINDS])[0]), rng) for _ in range(rng.randint(2, 6))]
    lost = rng.random() < 0.06
    if lost:
        lines.insert(rng.randint(0, len(lines)), filled(rng.choice(LOST), rng))
    body = "".join(f"        {one}\n" for line in lines for one in line.split("\n"))
    return f"{HEAD}{body}        return F.cross_entropy(self.o(h), y)\n", lost
