"""Checkpoints go out to DeepSpeed's universal layout and come in from it: PyTorch reads and writes the files, its AdamW
says what has to be in them, and a run that came in goes on with the bits of one that was never away.

usage: universal.py SOURCE BUILD
"""
import json
import os
import shutil
import sys
import warnings

from exports import Net, batches, check, folder, path
import onnx
import torch
import torch.nn.functional as F
from torch import nn
import dsopt

STEPS, MORE, RATE = 3, 6, 1e-2


def fails(call, *words):
    try:
        call()
    except ValueError as error:
        check(all(word in str(error) for word in words), f"'{error}' lacks one of {words}")
        return
    sys.exit(f"wrong: no error with {words}")


def loss(model, x, y):
    return F.cross_entropy(model.o(F.gelu(model.a(x)) @ model.w.T), y) + sum((one ** 2).sum() for one in model.small) * 0.01


# Of 4 bytes to 2 MiB and some: hashes have a way for each size.
torch.manual_seed(1)
model = Net(loss, a=nn.Linear(6, 700), w=nn.Parameter(torch.randn(750, 700) * 0.03), o=nn.Linear(750, 4),
            small=nn.ParameterList(nn.Parameter(torch.randn(size)) for size in (1, 2, 3, 8, 16, 25, 33, 60, 61)))
x, y = batches(8)
data = {"x": x.numpy(), "y": y.numpy()}
onnx_file = path("model.onnx")
dsopt.export(model, {"x": x[0], "y": y[0]}, onnx_file)


def train(steps, **options):
    return dsopt.train(onnx_file, data, steps=steps, lr=RATE, micro_batches=1, quiet=True, **options)


whole = train(MORE, save_weights=path("whole.safetensors"))
train(STEPS, save=path("run"))
dsopt.export_universal(path("run"), path("universal"), like=onnx_file)

# What PyTorch has after the same steps.
optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
for step in range(STEPS):
    optimizer.zero_grad()
    model(x[step], y[step]).backward()
    optimizer.step()
zero = path("universal/zero")
names = {name for name, _ in model.named_parameters()}
check(set(os.listdir(zero)) == names, f"the folder has {os.listdir(zero)}")
for name, parameter in model.named_parameters():
    state = optimizer.state[parameter]
    check(set(os.listdir(f"{zero}/{name}")) == {"fp32.pt", "exp_avg.pt", "exp_avg_sq.pt", "step.pt"}, name)
    check(float(torch.load(f"{zero}/{name}/step.pt", weights_only=True)) == STEPS, f"{name}: steps")
    for key, expected in {"fp32": parameter, "exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"]}.items():
        got = torch.load(f"{zero}/{name}/{key}.pt", weights_only=True)["param"]
        check(got.shape == expected.shape, f"{name}/{key}: {got.shape}")
        error = ((got - expected).norm() / expected.norm()).item()
        check(error < 1e-4, f"{name}/{key} is {error:.1e} off")

# Out and in again: the bits of a run that was never away. The template's own values count for nothing.
train(1, save=path("template"), seed=7, weight_decay=0.3)
made = dsopt.import_universal(path("universal"), path("template"), path("in"), like=onnx_file)
check(made == path(f"in/step-{STEPS:08d}"), made)
again = train(MORE, resume=made, seed=0, save_weights=path("again.safetensors"))
check(again.weights_hash == whole.weights_hash, "the run goes on with other bits")

# As ZeRO-3's converter writes it: flat, and tensors alone.
for name in names:
    for key in ("fp32", "exp_avg", "exp_avg_sq"):
        torch.save(torch.load(f"{zero}/{name}/{key}.pt")["param"].reshape(-1).clone(), f"{zero}/{name}/{key}.pt")
    torch.save(STEPS, f"{zero}/{name}/step.pt")
flat = dsopt.import_universal(path("universal"), path("template"), path("flat"), like=onnx_file)
for file in ("model.safetensors", "optimizer.safetensors"):
    check(open(f"{made}/{file}", "rb").read() == open(f"{flat}/{file}", "rb").read(), f"flat tensors give another {file}")

# Under the graph's own names, without the model.
dsopt.export_universal(flat, path("graph"))
later = dsopt.import_universal(path("graph"), path("template"), path("later"), step=5)
check(later.endswith("step-00000005"), later)
check(open(f"{later}/model.safetensors", "rb").read() == open(f"{made}/model.safetensors", "rb").read(), "the graph's names")

