"""What no file can hold as it is written: trained all the same where there is another way to say it, else refused by its line
with what to write instead. A loss of one's own gets labels that forward does not take.

usage: remedies.py SOURCE BUILD
"""
import os

from exports import Net, batches, check, in_turn, layers, path, refused, same
import torch
import torch.ao.quantization as quantization
import torch.nn.functional as F
from torch import nn
import dsopt

x, y = batches()
LINE = os.path.basename(__file__) + ":"


def scores(m, x):
    return m.o(F.gelu(m.a(x)))


# Routers that move what they are made of, complex rotations, distributions that check their arguments, derivatives forwards.
class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.classifier = nn.Linear(8, 8)

    def forward(self, h):
        self.classifier = self.classifier.to(self.classifier.weight.dtype).to(h.device)
        return torch.softmax(self.classifier.float()(h), -1)


def turned(h, angle):
    """Rotary embeddings by complex numbers, as they come for heads."""
    pairs = torch.view_as_complex(h.reshape(4, 2, 4, 2))
    turns = torch.polar(torch.ones(2, 4), angle).unsqueeze(0)
    whole = torch.cat([(pairs * turns[:, at:at + 1])[:, at:at + 1] for at in (0, 1)], 1)
    first, second = whole.expand(1, 4, 2, 4)[0].chunk(2, 1)
    return torch.view_as_real(torch.where(torch.arange(4) > 1, first[:, 0], second[:, 0])).flatten(1).repeat(2, 1)


def everything(m, x, y):
    h = m.a(x)
    h = h * m.router(h) + turned(h, m.angle)
    _, slope = torch.func.jvp(lambda z: torch.tanh(z) ** 3, (h,), (torch.ones_like(h),))
    normal = torch.distributions.Normal(h, F.softplus(h) + 0.1, validate_args=True)
    distance = torch.distributions.kl_divergence(normal, torch.distributions.Normal(torch.zeros(8), torch.ones(8)))
    chosen = torch.distributions.Categorical(logits=m.o(slope))
    return -chosen.log_prob(y).mean() + 0.1 * distance.mean() - 0.1 * normal.log_prob(h.detach() + 0.3).mean()


checks = torch.distributions.Distribution._validate_args
same(Net(everything, router=Router(), angle=nn.Parameter(torch.randn(2, 4)), **layers()), x, y, "routers, rotations, distributions",
     exporters=("dynamo",))
check(torch.distributions.Distribution._validate_args is checks, "distributions are left without checks")

# Quantization that is trained through, once ranges are known; what exporters lack and other operations say.
quantized = quantization.FakeQuantize(quantization.MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8)
channels = quantization.FakeQuantize(quantization.MovingAveragePerChannelMinMaxObserver, quant_min=-8, quant_max=7,
                                     dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=0)
fused = quantization.FusedMovingAvgObsFakeQuantize()


def rounded(m, x, y):
    h = m.q(F.linear(x, m.c(m.a.weight), m.a.bias))
    h = h - h.median(1, keepdim=True).values + (torch.sigmoid(h) + 0.5).cumprod(1) + h.median()
    pooled = F.adaptive_max_pool2d(h.reshape(8, 1, 4, 2), (2, 1)).flatten(1)
    return F.cross_entropy(m.o(h) + m.f(pooled.repeat(1, 2)), y)


one = Net(rounded, q=quantized, c=channels, f=fused, **layers())
refused(lambda: dsopt.export(one, {"x": x[0], "y": y[0]}, path("m.onnx")), "module 'c' observes the range", "disable_observer")
one(x[0], y[0])
one.apply(quantization.disable_observer)
for exporter in in_turn():  # gradients are compared: what rounding decides of later steps is nobody's
    report = dsopt.export(one, {"x": x[0], "y": y[0]}, path("m.onnx"), exporter=exporter)
    check(report.checked.startswith("compared with PyTorch on the example and on other values"), report)


