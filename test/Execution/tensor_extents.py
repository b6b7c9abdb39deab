"""One hash over grids of tp x dp x pp x ZeRO at the extents of real models: 1024 positions, a vocabulary of 50,257, contractions over 4,096,
fewer than 8 heads in all.

usage: tensor_extents.py DSOPT WIDTH STEPS PRECISION OPTIONS...: each one is a grid; none: 25
"""
import argparse
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from runs import SOURCE, Run, check, execute

sys.path.append(os.path.join(SOURCE, "examples"))
import make_gpt

dsopt, width, steps, precision, *grids = sys.argv[1:]
grids = grids or [
    "-tp=1", "-dp=2 -zero=0", "-dp=2 -zero=1", "-dp=2 -zero=2", "-dp=2 -zero=3", "-pp=2", "-dp=2 -pp=2 -zero=3",
    "-tp=2", "-tp=2 -dp=2 -zero=0", "-tp=2 -dp=2 -zero=1", "-tp=2 -dp=2 -zero=2", "-tp=2 -dp=2 -zero=3", "-tp=2 -pp=2", "-tp=2 -dp=2 -pp=2 -zero=1",
    "-tp=2 -dp=2 -pp=2 -zero=3", "-tp=2 -recompute=full", "-tp=2 -pp=4", "-tp=2 -offload-optimizer=cpu",
    "-tp=4", "-tp=4 -dp=2 -zero=0", "-tp=4 -dp=2 -zero=1", "-tp=4 -dp=2 -zero=2", "-tp=4 -dp=2 -zero=3", "-tp=4 -pp=2", "-tp=4 -pp=2 -recompute=full",
]
sizes = argparse.Namespace(layers=2, width=int(width), heads=4, tokens=1024, rows=1, vocabulary=50257)
random = np.random.default_rng(0)


def draw(name, shape, std, fill):
    value = np.full(shape, fill, np.float32) if fill is not None else random.standard_normal(shape, np.float32) * np.float32(std)
    return numpy_helper.from_array(value, name)


with tempfile.TemporaryDirectory() as folder:
    path, data, log = (os.path.join(folder, name) for name in ("model.onnx", "data.npz", "log.jsonl"))
    onnx.save(make_gpt.build(sizes, draw), path)
    ids = random.integers(0, sizes.vocabulary, (2, sizes.tokens))
    np.savez(data, input_ids=ids, labels=np.roll(ids, -1, 1))
    hashes = {}
    for grid in grids:
        execute([dsopt, path, "-run", f"-data={data}", f"-steps={steps}", "-global-batch=2", "-reduction-shards=2", "-accumulate=sharded", "-tensor-shards=4",
                 f"-precision={precision}", "-quiet", f"-log={log}", *grid.split()], timeout=1200)
        run = Run(log)
        hashes[grid] = run.hash
        print(f"{grid}: {run.hash[:16]}, losses {', '.join(run.loss_text)}", flush=True)
        check(run.hash == hashes[grids[0]], f"{grid} differs from {grids[0]}")
    print(f"{len(grids)} grids, one hash")
