"""Cases of our own for gradients: each differentiable operator at two odd shapes (primes,
dimensions of one), in the form of onnx's cases."""
import types

import numpy as np
from onnx import TensorProto, helper

random = np.random.default_rng(5)
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64, np.dtype(np.bool_): TensorProto.BOOL}


def real(*shape, low=-2.0, high=2.0):
    return random.uniform(low, high, shape).astype(np.float32)


def positive(*shape):
    return real(*shape, low=0.5, high=2.5)


def apart(*shape):
    """Numbers no two of which are near each other: what is largest stays it."""
    count = int(np.prod(shape))
    return (random.permutation(count).reshape(shape) * 0.37 - 0.185 * count).astype(np.float32)


def whole(*values):
    return np.array(values, np.int64)


def places(bound, *shape):
    return random.integers(0, bound, shape)


def chosen(*shape):
    return random.random(shape) < 0.5


CASES = []


def case(op, *inputs, outputs=1, opset=23, **attributes):
    """One node of `op`; its first outputs are floats, behind them is nothing to differentiate."""
    names = [f"i{k}" if value is not None else "" for k, value in enumerate(inputs)]
    results = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    given = [(name, value) for name, value in zip(names, inputs) if name]
    graph = helper.make_graph(
        [node], "odd", [helper.make_tensor_value_info(name, TYPES[value.dtype], value.shape) for name, value in given],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    CASES.append(types.SimpleNamespace(
        name=f"test_odd_{op.lower()}_{len(CASES)}", kind="node", model=model, rtol=1e-3, atol=1e-7,
        data_sets=[([value for _, value in given], [])]))


for shape in ((7, 1, 5), (1, 13)):
    for op in "Acos Asin Atanh".split():
        case(op, real(*shape, low=-0.9, high=0.9))
    case("Acosh", real(*shape, low=1.2, high=3))
    for op in "Abs Asinh Atan Cosh Sinh Cos Elu Celu Erf Exp Gelu HardSigmoid HardSwish Identity LeakyRelu Mish Neg Relu Selu Shrink Sigmoid Sin Softplus Softsign Tan Tanh ThresholdedRelu".split():
        case(op, real(*shape, low=-1.4, high=1.4))
    case("Gelu", real(*shape), approximate="tanh")
    case("Swish", real(*shape), opset=24, alpha=1.7)
    case("SwiGLU", real(*shape), real(*shape), opset=28)
    for op in "Log Reciprocal Sqrt".split():
        case(op, positive(*shape))
    case("Clip", real(*shape), np.float32(-0.7), np.float32(0.9))
    case("Dropout", real(*shape))
    case("Flatten", real(*shape), axis=1)
    case("Softmax", real(*shape), axis=1)
    case("LogSoftmax", real(*shape), axis=0)
    case("LpNormalization", positive(*shape), axis=1, p=2)
    case("Cast", real(*shape), to=TensorProto.FLOAT)
    case("CastLike", real(*shape), real(1))
    for op in "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare".split():
        case(op, positive(*shape), whole(1))
        case(op, positive(*shape), whole(-1, 0), keepdims=0)
    for op in "ReduceMax ReduceMin".split():
        case(op, apart(*shape), whole(0))
        case(op, apart(*shape), whole(1), keepdims=0)
    case("CumSum", real(*shape), np.array(1, np.int64), reverse=1)
    case("PRelu", real(*shape), real(shape[-1]))
    case("Transpose", real(*shape), perm=list(reversed(range(len(shape)))))
    case("Reshape", real(*shape), whole(-1, shape[-1], 1))
    case("Unsqueeze", real(*shape), whole(0, 2))
    case("Expand", real(*shape), whole(2, *shape))
    case("Tile", real(*shape), whole(*range(2, len(shape) + 2)))
    case("Trilu", real(*shape, 3), np.array(-1, np.int64))
    case("Pad", real(*shape), whole(*[1] * len(shape), *[2] * len(shape)), np.float32(1.5))
    case("LayerNormalization", real(*shape), real(shape[-1]), real(shape[-1]))
    case("RMSNormalization", real(*shape), real(shape[-1]))
    case("MeanVarianceNormalization", real(*shape, 2, 3)[..., :1, :2].reshape(shape[0], -1, 1, 2), axes=[0, 2, 3])

for a, b in (((7, 1, 5), (11, 1)), ((1, 13), (3, 1, 13))):
    for op in "Add Sub Mul Sum Mean".split():
        case(op, real(*a), real(*b))
    case("Div", real(*a), positive(*b))
    case("Pow", positive(*a), real(*b))
    case("Max", apart(*a), apart(*b) + 0.1)
    case("Min", apart(*a), apart(*b) + 0.1)
    case("Mod", positive(*a) * 3, positive(*b), fmod=1)
    case("Where", chosen(*b), real(*a), real(*b))

case("MatMul", real(3, 1, 5, 7), real(2, 7, 1))
case("MatMul", real(13), real(5, 13, 3))
case("Gemm", real(7, 3), real(5, 7), real(1, 5), transA=1, transB=1, alpha=0.5, beta=1.5)
case("Gemm", real(1, 11), real(11, 1), real(1))
case("Einsum", real(3, 1, 7), real(7, 5, 1), equation="bij,jkb->bik")
case("Einsum", real(5, 5), equation="ii->i")
case("Concat", real(1, 5), real(7, 5), real(2, 5), axis=0)
case("Concat", real(3, 1, 11), real(3, 13, 11), axis=-2)
case("Split", real(7, 3), whole(1, 4, 2), outputs=3, axis=0)
case("Split", real(1, 13, 2), outputs=3, axis=1, num_outputs=3)
case("Slice", real(13, 7), whole(11, 0), whole(0, 7), whole(0, 1), whole(-3, 2))
case("Slice", real(1, 5, 3), whole(-1), whole(-6), whole(1), whole(-1))
case("Squeeze", real(1, 7, 1), whole(0))
case("Squeeze", real(1, 13, 1, 1))
case("Gather", real(7, 5), places(7, 3, 1), axis=0)
case("Gather", real(2, 1, 11), places(11, 13), axis=2)
case("GatherElements", real(7, 3), places(7, 5, 3), axis=0)
case("GatherElements", real(1, 13), places(13, 1, 7), axis=1)
case("GatherND", real(7, 5, 3), np.stack([places(7, 11), places(5, 11)], -1))
case("GatherND", real(2, 7, 3), places(7, 2, 1), batch_dims=1)
case("ScatterElements", real(7, 5), np.array([[1], [6], [0]]), real(3, 1), axis=0)
case("ScatterElements", real(1, 13), np.array([[1, 1, 12]]), real(1, 3), axis=1, reduction="add")
case("ScatterND", real(7, 3), np.array([[5], [0]]), real(2, 3))
case("ScatterND", real(5, 1, 3), np.array([[1, 0], [1, 0], [4, 0]]), real(3, 3), reduction="add")
case("TopK", apart(7, 5), whole(3), outputs=1, axis=0)
case("TopK", apart(1, 13), whole(1), outputs=1, largest=0)
case("DepthToSpace", real(1, 12, 3, 1), blocksize=2)
case("DepthToSpace", real(2, 9, 1, 5), blocksize=3, mode="CRD")
case("SpaceToDepth", real(1, 3, 2, 10), blocksize=2)
case("SpaceToDepth", real(1, 1, 9, 3), blocksize=3)
for shape in ((1, 6, 1, 7), (3, 2, 5, 3)):
    channels = shape[1]
    case("BatchNormalization", real(*shape), real(channels), real(channels), real(channels), positive(channels))
    case("InstanceNormalization", real(*shape), real(channels), real(channels))
    case("GroupNormalization", real(*shape), real(channels), real(channels), num_groups=2)
    case("LRN", real(*shape), size=3)
    case("GlobalAveragePool", real(*shape))
    case("GlobalMaxPool", apart(*shape))
    case("LpPool", positive(*shape), kernel_shape=[1, 2])
    case("AveragePool", real(*shape), kernel_shape=[1, 3], pads=[0, 1, 0, 1], count_include_pad=1)
    case("MaxPool", apart(*shape), kernel_shape=[1, 2], strides=[1, 2], ceil_mode=1)
    case("Conv", real(*shape), real(4, channels // 2, 1, 3), real(4), group=2, pads=[0, 1, 0, 1])
    case("ConvTranspose", real(*shape), real(channels, 3, 2, 1), strides=[2, 1])
    case("Resize", real(*shape), None, None, whole(*shape[:2], 7, 11), mode="linear")
case("AffineGrid", real(3, 2, 3), whole(3, 1, 7, 1))
case("AffineGrid", real(1, 3, 4), whole(1, 2, 1, 5, 3), align_corners=1)
for mode in ("linear", "cubic", "nearest"):
    for padding in ("zeros", "border", "reflection"):
        case("GridSample", real(1, 3, 5, 7), real(1, 11, 1, 2, low=-1.3, high=1.3), mode=mode, padding_mode=padding)
        case("GridSample", real(3, 1, 7, 5), real(3, 1, 2, 2, low=-0.9, high=0.9), mode=mode, padding_mode=padding, align_corners=1)
case("GridSample", real(1, 2, 3, 5, 7), real(1, 3, 1, 2, 3, low=-1.2, high=1.2))
case("DeformConv", real(1, 4, 5, 7), real(6, 2, 3, 1), real(1, 6, 3, 7), real(6), real(1, 3, 3, 7), group=2)
case("DeformConv", real(3, 2, 5, 1), real(1, 2, 2, 1), real(3, 8, 2, 1), offset_group=2, strides=[2, 1], kernel_shape=[2, 1])
case("Col2Im", real(1, 6, 15), whole(5, 7), whole(1, 3), strides=[1, 2])
case("Col2Im", real(3, 4, 8), whole(7, 1), whole(2, 1), dilations=[1, 1], pads=[1, 0, 1, 0])
case("CenterCropPad", real(7, 1, 5), whole(4, 3, 8))
case("CenterCropPad", real(1, 13), whole(5), axes=[-1])
case("Compress", real(7, 1, 5), np.array([0, 1, 1, 0, 1], np.bool_), axis=2)
case("Compress", real(1, 13), np.array([1, 0, 1, 1], np.bool_))
case("CumProd", real(7, 1, 5), np.array(0, np.int64), opset=26, exclusive=1)
case("CumProd", real(1, 13), np.array(1, np.int64), opset=26, reverse=1)
for size in (1, 2, 3, 4):
    case("Det", real(1, 5, size, size))
for points, factors in ((7, None), (13, 11), (131 * 2, None), (144, None)):
    for inverse in (0, 1):
        length = None if factors is None else np.array(factors, np.int64)
        case("DFT", real(1, points, 3, 2), length, np.array(1, np.int64), inverse=inverse)
        case("DFT", real(3, points, 1 + inverse), length, opset=20, inverse=inverse, onesided=1)
case("DFT", real(1, 3, 7, 1), opset=17, axis=2, onesided=1)
case("STFT", real(1, 29, 1), np.array(5, np.int64), real(7))
case("STFT", real(3, 17, 2), np.array(3, np.int64), None, np.array(8, np.int64), onesided=0)
case("GlobalLpPool", positive(1, 6, 1, 7))
case("GlobalLpPool", positive(3, 2, 5), p=3)
case("MaxUnpool", apart(1, 1, 3, 5), np.arange(15).reshape(1, 1, 3, 5) * 2, kernel_shape=[1, 2], strides=[1, 2])
case("MaxUnpool", apart(1, 3, 5), (np.arange(15) * 3).reshape(1, 3, 5), whole(1, 3, 17), kernel_shape=[3], strides=[3])
case("ReverseSequence", real(5, 3, 1), whole(5, 1, 3))
case("ReverseSequence", real(1, 13), whole(7), time_axis=1, batch_axis=0)
for rows, sequence, batch, size, hidden in ((1, 5, 1, 7, 3), (1, 1, 3, 2, 5)):
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        case(op, real(sequence, batch, size), real(rows, gates * hidden, size), real(rows, gates * hidden, hidden),
             real(rows, 2 * gates * hidden), outputs=2, hidden_size=hidden)
for batch, heads, rows, columns, size in ((1, 3, 5, 7, 2), (2, 1, 1, 13, 6)):
    case("Attention", real(batch, heads, rows, size), real(batch, 1, columns, size), real(batch, 1, columns, 3))
    case("Attention", real(batch, heads, rows, size), real(batch, heads, columns, size), real(batch, heads, columns, size),
         real(rows, columns), softcap=1.5)
    case("RotaryEmbedding", real(batch, heads, rows, size), real(1, rows, size // 2), real(1, rows, size // 2))
    case("RotaryEmbedding", real(batch, heads, rows, size), real(batch, rows, size // 2), real(batch, rows, size // 2), interleaved=1)
for rows, classes in ((7, 5), (1, 13)):
    case("SoftmaxCrossEntropyLoss", real(rows, classes), places(classes, rows))
    case("NegativeLogLikelihoodLoss", real(rows, classes, 3), places(classes, rows, 3), positive(classes))
case("OneHot", places(5, 7, 1), np.array(5, np.int64), real(2), axis=0)
case("OneHot", places(11, 1, 3), np.array(11, np.int64), real(2))
