"""Reads safetensors; bf16, which numpy lacks, as its bits."""
import json
import struct

import numpy as np

TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "F64": np.float64, "I64": np.int64, "I32": np.int32}


def safetensors(path):
    content = open(path, "rb").read()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    return {
        name: np.frombuffer(content[8 + length :][slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items() if name != "__metadata__"
    }
