"""Predictions of a step on a GPU whose optimizer's states are elsewhere."""
import json
import subprocess
import sys

dsopt, model = sys.argv[1:]
DISK = 5e9  # bytes a second that predictions take a disk for (AssumedRates.h)


def plan(place, threads=1):
    words = [dsopt, model, "-target=cuda", "-arch=sm_90", f"-threads={threads}", "-plan=json", f"-offload-optimizer={place}"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


device, host, disk = map(plan, ("none", "cpu", "nvme"))
times = [made["predicted_step_ms"] for made in (device, plan("cpu", threads=2), host, disk)]
assert times[0] < times[1] < times[2] == times[3], times
written = disk["ranks"][0]["copied"]["disk"] / DISK * 1e3
assert host["predicted_exposed_ms"] < 0.1 * written, (host["predicted_exposed_ms"], written)
assert disk["predicted_exposed_ms"] > 0.8 * written, (disk["predicted_exposed_ms"], written)
print("longer on the host, longer still from disk")
