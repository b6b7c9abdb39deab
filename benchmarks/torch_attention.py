"""PyTorch's flash attention of one shape, causal and in bf16: prints microseconds of a call forward and backward as JSON.

usage: torch_attention.py BATCH HEADS TOKENS HEAD [--device cuda|cpu] [--calls N]
"""
import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

parser = argparse.ArgumentParser()
for name in ("batch", "heads", "tokens", "head"):
    parser.add_argument(name, type=int)
parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
parser.add_argument("--calls", type=int, default=20, help="of which the median counts")
args = parser.parse_args()


def draw():
    """As a model has it: the heads of a token lie one behind the other."""
    values = torch.randn(args.batch, args.tokens, args.heads, args.head, device=args.device, dtype=torch.bfloat16)
    return values.transpose(1, 2).requires_grad_()


def clock():
    if args.device == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def measure(work):
    """The first calls choose kernels and warm caches up."""
    for _ in range(3):
        work()
    times = []
    for _ in range(args.calls):
        began = clock()
        work()
        ended = clock()
        if args.device == "cpu":
            times.append((ended - began) * 1e6)
        else:
            torch.cuda.synchronize()
            times.append(began.elapsed_time(ended) * 1e3)
    return sorted(times)[len(times) // 2]


inputs, gradient = [draw() for _ in range(3)], torch.randn(args.batch, args.heads, args.tokens, args.head, device=args.device, dtype=torch.bfloat16)
with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    def forward():
        return F.scaled_dot_product_attention(*inputs, is_causal=True)

    result = forward()
    print(json.dumps({"attention": measure(forward),
                      "attention_grad": measure(lambda: torch.autograd.grad(result, inputs, gradient, retain_graph=True))}))
