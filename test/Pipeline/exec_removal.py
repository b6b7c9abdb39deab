"""exec_removal.py DSOPT DSOPT-OPT MODEL DATA OPTION...: takes one thing at a time out of a model's exec form: an
action with the waits for it, a wait, the word that a run or reduction adds to what is there. What is left is
refused with its place, or the same bits come out of it."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from sampled import sampled

dsopt, opt, model, data, *layout = sys.argv[1:]


def without(lines, i):
    """The program without the action or wait of a line."""
    event = re.match(r"\s*(%[\w.$-]+) = exec\.", lines[i])
    waits = re.compile(rf"\s*exec\.wait {re.escape(event[1])} on ") if event else None
    return [line for j, line in enumerate(lines) if j != i and not (waits and waits.match(line))]


def train(folder, path):
    log = os.path.join(folder, "log.jsonl")
    done = subprocess.run([dsopt, path, "-run", "-quiet", "-steps=4", f"-data={data}", f"-log={log}"], capture_output=True, text=True)
    return json.loads(open(log).read().splitlines()[-1])["end"]["weights_hash"] if done.returncode == 0 else done.stderr


with tempfile.TemporaryDirectory() as folder:
    whole, part = os.path.join(folder, "whole.mlir"), os.path.join(folder, "part.mlir")
    subprocess.run([dsopt, model, *layout, f"-data={data}", "-emit=exec", "-o", whole], check=True, capture_output=True)
    # One operation a line.
    lines = subprocess.run([opt, whole], check=True, capture_output=True, text=True).stdout.splitlines()
    actions = [i for i, line in enumerate(lines)
               if re.search(r"exec\.(wait|input|run|gather|reduce|add|send|recv|norm|agree|update|fold|copy) [@%\"n]", line)]
    cases = [(f"line {i + 1}", without(lines, i)) for i in actions]
    cases += [(f"accumulate of line {i + 1}", [*lines[:i], lines[i].replace(" accumulate ", " "), *lines[i + 1:]])
              for i in actions if " accumulate " in lines[i]]
    expected, refused, redundant = train(folder, whole), 0, 0
    for what, rest in sampled(cases, 40):
        with open(part, "w") as file:
            file.write("\n".join(rest) + "\n")
        done = subprocess.run([opt, "-verify-exec", part, "-o", os.devnull], capture_output=True, text=True)
        if done.returncode:
            if not re.search(r"part.mlir:[0-9]+:[0-9]+: error: ", done.stderr):
                sys.exit(f"FAILED: without {what}: {done.stderr}")
            refused += 1
            continue
        got = train(folder, part)
        if got != expected:
            sys.exit(f"FAILED: without {what} ({lines[int(what.split()[-1]) - 1].strip()}) the programs are accepted and give {got}, expected {expected}")
        redundant += 1
    print(f"{refused + redundant} of {len(cases)} things left out: {refused} refused, {redundant} redundant, 0 wrong")
