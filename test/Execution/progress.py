"""What a run prints: off a terminal lines that get rarer, or as -log-every says; on one a bar that stays below other
lines, with the last loss; at the end where all went.

usage: progress.py DSOPT
"""
import os
import re
import sys
import tempfile

from runs import Run, check, execute, model, on_terminal

dsopt = sys.argv[1]
path, data = model("mlp")

with tempfile.TemporaryDirectory() as folder:
    program, log, saved = f"{folder}/train", f"{folder}/run.jsonl", f"{folder}/saved"
    execute([dsopt, path, "-o", program])

    def run(*options):
        return [program, f"-data={data}", *options]

    def steps(text):
        return [int(step) for step in re.findall(r"^step (\d+)(?:/\d+)?  loss", text, re.M)]

    done = execute(run("-steps=133", f"-log={log}", f"-save={saved}", f"-save-weights={folder}/w.safetensors"))
    expected = [*range(10), *range(11, 20, 2), *range(24, 50, 5), *range(59, 100, 10), 119, 132]
    check(steps(done.stdout) == expected, f"lines of steps {steps(done.stdout)}, expected {expected}")
    check(len(Run(log).steps) == 133, "the log lacks steps")
    places = f"wrote weights to {folder}/w.safetensors, the last checkpoint to {saved}/step-00000133, the log to {log}"
    check(done.stdout.splitlines()[-1] == places, f"the last line is {done.stdout.splitlines()[-1]}, expected {places}")
    check(os.path.exists(f"{saved}/step-00000133"), os.listdir(saved))

    # A run that goes on begins with each step, too.
    done = execute(run("-steps=150", f"-resume={saved}"))
    check(steps(done.stdout) == [*range(133, 143), 143, 145, 147, 149], f"resumed: {steps(done.stdout)}")
    check("wrote" not in done.stdout, "a run that writes nothing says where")
    done = execute(run("-steps=30", "-log-every=7", f"-log={log}2"))
    check(steps(done.stdout) == [0, 7, 14, 21, 28, 29] == [step["step"] for step in Run(log + "2").steps], f"-log-every=7: {steps(done.stdout)}")
    done = execute(run("-steps=30", "-log-every=1"))
    check(steps(done.stdout) == [*range(30)], f"-log-every=1: {steps(done.stdout)}")
    check(execute(run("-steps=30", "-quiet", f"-log={log}3")).stdout == "", "-quiet")

    # On a terminal, the last bar is below the evaluation that came behind it, and what was drawn over is gone.
    text = on_terminal(120, run("-steps=12", f"-eval-data={data}", "-eval-every=6", "-eval-batches=2", f"-log={log}4"))
    screen = []
    for line in text.split("\n"):
        cells = ""
        for part in line.split("\r"):
            cells = part + cells[len(part):]
        screen.append(cells.rstrip())
    evaluations = [i for i, line in enumerate(screen) if re.match(r"step \d+  eval loss [\d.]+  \(2 micro-batches, [\d.]+ ms\)$", line)]
    check(len(evaluations) == 2, f"evaluations on the screen:\n{screen}")
    check(re.match(r"\[=+\] 12/12  loss [\d.]+ ", screen[evaluations[-1] + 1]), f"no last loss below the last evaluation:\n{screen}")
    check(sum("/12  loss" in line for line in screen) == 1, f"bars that were left behind:\n{screen}")
    check(f"the log to {log}4" in screen[evaluations[-1] + 2], f"the last line:\n{screen}")
print("lines of steps, bars and places")
