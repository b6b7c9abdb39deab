"""What strikes, and how a run may end then."""
from __future__ import annotations

import dataclasses
import errno
import os
import random
import signal

from places import Place

#: What the system may answer: the call, the errors.
ERRORS = {
    "open": ["EIO", "EMFILE", "EACCES"], "close": ["EIO"], "read": ["EIO", "EINTR"], "write": ["ENOSPC", "EIO", "EINTR"],
    "pread": ["EIO", "EINTR"], "pwrite": ["ENOSPC", "EIO", "EFBIG", "EINTR"], "fsync": ["EIO", "ENOSPC"], "ftruncate": ["EIO"],
    "fallocate": ["ENOSPC", "EOPNOTSUPP", "EINTR"], "fstat": ["EIO"], "stat": ["EIO"], "flock": ["ENOLCK"],
    "rename": ["EIO", "ENOSPC"], "exchange": ["EIO", "EINVAL", "ENOSYS"], "unlink": ["EIO"], "mkdir": ["ENOSPC", "EIO"],
    "rmdir": ["EIO"], "syncFolder": ["EIO"], "mmap": ["ENOMEM"], "munmap": [], "madvise": [], "memfd": ["EMFILE", "ENOMEM"],
    "socket": ["EMFILE"], "bind": ["EADDRINUSE"], "listen": ["EADDRINUSE"], "connect": ["ECONNREFUSED", "EINTR"],
    "accept4": ["EMFILE", "ECONNABORTED"], "send": ["ECONNRESET", "EINTR"], "recv": ["ECONNRESET", "EINTR"],
    "sendmsg": ["ECONNRESET", "EINTR"], "recvmsg": ["ECONNRESET", "EINTR"], "poll": ["EINTR"], "epoll_wait": ["EINTR"],
    "fork": ["EAGAIN"], "pipe2": ["EMFILE"],
}
#: What a call may answer without anything being wrong.
HARMLESS = {"EINTR", "EOPNOTSUPP", "EINVAL", "ENOSYS"}


@dataclasses.dataclass(frozen=True)
class Kind:
    """A row of the table. `strikes` gives the WHAT of a fault at a place, or None where it cannot."""
    name: str
    what: str = ""

    def at(self, place: Place, call: str | None, scenario, generator: random.Random) -> str | None:
        """`call` is the class of a place that is one."""
        # Nobody is there who could end a process that stands still and is the only one, or the one that starts ranks.
        if self.what == "stop=0" and (scenario.program.ranks == 1 or place.rank < 0):
            return None
        # mpirun has its own answer to signals.
        if self.name in ("interrupt", "twice") and scenario.engine == "mpi":
            return None
        if self.name == "error":
            return f"error={generator.choice(ERRORS[place.name])}" if call and ERRORS.get(place.name) else None
        if self.name == "short":
            return "short" if call == "Transfer" else None
        if self.name == "flip":
            return f"flip={generator.randrange(4096 * 8)}" if call in ("Transfer", "Mapping") else None
        if self.name == "exit":
            return f"exit={generator.choice([0, 1, 2, 3, 9])}"
        if self.name == "crash":
            return f"signal={generator.choice(['SEGV', 'ABRT', 'BUS', 'FPE'])}"
        if self.name == "delay":
            return f"delay={generator.choice([20, 200, 1000])}"
        if self.name == "pause":
            return f"stop={generator.choice([20, 200, 1000])}"
        return self.what


#: freeze: a rank stands still for ever. interrupt: a signal from outside as the rank is there; twice: two, with the rank
#: standing still.
KINDS = [Kind("kill", "kill"), Kind("crash"), Kind("exit"), Kind("freeze", "stop=0"), Kind("pause"), Kind("delay"),
         Kind("error"), Kind("short"), Kind("flip"), Kind("interrupt", "delay=50"), Kind("twice", "stop=0")]


def expected(kind: Kind, what: str, place: Place, scenario) -> tuple[set[int], bool]:
    """The statuses that the run may end with, and whether there must be a message where it is not 0 or 3."""
    alone = scenario.program.ranks == 1
    if kind.name in ("delay", "pause", "short"):
        return {0}, True
    if kind.name == "interrupt":
        return {0, 3}, True
    if kind.name == "twice":
        # After the work a signal changes nothing: a rank that stands still then is found by its standing still.
        return {2, 3} if scenario.apart or place.phase == "finish" else {3}, True
    if kind.name == "freeze":
        return {2}, True
    if kind.name == "flip":
        return {0, 1, 2}, True
    if kind.name == "error":
        error = what.split("=")[1]
        if error == "EINTR":
            return {0}, True
        if error == "EIO":
            return {0, 2}, True
        return {0, 2} if place.phase not in ("start", "load", "resume") else {0, 1, 2}, True
    if kind.name == "exit" and (alone or place.rank < 0):
        return {int(what.split("=")[1])}, False
    # Nobody is there who could say that it died.
    if alone or place.rank < 0:
        number = signal.SIGKILL if kind.name == "kill" else getattr(signal, "SIG" + what.split("=")[1])
        return {-number}, False
    return {2}, True


def cause(kind: Kind, what: str) -> str:
    """What a message must have in it, where that is known."""
    if kind.name == "error":
        return os.strerror(getattr(errno, what.split("=")[1]))
    return ""
