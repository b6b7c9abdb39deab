"""-plan: 80 columns and a legend; wider on a wider terminal, or where COLUMNS says so.

usage: plan_width.py DSOPT
"""
import os
import sys
import tempfile

from runs import check, execute, model, on_terminal

dsopt = sys.argv[1]
path, _ = model("gpt2-tiny")
os.environ.pop("COLUMNS", None)
EIGHT = [dsopt, path, "-plan", "-pp=8", "-micro-batches=2", "-threads=1"]


def widest(text):
    return max(map(len, text.splitlines()))


narrow = execute(EIGHT).stdout
check(widest(narrow) <= 80 and narrow.count("\nstage ") == 2, f"off a terminal:\n{narrow}")
wide = execute(EIGHT, environment={"COLUMNS": "100"}).stdout
check(80 < widest(wide) <= 100 and wide.count("\nstage ") == 1, f"COLUMNS=100:\n{wide}")
check(wide.split() != narrow.split() and set(wide.split()) == set(narrow.split()), "the wide table has other numbers")
for small in ("40", "0", "x", "-3"):
    check(execute(EIGHT, environment={"COLUMNS": small}).stdout == narrow, f"COLUMNS={small} is not 80")
check(on_terminal(100, EIGHT) == wide, "on a terminal of 100 columns")
check(on_terminal(60, EIGHT) == narrow, "on a terminal of 60 columns")
with tempfile.TemporaryDirectory() as folder:
    on_terminal(100, [*EIGHT, "-o", f"{folder}/plan"])
    check(open(f"{folder}/plan").read() == narrow, "a file is as wide as the terminal")
as_json = ["-plan=json" if word == "-plan" else word for word in EIGHT]
check(execute(as_json).stdout == execute(as_json, environment={"COLUMNS": "200"}).stdout, "-plan=json has a width")

# Every word of the tables is explained, and what a 0 means.
head, legend = narrow.split("\n\nblocks")
rows = {line.split()[0] for line in head.splitlines() if line.startswith("  ")} - {"total"}
check(rows and all(f"\n  {row} " in legend for row in rows), f"words without a meaning: {[row for row in rows if row not in legend]}")
check("\n0 " in legend and "left out" in legend, "what a 0 means")

# Long lines go on below themselves.
for optimizer in (["-optimizer=onebit-adam", "-freeze-step=100"], ["-optimizer=zero-one-adam"]):
    command = [dsopt, path, "-plan", "-dp=2", "-micro-batches=2", "-threads=1", "-link=1Gb/s", *optimizer]
    narrow, wide = execute(command).stdout, execute(command, environment={"COLUMNS": "300"}).stdout
    check(widest(narrow) <= 80 and widest(wide) > 100 and narrow.split() == wide.split(), f"{optimizer}:\n{narrow}")
print("plans of 80 and more columns")
