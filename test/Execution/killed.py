"""A rank killed in the middle of a run: all others end within 10 s, and the
message names the rank and what it was doing; status 2. A signal to the launcher
finishes the step and ends with 3.

usage: killed.py DSOPT
"""
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import termios
import time

from runs import check, model, varied

dsopt = sys.argv[1]
# Under nohup tests begin with a signal ignored, and so would what they start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
path, data = model("gpt2-tiny")
command = [dsopt, path, "-run", f"-data={data}", "-dp=2", "-pp=2", "-zero=3", "-steps=1000000", "-quiet"]


def children(pid):
    text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(word) for word in text.split()]


def start():
    process = subprocess.Popen(varied(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process, wait_for_ranks(process)


def wait_for_ranks(process):
    for _ in range(600):
        ranks = children(process.pid)
        if len(ranks) == 4:
            break
        time.sleep(0.05)
    check(len(ranks) == 4, f"{len(ranks)} ranks, expected 4")
    time.sleep(1)
    return sorted(ranks)


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

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
    process, ranks = start()
    process.send_signal(number)
    _, text = process.communicate(timeout=20)
    check(process.returncode == 3, f"{number.name}: status {process.returncode}, expected 3\n{text}")
print("SIGTERM, SIGINT, SIGUSR1 and SIGHUP end with status 3")


def hang_up(saved, *before):
    """A run that saves, on a terminal that goes."""
    ours, theirs = os.openpty()

    def lead():
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen([*before, *varied([*command, f"-save={saved}"])], stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=lead, cwd=folder)
    os.close(theirs)
    wait_for_ranks(process)
    os.close(ours)
    return process


folder = tempfile.mkdtemp()
check(hang_up("saved").wait(20) == 3 and os.listdir(os.path.join(folder, "saved")), "a terminal that goes ends the run without a checkpoint")
process = hang_up("other", "nohup")
time.sleep(1)
check(process.poll() is None, f"ended under nohup with {process.returncode}")
process.send_signal(signal.SIGTERM)
check(process.wait(20) == 3, f"status {process.returncode}, expected 3")
print("a terminal that goes ends with a checkpoint, under nohup it changes nothing")
