"""What compressed communication does to losses: one GPT trained by four ranks with each way of exchanging gradients, from one
seed; the last losses beside Adam's, and a page with all curves. Usage: ./dev bench-losses, options with --help.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: Losses whose mean a row has beside the last one.
LAST = 20


def ways(freeze):
    """By name: options."""
    return {"adam": ["-optimizer=adamw", "-weight-decay=0"],
            "onebit-adam": ["-optimizer=onebit-adam", f"-freeze-step={freeze}"],
            "zero-one-adam": ["-optimizer=zero-one-adam", f"-freeze-step={freeze}", "-var-update-scaler=32"],
            "powersgd": ["-optimizer=adamw", "-weight-decay=0", "-compress-gradients=powersgd"],
            "onebit-gradients": ["-optimizer=adamw", "-weight-decay=0", "-compress-gradients=onebit"]}


def call(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stdout.strip()}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench-losses", description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(SOURCE, "build"))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--warm-up", type=float, default=0.15, help="part of the steps before the freeze")
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3", help="file that is trained on")
    parser.add_argument("--ways", nargs="*", help="those to train with beside adam (default: all)")
    parser.add_argument("-o", default="losses.html", help="page with the curves")
    given = parser.parse_args()
    known = ways(round(given.steps * given.warm_up))
    if unknown := set(given.ways or ()) - set(known):
        parser.error(f"no way is called {', '.join(sorted(unknown))}, expected {', '.join(known)}")
    tool = os.path.join(given.build, "bin", "dsopt")
    with tempfile.TemporaryDirectory() as folder:
        text, logs, first = os.path.join(folder, "text.npz"), [], None
        call(sys.executable, os.path.join(SOURCE, "examples", "make_bytes.py"), given.text, text)
        for name in [way for way in known if way == "adam" or not given.ways or way in given.ways]:
            logs.append(os.path.join(folder, f"{name}.jsonl"))
            call(tool, os.path.join(SOURCE, "examples", "gpt.onnx"), "-run", f"-data={text}", f"-dp={given.ranks}", "-micro-batches=2", "-threads=1",
                 f"-steps={given.steps}", f"-lr={given.lr}", "-lr-schedule=cosine", "-warmup-steps=20", "-quiet", f"-log={logs[-1]}", *known[name])
            losses = [row["loss"] for row in map(json.loads, open(logs[-1])) if "loss" in row]
            last = [losses[-1], float(np.mean(losses[-LAST:]))]
            first = first or last
            beside = "" if last is first else ", ".join(f"{100 * (got / adam - 1):+.2f} %" for got, adam in zip(last, first))
            print(f"{name:17} last loss {last[0]:.4f}, mean of the last {LAST} {last[1]:.4f}  {beside}", flush=True)
        call(os.path.join(given.build, "bin", "dsopt-report"), *logs, "-o", given.o)
    print(f"curves: {given.o}")


if __name__ == "__main__":
    main()
