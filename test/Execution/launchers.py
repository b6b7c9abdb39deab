"""One program under all launchers: alone, mpirun, torchrun's variables, Slurm's. On one
host and on several (which here have different names only) it gives the same bits; a
killed rank, a signal and wrong launches end as they should.

usage: launchers.py DSOPT
"""
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

from runs import MPIRUN, Run, check, execute, model

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
    return [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
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
                visitor.sendall([b"GET / HTTP/1.0\r\n\r\n", noise, b"dsopt ranks 1\n" + noise, b"dsopt ranks 1\n" + hello, b"dso"][number % 5])
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


def launch(ranks, size=4, command=None, more=(), **variables):
    port = free_port()
    return start((command(rank) if command else [program, *arguments(log, *more)],
                  dict(torch_variables(rank, size, port), DSOPT_LAUNCH_TIMEOUT="2", **variables)) for rank in ranks)


other, patched = f"{folder}/other", f"{folder}/patched"
execute([dsopt, path, *options, "-lr-scale=*bias=2", "-o", other])
# Another build: one byte of the runtime differs (of a message that is never printed).
code = open(program, "rb").read()
text = b"collectives do not match"
check(text in code, "the program lacks the text that the test changes")
open(patched, "wb").write(code.replace(text, text.upper(), 1))
os.chmod(patched, 0o755)
refused("a world of the wrong size", launch(range(3), 3), {1}, "started 3 ranks", "compiled for 4")
refused("a missing rank", launch(range(3)), {2}, "rank 3 of 4 has not come")
refused("no rank 0", launch(range(1, 4)), {2}, "cannot reach rank 0")
refused("another program", launch(range(4), command=lambda rank: [other if rank == 2 else program, *arguments(log)]), {1},
        "rank 2", "another program")
refused("another build", launch(range(4), command=lambda rank: [patched if rank == 3 else program, *arguments(log)]), {1},
        "rank 3", "another build")
refused("other options", launch(range(4), command=lambda rank: [program, *arguments(log, *["-lr=1"] * (rank == 1))]), {1},
        "rank 1", "other options")
refused("a rank twice", launch([0, 1, 2, 2]), {1}, "rank 2 was started twice")
refused("no such rank", launch([4]), {1}, "RANK=4", "0 to 3")
eight = f"{folder}/eight"
execute([dsopt, path, *options, "-dp=4", "-o", eight])
port = free_port()
refused("sizes that differ", start(([eight if rank == 1 else program, *arguments(log)],
                                    torch_variables(rank, 8 if rank == 1 else 4, port, DSOPT_LAUNCH_TIMEOUT="2")) for rank in range(4)),
        {1}, "rank 1", "one of 8 ranks, rank 0 as one of 4")
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
    for rank, (status, text) in enumerate(results):
        if rank != victim:
            check(status == 2 and f"rank {victim} on" in text, f"hosts {hosts}: rank {rank} ended with {status} and says\n{text}")
    print(f"killed rank {victim} of hosts {hosts}: {time.monotonic() - began:.1f} s: {text.strip()}", flush=True)
for hosts in ("aaaa", "aabb"):
    saved = f"{folder}/saved-{hosts}"
    ranks = running(hosts, f"-save={saved}")
    ranks[2].send_signal(signal.SIGTERM)
    for rank, (status, text) in enumerate(finish(ranks, 20)):
        check(status == 3, f"SIGTERM: rank {rank} of hosts {hosts} ended with {status}, expected 3\n{text}")
    check(any(os.path.exists(f"{saved}/{name}/manifest.json") for name in os.listdir(saved)), "SIGTERM saved nothing")
print("SIGTERM to one rank saves and ends all with status 3")
shutil.rmtree(folder)
