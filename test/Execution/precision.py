"""bf16: near fp32, one hash over all layouts, masters saved, and what machines without it do.

usage: precision.py DSOPT

Where the processor has no AVX-512 BF16 everything is fp32, and holds all the same.
"""
import os
import sys
import tempfile

from runs import check, execute, model, train

dsopt = sys.argv[1]


def near():
    for name, tolerance in (("mlp", 5e-3), ("mlp-mse", 5e-3), ("gpt2-tiny", 5e-3), ("bert-tiny", 5e-3)):
        options = ["-steps=10", "-lr=1e-3"]
        full, half = (train(dsopt, name, *options, f"-precision={p}").losses for p in ("fp32", "bf16"))
        worst = max(abs(a - b) for a, b in zip(full, half))
        check(worst < tolerance, f"{name}: losses differ by {worst}\n{full}\n{half}")
        print(f"{name}: losses within {worst:.2g} of fp32", flush=True)


def layouts(name, *options):
    base = ["-precision=bf16", "-steps=3", "-reduction-shards=4", *options]
    grids = [(1, 1, 0, 1), (1, 1, 0, 2), (1, 1, 0, 3)]
    grids += [(dp, pp, zero, 1) for dp, pp in ((2, 1), (4, 1), (2, 2)) for zero in range(4)] + [(1, 2, 0, 1), (1, 3, 0, 1)]
    first = None
    for dp, pp, zero, threads in grids:
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-threads={threads}", f"-micro-batches={4 // dp}"]
        run = train(dsopt, name, *layout, *base)
        first = first or run
        check(run.hash == first.hash and run.loss_text == first.loss_text,
              f"{name}: {' '.join(layout)}: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
    print(f"{name}: {len(grids)} layouts, one hash {first.hash[:16]}", flush=True)


def saved():
    """The masters are saved, in the model's own type; a step of nothing changes no bit of them."""
    path, data = model("gpt2-tiny")
    with tempfile.TemporaryDirectory() as folder:
        for precision in ("fp32", "bf16"):
            execute([dsopt, path, "-run", f"-data={data}", "-steps=1", "-lr=0", "-weight-decay=0", "-quiet",
                     f"-precision={precision}", f"-save-weights={folder}/{precision}.safetensors"])
        full, half = (open(f"{folder}/{p}.safetensors", "rb").read() for p in ("fp32", "bf16"))
        check(full == half, "masters are not the model's weights after a step of size 0")
        done = execute([dsopt, path, "-o", os.path.join(folder, "t"), f"-data={data}", "-precision=bf16", "-arch=x86-64-v3"])
        check("x86-64-v3 has no AVX-512 BF16" in done.stderr, f"no word about the precision: {done.stderr}")
    print("saved")


near()
layouts("gpt2-tiny", "-grad-clip=1", "-lr=3e-3")
layouts("mlp", "-optimizer=sgd", "-momentum=0.9")
saved()
