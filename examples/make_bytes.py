"""Cuts a text into windows of bytes for a byte-level language model.

usage: make_bytes.py TEXT OUT.npz [--tokens 64] [--rows 4] [--seed 0]
Writes input_ids and labels (the next byte) of shape [micro-batches, rows, tokens]; windows in a random order.
"""
import argparse
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("text")
parser.add_argument("out")
for name, value in dict(tokens=64, rows=4, seed=0).items():
    parser.add_argument("--" + name, type=int, default=value)
args = parser.parse_args()
text = np.fromfile(args.text, np.uint8)
starts = np.arange(0, len(text) - args.tokens - 1, args.tokens // 2)
np.random.default_rng(args.seed).shuffle(starts)
starts = starts[: len(starts) // args.rows * args.rows].reshape(-1, args.rows, 1)
windows = starts + np.arange(args.tokens)
np.savez(args.out, input_ids=text[windows], labels=text[windows + 1])