# A matrix that lies the other way round in PyTorch, under a name of its own.
turned = onnx.load(onnx_file, load_external_data=False)
for entry in turned.metadata_props:
    if entry.key == "dsopt.parameters":
        rows = json.loads(entry.value)
        next(row for row in rows if row["onnx"] == "a.weight").update(torch="a.kernel", transposed=True)
        entry.value = json.dumps(rows)
onnx.save(turned, path("turned.onnx"))
dsopt.export_universal(made, path("turned"), like=path("turned.onnx"))
for key in ("fp32", "exp_avg"):
    got, straight = (torch.load(path(f"{place}.pt"))["param"] for place in (f"turned/zero/a.kernel/{key}", f"graph/zero/a.weight/{key}"))
    check(torch.equal(got, straight.T) and got.is_contiguous(), f"a.kernel/{key} does not lie the other way round")
back = dsopt.import_universal(path("turned"), path("template"), path("back"), like=path("turned.onnx"))
for file in ("model.safetensors", "optimizer.safetensors"):
    check(open(f"{back}/{file}", "rb").read() == open(f"{made}/{file}", "rb").read(), f"a turned matrix gives another {file}")

# Gradients that wait for their update have no place there.
train(3, save=path("late"), delayed_update=1)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    dsopt.export_universal(path("late"), path("lately"), like=onnx_file)
check(any("wait for their update" in str(warning.message) for warning in said), f"{said}")
check(float(torch.load(path(f"lately/zero/{name}/step.pt"), weights_only=True)) == 2, "the update that waits is counted")
fails(lambda: dsopt.import_universal(path("universal"), path("late"), path("bad"), like=onnx_file), "expected a template without")

# What is wrong, nothing of which leaves anything behind.
fails(lambda: dsopt.export_universal(path("run"), path("universal"), like=onnx_file), "zero is there already")
fails(lambda: dsopt.export_universal(path("none"), path("out")), "there is no checkpoint in")


def bring(**options):
    return dsopt.import_universal(path("universal"), path("template"), path("bad"), like=onnx_file, **options)


fails(lambda: dsopt.import_universal(path("universal"), path("template"), path("flat"), like=onnx_file), "is there already")
fails(lambda: dsopt.import_universal(path("run"), path("template"), path("bad")), "has no folder zero")
fails(lambda: dsopt.import_universal(path("graph"), path("template"), path("bad"), like=path("turned.onnx")), "a.kernel/fp32.pt is not there")
torch.save(2.0, f"{zero}/w/step.pt")
fails(bring, "different numbers of steps")
os.remove(f"{zero}/w/step.pt")
fails(bring, "step.pt is not there", "step=N")
torch.save({"param": torch.zeros(5, 5)}, f"{zero}/w/exp_avg.pt")
fails(lambda: bring(step=3), "exp_avg.pt has shape [5, 5]")
torch.save({"param": torch.zeros(750, 700, dtype=torch.long)}, f"{zero}/w/exp_avg.pt")
fails(lambda: bring(step=3), "is of torch.int64")
open(f"{zero}/w/exp_avg.pt", "wb").write(b"no tensor")
fails(lambda: bring(step=3), "cannot be read as tensors alone")
os.mkdir(f"{zero}/another")
fails(lambda: bring(step=3), "of another model: it has another")
os.remove(f"{zero}/w/exp_avg.pt")
fails(lambda: bring(step=3), "exp_avg.pt is not there")
with open(f"{flat}/optimizer.safetensors", "r+b") as file:
    file.seek(-5, 2)
    file.write(b"x")
fails(lambda: dsopt.export_universal(flat, path("out")), "has changed since the checkpoint was written")
text = open(f"{flat}/manifest.json").read()
open(f"{flat}/manifest.json", "w").write(text.replace('"K":1', '"K":2'))
fails(lambda: dsopt.export_universal(flat, path("out")), "is damaged")
train(1, save=path("sgd"), optimizer="sgd")
fails(lambda: dsopt.export_universal(path("sgd"), path("out")), "is of sgd")
check(not os.path.exists(path("bad")) or not os.listdir(path("bad")), "a draft stayed")
check(not os.path.exists(path("out")) or not os.listdir(path("out")), "a draft stayed")
shutil.rmtree(folder)
print("passed")
