"""Power cuts while checkpoints are saved, saved over, pruned and recovered and while weights are written: every state that
the disk may be left in goes on to the bits of a run that nothing happened to, from no earlier step than was promised, and
has the weights of before or those of the run, whole; once it has ended, those.

usage: powercut.py BUILD FOLDER [-seed=N] [-states=N] [-weaken=N]

N states at most at each moment (all of them, where there are no more). With -weaken the same once more for each
synchronisation, exchange and removal of names left out: each of them has to be missed, in N states at most at each moment.
"""
from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import sys

from disk import Disk, digest, lines_of, write
from scenarios import BELONGS, Attempt, Program, Scenario, end_of, fresh, tiny_programs

STEPS = 3
#: What can be left out of the code.
CHANGES = ["fsync", "syncFolder", "exchange", "rename"]


class Cut:
    """A run in a folder that runs before it left, of whose checkpoints it keeps those of `had` steps; `damaged` is the
    newest one of them, which is saved over. The last one before it meets `killed`, and all the run meets `fault`."""

    def __init__(self, name: str, program: Program, before: list[list[str]], options: list[str], had: int = 0, damaged: str = "",
                 killed: str = "", fault: str = ""):
        self.name, self.before, self.options, self.had, self.damaged = name, before, options, had, damaged
        self.killed, self.fault = killed, fault
        self.left: list[str] = []  # what it leaves, and what it leaves with nothing left out
        self.usual: list[str] = []
        self.weights: list[bytes] = []  # of the run before it and its own, where these write some
        # What steps do not wait for is there a step later.
        self.later = "-save-async" in options
        self.scenario = Scenario(program, "one" if program.ranks == 1 else "shm", False)


def cuts(program: Program) -> list[Cut]:
    every = ["-save-every=1", "-save-keep=9"]
    over, weights = ["-resume=auto", *every], ["-resume=auto", "-save-weights={save}.weights"]
    going = [*every, "-save-async"]
    no_exchange = "exchange,from=1:error=EINVAL"
    return [Cut("save", program, [], every),
            Cut("save while steps go on", program, [], going),
            Cut("save over a save while steps go on", program, [every], ["-resume=auto", *going], 2, "step-00000003"),
            Cut("prune while steps go on", program, [[*every, "-steps=1"]],
                ["-save-every=1", "-save-keep=1", "-resume=auto", "-save-async"], 1),
            Cut("save over a save", program, [every], over, 2, "step-00000003"),
            Cut("save over a save, no exchange", program, [every], over, 2, "step-00000003", fault=no_exchange),
            Cut("save beside saves", program, [every], ["-resume={save}/step-00000001", "-save-existing=aside", *every], 1),
            Cut("prune", program, [[*every, "-steps=2"]], ["-save-every=1", "-save-keep=1", "-resume=auto"], 2),
            Cut("recover", program, [every, over], over, 2, "step-00000003", killed="save.exchange:kill"),
            Cut("recover, no exchange", program, [every, over], over, 2, "step-00000003", killed="save.exchange:kill",
                fault=no_exchange),
            Cut("recover, no exchange, between two names", program, [every, over], over, 2, "step-00000003",
                killed="rename,nth=2:kill", fault=no_exchange),
            Cut("weights", program, [[*weights, "-steps=2"]], weights, 2)]


