"""Weights that are packed once for several micro-batches of few rows (pack-weights): the bits of products that copy them themselves, in
every layout, in the bytes that were planned.

usage: pack_weights.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np

import own_models
from own_models import check_equal
from runs import SOURCE, check, execute

sys.path.append(os.path.join(SOURCE, "examples"))
import make_gpt  # noqa: E402

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="packed-")
path, data = os.path.join(folder, "gpt.onnx"), os.path.join(folder, "data.npz")
# 13 rows; 275 columns are no whole vectors, an odd contraction has half a pair at its end, and 1100 is a run and some.
ROWS = 13
sys.argv[1:] = [path, "--layers", "2", "--width", "275", "--heads", "5", "--tokens", str(ROWS), "--rows", "1"]
make_gpt.main()
ids = np.random.default_rng(3).integers(0, 256, (64, ROWS)).astype(np.int64)
np.savez(data, input_ids=ids, labels=np.roll(ids, -1, 1))
# Nothing is packed where there is a limit of memory.
APART = ["-device-memory=4GB"]


def run(*options):
    return own_models.run(dsopt, path, data, "-micro-batch-size=1", "-optimizer=adamw", "-lr=1e-3", "-steps=3", "-reduction-shards=2", "-accumulate=sharded", *options)


def packs(*options):
    text = execute([dsopt, path, "-micro-batch-size=1", "-emit=exec", *options]).stdout
    for kind in ("exec.gemm %", "exec.gemm_epilogue bias %"):
        reads = [line for line in text.splitlines() if kind in line and " packed " in line]
        check(bool(reads) == ("exec.map @kernels::@pack" in text), f"{len(reads)} of {kind} read packed weights")
    return text.count("exec.map @kernels::@pack")


def planned(*options):
    rank = json.loads(execute([dsopt, path, f"-data={data}", "-micro-batch-size=1", "-plan=json", *options]).stdout)["ranks"][0]
    return rank["memory"].get("packed", 0)


for precision in ("fp32", "bf16"):
    kind = f"-precision={precision}"
    found = packs("-micro-batches=8", kind), packs("-micro-batches=8", kind, *APART), packs("-micro-batches=2", kind)
    check(found[1:] == (0, 0) and (found[0] or precision == "bf16"), f"{precision}: packed {found} times, expected some, none and none")
    first = run("-micro-batches=8", "-threads=1", kind, *APART)
    check(len(set(first.loss_text)) == 3, f"losses {first.loss_text}")
    for name, options in {
        "packed": ["-micro-batches=8", "-threads=1"],
        "three threads": ["-micro-batches=8", "-threads=3"],
        "two ranks": ["-dp=2", "-zero=1", "-micro-batches=4", "-threads=1"],
        "zero 3": ["-dp=2", "-zero=3", "-gather-window=4", "-micro-batches=4", "-threads=1"],
        "two stages": ["-pp=2", "-micro-batches=8", "-threads=1"],
        "computed again": ["-micro-batches=8", "-threads=1", "-recompute=full"],
    }.items():
        check_equal(f"{precision} {name}", run(*options, kind), first)
    bytes = planned("-micro-batches=8", kind), planned("-micro-batches=8", kind, *APART)
    check(bool(bytes[0]) == bool(found[0]) and not bytes[1], f"the plan has {bytes} bytes of packed weights")
    print(f"{precision}: {found[0]} copies of {bytes[0]} bytes, the same bits in all layouts")

narrow = ["-micro-batches=8", "-threads=1", "-arch=x86-64-v3"]
check(packs(*narrow), "nothing is packed for AVX2")
check_equal("AVX2", run(*narrow), run(*narrow, *APART))
