"""Runs ninja and says how far it is and how long it may take.

usage: run_ninja.py FOLDER [TARGET...]
On a terminal one line that changes; else a line now and then. Of a step that fails the whole output is shown.
"""
import os
import subprocess
import sys
import time

MARK = "\x01"  # before and after what ninja says of its progress
EVERY = 30  # seconds between lines where there is no terminal


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def progress(done, total, seconds):
    """Steps are unlike each other: what is left is no more than likely, and said once there is something to go by."""
    left = f", about {minutes(seconds * (total - done) / done)} left" if done > 20 and seconds > 5 else ""
    return f"built {done} of {total} in {minutes(seconds)}{left}"


def run_ninja(folder, targets=()):
    """ninja's exit status."""
    environment = {**os.environ, "NINJA_STATUS": f"{MARK}%f %t{MARK}"}
    start = said = time.monotonic()
    shown = sys.stdout.isatty()
    with subprocess.Popen(["ninja", "-C", folder, *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          env=environment) as process:
        for line in process.stdout:
            if MARK not in line:
                # What compilers and ninja itself say; that there is nothing to do is no news.
                if not line.startswith(("ninja: Entering", "ninja: no work")):
                    sys.stdout.write(("\r\033[K" if shown else "") + line)
                continue
            _, counts, _ = line.split(MARK, 2)
            done, total = map(int, counts.split())
            now = time.monotonic()
            if shown:
                sys.stdout.write("\r\033[K" + progress(done, total, now - start))
                sys.stdout.flush()
            elif now - said > EVERY:
                said = now
                print(progress(done, total, now - start), flush=True)
    if shown:
        sys.stdout.write("\r\033[K")
    sys.stdout.flush()
    return process.returncode


if __name__ == "__main__":
    sys.exit(run_ninja(sys.argv[1], sys.argv[2:]))
