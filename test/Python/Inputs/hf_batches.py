"""Metrics by batch and lists of batches with transformers.Trainer; what they were goes to a file.

usage: hf_batches.py PLACE   with python, or with torchrun
"""
import json
import os
import sys

import torch
import transformers


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = torch.nn.Linear(6, 16), torch.nn.Linear(16, 3)

    def forward(self, x, labels):
        hidden = torch.tanh(self.first(x))
        logits = self.second(hidden)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits, "states": (hidden, {"sum": hidden.sum(1)})}


data = [{"x": torch.randn(6, generator=torch.Generator().manual_seed(at)), "labels": at % 3} for at in range(77)]
calls, rows = [], []


def by_batch(given, compute_result):
    logits, (hidden, sums) = given.predictions
    rows.append((logits.argmax(-1) == given.label_ids).float())
    calls.append([list(logits.shape), list(hidden.shape), given.label_ids.tolist(), given.losses.tolist(), sums["sum"].tolist(), compute_result])
    if not compute_result:
        return {}
    found = {"accuracy": torch.cat(rows).mean().item(), "rows": len(torch.cat(rows))}
    rows.clear()
    return found


def trainer(compute_metrics=None, **given):
    args = transformers.TrainingArguments(sys.argv[1], use_cpu=True, report_to="none", disable_tqdm=True, per_device_train_batch_size=8,
                                          per_device_eval_batch_size=4, learning_rate=1e-2, save_strategy="no", max_steps=2, **given)
    return transformers.Trainer(model=Net(), args=args, train_dataset=data[:32], eval_dataset=data[32:], compute_metrics=compute_metrics)


one = trainer(by_batch, batch_eval_metrics=True, include_for_metrics=["loss"], eval_strategy="steps", eval_steps=1)
one.train()
names = ("step", "eval_loss", "eval_accuracy", "eval_rows")
kept = {"log": [[line[name] for name in names] for line in one.state.log_history if "eval_loss" in line], "calls": calls}
kept["metrics"] = [value for name, value in sorted(one.evaluate(data[32:45]).items()) if name in names]
other = trainer(eval_do_concat_batches=False).predict(data[32:])
kept["logits"] = [logits.tolist() for logits, _ in other.predictions]
kept["sums"] = [states[1]["sum"].tolist() for _, states in other.predictions]
kept["labels"] = [labels.tolist() for labels in other.label_ids]
if os.environ.get("RANK", "0") == "0":
    with open(sys.argv[1] + ".json", "w") as file:
        json.dump(kept, file)
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()  # a rank that ends before the other has aborted now and then
