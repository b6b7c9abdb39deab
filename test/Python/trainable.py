"""What is trained is what the model says: parameters that require a gradient, of whatever size, and nothing else.

usage: trainable.py SOURCE BUILD
"""
import copy
import json
import warnings

from exports import Net, batches, check, in_turn, layers, path, pytorch, refused, same, told
from sampled import sampled
import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

x, y = batches()
weights = torch.tensor([0.2, 1.0, 2.0, 5.0])


class Low(nn.Module):
    """A frozen layer with an adapter."""

    def __init__(self, inner, rank=2):
        super().__init__()
        self.inner = inner
        self.down = nn.Parameter(torch.randn(rank, inner.in_features) * 0.3)
        self.up = nn.Parameter(torch.randn(inner.out_features, rank) * 0.3)
        inner.requires_grad_(False)

    def forward(self, x):
        return self.inner(x) + x @ self.down.t() @ self.up.t()


def plain(m, x, y):
    return F.cross_entropy(m.o(F.relu(m.a(x))), y)


def with_buffer(m, x, y):
    return F.cross_entropy(m.o(F.relu(m.a(x * m.b + m.c))), y, weights)


def rows_of(file):
    proto = onnx.load(path(file))
    return {row["torch"]: row for entry in proto.metadata_props if entry.key == "dsopt.parameters"
            for row in json.loads(entry.value)}


lora = Net(plain, a=Low(nn.Linear(6, 8)), o=nn.Linear(8, 4))
same(lora, x, y, "adapters of a frozen layer")
rows = rows_of("model.onnx")
check(rows["a.inner.weight"].get("trainable") is False and "trainable" not in rows["a.down"], rows)
check(all(row["kind"] == "parameter" for row in rows.values()), rows)

half = Net(plain, **layers())
half.a.requires_grad_(False)
same(half, x, y, "a frozen layer")

one = Net(lambda m, x, y: F.mse_loss(m.p(m.o(F.relu(m.a(x)))[:, 0]) * m.g.exp(), y.float()), a=nn.Linear(6, 8),
          o=nn.Linear(8, 1), p=nn.PReLU(), g=nn.Parameter(torch.tensor(0.1)))
same(one, x, y, "parameters of one element")

buffered = Net(with_buffer, **layers())
buffered.register_buffer("b", torch.rand(6) + 0.5)
buffered.register_buffer("c", torch.rand(6), persistent=False)
same(buffered, x, y, "buffers and class weights")
dsopt.export(buffered, {"x": x[0], "y": y[0]}, path("model.onnx"))
rows = rows_of("model.onnx")
check(rows["b"]["kind"] == rows["c"]["kind"] == "buffer" and len(rows) == 6, rows)

shared = Net(lambda m, x, y: F.cross_entropy(m.o(torch.tanh(m.a(torch.tanh(m.a(x))))), y), a=nn.Linear(6, 6), o=nn.Linear(6, 4))
with warnings.catch_warnings():
    warnings.simplefilter("error")  # nothing is merged, so there is nothing to say of it
    dsopt.export(shared, {"x": x[0], "y": y[0]}, path("shared.onnx"))
    dsopt.train(path("shared.onnx"), {"x": x, "y": y})
same(shared, x, y, "a layer used twice")
tied = Net(lambda m, x, y: F.cross_entropy(F.linear(torch.tanh(m.e(y)), m.e.weight), y) + 0 * x.sum(), e=nn.Embedding(4, 8))
same(tied, x, y, "an embedding used as a head")

# One tensor as two inputs stays two inputs.
tokens = torch.randint(0, 4, (8,))
model = Net(lambda m, x, y: F.cross_entropy(m.o(m.e(x)), y), e=nn.Embedding(4, 8), o=nn.Linear(8, 4))
report, lines = told(lambda: dsopt.export(model, {"x": tokens, "y": tokens}, path("twice.onnx")))
check(report.inputs == ["x", "y"] and not lines, (report, lines))
other = torch.randint(0, 4, (8,))
want, got = float(model(tokens, other).detach()), dsopt.evaluate(path("twice.onnx"), {"x": tokens[None], "y": other[None]})
check(abs(want - got) < 1e-5, f"{got}, PyTorch's {want}")

# Equal values do not make an unused parameter of a constant, nor a constant of a parameter.
zeros = Net(lambda m, x, y: F.cross_entropy(m.o(F.relu(m.a(x) + torch.zeros(8))), y), z=nn.Parameter(torch.zeros(8)), **layers())
nn.init.zeros_(zeros.a.bias)
for exporter in in_turn():
    report = dsopt.export(zeros, {"x": x[0], "y": y[0]}, path("zeros.onnx"), exporter=exporter)
    check(report.unused == ["z"] and "z" not in rows_of("zeros.onnx"), report)

# A gradient of zeros: PyTorch's AdamW decays such a parameter, where the loss does not depend on it at all it stays. Here it is as there, or named.
ZERO = {
    "times": lambda p, x: 0 * p.sum(), "mask": lambda p, x: (p * torch.zeros(3)).sum(), "clamp": lambda p, x: p.clamp(100, 200).sum(),
    "constant choice": lambda p, x: torch.where(torch.zeros(3, dtype=torch.bool), p, torch.ones(3)).sum(),
    "choice": lambda p, x: torch.where(x[0, :3] > 1e9, p, torch.ones(3)).sum(), "empty": lambda p, x: p[:0].sum(), "sign": lambda p, x: p.sign().sum(),
    "difference": lambda p, x: (p - p).sum(), "rounded": lambda p, x: p.round().sum(), "compared": lambda p, x: (p > 0).float().sum(),
    "like": lambda p, x: torch.zeros_like(p).sum(), "power": lambda p, x: (p ** 0).sum(), "all dropped": lambda p, x: F.dropout(p, 1.0, True).sum(),
    "detached": lambda p, x: p.detach().sum()}
