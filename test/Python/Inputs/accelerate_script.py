"""Trains two small models with accelerate; test/Python/accelerator.py changes two lines of it."""
import json
import sys

import torch
import torch.nn.functional as F
import transformers
from accelerate import Accelerator


class Net(torch.nn.Module):
    """Its loss is made in the loop."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = torch.nn.Linear(12, 32), torch.nn.LayerNorm(32), torch.nn.Linear(32, 5)

    def forward(self, x):
        return {"logits": self.second(torch.tanh(self.norm(self.first(x))))}


def make(which):
    torch.manual_seed(1)
    if which == "net":
        return Net()
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=31, n_positions=10, n_embd=24, n_layer=2, n_head=3, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        bos_token_id=0, eos_token_id=0, use_cache=False))


def rows(which, count):
    x = torch.randn(count, 12)
    start = torch.randint(0, 31, (count, 1))
    ids = (start + 3 * torch.arange(10)) % 31
    if which == "gpt2":
        return [{"input_ids": one, "labels": one} for one in ids]
    return [{"x": one, "labels": one[:5].argmax()} for one in x]


found = {}
for which in ("net", "gpt2"):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = make(which)
    torch.manual_seed(2)
    data, held_out = rows(which, 160), rows(which, 32)
    weights = torch.tensor([1.0, 2.0, 1.0, 0.5, 1.0])
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3))
    evaluation = torch.utils.data.DataLoader(held_out, batch_size=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 8, 1) * 0.99 ** step)
    model, optimizer, loader, evaluation, scheduler = accelerator.prepare(model, optimizer, loader, evaluation, scheduler)
    losses, rates, norms, evaluations = [], [], [], []
    for epoch in range(5):
        model.train()
        for batch in loader:
            with accelerator.accumulate(model):
                if which == "net":
                    loss = F.cross_entropy(model(batch["x"])["logits"] / 0.9, batch["labels"], weight=weights, reduction="none").mean()
                else:
                    outputs = model(**batch)
                    loss = outputs.loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norms.append(accelerator.clip_grad_norm_(model.parameters(), 0.4))
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            losses.append(loss.detach())
            rates.append(scheduler.get_last_lr()[0])
        model.eval()
        right = []
        for batch in evaluation:
            with torch.no_grad():
                logits = model(batch["x"])["logits"] if which == "net" else model(input_ids=batch["input_ids"]).logits
            labels = batch["labels"]
            predictions, labels = accelerator.gather_for_metrics((logits.argmax(-1), labels))
            right.append((predictions == labels).float().mean().item())
        evaluations.append(sum(right) / len(right))
    losses = [accelerator.gather(loss).mean().item() for loss in losses]
    norms = [float(norm) for norm in norms]
    accelerator.wait_for_everyone()
    whole = [one.norm().item() for one in accelerator.unwrap_model(model).parameters()]
    found[which] = {"losses": losses, "rates": rates, "norms": norms, "evaluations": evaluations, "weights": whole,
                    "of a pass": [len(loader)]}
if accelerator.is_main_process:
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
accelerator.print("trained")
accelerator.end_training()
