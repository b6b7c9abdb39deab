"""Random training graphs against float64, in random layouts, stages and programs.

usage: fuzz.py DSOPT FOLDER [-seed=N] [-cases=N] [-checks=N] [-target=cpu|cuda]

Case N is made of seed N alone: `-seed=17 -cases=1` repeats it. What fails is made smaller and written to FOLDER/SEED:
model.onnx, data.npz, `command`, and `what` with a line that says what is wrong. Ends with status 1 if something failed.
With -target=cuda programs are for the device in software, whose streams go in an order of the case's own.
"""
from __future__ import annotations

import collections
import multiprocessing
import os
import shutil
import sys
import time
import traceback
import warnings


from checks import Checker, Property, draw_properties
from generate import Case, generate
from minimize import Minimizer, signature
from tool import Failure, Refused, Tool, shown

#: How long one case is made smaller, and how many of one signature are.
SECONDS, EACH = 240, 2


class Worker:
    def __init__(self, dsopt: str, folder: str, checks: int, target: str):
        self.dsopt, self.folder, self.checks, self.target = dsopt, folder, checks, target

    def tool(self, folder: str, seed: int, seconds: float = 120) -> Tool:
        # A device for each rank, or one for all.
        device = f"seed={seed},devices={1 + 7 * (seed % 2)}" if self.target == "cuda" else ""
        return Tool(self.dsopt, folder, seconds, device)

    def attempt(self, case: Case, properties: list[Property], numbers: bool = True, seconds: float = 30) -> Failure | None:
        checker = Checker(self.tool(self.scratch, case.seed, seconds), case)
        try:
            checker.check(properties, numbers)
        except Failure as failure:
            return failure
        except Refused as refusal:
            self.notes["refused: " + str(refusal).split(" error: ")[-1][:70]] += 1
        except Exception as error:  # the fuzzer's own fault, to be told apart from dsopt's
            where = traceback.extract_tb(error.__traceback__)[-1]
            return Failure("oracle", f"{type(error).__name__} in {os.path.basename(where.filename)}:{where.lineno}: {error}")
        self.notes["sensitive"] += checker.sensitive
        return None

    def __call__(self, seed: int) -> tuple[int, Failure | None, tuple | None, collections.Counter]:
        """A case's failure, if it has one, with what is needed to make it smaller."""
        self.scratch = os.path.join(self.folder, f"{seed}.run")
        self.notes: collections.Counter = collections.Counter()
        case = generate(seed)
        properties = draw_properties(case, self.checks)
        failure = self.attempt(case, properties, seconds=120)
        shutil.rmtree(self.scratch, ignore_errors=True)
        return seed, failure, (case, properties) if failure else None, self.notes

    def minimize(self, seed: int, failure: Failure, trial: tuple) -> Failure:
        """Writes the smallest case found; returns how that fails."""
        self.scratch, self.notes = os.path.join(self.folder, f"{seed}.run"), collections.Counter()
        minimizer = Minimizer(self.attempt, failure, SECONDS)
        case, properties = minimizer.run(trial)
        shutil.rmtree(self.scratch, ignore_errors=True)
        folder = os.path.join(self.folder, str(seed))
        checker = Checker(self.tool(folder, seed), case)
        checker.write(case)
        try:
            checker.check(properties)
        except Failure as last:
            minimizer.failure = last
        except Exception:  # already told by minimizer.failure
            pass
        for name in os.listdir(folder):
            if name not in ("model.onnx", "data.npz", "stage.mlir"):
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        with open(os.path.join(folder, "what"), "w") as file:
            print(f"{minimizer.failure.kind}: {minimizer.failure.what}", file=file)
            print(f"{len(case.graph.nodes)} nodes: {' '.join(node.op for node in case.graph.nodes)}", file=file)
            print(*properties, file=file)
        with open(os.path.join(folder, "command"), "w") as file:
            print(shown(minimizer.failure.command or ["no command"]), file=file)
        return minimizer.failure


def run_case(job: tuple[Worker, int]):
    warnings.simplefilter("ignore")
    return job[0](job[1])


def progress(done: int, cases: int, began: float, failures: int, end: str) -> None:
    rate = done / max(time.monotonic() - began, 1e-9)
    print(f"\r{done}/{cases} cases  {rate:.2f} cases/s  {failures} failures", end=end, file=sys.stderr, flush=True)


def fuzz(worker: Worker, first: int, cases: int) -> int:
    """The number of failures."""
    warnings.simplefilter("ignore")
    began, notes = time.monotonic(), collections.Counter()
    seen: collections.Counter = collections.Counter()
    failures = 0
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        jobs = ((worker, seed) for seed in range(first, first + cases))
        for done, (seed, failure, trial, noted) in enumerate(pool.imap_unordered(run_case, jobs), 1):
            notes.update(noted)
            if failure:
                failures += 1
                mark = signature(failure)
                seen[mark] += 1
                print(f"\nseed {seed}: {failure.kind}: {failure.what}", flush=True)
                if seen[mark] <= EACH:
                    smaller = worker.minimize(seed, failure, trial)
                    print(f"  made smaller: {smaller.kind}: {smaller.what}\n  in {os.path.join(worker.folder, str(seed))}", flush=True)
                print(f"  repeat with: ./dev fuzz -seed={seed} -cases=1 -target={worker.target}", flush=True)
            if sys.stderr.isatty() or done % 50 == 0 or done == cases:
                progress(done, cases, began, failures, "" if sys.stderr.isatty() and done < cases else "\n")
    for note, count in sorted(notes.items()):
        print(f"{note}: {count}")
    print(f"{cases} cases, {failures} failures")
    return failures


def main() -> None:
    words, values, target = [], {"seed": 1, "cases": 100, "checks": 2}, "cpu"
    for word in sys.argv[1:]:
        name, _, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name in values and value.isdigit():
            values[name] = int(value)
        elif word in ("-target=cpu", "-target=cuda"):
            target = value
        elif word.startswith("-"):
            sys.exit(f"unknown option {word}; expected -seed=N, -cases=N, -checks=N or -target=cpu|cuda")
        else:
            words.append(word)
    if len(words) != 2:
        sys.exit(__doc__)
    os.makedirs(words[1], exist_ok=True)
    worker = Worker(os.path.abspath(words[0]), os.path.abspath(words[1]), values["checks"], target)
    sys.exit(1 if fuzz(worker, values["seed"], values["cases"]) else 0)


if __name__ == "__main__":
    main()
