"""The last net: what the file computes beside what PyTorch computes, by loss and gradients.

One step of plain gradient descent, with a rate so large that what it adds to a weight
is the weight's gradient, gives the gradients of the compiled program.
"""
from __future__ import annotations

import copy
import json
import math
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import onnx
import onnx.numpy_helper
import torch

from .._tools import DsoptError, find_tool, message_of, writing
from .._weights import read_weights
from ._inputs import Job
from ._parameters import gradients_of
from ._random import Draws, is_random
from ._recorder import Seeing, decides
from ._refused import Refused
from ._settings import exporting

#: What float32 models meet: of a loss, and of a gradient's norm.
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-4, 1e-3
#: What rounding leaves of a gradient that is zero, relative to the norm of all gradients.
NOISE = 1e-6
#: How much further from float64 than PyTorch's float32 the program may be.
CHAOS = 8.0
#: What rounding is in all, relative to weights and inputs, and how often it is drawn.
_SHAKE, _SHAKES = 2.0 ** -20, 3
#: Not compared is what takes PyTorch longer for one step, or has more elements.
LONGEST_STEP, MOST_ELEMENTS = 20.0, 500_000_000

_RATE = 2.0 ** 20
_DECISIONS = 3  # drawn inputs that decisions are compared on
_TIME_LIMIT = 600
_DROPOUT = {"dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout", "alpha_dropout_",
            "feature_alpha_dropout", "feature_alpha_dropout_", "native_dropout"}


class NotAsPyTorch(RuntimeError):
    """What the file computes is not what PyTorch computes."""


class Unable(Exception):
    """Why nothing can be compared."""


class Reference(Seeing):
    """Active while PyTorch's own forward runs: nothing is dropped, and what is drawn is kept."""

    def __init__(self, model: Any, draws: Draws):
        super().__init__(model)
        self.draws = draws

    def __enter__(self) -> Any:
        self.draws.begin()
        return super().__enter__()

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = dict(keywords or {})
        if decides(function):
            return self.decide(function, arguments, keywords)
        if getattr(function, "__name__", "") in _DROPOUT:
            return arguments[0] if arguments else keywords["input"]
        if is_random(function):
            return self.draws.drawn(function, arguments, keywords)
        if function is torch.nn.functional.scaled_dot_product_attention:
            arguments = (*arguments[:4], 0.0, *arguments[5:]) if len(arguments) > 4 else arguments
            keywords.pop("dropout_p", None)
        return function(*arguments, **keywords)


@dataclass
class Numbers:
    """A loss, the gradients of parameters by name, and what buffers became."""
    loss: float
    gradients: Dict[str, np.ndarray]
    buffers: Dict[str, np.ndarray]
    unreached: Sequence[str] = ()  #: parameters whose gradient the compiler found to be zero

    def norm(self) -> float:
        return math.sqrt(sum(float(np.vdot(one, one)) for one in self.gradients.values()))

    def is_finite(self) -> bool:
        return math.isfinite(self.loss) and all(np.isfinite(one).all() for one in self.gradients.values())


def _float64(tensor: Any) -> np.ndarray:
    tensor = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
    return tensor.cpu().double().numpy()


def of_pytorch(job: Job, model: Any, values: List[Any], draws: Draws) -> Numbers:
    """What PyTorch computes; the model is as before afterwards."""
    module = job.module(Reference(model, draws), model)
    with exporting(model, job.code):
        loss, found = gradients_of(model, lambda: module(*values))
        buffers = {name: _float64(one) for name, one in model.named_buffers()}
    gradients = {name: _float64(one) for name, one in found.items() if one is not None and name not in job.left_out}
    if not gradients:
        raise Unable("the loss depends on no parameter that is trained")
    return Numbers(float(loss), gradients, buffers)


def _rate(model: Any, theirs: Numbers) -> float:
    """A power of two: large, but weights of float16, which leave the program in their type, have to hold what is
    added to them."""
    if not any(one.dtype == torch.float16 for one in model.parameters()):
        return _RATE
    largest = max((float(np.abs(one).max()) for one in theirs.gradients.values() if one.size), default=0.0)
    return 2.0 ** min(20, math.floor(math.log2(torch.finfo(torch.float16).max / 4 / largest))) if largest else 1.0


