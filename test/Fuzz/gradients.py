"""Reverse mode over the steps of a trace, in float64.

Elementwise operations are differentiated by differences of the reference itself, operations that
only move values by where numbered elements go, and the few others by their own rules. At a kink
the derivative is the one that PyTorch takes.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from expand import reduced_axes
from reference import Step, Trace

H = 1e-5
Arrays = list
Rule = Callable[[Step, Arrays, Arrays, np.ndarray], list]

#: Elementwise and smooth.
ELEMENTWISE = set("Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Mean Sin Sinh Softplus Softsign Sum Tan Where".split())
#: Their results are some of their inputs' elements, each unchanged, and perhaps zeros.
MOVEMENTS = set("CenterCropPad Compress Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad Reshape "
                "ReverseSequence Slice SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze".split())
#: They round nothing: without noise.
EXACT = MOVEMENTS | set("Abs Cast CastLike Clip Max Min Neg ReduceMax ReduceMin Relu ScatterElements ScatterND TopK Where".split())
#: Nothing is differentiated through them.
STOPS = set("And ArgMax ArgMin BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil ConstantOfShape Equal EyeLike Floor Greater "
            "GreaterOrEqual Hardmax IsInf IsNaN Less LessOrEqual NonZero Not Or Range Round Shape Sign Size Xor".split())
RULES: dict[str, Rule] = {}


def rule(*names: str):
    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function
    return register


def is_float(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype.kind == "f"


def unbroadcast(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The sum over what broadcasting has repeated."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    repeated = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=repeated, keepdims=True) if repeated else gradient


def elementwise(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    gradients = []
    for place, x in enumerate(args):
        if not is_float(x):
            gradients.append(None)
            continue

        def moved(delta: np.ndarray) -> np.ndarray:
            return step.compute(*args[:place], x + delta, *args[place + 1:])[0]

        h = H * np.maximum(1.0, np.abs(np.where(np.isfinite(x), x, 1.0)))
        slope = (moved(h) - moved(-h)) / np.broadcast_to(2 * h, grad.shape)
        gradients.append(unbroadcast(masked(grad * slope, outs[0]), x.shape))
    return gradients


def movement(step: Step, args: Arrays, all_grads: list) -> list:
    """Elements are numbered from 1, so that a number in the result says where it came from."""
    floats = [k for k, x in enumerate(args) if is_float(x)]
    if step.op == "Pad":
        floats = [0]
    numbered, begin = list(args), 1
    for k in floats:
        numbered[k] = np.arange(begin, begin + args[k].size, dtype=np.float64).reshape(args[k].shape)
        begin += args[k].size
    if step.op == "Pad" and len(args) > 2 and args[2] is not None:
        numbered[2] = np.zeros_like(args[2])
    total = np.zeros(begin)
    for source, grad in zip(step.compute(*numbered), all_grads):
        if grad is not None:
            np.add.at(total, source.astype(np.int64), grad)
    gradients, begin = [None] * len(args), 1
    for k in floats:
        gradients[k] = total[begin:begin + args[k].size].reshape(args[k].shape)
        begin += args[k].size
    return gradients


@rule("Cast", "CastLike")
def cast(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    return [grad if is_float(x) and k == 0 else None for k, x in enumerate(args)]


@rule("Clip")
def clip(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    x = args[0]
    low, high = (args[k] if len(args) > k and args[k] is not None else limit for k, limit in ((1, -np.inf), (2, np.inf)))
    inside = grad * ((x >= low) & (x <= high))
    return [inside] + [None] * (len(args) - 1)


@rule("Abs")
def absolute(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    return [grad * np.sign(args[0])]


@rule("Relu", "LeakyRelu", "PRelu", "ThresholdedRelu")
def rectified(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    x, get = args[0], step.node.attributes.get
    if step.op == "ThresholdedRelu":
        return [grad * (x > get("alpha", 1.0))]
    low = args[1] if step.op == "PRelu" else get("alpha", 0.01) if step.op == "LeakyRelu" else 0.0
    gradients = [grad * np.where(x > 0, 1.0, low)]
    return gradients + [unbroadcast(grad * np.where(x > 0, 0.0, x), low.shape)] if step.op == "PRelu" else gradients


@rule("Add", "Sub", "Mul", "Div", "Pow")
def arithmetic(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    a, b, y = *args, outs[0]
    if step.op in ("Add", "Sub"):
        slopes = [1.0, 1.0 if step.op == "Add" else -1.0]
    elif step.op == "Mul":
        slopes = [b, a]
    elif step.op == "Div":
        slopes = [1 / b, -y / b]
    else:
        slopes = [b * a ** (b - 1), y * np.log(a) if np.all(a > 0) else np.nan]
    return [unbroadcast(masked(grad * slope, y), x.shape) for slope, x in zip(slopes, args)]


def masked(grad: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Beside what is masked with an infinity, nothing moves."""
    return np.where(np.isinf(out), 0.0, grad)


