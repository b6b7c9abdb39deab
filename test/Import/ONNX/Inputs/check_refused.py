"""Operators that are refused, and what is said that one can do: in the importer's error, and in dsopt inspect.

usage: check_refused.py DSOPT DSOPT-IMPORT FOLDER
"""
import json
import os
import subprocess
import sys

import onnx
from onnx import TensorProto, helper

dsopt, importer, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)

# By family and what its advice has to name: operators with their domains.
FAMILIES = [
    ("quantized", "use the float model that this one was quantized from",
     "QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul MatMulInteger ConvInteger com.microsoft.QLinearAdd "
     "com.microsoft.MatMulIntegerToFloat com.microsoft.DynamicQuantizeMatMul com.microsoft.DynamicQuantizeLSTM com.microsoft.QAttention "
     "com.microsoft.QGemm com.microsoft.MatMulNBits com.microsoft.MatMulBnb4 com.microsoft.DequantizeLinear"),
    ("ai.onnx.ml", "use the part of the model before it",
     "ai.onnx.ml.TreeEnsemble ai.onnx.ml.TreeEnsembleClassifier ai.onnx.ml.LinearClassifier ai.onnx.ml.SVMRegressor"),
    ("ai.onnx.ml", "begin the model behind it",
     "ai.onnx.ml.Scaler ai.onnx.ml.Imputer ai.onnx.ml.OneHotEncoder ai.onnx.ml.LabelEncoder ai.onnx.ml.ArrayFeatureExtractor"),
    ("ai.onnx.ml", "'zipmap': False", "ai.onnx.ml.ZipMap"),
    ("data-decided shape", "nms=False", "NonMaxSuppression"),
    ("data-decided shape", "torch.where(mask, x, 0) for x[mask]", "Unique"),
    ("onnxruntime", "use the file before it", "com.microsoft.FusedMatMul com.microsoft.BiasGelu com.microsoft.Attention "
     "com.microsoft.SkipLayerNormalization com.microsoft.FusedConv com.microsoft.nchwc.Conv com.ms.internal.nhwc.Conv"),
    ("text", "begin the model behind it", "StringNormalizer StringConcat StringSplit RegexFullMatch TfIdfVectorizer com.microsoft.Tokenizer "
     "ai.onnx.contrib.BertTokenizer"),
    ("training", "use the model that it was made from", "ai.onnx.preview.training.Adam ai.onnx.preview.training.Gradient com.microsoft.SoftmaxGrad"),
    ("ATen", "export without its fallback", "org.pytorch.aten.ATen aten.index_put"),
    ("other", "docs/Operators.md", "RoiAlign my.company.MyOp ImageDecoder Frobnicate"),
]


def model(operators):
    """Each operator alone gives an output."""
    nodes = []
    for index, name in enumerate(operators):
        domain, _, op = name.rpartition(".")
        nodes.append(helper.make_node(op, ["x"], [f"y{index}"], name=f"the_{name}", domain=domain))
    sets = [helper.make_opsetid(domain, 1) for domain in sorted({node.domain for node in nodes if node.domain})]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3])],
                              [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None) for node in nodes])
    path = os.path.join(folder, "refused.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), *sets], ir_version=8), path)
    return path


def inspect(operators):
    done = subprocess.run([dsopt, "inspect", model(operators), "-inspect=json"], capture_output=True, text=True, check=True)
    return {one["what"]: one for one in json.loads(done.stdout)["refused"]}


every = [name for _, _, names in FAMILIES for name in names.split()]
found = inspect(every)
for family, advice, names in FAMILIES:
    for name in names.split():
        one = found.pop(name)
        if one["family"] != family or advice not in one["message"] or f"first 'the_{name}'" not in one["message"]:
            sys.exit(f"{name}: {one}, expected {family} and '{advice}'")
        done = subprocess.run([importer, model([name]), "--loss=y0"], capture_output=True, text=True)
        expected = f"has an operator that is not available: '{name}': "
        if done.returncode != 1 or expected not in done.stderr or advice not in done.stderr or done.stderr.count("\n") != 1:
            sys.exit(f"{name}: {done.stderr}, expected '{expected}' and '{advice}'")
if found:
    sys.exit(f"{found} beside what is known")

# All that this onnx has and dsopt lacks has its way out.
there = {line.split()[0] for line in subprocess.run([importer, "--list-operators"], capture_output=True, text=True, check=True).stdout.splitlines()}
lacking = sorted({f"{one.domain}.{one.name}".lstrip(".") for one in onnx.defs.get_all_schemas() if one.domain or one.name not in there})
found = inspect(lacking)
bare = [name for name in lacking if name not in found or not found[name]["message"].split(": ", 1)[1]]
if bare or len(lacking) < 40:
    sys.exit(f"of {len(lacking)} operators that are lacking these have no advice: {bare}")
print(f"{len(every)} operators of {len(FAMILIES)} kinds; onnx {onnx.__version__} has {len(lacking)} that are refused")
