"""Runs dsopt and PyTorch in turn on the same weights and tokens; prints ratios.

usage: bench.py --build BUILD [--size tiny|small] [--steps 7] [--threads 2] [--peer-python PYTHON]
A peer that is not installed is left out with a line that says so. The raw rows
go to BUILD/bench.jsonl.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser()
parser.add_argument("--build", required=True)
parser.add_argument("--size", choices=["tiny", "small"], default="tiny")
parser.add_argument("--steps", type=int, default=7)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--peer-python", default=sys.executable)
args = parser.parse_args()
layers, width, heads, tokens, rows = {"tiny": (2, 128, 4, 64, 4), "small": (6, 512, 8, 256, 4)}[args.size]

model, data, log = (os.path.join(args.build, "bench." + end) for end in ("onnx", "npz", "log"))
subprocess.run([sys.executable, os.path.join(here, "..", "examples", "make_gpt.py"), model, f"--layers={layers}", f"--width={width}",
                f"--heads={heads}", f"--tokens={tokens}", f"--rows={rows}"], check=True)
text = np.random.default_rng(0).integers(0, 256, (args.steps, rows, tokens + 1))
np.savez(data, input_ids=text[..., :-1], labels=text[..., 1:])


def dsopt():
    program = os.path.join(args.build, "bench.train")
    began = time.monotonic()
    subprocess.run([os.path.join(args.build, "bin", "dsopt"), model, "-o", program, f"-threads={args.threads}", "-lr=1e-3"], check=True)
    compiled = time.monotonic() - began
    began = time.monotonic()
    subprocess.run([program, f"-data={data}", "-steps=1", "-quiet"], check=True)
    first = time.monotonic() - began
    run = subprocess.Popen([program, f"-data={data}", f"-steps={args.steps}", f"-log={log}", "-quiet"])
    _, status, usage = os.wait4(run.pid, 0)
    if status:
        sys.exit(f"{program} failed")
    steps = [json.loads(line) for line in open(log) if '"step_ms"' in line]
    times = sorted(step["step_ms"] / 1e3 for step in steps[1:])
    return {"losses": [step["loss"] for step in steps], "step_s": times[len(times) // 2], "first_step_s": first,
            "peak_mb": usage.ru_maxrss / 1024, "compile_s": compiled}


def torch(mode):
    done = subprocess.run([args.peer_python, os.path.join(here, "torch_gpt.py"), model, data, str(heads), str(args.steps),
                           str(args.threads), mode], capture_output=True, text=True)
    if done.returncode:
        print(f"torch {mode}: left out ({done.stderr.strip().splitlines()[-1]})")
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


results = {"dsopt": dsopt(), "torch eager": torch("eager"), "torch compile": torch("compile")}
ours = results["dsopt"]
with open(os.path.join(args.build, "bench.jsonl"), "a") as raw:
    print(f"{'':14} {'tokens/s':>10} {'dsopt is':>9} {'first step':>11} {'memory':>10} {'loss differs':>13}")
    for name, row in results.items():
        if row is None:
            continue
        raw.write(json.dumps({"name": name, "size": args.size, "threads": args.threads, **row}) + "\n")
        differs = max(abs(a - b) / abs(b) for a, b in zip(ours["losses"], row["losses"]))
        print(f"{name:14} {rows * tokens / row['step_s']:10.0f} {row['step_s'] / ours['step_s']:8.2f}x {row['first_step_s']:9.2f} s "
              f"{row['peak_mb']:7.0f} MB {differs:13.1e}")
