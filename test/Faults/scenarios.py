"""The runs that faults strike: small programs on one process, shared memory, TCP, hosts of two ranks and MPI."""
from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import subprocess
import sys
import time

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Execution"))
from runs import MPIRUN, execute, model, varied  # noqa: E402

#: What a save folder holds between runs: checkpoints, those of other runs under other names, the lock.
BELONGS = r"step-\d+(\.[0-9a-f]{16})?|lock"
STEPS, EVERY, KEEP = 6, 1, 2
#: Where a fault ends the run nobody waits longer: for a rank that does not come (mpirun takes a while to start them), for one
#: that does not go on.
PATIENCE = 3
MARK = "DSOPT_FAULTS_CASE"
USUAL = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMIX_", "DSOPT_"))}


@dataclasses.dataclass
class Program:
    """`command` with its data; `ranks` of it make a world."""
    name: str
    command: list[str]
    ranks: int
    precision: str = "fp32"
    evaluates: bool = True


@dataclasses.dataclass
class Scenario:
    program: Program
    engine: str  # one, shm, tcp (a host for each rank), hosts (for each two), mpi
    resumes: bool  # goes on from a checkpoint, and each action is compared with what it says it touches
    asynchronous: bool = False  # saves while steps go on
    start: str = ""  # the folder that a resumed one begins in
    places: list = dataclasses.field(default_factory=list)
    hash: str = ""

    @property
    def apart(self) -> bool:
        """Whether each rank is started by itself."""
        return self.engine in ("tcp", "hosts")

    @property
    def name(self) -> str:
        return f"{self.program.name} {self.engine}{' resumed' if self.resumes else ''}{' async' if self.asynchronous else ''}"


def tiny_programs(build: str, folder: str) -> list[Program]:
    """TinyProgram.c, which starts in milliseconds."""
    with open(f"{folder}/tiny.bin", "wb") as file:
        file.write(bytes(256))
    x = np.repeat(np.arange(1, 13, dtype=np.float32), 64).reshape(12, 2, 32)
    np.savez(f"{folder}/tiny.npz", x=x, labels=np.zeros((12, 2), np.int32))
    return [Program(f"tiny{ranks}", [f"{build}/bin/dsopt-run", f"{build}/lib/libtiny{ranks}.so", f"-data={folder}/tiny.npz",
                                     f"-weights={folder}"], ranks, evaluates=False) for ranks in (1, 2)]


