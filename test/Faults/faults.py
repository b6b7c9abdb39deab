"""Seeded faults at every moment of a run: on one process, shared memory, TCP, hosts of two ranks and MPI.

usage: faults.py BUILD FOLDER [-seed=N] [-cases=N] [-seconds=S] [-jobs=N] [-engine=one|shm|tcp|hosts|mpi] [-programs=tiny|all]

Case N is made of seed N alone: `-seed=17 -cases=1` repeats it. A fault must end the run or let it go on within 10 s, with
the status that it should have and one message; after it -resume=auto must give the bits of a run that nothing happened to,
no checkpoint may be lost that was not due, and nothing may stay behind. Prints how many faults of which kind struck in
which phase, and each failure with the line that repeats it; ends with status 1 if there is one.
"""
from __future__ import annotations

import collections
import concurrent.futures
import os
import random
import re
import shutil
import signal
import sys
import time

from kinds import KINDS, Kind, cause, expected
from places import PHASES, Place, heard, listening, table
from scenarios import BELONGS, KEEP, PATIENCE, STEPS, Attempt, Scenario, compiled_programs, end_of, fresh, options_of, steps_of, tiny_programs

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
#: From a fault to the end of the run, or to where it goes on: seconds in which it waits for something else than a busy
#: machine, and in all.
LIMIT, LONGEST = 10, 60
#: Steps of the run that left the checkpoints which others go on from.
BEFORE = 3


class Failure(Exception):
    pass


def checkpoints(folder: str) -> list[str]:
    """The complete ones, by name."""
    save = f"{folder}/save"
    return sorted(name for name in (os.listdir(save) if os.path.isdir(save) else [])
                  if re.fullmatch(r"step-\d+", name) and os.path.exists(f"{save}/{name}/manifest.json"))


def count(errors: list[str], place: Place) -> int:
    """Messages; those that several have to say are one: before they have met, ranks that wait for rank 0 know of nobody else."""
    waits = "cannot reach rank 0|lost rank 0|heard no more of rank 0" if place.rank == 0 else "$^"
    several = [error for error in errors if re.search(waits, error)]
    return len(errors) - len(several) + bool(several)


