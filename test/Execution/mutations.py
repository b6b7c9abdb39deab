"""What is wrong with a partitioned module is refused or changes the hash: the common part of tests that change one place of modules in dist
form, drawn by seed from all pairs of a place and a kind."""
import os
import random
import re
import subprocess
import tempfile

from runs import Run, check, execute, model

LOOSE = 1e-5  # what a comparison of losses would let through
VALUE = r"%[\w.]+(?:#\d+)?"
KERNEL = re.compile(r"^ +(%[\w.]+)(?::\d+)? = graph\.kernel @(\w+)\((.*)\) : \((.*)\) -> (.*)$")


class Module:
    """A module in dist form, a statement a line, and what it trains to."""

    def __init__(self, dsopt, name, options, folder, files=None):
        self.dsopt, self.name = dsopt, f"{name} {options}"
        self.path, self.data = files or model(name)
        text = execute([dsopt, self.path, *options.split(), f"-data={self.data}", "-emit=dist"]).stdout
        # A statement that is written in several lines goes on further inside.
        self.lines = re.sub(r"\n {6,}", " ", text).splitlines()
        self.trained = self.find_trained()
        done, self.run = self.train(self.lines, folder)
        check(self.run, f"{self.name} itself: {done.stderr}")

    def find_trained(self):
        """Places of declarations, and of functions that a micro-batch runs, directly or by others: what evaluates alone changes no training."""
        bodies, name = {None: []}, None
        for at, line in enumerate(self.lines):
            if line.startswith("  func"):
                name = re.search(r"@([\w.]+)", line)[1]
                bodies[name] = []
            bodies[name].append(at)
            if line == "  }":
                name = None
        open, seen = ["micro_batch"], {None}
        while open:
            name = open.pop()
            if name in seen or name not in bodies:
                continue
            seen.add(name)
            open += [called for at in bodies[name][1:] for called in re.findall(r"(?:graph\.run|graph\.kernel) @([\w.]+)", self.lines[at])]
        return sorted(at for name in seen for at in bodies[name])

    def train(self, lines, folder):
        path, log = (os.path.join(folder, name) for name in ("module.mlir", "log.jsonl"))
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")
        command = [self.dsopt, path, "-run", f"-data={self.data}", "-steps=3", "-quiet", f"-log={log}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        return done, Run(log) if done.returncode == 0 else None


def end_of_function(lines, at):
    return next(place for place in range(at, len(lines)) if lines[place].startswith("  }"))


def begin_of_function(lines, at):
    return next(place for place in range(at, 0, -1) if lines[place].startswith("  func"))


def function_named(lines, name):
    """From the line of its name to the one behind its end."""
    begin = next(at for at, line in enumerate(lines) if line.startswith("  func") and f"@{name}(" in line)
    return begin, end_of_function(lines, begin) + 1


def replaced(lines, at, *instead):
    return [*lines[:at], *instead, *lines[at + 1 :]]


def uses_renamed(lines, at, old, new):
    """From a line to the end of its function."""
    end = end_of_function(lines, at)
    return [*lines[:at], *(re.sub(re.escape(old) + r"(?![\w.#])", new, line) for line in lines[at:end]), *lines[end:]]


def substituted(pattern, instead):
    """What is found in the line is other text."""
    return lambda lines, at: replaced(lines, at, re.sub(pattern, instead, lines[at]))


def rewritten(pattern, change):
    """The numbers that a pattern finds in the line are others."""
    return substituted(pattern, lambda found: re.sub(r"\d+", lambda _: str(next(numbers)), found[0]) if (numbers := iter(change(*map(int, found.groups())))) else "")


def runs(change):
    return rewritten(r"(?<=#graph\.runs<)(\d+) every (\d+) step (\d+)", change)


def is_drop(collective):
    def drop(lines, at):
        result, operand = collective.match(lines[at]).group(1, 2)
        return uses_renamed(replaced(lines, at), at, result, operand)

    return drop


def earlier_value(lines, at, operand, type):
    """The nearest value before of the same type."""
    for line in reversed(lines[begin_of_function(lines, at) : at]):
        found = re.match(rf"^ +(%[\w.]+) = .* (?:->|:) {re.escape(type)}$", line)
        if found and found[1] != operand:
            return found[1]
    return None


def is_doubled(collective):
    def double(lines, at):
        result, operand = collective.match(lines[at]).group(1, 2)
        again = lines[at].replace(f"{result} = ", "%twice = ").replace(f"{operand} over", f"{result} over")
        return replaced(uses_renamed(lines, at + 1, result, "%twice"), at, lines[at], again)

    return double


def is_of_another_value(collective):
    def change(lines, at):
        _, operand, type = collective.match(lines[at]).group(1, 2, 3)
        other = earlier_value(lines, at, operand, type)
        return other and replaced(lines, at, lines[at].replace(operand + " over", other + " over"))

    return change


def drawn_by_kind(sites, seed):
    """Kinds in turn, of each another place."""
    drawing, kinds = random.Random(seed), {}
    for site in sites:
        kinds.setdefault(site[2], []).append(site)
    order = list(kinds.values())
    drawing.shuffle(order)
    for one in order:
        drawing.shuffle(one)
    longest = max(len(one) for one in order)
    return [one[turn] for turn in range(longest) for one in order if turn < len(one)]


def campaign(modules, kinds, count, seed, allowed):
    """Trains `count` mutants; a kind is a name, what its lines have, and what becomes of the module (none: no mutant). At most a share `allowed`
    of them may change nothing."""
    sites = [(number, at, kind) for number, one in enumerate(modules) for at in one.trained for kind in range(len(kinds)) if re.search(kinds[kind][1], one.lines[at])]
    refused = found = loose = same = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, at, kind in drawn_by_kind(sites, seed):
            if refused + found + same == count:
                break
            one = modules[number]
            what = f"{one.name}, line {at}, {kinds[kind][0]}"
            lines = kinds[kind][2](one.lines, at)
            if lines is None or lines == one.lines:
                continue
            done, run = one.train(lines, folder)
            if done.returncode == 2 and "is not finite" in done.stderr:
                found += 1
                print(f"{what}: no number", flush=True)
            elif not run:
                check(done.returncode == 1 and "error:" in done.stderr, f"{what}: status {done.returncode}: {done.stderr}")
                refused += 1
                print(f"{what}: refused: {done.stderr.splitlines()[0][:150]}", flush=True)
            elif run.hash == one.run.hash and run.loss_text == one.run.loss_text:
                same += 1
                print(f"{what}: no bit differs: {one.lines[at].strip()[:200]}", flush=True)
            else:
                found += 1
                near = all(abs(a - b) <= LOOSE * abs(b) for a, b in zip(run.losses, one.run.losses))
                loose += near
                print(f"{what}: another hash" + (", losses within 1e-5" if near else ""), flush=True)
    mutants = refused + found + same
    check(same <= allowed * mutants, f"{same} of {mutants} change nothing")
    print(f"{mutants} of {len(sites)}: {refused} refused, {found} found by their hash or their losses, of which {loose} within {LOOSE} in the losses; {same} change nothing")
