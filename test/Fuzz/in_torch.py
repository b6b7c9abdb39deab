"""The oracle in PyTorch's float64, where PyTorch is installed: the same steps with its functions,
gradients by autograd, updates by torch.optim. What moves values moves them where the reference does;
what rounding may do is left to the reference's own gradients."""
from __future__ import annotations

import fnmatch

import numpy as np
import torch
from torch.nn import functional as F

from expand import reduced_axes
from gradients import MOVEMENTS, STOPS, Gradients, is_float
from reference import Step
from training import Options, Update

Tensors = list


def attribute(step: Step, name: str, otherwise):
    value = step.node.attributes.get(name, otherwise)
    return value.decode() if isinstance(value, bytes) else value


#: Elementwise functions of one value.
UNARY = {"Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh, "Atan": torch.atan,
         "Atanh": torch.atanh, "Cos": torch.cos, "Cosh": torch.cosh, "Det": torch.linalg.det, "Erf": torch.erf, "Exp": torch.exp,
         "Log": torch.log, "Neg": torch.neg, "Reciprocal": torch.reciprocal, "Relu": torch.relu, "Sigmoid": torch.sigmoid,
         "Sin": torch.sin, "Sinh": torch.sinh, "Softplus": F.softplus, "Softsign": F.softsign, "Sqrt": torch.sqrt, "Tan": torch.tan, "Tanh": torch.tanh}
BINARY = {"Add": torch.add, "Div": torch.div, "Mod": torch.fmod, "Mul": torch.mul, "Pow": torch.pow, "Sub": torch.sub,
          "MatMul": torch.matmul}
REDUCTIONS = {"ReduceSum": torch.sum, "ReduceMean": torch.mean, "ReduceMax": torch.amax, "ReduceMin": torch.amin}


def pairwise(function):
    def apply(values: Tensors) -> torch.Tensor:
        total = values[0]
        for value in values[1:]:
            total = function(total, value)
        return total
    return apply


def shaped(step: Step, x: torch.Tensor) -> torch.Tensor | None:
    """Elementwise functions with attributes; None where the step is another."""
    op = step.op
    if op == "Celu":
        return F.celu(x, attribute(step, "alpha", 1.0))
    if op == "Elu":
        return F.elu(x, attribute(step, "alpha", 1.0))
    if op == "Selu":
        alpha, gamma = attribute(step, "alpha", 1.67326319217681884765625), attribute(step, "gamma", 1.05070102214813232421875)
        return gamma * F.elu(x, alpha)
    if op == "HardSigmoid":
        return torch.clamp(attribute(step, "alpha", 0.2) * x + attribute(step, "beta", 0.5), 0, 1)
    if op == "LeakyRelu":
        return F.leaky_relu(x, attribute(step, "alpha", 0.01))
    if op == "ThresholdedRelu":
        return F.threshold(x, attribute(step, "alpha", 1.0), 0.0)
    if op == "Shrink":
        limit, bias = attribute(step, "lambd", 0.5), attribute(step, "bias", 0.0)
        return torch.where(x < -limit, x + bias, torch.where(x > limit, x - bias, torch.zeros_like(x)))
    return None


def scattered(step: Step, data: torch.Tensor, indices: np.ndarray, updates: torch.Tensor) -> torch.Tensor:
    mode = attribute(step, "reduction", "none")
    if step.op == "ScatterElements":
        axis = attribute(step, "axis", 0) % data.ndim
        target = list(np.indices(indices.shape))
        target[axis] = np.where(indices < 0, indices + data.shape[axis], indices)
        flat = np.ravel_multi_index(target, data.shape)
    else:
        depth = indices.shape[-1]
        lead = np.ravel_multi_index(np.moveaxis(np.where(indices < 0, indices + np.array(data.shape[:depth]), indices), -1, 0), data.shape[:depth])
        inner = int(np.prod(data.shape[depth:]))
        flat = lead[..., None] * inner + np.arange(inner)
    index, values = torch.from_numpy(flat.reshape(-1).astype(np.int64)), updates.reshape(-1)
    line = data.reshape(-1)
    if mode == "none":
        return line.scatter(0, index, values).reshape(data.shape)
    if mode == "add":
        return line.scatter_add(0, index, values).reshape(data.shape)
    name = {"mul": "prod", "max": "amax", "min": "amin"}[mode]
    return line.scatter_reduce(0, index, values, name).reshape(data.shape)


