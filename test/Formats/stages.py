"""Texts of -emit that lie on disks: they are read back to the same text and trained from; what no dialect knows any more is refused with its line.

usage: stages.py DSOPT DSOPT-OPT
"""
import json
import os
import re
import sys
import tempfile

from formats import READ, check, execute, fixture, near, refused
from runs import Run

dsopt, opt = sys.argv[1:]
GETS = {"v1": {"graph": READ, "dist": "expected an axis: pp, edp, ep, sp or tp", "exec": "expected an axis: pp, edp, ep, sp or tp"},
        "v2": {"dist": READ, "exec": READ}}

with tempfile.TemporaryDirectory() as folder:
    log, changed = os.path.join(folder, "log.jsonl"), os.path.join(folder, "changed.mlir")
    for version, stages in GETS.items():
        expected = json.load(open(fixture(version, "expected.json")))["exec"]
        for stage, gets in stages.items():
            file = fixture(version, f"{stage}.mlir")
            run = [dsopt, file, "-run", f"-data={fixture(version, 'data.npz')}", f"-weights={fixture(version)}", f"-log={log}", "-quiet"]
            if gets is not READ:
                refused(run, f"{file}:", gets)
                continue
            text = open(file).read()
            # dsopt-opt breaks no lines.
            check(execute([opt, file]).stdout.split() == text.split(), f"{stage} of {version} reads back to another text")
            execute(run)
            near(Run(log).losses, expected, f"{stage} of {version}")
            # The last operation of the dialect, under a name that there is none of.
            last = [line for line in re.finditer(rf"\b{stage}\.(\w+) ", text)][-1]
            number = text.count("\n", 0, last.start()) + 1
            open(changed, "w").write(text[:last.start()] + f"{stage}.of_another_version " + text[last.end():])
            for command in ([dsopt, changed, "-run", run[3]], [opt, changed]):
                refused(command, f"changed.mlir:{number}:", "of_another_version")
    print(f"texts of {', '.join(GETS)}: each gets what is said of it")
