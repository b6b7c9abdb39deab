"""A script with transformers.Trainer on two processes, and the same script with two lines changed on two ranks of dsopt:
equal losses, rates, norms, evaluations and weights. Then what is refused, epochs, checkpoints, callbacks and bf16.

usage: hf.py SOURCE BUILD   with a Python that has torch, transformers and accelerate
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

folder = tempfile.mkdtemp()

# The script and its twin.
script = os.path.join(source, "test", "Python", "Inputs", "hf_script.py")
lines = open(script).read().splitlines()
changed = [line.replace("import transformers", "import transformers, dsopt") if line == "import transformers" else
           line.replace("transformers.Trainer(", "dsopt.hf.Trainer(dp=2, zero=2, ") for line in lines]
check(sum(one != other for one, other in zip(lines, changed)) == 2, "the lines that change")
twin = os.path.join(folder, "twin.py")
with open(twin, "w") as file:
    file.write("\n".join(changed))
theirs, ours = os.path.join(folder, "theirs"), os.path.join(folder, "ours")
environment = {"OMP_NUM_THREADS": "1"}
for which, place, ranks in ((script, theirs, 2), (twin, ours, 1)):
    said, status = forks.run(which, place, ranks=ranks, environment=environment)
    check(status == 0, f"{which}: {said[-4000:]}")
for which in ("gpt2", "bert"):
    want, got = (json.load(open(os.path.join(place, which, "log.json"))) for place in (theirs, ours))
    for key in ("loss", "learning_rate", "grad_norm", "eval_loss", "epoch", *(["eval_rows", "eval_labels"] if which == "bert" else [])):
        one, other = ([(line["step"], line[key]) for line in log["history"] if key in line] for log in (want, got))
        check([step for step, _ in one] == [step for step, _ in other], f"{which}: {key} in steps {one} and {other}")
        worst = max(abs(a - b) for (_, a), (_, b) in zip(one, other))
        check(worst < 1e-4 and len(one) >= 4, f"{which}: {key} differs by {worst}: {one} and {other}")
        if key == "loss":
            print(f"{which}: {len(one)} losses from {one[0][1]:.4f} to {one[-1][1]:.4f} differ by {worst:.1e} at most")
            check(len(one) == 50, one)
    check(abs(want["final"]["eval_loss"] - got["final"]["eval_loss"]) < 1e-4, f"{which}: {want['final']}, {got['final']}")
    check(np.allclose(want["predictions"], got["predictions"], atol=1e-3), f"{which}: predictions")
    weights = [dsopt.read_weights(os.path.join(place, which, "model", "model.safetensors")) for place in (theirs, ours)]
    check(weights[0].keys() == weights[1].keys(), f"{which}: other weights")
    for name, value in weights[0].items():
        check(np.allclose(value, weights[1][name], atol=1e-3), f"{which}: {name} after training")
print("twins", flush=True)

warnings.filterwarnings("ignore")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = torch.nn.Linear(6, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3)

    def forward(self, x, labels):
        logits = self.second(torch.tanh(self.norm(self.first(x))))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


torch.manual_seed(0)
data = [{"x": torch.randn(6), "labels": at % 3, "id": at} for at in range(48)]


def arguments(name, **given):
    return transformers.TrainingArguments(os.path.join(folder, name), use_cpu=True, per_device_train_batch_size=8,
                                          per_device_eval_batch_size=8, report_to="none", disable_tqdm=True,
                                          **{"save_strategy": "no", "learning_rate": 1e-2, "logging_steps": 1, **given})


def trainer(kind, args, rows=48, **options):
    torch.manual_seed(5)
    return kind(model=Net(), args=args, train_dataset=data[:rows], **options)


# All that is refused, at once and at the start.
wrong = arguments("wrong", label_smoothing_factor=0.1, optim="adafactor", lr_scheduler_type="polynomial")
fails(lambda: trainer(dsopt.hf.Trainer, wrong, compute_loss_func=len, dp=2, lr=1), "compute_loss_func=", "label_smoothing_factor=0.1",
      "lr_scheduler_type='polynomial' (it has linear", "optim='adafactor'", "the options lr (TrainingArguments has them)")
fails(lambda: trainer(dsopt.hf.Trainer, arguments("uneven"), rows=44, dp=2),
      "of the 44 rows of train_dataset transformers makes 2 steps of 16 and a smaller one (take 32 of them, or max_steps=2)")


class Own(dsopt.hf.Trainer):
    def compute_loss(self, model, inputs, **_):
        return model(**inputs)["loss"]


fails(lambda: trainer(Own, arguments("own")), "a compute_loss() of one's own")
several = arguments("several")
os.environ["WORLD_SIZE"] = "2"
fails(lambda: trainer(dsopt.hf.Trainer, several), "several Python processes (start it with python")
del os.environ["WORLD_SIZE"]

# Epochs in the order of transformers' sampler, a model that is no PreTrainedModel, SGD, columns that nothing takes.
given = {"num_train_epochs": 3, "optim": "sgd", "lr_scheduler_type": "constant_with_warmup", "warmup_steps": 4, "logging_steps": 2,
         "logging_first_step": True, "weight_decay": 0.05}
logs = []
for kind in (transformers.Trainer, dsopt.hf.Trainer):
    one = trainer(kind, arguments("epochs", **given), eval_dataset=data[:16])
    output = one.train()
    check(output.global_step == 18, output)
    one.evaluate()
    logs.append([{key: line[key] for key in ("step", "loss", "learning_rate", "eval_loss", "train_loss", "epoch") if key in line}
                 for line in one.state.log_history])
check(len(logs[0]) == len(logs[1]) == 12, logs)
for want, got in zip(*logs):
    check(want.keys() == got.keys() and all(abs(want[key] - got[key]) < 1e-4 for key in want), f"{want}, {got}")
print("epochs", flush=True)

# Checkpoints: one that was stopped goes on with the bits of one that was not.
whole = trainer(dsopt.hf.Trainer, arguments("whole", max_steps=12))
whole.train()


class Halt(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = state.global_step >= 5


halted = trainer(dsopt.hf.Trainer, arguments("halted", max_steps=12, save_strategy="steps", save_steps=2), callbacks=[Halt()])
halted.train()
check(5 <= halted.state.global_step <= 9, halted.state.global_step)
rest = trainer(dsopt.hf.Trainer, arguments("halted", max_steps=12, save_strategy="steps", save_steps=2))
rest.train(resume_from_checkpoint=True)
for (name, want), got in zip(whole.model.named_parameters(), rest.model.parameters()):
    check(torch.equal(want, got), f"{name} after a stop")

# bf16 and recomputation.
plain = [line["loss"] for line in whole.state.log_history if "loss" in line]
low = trainer(dsopt.hf.Trainer, arguments("bf16", max_steps=12, bf16=True, gradient_checkpointing=True), dp=1)
low.train()
losses = [line["loss"] for line in low.state.log_history if "loss" in line]
check(losses != plain and np.allclose(losses, plain, rtol=0.05), f"{losses}, {plain}")
print("passed")
