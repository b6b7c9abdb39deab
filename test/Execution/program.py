"""An executable needs no Python, LLVM, MLIR or protobuf; it starts quickly.

usage: program.py DSOPT
"""
import os
import subprocess
import sys
import tempfile
import time

from runs import check, execute, model, train

dsopt = sys.argv[1]
path, data = model("mlp")
with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "train")
    began = time.monotonic()
    done = execute([dsopt, path, "-o", program, "-steps=1", "-dp=2", f"-log={folder}/log", f"-save-weights={folder}/weights"])
    print(f"mlp compiles in {time.monotonic() - began:.2f} s")
    size = f"{os.path.getsize(program) / 1e6:.1f} MB"
    check(f"wrote {program} ({size}): {path} for 2 ranks (2 dp x 1 pp), compiled with -dp=2; {program} -data=FILE runs it" in done.stdout
          and "without other options it runs with -steps=1\n" in done.stdout, f"what was written is not said: {done.stdout}")
    for option in ("log", "save-weights"):
        check(f"warning: -{option}={folder}/" in done.stderr and "is for a run, and nothing runs here" in done.stderr,
              f"-{option} is dropped without a word: {done.stderr}")
    execute([dsopt, path, "-o", program, "-steps=1", "-quiet"])
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    for word in ("LLVM", "MLIR", "protobuf", "python", "mpi"):
        check(word not in libraries, f"the program needs {word}:\n{libraries}")
    print("needs " + ", ".join(sorted(line.split()[0] for line in libraries.splitlines())))
    times = []
    for _ in range(5):
        began = time.monotonic()
        execute([program, f"-data={data}", "-quiet"])
        times.append(time.monotonic() - began)
    print(f"mlp: start to the end of step 0 in {min(times) * 1000:.0f} ms")
    text = execute([program, "--help"]).stdout
    check("-steps" in text and "zero 0" in text, f"--help shows neither run options nor compiled-in values:\n{text}")
    run = train(dsopt, "mlp", "-steps=8", "-breakdown", program=program)
    report = execute([program, f"-data={data}", "-steps=3", "-report=kernels"]).stdout
    check("mean of 2 steps" in report and "whole-program efficiency" in report and "update.adamw" in report, f"the report says\n{report}")
    check(" other " not in report, f"a segment calls what its program does not describe:\n{report}")
    check(run.end["steps"] == 8 and run.end["status"] == "ok", f"end {run.end}")
    # Compiled anew, from the cache, and where there is no cache: the same program.
    programs, kept = [], []
    for cache in (f"{folder}/cache", f"{folder}/cache", "off", "/dev/null/cache"):
        os.environ["DSOPT_CACHE"] = cache
        began = time.monotonic()
        execute([dsopt, model("gpt2-tiny")[0], "-o", program])
        print(f"gpt2-tiny compiles in {time.monotonic() - began:.2f} s, cache {os.path.basename(cache)}")
        programs.append(open(program, "rb").read())
        kept.append(len(os.listdir(f"{folder}/cache")))
    check(kept[0] > 0, "the cache is empty")
    check(len(set(kept)) == 1, f"the cache does not find what it has: {kept} objects after each compilation")
    check(programs.count(programs[0]) == len(programs), "the cache changes the program")
