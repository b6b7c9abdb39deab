"""Which checkpoints dsopt.hf.Trainer keeps and which weights callbacks see, beside transformers.Trainer: saving the best
alone, saving less often than measuring, going on from either.

usage: hf_best.py SOURCE BUILD   with a Python that has torch, transformers and accelerate
"""
import os
import tempfile
import warnings

import start  # noqa: F401 (says where dsopt is)

import torch
import transformers

import dsopt
from checks import check

warnings.filterwarnings("ignore")
folder = tempfile.mkdtemp()
points = [{"x": torch.randn(6, generator=torch.Generator().manual_seed(at)), "labels": at % 3} for at in range(64)]
count = 0


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.norm, self.second = torch.nn.Linear(6, 16, bias=False), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 3)

    def forward(self, x, labels):
        logits = self.second(torch.tanh(self.norm(self.first(x))))
        return torch.nn.functional.cross_entropy(logits, labels), logits


def trainer(kind, output=None, rest={}, **given):
    global count
    count += 1
    args = transformers.TrainingArguments(output or os.path.join(folder, str(count)), use_cpu=True, report_to="none", disable_tqdm=True, **{
        "per_device_train_batch_size": 8, "per_device_eval_batch_size": 8, "learning_rate": 1e-2, "eval_strategy": "steps", "eval_steps": 2, **given})
    return kind(model=Net(), args=args, train_dataset=points[:48], eval_dataset=points[48:], **rest)


def there(output):
    """The steps that are saved."""
    return sorted(int(name.rpartition("-")[2]) for name in os.listdir(output) if name.startswith(("step-", "checkpoint-")))


def scores(values):
    """A metric that is known before: the next value each time."""
    rest = iter(values)
    return lambda given: {"score": next(rest)}


class Looks(transformers.TrainerCallback):
    """Keeps the weights at each evaluation, and which checkpoints it is told of."""

    def __init__(self):
        self.seen, self.saved = {}, []

    def on_evaluate(self, args, state, control, model, **_):
        self.seen[state.global_step] = {name: one.detach().clone() for name, one in model.state_dict().items()}

    def on_save(self, args, state, control, **_):
        self.saved.append(state.global_step)


def near(theirs, ours, what):
    for name, one in theirs.items():
        check(name.endswith("num_batches_tracked") or torch.allclose(one, ours[name], atol=1e-4), f"{what}: {name} is {ours[name]}, transformers has {one}")
    return max((one - ours[name]).abs().max().item() for name, one in theirs.items() if one.is_floating_point())


# What is kept when the metric rises, falls and rises: each kind of saving, the last evaluation best and not best.
values = [1.0, 3.0, 4.0, 2.0, 5.0, 0.5]
cases = {
    "best": ({"save_strategy": "best"}, values, [2, 4, 6, 10]),
    "best of two": ({"save_strategy": "best", "save_total_limit": 2}, [1.0, 3.0, 4.0, 2.0, 3.5, 6.0], [6, 12]),
    "multiples": ({"save_strategy": "steps", "save_steps": 4}, values, [4, 8, 12]),
    "shares": ({"save_strategy": "steps", "save_steps": 2 / 6, "eval_steps": 1 / 6}, values, [4, 8, 12]),
    "the end": ({"save_strategy": "steps", "save_steps": 8}, [*values[:5], 7.0], [8, 12]),
    "epochs": ({"save_strategy": "epoch", "eval_strategy": "epoch"}, [2.0, 1.0], [6, 12]),
}
for name, (saving, rising, saved) in cases.items():
    results = []
    for kind in (transformers.Trainer, dsopt.hf.Trainer):
        looks = Looks()
        one = trainer(kind, rest={"compute_metrics": scores(rising), "callbacks": [looks]}, max_steps=12, metric_for_best_model="score",
                      load_best_model_at_end=True, **saving)
        one.train()
        best = one.state.best_model_checkpoint
        step = int(best.rpartition("-")[2]) if kind is transformers.Trainer else dsopt.Best.kept(one.args.output_dir, "eval_score").step
        results.append((one, looks, step))
    (want, theirs, a), (got, ours, b) = results
    check(there(got.args.output_dir) == there(want.args.output_dir) == saved, f"{name}: {there(got.args.output_dir)}, transformers has {there(want.args.output_dir)}")
    check(ours.saved == theirs.saved, f"{name}: saved {ours.saved}, transformers has {theirs.saved}")
    for part in ("global_step", "best_global_step", "best_metric"):
        check(getattr(got.state, part) == getattr(want.state, part), f"{name}: {part} is {getattr(got.state, part)}, transformers has {getattr(want.state, part)}")
    check(a == b, f"{name}: the best that is saved is of step {b}, transformers has {a}")
    check(ours.seen.keys() == theirs.seen.keys() and len(ours.seen) == len(rising), f"{name}: {ours.seen.keys()}")
    for step, one in theirs.seen.items():
        near(one, ours.seen[step], f"{name}: step {step}")
    worst = near(want.model.state_dict(), got.model.state_dict(), f"{name}: in the end")
    check(all(torch.equal(one, ours.seen[b][part]) for part, one in got.model.state_dict().items() if one.is_floating_point()), f"{name}: not the weights that were measured")
    print(f"{name}: kept {saved}, best {b}; weights differ by {worst:.1e} at most", flush=True)

