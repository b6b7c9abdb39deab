"""One hash and one loss text over all degrees of tensor parallelism at equal tensor shards, beside everything else that cuts, moves or
computes again; a run resumed at another degree; and losses beside those of one shard, which are other bits of the same numbers.

usage: tensor_parallel.py DSOPT
"""
import os
import re
import sys
import tempfile

from runs import MPIRUN, check, execute, model, refused, relative, same_bits, train
from sampled import sampled
from shard_kernels import check_kernels

dsopt = sys.argv[1]
STEP = ["-steps=3", "-grad-clip=1", "-lr=3e-3", "-micro-batch-size=2", "-global-batch=8", "-reduction-shards=4", "-accumulate=sharded"]


def same(*arguments):
    return same_bits(dsopt, *arguments)


LAYOUTS = [
    "-tp=2 -dp=2 -zero=1", "-tp=2 -dp=2 -zero=2", "-tp=2 -dp=2 -zero=3", "-tp=4 -dp=2 -zero=3", "-dp=4 -zero=3", "-tp=2 -pp=2", "-tp=4 -pp=2",
    "-tp=2 -pp=2 -dp=2 -zero=3", "-tp=2 -pp=4 -schedule=gpipe", "-tp=2 -pp=2 -schedule=interleaved", "-tp=2 -threads=1", "-tp=2 -threads=3",
    "-tp=2 -recompute=full", "-tp=2 -dp=2 -zero=3 -recompute=full", "-tp=4 -pp=2 -recompute=full", "-tp=2 -pp=2 -offload-optimizer=cpu",
    "-tp=2 -dp=2 -zero=3 -offload-params=cpu -offload-optimizer=cpu", "-tp=2 -dp=2 -zero=3 -gather-window=2", "-tp=2 -offload-activations=cpu",
    "-tp=2 -pp=2 -offload-activations=cpu", "-tp=2 -dp=4 -zero=2", "-dp=2 -pp=2 -zero=3", "-pp=4", "-tp=4 -zero=3",
]


def transformer():
    base = ["-tensor-shards=4", *STEP]
    grids = ["-tp=1", "-tp=2", "-tp=4", *sampled(LAYOUTS, 14), ([*MPIRUN, "4"], "-tp=2 -dp=2 -zero=3")]
    run = same("gpt2-tiny, T = 4", "gpt2-tiny", grids, base)
    one = train(dsopt, "gpt2-tiny", *STEP)
    check(relative(run.losses, one.losses) < 1e-5 and run.hash != one.hash, f"4 tensor shards: {run.losses}, one: {one.losses}")


def same_kernels():
    for name, words in (("gpt2-tiny", "-tensor-shards=4"), ("bert-tiny", "-tensor-shards=2 -precision=bf16"), ("gpt2-tiny", "-tensor-shards=4 -recompute=full -precision=bf16"),
                        ("conv-lstm", "-tensor-shards=2")):
        path, data = model(name)
        shards = int(re.search(r"shards=(\d)", words)[1])
        number = check_kernels(f"{name} {words}", dsopt, [path, f"-data={data}", *words.split()], [shards, 1, 2])
        print(f"{name} {words}: {number} kernels, the same at every degree", flush=True)


def narrow():
    for precision in ("bf16", "fp16"):
        base = ["-tensor-shards=4", *STEP, f"-precision={precision}"]
        same(f"gpt2-tiny, T = 4, {precision}", "gpt2-tiny", ["-tp=1", "-tp=2", "-tp=4 -pp=2", "-tp=2 -dp=2 -zero=3 -recompute=full"], base)
    same("gpt2-tiny, T = 4, gradients of bf16", "gpt2-tiny", ["-tp=1", "-tp=4", "-tp=2 -dp=2 -zero=2"],
         ["-tensor-shards=4", *STEP, "-precision=bf16", "-gradient-type=param"])


def others():
    for name, rule in (("bert-tiny", "adamw"), ("mlp", "lion"), ("mlp", "sgd"), ("conv-lstm", "adamw"), ("resnet-tiny", "adamw")):
        base = ["-tensor-shards=2", "-steps=3", f"-optimizer={rule}"]
        same(f"{name}, T = 2, {rule}", name, ["-tp=1", "-tp=2"], base)


