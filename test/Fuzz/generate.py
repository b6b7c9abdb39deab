"""A case: a graph, its data and how it is trained, all of one seed."""
from __future__ import annotations

import dataclasses

import numpy as np

import idioms
import control  # noqa: F401  registers recipes
import layers  # noqa: F401
import models  # noqa: F401
import movements  # noqa: F401
import recurrent  # noqa: F401  registers expansions
import sampling  # noqa: F401
import signals  # noqa: F401
import transforms  # noqa: F401
from builder import Builder, Unsuitable
from gradients import Gradients
from graph import Graph
from recipes import IDIOMS, RECIPES, SINCE
from reference import wide
from training import Options, draw_options, name_parameters

OPSETS = [13, 15, 17, 18, 18, 20, 21, 23, 24, 26, 28]
#: How names may look in a file; none is a pattern to match names with.
SPELLINGS = ["a/b/{}", "m.{}.weight", "{} x", "λ{}", '"{}"', "{}'s", "%{}", "@{}", "{}::0", "-{}=1", "{}, {}"]


@dataclasses.dataclass
class Case:
    """All that a seed stands for."""

    seed: int
    graph: Graph
    options: Options
    #: Of each input a stream of micro-batches.
    data: dict[str, np.ndarray]
    #: Whether the file holds micro-batches, or rows that dsopt cuts into micro-batches.
    rows: bool = False

    def micro_batch(self, index: int) -> dict[str, np.ndarray]:
        return {name: stream[index % len(stream)] for name, stream in self.data.items()}

    def choices(self) -> list[str]:
        """What is trained and what the loss is, where the file does not say it."""
        graph = self.graph
        words = [f"-freeze={graph.spell('c*')}"] if any(map(graph.may_be_weight, graph.constants)) else []
        # Parameters of one element are frozen where nothing else is said.
        return words + [f"-train={graph.spell(name)}" for name, array in graph.parameters.items() if array.size == 1] + graph.loss_option()

    def arguments(self) -> list[str]:
        """Everything but the layout."""
        return self.options.arguments(self.graph.spell) + self.choices()

    def arrays(self) -> dict[str, np.ndarray]:
        """What the data's file holds."""
        return {self.graph.spell(name): np.ascontiguousarray(stream.reshape(-1, *stream.shape[2:]) if self.rows else stream)
                for name, stream in self.data.items()}


def narrow(array: np.ndarray) -> np.ndarray:
    """As the model has it."""
    return array.astype(np.float32) if array.dtype == np.float64 else array


def build(rng: np.random.Generator, opset: int) -> Builder:
    b = Builder(rng, opset)
    operators = [op for op in RECIPES if SINCE.get(op, 0) <= opset]
    wanted, tries = int(rng.choice([1, 2, 3, 5, 8, 12])), 0
    while wanted > 0 and tries < 100:
        tries += 1
        b.limit = 20000 if b.chance(0.01) else 700
        try:
            if b.chance(0.3):
                IDIOMS[b.choose(*IDIOMS)](b)
            else:
                op = b.choose(*operators)
                RECIPES[op](b, op)
            wanted -= 1
        except Unsuitable:
            continue
    for _ in range(20):
        try:
            idioms.finish(b)
            return b
        except Unsuitable:
            continue
    raise Unsuitable("no loss")


def restrain(b: Builder, forward: Gradients, data: dict[str, np.ndarray]) -> None:
    """Where a micro-batch makes the loss too large for float32, the one that the graph was built with takes its place."""
    for k in range(len(next(iter(data.values()), ()))):
        given = {name: wide(stream[k]) for name, stream in data.items()}
        loss, _ = forward({name: b.value(name) for name in b.trace.varying} | given, loss_only=True)
        if not abs(loss) <= 1e4:
            for name, stream in data.items():
                stream[k] = b.value(name)


def generate(seed: int) -> Case:
    rng = np.random.default_rng([seed, 11])
    while True:
        try:
            b = build(rng, int(rng.choice(OPSETS)))
            break
        except Unsuitable:
            continue
    graph = b.graph
    if b.chance(0.5):
        graph.prune()
    graph.constant_nodes = b.chance(0.6)
    graph.inner_parameters = b.chance(0.3)
    if b.chance(0.15):
        # -loss=KIND:OUTPUT,TARGET has its own comma.
        graph.spelling = b.choose(*[text for text in SPELLINGS if "," not in text or not graph.attached])
    options = draw_options(rng)
    # What the loss does not depend on is no parameter of the model.
    forward = Gradients(b.trace, graph.loss, list(graph.parameters))
    name_parameters(options, forward.reached, rng)
    count = options.micro_batches * (options.steps if b.chance(0.8) else int(rng.integers(1, options.steps + 1)))
    data = {name: np.stack([given.draw(rng) for _ in range(count)]) for name, given in graph.inputs.items()}
    for name in data:
        if b.chance(0.08):
            data[name][:] = data[name][0]
    restrain(b, forward, data)
    firsts = {given.shape[0] if given.shape else 0 for given in graph.inputs.values()}
    rows = len(firsts) == 1 and 0 not in firsts and b.chance(0.5)
    if not rows and b.chance(0.2):
        sizes = {size for given in graph.inputs.values() for size in given.shape}
        graph.symbols = {size: f"n{size}" for size in sizes if b.chance(0.6)}
    if b.chance(0.2):
        live = [name for node in graph.nodes for name in node.outputs if name in b.trace.values and name != graph.loss]
        graph.extra = {name: str(narrow(b.value(name)).dtype) for name in live[-3:] if not graph.attached and b.chance(0.7)}
    return Case(seed, graph, options, data, rows)
