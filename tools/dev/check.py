"""The inner loop: builds what paths need, runs the tests that are the closest to them and five smoke runs.

usage: check.py BUILD SOURCE [--cache FOLDER] PATH...
Ends with 0 if all passed, 1 if one failed, 2 if there is nothing to run or no such path. The last line has what was not run:
tests that are further away, which two minutes do not have room for.
"""
import argparse
import collections
import os
import sys
import time

import stored_times
from affected import Affected
from run_ninja import minutes, run_ninja
from suites import Row, measured, run_lit

BUDGET = 120  # seconds, with what building takes
LEAST = 30  # of them for tests, however long it took
UNKNOWN = 4.0  # seconds that a test takes which has never run


def times_of(build):
    """Seconds of tests by their paths, as the last runs had them."""
    found = {}
    for folder in ("test", "units"):
        for name, seconds in stored_times.read(os.path.join(build, folder, stored_times.NAME)).items():
            found[os.path.join(folder, name)] = abs(float(seconds))
    return found


def choose(distance, times, seconds):
    """The closest tests of which `seconds` of all processors have room for, short ones first; those that a path names
    are in it in any case."""
    chosen = []
    for test in sorted(distance, key=lambda test: (distance[test], times.get(test, UNKNOWN), test)):
        seconds -= times.get(test, UNKNOWN)
        if distance[test] == 0 or seconds > 0:
            chosen.append(test)
    return chosen


def not_run(left):
    """In a line: where the tests are that were not run."""
    folders = collections.Counter(os.path.dirname(test) or test for test in left)
    return "; ".join(f"{count} of {folder}" for folder, count in sorted(folders.items())) or "no test that these paths reach"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("source")
    parser.add_argument("--cache", required=True)
    parser.add_argument("paths", nargs="*")
    options = parser.parse_intermixed_args()
    start = time.monotonic()
    build = os.path.abspath(options.build)
    affected = Affected(build, options.source)
    if not options.paths:
        print("usage: ./dev check PATH...")
        sys.exit(2)
    for path in options.paths:
        relative = os.path.relpath(os.path.abspath(path), affected.source)
        if relative.startswith("..") or not os.path.exists(os.path.join(affected.source, relative)):
            print(f"{path}: no such path")
            sys.exit(2)
        if not affected.add(relative):
            print(f"{path}: reaches no test")
            print("not run: all tests; ./dev test runs them")
            sys.exit(2)
    for test in affected.lit_tests("test/Smoke"):
        affected.add_test(test, 0)
    folders = [os.path.join(build, "test"), os.path.join(build, "units")]
    stored_times.take(options.cache, build, folders)
    # What is not built yet may take all of the time.
    times, row = times_of(build), Row()
    workers = os.cpu_count()
    chosen = choose(affected.distance, times, BUDGET * workers)
    if measured(row, run_ninja, build, affected.targets_of(chosen)):
        print(f"not run: anything, since {', '.join(options.paths)} cannot be built")
        sys.exit(1)
    room = max(LEAST, BUDGET - (time.monotonic() - start))
    chosen = choose({test: affected.distance[test] for test in chosen}, times, room * workers)
    left = sorted(set(affected.distance) - set(chosen))
    table = {}
    _, failed, left_out = run_lit(build, [os.path.join(build, test) for test in chosen], workers, table, nightly=False)
    counts = sum((suite.codes for name, suite in table.items() if name != "tests"), collections.Counter())
    for name in failed:
        print(f"failed: {name}")
    for name in left_out:
        print(f"left out: {name}")
    print(f"{minutes(row.wall)} to build, {minutes(table['tests'].wall)} for tests")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['left out']} skipped")
    print(f"not run: {not_run(left)}; ./dev test runs all")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
