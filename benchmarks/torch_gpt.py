"""Trains a GPT written by examples/make_gpt.py with PyTorch: the peer of bench.py.

usage: torch_gpt.py MODEL.onnx DATA.npz HEADS STEPS THREADS eager|compile
Prints one JSON line. Same weights, same tokens, AdamW.
"""
import json
import resource
import sys
import time

began = time.monotonic()
import numpy as np
import onnx
import torch
import torch.nn.functional as F

path, data, heads, steps, threads, mode = sys.argv[1:]
heads, steps = int(heads), int(steps)
torch.set_num_threads(int(threads))
weights = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in onnx.load(path).graph.initializer}
P = {k: torch.nn.Parameter(v) for k, v in weights.items() if v.dtype == torch.float32 and v.dim() and k != "causal_mask"}
layers = 1 + max(int(k[5:k.index(".")]) for k in P if k.startswith("layer"))


def norm(x, name):
    return F.layer_norm(x, x.shape[-1:], P[name + ".weight"], P[name + ".bias"])


def linear(x, name):
    return x @ P[name + ".weight"] + P[name + ".bias"]


def forward(ids, labels):
    x = P["wte"][ids] + P["wpe"]
    batch, tokens, width = x.shape
    for i in range(layers):
        q, k, v = (t.view(batch, tokens, heads, -1).transpose(1, 2)
                   for t in linear(norm(x, f"layer{i}.norm1"), f"layer{i}.qkv").split(width, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, tokens, width)
        x = x + linear(y, f"layer{i}.proj")
        x = x + linear(F.gelu(linear(norm(x, f"layer{i}.norm2"), f"layer{i}.up"), approximate="tanh"), f"layer{i}.down")
    return F.cross_entropy((norm(x, "norm") @ P["wte"].T).flatten(0, 1), labels.flatten())


arrays = np.load(data)
ids, labels = (torch.from_numpy(arrays[k].astype(np.int64)) for k in ("input_ids", "labels"))
run = torch.compile(forward) if mode == "compile" else forward
optimizer = torch.optim.AdamW(P.values(), lr=1e-3, fused=True)
losses, times = [], []
for step in range(steps):
    start = time.monotonic()
    optimizer.zero_grad(set_to_none=True)
    loss = run(ids[step % len(ids)], labels[step % len(ids)])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    times.append(time.monotonic() - start)
    if step == 0:
        first = time.monotonic() - began
print(json.dumps({"losses": losses, "step_s": sorted(times[1:])[len(times[1:]) // 2], "first_step_s": first,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
