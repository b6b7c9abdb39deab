"""One program under all launchers: alone, mpirun, torchrun's variables, Slurm's. On one
host and on several (which here have different names only) it gives the same bits; a
killed rank, a signal and wrong launches end as they should.

usage: launchers.py DSOPT
"""
import ctypes
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import numpy

from runs import MPIRUN, Run, check, execute, model, varied

dsopt = sys.argv[1]
path, data = model("gpt2-tiny")
folder = tempfile.mkdtemp()
options = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-steps=3", "-grad-clip=1", "-lr=3e-3"]
program = f"{folder}/train"
execute([dsopt, path, *options, "-o", program])
here = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMIX_"))}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torch_variables(rank, size, port, host=None, address="127.0.0.1", **more):
    variables = dict(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR=address, MASTER_PORT=str(port), **more)
    return dict(here, **variables, **({"DSOPT_HOST": host} if host else {}))


def slurm_variables(rank, size, job):
    return dict(here, SLURM_PROCID=str(rank), SLURM_STEP_NUM_TASKS=str(size), SLURM_STEP_NUM_NODES="1",
                SLURM_STEP_NODELIST="node[07-09,12]", SLURM_STEP_TASKS_PER_NODE=str(size), SLURM_LOCALID=str(rank),
                SLURM_NODEID="0", SLURM_JOB_ID=str(job), SLURM_STEP_ID="3")


