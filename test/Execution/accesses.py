"""Actions that do what they do not say: each defect that is planted in a program's table is found by DSOPT_CHECK_ACCESSES, and nothing where there is none.

usage: accesses.py DSOPT FOLDER host|device
A table that says 4 bytes less of what an action writes, one address less of what it reads, a buffer less of what it changes or one wait less is what
an action looks like that does more than it says; FOLDER has the device in software. Five of each kind, all at night.
"""
import itertools
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from runs import check, execute, model
from sampled import NIGHTLY

dsopt, soft_device, where = sys.argv[1:4]
NAME = "(DSOPT_CHECK_ACCESSES)"
HOST = [["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-recompute=full", "-gather-window=2"],
        ["-dp=2", "-zero=1", "-micro-batches=2", "-optimizer=lamb", "-precision=bf16"],
        ["-dp=2", "-zero=2", "-micro-batches=2", "-offload-optimizer=nvme", "-nvme-path=.", "-precision=bf16"],
        ["-dp=2", "-micro-batches=2", "-optimizer=onebit-lamb", "-freeze-step=2"], ["-pp=2", "-micro-batches=4", "-schedule=gpipe", "-optimizer=adafactor"]]
DEVICE = [[*HOST[0], "-target=cuda", "-arch=sm_80"], ["-dp=2", "-zero=1", "-micro-batches=2", "-optimizer=lamb", "-target=cuda", "-arch=sm_80"]]
READ, WRITE = 1, 2


class Table:
    """A program's bytes, of which tables are changed in place: what is written is not longer than what was there."""

    def __init__(self, executable):
        whole = open(executable, "rb").read()
        offset, size = struct.unpack_from("<QQ", whole, len(whole) - 80)  # Footer.h
        self.bytes = whole[offset:offset + size]
        begin = self.bytes.index(b'{"version":')
        self.table, _ = json.JSONDecoder().raw_decode(self.bytes[begin:self.bytes.index(b"\0", begin)].decode())
        self.uses_at = re.compile(rb'"uses":(\[[\d,\[\]]*\]\])').search(self.bytes, begin)
        self.uses = self.table["uses"]
        found = [(name, position) for name in ("positions", "frozen", "first") for position in self.table.get(name, [])]
        base = next(place.start() for place in re.finditer(rb"\[\{", self.bytes)
                    if all(self.is_section(place.start() + position["section"][0], position["section"][1]) for _, position in found))
        #: Buffers, where the section lies and the actions of each position of steps.
        self.positions = []
        for _, position in found:
            first, size = position["section"]
            self.positions.append((position["buffers"], (base + first, size), json.loads(self.bytes[base + first:base + first + size])))

    def is_section(self, begin, size):
        try:
            return isinstance(json.loads(self.bytes[begin:begin + size]), list)
        except ValueError:
            return False

    def with_text(self, begin, size, value):
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        check(len(text) <= size, f"{len(text)} bytes in the place of {size}")
        return self.bytes[:begin] + text.ljust(size) + self.bytes[begin + size:]

    def with_use(self, number, use):
        return self.with_text(self.uses_at.start(1), len(self.uses_at[1]), [*self.uses[:number], use, *self.uses[number + 1:]])

    def with_action(self, place, number, action):
        _, (begin, size), actions = self.positions[place]
        return self.with_text(begin, size, [*actions[:number], action, *actions[number + 1:]])


def touches(table, action):
    """Address, bytes and mode of each."""
    places = [*action["refs"], *([action["temp"]] if "temp" in action else []), *action.get("others", [])]
    use = table.uses[action["use"]]
    return [(places[use[i]], use[i + 1], use[i + 2]) for i in range(0, len(use), 3)]


def ranges(table, buffers, action):
    """Of all ranks of a position: memory, first byte, end and whether it is written."""
    found = []
    for (buffer, slot, offset, per_rank), size, mode in touches(table, action):
        its = buffers[buffer]
        begin = its.get("offset", 0) + slot * its["stride"] + offset
        found += [(its.get("memory", 0), begin + per_rank * rank, begin + per_rank * rank + size, mode & WRITE) for rank in range(table.table["grid"][1])]
    return found


def orders_bytes(table, buffers, actions, at, on):
    """Whether two actions that only this wait puts in order touch the same bytes, one of them writing."""
    def before(left_out):
        sets, last = [], {}
        for number, action in enumerate(actions):
            sets.append(0)
            for other in [*(on for on in action.get("waits", []) if (number, on) != left_out), *([last[action["queue"]]] if action["queue"] in last else [])]:
                sets[number] |= sets[other] | 1 << other
            last[action["queue"]] = number
        return sets

    return any((whole & ~without) >> other & 1 and any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] and (a[3] or b[3]) for a, b in itertools.product(
        ranges(table, buffers, actions[number]), ranges(table, buffers, actions[other])))
        for number, (whole, without) in enumerate(zip(before(None), before((at, on)))) for other in range(number))