@rule("Exp", "Log", "Neg", "Reciprocal", "Sqrt")
def simple(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    x, y = args[0], outs[0]
    slope = {"Exp": y, "Log": 1 / x, "Neg": -1.0, "Reciprocal": -y * y, "Sqrt": 0.5 / y}[step.op]
    return [grad * slope]


@rule("Sigmoid", "Tanh")
def saturating(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    """From the result, as programs have it: beside a limit most of it cancels."""
    y = outs[0]
    return [grad * (y * (1 - y) if step.op == "Sigmoid" else 1 - y * y)]


@rule("Celu", "Elu", "HardSigmoid", "Selu", "Shrink")
def bent(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    x, get = args[0], step.node.attributes.get
    if step.op == "HardSigmoid":
        slope = get("alpha", 0.2) * ((outs[0] > 0) & (outs[0] < 1))
    elif step.op == "Shrink":
        slope = np.abs(x) > get("lambd", 0.5)
    elif step.op == "Celu":
        slope = np.where(x > 0, 1.0, np.exp(x / get("alpha", 1.0)))
    else:
        alpha, gamma = (get("alpha", 1.0), 1.0) if step.op == "Elu" else (get("alpha", 1.6732632), get("gamma", 1.0507010))
        slope = gamma * np.where(x > 0, 1.0, alpha * np.exp(x))
    return [grad * slope]


@rule("Mod")
def remainder(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    a, b = args
    return [unbroadcast(grad, a.shape), unbroadcast(grad * -np.trunc(a / b), b.shape)]


@rule("Max", "Min")
def extreme(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    hits = [np.broadcast_to(x, grad.shape) == outs[0] for x in args]
    share = grad / np.sum(hits, axis=0)
    return [unbroadcast(share * hit, x.shape) for x, hit in zip(args, hits)]


@rule("MatMul")
def matmul(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    a, b = args
    if a.ndim == 1:
        grad = np.expand_dims(grad, -2 if b.ndim > 1 else -1)
    if b.ndim == 1:
        grad = np.expand_dims(grad, -1)
    left, right = a[None, :] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    if a.ndim == b.ndim == 1:
        grad = grad.reshape(1, 1)
    ga = grad @ np.swapaxes(right, -1, -2)
    gb = np.swapaxes(left, -1, -2) @ grad
    return [unbroadcast(ga, left.shape).reshape(a.shape), unbroadcast(gb, right.shape).reshape(b.shape)]


@rule("Det")
def determinant(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    return [np.expand_dims(grad * outs[0], (-1, -2)) * np.swapaxes(np.linalg.inv(args[0]), -1, -2)]


@rule("Einsum")
def einsum(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    equation = step.node.attributes["equation"]
    equation = (equation.decode() if isinstance(equation, bytes) else equation).replace(" ", "")
    left, result = equation.split("->")
    terms, sizes, gradients = left.split(","), {}, []
    for term, x in zip(terms, args):
        sizes.update(zip(term, x.shape))
    for place, term in enumerate(terms):
        # A letter that stands twice in a term is its diagonal; one that nothing else has was summed.
        letters = "".join(dict.fromkeys(term))
        others = [(t, x) for k, (t, x) in enumerate(zip(terms, args)) if k != place]
        have = set(result).union(*(t for t, _ in others))
        lonely = [letter for letter in letters if letter not in have]
        operands = [(result, grad)] + others + [(letter, np.ones(sizes[letter])) for letter in lonely]
        value = np.einsum(",".join(t for t, _ in operands) + "->" + letters, *[x for _, x in operands])
        if letters != term:
            full = np.zeros([sizes[letter] for letter in term])
            grids = dict(zip(letters, np.indices(value.shape)))
            full[tuple(grids[letter] for letter in term)] = value
            value = full
        gradients.append(value)
    return gradients


@rule("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
def reduction(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    x, (axes, _) = args[0], reduced_axes(step.node, args)
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    grad, out = grad.reshape(kept), outs[0].reshape(kept)
    spread = np.broadcast_to(grad, x.shape)
    if step.op == "ReduceSum":
        value = spread.copy()
    elif step.op == "ReduceMean":
        value = spread * (out.size / max(x.size, 1))
    elif step.op == "ReduceProd":
        value = spread * out / x
    else:
        hits = x == out
        value = spread * hits / hits.sum(axis=tuple(axes), keepdims=True)
    return [value] + [None] * (len(args) - 1)


@rule("TopK")
def top_k(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    axis = step.node.attributes.get("axis", -1)
    value = np.zeros_like(args[0])
    np.put_along_axis(value, step.compute(*args)[1], grad, axis)
    return [value, None]


@rule("ScatterElements", "ScatterND")
def scatter(step: Step, args: Arrays, outs: Arrays, grad: np.ndarray) -> list:
    data, indices, updates = args
    mode = step.node.attributes.get("reduction", "none")
    mode = mode.decode() if isinstance(mode, bytes) else mode
    if step.op == "ScatterElements":
        axis = step.node.attributes.get("axis", 0) % data.ndim
        target = list(np.indices(indices.shape))
        target[axis] = np.where(indices < 0, indices + data.shape[axis], indices)
        target = tuple(target)
    else:
        target = tuple(np.moveaxis(np.where(indices < 0, indices + np.array(data.shape[:indices.shape[-1]]), indices), -1, 0))
    arriving = grad[target]
    if mode == "add":
        return [grad, None, arriving]
    if mode == "mul":
        return [grad * outs[0] / data, None, arriving * outs[0][target] / updates]
    if mode in ("max", "min"):
        return [grad * (data == outs[0]), None, arriving * (updates == outs[0][target])]
    left = grad.copy()
    left[target] = 0
    return [left, None, arriving]


class Gradients:
    """The steps of a trace as a function: the loss, and its gradients of the parameters."""

    def __init__(self, made: Trace, loss: str, parameters: list[str]):
        self.loss = loss
        self.fixed = {name: value for name, value in made.values.items() if name not in made.varying}
        self.steps, self.draws, self.folds = made.steps, made.draws, made.folds
        self.active = set(parameters)
        for step in self.steps:
            if step.op not in STOPS and self.active.intersection(step.inputs):
                self.active.update(name for name in step.outputs if name and is_float(made.values[name]))
        #: Parameters that the loss has a derivative of.
        self.reached = self.trained(parameters)

    def trained(self, parameters: list[str]) -> list[str]:
        wanted = {self.loss} & self.active
        for step in reversed(self.steps):
            if step.op not in STOPS and wanted.intersection(step.outputs):
                wanted.update(name for name in step.inputs if name in self.active)
        return [name for name in parameters if name in wanted]

    def __call__(self, varying: dict[str, np.ndarray], rng: np.random.Generator | None = None,
                 level: float = 0.0, loss_only: bool = False) -> tuple[float, dict[str, np.ndarray]]:
        """With a level, every value is off by about that share: what rounding may do."""

        def noisy(x: np.ndarray) -> np.ndarray:
            return x * (1 + level * rng.standard_normal(x.shape)) if rng is not None and is_float(x) else x

        values = self.fixed | {name: noisy(array) for name, array in varying.items()}
        with np.errstate(all="ignore"):
            for step in self.steps:
                results = step.compute(*[values[name] if name else None for name in step.inputs])
                exact = step.op in EXACT
                values.update((name, result if exact else noisy(result)) for name, result in zip(step.outputs, results))
        loss = float(np.ravel(values[self.loss])[0])
        self.folded = {name: values[source] * factor for name, (source, factor, _) in self.folds.items()}
        if loss_only:
            return loss, {}
        grads = {self.loss: np.ones_like(values[self.loss])}
        for step in reversed(self.steps):
            if step.op in STOPS or not self.active.intersection(step.inputs):
                continue
            arriving = [grads.pop(name, None) if name else None for name in step.outputs]
            # What nothing arrives at, as at a branch that is not taken, passes nothing on, of infinite slope or not.
            if not any(grad is not None and np.any(grad) for grad in arriving):
                continue
            args = [values[name] if name else None for name in step.inputs]
            outs = [values[name] if name else None for name in step.outputs]
            for name, grad in zip(step.inputs, self.backward(step, args, outs, arriving)):
                if name in self.active and grad is not None:
                    grad = noisy(grad)
                    grads[name] = grads[name] + grad if name in grads else grad
        return loss, {name: grads[name] if name in grads else np.zeros_like(varying[name]) for name in self.reached}

    @staticmethod
    def backward(step: Step, args: Arrays, outs: Arrays, arriving: list) -> list:
        with np.errstate(all="ignore"):
            if step.op in ELEMENTWISE:
                return elementwise(step, args, outs, arriving[0])
            if step.op in MOVEMENTS:
                return movement(step, args, arriving)
            if step.op not in RULES:
                raise NotImplementedError(f"{step.op} has no derivative here")
            return RULES[step.op](step, args, outs, arriving[0])
