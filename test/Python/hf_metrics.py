"""What dsopt.hf.Trainer measures beside transformers.Trainer: predictions, metrics of the whole evaluation set, the best
model, early stopping; sets that fill no batch, several of them, another batch size.

usage: hf_metrics.py SOURCE BUILD   with a Python that has torch, transformers and accelerate
"""
import os
import tempfile
import warnings

import start  # noqa: F401 (says where dsopt is)

import numpy as np
import torch
import transformers

import dsopt
from checks import check, fails
from hf_models import TwoLayers, bert, length, vocabulary
from sampled import sampled

warnings.filterwarnings("ignore")
folder = tempfile.mkdtemp()


class Net(TwoLayers):
    """Gives a tuple of several predictions."""

    def forward(self, x, labels=None):
        hidden, logits = self.hidden_and_logits(x)
        return torch.nn.functional.cross_entropy(logits, labels), logits, hidden


def sentence(at):
    random = torch.Generator().manual_seed(at)
    ids = torch.randint(1, vocabulary, (length,), generator=random)
    return {"input_ids": ids, "attention_mask": (torch.arange(length) < 6 + at % 6).long(), "labels": ids[0] % 3}


def scores(given):
    """As scikit-learn has them."""
    logits, there = given.predictions, given.label_ids
    logits = logits[0] if isinstance(logits, tuple) else logits
    found = logits if logits.ndim == 1 else logits.argmax(-1)
    each = [2 * ((found == c) & (there == c)).sum() / max((found == c).sum() + (there == c).sum(), 1) for c in range(3)]
    return {"accuracy": (found == there).mean(), "f1": np.mean(each), "rows": len(there)}


sentences = [sentence(at) for at in range(96)]
points = [{"x": torch.randn(6, generator=torch.Generator().manual_seed(at)), "labels": at % 3} for at in range(64)]


def logged(one, *names):
    return [{name: line[name] for name in ("step", *names) if name in line} for line in one.state.log_history if names[0] in line]


count = 0


def trainer(kind, model, data, held_out, rest={}, **given):
    global count
    count += 1
    args = transformers.TrainingArguments(os.path.join(folder, str(count)), use_cpu=True, report_to="none", disable_tqdm=True, **{
        "per_device_train_batch_size": 8, "per_device_eval_batch_size": 8, "learning_rate": 1e-2, "save_strategy": "no", "logging_steps": 1, **given})
    return kind(model=model, args=args, train_dataset=data, eval_dataset=held_out, **rest)


def near(want, got, what, most=1e-5):
    check(set(want) == set(got), f"{what}: {got}, transformers has {want}")
    for name, value in want.items():
        if "runtime" not in name and "per_second" not in name:
            check(abs(value - got[name]) <= most * max(abs(value), 1), f"{what}: {name} is {got[name]}, transformers has {value}")


def both(model, *args, dsopt_options={}, rest={}, **given):
    """The same by transformers and by dsopt."""
    return [trainer(kind, model(), *args, rest={**rest, **more}, **given) for kind, more in
            ((transformers.Trainer, {}), (dsopt.hf.Trainer, dsopt_options))]


# A classifier: predictions and metrics of a set that fills no batch, while training and after it.
names = ("eval_loss", "eval_accuracy", "eval_f1", "eval_rows")
held_out = sentences[48:85]
unlabelled = [{name: value for name, value in row.items() if name != "labels"} for row in sentences[48:60]]
given = {"max_steps": 6, "eval_strategy": "steps", "eval_steps": 4, "include_for_metrics": ["inputs", "loss"]}
seen = []


def measure(given):
    seen.append([*given.elements])
    return scores(given)


def measured(one):
    return one.evaluate(), one.predict(held_out), one.predict(unlabelled)


one, other = both(bert, sentences[:48], held_out, rest={"compute_metrics": measure}, **given)
one.train()
weights = {name: value.clone() for name, value in one.model.state_dict().items()}
expected, theirs = measured(one), list(seen)
seen.clear()
other.train()
check(len(logged(other, *names)) == 2, f"{logged(other, *names)}")
for want, got in zip(logged(one, *names), logged(other, *names)):
    near(want, got, "while training", 1e-4)
