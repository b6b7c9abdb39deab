"""GPTs of any size as files of a few megabytes: their weights do not exist."""
import os
import subprocess
import sys

import onnx
from onnx import TensorProto

from runs import SOURCE


def save_large(path, layers, scale, tokens=128):
    """A GPT whose layers are 96 x `scale` wide, with as many heads: the example's generator at 96, then every width
    multiplied."""
    small = path + ".small"
    subprocess.run([sys.executable, os.path.join(SOURCE, "examples", "make_gpt.py"), small, f"--layers={layers}", "--width=96",
                    "--heads=96", f"--tokens={tokens}", "--rows=1"], check=True)
    model = onnx.load(small)
    os.remove(small)
    heads = f"shape_1_{tokens}_96_1"
    offset = 0
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or not tensor.dims or tensor.name == "causal_mask":
            if tensor.name.startswith("shape_") and tensor.name != heads:
                values = onnx.numpy_helper.to_array(tensor).copy()
                values[values == 96] *= scale
                tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
            elif tensor.name == heads:
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
    onnx.save(model, path)
