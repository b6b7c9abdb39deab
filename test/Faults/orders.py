"""One hash over layouts of a program for devices, under many orders of streams each.

usage: orders.py BUILD FOLDER [-seed=N] [-orders=N] [-model=NAME]

Every layout is compiled once and trains under N orders (20), by turns joined by NCCL with a device for each rank and by the
hosts of ranks that share one. Prints each layout with what it came to; ends with status 1 if one has other bits than the
first.
"""
from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "test", "Execution"))
from runs import execute, model  # noqa: E402

#: Ranks that share data, positions, what is shared among ranks, and more. Eight micro-batches and four shards in all of them.
LAYOUTS = [(1, 1, 0, []), (2, 1, 0, []), (2, 1, 1, []), (4, 1, 1, []), (2, 1, 2, []), (4, 1, 2, []), (2, 1, 3, ["-gather-window=2"]),
           (4, 1, 3, []), (1, 2, 0, ["-schedule=gpipe"]), (2, 2, 1, []), (1, 2, 0, ["-recompute=full"]),
           (2, 2, 3, ["-recompute=full", "-gather-window=2"])]
BATCHES, SHARDS, STEPS = 8, 4, 3


def run(build: str, program: str, data: str, ranks: int, seed: int) -> str:
    """Its losses and the hash of its weights, or what ended it."""
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/test/SoftDevice",
                       SOFT_DEVICE=f"devices={ranks if seed % 2 else 1},seed={seed}")
    log = f"{program}-{seed}.jsonl"
    try:
        done = subprocess.run([program, f"-data={data}", "-quiet", f"-log={log}"], capture_output=True, text=True, timeout=600,
                              env=environment)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode:
        return f"ended with status {done.returncode}: {done.stderr.strip()}"
    with open(log) as file:
        lines = [json.loads(line) for line in file]
    os.remove(log)
    return f"{[line['loss'] for line in lines if 'loss' in line]} {lines[-1]['end']['weights_hash'][:16]}"


def main(build: str, folder: str, *arguments: str) -> int:
    given = dict(argument.lstrip("-").split("=", 1) for argument in arguments)
    build, folder = os.path.abspath(build), os.path.abspath(folder)
    seed, orders = int(given.get("seed", 1)), int(given.get("orders", 20))
    path, data = model(given.get("model", "mlp"))
    os.makedirs(folder, exist_ok=True)
    expected, failures, runs, began = "", 0, 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as workers:
        for number, (dp, pp, zero, more) in enumerate(LAYOUTS):
            layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={BATCHES // dp}", *more]
            program = f"{folder}/{number}"
            execute([f"{build}/bin/dsopt", path, f"-data={data}", "-target=cuda", "-arch=sm_80", "-threads=1", "-grad-clip=0.1", "-lr=3e-3",
                     f"-steps={STEPS}", f"-reduction-shards={SHARDS}", "-accumulate=sharded", *layout, "-o", program])
            # Each layout has orders of its own.
            seeds = range(seed + number * orders, seed + (number + 1) * orders)
            wrong = 0
            for one, got in zip(seeds, workers.map(lambda one: run(build, program, data, dp * pp, one), seeds)):
                expected = expected or got
                if got != expected:
                    wrong += 1
                    print(f"FAILED: {' '.join(layout)}, order {one}: {got}, expected {expected}", flush=True)
            failures += wrong
            runs += len(seeds)
            print(f"{' '.join(layout)}: {len(seeds)} orders, {wrong} with other bits", flush=True)
    print(f"{len(LAYOUTS)} layouts, {runs} runs in {time.monotonic() - began:.0f} s, {failures} failures: {expected}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
