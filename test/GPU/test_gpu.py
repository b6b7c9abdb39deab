"""Runs the tests of programs for GPUs on this machine's GPUs, or packs what a machine without a compiler is asked.

usage: ./dev test-gpu [-only=REGEX] [-list]         here, on a GPU
       ./dev test-gpu -package=FILE.tar.xz [-arch=sm_80,sm_90a]   FILE.tar: without compression
                                                    there: tar xf FILE.tar.xz && python3 gpu-answers/answer.py
The parts are the tests of test/Execution that the device in software runs, without those of what only it can do, and
the unit tests of the runtime's kernels and products. The status is 1 where a part fails. A package has questions of its own, in the order of
test/GPU/answers/asked.py: docs/CUDA.md.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import time

import gpu

here = os.path.dirname(os.path.abspath(__file__))
tests = os.path.dirname(here)
# Program, what only the device in software can do, GPUs at least.
UNITS = [("DsoptRuntimeCudaTest", "", 1), ("DsoptRuntimeProductsTest", "ProductFailures.*", 1),
         ("DsoptRuntimeDeviceTest", "*AnyMissingWaitIsFound:*SaysWhatDoesNotFit", 1),
         ("DsoptRuntimeNcclTest", "*NeedsADeviceForEach", 4)]
RUN = re.compile(r"^RUN: %python %S/(?P<script>\S+\.py) dsopt %build/test/SoftDevice (?P<words>.+)$", re.M)


def execution_parts():
    """Names and words of the execution tests that ask for the device in software; models one by one."""
    parts = []
    for test in sorted(glob.glob(os.path.join(tests, "Execution", "*.test"))):
        for match in RUN.finditer(open(test).read()):
            what, *names = match["words"].split()
            for words in [[what, name] for name in names] or [[what]]:
                parts.append((" ".join([match["script"][:-3], *words]), [os.path.join(tests, "Execution", match["script"]), words]))
    return parts


def run(args, found):
    """Runs all parts; the number that failed."""
    units = os.path.join(args.build, "test", "Runtime")
    arch = gpu.architecture(found[0][1])
    environment = {**os.environ, **gpu.environment(args.build), "DSOPT_GPU_ARCH": arch, "DSOPT_GPUS": str(len(found))}
    commands = []
    for name, without, needed in UNITS:
        program = os.path.join(units, name)
        if os.path.exists(program) and len(found) >= needed:
            commands.append((name, [program, "--gtest_brief=1", f"--gtest_filter=-{without}"]))
        else:
            print(f"{name}: left out, " + (f"it needs {needed} GPUs" if len(found) < needed else "it is not there"))
    for name, (script, words) in execution_parts():
        commands.append((name, [sys.executable, script, os.path.join(args.build, "bin", "dsopt"), "gpu", *words]))
    failed = 0
    for name, command in commands:
        if args.only and not re.search(args.only, name):
            continue
        if args.list:
            print(name)
            continue
        began = time.monotonic()
        try:
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=args.limit)
            status, said = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            status, said = "time", (error.stdout or b"").decode(errors="replace")
        said = said.strip()
        last = said.splitlines()[-1] if said else ""
        print(f"{'ok' if status == 0 else 'FAILED':7}{name:40}{time.monotonic() - began:7.1f} s  {last if status == 0 else f'status {status}'}", flush=True)
        if status:
            failed += 1
            print("\n".join("    " + line for line in said.splitlines()[-args.lines:]), flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(prog="dev test-gpu", allow_abbrev=False)
    parser.add_argument("--build", required=True, help="dsopt's build folder (./dev passes it)")
    parser.add_argument("-only", help="parts whose names match")
    parser.add_argument("-list", action="store_true", help="print the parts' names")
    parser.add_argument("-limit", type=float, default=300, help="seconds for a part")
    parser.add_argument("-lines", type=int, default=20, help="of what a part that failed has said")
    parser.add_argument("-package", help="the file to write, with what a machine without a compiler needs")
    parser.add_argument("-arch", default="sm_80,sm_90a", help="architectures of the package")
    parser.add_argument("-models", choices=["full", "tiny"], default="full", help="of the package; tiny: to try it on the device in software")
    args = parser.parse_args()
    if args.package and (args.only or args.list):
        parser.error("-package has all steps, got -only or -list: answer.py takes these")
    if args.package:
        sys.path.insert(0, os.path.join(here, "answers"))
        import pack

        return pack.pack(args)
    try:
        found = gpu.gpus()
        arch = gpu.architecture(found[0][1])
    except gpu.NoGPU as error:
        sys.exit(f"dev test-gpu: error: {error}; ./dev test runs the same tests on a device in software")
    print(f"{len(found)} x {found[0][0]}, {arch}" if len({name for name, _ in found}) == 1 else f"{', '.join(name for name, _ in found)}: {arch}", flush=True)
    failed = run(args, found)
    if failed:
        sys.exit(f"{failed} parts failed")


if __name__ == "__main__":
    main()
