"""One hash and one loss text over all layouts of the same computation.

usage: layouts.py DSOPT
"""
import itertools
import json
import os
import sys
import tempfile

from runs import MPIRUN, check, execute, model, train
from sampled import sampled

dsopt = sys.argv[1]
name = "gpt2-tiny"
base = ["-steps=3", "-grad-clip=1", "-lr=3e-3"]


def same(title, runs):
    """All runs have one loss text and one hash."""
    runs = list(runs)
    first, reference = runs[0]
    for label, run in runs[1:]:
        check(run.hash == reference.hash and run.loss_text == reference.loss_text,
              f"{title}: {label} differs from {first}: {run.loss_text} {run.hash}, expected {reference.loss_text} {reference.hash}")
    print(f"{title}: {len(runs)} layouts, one hash {reference.hash[:16]}, losses {', '.join(reference.loss_text)}", flush=True)


def layout(k, v, dp, pp, zero, *more, **keywords):
    options = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={k // dp}", f"-reduction-shards={v}", *base, *more]
    return " ".join(options + list(map(str, keywords.get("prefix", ())))), train(dsopt, name, *options, **keywords)


def four_shards():
    grids = [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 2)]
    for (dp, pp), zero in sampled(itertools.product(grids, range(4)), 12):
        yield layout(4, 4, dp, pp, zero)
    yield layout(4, 4, 2, 4, 3)
    yield layout(4, 4, 1, 2, 0, "-schedule=gpipe")
    yield layout(4, 4, 2, 4, 3, "-schedule=gpipe")
    for threads in (1, 2, 3, 8):
        yield layout(4, 4, 1, 1, 0, f"-threads={threads}")
    yield layout(4, 4, 2, 2, 3, "-gather-window=2")
    for dp, pp, zero in ((2, 1, 0), (2, 2, 3), (4, 1, 2)):
        yield layout(4, 4, dp, pp, zero, prefix=[*MPIRUN, str(dp * pp)])
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "train")
        execute([dsopt, model(name)[0], "-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-reduction-shards=4", *base, "-o", program])
        yield "ahead of time", train(dsopt, name, program=program)


same("K = V = 4", four_shards())
def one_micro_batch(*precision):
    """A shared embedding's gradient has one buffer where a rank has all of it, and is added to the other use's there."""

    def plan(*options):
        return json.loads(execute([dsopt, model(name)[0], f"-data={model(name)[1]}", "-plan=json", "-micro-batches=1", *options, *precision]).stdout)

    tied = [plan(*options)["ranks"][0]["memory"]["tied"] for options in ([], ["-micro-batches=2"])]
    check(tied[0] == 0 < tied[1], f"tied gradients of one and of two micro-batches take {tied} bytes")
    yield layout(1, 1, 1, 1, 0, *precision)
    for options in (["-threads=1"], ["-threads=8"], ["-recompute=full"], ["-offload-optimizer=cpu"], ["-zero=3", "-offload-optimizer=cpu", "-offload-params=cpu"]):
        yield layout(1, 1, 1, 1, 0, *precision, *options)
    for pp in (2, 4):
        yield layout(1, 1, 1, pp, 0, *precision)


for precision in sampled(([], ["-precision=bf16"], ["-precision=bf16", "-gradient-type=param"]), 2):
    same(f"K = V = 1 {' '.join(precision)}", one_micro_batch(*precision))
for order in ("local", "sharded"):
    same(f"K = 8, V = 2, {order}",
         (layout(8, 2, dp, 1, zero, f"-accumulate={order}") for dp, zero in sampled(itertools.product((1, 2), range(4)), 5)))
for ranks in (3, 5):
    same(f"K = V = {ranks}", (layout(ranks, ranks, dp, 1, zero) for dp in (1, ranks) for zero in (0, 3)))
name = "conv-lstm"
same("convolutions, pools and recurrences",
     [layout(4, 4, 1, 1, 0), layout(4, 4, 1, 1, 0, "-threads=3"), layout(4, 4, 2, 2, 3), layout(4, 4, 4, 1, 2)])
