"""Plans a GPT of 96 layers x 12288 on 128 ranks; its weights do not exist.

usage: large_plan.py DSOPT
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import onnx
from onnx import TensorProto, helper

from runs import SOURCE, check

dsopt = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    small, large = os.path.join(folder, "small.onnx"), os.path.join(folder, "large.onnx")
    # The example's generator at 96 narrow layers, then every width multiplied.
    subprocess.run([sys.executable, os.path.join(SOURCE, "examples", "make_gpt.py"), small, "--layers=96", "--width=96",
                    "--heads=96", "--tokens=128", "--rows=1"], check=True)
    model = onnx.load(small)
    scale, offset = 128, 0
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or not tensor.dims or tensor.name == "causal_mask":
            if tensor.name.startswith("shape_") and tensor.name != "shape_1_128_96_1":
                values = onnx.numpy_helper.to_array(tensor).copy()
                values[values == 96] *= scale
                tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
            elif tensor.name == "shape_1_128_96_1":
                values = onnx.numpy_helper.to_array(tensor).copy()
                values[-1] *= scale
                tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
            continue
        dims = [d * scale if d % 96 == 0 else d for d in tensor.dims]
        size = 4
        for d in dims:
            size *= d
        tensor.ClearField("raw_data")
        tensor.ClearField("dims")
        tensor.dims.extend(dims)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "absent.bin"), ("offset", str(offset)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        offset += size
    onnx.save(model, large)
    began = time.monotonic()
    done = subprocess.run([dsopt, large, "-zero=3", "-pp=8", "-dp=16", "-plan=json"], capture_output=True, text=True, timeout=120)
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    check(done.returncode == 0, done.stderr)
    plan = json.loads(done.stdout)
    check(len(plan["ranks"]) == 128, f"{len(plan['ranks'])} ranks, expected 128")
    check(plan["parameters"] > 170e9, f"{plan['parameters']} parameters, expected more than 170e9")
    check(peak < 2, f"planning took {peak:.2f} GiB, expected less than 2")
    print(f"{plan['parameters'] / 1e9:.1f}G parameters on 128 ranks planned in {seconds:.1f} s and {peak:.2f} GiB; "
          f"a rank takes at most {max(r['memory']['total'] for r in plan['ranks']) / 2**30:.1f} GiB")
