"""Runs over PyTorch's loaders that are killed and go on: the order, the losses and the hash of the run that never stopped,
whatever draws (samplers, generators, data, workers), and under other seeds; other data is refused.

usage: orders.py SOURCE BUILD [child FOLDER]
"""
import itertools
import os
import random
import signal
import subprocess
import sys
import time
import warnings

from exports import build, check, path, source
from sampled import sampled
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, RandomSampler, Sampler, WeightedRandomSampler
import dsopt
from dsopt._data import Loader, Steps

warnings.simplefilter("ignore")
ROWS, STEPS = 22, 24
x, y = torch.randn(ROWS, 6), torch.randn(ROWS, 1)


class Rows(Dataset):
    """Rows that `draws` changes as they are read."""

    def __init__(self, draws=None):
        self.draws, self.read = draws, 0
        self.generator = np.random.default_rng(7)

    def __len__(self):
        return ROWS

    def __getitem__(self, at):
        self.read += 1
        noise = {"torch": lambda: float(torch.rand(())), "numpy": np.random.rand, "python": random.random,
                 "own": self.generator.random, "counter": lambda: self.read}.get(self.draws, lambda: 0.0)()
        return x[at] + noise, y[at]


class Stream(IterableDataset):
    """Rows without a length, in an order that is drawn."""

    def __iter__(self):
        return iter([(x[at], y[at]) for at in torch.randperm(ROWS)])


class Turning(Sampler):
    """An order that follows from how often it was asked for."""

    def __init__(self):
        self.turn = 0

    def __len__(self):
        return ROWS

    def __iter__(self):
        self.turn += 1
        return iter([(at * 3 + self.turn) % ROWS for at in range(ROWS)])


def generator():
    return torch.Generator().manual_seed(3)


MAKES = {
    "a generator": lambda: DataLoader(Rows(), 4, shuffle=True, generator=generator(), drop_last=True),
    "the process's generator": lambda: DataLoader(Rows(), 4, shuffle=True),
    "replacement": lambda: DataLoader(Rows(), 4, sampler=RandomSampler(Rows(), replacement=True, generator=generator())),
    "weights": lambda: DataLoader(Rows(), 4, sampler=WeightedRandomSampler([1.0] * ROWS, 20)),
    "a sampler with state": lambda: DataLoader(Rows(), 4, sampler=Turning()),
    "DistributedSampler": lambda: DataLoader(Rows(), 4, sampler=DistributedSampler(Rows(), 2, 1, seed=5)),
    "no length": lambda: DataLoader(Stream(), 4, drop_last=True),
    **{f"data that draws from {draws}": lambda draws=draws: DataLoader(Rows(draws), 4, shuffle=True, generator=generator())
       for draws in ("torch", "numpy", "python", "own", "counter")},
    "workers": lambda: DataLoader(Rows("torch"), 4, shuffle=True, generator=generator(), num_workers=2),
    "workers that stay": lambda: DataLoader(Rows("own"), 4, shuffle=True, num_workers=1, persistent_workers=True),
}


def seed(number):
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


def read(make, place="", step=0):
    """The steps of a run, each with the place that a checkpoint after it keeps."""
    loader = Loader(make(), "")
    loader.inputs = {"x": [], "y": []}
    loader.order.begin(place, "run")
    loader.open()
    cut = Steps(loader, 1, steps=STEPS)
    cut.skip(step, step, "run")
    return [([one["x"].tobytes() for one in items], cut.place()) for items in itertools.islice(cut, STEPS - step)]


def net():
    seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))


def train(make, model=path("model.onnx"), steps=STEPS, **options):
    return dsopt.train(model, make(), lr=1e-2, steps=steps, **options)


KILLED = MAKES["data that draws from torch"]
if sys.argv[3:4] == ["child"]:
    seed(1)
    train(KILLED, sys.argv[4] + "/model.onnx", save=sys.argv[4] + "/killed", save_every=1, save_keep=99,
          on_step=lambda record: time.sleep(0.2))
    sys.exit()

for name, make in MAKES.items():
    seed(1)
    whole = read(make)
    check(len(whole) == STEPS, name)
    for at in sampled((2, 7, 10, 17), 2) if "workers" in name else sampled(range(1, STEPS), 8):
        seed(at + 2)
        rest = read(make, whole[at - 1][1], at)
        check([step for step, _ in rest] == [step for step, _ in whole[at:]], f"{name}: another order after step {at}")
epochs = [step for step, _ in read(MAKES["DistributedSampler"])]
check(epochs[:2] != epochs[2:4], "DistributedSampler is not told the pass")
print("orders", flush=True)

dsopt.export(net(), (x[:4], y[:4]), path("model.onnx"), loss=lambda outputs, inputs: ((outputs - inputs["labels"]) ** 2).mean())

# 20 places at night: the losses and the hash of the run that never stopped.
for name, places in (("a generator", sampled(range(2, 22), 6)), ("data that draws from torch", (5, 13)), ("DistributedSampler", (6,))):
    seed(1)
    save = path(name.replace(" ", "-"))
    whole = train(MAKES[name], save=save, save_every=1, save_keep=99)
    for at in places:
        seed(at)
        rest = train(MAKES[name], resume=f"{save}/step-{at:08d}")
        check(rest.losses == whole.losses[at:] and rest.weights_hash == whole.weights_hash, f"{name}: another run after step {at}")
try:
    train(MAKES["weights"], resume=path("a-generator"), steps=STEPS + 1)
    sys.exit("wrong: other data goes on")
except dsopt.DsoptError as error:
    check("the loader now yields others, or in another order" in str(error) and "iter(loader)" in str(error), error)
print("places", flush=True)

# A process that is killed with all of its own.
seed(1)
whole = train(KILLED)
child = subprocess.Popen([sys.executable, __file__, source, build, "child", os.path.dirname(path("x"))], start_new_session=True,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not os.path.exists(path("killed/step-00000008/manifest.json")):
    check(child.poll() is None, "the run ended before it was killed")
    time.sleep(0.05)
os.killpg(child.pid, signal.SIGKILL)
child.wait()
seed(2)
rest = train(KILLED, save=path("killed"), resume="auto")
check(rest.weights_hash == whole.weights_hash and len(rest.losses) < STEPS, "after a kill")
print("passed")
