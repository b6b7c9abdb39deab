"""The oracle's training of a case, and what of a run differs from it.

Where a number differs by more than rounding should make it, the oracle trains again with noise on
every value: what the noise explains is the case's own sensitivity and no failure.
"""
from __future__ import annotations

import dataclasses

import numpy as np

from generate import Case
from reference import trace, wide
from tool import Failure, Run
from training import global_norm

#: Of rounding: the relative noise of one float32 operation, and how often a sensitive case is trained again at most: a step is crossed in few of them.
NOISE, TRIES = 1.5e-7, 96
LOSS, NORM, PART, WEIGHTS = 3e-5, 3e-4, 1e-3, 2e-3


@dataclasses.dataclass
class Training:
    """What a training went through, in float64."""
    losses: list[float]
    norms: list[float]
    #: Of the first step, by parameter.
    parts: dict[str, float]
    start: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]


try:
    import torch
    from in_torch import TorchGradients as Gradients, make_update
    torch.set_num_threads(1)
except ImportError:
    from gradients import Gradients
    from training import Update as make_update


class Oracle:
    def __init__(self, case: Case):
        self.case, graph = case, case.graph
        self.forward = Gradients(trace(graph, case.micro_batch(0), [graph.loss]), graph.loss, list(graph.parameters))
        self.trained = self.forward.reached

    def weights(self) -> dict[str, np.ndarray]:
        """Parameters and running statistics before the first step."""
        return {name: wide(array) for name, array in (self.case.graph.parameters | self.case.graph.statistics).items()}

    def values(self, step: int, place: int) -> dict[str, np.ndarray]:
        """What a micro-batch of a step reads beside them: inputs, and random numbers."""
        inputs = self.case.micro_batch(step * self.case.options.micro_batches + place)
        drawn = {name: draw(step, place) for name, draw in self.forward.draws.items()}
        return {name: wide(array) for name, array in inputs.items()} | drawn

    def first_loss(self, place: int, inputs: dict[str, np.ndarray] | None = None, **noise) -> float:
        """Of a micro-batch of step 0, or of other inputs in its place."""
        return self.forward(self.weights() | self.values(0, place) | {name: wide(array) for name, array in (inputs or {}).items()}, loss_only=True, **noise)[0]

    def train(self, rng: np.random.Generator | None = None, level: float = 0.0) -> Training:
        case, options = self.case, self.case.options
        weights = self.weights()
        start = {name: weights[name] for name in self.trained}
        update, losses, norms, parts = make_update(options, start), [], [], {}
        for step in range(options.steps):
            total, sums = 0.0, {name: 0.0 for name in self.trained}
            folded = {name: weights[name] for name in self.forward.folds}
            for k in range(options.micro_batches):
                loss, gradients = self.forward(weights | self.values(step, k), rng, level)
                for name, (_, _, momentum) in self.forward.folds.items():
                    folded[name] = momentum * folded[name] + (1 - momentum) * self.forward.folded[name]
                total += loss / options.micro_batches
                sums = {name: sums[name] + gradients[name] / options.micro_batches for name in sums}
            if rng is not None:
                # What cancels entirely in one order of operations leaves a rest in another.
                rest = level * global_norm(sums) / np.sqrt(max(1, sum(x.size for x in sums.values())))
                sums = {name: x + rest * rng.standard_normal(x.shape) for name, x in sums.items()}
            losses.append(total)
            norms.append(global_norm(sums))
            parts = parts or {name: global_norm({name: x}) for name, x in sums.items()}
            weights.update(update({name: weights[name] for name in self.trained}, sums) | folded)
            if rng is not None:
                weights.update((name, weights[name] * (1 + level * rng.standard_normal(weights[name].shape))) for name in sums)
        start |= {name: wide(case.graph.statistics[name]) for name in self.forward.folds}
        return Training(losses, norms, parts, start, {name: weights[name] for name in start})


Measure = dict[str, tuple[float, float]]


