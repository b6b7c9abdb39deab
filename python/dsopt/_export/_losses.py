"""Losses and logarithms that an exporter lacks, or writes with less than they mean, spelled out for the compiler to recognize."""
from __future__ import annotations

from typing import Any

import torch

from .._compat import nn_function
from ._recorder import Recorder, rule
from ._rules import value_of


def _reduced(values: Any, reduction: int) -> Any:
    return values if reduction == 0 else values.mean() if reduction == 1 else values.sum()


@rule(nn_function("binary_cross_entropy"))
def _binary_cross_entropy(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """The older exporter lacks it."""
    p, target = arguments[:2]
    weight = value_of(arguments, keywords, 2, "weight", None)
    least = torch.full((), -100.0, dtype=p.dtype)
    losses = (target - 1) * torch.maximum(torch.log1p(-p), least) - target * torch.maximum(torch.log(p), least)
    return _reduced(losses if weight is None else losses * weight, value_of(arguments, keywords, 3, "reduction", 1))


@rule(nn_function("soft_margin_loss"))
def _soft_margin_loss(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    losses = torch.log1p(torch.exp(-arguments[0] * arguments[1]))
    return _reduced(losses, value_of(arguments, keywords, 2, "reduction", 1))


@rule(nn_function("softplus"))
def _softplus(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """The older exporter leaves the threshold out."""
    x = arguments[0]
    beta = value_of(arguments, keywords, 1, "beta", 1)
    scaled = x * beta if beta != 1 else x
    softplus = function(scaled) / beta if beta != 1 else function(scaled)
    return torch.where(scaled > value_of(arguments, keywords, 2, "threshold", 20), x, softplus)


@rule(torch.logaddexp, torch.Tensor.logaddexp)
def _logaddexp(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    return torch.log(torch.exp(arguments[0]) + torch.exp(value_of(arguments, keywords, 1, "other", None)))


@rule(torch.logaddexp2, torch.Tensor.logaddexp2)
def _logaddexp2(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    return torch.log2(torch.exp2(arguments[0]) + torch.exp2(value_of(arguments, keywords, 1, "other", None)))


@rule(torch.clamp, torch.clip, torch.Tensor.clamp, torch.Tensor.clip)
def _clamp(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Between equal bounds PyTorch gives the whole gradient to what is taken, and to the value where all are equal."""
    if keywords.get("out") is not None:
        return recorder.change(function, arguments, keywords)
    x = arguments[0]
    low, high = value_of(arguments, keywords, 1, "min", None), value_of(arguments, keywords, 2, "max", None)
    if not isinstance(low, torch.Tensor) or not isinstance(high, torch.Tensor):
        return function(*arguments, **keywords)
    between = torch.minimum(torch.maximum(x, low), high)
    taken = torch.where(x < low, low, torch.where(x > high, high, x))
    return torch.where(low == high, taken, between)
