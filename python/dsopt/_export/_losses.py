"""Losses and logarithms that an exporter lacks, or writes with less than they mean, spelled out for the compiler to recognize."""
from __future__ import annotations

from typing import Any

import torch

from .._compat import nn_function
from . import _operators as operators
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


@rule(nn_function("l1_loss"))
def _l1_loss(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    return _reduced((arguments[0] - arguments[1]).abs(), value_of(arguments, keywords, 2, "reduction", 1))


@rule(nn_function("smooth_l1_loss"))
def _smooth_l1_loss(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    apart, beta = (arguments[0] - arguments[1]).abs(), value_of(arguments, keywords, 3, "beta", 1.0)
    losses = torch.where(apart < beta, 0.5 * apart * apart / beta, apart - 0.5 * beta) if beta else apart
    return _reduced(losses, value_of(arguments, keywords, 2, "reduction", 1))


@rule(nn_function("huber_loss"))
def _huber_loss(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    apart, delta = (arguments[0] - arguments[1]).abs(), value_of(arguments, keywords, 3, "delta", 1.0)
    losses = torch.where(apart < delta, 0.5 * apart * apart, delta * (apart - 0.5 * delta))
    return _reduced(losses, value_of(arguments, keywords, 2, "reduction", 1))


@rule(nn_function("softplus"))
def _softplus(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """The older exporter leaves the threshold out."""
    x, beta = arguments[0], value_of(arguments, keywords, 1, "beta", 1)
    threshold = value_of(arguments, keywords, 2, "threshold", 20)
    if threshold >= 20:  # beyond, x is what softplus rounds to
        return function(*arguments, **keywords)
    return torch.where(x * beta > threshold, x, function(x * beta) / beta)


@rule(torch.logaddexp, torch.Tensor.logaddexp)
def _logaddexp(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    return torch.log(torch.exp(arguments[0]) + torch.exp(value_of(arguments, keywords, 1, "other", None)))


@rule(torch.logaddexp2, torch.Tensor.logaddexp2)
def _logaddexp2(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    powers = [torch.pow(2.0, x) for x in (arguments[0], value_of(arguments, keywords, 1, "other", None))]
    return torch.log2(powers[0] + powers[1])


@rule(torch.pairwise_distance)
def _pairwise_distance(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """The older exporter leaves `eps` out."""
    x1 = value_of(arguments, keywords, 0, "x1", None)
    apart = x1 - value_of(arguments, keywords, 1, "x2", None) + value_of(arguments, keywords, 3, "eps", 1e-6)
    return torch.linalg.vector_norm(apart, ord=value_of(arguments, keywords, 2, "p", 2.0), dim=-1,
                                    keepdim=value_of(arguments, keywords, 4, "keepdim", False))


@rule(torch.cosine_similarity)
def _cosine_similarity(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """PyTorch takes a norm for `eps` where it is smaller, but its gradient for its own."""
    dim, eps = value_of(arguments, keywords, 2, "dim", 1), value_of(arguments, keywords, 3, "eps", 1e-8)

    def unit(x: Any) -> Any:
        norm = torch.linalg.vector_norm(x, dim=dim, keepdim=True)
        return x / (norm + operators.stop_gradient(norm.clamp(min=eps) - norm))

    x1 = value_of(arguments, keywords, 0, "x1", None)
    x2 = value_of(arguments, keywords, 1, "x2", None)
    x1, x2 = torch.broadcast_tensors(x1, x2)
    return (unit(x1) * unit(x2)).sum(dim)


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
