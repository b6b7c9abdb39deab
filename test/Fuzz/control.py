"""Recipes for branches, loops, sequences, optionals and random numbers."""
from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from builder import Builder
from expand import Body
from movements import pieces
from recipes import axis_of, idiom, need, recipe
from regions import Region

SMOOTH = ["Sin", "Tanh", "Sigmoid", "Cos", "Softsign", "Softplus", "Relu", "Neg", "Identity", "Abs"]


class Inside:
    """A region that is being written, and what it captures."""

    def __init__(self, b: Builder, *inputs: str, **types: str):
        self.b, self.body, self.inputs, self.types = b, Body("r", b.opset), list(inputs), dict(types)
        self.around: list[str] = []

    def capture(self, name: str) -> str:
        if name not in self.around:
            self.around.append(name)
        return f"around{self.around.index(name)}"

    def steps(self, x: str, shape: tuple[int, ...]) -> str:
        """A value of the same shape, of moderate size where x is."""
        b, body = self.b, self.body
        for _ in range(b.choose(1, 1, 2, 3)):
            if b.chance(0.1):
                x = body("Add", x, body("RandomNormalLike", x, scale=0.5))
            elif b.chance(0.1):
                x = body("Dropout", x, body.constant(0.3), body.constant(True, np.bool_))
            elif b.chance(0.5):
                x = body(b.choose(*SMOOTH), x)
            else:
                x = body("Tanh", body(b.choose("Add", "Mul", "Sub"), x, self.other(shape)))
        return x

    def other(self, shape: tuple[int, ...]) -> str:
        """What broadcasts to a shape: a parameter, which others may use too, a value of the pool, or a number."""
        b = self.b
        found = [name for name in b.pool if b.shape_of(name) == shape]
        if found and b.chance(0.4):
            return self.capture(b.choose(*found))
        if b.chance(0.3):
            return self.body.constant(round(float(b.rng.normal()), 2))
        return self.capture(b.parameter(*[size if b.chance(0.7) else 1 for size in shape], scale=1.0))

    def region(self, *outputs: str, around: list[str] | None = None, **types: str) -> Region:
        """With all that the node captures, which its other regions may do."""
        around = self.around if around is None else around
        inputs = self.inputs + [f"around{k}" for k in range(len(around))]
        return Region(inputs, list(outputs), self.body.nodes, self.body.constants, len(around), self.types | types)


@recipe("If")
def branch(b: Builder, op: str) -> None:
    x = b.real(scalar=True)
    shape, count = b.shape_of(x), b.choose(1, 1, 2)
    first = Inside(b)
    inner = first.capture(x)
    outputs = [[first.steps(inner, shape) for _ in range(count)]]
    second = Inside(b)
    second.around = first.around
    outputs.append([second.steps(inner, shape) for _ in range(count)])
    kind = b.choose("known", "shape", "data", "data", "given")
    if kind in ("known", "shape") and shape and b.chance(0.3):
        # One that is known may give another shape.
        outputs[1] = [second.body.reduce("ReduceMean", name, [0], 0) for name in outputs[1]]
    if kind == "known":
        flag = b.constant(b.chance(0.5), np.bool_)
    elif kind == "shape":
        flag = b("Greater", b("Size", x), b.constant(b.choose(1, 30), np.int64))
    elif kind == "data":
        limit = float(np.mean(b.value(x))) + b.choose(-0.3, 0.3)
        flag = b("Less", b.reduce("ReduceMean", x, None, 0), b.constant(limit))
    else:
        flag = b.input(*b.choose((), (1,)), kind="mask", dtype="bool")
    regions = [part.region(*names, around=first.around) for part, names in ((first, outputs[0]), (second, outputs[1]))]
    results = b(op, flag, *first.around, outputs=count, then_branch=regions[0], else_branch=regions[1])
    b.offer(*([results] if count == 1 else results))


