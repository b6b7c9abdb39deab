"""The four calls, on two data-parallel ranks with accumulation, beside PyTorch's own loop.

usage: engine.py SOURCE BUILD   with a Python that has torch and onnxscript
"""
import copy
import os
import sys
import tempfile
import time
import warnings

source, build = map(os.path.abspath, sys.argv[1:3])
os.environ["DSOPT_BUILD"] = build
sys.path.insert(0, os.path.join(source, "python"))
warnings.filterwarnings("ignore")

import numpy as np
import torch

import dsopt


def check(truth, what):
    if not truth:
        sys.exit(f"wrong: {what}")


def fails(kind, call, *words):
    try:
        call()
    except kind as error:
        check(all(word in str(error) for word in words), f"'{error}' lacks one of {words}")
        return
    sys.exit(f"wrong: no error with {words}")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.second = torch.nn.Linear(32, 5)

    def forward(self, x, y):
        return torch.nn.functional.cross_entropy(self.second(torch.nn.functional.gelu(self.first(x))), y)


def batch(rows):
    return torch.randn(rows, 16), torch.randint(0, 5, (rows,))


torch.manual_seed(3)
model = Net()
config = {"train_batch_size": 16, "gradient_accumulation_steps": 2, "gradient_clipping": 0.5,
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}}, "zero_optimization": {"stage": 2},
          "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-2, "warmup_num_steps": 3,
                                                       "warmup_type": "linear"}}}
data = [batch(8) for _ in range(12)]  # of both ranks: 4 rows each

reference = copy.deepcopy(model)
optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-2, weight_decay=0)
rates = [0.0, 0.0, 1e-2 / 3, 2e-2 / 3, 1e-2, 1e-2]  # DeepSpeed's, step by step
want = []
for step, rate in enumerate(rates):
    optimizer.param_groups[0]["lr"] = rate
    optimizer.zero_grad()
    for x, y in data[2 * step:2 * step + 2]:
        loss = (reference(x[:4], y[:4]) + reference(x[4:], y[4:])) / 2
        (loss / 2).backward()
        want.append(loss.item())
    torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.5)
    optimizer.step()

engine = dsopt.initialize(model, batch(4), config, dp=2)
check((engine.data_parallel_size, engine.gradient_accumulation_steps) == (2, 2), "the batch rule")
losses = []
for at, (x, y) in enumerate(data):
    loss = engine(x, y) if at % 2 else engine({"x": x, "y": y})
    losses.append(engine.backward(loss))
    if at == 0:
        check(not loss.ready and "not computed yet" in repr(loss), repr(loss))
        fails(RuntimeError, loss.item, "a loss is known once its step is done: 1 of 2 micro-batches of step 0")
        fails(RuntimeError, lambda: engine.backward(loss), "backward takes the loss of the latest engine(batch), once")
        fails(ValueError, lambda: engine(x[:4], y[:4]), "expected [8, 16]: the example's, for each of 2")
        fails(ValueError, lambda: engine({"x": x}), "the batch lacks y; the model's inputs are x, y")
    check(engine.is_gradient_accumulation_boundary() == (at % 2 == 1), "the boundary")
    engine.step()
check(np.allclose([float(loss) for loss in losses], want, rtol=1e-5), f"{losses}, PyTorch's {want}")
check(engine.global_steps == 6 and np.allclose([line["lr"] for line in engine.metrics], rates), engine.metrics)
check(engine.get_lr() == [1e-2] and engine.get_global_grad_norm() > 0, "what the engine knows")
result = engine.finish()
check(result.status == "ok" and result.steps == 6 and f"{losses[0]:.3f}" == f"{want[0]:.3f}", result)
for (name, got), value in zip(model.named_parameters(), reference.parameters()):
    check(torch.allclose(got, value, rtol=1e-4, atol=1e-6), f"{name} after training")
fails(RuntimeError, lambda: engine(data[0]), "the engine has finished")

