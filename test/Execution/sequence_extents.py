"""One hash over grids of sp x tp x dp x pp x ZeRO up to 8 ranks, by all methods, at the extents of real models.

usage: sequence_extents.py DSOPT WIDTH STEPS PRECISION
"""
import sys

from extents import one_hash

dsopt, width, steps, precision = sys.argv[1:]
RING, BOTH = "-sp-method=ring", "-sp-method=ulysses*2"
GRIDS = [
    "-sp=1", "-tp=2", "-pp=2", "-dp=2 -zero=3", "-tp=2 -dp=2 -zero=1", "-sp=2", f"-sp=2 {RING}", "-sp=4 -zero=1", f"-sp=4 -zero=3 {RING}", "-sp=2 -tp=2 -zero=2",
    f"-sp=2 -tp=2 -zero=3 {RING}", "-sp=4 -tp=2 -zero=3", f"-sp=4 -tp=2 -zero=1 {RING}", "-sp=2 -pp=2 -zero=3", f"-sp=2 -tp=2 -pp=2 -zero=1 {RING}", f"-sp=4 -pp=2 -zero=2 {RING}",
    "-sp=2 -zero=3 -recompute=full", "-sp=2 -dp=2 -zero=0", f"-sp=2 -dp=2 -zero=1 {RING}", "-sp=2 -dp=2 -zero=2", f"-sp=2 -dp=2 -zero=3 {RING}", "-sp=4 -dp=2 -zero=3",
    f"-sp=4 {BOTH}", f"-sp=4 -tp=2 -zero=3 {BOTH}", f"-sp=4 -dp=2 -zero=1 {BOTH}", f"-sp=4 -pp=2 -zero=2 {BOTH}",
    f"-sp=4 -dp=2 -zero=2 {RING}", "-sp=2 -tp=2 -dp=2 -zero=3", f"-sp=2 -tp=2 -dp=2 -zero=1 {RING}", "-sp=2 -pp=2 -dp=2 -zero=3", f"-sp=2 -pp=2 -dp=2 -zero=1 {RING}",
]
# Two micro-batches: one sum of two, whoever has them.
base = [f"-steps={steps}", "-sequence-shards=4", "-tensor-shards=2", f"-precision={precision}", "-global-batch=2"]
one_hash(dsopt, f"sequence shards, {precision}", base, GRIDS, int(width), heads=8)
