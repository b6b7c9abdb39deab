"""Runs one command and reads what it says: the part of the benchmark that knows how things are measured."""
import dataclasses
import json
import os
import re
import shutil
import subprocess
import tempfile
import time


@dataclasses.dataclass
class Watched:
    """A finished command. `first_s` is the time from its start until it printed the first step's loss, `peak_mb` the
    resident memory of its largest process."""
    status: int
    lines: list
    errors: str
    first_s: float
    peak_mb: float

    def why(self):
        said = self.errors.strip() or "".join(self.lines).strip() or f"status {self.status}"
        # torchrun ends what it says with a rule.
        return next((line for line in reversed(said.splitlines()) if line.strip("=-* ")), said)


def watch(command, env=None):
    began, first, lines = time.monotonic(), None, []
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **(env or {})})
        for line in process.stdout:
            if first is None and line.startswith("step "):
                first = time.monotonic() - began
            lines.append(line)
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return Watched(process.returncode, lines, errors.read(), first, usage.ru_maxrss / 1024)


def middle(times):
    """The median step; the first two warm caches up."""
    rest = sorted(times[min(2, len(times) - 1):])
    return rest[len(rest) // 2]


def run_peer(command, env=None):
    """The row that a peer's last line holds, or why there is none."""
    done = watch(command, env)
    rows = [line for line in done.lines if line.startswith("{")]
    if done.status or not rows:
        return None, done.why()
    row = json.loads(rows[-1])
    device = {"device_mb": row["device_mb"]} if "device_mb" in row else {}
    return {"losses": row["losses"], "step_s": middle(row["times"]), "first_loss_s": done.first_s, "peak_mb": done.peak_mb, **device}, ""


class Program:
    """A model compiled by dsopt: once from nothing, once more with what the first time left in the cache; `rounds` times."""

    def __init__(self, dsopt, model, output, options, rounds=1):
        self.path, self.error = output, None
        cache = output + ".cache"
        times = {"cold": [], "warm": []}
        for _ in range(rounds):
            shutil.rmtree(cache, ignore_errors=True)
            for when in times:
                began = time.monotonic()
                done = watch([dsopt, model, "-o", output, *options], {"DSOPT_CACHE": cache})
                times[when].append(time.monotonic() - began)
                if done.status:
                    self.error = done.why()
                    return
        shutil.rmtree(cache, ignore_errors=True)
        self.compile_s = {when: sorted(values)[len(values) // 2] for when, values in times.items()}

    def train(self, data, steps, options=()):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log.jsonl")
            done = watch([self.path, f"-data={data}", f"-steps={steps}", f"-log={log}", *options])
            if done.status:
                return None, done.why()
            rows = [row for row in map(json.loads, open(log)) if "step_ms" in row]
        return {"losses": [row["loss"] for row in rows], "step_s": middle([row["step_ms"] / 1e3 for row in rows]),
                "first_loss_s": done.first_s, "peak_mb": done.peak_mb}, ""

    def report(self, data, steps):
        done = watch([self.path, f"-data={data}", f"-steps={steps}", "-report=kernels"])
        if done.status:
            raise RuntimeError(done.why())
        return Report("".join(done.lines))


class Report:
    """What -report=kernels says of a step. What it says of products is 0 where there are none."""
    ROW = re.compile(r"^ +[\d.]+ +(?P<ms>[\d.]+) +[\d.]+% +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +\d+%  (?P<kind>\S+)", re.M)
    STEP = re.compile(r"mean of \d+ steps? of ([\d.]+) ms")
    PRODUCTS = re.compile(r"([\d.]+) GFLOP at ([\d.]+) GFLOP/s; .* whole-program efficiency ([\d.]+)%")

    def __init__(self, text):
        self.rows = [(match["kind"], float(match["ms"])) for match in self.ROW.finditer(text)]
        step, products = self.STEP.search(text), self.PRODUCTS.search(text)
        if not (self.rows and step) or ("calls with products" in text) != bool(products):
            raise RuntimeError(f"-report=kernels says something else:\n{text}")
        self.step_ms = float(step[1])
        self.gflop, self.rate, self.efficiency = (float(products[i]) if products else 0.0 for i in (1, 2, 3))

    def ms(self, kind):
        return sum(ms for name, ms in self.rows if name == kind)
