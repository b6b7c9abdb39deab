"""How a case is trained: options as dsopt takes them, and the same in numpy's float64."""
from __future__ import annotations

import dataclasses
import fnmatch
import math
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass
class Options:
    steps: int = 3
    #: Micro-batches of a step over all ranks, and the reduction shards they are cut into.
    micro_batches: int = 1
    shards: int = 1
    accumulate: str = "local"
    optimizer: str = "sgd"
    lr: float = 0.05
    momentum: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    no_decay: list[str] = dataclasses.field(default_factory=list)
    lr_scale: dict[str, float] = dataclasses.field(default_factory=dict)
    clip: float = 0.0
    schedule: str = "constant"
    warmup: int = 0
    decay_steps: int = 0
    min_lr: float = 0.0

    def arguments(self, spell: Callable[[str], str] = str) -> list[str]:
        """Everything but the layout; `spell` is how parameters are named in the file."""
        words = [f"-steps={self.steps}", f"-optimizer={self.optimizer}", f"-lr={self.lr}"]
        words += [f"-momentum={self.momentum}"] if self.optimizer == "sgd" and self.momentum else []
        words += [f"-betas={self.betas[0]},{self.betas[1]}"] if self.optimizer in ("adam", "adamw", "lion", "lamb") else []
        words += [f"-eps={self.eps}"] if self.optimizer in ("adam", "adamw", "adagrad", "lamb") else []
        words += [f"-weight-decay={self.weight_decay}"]
        words += [f"-no-decay={name if name == 'rank1' else spell(name)}" for name in self.no_decay]
        words += [f"-lr-scale={spell(name)}={scale}" for name, scale in self.lr_scale.items()]
        words += [f"-grad-clip={self.clip}"] if self.clip else []
        if self.schedule != "constant":
            words += [f"-lr-schedule={self.schedule}", f"-min-lr={self.min_lr}"]
            words += [f"-lr-decay-steps={self.decay_steps}"] if self.decay_steps else []
        return words + ([f"-warmup-steps={self.warmup}"] if self.warmup else [])

    def rate(self, step: int) -> float:
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        if self.schedule == "constant":
            return self.lr
        last = self.decay_steps or self.steps
        if step >= last:
            return self.min_lr
        t = (step - self.warmup) / (last - self.warmup)
        share = 1 - t if self.schedule == "linear" else (1 + math.cos(math.pi * t)) / 2
        return self.min_lr + (self.lr - self.min_lr) * share


def draw_options(rng: np.random.Generator) -> Options:
    """Random training; how the parameters are named is up to the globs of `name_parameters`."""
    options = Options(steps=int(rng.integers(1, 5)))
    options.micro_batches = int(rng.choice([1, 2, 3, 4, 4, 6, 8]))
    divisors = [v for v in range(1, options.micro_batches + 1) if options.micro_batches % v == 0]
    options.shards = int(rng.choice(divisors))
    options.accumulate = str(rng.choice(["local", "sharded"]))
    options.optimizer = str(rng.choice(["sgd", "adam", "adamw"]))
    options.lr = float(rng.choice([0.1, 0.03, 0.01] if options.optimizer == "sgd" else [0.01, 0.003, 0.001]))
    if options.optimizer == "sgd":
        options.momentum = float(rng.choice([0.0, 0.9, 0.5]))
    else:
        options.betas = (float(rng.choice([0.9, 0.5, 0.0])), float(rng.choice([0.999, 0.9])))
        options.eps = float(rng.choice([1e-8, 1e-6, 1e-3]))
    options.weight_decay = float(rng.choice([0.0, 0.01, 0.3]))
    options.clip = float(rng.choice([0.0, 0.0, 0.1, 1.0, 100.0]))
    options.schedule = str(rng.choice(["constant", "linear", "cosine"]))
    options.warmup = int(rng.choice([0, 0, 1, 2]))
    if options.schedule != "constant":
        options.min_lr = float(rng.choice([0.0, options.lr / 10]))
        options.decay_steps = int(rng.choice([0, options.warmup + 1, options.warmup + 5]))
        # Nothing is left to decay over: an error of its own.
        if not options.decay_steps and options.steps <= options.warmup:
            options.decay_steps = options.warmup + 3
    draw_optimizer(options, rng.spawn(1)[0])
    return options


def draw_optimizer(options: Options, rng: np.random.Generator) -> None:
    """One of the rarer ones in some cases, by a generator that leaves the other choices as they are."""
    if rng.random() < 0.3:
        options.optimizer = str(rng.choice(["lion", "adagrad", "lamb", "adafactor"]))
        options.lr = float(rng.choice([0.01, 0.003, 0.001]))
        options.min_lr = min(options.min_lr, options.lr / 10)
        options.betas = (float(rng.choice([0.9, 0.5])), float(rng.choice([0.99, 0.9])))
        options.eps = float(rng.choice([1e-8, 1e-6, 1e-3]))


