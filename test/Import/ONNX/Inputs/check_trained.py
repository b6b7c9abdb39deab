"""Graphs as exporters write them, each with what is to be trained, and what of it is to be said.

usage: check_trained.py IMPORT FOLDER
"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

tool, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
random = np.random.default_rng(0)
KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
FOLDED_FROM = "pkg.onnxscript.optimizer.folded_from"
SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"


def rand(*shape):
    return random.standard_normal(shape)


def full(value, *shape):
    return np.full(shape, value)


def parse(line):
    """A node of "result ... = Operator input ... name=value ..."; "_" is an absent input."""
    results, text = line.split(" = ")
    op, *words = text.split()
    inputs = ["" if word == "_" else word for word in words if "=" not in word]
    attributes = {key: eval(value) for key, value in (word.split("=", 1) for word in words if "=" in word)}
    return helper.make_node(op, inputs, results.split(), **attributes)


CASES = []


def case(name, nodes, values, trained, doubt="", x=(4, 6), constants=(), marks=(), signature="", type=np.float32, more=(),
         opset=18):
    """`values` by name: floats become `type`, or float64 where the name ends in _f64, integers int64. `constants` among them are Constant nodes. `doubt`: what a warning names."""
    CASES.append((name, nodes, values, trained, doubt, x, constants, marks, signature, type, more, opset))


def build(name, nodes, values, x, constants, marks, signature, type, more, opset):
    arrays = {key: np.asarray(value) for key, value in values.items()}
    arrays = {key: value.astype(np.int64 if value.dtype.kind == "i" else np.float64 if key.endswith("_f64") else type) for key, value in arrays.items()}
    made = [parse(line) if isinstance(line, str) else line for line in nodes]
    first = [helper.make_node("Constant", [], [key], value=numpy_helper.from_array(arrays[key], key + "_value")) for key in constants]
    last = made[-1].output[0]
    made = [*first, *made, helper.make_node("ReduceMean", [last], ["loss"], keepdims=0)]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(type))
    infos = []
    for key, kind in marks:
        infos.append(helper.make_tensor_value_info(key, element, arrays[key].shape))
        entry = infos[-1].metadata_props.add()
        entry.key, entry.value = FOLDED_FROM if kind.startswith("[") else KIND, kind
    graph = helper.make_graph(made, "g", [helper.make_tensor_value_info("x", element, x), *more], [helper.make_tensor_value_info("loss", element, [])],
                              [numpy_helper.from_array(value, key) for key, value in arrays.items() if key not in constants], value_info=infos)
    if signature:
        entry = graph.metadata_props.add()
        entry.key, entry.value = SIGNATURE, "\n# inputs\n" + "\n".join(signature) + "\ninput: USER_INPUT\n"
    path = os.path.join(folder, name + ".onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)
    return path


def ids(name="ids", shape=(4,)):
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


W = {"w": rand(6, 6)}
LINEAR = "y = MatMul x w"
SCORES = ["q = MatMul x wq", "k = MatMul x wk", "t = Transpose k perm=[1,0]", "s = MatMul q t"]
QK = {"wq": rand(6, 6), "wk": rand(6, 6)}

# Learned scalars and vectors.
case("temperature", [LINEAR, "z = Div y temperature", "p = Softmax z"], {**W, "temperature": 0.07}, "w temperature", "temperature")
case("temperature_half", [LINEAR, "z = Mul y temperature", "p = Softmax z"], {**W, "temperature": 0.5}, "w temperature", "temperature")
case("logit_scale", ["e = Exp logit_scale", LINEAR, "z = Mul y e"], {**W, "logit_scale": np.log(1 / 0.07)}, "w logit_scale")
case("rezero", [LINEAR, "t = Tanh y", "r = Mul t alpha", "z = Add x r"], {**W, "alpha": 0.0}, "w alpha", "alpha")
case("rezero_vector", [LINEAR, "r = Mul y resweight", "z = Add x r"], {**W, "resweight": [0.0]}, "w resweight", "resweight")
case("gate_one", [LINEAR, "t = Tanh y", "z = Mul t gate"], {**W, "gate": 1.0}, "w gate", "gate")
case("gate_sigmoid", [LINEAR, "a = Mul y gate", "z = Sigmoid a"], {**W, "gate": 1.0}, "w gate", "gate")
case("gate_function", ["g = Sigmoid gate", LINEAR, "z = Mul y g"], {**W, "gate": 0.0}, "w gate")
case("layer_scale", [LINEAR, "z = Mul y ls1.gamma"], {**W, "ls1.gamma": full(1e-5, 6)}, "w ls1.gamma", "ls1.gamma")
case("layer_scale_trained", [LINEAR, "z = Mul y ls1.gamma"], {**W, "ls1.gamma": rand(6)}, "w ls1.gamma")
case("prelu", [LINEAR, "z = PRelu y slope"], {**W, "slope": [0.25]}, "w slope")
case("clip", [LINEAR, "z = Clip y _ act.alpha"], {**W, "act.alpha": 6.0}, "w act.alpha", "act.alpha")
case("minimum", [LINEAR, "z = Min y act.alpha"], {**W, "act.alpha": 10.0}, "w act.alpha", "act.alpha")
case("gem", ["a = Pow x pool.p", "z = MatMul a w"], {**W, "pool.p": [3.0]}, "w pool.p", "pool.p")
case("swish_beta", ["b = Mul x beta", "s = Sigmoid b", "y = Mul x s", "z = MatMul y w"], {**W, "beta": 1.0}, "w beta", "beta")
case("mix", [LINEAR, "c = Sub one mix", "a = Mul y mix", "b = Mul x c", "z = Add a b"], {**W, "one": 1.0, "mix": 0.3}, "w mix", "mix")
case("step_size", ["d = Div x step", "r = Round d", "m = Mul r step", "z = MatMul m w"], {**W, "step": 0.05}, "w step", "step")
case("relative_bias", [*SCORES, "b = Add s table", "p = Softmax b"], {**QK, "table": rand(4, 4)}, "wq wk table")
case("one_output", ["y = MatMul x head.weight", "z = Add y head.bias"], {"head.weight": rand(6, 1), "head.bias": [0.0]}, "head.weight head.bias")
case("gemm_one", ["z = Gemm x weight bias transB=1"], {"weight": rand(1, 6), "bias": [0.0]}, "weight bias")
# Tokens and states.
case("class_token", [LINEAR, "c = Expand cls_token sh", "z = Concat c y axis=0"], {**W, "cls_token": rand(1, 6), "sh": [1, 6]}, "w cls_token")
case("class_token_zero", [LINEAR, "c = Expand cls_token sh", "z = Concat c y axis=0"], {**W, "cls_token": full(0.0, 1, 6), "sh": [1, 6]}, "w cls_token", "cls_token")
case("mask_token", [LINEAR, "m = Greater x half", "z = Where m mask_token y"], {**W, "half": 0.25, "mask_token": rand(6)}, "w mask_token")
case("positions", ["a = Add x pos_embed", "z = MatMul a w"], {**W, "pos_embed": rand(4, 6)}, "w pos_embed")
RNN = {"W": rand(1, 3, 6), "R": rand(1, 3, 3)}
case("learned_state", ["h = Expand h0 sh", "Y z = RNN x W R _ _ h hidden_size=3"], {**RNN, "h0": rand(1, 1, 3), "sh": [1, 4, 3]}, "W R h0", x=(5, 4, 6))
case("learned_state_zero", ["h = Expand h0 sh", "Y z = RNN x W R _ _ h hidden_size=3"], {**RNN, "h0": full(0.0, 1, 1, 3), "sh": [1, 4, 3]}, "W R h0", "h0", x=(5, 4, 6))
case("zero_state", ["h = Expand zero sh", "Y z = RNN x W R _ _ h hidden_size=3"], {**RNN, "zero": 0.0, "sh": [1, 4, 3]}, "W R", x=(5, 4, 6))
case("zero_states", ["h = Expand zero sh", "Y z c = LSTM x W R _ _ h h hidden_size=3"], {"W": rand(1, 12, 6), "R": rand(1, 12, 3), "zero": [0.0], "sh": [1, 4, 3]}, "W R", x=(5, 4, 6))
case("exported_state", ["Y z = RNN x W R _ _ onnx::RNN_7 hidden_size=3"], {**RNN, "onnx::RNN_7": full(0.0, 1, 4, 3)}, "W R", "onnx::RNN_7", x=(5, 4, 6))
case("node_state", ["Y z = RNN x W R _ _ /rnn/Constant_output_0 hidden_size=3"], {**RNN, "/rnn/Constant_output_0": full(0.0, 1, 4, 3)}, "W R", x=(5, 4, 6), constants=["/rnn/Constant_output_0"])

# Formulas.
TANH = ["a = Mul k x", "b = Mul x a", "d = Mul x b", "e = Add x d", "f = Mul s e", "t = Tanh f", "u = Add one t", "v = Mul half u", "g = Mul x v", "z = MatMul g w"]
case("gelu_jax", TANH, {**W, "k": 0.044715, "s": 0.7978845608, "one": 1.0, "half": 0.5}, "w")
case("gelu_erf", ["a = Div x r", "b = Erf a", "c = Add b one", "d = Mul x c", "g = Mul d half", "z = MatMul g w"], {**W, "r": np.sqrt(2), "one": 1.0, "half": 0.5}, "w")
case("gelu_erf_turned", ["h = Mul half x", "a = Mul x r", "b = Erf a", "c = Add one b", "g = Mul h c", "z = MatMul g w"], {**W, "r": np.sqrt(0.5), "one": 1.0, "half": 0.5}, "w")
case("gelu_pow", ["a = Pow x three", "b = Mul a k", "e = Add x b", "f = Mul e s", "t = Tanh f", "u = Add t one", "h = Mul x half", "g = Mul h u", "z = MatMul g w"],
     {**W, "three": 3.0, "k": 0.044715, "s": np.sqrt(2 / np.pi), "one": 1.0, "half": 0.5}, "w")
case("gelu_factored", ["a = Mul x x", "b = Mul a k", "c = Add b one", "d = Mul x s", "e = Mul c d", "t = Tanh e", "u = Add t one", "h = Mul x u", "g = Mul h half", "z = MatMul g w"],
     {**W, "k": 0.044715, "s": np.sqrt(2 / np.pi), "one": 1.0, "half": 0.5}, "w")
case("gelu_quick", ["a = Mul x f", "b = Sigmoid a", "g = Mul x b", "z = MatMul g w"], {**W, "f": 1.702}, "w")
case("gelu_half", ["a = Div x r", "b = Erf a", "c = Add b one", "d = Mul x c", "g = Mul d half", "z = MatMul g w"], {**W, "r": np.sqrt(2), "one": 1.0, "half": 0.5}, "w", type=np.float16)
case("gelu_gated", ["a = Div x r", "b = Erf a", "c = Add b one", "d = Mul x c", "e = Mul d half", "g = Mul e gate", "z = MatMul g w"],
     {**W, "r": np.sqrt(2), "one": 1.0, "half": 0.5, "gate": 1.0}, "w gate", "gate")
case("not_gelu", ["a = Mul x f", "b = Sigmoid a", "g = Mul x b", "z = MatMul g w"], {**W, "f": 1.71}, "w f", "f")
case("hard_swish", ["a = Add x three", "b = Clip a lo hi", "c = Mul x b", "d = Div c six", "z = MatMul d w"], {**W, "three": 3.0, "lo": 0.0, "hi": 6.0, "six": 6.0}, "w")
case("logistic", ["a = Neg x", "b = Exp a", "c = Add b one", "d = Div one c", "z = MatMul d w"], {**W, "one": 1.0}, "w")
case("softplus", ["a = Exp x", "b = Add a one", "c = Log b", "z = MatMul c w"], {**W, "one": 1.0}, "w")
case("square", ["a = Pow x two", "z = MatMul a w"], {**W, "two": 2.0}, "w")
case("norm", ["m = ReduceMean x axes", "d = Sub x m", "s = Pow d two", "v = ReduceMean s axes", "e = Add v eps", "r = Sqrt e", "n = Div d r", "g = Mul n gamma", "z = Add g beta"],
     {"axes": [-1], "two": 2.0, "eps": 1e-5, "gamma": full(1.0, 6), "beta": full(0.0, 6)}, "gamma beta")
case("rms_norm", ["s = Mul x x", "v = ReduceMean s axes", "e = Add v eps", "r = Sqrt e", "i = Reciprocal r", "n = Mul x i", "z = Mul n onnx::Mul_3"], {"axes": [-1], "eps": 1e-6, "onnx::Mul_3": full(1.0, 6)},
     "onnx::Mul_3")
case("attention_scale", [*SCORES, "d = Div s root", "p = Softmax d"], {**QK, "root": np.sqrt(6)}, "wq wk")
case("attention_product", [*SCORES, "d = Mul s root", "p = Softmax d"], {**QK, "root": 1 / np.sqrt(6)}, "wq wk")
case("attention_mask", [*SCORES, "d = Add s mask", "p = Softmax d"], {**QK, "mask": np.where(np.tril(np.ones((4, 4))), 0, -1e9)}, "wq wk")
case("infinite_mask", [*SCORES, "d = Where m s low", "p = Softmax d"], {**QK, "low": -np.inf}, "wq wk", more=[helper.make_tensor_value_info("m", TensorProto.BOOL, [4, 4])])
# Before opset 13 Softmax flattens: the importer writes views around it.
case("old_attention_scale", [*SCORES, "d = Div s root", "p = Softmax d axis=0"], {**QK, "root": np.sqrt(6)}, "wq wk", opset=11)
case("old_attention_mask", [*SCORES, "d = Add s mask", "p = Softmax d axis=1"], {**QK, "mask": np.where(np.tril(np.ones((4, 4))), 0, -1e9)}, "wq wk", opset=11)
case("old_resize", ["r = Upsample x scales", "z = Conv r kernel"], {"scales": [1.0, 1, 2, 2], "kernel": rand(2, 3, 1, 1)}, "kernel", x=(1, 3, 4, 4), opset=9)

# What decides shapes, indices, loops and branches.
LOOP = helper.make_graph([helper.make_node("MatMul", ["s", "W"], ["s2"]), helper.make_node("Identity", ["c"], ["c2"])], "b",
                         [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("s", TensorProto.FLOAT, None)],
                         [helper.make_tensor_value_info("c2", TensorProto.BOOL, []), helper.make_tensor_value_info("s2", TensorProto.FLOAT, None)])
case("loop", ["sh = Shape x", "n = Gather sh g", "f = Cast n to=1", "c0 = Less zero f", helper.make_node("Loop", ["n", "c0", "x"], ["z"], body=LOOP)],
     {"W": np.eye(6), "zero": 0.0, "g": 0}, "W")
case("branch", ["sh = Shape x", "n = Gather sh g", "f = Cast n to=1", "c = Greater f limit",
                helper.make_node("If", ["c"], ["z"], then_branch=helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"])], "t", [], [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)]),
                                 else_branch=helper.make_graph([helper.make_node("Relu", ["x"], ["e"])], "e", [], [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)]))],
     {**W, "limit": 2.0, "g": 0}, "w")
case("shape", ["sh = Shape x", "f = Cast sh to=1", "h = Mul f ratio", "i = Cast h to=7", "y = Expand x sh", "r = Reshape y i", "z = Mul r w"], {"w": rand(1), "ratio": 1.0}, "w", "w")
case("anchor", ["f = MatMul x w", "s = Shape f", "n = Gather s g", "i = Range r0 n r1", "q = Cast i to=1", "a = Add q half", "d = Sub a f", "z = Mul d /head/Squeeze_output_0"],
     {**W, "g": 1, "r0": 0, "r1": 1, "half": 0.5, "/head/Squeeze_output_0": 8.0}, "w", "/head/Squeeze_output_0")
case("less", ["neg = Less x zero", "id = Cast x to=7", "idp = Add id rows", "ix = Where neg idp id", "e = Gather E ix", "h0 = Expand zero sh", "Y z = RNN e W R _ _ h0 hidden_size=3"],
     {"zero": 0.0, "rows": 7, "E": rand(7, 5), "sh": [1, 2, 3], "W": rand(1, 3, 5), "R": rand(1, 3, 3)}, "E W R", x=(4, 2))
case("compared", [LINEAR, "m = Greater y limit", "z = Where m y x"], {**W, "limit": 0.5}, "w")
case("shared", [LINEAR, "a = Add y number", "z = Mul a number"], {**W, "number": 0.5}, "w")
case("resized", ["r = Resize x _ scales", "z = Conv r kernel"], {"scales": [1.0, 1, 2, 2], "kernel": rand(2, 3, 1, 1)}, "kernel", x=(1, 3, 4, 4))

# Weights of layers, whatever their names.
case("named_by_exporter", ["a = MatMul x onnx::MatMul_12", "z = Add a onnx::Add_13"], {"onnx::MatMul_12": rand(6, 6), "onnx::Add_13": full(0.0, 6)}, "onnx::MatMul_12 onnx::Add_13")
case("identity", ["z = MatMul x w"], {"w": np.eye(6)}, "w")
case("zero_adapter", ["a = MatMul x down", "z = MatMul a up"], {"down": rand(6, 2), "up": full(0.0, 2, 6)}, "down up")
case("zero_convolution", ["z = Conv x kernel"], {"kernel": full(0.0, 2, 3, 3, 3)}, "kernel", x=(1, 3, 5, 5))
case("dirac", ["z = Conv x kernel"], {"kernel": np.eye(3)[:, :, None, None] * np.pad([[1.0]], 1)}, "kernel", x=(1, 3, 5, 5))
case("separate_bias", ["a = Conv x kernel", "z = Add a bias"], {"kernel": rand(2, 3, 1, 1), "bias": full(0.0, 1, 2, 1, 1)}, "kernel bias", x=(1, 3, 5, 5))
case("embedding", ["z = Gather table ids"], {"table": rand(9, 6)}, "table", more=[ids()])
case("batch_norm", ["z = BatchNormalization x s b m v"], {"s": full(1.0, 6), "b": full(0.0, 6), "m": full(0.0, 6), "v": full(1.0, 6)}, "s b")
NORM = {"s": full(1.0, 6), "b": full(0.0, 6)}
case("fresh_norm", ["z = InstanceNormalization x s b"], NORM, "s b", x=(2, 6, 5))
case("fresh_layer_norm", ["z = LayerNormalization x s b"], NORM, "s b")
case("plain_norm", ["n = InstanceNormalization x /n/Constant_1_output_0 /n/Constant_2_output_0", "z = Conv n k"],
     {"/n/Constant_1_output_0": full(1.0, 6), "/n/Constant_2_output_0": full(0.0, 6), "k": rand(2, 6, 1)}, "k", "/n/Constant_1_output_0 /n/Constant_2_output_0", x=(2, 6, 5),
     constants=["/n/Constant_1_output_0", "/n/Constant_2_output_0"])
case("group_norm", ["r = Reshape x sh", "n = InstanceNormalization r ones zeros", "v = Reshape n back", "m = Mul v weight", "z = Add m bias"],
     {"sh": [2, 3, -1], "back": [2, 6, 5], "ones": full(1.0, 3), "zeros": full(0.0, 3), "weight": full(1.0, 6, 1), "bias": full(0.0, 6, 1)}, "weight bias", x=(2, 6, 5))

# Closed forms.
angles = np.arange(8)[:, None] / 10000 ** (np.arange(3) / 3)
sines = np.concatenate([np.sin(angles), np.cos(angles)], 1)
case("arange_kernel", ["z = Conv x dfl.weight"], {"dfl.weight": np.arange(8.0).reshape(1, 8, 1, 1)}, "", "dfl.weight", x=(1, 8, 2, 2))
case("fourier", ["z = MatMul x basis"], {"basis": np.cos(2 * np.pi * np.outer(np.arange(16), np.arange(9)) / 16)}, "", "basis", x=(4, 16))
case("stft", ["z = Conv x basis strides=[4]"], {"basis": (np.hanning(17)[:16] * np.concatenate([np.cos(2 * np.pi * np.outer(np.arange(9), np.arange(16)) / 16), np.sin(2 * np.pi * np.outer(np.arange(9), np.arange(16)) / 16)]))[:, None]},
     "", "basis", x=(1, 1, 64))
case("mel", ["z = MatMul x bank"], {"bank": np.maximum(0, 1 - np.abs(np.arange(40)[:, None] / 4 - np.arange(1, 9)))}, "", "bank", x=(4, 40))
case("blur", ["z = Conv x kernel group=2"], {"kernel": np.tile(np.outer([1, 2, 1], [1, 2, 1]) / 16, (2, 1, 1, 1))}, "", "kernel", x=(1, 2, 5, 5))
case("mean_window", ["z = Conv x kernel group=2"], {"kernel": full(1 / 9, 2, 1, 3, 3)}, "", "kernel", x=(1, 2, 5, 5))
case("sobel", ["z = Conv x kernel"], {"kernel": np.array([[[[1.0, 0, -1], [2, 0, -2], [1, 0, -1]]], [[[1, 2, 1], [0, 0, 0], [-1, -2, -1]]]])}, "", "kernel", x=(1, 1, 5, 5))
waves = 2 * np.pi * np.outer([0.11, 0.17, 0.23], np.arange(-15, 17))
lengths = np.exp(-((np.arange(-15, 17) / np.array([[9.0], [7], [5]])) ** 2)) * (abs(np.arange(-15, 17)) < [[14], [11], [8]])
for name, values in (("even", np.cos(waves)), ("odd", np.sin(waves))):
    case(f"constant_q_{name}", ["a = Conv x kernel bias", "z = Conv a w"], {"kernel": (lengths * values)[:, None], "bias": full(0.0, 3), "w": rand(2, 3, 1)}, "w", "kernel bias", x=(1, 1, 64))
case("constant_q_images", ["a = Conv x kernel bias", "z = Conv a w"], {"kernel": (lengths * np.sin(waves))[:, None, None], "bias": full(0.0, 3), "w": rand(2, 3, 1, 1)}, "w", "kernel bias", x=(1, 1, 1, 64))
# The window has its middle half a sample from the wave's.
frames = [(length, rate, np.hanning(length + 1)[:-1] * np.exp(2j * np.pi * rate * (np.arange(length) - length // 2))) for length, rate in ((211, 0.13), (150, 0.183), (97, 0.283))]
apart = np.stack([np.pad(wave, ((256 - length) // 2, 256 - length - (256 - length) // 2)) / length for length, _, wave in frames])
for name, values in (("real", apart.real), ("imaginary", apart.imag)):
    case(f"constant_q_{name}", ["a = Conv x kernel bias", "z = Conv a w"], {"kernel": values[:, None, None], "bias": full(0.0, 3), "w": rand(2, 3, 1, 1)}, "w", "kernel bias", x=(1, 1, 1, 300))
    case(f"constant_q_{name}_learned", ["a = Conv x kernel bias", "z = Conv a w"], {"kernel": (values * (1 + 1e-3 * rand(3, 256)))[:, None, None], "bias": full(0.0, 3), "w": rand(2, 3, 1, 1)},
         "kernel bias w", x=(1, 1, 1, 300))
case("long_kernel", ["z = Conv x kernel"], {"kernel": rand(1, 2, 1, 31)}, "kernel", x=(1, 2, 1, 64))
case("smooth_kernel", ["z = Conv x kernel"], {"kernel": np.exp(-((np.arange(31) - 13) / 5) ** 2) * (1 + 0.01 * rand(4, 2, 1, 31))}, "kernel", x=(1, 2, 1, 64))
case("fixed_with_bias", ["a = Conv x kernel bias"], {"kernel": (lengths * np.sin(waves))[:, None], "bias": rand(3)}, "bias", "kernel", x=(1, 1, 64))
case("sinc", ["z = Conv x kernel strides=[3]"], {"kernel": np.concatenate([np.sinc(np.arange(-9, 10) / 3) * np.hanning(19), [1e-24, 1e-24]])[None, None]}, "", "kernel", x=(1, 1, 64))
phases = (np.arange(-20, 21)[None] / 4 + np.arange(3)[:, None] / 3).clip(-4, 4)
case("resampling", ["z = Conv x kernel strides=[4]"], {"kernel": (np.sinc(phases) * np.cos(phases * np.pi / 8) ** 2)[:, None]}, "", "kernel", x=(1, 1, 64))
case("no_mirror", ["a = Conv x kernel bias"], {"kernel": (lengths * np.sin(waves))[:, None] * (1 + 1e-4 * rand(3, 1, 32)), "bias": full(0.0, 3)}, "kernel bias", x=(1, 1, 64))
case("mirrored_but_one", ["a = Conv x kernel bias"], {"kernel": np.concatenate([(lengths * np.sin(waves))[:, None], rand(1, 1, 32)]), "bias": full(0.0, 4)}, "kernel bias", x=(1, 1, 64))
case("pruned", ["a = Conv x kernel bias"], {"kernel": rand(8, 3, 3, 3) * (random.random((8, 3, 3, 3)) < 0.3), "bias": full(0.0, 8)}, "kernel bias", x=(1, 3, 8, 8))
LENGTHS = np.sqrt(np.ceil(400 * 2.0 ** -(np.arange(40) / 36)))
case("lengths", ["a = Mul x lengths", "z = MatMul a u"], {"u": rand(40, 3), "lengths": LENGTHS}, "u lengths", "lengths", x=(4, 40))
case("no_lengths", ["a = Mul x lengths", "z = MatMul a u"], {"u": rand(40, 3), "lengths": LENGTHS + 0.01}, "u lengths", x=(4, 40))
case("counts", ["a = Div x counts", "z = MatMul a u"], {"u": rand(6, 3), "counts": [2.0, 3, 5, 7, 11, 13]}, "u counts", "counts")
case("double_table", ["c = Cast table_f64 to=1", "a = Mul x c", "z = MatMul a w"], {**W, "table_f64": np.linspace(0, 1, 6)}, "w", "table_f64")
case("double_number", ["c = Cast scale_f64 to=1", "a = Mul x c", "z = MatMul a w"], {**W, "scale_f64": 0.3}, "w", "scale_f64")
SPARSE = {"sh": [6, 6], "places": [[0, 1], [2, 3], [5, 0]], "entries": [0.3, 0.7, 0.2], "zeros": full(0.0, 6, 6), "flat": [1, 9, 30], "size": [36], "long": full(0.0, 36)}
for name, scatter in (("shape", "ConstantOfShape sh|ScatterND data places entries"), ("zeros", "Identity zeros|ScatterND zeros places entries"),
                      ("elements", "ConstantOfShape size|ScatterElements data flat entries")):
    data, scattered = scatter.split("|")
    case(f"sparse_{name}", [f"data = {data}", f"t = {scattered}", "r = Reshape t sh", "a = MatMul x r", "z = MatMul a w"], {**W, **SPARSE}, "w zeros" if name == "zeros" else "w", "entries zeros" if name == "zeros" else "entries")
case("sparse_learned", [LINEAR, "z = ScatterND y places entries"], {**W, "places": [[0, 1], [2, 3], [3, 0]], "entries": [0.3, 0.7, 0.2]}, "w entries")
case("cumulated", ["z = MatMul x ones"], {"ones": np.triu(np.ones((6, 6)))}, "", "ones")
case("frequencies", ["a = MatMul x inv_freq", "z = Cos a"], {"inv_freq": 10000 ** -(np.arange(8)[None] / 8)}, "", "inv_freq", x=(4, 1))
case("sinusoids", ["e = Gather table ids", "a = Add e x", "z = MatMul a w"], {**W, "table": sines}, "w", "table", more=[ids()])
case("sinusoids_added", ["a = Add x table", "z = MatMul a w"], {**W, "table": sines}, "w", "table", x=(8, 6))

# Names decide what is in doubt.
case("dropout", [LINEAR, "z = Mul y Constant_5"], {**W, "Constant_5": 0.8}, "w", "Constant_5")
case("folded", [LINEAR, "z = Mul y const_fold_opt__12"], {**W, "const_fold_opt__12": 0.8}, "w", "const_fold_opt__12")
case("numbered", [LINEAR, "z = Mul y 123"], {**W, "123": 0.8}, "w", "123")
case("pixels", ["a = Sub x mean", "b = Div a std", "z = MatMul b w"], {"w": rand(3, 2), "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}, "w mean std", "mean std", x=(4, 3))
case("pixels_exported", ["a = Sub x val_1", "z = MatMul a w"], {"w": rand(3, 2), "val_1": [0.485, 0.456, 0.406]}, "w", "val_1", x=(4, 3))
case("numbered_cast", [LINEAR, "z = Mul y auto.cast.74"], {**W, "auto.cast.74": [0.258]}, "w", "auto.cast.74")
case("reciprocal", [LINEAR, "z = Mul y ConstantFolding/norm/truediv_recip:0"], {**W, "ConstantFolding/norm/truediv_recip:0": 0.002}, "w", "ConstantFolding/norm/truediv_recip:0")

# Windows of short-time transforms: symmetric, periodic, among zeros.
for name, values in (("symmetric", np.hamming(16)), ("periodic", np.hamming(17)[:16]), ("padded", np.concatenate([np.zeros(3), np.hanning(11), [2e-13, 0]]))):
    case(f"window_{name}", ["a = Mul x window", "z = MatMul a u"], {"u": rand(16, 3), "window": values}, "u", "window", x=(4, 16))
case("no_window", ["a = Mul x scale", "z = MatMul a u"], {"u": rand(16, 3), "scale": np.hamming(16) + 1e-4 * rand(16)}, "u scale", x=(4, 16))

# Folded by an exporter that marks nothing: use, values and names decide.
case("folded_unmarked", ["a = Mul x emphasis_cast", "b = MatMul a bank_cast", "c = Add b guard_cast", "l = Log c", "z = MatMul l u_cast"],
     {"emphasis_cast": 0.97, "bank_cast": np.maximum(0, 1 - np.abs(np.arange(40)[:, None] / 4 - np.arange(1, 9))), "guard_cast": 1e-5, "u_cast": rand(8, 3)},
     "u_cast", "emphasis_cast bank_cast", x=(4, 40), marks=[(key + "_cast", f"['{key}']") for key in ("emphasis", "bank", "guard", "u")])

# Marks and signatures.
case("marked", [LINEAR, "a = Mul y scale", "z = Add a val_3"], {**W, "scale": 1.0, "val_3": 0.5}, "w scale", marks=[("w", "PARAMETER"), ("scale", "PARAMETER")])
case("marked_buffer", [LINEAR, "z = Mul y scale"], {**W, "scale": rand(6)}, "w", marks=[("w", "PARAMETER"), ("scale", "BUFFER")])
FOLDED = ["f = Conv x 0.weight 0.bias", "z = Conv f 1.weight"]
case("folded_norm", FOLDED, {"0.weight": rand(2, 3, 1, 1), "0.bias": rand(2), "1.weight": rand(2, 2, 1, 1)}, "0.weight 0.bias 1.weight", x=(1, 3, 4, 4), marks=[("1.weight", "PARAMETER")],
     signature=["p_0_weight: PARAMETER target='0.weight'", "p_0_bias: PARAMETER target='0.bias'", "p_1_weight: PARAMETER target='1.weight'"])
case("signed_buffer", [LINEAR, "z = Mul y scale"], {**W, "scale": rand(6)}, "w", signature=["p_w: PARAMETER target='w'", "b_scale: BUFFER target='scale' persistent=True"])
case("marked_fourier", ["a = MatMul x val_0", "z = MatMul a w"], {"val_0": np.cos(2 * np.pi * np.outer(np.arange(6), np.arange(6)) / 6), **W}, "w", "val_0", marks=[("w", "PARAMETER")])

# Weights in Constant nodes.
case("nodes", ["a = MatMul x w", "z = MatMul a u"], {**W, "u": rand(6, 3)}, "w u", constants=["u"])
case("all_nodes", ["z = Gemm x u b"], {"u": rand(6, 3), "b": full(0.0, 3)}, "u b", constants=["u", "b"])
case("node_numbers", ["a = MatMul x u", "z = Mul a s"], {"u": rand(6, 3), "s": 0.5}, "u", constants=["u", "s"])
case("node_slope", ["a = MatMul x u", "z = PRelu a slope"], {"u": rand(6, 3), "slope": [0.25]}, "u slope", constants=["u", "slope"])
case("node_mean", ["a = Sub x Constant_0", "z = MatMul a u"], {"u": rand(3, 2), "Constant_0": [0.485, 0.456, 0.406]}, "u", "Constant_0", x=(4, 3), constants=["u", "Constant_0"])

failures = 0
for name, nodes, values, trained, doubt, *rest in CASES:
    path = build(name, nodes, values, *rest)
    done = subprocess.run([tool, os.path.basename(path), "--list-parameters"], cwd=folder, capture_output=True, text=True)
    rows = [line.split() for line in done.stdout.splitlines()[1:-1]]
    got = {row[0] for row in rows if row[3] == "trained"}
    said = {key for key in values if f"'{key}' (" in done.stderr}
    if done.returncode or got != set(trained.split()) or said != set(doubt.split()):
        failures += 1
        print(f"{name}: trained {sorted(got)}, expected {trained.split()}; in doubt {sorted(said)}, expected {doubt.split()}\n{done.stdout}{done.stderr}")
print(f"{len(CASES)} graphs, {failures} wrong")
sys.exit(failures > 0)