@idiom
def guarded(b: Builder) -> None:
    """A function where it is defined, else another."""
    x = b.bounded(b.real())
    x = b("Mul", x, b.parameter(*[size if b.chance(0.5) else 1 for size in b.shape_of(x)], scale=0.3, shift=1.0))
    x = b("Add", x, b.constant(b.choose(0.0, 2.0, 4.0)))
    function, branches = b.choose("Sqrt", "Log", "Acosh", "Reciprocal"), []
    flag = b("Greater", b.reduce("ReduceMin", x, None, 0), b.constant(1.1 if function == "Acosh" else 0.1))
    for op in (function, b.choose(*SMOOTH)):
        inside = Inside(b)
        branches.append(inside.region(inside.body(op, inside.capture(x)), around=[x]))
    b.offer(b("If", flag, x, then_branch=branches[0], else_branch=branches[1]))


@recipe("Loop")
def loop(b: Builder, op: str) -> None:
    """A state that is carried on, perhaps what iterations give; sometimes a count ends it, sometimes a condition."""
    x = b.real(most=120)
    shape, count = b.shape_of(x), b.choose(1, 2, 3, 5)
    inside = Inside(b, "i", "goes", "h", i="int64", goes="bool")
    body, h = inside.body, inside.steps("h", shape)
    if b.chance(0.3):
        # Each iteration another number.
        h = body("Add", h, body("Sin", body("Cast", "i", to=TensorProto.FLOAT)))
    if b.chance(0.2):
        # A branch in a loop, known in each iteration.
        parts = [Inside(b) for _ in range(2)]
        regions = [Region(["h"], [part.body(b.choose(*SMOOTH), "h")], part.body.nodes, part.body.constants, 1) for part in parts]
        h = body("If", body("Equal", body("Mod", "i", body.constant(2, np.int64)), body.constant(0, np.int64)), h,
                 then_branch=regions[0], else_branch=regions[1])
    if b.chance(0.15):
        # A loop in a loop, which reads the outer one's state and count.
        step = Inside(b, "j", "on", "u", "v", "i", j="int64", on="bool")
        u = step.body("Tanh", step.body("Add", "u", step.body("Mul", "v", step.body("Cast", step.body("Add", "i", "j"), to=TensorProto.FLOAT))))
        on = step.body("Identity", "on")
        inner = Region(step.inputs, [on, u], step.body.nodes, step.body.constants, 2, step.types | {on: "bool"})
        h = body("Loop", body.constant(2, np.int64), "", h, "h", "i", body=inner)
    if b.chance(0.3) and b.rank(x) >= 2:
        h = body("Tanh", body("MatMul", h, inside.capture(b.parameter(shape[-1], shape[-1]))))
    by_count = b.chance(0.6)
    goes = body("Identity", "goes") if by_count else body("Less", "i", body.constant(count - 1, np.int64))
    stacked = [body("Mul", h, body.constant(0.7))] if b.chance(0.5) and 5 * b.value(x).size <= b.limit else []
    # One without an iteration gives what it is given.
    count = 0 if by_count and not stacked and b.chance(0.1) else count
    most = b.constant(count if by_count else count + 3, np.int64) if by_count or b.chance(0.5) else ""
    if by_count and shape[0] <= 5 and b.chance(0.3):
        most = b("Gather", b("Shape", x), b.constant(0, np.int64))
    results = b(op, most, b.constant(True, np.bool_) if b.chance(0.5) else "", x, *inside.around, outputs=1 + len(stacked),
                body=inside.region(goes, h, *stacked, **{goes: "bool"}))
    b.offer(*([results] if not stacked else results))


@idiom
def bags(b: Builder) -> None:
    """Rows of a table reduced between offsets that are data, as exporters write PyTorch's EmbeddingBag; only sums may be of none."""
    count, rows, reduce = b.size(2, 6), b.size(3, 9), b.choose("Sum", "Mean", "Max")
    table = b.parameter(rows, b.size(most=5), scale=1.0)
    sizes = b.input(count, kind="ids", bound=3, dtype="int64")
    sizes = sizes if reduce == "Sum" else b("Add", sizes, b.constant(1, np.int64))
    indices = b.input(3 * count, kind="ids", bound=rows, dtype="int64")
    offsets = b("Concat", b.whole(0), b("CumSum", sizes, b.constant(0, np.int64)), axis=0)
    ends = b("Slice", offsets, b.whole(1), b.whole(count + 1), b.whole(0))
    inside = Inside(b, "i", "goes", i="int64", goes="bool")
    body = inside.body
    axes, zero = inside.body.whole(0), inside.body.whole(0)
    bounds = [body("Unsqueeze", body("Gather", inside.capture(name), "i", axis=0), axes) for name in (offsets, ends)]
    taken = body("Gather", inside.capture(table), body("Slice", inside.capture(indices), *bounds, zero), axis=0)
    if reduce == "Sum" and b.chance(0.4):
        factors = inside.capture(b.parameter(3 * count, scale=1.0))
        taken = body("Mul", taken, body("Unsqueeze", body("Slice", factors, *bounds, zero), body.whole(1)))
    y = body.reduce("Reduce" + reduce, taken, [0], 0)
    goes = body("Identity", "goes")
    region = inside.region(goes, y, **{goes: "bool"})
    b.offer(b("Loop", b.constant(count, np.int64), b.constant(True, np.bool_), *inside.around, body=region))