# A checkpoint in the middle; another layout goes on from it with the bits of a run that did not stop.
checkpoints = tempfile.mkdtemp()
options = {"reduction_shards": 2, "accumulate": "local", "lr": 1e-2}
start = copy.deepcopy(model)
hashes = []
for layout in ({"dp": 2}, {"dp": 1, "micro_batches": 2}):
    resumed = bool(hashes)
    engine = dsopt.initialize(copy.deepcopy(start), batch(4), {"gradient_clipping": 0.5}, **layout, **options,
                              **({"resume": checkpoints} if resumed else {}))
    if not resumed:
        fails(RuntimeError, lambda: engine.save_checkpoint(checkpoints), "nothing to save before the first step")
    for at, (x, y) in enumerate(data[3 * resumed:6]):
        for part in ([slice(0, 8)] if engine.data_parallel_size == 2 else [slice(0, 4), slice(4, 8)]):
            engine.backward(engine(x[part], y[part]))
        engine.step()
        if at == 2 and not resumed:
            saved = engine.save_checkpoint(checkpoints)
            check(saved.endswith("step-00000003") and os.path.exists(saved + "/manifest.json"), saved)
    hashes.append(engine.finish().weights_hash)
check(hashes[0] == hashes[1], f"{hashes}: a checkpoint changed the bits")

# Callbacks see steps and checkpoints; one of them ends the run, and the engine says so.
seen = []
engine = dsopt.initialize(model, batch(8), save_weights=os.path.join(checkpoints, "stopped"),
                          on_step=lambda record: seen.append(record["step"]) or record["step"] < 3,
                          on_save=lambda path, step: seen.append((path, step)))
for at in range(40):
    if engine.stopped:
        break
    engine.backward(engine(*batch(8)))
    engine.step()
    if at == 1:
        saved = engine.save_checkpoint(os.path.join(checkpoints, "asked"))
check(4 <= engine.global_steps <= 8 and (saved, 2) in seen and "on_step" in engine.stopped, f"{at}, {seen}")
fails(dsopt.DsoptError, lambda: engine(*batch(8)), "the run was stopped: on_step")
result = engine.finish()
check(result.status == "stopped" and result.steps == engine.global_steps and result.weights, result)
check([one for one in seen if isinstance(one, int)] == list(range(result.steps)), seen)

# It may stop between a look at it and the next step, which is left out then.
engine = dsopt.initialize(model, batch(8), on_step=lambda record: record["step"] < 1)
for _ in range(2):
    engine.backward(engine(*batch(8)))
    engine.step()
check(engine.stopped is None or "on_step" in engine.stopped, engine.stopped)
engine._said_stop = None  # as if the look had been before it
loss = engine(*batch(8))
while engine._run.stopped is None:
    engine._run.poll()
    time.sleep(0.01)
engine.backward(loss)
engine.step()
check("on_step" in engine.stopped, engine.stopped)
check(engine.finish(load=False).steps == 2, "steps of a run that was stopped")

# Losses are numbers to compute with, before they are known; eval() measures, parameters() are as they are now.
model = Net()
reference = copy.deepcopy(model)
optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-2, weight_decay=0.01)
engine = dsopt.initialize(model, batch(4), dp=2, lr=1e-2, optimizer="adamw")
check(engine.train() is engine and engine.training, "train()")
held = batch(8)
total, sums, measured = 0.0, 0.0, []
for at in range(3):
    engine.eval()
    measured.append(engine(*held))
    check(abs(measured[-1].item() - reference(*held).item()) < 1e-5, f"{at}: {measured[-1]}, PyTorch {reference(*held)}")
    fails(RuntimeError, lambda: engine.backward(measured[-1]), "measured after eval(), has no gradient")
    engine.train()
    x, y = batch(8)
    loss = engine(x, y).loss
    total = total + 2 * loss.detach() / 4 - 1
    fails(RuntimeError, lambda: engine.backward(loss * 2), "what is computed from it")
    engine.backward(loss)
    engine.step()
    optimizer.zero_grad()
    want = (reference(x[:4], y[:4]) + reference(x[4:], y[4:])) / 2
    want.backward()
    optimizer.step()
    sums += 2 * want.item() / 4 - 1
    if at == 1:
        for (name, got), value in zip(engine.named_parameters(), reference.parameters()):
            check(torch.allclose(got, value, rtol=1e-4, atol=1e-6), f"{name} after two steps")
