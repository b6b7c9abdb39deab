"""Writes the benchmark's GPT as ONNX without PyTorch, and without its weights: a file of a megabyte.

usage: gpt_onnx.py OUT.onnx --size gpt2
Programs read the weights when they run: -weights=FILE.safetensors, which gpt.save_weights writes.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto

import gpt

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples"))
import make_gpt


def save(path, args):
    """The model of torch_gpt.py, with its parameters' names and shapes."""
    offset = 0

    def absent(name, shape, std, fill):
        nonlocal offset
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        size = 4 * int(np.prod(shape))
        for key, value in (("location", "absent.bin"), ("offset", str(offset)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        offset += size
        return tensor

    onnx.save(make_gpt.build(args, absent, ("wte.weight", "wpe.weight"), "layers.{}", transposed=True), path)


if __name__ == "__main__":
    out = sys.argv.pop(1)
    sys.argv.insert(1, "onnx")
    save(out, gpt.arguments("onnx"))
