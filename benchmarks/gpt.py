"""What every framework of the benchmark has in common: sizes, weights, tokens and the row it prints.

All start from the same numpy weights and see the same micro-batches, so that losses can be compared.
"""
import argparse
import json
import os
import time

SIZES = {  # layers, width, heads, tokens, rows, vocabulary
    "mini": (1, 32, 2, 16, 2, 1024),  # for the tests
    "tiny": (2, 128, 4, 64, 4, 1024),
    "s6x512": (6, 512, 8, 256, 4, 50257),  # 45M parameters
    "gpt2": (12, 768, 12, 256, 4, 50257),  # 124M
}
GPU_SIZES = {
    "gpt2-1024": (12, 768, 12, 1024, 32, 50257),  # 124M
    "gpt-1.3b": (24, 2048, 16, 2048, 8, 50257),  # as GPT-3 XL
}
ADAMW = dict(lr=3e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)


def arguments(*modes):
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=modes)
    parser.add_argument("--size", choices=[*SIZES, *GPU_SIZES], default="tiny")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--offload", choices=["none", "cpu", "nvme"], default="none", help="zero modes: where the optimizer's state lies, at stage 3 parameters too")
    parser.add_argument("--nvme", help="the folder of --offload=nvme")
    parser.add_argument("--out", help="export: the folder to write to")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--weights", help="safetensors that save_weights wrote: faster than to draw them again")
    args = parser.parse_args()
    return with_size(args, args.size)


def with_size(args, size):
    """Any namespace, with the shape of a size."""
    args.layers, args.width, args.heads, args.tokens, args.rows, args.vocabulary = {**SIZES, **GPU_SIZES}[size]
    return args


def sized(size):
    return with_size(argparse.Namespace(), size)


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


def save_weights(path, args):
    """As safetensors: the names, then the numbers one after the other."""
    values, header, offset = weights(args), {}, 0
    for name, value in values.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for value in values.values():
            file.write(value.tobytes())


def keep_weights(path, args):
    """Weights, written where they are not there yet, whole or not at all."""
    if not os.path.exists(path):
        save_weights(path + ".part", args)
        os.replace(path + ".part", path)


def load_weights(path):
    """By name, as the file's bytes; to be copied before they are written to."""
    import numpy as np

    data = np.memmap(path, np.uint8, "c")
    size = int.from_bytes(bytes(data[:8]), "little")
    return {name: data[8 + size:][slice(*entry["data_offsets"])].view(np.float32).reshape(entry["shape"])
            for name, entry in json.loads(bytes(data[8:8 + size])).items()}


def parameters(args, positions=True):
    d = args.width
    return (args.vocabulary + (args.tokens if positions else 0)) * d + args.layers * (12 * d * d + 13 * d) + 2 * d


def flops_per_token(args):
    """Of a training step, as PaLM (arXiv 2204.02311, appendix B) and nanoGPT count them: 6 for each parameter but the
    positions', and 12 x layers x width x tokens for attention, whole, though the upper half is not computed."""
    return 6 * parameters(args, positions=False) + 12 * args.layers * args.width * args.tokens


def micro_batch(args, index):
    """Tokens that can be learned: each follows from the one before."""
    import numpy as np

    tokens = np.empty((args.rows, args.tokens + 1), np.int64)
    tokens[:, 0] = np.random.default_rng(1000 + index).integers(0, 997, args.rows)
    for t in range(args.tokens):
        tokens[:, t + 1] = (5 * tokens[:, t] + 17) % 997
    return np.ascontiguousarray(tokens[:, :-1]), np.ascontiguousarray(tokens[:, 1:])


def save_batches(path, args, count):
    """The first micro-batches, as dsopt reads them."""
    import numpy as np

    batches = [micro_batch(args, i) for i in range(count)]
    np.savez(path, input_ids=np.stack([x for x, _ in batches]), labels=np.stack([y for _, y in batches]))


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
