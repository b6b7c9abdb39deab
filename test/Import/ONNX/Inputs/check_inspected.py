"""What dsopt inspect says as JSON of the models of make_inspected.py. usage: check_inspected.py DSOPT, in their folder"""
import json
import subprocess
import sys

dsopt = sys.argv[1]


def inspect(name, *options):
    done = subprocess.run([dsopt, "inspect", name, "-inspect=json", *options], capture_output=True, text=True)
    if done.returncode or done.stderr:
        sys.exit(f"{name}: status {done.returncode}, {done.stderr}")
    return json.loads(done.stdout)


def check(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: {got}, expected {expected}")


found = inspect("classifier.onnx")
check("versions", (found["ir_version"], found["opsets"], found["producer"], found["nodes"]), (7, {"ai.onnx": 17}, "maker 1.2", 4))
check("inputs", found["inputs"], [{"name": "x", "type": "f32", "shape": ["batch", 6], "sizes": [4, 6], "used": True}])
check("outputs", [(one["name"], one["shape"], one["sizes"]) for one in found["outputs"]],
      [("p", ["batch", 5], [4, 5]), ("choice", ["batch"], [4])])
check("operators", found["operators"], {op: {"nodes": 1, "available": True} for op in ("ArgMax", "Gemm", "Mul", "Softmax")})
check("parameters", [(one["name"], one["use"], one["in_doubt"]) for one in found["parameters"]],
      [("w", "trained", False), ("b", "trained", False), ("scale", "trained", True)])
check("sizes", found["sizes"], {"batch": 4})
check("refused", (found["refused"], found["tried"], found["weights"], found["notes"]), ([], True, [], []))

# Which loss fits, and what it adds.
LOSSES = {
    "classifier": [("cross-entropy:p,labels", "i64", [4]), ("mse:p,target", "f32", [4, 5])],
    "old": [("cross-entropy:p,labels", "i64", [4]), ("mse:p,target", "f32", [4, 5])],
    "old-rows": [("cross-entropy:p,labels", "i64", [4, 1]), ("mse:p,target", "f32", [4, 1, 5])],
    "old-all": [("cross-entropy:p,labels", "i64", [4, 1]), ("mse:p,target", "f32", [4, 1, 5])],
    "old-wide": [("mse:p,target", "f32", [4, 5, 5])],
    "written": [("cross-entropy:p,labels", "i64", [4]), ("mse:p,target", "f32", [4, 5])],
    "written-log": [("cross-entropy:p,labels", "i64", [4]), ("mse:p,target", "f32", [4, 5])],
    "written-sigmoid": [("cross-entropy:p,labels", "f32", [4, 5]), ("mse:p,target", "f32", [4, 5])],
    "scaled": [("mse:p,target", "f32", [4, 5])],
    "regression": [("mse:y,target", "f32", [4, 1])],
    "binary": [("cross-entropy:p,labels", "f32", [4, 1]), ("mse:p,target", "f32", [4, 1])],
    "image": [("cross-entropy:p,labels", "i64", [4, 62, 62]), ("mse:p,target", "f32", [4, 4, 62, 62])],
    "function": [("cross-entropy:z,labels", "i64", [4]), ("mse:z,target", "f32", [4, 5])],
    "guessed": [("cross-entropy:y,labels", "i64", [4]), ("mse:y,target", "f32", [4, 3])],
    "states": [("mse:y,target", "f32", [16, 4])],
    "loss": [("", None, None)],
    "text": [],
    "shapeless": [],
}
for name, expected in LOSSES.items():
    losses = [(one["loss"], one.get("adds", {}).get("type"), one.get("adds", {}).get("sizes")) for one in inspect(f"{name}.onnx")["losses"]]
    check(f"losses of {name}", losses, expected)

check("versions of an old file", inspect("old.onnx")["opsets"], {"ai.onnx": 9})
check("operators of an old file", inspect("old.onnx")["operators"], {op: {"nodes": 1, "available": True} for op in ("Gemm", "Softmax")})
check("functions", inspect("function.onnx")["functions"], {"own.Twice": 1})
check("what is tried", inspect("guessed.onnx")["sizes"], {"n": 4, "wide": 128})
check("unused inputs", [one["used"] for one in inspect("states.onnx")["inputs"]], [True, True, True, False])
check("bounds", [one.get("below") for one in inspect("tokens.onnx")["inputs"]], [11, None])
for name in ("no-weights", "no-constants"):
    found = inspect(f"{name}.onnx")
    check(f"{name}", (found["weights"][0]["missing"], found["tried"], [one["use"] for one in found["parameters"]]),
          (True, name == "no-weights", ["trained", "trained"]))
found = inspect("refused.onnx")
check("refused", [(one["what"], one["family"], one["nodes"]) for one in found["refused"]],
      [("NonZero", "data-decided shape", 1), ("DynamicQuantizeLinear", "quantized", 1), ("Unique", "data-decided shape", 2),
       ("com.microsoft.FusedGelu", "onnxruntime", 1)])
check("remaining outputs", found["remaining_outputs"], ["p"])

# Where a loss is trained, the same initializers are.
for name, loss in (("classifier", "mse:p,target"), ("function", "mse:z,target"), ("many", "mse:y,target"), ("image", "mse:p,target"), ("loss", "")):
    command = [dsopt, f"{name}.onnx", "-list-parameters=json", *([f"-loss={loss}"] if loss else []),
               *(f"-dim={symbol}={size}" for symbol, size in inspect(f"{name}.onnx")["sizes"].items())]
    check(f"parameters of {name}", inspect(f"{name}.onnx")["parameters"], json.loads(subprocess.run(command, capture_output=True, check=True).stdout))

# The example is of arrays one behind the other, unless the rows of all inputs come first.
example = inspect("states.onnx")["example"]
check("the example", example, {
    "python": "import numpy as np; r = np.random.default_rng(0); np.savez('data.npz', **{\"x\": r.standard_normal((4, 4, 16, 3)).astype('f4'), "
              "\"h\": r.standard_normal((4, 1, 16, 4)).astype('f4'), \"c\": r.standard_normal((4, 1, 16, 4)).astype('f4'), "
              "\"target\": r.standard_normal((4, 16, 4)).astype('f4')})",
    "train": "dsopt train states.onnx -loss=mse:y,target -data=data.npz",
    "predict": "dsopt predict states.onnx -data=data.npz -save-outputs=outputs.npz"})
check("no example", inspect("shapeless.onnx")["example"], {"python": "", "train": "", "predict": ""})
