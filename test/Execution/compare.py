"""-compare=RUN.jsonl: equal bits are said to be equal, and where runs part is named.

usage: compare.py DSOPT
"""
import json
import subprocess
import sys
import tempfile

from runs import check, execute, model

dsopt = sys.argv[1]
path, data = model("gpt2-tiny")
with tempfile.TemporaryDirectory() as folder:
    first, second = f"{folder}/first.jsonl", f"{folder}/second.jsonl"

    def run(log, *options):
        text = execute([dsopt, path, "-run", f"-data={data}", f"-log={log}", "-grad-clip=1", "-lr=3e-3", "-reduction-shards=2", *options]).stdout
        lines = [json.loads(line) for line in open(log)]
        return next((line["compare"] for line in lines if "compare" in line), None), text

    evaluated = [f"-eval-data={data}", "-eval-every=2"]
    check(run(first, "-dp=1", "-micro-batches=2", "-steps=4", "-log-norms", *evaluated)[0] is None, "a comparison that nobody asked for")
    found, text = run(second, "-dp=2", "-zero=3", "-micro-batches=1", "-steps=4", "-log-norms", f"-compare={first}", *evaluated)
    check(found == {"with": first, "steps": 4, "same": 4, "first": -1, "largest": 0, "evaluations": 2, "same_evaluations": 2}, f"{found}")
    check("4 of 4 steps have the same bits, 2 of 2 evaluations" in text, text)
    found, text = run(second, "-dp=1", "-micro-batches=2", "-steps=6", "-log-norms", f"-compare={first}", "-warmup-steps=3", *evaluated)
    check(found["same"] == 0 and found["first"] == 0 and found["largest"] > 0 and found["steps"] == 4, f"{found}")
    check("step 0: parameter norms of '" in text and "more parameters" in text and "2 steps are not in it" in text, text)
    found, text = run(second, "-dp=1", "-micro-batches=2", "-steps=4", f"-compare={first}", "-warmup-steps=3")
    check(found["same"] == 1 and found["first"] == 1 and "step 1: loss 6." in text and "gradient norm" in text, f"{found} {text}")
    # A log may be compared with the run that replaces it.
    found, _ = run(first, "-dp=2", "-zero=1", "-micro-batches=1", "-steps=4", f"-compare={first}")
    check(found["same"] == 4, f"{found}")
    for name, content in (("absent", None), ("empty", ""), ("text", "hello\n")):
        if content is not None:
            open(f"{folder}/{name}", "w").write(content)
        done = subprocess.run([dsopt, path, "-run", f"-data={data}", f"-compare={folder}/{name}", "-dp=2"], capture_output=True, text=True)
        check(done.returncode == 1 and done.stderr.count("error: ") == 1 and name in done.stderr, f"{name}: {done.returncode} {done.stderr}")
print("equal runs are equal, others part where they do")
