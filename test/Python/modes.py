"""The mode a model is in is the mode it trains in: batch normalization, dropout, evaluation.

usage: modes.py SOURCE BUILD
"""
import copy
import warnings

from exports import Net, batches, check, in_turn, layers, path, pytorch, refused, same, told
from sampled import NIGHTLY, sampled
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

x, y = torch.randn(4, 8, 3, 5, 5), torch.randint(0, 4, (4, 8))


class Images(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d, **options):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, bias=False)
        self.norm = norm(8, **options)
        self.second = nn.Conv2d(8, 8, 3, bias=False)
        self.last = nn.BatchNorm2d(8)
        self.o = nn.Linear(8, 4)

    def forward(self, x, y):
        h = torch.relu(self.norm(self.first(x)))
        return F.cross_entropy(self.o(self.last(self.second(h)).mean((2, 3))), y)


def silent(report_and_lines):
    check(not report_and_lines[1], report_and_lines[1])


def quiet_run(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return dsopt.train(path(name), {"x": x, "y": y})


partly = Images()
partly.norm.eval()
for model, name in sampled((
        (Images(), "batch normalization in training"),
        (Images().eval(), "batch normalization in evaluation"),
        (partly, "one of two in evaluation"),
        (Images(momentum=0.3, eps=1e-3, affine=False), "other momentum, no scale"),
        (Images(track_running_stats=False), "no running statistics"),
        (Images(lambda n: nn.GroupNorm(2, n)), "groups"),
        (Images(lambda n: nn.InstanceNorm2d(n, affine=True)), "instances")), 3):
    silent(same(model, x, y, name))
dsopt.export(Images(), {"x": x[0], "y": y[0]}, path("train.onnx"))
dsopt.export(Images().eval(), {"x": x[0], "y": y[0]}, path("eval.onnx"))
quiet_run("train.onnx")
quiet_run("eval.onnx")
frozen = dsopt.train(path("train.onnx"), {"x": x, "y": y}, batchnorm="frozen").losses
check(frozen != quiet_run("train.onnx").losses, "an option that is given wins")


def refuses(model, *words):
    refused(lambda: dsopt.export(model, {"x": x[0], "y": y[0]}, path("refused.onnx")), *words)


refuses(Images(momentum=None), "module 'norm' averages its statistics over all batches (momentum=None)", "give it a momentum")
refuses(Images(lambda n: nn.InstanceNorm2d(n, track_running_stats=True)), "module 'norm'", "track_running_stats=False")
recurrent = Net(lambda m, x, y: F.cross_entropy(m.o(m.r(x.flatten(2).transpose(1, 2))[0][:, -1]), y),
                r=nn.LSTM(3, 8, 2, dropout=0.5, batch_first=True), o=nn.Linear(8, 4))
refuses(recurrent, "module 'r' drops out between the layers of a recurrent network", "nn.Dropout")
if NIGHTLY:
    same(recurrent.eval(), x, y, "a recurrent network in evaluation", exporters=("dynamo",))


# What a region of autocast computes in a narrow type is computed so.
class Cast(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.a, self.n, self.q, self.o, self.dtype = nn.Linear(6, 16), nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 4), dtype

    def forward(self, x, y):
        with torch.autocast("cpu", dtype=self.dtype):
            h = self.n(F.gelu(self.a(x)))
            q, k, v = (part.unsqueeze(0) for part in self.q(h).chunk(3, -1))
            scores = self.o((h + F.scaled_dot_product_attention(q, k, v)[0]).softmax(-1))
        return F.cross_entropy(scores.float(), y)


for dtype in (torch.bfloat16, torch.float16):
    for exporter in in_turn():
        model, rows = Cast(dtype), batches()
        want, _ = pytorch(model, *rows)
        report, lines = told(lambda: dsopt.export(model, {"x": rows[0][0], "y": rows[1][0]}, path("cast.onnx"), exporter=exporter))
        losses = dsopt.train(path("cast.onnx"), {"x": rows[0], "y": rows[1]}, lr=1e-2).losses
        check(report.checked.startswith("compared") and not lines and np.allclose(losses, want, rtol=2e-3), (dtype, exporter, losses, want))
print("same: autocast")

# Models of a narrow type are trained by float32 masters, and come home in their type.
for dtype in sampled((torch.bfloat16, torch.float16), 1):
    narrow = Net(lambda m, x, y: F.cross_entropy(m.o(F.relu(m.a(x.to(dtype)))).float(), y), **layers()).to(dtype)
    rows = batches()
    report, lines = told(lambda: dsopt.export(narrow, {"x": rows[0][0], "y": rows[1][0]}, path("narrow.onnx")))
    result = dsopt.train(path("narrow.onnx"), {"x": rows[0], "y": rows[1]}, lr=1e-2, save_weights=path("narrow"))
    wide = Net(lambda m, x, y: F.cross_entropy(m.o(F.relu(m.a(x))), y), **layers()).float()
    wide.load_state_dict({name: value.float() for name, value in narrow.state_dict().items()})
    want, _ = pytorch(wide, *rows)
    home = copy.deepcopy(narrow)
    dsopt.load_weights(home, result.weights)
    check(report.checked.startswith("compared") and np.allclose(result.losses, want, rtol=1e-2), (dtype, result.losses, want))
    check(home.a.weight.dtype == dtype and not torch.equal(home.a.weight, narrow.a.weight), dtype)
print("same: narrow models")

# Dropout of every kind drops in training: the losses are others, and their mean over many steps is the same.
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)

    def forward(self, h):
        return self.m(h, h, h, need_weights=False)[0]


def dropping(part):
    return Net(lambda m, x, y: F.cross_entropy(m.o(m.d(m.a(x)).mean(1)), y), a=nn.Linear(6, 8), d=part, o=nn.Linear(8, 4))


rows, labels = torch.randn(1, 8, 3, 6), torch.randint(0, 4, (1, 8))
many = {"x": rows.expand(200, -1, -1, -1), "y": labels.expand(200, -1)}
for part in sampled((nn.Dropout(0.5), nn.Dropout(0.5, inplace=True), nn.Dropout1d(0.5), nn.AlphaDropout(0.5), nn.FeatureAlphaDropout(0.5), Attention()), 2):
    model = dropping(part)
    name = type(part).__name__
    for exporter in in_turn():
        report, lines = told(lambda: dsopt.export(model, {"x": rows[0], "y": labels[0]}, path("drop.onnx"), exporter=exporter))
        check(report.checked.startswith("compared") and not lines, (report, lines))
        losses = dsopt.train(path("drop.onnx"), many, lr=0.0).losses
        with torch.no_grad():
            want = [float(model(rows[0], labels[0])) for _ in range(200)]
        spread = np.std(want) / np.sqrt(200)
        check(len(set(losses)) > 100 and abs(np.mean(losses) - np.mean(want)) < 6 * spread and
              0.7 < np.std(losses) / np.std(want) < 1.4, f"{name}: {np.mean(losses)} +- {np.std(losses)}, PyTorch {np.mean(want)} +- {np.std(want)}")
    model.eval()
    report = dsopt.export(model, {"x": rows[0], "y": labels[0]}, path("drop.onnx"))
    check(len(set(dsopt.train(path("drop.onnx"), many, lr=0.0, steps=4).losses)) == 1, f"{name} drops in evaluation")
    print("dropping:", name)
print("passed")
