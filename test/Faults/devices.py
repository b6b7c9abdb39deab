"""Devices that fail in the middle of a run: one message, status 2, nothing lost.

usage: devices.py BUILD FOLDER [-seed=N] [-cases=N]

Case N is made of seed N alone: which rank's device fails, how, with which of its kernels, and how ranks are joined. All
ranks have to end within LIMIT seconds with status 2 and one message that names rank, GPU, step and action and has what the
driver says; what was saved before has to be whole, so that -resume=auto comes to the bits of a run that nothing happened
to. Ends with status 1 if one of it is not so.
"""
from __future__ import annotations

import collections
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "test", "Execution"))
from runs import execute, model  # noqa: E402

LIMIT = 60
#: What each fault is to the driver's calls, and to those of cuBLASLt.
KINDS = {"launch": "CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)",
         "ecc": "CUDA_ERROR_ECC_UNCORRECTABLE (uncorrectable ECC error encountered)",
         "illegal": "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)",
         "lost": "CUDA_ERROR_UNKNOWN (unknown error)",
         "oom": "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"}
PRODUCT = "CUBLAS_STATUS_EXECUTION_FAILED"
#: Ranks, options, and about as many kernels as a run has on a device.
PROGRAMS = [(2, ["-dp=2", "-zero=1", "-micro-batches=2"], 170), (4, ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2"], 150)]
STEPS = 4


class Program:
    def __init__(self, build: str, folder: str, number: int, ranks: int, options: list[str], kernels: int):
        self.build, self.ranks, self.kernels = build, ranks, kernels
        path, data = model("mlp")
        self.path = f"{folder}/program-{number}"
        execute([f"{build}/bin/dsopt", path, f"-data={data}", "-target=cuda", "-arch=sm_80", "-threads=1", "-lr=1e-3", "-grad-clip=0.1",
                 *options, "-o", self.path])
        self.options = [f"-data={data}", f"-steps={STEPS}", "-save-every=1", "-quiet", "-resume=auto", "-stall-timeout=20"]
        status, _, self.hash = self.run(f"{folder}/whole-{number}", "", "")
        if status:
            sys.exit(f"{options}: a run without a fault ended with status {status}")

    def run(self, folder: str, fault: str, engine: str) -> tuple[int | None, str, str]:
        """Status (none: it hangs), what was said, and the weights' hash."""
        os.makedirs(folder, exist_ok=True)
        environment = dict(os.environ, LD_LIBRARY_PATH=f"{self.build}/test/SoftDevice",
                           SOFT_DEVICE=f"devices={self.ranks},seed={len(folder)}" + (f",fault={fault}" if fault else ""))
        command = [self.path, *self.options, f"-save={folder}/save", f"-log={folder}/log.jsonl", *([f"-engine={engine}"] if engine else [])]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            _, said = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return None, "", ""
        # A rank that stays keeps the group.
        try:
            os.killpg(process.pid, 9)
            return None, "processes stay behind", ""
        except ProcessLookupError:
            pass
        with open(f"{folder}/log.jsonl") as file:
            end = json.loads(file.readlines()[-1]).get("end", {})
        return process.returncode, said, end.get("weights_hash", "")


def judge(program: Program, folder: str, kind: str, rank: int, fault: str, engine: str) -> tuple[bool, str]:
    """Whether the fault struck, and what is wrong then."""
    status, said, hash = program.run(folder, fault, engine)
    if status is None:
        return True, said or "hangs"
    messages = [line for line in said.splitlines() if "error:" in line]
    if status == 0:
        return False, "" if hash == program.hash and not messages else f"status 0, but {hash} and {messages}"
    if status != 2 or len(messages) != 1:
        return True, f"status {status} and {len(messages)} messages, expected 2 and one: {said}"
    where = rf"rank {rank}( \([^)]*\))? on GPU {rank} \(.*\) in step \d+, in '.+'( on stream '\w+')? or (before|behind) it: "
    if not re.search(where, messages[0]) or not (KINDS[kind] in messages[0] or (kind == "oom" and PRODUCT in messages[0])):
        return True, f"expected rank, GPU, step, action and {KINDS[kind]}: {messages[0]}"
    step = int(re.search(r"in step (\d+)", messages[0])[1])
    if (saved := len(glob.glob(f"{folder}/save/step-*/manifest.json"))) != step:
        return True, f"{saved} checkpoints after {step} steps, each of which was to be saved"
    status, said, hash = program.run(folder, "", engine)
    if status != 0 or hash != program.hash:
        return True, f"-resume=auto ends with status {status}, weights {hash}, expected {program.hash}: {said}"
    return True, ""


def main(build: str, folder: str, *arguments: str) -> int:
    given = dict(argument.lstrip("-").split("=", 1) for argument in arguments)
    build, folder = os.path.abspath(build), os.path.abspath(folder)
    seed, cases = int(given.get("seed", 1)), int(given.get("cases", 100))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    began, failures = time.monotonic(), 0
    struck: collections.Counter = collections.Counter()
    programs = [Program(build, folder, number, *one) for number, one in enumerate(PROGRAMS)]
    for case in range(seed, seed + cases):
        generator = random.Random(case)
        program = generator.choice(programs)
        kind, rank, engine = generator.choice(list(KINDS)), generator.randrange(program.ranks), generator.choice(["", "host"])
        fault = f"{kind}@{rank}:{generator.randint(1, program.kernels)}"
        strikes, wrong = judge(program, f"{folder}/{case}", kind, rank, fault, engine)
        struck[kind] += strikes
        if wrong:
            failures += 1
            print(f"FAILED: seed {case}, {program.ranks} ranks, {fault}, {engine or 'NCCL'}: {wrong}", flush=True)
        else:
            shutil.rmtree(f"{folder}/{case}")
    print(", ".join(f"{kind}: {struck[kind]}" for kind in KINDS))
    print(f"{cases} cases in {time.monotonic() - began:.0f} s, {cases - struck.total()} did not strike, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