class TorchGradients(Gradients):
    def __call__(self, varying, rng=None, level=0.0, loss_only=False):
        if rng is not None:
            return super().__call__(varying, rng, level, loss_only)
        leaves = {name: torch.tensor(varying[name], requires_grad=not loss_only) for name in self.reached}
        values = {name: torch.as_tensor(array) for name, array in (self.fixed | varying).items()} | leaves
        with np.errstate(all="ignore"):
            for step in self.steps:
                values.update(zip(step.outputs, self.forward(step, [values[name] if name else None for name in step.inputs])))
        loss = values[self.loss].reshape(())
        self.folded = {name: values[source].detach().numpy() * factor for name, (source, factor, _) in self.folds.items()}
        if loss_only or not leaves:
            return loss.item(), {}
        found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        return loss.item(), {name: np.zeros_like(varying[name]) if grad is None else grad.numpy() for name, grad in zip(leaves, found)}

    def forward(self, step: Step, args: Tensors) -> Tensors:
        op = step.op
        arrays = [None if x is None else x.detach().numpy() for x in args]
        if op in STOPS or not any(x is not None and x.is_floating_point() for x in args):
            return [torch.as_tensor(value) for value in step.compute(*arrays)]
        if op in MOVEMENTS:
            return self.moved(step, args, arrays)
        if op in UNARY:
            return [UNARY[op](args[0])]
        if op in BINARY:
            return [BINARY[op](*args)]
        if op in ("Sum", "Mean", "Max", "Min"):
            total = pairwise({"Max": torch.maximum, "Min": torch.minimum}.get(op, torch.add))(args)
            return [total / len(args) if op == "Mean" else total]
        if op in REDUCTIONS or op == "ReduceProd":
            return [self.reduced(step, args[0], arrays)]
        if op in ("ScatterElements", "ScatterND"):
            return [scattered(step, args[0], arrays[1], args[2])]
        if op in ("Cast", "CastLike"):
            result = torch.as_tensor(step.compute(*arrays)[0])
            if not result.is_floating_point() or not args[0].is_floating_point():
                return [result]
            # A cast to a narrow float rounds, and passes the gradient; infinities are what they were.
            rounding = (result - args[0]).detach()
            return [args[0] + torch.where(torch.isnan(rounding), 0.0, rounding)]
        if op == "Clip":
            return [torch.clamp(args[0], *[args[k] if len(args) > k else None for k in (1, 2)])]
        if op == "Where" and args[0].numel() == 1:
            # A branch that is not taken is not differentiated.
            return [args[1 if args[0].item() else 2].expand(torch.broadcast_shapes(*[x.shape for x in args]))]
        if op == "Where":
            return [torch.where(*args)]
        if op == "PRelu":
            return [torch.where(args[0] > 0, args[0], args[0] * args[1])]
        if op == "Einsum":
            return [torch.einsum(attribute(step, "equation", ""), *args)]
        if op == "TopK":
            places = torch.as_tensor(step.compute(*arrays)[1])
            return [torch.gather(args[0], attribute(step, "axis", -1), places), places]
        result = shaped(step, args[0])
        if result is None:
            raise NotImplementedError(f"{op} is not known in PyTorch here")
        return [result]

    @staticmethod
    def moved(step: Step, args: Tensors, arrays: list) -> Tensors:
        """Elements are numbered from 1; 0 is what a pad fills in."""
        floats = [0] if step.op == "Pad" else [k for k, x in enumerate(arrays) if is_float(x)]
        numbered, begin, fill = list(arrays), 1, torch.zeros(1, dtype=torch.float64)
        for k in floats:
            numbered[k] = np.arange(begin, begin + arrays[k].size, dtype=np.float64).reshape(arrays[k].shape)
            begin += arrays[k].size
        if step.op == "Pad" and len(arrays) > 2 and arrays[2] is not None:
            numbered[2], fill = np.zeros_like(arrays[2]), args[2].reshape(1)
        line = torch.cat([fill, *[args[k].reshape(-1) for k in floats]])
        return [line[torch.as_tensor(np.asarray(source, np.int64))] for source in step.compute(*numbered)]

    @staticmethod
    def reduced(step: Step, x: torch.Tensor, arrays: list) -> torch.Tensor:
        axes, keep = reduced_axes(step.node, arrays)
        if step.op != "ReduceProd":
            return REDUCTIONS[step.op](x, dim=tuple(axes), keepdim=bool(keep)) if axes else x
        for axis in sorted(axes, reverse=True):
            x = torch.prod(x, dim=axis, keepdim=bool(keep))
        return x


def make_update(options: Options, parameters: dict[str, np.ndarray]) -> Update | TorchUpdate:
    """PyTorch's optimizer where it has the one that is asked for."""
    return (Update if options.optimizer in ("lion", "lamb", "adafactor") else TorchUpdate)(options, parameters)


class TorchUpdate:
    """torch.optim with a group for each parameter."""

    def __init__(self, options: Options, parameters: dict[str, np.ndarray]):
        self.options, self.step = options, 0
        self.leaves = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in parameters.items()}
        self.scales, groups = {}, []
        for name, leaf in self.leaves.items():
            exempt = any(glob == "rank1" and leaf.ndim <= 1 or fnmatch.fnmatchcase(name, glob) for glob in options.no_decay)
            self.scales[name] = float(np.prod([scale for glob, scale in options.lr_scale.items() if fnmatch.fnmatchcase(name, glob)]))
            groups.append({"params": [leaf], "weight_decay": 0.0 if exempt else options.weight_decay, "name": name})
        if options.optimizer == "sgd":
            self.optimizer = torch.optim.SGD(groups, lr=1.0, momentum=options.momentum)
        elif options.optimizer == "adagrad":
            self.optimizer = torch.optim.Adagrad(groups, lr=1.0, eps=options.eps)
        else:
            kind = torch.optim.AdamW if options.optimizer == "adamw" else torch.optim.Adam
            self.optimizer = kind(groups, lr=1.0, betas=options.betas, eps=options.eps)

    def __call__(self, parameters: dict[str, np.ndarray], gradients: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        for name, leaf in self.leaves.items():
            leaf.data, leaf.grad = torch.tensor(parameters[name]), torch.tensor(gradients[name])
        if self.options.clip:
            torch.nn.utils.clip_grad_norm_(list(self.leaves.values()), self.options.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate(self.step) * self.scales[group["name"]]
        self.optimizer.step()
        self.step += 1
        return {name: leaf.detach().numpy().copy() for name, leaf in self.leaves.items()}
