"""Defects that the tests are there to find: each one is planted, built, and has to make its test fail.

usage: defects.py BUILD SOURCE [-only=NAME,...] [-planted-only]
       defects.py BUILD SOURCE -drawn=N [-seed=N] [-from=N]
       defects.py BUILD SOURCE -check

The list is in chosen.py, by hand, and drawn.py, of changes that -drawn once drew: small changes of lines of lib/ and python/
by a seed, drawn on until N were found by the tests that mirror their file or by smoke runs, from the draw FROM on (0).
Before it is planted a defect's test has to pass, once for all that name it; -planted-only takes that for given. A test that
cannot run, takes too long or whose program does not build finds nothing. Ends with a table and status 1 if a defect was not
found. -check only sees to it that each one's place and test are there. The source is as it was at the end, whatever ends
it; a file with changes that are not committed is never touched. Commit nothing meanwhile.
"""
from __future__ import annotations

import dataclasses
import os
import sys
import time

from chosen import CHOSEN
from drawn import DRAWN
from mutants import Mutants
from planting import Build, Defect, changed, interruptible, seconds_since

DEFECTS: list[Defect] = [*CHOSEN, *DRAWN]


def option(name: str, otherwise: str) -> str:
    return next((word.split("=", 1)[1] for word in sys.argv[3:] if word.startswith(f"-{name}=")), otherwise)


def check(source: str) -> None:
    names = [defect.name for defect in DEFECTS]
    if len(set(names)) != len(names):
        sys.exit(f"names that are there twice: {sorted({name for name in names if names.count(name) > 1})}")
    for defect in DEFECTS:
        with open(os.path.join(source, defect.file), newline="") as file:
            defect.planted(file.read())
        # What `./dev test` does not run is no .test.
        if ":" not in defect.test and not (defect.test.endswith((".test", ".mlir")) and os.path.exists(os.path.join(source, "test", defect.test))):
            sys.exit(f"{defect.name}: there is no test/{defect.test} that runs with all tests")
    print(f"{len(CHOSEN)} chosen and {len(DRAWN)} drawn, {len({defect.room for defect in DEFECTS})} rooms")


def table(rows: list[list[str]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip())


def find(build: Build, only: list[str], baseline: bool) -> int:
    defects = [defect for defect in DEFECTS if not only or defect.name in only]
    unknown = set(only) - {defect.name for defect in defects}
    if unknown or not defects:
        sys.exit(f"there is no defect {', '.join(sorted(unknown))}, expected one of {', '.join(one.name for one in DEFECTS)}")
    rows = [["name", "room", "file", "test", "build s", "test s", "verdict"]]
    built: set[str] = set()
    passed: dict[str, str] = {}
    missing = 0
    try:
        for defect in defects:
            if baseline and defect.test not in passed:
                made = build.make(defect.targets, defect.name)
                passed[defect.test] = build.test(defect.test, f"{defect.name}.before")[0] if made else "not built"
            before = passed.get(defect.test, "passed") if baseline else "passed"
            if before != "passed":
                verdict, said, times = f"NOT FOUND: the test {before} before", "", ["", ""]
            else:
                verdict, said, times = plant(build, defect)
                built |= set(defect.targets.split())
            missing += verdict != "found"
            rows.append([defect.name, defect.room, defect.file, defect.test, *times, verdict])
            print(f"{defect.name}: {verdict}, built in {times[0] or 0} s, tested in {times[1] or 0} s{': ' + said[:200] if said else ''}", flush=True)
    finally:
        restore(build, built)
        table(rows)
    print(f"{len(defects)} defects, {missing} not found")
    return 1 if missing else 0


def restore(build: Build, built: set[str]) -> None:
    """What was built with a defect, without."""
    if built and not build.make(" ".join(sorted(built)), "after"):
        print(f"the source as it was cannot be built, see {build.logs}/after.build")


def plant(build: Build, defect: Defect) -> tuple[str, str, list[str]]:
    with changed(build.source, defect):
        begin = time.monotonic()
        if not build.make(defect.targets, defect.name):
            return "NOT FOUND: it does not build", f"see {build.logs}/{defect.name}.build", [str(seconds_since(begin)), ""]
        times, begin = [str(seconds_since(begin))], time.monotonic()
        outcome, _, said = build.test(defect.test, defect.name)
        times.append(str(seconds_since(begin)))
    return ("found" if outcome == "failed" else f"NOT FOUND: the test {outcome}"), said, times


def draw(build: Build, seed: int, first: int, count: int) -> int:
    """Prints entries for drawn.py, and what became of the others."""
    found, index, built, entries = 0, first, set(), []
    rows = [["draw", "file", "line", "change", "seconds", "verdict"]]
    mutants = Mutants(build.source, seed)
    try:
        while found < count:
            mutant = mutants.at(index)
            defect = mutant.defect()
            verdict, took = "NOT FOUND", 0
            with changed(build.source, defect):
                begin = time.monotonic()
                for targets, test in mutant.stages(build.source):
                    built |= set(targets.split())
                    if not build.make(targets, defect.name):
                        verdict = "does not build"
                        break
                    outcome, which, said = build.test(test, defect.name)
                    if outcome == "failed":
                        verdict = f"found by {which}: {said[:120]}"
                        entries.append(dataclasses.replace(defect, targets=targets, test=which, why="a test of its folder, or a smoke run"))
                        break
                    if outcome not in ("passed", "nothing ran", "unsupported"):
                        verdict = f"NOT FOUND: {which} {outcome}"
                        break
                took = seconds_since(begin)
            found += verdict.startswith("found")
            rows.append([str(index), mutant.file, str(mutant.line), mutant.change, str(took), verdict])
            print("  ".join(rows[-1]), flush=True)
            index += 1
    finally:
        restore(build, built)
        table(rows)
        print(*(f"    {entry}," for entry in entries), sep="\n")
    print(f"{index - first} drawn, {found} found")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    interruptible()
    check(sys.argv[2])
    if "-check" in sys.argv[3:]:
        sys.exit()
    folder = Build(sys.argv[1], sys.argv[2])
    if draws := int(option("drawn", "0")):
        sys.exit(draw(folder, int(option("seed", "1")), int(option("from", "0")), draws))
    names = option("only", "")
    sys.exit(find(folder, names.split(",") if names else [], "-planted-only" not in sys.argv[3:]))
