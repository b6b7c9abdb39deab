"""Quantization that is trained through: what torch.ao.quantization's modules and functions do, in operations."""
from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch

from ._refused import Refused

_ROUND = ("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine")


class Rounded(torch.autograd.Function):
    """On the grid of a scale; the gradient goes through where the grid reaches."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, zero: Any, least: int, most: int) -> Any:
        places = torch.round(x * (1 / scale)) + zero
        ctx.save_for_backward((places >= least) & (places <= most))
        return (places.clamp(least, most) - zero) * scale

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        inside, = ctx.saved_tensors
        return torch.where(inside, gradient, torch.zeros((), dtype=gradient.dtype)), None, None, None, None


def rounded(function: Any, arguments: Any, keywords: Any) -> Any:
    """The functions of _ROUND."""
    names = ("input", "scale", "zero_point", *(("axis",) if function.__name__ == _ROUND[1] else ()), "quant_min", "quant_max")
    given = {**dict(zip(names, arguments)), **keywords}
    x = given["input"]
    scale, zero = (torch.as_tensor(given[name]).detach().to(x.dtype) for name in ("scale", "zero_point"))
    if "axis" in given:
        shape = [-1 if at == given["axis"] % x.dim() else 1 for at in range(x.dim())]
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    elif scale.dim():
        scale, zero = scale.reshape(()), zero.reshape(())
    return Rounded.apply(x, scale, zero, given["quant_min"], given["quant_max"])


def switches_of(model: Any) -> Dict[int, Tuple[bool, bool]]:
    """Of each module that quantizes: whether it observes, and whether it rounds."""
    return {id(module): (bool(module.observer_enabled[0]), bool(module.fake_quant_enabled[0])) for module in model.modules()
            if isinstance(module, torch.ao.quantization.FakeQuantizeBase)}


def modules_instead() -> Dict[type, Callable[[Any], Callable[..., Any]]]:
    """What is called instead of forward of modules that decide by the values of their buffers."""
    def call(recorder: Any) -> Callable[..., Any]:
        def forward(module: Any, x: Any) -> Any:
            observes, rounds = recorder.switches.get(id(module), (False, True))
            name = recorder.modules.get(id(module), type(module).__name__)
            if observes:
                raise Refused(f"module '{name}' observes the range of its values, which the file cannot say: after some batches "
                              "in PyTorch call model.apply(torch.ao.quantization.disable_observer), and export the ranges it has")
            if not rounds:
                return x
            axis = (module.ch_axis,) if module.is_per_channel else ()
            round_ = getattr(torch, _ROUND[bool(axis)])
            return round_(x, module.scale, module.zero_point, *axis, module.activation_post_process.quant_min,
                          module.activation_post_process.quant_max)
        return forward

    kinds = torch.ao.quantization
    return {kinds.FakeQuantize: call, kinds.FusedMovingAvgObsFakeQuantize: call}