def of_dsopt(path: str, model: Any, rows: List[Dict[str, Any]], scales: Mapping[str, float],
             inputs: Mapping[str, Any], rate: float) -> Numbers:
    """What the program computes that is compiled from the file."""
    with tempfile.TemporaryDirectory(prefix="dsopt-check-") as folder:
        data, log, weights = (os.path.join(folder, name) for name in ("data.npz", "log.jsonl", "weights"))
        with writing(data):
            np.savez(data, **{name: value.cpu().numpy()[None] for name, value in inputs.items()})
        words = [find_tool(), path, "-run", f"-data={data}", f"-log={log}", f"-save-weights={weights}", "-quiet",
                 "-steps=1", "-dp=1", "-pp=1", "-micro-batches=1", "-optimizer=sgd", f"-lr={rate}", "-momentum=0",
                 "-weight-decay=0", "-dropout=off", "-launcher=none"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=_TIME_LIMIT)
        except subprocess.TimeoutExpired:
            raise Unable(f"dsopt took longer than {_TIME_LIMIT} s") from None
        if done.returncode != 0:
            raise DsoptError(f"dsopt cannot train what was exported: {message_of(done.stderr)}", done.returncode)
        with open(log) as lines:
            loss = next(float(line["loss"]) for line in map(json.loads, lines) if "loss" in line)
        after = read_weights(weights)
    names = {row["torch"]: row["onnx"] for row in rows}
    gradients, buffers = {}, {}
    known = dict(model.named_parameters())
    for name, value in after.items():
        value = value.astype(np.float64)
        if name not in known and name not in dict(model.named_buffers()):
            if not np.array_equal(value, initial_value(path, name)):
                buffers[name] = value
        elif name in known:
            gradients[name] = (_float64(known[name]) - value) / (rate * scales.get(names[name], 1.0))
        else:
            buffers[name] = value
    unreached = re.findall(r"parameter @(.+) does not reach the loss", done.stderr)
    return Numbers(loss, gradients, buffers, [row["torch"] for row in rows if row["onnx"] in unreached])


def not_trained(path: str, rows: List[Dict[str, Any]], theirs: Numbers) -> List[str]:
    """Parameters of which the compiler has no gradient, where PyTorch's is zero."""
    zero = {row["onnx"]: row["torch"] for row in rows if row["torch"] in theirs.gradients and not theirs.gradients[row["torch"]].any()}
    if not zero:
        return []
    done = subprocess.run([find_tool(), path, "-list-parameters"], capture_output=True, text=True)
    uses = dict(re.findall(r"^(\S+) +\S+ +\S+ +(\w+)", done.stdout, re.MULTILINE))
    return [name for onnx_name, name in zero.items() if uses.get(onnx_name) in ("frozen", "unused")]


def initial_value(path: str, name: str) -> Any:
    """What an initializer of a file holds."""
    tensors = {one.name: one for one in onnx.load(path).graph.initializer}
    return onnx.numpy_helper.to_array(tensors[name]) if name in tensors else None


def other_values(inputs: Mapping[str, Any], generator: Any) -> Iterator[Dict[str, Any]]:
    """Other plausible values of the same shapes, the more different ones first: numbers are drawn anew within
    what was seen, then rows change places."""
    def drawn(value: Any) -> Any:
        if value.is_floating_point():
            wide = value.double()
            spread = float(wide.std()) if value.numel() > 1 else 1.0
            fresh = torch.randn(value.shape, generator=generator, dtype=torch.float64)
            return (wide.mean() + (spread or 1.0) * fresh).clamp(wide.min(), wide.max()).to(value.dtype)
        low, high = (int(value.min()), int(value.max())) if value.numel() else (0, 0)
        if value.dtype == torch.bool or (low >= 0 and high <= 1):  # a mask
            return shuffled(value)
        fresh = torch.randint(max(low, 0), high + 1, value.shape, generator=generator).to(value.dtype)
        return torch.where(value < 0, value, fresh)  # labels that do not count

    def shuffled(value: Any) -> Any:
        if value.dim() == 0 or value.size(0) < 2:
            return value
        return value[torch.randperm(value.size(0), generator=generator)]

    yield {name: drawn(value) for name, value in inputs.items()}
    yield {name: shuffled(value) for name, value in inputs.items()}


