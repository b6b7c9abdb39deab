"""Makes a failing case smaller for as long as it fails in the same way."""
from __future__ import annotations

import copy
import dataclasses
import math
import re
import time
from collections.abc import Callable, Iterator

import numpy as np

from checks import Layout, Property, degrees
from generate import Case, narrow
from graph import Graph, Node
from reference import trace
from tool import Failure
from training import Options

#: A case and what is checked of it; what is wrong with it, if anything is.
Trial = tuple[Case, list[Property]]
Attempt = Callable[[Case, list[Property], bool], Failure | None]
#: Failures that are seen without the oracle.
PLAIN = {"layout", "readback", "program", "resume", "plan", "saved", "budget", "internal", "refused", "nameless", "crash", "hang"}
#: Of these the checks need the oracle.
WITH_ORACLE = {"variant", "evaluate", "bf16"}


def signature(failure: Failure) -> str:
    """What two failures of one cause have in common: their text without names and numbers."""
    if failure.kind.split(": ")[-1] in ("internal", "refused", "nameless", "crash", "oracle"):
        text = failure.what.split(" error: ")[-1]
        return f"{failure.kind}: " + re.sub(r"'[^']*'|\d+|\([^)]*\)|\[[^\]]*\]", "", text)[:80]
    return failure.kind


class Minimizer:
    def __init__(self, attempt: Attempt, failure: Failure, seconds: float):
        self.attempt, self.wanted = attempt, signature(failure)
        self.failure = failure
        self.end = time.monotonic() + seconds

    def run(self, trial: Trial) -> Trial:
        """Each kind of change, until none of them helps."""
        while True:
            before = size_of(trial)
            for changes in (without_properties, fewer_options, fewer_nodes, smaller_sizes):
                trial = self.exhaust(trial, changes)
            if size_of(trial) == before or time.monotonic() > self.end:
                return trial

    def exhaust(self, trial: Trial, changes) -> Trial:
        tried: set[str] = set()
        progress = True
        while progress and time.monotonic() < self.end:
            progress = False
            for name, candidate in changes(trial):
                if name in tried or time.monotonic() > self.end:
                    continue
                plain = self.failure.kind in PLAIN and not any(chosen.name in WITH_ORACLE for chosen in candidate[1])
                failure = self.attempt(*candidate, not plain)
                if failure is not None and signature(failure) == self.wanted:
                    trial, self.failure, progress = candidate, failure, True
                    break
                tried.add(name)
        return trial


def size_of(trial: Trial) -> tuple:
    case, properties = trial
    graph = case.graph
    numbers = sum(array.size for array in [*graph.parameters.values(), *graph.constants.values(), *case.data.values()])
    return len(graph.nodes), numbers, str(case.options), str(properties), case.rows


def without_properties(trial: Trial) -> Iterator[tuple[str, Trial]]:
    case, properties = trial
    if properties:
        yield "none", (case, [])
    for k in range(len(properties) if len(properties) > 1 else 0):
        yield str(k), (case, [properties[k]])
    for k, chosen in enumerate(properties):
        if chosen.extra:
            for extra in dict.fromkeys([(), *[(word,) for word in chosen.extra]]):
                if extra != chosen.extra:
                    yield f"{k}.{extra}", (case, [*properties[:k], dataclasses.replace(chosen, extra=extra), *properties[k + 1:]])
        for place in ("layout", "other"):
            layout = getattr(chosen, place)
            for field in dataclasses.fields(Layout):
                if getattr(layout, field.name) != field.default:
                    simpler = dataclasses.replace(chosen, **{place: dataclasses.replace(layout, **{field.name: field.default})})
                    yield f"{k}.{place}.{field.name}", (case, [*properties[:k], simpler, *properties[k + 1:]])


def fewer_options(trial: Trial) -> Iterator[tuple[str, Trial]]:
    case, properties = trial
    options, simplest = case.options, Options(steps=1)
    widest = max([1, *(layout.dp for chosen in properties for layout in (chosen.layout, chosen.other))])

    def changed(**values) -> Trial:
        return dataclasses.replace(case, options=dataclasses.replace(options, **values)), properties

    for steps in {1, 2} - {options.steps}:
        if steps < options.steps:
            yield f"steps {steps}", changed(steps=steps)
    for count, shards in ((1, 1), (2, 1), (2, 2), (4, 2), (4, 4)):
        if count < options.micro_batches and widest in degrees(shards):
            yield f"micro-batches {count} {shards}", changed(micro_batches=count, shards=shards)
    for field in dataclasses.fields(Options):
        name = field.name
        if name not in ("steps", "micro_batches", "shards") and getattr(options, name) != getattr(simplest, name):
            yield name, changed(**{name: getattr(simplest, name)})
    for name, plain in (("spelling", "{}"), ("symbols", {}), ("extra", {}), ("attached", None), ("constant_nodes", True), ("inner_parameters", False)):
        if getattr(case.graph, name) != plain:
            graph = case.graph.copy()
            setattr(graph, name, plain)
            yield name, (dataclasses.replace(case, graph=graph), properties)
    if case.rows:
        yield "rows", (dataclasses.replace(case, rows=False), properties)
    least = options.micro_batches
    if case.data and len(next(iter(case.data.values()))) > least:
        yield "data", (dataclasses.replace(case, data={name: stream[:least] for name, stream in case.data.items()}), properties)


