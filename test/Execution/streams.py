"""A program by hand with a second communication stream: gathers are on it, over a communicator of its own. Waits,
places and the runtime's queues follow, the bits stay the same, and a wait left out is refused. With one engine as with
the other.

usage: streams.py DSOPT DSOPT-OPT
"""
import json
import os
import re
import sys
import tempfile

from runs import MPIRUN, Run, check, execute, model, train

dsopt, opt = sys.argv[1:]
path, data = model("mlp")
layout = ["-dp=2", "-zero=3", "-micro-batches=2", "-steps=3"]
reference = train(dsopt, "mlp", *layout)


def rewrite(text):
    text = re.sub(r"^( *)exec\.stream @comm communication$", r"\g<0>\n\1exec.stream @comm2 communication", text, flags=re.M)
    text = re.sub(r"^( *exec\.communicator @dp)( .*)$", r"\g<0>\n\g<1>2\2", text, flags=re.M)
    text = re.sub(r"^ *exec\.wait .*\n", "", text, flags=re.M)  # insert-waits writes those that it needs now
    return re.sub(r"(= exec\.gather [^\n]* over @dp)\s+on @comm$", r"\g<1>2 on @comm2", text, flags=re.M)


with tempfile.TemporaryDirectory() as folder:
    first, second, planned, broken, log, trace = (os.path.join(folder, name) for name in ("1.mlir", "2.mlir", "3.mlir", "4.mlir", "log.jsonl", "trace.json"))
    execute([dsopt, path, *layout, f"-data={data}", "-emit=exec", "-o", first])
    text = rewrite(open(first).read())
    moved = text.count("on @comm2")
    check(moved == open(first).read().count("= exec.gather") > 0 and "= exec.reduce" in text, f"{moved} gathers are moved")
    open(second, "w").write(text)
    execute([opt, "-insert-waits", "-plan-memory", "-verify-exec", second, "-o", planned])
    for prefix in ([], [*MPIRUN, "2"]):
        execute([*prefix, dsopt, planned, "-run", f"-data={data}", f"-log={log}", f"-trace={trace}", "-quiet"])
        run = Run(log)
        check(run.hash == reference.hash, f"with two streams the weights are {run.hash}, expected {reference.hash}")
        check(run.losses == reference.losses, f"with two streams the losses are {run.losses}, expected {reference.losses}")
        events = json.load(open(trace))
        events = events["traceEvents"] if isinstance(events, dict) else events
        lanes = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
        on = {kind: {lanes[event["pid"], event["tid"]] for event in events if event.get("cat") == kind} for kind in ("gather", "reduce")}
        check(on == {"gather": {"comm2"}, "reduce": {"comm"}}, f"gathers and reductions are on {on}")
    # No wait between the new stream and another can be left out.
    lines = open(planned).read().splitlines()
    gathers = {name for line in lines for name in re.findall(r"(%[\w.]+) = exec\.gather", line)}
    waits = [i for i, line in enumerate(lines) if (wait := re.match(r" *exec\.wait (%[\w.]+) on @(\w+)$", line)) and (wait[1] in gathers or wait[2] == "comm2")]
    check(len(waits) >= moved, f"{len(waits)} waits for {moved} gathers")
    for i in waits:
        open(broken, "w").write("\n".join(lines[:i] + lines[i + 1:]))
        said = execute([opt, "-verify-exec", broken, "-o", os.devnull], status=1).stderr
        check("without waiting for the" in said or "is alive at the same time" in said, f"without '{lines[i].strip()}': {said}")
    print(f"{moved} gathers a step on a stream of their own, one hash {reference.hash[:16]}; none of {len(waits)} waits can be left out")