def windows(m, x, y):
    """Windows of what is not contiguous, which overlap: places in memory."""
    h = m.a(x)
    heads = h.view(8, 2, 4).transpose(0, 1)
    overlapping = heads.as_strided((2, 3, 4, 4), (4, 16, 8, 1)) * torch.arange(1, 4).view(3, 1, 1)
    backwards = torch.as_strided(h[2:].t(), (4, 3), (1, 16), h.storage_offset() + 17)
    return F.cross_entropy(m.o(h), y) + overlapping.softmax(-1).square().sum() + (backwards * torch.arange(3)).sin().sum()


same(Net(windows, **layers()), x, y, "windows by as_strided")


def gammas(m, x, y):
    """Of positive numbers, around the zeros at 1 and 2 and where the series begins."""
    h = m.o(m.a(x))
    near = 0.1 * torch.tanh(h) + torch.tensor([0.15, 1.0, 2.0, 4.0, 30.0]).repeat(3)[:h.shape[1]]
    return F.cross_entropy(h, y) + torch.lgamma(near).square().mean() + 0.01 * torch.special.gammaln(near * 8).sum()


same(Net(gammas, **layers()), x, y, "logarithms of gamma")


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.bag = nn.Embedding(16, 8, sparse=True), nn.EmbeddingBag(16, 8, mode="sum", sparse=True)

    def forward(self, ids, y):
        return F.mse_loss(self.rows(ids)[:, 0] + self.bag(ids), y)


ids, wanted = torch.randint(0, 16, (4, 3)), torch.randn(4, 8)
one = Rows()
report = dsopt.export(one, {"ids": ids, "y": wanted}, path("rows.onnx"), optimizer=torch.optim.SGD(one.parameters(), lr=0.5))
check(report.checked.startswith("compared"), report)
losses = dsopt.train(path("rows.onnx"), {"ids": ids[None], "y": wanted[None]}, steps=3).losses
steps, want = torch.optim.SGD(one.parameters(), lr=0.5), []
for _ in range(3):
    steps.zero_grad()
    loss = one(ids, wanted)
    loss.backward()
    steps.step()
    want.append(float(loss.detach()))
check(all(abs(a - b) < 1e-5 for a, b in zip(losses, want)), f"sparse rows: {losses}, PyTorch's {want}")
print("trained otherwise", flush=True)

# Refused, with what to write. An error that the caller handles meanwhile is no part of it.
def packed(m, x, y):
    rows = nn.utils.rnn.pack_padded_sequence(x[..., None], torch.tensor([6, 5, 5, 4, 3, 2, 2, 1]), batch_first=True)
    return F.cross_entropy(m.o(m.r(rows)[1][0]), y)


def moved(m, x, y):
    m.o = m.o.to(torch.float64)
    return F.cross_entropy(m.o(F.gelu(m.a(x)).double()), y)


def experts(m, x, y):
    """Each expert over the rows that chose it, which it compares."""
    h, total = m.a(x), 0
    chosen = F.one_hot(m.o(h).argmax(-1), 4)
    for e in chosen.sum(0).nonzero():
        (rows,) = torch.where(chosen[:, e[0]])
        total = total + F.cross_entropy(m.o(h[rows] * 2).softmax(0), y[rows])
    return total


