"""bf16: near fp32, one hash over all layouts, also for processors that do not multiply it; masters saved.

usage: precision.py DSOPT
"""
import sys
import tempfile

from runs import MPIRUN, check, execute, model, train
from sampled import sampled

dsopt = sys.argv[1]


def near():
    for name, tolerance in (("mlp", 5e-3), ("mlp-mse", 5e-3), ("gpt2-tiny", 5e-3), ("bert-tiny", 5e-3)):
        options = ["-steps=10", "-lr=1e-3", "-micro-batches=2"]
        full = train(dsopt, name, *options).losses
        for gradients in ("fp32", "param"):
            half = train(dsopt, name, *options, "-precision=bf16", f"-gradient-type={gradients}").losses
            worst = max(abs(a - b) for a, b in zip(full, half))
            check(worst < tolerance, f"{name}, gradients {gradients}: losses differ by {worst}\n{full}\n{half}")
            print(f"{name}, gradients {gradients}: losses within {worst:.2g} of fp32", flush=True)


def same(name, k, v, grids, *options):
    """One hash and loss text of K micro-batches in V shards over (dp, pp, zero, threads, command before)."""
    base = ["-precision=bf16", "-steps=3", f"-reduction-shards={v}", *options]
    first = None
    for dp, pp, zero, threads, prefix in grids:
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-threads={threads}", f"-micro-batches={k // dp}"]
        run = train(dsopt, name, *layout, *base, prefix=prefix)
        first = first or run
        check(run.hash == first.hash and run.loss_text == first.loss_text,
              f"{name}: {' '.join([*prefix, *layout, *base])}: {run.loss_text} {run.hash}, "
              f"expected {first.loss_text} {first.hash}")
    print(f"{name} {' '.join(options)}: {len(grids)} layouts, one hash {first.hash[:16]}", flush=True)


def layouts(name, *options):
    grids = [(1, 1, 0, threads, ()) for threads in (1, 2, 3)]
    grids += [(dp, pp, zero, 1, ()) for dp, pp in ((2, 1), (4, 1), (2, 2)) for zero in range(4)]
    grids += [(1, 2, 0, 1, ()), (1, 3, 0, 1, ())]
    grids += [(dp, pp, zero, 1, (*MPIRUN, str(dp * pp))) for dp, pp, zero in ((2, 1, 0), (2, 2, 3), (4, 1, 2))]
    same(name, 4, 4, sampled(grids, 9), *options)
    # Operands that are extended, by AVX2 or by the library.
    for arch in ("x86-64-v3", "x86-64-v2"):
        same(name, 4, 4, [(1, 1, 0, 2, ()), (2, 2, 3, 1, ())], f"-arch={arch}", *options)
    # Two micro-batches a shard: gradients are added to.
    for order in ("local", "sharded"):
        grids = [(dp, pp, zero, 1, ()) for dp, pp in ((1, 1), (2, 1), (2, 2)) for zero in ((0, 2, 3) if dp > 1 else (0,))]
        same(name, 4, 2, sampled(grids, 4), f"-accumulate={order}", *options)


def saved():
    """The masters are saved, in the model's own type; a step of nothing changes no bit of them."""
    path, data = model("gpt2-tiny")
    with tempfile.TemporaryDirectory() as folder:
        for precision in ("fp32", "bf16"):
            execute([dsopt, path, "-run", f"-data={data}", "-steps=1", "-lr=0", "-weight-decay=0", "-quiet",
                     f"-precision={precision}", f"-save-weights={folder}/{precision}.safetensors"])
        full, half = (open(f"{folder}/{p}.safetensors", "rb").read() for p in ("fp32", "bf16"))
        check(full == half, "masters are not the model's weights after a step of size 0")
    print("saved")


near()
for gradients in ("fp32", "param"):
    layouts("gpt2-tiny", "-grad-clip=1", "-lr=3e-3", f"-gradient-type={gradients}")
    layouts("mlp", "-optimizer=sgd", "-momentum=0.9", f"-gradient-type={gradients}")
saved()
