"""Nodes of opsets 7 to 12 in forms that newer ones do not have, in the form of onnx's cases, with what they compute in numpy."""
import types

import numpy as np
from onnx import helper

random = np.random.default_rng(9)
x234 = random.normal(size=(2, 3, 4)).astype(np.float32)
CASES = []


def case(op, opset, inputs, outputs, **attributes):
    """One node of `op` in a file of this opset, whose initializers would be inputs too (IR version 3)."""
    names = [f"i{k}" for k in range(len(inputs))]
    results = [f"o{k}" if value is not None else "" for k, value in enumerate(outputs)]
    outputs = [np.asarray(value) for value in outputs if value is not None]

    def info(name, value, shape):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype), shape)

    graph = helper.make_graph([helper.make_node(op, names, results, name="old", **attributes)], "old",
                              [info(name, value, np.shape(value)) for name, value in zip(names, inputs)],
                              [info(name, value, value.shape) for name, value in zip(filter(None, results), outputs)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)
    CASES.append(types.SimpleNamespace(name=f"test_old_{op.lower()}_{opset}_{len(CASES)}", kind="node", model=model, rtol=1e-5,
                                       atol=1e-6, data_sets=[([np.asarray(value) for value in inputs], outputs)]))


def over(function, x, axis):
    """A function of rows, which are all dimensions from the axis on."""
    axis %= x.ndim
    return function(x.reshape(int(np.prod(x.shape[:axis])), -1)).reshape(x.shape).astype(x.dtype)


def softmax(rows):
    powers = np.exp(rows - rows.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def hardmax(rows):
    return np.eye(rows.shape[1])[rows.argmax(1)]


for operator, function in (("Softmax", softmax), ("LogSoftmax", lambda rows: np.log(softmax(rows))), ("Hardmax", hardmax)):
    case(operator, 7, [x234], [over(function, x234, 1)])
    for axis in (0, 1, 2):
        case(operator, 9, [x234], [over(function, x234, axis)], axis=axis)
    for axis in (-1, -2):
        case(operator, 12, [x234], [over(function, x234, axis)], axis=axis)
    case(operator, 11, [x234[0]], [over(function, x234[0], 1)])
    case(operator, 11, [x234[0, 0]], [over(function, x234[0, 0], 0)], axis=0)
    case(operator, 11, [x234[:0]], [x234[:0]])

case("Clip", 7, [x234], [x234.clip(-0.5, 0.25)], min=-0.5, max=0.25)
case("Clip", 9, [x234], [x234.clip(max=0.25)], max=0.25)
case("Clip", 10, [x234.astype(np.float64)], [x234.astype(np.float64).clip(-0.5)], min=-0.5)
case("Clip", 10, [x234], [x234])

case("Dropout", 7, [x234], [x234, np.ones_like(x234)], ratio=0.75)
case("Dropout", 10, [x234], [x234, np.ones(x234.shape, bool)])

indices = np.array([0, 2, -1, 3, -3], np.int64)
values = np.array([5, 7], np.float32)
case("OneHot", 9, [indices, np.int64(3), values], [np.where(indices[:, None] == np.arange(3), 7, 5).astype(np.float32)])
case("OneHot", 11, [indices, np.int64(3), values], [np.where(np.where(indices < 0, indices + 3, indices)[:, None] == np.arange(3), 7, 5)
                                                    .astype(np.float32)])

case("Pad", 7, [x234], [np.pad(x234, ((0, 1), (2, 0), (1, 1)), constant_values=1.5)], pads=[0, 2, 1, 1, 0, 1], value=1.5)
case("Pad", 9, [x234], [np.pad(x234, ((0, 0), (0, 0), (2, 1)), "reflect")], pads=[0, 0, 2, 0, 0, 1], mode="reflect")
case("Slice", 7, [x234], [x234[:, 1:3, -3:-1]], starts=[1, -3], ends=[3, -1], axes=[1, 2])
case("Slice", 9, [x234], [x234[0:1, 1:]], starts=[0, 1], ends=[1, 1000])
case("Split", 7, [x234], [x234[..., :1], x234[..., 1:]], axis=2, split=[1, 3])
case("Split", 11, [x234], [x234[..., :2], x234[..., 2:]], axis=-1)
case("Squeeze", 7, [x234[:1, None]], [x234[:1, None].squeeze((0, 1))], axes=[0, 1])
case("Squeeze", 11, [x234[:1]], [x234[0]])
case("Unsqueeze", 7, [x234], [x234[None, ..., None]], axes=[0, 4])
case("ReduceSum", 9, [x234], [x234.sum((0, 2))], axes=[0, 2], keepdims=0)
case("ReduceSum", 11, [x234], [x234.sum(keepdims=True)])
order = np.argsort(-x234, 1, kind="stable")[:, :2]
case("TopK", 7, [x234], [np.take_along_axis(x234, order, 1), order], axis=1, k=2)

image = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
case("Upsample", 7, [image], [image.repeat(2, 2).repeat(3, 3)], scales=[1.0, 1.0, 2.0, 3.0])
places = (np.arange(8) / 2).clip(max=3)
case("Upsample", 7, [image], [np.stack([np.interp(places, np.arange(4), row) for row in image[0, 0]])[None, None].astype(np.float32)],
     scales=[1.0, 1.0, 1.0, 2.0], mode="linear")

at = np.array([[1, 0, 2]], np.int64)
scattered = x234[0, :, :3].copy()
np.put_along_axis(scattered, at, np.float32(9), 0)
case("Scatter", 9, [x234[0, :, :3], at, np.full((1, 3), 9, np.float32)], [scattered])

channels = [random.uniform(0.5, 1.5, 3).astype(np.float32) for _ in range(4)]
scale, bias, mean, variance = channels


def normalized(own_mean, own_variance):
    return ((x234 - own_mean[:, None]) / np.sqrt(own_variance[:, None] + 1e-5) * scale[:, None] + bias[:, None]).astype(np.float32)


own = x234.mean((0, 2)), x234.var((0, 2))
mixed = [np.float32(0.75) * old + np.float32(0.25) * new for old, new in zip((mean, variance), own)]
case("BatchNormalization", 7, [x234, *channels], [normalized(mean, variance)], spatial=1)
case("BatchNormalization", 9, [x234, *channels], [normalized(mean, variance), None, None])
case("BatchNormalization", 9, [x234, *channels], [normalized(*own), *mixed], momentum=0.75)
case("BatchNormalization", 7, [x234, *channels], [normalized(*own), *mixed, *own], momentum=0.75)
