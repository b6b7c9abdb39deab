"""A change of a source file for as long as a test runs, and what the test says of it."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from typing import Iterator

#: Longer than any test that is named takes, so that one that hangs is told from one that fails.
LIMIT = 900
LIT = "/usr/lib/llvm-22/bin/lit"
#: Of a fuzzer that runs among the tests.
CASES = 1000
#: GoogleTests that want the device in software.
DEVICE_TESTS = {"DsoptRuntimeCudaTest", "DsoptRuntimeConvolutionsTest", "DsoptRuntimeProductsTest", "DsoptRuntimeDeviceTest",
                "DsoptRuntimeNcclTest"}


@dataclasses.dataclass(frozen=True)
class Defect:
    """One entry of the list. `old` is there once in `file`, or it is the place `at` of several, from 0; `test` is a lit test
    below test/, `NAME:FILTER` of a GoogleTest or `fuzz:NAME`; `targets` are what has to be built for it."""
    name: str
    room: str
    wrong: str
    file: str
    old: str
    new: str
    targets: str
    test: str
    why: str
    at: int = -1
    drawn: str = ""  #: seed and index of one that was drawn

    def planted(self, text: str) -> str:
        """The file's text with it; an error where the place is not what the list says."""
        count = text.count(self.old)
        if self.old == self.new or not (count == 1 and self.at < 0 or 0 <= self.at < count):
            raise SystemExit(f"{self.name}: {self.file} has its text {count} times, expected "
                             f"{'once' if self.at < 0 else f'more than {self.at} times'}")
        begin = -1
        for _ in range(max(self.at, 0) + 1):
            begin = text.index(self.old, begin + 1)
        return text[:begin] + self.new + text[begin + len(self.old):]


def is_changed(source: str, file: str) -> bool:
    """Whether git knows of a change of the file that is not committed."""
    done = subprocess.run(["git", "status", "--porcelain", "--", file], cwd=source, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git status {file}: {done.stderr.strip()}")
    return bool(done.stdout)


@contextlib.contextmanager
def changed(source: str, defect: Defect) -> Iterator[None]:
    """The source with the defect; as it was at the end, whatever happens meanwhile."""
    if is_changed(source, defect.file):
        raise SystemExit(f"{defect.file} has changes that are not committed: commit them or take them back first")
    path = os.path.join(source, defect.file)
    with open(path, newline="") as file:
        text = file.read()
    planted = defect.planted(text)
    try:
        with open(path, "w", newline="") as file:
            file.write(planted)
        yield
    finally:
        with open(path, "w", newline="") as file:
            file.write(text)


def interruptible() -> None:
    """Makes signals end the program in a way that takes changes back."""
    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def run(command: list[str], log: str, limit: int, environment: dict[str, str] | None = None) -> int | None:
    """The status of a command whose output goes to `log`; none if it took too long. Its children go with it."""
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**os.environ, **(environment or {})})
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Build:
    """A build folder, and the tests that run on it."""

    def __init__(self, build: str, source: str):
        self.build, self.source = os.path.abspath(build), os.path.abspath(source)
        self.logs = os.path.join(self.build, "defects")
        os.makedirs(self.logs, exist_ok=True)

    def make(self, targets: str, name: str) -> bool:
        """Whether the targets can be built."""
        return run(["ninja", "-C", self.build, *targets.split()], os.path.join(self.logs, f"{name}.build"), 4 * LIMIT) == 0

    def test(self, test: str, name: str) -> tuple[str, str, str]:
        """passed, failed, or what else became of a test (or of a folder's); which of them; and a line of what was said."""
        log = os.path.join(self.logs, f"{name}.log")
        return self.google(test, log) if ":" in test else self.with_lit(test, log)

    def google(self, test: str, log: str) -> tuple[str, str, str]:
        program, filter = test.split(":", 1)
        if program == "fuzz":
            return self.fuzz(filter, log)
        found = [os.path.join(folder, program) for folder, _, files in os.walk(os.path.join(self.build, "test")) if program in files]
        if not found:
            return "not built", test, f"there is no {program} below {self.build}/test"
        libraries = os.path.join(self.build, "test", "SoftDevice")
        environment = {"LD_LIBRARY_PATH": libraries, "SOFT_DEVICE": "seed=1"} if program in DEVICE_TESTS else {}
        status = run([found[0], f"--gtest_filter={filter}"], log, LIMIT, environment)
        text = open(log, errors="replace").read()
        if status is None:
            return "timed out", test, ""
        if status == 0:
            return ("nothing ran" if " 0 tests ran" in text or "Running 0 tests" in text else "passed"), test, ""
        which = re.findall(r"^\[  FAILED  \] ([\w/.]+)", text, re.M) or re.findall(r"^\[ RUN      \] ([\w/.]+)", text, re.M)[-1:]
        said = re.findall(r"^.*: Failure\n(?:.*\n){0,2}", text, re.M)
        return "failed", f"{program}:{which[0]}" if which else test, " ".join((said[0] if said else f"status {status}").split())

    def fuzz(self, name: str, log: str) -> tuple[str, str, str]:
        status = run([os.path.join(self.build, "test", "Fuzzers", name), f"-cases={CASES}"], log, LIMIT)
        return "timed out" if status is None else "failed" if status else "passed", f"fuzz:{name}", f"status {status}"

    def with_lit(self, test: str, log: str) -> tuple[str, str, str]:
        with tempfile.TemporaryDirectory() as folder:
            results = os.path.join(folder, "results.json")
            path = os.path.join(self.build, "test", test)
            status = run([LIT, "-v", "-j2", "--max-failures=1", "-o", results, path], log, LIMIT)
            if status is None:
                return "timed out", test, ""
            try:
                found = [(one["code"], one["name"].split(" :: ")[-1]) for one in json.load(open(results))["tests"]]
            except (OSError, ValueError):
                return "not a test", test, open(log, errors="replace").read().strip().splitlines()[-1:][0]
        text = open(log, errors="replace").read()
        failed = [name for code, name in found if code == "FAIL"]
        if failed:
            said = re.findall(r"^.*(?:FAILED|[Ee]rror|differ|expected|wrong).*$", text.split("Exit Code")[-1], re.M)
            return "failed", failed[0], said[0].lstrip("# |").strip() if said else ""
        others = {code for code, _ in found} - {"PASS", "SKIPPED", "EXCLUDED"}
        return (sorted(others)[0].lower() if others else "passed" if found else "nothing ran"), test, ""


def seconds_since(begin: float) -> int:
    return round(time.monotonic() - begin)
