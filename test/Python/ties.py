"""Ties and kinks: gradients where elements are equal, zero or at a bound are PyTorch's, by both exporters.

usage: ties.py SOURCE BUILD
"""
from exports import check, path, told
from sampled import sampled
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

rows = torch.tensor([[0.0, 1, 1, -1, 0, -1], [2, 2, 2, 1, 1, 1], [0, 0, 0, 0, 0, 0], [-1, -1, 1, 1, 0.5, 0.5]])
labels = torch.zeros(4, dtype=torch.long)
#: Of h, which is the rows times a weight of ones.
bodies = {
    "clamp": lambda m, h, x: h.clamp(min=0).sum() + h.clamp(-1, 1).sum(),
    "clamp from above": lambda m, h, x: h.clamp(max=0).pow(2).sum() + h.clamp(max=1).sum(),
    "clamp of tensors": lambda m, h, x: torch.clamp(
        h, m.w * torch.tensor([0., 0, 1, -1, 1, 0]), m.w * torch.tensor([0., 1, 1, -1, -1, 0.5])).sum(),
    "relu": lambda m, h, x: F.relu(h).sum(),
    "maximum": lambda m, h, x: torch.maximum(h, torch.zeros_like(x)).sum() + torch.maximum(h, m.w.abs() * x).sum(),
    "minimum": lambda m, h, x: torch.minimum(h, -h).sum(),
    "max": lambda m, h, x: (h.max(dim=1)[0] ** 2).sum(),
    "min": lambda m, h, x: (h.min(dim=1)[0] ** 2).sum(),
    "amax": lambda m, h, x: (h.amax(1) ** 2).sum() + (h.amin(0) ** 2).sum(),
    "max of all": lambda m, h, x: h.max() ** 2 + h.min(),
    "max_pool1d": lambda m, h, x: (F.max_pool1d(h[None], 2) ** 2).sum(),
    "adaptive_max_pool1d": lambda m, h, x: (F.adaptive_max_pool1d(h[None], 3) ** 2).sum(),
    "abs": lambda m, h, x: h.abs().sum(),
    "hard functions": lambda m, h, x: F.hardtanh(h).sum() + F.hardsigmoid(h * 3).sum() + F.hardswish(h * 3).sum(),
    "leaky functions": lambda m, h, x: F.leaky_relu(h, 0.3).sum() + F.elu(h).sum() + F.relu6(h * 6).sum(),
    "topk": lambda m, h, x: (h.topk(3, dim=1)[0] ** 2 * torch.tensor([1., 2., 3.])).sum(),
    "sort": lambda m, h, x: (h.sort(dim=1)[0] * torch.arange(6.)).sum(),
    "logsumexp": lambda m, h, x: torch.logsumexp(h, 1).sum(),
    "where": lambda m, h, x: torch.where(h > 0, h, 0.1 * h).sum(),
    "thresholds": lambda m, h, x: F.softshrink(h, 1.0).sum() + F.threshold(h, 0., -1.).sum(),
    "prelu": lambda m, h, x: F.prelu(h, m.p).sum(),
    "aminmax": lambda m, h, x: (lambda a: a[0].sum() + a[1].pow(2).sum())(torch.aminmax(h, dim=1)),
    "max_pool2d": lambda m, h, x: (F.max_pool2d(h[None, None], 2) ** 2).sum(),
    "vector_norm": lambda m, h, x: torch.linalg.vector_norm(h, dim=1).sum(),
    "norms of all": lambda m, h, x: h[2:3].norm() + h.norm(),
    "normalize": lambda m, h, x: (F.normalize(h, dim=-1) * torch.arange(6.)).sum(),
    "cosine_similarity": lambda m, h, x: F.cosine_similarity(h, x.flip(0)).sum(),
    "pairwise_distance": lambda m, h, x: F.pairwise_distance(h, x).sum(),
    "cdist": lambda m, h, x: torch.cdist(h, x).sum(),
    "var": lambda m, h, x: h.var(1).sum(),
    "norm 1": lambda m, h, x: h.norm(p=1, dim=1).sum(),
    "norm infinity": lambda m, h, x: h.norm(p=float("inf"), dim=1).sum(),
    "matrix_norm": lambda m, h, x: torch.linalg.matrix_norm(h[2:3]).sum(),
    "normalizations": lambda m, h, x: F.rms_norm(h, (6,)).sum() + F.layer_norm(h, (6,)).pow(2).sum(),
}
#: The older exporter lacks these.
newer = ("thresholds", "normalizations")


class Tied(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body, self.w, self.p = body, nn.Parameter(torch.ones(6)), nn.Parameter(torch.tensor([0.25]))

    def forward(self, x, y):
        return self.body(self, self.w * x, x)


pairs = [(name, exporter) for name in bodies for exporter in (("dynamo",) if name in newer else ("dynamo", "torchscript"))]
for name, exporter in sampled(pairs, 9):
    report, lines = told(lambda: dsopt.export(Tied(bodies[name]), {"x": rows, "y": labels}, path("ties.onnx"), exporter=exporter))
    check(report.checked.startswith("compared"), (name, report))
    print("same:", name, exporter)
print("passed")