def _tolerance(model: Any) -> float:
    """How much coarser than float32 the model's coarsest type is."""
    types = {one.dtype for one in model.parameters() if one.is_floating_point()}
    finest = max((torch.finfo(one).eps for one in types), default=torch.finfo(torch.float32).eps)
    return max(1.0, finest / torch.finfo(torch.float32).eps / 1000)


def differences(mine: Numbers, theirs: Numbers, factor: float = 1.0) -> List[Tuple[float, str, float, float]]:
    """By how much more than allowed each gradient differs: (ratio, name, PyTorch's norm, dsopt's), the worst first."""
    noise, found = NOISE * theirs.norm(), []
    for name in {**theirs.gradients, **mine.gradients}:
        a, b = theirs.gradients.get(name), mine.gradients.get(name)
        a = np.zeros_like(b) if a is None else a
        b = np.zeros_like(a) if b is None else b
        norm = float(np.linalg.norm(a))
        ratio = float(np.linalg.norm(a - b)) / (factor * (GRADIENT_TOLERANCE * norm + noise) + 1e-30)
        if not ratio <= 1:
            found.append((ratio, name, norm, float(np.linalg.norm(b))))
    for name, got in mine.buffers.items():
        want = theirs.buffers.get(name)
        if want is None:
            found.append((math.inf, name, 0.0, float(np.linalg.norm(got))))
            continue
        norm = float(np.linalg.norm(want))
        if not np.linalg.norm(want - got) <= factor * (GRADIENT_TOLERANCE * norm + 1e-6):
            found.append((math.inf, name, norm, float(np.linalg.norm(got))))
    return sorted(found, reverse=True)


def _loss_differs(mine: Numbers, theirs: Numbers, factor: float = 1.0) -> bool:
    return not abs(mine.loss - theirs.loss) <= factor * LOSS_TOLERANCE * max(abs(theirs.loss), 1e-3)


def compare(job: Job, values: List[Any], mine: Numbers, theirs: Numbers, draws: Draws, on: str, exporter: str) -> None:
    """Raises where the two differ by more than rounding does; what is chaotic is judged beside float64."""
    factor = _tolerance(job.model)
    wrong, loss_differs = differences(mine, theirs, factor), _loss_differs(mine, theirs, factor)
    if not wrong and not loss_differs:
        return
    exact = _in_float64(job, values, draws)
    if exact is not None:
        if _is_as_good(mine, [theirs], exact, factor):
            return
        # A unit that is nearly off switches by rounding, and many gradients with it.
        shaken = [_in_float64(job, values, draws, seed) for seed in range(1, 1 + _SHAKES)]
        if _is_as_good(mine, [theirs, *(one for one in shaken if one)], exact, factor):
            return
    parts = [f"the loss is {mine.loss:.7g}, PyTorch's {theirs.loss:.7g}"] if loss_differs else []
    if wrong:
        _, name, a, b = wrong[0]
        owner, is_buffer = name.rpartition(".")[0], name in mine.buffers
        parts.append(f"{'buffer' if is_buffer else 'parameter'} '{name}'" +
                     (f" of module '{owner}'" if owner else "") + (
                         f" has a {'value' if is_buffer else 'gradient'} of norm {b:.6g}, PyTorch's {a:.6g}"
                         if not is_buffer or name in theirs.buffers else " is trained, which is no tensor of the model") +
                     (f" (and {len(wrong) - 1} more differ)" if len(wrong) > 1 else ""))
    raise NotAsPyTorch(f"the file computes something else than PyTorch on {on}: {', and '.join(parts)}; the exporter "
                       f"was {exporter}; check=False keeps the file all the same")


def _in_float64(job: Job, values: List[Any], draws: Draws, seed: int = 0) -> Optional[Numbers]:
    """What a twin of the model computes; with a seed, of weights and inputs that are off by what rounding is in all."""
    wide = Draws(keeps=True)
    wide.kept = [one.double() if one.is_floating_point() else one for one in draws.kept]
    generator = torch.Generator().manual_seed(seed)

    def shaken(value: Any) -> Any:
        if value.is_complex() or not value.is_floating_point() or not seed:
            return value.double() if value.is_floating_point() else value
        return value.double() * (1 + _SHAKE * torch.randn(value.shape, generator=generator, dtype=torch.float64))

    try:
        twin = copy.deepcopy(job.model).double()
        with torch.no_grad():
            for parameter in twin.parameters():
                parameter.copy_(shaken(parameter))
        return of_pytorch(job, twin, [shaken(one) for one in values], wide)
    except Exception:  # a model that has no such twin
        return None


