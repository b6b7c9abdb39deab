"""What a step writes to disk last goes on while the next one begins: the bits stay where the disk is slow, and what touches the
same bytes waits for it.

usage: trailing.py DSOPT FOLDER
"""
import json
import os
import shutil
import subprocess
import sys

from runs import Run, check, execute, model, train, varied

dsopt, folder = sys.argv[1:]
shutil.rmtree(folder, ignore_errors=True)
disk, trace, log = (os.path.join(folder, name) for name in ("disk", "trace.json", "log.jsonl"))
os.makedirs(disk)
path, data = model("gpt2-tiny")
OPTIMIZER = ["-offload-optimizer=nvme", f"-nvme-path={disk}", "-sub-group-size=4096"]
PARAMETERS = ["-zero=3", *OPTIMIZER, "-offload-params=nvme"]


def slowly(*options, delay=10):
    """With a disk that takes so many ms for what is written."""
    subprocess.run(varied([dsopt, path, "-run", f"-data={data}", f"-log={log}", "-quiet", *options]), check=True, timeout=300,
                   env={**os.environ, "DSOPT_FAULT": f"ringWrite,every=1:delay={delay}"})
    return Run(log)


def overlaps():
    """Steps that have begun while the one before still wrote, by rank."""
    events = json.load(open(trace))["traceEvents"]
    begin, written = {}, {}
    for event in events:
        if event["ph"] != "X":
            continue
        key = event["pid"], int(event["args"]["step"])
        if event["name"].startswith("step "):
            begin[key] = event["ts"]
        elif event["cat"] == "copy":
            written[key] = max(written.get(key, 0), event["ts"] + event["dur"])
    return [key for key in begin if written.get((key[0], key[1] - 1), 0) > begin[key]]


base = ["-steps=4", "-micro-batches=1"]
expected = train(dsopt, "gpt2-tiny", *base)
clipped = train(dsopt, "gpt2-tiny", *base, "-grad-clip=1")
for reference, options in ((expected, OPTIMIZER), (expected, PARAMETERS), (clipped, [*OPTIMIZER, "-grad-clip=1"]), (clipped, [*PARAMETERS, "-grad-clip=1", "-pp=2"]),
                           (expected, [*PARAMETERS, "-offload-activations=cpu"]), (expected, [*OPTIMIZER, "-offload-activations=cpu", "-prefetch=2"])):
    run = slowly(*base, *options, f"-trace={trace}")
    check((run.hash, run.loss_text) == (reference.hash, reference.loss_text), f"{options}: other bits")
    check(overlaps(), f"{options}: no step begins while the one before is written")
print("the next step begins while the last one is written: the same bits", flush=True)

# Whatever looks at the state between two steps sees all of it: checkpoints, norms, evaluations. In whole buckets, so that what
# is late is late enough.
PARAMETERS.remove("-sub-group-size=4096")
for options in (["-save-every=1"], ["-save-every=1", "-save-async"]):
    check(slowly(*base, *PARAMETERS, f"-save={folder}/c", "-save-existing=aside", *options, delay=60).hash == expected.hash, f"{options}: other weights")
    execute([dsopt, f"-check={folder}/c"])
    resumed = train(dsopt, "gpt2-tiny", *base, f"-resume={folder}/c/step-00000002")
    check(resumed.hash == expected.hash, f"{options}: a checkpoint of step 2 has other state")
norms = train(dsopt, "gpt2-tiny", *base, "-log-norms").steps
check([step["param_norms"] for step in slowly(*base, *PARAMETERS, "-log-norms", delay=60).steps] == [step["param_norms"] for step in norms], "other norms of parameters")
evaluated = slowly(*base, *PARAMETERS, f"-eval-data={data}", "-eval-every=1", delay=60)
check(evaluated.hash == expected.hash, "an evaluation between steps changes what is trained")
print("checkpoints, norms and evaluations see what was written")