def fewer_nodes(trial: Trial) -> Iterator[tuple[str, Trial]]:
    case, properties = trial
    graph = case.graph
    try:
        values = trace(graph, case.micro_batch(0), [graph.loss]).values
    except Exception:  # a graph that the reference cannot run is not made smaller
        return

    if graph.attached:  # the loss is not the file's
        return

    def candidate(name: str, change: Callable[[Graph], None]) -> Iterator[tuple[str, Trial]]:
        made = graph.copy()
        change(made)
        made.prune()
        data = {key: stream for key, stream in case.data.items() if key in made.inputs}
        options = copy.deepcopy(case.options)
        options.lr_scale = {key: x for key, x in options.lr_scale.items() if key in made.parameters}
        options.no_decay = [key for key in options.no_decay if key in made.parameters or key == "rank1"]
        # A program reads something from its data.
        if data and made.parameters and extent(made) < extent(graph):
            yield name, (dataclasses.replace(case, graph=made, data=data, options=options), properties)

    yield from candidate("prune", lambda made: None)
    wanted = graph.needed([graph.loss])
    names = [name for node in graph.nodes for name in node.outputs if name in wanted and name in values]
    floats = [name for name in names if values[name].dtype.kind == "f" and name != graph.loss]
    # Far cuts first: the loss from an early value on, or a late value known.
    for name in floats:
        yield from candidate(f"loss {name}", lambda made: shorten(made, name, values[name]))
    for name in reversed(names):
        if name != graph.loss:
            for place in ("parameters", "constants") if values[name].dtype.kind == "f" else ("constants",):
                yield from candidate(f"{place} {name}", lambda made: known(made, name, values[name], place))
    for k, node in enumerate(graph.nodes):
        for source in dict.fromkeys(node.inputs):
            for target in node.outputs:
                if source in values and target in values and values[source].shape == values[target].shape \
                        and values[source].dtype == values[target].dtype:
                    yield from candidate(f"bypass {k} {source} {target}", lambda made: bypass(made, target, source))
    for name in list(graph.inputs):
        if name in values:
            yield from candidate(f"constants {name}", lambda made: known(made, name, case.data[name][0], "constants"))
    for name in list(graph.parameters):
        yield from candidate(f"constants {name}", lambda made: known(made, name, graph.parameters[name], "constants"))


def extent(graph: Graph) -> tuple[int, int, int]:
    return len(graph.nodes), len(graph.inputs) + len(graph.parameters), len(graph.constants)


def bypass(graph: Graph, target: str, source: str) -> None:
    for node in graph.nodes:
        node.inputs = [source if name == target else name for name in node.inputs]
    if graph.loss == target:
        graph.loss = source


def shorten(graph: Graph, name: str, value: np.ndarray) -> None:
    """The loss becomes a weighed mean of an earlier value."""
    weights = np.cos(np.arange(value.size) + 1.0).reshape(value.shape)
    graph.constants["c.weights"] = weights.astype(np.float32)
    graph.nodes += [Node("Mul", [name, "c.weights"], ["weighed"]), Node("ReduceMean", ["weighed"], ["mean"], {"keepdims": 0})]
    graph.nodes = [node for k, node in enumerate(graph.nodes) if k >= len(graph.nodes) - 2 or not {"weighed", "mean"}.intersection(node.outputs)]
    graph.loss = "mean"


def known(graph: Graph, name: str, value: np.ndarray, place: str) -> None:
    """A value becomes a constant or a parameter."""
    letter = "p" if place == "parameters" else "c"
    new = name if name.startswith(letter) else f"{letter}.{name}"
    graph.inputs.pop(name, None)
    graph.parameters.pop(name, None)
    getattr(graph, place)[new] = narrow(np.asarray(value))
    bypass(graph, name, new)


def smaller_sizes(trial: Trial) -> Iterator[tuple[str, Trial]]:
    """A size becomes a smaller one wherever it stands; what does not fit then is no candidate."""
    case, properties = trial
    graph = case.graph
    arrays = [*graph.parameters.values(), *graph.constants.values()]
    sizes = sorted({size for array in arrays for size in array.shape} | {size for given in graph.inputs.values() for size in given.shape}, reverse=True)
    for size in sizes:
        for smaller in dict.fromkeys((1, 2, math.ceil(size / 2), size - 1)):
            if 0 < smaller < size:
                made = resized(case, size, smaller)
                if made is not None:
                    yield f"{size} to {smaller}", (made, properties)


def resized(case: Case, size: int, smaller: int) -> Case | None:
    def cut(array: np.ndarray, skip: int = 0) -> np.ndarray:
        return array[tuple(slice(smaller) if axis >= skip and length == size else slice(None) for axis, length in enumerate(array.shape))]

    graph = case.graph.copy()
    graph.parameters = {name: cut(array) for name, array in graph.parameters.items()}
    graph.statistics = {name: cut(array) for name, array in graph.statistics.items()}
    for name, array in graph.constants.items():
        array = cut(array)
        graph.constants[name] = np.where(array == size, smaller, array).astype(array.dtype) if array.dtype.kind == "i" else array
    for given in graph.inputs.values():
        given.shape = tuple(smaller if length == size else length for length in given.shape)
        given.bound = smaller if given.bound == size else given.bound
    data = {}
    for name, stream in case.data.items():
        stream, given = cut(stream, 1), graph.inputs[name]
        if given.kind in ("ids", "labels"):
            stream = np.where(stream >= given.bound, stream % given.bound, stream).astype(stream.dtype)
        data[name] = stream
    made = dataclasses.replace(case, graph=graph, data=data)
    try:
        trace(graph, made.micro_batch(0), [graph.loss])
    except Exception:  # the sizes do not fit together any more
        return None
    return made
