"""The same computation said in other words: what training gives stays the same within rounding.

A variant is given a case and returns another whose expected numbers are the given one's, or None
where it has nothing to change.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from compare import Oracle
from expand import EXPANSIONS, Body
from generate import Case
from graph import Graph, Input, Node
from reference import trace

Variant = Callable[[Case, Oracle, np.random.Generator], Case | None]
VARIANTS: dict[str, Variant] = {}
#: Operands of these may be inputs as well as constants.
ORDINARY = {"Add", "Sub", "Mul", "Div", "Sum", "MatMul", "Where"}


def variant(function: Variant) -> Variant:
    VARIANTS[function.__name__] = function
    return function


def live_nodes(graph: Graph) -> list[Node]:
    wanted = graph.needed([graph.loss])
    return [node for node in graph.nodes if wanted.intersection(node.outputs)]


def pick(rng: np.random.Generator, items: list):
    return items[int(rng.integers(len(items)))] if items else None


def insert_before_use(graph: Graph, value: str, made: list[Node], result: str) -> None:
    """Puts nodes behind the value's producer; who read the value reads the result."""
    for node in graph.nodes:
        node.inputs = [result if name == value else name for name in node.inputs]
    place = next((k + 1 for k, node in enumerate(graph.nodes) if value in node.outputs), 0)
    graph.nodes[place:place] = made
    if graph.loss == value:
        graph.loss = result


@variant
def micro_batches_permuted(case: Case, oracle: Oracle, rng: np.random.Generator) -> Case | None:
    count = case.options.micro_batches
    streams = len(next(iter(case.data.values()), ()))
    if count < 2 or not streams or streams % count or oracle.forward.draws or oracle.forward.folds:
        return None
    order = np.concatenate([begin + rng.permutation(count) for begin in range(0, streams, count)])
    return dataclasses.replace(case, data={name: stream[order] for name, stream in case.data.items()})


@variant
def rows_permuted(case: Case, oracle: Oracle, rng: np.random.Generator) -> Case | None:
    """Where the oracle finds that the rows' order does not matter, it does not for dsopt."""
    sizes = {given.shape[0] for given in case.graph.inputs.values() if given.shape}
    if len(sizes) != 1 or any(not given.shape for given in case.graph.inputs.values()) or sizes == {1}:
        return None
    order = rng.permutation(sizes.pop())
    first = case.micro_batch(0)
    moved = oracle.first_loss(0, {name: array[order] for name, array in first.items()})
    if oracle.forward.draws or abs(moved - oracle.first_loss(0)) > 1e-10 * max(1.0, abs(moved)):
        return None
    return dataclasses.replace(case, data={name: stream[:, order] for name, stream in case.data.items()})


def by_hand(body: Body, node: Node, arrays: list) -> list[str] | None:
    """Elementwise operations and means in other words, which overflow no float32 where the operation does not."""
    a, b = (node.inputs + ["", ""])[:2]
    if node.op == "Sub":
        return [body("Add", a, body("Neg", b))]
    if node.op == "Div":
        return [body("Mul", a, body("Reciprocal", b))]
    if node.op == "Sigmoid":
        return [body("Add", body("Mul", body("Tanh", body("Mul", a, body.constant(0.5))), body.constant(0.5)), body.constant(0.5))]
    if node.op == "Relu":
        return [body("Where", body("Greater", a, body.constant(0.0)), a, body.constant(0.0))]
    if node.op == "Neg":
        return [body("Mul", a, body.constant(-1.0))]
    if node.op == "Mul" and a == b:
        return [body("Pow", a, body.constant(2.0))]
    if node.op == "Softplus" and np.all(np.abs(arrays[0]) < 10):
        return [body("Log", body("Add", body("Exp", a), body.constant(1.0)))]
    if node.op == "Reciprocal":
        return [body("Pow", a, body.constant(-1.0))]
    return None


