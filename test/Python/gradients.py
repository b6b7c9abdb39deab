"""Where gradients end: what PyTorch does of itself and no exporter writes.

usage: gradients.py SOURCE BUILD
"""
import os

from exports import Net, batches, check, in_turn, layers, path, refused, same
from sampled import sampled
import torch
import torch.nn.functional as F
from torch import nn
import dsopt
from torch.utils.checkpoint import checkpoint

x, y = batches()


def detach(m, x, y):
    return F.cross_entropy(m.o(F.relu(m.a(x)).detach()), y) + 0.1 * m.a(x).square().mean()


def straight_through(m, x, y):
    h = m.a(x)
    return F.cross_entropy(m.o(h + (torch.sign(h) - h).detach()), y)


def without(m, x, y):
    h = m.a(x)
    with torch.no_grad():
        target = torch.tanh(h).roll(1, 0)
    return F.cross_entropy(m.o(h), y) + F.mse_loss(h, target)


def by_data(m, x, y):
    h = m.a(x)
    return F.cross_entropy(m.o(h * h.data.abs()), y)


def in_place(m, x, y):
    h = m.a(x) * 1
    with torch.no_grad():
        h.clamp_(-0.5, 0.5)  # another value, the same gradient
        h[:, 0] = 0.25
    return F.cross_entropy(m.o(h), y)


def detached_weight(m, x, y):
    h = F.linear(m.a(x), m.a.weight.detach().t())
    return F.cross_entropy(m.o(F.linear(h, m.a.weight)), y)


def quantized(m, x, y):
    z = m.a(x)
    nearest = torch.cdist(z, m.e.weight).argmin(1)
    q = m.e(nearest)
    loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
    return F.cross_entropy(m.o(z + (q - z).detach()), y) + loss


def recomputed(reentrant):
    return lambda m, x, y: F.cross_entropy(m.o(checkpoint(lambda h: torch.tanh(m.b(h)), m.a(x), use_reentrant=reentrant)), y)


def set_off(m, x, y):
    with torch.set_grad_enabled(False):
        h = m.a(x)
        with torch.enable_grad():
            k = m.b(h)
    return F.cross_entropy(m.o(k), y)


wide = {**layers(), "b": nn.Linear(8, 8)}
for body, parts, name, options in sampled((
        (straight_through, layers(), "straight-through", {"layouts": ({}, {"pp": 2, "micro_batches": 1})}),
        (detach, layers(), "detach", {}),
        (without, layers(), "no_grad", {}),
        (by_data, layers(), ".data", {}),
        (in_place, layers(), "in place", {}),
        (detached_weight, layers(), "a weight that is stopped in one of its uses", {}),
        (quantized, {"e": nn.Embedding(16, 8), **layers()}, "vector quantization", {}),
        (recomputed(True), wide, "reentrant checkpoint", {}),
        (recomputed(False), wide, "checkpoint", {}),
        (set_off, wide, "gradients off and on", {"exporters": ("dynamo",)})), 4):
    same(Net(body, **parts), x, y, name, **options)

# Rows of padding: the file says which; look-ups of something computed say it themselves.
tokens = torch.randint(0, 4, (4, 8))
padded = Net(lambda m, x, y: F.cross_entropy(m.o(m.e(y)), y) + 0 * x.sum(), e=nn.Embedding(4, 8, padding_idx=2), o=nn.Linear(8, 4))
report, _ = same(padded, x, tokens, "padding_idx")
check(report.options["padding-index"] == ["e.weight=2"], report.options)
computed = Net(lambda m, x, y: F.cross_entropy(m.o(F.embedding(y, m.e.weight * 2, padding_idx=2)), y) + 0 * x.sum(),
               e=nn.Embedding(4, 8), o=nn.Linear(8, 4))
report, _ = same(computed, x, tokens, "padding_idx of something computed")
check("padding-index" not in report.options, report.options)
both = Net(lambda m, x, y: F.cross_entropy(m.o(m.e(y) + F.embedding(y, m.e.weight)), y) + 0 * x.sum(),
           e=nn.Embedding(4, 8, padding_idx=2), o=nn.Linear(8, 4))


def export(model, exporter=None, **options):
    return lambda: dsopt.export(model, {"x": x[0], "y": y[0]}, path("refused.onnx"), exporter=exporter, **options)


refused(export(both), "embedding 'e.weight' is looked up with no padding_idx and with padding_idx 2, expected one for all")


# What no file can say is refused, by line and module.
def hooked(m, x, y):
    h = m.a(x)
    h.register_hook(lambda g: 2 * g)
    return F.cross_entropy(m.o(h), y)


def clamped_weight(m, x, y):
    with torch.no_grad():
        m.a.weight.clamp_(-0.1, 0.1)
    return F.cross_entropy(m.o(m.a(x)), y)


def scaled_weight(m, x, y):
    m.a.weight.data.mul_(0.5)
    return F.cross_entropy(m.o(m.a(x)), y)


def shared_memory(m, x, y):
    h = m.a(x) * 1
    low = h.detach()
    low[low < 0] = 0
    return F.cross_entropy(m.o(h), y)


def forces(m, x, y):
    energy = m.a(x.requires_grad_()).sum()
    return torch.autograd.grad(energy, x, create_graph=True)[0].square().sum()


normed = nn.Embedding(4, 8, max_norm=1.0)
for exporter in in_turn():
    refused(export(Net(hooked, **layers()), exporter), "gradients.py:", "registers a hook on a gradient",
            "write it as the backward of a torch.autograd.Function")
    refused(export(Net(clamped_weight, **layers()), exporter), "changes parameter 'a.weight' in forward", "make it a buffer")
    refused(export(Net(scaled_weight, **layers()), exporter), "changes parameter 'a.weight' in forward")
    refused(export(Net(shared_memory, **layers()), exporter), "changes in place what shares its memory", "clone it first")
    refused(export(Net(forces, **layers()), exporter), "calls torch.autograd.grad in forward")
    refused(export(Net(lambda m, x, y: F.cross_entropy(m.o(m.e(y)), y), e=normed, o=nn.Linear(8, 4)), exporter),
            "module 'e'", "max_norm", "clamp(max=1)")
    scaled = nn.Embedding(4, 8, scale_grad_by_freq=True)
    refused(export(Net(lambda m, x, y: F.cross_entropy(m.o(m.e(y)), y), e=scaled, o=nn.Linear(8, 4)), exporter),
            "module 'e'", "scale_grad_by_freq")
held = Net(straight_through, **layers())
held.a.weight.register_hook(lambda g: g)
refused(export(held), "parameter 'a.weight' has a hook on its gradient", "remove it")
held = Net(straight_through, **layers())
held.a.register_full_backward_hook(lambda *all: None)
refused(export(held), "module 'a' has a hook on its gradients", "remove it")
check(not os.path.exists(path("refused.onnx")), "a refused model left a file")
print("passed")
