"""Losses as PyTorch computes them, each beside its own steps.

usage: losses.py SOURCE BUILD
"""
import os

from exports import Net, batches, check, folder, layers, path, same, told
from sampled import sampled
import torch
import torch.nn.functional as F
import dsopt

x, y = batches()
weights = torch.tensor([0.2, 1.0, 2.0, 5.0])


def scores(m, x):
    return m.o(F.gelu(m.a(x)))


def soft(y):
    return F.one_hot(y, 4).float() * 0.7 + 0.075


def signs(y):
    return (y > 1).long() * 2 - 1


BOTH, ONE = ("dynamo", "torchscript"), ("dynamo",)
losses = {
    "smoothing": (BOTH, lambda m, x, y: F.cross_entropy(scores(m, x), y, label_smoothing=0.2)),
    "smoothing, weights, ignored, sum": (BOTH, lambda m, x, y: F.cross_entropy(
        scores(m, x), torch.where(y == 3, -100, y), weights, label_smoothing=0.2, reduction="sum") / 8),
    "smoothing, weights, ignored": (BOTH, lambda m, x, y: F.cross_entropy(
        scores(m, x), torch.where(y == 3, -100, y), weights, label_smoothing=0.2)),
    "smoothing of pixels": (BOTH, lambda m, x, y: F.cross_entropy(
        scores(m, x)[:, :, None].expand(-1, -1, 3) * torch.arange(1, 4), y[:, None].expand(-1, 3), weights,
        label_smoothing=0.1, reduction="none").mean()),
    "smoothing of one row": (BOTH, lambda m, x, y: F.cross_entropy(scores(m, x)[0], y[0], label_smoothing=0.1)),
    "soft targets": (BOTH, lambda m, x, y: F.cross_entropy(scores(m, x), soft(y))),
    "soft targets, weights, smoothing": (BOTH, lambda m, x, y: F.cross_entropy(
        scores(m, x), soft(y), weights, label_smoothing=0.1)),
    "soft targets that learn": (BOTH, lambda m, x, y: F.cross_entropy(scores(m, x), F.softmax(m.a(x)[:, :4], 1)) + 0 * y.sum()),
    "class weights": (BOTH, lambda m, x, y: F.cross_entropy(scores(m, x), y, weights)),
    "nll with weights": (BOTH, lambda m, x, y: F.nll_loss(F.log_softmax(scores(m, x), 1), y, weights)),
    "binary with pos_weight": (BOTH, lambda m, x, y: F.binary_cross_entropy_with_logits(
        scores(m, x), F.one_hot(y, 4).float(), pos_weight=weights)),
    "binary": (ONE, lambda m, x, y: F.binary_cross_entropy(torch.sigmoid(scores(m, x)), soft(y))),
    "huber": (ONE, lambda m, x, y: F.huber_loss(scores(m, x), soft(y), delta=0.3)),
    "smooth l1": (ONE, lambda m, x, y: F.smooth_l1_loss(scores(m, x), soft(y), beta=0.5)),
    "kl": (BOTH, lambda m, x, y: F.kl_div(F.log_softmax(scores(m, x), 1), soft(y), reduction="batchmean")),
    "cosine": (ONE, lambda m, x, y: F.cosine_embedding_loss(m.a(x), m.a(x.flip(0)), signs(y), margin=0.1) + scores(m, x).mean()),
    "triplet": (ONE, lambda m, x, y: F.triplet_margin_loss(m.a(x), m.a(x.flip(0)), m.a(x.roll(1, 0))) + scores(m, x).mean() + 0 * y.sum()),
    "margins": (ONE, lambda m, x, y: F.margin_ranking_loss(scores(m, x)[:, 0], scores(m, x)[:, 1], signs(y), margin=0.2)
                + F.hinge_embedding_loss(scores(m, x)[:, 2], signs(y)) + F.soft_margin_loss(scores(m, x)[:, 3], signs(y).float())),
    "gaussian": (BOTH, lambda m, x, y: F.gaussian_nll_loss(
        scores(m, x)[:, 0], y.float(), F.relu(scores(m, x)[:, 1]), eps=1e-2, full=True)),
    "student's t": (BOTH, lambda m, x, y: -torch.distributions.StudentT(
        2 * F.softplus(scores(m, x)[:, 0]) + 0.1, m.a(x)[:, 1], F.softplus(scores(m, x)[:, 2])).log_prob(y.float()).mean()),
    "poisson": (ONE, lambda m, x, y: F.poisson_nll_loss(scores(m, x)[:, 0], y.float())),
}
for name, (exporters, body) in sampled(losses.items(), 5):
    same(Net(body, **layers()), x, y, name, exporters=exporters)


def frames_of(m, x):
    """Logarithms of shares, by frame, sequence and class: each row of x is a frame, a shift of it the next."""
    return torch.stack([m.o(F.relu(m.a(x.roll(shift, 1)))) for shift in range(6)]).log_softmax(-1)


def of_padded(m, x, y):
    """CTC of one or two labels a sequence, where -1 is none, as models of speech have it."""
    rows = torch.stack([y, torch.where(y > 1, y - 1, torch.full_like(y, -1))], 1)
    given = rows >= 1
    return F.ctc_loss(frames_of(m, x), rows.masked_select(given), torch.full((8,), 6), given.sum(-1), zero_infinity=True)


same(Net(of_padded, **layers()), x, y, "ctc of what a mask selects")
same(Net(lambda m, x, y: F.ctc_loss(frames_of(m, x), y[:, None].clamp(min=1), torch.full((8,), 6), torch.ones(8, dtype=torch.long),
                                    reduction="sum"), **layers()), x, y, "ctc")

# Where there is no dsopt there is no comparison, and a line says so.
os.environ.update(DSOPT_BUILD=path("nowhere"), PATH=folder)
report, lines = told(lambda: dsopt.export(Net(next(iter(losses.values()))[1], **layers()), {"x": x[0], "y": y[0]},
                                          path("model.onnx")))
check(report.checked.startswith("not compared with PyTorch: dsopt is not found") and lines == [report.checked], (report, lines))
print("passed")
