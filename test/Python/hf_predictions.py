"""Predictions of dsopt.hf.Trainer beside transformers.Trainer: nested ones as they are nested there, metrics by batch, lists
of batches; on one rank, and on two beside two processes.

usage: hf_predictions.py SOURCE BUILD   with a Python that has torch, transformers and accelerate
"""
import json
import os
import tempfile
import warnings

from start import source

import numpy as np
import torch
import transformers.trainer

import dsopt
import forks
from checks import check, fails
from hf_models import TwoLayers, bert

warnings.filterwarnings("ignore")
folder = tempfile.mkdtemp()

# The script on two processes, and its twin on two ranks.
script = os.path.join(source, "test", "Python", "Inputs", "hf_batches.py")
text = open(script).read()
twin = os.path.join(folder, "twin.py")
with open(twin, "w") as file:
    file.write(text.replace("import transformers\n", "import transformers, dsopt\n").replace("transformers.Trainer(", "dsopt.hf.Trainer(dp=2, "))
environment = {"OMP_NUM_THREADS": "1"}
places = [os.path.join(folder, name) for name in ("theirs", "ours")]
for which, place, ranks in zip((script, twin), places, (2, 1)):
    said, status = forks.run(which, place, ranks=ranks, environment=environment)
    check(status == 0, f"{which}: {said[-3000:]}")


def leaves(value):
    return [leaf for one in value for leaf in leaves(one)] if isinstance(value, list) else [value]


want, got = (json.load(open(place + ".json")) for place in places)
check(want.keys() == got.keys(), f"{got.keys()}")
for name, theirs in want.items():
    one, other = leaves(theirs), leaves(got[name])
    check(len(one) == len(other) > 0 and all(type(a) is type(b) and (abs(a - b) < 1e-4 if isinstance(a, float) else a == b) for a, b in zip(one, other)),
          f"{name}: {got[name]}, transformers has {theirs}")
    print(f"two ranks: {name}: {len(one)} values, {max([abs(a - b) for a, b in zip(one, other) if isinstance(a, float)], default=0):.1e} at most between them", flush=True)


class Net(TwoLayers):
    """Gives what no loss needs, in containers of all kinds."""

    def forward(self, x, labels=None):
        hidden, logits = self.hidden_and_logits(x)
        found = {"logits": logits, "parts": {"hidden": hidden, "sums": [x.sum(1), (hidden.sum(1), hidden > 0)]}, "pair": (logits.argmax(1), x)}
        return found if labels is None else {"loss": torch.nn.functional.cross_entropy(logits, labels), **found}


class InOrder(Net):
    def forward(self, x, labels):
        return tuple(super().forward(x, labels).values())


def trainer(kind, model, data, rest={}, **given):
    args = transformers.TrainingArguments(os.path.join(folder, "out"), use_cpu=True, report_to="none", disable_tqdm=True, **{
        "per_device_train_batch_size": 8, "per_device_eval_batch_size": 8, "save_strategy": "no", "logging_steps": 1, "max_steps": 4, **given})
    return kind(model=model, args=args, train_dataset=data[:32], eval_dataset=data[32:], **rest)


def same(a, b, what):
    """The same containers, of the same numbers."""
    check(type(a) is type(b), f"{what} is a {type(b).__name__}, transformers has a {type(a).__name__}")
    if isinstance(a, dict):
        check(a.keys() == b.keys(), f"{what}: {b.keys()}, transformers has {a.keys()}")
        return max(same(a[key], b[key], f"{what}.{key}") for key in a)
    if isinstance(a, (list, tuple)):
        check(len(a) == len(b), f"{what}: {len(b)} parts, transformers has {len(a)}")
        return max(same(x, y, f"{what}.{at}") for at, (x, y) in enumerate(zip(a, b)))
    check(a.shape == b.shape and a.dtype == b.dtype, f"{what} is {b.dtype} {b.shape}, transformers has {a.dtype} {a.shape}")
    worst = np.abs(a.astype(float) - b.astype(float)).max()
    check(worst < 1e-4, f"{what} differs by {worst}")
    return worst


points = [{"x": torch.randn(6, generator=torch.Generator().manual_seed(at)), "labels": at % 3} for at in range(53)]
sentences = [{"input_ids": torch.randint(1, 40, (12,), generator=torch.Generator().manual_seed(at)), "labels": at % 3} for at in range(53)]
for model, data in ((Net, points), (InOrder, points), (bert, sentences)):
    seen, found = [], []
    for kind in (transformers.Trainer, dsopt.hf.Trainer):
        one = trainer(kind, model(), data, {"compute_metrics": lambda given: seen.append(given.predictions) or {}}, eval_strategy="steps", eval_steps=2)
        one.train()
        found.append(one.predict(data[:21]).predictions)
    check(len(seen) == 6, f"{len(seen)} evaluations")
    worst = max(same(*found, "predictions"), *(same(seen[at], seen[at + 3], f"evaluation {at}") for at in range(3)))
    print(f"{model.__name__}: nested predictions differ by {worst:.1e} at most", flush=True)
lists = [trainer(kind, Net(), points, eval_do_concat_batches=False).predict(points[:21]).predictions for kind in (transformers.Trainer, dsopt.hf.Trainer)]
same(*lists, "lists of batches")
without = [trainer(kind, Net(), points).predict([{"x": one["x"]} for one in points[:21]], ignore_keys=["pair"]).predictions for kind in (transformers.Trainer, dsopt.hf.Trainer)]
same(*without, "without labels")


class Counts(Net):
    def forward(self, x, labels):
        return {**super().forward(x, labels), "steps": [3]}


fails(lambda: trainer(dsopt.hf.Trainer, Counts(), points).predict(points[:8]), "predictions that are no tensors (steps.0, a int; ignore_keys=")
print("passed")
