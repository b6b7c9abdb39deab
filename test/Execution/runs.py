"""Runs dsopt and reads what it says: the common part of the execution tests."""
import fcntl
import functools
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

import numpy as np

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "test"))  # what folders have in common
MODELS = os.path.join(SOURCE, "test", "Models")
# OpenMPI as root, more ranks than cores.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"]


class Run:
    """What one training run logged."""

    def __init__(self, path):
        lines = [json.loads(line) for line in open(path)]
        self.head = lines[0]["run"]
        self.steps = [line for line in lines if "loss" in line]
        self.end = lines[-1].get("end", {})
        self.hash = self.end.get("weights_hash")
        self.losses = [step["loss"] for step in self.steps]
        # The text between "loss": and the comma: equal text is equal bits.
        self.loss_text = [line.split('"loss":')[1].split(",")[0] for line in open(path) if '"loss":' in line]


def model(name):
    return os.path.join(MODELS, name, "model.onnx"), os.path.join(MODELS, name, "batches.npz")


@functools.cache
def options_of_one_value():
    table = open(os.path.join(SOURCE, "include", "dsopt", "Runtime", "Options.def")).read()
    return {name.replace("_", "-") for name, kind in re.findall(r'^DSOPT_OPTION\((\w+), \w+, \w+, \w+, (\w+),', table, re.M) if not kind.endswith("List")}


def varied(command):
    """A command in which the last of several values of an option counts: tests vary one that is given in full. mpirun's colons part commands."""
    if ":" in command:
        at = command.index(":")
        return [*varied(command[:at]), ":", *varied(command[at + 1 :])]
    single = options_of_one_value()
    names = [word.split("=")[0].lstrip("-") if word.startswith("-") else None for word in command]
    return [word for at, word in enumerate(command) if names[at] not in single or "=" not in word or names[at] not in names[at + 1 :]]


def execute(command, status=0, timeout=300, environment=None):
    command = varied(command)
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **(environment or {})})
    if status is not None and done.returncode != status:
        sys.exit(f"{' '.join(command)}\nended with status {done.returncode}, expected {status}\n{done.stdout}\n{done.stderr}")
    return done


def on_terminal(columns, command):
    """What the command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(command, stdout=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            text += piece
    check(process.returncode == 0, f"{command} on a terminal: {process.returncode}")
    return text.decode().replace("\r\n", "\n")


def train(dsopt, name, *options, prefix=(), data=None, program=None):
    """Trains a reference model (or runs an executable) and returns its Run."""
    path, batches = model(name)
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        command = [program] if program else [dsopt, path, "-run"]
        execute([*prefix, *command, f"-data={data or batches}", f"-log={log}", "-quiet", *options])
        return Run(log)


def relative(got, expected):
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    return float(np.max(np.abs(got - expected) / np.maximum(np.abs(expected), 1e-12)))


def check(condition, message):
    if not condition:
        sys.exit("FAILED: " + message)


def same_bits(dsopt, title, name, runs, base):
    """All runs of a model, options each (or words that stand before the command, and these), have one loss text and one hash."""
    reference = None
    for options in runs:
        *prefix, words = options if isinstance(options, tuple) else (options,)
        run = train(dsopt, name, *base, *words.split(), prefix=prefix[0] if prefix else ())
        reference = reference or run
        check(run.hash == reference.hash and run.loss_text == reference.loss_text,
              f"{title}: {words} differs from {runs[0]}: {run.loss_text} {run.hash}, expected {reference.loss_text} {reference.hash}")
    print(f"{title}: {len(runs)} layouts, one hash {reference.hash[:16]}, losses {', '.join(reference.loss_text)}", flush=True)
    return reference


def refused(dsopt, name, cases):
    """A run with these words ends with one error, in which a text is."""
    path, data = model(name)
    for words, said in cases:
        done = execute([dsopt, path, "-run", f"-data={data}", "-steps=1", *words.split()], status=1)
        check(said in done.stderr and done.stderr.count("error:") == 1, f"{words}: {done.stderr}")
    print("refused by name", flush=True)
