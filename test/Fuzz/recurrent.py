"""Recurrent layers as primitive operations, step by step."""
from __future__ import annotations

import numpy as np

from expand import Arrays, Body, expansion, given
from graph import Node


class Direction:
    """One direction of a layer: its weights, and its state from step to step."""

    def __init__(self, body: Body, node: Node, arrays: Arrays, place: int):
        self.body, self.node, self.place = body, node, place
        self.hidden = node.attributes["hidden_size"]
        self.gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[node.op]
        self.weight, self.recurrence = (body.permute(self.slice(name), 1, 0) for name in node.inputs[1:3])
        self.bias, self.recurrent_bias = None, None
        if given(node, 3):
            halves = body("Split", self.slice(node.inputs[3]), body.whole(*[self.gates * self.hidden] * 2), outputs=2, axis=0)
            self.bias, self.recurrent_bias = halves
        zero = body.constant(np.zeros((arrays[0].shape[1], self.hidden)))
        self.h, self.c = (self.slice(given(node, k)) if given(node, k) else zero for k in (5, 6))
        self.peepholes = self.split(self.slice(node.inputs[7]), 3, 0) if given(node, 7) else None

    def slice(self, name: str) -> str:
        return self.body("Gather", name, self.body.constant(self.place, np.int64), axis=0)

    def split(self, name: str, count: int, axis: int) -> list[str]:
        parts = self.body("Split", name, self.body.whole(*[self.hidden] * count), outputs=count, axis=axis)
        return [parts] if count == 1 else parts

    def product(self, x: str, weight: str, bias: str | None) -> str:
        y = self.body("MatMul", x, weight)
        return self.body("Add", y, bias) if bias else y

    def step(self, x: str) -> str:
        inside = self.split(self.product(x, self.weight, self.bias), self.gates, 1)
        recurrent = self.split(self.product(self.h, self.recurrence, self.recurrent_bias), self.gates, 1)
        getattr(self, self.node.op.lower())(inside, recurrent)
        return self.h

    def rnn(self, inside: list[str], recurrent: list[str]) -> None:
        self.h = self.body("Tanh", self.body("Add", inside[0], recurrent[0]))

    def gru(self, inside: list[str], recurrent: list[str]) -> None:
        body = self.body
        update, reset = (body("Sigmoid", body("Add", inside[k], recurrent[k])) for k in (0, 1))
        if self.node.attributes.get("linear_before_reset", 0):
            past = body("Mul", reset, recurrent[2])
        else:
            weight = self.split(self.recurrence, 3, 1)[2]
            bias = self.split(self.recurrent_bias, 3, 0)[2] if self.recurrent_bias else None
            past = self.product(body("Mul", reset, self.h), weight, bias)
        candidate = body("Tanh", body("Add", inside[2], past))
        kept = body("Sub", self.h, candidate)
        self.h = body("Add", candidate, body("Mul", update, kept))

    def lstm(self, inside: list[str], recurrent: list[str]) -> None:
        body = self.body
        i, o, f, c = (body("Add", a, b) for a, b in zip(inside, recurrent))
        if self.peepholes:
            i, f = (body("Add", gate, body("Mul", weight, self.c)) for gate, weight in ((i, self.peepholes[0]), (f, self.peepholes[2])))
        kept = body("Mul", body("Sigmoid", f), self.c)
        self.c = body("Add", kept, body("Mul", body("Sigmoid", i), body("Tanh", c)))
        if self.peepholes:
            o = body("Add", o, body("Mul", self.peepholes[1], self.c))
        self.h = body("Mul", body("Sigmoid", o), body("Tanh", self.c))


@expansion("RNN", "GRU", "LSTM")
def recurrent(body: Body, node: Node, arrays: Arrays) -> list[str]:
    steps, mode = arrays[0].shape[0], node.attributes.get("direction", "forward")
    rows = [body("Gather", node.inputs[0], body.constant(k, np.int64), axis=0) for k in range(steps)]
    directions = [Direction(body, node, arrays, k) for k in range(1 + (mode == "bidirectional"))]
    outputs: list[list[str]] = []
    for direction, backward in zip(directions, (mode == "reverse", True)):
        order = range(steps - 1, -1, -1) if backward else range(steps)
        states = {k: direction.step(rows[k]) for k in order}
        outputs.append([body("Unsqueeze", states[k], body.whole(0, 1)) for k in range(steps)])
    along = [body("Concat", *row, axis=0) if steps > 1 else row[0] for row in outputs]
    y = body("Concat", *along, axis=1) if len(along) > 1 else along[0]
    last = [body("Concat", *[body("Unsqueeze", state, body.whole(0)) for state in states], axis=0)
            for states in ([d.h for d in directions], [d.c for d in directions])]
    return [y, *last]
