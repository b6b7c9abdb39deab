"""What a model draws in forward is drawn anew in each micro-batch, as PyTorch draws it: by the mean and the spread of many losses.

usage: noise.py SOURCE BUILD
"""
from exports import Net, check, layers, path, refused, told
from sampled import sampled
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

noises = {
    "randn_like": lambda m, x: x + torch.randn_like(x),
    "normal": lambda m, x: x + torch.normal(0.5, 2.0, x.shape),
    "normal_": lambda m, x: x + torch.empty_like(x).normal_(0.5, 2.0),
    "rand": lambda m, x: x * (torch.rand(8, 6) > 0.3),
    "uniform_": lambda m, x: x * torch.empty_like(x).uniform_(-1, 3),
    "bernoulli": lambda m, x: x * torch.bernoulli(torch.full_like(x, 0.6)),
    "randint": lambda m, x: x + m.e(torch.randint(0, 4, (8,))),
    "multinomial": lambda m, x: x + m.e(torch.multinomial(torch.full((8, 4), 0.25), 1)[:, 0]),
    "randperm": lambda m, x: x[torch.randperm(8)],
    "gumbel_softmax": lambda m, x: F.gumbel_softmax(x, tau=0.5, hard=True),
    "stochastic depth": lambda m, x: x + x * (torch.rand(8, 1) < 0.5) * 2,
}
rows, labels = torch.randn(8, 6) * 2, torch.randint(0, 4, (8,))
many = {"x": rows.expand(300, -1, -1), "y": labels.expand(300, -1)}
for name, noise in sampled(noises.items(), 4):
    parts = {"e": nn.Embedding(4, 6)} if name in ("randint", "multinomial") else {}
    model = Net(lambda m, x, y: F.cross_entropy(m.o(F.relu(m.a(noise(m, x)))), y), **parts, **layers())
    report, lines = told(lambda: dsopt.export(model, {"x": rows, "y": labels}, path("noise.onnx")))
    check(report.checked.startswith("compared") and not lines, (name, report, lines))
    losses = dsopt.train(path("noise.onnx"), many, lr=0.0).losses
    with torch.no_grad():
        want = [float(model(rows, labels)) for _ in range(300)]
    spread = np.std(want) / np.sqrt(300)
    check(len(set(losses)) > 100 and abs(np.mean(losses) - np.mean(want)) < 6 * spread and
          0.7 < np.std(losses) / np.std(want) < 1.4, f"{name}: {np.mean(losses)} +- {np.std(losses)}, PyTorch {np.mean(want)} +- {np.std(want)}")
    print("drawn:", name)
model = Net(lambda m, x, y: F.cross_entropy(m.o(F.rrelu(m.a(x), training=True)), y), **layers())
refused(lambda: dsopt.export(model, {"x": rows, "y": labels}, path("refused.onnx")), "draws the slopes of rrelu", "use leaky_relu")
print("passed")