def _is_as_good(mine: Numbers, others: List[Numbers], exact: Numbers, factor: float) -> bool:
    """Whether dsopt is about as far from float64 as one of the others is."""
    def near(of: Any, allowed: float) -> bool:
        return of(mine) <= CHAOS * max(map(of, others)) + allowed

    def off(name: str, want: Any) -> Any:
        return lambda one: float(np.linalg.norm(one.gradients.get(name, np.zeros_like(want)) - want))

    def buffer_off(name: str, want: Any) -> Any:
        return lambda one: float(np.linalg.norm(one.buffers[name] - want))

    if not near(lambda one: abs(one.loss - exact.loss), factor * LOSS_TOLERANCE * max(abs(exact.loss), 1e-3)):
        return False
    noise = NOISE * exact.norm()
    for name, want in exact.gradients.items():
        if not near(off(name, want), factor * (GRADIENT_TOLERANCE * float(np.linalg.norm(want)) + noise)):
            return False
    for name in mine.buffers:
        want = exact.buffers.get(name)
        if want is None or not near(buffer_off(name, want),
                                    factor * (GRADIENT_TOLERANCE * float(np.linalg.norm(want)) + 1e-6)):
            return False
    return not [name for name in mine.gradients if name not in exact.gradients and np.any(mine.gradients[name])]


def check_decisions(job: Job, decided: Mapping[str, Any], draws: Draws) -> None:
    """Raises where an exporter followed what Python decided by values, and other values or draws decide otherwise."""
    if not decided:
        return
    seen: List[Dict[str, List[Any]]] = []
    for seed in range(_DECISIONS):
        for inputs in [job.tensors] if seed == 0 else other_values(job.tensors, torch.Generator().manual_seed(seed)):
            mode = Reference(job.model, draws if seed == 0 else Draws(keeps=True))
            try:
                with exporting(job.model, job.code), torch.no_grad():
                    torch.manual_seed(seed)
                    job.module(mode)(*(inputs[name] for name in job.names))
            except Exception:  # values that mean nothing to this model
                continue
            seen.append(mode.decided)
    for place in decided:
        if len({repr(one.get(place)) for one in seen}) > 1:
            raise Refused(f"{place} decides by the values of a tensor, which one program cannot: use torch.where, or "
                          "decide outside of forward")


def check(job: Job, path: str, rows: List[Dict[str, Any]], scales: Mapping[str, float], exporter: str,
          draws: Draws) -> str:
    """Compares the file with the model on the example and on other values; in words what was compared, or why
    nothing was."""
    elements = sum(one.numel() for one in job.model.parameters())
    if elements > MOST_ELEMENTS:
        return f"not compared with PyTorch: {elements:,} parameters are more than {MOST_ELEMENTS:,}"
    try:
        find_tool()
    except DsoptError as error:
        return f"not compared with PyTorch: {error}"
    try:
        begin = time.perf_counter()
        theirs = of_pytorch(job, job.model, job.values, draws)
        if time.perf_counter() - begin > LONGEST_STEP:
            return f"not compared with PyTorch, whose own step takes longer than {LONGEST_STEP:.0f} s"
        if not theirs.is_finite():
            return "not compared with PyTorch, whose loss or gradients on the example are not finite"
        mine = of_dsopt(path, job.model, rows, scales, job.tensors, _rate(job.model, theirs))
        compare(job, job.values, mine, theirs, draws, "the example", exporter)
        job.unreached.extend(dict.fromkeys([*mine.unreached, *not_trained(path, rows, theirs)]))
        for other in other_values(job.tensors, torch.Generator().manual_seed(1)):
            values = [other[name] for name in job.names]
            try:
                theirs = of_pytorch(job, job.model, values, draws)
            except Exception:  # values that mean nothing to this model
                continue
            if theirs.is_finite():
                mine = of_dsopt(path, job.model, rows, scales, other, _rate(job.model, theirs))
                compare(job, values, mine, theirs, draws, "other values", exporter)
                return "compared with PyTorch on the example and on other values"
        return "compared with PyTorch on the example alone: other values of its shapes give nothing finite"
    except Unable as why:
        return f"not compared with PyTorch: {why}"
