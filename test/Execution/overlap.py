"""Gathers as far ahead as fit and pay, against the rule of DeepSpeed's own compiler: at every budget the predicted step
takes no longer, whatever part of the budget that rule is told of; the bits are the same. Remarks say what was not
possible.

usage: overlap.py DSOPT PLUGIN. PLUGIN has the pass greedy-gathers.
"""
import json
import os
import sys
import tempfile

from runs import SOURCE, Run, check, execute, model
from sampled import sampled

dsopt = sys.argv[1]
PLUGIN = f"-load-pass-plugin={sys.argv[2]}"
GREEDY = "-insert-pass=before:prefetch-gathers:greedy-gathers"


def plan(path, *options):
    """Bytes of the largest rank, and the predicted milliseconds of a step with all that is sent; None where nothing fits."""
    done = execute([dsopt, path, "-plan=json", "-zero=3", "-dp=2", "-micro-batches=4", *options], status=None)
    if done.returncode:
        check("more than the" in done.stderr, done.stderr)
        return None
    result = json.loads(done.stdout)
    return max(rank["memory"]["total"] for rank in result["ranks"]), result["predicted_step_ms"] + result["predicted_exposed_ms"]


def greedy(path, budget, *options):
    """The shortest step that the rule finds within a budget, whatever part of it the rule is told of."""
    found = []
    for part in (0.6, 0.8, 1.0, 1.2):
        planned = plan(path, *options, "-prefetch=0", "-gather-window=1", PLUGIN, f"{GREEDY}{{device-memory={int(part * budget)}}}", f"-device-memory={budget}")
        if planned:
            found.append(planned)
    return min(found, key=lambda planned: planned[1]) if found else None


for name in sampled(("gpt2-tiny", "bert-tiny", "gpt.onnx"), 2):
    path, data = model(name) if name != "gpt.onnx" else (os.path.join(SOURCE, "examples", name), None)
    options = [f"-data={data}"] if data else []
    base, kept = plan(path, *options, "-prefetch=0"), plan(path, *options, "-gather-window=4")
    for step in sampled(range(5), 2):
        budget = base[0] + (kept[0] - base[0]) * step // 4
        ours, theirs = plan(path, *options, f"-device-memory={budget}"), greedy(path, budget, *options)
        check(ours and ours[0] <= budget, f"{name}: {ours} within {budget}")
        check(theirs is None or ours[1] <= theirs[1] * 1.0001, f"{name} within {budget}: {ours}, the greedy rule {theirs}")
        print(f"{name} within {budget}: {ours[0]} bytes, {ours[1]:.4f} ms; the greedy rule", f"{theirs[0]} bytes, {theirs[1]:.4f} ms" if theirs else "does not fit")
    first, last = (plan(path, *options, f"-device-memory={bytes}")[1] for bytes in (base[0], kept[0]))
    check(last <= first, f"{name}: {first} ms within {base[0]} bytes, {last} ms within {kept[0]}")
    free = plan(path, *options, "-prefetch=0", PLUGIN, GREEDY)
    check(plan(path, *options, f"-device-memory={free[0]}")[1] <= free[1] * 1.0001, f"{name}: the greedy rule without a budget, {free}")

with tempfile.TemporaryDirectory() as folder:
    log = os.path.join(folder, "log.jsonl")
    path, data = model("gpt2-tiny")
    hashes = set()
    for options in ([], ["-prefetch=0", PLUGIN, GREEDY], ["-prefetch=0", PLUGIN, GREEDY, "-device-memory=5m"], ["-device-memory=3321216"], ["-device-memory=3400000"]):
        execute([dsopt, path, "-run", "-quiet", "-zero=3", "-dp=2", "-micro-batches=4", "-steps=3", f"-data={data}", f"-log={log}", *options])
        hashes.add(Run(log).hash)
    check(len(hashes) == 1, f"{hashes}")
    print("one hash")

    def said(*options):
        return execute([dsopt, path, "-plan", f"-data={data}", "-micro-batches=4", *options]).stderr

    layout = ["-dp=2", "-zero=3"]
    check("remark" not in said(*layout), "remarks without -remarks")
    check("stage 0: @b0.full is not gathered ahead of its run: no run comes before it" in said("-remarks", *layout), said("-remarks", *layout))
    check("gathers start 0 runs ahead: 1 would need" in said("-remarks", *layout, "-device-memory=3330000"), "no remark on memory")
    check("(4 gathers a step): -max-live-parameters=54000" in said("-remarks", *layout, "-max-live-parameters=54000"), "no remark on a limit")
    check("stage 0: a copy follows the last run" in said("-remarks", "-offload-optimizer=cpu"), "no remark on copies")
    check("a reduction is waited for at once: exec.add touches @tied.m.lm_head.weight.grad.0" in said("-remarks", "-dp=2"), "no remark on reductions")
