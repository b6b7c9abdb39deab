"""Plans a GPT of 96 layers x 12288 on 128 ranks and on 4,096; its weights do not exist.

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
    for pp, dp in ((8, 16), (16, 256)):
        ranks, began = pp * dp, time.monotonic()
        done = subprocess.run([dsopt, large, "-zero=3", f"-pp={pp}", f"-dp={dp}", "-plan=json"], capture_output=True, text=True, timeout=120)
        seconds = time.monotonic() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10
        check(done.returncode == 0, done.stderr)
        plan = json.loads(done.stdout)
        check(len(plan["ranks"]) == ranks, f"{len(plan['ranks'])} ranks, expected {ranks}")
        check(plan["parameters"] > 170e9, f"{plan['parameters']} parameters, expected more than 170e9")
        # Nothing is kept for each rank, or each two of them.
        check(peak < 300, f"planning {ranks} ranks took {peak:.0f} MiB, expected less than 300")
        print(f"{plan['parameters'] / 1e9:.1f}G parameters on {ranks} ranks planned in {seconds:.1f} s and {peak:.0f} MiB; "
              f"a rank takes at most {max(r['memory']['total'] for r in plan['ranks']) / 2**30:.1f} GiB")
