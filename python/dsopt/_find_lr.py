"""The learning-rate finder: a short run in which the rate rises, and what its losses say."""
from __future__ import annotations

import math
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import Any, List, Optional

import numpy as np

from ._callbacks import Callback, Record
from ._run import Run
from ._tools import DsoptError, find_tool

_SMOOTH = 0.9  # of the mean that losses go into
_DIVERGED = 4.0  # times the least one
_LEAST = 5  # steps that say something
_OWN = ("lr", "lr_schedule", "lr_params", "warmup_steps", "steps", "epochs", "save", "save_weights", "save_onnx",
        "eval_data", "callbacks", "log_every")


@dataclass
class FoundRate:
    """What a range test has shown. Its text is a table."""
    suggestion: float  #: where the loss falls most steeply, by the logarithm of the rate
    lowest: float  #: the rate at which it was lowest; above it training gets worse
    rates: List[float] = field(repr=False)  #: of each step
    losses: List[float] = field(repr=False)
    smoothed: List[float] = field(repr=False)  #: the losses' running mean
    report: Optional[str] = None  #: the page with its figures

    def __str__(self) -> str:
        rows = range(0, len(self.rates), max(1, math.ceil(len(self.rates) / 20)))
        lines = [f"{'lr':>12} {'loss':>10} {'smoothed':>10}"]
        lines += [f"{self.rates[at]:12.4g} {self.losses[at]:10.4f} {self.smoothed[at]:10.4f}" for at in rows]
        return "\n".join([*lines, f"suggestion {self.suggestion:.3g}, lowest loss at {self.lowest:.3g}"])


class _Smoothed(Callback):
    """The losses' running mean; ends the run when it has grown far beyond its least."""

    def __init__(self) -> None:
        self.rates: List[float] = []
        self.losses: List[float] = []
        self.values: List[float] = []
        self.grew = False
        self._sum = 0.0

    def on_step(self, record: Record) -> Any:
        if record["loss"] is None:
            return None
        self._sum = _SMOOTH * self._sum + (1 - _SMOOTH) * record["loss"]
        self.rates.append(record["lr"])
        self.losses.append(record["loss"])
        self.values.append(self._sum / (1 - _SMOOTH ** len(self.losses)))
        self.grew = self.grew or self.values[-1] > _DIVERGED * min(self.values) > 0
        return not self.grew


def _suggest(rates: List[float], values: List[float]) -> "tuple[float, float]":
    """The rates at which the loss falls most steeply, and is lowest."""
    lowest = int(np.argmin(values))
    if lowest < 2:
        raise DsoptError(f"the loss does not fall between the rates {rates[0]:.3g} and {rates[-1]:.3g}: give a smaller "
                         "min_lr, or more steps")
    slopes = np.gradient(np.array(values[:lowest + 1]), np.log(rates[:lowest + 1]))
    return rates[int(np.argmin(slopes))], rates[lowest]


def find_lr(path: "os.PathLike[str] | str", data: Any, *, min_lr: float = 1e-5, max_lr: float = 1e-2,
            steps: int = 100, report: "Optional[os.PathLike[str] | str]" = None, config: Any = None,
            **options: Any) -> FoundRate:
    """Trains for a few steps while the learning rate rises in equal parts from `min_lr` to `max_lr`
    (-lr-schedule=range-test) or the loss has grown fourfold, and suggests a rate. The model's file stays as it is.

    report   the page to write with loss and rate by step (dsopt-report)
    options  as for `train`: the optimizer, the layout, the batch
    """
    wrong = [name for name in _OWN if name in options]
    if wrong:
        raise ValueError(f"find_lr decides {', '.join(wrong)} by itself")
    if not 0 < min_lr < max_lr or steps < _LEAST:
        raise ValueError(f"min_lr={min_lr}, max_lr={max_lr}, steps={steps}: expected 0 < min_lr < max_lr and {_LEAST} steps or more")
    rate = (max_lr / min_lr - 1) / (steps - 1)
    seen = _Smoothed()
    with tempfile.TemporaryDirectory(prefix="dsopt-") as folder:
        log = os.path.join(folder, "find-lr.jsonl")
        run = Run(path, data, config=config, log=log, steps=steps, lr=min_lr, lr_schedule="range-test",
                  lr_params=f"lr_range_test_step_size=1,lr_range_test_step_rate={rate!r}", callbacks=[seen], **options)
        try:
            run.result()
        except DsoptError as error:
            # A rate far too large ends in a loss that is no number, which is what was looked for.
            if error.status != 2 or not seen.values:
                raise
            seen.grew = True
        finally:
            run.close()
        if len(seen.values) < min(steps, _LEAST):
            if seen.grew:
                raise DsoptError(f"with a rate of {seen.rates[-1]:.3g}, at step {len(seen.rates)} of {steps}, the loss is "
                                 "far above where it began: give a smaller min_lr and max_lr")
            raise DsoptError(f"the data ended after {len(seen.values)} steps, expected {steps}")
        suggestion, lowest = _suggest(seen.rates, seen.values)
        if report is not None:
            done = subprocess.run([find_tool("dsopt-report"), log, "-o", os.fspath(report)], capture_output=True, text=True)
            if done.returncode:
                raise DsoptError(done.stderr.strip(), done.returncode)
    return FoundRate(suggestion, lowest, seen.rates, seen.losses, seen.values, os.fspath(report) if report else None)
