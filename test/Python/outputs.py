"""Exported outputs beside the loss: predictions and metrics are PyTorch's.

usage: outputs.py SOURCE BUILD
"""
import os
import tempfile

from exports import check, in_turn
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

import warnings


class Classifier(nn.Module):
    """`returns`: what forward gives of loss, scores and whatever else."""

    def __init__(self, returns):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.norm, self.second, self.returns = nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Linear(12, 4), returns

    def forward(self, x, labels):
        hidden = torch.tanh(self.norm(self.first(x)))
        scores = self.second(hidden)
        return self.returns(F.cross_entropy(scores, labels), scores, scores.argmax(-1), hidden.var())


random = torch.Generator().manual_seed(2)
x, labels = torch.randn(20, 5, 6, generator=random), torch.randint(4, (20, 5), generator=random)
example = {"x": x[0], "labels": labels[0]}
arrays = {"x": x.numpy(), "labels": labels.numpy()}
cases = {
    "dict": (lambda loss, scores, choice, spread: {"loss": loss, "scores": scores, "choice": choice, "spread": spread}, ["scores", "choice", "spread"]),
    "tuple": (lambda loss, scores, choice, spread: (loss, scores, choice, spread), ["1", "2", "3"]),
}
with tempfile.TemporaryDirectory() as folder:
    for case, (returns, asked) in cases.items():
        names = [f"output{name}" if case == "tuple" else name for name in asked]
        for exporter in in_turn():
            model, file = Classifier(returns), os.path.join(folder, f"{case}-{exporter}.onnx")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                dsopt.export(model, example, file, outputs=asked, exporter=exporter)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = dsopt.train(file, arrays, steps=10, lr=0.01, metric="accuracy", log_outputs=True, dp=2, zero=2,
                                     save_weights=os.path.join(folder, "w.safetensors"))
            dsopt.load_weights(model, result.weights)
            model.eval()
            predicted = dsopt.predict(file, arrays, outputs=names, weights=os.path.join(folder, "w.safetensors"), dp=2)
            check(list(predicted) == names, f"{case} {exporter}: {list(predicted)}")
            with torch.no_grad():
                expected = [model(x[i], labels[i]) for i in range(len(x))]
            for place, name in enumerate(names):
                one = np.stack([np.asarray(list(each.values())[place + 1] if case == "dict" else each[place + 1]) for each in expected])
                check(predicted[name].shape == one.shape and np.allclose(predicted[name], one, atol=2e-6), f"{case} {exporter}: {name}")
            measured = dsopt.evaluate(file, arrays, weights=os.path.join(folder, "w.safetensors"), metric="accuracy").metrics["accuracy"]
            check(abs(measured - (predicted[names[1]] == arrays["labels"]).mean()) < 1e-6, f"{case} {exporter}: accuracy {measured}")
            check(names[2] in result.metrics[1] and "accuracy" in result.metrics[1], f"{result.metrics[1]}")

    def refused(names, expected, error=Exception):
        try:
            dsopt.export(Classifier(cases["dict"][0]), example, os.path.join(folder, "no.onnx"), outputs=names)
        except error as problem:
            check(expected in str(problem), f"{names}: {problem}")
        else:
            check(False, f"{names} are taken")

    refused(["logits"], "outputs has 'logits', but forward returns loss, scores, choice, spread, expected one that is a tensor")
    refused(["labels"], "outputs has 'labels', which is an input's name")
    refused(["loss"], "outputs has 'loss', which is the loss's name")
    refused(["scores", "scores"], "outputs has 'scores', which it has twice")
    refused("scores", "expected a list of names", ValueError)
print("passed")
