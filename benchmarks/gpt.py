"""What every framework of the benchmark has in common: sizes, weights, tokens and the row it prints.

All start from the same numpy weights and see the same micro-batches, so that losses can be compared.
"""
import argparse
import json
import time

SIZES = {  # layers, width, heads, tokens, rows, vocabulary
    "tiny": (2, 128, 4, 64, 4, 1024),
    "s6x512": (6, 512, 8, 256, 4, 50257),  # 45M parameters
    "gpt2": (12, 768, 12, 256, 4, 50257),  # 124M
}
ADAMW = dict(lr=3e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)


def arguments(*modes):
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=modes)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--offload", choices=["none", "cpu", "nvme"], default="none", help="zero modes: where the optimizer's state lies, at stage 3 parameters too")
    parser.add_argument("--nvme", help="the folder of --offload=nvme")
    parser.add_argument("--out", help="export: the folder to write to")
    args = parser.parse_args()
    args.layers, args.width, args.heads, args.tokens, args.rows, args.vocabulary = SIZES[args.size]
    return args


def weights(args):
    """By name; linear weights are [outputs, inputs]."""
    import numpy as np

    rng = np.random.default_rng(0)
    d, residual = args.width, 0.02 / (2 * args.layers) ** 0.5

    def normal(*shape, std=0.02):
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(std)

    result = {"wte.weight": normal(args.vocabulary, d), "wpe.weight": normal(args.tokens, d)}

    def norm(name):
        result[name + ".weight"], result[name + ".bias"] = np.ones(d, np.float32), np.zeros(d, np.float32)

    def linear(name, outputs, inputs, std=0.02):
        result[name + ".weight"] = normal(outputs, inputs, std=std)
        result[name + ".bias"] = np.zeros(outputs, np.float32)

    for i in range(args.layers):
        norm(f"layers.{i}.norm1")
        linear(f"layers.{i}.qkv", 3 * d, d)
        linear(f"layers.{i}.proj", d, d, residual)
        norm(f"layers.{i}.norm2")
        linear(f"layers.{i}.up", 4 * d, d)
        linear(f"layers.{i}.down", d, 4 * d, residual)
    norm("norm")
    return result


def micro_batch(args, index):
    """Tokens that can be learned: each follows from the one before."""
    import numpy as np

    tokens = np.empty((args.rows, args.tokens + 1), np.int64)
    tokens[:, 0] = np.random.default_rng(1000 + index).integers(0, 997, args.rows)
    for t in range(args.tokens):
        tokens[:, t + 1] = (5 * tokens[:, t] + 17) % 997
    return np.ascontiguousarray(tokens[:, :-1]), np.ascontiguousarray(tokens[:, 1:])


def train(args, step, rank=0, world=1):
    """Calls step(ids, labels) -> loss for each step; says when the first loss is known. The row of this process."""
    losses, times = [], []
    for i in range(args.steps):
        ids, labels = micro_batch(args, i * world + rank)
        began = time.perf_counter()
        losses.append(step(ids, labels))
        times.append(time.perf_counter() - began)
        if i == 0 and rank == 0:
            print(f"step 0 loss {losses[0]}", flush=True)
    return {"losses": losses, "times": times}


def report(row):
    print(json.dumps(row), flush=True)
