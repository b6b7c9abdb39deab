"""removal.py DSOPT DSOPT-OPT MODEL DATA: takes each collective out of a model's dist form and expects the
rest of the compiler to refuse what is left, with the place where something is missing. Then moves each
gather to the front of the run before, and each reduction behind the run after, where that is possible:
the program has to show it."""
import re
import subprocess
import sys
import tempfile

dsopt, opt, model, data = sys.argv[1:]
TO_EXEC = ["-blocks-to-segments", "-order-pipeline", "-share-gathers", "-place-reductions", "-finish-step"]


def programs(lines, *passes):
    done = subprocess.run([opt, *passes], input="\n".join(lines), capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def schedule(text):
    """The runs and collectives of a program in order, without the names of values."""
    return [re.sub(r"^\s*%[^=]+ = ", "", line).strip() for line in text.splitlines()
            if re.search(r"exec\.(run|gather|reduce) ", line)]


def check(condition, message):
    if not condition:
        sys.exit("FAILED: " + message)


with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/dist.mlir"
    subprocess.run([dsopt, model, "-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", f"-data={data}", "-emit=dist", "-o", path],
                   check=True, capture_output=True)
    # One operation a line.
    lines = subprocess.run([opt, path], check=True, capture_output=True, text=True).stdout.splitlines()

places = [i for i, line in enumerate(lines) if re.search(r"\bdist\.(gather|release|reduce)\b", line)]
status, whole, errors = programs(lines, *TO_EXEC)
check(status == 0, errors)
refused = {"gather": 0, "release": 0, "reduce": 0}
for i in places:
    kind = re.search(r"dist\.(\w+)", lines[i])[1]
    for passes in (TO_EXEC, ["-verify-dist"]):
        status, _, errors = programs(lines[:i] + lines[i + 1:], *passes)
        check(status != 0 and re.search(r"^<stdin>:[0-9]+:[0-9]+: error: ", errors),
              f"without '{lines[i].strip()}', {passes[-1]} says: {errors}")
    refused[kind] += 1
print(f"removed: {refused['gather']} gathers, {refused['release']} releases, {refused['reduce']} reductions, all refused")



def next_run(i, step):
    """The line of the next run of the same function in a direction, or None."""
    while "graph.run" not in lines[i]:
        i += step
        if "func.func" in lines[i] or "return" in lines[i]:
            return None
    return i


moved = 0
for i in places:
    gathers = "dist.gather" in lines[i]
    over = None if "dist.release" in lines[i] else next_run(i, -1 if gathers else 1)
    if over is None:
        continue
    rest = lines[:i] + lines[i + 1:]
    rest.insert(over, lines[i])  # in front of an earlier line, behind a later one
    status, text, errors = programs(rest, "-verify-dist", *TO_EXEC)
    check(status == 0, f"'{lines[i].strip()}' cannot be moved to line {over}: {errors}")
    moved += schedule(text) != schedule(whole)
print(f"moved: {moved} programs changed")