@variant
def decomposed(case: Case, oracle: Oracle, rng: np.random.Generator) -> Case | None:
    """Some nodes as their expansions."""
    graph = case.graph.copy()
    values = trace(graph, case.micro_batch(0), [graph.loss]).values
    changed = 0
    for node in [n for n in live_nodes(graph) if rng.random() < 0.5]:
        # Running statistics are no parameters where a normalization reads them.
        if any(name and name not in values or name in graph.statistics for name in node.inputs) or node.op == "Dropout":
            continue
        floats = all(values[name].dtype.kind == "f" for name in node.inputs[:1] if name)
        body = Body(f"{node.outputs[0]}_", graph.opset)
        arrays = [values[name] if name else None for name in node.inputs]
        results = EXPANSIONS[node.op](body, node, arrays) if node.op in EXPANSIONS else by_hand(body, node, arrays) if floats else None
        if results is None:
            continue
        for name, array in body.constants.items():
            graph.constants["c" + name] = array.astype(np.float32) if array.dtype == np.float64 else array
        for inner in body.nodes:
            inner.inputs = ["c" + name if name in body.constants else name for name in inner.inputs]
        results = ["c" + name if name in body.constants else name for name in results]
        made = body.nodes + [Node("Identity", [source], [name]) for name, source in zip(node.outputs, results) if name]
        place = next(k for k, other in enumerate(graph.nodes) if other is node)
        graph.nodes[place:place + 1] = made
        changed += 1
    return dataclasses.replace(case, graph=graph) if changed else None


@variant
def constant_as_input(case: Case, oracle: Oracle, rng: np.random.Generator) -> Case | None:
    graph = case.graph.copy()
    found = []
    for name, array in graph.constants.items():
        users = [node for node in graph.nodes if name in node.inputs]
        if array.dtype == np.float32 and users and all(node.op in ORDINARY for node in users) and np.all(np.isfinite(array)):
            found.append(name)
    name = pick(rng, found)
    if name is None:
        return None
    array = graph.constants.pop(name)
    graph.inputs[name] = Input(array.shape)
    count = len(next(iter(case.data.values()))) if case.data else case.options.micro_batches
    return dataclasses.replace(case, graph=graph, data=case.data | {name: np.repeat(array[None], count, 0)}, rows=False)


@variant
def values_wrapped(case: Case, oracle: Oracle, rng: np.random.Generator) -> Case | None:
    """Pairs of operations that undo each other, around some values."""
    graph = case.graph.copy()
    values = trace(graph, case.micro_batch(0), [graph.loss]).values
    wanted = graph.needed([graph.loss])
    found = [name for name in [*graph.parameters, *(n for node in graph.nodes for n in node.outputs)]
             if name in wanted and name in values and values[name].dtype.kind == "f"]
    for count in range(int(rng.integers(1, 4))):
        name, x = pick(rng, found), f"w{count}"
        if name is None:
            return None
        rank, shape = values[name].ndim, values[name].shape
        kind = str(rng.choice(["transpose", "negated", "reshaped", "identity", "unsqueezed", "halves", "joined"]))
        if kind == "transpose" and rank:
            perm = rng.permutation(rank)
            pair = [("Transpose", [name], {"perm": [int(a) for a in perm]}), ("Transpose", [x + ".0"], {"perm": [int(a) for a in np.argsort(perm)]})]
        elif kind == "negated":
            pair = [("Neg", [name], {}), ("Neg", [x + ".0"], {})]
        elif kind == "reshaped":
            graph.constants.update({f"c{x}.flat": np.array([-1]), f"c{x}.shape": np.array(shape, np.int64)})
            pair = [("Reshape", [name, f"c{x}.flat"], {}), ("Reshape", [x + ".0", f"c{x}.shape"], {})]
        elif kind == "unsqueezed":
            graph.constants[f"c{x}.axis"] = np.array([int(rng.integers(rank + 1))])
            pair = [("Unsqueeze", [name, f"c{x}.axis"], {}), ("Squeeze", [x + ".0", f"c{x}.axis"], {})]
        elif kind == "halves":
            graph.constants[f"c{x}.share"] = np.float32(0.25) * np.ones((), np.float32)
            graph.constants[f"c{x}.rest"] = np.float32(0.75) * np.ones((), np.float32)
            pair = [("Mul", [name, f"c{x}.share"], {}), ("Mul", [name, f"c{x}.rest"], {}), ("Add", [x + ".0", x + ".1"], {})]
        elif kind == "joined" and rank and shape[0] > 1:
            graph.constants.update({f"c{x}.{k}": np.array(list(pair)) for k, pair in (("b", [0]), ("m", [1]), ("e", [shape[0]]), ("a", [0]))})
            pair = [("Slice", [name, f"c{x}.b", f"c{x}.m", f"c{x}.a"], {}), ("Slice", [name, f"c{x}.m", f"c{x}.e", f"c{x}.a"], {}),
                    ("Concat", [x + ".0", x + ".1"], {"axis": 0})]
        else:
            pair = [("Identity", [name], {})]
        made = [Node(op, inputs, [f"{x}.{k}"], attributes) for k, (op, inputs, attributes) in enumerate(pair)]
        insert_before_use(graph, name, made, f"{x}.{len(made) - 1}")
        found.remove(name)
    return dataclasses.replace(case, graph=graph)


