"""Runs the tests of programs for GPUs on this machine's GPUs, or packs them for a machine that has no compiler.

usage: ./dev test-gpu [-only=REGEX] [-list]         here, on a GPU
       ./dev test-gpu -package=FILE.tar.xz [-arch=sm_80,sm_90a]   .tar: without compression
                                                    there: tar xf FILE.tar.xz && python3 gpu-tests/test/GPU/test_gpu.py
The parts are the tests of test/Execution that the device in software runs, without those of what only it can do, and
the unit tests of the runtime's kernels and products. A package holds them as programs, compiled ahead of time, and
the models' data; packing runs them on the device in software. It needs Python with numpy there, the driver, cuBLASLt and, for several GPUs, NCCL,
in LD_LIBRARY_PATH or as the Python packages nvidia-cublas, nvidia-cudnn-cu13 and nvidia-nccl-cu13. The status is 1 where a part fails.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import gpu

here = os.path.dirname(os.path.abspath(__file__))
tests = os.path.dirname(here)
# Program, what only the device in software can do, GPUs at least.
UNITS = [("DsoptRuntimeCudaTest", "", 1), ("DsoptRuntimeProductsTest", "ProductFailures.*", 1),
         ("DsoptRuntimeDeviceTest", "*AnyMissingWaitIsFound:*SaysWhatDoesNotFit", 1),
         ("DsoptRuntimeNcclTest", "*NeedsADeviceForEach", 4)]
# What has its input beside the build that made it.
NOT_PACKED = ["DsoptRuntimeDeviceTest"]
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


class Packed:
    """What is in a package, or in a build folder."""

    def __init__(self, build):
        self.build = build
        self.programs = None if build else os.path.join(tests, "programs")
        self.units = os.path.join(build, "test", "Runtime") if build else os.path.join(tests, "units")

    def dsopt(self):
        return os.path.join(self.build, "bin", "dsopt") if self.build else os.path.join(here, "programs.py")

    def environment(self):
        made = gpu.environment(self.build)
        if not self.build:
            made["DSOPT_PROGRAMS"] = self.programs
            made["LD_LIBRARY_PATH"] = os.pathsep.join([made["LD_LIBRARY_PATH"], os.path.join(tests, "lib")])
        return made


def run(args, found):
    """Runs all parts; the number that failed."""
    packed = Packed(args.build)
    arch = gpu.architecture(found[0][1])
    environment = {**os.environ, **packed.environment(), "DSOPT_GPU_ARCH": arch, "DSOPT_GPUS": str(len(found))}
    commands = []
    for name, without, needed in UNITS:
        program = os.path.join(packed.units, name)
        if os.path.exists(program) and len(found) >= needed:
            commands.append((name, [program, "--gtest_brief=1", f"--gtest_filter=-{without}"]))
        else:
            print(f"{name}: left out, " + (f"it needs {needed} GPUs" if len(found) < needed else "it is not there"))
    for name, (script, words) in execution_parts():
        commands.append((name, [sys.executable, script, packed.dsopt(), "gpu", *words]))
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


def pack(args):
    """Writes the package; each execution test runs once on the device in software meanwhile."""
    soft = os.path.join(args.build, "test", "SoftDevice")
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "gpu-tests", "test")
        for name in ("GPU", "Execution", "Models"):
            shutil.copytree(os.path.join(tests, name), os.path.join(root, name), ignore=shutil.ignore_patterns("__pycache__"))
        programs = os.path.join(root, "programs")
        for name in ("programs", "units", "lib"):
            os.makedirs(os.path.join(root, name))
        table = os.path.join("include", "dsopt", "Runtime", "Options.def")
        os.makedirs(os.path.join(folder, "gpu-tests", os.path.dirname(table)))
        shutil.copy(os.path.join(tests, "..", table), os.path.join(folder, "gpu-tests", table))
        environment = {**os.environ, "DSOPT_PROGRAMS": programs, "DSOPT_COMPILER": os.path.join(args.build, "bin", "dsopt"),
                       "DSOPT_PROGRAMS_ARCH": args.arch}
        for name, (script, words) in execution_parts():
            if args.only and not re.search(args.only, name):
                continue
            done = subprocess.run([sys.executable, os.path.join(root, "Execution", os.path.basename(script)),
                                   os.path.join(root, "GPU", "programs.py"), soft, *words], env=environment, capture_output=True, text=True)
            print(f"{'packed' if done.returncode == 0 else 'FAILED':8}{name}", flush=True)
            if done.returncode:
                sys.exit(done.stdout + done.stderr)
        for name, _, _ in UNITS:
            program = os.path.join(args.build, "test", "Runtime", name)
            if name in NOT_PACKED or not os.path.exists(program):
                print(f"without {name}")
                continue
            subprocess.run(["strip", "-o", os.path.join(root, "units", name), program], check=True)
        runtime = os.path.join(args.build, "bin", "dsopt-run")
        for name, path in gpu.BARE.findall(subprocess.run(["ldd", runtime], capture_output=True, text=True).stdout):
            shutil.copy(path, os.path.join(root, "lib", name))
        gpu.archive(args.package, os.path.dirname(root))
        count = len(os.listdir(programs))
    print(f"wrote {args.package}: {count} programs for {args.arch}, {os.path.getsize(args.package) / 2**20:.1f} MiB; "
          "tar xf it there, then python3 gpu-tests/test/GPU/test_gpu.py")


def main():
    parser = argparse.ArgumentParser(prog="dev test-gpu", allow_abbrev=False)
    parser.add_argument("--build", help="dsopt's build folder (./dev passes it); without, the package around this file")
    parser.add_argument("-only", help="parts whose names match")
    parser.add_argument("-list", action="store_true", help="print the parts' names")
    parser.add_argument("-limit", type=float, default=300, help="seconds for a part")
    parser.add_argument("-lines", type=int, default=20, help="of what a part that failed has said")
    parser.add_argument("-package", help="the file to write, with what a machine without a compiler needs")
    parser.add_argument("-arch", default="sm_80,sm_90a", help="architectures of the package")
    args = parser.parse_args()
    if args.package:
        if not args.build:
            parser.error("-package needs a build")
        return pack(args)
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
