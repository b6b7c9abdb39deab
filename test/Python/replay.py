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
from dsopt._export._random import Draws
from dsopt._export._settings import exporting

_RANDOM = {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial", "Dropout"}


class Program(Draws):
    """What a program draws in a step and a micro-batch, in the order of the calls."""

    def __init__(self, step, place):
        super().__init__(keeps=True)
        self.key = {"step": step, "micro_batch": place}

    def drawn(self, function, arguments, keywords):
        like, name, number = function(*arguments, **keywords), function.__name__.rstrip("_"), self.count
        self.count += 1
        first = uniform(tuple(like.shape), number, **self.key)
        if name in ("rand", "rand_like"):
            value = first
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


def draws_of(path):
    """How many operations of a file draw."""
    return sum(node.op_type in _RANDOM for node in onnx.load(path, load_external_data=False).graph.node)


def replayed(model, inputs, steps, loss=None, count=None):
    """The loss of each step at the model's weights, with inputs of one micro-batch a step."""
    job = Job(model, {name: value[0] for name, value in inputs.items()}, loss)
    Probe(job).run()
    losses = []
    for step in range(steps):
        draws = Program(step, 0)
        with exporting(model, job.code), torch.no_grad():
            module = job.module(Reference(model, draws))
            losses.append(float(module(*(inputs[name][step] for name in job.names))))
        if count is not None and draws.count != count:
            sys.exit(f"wrong: forward draws {draws.count} times, the file {count} times")
    return losses
