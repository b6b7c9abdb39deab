"""A stream's folder that lies on a disk, all of its steps written: a run takes them, and the learning rate that each says.

usage: stream.py DSOPT
"""
import json
import os
import sys
import tempfile

from formats import ARCH, READ, check, execute, fixture, near, refused
from runs import Run

dsopt = sys.argv[1]
GETS = {"v1": READ}

with tempfile.TemporaryDirectory() as folder:
    log = os.path.join(folder, "log.jsonl")
    for version, gets in GETS.items():
        command = [dsopt, fixture(version, "model.onnx"), "-run", "-quiet", ARCH, "-dp=2", "-lr-schedule=stream", f"-data=stream:{fixture(version, 'stream')}",
                   f"-log={log}"]
        if gets is not READ:
            refused(command, gets)
            continue
        execute(command)
        run = Run(log)
        near(run.losses, json.load(open(fixture(version, "expected.json")))["stream"], f"the stream of {version}")
        check([step["lr"] for step in run.steps] == [0.05, 0.025, 0.0125], f"rates of {version}: {run.steps}")
    print(f"streams of {', '.join(GETS)}: each gets what is said of it")
