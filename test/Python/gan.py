"""A GAN of two engines, each loss with its own optimizer, in turn, beside PyTorch's own loop.

usage: gan.py SOURCE BUILD   with a Python that has torch and onnxscript
"""
import copy
import functools
import os
import re
import signal
import tempfile
import warnings

from start import source

warnings.filterwarnings("ignore")

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

import dsopt
from checks import check, fails
from sampled import NIGHTLY, sampled

fails = functools.partial(fails, kinds=(dsopt.DsoptError, RuntimeError, ValueError))
STEPS = 50 if NIGHTLY else 20


class Generator(nn.Sequential):
    def __init__(self):
        super().__init__(nn.ConvTranspose2d(6, 8, 4, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh())


class Discriminator(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.LeakyReLU(0.2),
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


def reference(generator, discriminator, then):
    """PyTorch, two micro-batches a step: the losses of both in turn; `then` sees each step's end."""
    losses = DiscriminatorLoss(generator, discriminator), GeneratorLoss(generator, discriminator)
    optimizers = adam(discriminator, 4e-4), adam(generator, 2e-4)
    values = []
    for at, (real, first, second) in enumerate(data):
        for inputs, loss, optimizer in zip(((real, first), (second,)), losses, optimizers):
            optimizer.zero_grad()
            whole = 0.0
            for rows in (slice(0, 8), slice(8, 16)):
                one = loss(*(value[rows] for value in inputs))
                (one / 2).backward()
                whole += one.item() / 2
            optimizer.step()
            values.append(whole)
        then(at, losses[0])
    return values


def engines(generator, discriminator, resume=({}, {}), **options):
    real, first, second = (value[:8] for value in data[0])
    d = dsopt.initialize(DiscriminatorLoss(generator, discriminator), {"real": real, "z": first}, optimizer=adam(discriminator, 4e-4), **options,
                         **resume[0])
    g = dsopt.initialize(GeneratorLoss(generator, discriminator), {"z": second}, optimizer=adam(generator, 2e-4), **options, **resume[1])
    return d, g


def step(engine, *inputs):
    """The mean loss of a step."""
    whole = engine._opened and engine.gradient_accumulation_steps == 1
    parts = [slice(None)] if whole else [slice(0, 8), slice(8, 16)]
    losses = []
    for rows in parts:
        losses.append(engine.backward(engine(*(value[rows] for value in inputs))))
        engine.step()
    return sum(losses) / len(losses)


def turns(d, g, steps):
    return [loss for real, first, second in steps for loss in (step(d, real, first), step(g, second))]


def apart(modules, want):
    """How far they are from PyTorch's, each tensor against its own largest value."""
    pairs = ((value, want[name]) for name, value in Losses(*modules).state_dict().items())
    return max(float((got - value).abs().max() / value.abs().max()) for got, value in pairs if value.is_floating_point())


def check_losses(got, want, what):
    far = max(abs(float(one) - two) / abs(two) for one, two in zip(got, want))
    check(far < 1e-6 and len(got) == len(want), f"{what}: losses {far:.1e} off")
    return far


# Many steps of each beside PyTorch: losses, weights and running statistics, in every layout the same bits.
modules, middle = copy.deepcopy(start), {}
want = reference(*modules, then=lambda at, losses: at == 9 and middle.update(copy.deepcopy(losses.state_dict())))
state = Losses(*modules).state_dict()
hashes = set()
place = tempfile.mkdtemp()
for options in sampled(({"micro_batches": 2}, {"dp": 2, "zero": 3}, {"pp": 2}), 2):
    modules = copy.deepcopy(start)
    d, g = engines(*modules, reduction_shards=2, **options)
    dsopt.in_turn(d, g)
    losses = turns(d, g, data[:10])
    if not hashes:  # the modules as they are then, and checkpoints
        check(len(list(g.parameters())) == 12 and apart(modules, middle) < 1e-6, f"{apart(modules, middle):.1e} off after 10 steps")
        saved = d.save_checkpoint(place + "/d"), g.save_checkpoint(place + "/g")
    losses += turns(d, g, data[10:])
    far = check_losses(losses, want, options)
    ends = d.finish(), g.finish()
    check(apart(modules, state) < 1e-6, f"{options}: weights {apart(modules, state):.1e} off")
    hashes |= {result.weights_hash for result in ends}
    check(len(hashes) == 1, f"{options}: other bits, {hashes}")
    print(options, f"losses {far:.1e}, weights {apart(modules, state):.1e} off PyTorch's", flush=True)

# Checkpoints of both go on, in another layout and from other modules, with the same bits.
d, g = engines(Generator(), Discriminator(), [{"resume": path} for path in saved], reduction_shards=2, dp=2, zero=2)
dsopt.in_turn(d, g)
turns(d, g, data[10:])
check({d.finish().weights_hash, g.finish().weights_hash} == hashes, "a checkpoint changed the bits")
print("resumed", flush=True)

# DeepSpeed's initialize, where the first batch is the example and a part of the parameters is given.
from dsopt import deepspeed

modules = copy.deepcopy(start)
config = {"train_batch_size": 16, "gradient_accumulation_steps": 2, "gradient_clipping": 0}
d, g = [deepspeed.initialize(model=loss(*modules), model_parameters=trained.parameters(), config={
    **config, "optimizer": {"type": "Adam", "params": {"lr": rate, "betas": [0.5, 0.999]}}})[0]
    for loss, trained, rate in ((DiscriminatorLoss, modules[1], 4e-4), (GeneratorLoss, modules[0], 2e-4))]
dsopt.in_turn(d, g)
check_losses(turns(d, g, data[:5]), want[:10], "deepspeed.initialize")
check(all(one.requires_grad for one in d.module.parameters()), "requires_grad was left changed")

# What an engine measures is of now, and of both; other weights take their place.
real, first, second = data[5]
measured = d.eval()(real[:8], first[:8])
d.train()
other = copy.deepcopy(modules[1].state_dict())
check(abs(float(measured) - float(step(d, real, first))) < 0.2, "eval()")
d.load_weights({f"discriminator.{name}": value for name, value in other.items() if value.is_floating_point()})
d.bring_home()
check(all(torch.equal(value, other[name]) for name, value in modules[1].state_dict().items() if value.is_floating_point()), "load_weights")
for weights, words in (({}, "there are no weights"), ({"nothing": first}, "'nothing' is none of the program's weights"),
                       ({"discriminator.0.bias": first}, "'discriminator.0.bias' has shape [16, 6, 1, 1], the model's [8]"),
                       ({"discriminator.0.bias": torch.zeros(8, dtype=torch.int64)}, "'discriminator.0.bias' is I64, the model's F32"),
                       ({"generator.0.weight": modules[0][0].weight}, "'generator.0.weight' is trained by another engine in turn")):
    fails(lambda: d.load_weights(weights), words)

# One engine's end is told to the other, whose weights are both then.
step(d, real, first)
d.finish()
home = copy.deepcopy(modules[1].state_dict())
step(g, second)
g.finish()
trained = dict(modules[1].named_parameters())
check(all(torch.equal(value, home[name]) for name, value in trained.items()), "what a finished engine trained")
check(not torch.equal(modules[1].state_dict()["3.running_mean"], home["3.running_mean"]), "running statistics go on")
print("ends", flush=True)

# What means nothing is refused; what fails ends in a message.
class Part(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))).square().mean()