class Campaign:
    def __init__(self, build: str, folder: str, engines: list[str], programs: str):
        self.folder = fresh(folder)
        self.points, self.calls = table(SOURCE)
        found = tiny_programs(build, folder) + (compiled_programs(build, folder) if programs == "all" else [])
        self.scenarios = []
        for program in found:
            for engine in ["one"] if program.ranks == 1 else ["shm", "tcp", "mpi"] + ["hosts"] * (program.ranks > 2):
                if engine in engines and not (engine == "mpi" and not shutil.which("mpirun")):
                    self.scenarios += [Scenario(program, engine, resumes, asynchronous)
                                       for resumes, asynchronous in ((False, False), (True, False), (False, True), (True, True))]
        self.prepare()

    def options(self, scenario: Scenario, folder: str, steps: int = STEPS) -> list[str]:
        return options_of(scenario, folder, steps)

    def prepare(self) -> None:
        """What each run is without a fault, and where one can strike."""
        for scenario in self.scenarios:
            name = re.sub(r"\W", "-", scenario.program.name)
            scenario.start = f"{self.folder}/start-{name}"
            if not os.path.exists(scenario.start):
                os.makedirs(scenario.start)
                self.run(scenario, scenario.start, self.options(scenario, scenario.start, BEFORE))
            whole = self.begin(scenario, f"{self.folder}/calibrate")
            fault = listening(SOURCE, f"{whole}/hits").rsplit(";", 1)[0]
            self.run(scenario, whole, self.options(scenario, whole), fault)
            scenario.places = heard(SOURCE, f"{whole}/hits")
            scenario.hash = end_of(whole).get("weights_hash", "")
            if not scenario.hash:
                sys.exit(f"{scenario.name}: no hash in the log of a run without faults")

        if not any(scenario.places for scenario in self.scenarios):
            sys.exit("no run comes to any point or call of Points.def")

    def begin(self, scenario: Scenario, folder: str) -> str:
        """The folder that a run begins in."""
        shutil.rmtree(folder, ignore_errors=True)
        if scenario.resumes:
            shutil.copytree(scenario.start, folder)
        else:
            os.makedirs(folder)
        return folder

    def run(self, scenario: Scenario, folder: str, options: list[str], fault: str = "") -> Attempt:
        """A run that has to come to its end."""
        attempt = Attempt(scenario, folder, options, fault)
        inside = attempt.wait(LONGEST)
        if not inside or any(attempt.statuses()):
            attempt.end()
            raise Failure(f"a run without a fault ended with {attempt.statuses()}: {attempt.output()[-500:]}")
        attempt.end()
        return attempt

    def draw(self, seed: int) -> tuple[Scenario, Kind, Place, str]:
        """The case: a phase and a kind first, so that the table fills evenly."""
        generator = random.Random(seed)
        weights = [0.3 if scenario.engine == "mpi" else 1 for scenario in self.scenarios]
        while True:
            scenario = generator.choices(self.scenarios, weights)[0]
            phase, kind = generator.choice(PHASES), generator.choice(KINDS)
            moments = [place for place in scenario.places if place.phase == phase]
            names = sorted({place.name for place in moments})
            if not names:
                continue
            name = generator.choice(names)
            place = generator.choice([place for place in moments if place.name == name])
            what = kind.at(place, self.calls.get(place.name), scenario, generator)
            if what:
                return scenario, kind, place, what

    def case(self, seed: int) -> tuple[int, Kind, Place, bool, str]:
        """The seed, what struck and where, whether it struck, and what is wrong (empty: nothing)."""
        scenario, kind, place, what = self.draw(seed)
        folder = f"{self.folder}/{seed}"
        fault = place.fault(what)
        wrong, attempt, struck = "", None, False
        self.begin(scenario, folder)
        before = checkpoints(folder)
        try:
            # What goes on may be slow on a busy machine.
            goes_on = expected(kind, what, place, scenario)[0] == {0}
            attempt = Attempt(scenario, folder, self.options(scenario, folder), fault, LONGEST if goes_on else PATIENCE)
            self.follow(attempt, kind, what, place)
            struck = bool(attempt.hit())
            self.judge_end(attempt, kind, what, place, scenario)
            self.judge_checkpoints(folder, before)
            self.judge_restart(scenario, folder)
        except Failure as failure:
            hint = attempt.output().strip()[-400:] if attempt else ""
            wrong = f"{scenario.name}, {place.phase}, {kind.name}: {failure}\n    DSOPT_FAULT={fault}\n    " + hint.replace("\n", "\n    ")
        finally:
            if attempt:
                struck = struck or bool(attempt.hit())
                attempt.end()
        if not wrong:
            shutil.rmtree(folder)
        return seed, kind, place, struck, wrong

    def follow(self, attempt: Attempt, kind: Kind, what: str, place: Place) -> None:
        """Waits for the end, and does what is done from outside as the fault strikes."""
        outside = kind.name in ("interrupt", "twice")
        begun = time.monotonic()
        limit = LIMIT + (int(what.split("=")[1]) / 1000 if kind.name in ("delay", "pause") else 0)
        waited = list(attempt.processes)
        still, last = 0.0, begun
        if attempt.scenario.apart and kind.what == "stop=0":
            del waited[place.rank]  # stands still until somebody ends it
        while any(process.poll() is None for process in waited):
            hit = attempt.hit()
            since = int(hit.split()[0]) / 1e9 if hit else begun + LIMIT
            if hit and outside:
                # Two of one kind that come at once are one to whom they are sent.
                for number in [signal.SIGTERM, signal.SIGINT][:2 if kind.name == "twice" else 1]:
                    for process in attempt.processes:
                        if process.poll() is None:
                            process.send_signal(number)
                outside = False
            now = time.monotonic()
            if now > since and not attempt.runs():
                still += now - max(last, since)
            last = now
            if still > limit or now > since + LONGEST:
                left = attempt.end()
                raise Failure(f"hangs: {len(left)} processes after {now - since:.0f} s")
            time.sleep(0.01)

    def judge_end(self, attempt: Attempt, kind: Kind, what: str, place: Place, scenario: Scenario) -> None:
        if scenario.apart and kind.what == "stop=0" and attempt.hit():
            attempt.processes[place.rank].kill()
            attempt.processes[place.rank].wait()
        # Ranks of a launcher that died end by a signal.
        soon = time.monotonic() + 5
        while left := attempt.left():
            if time.monotonic() > soon:
                raise Failure(f"{len(left)} processes stay behind")
            time.sleep(0.1)
        statuses, errors = attempt.statuses(), attempt.errors()
        if not attempt.hit():
            if any(statuses):
                raise Failure(f"nothing struck, statuses {statuses}")
            return
        may, speaks = expected(kind, what, place, scenario)
        struck = statuses
        if scenario.apart and kind.name in ("kill", "crash", "exit", "freeze", "twice"):
            struck = statuses[:place.rank] + statuses[place.rank + 1:]
        if scenario.engine == "mpi" and 2 in may:  # mpirun has statuses and messages of its own, and ends the others
            may, speaks = may | set(range(1, 256)), False
        if scenario.apart and end_of(attempt.folder).get("status") == "ok":
            # All had said that they finished: what becomes of one does not concern the others any more.
            may = may | {0}
            struck = [status for rank, status in enumerate(statuses) if rank != place.rank]
        # How often a call is made before that depends on time.
        ended = scenario.apart and (place.phase == "finish" or steps_of(attempt.folder) == STEPS) and set(struck) <= {0, 2}
        if ended:
            # The last exchange tells some ranks that all are done before it tells others.
            may = may | {0}
        if kind.name in ("interrupt", "twice") and place.phase in ("start", "load"):
            # Another rank is not in main() yet.
            may = may | {3}
            struck = [3 if status == -signal.SIGTERM else status for status in struck]
        if any(status not in may for status in struck):
            raise Failure(f"statuses {statuses}, expected {sorted(may)}")
        if len(set(struck)) > 1 and kind.name not in ("interrupt", "twice") and not ended:
            raise Failure(f"ranks ended differently: {statuses}")
        failed = any(status not in (0, 3) for status in struck)
        if failed and speaks and count(errors, place) != 1:
            raise Failure(f"{len(errors)} messages, expected one: {errors}")
        # Nor do all get the second signal at once: one that has left by it is missed by one that has not.
        left = kind.name == "twice" and scenario.apart and all("ended without a word" in error for error in errors)
        if not failed and errors and not left:
            raise Failure(f"status {statuses}, but a message: {errors}")
        if failed and cause(kind, what) not in "".join(errors):
            raise Failure(f"the message does not say '{cause(kind, what)}': {errors}")
        if not any(statuses) and kind.name not in ("flip", "exit"):
            if (hash := end_of(attempt.folder).get("weights_hash")) != scenario.hash:
                raise Failure(f"status 0 and other weights: {hash}, expected {scenario.hash}")

    def judge_checkpoints(self, folder: str, before: list[str]) -> None:
        """What was there is there, unless it was due for pruning."""
        now = checkpoints(folder)
        for name in before:
            newer = [other for other in now if other > name]
            if name not in now and len(newer) < KEEP:
                raise Failure(f"{name} is lost: before {before}, now {now}")

    def judge_restart(self, scenario: Scenario, folder: str) -> None:
        attempt = Attempt(scenario, folder, self.options(scenario, folder))
        if not attempt.wait(LONGEST):
            attempt.end()
            raise Failure("-resume=auto hangs: " + attempt.output()[-300:])
        if any(attempt.statuses()):
            raise Failure(f"-resume=auto ends with {attempt.statuses()}: {attempt.output()[-300:]}")
        if (hash := end_of(folder).get("weights_hash")) != scenario.hash:
            raise Failure(f"-resume=auto gives other weights: {hash}, expected {scenario.hash}")
        if drafts := [name for name in os.listdir(f"{folder}/save") if not re.fullmatch(BELONGS, name)]:
            raise Failure(f"drafts stay: {drafts}")
        mpi = scenario.engine == "mpi"
        known = {"save", "log.jsonl", "weights.safetensors", "tmp", "hits"}
        if more := [name for name in os.listdir(folder) if name not in known and not name.startswith("output.")]:
            raise Failure(f"files stay: {more}")
        if not mpi and (temporary := os.listdir(f"{folder}/tmp")):
            raise Failure(f"temporary files stay: {temporary}")