# A run that goes on compares with what was best before, saved or not.
for name, saving, stop, later, best in (("multiples", {"save_strategy": "steps", "save_steps": 4}, 8, [3.5, 3.6], (6, 4.0, 4)), ("best", {"save_strategy": "best"}, 8, [3.5, 4.5, 1.0], (10, 4.5, 10))):
    class Halt(transformers.TrainerCallback):
        def on_evaluate(self, args, state, control, **_):
            control.should_training_stop = state.global_step >= stop

    found = []
    for kind in (transformers.Trainer, dsopt.hf.Trainer):
        given = {"max_steps": 12, "metric_for_best_model": "score", **saving}
        first = trainer(kind, rest={"compute_metrics": scores(values), "callbacks": [Halt()]}, **given)
        first.train()
        again = trainer(kind, first.args.output_dir, rest={"compute_metrics": scores(later)}, **given)
        again.train(resume_from_checkpoint=True)
        kept = again.state.best_model_checkpoint
        kept = int(kept.rpartition("-")[2]) if kind is transformers.Trainer else dsopt.Best.kept(kept.rpartition("/")[0], "eval_score").step
        found.append((again.state.best_global_step, again.state.best_metric, kept))
    check(found[0] == found[1] == best, f"{name} goes on: {found[1]}, transformers has {found[0]}")
print("goes on", flush=True)

# Another run in the same folder puts checkpoints aside. Its evaluation before the first step is of the checkpoint it goes on from.
output = got.args.output_dir = os.path.join(folder, "again")
for rising, saved in (([2.0, 1.0, 1.0], [2]), ([1.0, 2.0, 1.0], [2, 4])):
    one = trainer(dsopt.hf.Trainer, output, rest={"compute_metrics": scores(rising)}, max_steps=6, metric_for_best_model="score", save_strategy="best")
    one.train()
    check([int(name[5:]) for name in sorted(os.listdir(output)) if name.startswith("step-") and "." not in name] == saved, os.listdir(output))
check(sum("." in name and name.startswith("step-") for name in os.listdir(output)) == 1, os.listdir(output))
looks = Looks()
one = trainer(dsopt.hf.Trainer, output, rest={"callbacks": [looks]}, max_steps=6, eval_on_start=True, eval_steps=10)
one.train(resume_from_checkpoint=os.path.join(output, "step-00000004"))
plain = trainer(dsopt.hf.Trainer, max_steps=6, rest={"callbacks": [before := Looks()]})
plain.train()
check(all(torch.equal(value, before.seen[4][name]) for name, value in looks.seen[0].items() if value.is_floating_point()), "the weights of a checkpoint before the first step")

# On two ranks that have slices of all, in bf16: what is measured and loaded has the same bits.
looks = Looks()
one = trainer(dsopt.hf.Trainer, rest={"callbacks": [looks, transformers.EarlyStoppingCallback(2)], "compute_metrics": scores([1.0, 2.0, 1.0, 1.5]), "dp": 2, "zero": 3},
              max_steps=20, bf16=True, metric_for_best_model="score", load_best_model_at_end=True, save_strategy="best")
one.train()
check((one.state.global_step, one.state.best_global_step, there(one.args.output_dir), looks.saved) == (8, 4, [2, 4], [2, 4]), f"two ranks: {one.state}")
check(all(torch.equal(value, looks.seen[4][name]) for name, value in one.model.state_dict().items() if value.is_floating_point()), "the best weights of two ranks")
check(not torch.equal(looks.seen[4]["second.weight"], looks.seen[8]["second.weight"]), "weights stand still")
print("passed")