@recipe("Scan")
def scan(b: Builder, op: str) -> None:
    """A state and rows of one or two values, in either direction."""
    x = b.real(most=150, accept=lambda shape: len(shape) >= 2)
    axis = int(b.rng.integers(b.rank(x)))
    shape = tuple(size for a, size in enumerate(b.shape_of(x)) if a != axis)
    need(b.shape_of(x)[axis] <= 6, "length")
    rows = [x] + ([b.input(*b.shape_of(x))] if b.chance(0.3) else [])
    names = ["x", "y"][:len(rows)]
    inside = Inside(b, "h", *names)
    h = inside.body("Tanh", inside.body("Add", inside.steps("h", shape), inside.steps("x", shape)))
    if len(rows) > 1:
        h = inside.body("Mul", h, inside.body("Sigmoid", "y"))
    state = b.parameter(*shape, scale=0.5) if b.chance(0.5) else b.constant(np.zeros(shape))
    attributes = {"num_scan_inputs": len(rows), "scan_input_axes": [axis] * len(rows),
                  "scan_input_directions": [b.choose(0, 1) for _ in rows], "scan_output_axes": [int(b.rng.integers(len(shape) + 1))],
                  "scan_output_directions": [b.choose(0, 1)]}
    last, every = b(op, state, *rows, *inside.around, outputs=2, body=inside.region(h, inside.body("Identity", h)), **attributes)
    b.offer(*b.choose([last], [every], [last, every]))


@recipe("SplitToSequence", "SequenceAt", "SequenceLength", "ConcatFromSequence", "SequenceErase", "SequenceInsert", "SequenceMap")
def cut(b: Builder, op: str) -> None:
    """A value in pieces, each of which may be changed, and perhaps joined again."""
    x = b.real()
    axis = axis_of(b, b.rank(x))
    sizes = pieces(b, b.shape_of(x)[axis])
    count = len(sizes)
    sequence = b("SplitToSequence", x, b.whole(*sizes), axis=axis)
    if op == "SequenceMap":
        inside = Inside(b, "x")
        y = inside.steps("x", (1,) * b.rank(x))
        sequence = b(op, sequence, *inside.around, body=inside.region(y))
    elif op == "SequenceInsert":
        place = [b.constant(int(b.rng.integers(-count, count + 1)), np.int64)] if b.chance(0.7) else []
        sequence = b(op, sequence, b("Sin", x), *place)
        count += 1
    elif op == "SequenceErase":
        need(count > 1, "pieces")
        place = [b.constant(int(b.rng.integers(-count, count)), np.int64)] if b.chance(0.7) else []
        sequence = b(op, sequence, *place)
        count -= 1
    if op == "ConcatFromSequence" or b.chance(0.4):
        y = b("ConcatFromSequence", sequence, axis=axis)
        need(b.value(y).size <= 2 * b.limit, "size")
        b.offer(b("Sin", y))
        return
    parts = [b("SequenceAt", sequence, b.constant(k - (count if b.chance(0.3) else 0), np.int64)) for k in range(count)]
    b.offer(*parts)
    if op == "SequenceLength":
        b.offer(b("Mul", parts[0], b("Cast", b(op, sequence), to=TensorProto.FLOAT)))


