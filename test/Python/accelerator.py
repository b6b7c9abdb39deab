"""A script for accelerate on two processes, and the same script with two lines changed on two ranks of dsopt: equal
losses, rates, norms, evaluations and weights. Then loops without accumulate(), what is refused, and checkpoints.

usage: accelerator.py SOURCE BUILD   with a Python that has torch, transformers and accelerate
"""
import json
import os
import tempfile
import warnings

from start import source

warnings.filterwarnings("ignore")

import torch
import torch.nn.functional as F

import forks
from checks import check, fails

folder = tempfile.mkdtemp()


def pairs(values):
    """What two ranks have in turn, as their mean."""
    return [(one + other) / 2 for one, other in zip(values[::2], values[1::2])]


# The script and its twin.
script = os.path.join(source, "test", "Python", "Inputs", "accelerate_script.py")
lines = open(script).read().splitlines()
changed = [line.replace("from accelerate import", "from dsopt.accelerate import").replace("Accelerator(cpu", "Accelerator(dp=2, zero=2, cpu")
           for line in lines]
check(sum(one != other for one, other in zip(lines, changed)) == 2, "the lines that change")
twin = os.path.join(folder, "twin.py")
with open(twin, "w") as file:
    file.write("\n".join(changed))
environment = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
found = []
for which, ranks in ((script, 2), (twin, 1)):
    place = os.path.join(folder, f"found{len(found)}.json")
    said, status = forks.run(which, place, ranks=ranks, environment=environment)
    check(status == 0 and "trained" in said, f"{which}: {said[-4000:]}")
    found.append(json.load(open(place)))
for which, want in found[0].items():
    got = found[1][which]
    got["losses"], got["rates"], got["of a pass"] = pairs(got["losses"]), got["rates"][1::2], [got["of a pass"][0] / 2]
    for name, values in want.items():
        worst = max(abs(a - b) for a, b in zip(values, got[name]))
        check(len(values) == len(got[name]) and worst < 1e-4, f"{which}: {name} differs by {worst}: {values}, {got[name]}")
        print(f"{which}: {len(values)} {name} differ by {worst:.1e} at most")
    check(len(want["losses"]) == 100 and want["losses"][-1] < want["losses"][0] / 2, want["losses"])
print("twins", flush=True)

from dsopt.accelerate import Accelerator


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.cold = torch.nn.Linear(6, 16), torch.nn.Linear(16, 3), False

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))) * (2 if self.cold else 1)


torch.manual_seed(0)
data = [(torch.randn(6), torch.tensor(at % 3)) for at in range(96)]


def parts(rows=96, rate=0.05, **loader):
    torch.manual_seed(5)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=24, cycle_momentum=False)
    return model, optimizer, torch.utils.data.DataLoader(data[:rows], batch_size=4, **loader), scheduler


# PyTorch's loop, whose steps have two batches each; and those of accelerate that accumulate by hand, or over ranks alone.
model, optimizer, loader, scheduler = parts()
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
want = []
for step, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    (loss / 2).backward()
    want.append(loss.item())
    if step % 2:
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        scheduler.step()
for options in ({"dp": 2}, {"by_hand": 2}):
    by_hand = options.pop("by_hand", 1)
    accelerator = Accelerator(**options)
    trained, optimizer, loader, scheduler = accelerator.prepare(*parts())
    got, sums = [], 0.0
    for step, (x, y) in enumerate(loader):
        loss = criterion(trained(x), y)
        accelerator.backward(loss / by_hand)
        if (step + 1) % by_hand == 0:
            optimizer.step()
            optimizer.zero_grad()
            for _ in range(by_hand):
                scheduler.step()
    for one, other in zip(model.parameters(), accelerator.unwrap_model(trained).parameters()):
        check(torch.allclose(one, other, rtol=1e-4, atol=1e-6), f"{options}, {by_hand}: weights")
    accelerator.end_training()
accelerator = Accelerator(dp=2)
trained, optimizer, loader, scheduler = accelerator.prepare(*parts())
kept, total = [], 0.0
for x, y in loader:
    loss = criterion(trained(x), y)
    accelerator.backward(loss)
    optimizer.step()
    scheduler.step()
    total += loss.detach().float() / len(loader)
    kept.append(loss)