def compiled_programs(build: str, folder: str) -> list[Program]:
    grids = [("mlp", "fp32", 2, ["-dp=2", "-zero=2", "-micro-batches=2", "-optimizer=adamw", "-offload-optimizer=cpu", "-delayed-update=3"]),
             ("mlp", "bf16", 2, ["-dp=2", "-zero=3", "-micro-batches=2", "-precision=bf16"]),
             ("gpt2-tiny", "fp32", 4, ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2"])]
    programs = []
    for name, precision, ranks, options in grids:
        path, data = model(name)
        output = f"{folder}/{name}-{precision}"
        execute([f"{build}/bin/dsopt", path, *options, f"-data={data}", "-o", output])
        programs.append(Program(f"{name} {precision}", [output, f"-data={data}", f"-eval-data={data}", "-eval-every=2",
                                                        "-eval-batches=2"], ranks, precision))
    return programs


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Attempt:
    """The processes of one run in `folder`, which holds its checkpoints, log and temporary files."""

    def __init__(self, scenario: Scenario, folder: str, options: list[str], fault: str = "", patience: int = 60):
        self.folder, self.scenario = folder, scenario
        os.makedirs(f"{folder}/tmp", exist_ok=True)
        self.started = time.monotonic_ns()
        self.hits = f"{folder}/hits"
        self.known, self.looked = [], 0.0
        if os.path.exists(self.hits):
            os.remove(self.hits)
        environment = dict(USUAL, TMPDIR=f"{folder}/tmp", DSOPT_LAUNCH_TIMEOUT=str(2 * patience if scenario.engine == "mpi" else patience), **{MARK: folder})
        if scenario.resumes:
            environment["DSOPT_CHECK_ACCESSES"] = "1"
        if fault:
            environment["DSOPT_FAULT"] = f"{fault};hits={self.hits}"
        command = varied([*scenario.program.command, *options, f"-stall-timeout={patience}"])
        if scenario.apart:
            port, shared = free_port(), 2 if scenario.engine == "hosts" else 1
            runs = [(command, dict(environment, RANK=str(rank), WORLD_SIZE=str(scenario.program.ranks), MASTER_ADDR="127.0.0.1",
                                   MASTER_PORT=str(port), DSOPT_HOST=f"h{rank // shared}")) for rank in range(scenario.program.ranks)]
        elif scenario.engine == "mpi":
            runs = [([*MPIRUN, str(scenario.program.ranks), *command], environment)]
        else:
            runs = [(command, environment)]
        self.outputs = [f"{folder}/output.{index}" for index in range(len(runs))]
        self.processes = []
        for (arguments, variables), output in zip(runs, self.outputs):
            with open(output, "w") as file:
                self.processes.append(subprocess.Popen(arguments, env=variables, stdin=subprocess.DEVNULL, stdout=file,
                                                       stderr=subprocess.STDOUT, start_new_session=True, cwd=folder))

    def hit(self, fault: str = "") -> str:
        """The line of the first fault that struck, or of this one; empty before."""
        try:
            with open(self.hits) as file:
                return next((line for line in file if line.endswith(f"{fault}\n")), "")
        except FileNotFoundError:
            return ""

    def wait(self, seconds: float) -> bool:
        """Whether all ended in time."""
        end = time.monotonic() + seconds
        while any(process.poll() is None for process in self.processes):
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def statuses(self) -> list[int]:
        return [process.returncode for process in self.processes]

    def output(self) -> str:
        return "".join(open(output, errors="replace").read() for output in self.outputs)

    def errors(self) -> list[str]:
        return [line for line in self.output().splitlines() if line.startswith("dsopt: error:")]

    def left(self) -> list[int]:
        """Processes that carry this run's mark."""
        mark, found = f"{MARK}={self.folder}".encode(), []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/environ", "rb") as file:
                        if mark in file.read().split(b"\0"):
                            with open(f"/proc/{entry}/stat") as stat:
                                if stat.read().rsplit(")", 1)[1].split()[0] != "Z":
                                    found.append(int(entry))
                except OSError:
                    pass
        return found

    def runs(self) -> bool:
        """Whether one of its threads has something to do, and at most a busy machine to wait for."""
        if time.monotonic() > self.looked + 1:
            self.known, self.looked = self.left(), time.monotonic()
        for process in self.known:
            try:
                for thread in os.listdir(f"/proc/{process}/task"):
                    with open(f"/proc/{process}/task/{thread}/stat") as stat:
                        if stat.read().rsplit(")", 1)[1].split()[0] in "RD":
                            return True
            except OSError:
                pass
        return False

    def end(self) -> list[int]:
        """Kills what is left of it."""
        left = self.left()
        for process in left:
            try:
                os.kill(process, 9)
            except ProcessLookupError:
                pass
        for process in self.processes:
            process.wait()
        return left


def options_of(scenario: Scenario, folder: str, steps: int = STEPS) -> list[str]:
    return [f"-steps={steps}", f"-save={folder}/save", f"-save-every={EVERY}", f"-save-keep={KEEP}", f"-log={folder}/log.jsonl",
            f"-save-weights={folder}/weights.safetensors", "-resume=auto", "-quiet",
            *(["-save-async"] if scenario.asynchronous else [])]


def last_line(folder: str) -> dict:
    """Of a run's log."""
    try:
        with open(f"{folder}/log.jsonl", errors="replace") as file:
            return json.loads(file.readlines()[-1])
    except (OSError, ValueError, IndexError):
        return {}


def end_of(folder: str) -> dict:
    """What the log ends with."""
    return last_line(folder).get("end", {})


def steps_of(folder: str) -> int:
    """After how many steps the log stops that has no end."""
    return last_line(folder).get("step", -1) + 1


def fresh(folder: str) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder
