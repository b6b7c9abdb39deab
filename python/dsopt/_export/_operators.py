"""Operations of PyTorch that stand for operators of the ONNX domain `dsopt` while a model is traced.

GivenGradient and ResultGradient never reach a file: _functions.py makes CustomGradient of them. Nor does Branch: _graph.py makes a
Where of it that says so.
"""
from __future__ import annotations

from typing import Any, Callable, Dict

import onnx
import torch

from .._compat import constant_of, list_of

DOMAIN = "dsopt"
VERSION = 1

_library = torch.library.Library(DOMAIN, "DEF")


def _define(signature: str, compute: Callable[..., Any], like: Callable[..., Any], differentiable: bool) -> None:
    name = signature.partition("(")[0]
    _library.define(signature)
    _library.impl(name, compute, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{DOMAIN}::{name}", like, lib=_library)
    if not differentiable:  # the result needs no gradient, whatever the operands need
        _library.impl(name, torch.library.fallthrough_kernel, "Autograd")


def _ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: str,
              zero_infinity: bool) -> Any:
    if targets.dim() == 1:  # behind them may be more, which mean nothing
        targets = targets[:int(target_lengths.sum())]
    return torch.nn.functional.ctc_loss(log_probs.detach(), targets, input_lengths, target_lengths, blank, reduction,
                                        zero_infinity)


def _ctc_like(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: str,
              zero_infinity: bool) -> Any:
    return log_probs.new_empty(target_lengths.shape if reduction == "none" else ())


def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float) -> Any:
    return torch.nn.functional.batch_norm(x.detach(), None, None, weight.detach(), bias.detach(), True, momentum, eps)


_define("stop_gradient(Tensor x) -> Tensor", lambda x: x.detach().clone(), torch.empty_like, False)
_define("branch(Tensor condition, Tensor a, Tensor b) -> Tensor", torch.where, lambda condition, a, b: torch.empty_like(a), True)
_define("result_gradient(Tensor value, int call, int index) -> Tensor",
        lambda value, call, index: torch.ones_like(value), lambda value, call, index: torch.empty_like(value), False)
_define("given_gradient(Tensor value, Tensor[] inputs, Tensor[] gradients, int call, int index) -> Tensor",
        lambda value, inputs, gradients, call, index: value.clone(),
        lambda value, inputs, gradients, call, index: torch.empty_like(value), True)
_define("batch_norm(Tensor x, Tensor weight, Tensor bias, Tensor mean, Tensor var, float momentum, float eps) -> Tensor",
        _batch_norm, lambda x, weight, bias, mean, var, momentum, eps: torch.empty_like(x), True)
_define("ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, "
        "str reduction, bool zero_infinity) -> Tensor", _ctc_loss, _ctc_like, True)

#: What the model's tracing calls.
stop_gradient = torch.ops.dsopt.stop_gradient.default
branch = torch.ops.dsopt.branch.default
result_gradient = torch.ops.dsopt.result_gradient.default
given_gradient = torch.ops.dsopt.given_gradient.default
batch_norm = torch.ops.dsopt.batch_norm.default
ctc_loss = torch.ops.dsopt.ctc_loss.default


def translations() -> Dict[Any, Callable[..., Any]]:
    """How torch.onnx.export(dynamo=True) writes them."""
    from onnxscript import opset18
    from onnxscript.values import Op, Opset

    schema = onnx.defs.OpSchema
    kinds = {"call": schema.AttrType.INT, "index": schema.AttrType.INT, "num_inputs": schema.AttrType.INT,
             "blank": schema.AttrType.INT, "zero_infinity": schema.AttrType.INT, "reduction": schema.AttrType.STRING}

    def operator(name: str, *attributes: str) -> Any:
        floats = ["tensor(float)", "tensor(float16)", "tensor(bfloat16)", "tensor(double)"]
        operands = schema.FormalParameter("operands", "T", param_option=schema.FormalParameterOption.Variadic,
                                          is_homogeneous=False)
        return Op(Opset(DOMAIN, VERSION), name, schema(
            name, DOMAIN, VERSION, inputs=[operands], outputs=[schema.FormalParameter("result", "F")],
            type_constraints=[("T", [*floats, "tensor(int64)", "tensor(int32)", "tensor(bool)"], ""), ("F", floats, "")],
            attributes=[schema.Attribute(one, kinds[one], required=False) for one in attributes]))

    side = operator("Branch")
    stop, result = operator("StopGradient"), operator("ResultGradient", "call", "index")
    given = operator("GivenGradient", "call", "index", "num_inputs")
    ctc = operator("CTCLoss", "blank", "reduction", "zero_infinity")

    def given_gradient_(value: Any, inputs: Any, gradients: Any, call: int, index: int) -> Any:
        return given(value, *inputs, *gradients, call=call, index=index, num_inputs=len(inputs))

    def batch_norm_(x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float) -> Any:
        return opset18.BatchNormalization(x, weight, bias, mean, var, epsilon=eps, momentum=1 - momentum,
                                          training_mode=1)[0]

    def ctc_loss_(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: str,
                  zero_infinity: bool) -> Any:
        return ctc(log_probs, targets, input_lengths, target_lengths, blank=blank, reduction=reduction,
                   zero_infinity=int(zero_infinity))

    return {stop_gradient: lambda x: stop(x), branch: lambda condition, a, b: side(condition, a, b),
            result_gradient: lambda value, call, index: result(value, call=call, index=index),
            given_gradient: given_gradient_, batch_norm: batch_norm_, ctc_loss: ctc_loss_}


def register_symbolics(opset: int) -> None:
    """How torch.onnx.export(dynamo=False) writes them."""
    def integer(value: Any) -> int:
        return int(constant_of(value, "i"))

    def given(g: Any, value: Any, inputs: Any, gradients: Any, call: Any, index: Any) -> Any:
        first = list_of(inputs)
        return g.op("dsopt::GivenGradient", value, *first, *list_of(gradients), call_i=integer(call),
                    index_i=integer(index), num_inputs_i=len(first)).setType(value.type())

    def batch_norm_(g: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: Any, eps: Any) -> Any:
        outputs = g.op("BatchNormalization", x, weight, bias, mean, var, epsilon_f=constant_of(eps, "f"),
                       momentum_f=1 - constant_of(momentum, "f"), training_mode_i=1, outputs=3)
        return outputs[0].setType(x.type())

    def ctc(g: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any, reduction: Any,
            zero_infinity: Any) -> Any:
        return g.op("dsopt::CTCLoss", log_probs, targets, input_lengths, target_lengths, blank_i=integer(blank),
                    reduction_s=constant_of(reduction, "s"), zero_infinity_i=integer(zero_infinity))

    for name, function in {
            "stop_gradient": lambda g, x: g.op("dsopt::StopGradient", x).setType(x.type()),
            "branch": lambda g, condition, a, b: g.op("dsopt::Branch", condition, a, b).setType(a.type()),
            "result_gradient": lambda g, value, call, index: g.op(
                "dsopt::ResultGradient", value, call_i=integer(call), index_i=integer(index)).setType(value.type()),
            "given_gradient": given, "batch_norm": batch_norm_, "ctc_loss": ctc}.items():
        torch.onnx.register_custom_op_symbolic(f"{DOMAIN}::{name}", function, opset)
