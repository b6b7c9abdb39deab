"""Buffers that forward changes: folded as PyTorch changes them, or refused by name.

usage: buffers.py SOURCE BUILD
"""
from exports import Net, batches, check, in_turn, layers, path, refused, same, told
from sampled import sampled
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

x, y = batches()


def with_buffers(body, **buffers):
    model = Net(body, **layers())
    for name, value in buffers.items():
        model.register_buffer(name, value)
    return model


def normalizer(m, x, y):
    with torch.no_grad():
        m.b.mul_(0.9).add_(0.1 * x.mean(0))
    return F.cross_entropy(m.o(F.relu(m.a(x - m.b))), y)


def assigned(m, x, y):
    before = m.b
    m.b = 0.9 * m.b + 0.1 * x.mean(0)
    return F.cross_entropy(m.o(F.relu(m.a(x - before))), y)


def of_activations(m, x, y):
    h = m.a(x)
    m.b.data = 0.5 * m.b + 0.5 * h.mean(0)
    return F.cross_entropy(m.o(h - m.b), y)


def unread(m, x, y):
    with torch.no_grad():
        m.b.lerp_(x.mean(0), 0.25)
        m.c.mul_(0.5).add_(0.5 * m.a(x).mean(0).abs())
    return F.cross_entropy(m.o(m.a(x)), y)


def counted(m, x, y):
    m.k += 1
    return F.cross_entropy(m.o(m.a(x)), y) * (m.k / 3).clamp(max=1)


def queue(m, x, y):
    h = F.normalize(m.a(x), dim=1)
    loss = F.cross_entropy(h @ m.q.clone().t() / 0.2, y) + F.cross_entropy(m.o(h), y)
    with torch.no_grad():
        m.q.copy_(torch.cat([h[:4], m.q])[:16])
    return loss


def spectral(old):
    parts = layers()
    (nn.utils.spectral_norm if old else nn.utils.parametrizations.spectral_norm)(parts["a"])
    return Net(lambda m, x, y: F.cross_entropy(m.o(m.a(x)), y), **parts)


read = with_buffers(normalizer, b=torch.zeros(6))
same(read, x, y, "a normalizer")
for model, name, exporters in sampled((
        (with_buffers(counted, k=torch.zeros((), dtype=torch.long)), "a counter that the loss reads", ("torchscript", "dynamo")),
        (with_buffers(assigned, b=torch.zeros(6)), "a buffer that is assigned, and read before", ("dynamo", "torchscript")),
        (with_buffers(of_activations, b=torch.zeros(8)), "a buffer of activations", ("dynamo",)),
        (with_buffers(queue, q=F.normalize(torch.randn(16, 8), dim=1)), "a queue", ("dynamo",)),
        (spectral(False), "spectral norm", ("dynamo",)),
        (spectral(True), "spectral norm, the older one", ("dynamo",))), 3):
    same(model, x, y, name, exporters=exporters)

# What forward reads and changes goes from micro-batch to micro-batch: a step has one.
dsopt.export(read, {"x": x[0], "y": y[0]}, path("read.onnx"))
for layout in ({"micro_batches": 2}, {"dp": 2}):
    refused(lambda: dsopt.train(path("read.onnx"), {"x": x, "y": y}, **layout),
            "forward reads buffer @b and changes it", "expected one micro-batch a step, got 2")
check(dsopt.train(path("read.onnx"), {"x": x, "y": y}, pp=2, micro_batches=1).status == "ok", "two stages")

# What nothing reads is folded over all micro-batches, in their order, on all ranks.
model = with_buffers(unread, b=torch.zeros(6), c=torch.ones(8))
same(model, x, y, "buffers that nothing reads", exporters=("dynamo",))
hashes = {dsopt.train(path("model.onnx"), {"x": x, "y": y}, reduction_shards=2, accumulate="local", **layout).weights_hash
          for layout in ({"micro_batches": 2}, {"dp": 2, "micro_batches": 1})}
check(len(hashes) == 1, hashes)

# A counter that nothing reads keeps its value, and one line says so; forward is as before the export.
model = with_buffers(lambda m, x, y: (m.k.add_(1), F.cross_entropy(m.o(m.a(x)), y))[1], k=torch.zeros(1, dtype=torch.long))
report, lines = told(lambda: dsopt.export(model, {"x": x[0], "y": y[0]}, path("counter.onnx")))
check(len(lines) == 1 and "forward changes k, which the loss does not read" in lines[0] and int(model.k) == 0, lines)
big = with_buffers(counted, k=torch.full((), 1 << 24))
refused(lambda: dsopt.export(big, {"x": x[0], "y": y[0]}, path("refused.onnx")), "counts in integers beyond 2^24")


# What Python keeps is no part of a file.
class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.o, self.calls = nn.Linear(6, 4), 1

    def forward(self, x, y):
        self.calls += 1
        return F.cross_entropy(self.o(x), y) * self.calls


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.o, self.state = nn.RNNCell(6, 6), nn.Linear(6, 4), None

    def forward(self, x, y):
        self.state = self.cell(x, None if self.state is None else self.state.detach())
        return F.cross_entropy(self.o(self.state), y)


class Keeping(nn.Module):
    """Keeps what nothing reads."""

    def __init__(self):
        super().__init__()
        self.o, self.seen = nn.Linear(6, 4), 0

    def forward(self, x, y):
        self.seen += len(x)
        self.last = self.o(x)
        return F.cross_entropy(self.last, y)


for exporter in in_turn():
    for kind, name in ((Counting, "calls"), (Remembering, "state")):
        refused(lambda: dsopt.export(kind(), {"x": x[0], "y": y[0]}, path("refused.onnx"), exporter=exporter),
                f"forward changes attribute '{name}' and depends on it", "make it a buffer")
kept = Keeping()
same(kept, x, y, "an attribute that nothing reads")
check(kept.seen == 0, "the export left a trace")
print("passed")