def by_norms():
    """LAMB's ratios are of whole parameters, whoever has parts of them."""
    base = ["-tensor-shards=4", *STEP, "-optimizer=lamb"]
    same("gpt2-tiny, T = 4, lamb", "gpt2-tiny", ["-tp=1", "-tp=2", "-tp=4", "-tp=2 -dp=2 -zero=3", "-tp=2 -pp=2 -dp=2 -zero=1", "-dp=2 -zero=2",
                                                "-tp=1 -offload-optimizer=cpu", "-tp=2 -dp=2 -zero=3 -offload-optimizer=cpu", "-tp=2 -pp=2 -offload-optimizer=cpu"], base)


def by_matrices():
    """Muon sees each matrix whole, joined of its shards, however they are cut."""
    base = ["-tensor-shards=4", *STEP, "-optimizer=muon"]
    same("gpt2-tiny, T = 4, muon", "gpt2-tiny", ["-tp=1", "-tp=2", "-tp=4 -dp=2 -zero=3", "-tp=2 -pp=2 -dp=2 -zero=1", "-dp=2 -zero=2", "-tp=2 -dp=2 -zero=0",
                                                 "-tp=2 -dp=2 -zero=3 -reduce-bucket-size=10000 -offload-params=cpu -offload-optimizer=cpu"], base)
    same("gpt2-tiny, T = 4, muon, bf16", "gpt2-tiny", ["-tp=1", "-tp=2 -dp=2 -zero=2"], [*base, "-precision=bf16"])
    for name, words in (("gpt2-tiny", ["-muon-except=*.h.3.mlp.c_proj.weight"]), ("bert-tiny", ["-muon-except=*.transform.dense.weight"])):
        runs = [train(dsopt, name, *STEP, "-optimizer=muon", *words, *shards) for shards in ([], ["-tensor-shards=2", "-tp=2"])]
        check(relative(runs[1].losses, runs[0].losses) < 1e-5 and runs[0].hash != runs[1].hash, f"{name}, muon, 2 tensor shards: {runs[1].losses}, one: {runs[0].losses}")


def resumed(*rule):
    """Each degree goes on from what another one saved; the weights go home whole."""
    path, data = model("gpt2-tiny")
    base = [dsopt, path, "-run", f"-data={data}", "-quiet", "-tensor-shards=4", *STEP, *rule]
    with tempfile.TemporaryDirectory() as folder:
        whole = os.path.join(folder, "whole.safetensors")
        execute([*base, "-tp=1", "-steps=4", f"-save-weights={whole}"])
        expected = open(whole, "rb").read()
        for before, behind in (("-tp=2 -dp=2 -zero=3", "-tp=4"), ("-tp=4 -pp=2", "-tp=1 -dp=2 -zero=1"), ("-tp=1", "-tp=2 -pp=2")):
            saved, weights = os.path.join(folder, "saved"), os.path.join(folder, "weights.safetensors")
            execute([*base, *before.split(), "-steps=2", f"-save={saved}"])
            execute([*base, *behind.split(), "-steps=4", f"-resume={saved}", f"-save-weights={weights}"])
            check(open(weights, "rb").read() == expected, f"from {before} to {behind}: other weights than without a stop")
            execute(["rm", "-r", saved])
        execute([*base, "-tp=2", "-steps=1", f"-save={folder}/four"])
        said = execute([word for word in base if not word.startswith("-tensor-shards")] + ["-tensor-shards=2", "-tp=2", f"-resume={folder}/four"], status=1).stderr
        check("tensor shards" in said or "tensor-shards" in said, f"a checkpoint of other shards: {said}")
    print(f"resumed at other degrees{' '.join(['', *rule])}: the same weights", flush=True)


def forward_alone():
    path, data = model("gpt2-tiny")
    losses = set()
    for words in ("-tp=1", "-tp=2", "-tp=2 -pp=2"):
        said = execute([dsopt, path, "-eval", f"-data={data}", "-tensor-shards=2", *words.split()]).stdout
        losses.update(re.findall(r"eval loss (\S+)", said))
    check(len(losses) == 1, f"evaluations differ: {losses}")
    print(f"evaluated: {losses.pop()}", flush=True)


# Each in one line.
REFUSED = (
    ("-tp=2 -tensor-shards=3", "-tp times a power of two"),
    ("-tp=2 -tensor-shards=6", "-tp times a power of two"), ("-tp=2 -optimizer=adafactor", "tensor shards"),
)


transformer()
same_kernels()
narrow()
others()
by_norms()
by_matrices()
resumed()
resumed("-optimizer=muon")
forward_alone()
refused(dsopt, "gpt2-tiny", REFUSED)
