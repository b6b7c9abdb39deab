"""small_types.py BIN SCRATCH: casts to ONNX's types of 8 bits and less and back, of a thousand numbers
each (bits at random, ties, limits, infinities, NaN), compiled and folded, against onnx's reference;
and constants of those types. Prints the number of casts that are equal to the bit."""
import os
import subprocess
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference.ops.op_cast import cast_to

warnings.simplefilter("ignore")
BIN, SCRATCH = sys.argv[1:]
FLOATS = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"]
INTEGERS = ["INT4", "UINT4", "INT2", "UINT2"]


def numbers(dtype):
    """Random bits, and what lies on, between and beside the numbers that a small type has."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2**32, 400, dtype=np.uint32).view(np.float32).astype(np.float64)
    exponents = np.exp2(rng.integers(-20, 20, 500))
    x = np.concatenate([x, exponents * rng.integers(-64, 64, 500) / 16, np.exp2(np.arange(-127, 128)),
                        -1.5 * np.exp2(np.arange(-20, 20)), [0.0, -0.0, np.inf, -np.inf, np.nan]])
    x = np.concatenate([x, np.nextafter(x, np.inf)]).astype(dtype)
    return np.where(np.isnan(x), dtype(np.nan), x)  # ONNX does not say what becomes of a NaN's sign


def model(x, name, wide, attributes):
    """x, as an input and as a constant, through the type and back."""
    nodes = [helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(x))]
    for source, result in (("x", "y"), ("c", "z")):
        nodes.append(helper.make_node("Cast", [source], [result + "_small"], to=getattr(TensorProto, name), **attributes))
        nodes.append(helper.make_node("Cast", [result + "_small"], [result], to=wide))
    value = [helper.make_tensor_value_info(n, wide, x.shape) for n in "xyz"]
    return helper.make_graph(nodes, "g", value[:1], value[1:])


def constant(name):
    """Every number of a type, and an odd one out: a byte may be filled in part."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name)))
    bits = {"4": 4, "2": 2}.get(name[-1], 8) if name in INTEGERS else 4 if name == "FLOAT4E2M1" else 8
    every = np.arange(2**bits, dtype=np.uint8)
    if name in INTEGERS:
        sign = 2**(bits - 1) if name[0] == "I" else 0
        x = (((every.astype(np.int64) + sign) % 2**bits) - sign).astype(dtype)
    else:
        x = every.view(dtype)
    return np.append(x, x[1])


def run(folder, graph, x):
    os.makedirs(folder, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11),
              os.path.join(folder, "model.onnx"))
    if x is not None:
        x.tofile(os.path.join(folder, "x.in"))
    line = subprocess.run([os.path.join(BIN, "dsopt-forward")], input=folder + "\n", capture_output=True,
                          text=True).stdout
    assert line.split()[1] == "ok", line
    return [np.fromfile(os.path.join(folder, f"{k}.out"), np.uint8) for k in range(len(graph.output))]


def same(got, want, what):
    got, want = got.view(want.dtype), want.ravel()
    bad = np.flatnonzero(~((got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)))
    assert not bad.size, f"{what}: {bad.size} differ, first {bad[0]}: {got[bad[0]]}, expected {want[bad[0]]}"


count = 0
for wide in (TensorProto.FLOAT, TensorProto.DOUBLE):
    dtype = helper.tensor_dtype_to_np_dtype(wide).type
    for name in [*FLOATS, *INTEGERS, "FLOAT8E8M0"]:
        modes = [{"saturate": s} for s in (0, 1)] if name in FLOATS else [{}]
        if name == "FLOAT8E8M0":
            modes = [{"saturate": s, "round_mode": m} for s in (0, 1) for m in ("up", "down", "nearest")]
        for attributes in modes:
            x = numbers(dtype) if name not in INTEGERS else np.arange(-40, 40).astype(dtype) / 2
            outputs = run(os.path.join(SCRATCH, str(count)), model(x, name, wide, attributes), x)
            want = cast_to(x, getattr(TensorProto, name), attributes.get("saturate", 1),
                           attributes.get("round_mode", "up")).astype(dtype)
            for got, how in zip(outputs, ("compiled", "folded")):
                same(got, want, f"{name} of {dtype.__name__} {attributes} {how}")
            count += 1
for name in [*FLOATS, *INTEGERS, "FLOAT8E8M0"]:
    x = constant(name)
    value = numpy_helper.from_array(x)
    nodes = [helper.make_node("Constant", [], ["c"], value=value),
             helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT)]
    graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)])
    same(run(os.path.join(SCRATCH, name), graph, None)[0], x.astype(np.float32), f"constant of {name}")
    count += 1
print(f"{count} equal")
