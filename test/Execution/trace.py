"""-trace: one file with a lane for each rank and stream, every action of the first steps
inside its step, sends before their receives, each run under its own block; the bits stay.

usage: trace.py DSOPT
"""
import json
import os
import sys
import tempfile

from runs import MPIRUN, check, execute, model, train

dsopt = sys.argv[1]
layout = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2"]
path, data = model("gpt2-tiny")
plan = json.loads(execute([dsopt, path, f"-data={data}", "-plan=json", *layout]).stdout)
with tempfile.TemporaryDirectory() as folder:
    plain = train(dsopt, "gpt2-tiny", *layout, "-steps=3")
    for prefix, steps, traced in (((), 3, 3), ((), 25, 20), ((*MPIRUN, "4"), 3, 3)):
        path = os.path.join(folder, "trace.json")
        run = train(dsopt, "gpt2-tiny", *layout, f"-steps={steps}", f"-trace={path}", prefix=prefix)
        check(steps > 3 or run.hash == plain.hash, "tracing changes the bits")
        events = json.load(open(path))["traceEvents"]
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        ranks = [e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"]
        check(len(ranks) == 4 and "rank 3" in ranks[3], f"ranks {ranks}")
        slices = [e for e in events if e["ph"] == "X"]
        for rank in range(4):
            bounds = {e["args"]["step"]: (e["ts"], e["ts"] + e["dur"]) for e in slices if e["pid"] == rank and names[rank, e["tid"]] == "steps"}
            check(sorted(bounds) == list(range(traced)), f"rank {rank} has steps {sorted(bounds)}")
            mine = [e for e in slices if e["pid"] == rank and e["name"][:5] != "step "]
            for event in mine:
                begin, end = bounds[event["args"]["step"]]
                check(begin - 0.01 <= event["ts"] and event["ts"] + event["dur"] <= end + 0.01, f"{event} lies outside its step {begin} to {end}")
            for lane in ("compute", "comm"):
                times = sorted((e["ts"], e["ts"] + e["dur"]) for e in mine if names[rank, e["tid"]] == lane)
                check(times and all(a[1] <= b[0] + 0.01 for a, b in zip(times, times[1:])), f"rank {rank}: {lane} overlaps itself")
            kinds = {e["cat"] for e in mine}
            # Equal blocks share their code, not their names.
            (first, last), = plan["ranks"][rank]["blocks"]
            runs = {e["name"] for e in mine if e["cat"] == "run"}
            expected = {f"block {block} {phase}" for block in range(first, last) for phase in "FBW"}
            check(runs <= expected and {r[:-2] for r in runs} == {r[:-2] for r in expected}, f"rank {rank} runs {runs}, has blocks {first} to {last}")
            check(kinds >= {"run", "gather", "reduce", "update", "agree"}, f"rank {rank} has only {kinds}")
        starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
        ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
        check(starts and starts.keys() == ends.keys(), f"{len(starts)} sends, {len(ends)} receives")
        print(f"{' '.join(prefix[:1]) or 'alone'}, {steps} steps: {len(slices)} slices, {len(starts)} arrows, {os.path.getsize(path)} bytes")
    # Every kind of action has its name, folded statistics too.
    path = os.path.join(folder, "statistics.json")
    train(dsopt, "resnet-tiny", "-batchnorm=train", "-micro-batches=4", "-steps=2", f"-trace={path}")
    kinds = {e["cat"] for e in json.load(open(path))["traceEvents"] if e["ph"] == "X"}
    check("fold" in kinds and kinds <= {"step", "waiting", "input", "run", "gather", "reduce", "all_to_all", "add", "norm", "agree", "update",
                                        "map", "fold"}, f"the trace has {kinds}")
