"""What the tests of dsopt.export share: a model of parts, and comparisons with PyTorch.

A script that got SOURCE BUILD imports it before dsopt, which is found then.
"""
import copy
import itertools
import os
import re
import sys
import tempfile
import warnings

source, build = map(os.path.abspath, sys.argv[1:3])
os.environ["DSOPT_BUILD"] = build
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path[:0] = [os.path.join(source, "python"), os.path.join(source, "test")]

import torch
from torch import nn

import dsopt
from sampled import NIGHTLY

torch.manual_seed(0)
torch.set_num_threads(1)
folder = tempfile.mkdtemp()


def path(name):
    return os.path.join(folder, name)


def check(truth, what):
    if not truth:
        sys.exit(f"wrong: {what}")


class Net(nn.Module):
    """A model whose forward is a function of it and of its inputs x, y."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.body = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x, y):
        return self.body(self, x, y)


def layers(inputs=6, hidden=8, classes=4):
    return {"a": nn.Linear(inputs, hidden), "o": nn.Linear(hidden, classes)}


def batches(count=4, rows=8, inputs=6, classes=4):
    return torch.randn(count, rows, inputs), torch.randint(0, classes, (count, rows))


def refused(export, *words, kind=Exception):
    """An error that says all of these."""
    try:
        export()
    except kind as error:
        text = str(error)
        check(all(word in text for word in words), f"'{text}' lacks one of {words}")
        check("whole text is in" in text or not re.search(r"(^|[\s'\"(])/\w", text), f"'{text}' names a path")
        return text
    sys.exit(f"wrong: no error with {words}")


def told(export):
    """What an export warns of, and its report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = export()
    return report, [str(one.message) for one in caught if issubclass(one.category, UserWarning)]


def pytorch(model, x, y, optimizer=None):
    """The losses of PyTorch's own steps, and the model after them."""
    twin = copy.deepcopy(model)
    make = optimizer or (lambda parameters: torch.optim.AdamW(parameters, lr=1e-2))
    steps = make([one for one in twin.parameters() if one.requires_grad])
    losses = []
    for a, b in zip(x, y):
        steps.zero_grad()
        loss = twin(a.clone(), b.clone())
        loss.backward()
        steps.step()
        losses.append(float(loss.detach()))
    return losses, twin


turns = itertools.count()


def in_turn(exporters=("dynamo", "torchscript")):
    """Both exporters at night; by day one of them, the other one for the next model."""
    return exporters if NIGHTLY else (exporters[next(turns) % len(exporters)],)


def same(model, x, y, name, exporters=("dynamo", "torchscript"), export={}, layouts=({},), tolerance=1e-5, buffers=True):
    """The steps that dsopt makes of the model's file are PyTorch's, by losses and by what the weights become."""
    want, twin = pytorch(model, x, y)
    for exporter in in_turn(exporters):
        report, lines = told(lambda: dsopt.export(model, {"x": x[0], "y": y[0]}, path("model.onnx"), exporter=exporter,
                                                  **export))
        check(report.exporter == exporter and report.checked.startswith("compared"), f"{name}: {report}")
        for layout in layouts:
            result = dsopt.train(path("model.onnx"), {"x": x, "y": y}, lr=1e-2, save_weights=path("weights"), **layout)
            off = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(result.losses, want))
            check(off < tolerance, f"{name}, {exporter}, {layout}: losses {result.losses}, PyTorch's {want}")
            home = copy.deepcopy(model)
            dsopt.load_weights(home, result.weights)
            before, after = model.state_dict(), home.state_dict()
            for key, value in twin.state_dict().items():
                if not value.is_floating_point() or (not buffers and key not in dict(twin.named_parameters())):
                    continue
                moved = float((value - before[key]).abs().max())
                apart = float((value - after[key]).abs().max())
                check(apart <= 1e-3 * moved + 1e-6, f"{name}, {exporter}: {key} is {apart} off, PyTorch moved it {moved}")
    print("same:", name)
    return report, lines
