"""Logs that lie on disks: dsopt-report shows all that is in them, a run is compared with one, and a run that goes on appends to it.

usage: log.py DSOPT DSOPT-REPORT
"""
import json
import os
import sys
import tempfile

from formats import ARCH, READ, check, execute, fixture, refused

dsopt, report = sys.argv[1:]
GETS = {"v1": READ}
FIGURES = ["loss", "learning rate", "gradient norm", "samples per second", "milliseconds of a step", "memory", "traffic", "memory over time",
           "gradient norms by parameter"]
WORDS = ["evaluation", "dp 2, pp 1, zero 2", "model.onnx", "cosine"]

with tempfile.TemporaryDirectory() as folder:
    page, log = os.path.join(folder, "page.html"), os.path.join(folder, "run.jsonl")
    for version, gets in GETS.items():
        old = fixture(version, "run.jsonl")
        text = open(old).read()
        lines = [json.loads(line) for line in text.splitlines()]
        if gets is not READ:
            refused([report, old, "-o", page], gets)
            continue
        execute([report, old, "-o", page])
        shown = open(page).read()
        for words in [*(f"<figcaption>{caption}</figcaption>" for caption in FIGURES), *WORDS, lines[-1]["end"]["weights_hash"][:16]]:
            check(words in shown, f"the page of {version}'s log lacks '{words}'")
        check("could not be read" not in shown and "incomplete" not in shown, f"the page of {version}'s log complains")

        # Cut where the checkpoint is: the run goes on in it, beside the whole one.
        kept = [line for line in text.splitlines(keepends=True) if json.loads(line).get("step", 0) < 5 and not line.startswith('{"end"')]
        open(log, "w").writelines(kept)
        done = execute([dsopt, fixture(version, "model.onnx"), f"-data={fixture(version, 'data.npz')}", ARCH, "-run", "-steps=10", "-lr=0.05", "-dp=2", "-zero=2",
                        "-shuffle", "-seed=3", "-lr-schedule=cosine", "-warmup-steps=2", "-grad-clip=1", "-log-norms",
                        f"-eval-data={fixture(version, 'data.npz')}", "-eval-every=4", f"-resume={fixture(version, 'checkpoint')}", f"-log={log}", f"-compare={old}"])
        added = open(log).read()
        check(added.startswith("".join(kept)), f"what was in {version}'s log is not there any more")
        rest = [json.loads(line) for line in added[len("".join(kept)):].splitlines()]
        check([line["step"] for line in rest if "loss" in line] == [5, 6, 7, 8, 9], f"steps that were added: {rest}")
        # Where kernels change bits the steps are compared all the same; their losses stay near.
        (found,) = [line["compare"] for line in rest if "compare" in line]
        check(found["steps"] == 5 and found["evaluations"] == 2 and found["largest"] < 1e-5, f"{found}: {done.stdout}")
        execute([report, log, "-o", page])
        check("10 logged" in open(page).read() and "class='mark'" in open(page).read(), f"the page of {version}'s log does not show where the run went on")
    print(f"logs of {', '.join(GETS)}: each gets what is said of it")
