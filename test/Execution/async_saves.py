"""Checkpoints that are written while training goes on (-save-async): the bytes of those that training waits for, the same
losses, in many layouts; nothing is overtaken however slow the disk; kills, signals and a disk that fails.

usage: async_saves.py DSOPT [KILLS]
"""
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from runs import MPIRUN, check, execute, model, varied

dsopt = sys.argv[1]
kills = int(sys.argv[2]) if len(sys.argv) > 2 else 8
folder = tempfile.mkdtemp(prefix="async-saves-")
log = os.path.join(folder, "log.jsonl")
STEPS = 4
#: A disk that takes longer for a checkpoint than a step does.
SLOW = {"DSOPT_FAULT": "pwrite,every=1:delay=5"}


def command(name, *options):
    path, data = model(name)
    return [dsopt, path, "-run", f"-data={data}", "-quiet", f"-steps={STEPS}", "-lr=3e-3", f"-log={log}", *options]


def run(name, *options, prefix=(), environment=None):
    if os.path.exists(log):
        os.remove(log)
    done = subprocess.run(varied([*prefix, *command(name, *options)]), capture_output=True, text=True, env={**os.environ, **(environment or {})})
    check(done.returncode == 0, f"{name} {options}: status {done.returncode}: {done.stderr}")
    lines = [json.loads(line) for line in open(log)]
    return lines[-1]["end"]["weights_hash"], [line["loss"] for line in lines if "loss" in line], lines[0]["run"]["plan"]


def files(save):
    """The hash of each file; of manifests, of what they say but for the run's name and their own hash."""
    found = {}
    for step in sorted(os.listdir(save)):
        for name in sorted(os.listdir(os.path.join(save, step))):
            data = open(os.path.join(save, step, name), "rb").read()
            if name == "manifest.json":
                manifest = json.loads(data)["manifest"]
                check(manifest.pop("run", "-") != "-", f"{name} has no run: {sorted(manifest)}")
                data = json.dumps(manifest, sort_keys=True).encode()
            found[f"{step}/{name}"] = hashlib.sha256(data).hexdigest()
    return found


def same_bytes():
    cases = [("gpt2-tiny", "one rank", ["-grad-clip=1"], ()), ("gpt2-tiny", "zero 1", ["-dp=2", "-zero=1", "-grad-clip=1"], ()),
             ("gpt2-tiny", "zero 2", ["-dp=2", "-zero=2"], ()), ("gpt2-tiny", "zero 3", ["-dp=2", "-zero=3"], ()),
             ("gpt2-tiny", "stages", ["-pp=2", "-dp=2", "-zero=3"], ()),
             ("gpt2-tiny", "bf16", ["-dp=2", "-zero=2", "-precision=bf16"], ()),
             ("gpt2-tiny", "optimizer on the host", ["-dp=2", "-zero=1", "-offload-optimizer=cpu"], ()),
             ("gpt2-tiny", "parameters on the host", ["-dp=2", "-zero=3", "-offload-optimizer=cpu", "-offload-params=cpu"], ()),
             ("gpt2-tiny", "optimizer on disk", ["-dp=2", "-zero=2", "-offload-optimizer=nvme", f"-nvme-path={folder}"], ()),
             ("gpt2-tiny", "all on disk",
              ["-dp=2", "-zero=3", "-offload-optimizer=nvme", "-offload-params=nvme", f"-nvme-path={folder}"], ()),
             ("resnet-tiny", "running statistics", ["-dp=2", "-zero=1"], ()),
             ("gpt2-tiny", "mpirun", ["-dp=2", "-zero=2"], [*MPIRUN, "2"])]
    for name, what, options, prefix in cases:
        waiting, going = os.path.join(folder, "waiting"), os.path.join(folder, "going")
        every = ["-save-every=1", "-save-keep=9"]
        weights, losses, plan = run(name, *options, *every, f"-save={waiting}", prefix=prefix)
        check(plan["save_staging_bytes"] == 0, f"{plan}")
        again, others, plan = run(name, *options, *every, f"-save={going}", "-save-async", prefix=prefix,
                                  environment=None if prefix else SLOW)
        check(plan["save_staging_bytes"] == 32 << 20, f"{plan}")
        check((again, others) == (weights, losses), f"{what}: other losses with -save-async: {others}, expected {losses}")
        expected, got = files(waiting), files(going)
        check(expected == got, f"{what}: other files: {[name for name in expected if expected[name] != got.get(name)]}")
        execute([dsopt, f"-check={going}"])
        resumed, _, _ = run(name, *options, f"-resume={going}/step-00000002", prefix=prefix)
        check(resumed == weights, f"{what}: goes on with {resumed}, expected {weights}")
        shutil.rmtree(going)
        shutil.rmtree(waiting)
        print(f"{what}: the files of {STEPS} steps and the losses are the same", flush=True)


