"""Measures PyTorch's products for bench_products.py: a line of JSON for each, answered by seconds of one."""
import json
import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]))
kept = {}
for line in sys.stdin:
    m, n, k, ta, tb, batch, type, repeats = json.loads(line)
    key = (m, n, k, ta, tb, batch, type)
    if key not in kept:
        kept.clear()
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[type]
        a, b = torch.randn(batch, *((k, m) if ta else (m, k))).to(dtype), torch.randn(batch, *((n, k) if tb else (k, n))).to(dtype)
        a, b = a.transpose(1, 2) if ta else a, b.transpose(1, 2) if tb else b
        kept[key] = (a[0], b[0]) if batch == 1 else (a, b)
        torch.matmul(*kept[key])
    a, b = kept[key]
    start = time.perf_counter()
    for _ in range(repeats):
        torch.matmul(a, b)
    print((time.perf_counter() - start) / repeats, flush=True)
