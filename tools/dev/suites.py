"""Builds and runs suites of tests under one scheduler, the longest first, and prints what each took.

usage: suites.py BUILD --cache FOLDER [--sanitize BUILD]... [--nightly]
Tests are those of lit in BUILD/test, and unit tests in BUILD/units and in the builds with sanitizers, each of which is a
test of lit, too (cmake/DsoptTests.cmake). FOLDER keeps how long each took, so that the longest come first in another clone.
Fails where a test does, and under CI where one is left out.
"""
import argparse
import collections
import json
import os
import resource
import subprocess
import sys
import time

import stored_times
from run_ninja import minutes, run_ninja

LIT = "/usr/lib/llvm-22/bin/lit"


class Row:
    """Of a table: what a suite took and how its tests ended."""

    def __init__(self):
        self.wall, self.cpu = 0.0, 0.0
        self.codes = collections.Counter()


def measured(row, run, *arguments):
    """Calls what runs processes, adds what they took to the row, and returns the exit status."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    code = run(*arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row.wall += time.monotonic() - start
    row.cpu += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return code


def suite_of(name):
    """`dsopt :: Execution/layouts.test` is of Execution, a unit test of its suite."""
    suite, path = name.split(" :: ", 1)
    return path.split("/")[0] if suite == "dsopt" and "/" in path else suite


PASSED, LEFT_OUT = ("PASS", "XFAIL", "FLAKYPASS"), ("UNSUPPORTED", "SKIPPED", "EXCLUDED")


def run_lit(build, folders, workers, table, nightly):
    """Runs all tests of folders. Returns those that failed and those that were left out."""
    report = os.path.join(build, "suites.json")
    if os.path.exists(report):
        os.remove(report)
    whole = Row()
    command = [LIT, "-sv", f"-j{workers}", "--output", report, *(["-Dnightly=1"] if nightly else []), *folders]
    code = measured(whole, subprocess.call, command)
    if not os.path.exists(report):
        sys.exit(code or "wrong: lit wrote no results")
    with open(report) as file:
        tests = json.load(file)["tests"]
    failed, left_out = [], []
    for test in tests:
        row = table.setdefault(suite_of(test["name"]), Row())
        row.wall += test["elapsed"] or 0
        row.cpu += test.get("metrics", {}).get("cpu", 0)
        kind = "passed" if test["code"] in PASSED else "left out" if test["code"] in LEFT_OUT else "failed"
        row.codes[kind] += 1
        if kind == "failed":
            failed.append(test["name"])
        elif kind == "left out":
            left_out.append(test["name"])
    table["tests"] = whole
    if code and not failed:
        failed.append(f"lit ended with {code}")
    return tests, failed, left_out


def print_table(table, total):
    print(f"\n{'suite':<24}{'passed':>8}{'failed':>8}{'left out':>10}{'wall':>9}{'CPU':>9}")
    for name, row in [*table.items(), ("in all", total)]:
        counts = [str(row.codes[kind] or "") for kind in ("passed", "failed", "left out")]
        print(f"{name:<24}{counts[0]:>8}{counts[1]:>8}{counts[2]:>10}{minutes(row.wall):>9}{minutes(row.cpu):>9}")
    print("wall of a suite is the sum of its tests', of which several run at once")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--cache", required=True)
    parser.add_argument("--nightly", action="store_true")
    parser.add_argument("--sanitize", action="append", default=[], help="a build with sanitizers")
    options = parser.parse_args()
    start = time.monotonic()
    table = {}
    for folder in [options.build, *options.sanitize]:
        targets = [] if folder == options.build else ["dsopt-units", *(["dsopt-units-nightly"] if options.nightly else [])]
        row = table.setdefault("build" if folder == options.build else os.path.basename(folder), Row())
        if measured(row, run_ninja, folder, targets):
            sys.exit(f"{folder} cannot be built")
    folders = [os.path.join(options.build, "test"), *(os.path.join(folder, "units") for folder in [options.build, *options.sanitize])]
    built = dict(table)
    stored_times.take(options.cache, options.build, folders)
    tests, failed, left_out = run_lit(options.build, folders, os.cpu_count(), table, options.nightly)
    stored_times.keep(options.cache, options.build, folders)
    whole = table.pop("tests")
    total = Row()
    total.wall = time.monotonic() - start
    total.cpu = whole.cpu + sum(row.cpu for row in built.values())
    for row in table.values():
        total.codes += row.codes
    print_table(table, total)
    longest = sorted(tests, key=lambda test: -test.get("metrics", {}).get("cpu", 0))[:10]
    print("longest:", ", ".join(f"{test['name'].split(' :: ')[-1]} {test['elapsed']:.0f} s" for test in longest))
    for name in failed:
        print(f"failed: {name}")
    for name in left_out:
        print(f"left out: {name}")
    is_wrong = bool(failed) or (left_out and os.environ.get("CI"))
    if left_out and os.environ.get("CI"):
        print("a test that is left out is a failure here")
    print(f"{total.codes['passed']} passed, {total.codes['failed']} failed, {total.codes['left out']} skipped")
    sys.exit(1 if is_wrong else 0)


if __name__ == "__main__":
    main()