def name_parameters(options: Options, names: list[str], rng: np.random.Generator) -> None:
    """Options by parameter: a name is its own glob."""
    if names and rng.random() < 0.15:
        options.no_decay = [str(rng.choice([*names, "rank1"]))]
    if names and rng.random() < 0.15:
        options.lr_scale = {str(rng.choice(names)): float(rng.choice([0.0, 0.1, 3.0]))}


class Update:
    """The optimizer's state and formulas, as PyTorch has them; those of Lion and LAMB as the papers' or DeepSpeed's code."""

    def __init__(self, options: Options, parameters: dict[str, np.ndarray]):
        self.options, self.step = options, 0
        self.m = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.v = {name: np.zeros_like(value) for name, value in parameters.items()}

    def decay(self, name: str, value: np.ndarray) -> float:
        exempt = any(glob == "rank1" and value.ndim <= 1 or fnmatch.fnmatchcase(name, glob) for glob in self.options.no_decay)
        return 0.0 if exempt else self.options.weight_decay

    def __call__(self, parameters: dict[str, np.ndarray], gradients: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        options, updated = self.options, dict(parameters)
        norm = global_norm(gradients)
        factor = min(1.0, options.clip / (norm + 1e-6)) if options.clip else 1.0
        for name, gradient in gradients.items():
            value, gradient = parameters[name], gradient * factor
            lr, decay = options.rate(self.step), self.decay(name, value)
            for glob, scale in options.lr_scale.items():
                lr *= scale if fnmatch.fnmatchcase(name, glob) else 1.0
            if options.optimizer == "adafactor":
                updated[name] = self.adafactor(name, value, gradient, lr, decay)
                continue
            if options.optimizer in ("adamw", "lion"):
                value = value * (1 - lr * decay)
            elif options.optimizer != "lamb":
                gradient = gradient + decay * value
            if options.optimizer == "sgd":
                self.m[name] = options.momentum * self.m[name] + gradient
                updated[name] = value - lr * self.m[name]
                continue
            if options.optimizer == "adagrad":
                self.v[name] = self.v[name] + gradient ** 2
                updated[name] = value - lr * gradient / (np.sqrt(self.v[name]) + options.eps)
                continue
            a, b = options.betas
            if options.optimizer == "lion":
                updated[name] = value - lr * np.sign(a * self.m[name] + (1 - a) * gradient)
                self.m[name] = b * self.m[name] + (1 - b) * gradient
                continue
            self.m[name] = a * self.m[name] + (1 - a) * gradient
            self.v[name] = b * self.v[name] + (1 - b) * gradient ** 2
            t = self.step + 1
            if options.optimizer == "lamb":
                direction = self.m[name] / (np.sqrt(self.v[name]) + options.eps) + decay * value
                old, new = np.linalg.norm(value), np.linalg.norm(direction)
                trust = np.clip(old / new, 0.01, 10.0) if old > 0 and new > 0 else 1.0
                updated[name] = value - lr * math.sqrt(1 - b ** t) / (1 - a ** t) * trust * direction
                continue
            root = np.sqrt(self.v[name] / (1 - b ** t)) + options.eps
            updated[name] = value - lr / (1 - a ** t) * self.m[name] / root
        self.step += 1
        return updated

    def adafactor(self, name: str, value: np.ndarray, gradient: np.ndarray, lr: float, decay: float) -> np.ndarray:
        """PyTorch's: `m` is the rows' means of squares, `v` the columns', or that of all elements."""
        takes, least = (self.step + 1) ** -0.8, 2.0**-23
        squares = gradient**2
        if value.ndim < 2:
            variance = self.v[name] = (1 - takes) * self.v[name] + takes * squares
        else:
            self.m[name] = (1 - takes) * self.m[name] + takes * squares.mean(-1, keepdims=True)
            self.v[name] = (1 - takes) * self.v[name] + takes * squares.mean(-2, keepdims=True)
            variance = self.m[name] * self.v[name] / np.maximum(self.m[name].mean(-2, keepdims=True), least)
        update = gradient / np.sqrt(np.maximum(variance, least**2))
        length = min(lr, (self.step + 1) ** -0.5) * max(1e-3, math.sqrt(np.mean(value**2)))
        return value * (1 - lr * decay) - length * update / max(1.0, math.sqrt(np.mean(update**2)))


def global_norm(gradients: dict[str, np.ndarray]) -> float:
    return math.sqrt(sum(float(np.sum(gradient ** 2)) for gradient in gradients.values()))
