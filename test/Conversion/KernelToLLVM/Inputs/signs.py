"""Signs as bits and back, bits as integers and back, and places, whole and cut: zeros and NaN count as not below 0."""
import sys

import numpy as np
from kernels import call, compile_kernels, cuts

opt, folder, *driver = sys.argv[1:]
if driver:
    from device import Device
device = Device(*driver) if driver else None
ROWS = 1003
random = np.random.default_rng(3)
x = random.standard_normal((ROWS, 32)).astype(np.float32)
x[::7, ::5], x[3::7, 1::5], x[5::7, 2::5], x[6::7, 30:] = 0, -0.0, np.nan, -np.inf
below = x < 0
words = (~below).astype(np.uint64) @ (np.uint64(1) << np.arange(32, dtype=np.uint64))
CASES = {"sign_bits": (f"tensor<{ROWS}x32xf32>", f"tensor<{ROWS}xi32>", x, words.astype(np.uint32).view(np.int32)),
         "unpack_bits": (f"tensor<{ROWS}xi32>", f"tensor<{ROWS}x32xf32>", words.astype(np.uint32).view(np.int32), np.where(below, -1, 1).astype(np.float32)),
         "bitcast": (f"tensor<{ROWS}x32xf32>", f"tensor<{ROWS}x32xi32>", x, x.view(np.int32)),
         "bitcast_back": (f"tensor<{ROWS}x32xi32>", f"tensor<{ROWS}x32xf32>", x.view(np.int32), x),
         "iota": (f"tensor<{ROWS}x32xi32>", f"tensor<{ROWS}x32xi32>", x.view(np.int32), x.view(np.int32) + np.arange(32, dtype=np.int32))}
for name, (operand, result, given, want) in CASES.items():
    made = f"%0 = graph.{name.removesuffix('_back')} %x : ({operand}) -> {result}"
    if name == "iota":
        made = f"%1 = graph.iota {{axis = 1}} : () -> {result}\n%0 = graph.add %x, %1 : ({operand}, {result}) -> {result}"
    text = f"""func.func @f(%x: {operand}) -> {result} {{
  {made}
  return %0 : {result}
}}
"""
    _, heads, library = compile_kernels(opt, folder, name, text, device)
    (kernel, (iterate, sizes)), = heads.items()
    for ranges in ([(0, int(np.prod(sizes)))], cuts(int(np.prod(sizes)), 1 if iterate == "rows" else 64, 5)):
        got = np.full_like(want, 7)
        call(library, kernel, ranges, [given.copy(), got], 1)
        if got.tobytes() != want.tobytes():
            sys.exit(f"{name} in {len(ranges)} parts: {np.argwhere(got != want)[:3]}")
print("signs are bits and come back, bits are integers")
