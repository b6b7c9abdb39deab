"""A rank killed in the middle of a run: all others end within 10 s, and the
message names the rank and what it was doing; status 2. A signal to the launcher
finishes the step and ends with 3.

usage: killed.py DSOPT
"""
import os
import signal
import subprocess
import sys
import time

from runs import check, model, varied

dsopt = sys.argv[1]
path, data = model("gpt2-tiny")
command = [dsopt, path, "-run", f"-data={data}", "-dp=2", "-pp=2", "-zero=3", "-steps=1000000", "-quiet"]


def children(pid):
    text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(word) for word in text.split()]


def start():
    process = subprocess.Popen(varied(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        ranks = children(process.pid)
        if len(ranks) == 4:
            break
        time.sleep(0.05)
    check(len(ranks) == 4, f"{len(ranks)} ranks, expected 4")
    time.sleep(1)
    return process, sorted(ranks)


for victim in (0, 3):
    process, ranks = start()
    began = time.monotonic()
    os.kill(ranks[victim], signal.SIGKILL)
    _, text = process.communicate(timeout=10)
    check(process.returncode == 2, f"status {process.returncode}, expected 2\n{text}")
    check(f"rank {victim}" in text and "killed" in text, f"the message does not name rank {victim}:\n{text}")
    check(text.count("error: ") == 1, f"more than one message:\n{text}")
    check(not [r for r in ranks if os.path.exists(f"/proc/{r}")], "ranks are left")
    print(f"killed rank {victim}: ended after {time.monotonic() - began:.2f} s: {text.strip().splitlines()[-1]}")

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    process, ranks = start()
    process.send_signal(number)
    _, text = process.communicate(timeout=20)
    check(process.returncode == 3, f"{number.name}: status {process.returncode}, expected 3\n{text}")
print("SIGTERM, SIGINT and SIGUSR1 end with status 3")
