"""Stages with several chunks of blocks: the bits of one rank, fewer bubbles than 1F1B, and what is refused.

usage: chunks.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np

import small
from runs import Run, check, execute, model, train
from small import initializer, node, value

dsopt = sys.argv[1]
path, data = model("gpt2-tiny")


def interleaved(chunks):
    return f"-schedule=interleaved{{chunks={chunks}}}"


def same(title, runs):
    """Runs by layout: one result for each order of additions (-accumulate), which the ZeRO stage chooses."""
    first = {}
    for options, run in runs:
        result = (run.hash, run.loss_text)
        expected = first.setdefault(any(option in ("-zero=2", "-zero=3") for option in options), result)
        check(result == expected, f"{title}: {options}: {result}, expected {expected}")
    print(f"{title}: {len(runs)} layouts, hashes {', '.join(hash[:16] for hash, _ in first.values())}", flush=True)


# A shared embedding at the first chunk and the last, on stages 0 and 1; nine blocks, of which no stage has half.
base = ["-steps=3", "-grad-clip=1", "-lr=3e-3", "-reduction-shards=2"]
layouts = [["-pp=1", "-micro-batches=8"], ["-pp=1", "-micro-batches=8", "-zero=2", "-accumulate=sharded"],
           ["-pp=2", "-micro-batches=8", interleaved(1)], ["-pp=1", "-micro-batches=8", interleaved(3)],
           ["-pp=2", "-micro-batches=8", interleaved(3)], ["-pp=4", "-micro-batches=8", "-schedule=interleaved"],
           ["-pp=2", "-dp=2", "-zero=3", "-micro-batches=4", "-gather-window=3", interleaved(4)]]
layouts += [["-pp=2", f"-dp={dp}", f"-zero={zero}", f"-micro-batches={8 // dp}", "-schedule=interleaved"] for dp in (1, 2) for zero in range(4)]
same("tied embedding", [(options, train(dsopt, "gpt2-tiny", *base, *options)) for options in layouts])

# Values that skip chunks, up and back, and a product used in the second layer and the sixth.
with tempfile.TemporaryDirectory() as folder:
    rng = np.random.default_rng(3)
    nodes, last = [], "x"
    for i in range(7):
        if i in (3, 5):
            nodes.append(node("Add", f"{last} h0", f"s{i}"))
            last = f"s{i}"
        nodes += [node("MatMul", f"{last} a{1 if i == 5 else i}", f"m{i}"), node("Tanh", f"m{i}", f"u{i}"),
                  node("MatMul", f"u{i} b{i}", f"v{i}"), node("Add", f"{last} v{i}", f"h{i}")]
        last = f"h{i}"
    nodes += [node("Add", "h6 h1", "y"), node("Sub", "y t", "e"), node("Mul", "e e", "q"), node("ReduceMean", "q", "loss", keepdims=0)]
    weights = [initializer(f"{letter}{i}", rng.normal(0, 0.3, (8, 8)).astype(np.float32)) for i in range(7) for letter in "ab" if (letter, i) != ("a", 5)]
    skips = small.write(os.path.join(folder, "skips.onnx"), nodes, [value("x", (2, 8)), value("t", (2, 8))], weights)
    batches = {name: rng.normal(0, 1, (48, 8)).astype(np.float32) for name in ("x", "t")}
    layouts = [["-pp=1", "-micro-batches=12"], ["-pp=1", "-micro-batches=12", interleaved(6)],
               ["-pp=3", "-micro-batches=12", interleaved(2)], ["-pp=2", "-micro-batches=12", interleaved(3)],
               ["-pp=3", "-dp=2", "-zero=1", "-micro-batches=6", interleaved(2)]]
    layouts += [["-pp=2", f"-dp={dp}", f"-zero={zero}", f"-micro-batches={12 // dp}", interleaved(2)] for dp in (1, 2) for zero in (0, 3)]
    same("skips", [(options, small.train(dsopt, skips, batches, "-steps=4", "-quiet", "-reduction-shards=2", "-accumulate=local", *options)[0])
                   for options in layouts])

# Plan and log: chunks as ranges, bubbles of the one simulation.
layout = ["-pp=2", "-micro-batches=8", f"-data={data}"]
bubbles = []
for options in (["-schedule=1f1b"], ["-schedule=interleaved"]):
    plan = json.loads(execute([dsopt, path, "-plan=json", *layout, *options]).stdout)
    bubbles.append(plan["bubble"])
    logged = train(dsopt, "gpt2-tiny", "-steps=1", *layout, *options).head["plan"]["bubble"]
    check(logged == plan["bubble"], f"{options}: bubble {plan['bubble']} planned, {logged} logged")
check(0 < bubbles[1] < 0.5 * bubbles[0], f"bubbles {bubbles}: chunks do not fill them")
ranges = [rank["blocks"] for rank in plan["ranks"]]
check([len(own) for own in ranges] == [2, 2] and ranges[0][0][0] == 0 and ranges[0][0][1] == ranges[1][0][0] and
      ranges[1][0][1] == ranges[0][1][0] and ranges[0][1][1] == ranges[1][1][0] and ranges[1][1][1] == 9, f"blocks {ranges}")
table = execute([dsopt, path, "-plan", *layout, "-schedule=interleaved"]).stdout.splitlines()
rows = next(i for i, line in enumerate(table) if line.startswith("blocks"))
cells = [[f"{first}..{end - 1}" if end - first > 1 else str(first) for first, end in own] for own in ranges]
check([table[rows + i].split()[-2:] for i in range(2)] == [list(row) for row in zip(*cells)], f"{table[rows:rows + 2]}, expected {cells}")
print(f"bubble {bubbles[0]:.3f} before, {bubbles[1]:.3f} with two chunks a stage")

with tempfile.TemporaryDirectory() as folder:
    def at(name):
        return os.path.join(folder, name)

    # Checkpoints go on under another schedule, and what is evaluated is what was trained.
    options = ["-dp=2", "-micro-batches=2", "-reduction-shards=2", "-lr=3e-3", "-accumulate=local"]
    whole = train(dsopt, "gpt2-tiny", *options, "-pp=1", "-steps=4", f"-eval-data={data}", "-eval-every=2")
    train(dsopt, "gpt2-tiny", *options, "-pp=2", "-zero=3", "-steps=2", f"-save={at('saved')}", "-schedule=interleaved")
    resumed = train(dsopt, "gpt2-tiny", *options, "-pp=2", "-zero=1", "-steps=4", f"-resume={at('saved')}", "-schedule=1f1b")
    check(resumed.hash == whole.hash, f"resumed under 1f1b: {resumed.hash}, expected {whole.hash}")
    train(dsopt, "gpt2-tiny", *options, "-pp=1", "-steps=2", f"-save={at('single')}")
    resumed = train(dsopt, "gpt2-tiny", *options, "-pp=2", "-zero=2", "-steps=4", f"-resume={at('single')}", "-schedule=interleaved",
                    f"-eval-data={data}", "-eval-every=2")
    check(resumed.hash == whole.hash, f"resumed with chunks: {resumed.hash}, expected {whole.hash}")

    # Each stage reads back; the schedule is chosen before blocks are cut.
    layout = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-steps=2", "-schedule=interleaved"]
    reference = train(dsopt, "gpt2-tiny", *layout)
    for stage in ("graph", "dist", "exec"):
        first, second = at(stage + ".mlir"), at(stage + "2.mlir")
        execute([dsopt, path, f"-data={data}", f"-emit={stage}", "-o", first, *layout])
        execute([dsopt, first, f"-emit={stage}", "-o", second])
        check(open(first).read() == open(second).read(), f"{stage} reads back to another text")
        execute([dsopt, first, "-run", f"-data={data}", f"-log={at('log')}", "-quiet"])
        check(Run(at("log")).hash == reference.hash, f"{stage} read back gives another result")
    execute([dsopt, path, f"-data={data}", "-emit=dist", "-o", at("uncut.mlir"), *layout[:-1]])
    # Windows of gathers are as large as fits, in whole rounds of micro-batches.
    layout = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=16", f"-data={data}", "-schedule=interleaved"]
    gathered = [json.loads(execute([dsopt, path, "-plan=json", *layout, *options]).stdout)["ranks"][0]["traffic"]["all_gather"]
                for options in ([], ["-device-memory=1G"])]
    check(gathered[1] < gathered[0] / 4, f"gathers send {gathered} bytes: a budget of 1G makes no windows")

    for source, options, words in (
        (path, ["-pp=2", "-micro-batches=3", "-schedule=interleaved"],
         "schedule interleaved got 3 micro-batches a rank for 2 stages, expected a multiple of 2"),
        (path, ["-pp=2", "-micro-batches=2", "-schedule=interleaved{chunks=0}"],
         "schedule interleaved{chunks=0} got chunks=0, expected 1 to 65536"),
        (path, ["-pp=2", "-micro-batches=2", "-schedule=interleaved{chunks=1000000000000}"],
         "schedule interleaved{chunks=1000000000000} got chunks=1000000000000, expected 1 to 65536"),
        (path, ["-pp=2", "-micro-batches=2", "-schedule=interleaved{chunks=5}"],
         "cannot cut 9 blocks into the 10 chunks that schedule interleaved{chunks=5} has on 2 pipeline stages: fewer chunks or stages (-pp) are needed"),
        (at("dist.mlir"), ["-schedule=1f1b"],
         "schedule 1f1b has a chunk of blocks at each of stages 0, 1, but the blocks are cut into chunks at stages 0, 1, 0, 1: "
         "-schedule is what it was when they were cut"),
        (at("uncut.mlir"), ["-schedule=interleaved"],
         "schedule interleaved has a chunk of blocks at each of stages 0, 1, 0, 1, but the blocks are cut into chunks at stages 0, 1: "
         "-schedule is what it was when they were cut")):
        said = execute([dsopt, source, "-plan", f"-data={data}", *options], status=1).stderr
        check(words in said and said.count("\n") <= 2, f"{options}: {said}, expected {words}")
print("checkpoints, evaluation and printed stages; what cannot be cut is refused")
