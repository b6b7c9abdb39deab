"""Composite operations as primitive ones: for the oracle, which knows derivatives of the latter
alone, and for models that say the same in other words (`metamorphic.py`).

Each expansion writes nodes into a `Body` and returns the names of the node's outputs. It is
given the node's input arrays, of which it reads shapes and what has to be known.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto, helper

from graph import Node


class Body:
    def __init__(self, prefix: str, opset: int):
        self.prefix, self.opset = prefix, opset
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}

    def name(self) -> str:
        return f"{self.prefix}{len(self.nodes) + len(self.constants)}"

    def constant(self, value, dtype=np.float32) -> str:
        name = self.name()
        self.constants[name] = np.asarray(value, dtype)
        return name

    def whole(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def __call__(self, op: str, *inputs: str, outputs: int = 1, **attributes):
        names = [f"{self.name()}.{k}" for k in range(outputs)]
        self.nodes.append(Node(op, list(inputs), names, attributes, self.opset))
        return names[0] if outputs == 1 else names

    def reduce(self, op: str, x: str, axes, keepdims: int = 1) -> str:
        axes = [int(axis) for axis in axes]
        if self.opset < (13 if op == "ReduceSum" else 18):
            return self(op, x, axes=axes, keepdims=keepdims)
        return self(op, x, self.whole(*axes), keepdims=keepdims)

    def reshape(self, x: str, *shape: int) -> str:
        return self("Reshape", x, self.whole(*shape))

    def permute(self, x: str, *perm: int) -> str:
        return self("Transpose", x, perm=[int(axis) for axis in perm])


Arrays = list
Expansion = Callable[[Body, Node, Arrays], list[str]]
EXPANSIONS: dict[str, Expansion] = {}


def expansion(*names: str):
    def register(function: Expansion) -> Expansion:
        for name in names:
            EXPANSIONS[name] = function
        return function
    return register


def given(node: Node, place: int) -> str:
    return node.inputs[place] if len(node.inputs) > place else ""


@expansion("Gemm")
def gemm(body: Body, node: Node, arrays: Arrays) -> list[str]:
    get = node.attributes.get
    a, b = (body.permute(name, 1, 0) if get(flag, 0) else name
            for name, flag in zip(node.inputs, ("transA", "transB")))
    y = body("Mul", body("MatMul", a, b), body.constant(get("alpha", 1.0)))
    if given(node, 2):
        y = body("Add", y, body("Mul", node.inputs[2], body.constant(get("beta", 1.0))))
    return [y]


@expansion("Softmax", "LogSoftmax")
def softmax(body: Body, node: Node, arrays: Arrays) -> list[str]:
    axes = [node.attributes.get("axis", -1)]
    shifted = body("Sub", node.inputs[0], body.reduce("ReduceMax", node.inputs[0], axes))
    numerator = body("Exp", shifted)
    total = body.reduce("ReduceSum", numerator, axes)
    if node.op == "Softmax":
        return [body("Div", numerator, total)]
    return [body("Sub", shifted, body("Log", total))]


def normalize(body: Body, x: str, axes, epsilon: float) -> tuple[str, str, str]:
    """Zero mean and variance 1 over the axes; the mean and the reciprocal of the deviation."""
    mean = body.reduce("ReduceMean", x, axes)
    centered = body("Sub", x, mean)
    variance = body.reduce("ReduceMean", body("Mul", centered, centered), axes)
    inverse = body("Reciprocal", body("Sqrt", body("Add", variance, body.constant(epsilon))))
    return body("Mul", centered, inverse), mean, inverse


@expansion("LayerNormalization")
def layer_normalization(body: Body, node: Node, arrays: Arrays) -> list[str]:
    rank = arrays[0].ndim
    axes = range(node.attributes.get("axis", -1) % rank, rank)
    y, mean, inverse = normalize(body, node.inputs[0], axes, node.attributes.get("epsilon", 1e-5))
    y = body("Mul", y, node.inputs[1])
    return [body("Add", y, node.inputs[2]) if given(node, 2) else y, mean, inverse]


@expansion("InstanceNormalization")
def instance_normalization(body: Body, node: Node, arrays: Arrays) -> list[str]:
    rank = arrays[0].ndim
    y, _, _ = normalize(body, node.inputs[0], range(2, rank), node.attributes.get("epsilon", 1e-5))
    scale, bias = (body.reshape(name, -1, *[1] * (rank - 2)) for name in node.inputs[1:])
    return [body("Add", body("Mul", y, scale), bias)]


@expansion("MeanVarianceNormalization")
def mean_variance(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, axes = node.inputs[0], node.attributes.get("axes", [0, 2, 3])
    mean = body.reduce("ReduceMean", x, axes)
    centered = body("Sub", x, mean)
    variance = body.reduce("ReduceMean", body("Mul", centered, centered), axes)
    return [body("Div", centered, body("Add", body("Sqrt", variance), body.constant(1e-9)))]


@expansion("BatchNormalization")
def batch_normalization(body: Body, node: Node, arrays: Arrays) -> list[str]:
    """In training by the batch's statistics, which are the second and third result then."""
    rank, get = arrays[0].ndim, node.attributes.get
    scale, bias, mean, variance = (body.reshape(name, -1, *[1] * (rank - 2)) for name in node.inputs[1:5])
    if get("training_mode", 0):
        y, mean, _ = normalize(body, node.inputs[0], (0, *range(2, rank)), get("epsilon", 1e-5))
        centered = body("Sub", node.inputs[0], mean)
        variance = body.reduce("ReduceMean", body("Mul", centered, centered), (0, *range(2, rank)))
    else:
        inverse = body("Reciprocal", body("Sqrt", body("Add", variance, body.constant(get("epsilon", 1e-5)))))
        y = body("Mul", body("Sub", node.inputs[0], mean), inverse)
    return [body("Add", body("Mul", y, scale), bias), body.reshape(mean, -1), body.reshape(variance, -1)]


