"""Models as older exporters would have written them: by onnx's converter, or by hand where it gives up at operators that only took more types since."""
import copy
import re

import onnx
from onnx import helper, numpy_helper, version_converter

#: Operators that mean the same in opsets 7 to 12, as far as their attributes and inputs are there.
UNCHANGED = set("Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization BitShift Cast Ceil Celu Compress Concat "
                "ConcatFromSequence Constant ConstantOfShape Conv ConvTranspose Cos Cosh CumSum DepthToSpace Det Div Einsum Elu Equal Erf Exp Expand EyeLike "
                "Flatten Floor GRU Gather GatherElements GatherND Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual HardSigmoid "
                "Identity If InstanceNormalization IsInf IsNaN LRN LSTM LeakyRelu Less LessOrEqual Log Loop LpNormalization LpPool MatMul Max MaxPool "
                "MaxUnpool Mean MeanVarianceNormalization Min Mod Mul Neg NegativeLogLikelihoodLoss NonZero Not OneHot Or PRelu Pow RNN Range Reciprocal "
                "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare Relu Reshape ReverseSequence Round "
                "Scan ScatterElements ScatterND Selu SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength Shape Shrink "
                "Sigmoid Sign Sin Sinh Size SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth SplitToSequence Sqrt Sub Sum Tan Tanh ThresholdedRelu Tile "
                "Transpose Where Xor".split())
#: Attributes that the older forms of others have instead of inputs, from the second input on, and the first opset that has inputs.
AS_ATTRIBUTES = {"Squeeze": (13, ["axes"]), "Unsqueeze": (13, ["axes"]), "ReduceSum": (13, ["axes"]), "Split": (13, ["split"]), "Clip": (11, ["min", "max"]),
                 "Pad": (11, ["pads", "value"]), "Slice": (10, ["starts", "ends", "axes"]), "TopK": (10, ["k"]),
                 **{name: (18, ["axes"]) for name in UNCHANGED if name.startswith("Reduce")}}


def flattens(graph):
    """Whether a softmax is over another axis than the last: below opset 13 it is over all from the axis on, and the converter keeps the axis."""
    for node in graph.node:
        axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
        inner = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        if (re.fullmatch("(Log)?Softmax|Hardmax", node.op_type) and axes not in ([], [-1])) or any(map(flattens, inner)):
            return True
    return False


def older_node(node, opset, constants):
    """A node in an older opset, or None."""
    op, old = node.op_type, copy.deepcopy(node)
    since, names = AS_ATTRIBUTES.get(op, (0, []))
    for attribute in old.attribute:
        if attribute.HasField("g"):
            inner = older_nodes(attribute.g, opset, constants)
            if inner is None:
                return None
            del attribute.g.node[:]
            attribute.g.node.extend(inner)
    if re.fullmatch("(Log)?Softmax|Hardmax", op):
        if not node.attribute:
            old.attribute.append(helper.make_attribute("axis", -1))
    elif opset < since:
        given = dict(zip(names, node.input[1:]))
        if len(node.input) > 1 + len(names) and not all((constants.get(name) == 1).all() for name in node.input[1 + len(names):] if name in constants):
            return None
        if any(name and name not in constants for name in node.input[1:]):
            return None
        del old.input[1:]
        for attribute, name in given.items():
            value = constants[name].tolist() if name else None
            scalar = attribute in ("min", "max", "value", "k")
            if value is not None:
                old.attribute.append(helper.make_attribute(attribute, value[0] if scalar and isinstance(value, list) else value))
    elif op not in UNCHANGED and op not in AS_ATTRIBUTES:
        return None
    try:
        schema = onnx.defs.get_schema(op, opset)
    except onnx.defs.SchemaError:
        return None
    known = set(schema.attributes)
    fits = {attribute.name for attribute in old.attribute} <= known and len(old.input) <= schema.max_input and len(old.output) <= schema.max_output
    return old if fits else None


def older_nodes(graph, opset, constants):
    constants = {**constants, **{array.name: numpy_helper.to_array(array) for array in graph.initializer}}
    constants.update({node.output[0]: numpy_helper.to_array(node.attribute[0].t) for node in graph.node
                      if node.op_type == "Constant" and node.attribute[0].HasField("t")})
    nodes = [older_node(node, opset, constants) for node in graph.node]
    return None if None in nodes else nodes


def by_hand(model, opset):
    nodes = older_nodes(model.graph, opset, {})
    if nodes is None:
        return None
    old = copy.deepcopy(model)
    del old.graph.node[:]
    old.graph.node.extend(nodes)
    del old.opset_import[:]
    old.opset_import.append(helper.make_opsetid("", opset))
    return old


def aged(model, opset, otherwise=lambda model, opset: None):
    """The model in an older opset and the oldest IR version that has it, below opset 13 with all initializers as inputs; `otherwise` makes it where
    onnx's converter gives up there. None where there is no such form."""
    if opset < 13 and flattens(model.graph):
        return None
    try:
        old = version_converter.convert_version(model, opset)
    except RuntimeError:
        old = otherwise(model, opset) if opset < 13 else None
    if old is None:
        return None
    old.ir_version = 3 if opset < 9 else 4 if opset < 10 else 5 if opset < 11 else 6 if opset < 13 else 8
    if opset < 13:
        old.graph.input.extend(helper.make_tensor_value_info(i.name, i.data_type, i.dims) for i in old.graph.initializer)
    try:
        onnx.checker.check_model(old)
    except onnx.checker.ValidationError:
        return None  # the converter leaves what the older opset does not have
    return old