check(abs(float(total) - sums) < 1e-5 and abs(-total) >= 0 and f"{total:.3f}" == f"{sums:.3f}", f"{total}, {sums}")
check((measured[0] > measured[2]) == (measured[0].item() > measured[2].item()) and measured[0] != measured[1] and measured[0] == measured[0].item() and 1 - loss < 1, "comparisons")
for _ in range(3000):  # as a long loop adds them up
    total = total + loss
check(abs(float(total - 3000 * loss) - sums) < 1e-3, total)
check(len(list(engine.parameters())) == 4 and engine.finish().steps == 3, "the end")

# DeepSpeed's initialize: the first batch is the example, the optimizer is PyTorch's, losses are outputs' .loss.
from dsopt import deepspeed

model = Net()
reference = copy.deepcopy(model)
groups = [{"params": [model.first.weight, model.second.weight], "weight_decay": 0.2},
          {"params": [model.first.bias, model.second.bias], "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=5e-3)
twin = torch.optim.AdamW([{**group, "params": [dict(zip(map(id, model.parameters()), reference.parameters()))[id(one)]
                                               for one in group["params"]]} for group in groups], lr=5e-3)
dataset = [{"x": one, "y": two} for one, two in zip(*batch(40))]
config = {"train_batch_size": 16, "gradient_accumulation_steps": 2, "gradient_clipping": 0}
engine, same, loader, scheduler = deepspeed.initialize(model=model, optimizer=optimizer, model_parameters=model.parameters(),
                                                       training_data=dataset, config=config, dp=2)
check(same is optimizer and scheduler is None and len(loader) == 5 and engine.stopped is None, "what initialize returns")
check(len(list(engine.parameters())) == 4 and engine.eval().train().training, "before the first batch")
fails(RuntimeError, lambda: engine.global_steps, "run is not known before the first batch")
losses, want = [], []
for items in list(loader)[:4]:
    losses.append(engine(**items).loss)
    engine.backward(losses[-1])
    engine.step()
    one = (reference(items["x"][:4], items["y"][:4]) + reference(items["x"][4:], items["y"][4:])) / 2
    (one / 2).backward()
    want.append(one.item())
    if len(want) % 2 == 0:
        twin.step()
        twin.zero_grad()
check(np.allclose([float(loss) for loss in losses], want, rtol=1e-5), f"{losses}, {want}")
engine.finish()
for (name, got), value in zip(model.named_parameters(), reference.named_parameters()):
    check(torch.allclose(got, value[1], rtol=1e-4, atol=1e-6), f"{name} after training")
fails(dsopt.DsoptError, lambda: deepspeed.initialize(model=model, lr_scheduler=1), "initialize(lr_scheduler=) is not available")
fails(dsopt.DsoptError, lambda: deepspeed.initialize(model=model, model_parameters=groups), "model_parameters has groups")
fails(dsopt.DsoptError, lambda: deepspeed.initialize(model=model, model_parameters=reference.parameters()), "are not the model's")
fails(dsopt.DsoptError, lambda: deepspeed.initialize(model=model, model_parameters=model.parameters(), optimizer=torch.optim.Adam([model.first.weight])),
      "has parameters that no group of the optimizer has")
fails(dsopt.DsoptError, lambda: deepspeed.initialize(model=model, training_data=dataset), "needs train_micro_batch_size_per_gpu")
fails(ValueError, lambda: deepspeed.initialize(model=model, dp=2)[0](*batch(3)), "input 'x' has 3 rows")

# train_batch, one rank, the configuration's steps alone.
batches = iter([batch(8) for _ in range(4)])
with dsopt.initialize(model, batch(8), {"gradient_accumulation_steps": 2, "gradient_clipping": 0}, lr=1e-3) as engine:
    values = [engine.train_batch(batches) for _ in range(2)]
    check(all(isinstance(value, float) for value in values) and engine.global_steps == 2, values)
fails(dsopt.DsoptError, dsopt.initialize(model, batch(8)).finish, "no step was complete")
fails(dsopt.DsoptError, lambda: dsopt.initialize(model, batch(8), {"optimiser": {}}), "did you mean 'optimizer'?")
print("passed")
