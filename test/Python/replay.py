"""The losses that PyTorch computes of the numbers that a program draws: a reference for what forward draws.

The rule of the program's numbers is in test/Conversion/KernelToLLVM/Inputs/philox.py.
"""
import math
import os
import sys

import numpy as np
import onnx
import torch

from exports import source

sys.path.append(os.path.join(source, "test", "Conversion", "KernelToLLVM", "Inputs"))
from philox import uniform

from dsopt._export._check import Reference
from dsopt._export._inputs import Job
from dsopt._export._probe import Probe
from dsopt._export._random import Draws, Sides
from dsopt._export._recorder import Recorder
from dsopt._export._settings import exporting
from dsopt._export._write import find_branches

_RANDOM = {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial", "Dropout"}


class Program(Draws):
    """What a program draws in a step and a micro-batch, in the order of the calls; `numbers` of those that a forward gets to."""

    def __init__(self, step, place, numbers=None):
        super().__init__(keeps=True)
        self.key, self.numbers = {"step": step, "micro_batch": place}, numbers

    def drawn(self, function, arguments, keywords):
        like, name = function(*arguments, **keywords), function.__name__.rstrip("_")
        number = self.count if self.numbers is None else self.numbers[self.count]
        self.count += 1
        first = uniform(tuple(like.shape), number, **self.key)
        if name in ("rand", "rand_like"):
            value = first
        elif name == "uniform":
            low, high = arguments[1:] if len(arguments) == 3 else (keywords.get("from", 0.0), keywords.get("to", 1.0))
            value = first * (high - low) + low
        elif name in ("randn", "randn_like"):
            second = uniform(tuple(like.shape), number, which=1, **self.key)
            value = np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * math.pi * second)
        elif name == "bernoulli":
            value = first < arguments[0].detach().double().numpy()
        elif name == "randperm":
            value = np.argsort(first, kind="stable")
        elif name == "randint":
            numbers = [one for one in arguments if isinstance(one, int)]
            low, high = (0, *numbers)[-2:]
            value = low + np.floor(first * (high - low))
        else:
            raise ValueError(f"no rule for {name}")
        return torch.from_numpy(np.asarray(value)).to(like.dtype)


class _Numbers(Sides):
    """Which of a program's draws are in the sides of branches that are taken."""

    def __init__(self, step, place):
        super().__init__(Draws())
        self.program, self.numbers = Program(step, place), []

    def drawn(self, function, arguments, keywords):
        if self.live:
            self.numbers.append(self.count)
        self.program.count = self.count
        self.count += 1
        return self.program.drawn(function, arguments, keywords)


def program_of(job, values, step, place):
    """What PyTorch draws of a program's numbers: of a model with branches those of the sides that it takes."""
    if not job.branches.any():
        return Program(step, place)
    sides = _Numbers(step, place)
    with exporting(job.model, job.code), torch.no_grad():
        job.module(Recorder(job.model, sides, job.branches))(*values)
    return Program(step, place, sides.numbers)


def decided(model, inputs, loss=None):
    """What is to be exported, with what its draws decide."""
    job = Job(model, inputs, loss)
    Probe(job).run()
    find_branches(job)
    return job


def trained(model, inputs, steps, micro_batches, optimizer, loss=None):
    """The loss of each step of PyTorch's own training with the program's draws; the model's weights afterwards are its."""
    job = decided(model, {name: value[0] for name, value in inputs.items()}, loss)
    losses, idle = [], set()
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for place in range(micro_batches):
            values = [inputs[name][step * micro_batches + place] for name in job.names]
            draws = program_of(job, values, step, place)
            with exporting(model, job.code):
                one = job.module(Reference(model, draws))(*values) / micro_batches
                one.backward()
            total += float(one.detach())
        idle |= {name for name, parameter in model.named_parameters() if parameter.grad is None}
        optimizer.step()
        losses.append(total)
    return losses, idle


def draws_of(path):
    """How many operations of a file draw."""
    return sum(node.op_type in _RANDOM for node in onnx.load(path, load_external_data=False).graph.node)


def replayed(model, inputs, steps, loss=None, count=None):
    """The loss of each step at the model's weights, with inputs of one micro-batch a step."""
    job = decided(model, {name: value[0] for name, value in inputs.items()}, loss)
    losses = []
    for step in range(steps):
        draws = program_of(job, [inputs[name][step] for name in job.names], step, 0)
        with exporting(model, job.code), torch.no_grad():
            module = job.module(Reference(model, draws))
            losses.append(float(module(*(inputs[name][step] for name in job.names))))
        if count is not None and not job.branches.any() and draws.count != count:
            sys.exit(f"wrong: forward draws {draws.count} times, the file {count} times")
    return losses
