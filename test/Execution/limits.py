"""Limits of the system that are too small: the compiler, a run and trained programs end with a sentence and a status, or with the bits
that they have without; never by a signal, without a word, or with what a library says of itself. A sample of the values, all of them at night.
So do ranks where /dev/shm is full or not to be written, and those whose devices may lock few bytes of the host's memory.

usage: limits.py DSOPT
"""
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

from runs import MPIRUN, Run, check, execute, model
from sampled import sampled

dsopt = sys.argv[1]
path, data = model("mlp")
folder = tempfile.mkdtemp()
# The limit of processes is no limit of root's: another user has to come here.
os.chmod(folder, 0o777)
around = os.stat(os.path.dirname(folder))
if around.st_uid == os.getuid() and not around.st_mode & 0o001:
    os.chmod(os.path.dirname(folder), around.st_mode | 0o011)
NOBODY, KIB, MIB = 65534, 1 << 10, 1 << 20
LAYOUTS = {"one": [], "four": ["-dp=4", "-zero=3"], "offload": ["-offload-optimizer=cpu"], "disk": ["-dp=4", "-zero=3", "-offload-optimizer=nvme"]}


def outputs(name):
    return [f"-data={data}", "-quiet", f"-log={folder}/{name}.jsonl", f"-save={folder}/{name}", f"-save-weights={folder}/{name}.safetensors"]


commands = {"compile": [dsopt, path, "-steps=3", "-o", f"{folder}/made"]}
for name, layout in LAYOUTS.items():
    execute([dsopt, path, "-steps=3", *layout, "-o", f"{folder}/train-{name}"])
    commands[name] = [f"{folder}/train-{name}", *outputs(name), *([f"-nvme-path={folder}"] if name == "disk" else [])]
for name in ("one", "four"):
    commands[f"run {name}"] = [dsopt, path, "-steps=3", "-run", *LAYOUTS[name], *outputs(f"run {name}")]

# Around what the commands need; far below it the system's loader speaks before there is a program.
VALUES = {
    resource.RLIMIT_AS: [n * MIB for n in (*range(14, 60, 2), 64, 80, 96, 112, 128, 160, 256, *range(380, 460, 6), 512, 700, 1024, 4096)],
    resource.RLIMIT_DATA: [n * MIB for n in (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)],
    resource.RLIMIT_NOFILE: [*range(4, 28), 40, 64, 80, 90, 128],
    resource.RLIMIT_FSIZE: [0, 1, 100, 512, KIB, 4096, 5000, 8192, 10000, 16384, 20000, 32768, 50000, 65536, 100000, 200000, 500000, MIB, 2 * MIB, 4 * MIB, 16 * MIB],
    resource.RLIMIT_NPROC: [0, 1, 2, 3, 4, 5, 6, 8, 12],
    resource.RLIMIT_MEMLOCK: [0, 4096, 65536],
    resource.RLIMIT_CORE: [0],
}
NAMES = {resource.RLIMIT_AS: "v", resource.RLIMIT_DATA: "d", resource.RLIMIT_NOFILE: "n", resource.RLIMIT_FSIZE: "f", resource.RLIMIT_NPROC: "u",
         resource.RLIMIT_MEMLOCK: "l", resource.RLIMIT_CORE: "c"}
INTERNAL = re.compile(r"terminate called|std::|bad_alloc|Assertion|core dumped|Stack dump|what\(\)|PLEASE submit|UNREACHABLE|corrupted|malloc\(\)")
# Before main: of the loader, and of the objects of a library that is being loaded.
LOADING = re.compile(r"error while loading shared libraries|^LLVM ERROR: out of memory\nBuffer allocation failed$")