def part(first, second, trained, **options):
    return dsopt.initialize(Part(first, second), {"x": torch.ones(4, 3)}, parameters=trained.parameters(), lr=1e-2, **options)


def steps(engine):
    engine.backward(engine(torch.ones(4, 3)))
    engine.step()


a, b = nn.Linear(3, 4), nn.Linear(4, 2)
one, same = part(a, b, a), part(a, b, a)
two = part(a, b, b, on_step=lambda record: record["step"] < 1, save_weights=place + "/stopped")
fails(lambda: dsopt.in_turn(one), "in_turn takes two engines or more, each once; got 1, 1 of them different")
fails(lambda: dsopt.in_turn(one, one), "got 2, 1 of them different")
fails(lambda: dsopt.in_turn(one, two, same), "two engines in turn train 'first.", "expected that one does")
dsopt.in_turn(one, two)
fails(lambda: dsopt.in_turn(two, same), "an engine is in turn with others already")
for _ in range(2):
    steps(one)
    steps(two)
while two.stopped is None:  # by its callback
    two.global_steps
steps(one)
result = two.finish()
one.bring_home()
check(result.status == "stopped" and np.array_equal(dsopt.read_weights(result.weights)["second.weight"], b.weight.detach()), "what a stopped engine trained")
one.close()
fails(lambda: steps(one), "the engine is closed")
elsewhere = nn.Linear(3, 4), nn.Linear(4, 2)
fails(lambda: dsopt.in_turn(same, part(*elsewhere, elsewhere[1])), "an engine in turn, of Part, has no parameter that another one trains")
two = part(a, b, b)
dsopt.in_turn(same, two)
steps(two)
os.kill(two._run._process.pid, signal.SIGKILL)
fails(lambda: steps(same), "dsopt ended with status -9")
two.close()
print("refused", flush=True)

# In bf16 an engine has the other one's part rounded alone; what it hands out and saves is whole.
hashes = set()
for options in ({"micro_batches": 2}, {"dp": 2, "zero": 3}):
    torch.manual_seed(1)
    a, b = nn.Linear(3, 4), nn.Linear(4, 2)
    one, two = (part(a, b, trained, precision="bf16", reduction_shards=2, **options) for trained in (a, b))
    dsopt.in_turn(one, two)
    for engine in (one, two, one, two):
        for _ in range(engine.gradient_accumulation_steps):
            engine.backward(engine(torch.ones(4 * engine.data_parallel_size, 3)))
            engine.step()
    saved = two.save_checkpoint(place + "/narrow")
    measured = float(two.eval()(torch.ones(4 * two.data_parallel_size, 3)))
    one.bring_home()
    here = copy.deepcopy(a.state_dict())
    hashes |= {engine.finish().weights_hash for engine in (one, two)}
    check(all(torch.equal(value, here[name]) for name, value in a.state_dict().items()), "what each engine hands out")
    check(abs(measured - float(Part(a, b)(torch.ones(4, 3)))) < 0.1 * measured, f"{measured} in bf16, {Part(a, b)(torch.ones(4, 3))}")
    held = dsopt.read_weights(saved + "/replaced.safetensors")
    check(set(held) == {"first.weight"} and np.array_equal(held["first.weight"], here["weight"].numpy()), "a checkpoint in bf16")
check(len(hashes) == 1, f"bf16: {hashes}")
print("bf16", flush=True)

# The example of docs/FromDeepSpeed.md.
text = open(os.path.join(source, "docs", "FromDeepSpeed.md")).read()
(code,) = re.findall(r"```python\n(class DiscriminatorLoss.*?)```", text, re.S)
generator, discriminator = copy.deepcopy(start)
scope = {"G": generator, "D": discriminator, "bce": cross_entropy, "torch": torch, "dsopt": dsopt, "images": data[0][0],
         "noise": lambda rows: torch.randn(rows, 6, 1, 1), "loader": [real for real, _, _ in data[:3]]}
exec(code, scope)
check([scope[name].finish().steps for name in "dg"] == [3, 3] and apart((generator, discriminator), Losses(*start).state_dict()) > 1e-4, "the example")
print("passed")
