"""What is wrong with a partitioned module is refused or changes the hash: mutations of modules in dist form, drawn by seed from all pairs of
a place and a kind. A sum that is dropped, doubled, over other ranks or of something else; a shard of a parameter that is another's, or
whose runs lie elsewhere; a bucket that is no longer told apart between tensor ranks; a shard that looks for labels and words elsewhere.

usage: tensor_mutations.py DSOPT [COUNT [SEED]]
"""
import os
import random
import re
import subprocess
import sys
import tempfile

from runs import Run, check, execute, model

dsopt = sys.argv[1]
count, seed = int(sys.argv[2]) if len(sys.argv) > 2 else 12, int(sys.argv[3]) if len(sys.argv) > 3 else 1
MODULES = [("gpt2-tiny", "-tp=2 -dp=2 -zero=3"), ("bert-tiny", "-tp=2"), ("gpt2-tiny", "-tp=4 -recompute=full"), ("resnet-tiny", "-tp=2 -dp=2 -zero=1")]
SUM = re.compile(r"^ +(%\S+) = dist\.all_reduce (%\S+) over \[tp\] : (\S+)$")
LOOSE = 1e-5  # what a comparison of losses would let through


def end_of_function(lines, at):
    return next(place for place in range(at, len(lines)) if lines[place].startswith("  }"))


def renamed(lines, first, last, old, new):
    return [re.sub(re.escape(old) + r"(?![\w.#])", new, line) for line in lines[first:last]]


def drop(lines, at):
    result, operand, _ = SUM.match(lines[at]).groups()
    end = end_of_function(lines, at)
    return lines[:at] + renamed(lines, at + 1, end, result, operand) + lines[end:]


def double(lines, at):
    result, _, type = SUM.match(lines[at]).groups()
    end = end_of_function(lines, at)
    return lines[: at + 1] + [f"    %twice = dist.all_reduce {result} over [tp] : {type}"] + renamed(lines, at + 1, end, result, "%twice") + lines[end:]


def other_ranks(lines, at):
    return lines[:at] + [lines[at].replace("over [tp]", "over [edp]")] + lines[at + 1 :]


def other_value(lines, at):
    """The nearest value before of the same type is added instead."""
    result, operand, type = SUM.match(lines[at]).groups()
    for place in range(at - 1, 0, -1):
        if lines[place].startswith("  func"):
            return None
        found = re.match(r"^ +(%[\w.]+) = .* -> " + re.escape(type) + "$", lines[place])
        if found and found[1] != operand:
            return lines[:at] + [lines[at].replace(operand + " over", found[1] + " over")] + lines[at + 1 :]
    return None


def runs(change):
    def mutate(lines, at):
        return lines[:at] + [re.sub(r"#graph\.runs<(\d+) every (\d+) step (\d+)>", lambda found: "#graph.runs<%d every %d step %d>" % change(*map(int, found.groups())), lines[at])] + lines[at + 1 :]

    return mutate


def elsewhere(lines, at):
    """The number of the micro-batch instead of the place along tp."""
    return lines[:at] + [lines[at].replace("starts = array<i64: 5>", "starts = array<i64: 3>")] + lines[at + 1 :]


def same_bucket(lines, at):
    return lines[:at] + [lines[at].replace(" distinct over [tp]", "")] + lines[at + 1 :]


KINDS = [
    ("dropped", SUM, drop), ("doubled", SUM, double), ("other ranks", SUM, other_ranks), ("other value", SUM, other_value),
    ("the first rank's shard", re.compile(r"graph\.runs<"), runs(lambda length, stride, step: (length, stride, 0))),
    ("other runs", re.compile(r"graph\.runs<"), runs(lambda length, stride, step: (length // 2, stride // 2, step // 2))),
    ("elsewhere", re.compile(r"starts = array<i64: 5>"), elsewhere),
    ("a bucket of all", re.compile(r" distinct over \[tp\]"), same_bucket),
]


def trained(lines):
    """Places outside of functions that evaluate alone: those change no training."""
    places, evaluates = [], False
    for at, line in enumerate(lines):
        if line.startswith("  func"):
            header = lines[at : next(end for end in range(at, len(lines)) if lines[end].endswith("{") or lines[end].startswith("  }")) + 1]
            evaluates = "#graph.phase<E>" in "".join(header)
        if not evaluates:
            places.append(at)
    return places


def emitted(name, options):
    path, data = model(name)
    return execute([dsopt, path, *options.split(), f"-data={data}", "-emit=dist"]).stdout.splitlines()


def train(path, name, folder):
    log = os.path.join(folder, "log.jsonl")
    done = subprocess.run([dsopt, path, "-run", f"-data={model(name)[1]}", "-steps=3", "-quiet", f"-log={log}"], capture_output=True, text=True, timeout=200)
    return done, Run(log) if done.returncode == 0 else None


with tempfile.TemporaryDirectory() as folder:
    sites, modules, expected = [], [], []
    for number, (name, options) in enumerate(MODULES):
        modules.append(emitted(name, options))
        path = os.path.join(folder, f"{number}.mlir")
        open(path, "w").write("\n".join(modules[-1]) + "\n")
        done, run = train(path, name, folder)
        check(run, f"{name} {options} itself: {done.stderr}")
        expected.append(run)
        sites += [(number, at, kind) for at in trained(modules[-1]) for kind in range(len(KINDS)) if KINDS[kind][1].search(modules[-1][at])]
    drawn = random.Random(seed).sample(sites, min(count, len(sites)))
    refused = found = loose = same = unparsed = 0
    for number, at, kind in drawn:
        name, options = MODULES[number]
        what = f"{name} {options}, line {at}, {KINDS[kind][0]}"
        lines = KINDS[kind][2](modules[number], at)
        if lines is None or lines == modules[number]:
            unparsed += 1
            continue
        path = os.path.join(folder, "mutant.mlir")
        open(path, "w").write("\n".join(lines) + "\n")
        done, run = train(path, name, folder)
        if not run:
            check(done.returncode == 1 and "error:" in done.stderr, f"{what}: status {done.returncode}: {done.stderr}")
            refused += 1
            print(f"{what}: refused: {done.stderr.splitlines()[0][:150]}", flush=True)
        elif run.hash == expected[number].hash:
            same += 1
            print(f"{what}: no bit differs", flush=True)
        else:
            found += 1
            near = all(abs(a - b) <= LOOSE * abs(b) for a, b in zip(run.losses, expected[number].losses))
            loose += near
            print(f"{what}: another hash" + (", losses within 1e-5" if near else ""), flush=True)
    check(same <= 0.1 * len(drawn), f"{same} of {len(drawn)} change nothing")
    print(f"{len(drawn)} of {len(sites)}: {refused} refused, {found} found by hash, of which {loose} within {LOOSE} in the losses; {same} change nothing, {unparsed} are none")
