"""Blocks that a draw decides about are kept: both sides are in the file, one is taken in each micro-batch. Losses and weights are those of
PyTorch's own training with the program's draws, in which a layer that was not reached has no gradient; what has no such file is refused.

usage: branches.py SOURCE BUILD
"""
import copy
import random

from exports import Net, batches, check, nn, path, refused, told
from replay import trained
import numpy as np
from numpy.random import randn
import torch
import dsopt
from dsopt._weights import read_weights

STEPS, MICRO_BATCHES = 6, 2


def same(name, model, inputs, reaches_all=False, exporter="torchscript", **options):
    """As PyTorch's own training; `options` are the file's layout."""
    file = path(f"{name}.onnx")
    report, lines = told(lambda: dsopt.export(model, {one: value[0] for one, value in inputs.items()}, file, exporter=exporter))
    check(report.checked.startswith("compared"), f"{name}: {report}, {lines}")
    weights = path(f"{name}.safetensors")
    done = dsopt.train(file, inputs, steps=STEPS, micro_batches=MICRO_BATCHES // options.get("dp", 1), lr=1e-2, weight_decay=0.1, save_weights=weights, **options)
    twin = copy.deepcopy(model)
    want, idle = trained(twin, inputs, STEPS, MICRO_BATCHES, torch.optim.AdamW(twin.parameters(), lr=1e-2, weight_decay=0.1))
    check(reaches_all or idle, f"{name}: every step reaches every parameter")
    check(np.allclose(done.losses, want, rtol=1e-4), f"{name}: losses {done.losses}, PyTorch's {want}")
    got = read_weights(weights)
    for parameter, value in twin.named_parameters():
        start = dict(model.named_parameters())[parameter]
        moved = float((value - start).detach().abs().max())
        off = float(np.abs(got[parameter] - value.detach().numpy()).max())
        check(off <= 2e-3 * moved + 1e-7, f"{name}: '{parameter}' is off by {off}, it moved by {moved}")
    print(name, flush=True)


def scaled(factor):
    """A function with a variable of another one's."""
    def forward(m, x, y):
        h = [layer(x) * factor for layer in m.layers]
        if torch.rand(()) < 0.5:
            first, other = h[0] * factor, h[1]
        else:
            first, other = h[0], torch.tanh(h[2])
        return loss(m, other + first, y)
    return forward


class Drop(nn.Module):
    """A layer that is left out at random, by an early return."""

    def __init__(self):
        super().__init__()
        self.inner, self.p = nn.Linear(6, 6), 0.5

    def forward(self, x: torch.Tensor, *, by: float = 1.0) -> torch.Tensor:
        """With arguments, annotations and super()."""
        if self.training and torch.rand(1) < self.p:
            return x
        if torch.rand(()) < 0.3 and super().extra_repr() == "":
            x = x * by
        return x + torch.tanh(self.inner(x))


def loss(model, h, y):
    return nn.functional.cross_entropy(model.o(h), y)


def layers(count=3):
    return {"layers": nn.ModuleList(nn.Linear(6, 6) for _ in range(count)), "o": nn.Linear(6, 4)}


def plain(m, x, y):
    for layer in m.layers:
        if torch.rand(()) < 0.5:
            x = x + layer(x)
    return loss(m, x, y)


def skipping(m, x, y):
    for layer in m.layers:
        draw = torch.rand([]).item()
        skip = m.training and draw < 0.5
        if skip or not m.training:
            continue
        x = torch.tanh(layer(x))
    return loss(m, x, y)


def returning(m, x, y):
    for drop in m.drops:
        x = drop(x)
    return loss(m, x, y)


def nested(m, x, y):
    if torch.rand(()) < 0.7 and not torch.rand(()) > 0.8:
        h, factor = m.layers[0](x), 2.0
        if torch.rand(()) < 0.5:
            h += m.layers[1](x) * torch.rand(h.shape)
        else:
            h = h - m.layers[1](x).relu()
    else:
        factor = 0.5
        h = m.layers[2](x)
    return loss(m, h * factor, y) if torch.rand(()) < 0.5 else loss(m, torch.tanh(m.layers[2](h)), y)


def shared(m, x, y):
    for _ in range(3):
        x = m.layers[0](x) if random.random() < 0.4 else x
    if np.random.rand() < 0.5 or random.random() < 0.3:
        x = x + m.layers[1](x) @ m.layers[0].weight
    return loss(m, x, y)


def chosen(m, x, y):
    x = m.layers[int(torch.randint(3, ()))](x)
    x = x + [m.layers[0], m.layers[2]][random.randint(0, 1)](x)
    x = random.choice(m.layers)(m.layers[np.random.randint(3)](x))
    return loss(m, x, y)


def noise(x):
    return x + torch.from_numpy(randn(*x.shape)).float()


def unseen(m, x, y):
    """What the first run most likely leaves out draws, too, by names of its own."""
    if torch.rand(()) < 0.02:
        x = noise(x)
    if torch.rand(()) < 0.98:
        return loss(m, x, y)
    return loss(m, noise(m.layers[0](x)), y)


def infinite(m, x, y):
    """Where the branch is not taken, its values and derivatives are no numbers."""
    draw = torch.rand(())
    if draw < 0.5:
        x = x + m.layers[0](torch.sqrt(0.5 - draw) * x)
    return loss(m, x, y)


def in_place(m, x, y):
    """On one side, or on both, of a tensor, and of one that is a view of it."""
    h = m.layers[0](x)
    half = h[:, :3]
    if torch.rand(()) < 0.5:
        h.mul_(2)
        half[0] = 1.0
    else:
        half += m.layers[1](x)[:, 3:]
    return loss(m, h, y)


torch.manual_seed(0)
x, y = batches(STEPS * MICRO_BATCHES)
data = {"x": x, "y": y}
same("plain", Net(plain, **layers(4)).train(), data, exporter="dynamo")
same("skipping", Net(skipping, **layers()).train(), data, dp=2)
same("returning", Net(returning, drops=nn.ModuleList(Drop() for _ in range(4)), o=nn.Linear(6, 4)).train(), data, zero=2, dp=2)
same("nested", Net(nested, **layers()).train(), data, True)
same("shared", Net(shared, **layers(2)).train(), data, True)
same("chosen", Net(chosen, **layers()).train(), data, True, exporter="dynamo", pp=2)
same("unseen", Net(unseen, **layers(1)).train(), data, True)
same("scaled", Net(scaled(0.5), **layers()).train(), data, True)
same("in_place", Net(in_place, **layers(2)).train(), data, True, exporter="dynamo")
same("infinite", Net(infinite, **layers(1)).train(), data, True)



def counting_calls(m, x, y):
    """With a buffer that forward changes, and an output beside the loss."""
    m.calls += 1
    h = m.layers[0](x) if torch.rand(()) < 0.5 else torch.tanh(x)
    return {"loss": loss(m, h, y) + 0.01 * m.calls, "h": h}


model = Net(counting_calls, **layers(1)).train()
model.register_buffer("calls", torch.zeros(()))
report, _ = told(lambda: dsopt.export(model, {"x": x[0], "y": y[0]}, path("calls.onnx"), exporter="torchscript", outputs=["h"]))
check(report.checked.startswith("compared"), report)

# In evaluation mode nothing is left out, and nothing decides.
report, _ = told(lambda: dsopt.export(Net(returning, drops=nn.ModuleList([Drop()]), o=nn.Linear(6, 4)).eval(), {"x": x[0], "y": y[0]}, path("eval.onnx")))
check(report.checked.startswith("compared"), report)


def appending(m, x, y):
    seen = []
    if torch.rand(()) < 0.5:
        seen.append(m.layers[0](x))
    return loss(m, x + sum(seen), y)


def breaking(m, x, y):
    for layer in m.layers:
        if torch.rand(()) < 0.5:
            break
        x = layer(x)
    return loss(m, x, y)


def counting(m, x, y):
    global SEEN
    SEEN = x
    if torch.rand(()) < 0.5:
        SEEN = m.layers[0](x)
    return loss(m, SEEN, y)


def unlike(m, x, y):
    h = x
    if torch.rand(()) < 0.5:
        h = m.layers[0](x)[:, :3]
    return loss(m, h.sum(-1, keepdim=True) + x, y)


def whiling(m, x, y):
    while torch.rand(()) < 0.5:
        x = m.layers[0](x)
    return loss(m, x, y)


for forward, *words in ((appending, "branches.py:", "changes 'seen' by append()"), (breaking, "branches.py:", "by 'break'"),
                        (counting, "branches.py:", "assigns to 'SEEN'"), (unlike, "branches.py:", "'h' is a tensor", "give it one shape"), (whiling, "branches.py:", "Python decides by what forward draws")):
    refused(lambda forward=forward: dsopt.export(Net(forward, **layers()).train(), {"x": x[0], "y": y[0]}, path("refused.onnx"), exporter="torchscript"), *words)


def normalizing(m, x, y):
    if torch.rand(()) < 0.5:
        x = m.norm(x)
    return loss(m, x, y)


refused(lambda: dsopt.export(Net(normalizing, norm=nn.BatchNorm1d(6), o=nn.Linear(6, 4)).train(), {"x": x[0], "y": y[0]}, path("refused.onnx"), exporter="torchscript"),
        "branches.py:", "a buffer in place")
print("passed")
