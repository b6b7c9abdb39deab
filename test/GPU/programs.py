#!/usr/bin/env python3
"""Stands in for dsopt on a machine without a compiler: `dsopt MODEL -run OPTIONS` runs a program that was compiled elsewhere.

usage: programs.py MODEL.onnx -run OPTIONS...
DSOPT_PROGRAMS is the folder of programs. With DSOPT_COMPILER, a dsopt, each is compiled and put there first, for the
architectures DSOPT_PROGRAMS_ARCH; what then runs here, on the device in software, is dsopt with the options as they are.
"""
import hashlib
import os
import re
import subprocess
import sys

# Every processor of a machine with such GPUs has it.
HOST = "-arch=x86-64-v3"


SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run_options():
    """The options that a compiled program takes as well."""
    text = open(os.path.join(SOURCE, "include", "dsopt", "Runtime", "Options.def")).read()
    return {match[1] for match in re.finditer(r'DSOPT_OPTION\("([^"]+)", (Run|Any),', text)}


def split(words):
    """What is compiled in, and what a program is told when it runs. Data gives the shapes of inputs, so it is in both."""
    runs = run_options()
    own = [word for word in words if word.lstrip("-").split("=")[0] in runs]
    compiled = [word for word in words if word not in own and word != "-run"]
    return compiled, own


def key(compiled, own):
    """The name of a program: of its model, and of what is compiled in but for the architecture."""
    model, *options = compiled
    data = [os.path.basename(os.path.dirname(word)) for word in own if word.startswith("-data=")]
    kept = sorted(option for option in options if not option.startswith("-arch="))
    return hashlib.sha256(" ".join([os.path.basename(os.path.dirname(model)), *data, *kept]).encode()).hexdigest()[:16]


def main():
    words = sys.argv[1:]
    folder = os.environ["DSOPT_PROGRAMS"]
    compiled, own = split(words)
    program = os.path.join(folder, key(compiled, own))
    compiler = os.environ.get("DSOPT_COMPILER")
    if not compiler:
        if not os.path.exists(program):
            sys.exit(f"dsopt: error: no program in {folder} is compiled as: {' '.join(words)}")
        # The folder of the model that it was compiled from is on another machine.
        weights = [] if any(word.startswith("-weights=") for word in own) else ["-weights=" + os.path.dirname(compiled[0])]
        os.execv(program, [program, *own, *weights])
    if not os.path.exists(program) and "-run" in words:
        for_device = "-target=cuda" in compiled
        arch = f"-arch={os.environ['DSOPT_PROGRAMS_ARCH']}" if for_device else HOST
        options = [word for word in compiled if not word.startswith("-arch=")] + [arch] + [word for word in own if word.startswith("-data=")]
        environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        done = subprocess.run([compiler, *options, "-quiet", "-o", program], env=environment, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr, file=sys.stderr, end="")
            return done.returncode
    # It takes PTX only.
    os.execve(compiler, [compiler, *words], {**os.environ, "DSOPT_PTXAS": "off"})


if __name__ == "__main__":
    sys.exit(main())