@variant
def sum_split(case: Case, oracle: Oracle, rng: np.random.Generator) -> Case | None:
    """A sum over axes as the sum of two parts' sums, and a mean as a sum."""
    graph = case.graph.copy()
    values = trace(graph, case.micro_batch(0), [graph.loss]).values
    node = pick(rng, [n for n in live_nodes(graph) if n.op in ("ReduceSum", "ReduceMean") and not n.attributes.get("axes")
                      and not n.attributes.get("noop_with_empty_axes") and n.inputs[0] in values and values[n.inputs[0]].ndim])
    if node is None:
        return None
    x = values[node.inputs[0]]
    axes = sorted(int(a) % x.ndim for a in values[node.inputs[1]]) if len(node.inputs) > 1 else list(range(x.ndim))
    if not axes or x.shape[axes[0]] < 2:
        return None
    axis, name = axes[0], node.outputs[0]
    cut = int(rng.integers(1, x.shape[axis]))
    graph.constants[f"c{name}.sizes"] = np.array([cut, x.shape[axis] - cut])
    count = x.size / max(1, values[name].size)
    graph.constants[f"c{name}.share"] = np.asarray(1 / count if node.op == "ReduceMean" else 1.0, np.float32)
    parts = [f"{name}.{k}" for k in range(2)]
    made = [Node("Split", [node.inputs[0], f"c{name}.sizes"], parts, {"axis": axis})]
    made += [Node("ReduceSum", [part, *node.inputs[1:]], [part + ".sum"], dict(node.attributes)) for part in parts]
    made += [Node("Add", [part + ".sum" for part in parts], [name + ".total"]), Node("Mul", [name + ".total", f"c{name}.share"], [name])]
    place = next(k for k, other in enumerate(graph.nodes) if other is node)
    graph.nodes[place:place + 1] = made
    return dataclasses.replace(case, graph=graph)


@variant
def input_as_constant(case: Case, oracle: Oracle, rng: np.random.Generator) -> Case | None:
    """Only where every micro-batch has the same values of it."""
    found = [name for name, stream in case.data.items() if all(np.array_equal(x, stream[0]) for x in stream)]
    used = case.graph.needed([case.graph.loss])
    target = case.graph.attached[2] if case.graph.attached else None  # which the file does not have
    name = pick(rng, [n for n in found if n in used and n != target and case.graph.inputs[n].kind != "labels"])
    if name is None:
        return None
    graph = case.graph.copy()
    del graph.inputs[name]
    graph.constants["c" + name] = case.data[name][0]
    for node in graph.nodes:
        node.inputs = ["c" + name if n == name else n for n in node.inputs]
    made = dataclasses.replace(case, graph=graph, data={n: stream for n, stream in case.data.items() if n != name})
    # Parameters of a branch that is never taken are none.
    return made if made.data and Oracle(made).trained == oracle.trained else None