other.model.load_state_dict(weights)
found = measured(other)
near(expected[0], found[0], "evaluate()")
near(expected[1].metrics, found[1].metrics, "predict()")
check(len(theirs) == len(seen) == 4, f"{len(seen)} calls of compute_metrics, transformers has {len(theirs)}")
for want, got in zip(theirs, seen):
    check(len(want) == len(got) == 4, "parts of EvalPrediction")
    check(all(a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, atol=1e-3) for a, b in zip(want, got)), f"EvalPrediction has {got}, expected {want}")

# On two ranks: the same predictions.
two = trainer(dsopt.hf.Trainer, bert(), sentences[:48], held_out, {"compute_metrics": scores, "dp": 2, "zero": 2})
two.model.load_state_dict(weights)
on_two = measured(two)
for which, got in (("one rank", found), ("two ranks", on_two)):
    for a, b in zip(expected[1:], got[1:]):
        worst = np.abs(a.predictions - b.predictions).max() if a.predictions.shape == b.predictions.shape else np.inf
        check(worst < 1e-5, f"{which}: predictions differ by {worst}")
        check(a.label_ids is b.label_ids is None or np.array_equal(a.label_ids, b.label_ids), f"{which}: labels")
    check(got[2].metrics.keys() == expected[2].metrics.keys(), f"{which}: without labels {got[2].metrics}")
    for name in ("accuracy", "f1", "rows"):
        check(got[0][f"eval_{name}"] == got[1].metrics[f"test_{name}"] == expected[0][f"eval_{name}"], f"{which}: {name}")
    print(f"{which}: predictions differ by {worst:.1e} at most, {got[1].metrics}", flush=True)
try:
    from sklearn import metrics as known
    choice = found[1].predictions.argmax(-1)
    for name, value in (("f1", known.f1_score(found[1].label_ids, choice, average="macro")), ("accuracy", known.accuracy_score(found[1].label_ids, choice))):
        check(abs(value - found[1].metrics[f"test_{name}"]) < 1e-9, f"scikit-learn's {name} is {value}")
except ImportError:
    print("left out: scikit-learn is not installed")

# The best model, by a metric that a run knows after its steps: the same steps, log and weights.
def rising(given):
    rising.calls += 1
    return {**scores(given), "score": [1.0, 3.0, 2.0, 1.5, 1.0, 0.5][min(rising.calls, 6) - 1]}


for metric, patience, saves in sampled((("score", 2, True), ("loss", 1, True), ("eval_score", 1, False)), 1):
    results = []
    for kind in (transformers.Trainer, dsopt.hf.Trainer):
        rising.calls = 0
        saving = {"save_strategy": "steps", "save_steps": 3, "load_best_model_at_end": True, "save_total_limit": 1} if saves else {}
        one = trainer(kind, Net(), points[:48], points[48:], {"compute_metrics": rising if "score" in metric else None, "preprocess_logits_for_metrics": lambda logits, labels: logits[0].argmax(-1),
                      "callbacks": [transformers.EarlyStoppingCallback(patience)],
                      **({"log": os.path.join(folder, f"{metric}.jsonl"), "dp": 1, "reduction_shards": 1} if kind is dsopt.hf.Trainer else {})},
                      max_steps=30, eval_strategy="steps", eval_steps=3, metric_for_best_model=metric, learning_rate=0.1 if metric == "loss" else 1e-2, **saving)
        output = one.train()
        results.append(one)
    want, got = results
    for name in ("global_step", "best_global_step", "best_metric"):
        a, b = (getattr(one.state, name) for one in results)
        check(a == b or abs(a - b) < 1e-4, f"{metric}: {name} is {b}, transformers has {a}")
    check(want.state.global_step < 30, f"{metric}: {want.state.global_step} steps")
    a, b = ([{name: value for name, value in line.items() if name in ("step", "epoch", "loss", "eval_loss", "eval_score", "train_loss")} for line in one.state.log_history] for one in results)
    check(len(a) == len(b), f"{metric}: {b}, transformers has {a}")
    for x, y in zip(a, b):
        near(x, y, metric, 1e-4)
    check(all(torch.allclose(x, y, atol=1e-4) for x, y in zip(want.model.parameters(), got.model.parameters())), f"{metric}: weights")
    check((got.state.best_model_checkpoint is None) == (want.state.best_model_checkpoint is None), got.state.best_model_checkpoint)
    with open(os.path.join(folder, f"{metric}.jsonl")) as log:
        check(sum('"loss"' in line for line in log) == got.state.global_step, f"{metric}: the log is not the run's")
    print(f"best by {metric}: step {got.state.best_global_step} of {got.state.global_step}", flush=True)

