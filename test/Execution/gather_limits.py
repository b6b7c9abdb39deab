"""What DeepSpeed's keys say of gathers, of parameters that stay whole and of buckets: each does what it says, by
the plan; what is planned is what the arena has; and the bits are those of the run without any.

usage: gather_limits.py DSOPT
"""
import json
import os
import sys
import tempfile

from runs import Run, check, execute, model
from sampled import sampled

dsopt = sys.argv[1]
LIMITS = ("-param-persistence-threshold=200", "-reduce-bucket-size=5000", "-gather-bucket-size=3000", "-max-live-parameters=54000",
          "-max-reuse-distance=0", "-max-reuse-distance=1000000000", "-max-reuse-distance=70000 -max-live-parameters=66000",
          "-prefetch=3 -prefetch-bucket-size=20000", "-prefetch=2 -max-live-parameters=66000",
          "-max-reuse-distance=1000000000 -device-memory=4700000", "-device-memory=4700000")
LAYOUTS = {"gpt2-tiny": ("-dp=2", "-dp=2 -pp=2", "-dp=2 -offload-optimizer=cpu -offload-params=cpu", "-dp=4 -recompute=full"),
           "bert-tiny": ("-dp=2",)}


def plan(path, *options):
    return json.loads(execute([dsopt, path, "-plan=json", "-zero=3", *options]).stdout)["ranks"]


with tempfile.TemporaryDirectory() as folder:
    log = os.path.join(folder, "log.jsonl")
    for name, layouts in LAYOUTS.items():
        path, data = model(name)
        hashes = set()
        for layout in layouts:
            ranks = int(layout[4])
            common = [f"-data={data}", f"-micro-batches={8 // ranks}", "-reduction-shards=4", *layout.split()]
            for limit in sampled(("", *LIMITS), 5) if layout != layouts[0] else ("", *LIMITS):
                # Of other layouts and models that take more.
                if "-device-memory" in limit and (name, layout) != ("gpt2-tiny", "-dp=2"):
                    continue
                execute([dsopt, path, "-run", "-quiet", "-zero=3", "-steps=3", f"-log={log}", *common, *limit.split()])
                run = Run(log)
                hashes.add(run.hash)
                planned = [rank["memory"]["total"] for rank in plan(path, *common, *limit.split())]
                check(planned == run.steps[0]["peak_bytes"], f"{name} {layout} {limit}: {planned} planned, {run.steps[0]['peak_bytes']} measured")
        check(len(hashes) == 1, f"{name}: {hashes}")
        print(f"{name}: {len(layouts)} layouts, one hash")

    path, data = model("gpt2-tiny")
    common = [f"-data={data}", "-micro-batches=4", "-dp=2"]
    none = plan(path, *common)[0]

    # What memory is left between two windows is spent on what is needed again soon.
    def whole_plan(*options):
        found = json.loads(execute([dsopt, path, "-plan=json", "-zero=3", *common, *options]).stdout)
        return found["ranks"][0]["memory"]["total"], found["ranks"][0]["traffic"]["all_gather"], found["predicted_step_ms"] + found["predicted_exposed_ms"]

    (least, sent, ms), (most, once, _) = whole_plan("-gather-window=1"), whole_plan("-gather-window=4")
    for part in (1, 2, 3):
        budget, before = least + (most - least) * part // 4, sent
        bytes_, sent, longest = whole_plan(f"-device-memory={budget}")
        check(bytes_ <= budget and once < sent < before and longest <= ms + 1e-6, f"{budget}: {bytes_} bytes, {sent} gathered of {before}, {longest} ms of {ms}")
        execute([dsopt, path, "-run", "-quiet", "-zero=3", "-steps=3", f"-log={log}", *common, f"-device-memory={budget}"])
        check(Run(log).steps[0]["peak_bytes"][0] <= budget, f"{budget}: {Run(log).steps[0]['peak_bytes']}")
    print(f"{least} to {most} bytes: {sent} bytes are gathered, {once} with all")

    # What stays whole takes its other half's bytes, and is gathered once in place of for each use.
    listed = json.loads(execute([dsopt, path, f"-data={data}", "-list-parameters=json"]).stdout)
    small = sum(one["bytes"] // 4 for one in listed if one["use"] == "trained" and one["bytes"] // 4 <= 200)
    whole = plan(path, *common, "-param-persistence-threshold=200")[0]
    more = whole["memory"]["parameters"] - none["memory"]["parameters"]
    check(more == 2 * small > 0, f"{more} bytes more of parameters, expected {2 * small}")
    less = none["traffic"]["all_gather"] - whole["traffic"]["all_gather"]
    check(less > 0, f"{none['traffic']} {whole['traffic']}")
    print(f"parameters of at most 200 elements: {small} elements, {more} bytes more of a rank's memory, {less} bytes less to gather")
    everything = plan(path, *common, "-param-persistence-threshold=1000000")[0]
    two = json.loads(execute([dsopt, path, "-plan=json", "-zero=2", *common]).stdout)["ranks"][0]
    check({**everything["memory"], "padding": 0} == {**two["memory"], "padding": 0} and everything["traffic"] == two["traffic"], f"{everything} {two}")

    # Kept from one use to the next, each bucket is gathered once a step.
    kept = plan(path, *common, "-max-reuse-distance=1000000000")[0]
    parameters = 4 * json.loads(execute([dsopt, path, "-plan=json", *common]).stdout)["parameters"]
    check(kept["traffic"]["all_gather"] == parameters // 2, f"{kept['traffic']} {parameters}")
    # Under a budget as much as fits.
    some = plan(path, *common, "-max-reuse-distance=1000000000", f"-device-memory={(none['memory']['total'] + kept['memory']['total']) // 2}")[0]
    check(kept["traffic"]["all_gather"] < some["traffic"]["all_gather"] < none["traffic"]["all_gather"], f"{some['traffic']}")

    # Fewer bytes are whole at once, to the point where one run alone needs more.
    limited = plan(path, *common, "-max-live-parameters=54000")[0]
    check(limited["memory"]["buffers"] < none["memory"]["buffers"], f"{limited['memory']} {none['memory']}")
    said = execute([dsopt, path, "-plan", "-zero=3", *common, "-max-live-parameters=30000"], status=1).stderr
    check("gathered elements of parameters at once, more than -max-live-parameters=30000 allows" in said, said)
    said = execute([dsopt, path, "-plan", "-zero=3", *common, "-reduce-bucket-size=5000"]).stderr
    check("-reduce-bucket-size=5000, but 13 parameters have more elements" in said, said)
