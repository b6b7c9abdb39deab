"""Large weights in tiles, each gathered, added up and updated by itself: the bits of a run that has them whole, in the bytes that
were planned and far fewer of the device's; checkpoints go both ways.

usage: tiles.py DSOPT
"""
import json
import os
import re
import sys
import tempfile

import numpy as np

from own_models import check_equal, evaluate, run, wide_layers
from runs import check, execute
from sampled import sampled

dsopt = sys.argv[1]
KINDS = {"device": "arena_bytes", "host": "host_bytes", "disk": "disk_bytes"}
ROWS, WIDTH, WIDE = 6, 40, 20001  # the widths of tiles are 2048 rows, their last one has fewer
HOST = ["-offload-optimizer=cpu", "-offload-params=cpu"]
TILES = "-tile-products=100k"


def build(folder, rows=ROWS):
    return wide_layers(folder, rows, 24, WIDTH, WIDE, opset=17, batches=16)


with tempfile.TemporaryDirectory() as folder:
    path, data = build(folder)
    disk = ["-offload-optimizer=nvme", "-offload-params=nvme", f"-nvme-path={folder}"]

    def batch(layout):
        return [f"-micro-batches={2 if '-dp=2' in layout else 4}", "-reduction-shards=2", "-accumulate=local"]

    def planned(*options, status=0):
        done = execute([dsopt, path, f"-data={data}", "-plan=json", *options], status)
        return json.loads(done.stdout) if status == 0 else done.stderr

    def bytes_of(rank, kind):
        return sum(memory["bytes"] for memory in rank["memories"] if memory["kind"] == kind)

    def device(*options):
        return max(bytes_of(rank, "device") for rank in planned(*options)["ranks"])

    def train(*options, steps=3):
        return run(dsopt, path, data, *options, f"-steps={steps}")

    # Each computation in layouts with tiles, against one rank without.
    layouts = (["-zero=3", "-dp=2"], ["-zero=2", "-dp=2"], ["-dp=2", "-pp=3"], [], ["-zero=3", *HOST], ["-zero=3", "-dp=2", "-pp=2", *HOST],
               ["-zero=3", "-dp=2", *disk], ["-zero=3", "-dp=2", "-recompute=full", "-gather-window=2"])
    for computation, chosen in ((["-optimizer=adamw"], sampled(layouts, 5)), (["-optimizer=sgd", "-momentum=0.9", "-grad-clip=0.1"], layouts[:1] + layouts[5:7]),
                                (["-optimizer=adam", "-precision=bf16", "-grad-clip=0.1"], layouts[:1] + layouts[4:6]),
                                (["-optimizer=sgd", "-precision=bf16", "-gradient-type=param"], layouts[:1]),
                                (["-freeze=up"], layouts[:1]), (["-freeze=in", "-freeze=down"], layouts[:1] + layouts[4:5])):
        whole = train(*batch([]), *computation, "-tile-products=none")
        check(len(set(whole.loss_text)) == 3, f"{computation}: losses {whole.loss_text}")
        for layout in chosen:
            options = [*layout, *batch(layout), *computation]
            plan = planned(*options, TILES)
            frozen = sum(option.startswith("-freeze") for option in computation)
            check(plan["tiles"] == 20 and plan["largest_tile"] == 2048 * WIDTH, f"{options}: {plan['tiles']} tiles of {plan['largest_tile']}")
            tiled = train(*options, TILES)
            check_equal(f"{options} in tiles", tiled, whole)
            for kind, key in KINDS.items():
                expected = [bytes_of(rank, kind) for rank in plan["ranks"]]
                check(tiled.head["plan"].get(key, [0] * len(expected)) == expected, f"{options}: {kind} has {tiled.head['plan'].get(key)}, planned {expected}")
            for name, value in whole.weights.items():
                check(np.array_equal(tiled.weights[name], value), f"{options}: {name} differs")
            check(list(tiled.weights) == list(whole.weights), f"{options}: {list(tiled.weights)}")
    print("tiles have the bits of the whole, in the bytes that were planned")

    # Where parameters are gathered, the device holds a tile, its gradient and what is on the way beside activations.
    base, sizes = ["-dp=2", "-zero=3", "-micro-batches=1", "-prefetch=0"], {}
    for name, offload in (("zero", []), ("cpu", HOST), ("nvme", disk)):
        sizes[name] = [device(*base, *offload, option) for option in ("-tile-products=none", TILES)]
        kept = 0 if offload else 3 * 4 * (2 * WIDE * WIDTH) // 2  # parameters and moments, of which each rank has a half
        none, tiled = (size - kept for size in sizes[name])
        check(tiled < none / 3, f"{name}: {sizes[name]} bytes of the device, {kept} of them kept")
    print(f"bytes of the device without tiles and with: {sizes}")

    # Automatically where it would not fit, with the largest tiles that do; what is least is said, and is it.
    budget = sum(sizes["cpu"]) // 2
    automatic = planned(*base, *HOST, f"-device-memory={budget}")
    check(automatic["tiles"] > 2 and automatic["largest_tile"] >= 2048 * WIDTH, f"{automatic['tiles']} tiles of {automatic['largest_tile']}")
    check_equal("automatic", train(*base, *HOST, f"-device-memory={budget}", "-reduction-shards=2", "-accumulate=local"),
                train("-micro-batches=2", "-reduction-shards=2", "-accumulate=local"))
    check(planned(*base, *HOST, f"-device-memory={sizes['cpu'][0]}")["tiles"] == 0, "tiles where all fits without")
    refused = planned(*base, *HOST, f"-device-memory={budget}", "-tile-products=none", status=1)
    check(re.search(r"note: -tile-products=auto fits \(\d+ bytes\)", refused), refused)
    refused = planned(*base, *HOST, "-device-memory=64k", status=1)
    least = int(re.search(r"the least is (\d+) bytes", refused)[1])
    check(least <= sizes["cpu"][1] < sizes["cpu"][0] / 3, refused)

    # Saved with tiles and gone on with without, and the other way; norms of each parameter, evaluation, delayed updates.
    for more in ([], ["-offload-optimizer=cpu", "-delayed-update=1"]):
        options = ["-grad-clip=0.1", *more]
        one = ["-micro-batches=2", "-reduction-shards=2", "-accumulate=local", "-tile-products=none", *options]
        tiles = [*base, "-reduction-shards=2", "-accumulate=local", TILES, *options]
        logs = []
        alone = [option for option in one if not option.startswith("-tile")] + [TILES]
        for name, first, then in (("tiled", tiles, one), ("whole", one, tiles), ("alone", alone, one)):
            saved = os.path.join(folder, name + str(len(more)))
            train(*first, f"-save={saved}", *(["-save-async"] if more else []))
            logs.append(train(*then, f"-resume={saved}", steps=6))
            check(evaluate(dsopt, path, data, *tiles[:-len(options)], f"-resume={saved}") == evaluate(dsopt, path, data, *one[:-len(options)], f"-resume={saved}"),
                  "another loss of an evaluation")
        check_equal("resumed", logs[0], train(*one, steps=6), skipped=3)
        check_equal("resumed in tiles", logs[1], logs[0])
        check_equal("of one rank", logs[2], logs[0])
        check([step["grad_norm"] for step in logs[0].steps] == [step["grad_norm"] for step in logs[1].steps], "other norms")
        models = {open(os.path.join(folder, f"{name}{len(more)}", "step-00000003", "model.safetensors"), "rb").read() for name in ("tiled", "whole", "alone")}
        check(len(models) == 1, "other parameters in a checkpoint")

    # A micro-batch of one row: products are of other kinds, and stay whole.
    path, data = build(folder, rows=1)
    check(planned(*base, TILES)["tiles"] == 0, "tiles of one row")
    for option in ("0", "-1", "many"):
        done = execute([dsopt, path, "-plan", f"-tile-products={option}"], status=1)
        check("expected none, auto or a number of elements" in done.stderr, done.stderr)
print("chosen automatically, said as a remedy, saved and resumed both ways")