# Several sets, batches of another size, several predictions, an evaluation before the first step and none until the fifth.
rest = {"compute_metrics": scores}
one, other = both(Net, points[:48], {"even": points[40:60], "odd": points[50:57]}, rest=rest, dsopt_options={"path": os.path.join(folder, "kept.onnx")},
                  max_steps=8, per_device_eval_batch_size=5, eval_on_start=True, eval_strategy="steps", eval_steps=2, eval_delay=5, eval_do_concat_batches=True)
for each in (one, other):
    each.train()
names = [f"eval_{which}_{name}" for which in ("even", "odd") for name in ("loss", "accuracy", "f1", "rows")]
want, got = ([{name: line[name] for name in ("step", *names) if name in line} for line in each.state.log_history if any(name in line for name in names)] for each in (one, other))
check([line["step"] for line in got] == [0, 0, 6, 6, 8, 8], got)
for a, b in zip(want, got):
    near(a, b, "several sets", 1e-4)
check(os.path.exists(os.path.join(folder, "kept.onnx")), "path= is not kept")
a, b = (each.predict(points[40:60]).predictions for each in (one, other))
check(isinstance(b, tuple) and all(x.shape == y.shape and np.allclose(x, y, atol=1e-4) for x, y in zip(a, b)), "several predictions")
check(len(other.predict(points[40:60], ignore_keys=None).predictions) == 2, "ignore_keys")

# A run that goes on compares with what was best before.
class Halt(transformers.TrainerCallback):
    def on_evaluate(self, args, state, control, **_):
        control.should_training_stop = state.global_step >= 4


rising.calls = 0
given = {"max_steps": 8, "eval_strategy": "steps", "eval_steps": 2, "save_strategy": "steps", "save_steps": 2, "metric_for_best_model": "score",
         "load_best_model_at_end": True}
first = trainer(dsopt.hf.Trainer, Net(), points[:48], points[48:], {"compute_metrics": rising, "callbacks": [Halt()]}, **given)
first.train()
check(first.state.global_step == 4 and first.state.best_global_step == 4, f"stopped after {first.state.global_step} steps")
for place in sampled((True, os.path.join(first.args.output_dir, "step-00000004")), 1):
    rising.calls = 2
    again = trainer(dsopt.hf.Trainer, Net(), points[:48], points[48:], {"compute_metrics": rising}, **given)
    again.args.output_dir = again.args.output_dir if place is not True else first.args.output_dir
    again.train(resume_from_checkpoint=place)
    best = (again.state.best_global_step, again.state.best_metric, again.state.best_model_checkpoint)
    check(best == (4, 3.0, os.path.join(first.args.output_dir, "best")) and again.state.global_step == 8, f"{best}")
    for x, y in zip(first.model.parameters(), again.model.parameters()):
        check(torch.equal(x, y), "the best weights of the run before")
rising.calls = 1
again = trainer(dsopt.hf.Trainer, Net(), points[:48], points[48:], {"compute_metrics": rising}, **given)
again.train(resume_from_checkpoint=os.path.join(first.args.output_dir, "step-00000002"))
check(again.state.best_global_step == 4 and again.state.best_model_checkpoint.startswith(again.args.output_dir), "what comes after a checkpoint is not before it")

# What is refused.
ragged = [{**row, "input_ids": row["input_ids"][:6 + at // 8], "attention_mask": row["attention_mask"][:6 + at // 8]} for at, row in enumerate(sentences[:16])]
fails(lambda: trainer(dsopt.hf.Trainer, bert(), sentences[:8], ragged).evaluate(), "batch 1 to evaluate has [8, 7] for", 'padding="max_length"')
fails(lambda: trainer(dsopt.hf.Trainer, bert(), None, sentences[:8]).predict(unlabelled), "a dataset without labels is predicted by a Trainer that has a train_dataset")
fails(lambda: trainer(dsopt.hf.Trainer, Net(), points[:16], points[:16], eval_strategy="steps", eval_steps=1, metric_for_best_model="recall", max_steps=2).train(),
      "'eval_recall', which is not found", kinds=(KeyError,))


class Own(dsopt.hf.Trainer):
    def prediction_step(self, *given, **more):
        return super().prediction_step(*given, **more)


fails(lambda: trainer(Own, Net(), points, points), "a prediction_step() of one's own")
print("passed")
