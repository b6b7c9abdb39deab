"""Reads safetensors of fp32."""
import json
import struct

import numpy as np


def safetensors(path):
    content = open(path, "rb").read()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    return {
        name: np.frombuffer(content[8 + length :][slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
        for name, entry in header.items() if name != "__metadata__"
    }
