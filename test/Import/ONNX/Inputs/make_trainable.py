"""make_trainable.py FOLDER: models whose initializers are told apart by marks, by a map, or by use."""
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)


def tensor(name, *shape, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, shape)


def array(name, value, type=np.float32):
    return numpy_helper.from_array(np.array(value, type), name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def product(names, start="x"):
    """x multiplied with each initializer in turn, then summed."""
    nodes, last = [], start
    for at, name in enumerate(names.split()):
        nodes.append(node("Mul", f"{last} {name}", f"p{at}"))
        last = f"p{at}"
    return [*nodes, node("ReduceSum", last, "loss", keepdims=0)]


def save(name, nodes, inputs, initializers, infos=(), metadata=None):
    graph = helper.make_graph(nodes, "g", inputs, [tensor("loss")], initializers, value_info=infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, os.path.join(folder, name + ".onnx"))


def mark(name, key, value, *shape):
    info = tensor(name, *shape)
    entry = info.metadata_props.add()
    entry.key, entry.value = key, value
    return info


KIND, FOLDED = "pkg.torch.export.graph_signature.InputSpec.kind", "pkg.onnxscript.optimizer.folded_from"
x = tensor("x", 4, 3)
three = [1.5, 2.5, 3.5]

# PyTorch's newer exporter: marks decide, whatever the shape.
save("marks", product("w gate one buffer table lifted turned wave"), [x],
     [array("w", three), array("gate", 2.0), array("one", [2.0]), array("buffer", three), array("table", three),
      array("lifted", 1.5), array("turned", [three]), array("wave", three), array("away", three)],
     [mark("w", KIND, "PARAMETER", 3), mark("gate", KIND, "PARAMETER"), mark("one", KIND, "PARAMETER", 1), mark("buffer", KIND, "BUFFER", 3),
      mark("table", KIND, "CONSTANT_TENSOR", 3), mark("turned", FOLDED, "['lin.weight', 'val_3']", 1, 3), mark("wave", FOLDED, "['val_3', 'val_14']", 3)])

# dsopt.export's map says what each one is; what it does not name is a constant.
rows = [{"onnx": "w", "torch": "w", "kind": "parameter"}, {"onnx": "base", "torch": "base", "kind": "parameter", "trainable": False},
        {"onnx": "scale", "torch": "scale", "kind": "parameter"}, {"onnx": "buffer", "torch": "buffer", "kind": "buffer"}]
save("map", product("w base scale buffer other"), [x],
     [array("w", three), array("base", three), array("scale", 1.5), array("buffer", three), array("other", three)],
     metadata={"dsopt.parameters": json.dumps(rows)})
# An older map tells names alone.
save("names", product("w other"), [x], [array("w", three), array("other", three)],
     metadata={"dsopt.parameters": json.dumps([{"onnx": "w", "torch": "w"}])})

# No marks: use and values decide.
positions = np.arange(6)[:, None] / 10000 ** (np.arange(2) / 2)
sines = np.concatenate([np.sin(positions), np.cos(positions)], 1)
low = np.where(np.tril(np.ones((6, 6))), 0, -1e9)
save("uses", [
    node("Add", "t sines", "placed"), node("Add", "placed learned", "h"), node("MatMul", "h q", "query"), node("Transpose", "query", "key", perm=[0, 2, 1]),
    node("MatMul", "query key", "scores"), node("Div", "scores root", "scaled"), node("Mul", "scaled temperature", "warm"), node("Add", "warm causal", "masked"), node("Add", "masked bias", "biased"),
    node("Softmax", "biased", "weights"), node("Mul", "weights keep", "kept"), node("MatMul", "kept h", "v"),
    node("Mul", "v half", "a"), node("Div", "v sqrt2", "b"), node("Erf", "b", "c"), node("Add", "c one", "d"), node("Mul", "a d", "gelu"),
    node("Pow", "gelu two", "sq"), node("ReduceMean", "sq axis", "mean"), node("Add", "mean eps", "e"), node("Sqrt", "e", "r"), node("Div", "gelu r", "n"),
    node("Mul", "n gate", "g"), node("MatMul", "g adapter", "o"), node("Add", "o shift", "s"), node("Clip", "s lowest highest", "cl"),
    node("Reshape", "cl flat", "z"), node("SoftmaxCrossEntropyLoss", "z labels classes", "loss")],
    [tensor("t", 2, 6, 4), tensor("labels", 12, type=TensorProto.INT64)],
    [array("sines", sines), array("learned", np.random.default_rng(0).standard_normal((6, 4))), array("q", np.eye(4) * 0.5), array("root", 2.0), array("temperature", 1.25),
     array("causal", low[None]), array("bias", np.zeros((6, 6))), array("keep", np.tril(np.ones((6, 6)))), array("half", 0.5), array("sqrt2", np.sqrt(2)), array("one", 1.0), array("two", 2.0), array("axis", [-1], np.int64),
     array("eps", 1e-5), array("gate", 1.0), array("adapter", np.zeros((4, 4))), array("shift", [0.0]), array("lowest", -9.0), array("highest", 9.0), array("flat", [12, 4], np.int64),
     array("classes", [1.0, 2, 1, 1])])

# What no derivative reaches, and what the loss does not read.
save("unreached", [node("Mul", "x w", "a"), node("Mul", "x step", "b"), node("Floor", "b", "c"), node("Add", "a c", "d"), node("ReduceSum", "d", "loss", keepdims=0),
                   node("Mul", "x away", "nowhere")], [x], [array("w", three), array("step", three), array("away", three)])