class Checker:
    def __init__(self, folder: str, hash: str):
        self.folder, self.hash = folder, hash
        self.numbers = iter(range(1 << 30))

    def run(self, cut: Cut, folder: str, options: list[str], fault: str = "") -> Attempt:
        save = f"{folder}/disk/save"
        attempt = Attempt(cut.scenario, folder, [f"-steps={STEPS}", f"-save={save}", f"-log={folder}/log.jsonl", "-quiet",
                                                 *[option.format(save=save) for option in options]],
                          ";".join(filter(None, [cut.fault, fault])))
        attempt.wait(30)
        attempt.end()
        return attempt

    def first(self, folder: str) -> int:
        """After how many steps the run in the folder went on."""
        with open(f"{folder}/log.jsonl") as file:
            return min((int(found[1]) for found in re.finditer(r'{"step":(\d+),"loss"', file.read())), default=STEPS)

    def record(self, cut: Cut, weakened: str = "") -> tuple[Disk, list] | None:
        """The disk before the run, and what it did; None if nothing was left out."""
        folder = fresh(f"{self.folder}/record")
        os.mkdir(f"{folder}/disk")
        for number, options in enumerate(cut.before):
            killed = cut.killed if number else ""
            attempt = self.run(cut, folder, options, killed)
            if any(attempt.statuses()) != bool(killed):
                sys.exit(f"{cut.name}: the run before it ended with {attempt.statuses()}: {attempt.output()}")
            if cut.damaged and number == 0:
                os.truncate(f"{folder}/disk/save/{cut.damaged}/model.safetensors", 64)
        weights = f"{folder}/disk/save.weights"
        if os.path.exists(weights):
            cut.weights = [open(weights, "rb").read()]
        if cut.before:
            os.remove(f"{folder}/log.jsonl")
        disk = Disk(f"{folder}/disk")
        record = f"{folder}/record"
        attempt = self.run(cut, folder, cut.options, f"record={record}" + (f";{weakened}" if weakened else ""))
        if weakened and not attempt.hit(weakened):
            return None
        if any(attempt.statuses()) and not weakened:
            sys.exit(f"{cut.name}: {attempt.output()}")
        if any(attempt.statuses()):
            cut.left = ["the run fails"]
            return disk, []
        cut.left = sorted(re.sub(r"\.[0-9a-f]{16}$", "", str(path.relative_to(folder))) for pattern in ("*", "save/*")
                          for path in pathlib.Path(folder, "disk").glob(pattern))
        cut.left.append(f"goes on after step {self.first(folder)}")
        if cut.weights:
            cut.weights.append(open(weights, "rb").read())
        return disk, list(lines_of(record))

    def trees(self, cut: Cut, disk: Disk, lines: list, most: int, generator: random.Random) -> list[tuple[int, bool, dict]]:
        """Each different state once, with the latest step that was promised when the power went and whether the run had
        ended."""
        found, promised = {}, cut.had
        for what, text, data in [("point", "begin", b""), *lines, ("point", "end", b"")]:
            disk.apply(what, text, data)
            if step := re.fullmatch(r"step 0 (\d+)", text):
                promised = max(promised, int(step[1]) - cut.later)
            elif step := re.fullmatch(r"save.prune 0 (\d+)", text):
                promised = max(promised, int(step[1]) + 1 - cut.later)
            elif text == "end":
                promised = STEPS
            elif what == "point" and text != "begin":
                continue
            for tree in disk.states(most, generator):
                found[digest(tree)] = promised, text == "end", tree
        return list(found.values())

    def halves(self, cut: Cut, tree: dict) -> list[str]:
        """Checkpoints that have a manifest and not all it names."""
        found = []
        for name, files in tree.get("save", {}).items():
            if re.fullmatch(r"step-\d+", name) and name != cut.damaged and "manifest.json" in files:
                try:
                    tensors = json.loads(files["manifest.json"])["manifest"]["tensors"]
                    if any(len(files.get(tensor["file"], b"")) != tensor["file_bytes"] for tensor in tensors):
                        found.append(name)
                except ValueError:
                    found.append(name)
        return found

    def wrong(self, cut: Cut, promised: int, ended: bool, tree: dict) -> str:
        """What is wrong with the state, or with a run that goes on in it."""
        if cut.weights and tree.get("save.weights") not in cut.weights[ended:]:
            return f"other bytes in place of the weights ({shown(tree)})"
        if halves := self.halves(cut, tree):
            return f"half of {halves} is there ({shown(tree)})"
        folder = fresh(f"{self.folder}/state-{next(self.numbers)}")
        write(tree, f"{folder}/disk")
        attempt = self.run(cut, folder, ["-resume=auto", "-save-every=1", "-save-keep=9", "-save-weights={save}.weights"])
        wrong = ""
        if any(attempt.statuses()):
            wrong = f"statuses {attempt.statuses()}: {attempt.output().strip()[-300:]}"
        else:
            first = self.first(folder)
            if first < promised:
                wrong = f"goes on after step {first}, though step {promised} was saved"
            elif (hash := end_of(folder).get("weights_hash")) != self.hash:
                wrong = f"other weights: {hash}, expected {self.hash}"
            elif left := [name for name in os.listdir(f"{folder}/disk/save") if not re.fullmatch(BELONGS, name)]:
                wrong = f"{left} stay behind"
            elif (left := sorted(os.listdir(f"{folder}/disk"))) != ["save", "save.weights"]:
                wrong = f"{left} are there, expected the save folder and the weights"
        if wrong:
            wrong += f" ({shown(tree)})"
        shutil.rmtree(folder)
        return wrong

    def check(self, cut: Cut, most: int, seed: int, weakened: str = "", first: bool = False) -> tuple[int, list[str]] | None:
        """How many states there were and what was wrong in them; `first`: the first thing that is."""
        if (recorded := self.record(cut, weakened)) is None:
            return None
        if not weakened:
            cut.usual = cut.left
        elif cut.left != cut.usual:
            return 0, [f"leaves {cut.left}, expected {cut.usual}"]
        generator = random.Random(seed)
        trees = self.trees(cut, *recorded, most, generator)
        if first:
            generator.shuffle(trees)
        found, count, trees = [], 0, iter(trees)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as workers:
            pending = set()
            while True:
                while len(pending) < 2 * (os.cpu_count() or 1) and (tree := next(trees, None)):
                    pending.add(workers.submit(self.wrong, cut, *tree))
                    count += 1
                if not pending:
                    return count, found
                done, pending = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
                found += [future.result() for future in done if future.result()]
                if found and first:
                    concurrent.futures.wait(pending)
                    return count, found