def limited(name, which=None, value=None):
    """Status, output, and the hash of the weights at the end."""
    def limit():
        if which is not None:
            resource.setrlimit(which, (value, value))
        if which == resource.RLIMIT_NPROC:
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    log = f"{folder}/{name}.jsonl"
    for left in (log, f"{folder}/{name}.safetensors", f"{folder}/made"):
        if os.path.exists(left):
            os.remove(left)
    shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
    cache = "off" if which == resource.RLIMIT_NPROC else os.environ.get("DSOPT_CACHE", f"{folder}/cache")
    # Signals that Python ignores are those of a shell again.
    with subprocess.Popen(commands[name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limit, cwd=folder, restore_signals=True,
                          env=dict(os.environ, DSOPT_CACHE=cache), start_new_session=True) as process:
        try:
            said = process.communicate(timeout=120)[0].decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            sys.exit(f"FAILED: {name} with {NAMES[which]}={value} does not end\n{process.communicate()[0].decode()}")
    end = json.loads(open(log).read().splitlines()[-1]).get("end", {}) if os.path.exists(log) and process.returncode == 0 else {}
    return process.returncode, said, end.get("weights_hash")


expected = {}
for name in commands:
    status, said, expected[name] = limited(name)
    check(status == 0, f"{name} without a limit: {status}\n{said}")


def reaches():
    """Whether another user may run what is here at all."""
    try:
        return os.getuid() == 0 and limited("one", resource.RLIMIT_NPROC, 1000)[0] == 0
    except PermissionError:
        return False


processes = reaches()
cases = [(which, value, name) for which, values in VALUES.items() for value in values for name in commands
         if which != resource.RLIMIT_NPROC or processes]
ended = 0
for which, value, name in sampled(cases, 40):
    status, said, found = limited(name, which, value)
    what = f"{name} with ulimit -{NAMES[which]} of {value}"
    if status != 0 and LOADING.search(said):
        continue
    check(status in (0, 1, 2), f"{what}: ended with {status}\n{said}")
    check(status != 0 or found == expected[name], f"{what}: ends with {found}, expected {expected[name]}")
    check(status == 0 or said.count("dsopt: error: ") == 1, f"{what}: expected one sentence\n{said}")
    check(not INTERNAL.search(said), f"{what}: speaks of itself\n{said}")
    ended += status != 0


def alone(command, environment, statuses=(0,)):
    """What was said, and the status with the hash."""
    log = f"{folder}/alone.jsonl"
    if os.path.exists(log):
        os.remove(log)
    done = execute([*command, f"-data={data}", "-quiet", f"-log={log}"], status=None, environment=environment)
    check(done.returncode in statuses, f"{command} ended with {done.returncode}\n{done.stderr}")
    return done.stderr, done.returncode, Run(log).hash if done.returncode == 0 else ""


# Ranks of a host share memory of no file, whatever joins them; MPI itself does with less.
FULL = "mount -t tmpfs -o size=64k%s none /dev/shm && { head -c 65536 /dev/zero > /dev/shm/full; exec \"$@\"; }"
spaces = next((flags for flags in ("-m", "-Urm") if subprocess.run(["unshare", flags, "sh", "-c", FULL % "", "sh", "true"], capture_output=True).returncode == 0), None)
for option in ("", ",ro") if spaces else ():
    for launcher in ([], [*MPIRUN, "4"]):
        said, _, found = alone(["unshare", spaces, "sh", "-c", f"exec 2>&1; {FULL % option}", "sh", *launcher, f"{folder}/train-four"], {})
        check(found == expected["four"], f"/dev/shm of 64 KiB{option}, {launcher}: {found}, expected {expected['four']}\n{said}")

# What a device copies from and to is locked.
devices = {"LD_LIBRARY_PATH": os.path.join(os.path.dirname(os.path.dirname(dsopt)), "test", "SoftDevice")}
on_device = [dsopt, path, "-steps=1", "-target=cuda", "-arch=sm_80", "-dp=2", "-zero=3", "-offload-optimizer=cpu", "-o", f"{folder}/device"]
execute(on_device)
_, _, free = alone([f"{folder}/device"], {**devices, "SOFT_DEVICE": "devices=2"})
words = set()
for lockable in (0, 100, 4096, 1 << 16, 1 << 20):
    said, status, found = alone([f"{folder}/device"], {**devices, "SOFT_DEVICE": f"devices=2,lockable={lockable}"}, (0, 2))
    lines = said.splitlines()
    check(all("bytes" in line or "MiB" in line for line in lines) and all("locked" in line or "cannot lock" in line and "ulimit -l" in line for line in lines), said)
    check(status == 0 and found == free or status == 2 and said.count("dsopt: error: ") == 1, f"{lockable} bytes: {status}, {found}, expected {free}\n{said}")
    words.update(line.split(": ")[1] for line in lines)
check(words == {"error", "warning"}, f"of locked memory only {words}")
print(f"{ended} of {len(sampled(cases, 40))} limits end in a sentence, the others change nothing")
shutil.rmtree(folder)
