"""Plans a GPT of 96 layers x 12288 on 128 ranks; its weights do not exist.

usage: large_plan.py DSOPT
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

from large_models import save_large
from runs import check

dsopt = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    large = os.path.join(folder, "large.onnx")
    save_large(large, layers=96, scale=128)
    began = time.monotonic()
    done = subprocess.run([dsopt, large, "-zero=3", "-pp=8", "-dp=16", "-plan=json"], capture_output=True, text=True, timeout=120)
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    check(done.returncode == 0, done.stderr)
    plan = json.loads(done.stdout)
    check(len(plan["ranks"]) == 128, f"{len(plan['ranks'])} ranks, expected 128")
    check(plan["parameters"] > 170e9, f"{plan['parameters']} parameters, expected more than 170e9")
    check(peak < 2, f"planning took {peak:.2f} GiB, expected less than 2")
    print(f"{plan['parameters'] / 1e9:.1f}G parameters on 128 ranks planned in {seconds:.1f} s and {peak:.2f} GiB; "
          f"a rank takes at most {max(r['memory']['total'] for r in plan['ranks']) / 2**30:.1f} GiB")