@recipe("SequenceConstruct", "SequenceEmpty")
def construct(b: Builder, op: str) -> None:
    """Values one by one, of which each may be taken, or equal ones along a new axis."""
    x = b.real(most=b.limit // 3)
    parts = [x, b("Sin", x)] if b.chance(0.5) else [x, b.beside(x)]
    if op == "SequenceConstruct":
        sequence = b(op, *parts)
    else:
        sequence = b(op)
        for part in parts:
            sequence = b("SequenceInsert", sequence, part)
    if b.shape_of(parts[0]) == b.shape_of(parts[1]) and b.chance(0.6):
        b.offer(b("ConcatFromSequence", sequence, axis=axis_of(b, b.rank(x) + 1), new_axis=1))
        return
    b.offer(b("SequenceAt", sequence, b.constant(1, np.int64)), b("SequenceAt", sequence, b.constant(-2, np.int64)))


@idiom
def sequence_in_a_loop(b: Builder) -> None:
    """Values that a loop puts into a sequence, joined behind it."""
    x = b.real(most=120)
    inside = Inside(b, "i", "goes", "h", "s", i="int64", goes="bool", s="sequence")
    h = inside.steps("h", b.shape_of(x))
    s = inside.body("SequenceInsert", "s", h)
    body = inside.region(inside.body("Identity", "goes"), h, s, **{s: "sequence"})
    body.types[body.outputs[0]] = "bool"
    last, sequence = b("Loop", b.constant(b.choose(1, 2, 4), np.int64), "", x, b("SequenceEmpty"), *inside.around, outputs=2, body=body)
    b.offer(last, b("ConcatFromSequence", sequence, axis=axis_of(b, b.rank(x))))


@recipe("Optional", "OptionalGetElement", "OptionalHasElement")
def optional(b: Builder, op: str) -> None:
    """What may be missing, and a branch that asks for it."""
    x = b.real()
    there = b.chance(0.7)
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    given = b("Optional", x) if there else b("Optional", type=kind)
    if op == "OptionalGetElement" and there:
        b.offer(b("Sin", b(op, given)))
        return
    inside, other = Inside(b), Inside(b)
    value, fallback = inside.capture(x), inside.capture(b.parameter(*b.shape_of(x), scale=1.0))
    regions = [part.region(part.body("Sin", name), around=inside.around) for part, name in ((inside, value), (other, fallback))]
    b.offer(b("If", b("OptionalHasElement", given), *inside.around, then_branch=regions[0], else_branch=regions[1]))


def seed(b: Builder) -> dict[str, float]:
    return {"seed": float(b.choose(0, 1, 3.5, -2))} if b.chance(0.3) else {}


@recipe("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def random_numbers(b: Builder, op: str) -> None:
    x = b.real()
    attributes = {"mean": b.choose(0.0, 0.5), "scale": b.choose(1.0, 0.3)} if "Normal" in op else {"low": b.choose(0.0, -1.0), "high": b.choose(1.0, 2.0)}
    attributes = (attributes if b.chance(0.6) else {}) | seed(b)
    noise = b(op, x, **attributes) if op.endswith("Like") else b(op, shape=[int(size) for size in b.shape_of(x)], **attributes)
    if "Uniform" in op and b.chance(0.3):
        b.offer(b("Where", b("Less", noise, b.constant(0.5)), x, b.beside(x)))
    else:
        b.offer(b(b.choose("Add", "Mul"), x, noise))


@recipe("Bernoulli", "Multinomial")
def random_choices(b: Builder, op: str) -> None:
    if op == "Bernoulli":
        x = b.real()
        chances = b.input(*b.shape_of(x)) if b.chance(0.5) else b.constant(b.rng.random(b.shape_of(x)))
        b.offer(b("Mul", x, b(op, chances, **seed(b))))
        return
    rows, classes = b.batch, b.size(2, 9)
    scores = b.input(rows, classes) if b.chance(0.5) else b.constant(b.rng.normal(size=(rows, classes)))
    kind = b.choose(TensorProto.INT32, TensorProto.INT64)
    picked = b(op, scores, sample_size=b.choose(1, 1, 3), dtype=kind, **seed(b))
    b.offer(b("Gather", b.parameter(classes, b.size(most=5), scale=1.0), picked))