def shared_memory() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if "dsopt" in name and "fuzz" not in name}


def main(build: str, folder: str, *arguments: str) -> int:
    given = dict(argument.lstrip("-").split("=", 1) for argument in arguments)
    seed, cases = int(given.get("seed", 1)), int(given.get("cases", 300))
    seconds = float(given.get("seconds", "inf"))
    engines = given["engine"].split(",") if "engine" in given else ["one", "shm", "tcp", "hosts", "mpi"]
    jobs = int(given.get("jobs", os.cpu_count() or 1))
    before, began = shared_memory(), time.monotonic()
    campaign = Campaign(os.path.abspath(build), os.path.abspath(folder), engines, given.get("programs", "all"))
    reached: collections.Counter = collections.Counter()
    failed: collections.Counter = collections.Counter()
    missed = done = 0
    repeat = " ".join(f"-{name}={value}" for name, value in given.items() if name not in ("seed", "cases", "seconds", "jobs"))
    with concurrent.futures.ThreadPoolExecutor(jobs) as workers:
        pending, coming = set(), iter(range(seed, seed + cases))
        while True:
            while len(pending) < jobs and time.monotonic() - began < seconds and (next_seed := next(coming, None)) is not None:
                pending.add(workers.submit(campaign.case, next_seed))
            if not pending:
                break
            finished, pending = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in finished:
                number, kind, place, struck, wrong = future.result()
                done += 1
                missed += not struck
                reached[kind.name, place.phase] += struck
                failed[kind.name, place.phase] += bool(wrong)
                if wrong:
                    print(f"FAILED: {wrong}\n    ./dev faults -seed={number} -cases=1 {repeat}", flush=True)
    print(f"\n{'':10}" + "".join(f"{phase:>10}" for phase in PHASES))
    for kind in KINDS:
        cells = [f"{reached[kind.name, phase]}" + (f" ({failed[kind.name, phase]})" if failed[kind.name, phase] else "") for phase in PHASES]
        print(f"{kind.name:10}" + "".join(f"{cell:>10}" for cell in cells))
    if more := shared_memory() - before:
        print(f"FAILED: shared memory stays: {sorted(more)}")
        failed["shared memory", "finish"] += 1
    failures = sum(failed.values())
    print(f"{done} cases in {time.monotonic() - began:.0f} s, {missed} did not strike, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
