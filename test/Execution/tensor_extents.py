"""One hash over grids of tp x dp x pp x ZeRO at the extents of real models, with fewer than 8 heads in all.

usage: tensor_extents.py DSOPT WIDTH STEPS PRECISION OPTIONS...: each one is a grid; none: 25
"""
import sys

from extents import one_hash

dsopt, width, steps, precision, *grids = sys.argv[1:]
grids = grids or [
    "-tp=1", "-dp=2 -zero=0", "-dp=2 -zero=1", "-dp=2 -zero=2", "-dp=2 -zero=3", "-pp=2", "-dp=2 -pp=2 -zero=3",
    "-tp=2", "-tp=2 -dp=2 -zero=0", "-tp=2 -dp=2 -zero=1", "-tp=2 -dp=2 -zero=2", "-tp=2 -dp=2 -zero=3", "-tp=2 -pp=2", "-tp=2 -dp=2 -pp=2 -zero=1",
    "-tp=2 -dp=2 -pp=2 -zero=3", "-tp=2 -recompute=full", "-tp=2 -pp=4", "-tp=2 -offload-optimizer=cpu",
    "-tp=4", "-tp=4 -dp=2 -zero=0", "-tp=4 -dp=2 -zero=1", "-tp=4 -dp=2 -zero=2", "-tp=4 -dp=2 -zero=3", "-tp=4 -pp=2", "-tp=4 -pp=2 -recompute=full",
]
base = [f"-steps={steps}", "-global-batch=2", "-reduction-shards=2", "-accumulate=sharded", "-tensor-shards=4", f"-precision={precision}"]
one_hash(dsopt, "tensor shards", base, grids, int(width), heads=4)