zero = Net(lambda m, x, y: plain(m, x, y) + sum(f(p, x) for f, p in zip(ZERO.values(), m.p)), **layers(),
           p=nn.ParameterList(nn.Parameter(torch.tensor([1.0, -2.0, 3.0])) for _ in ZERO))
want, twin = pytorch(zero, x, y)
for exporter in in_turn():
    report, lines = told(lambda: dsopt.export(zero, {"x": x[0], "y": y[0]}, path("zero.onnx"), exporter=exporter))
    result, home = dsopt.train(path("zero.onnx"), {"x": x, "y": y}, lr=1e-2, save_weights=path("zero")), copy.deepcopy(zero)
    dsopt.load_weights(home, result.weights)
    for at, name in enumerate(ZERO):
        same_as = zero if f"p.{at}" in report.unused else twin
        check(torch.allclose(home.p[at], same_as.p[at], rtol=0, atol=1e-6), f"{exporter}: a gradient of zeros by {name}")
        check((f"p.{at}" in report.unused) <= any(f"p.{at}" in line for line in lines), f"{exporter}: {name} is not named: {lines}")
    check(max(abs(a - b) for a, b in zip(result.losses, want)) < 1e-5, result)

# What an optimizer's groups say: rates, decay, and what no group has.
model = Net(plain, **layers())


def groups(of):
    return [{"params": [of.a.weight], "lr": 0.02, "weight_decay": 0.3}, {"params": [of.a.bias], "lr": 0.005},
            {"params": [of.o.weight], "weight_decay": 0.0}]


for make in sampled((lambda of: torch.optim.AdamW(groups(of), lr=1e-2, betas=(0.8, 0.95), eps=1e-7, weight_decay=0.1),
                     lambda of: torch.optim.SGD(groups(of), lr=1e-2, momentum=0.9, weight_decay=0.1),
                     lambda of: torch.optim.Adam(groups(of), lr=1e-2, weight_decay=0.1),
                     lambda of: torch.optim.Adagrad(groups(of), lr=1e-2, weight_decay=0.1)), 2):
    twin = copy.deepcopy(model)
    steps, want = make(twin), []
    for a, b in zip(x, y):
        steps.zero_grad()
        loss = twin(a, b)
        loss.backward()
        steps.step()
        want.append(float(loss.detach()))
    name = type(steps).__name__
    report = dsopt.export(model, {"x": x[0], "y": y[0]}, path("groups.onnx"), optimizer=make(model))
    check(rows_of("groups.onnx")["o.bias"].get("trainable") is False, "a parameter of no group")
    result = dsopt.train(path("groups.onnx"), {"x": x, "y": y}, save_weights=path("weights"))
    check(np.allclose(result.losses, want, rtol=1e-5), f"{name}: {result.losses}, PyTorch's {want}")
    home = copy.deepcopy(model)
    dsopt.load_weights(home, result.weights)
    for (key, value), after in zip(twin.state_dict().items(), home.state_dict().values()):
        apart, moved = float((value - after).abs().max()), float((value - model.state_dict()[key]).abs().max())
        check(apart <= 1e-3 * moved + 1e-7, f"{name}: {key} is {apart} off, PyTorch moved it {moved}")
    given = dsopt.train(path("groups.onnx"), {"x": x, "y": y}, lr=0.0)  # the command line wins
    check(given.losses[0] == result.losses[0] and abs(given.losses[1] - float(model(x[1], y[1]).detach())) < 1e-5, given)
    print("groups of", name, report.options)


def refuses(make, *words):
    refused(lambda: dsopt.export(model, {"x": x[0], "y": y[0]}, path("refused.onnx"), optimizer=make(model.parameters())), *words)


refuses(torch.optim.RMSprop, "optimizer RMSprop is not available: SGD, Adam, AdamW and Adagrad of torch.optim are")
refuses(lambda p: torch.optim.Adagrad(p, lr_decay=0.1), "parameter group 0 of Adagrad has lr_decay=0.1", "lr_decay=0")
refuses(lambda p: torch.optim.SGD(p, lr=1, momentum=0.9, nesterov=True), "parameter group 0 of SGD has nesterov=True", "nesterov=False")
refuses(lambda p: torch.optim.AdamW(p, amsgrad=True), "amsgrad=True")
first, *rest = model.parameters()
refuses(lambda p: torch.optim.AdamW([{"params": [first], "eps": 1e-3}, {"params": rest}]),
        "parameter groups 0 and 1 of AdamW have eps=0.001 and 1e-08, expected one for all")
stepped = torch.optim.AdamW(model.parameters(), lr=0)
model(x[0], y[0]).backward()
stepped.step()
refuses(lambda p: stepped, "AdamW has taken steps, whose state the file does not hold")
refuses(lambda p: torch.optim.AdamW(nn.Linear(2, 2).parameters()), "no parameter group of AdamW has a parameter of this model")
refused(lambda: dsopt.export(model, {"x": [x[0]], "y": y[0]}, path("refused.onnx")),
        "input 'x' is a list that holds tensors", "give each tensor as an input of its own")
lazy = Net(lambda m, x, y: F.cross_entropy(m.o(x), y), o=nn.LazyLinear(4))
refused(lambda: dsopt.export(lazy, {"x": x[0], "y": y[0]}, path("refused.onnx")), "parameter 'o.weight' has no shape yet")
print("passed")