def writes_more(table):
    for number, use in enumerate(table.uses):
        kinds = {action["kind"] for _, _, actions in table.positions for action in actions if action["use"] == number}
        # An agreement writes as many scalars as there are, an update what lies in its parameters.
        for i in range(0, len(use), 3):
            if kinds and not kinds & {"agree", "update"} and use[i + 2] == WRITE and use[i + 1] > 4 and not is_scratch(table, number, use[i]):
                yield f"{sorted(kinds)[0]}", f"4 bytes more by use {number}", table.with_use(number, [*use[:i + 1], use[i + 1] - 4, *use[i + 2:]])


def is_scratch(table, number, place):
    return any(action["use"] == number and "temp" in action and place == len(action["refs"]) for _, _, actions in table.positions for action in actions)


def reads_more(table):
    for place, (buffers, _, actions) in enumerate(table.positions):
        for action in actions:
            use = table.uses[action["use"]]
            for i in range(0, len(use), 3):
                name = buffers[[*action["refs"], *([action["temp"]] if "temp" in action else []), *action.get("others", [])][use[i]][0]]["name"]
                # What is an index would be one of nothing.
                if use[i + 2] == READ and action["kind"] in ("run", "norm", "copy", "add", "gather", "send") and "input" not in name and not (
                        buffers[action["refs"][0][0]].get("symbol")):
                    yield action["kind"], f"'{action['name']}' reads '{name}'", table.with_use(action["use"], [*use[:i], *use[i + 3:]])


def changes_less(table):
    for place, (buffers, _, actions) in enumerate(table.positions):
        for number, action in enumerate(actions):
            for changed in action.get("changes", []):
                yield buffers[changed]["name"], f"'{action['name']}' changes '{buffers[changed]['name']}'", table.with_action(
                    place, number, {**action, "changes": [other for other in action["changes"] if other != changed]})


def waits_less(table):
    for place, (buffers, _, actions) in enumerate(table.positions):
        for number, action in enumerate(actions):
            for on in action.get("waits", []):
                if orders_bytes(table, buffers, actions, number, on):
                    yield action["kind"], f"'{action['name']}' without '{actions[on]['name']}'", table.with_action(
                        place, number, {**action, "waits": [other for other in action["waits"] if other != on]})


def drawn(generator, candidates, count):
    """So many, of as many kinds as there are."""
    by_kind = {}
    for kind, what, text in candidates:
        by_kind.setdefault(kind, []).append((what, text))
    for those in by_kind.values():
        generator.shuffle(those)
    turns = [one for turn in itertools.zip_longest(*by_kind.values()) for one in turn if one]
    return turns if count is None else turns[:count]


def run(folder, data, text, environment):
    path = os.path.join(folder, "program.so")
    with open(path, "wb") as file:
        file.write(text)
    command = [os.path.join(os.path.dirname(dsopt), "dsopt-run"), path, f"-data={data}", "-steps=4", "-quiet", f"-log={folder}/log.jsonl", "-stall-timeout=20"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment}, cwd=folder)


with tempfile.TemporaryDirectory() as folder:
    path, data = model("mlp")
    environment = {"LD_LIBRARY_PATH": soft_device, "SOFT_DEVICE": "devices=4,seed=1"} if where == "device" else {}
    checked = {**environment, "DSOPT_CHECK_ACCESSES": "1"}
    tables = []
    for number, options in enumerate(DEVICE if where == "device" else HOST):
        output = os.path.join(folder, f"program{number}")
        execute([dsopt, path, f"-data={data}", "-threads=1", "-lr=1e-3", *options, "-o", output])
        tables.append(Table(output))
        usual, right = (run(folder, data, tables[-1].bytes, one) for one in (environment, checked))
        check(usual.returncode == 0 and right.returncode == 0, f"{options}: {usual.stderr}{right.stderr}")
    generator = random.Random(1)
    for name, plant in (("writes 4 bytes more", writes_more), ("reads what it does not name", reads_more), ("changes a state more", changes_less),
                        ("runs before its event", waits_less)):
        candidates = [one for table in tables for one in plant(table)]
        chosen = drawn(generator, candidates, None if NIGHTLY else 5 if where == "host" else 2)
        for what, text in chosen:
            done = run(folder, data, text, checked)
            check(done.returncode in (1, 2) and done.stderr.count("error: ") == 1 and NAME in done.stderr, f"{name}, {what}: {done.returncode} {done.stderr}")
        print(f"{name}: {len(chosen)} of {len(candidates)} places, all found")
