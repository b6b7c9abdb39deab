"""Recomputation: the bits of a run that keeps everything, in the bytes that were planned; a budget of exactly them is
enough, one of a page less is refused.

usage: recompute.py DSOPT
"""
import json
import re
import sys

from runs import check, execute, model, train
from sampled import sampled

dsopt = sys.argv[1]
PAGE = 4096
# Products and gelu; masks and embeddings of three kinds; statistics of batches; loops and pools.
MODELS = {"gpt2-tiny": 4, "bert-tiny": 4, "resnet-tiny": 4, "conv-lstm": 4}
LAYOUTS = ([], ["-zero=3", "-dp=2"], ["-zero=1", "-dp=2", "-pp=2", "-schedule=gpipe"], ["-zero=3", "-dp=2", "-pp=2"],
           ["-zero=2", "-dp=2", "-pp=2", "-schedule=interleaved"], ["-precision=bf16", "-dp=2"])


def planned(name, *options, status=0):
    """Bytes of the largest rank, or what is needed where the plan is refused."""
    path, data = model(name)
    done = execute([dsopt, path, f"-data={data}", "-plan=json", *options], status=None)
    if done.returncode:
        needed = re.search(r"needs (\d+) bytes", done.stderr)
        check(done.returncode == 1 and needed, f"{name} {options}: status {done.returncode}, {done.stderr}")
        return None, int(needed[1])
    plan = json.loads(done.stdout)
    return max(rank["memory"]["total"] for rank in plan["ranks"]), plan["flops_per_step"]


def curve(name, *options):
    path, data = model(name)
    text = execute([dsopt, path, f"-data={data}", "-plan=recompute", *options]).stdout
    return [(int(budget), float(ms)) for budget, ms in re.findall(r"^ *\d+ % +(\d+) +([\d.]+)", text, re.M)]


def follows_curve(*options):
    """What the curve says of a budget is what a run under it would take, however far ahead it chooses to gather."""
    path, data = model("gpt2-tiny")
    points = curve("gpt2-tiny", *options)
    for before, (budget, ms) in zip([(0, 0), *points], points):
        plan = json.loads(execute([dsopt, path, f"-data={data}", "-plan=json", *options, "-recompute=auto", f"-device-memory={budget}"]).stdout)
        # What lies between two lines may fit as well, and not all stages need to recompute as much.
        found = plan["predicted_step_ms"] + plan["predicted_exposed_ms"]
        least = 0 if "-pp=2" in options else before[1]
        check(least - 0.06 <= found <= ms + 0.06, f"{options} {budget}: {found} ms, the curve says {ms} behind {before[1]}")
    below = planned("gpt2-tiny", *options, "-recompute=auto", f"-device-memory={points[-1][0] - PAGE}")
    check(below == (None, points[-1][0]), f"{options}: a page less than {points[-1]} is {below}")
    check(len(points) > 2, f"{options}: {points}")


for layout in sampled((LAYOUTS[3], LAYOUTS[1], ["-zero=3", "-dp=2", "-prefetch=3"], ["-zero=3", "-dp=2", "-offload-optimizer=cpu", "-offload-params=cpu"]), 1):
    follows_curve(*layout, "-micro-batches=4")
print("the curve is what runs take", flush=True)
for name, count in sampled(MODELS.items(), 2):
    hashes, sizes = {}, []
    # One model in all layouts, the others where they differ most.
    layouts = sampled(LAYOUTS, 2) if name == "gpt2-tiny" else sampled([LAYOUTS[3], LAYOUTS[0], LAYOUTS[-1]], 1)
    for layout in layouts:
        dp = 2 if "-dp=2" in layout else 1
        options = [*layout, f"-micro-batches={count // dp}", "-reduction-shards=2", "-prefetch=1", "-gather-window=1", "-accumulate=local"]
        kept, flops = planned(name, *options, "-recompute=none")
        full, more = planned(name, *options, "-recompute=full")
        check(more > flops, f"{name} {layout}: nothing runs again")
        _, least = planned(name, *options, "-recompute=auto", "-device-memory=64k")
        check(least <= min(kept, full), f"{name} {layout}: auto needs {least}, none {kept} and full {full}")
        points = curve(name, *options)
        check(points[0][0] == kept and points[-1][0] == least and sorted(points, reverse=True) == points,
              f"{name} {layout}: the curve {points} does not fall from {kept} to {least}")
        modes = (("none", kept), ("full", full), ("auto", least), ("auto", (kept + least) // 2))
        for mode, budget in modes:
            exact = [*options, f"-recompute={mode}", f"-device-memory={budget}"]
            run = train(dsopt, name, *exact, "-steps=3")
            hashes.setdefault("bf16" if "-precision=bf16" in layout else "fp32", set()).add((run.hash, *run.loss_text))
            used = max(run.head["plan"]["arena_bytes"])
            check(used == budget if budget in (kept, full, least) else used <= budget,
                  f"{name} {exact}: {used} bytes of {budget}")
            if budget in (kept, full, least) and (mode, budget) != modes[-1]:
                below = planned(name, *options, f"-recompute={mode}", f"-device-memory={budget - PAGE}")
                check(below == (None, budget), f"{name} {exact}: a page less is {below}")
        sizes.append(f"{least / kept:.2f}")
    check(all(len(found) == 1 for found in hashes.values()), f"{name}: {hashes}")
    print(f"{name}: one hash in {len(layouts)} layouts; least bytes of those without recomputation: {' '.join(sizes)}", flush=True)
