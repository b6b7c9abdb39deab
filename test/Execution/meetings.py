"""Wrong meetings as a table: what is wrong with one rank ends all of them, with the status and the words that say it, and soon after the
first of them knows. Under torchrun's variables (one host, and hosts that are not told to be one), Slurm's and mpirun, for trained
programs and for dsopt -run. Options that may differ by rank do.

usage: meetings.py DSOPT
"""
import concurrent.futures
import ctypes
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import numpy

from runs import MPIRUN, check, execute, model, varied

dsopt = sys.argv[1]
path, data = model("mlp")
folder = tempfile.mkdtemp()
options = ["-dp=4", "-steps=3"]
here = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMIX_", "DSOPT_FAULT"))}


def make(name, *more):
    execute([dsopt, path, *options, *more, "-o", f"{folder}/{name}"])
    return f"{folder}/{name}"


def restamped(code):
    """An executable with the footer (Footer.h) that its bytes have."""
    xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    xxh3.restype, xxh3.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
    offset = struct.unpack("<Q", code[-80:-72])[0]
    numbers = code[-80:-32] + struct.pack("<Q", xxh3(code[:offset], offset))
    return code[:-80] + numbers + struct.pack("<Q", xxh3(numbers, 56)) + code[-16:]


program, other, version = make("train"), make("other", "-lr-scale=*bias=2"), f"{folder}/version"
# Ranks of another version: the text that they begin with, where it is kept and where it is compared.
code = open(program, "rb").read()
check(b"ranks 3\n" in code, "the program lacks the text that the test changes")
open(version, "wb").write(restamped(code.replace(b"ranks 3\n", b"ranks 9\n")))
os.chmod(version, 0o755)
# The same bytes elsewhere, and others of the same size: one in the middle differs, where no sample is.
copied, changed = f"{folder}/copied.npz", f"{folder}/changed.npz"
arrays = dict(numpy.load(data))
shutil.copy(data, copied)
first = next(iter(arrays))
arrays[first] = arrays[first].copy()
arrays[first].reshape(-1)[arrays[first].size // 2 + 100] *= 2
numpy.savez(changed, **arrays)
saved, late = f"{folder}/saved", f"{folder}/late"
for place, steps in ((saved, 1), (late, 2)):
    execute([program, f"-data={data}", "-quiet", f"-save={place}", f"-steps={steps}"])


def free_ports():
    """The first of 16 free ports in a row."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        held = hold(port) if port < 65000 else None
        if held:
            for taken in held:
                taken.close()
            return port


def hold(port, listens=False):
    held = []
    for number in range(16):
        taken = socket.socket()
        held.append(taken)
        try:
            taken.bind(("127.0.0.1", port + number))
            if listens:
                taken.listen(100)
        except OSError:
            for one in held:
                one.close()
            return None
    return held


def variables(kind, rank, port):
    if kind == "slurm":
        return dict(SLURM_PROCID=str(rank), SLURM_STEP_NUM_TASKS="4", SLURM_STEP_NUM_NODES="1", SLURM_STEP_NODELIST="node1",
                    SLURM_STEP_TASKS_PER_NODE="4", SLURM_LOCALID=str(rank), SLURM_NODEID="0", SLURM_JOB_ID=str(port), SLURM_STEP_ID="3")
    local = dict(LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="4") if "one host" in kind else {}
    return dict(RANK=str(rank), WORLD_SIZE="4", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), **local)


def follow(number, command, environment, delay, began, said, results):
    time.sleep(delay)
    output = ""
    with subprocess.Popen(varied(command), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        watchdog = threading.Timer(90, process.kill)
        watchdog.start()
        for line in process.stdout:
            if "error: " in line:
                said.append(time.monotonic() - began)
            output += line
        process.wait()
        watchdog.cancel()
    results[number] = (time.monotonic() - began, process.returncode, output)


def start(commands, delays=None):
    """Status and output of each, seconds until the first said something, and until the last was gone."""
    began, said, results = time.monotonic(), [], {}
    threads = [threading.Thread(target=follow, args=(number, command, environment, (delays or {}).get(number, 0), began, said, results))
               for number, (command, environment) in enumerate(commands)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends = [results[number] for number in range(len(commands))]
    return [status for _, status, _ in ends], "".join(text for *_, text in ends), min(said, default=0), max(end for end, *_ in ends)


LAUNCHES = {"variables": False, "variables, one host": False, "slurm": False, "variables of dsopt -run": True, "variables, one host of dsopt -run": True}


def ranks(launch, change, without=(), port=None, **more):
    """The command and environment of each of four ranks; `change` gives rank, command and environment, and takes the latter."""
    port = port or free_ports()
    command = [dsopt, path, "-run", *options] if LAUNCHES[launch] else [program]
    return [change(rank, [*command, f"-data={data}", "-quiet"], {**here, "DSOPT_LAUNCH_TIMEOUT": "40", **variables(launch, rank, port), **more})
            for rank in range(4) if rank not in without]


def plus(rank, *words):
    return lambda number, command, environment: ([*command, *words] if number == rank else command, environment)


def with_variable(rank, **more):
    return lambda number, command, environment: (command, dict(environment, **more) if number == rank else environment)


def instead(rank, *words):
    return lambda number, command, environment: ([*words, *command[1:]] if number == rank else command, environment)


def same(number, command, environment):
    return command, environment


def both(one, two):
    return lambda number, command, environment: one(number, *two(number, command, environment))


def resumes(number, command, environment):
    return [*command, f"-resume={late if number == 2 else saved}"], environment


# title, launches, how the ranks are changed, status, words, and how they are started.
ALL, PROGRAMS, RUNS, ONE_HOST = list(LAUNCHES), ["variables", "slurm"], [name for name in LAUNCHES if LAUNCHES[name]], ["variables, one host of dsopt -run"]
TABLE = [
    ("another program", PROGRAMS, instead(2, other), {1}, ["rank 2", "another program", "lr-scale=*bias=2"], {}),
    ("another version", ["variables"], instead(2, version), {1}, ["another version of dsopt", "rank 2 and rank 0", "different versions"], {}),
    ("another version of rank 0", ["slurm"], instead(0, version), {1}, ["another version of dsopt", "rank 1 and rank 0"], {}),
    ("another number of ranks", ["variables", *ONE_HOST], with_variable(2, WORLD_SIZE="8"), {1}, ["rank 2", "8", "4"], {}),
    ("another rate", ALL, plus(2, "-lr=1"), {1}, ["rank 2", "-lr", "1"], {}),
    ("another rate of rank 0", ALL, plus(0, "-lr=1"), {1}, ["rank", "-lr", "1"], {}),
    ("other steps", ALL, plus(2, "-steps=2"), {1}, ["rank 2", "steps", "2", "3"], {}),
    ("other data", ALL, plus(2, f"-data={changed}"), {1}, ["rank 2", "changed.npz"], {}),
    ("a checkpoint that the others do not go on from", ALL, plus(2, f"-resume={saved}"), {1}, ["rank 2", "-resume", saved], {}),
    ("another checkpoint", ALL, resumes, {1}, ["rank 2", late, saved], {}),
    ("another folder to save in", PROGRAMS, plus(2, f"-save={folder}/elsewhere"), {1}, ["rank 2", "-save", "elsewhere"], {}),
    ("evaluations that end the run", ["variables"], both(plus(2, "-stop-after=3"), lambda number, command, environment: (
        [*command, f"-eval-data={data}", "-eval-every=1"], environment)), {1}, ["rank 2", "-stop-after is 3, there not given"], {}),
    ("another model", RUNS, lambda number, command, environment: ([command[0], "/nowhere.onnx", *command[2:]] if number == 2 else command, environment),
     {1}, ["rank 2", "/nowhere.onnx"], {}),
    ("what is compiled otherwise", RUNS, plus(2, "-lr-scale=*bias=2"), {1}, ["rank 2", "-lr-scale=*bias=2"], {}),
    ("an unknown option", ALL, plus(2, "-no-such=2"), {1}, ["rank 2", "-no-such"], {}),
    ("an unknown option of rank 0", ALL, plus(0, "-no-such=2"), {1}, ["-no-such"], {}),
    ("another secret", ["variables", "slurm", *ONE_HOST], with_variable(2, DSOPT_SECRET="what nobody can guess"), {1},
     ["rank 2", "DSOPT_SECRET", "rank 2 of 4 has not come"], {}),
    ("another secret of rank 0", ["variables"], with_variable(0, DSOPT_SECRET="what nobody can guess"), {1}, ["ranks 1, 2, 3 of 4 have not come", "DSOPT_SECRET"], {}),
    ("a rank that never comes", ["variables", *ONE_HOST], same, {2}, ["rank 2"], dict(without=(2,), delays={2: 10}, DSOPT_LAUNCH_TIMEOUT="12")),
    ("rank 0 never comes", ["slurm", "variables", *ONE_HOST], same, {2}, ["rank"], dict(without=(0,), delays={2: 11}, DSOPT_LAUNCH_TIMEOUT="12")),
    ("a rank that never comes, and one of another rate", ["variables"], plus(2, "-lr=3"), {1}, ["rank 2", "-lr is 3"], dict(without=(3,))),
    ("ports that others listen at", ["variables", *ONE_HOST], same, {2}, ["rank 0 cannot listen", "15 ports after it"], dict(held=True)),
    ("ports that others have", ["variables"], same, {2}, ["rank 0 cannot listen", "15 ports after it"], dict(held=False)),
    ("too few open files", ["variables"], instead(2, "sh", "-c", f'ulimit -n 40; exec {program} "$@"', "sh"), {1}, ["rank 2", "84 open files", "permits 40"], {}),
    *[(f"rank {rank} dies at {point}", ["variables", "slurm"], same, {2, -9}, ["rank"], dict(DSOPT_FAULT=f"{point},rank={rank}:kill"))
      for point in ("meet.welcome", "meet.ports") for rank in (0, 2)],
]


def play(row, launch):
    title, _, change, statuses, words, how = row
    how, delays = dict(how), how.get("delays")
    how.pop("delays", None)
    held = None
    if "held" in how:
        listens = how.pop("held")
        while not held:
            how["port"] = free_ports()
            held = hold(how["port"], listens)
    got, said, first, end = start([(command, environment) for command, environment in ranks(launch, change, **how)], delays)
    for taken in held or []:
        taken.close()
    what = f"{title} ({launch})"
    check(set(got) <= statuses, f"{what}: {got}, expected {statuses}\n{said}")
    check(all(word in said for word in words), f"{what}: the ranks say, without all of {words}:\n{said}")
    check("error: " in said, f"{what}: nobody says why\n{said}")
    check(end - first < 10 + slack, f"{what}: {end - first:.1f} s from the first message to the last end, expected 10 and {slack:.1f} for this machine\n{said}")
    return f"{what}: {end - first:.1f} s: {said.strip().splitlines()[0][:150]}"


def under_mpi(title, words, statuses, first, last, environment=None):
    began = time.monotonic()
    got, said, *_ = start([([*MPIRUN, "3", *first, ":", "-n", "1", *last], dict(here, DSOPT_LAUNCH_TIMEOUT="10", **(environment or {})))])
    check(got[0] in statuses and all(word in said for word in words), f"{title} (mpirun): {got}, {words}\n{said}")
    print(f"{title} (mpirun): {time.monotonic() - began:.1f} s", flush=True)


# How slow this machine is now: of four ranks that meet and train.
normal = [start(ranks(launch, same))[3] for launch in LAUNCHES]
slack = 10 * max(normal)
jobs = [(row, launch) for row in TABLE for launch in row[1]]
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for line in pool.map(lambda job: play(*job), jobs):
        print(line, flush=True)

mine = [program, f"-data={data}", "-quiet"]
under_mpi("another rate", ["rank 3 was started with other options", "-lr is 1, there 0.001"], {1}, mine, [*mine, "-lr=1"])
under_mpi("another checkpoint", ["rank 3", f"-resume is {late}, there {saved}"], {1}, [*mine, f"-resume={saved}"], [*mine, f"-resume={late}"])
under_mpi("other data", ["rank 3 reads other data"], {1}, mine, [program, f"-data={changed}", "-quiet"])
under_mpi("another program", ["rank 3 runs another program"], {1}, mine, [other, *mine[1:]])
under_mpi("an option that only one rank has", ["rank 3: ", "-stop-after"], {1}, mine, [*mine, "-stop-after=2"])
under_mpi("what is compiled otherwise", ["local rank 3", "-lr-scale=*bias=2"], {1}, [dsopt, path, "-run", *options, *mine[1:]],
          [dsopt, path, "-run", *options, *mine[1:], "-lr-scale=*bias=2"])
under_mpi("a rank that dies before it comes", [], {137, 9, 2, 1}, mine, mine, dict(DSOPT_FAULT="load.data,rank=3:kill"))

# What may differ; a rank that compiles for itself makes another program of another command line.
for launch in LAUNCHES:
    if launch == "variables of dsopt -run":
        continue
    allowed = start(ranks(launch, lambda number, command, environment: (
        [*command, f"-data={copied if number == 2 else data}", f"-log={folder}/log-{number}.jsonl", f"-log-every={number + 1}",
         *["-threads=1"] * (number == 1)], environment)))
    check(allowed[0] == [0] * 4, f"what may differ ({launch}): {allowed[0]}\n{allowed[1]}")
shutil.rmtree(folder)
print(f"{len(jobs)} wrong meetings end everywhere")
