"""Where faults can strike: the table of points and calls, what of it a run comes to, and in which phase of the run."""
from __future__ import annotations

import dataclasses
import os
import pathlib
import re

PHASES = ["start", "load", "resume", "step", "evaluate", "save", "commit", "prune", "finish"]
#: What a point begins; others leave the phase as it is.
BEGINS = {"meet.hello": "start", "load.program": "load", "load.data": "load", "start": "load", "resume.choose": "resume",
          "resume.read": "resume", "step": "step", "evaluate": "evaluate", "save.allocate": "save", "save.manifest": "commit",
          "save.exchange": "commit", "save.rename": "commit", "save.prune": "prune", "finish": "finish"}


@dataclasses.dataclass(frozen=True)
class Place:
    """One moment of one rank: the nth time that it comes to a point or call."""
    name: str
    rank: int
    nth: int
    phase: str

    def fault(self, what: str) -> str:
        return f"{self.name},rank={self.rank},nth={self.nth}:{what}"


def table(source: str) -> tuple[list[str], dict[str, str]]:
    """Points.def: the points, and the calls with their classes."""
    text = pathlib.Path(source, "include/dsopt/Runtime/Points.def").read_text()
    return (re.findall(r'^DSOPT_POINT\("([\w.]+)"\)', text, re.M),
            dict(re.findall(r"^DSOPT_CALL\((\w+), (\w+)\)", text, re.M)))


def listening(source: str, hits: str) -> str:
    """A DSOPT_FAULT that does nothing but write every place down."""
    points, calls = table(source)
    return ";".join([f"{name},every=1:delay=0" for name in [*points, *calls]] + [f"hits={hits}"])


def heard(source: str, hits: str) -> list[Place]:
    """What a run under `listening` came to."""
    points, _ = table(source)
    counts: dict[tuple[int, str], int] = {}
    phases: dict[int, str] = {}
    places = []
    if not os.path.exists(hits):
        return places
    for line in open(hits):
        _, _, rank, _, fault = line.split(" ", 4)
        name, rank = fault.split(",")[0], int(rank)
        # A rank goes on in the phase of the process that made it.
        phase = phases.get(rank, phases.get(-1, "start"))
        if name in points:
            phase = BEGINS.get(name, phase)
        phases[rank] = phase
        counts[rank, name] = counts.get((rank, name), 0) + 1
        places.append(Place(name, rank, counts[rank, name], phase))
    return places
