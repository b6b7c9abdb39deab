"""A GAN of two engines, each loss with its own optimizer, in turn, beside PyTorch's own loop.

usage: gan.py SOURCE BUILD   with a Python that has torch and onnxscript
"""
import copy
import functools
import os
import sys
import warnings

source, build = map(os.path.abspath, sys.argv[1:3])
os.environ["DSOPT_BUILD"] = build
sys.path.insert(0, os.path.join(source, "python"))
warnings.filterwarnings("ignore")

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

import dsopt
from checks import check, fails

fails = functools.partial(fails, kinds=(dsopt.DsoptError, RuntimeError, ValueError))
STEPS = 50


class Generator(nn.Sequential):
    def __init__(self):
        super().__init__(nn.ConvTranspose2d(6, 8, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh())


class Discriminator(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 12, 3, padding=1), nn.BatchNorm2d(12), nn.LeakyReLU(0.2),
                         nn.Flatten(), nn.Linear(192, 1))


class Losses(nn.Module):
    def __init__(self, generator, discriminator):
        super().__init__()
        self.generator, self.discriminator = generator, discriminator


class DiscriminatorLoss(Losses):
    def forward(self, real, z):
        real, fake = self.discriminator(real), self.discriminator(self.generator(z).detach())
        return cross_entropy(real, torch.ones_like(real)) + cross_entropy(fake, torch.zeros_like(fake))


class GeneratorLoss(Losses):
    def forward(self, z):
        fake = self.discriminator(self.generator(z))
        return cross_entropy(fake, torch.ones_like(fake))


def adam(module, lr):
    return torch.optim.Adam(module.parameters(), lr=lr, betas=(0.5, 0.999))


torch.manual_seed(5)
start = Generator(), Discriminator()
ramp = torch.linspace(-1, 1, 8).expand(1, 8, 8)
data = [(torch.tanh(ramp * torch.randn(16, 1, 1, 1) + 0.1 * torch.randn(16, 1, 8, 8)), torch.randn(16, 6, 1, 1), torch.randn(16, 6, 1, 1))
        for _ in range(STEPS)]


def reference():
    """PyTorch: two micro-batches a step."""
    generator, discriminator = copy.deepcopy(start)
    losses = DiscriminatorLoss(generator, discriminator), GeneratorLoss(generator, discriminator)
    optimizers = adam(discriminator, 4e-4), adam(generator, 2e-4)
    values = []
    for real, first, second in data:
        for inputs, loss, optimizer in zip(((real, first), (second,)), losses, optimizers):
            optimizer.zero_grad()
            whole = 0.0
            for rows in (slice(0, 8), slice(8, 16)):
                one = loss(*(value[rows] for value in inputs))
                (one / 2).backward()
                whole += one.item() / 2
            optimizer.step()
            values.append(whole)
    return values, {**losses[0].state_dict()}


def engines(modules, **options):
    generator, discriminator = modules
    real, first, second = (value[:8] for value in data[0])
    d = dsopt.initialize(DiscriminatorLoss(generator, discriminator), {"real": real, "z": first}, optimizer=adam(discriminator, 4e-4), **options)
    g = dsopt.initialize(GeneratorLoss(generator, discriminator), {"z": second}, optimizer=adam(generator, 2e-4), **options)
    return d, g


def step(engine, *inputs):
    losses = []
    for at in range(engine.gradient_accumulation_steps):
        rows = slice(8 * at, 8 * at + 8) if engine.gradient_accumulation_steps > 1 else slice(None)
        losses.append(engine.backward(engine(*(value[rows] for value in inputs))))
        engine.step()
    return sum(losses) / len(losses)


def train(**options):
    modules = copy.deepcopy(start)
    d, g = engines(modules, reduction_shards=2, **options)
    dsopt.in_turn(d, g)
    values = []
    for real, first, second in data:
        values += [step(d, real, first), step(g, second)]
    values = [float(value) for value in values]
    hashes = [d.finish().weights_hash, g.finish().weights_hash]
    return values, {**d.module.state_dict()}, hashes


def apart(got, want):
    return float((got - want).abs().max() / want.abs().max())


want, state = reference()
hashes = []
for options in ({"micro_batches": 2}, {"dp": 2, "zero": 3}, {"pp": 2}, {"dp": 2, "pp": 2, "zero": 2, "micro_batches": 1}):
    got, weights, both = train(**options)
    hashes.append(both)
    far = max(abs(one - two) / abs(two) for one, two in zip(got, want))
    off = {name: apart(weights[name], value) for name, value in state.items() if value.is_floating_point()}
    print(options, both[0][:12], f"losses {far:.1e}, weights {max(off.values()):.1e} of {max(off, key=off.get)} off PyTorch's", flush=True)
    print({k: f"{v:.1e}" for k, v in off.items()}, both)
