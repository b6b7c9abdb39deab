"""Waits left out of programs for devices, one at a time: each has to be found by some order of streams.

usage: waits.py BUILD FOLDER [-seed=N] [-waits=N] [-orders=N] [-programs=few|all]

The device in software runs a compiled program without one of the waits that its table has. Work without an order that
touches the same bytes, a read of what nobody wrote, or other bits than the whole program's are what finds it, under one of
N orders of streams (20), unless the actions that only this wait puts in order have no bytes in common: those that say how
far ahead gathers may go. With -waits=N a sample of N waits of each program. Prints what was found how, and each wait that
was not; ends with status 1 if there is one.
"""
from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import json
import os
import random
import re
import struct
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "test", "Execution"))
from runs import execute, model  # noqa: E402

#: Name, model, devices (0: one that all ranks share, joined by their hosts), steps, options.
PROGRAMS = {
    "few": [("mlp, NCCL", "mlp", 4, 2, ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-recompute=full", "-gather-window=2"]),
            ("mlp, hosts", "mlp", 1, 2, ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-recompute=full", "-gather-window=2"])],
    "all": [("mlp, zero 1", "mlp", 2, 2, ["-dp=2", "-zero=1", "-micro-batches=2"]),
            ("mlp, zero 2, hosts", "mlp", 1, 2, ["-dp=2", "-zero=2", "-micro-batches=2"]),
            ("mlp, gpipe", "mlp", 2, 2, ["-pp=2", "-micro-batches=4", "-schedule=gpipe"]),
            ("mlp, bf16", "mlp", 2, 2, ["-dp=2", "-zero=3", "-micro-batches=2", "-precision=bf16"]),
            ("resnet-tiny", "resnet-tiny", 2, 2, ["-dp=2", "-zero=3", "-micro-batches=2"]),
            ("gpt2-tiny", "gpt2-tiny", 4, 2, ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-recompute=full", "-gather-window=2"])],
}
#: What the device in software says of a program that lacks an order.
FOUND = [("no order", r"no order between"), ("a read of what nobody wrote", r"nobody wrote|nothing was written")]


@dataclasses.dataclass
class Wait:
    list: str
    position: int
    actions: list[dict]
    buffers: list[dict]
    at: int  # of the action that waits, and of the one that it waits for
    on: int
    begin: int  # of the array in the program's bytes
    text: bytes  # the array without it, as long as before

    def __str__(self) -> str:
        return f"{self.list}[{self.position}]: '{self.actions[self.at]['name']}' without '{self.actions[self.on]['name']}'"

    def before(self, whole: bool) -> list[int]:
        """By action, a set of bits: those that are complete before it."""
        sets, last = [], {}
        for number, action in enumerate(self.actions):
            earlier = [on for on in action.get("waits", []) if whole or (number, on) != (self.at, self.on)]
            earlier += [last[action["queue"]]] if action["queue"] in last else []
            sets.append(0)
            for other in earlier:
                sets[number] |= sets[other] | 1 << other
            last[action["queue"]] = number
        return sets

    def touches(self, action: dict) -> list[tuple[int, int, int]]:
        """Memory, first byte and end of all that an action may read or write, of whole slots."""
        refs = action.get("refs", []) + ([action["temp"]] if "temp" in action else [])
        found = []
        for buffer, slot, _, _ in (ref for ref in refs if ref[0] >= 0):
            begin = self.buffers[buffer].get("offset", 0) + slot * self.buffers[buffer].get("stride", 0)
            found.append((self.buffers[buffer].get("memory", 0), begin, begin + self.buffers[buffer]["bytes"]))
        # Reductions share a buffer, and what ranks agree on is what updates go by.
        kind = action.get("kind", "run")
        found += [(-1, 0, 1)] if kind == "reduce" else [(-2, 0, 1)] if kind in ("agree", "update", "fold") else []
        return found

    def orders_bytes(self) -> bool:
        """Whether any two actions that only it puts in order touch the same bytes; else it only says when."""
        for number, (whole, without) in enumerate(zip(self.before(True), self.before(False))):
            for other in range(number):
                if (whole & ~without) >> other & 1 and any(
                        a[0] == b[0] and a[1] < b[2] and b[1] < a[2]
                        for a in self.touches(self.actions[number]) for b in self.touches(self.actions[other])):
                    return True
        return False


class Program:
    def __init__(self, build: str, folder: str, name: str, which: str, devices: int, steps: int, options: list[str]):
        self.name, self.build, self.folder, self.devices = name, build, folder, devices
        path, self.data = model(which)
        self.label = re.sub(r"\W+", "-", name)
        base = os.path.join(folder, self.label)
        execute([f"{build}/bin/dsopt", path, f"-data={self.data}", "-target=cuda", "-arch=sm_80", "-threads=1", "-grad-clip=0.1",
                 "-lr=1e-3", *options, "-o", base])
        with open(base, "rb") as file:
            whole = file.read()
        offset, size = struct.unpack_from("<QQ", whole, len(whole) - 80)  # Footer.h
        self.bytes = whole[offset:offset + size]
        self.arguments = [f"-data={self.data}", f"-steps={steps}", "-quiet", f"-eval-data={self.data}", "-eval-every=1", "-eval-batches=2"]
        self.waits = self.read_waits()
        self.usual = ""

    def read_waits(self) -> list[Wait]:
        """What the actions of all lists wait for."""
        begin = self.bytes.index(b'{"version":')
        table, _ = json.JSONDecoder().raw_decode(self.bytes[begin:self.bytes.index(b"\0", begin)].decode())
        lists = [(name, place, position["section"], position["buffers"]) for name in ("positions", "evaluation")
                 for place, position in enumerate(table.get(name, []))]
        base = next(place for place in (found.start() for found in re.finditer(rb"\[\{", self.bytes))
                    if all(self.is_section(place + first, size) for _, _, (first, size), _ in lists))
        waits = []
        for name, place, (first, size), buffers in lists:
            actions = json.loads(self.bytes[base + first:base + first + size])
            arrays = re.finditer(rb'"waits":(\[[\d,]+\])', self.bytes[base + first:base + first + size])
            for at, array in zip((at for at, action in enumerate(actions) if "waits" in action), arrays, strict=True):
                for on in actions[at]["waits"]:
                    rest = ",".join(str(other) for other in actions[at]["waits"] if other != on)
                    text = f"[{rest}]".ljust(len(array[1])).encode()
                    waits.append(Wait(name, place, actions, buffers, at, on, base + first + array.start(1), text))
        return waits

    def is_section(self, begin: int, size: int) -> bool:
        try:
            return isinstance(json.loads(self.bytes[begin:begin + size]), list)
        except ValueError:
            return False

    def run(self, label: str, seed: int, wait: Wait | None) -> tuple[str, str]:
        """What its steps and evaluations came to, or what ended it."""
        path = os.path.join(self.folder, label + ".so")
        edited = bytearray(self.bytes)
        if wait:
            edited[wait.begin:wait.begin + len(wait.text)] = wait.text
        with open(path, "wb") as file:
            file.write(edited)
        log = os.path.join(self.folder, label + ".jsonl")
        environment = dict(os.environ, LD_LIBRARY_PATH=f"{self.build}/test/SoftDevice", SOFT_DEVICE=f"devices={self.devices},seed={seed}")
        try:
            done = subprocess.run([f"{self.build}/bin/dsopt-run", path, *self.arguments, f"-log={log}", "-stall-timeout=20"],
                                  capture_output=True, text=True, timeout=120, env=environment)
        except subprocess.TimeoutExpired:
            return "", "hangs"
        if done.returncode:
            return "", done.stderr
        lines = [json.loads(line) for line in open(log)]
        return json.dumps([[line.get(key) for key in ("loss", "grad_norm", "eval_loss")] for line in lines[1:-1]] + [lines[-1]["end"]["weights_hash"]]), ""

    def find(self, number: int, orders: int, seed: int) -> tuple[str, int]:
        """What finds a missing wait, and in which order; empty where nothing does."""
        for order in range(seed, seed + orders):
            result, said = self.run(f"{self.label}-{number}", order, self.waits[number])
            if not said:
                if result != self.usual:
                    return "other bits", order
                continue
            for what, pattern in FOUND:
                if re.search(pattern, said):
                    return what, order
            return f"'{said.strip().splitlines()[-1]}'", order
        return "", orders


def main(build: str, folder: str, *arguments: str) -> int:
    given = dict(argument.lstrip("-").split("=", 1) for argument in arguments)
    build, folder = os.path.abspath(build), os.path.abspath(folder)
    seed, most, orders = int(given.get("seed", 1)), int(given.get("waits", 1 << 30)), int(given.get("orders", 20))
    os.makedirs(folder, exist_ok=True)
    missed = total = 0
    began = time.monotonic()
    chosen = PROGRAMS["few"] + (PROGRAMS["all"] if given.get("programs", "all") == "all" else [])
    for name, which, devices, steps, options in chosen:
        program = Program(build, folder, name, which, devices, steps, options)
        program.usual, said = program.run("whole", seed, None)
        if said:
            sys.exit(f"{name}: {said}")
        numbers = random.Random(seed).sample(range(len(program.waits)), min(most, len(program.waits)))
        found: collections.Counter = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as workers:
            for number, (what, order) in zip(numbers, workers.map(lambda number: program.find(number, orders, seed), numbers)):
                what = what or ("not found" if program.waits[number].orders_bytes() else "nothing, as it orders no bytes")
                found[what] += 1
                if what == "not found":
                    print(f"FAILED: {name}: {program.waits[number]}: nothing is wrong in {orders} orders from {seed} on", flush=True)
        missed += found["not found"]
        total += len(numbers)
        print(f"{name}: {len(numbers)} of {len(program.waits)} waits: " + ", ".join(f"{count} by {what}" for what, count in sorted(found.items())), flush=True)
    print(f"{total} waits left out in {time.monotonic() - began:.0f} s, {missed} not found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
