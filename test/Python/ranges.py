"""Losses and what they are made of at zeros, subnormals and far out: values and gradients are finite wherever
PyTorch's are, and equal to its, in three precisions, by both exporters.

usage: ranges.py SOURCE BUILD
"""
import contextlib
import itertools
import math

from exports import check, path
from sampled import sampled
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

POINTS = [0.0, -0.0, 1e-40, -1e-40, 1e-10, -1e-10, 0.3, -1.7, 20, -20, 89, -89, 104, -104, 1e4, -1e4]
TARGETS = [0.0, 1.0, 0.25]
x, y = torch.tensor(list(itertools.product(POINTS, TARGETS))).T.contiguous()
labels = (y > 0.5).long()
#: Rows of four: equal ones, and others.
SHAPES = torch.tensor([[1.0, 1, 1, 1], [1, -1, 0.5, 0], [0, 0, 2, 0]])


def rows(h):
    return (h.reshape(-1, 3)[:, :1, None] * SHAPES.to(h)).flatten(0, 1)


def signs(y):
    return torch.where(y > 0.5, 1.0, -1.0).to(y)


def pairs(h):
    return torch.stack([h, -h, h * 0.5], 1)


#: Of h (points, all of them with each target) and y, one value for each: equal numbers are what is compared.
losses = {
    "binary_cross_entropy": lambda h, y: F.binary_cross_entropy(h.sigmoid(), y, reduction="none"),
    "binary_cross_entropy, weighted": lambda h, y: F.binary_cross_entropy(h.sigmoid(), y, weight=y + 0.5, reduction="none"),
    "binary_cross_entropy of probabilities": lambda h, y: F.binary_cross_entropy(
        torch.where(h.abs() > 1, (h.detach() > 0).to(h), 0.5) + (h - h.detach()), y, reduction="none"),
    "with logits": lambda h, y: F.binary_cross_entropy_with_logits(h, y, reduction="none"),
    "with logits, weighted": lambda h, y: F.binary_cross_entropy_with_logits(
        h, y, weight=torch.tensor(0.5), pos_weight=torch.tensor(3.0), reduction="none"),
    "logsigmoid": lambda h, y: F.logsigmoid(h),
    "logarithms of a sigmoid": lambda h, y: y * torch.log(torch.sigmoid(h)) + (1 - y) * torch.log(1 - torch.sigmoid(h)),
    "softplus": lambda h, y: F.softplus(h) + F.softplus(h, beta=2, threshold=5),
    "logaddexp": lambda h, y: torch.logaddexp(h, -h) + torch.logaddexp(h, y * 50),
    "logaddexp2": lambda h, y: torch.logaddexp2(h, y * 50),
    "log1p": lambda h, y: torch.log1p(h.abs() + y) + torch.log1p(-torch.sigmoid(h) * 0.5),
    "logsumexp": lambda h, y: torch.logsumexp(pairs(h), 1) + torch.logsumexp(h[:, None] + y[:, None] * 50, 1),
    "log of a sum of exp": lambda h, y: torch.log(torch.exp(pairs(h)).sum(1)),
    "log of softmax": lambda h, y: torch.log(torch.softmax(pairs(h), 1))[:, 0],
    "log_softmax": lambda h, y: F.log_softmax(pairs(h), 1)[:, 0],
    "cross_entropy": lambda h, y: F.cross_entropy(pairs(h), labels, reduction="none"),
    "cross_entropy, smoothed": lambda h, y: F.cross_entropy(pairs(h), labels, label_smoothing=0.1, reduction="none"),
    "nll_loss": lambda h, y: F.nll_loss(F.log_softmax(pairs(h), 1), labels, reduction="none"),
    "soft_margin_loss": lambda h, y: F.soft_margin_loss(h, signs(y), reduction="none"),
    "multilabel_soft_margin_loss": lambda h, y: F.multilabel_soft_margin_loss(h[:, None], y[:, None], reduction="none"),
    "mse_loss": lambda h, y: F.mse_loss(h, y, reduction="none"),
    "l1_loss": lambda h, y: F.l1_loss(h, y, reduction="none"),
    "smooth_l1_loss": lambda h, y: F.smooth_l1_loss(h, y, beta=0.5, reduction="none"),
    "huber_loss": lambda h, y: F.huber_loss(h, y, delta=0.75, reduction="none"),
    "kl_div": lambda h, y: F.kl_div(F.logsigmoid(h), y, reduction="none"),
    "kl_div of logarithms": lambda h, y: F.kl_div(F.logsigmoid(h), F.logsigmoid(20 * y), reduction="none", log_target=True),
    "poisson_nll_loss": lambda h, y: F.poisson_nll_loss(h, y * 8, reduction="none", full=True),
    "poisson_nll_loss of rates": lambda h, y: F.poisson_nll_loss(F.softplus(h), y * 8, log_input=False, reduction="none"),
    "gaussian_nll_loss": lambda h, y: F.gaussian_nll_loss(h, y, F.relu(h), reduction="none"),
    "hinge_embedding_loss": lambda h, y: F.hinge_embedding_loss(h, signs(y), reduction="none"),
    "margin_ranking_loss": lambda h, y: F.margin_ranking_loss(h, -h, signs(y), margin=0.5, reduction="none"),
    "multi_margin_loss": lambda h, y: F.multi_margin_loss(pairs(h), labels, reduction="none"),
    "mish": lambda h, y: F.mish(h),
    "silu, gelu": lambda h, y: F.silu(h) + F.gelu(h) + F.gelu(h, approximate="tanh"),
    "cosine_embedding_loss": lambda h, y: F.cosine_embedding_loss(rows(h), SHAPES.repeat(len(POINTS), 1), signs(y), reduction="none"),
    "triplet_margin_loss": lambda h, y: F.triplet_margin_loss(rows(h), rows(-h), rows(h).flip(1), reduction="none"),
    "cosine_similarity": lambda h, y: F.cosine_similarity(rows(h), SHAPES.repeat(len(POINTS), 1)),
    "pairwise_distance": lambda h, y: F.pairwise_distance(rows(h), SHAPES.repeat(len(POINTS), 1)),
    "normalize": lambda h, y: (F.normalize(rows(h)) * SHAPES[1]).sum(1),
    "std": lambda h, y: rows(h).std(1) + rows(h).std(1, correction=0),
    "var": lambda h, y: rows(h).var(1) + torch.std_mean(rows(h), 1)[1],
    "std of all": lambda h, y: (h[:6] * 0 + 3).std() + h * 0,
    "norm 1": lambda h, y: rows(h).norm(p=1, dim=1),
    "norm 2": lambda h, y: rows(h).norm(dim=1) + torch.linalg.norm(rows(h), dim=1),
    "root of squares": lambda h, y: (rows(h) ** 2).mean(1).sqrt(),
    "norm 3": lambda h, y: rows(h).norm(p=3, dim=1) + torch.linalg.vector_norm(rows(h), ord=1.5, dim=1),
    "norm of roots": lambda h, y: torch.linalg.vector_norm(rows(h), ord=0.5, dim=1),
    "norm infinity": lambda h, y: rows(h).norm(p=math.inf, dim=1),
    "clamp of tensors": lambda h, y: torch.clamp(h, y - 1, 1 - y) + torch.clamp(h, y * 0, y * 0),
}


class Terms(nn.Module):
    """The sum of all values. Its gradient by `p` is the functions', that by `v` their values."""

    def __init__(self, names):
        super().__init__()
        self.names = names
        self.p = nn.ParameterList(torch.zeros(len(x)) for _ in names)
        self.v = nn.ParameterList(torch.zeros(len(x)) for _ in names)

    def forward(self, x, y):
        return sum((losses[name](own + p, y) * (1 + v)).sum()
                   for name, own, p, v in zip(self.names, x.unbind(0), self.p, self.v))


def expected(name, x, y):
    """PyTorch's values and gradients."""
    h = x.clone().requires_grad_()
    values = losses[name](h, y)
    values.sum().backward()
    return values.detach().double().numpy(), h.grad.double().numpy()


def wanted(name, x, narrow):
    """Points, PyTorch's results there in float64, and those in float32 and the narrow type. What it has no number for
    is not compared: another point is there."""
    x = x.to(narrow).float()
    while True:
        wants = [expected(name, x, y)]
        with contextlib.suppress(NotImplementedError):
            if narrow != torch.float32:
                wants.append(expected(name, x.to(narrow), y.to(narrow)))
        finite = np.logical_and.reduce([np.isfinite(part) for want in wants for part in want])
        finite = finite.reshape(-1, 3).all(1).repeat(3)
        if finite.all():
            return x, expected(name, x.double(), y.double()), wants
        x = torch.where(torch.from_numpy(finite), x, x.new_tensor(0.5))


def off(got, exact, wants, relative, least):
    """Where a result is none of PyTorch's, nor as near to the exact one as one of these is."""
    wrong = np.abs(got - exact) > relative * np.abs(exact) + least
    for want in wants:
        wrong &= (np.abs(got - want) > relative * np.abs(want) + least) & (np.abs(got - exact) > np.abs(want - exact))
    return wrong | ~np.isfinite(got)


#: Precision, PyTorch's type, what results may be off by, what is nothing.
PRECISIONS = {"fp32": (torch.float32, 1e-6, 2e-38), "bf16": (torch.bfloat16, 2 ** -8, 2e-38), "fp16": (torch.float16, 2 ** -10, 2 ** -24)}


#: Values and gradients that are a difference: how large what is subtracted is, times 1 / h where it is so.
SIZES = {"logaddexp": (0, 1), "log of softmax": (0, 2), "log_softmax": (0, 2), "nll_loss": (2, 2), "cross_entropy": (2, 2),
         "cross_entropy, smoothed": (2, 2), "norm 3": (0, 30)}
SIZES_OF_DIRECTIONS = {"cosine_similarity": (0, 4), "normalize": (0, 4)}
#: Softplus of less than -87 is no number that float32 holds whole, whatever it is multiplied by; powers of two are
#: exponentials of another exponent.
LEAST = {"mish": 3e-37, "poisson_nll_loss of rates": 2e-30}
LESS_EXACT = {"logaddexp2": 4}


def compare(names, exporter, precisions):
    file, wrong = path("ranges.onnx"), []
    dsopt.export(Terms(names), {"x": torch.randn(len(names), len(x)), "y": y}, file, exporter=exporter)
    for precision in precisions:
        narrow, relative, least = PRECISIONS[precision]
        points, exact, wants = zip(*(wanted(name, x, narrow) for name in names))
        options = {"initial_scale_power": 0} if precision == "fp16" else {}
        dsopt.train(file, {"x": torch.stack(points)[None].numpy(), "y": y[None].numpy()}, steps=1, micro_batches=1,
                    optimizer="sgd", lr=1.0, precision=precision, save_weights=path("ranges.weights"), **options)
        after = dsopt.read_weights(path("ranges.weights"))
        for k, name in enumerate(names):
            for index, what in enumerate(("value", "gradient")):
                got = -np.asarray(after[f"{'vp'[index]}.{k}"])
                size = SIZES.get(name, (0, 0))[index] + \
                    SIZES_OF_DIRECTIONS.get(name, (0, 0))[index] / np.maximum(np.abs(points[k].numpy()), 1e-10)
                within = relative * LESS_EXACT.get(name, 1)
                bad = off(got.astype(np.float64), exact[k][index], [want[index] for want in wants[k]], within,
                          max(least, LEAST.get(name, 0)) + within * size)
                for i in np.flatnonzero(bad)[:3]:
                    wrong.append(f"{what} of {name} in {precision} by {exporter} at {points[k][i]:g}, {y[i]:g}: {got[i]:.9g}, "
                                 f"PyTorch's {wants[k][-1][index][i]:.9g}, exactly {exact[k][index][i]:.9g}")
    return wrong


#: The older exporter lacks these, and says so.
newer = ("multi_margin_loss", "hinge_embedding_loss", "margin_ranking_loss", "poisson_nll_loss", "poisson_nll_loss of rates",
         "cosine_embedding_loss", "triplet_margin_loss")


def some(count, names):
    """A few of the functions, at night all of them in models of so many."""
    names = sampled(names, count)
    return [names[i:i + 18] for i in range(0, len(names), 18)]


wrong = []
for group in some(16, losses):
    wrong += compare(group, "dynamo", PRECISIONS)
for group in some(10, [name for name in losses if name not in newer]):
    wrong += compare(group, "torchscript", ("fp32",))
check(not wrong, "\n".join(wrong))
print("passed")