check(max(abs(a - float(b)) for a, b in zip(want, kept)) < 1e-5, f"{want}, {kept}")
check(abs(float(total) - sum(want) / len(want)) < 1e-5 and f"{kept[3]:.3f}" == f"{want[3]:.3f}", f"{total}, {kept[3]}")
with torch.no_grad():  # computed, by the weights of the steps so far
    check(torch.allclose(trained.eval()(data[0][0]), model(data[0][0]), atol=1e-5), "after eval()")
print("loops", flush=True)


# Refused, by name.
fails(lambda: Accelerator(split_batches=True, log_with="all", mixed_precision="fp16", lr=1), "split_batches=; log_with=; ",
      "mixed_precision='fp16' (it has no and bf16)", "the options lr (")
fails(lambda: Accelerator().prepare(Net(), Net()), "several models")
fails(lambda: Accelerator().prepare(torch.optim.RMSprop(Net().parameters())), "optimizer RMSprop is not available")


def step(lossy, rows=96, before=lambda accelerator, model: None, **options):
    accelerator = Accelerator(**options)
    model, optimizer, loader, _ = accelerator.prepare(*parts(rows))
    for at, (x, y) in enumerate(loader):
        accelerator.backward(lossy(model, x, y, at))
        before(accelerator, model)
        optimizer.step()
    return accelerator


def plain(model, x, y, at):
    return F.cross_entropy(model(x), y)


fails(lambda: step(plain, 94, dp=2), "a smaller last batch: the loader has 94 rows, batches of 4 (drop_last=True")
fails(lambda: step(plain, 92, dp=2), "a step of fewer batches: the loader has 23, a step takes 2 (take 88 rows)")
fails(lambda: step(lambda model, x, y, at: plain(model, x, y, at) * (1 + at)), "a loss is computed otherwise than that of the first batch")
fails(lambda: step(lambda model, x, y, at: plain(model, x, y, at) + model.first.weight.norm()), "a tensor with a gradient that is no output")


def in_place(model, x, y, at):
    out = model(x)
    x.mul_(2)
    return F.cross_entropy(out, y)


fails(lambda: step(in_place), "changed in place behind that")
fails(lambda: step(lambda model, x, y, at: F.cross_entropy(model(x), y).item()), "item() of a value of a training step", kinds=(RuntimeError,))
fails(lambda: step(lambda model, x, y, at: torch.zeros(())), "backward() takes a loss made of the outputs of the prepared model", kinds=(RuntimeError,))
fails(lambda: step(plain, before=lambda accelerator, model: accelerator.clip_grad_norm_([model.first.weight], 1.0)), "clip_grad_norm_() of some parameters")
clips = iter([1.0, 2.0])
fails(lambda: step(plain, before=lambda accelerator, model: accelerator.clip_grad_norm_(model.parameters(), next(clips))), "clips at 2.0, expected 1 and 1.0")


class Unsized(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(data[:20])


accelerator = Accelerator(gradient_accumulation_steps=2)
odd, optimizer, loader = accelerator.prepare(*parts()[:2], torch.utils.data.DataLoader(Unsized(), batch_size=4))


def ends_early():
    for x, y in loader:
        with accelerator.accumulate(odd):
            accelerator.backward(plain(odd, x, y, 0))
            optimizer.step()


fails(ends_early, "a step has 1 losses and clips at 0.0, expected 2")
hot = iter([False, False, True])
fails(lambda: step(plain, before=lambda accelerator, model: setattr(model, "cold", next(hot))), "'cold' of the model was False in the first step and is True now")
fails(lambda: accelerator.clip_grad_value_([], 1), "clip_grad_value_()")
fails(optimizer.state_dict, "optimizer.state_dict()")
print("refused", flush=True)

# A checkpoint, and what goes on from it.
hashes = []
for resumed in (False, True):
    accelerator = Accelerator(dp=2, path=os.path.join(folder, "model.onnx"))
    trained, optimizer, loader, scheduler = accelerator.prepare(*parts())
    if resumed:
        accelerator.load_state(os.path.join(folder, "state"))
        loader = accelerator.skip_first_batches(loader, 8)
    for at, (x, y) in enumerate(loader):
        accelerator.backward(criterion(trained(x), y))
        norm = accelerator.clip_grad_norm_(trained.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        if not resumed and at == 7:
            accelerator.save_state(os.path.join(folder, "state"))
    check(0 < norm < 10, norm)
    hashes.append(torch.cat([one.flatten() for one in accelerator.get_state_dict(trained).values()]))
    rate = scheduler.get_last_lr()
    accelerator.end_training()
check(torch.equal(*hashes), "a checkpoint changed the bits")
print("passed")
