"""Models that one GPU of 32 GB trains, by plan: the claims of ZeRO-Offload (Ren et al., 2021) and of ZeRO-Infinity
(Rajbhandari et al., 2021): 13 and 1000 thousand million parameters.

usage: capacity.py DSOPT
"""
import json
import os
import sys
import tempfile

from large_models import save_large
from runs import check, execute
from sampled import NIGHTLY, sampled

dsopt = sys.argv[1]
V100, DGX2, NVME = 32 << 30, 1536 << 30, 28 * 10**12  # bytes of a V100, and of its host's memory and disks
# Layers and widths / 96; 1024 tokens. By day as many parameters are in half as many layers.
SIZES = {"1.4B": (40, 18), "13B": (65, 43), "1T": (127, 267)} if NIGHTLY else {"1.4B": (10, 36), "13B": (33, 61), "1T": None}


def plan(path, *options, status=0):
    done = execute([dsopt, path, "-precision=bf16", "-arch=cooperlake", "-gradient-type=param", "-recompute=full", f"-device-memory={V100}", "-plan=json", *options], status)
    if status:
        return done.stderr
    result = json.loads(done.stdout)
    return result["parameters"], {memory["kind"]: memory["bytes"] for memory in result["ranks"][0]["memories"]}


with tempfile.TemporaryDirectory() as folder:
    for size, (layers, scale) in SIZES.items() if NIGHTLY else list(SIZES.items())[:2]:
        save_large(os.path.join(folder, size), layers, scale, tokens=1024)
    small, large, largest = (os.path.join(folder, size) for size in SIZES)
    parameters, memories = plan(small)
    print(f"{parameters / 1e9:.2f}e9 parameters: {memories['device'] / 2**30:.1f} GiB")
    said = plan(large, status=1)
    check("-offload-optimizer=cpu fits" in said, said)
    for options in sampled((["-zero=3", "-offload-optimizer=cpu", "-offload-params=cpu"], ["-offload-optimizer=cpu"]), 1):
        parameters, memories = plan(large, *options)
        check(parameters > 13e9 and memories["device"] <= V100 and memories["host"] <= DGX2, f"{memories}")
        print(f"{parameters / 1e9:.2f}e9 parameters, {' '.join(options)}: {memories['device'] / 2**30:.1f} GiB and {memories['host'] / 2**30:.1f} GiB on the host")
    if NIGHTLY:
        parameters, memories = plan(largest, "-zero=3", "-offload-optimizer=nvme", "-offload-params=nvme", "-nvme-path=.")
        check(parameters > 1e12 and memories["device"] <= V100 and memories["host"] <= DGX2 and memories["disk"] <= NVME, f"{memories}")
        check(memories["disk"] <= 14.01 * parameters, f"{memories['disk'] / parameters} bytes a parameter on disk, expected 14")
        print(f"{parameters / 1e9:.2f}e9 parameters, on disk: {memories['device'] / 2**30:.1f} GiB, {memories['host'] / 2**30:.1f} GiB on the host and "
              f"{memories['disk'] / 2**40:.2f} TiB on disk")