def start(commands):
    """Processes of (command, environment) pairs."""
    return [subprocess.Popen(varied(command), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for command, env in commands]


def finish(processes, timeout=120):
    """Status and output of each."""
    results = [(process.communicate(timeout=timeout)[0], process.returncode) for process in processes]
    return [(status, text) for text, status in results]


def all_good(title, processes):
    for rank, (status, text) in enumerate(finish(processes)):
        check(status == 0, f"{title}: rank {rank} ended with status {status}\n{text}")


hashes = {}


def remember(title, log):
    run = Run(log)
    hashes[title] = (run.hash, run.loss_text)
    print(f"{title}: {run.head['engine']}, {run.hash[:16]}", flush=True)


def arguments(log, *more):
    return [f"-data={data}", f"-log={log}", "-quiet", *more]


log = f"{folder}/log.jsonl"
execute([program, *arguments(log)])
remember("alone", log)
execute([*MPIRUN, "4", program, *arguments(log)])
remember("mpirun", log)
for hosts in ("aaaa", "aabb", "abab", "abcd", "aaab"):
    port = free_port()
    all_good(hosts, start(([program, *arguments(log)], torch_variables(rank, 4, port, host)) for rank, host in enumerate(hosts)))
    remember(f"torchrun's variables, hosts {hosts}", log)
port = free_port()
addresses = start(([program, *arguments(log)], torch_variables(rank, 4, port, "b" if rank > 1 else None, "localhost")) for rank in range(4))
all_good("localhost", addresses)
remember("torchrun's variables, localhost", log)
all_good("slurm", start(([program, *arguments(log)], slurm_variables(rank, 4, os.getpid())) for rank in range(4)))
remember("Slurm's variables", log)
torchrun = shutil.which("torchrun")
if torchrun:
    execute([torchrun, "--no-python", "--nproc-per-node", "4", program, *arguments(log)])
    remember("torchrun itself", log)
# The compiler under launchers: one rank of a host compiles.
execute([*MPIRUN, "4", dsopt, path, "-run", *options, *arguments(log)])
remember("dsopt -run, mpirun", log)
port = free_port()
all_good("dsopt -run", start(([dsopt, path, "-run", *options, *arguments(log)],
                              torch_variables(rank, 4, port, LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="4")) for rank in range(4)))
remember("dsopt -run, torchrun's variables", log)
all_good("dsopt -run", start(([dsopt, path, "-run", *options, *arguments(log)], slurm_variables(rank, 4, os.getpid() + 1))
                             for rank in range(4)))
remember("dsopt -run, Slurm's variables", log)
port = free_port()
# A listening service that is no rank 0, and a visitor that speaks something else.
with socket.create_server(("127.0.0.1", port)):
    ranks = start(([program, *arguments(log)], torch_variables(rank, 4, port, TORCHELASTIC_USE_AGENT_STORE="True")) for rank in range(1, 4))
    time.sleep(0.3)
    ranks += start([([program, *arguments(log)], torch_variables(0, 4, port, TORCHELASTIC_USE_AGENT_STORE="True"))])
    for number in range(50):
        try:
            with socket.create_connection(("127.0.0.1", port + 1), timeout=1) as visitor:
                noise = bytes(random.randrange(256) for _ in range(64))
                hello = struct.pack("<II", 1, random.choice([0, 56, 64, 2**31, 2**32 - 1])) + random.choice([noise[:56], bytes(64), b"\xff" * 64])
                visitor.sendall([b"GET / HTTP/1.0\r\n\r\n", noise, b"dsopt ranks 3\n" + noise, b"dsopt ranks 2\n" + hello, b"dso"][number % 5])
        except OSError:
            time.sleep(0.01)
    all_good("visitors", ranks)
remember("a taken port and visitors", log)
check(len(set(map(str, hashes.values()))) == 1, f"the bits differ: {hashes}")
print(f"{len(hashes)} launches, one hash", flush=True)


def refused(title, processes, statuses, *words, limit=10):
    """All end within the limit, each with a message that has the words."""
    began = time.monotonic()
    for rank, (status, text) in enumerate(finish(processes, limit)):
        check(status in statuses, f"{title}: process {rank} ended with status {status}, expected {statuses}\n{text}")
        for word in words:
            check(word in text, f"{title}: the message of process {rank} lacks '{word}'\n{text}")
        check(text.count("error: ") == 1, f"{title}: process {rank} says\n{text}")
    print(f"{title}: {time.monotonic() - began:.1f} s: {text.strip()}", flush=True)


def troubled(title, processes, status, *words, limit=8):
    """All end soon with the status, and one of them says why."""
    began = time.monotonic()
    results = finish(processes, limit)
    said = "".join(text for _, text in results)
    check(all(got == status for got, _ in results), f"{title}: {[got for got, _ in results]}, expected {status}\n{said}")
    check(said.count("error: ") == 1 and all(word in said for word in words), f"{title}: the ranks say\n{said}")
    print(f"{title}: {time.monotonic() - began:.1f} s: {said.strip()}", flush=True)


def launch(ranks, size=4, command=None, more=(), **variables):
    port = free_port()
    return start((command(rank) if command else [program, *arguments(log, *more)],
                  dict(torch_variables(rank, size, port), **{"DSOPT_LAUNCH_TIMEOUT": "2", **variables})) for rank in ranks)




def restamped(code):
    """An executable with the footer (Footer.h) that its bytes have."""
    xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    xxh3.restype, xxh3.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
    offset = struct.unpack("<Q", code[-80:-72])[0]
    numbers = code[-80:-32] + struct.pack("<Q", xxh3(code[:offset], offset))
    return code[:-80] + numbers + struct.pack("<Q", xxh3(numbers, 56)) + code[-16:]


other, patched = f"{folder}/other", f"{folder}/patched"
execute([dsopt, path, *options, "-lr-scale=*bias=2", "-o", other])
# Another build: one byte of the runtime differs (of a message that is never printed).
code = open(program, "rb").read()
text = b"collectives do not match"
check(text in code, "the program lacks the text that the test changes")
open(patched, "wb").write(restamped(code.replace(text, text.upper(), 1)))
os.chmod(patched, 0o755)
troubled("a world of the wrong size", launch(range(3), 3), 1, "started 3 ranks", "compiled for 4")
troubled("a missing rank", launch(range(3)), 2, "rank 3 of 4 has not come")
for status, text in (results := finish(launch(range(1, 4)), 20)):
    check(status == 2, f"no rank 0: {results}")
check(any("cannot reach rank 0" in text for _, text in results), f"no rank 0: {results}")
troubled("another program", launch(range(4), command=lambda rank: [other if rank == 2 else program, *arguments(log)]), 1,
        "rank 2", "another program")
troubled("another build", launch(range(4), command=lambda rank: [patched if rank == 3 else program, *arguments(log)]), 1,
        "rank 3", "another build")
troubled("other options", launch(range(4), command=lambda rank: [program, *arguments(log, *["-lr=1"] * (rank == 1))]), 1,
        "rank 1", "other options")
troubled("a rank twice", launch([0, 1, 2, 2]), 1, "rank 2 was started twice")
refused("no such rank", launch([4]), {1}, "RANK=4", "0 to 3")
eight = f"{folder}/eight"
execute([dsopt, path, *options, "-dp=4", "-o", eight])
# Not each is connected to each: steps, evaluations and saves find their ways.
more = [f"-eval-data={data}", f"-save={folder}/saved-eight", "-save-every=1", "-save-existing=aside"]
execute([eight, *arguments(log, *more)])
eights = [Run(log)]
for hosts in ("abcdefgh", "aabbccdd", "aaaabbbb"):
    port = free_port()
    all_good(f"eight ranks on {hosts}", start(([eight, *arguments(log, *more)], torch_variables(rank, 8, port, host)) for rank, host in enumerate(hosts)))
    eights.append(Run(log))
check(len({str((run.hash, run.loss_text)) for run in eights}) == 1, f"eight ranks: the bits differ: {[run.hash for run in eights]}")
execute([eight, f"-check={folder}/saved-eight"])
print(f"eight ranks: {eights[0].hash[:16]}", flush=True)
port = free_port()
troubled("sizes that differ", start(([eight if rank == 1 else program, *arguments(log)],
                                    torch_variables(rank, 8 if rank == 1 else 4, port, DSOPT_LAUNCH_TIMEOUT="2")) for rank in range(4)),
        1, "rank 1", "one of 8 ranks, rank 0 as one of 4")
original, copy = f"{folder}/original.npz", f"{folder}/copy.npz"
arrays = dict(numpy.load(data))
numpy.savez(original, **arrays)
changed = next(iter(arrays))
arrays[changed] = arrays[changed].copy()
arrays[changed].flat[0] += 1
numpy.savez(copy, **arrays)
troubled("other data", launch(range(4), command=lambda rank: [program, f"-data={copy if rank == 3 else original}", "-quiet"]), 1,
        "rank 3", "reads other data than rank 0", "samples of copy.npz")
twice = f"{folder}/twice.npz"
numpy.savez(twice, **{name: numpy.concatenate([array, array]) for name, array in arrays.items()})
troubled("data of another size", launch(range(4), command=lambda rank: [program, f"-data={twice if rank == 3 else data}", "-quiet", "-steps=2"]), 1,
        "rank 3", f"twice.npz has {os.path.getsize(twice):,} bytes, there {os.path.getsize(data):,} bytes")
troubled("other token options", launch(range(4), command=lambda rank: [program, *arguments(log, *["-labels=shifted"] * (rank == 2))]), 1,
        "rank 2", "-labels is shifted, there not given")


def stands_still(place, *words):
    """Under mpirun rank 0 stands still for ever at a place."""
    environment = dict(here, DSOPT_LAUNCH_TIMEOUT="2", DSOPT_FAULT=f"{place},rank=0:stop=0")
    (status, text), = finish(start([([*MPIRUN, "4", program, *arguments(log, "-stall-timeout=2")], environment)]), 30)
    check(status == 2 and all(word in text for word in words), f"{place}: mpirun ended with {status}\n{text}")
    print(f"{place} under mpirun: {text.splitlines()[0]}", flush=True)


stands_still("load.data", "has waited 2 s for the other ranks to come to MPI_Init")
stands_still("log,nth=5", "nothing moved (-stall-timeout)")
refused("other options under mpirun", start([([*MPIRUN, "3", program, *arguments(log), ":", "-n", "1", program, *arguments(log, "-lr=1")], here)]), {1},
        "rank 3 was started with other options", "-lr is 1", limit=20)


# What keeps one rank from coming ends all at once; nobody waits for it until the limit.
for victim in (0, 2):
    troubled(f"no data on rank {victim}", launch(range(4), DSOPT_LAUNCH_TIMEOUT="60", command=lambda rank: [
        program, f"-data={'/nowhere.npz' if rank == victim else data}", "-quiet"]), 1, "/nowhere.npz", *["rank 2 on"] * (victim == 2))
troubled("no data anywhere", launch(range(4), DSOPT_LAUNCH_TIMEOUT="60", command=lambda rank: [program, "-data=/nowhere.npz"]), 1, "/nowhere.npz")
troubled("an option that only one rank has", launch(range(4), DSOPT_LAUNCH_TIMEOUT="60", command=lambda rank: [
    program, *arguments(log, *["-no-such-option"] * (rank == 1))]), 1, "rank 1 on", "-no-such-option")
damaged = f"{folder}/damaged"
open(damaged, "wb").write(code[:-64] + code[-64:].replace(code[-48:-40], bytes([255] * 8)))
os.chmod(damaged, 0o755)
troubled("a damaged program", launch(range(4), DSOPT_LAUNCH_TIMEOUT="60", command=lambda rank: [
    damaged if rank == 1 else program, *arguments(log)]), 1, "rank 1 on")

troubled("no descriptor for a connection", launch(range(4), DSOPT_FAULT="accept4,rank=2,nth=1:error=EMFILE"), 2, "rank 2", "Too many open files")
port = free_port()
ranks = start(([program, *arguments(log, "-stall-timeout=2")], dict(torch_variables(rank, 4, port, host), DSOPT_FAULT="ftruncate,rank=2,nth=1:stop=0"))
              for rank, host in enumerate("aabb"))
still = ranks.pop(2)
troubled("a rank that stands still as it hands out memory", ranks, 2, "nothing moved (-stall-timeout)")
still.kill()
finish([still])

# Secrets.
secret, readable = f"{folder}/secret", f"{folder}/readable"
for path_, mode in ((secret, 0o600), (readable, 0o644)):
    open(path_, "w").write("what nobody can guess\n")
    os.chmod(path_, mode)
port = free_port()
all_good("a secret", start(([program, *arguments(log)], dict(torch_variables(rank, 4, port), **(
    {"DSOPT_SECRET_FILE": secret} if rank % 2 else {"DSOPT_SECRET": "what nobody can guess"}))) for rank in range(4)))
remember("a secret", log)
refused("a secret that others can read", launch([0, 1], DSOPT_SECRET_FILE=readable), {1}, "chmod 600")
refused("a short secret", launch([0], DSOPT_SECRET="hush"), {1}, "holds 4 bytes")
refused("two secrets", launch([0], DSOPT_SECRET="what nobody can guess", DSOPT_SECRET_FILE=secret), {1}, "both set")
port = free_port()
strangers = start(([program, *arguments(log)], dict(torch_variables(rank, 4, port), DSOPT_LAUNCH_TIMEOUT="2",
                                                    DSOPT_SECRET="what nobody can guess" if rank != 2 else "what somebody has guessed")) for rank in range(4))
for rank, (status, text) in enumerate(finish(strangers, 20)):
    check(status == (1 if rank == 2 else 2), f"another secret: rank {rank} ended with {status}\n{text}")
    words = {0: "rank 2 of 4 has not come", 2: "do not know the same secret"}.get(rank)
    check(words in text if words else not text, f"another secret: rank {rank} says\n{text}")
    check("gpt2" not in text and "option" not in text, f"another secret: rank {rank} tells of the run\n{text}")
print("another secret: refused")

# Few descriptors: more silent visitors than there is room for, then fewer than the ranks need.
port = free_port()
few = start([(["sh", "-c", 'ulimit -n 90; exec "$@"', "sh", program, *arguments(log)], torch_variables(0, 4, port, DSOPT_LAUNCH_TIMEOUT="30"))])
visitors = []
for _ in range(200):
    try:
        visitors.append(socket.create_connection(("127.0.0.1", port), timeout=1))
    except OSError:
        time.sleep(0.02)
few += start(([program, *arguments(log)], torch_variables(rank, 4, port)) for rank in range(1, 4))
all_good("200 silent visitors at 90 descriptors", few)
remember("silent visitors", log)
for visitor in visitors:
    visitor.close()
refused("too few descriptors", start([(["sh", "-c", 'ulimit -n 60; exec "$@"', "sh", program, *arguments(log)], torch_variables(0, 4, free_port()))]), {1},
        "4 ranks needs 84 open files", "permits 60")
check(len(set(map(str, hashes.values()))) == 1, f"the bits differ: {hashes}")


# The compiler under a launcher: whoever waits for it ends with it.
def compiling(port, *more, job=None):
    return start(([dsopt, path, "-run", *options, *arguments(log), *more],
                  dict(torch_variables(rank, 4, port, LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="4", DSOPT_CACHE="off"), **(job or {}))) for rank in range(4))


before = open("/proc/net/unix").read().count("@dsopt-program-")
ranks = compiling(free_port())
while open("/proc/net/unix").read().count("@dsopt-program-") == before:
    time.sleep(0.001)
time.sleep(0.1)
ranks[0].kill()
began = time.monotonic()
results = finish(ranks, 10)
check(all(status == 2 for status, _ in results[1:]) and any("ended before it had compiled" in text for _, text in results),
      f"a killed compiler: {results}")
print(f"a killed compiler: {time.monotonic() - began:.1f} s", flush=True)
troubled("a compiler that fails", compiling(free_port(), "-micro-batch-size=7"), 1, "-micro-batch-size=7")
# What others left where an earlier version handed programs on.
port = free_port()
left = f"{folder}/dsopt-{os.getuid()}-env-{port}--"
os.mkdir(left, 0o700)
open(f"{left}/program.so", "w").write("an old program")
all_good("a dead job's folder", compiling(port, job={"TMPDIR": folder}))
refused("variables missing", start([([program, *arguments(log, "-launcher=env")], here)]), {1}, "MASTER_ADDR")
refused("no srun", start([([program, *arguments(log, "-launcher=slurm")], here)]), {1}, "SLURM_PROCID")
refused("half a launcher", start([([program, *arguments(log)], dict(here, RANK="0", WORLD_SIZE="4"))]), {1}, "MASTER_ADDR")
refused("a bad port", launch([0], MASTER_PORT="seven"), {1}, "MASTER_PORT=seven")
refused("a bad list", start([([program, *arguments(log)], dict(slurm_variables(0, 4, 1), SLURM_STEP_NUM_NODES="2",
                                                               SLURM_STEP_NODELIST="node[07-"))]), {1}, "SLURM_STEP_NODELIST")


def running(hosts, *more):
    """Ranks that train, with at least one step done."""
    port, steps = free_port(), f"{folder}/steps.jsonl"
    if os.path.exists(steps):
        os.remove(steps)
    ranks = start(([program, f"-data={data}", f"-log={steps}", "-quiet", "-steps=1000000", *more], torch_variables(rank, 4, port, host))
                  for rank, host in enumerate(hosts))
    for _ in range(600):
        if os.path.exists(steps) and '"step"' in open(steps).read():
            return ranks
        time.sleep(0.05)
    sys.exit("FAILED: no step within 30 s")


for hosts, victim in (("aabb", 3), ("abcd", 0), ("aaaa", 1)):
    ranks = running(hosts)
    began = time.monotonic()
    ranks[victim].kill()
    results = finish(ranks, 10)
    said = "".join(text for _, text in results)
    check(all(status == 2 for rank, (status, _) in enumerate(results) if rank != victim), f"hosts {hosts}: {results}")
    check(said.count("error: ") == 1 and f"rank {victim} on" in said, f"hosts {hosts}: the ranks say\n{said}")
    print(f"killed rank {victim} of hosts {hosts}: {time.monotonic() - began:.1f} s: {said.strip()}", flush=True)
for hosts in ("aaaa", "aabb"):
    saved = f"{folder}/saved-{hosts}"
    ranks = running(hosts, f"-save={saved}")
    ranks[2].send_signal(signal.SIGTERM)
    for rank, (status, text) in enumerate(finish(ranks, 20)):
        check(status == 3, f"SIGTERM: rank {rank} of hosts {hosts} ended with {status}, expected 3\n{text}")
    check(any(os.path.exists(f"{saved}/{name}/manifest.json") for name in os.listdir(saved)), "SIGTERM saved nothing")
print("SIGTERM to one rank saves and ends all with status 3")
shutil.rmtree(folder)
