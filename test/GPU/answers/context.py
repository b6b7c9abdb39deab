"""What a step has: the package, its folders, its limit, and the programs that it runs."""
import json
import math
import os
import subprocess
import sys
import time
import traceback

import gpu
import process
from measure import middle

# Of the GPU's memory, beside the plan, for each rank: the driver's context, the code of kernels and what libraries take.
BESIDE = 600 << 20
MIB = 1 << 20


class Failed(Exception):
    """The answer is no."""


class Hung(Exception):
    """No rank got on."""


class Skipped(Exception):
    """More memory is needed than is free."""


class Absent(Exception):
    """What is needed is not installed."""


STATUS = {Failed: "failed", Hung: "hung", Skipped: "skipped", Absent: "absent"}


def write_json(path, value):
    """Whole or not at all."""
    with open(path + ".part", "w") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def check(condition, message):
    if not condition:
        raise Failed(message)


def differ(got, expected):
    """The largest relative difference; infinite where one is not finite or there are fewer."""
    if len(got) != len(expected) or not got:
        return float("inf")
    if not all(map(math.isfinite, [*got, *expected])):
        return float("inf")
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(got, expected))


class Run:
    """What a program logged."""

    def __init__(self, path):
        with open(path) as file:
            lines = [json.loads(line) for line in file]
        self.head, self.end = lines[0]["run"], lines[-1].get("end", {})
        self.steps = [line for line in lines if "step_ms" in line]
        self.losses = [step["loss"] for step in self.steps]
        self.hash = self.end.get("weights_hash")

    def step_ms(self):
        """The median; the first two steps record graphs, too."""
        return middle([step["step_ms"] for step in self.steps])


class Context:
    def __init__(self, root, step, limit):
        self.root, self.step, self.limit = root, step, limit
        self.work, self.shared = os.path.join(root, "work", step.name), os.path.join(root, "work")
        self.said, self.file = os.path.join(self.work, "said.txt"), os.path.join(self.work, "answer.json")
        self.package = self.read_package(root)
        self.answer, self.began, self.runs = {"status": "running", "said": ""}, time.monotonic(), 0

    @staticmethod
    def read_package(root):
        with open(os.path.join(root, "package.json")) as file:
            return json.load(file)

    def note(self, **figures):
        """What was answered so far outlives the process."""
        self.answer.update(figures)
        write_json(self.file, self.answer)

    def answered(self):
        if not os.path.exists(self.file):
            return None
        with open(self.file) as file:
            return json.load(file)

    def left(self):
        return self.limit - (time.monotonic() - self.began)

    def programs(self):
        """Of the package, those of this step."""
        return {name: program for name, program in self.package["programs"].items() if program["step"] in self.step.programs}

    def needed(self):
        """Bytes of the GPU's memory."""
        return max((program["device_bytes"] + BESIDE * program["ranks"] for program in self.programs().values()), default=0)

    def run(self):
        """Asks, and writes the answer."""
        try:
            self.note()
            if self.needed():
                free, _ = gpu.memory()
                if free < self.needed():
                    self.note(needed_mib=self.needed() // MIB, free_mib=free // MIB)
                    raise Skipped(f"needs {self.needed() // MIB} MiB of the GPU's memory, of which {free // MIB} MiB are free")
            self.note(said=self.step.ask(self), status="passed")
        except tuple(STATUS) as error:
            self.note(said=str(error), status=STATUS[type(error)])
        except gpu.NoGPU as error:
            self.note(said=str(error), status="failed")
        except Exception as error:
            traceback.print_exc()
            self.note(said=f"{type(error).__name__}: {error}", status="failed")
        return 0

    def environment(self):
        """In which programs run: given libraries first, then pip's and the toolkit's, then what a bare machine lacks. What the driver compiles
        is kept for the next process."""
        folders = [gpu.environment()["LD_LIBRARY_PATH"], os.path.join(self.root, "lib")]
        return {**os.environ, "CUDA_CACHE_PATH": os.path.join(self.shared, "compiled"), "LD_LIBRARY_PATH": os.pathsep.join(filter(None, folders))}

    def execute(self, command, accepts=(0,), environment=None):
        """What a command says, in a file that is there when the step is killed as well."""
        self.runs += 1
        path = os.path.join(self.work, f"{self.runs}-{os.path.basename(command[0])}.txt")
        print(f"runs {' '.join(command)}", flush=True)
        with open(path, "wb") as said:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=environment or self.environment())
            try:
                status = child.wait(max(self.left() - 2, 1))
            except subprocess.TimeoutExpired:
                waits = process.where(os.getpgrp())
                self.note(waits=waits)
                raise Hung(f"{os.path.basename(command[0])} did not end by the step's limit of {self.limit:g} s: {process.last(path)}") from None
        with open(path, errors="replace") as file:
            text = file.read()
        sys.stdout.write(text[-4096:])
        if status not in accepts:
            stalled = "-stall-timeout)" in text
            self.note(last_error=process.last_error(path))
            raise (Hung if stalled else Failed)(f"{os.path.basename(command[0])} ended with status {status}: {process.last(path)}")
        return status, text

    def train(self, name, *options):
        """A program's run. One in which nothing moves says who waits for whom well before the step's limit."""
        log = os.path.join(self.work, f"{self.runs + 1}-{name}.jsonl")
        stall = max(int(self.left() / 2), 1)
        self.execute([os.path.join(self.root, "programs", name), f"-log={log}", "-quiet", f"-stall-timeout={stall}", *options])
        return Run(log)

    def small(self, name):
        """Options of a program of a small model: its data and weights are in the package."""
        program = self.package["programs"][name]
        folder = os.path.join(self.root, "models", program["model"])
        return [f"-data={folder}/batches.npz", f"-weights={folder}", *program["run"]]

    def drawn(self, name, steps):
        """Options of a program of a large model: its weights follow from a seed and are drawn once."""
        import gpt

        program = self.package["programs"][name]
        size = program["model"]
        geometry = gpt.sized(size)
        weights, data = os.path.join(self.shared, f"{size}.safetensors"), os.path.join(self.shared, f"{size}-{steps}.npz")
        gpt.keep_weights(weights, geometry)
        if not os.path.exists(data):
            gpt.save_batches(data + ".part.npz", geometry, steps)
            os.replace(data + ".part.npz", data)
        return [f"-data={data}", f"-weights={weights}", f"-steps={steps}", *program["run"]]