gram = lambda m, x: m.a.weight @ m.a.weight.T + 10 * torch.eye(8)  # noqa: E731
CASES = {
    "packed": (packed, {"r": nn.GRU(1, 8, batch_first=True)}, ["packs sequences", "padded batch"]),
    "experts": (experts, {}, ["nonzero gives as many elements as the data decide", "weights that are zero"]),
    "memory before": (lambda m, x, y: m.o(m.a(x)[1:].as_strided((2, 8), (8, 1), 0)).sum(), {}, ["no element of the tensor", "x.contiguous()"]),
    "rows between": (lambda m, x, y: m.a(x)[::2].as_strided((2, 8), (8, 1)).sum(), {}, ["no element of the tensor"]),
    "written windows": (lambda m, x, y: m.a(x).as_strided((2, 8), (8, 1)).add_(1).sum(), {}, ["as_strided()", "clone it first"]),
    "proj_size": (lambda m, x, y: F.cross_entropy(m.o(m.r(x[..., None])[0].flatten(1)[:, :8]), y),
                  {"r": nn.LSTM(1, 4, proj_size=2, batch_first=True)}, ["LSTM with proj_size", "nn.Linear", "module 'r'"]),
    "moved": (moved, {}, ["of a Linear torch.float64", "do that before it is exported"]),
    "grad": (lambda m, x, y: torch.func.grad(lambda z: scores(m, z).sum())(x).sum(), {}, ["torch.func.grad", "torch.func.jvp works"]),
    "jacrev": (lambda m, x, y: torch.func.jacrev(lambda z: scores(m, z))(x[0]).sum(), {}, ["jacrev", "torch.func.jvp works"]),
    "hessian": (lambda m, x, y: torch.func.hessian(lambda z: scores(m, z).sum())(x[0]).sum(), {}, ["hessian", "jvp works"]),
    "adaptive pooling": (lambda m, x, y: F.adaptive_max_pool2d(scores(m, x)[:, None], (3, 3)).sum(), {}, ["max_pool2d with a kernel"]),
    "cholesky": (lambda m, x, y: torch.linalg.cholesky(gram(m, x)).sum(), {}, ["lower triangle L"]),
}
for name, (forward, parts, words) in CASES.items():
    try:
        raise KeyError("of the caller")
    except KeyError:
        said = refused(lambda: dsopt.export(Net(forward, **layers(), **parts), {"x": x[0], "y": y[0]}, path("m.onnx")),
                       "exports.py:" if name == "cholesky" else LINE, *words)
    check("of the caller" not in said, f"{name}: {said}")
print("refused", flush=True)

# A loss of one's own.
loss = lambda outputs, inputs: F.cross_entropy(outputs, inputs["labels"])  # noqa: E731


class Scaled(nn.Module):
    """Takes an input by place alone, and one that has a default."""

    def __init__(self):
        super().__init__()
        self.part = nn.Linear(6, 4)

    def forward(self, image, /, scale=1.0):
        return self.part(image) * scale


plain = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 4))
reports = [dsopt.export(model, example, path("loss.onnx"), loss=loss, check=check_) for model, example, check_ in (
    (Scaled(), {"image": x[0], "scale": torch.tensor(2.0), "labels": y[0]}, True), (plain, {"x": x[0], "labels": y[0]}, False),
    (plain, (x[0], y[0]), False))]
check([one.inputs for one in reports] == [["image", "scale", "labels"], ["x", "labels"], ["input", "labels"]], reports)
result = dsopt.train(path("loss.onnx"), [(a, b) for a, b in zip(x, y)], lr=1e-2)
check(abs(result.losses[0] - float(F.cross_entropy(plain(x[0]), y[0]).detach())) < 1e-5, result)
with dsopt.initialize(plain, (x[0], y[0]), loss=loss, lr=1e-2) as engine:
    for a, b in zip(x, y):
        engine.backward(engine(a, b))
        engine.step()
check(engine.finish().losses == result.losses, "an engine with a loss of its own")
refused(lambda: dsopt.export(Scaled(), {"image": x[0], "labels": y[0]}, path("m.onnx")),
        "forward takes image, scale, the example has image, labels", "loss=lambda outputs, inputs")
refused(lambda: dsopt.export(Scaled(), {"scale": torch.tensor(1.0)}, path("m.onnx"), loss=loss), "forward takes image, scale")
refused(lambda: dsopt.export(plain, (x[0], y[0], y[0]), path("m.onnx"), loss=loss), "3 example inputs, but forward takes input")
print("passed")
