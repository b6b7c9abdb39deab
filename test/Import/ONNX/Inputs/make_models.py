"""make_models.py FOLDER: writes small models, good and bad, by name."""
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
    attributes.setdefault("name", f"the_{op}")
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(nodes, inputs, outputs, initializers, opset=18, ir_version=10, domains=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    opsets = [helper.make_opsetid(*one) for one in (("", opset), *domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def save(name, *arguments, **options):
    m = model(*arguments, **options)
    onnx.save(m, os.path.join(folder, name + ".onnx"))
    return m


x, labels, loss = tensor("x", 4, 3), tensor("labels", 4, type=TensorProto.INT64), tensor("loss")
w, bias = array("w", np.ones((3, 2))), array("b", [0, 0])
linear = node("Gemm", "x w b", "y")
entropy = node("SoftmaxCrossEntropyLoss", "y labels", "loss")

good = save("good", [linear, entropy], [x, labels], [loss, tensor("y", 4, 2)], [w, bias])
data = good.SerializeToString()


def write(name, bytes):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(bytes)


write("truncated.onnx", data[: len(data) // 2])
write("text.onnx", b"this is no model\n")
write("empty.onnx", b"")
write("no-graph.onnx", onnx.ModelProto(ir_version=10).SerializeToString())

save("opset-6", [linear, entropy], [x, labels], [loss], [w, bias], opset=6)
save("ir-99", [linear, entropy], [x, labels], [loss], [w, bias], ir_version=99)
save("unknown-op", [linear, node("Frobnicate", "y", "z"), node("ReduceSum", "z", "loss")], [x], [loss], [w, bias])
save("unknown-domain", [node("Gelu", "x", "loss", domain="com.example")], [x], [loss], [])
stopped = node("StopGradient", "y", "z", domain="dsopt")
summed = node("ReduceSum", "z", "loss", keepdims=0)
save("dsopt-unknown", [linear, node("Teleport", "y", "z", domain="dsopt"), summed], [x], [loss], [w, bias], domains=[("dsopt", 1)])
save("dsopt-version", [linear, stopped, summed], [x], [loss], [w, bias], domains=[("dsopt", 2)])
save("stop-gradient", [linear, stopped, node("Add", "y z", "both"), node("StopGradient", "labels", "same", domain="dsopt"),
                       node("SoftmaxCrossEntropyLoss", "both same", "loss")], [x, labels], [loss], [w, bias],
     domains=[("dsopt", 1)])
placed = node("Frobnicate", "y", "z")
placed.metadata_props.add(key="dsopt.module", value="encoder.layers.0")
placed.metadata_props.add(key="dsopt.source", value="model.py:42")
save("placed", [linear, placed, summed], [x], [loss], [w, bias])
missed = node("Frobnicate", "y", "z")
missed.metadata_props.add(key="dsopt.source", value="model.py:43")
save("placed-line", [linear, missed, summed], [x], [loss], [w, bias])
updated = node("UpdateBuffers", "z b new", "loss", domain="dsopt", momenta=[0.5], sequential=[1])
grown = [linear, node("Add", "b b", "new"), node("ReduceSum", "y", "z", keepdims=0), updated]
save("buffers", grown, [x], [loss], [w, bias], domains=[("dsopt", 1)])
short = node("UpdateBuffers", "z b new", "loss", domain="dsopt", momenta=[0.5], sequential=[1, 1])
save("buffers-short", [*grown[:3], short], [x], [loss], [w, bias], domains=[("dsopt", 1)])
grown_weights = [linear, node("Add", "w w", "new"), node("ReduceSum", "y", "z", keepdims=0),
                 node("UpdateBuffers", "z y new", "loss", domain="dsopt", momenta=[0.5], sequential=[1])]
save("buffers-none", grown_weights, [x], [loss], [w, bias], domains=[("dsopt", 1)])
save("too-new", [node("Gelu", "x", "y"), node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss], [])
save("no-loss", [linear], [x], [tensor("y", 4, 2), tensor("z", 4, 2)], [w, bias])
save("not-scalar", [node("Gemm", "x w b", "loss")], [x], [tensor("loss", 4, 2)], [w, bias])
save("cycle", [node("Add", "x b2", "a"), node("Add", "a b1", "b2", name="second"), node("ReduceSum", "b2", "loss")],
     [x], [loss], [array("b1", [1, 2, 3])])
save("missing", [node("Add", "x nothing", "y"), node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss], [])
save("twice", [node("Neg", "x", "y"), node("Abs", "x", "y"), node("ReduceSum", "y", "loss")], [x], [loss], [])
save("two-inputs", [node("ReduceSum", "x", "loss", keepdims=0)], [x, x], [loss], [])
save("two-outputs", [node("ReduceSum", "x", "loss", keepdims=0)], [x], [loss, loss], [])
save("declared-type", [node("ReduceSum", "x", "loss", keepdims=0)], [x], [tensor("loss", type=TensorProto.INT64)], [])
save("declared-shape", [linear, node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss, tensor("y", "N", 3)], [w, bias])
save("shapes", [node("Add", "x b", "y"), node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss], [bias])
save("types", [node("Add", "x i", "y"), node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss],
     [array("i", [1, 2, 3], np.int64)])
save("huge", [node("ConstantOfShape", "s", "y"), node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss],
     [array("s", [2**62, 2**62], np.int64)])
save("huge-input", [node("ReduceSum", "x", "loss", keepdims=0)], [tensor("x", 2**40, 2**40)], [loss], [])
save("data-shape", [node("Cast", "labels", "s", to=TensorProto.INT64), node("Reshape", "x s", "y"),
                    node("ReduceSum", "y", "loss", keepdims=0)], [x, labels], [loss], [])
image = [node("Unsqueeze", "x zero", "image")]
for name, nodes, constants in [
        ("conv", [*image, node("Conv", "image filter", "y")], [array("filter", np.ones((2, 3, 1)))]),
        ("window", [*image, node("MaxPool", "image", "y", kernel_shape=[9])], []),
        ("long-dft", [node("Unsqueeze", "x last", "waves"), node("DFT", "waves points", "y")],
         [array("last", [2], np.int64), array("points", 2**31, np.int64)]),
        ("topk", [node("TopK", "x k", "y")], [array("k", [7], np.int64)]),
        ("einsum", [node("Einsum", "x", "y", equation="abc->a")], []),
        ("scatter", [node("ScatterElements", "x i x", "y", reduction="xor")], [array("i", np.zeros((4, 3)), np.int64)]),
        ("resize", [node("Resize", "x nothing nothing size", "y", mode="best")], [array("size", [2, 2], np.int64)]),
        ("pad-mode", [node("Pad", "x pads", "y", mode="wrap")], [array("pads", [1, 1, 1, 1], np.int64)]),
        ("weights", [node("SoftmaxCrossEntropyLoss", "x labels two", "y")], [array("two", [1, 2])])]:
    nodes[-1].input[:] = ["" if name == "nothing" else name for name in nodes[-1].input]
    save(name, [*nodes, node("ReduceSum", "y", "loss", keepdims=0)], [x, labels], [loss],
         [array("zero", [0], np.int64), *constants])
save("dropout", [node("Dropout", "x ratio training", "y"), node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss],
     [array("ratio", 0.25), array("training", True, bool)])
norm = [linear, node("BatchNormalization", "y scale zeros mean var", "z"), node("ReduceSum", "z", "loss", keepdims=0)]
statistics = [array("scale", [1, 2]), array("zeros", [0, 0]), array("mean", [1, 2]), array("var", [3, 4])]
save("batchnorm", norm, [x], [loss], [w, bias, *statistics])
norm[1:2] = [node("BatchNormalization", "y scale zeros mean var", "a", training_mode=1),
             node("BatchNormalization", "a scale zeros mean var", "z", training_mode=1)]
norm.insert(1, node("Identity", "mean", "same"))
norm[-2].input[3] = "same"
save("batchnorm-merged", norm, [x], [loss], [w, bias, *statistics])
save("dropout-ratio", [node("Dropout", "x ratio training", "y"), node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss],
     [array("ratio", 1.25), array("training", True, bool)])
save("dropout-mode", [node("Dropout", "x ratio training", "y"), node("ReduceSum", "y", "loss", keepdims=0)],
     [x, tensor("training", type=TensorProto.BOOL)], [loss], [array("ratio", 0.25)])
save("symbolic", [linear, entropy], [tensor("x", "batch", 3), tensor("labels", "rows", type=TensorProto.INT64)],
     [loss], [w, bias])
small = helper.make_tensor("w", TensorProto.FLOAT8E4M3FN, (3, 2), b"\x38" * 6, raw=True)
save("small-weight", [node("Cast", "w", "v", to=TensorProto.FLOAT), node("Gemm", "x v b", "y"), entropy], [x, labels],
     [loss], [small, bias], opset=21)
for name in ("INT4", "UINT4", "INT2", "UINT2"):
    save("input-" + name.lower(), [node("Cast", "x", "v", to=TensorProto.FLOAT), node("Gemm", "v w b", "y"), entropy],
         [tensor("x", 4, 3, type=getattr(TensorProto, name)), labels], [loss], [w, bias], opset=25 if "2" in name else 21)
save("dropout-old", [node("Dropout", "x", "d", ratio=0.25), node("Dropout", "d", "e"), linear, node("Add", "y y", "z"), node("Mul", "e e", "m"),
                     node("ReduceSum", "m", "k", keepdims=0), node("ReduceSum", "z", "n", keepdims=0), node("Add", "k n", "loss")], [x], [loss], [w, bias], opset=10)
save("string", [node("Cast", "x", "loss", to=TensorProto.STRING)], [x], [loss], [])
save("integers", [node("Gather", "x i", "y"), node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss],
     [array("i", [1, 2, 3], np.int64)])
save("out-of-range", [node("Gather", "x i", "y"), node("ReduceSum", "y", "loss", keepdims=0)], [x], [loss],
     [array("i", [4], np.int64)])

# Weights beside the model.
for name, size in [("external", 24), ("external-short", 20), ("external-absent", None)]:
    m = model([linear, entropy], [x, labels], [loss], [w, bias])
    onnx.external_data_helper.set_external_data(m.graph.initializer[0], name + ".data", 0, 24)
    m.graph.initializer[0].ClearField("raw_data")
    write(name + ".onnx", m.SerializeToString())
    if size:
        write(name + ".data", np.ones(6, np.float32).tobytes()[:size])
    else:
        m.graph.initializer[0].external_data[0].value = "../w"
        write("external-outside.onnx", m.SerializeToString())
wrong = model([linear, entropy], [x, labels], [loss], [w, bias])
wrong.graph.initializer[0].raw_data = b"1234"
write("raw-size.onnx", wrong.SerializeToString())

# Weights as the protobuf's own lists of floats.
typed = helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [1, 2, 3, 4, 5, 6])
save("typed", [linear, entropy], [x, labels], [loss], [typed, bias])

# One initializer in two normalizations, one of them through an Identity.
norm = [node("LayerNormalization", "x s t", "a", name="first"), node("Identity", "s", "s2"),
        node("LayerNormalization", "a s2 t2", "c", name="second"), node("ReduceSum", "c", "loss", keepdims=0)]
norms = save("merged", norm, [x], [loss], [array("s", [1, 1, 1]), array("t", [0, 0, 0]), array("t2", [0, 0, 0])])
save("shared", norm, [x], [loss], [array("s", [1, 1, 2]), array("t", [0, 0, 0]), array("t2", [0, 0, 0])])

# Marks and kinds of initializers.
kinds = model([node("Mul", "x scalar", "a"), node("Mul", "a buffer", "c"), node("Mul", "c w", "d"),
               node("Gather", "d rows", "e"), node("ReduceSum", "e", "loss", keepdims=0)], [x], [loss],
              [array("scalar", 2), array("buffer", [1, 2, 3]), array("w", [4, 5, 6]), array("rows", [0, 1], np.int64)])
info = kinds.graph.value_info.add()
info.CopyFrom(tensor("buffer", 3))
mark = info.metadata_props.add()
mark.key, mark.value = "pkg.torch.export.graph_signature.InputSpec.kind", "BUFFER"
write("kinds.onnx", kinds.SerializeToString())

# No loss of its own; nodes in no order; an input and an output nobody needs.
save("logits", [node("Relu", "y", "z"), linear, node("Neg", "unused", "other")], [x, tensor("unused", 2)],
     [tensor("z", 4, 2), tensor("other", 2)], [w, bias])

# Ends that models for inference have.
save("probabilities", [linear, node("Softmax", "y", "soft", axis=1), node("LogSoftmax", "y", "log", axis=-1), node("Sigmoid", "y", "sig"),
                       node("Add", "soft small", "more"), node("Log", "more", "clamped", name="the_Log"), node("Softmax", "y", "down", axis=0, name="columns"),
                       node("ReduceSum", "y one", "score"), node("Sigmoid", "score", "chance")],
     [x], [*(tensor(name, 4, 2) for name in ("soft", "log", "sig", "clamped", "down")), tensor("chance", 4, 1)],
     [w, bias, array("small", 1e-7), array("one", [1], np.int64)])

# Functions of the model's own: one calls the other, with an attribute that it hands on.
def function(name, inputs, outputs, nodes, attributes=(), opset=18, defaults=()):
    return helper.make_function("own", name, inputs.split(), outputs.split(), nodes,
                                [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)], list(attributes),
                                list(defaults))


leaky = node("LeakyRelu", "t", "out", name="inner")
slope = leaky.attribute.add()
slope.name, slope.type, slope.ref_attr_name = "alpha", onnx.AttributeProto.FLOAT, "slope"
twice = node("Leak", "y", "z", domain="own", name="call")
handed = twice.attribute.add()
handed.name, handed.type, handed.ref_attr_name = "slope", onnx.AttributeProto.FLOAT, "slope"
leak = function("Leak", "t", "out", [leaky], defaults=[helper.make_attribute("slope", 0.5)])
outer = function("Layer", "x w", "z same", [node("MatMul", "x w", "y"), twice, node("Identity", "x", "same")], ["slope"])


def save_functions(name, nodes, functions):
    m = model(nodes, [x], [loss], [w])
    m.opset_import.append(helper.make_opsetid("own", 1))
    m.functions.extend(functions)
    onnx.save(m, os.path.join(folder, name + ".onnx"))
    return m


calls = [node("Layer", "x w", "a unused", domain="own", name="first", slope=0.25),
         node("Leak", "a", "b", domain="own", name="second"), node("ReduceSum", "b", "loss", keepdims=0)]
save_functions("functions", calls, [leak, outer])
endless = function("Leak", "t", "out", [node("Leak", "t", "out", domain="own", name="itself")])
save_functions("endless", [node("Leak", "x", "b", domain="own", name="second"), calls[-1]], [endless])
save_functions("other-opset", [node("Leak", "x", "b", domain="own", name="second"), calls[-1]], [function("Leak", "t", "out", [leaky], opset=17)])
save_functions("many-inputs", [node("Leak", "x w", "b", domain="own"), calls[-1]], [leak])
# Each calls the next one twice, the last nothing or something.
for name, last in (("doubling", []), ("doubling-nodes", [node("Neg", "t", "out", name="inner")])):
    doubling = [function(f"F{i}", "t", "out", [node(f"F{i + 1}", "t", "u", domain="own"), node(f"F{i + 1}", "t", "out", domain="own")]) for i in range(40)]
    save_functions(name, [node("F0", "x", "b", domain="own"), calls[-1]], [*doubling, function("F40", "t", "out", last)])
save("control", [node("Frobnicate", "x", "loss", name="two\nlines\x1b[31m")], [x], [loss], [])
wrong = function("Leak", "t", "out", [leaky], opset=17)
branch = helper.make_graph([node("Leak", "x", "u", domain="own", name="second")], "branch", [], [helper.make_empty_tensor_value_info("u")])
save_functions("branches-opset", [node("ReduceSum", "x", "sum", keepdims=0), node("Cast", "sum", "on", to=9), node("If", "on", "b", then_branch=branch, else_branch=branch), calls[-1]], [wrong])
save("untied-names", [node("MatMul", "x w", "a"), node("MatMul", "x w", "b"), node("MatMul", "x w", "c"), node("Sum", "a b c w.1 w.2", "d"),
                      node("ReduceSum", "d", "loss", keepdims=0)], [x], [loss], [w, array("w.1", 0), array("w.2", 0)])
# Operands of a recurrence that broadcast, or have no directions.
sequence = tensor("x", 5, 2, 3)
lstm_weights = [array("w", np.ones((1, 16, 3))), array("r", np.ones((1, 16, 4))), array("h", np.ones((1, 1, 4))), array("scalar", 1), array("p", np.ones((1, 4)))]
lstm_end = node("ReduceSum", "all", "loss", keepdims=0)
for name, inputs in (("state-rows", ["x", "w", "r", "", "", "h"]), ("state-scalar", ["x", "w", "r", "", "", "scalar"]), ("peepholes", ["x", "w", "r", "", "", "", "", "p"])):
    save(name, [helper.make_node("LSTM", inputs, ["all"], name="the_LSTM", hidden_size=4), lstm_end], [sequence], [loss], lstm_weights)

# What rules look at before anything is imported is spoilt in each way: biases that layers share, scales, statistics, closed forms, what a condition needs.
looked_at = {
    "norms": norms,
    "sum": model([linear, node("Add", "y b", "z"), node("ReduceSum", "z", "loss", keepdims=0)], [x], [loss], [w, bias]),
    "statistics": model([linear, node("BatchNormalization", "y b b b b", "z"), node("ReduceSum", "z", "loss", keepdims=0)], [x], [loss], [w, bias]),
    "closed": model([node("MatMul", "x ramp", "y"), node("Add", "y b", "z"), node("ReduceSum", "z", "loss", keepdims=0)], [x], [loss],
                    [array("ramp", np.arange(6).reshape(3, 2)), bias]),
    "branch": model([linear, node("If", "on", "z", then_branch=helper.make_graph([node("Add", "y b", "t")], "then", [], [tensor("t", 4, 2)]),
                                  else_branch=helper.make_graph([node("Identity", "y", "e")], "else", [], [tensor("e", 4, 2)])),
                     node("ReduceSum", "z", "loss", keepdims=0)], [x], [loss], [w, bias, array("on", True, bool)])}
spoilt = {"huge": {"dims": [2**58]}, "negative": {"dims": [-1]}, "kind": {"data_type": 99}, "string": {"data_type": TensorProto.STRING},
          "short": {"raw_data": b"12"},
          "absent": {"raw_data": None, "data_location": 1, "external_data": [{"key": "location", "value": "none.bin"}]}}
for name, m in looked_at.items():
    for index, good in enumerate(m.graph.initializer):
        for way, fields in spoilt.items():
            bad = onnx.ModelProto()
            bad.CopyFrom(m)
            changed = bad.graph.initializer[index]
            for field in fields:
                changed.ClearField(field)
            changed.MergeFrom(TensorProto(**fields))
            write(f"spoilt-{name}-{good.name}-{way}.onnx", bad.SerializeToString())
