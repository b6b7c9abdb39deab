"""Two hosts, as two network namespaces on one machine: ranks meet over TCP without MPI,
and under mpirun, with the bits of one host; a killed rank and a cut wire end all.

usage: namespaces.py DSOPT         (where namespaces are permitted)
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

from runs import Run, check, execute, model

if os.environ.get("DSOPT_INSIDE") != "1":
    # A network and a host name of its own, as root in a user namespace or as the real one.
    os.environ["DSOPT_INSIDE"] = "1"
    flags = "-Urnum" if subprocess.run(["unshare", "-Urnum", "true"], capture_output=True).returncode == 0 else "-num"
    os.execvp("unshare", ["unshare", flags, "--kill-child", "-f", sys.executable, *sys.argv])

dsopt = sys.argv[1]
path, data = model("gpt2-tiny")
folder = tempfile.mkdtemp()
log, program, steps = f"{folder}/log.jsonl", f"{folder}/train", f"{folder}/steps.jsonl"
options = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-steps=3", "-grad-clip=1", "-lr=3e-3"]
execute([dsopt, path, *options, "-o", program])


def shell(line):
    execute(["sh", "-c", line])


# The other host is a process that sleeps in its own namespaces. As on many machines, the left host's
# name is a loopback address to itself.
for side, address in (("left", "127.0.1.1"), ("right", "10.99.0.1")):
    with open(f"{folder}/hosts-{side}", "w") as file:
        file.write(f"127.0.0.1 localhost\n{address} left\n")
shell(f"mount --bind {folder}/hosts-left /etc/hosts")
other = subprocess.Popen(["unshare", "-num", "sh", "-c", f"mount --bind {folder}/hosts-right /etc/hosts; exec sleep 1000"])
time.sleep(0.3)
enter = ["nsenter", "-t", str(other.pid), "-n", "-u", "-m"]
try:
    shell("hostname left && ip link set lo up")
    shell(f"ip link add wire type veth peer name wire netns {other.pid}")
    shell("ip addr add 10.99.0.1/24 dev wire && ip link set wire up")
    execute([*enter, "sh", "-c", "hostname right; ip link set lo up; ip addr add 10.99.0.2/24 dev wire; ip link set wire up"])

    def launch(sides, arguments, address="10.99.0.1", secrets=["what nobody can guess"] * 4):
        """A rank on each side ('l' or 'r') of the wire."""
        ranks = []
        for rank, side in enumerate(sides):
            env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(len(sides)), MASTER_ADDR=address, MASTER_PORT="29500", DSOPT_LAUNCH_TIMEOUT="20",
                       DSOPT_SECRET=secrets[rank])
            ranks.append(subprocess.Popen([*(enter if side == "r" else []), program, *arguments], env=env,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return ranks

    def finish(ranks, timeout=60):
        return [(rank.communicate(timeout=timeout)[0], rank.returncode) for rank in ranks]

    results = {}

    def remember(title):
        run = Run(log)
        results[title] = (run.hash, run.loss_text)
        print(f"{title}: {run.head['engine']}, {run.hash[:16]}", flush=True)

    arguments = [f"-data={data}", f"-log={log}", "-quiet"]
    execute([program, *arguments])
    remember("one host")
    for sides, address in (("llrr", "10.99.0.1"), ("lrlr", "10.99.0.1"), ("lrrr", "10.99.0.1"), ("llrr", "left"), ("lrlr", "left")):
        for rank, (text, status) in enumerate(finish(launch(sides, arguments, address))):
            check(status == 0, f"{sides}, {address}: rank {rank} ended with status {status}\n{text}")
        remember(f"sides {sides}, {address}")
    for rank, (text, status) in enumerate(finish(launch("llrr", arguments, secrets=[""] * 4))):
        check(status == 1 and "10.99.0.1:29500" in text and "-insecure" in text, f"no secret: rank {rank} ended with {status}\n{text}")
    for rank, (text, status) in enumerate(finish(launch("llrr", [*arguments, "-insecure"], secrets=[""] * 4))):
        check(status == 0, f"-insecure: rank {rank} ended with status {status}\n{text}")
    remember("sides llrr, -insecure")
    hosts = f"{folder}/agent"
    with open(hosts, "w") as file:
        file.write(f"#!/bin/sh\nshift\nexec {' '.join(enter)} sh -c \"$*\"\n")
    os.chmod(hosts, 0o755)
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "plm_rsh_agent", hosts,
              "--mca", "btl", "tcp,self,vader", "--mca", "btl_tcp_if_include", "10.99.0.0/24",
              "--mca", "oob_tcp_if_include", "10.99.0.0/24", "-H", "10.99.0.1:2,10.99.0.2:2", "-n", "4"]
    if shutil.which("mpirun"):
        names = execute([*mpirun, "hostname"]).stdout.split()
        check(sorted(names) == ["left", "left", "right", "right"], f"mpirun starts ranks on {names}")
        execute([*mpirun, program, *arguments], timeout=60)
        remember("mpirun over the wire")
    check(len(set(map(str, results.values()))) == 1, f"the bits differ: {results}")

    def running(sides):
        if os.path.exists(steps):
            os.remove(steps)
        ranks = launch(sides, [f"-data={data}", f"-log={steps}", "-quiet", "-steps=1000000"])
        for _ in range(600):
            if os.path.exists(steps) and '"step"' in open(steps).read():
                return ranks
            time.sleep(0.05)
        sys.exit("FAILED: no step within 30 s")

    def ended(title, ranks, victims, began, speakers):
        """All end. Rank 0 says why; so may those that are cut off from it."""
        said = []
        for rank, (text, status) in enumerate(finish(ranks, 12)):
            if rank in victims:
                continue
            check(status == 2, f"{title}: rank {rank} ended with {status} and says\n{text}")
            if text:
                check("cannot be reached" in text, f"{title}: rank {rank} says\n{text}")
                said.append(rank)
        check(said in speakers, f"{title}: ranks {said} say why, expected one of {speakers}")
        seconds = time.monotonic() - began
        check(seconds < 10, f"{title}: took {seconds:.1f} s")
        print(f"{title}: all ended within {seconds:.1f} s", flush=True)

    ranks = running("llrr")
    began = time.monotonic()
    subprocess.run(["kill", "-9", str(ranks[3].pid)])  # nsenter has become the rank
    ended("a killed rank on the other host", ranks, {3}, began, [[0]])
    ranks = running("llrr")
    began = time.monotonic()
    shell("ip link set wire down")
    ended("a cut wire", ranks, set(), began, [[0], [0, 2], [0, 3], [0, 2, 3]])
finally:
    other.kill()
    shutil.rmtree(folder)
