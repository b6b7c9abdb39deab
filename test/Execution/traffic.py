"""Bytes sent and bytes of model state, counted at run time, equal the plan and the formulas.

usage: traffic.py DSOPT
With P the bytes of a stage's parameters and T those of its accumulators that are
not an owner's first use, over N ranks: reduce R = (N-1)/N (P+T) x (1 or K/V);
stages 0 to 2: R + (N-1)/N P; stage 3: at most R + 2 G (N-1)/N (P+T).
"""
import json
import sys


from runs import check, execute, model, train

dsopt = sys.argv[1]


def plan(name, *options):
    path, data = model(name)
    return json.loads(execute([dsopt, path, f"-data={data}", "-plan=json", *options]).stdout)


# mlp has 6922 parameters in 3 blocks of one stage and no ties: P is all of them, G all gradients. Parameters are
# bf16 on the wire where they are stored so, gradients where they have their type.
for width, gradient_width, precision in ((4, 4, []), (2, 4, ["-precision=bf16"]),
                                         (2, 2, ["-precision=bf16", "-gradient-type=param"])):
    P, G = width * 6922, gradient_width * 6922
    for n, zero, order in [(n, z, o) for n in (2, 4) for z in range(4) for o in ("local", "sharded")]:
        k = 2 * n
        options = [f"-dp={n}", f"-zero={zero}", "-micro-batches=2", f"-accumulate={order}", "-steps=2", *precision]
        planned = plan("mlp", *options)
        run = train(dsopt, "mlp", *options)
        reduce_bytes = (n - 1) / n * G * (1 if order == "local" else k / n)
        # Stage 0 gathers gradients, each rank updates all; stage 3 gathers for forward and backward.
        gathered = (n - 1) / n * (G if zero == 0 else P * (2 * 2 if zero == 3 else 1))
        for rank, entry in enumerate(planned["ranks"]):
            traffic = entry["traffic"]
            check(traffic["reduce_scatter"] == reduce_bytes,
                  f"{options}: reduces {traffic['reduce_scatter']}, expected {reduce_bytes}")
            check(traffic["all_gather"] <= gathered if zero == 3 else traffic["all_gather"] == gathered,
                  f"{options}: gathers {traffic['all_gather']}, expected {gathered}")
            sent = run.steps[-1]["sent_bytes"][rank]
            total = sum(v for key, v in traffic.items())
            check(sent == total, f"{options}: rank {rank} sent {sent} bytes, planned {total}")
            check(run.steps[-1]["peak_bytes"][rank] == entry["memory"]["total"],
                  f"{options}: rank {rank} maps {run.steps[-1]['peak_bytes'][rank]} bytes, planned {entry['memory']['total']}")
# gpt2-tiny shares its embedding between its first and its last block: T is the second accumulator.
P, T = 4 * 236928, 4 * 512 * 64
for n, zero, order in [(n, z, o) for n in (2, 4) for z in range(4) for o in ("local", "sharded")]:
    options = [f"-dp={n}", f"-zero={zero}", "-micro-batches=2", f"-accumulate={order}"]
    traffic = plan("gpt2-tiny", *options)["ranks"][0]["traffic"]
    reduce_bytes = (n - 1) / n * (P + T) * (1 if order == "local" else 2)
    check(traffic["reduce_scatter"] == reduce_bytes, f"{options}: reduces {traffic['reduce_scatter']}, expected {reduce_bytes}")
    expected = 2 * 2 * (n - 1) / n * (P + T) if zero == 3 else (n - 1) / n * P
    check(traffic["all_gather"] <= expected if zero == 3 else traffic["all_gather"] == expected,
          f"{options}: gathers {traffic['all_gather']}, expected {expected}")
print("traffic: plan, engines and formulas agree")

# Model state: bytes a parameter by ZeRO stage, where gradients are added over
# micro-batches. With one micro-batch a step a gradient lives from its block's
# backward to its update: the peak holds few of them. Mixed precision is planned
# for a machine that has it: parameters, gradients, optimizer with masters are
# 2 + 2 + 12 bytes as in ZeRO's paper, or 2 + 4 + 12.
MIXED = ["-precision=bf16", "-arch=znver4"]
for optimizer, precision, parameter, gradient, state in (
    ("adamw", [], 4, 4, 8),
    ("sgd", [], 4, 4, 4),
    ("adamw", MIXED, 2, 4, 12),
    ("adamw", [*MIXED, "-gradient-type=param"], 2, 2, 12),
):
    for n, zero in [(n, z) for n in (2, 4) for z in range(4)]:
        options = [f"-dp={n}", f"-zero={zero}", f"-optimizer={optimizer}", "-momentum=0.9", "-accumulate=sharded", *precision]
        expected = {"optimizer": state, "gradients": gradient, "parameters": parameter}
        for stage, kind in enumerate(expected, 1):
            # A rank's part is rounded up in each of the three blocks.
            expected[kind] *= 6922 / (n if zero >= stage else 1)
        memory = plan("mlp", *options, "-micro-batches=2")["ranks"][0]["memory"]
        for kind, size in expected.items():
            check(0 <= memory[kind] - size < 3, f"{options}: {memory[kind]} bytes of {kind}, expected {size}")
        gradients = memory["gradients"]
        memory = plan("mlp", *options, "-micro-batches=1")["ranks"][0]["memory"]
        for kind in ("parameters", "optimizer"):
            check(0 <= memory[kind] - expected[kind] < 3, f"{options}, one micro-batch: {memory[kind]} bytes of {kind}")
        check(memory["gradients"] < gradients, f"{options}, one micro-batch: {memory['gradients']} bytes of gradients")
print("model state: bytes a parameter are ZeRO's")