@expansion("LpNormalization")
def lp_normalization(body: Body, node: Node, arrays: Arrays) -> list[str]:
    op = "ReduceL1" if node.attributes.get("p", 2) == 1 else "ReduceL2"
    return [body("Div", node.inputs[0], body.reduce(op, node.inputs[0], [node.attributes.get("axis", -1)]))]


@expansion("LRN")
def lrn(body: Body, node: Node, arrays: Arrays) -> list[str]:
    get, x = node.attributes.get, arrays[0]
    channels, size = x.shape[1], get("size")
    reach = np.subtract.outer(np.arange(channels), np.arange(channels))
    band = (reach <= (size - 1) // 2) & (-reach <= size - 1 - (size - 1) // 2)
    rows = body.reshape(body("Mul", node.inputs[0], node.inputs[0]), x.shape[0], channels, -1)
    total = body.reshape(body("MatMul", body.constant(band), rows), *x.shape)
    scaled = body("Mul", total, body.constant(get("alpha", 1e-4) / size))
    divisor = body("Pow", body("Add", scaled, body.constant(get("bias", 1.0))), body.constant(get("beta", 0.75)))
    return [body("Div", node.inputs[0], divisor)]


def reduced_axes(node: Node, arrays: Arrays) -> tuple[list[int], int]:
    """Axes of a reduction, given as an input or an attribute, and whether they are kept."""
    axes = arrays[1] if len(arrays) > 1 else node.attributes.get("axes")
    if axes is None or len(axes) == 0:
        axes = [] if node.attributes.get("noop_with_empty_axes", 0) else range(arrays[0].ndim)
    return [int(axis) % max(arrays[0].ndim, 1) for axis in axes], node.attributes.get("keepdims", 1)


@expansion("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def reductions(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, (axes, keep) = node.inputs[0], reduced_axes(node, arrays)

    def total(value: str) -> str:
        return body.reduce("ReduceSum", value, axes, keep) if axes else value

    if node.op == "ReduceL1":
        return [total(body("Abs", x))]
    if node.op == "ReduceL2":
        return [body("Sqrt", total(body("Mul", x, x)))]
    if node.op == "ReduceSumSquare":
        return [total(body("Mul", x, x))]
    if node.op == "ReduceLogSum":
        return [body("Log", total(x))]
    return [body("Log", total(body("Exp", x)))]


@expansion("GlobalAveragePool", "GlobalMaxPool")
def global_pool(body: Body, node: Node, arrays: Arrays) -> list[str]:
    op = "ReduceMean" if node.op == "GlobalAveragePool" else "ReduceMax"
    return [body.reduce(op, node.inputs[0], range(2, arrays[0].ndim))]


class Windows:
    """Where the windows of a convolution or pool lie: which place of the flattened image each of
    their elements reads. Places outside read the element behind the image's last."""

    def __init__(self, node: Node, size: tuple[int, ...], kernel: tuple[int, ...]):
        get, rank = node.attributes.get, len(size)
        strides, dilations = get("strides") or [1] * rank, get("dilations") or [1] * rank
        pads = list(get("pads") or [0] * (2 * rank))
        mode = get("auto_pad", "NOTSET")
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        counts = []
        for axis in range(rank):
            if mode in ("SAME_UPPER", "SAME_LOWER"):
                counts.append(-(-size[axis] // strides[axis]))
                missing = max(0, (counts[-1] - 1) * strides[axis] + reach[axis] - size[axis])
                before = missing // 2 if mode == "SAME_UPPER" else (missing + 1) // 2
                pads[axis], pads[axis + rank] = before, missing - before
                continue
            room = size[axis] + pads[axis] + pads[axis + rank] - reach[axis]
            count = room // strides[axis] + 1
            if get("ceil_mode", 0) and room % strides[axis]:
                # A window that starts in the padding behind the image is none.
                count += (count * strides[axis] < size[axis] + pads[axis])
            counts.append(count)
        self.size, self.pads, self.counts = tuple(counts), pads, counts
        #: Of each axis: the place that each window's element reads, below 0 or beyond the image outside.
        self.places = [np.arange(counts[a])[:, None] * strides[a] + np.arange(kernel[a])[None] * dilations[a] - pads[a]
                       for a in range(rank)]
        outputs, inner = math.prod(counts), math.prod(kernel)
        self.index = np.zeros((outputs, inner), np.int64)
        #: Whether an element lies in the image, and in the image with its padding.
        self.inside = np.ones((outputs, inner), bool)
        self.padded = np.ones((outputs, inner), bool)
        for axis in range(rank):
            shape = [1] * (2 * rank)
            shape[axis], shape[axis + rank] = self.places[axis].shape
            place = np.broadcast_to(self.places[axis].reshape(shape), (*counts, *kernel)).reshape(outputs, inner)
            self.index = self.index * size[axis] + place
            self.inside &= (place >= 0) & (place < size[axis])
            self.padded &= place < size[axis] + pads[axis + rank]
        self.index = np.where(self.inside, self.index, math.prod(size))

    def gather(self, body: Body, x: str, shape: tuple[int, ...], fill: float) -> str:
        """[rows, channels, windows, elements of the window]"""
        flat = body.reshape(x, *shape[:2], -1)
        behind = body.constant(np.full((*shape[:2], 1), fill))
        return body("Gather", body("Concat", flat, behind, axis=2), body.constant(self.index, np.int64), axis=2)


    def places_of(self, body: Body, elements: str, shape: tuple[int, ...]) -> str:
        """Of each window the place of its largest element in the flattened images."""
        chosen = body("ArgMax", elements, axis=3, keepdims=0)
        count, inner = self.index.shape
        chosen = body("Add", chosen, body.constant(np.arange(count) * inner, np.int64))
        first = np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1) * math.prod(shape[2:])
        return body("Add", body("Gather", body.constant(self.index.ravel(), np.int64), chosen), body.constant(first, np.int64))


@expansion("AveragePool", "MaxPool", "LpPool")
def pool(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x = arrays[0]
    windows = Windows(node, x.shape[2:], tuple(node.attributes["kernel_shape"]))
    if node.op == "MaxPool":
        elements = windows.gather(body, node.inputs[0], x.shape, -np.inf)
        y = body.reduce("ReduceMax", elements, [3], 0)
        if len(node.outputs) > 1:
            return [body.reshape(name, *x.shape[:2], *windows.size) for name in (y, windows.places_of(body, elements, x.shape))]
    elif node.op == "AveragePool":
        counted = windows.padded if node.attributes.get("count_include_pad", 0) else windows.inside
        total = body.reduce("ReduceSum", windows.gather(body, node.inputs[0], x.shape, 0), [3], 0)
        y = body("Mul", total, body.constant(1.0 / counted.sum(1), np.float64))
    else:
        op = "ReduceL1" if node.attributes.get("p", 2) == 1 else "ReduceL2"
        y = body.reduce(op, windows.gather(body, node.inputs[0], x.shape, 0), [3], 0)
    return [body.reshape(y, *x.shape[:2], *windows.size)]


@expansion("Conv")
def conv(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, w, groups = arrays[0], arrays[1], node.attributes.get("group", 1)
    windows = Windows(node, x.shape[2:], w.shape[2:])
    columns = windows.gather(body, node.inputs[0], x.shape, 0)
    count, inner = windows.index.shape
    columns = body.reshape(columns, x.shape[0], groups, x.shape[1] // groups, count, inner)
    columns = body.reshape(body.permute(columns, 0, 1, 3, 2, 4), x.shape[0], groups, count, -1)
    weight = body.permute(body.reshape(node.inputs[1], groups, w.shape[0] // groups, -1), 0, 2, 1)
    y = body.permute(body("MatMul", columns, weight), 0, 1, 3, 2)
    y = body.reshape(y, x.shape[0], w.shape[0], *windows.size)
    return [add_bias(body, y, given(node, 2), x.ndim)]


def add_bias(body: Body, y: str, bias: str, rank: int) -> str:
    return body("Add", y, body.reshape(bias, -1, *[1] * (rank - 2))) if bias else y


@expansion("ConvTranspose")
def conv_transpose(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, w, get = arrays[0], arrays[1], node.attributes.get
    groups, rank = get("group", 1), x.ndim - 2
    size, kernel = x.shape[2:], w.shape[2:]
    strides, dilations = get("strides") or [1] * rank, get("dilations") or [1] * rank
    pads, extra = get("pads") or [0] * (2 * rank), get("output_padding") or [0] * rank
    result = [strides[a] * (size[a] - 1) + extra[a] + (kernel[a] - 1) * dilations[a] + 1 - pads[a] - pads[a + rank]
              for a in range(rank)]
    # Where each element of the kernel at each place of the image is added to.
    target = np.zeros((math.prod(size), math.prod(kernel), math.prod(result)))
    for s, place in enumerate(itertools.product(*map(range, size))):
        for k, tap in enumerate(itertools.product(*map(range, kernel))):
            at = [place[a] * strides[a] + tap[a] * dilations[a] - pads[a] for a in range(rank)]
            if all(0 <= at[a] < result[a] for a in range(rank)):
                target[s, k, np.ravel_multi_index(at, result)] = 1
    channels = w.shape[1] * groups
    rows = body.permute(body.reshape(node.inputs[0], x.shape[0], groups, x.shape[1] // groups, -1), 0, 1, 3, 2)
    parts = body("MatMul", rows, body.reshape(node.inputs[1], groups, x.shape[1] // groups, -1))
    parts = body.reshape(parts, x.shape[0], groups, math.prod(size), w.shape[1], math.prod(kernel))
    parts = body.reshape(body.permute(parts, 0, 1, 3, 2, 4), x.shape[0], channels, -1)
    y = body("MatMul", parts, body.constant(target.reshape(-1, math.prod(result))))
    return [add_bias(body, body.reshape(y, x.shape[0], channels, *result), given(node, 2), x.ndim)]


@expansion("Dropout")
def dropout(body: Body, node: Node, arrays: Arrays) -> list[str]:
    return [body("Identity", node.inputs[0]), body.constant(np.ones(arrays[0].shape), np.bool_)]


@expansion("Mish")
def mish(body: Body, node: Node, arrays: Arrays) -> list[str]:
    return [body("Mul", node.inputs[0], body("Tanh", body("Softplus", node.inputs[0])))]


@expansion("HardSwish")
def hard_swish(body: Body, node: Node, arrays: Arrays) -> list[str]:
    return [body("Mul", node.inputs[0], body("HardSigmoid", node.inputs[0], alpha=1 / 6, beta=0.5))]


@expansion("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def cross_entropy(body: Body, node: Node, arrays: Arrays) -> list[str]:
    get, scores, labels = node.attributes.get, node.inputs[0], node.inputs[1]
    logs = body("LogSoftmax", scores, axis=1) if node.op == "SoftmaxCrossEntropyLoss" else scores
    ignored = body.constant(np.zeros(arrays[1].shape), np.bool_)
    if "ignore_index" in node.attributes:
        ignored = body("Equal", labels, body.constant(get("ignore_index"), arrays[1].dtype))
    safe = body("Where", ignored, body.constant(0, arrays[1].dtype), labels)
    picked = body("GatherElements", logs, body("Unsqueeze", safe, body.whole(1)), axis=1)
    weight = body("Gather", node.inputs[2], safe) if given(node, 2) else body.constant(np.ones(arrays[1].shape))
    weight = body("Where", ignored, body.constant(0.0), weight)
    loss = body("Neg", body("Mul", body("Squeeze", picked, body.whole(1)), weight))
    mode = get("reduction", "mean")
    if mode != "none":
        loss = body("ReduceSum", loss, keepdims=0)
    if mode == "mean":
        loss = body("Div", loss, body("ReduceSum", weight, keepdims=0))
    return [loss, logs]


@expansion("CumSum")
def cumsum(body: Body, node: Node, arrays: Arrays) -> list[str]:
    x, axis = arrays[0], int(arrays[1]) % arrays[0].ndim
    place = np.arange(x.shape[axis])
    far = np.subtract.outer(place, place) * (-1 if node.attributes.get("reverse", 0) else 1)
    summed = far > 0 if node.attributes.get("exclusive", 0) else far >= 0
    order = [a for a in range(x.ndim) if a != axis] + [axis]
    rows = body("MatMul", body.permute(node.inputs[0], *order), body.constant(summed.T))
    return [body.permute(rows, *np.argsort(order))]


@expansion("OneHot")
def one_hot(body: Body, node: Node, arrays: Arrays) -> list[str]:
    depth, rank = int(np.ravel(arrays[1])[0]), arrays[0].ndim + 1
    axis = node.attributes.get("axis", -1) % rank
    index = body("Cast", node.inputs[0], to=TensorProto.INT64)
    index = body("Where", body("Less", index, body.whole(0)), body("Add", index, body.whole(depth)), index)
    places = body.constant(np.arange(depth).reshape([-1 if a == axis else 1 for a in range(rank)]), np.int64)
    flags = body("Equal", body("Unsqueeze", index, body.whole(axis)), places)
    return [body("Gather", node.inputs[2], body("Cast", flags, to=TensorProto.INT64))]


@expansion("Resize")
def resize(body: Body, node: Node, arrays: Arrays) -> list[str]:
    """Each axis by a matrix, which is what the reference makes of unit vectors."""
    from onnx.reference.ops import load_op
    x, get = arrays[0], dict(node.attributes)
    sizes = arrays[3] if len(arrays) > 3 else None
    scales = arrays[2] if len(arrays) > 2 else None
    axes = [axis % x.ndim for axis in get.pop("axes", range(x.ndim))]
    policy = get.pop("keep_aspect_ratio_policy", "stretch")
    y = node.inputs[0]
    if sizes is not None and policy != "stretch":
        choose = min if policy == "not_larger" else max
        scale = choose(size / x.shape[axis] for size, axis in zip(sizes, axes))
        scales, sizes = [scale] * len(axes), [int(scale * x.shape[axis] + 0.5) for axis in axes]
    for place, axis in enumerate(axes):
        whole = np.array([int(sizes[place])]) if sizes is not None else None
        scale = np.array([scales[place]]) if scales is not None and (sizes is None or policy != "stretch") else None
        names = ["x", "", "" if scale is None or whole is not None else "s", "n" if whole is not None else ""]
        run = load_op("", "Resize", body.opset)(helper.make_node("Resize", names, ["y"], **get), {
            "log": lambda *_: None, "opsets": {"": body.opset}, "verbose": 0, "new_ops": None, "existing_functions": {}})
        columns = [run.run(unit, None, None if whole is not None else scale, whole)[0] for unit in np.eye(x.shape[axis])]
        if len(columns[0]) == x.shape[axis] and np.array_equal(columns, np.eye(x.shape[axis])):
            continue
        order = [a for a in range(x.ndim) if a != axis] + [axis]
        y = body("MatMul", body.permute(y, *order), body.constant(columns, np.float64))
        y = body.permute(y, *np.argsort(order))
    return [body("Identity", y)]