def differences(got: Training, expected: Training) -> Measure:
    """By what is compared: how far it is off, and how far rounding may take it."""
    found: Measure = {}
    for step, (a, b) in enumerate(zip(got.losses, expected.losses)):
        found[f"loss of step {step}"] = abs(a - b), LOSS * (step + 1) * max(abs(b), 0.02)
    for step, (a, b) in enumerate(zip(got.norms, expected.norms)):
        found[f"gradient norm of step {step}"] = abs(a - b), NORM * (step + 1) * max(abs(b), 1e-4)
    whole = max(expected.norms[0], 1e-6)
    for name, b in expected.parts.items():
        found[f"gradient norm of {name} in step 0"] = abs(got.parts.get(name, np.nan) - b), PART * max(b, 1e-3 * whole, 1e-6)
    for name, b in expected.weights.items():
        moved = np.linalg.norm(b - expected.start[name])
        allowed = WEIGHTS * moved + 3e-7 * len(expected.losses) * np.linalg.norm(b) + 1e-8
        a = got.weights.get(name)
        found[f"weights of {name}"] = (float(np.linalg.norm(a - b)) if a is not None and a.shape == b.shape else np.nan), float(allowed)
    return found


def of_run(case: Case, run: Run, expected: Training) -> Training:
    """What a run went through, under the names that parameters have here; its numbers that are none become NaN."""
    own = {case.graph.spell(name): name for name in [*case.graph.parameters, *case.graph.statistics]}
    return Training([float(step["loss"]) for step in run.steps], [float(step["grad_norm"]) for step in run.steps],
                    {own[name]: float(x) for name, x in run.steps[0].get("grad_norms", {}).items()}, expected.start,
                    {own[name]: wide(array) for name, array in run.weights.items() if name in own})


def compare(oracle: Oracle, expected: Training, run: Run) -> bool:
    """Failure where the run is wrong; True where it is off as far as the case's sensitivity explains."""
    if not np.all(np.isfinite([*expected.losses, *expected.norms])):
        raise Failure("oracle", f"expected losses {expected.losses} and norms {expected.norms}")
    got = of_run(oracle.case, run, expected)
    if len(got.losses) != len(expected.losses):
        raise Failure("steps", f"{len(got.losses)} steps, expected {len(expected.losses)}", run.command)
    missing = sorted(set(expected.weights) - set(got.weights))
    if missing:
        raise Failure("frozen", f"not among the saved weights: {', '.join(missing)}", run.command)
    found = {what: pair for what, pair in differences(got, expected).items() if not pair[0] <= pair[1]}
    if not found:
        return False
    rng = np.random.default_rng(oracle.case.seed)
    explained = dict.fromkeys(found, 0.0)
    for _ in range(TRIES):
        noisy = differences(oracle.train(rng, NOISE), expected)
        explained = {what: max(explained[what], noisy[what][0]) for what in found}
        left = {what: pair for what, pair in found.items() if not pair[0] <= pair[1] + 8 * explained[what]}
        if not left:
            return True
    what, (off, allowed) = max(left.items(), key=lambda item: np.nan_to_num(item[1][0] / item[1][1], nan=np.inf))
    raise Failure("numbers", f"{what} {describe(what, got, expected)}: off by {off:.3g}, rounding allows {allowed:.2g} "
                  f"(sensitivity {explained[what]:.2g}); {len(left)} of {len(differences(got, expected))} figures differ", run.command)


def describe(what: str, got: Training, expected: Training) -> str:
    if what.startswith("weights of "):
        name = what.removeprefix("weights of ")
        if name in got.weights:
            return f"moved by {np.linalg.norm(got.weights[name] - expected.start[name]):.6g}, " \
                   f"expected {np.linalg.norm(expected.weights[name] - expected.start[name]):.6g}"
        return "are missing"
    if " of step " in what:
        step = int(what.rsplit(" ", 1)[1])
        pair = (x.losses[step] if what.startswith("loss") else x.norms[step] for x in (got, expected))
    else:
        name = what.removeprefix("gradient norm of ").removesuffix(" in step 0")
        pair = (x.parts.get(name, np.nan) for x in (got, expected))
    return "is {:.7g}, expected {:.7g}".format(*pair)