def shown(tree, name: str = "") -> str:
    if isinstance(tree, bytes):
        return f"{name} {len(tree)}"
    return f"{name}/[" + ", ".join(shown(child, key) for key, child in sorted(tree.items())) + "]"


def changed(disk: Disk, lines: list) -> dict[str, list[str]]:
    """What each kind of change was done to, in order, where one process did it all."""
    found: dict[str, list[str]] = {change: [] for change in CHANGES}
    for what, text, data in lines:
        disk.apply(what, text, data)
        if what == "fsync":
            found["syncFolder" if int(text) in disk.folders else "fsync"].append(disk.paths[int(text)])
        elif what in found:
            found[what].append(text.replace(f"{disk.root}/", ""))
    return found


def weaknesses(checker: Checker, cut: Cut, ranks: int):
    """One change left out, in turn, and what it is done to."""
    objects = changed(*checker.record(cut)) if ranks == 1 else {}
    for change in CHANGES:
        if change in cut.fault:
            continue
        rest = iter(objects.get(change, []))
        for rank in range(-1, ranks):
            for nth in range(1, 100):
                fault = f"{change},rank={rank},nth={nth}:skip"
                if checker.record(cut, fault) is None:
                    break
                yield fault, next(rest, "")


def main(build: str, folder: str, *arguments: str) -> int:
    given = dict(argument.lstrip("-").split("=", 1) for argument in arguments)
    seed, most = int(given.get("seed", 1)), int(given.get("states", 200))
    folder = fresh(os.path.abspath(folder))
    failures = 0
    for program in tiny_programs(os.path.abspath(build), folder):
        checker = Checker(folder, "")
        for cut in cuts(program):
            if not checker.hash:
                whole = fresh(f"{folder}/whole")
                os.mkdir(f"{whole}/disk")
                checker.run(cut, whole, [])
                checker.hash = end_of(whole).get("weights_hash", "")
            count, wrong = checker.check(cut, most, seed)
            print(f"{program.name}, {cut.name}: {count} states, {len(wrong)} wrong", flush=True)
            for text in wrong[:5]:
                print("    FAILED: " + text, flush=True)
            failures += len(wrong)
            if "weaken" in given:
                for fault, what in weaknesses(checker, cut, program.ranks):
                    count, wrong = checker.check(cut, int(given["weaken"]), seed, fault, first=True)
                    print(f"    without {fault[:-5]} {what}: " + (f"found after {count} states: {wrong[0][:200]}" if wrong else
                                                          f"FAILED: {count} states, nothing wrong"), flush=True)
                    failures += not wrong
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