def hosts():
    """Two ranks on two hosts, which speak over TCP."""
    path, data = model("gpt2-tiny")
    program = os.path.join(folder, "hosts")
    execute([dsopt, path, "-o", program, f"-data={data}", "-dp=2", "-zero=1"])
    saves = {}
    for what, environment, more in (("waiting", {}, []), ("going", SLOW, ["-save-async"])):
        saves[what] = os.path.join(folder, what)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        line = [program, f"-data={data}", "-quiet", f"-steps={STEPS}", "-lr=3e-3", f"-save={saves[what]}", "-save-every=1",
                "-save-keep=9", *more]
        ranks = [subprocess.Popen(varied(line), env=dict(os.environ, **environment, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                                                 MASTER_PORT=str(port), DSOPT_HOST=f"h{rank}")) for rank in range(2)]
        statuses = [rank.wait(timeout=120) for rank in ranks]
        check(statuses == [0, 0], f"{what}: {statuses}")
    check(files(saves["waiting"]) == files(saves["going"]), "two hosts write other files")
    print("two hosts: the same files", flush=True)


def killed():
    """Kills the whole run at random moments; every -resume=auto goes on with the same bits."""
    path, data = model("gpt2-tiny")
    options = ["-dp=2", "-pp=2", "-zero=2", "-micro-batches=2"]
    save, program = os.path.join(folder, "killed"), os.path.join(folder, "program")
    execute([dsopt, path, "-o", program, f"-data={data}", *options])
    start = [program, f"-data={data}", "-quiet", "-steps=60", "-lr=3e-3", f"-log={log}"]
    line = [*start, f"-save={save}", "-save-every=1", "-save-keep=2", "-resume=auto", "-save-async"]
    if os.path.exists(log):
        os.remove(log)
    execute(start)
    expected = [json.loads(text) for text in open(log)][-1]["end"]["weights_hash"]
    began = time.monotonic()
    execute(line)
    duration = time.monotonic() - began
    shutil.rmtree(save)
    generator, done = random.Random(1), 0
    while done < kills:
        process = subprocess.Popen(varied(line), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        try:
            process.wait(timeout=generator.uniform(0.02, duration / 3))
            shutil.rmtree(save)  # it came to its end: once more from the start
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done += 1
    if os.path.exists(log):
        os.remove(log)
    execute(line)
    end = [json.loads(text) for text in open(log)][-1]["end"]
    check(end["weights_hash"] == expected, f"after {kills} kills {end}, expected {expected}")
    check(len(os.listdir(save)) == 2, f"-save-keep=2 left {os.listdir(save)}")
    print(f"{kills} kills at random moments, the same bits", flush=True)


def signals():
    """A signal while a checkpoint is written: that one and the last one are there."""
    save = os.path.join(folder, "signals")
    if os.path.exists(log):
        os.remove(log)
    environment = dict(os.environ, DSOPT_FAULT="pwrite,every=1:delay=100")
    process = subprocess.Popen(varied(command("gpt2-tiny", "-dp=2", "-steps=100000", f"-save={save}", "-save-every=3", "-save-async")),
                               env=environment)
    while process.poll() is None and not (os.path.isdir(save) and "step-00000003.tmp" in os.listdir(save)):
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=60) == 3, f"status {process.returncode}, expected 3")
    left = sorted(os.listdir(save))
    check(left[0] == "step-00000003" and len(left) in (1, 2) and not left[-1].endswith(".tmp"), f"saved {left}")
    execute([dsopt, f"-check={save}"])
    print("SIGTERM while a checkpoint is written: it is there, and the last one", flush=True)


def failing_disk():
    """The second checkpoint cannot be written: the message and status of one that training waits for; the first stays."""
    for fault, why in (("pwrite,rank=0,from=30:error=ENOSPC", "No space left on device"), ("fsync,rank=1,from=3:error=EIO",
                                                                                         "Input/output error")):
        texts = []
        for more in ([], ["-save-async"]):
            save = os.path.join(folder, "failing")
            done = subprocess.run(varied(command("gpt2-tiny", "-dp=2", "-zero=1", "-steps=50", f"-save={save}", "-save-every=1", *more)),
                                  capture_output=True, text=True, env=dict(os.environ, DSOPT_FAULT=fault))
            check(done.returncode == 2 and done.stderr.count("error:") == 1 and why in done.stderr and "step-" in done.stderr,
                  f"{done.returncode}: {done.stderr}")
            left = os.listdir(save)
            check(all(name.endswith(tuple("0123456789")) for name in left), f"left {left}")
            execute([dsopt, f"-check={save}"])
            texts.append(done.stderr.split("writing failed")[1])
            shutil.rmtree(save)
        check(texts[0] == texts[1], f"{texts}")
        print(f"a disk that fails: writing failed{texts[1].strip()}", flush=True)


def alone():
    done = execute(command("mlp", "-save-async"), status=1)
    check("option -save-async needs -save=DIR" in done.stderr, done.stderr)


try:
    alone()
    same_bytes()
    hosts()
    signals()
    failing_disk()
    killed()
finally:
    shutil.rmtree(folder)
