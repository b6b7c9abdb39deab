"""Processes of a step: what they said last, and where they wait."""
import os
import re

LINES = 12  # of what was said


def last(path, lines=LINES):
    """What a file ends with; a program's error first, if it has one."""
    try:
        with open(path, "rb") as file:
            file.seek(max(os.path.getsize(path) - 65536, 0))
            said = [line.rstrip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return "nothing was said"
    ends = said[-lines:]
    errors = [line for line in said if re.search(r"\berror\b|\bFAILED\b", line)][-1:]
    return "\n".join([*(line for line in errors if line not in ends), *ends]) or "nothing was said"


def last_error(path):
    """The last line that speaks of an error, else the last one."""
    return last(path, 1).splitlines()[0]


def newest(folder):
    """The file of a step's that was written last, of those in which something was said."""
    said = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".txt")]
    return max((path for path in said if os.path.getsize(path)), key=os.path.getmtime, default=os.path.join(folder, "none"))


def where(group):
    """Of each process of a group: its name, state and the call of the system in which its threads wait."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                text = file.read()
            comm, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            if int(rest[2]) != group:
                continue
            waits = {}
            for thread in os.listdir(f"/proc/{name}/task"):
                with open(f"/proc/{name}/task/{thread}/wchan") as file:
                    call = file.read().strip() or "0"
                waits[call] = waits.get(call, 0) + 1
            command = open(f"/proc/{name}/cmdline", "rb").read().split(b"\0")[0].decode(errors="replace")
            threads = ", ".join(f"{count} in {'no call that is told' if call == '0' else call}" for call, count in sorted(waits.items()))
            found.append(f"process {name} ({os.path.basename(command) or comm}), state {rest[0]}, threads: {threads}")
        except (OSError, ValueError):  # it has ended
            continue
    return found
