"""Optimizer state and parameters on disk: the bits of a run that keeps them on the device, in the bytes that were planned of each
memory; in parts, past the page cache and through it; saved, killed and resumed; on disks that are not there, too small or fail.

usage: disk.py DSOPT FOLDER
"""
import json
import os
import shutil
import subprocess
import sys

import numpy as np

from runs import SOURCE, Run, check, execute, model, train, varied
from sampled import sampled

dsopt, folder = sys.argv[1:]
shutil.rmtree(folder, ignore_errors=True)
disk = os.path.join(folder, "disk")
os.makedirs(disk)
LAYOUTS = ([], ["-zero=1", "-dp=2"], ["-zero=2", "-dp=2", "-grad-clip=1"], ["-zero=3", "-dp=2", "-gather-window=2"],
           ["-zero=3", "-dp=2", "-pp=2", "-recompute=full"], ["-pp=2", "-schedule=gpipe", "-grad-clip=1"], ["-zero=3"])
KINDS = {"device": "arena_bytes", "host": "host_bytes", "disk": "disk_bytes"}
OPTIMIZER = ["-offload-optimizer=nvme", f"-nvme-path={disk}"]
PARAMETERS = [*OPTIMIZER, "-offload-params=nvme"]


def planned(name, *options):
    path, data = model(name)
    return json.loads(execute([dsopt, path, f"-data={data}", "-plan=json", *options]).stdout)["ranks"]


def memories(rank):
    return {memory["kind"]: memory for memory in rank["memories"]}


def bits(run):
    return run.hash, *run.loss_text


for name, optimizer, states in (("gpt2-tiny", "adamw", 2), ("mlp", "sgd", 1)):
    hashes = {}
    for layout in sampled(LAYOUTS, 3) if name == "gpt2-tiny" else sampled(LAYOUTS[3:5], 1):
        for precision in ("fp32", "bf16") if layout in (LAYOUTS[0], LAYOUTS[2], LAYOUTS[4]) else ("fp32",):
            options = [*layout, f"-precision={precision}", f"-optimizer={optimizer}", f"-micro-batches={2 if '-dp=2' in layout else 4}",
                       "-reduction-shards=2", "-accumulate=local", *(["-momentum=0.9"] if optimizer == "sgd" else [])]
            found = hashes.setdefault((precision, "-grad-clip=1" in layout), set())
            found.add(bits(train(dsopt, name, *options, "-steps=3")))
            kept = planned(name, *options)
            for offload in (OPTIMIZER, [*OPTIMIZER, "-sub-group-size=2048"], *([PARAMETERS, [*PARAMETERS, "-sub-group-size=2048"]] if "-zero=3" in layout else [])):
                plan = planned(name, *options, *offload)
                run = train(dsopt, name, *options, *offload, "-steps=3")
                found.add(bits(run))
                for kind, key in KINDS.items():
                    check(run.head["plan"][key] == [memories(rank)[kind]["bytes"] for rank in plan], f"{name} {layout} {offload}: {kind} has {run.head['plan'][key]}")
                for before, rank in zip(kept, plan):
                    there = memories(rank)
                    check(there["disk"]["optimizer"] == before["memory"]["optimizer"] and rank["memory"]["optimizer"] == there["host"]["optimizer"] == 0,
                          f"{name} {layout} {offload}: {rank}")
                    # Each step takes back what the optimizer keeps, and with it the parameters that are there.
                    check(there["disk"]["optimizer"] + there["disk"]["parameters"] <= rank["copied"]["disk"] <= there["disk"]["bytes"], f"{name} {layout} {offload}: {rank['copied']}")
                    if "-offload-params=nvme" in offload:
                        check(there["disk"]["parameters"] > 0 and there["host"]["parameters"] == 0, f"{name} {layout} {offload}: {rank}")
                if name == "gpt2-tiny" and "-sub-group-size=2048" in offload and not ("-dp=2" in layout and "-offload-params=nvme" in offload):
                    whole = planned(name, *options, *offload[:-1])
                    check(memories(plan[0])["host"]["bytes"] < memories(whole[0])["host"]["bytes"] / 2, f"{name} {layout}: parts take no less of the host")
    check(all(len(found) == 1 for found in hashes.values()), f"{name}: {hashes}")
    print(f"{name}: one hash each of {len(hashes)} computations", flush=True)

# Its state is 10 times what the device holds, and more than the host does.
gpt, batches = os.path.join(folder, "gpt.onnx"), os.path.join(folder, "gpt.npz")
subprocess.run([sys.executable, os.path.join(SOURCE, "examples", "make_gpt.py"), gpt, "--layers=24", "--width=96", "--tokens=16", "--rows=1"], check=True)
random = np.random.default_rng(1)
np.savez(batches, input_ids=random.integers(0, 256, (2, 16)), labels=random.integers(0, 256, (2, 16)))


def trained(*options):
    log = os.path.join(folder, "log.jsonl")
    execute([dsopt, gpt, "-run", "-quiet", f"-data={batches}", f"-log={log}", "-steps=2", *options])
    return Run(log)


small = ["-zero=3", "-recompute=full", *PARAMETERS, "-sub-group-size=16384"]
there = memories(json.loads(execute([dsopt, gpt, f"-data={batches}", "-plan=json", *small]).stdout)["ranks"][0])
state = there["disk"]["parameters"] + there["disk"]["optimizer"]
check(state > 10 * there["device"]["bytes"] and state > 10 * there["host"]["bytes"], f"{there}")
check(bits(trained(*small, f"-device-memory={there['device']['bytes']}")) == bits(trained()), "a model of 10 times the device's memory has other bits")
print(f"{state} bytes of state in {there['device']['bytes']} of the device and {there['host']['bytes']} of the host: the same bits", flush=True)

# Other blocks and depths, requests that move less than they were asked, no ring, no direct I/O: one hash.
expected = bits(train(dsopt, "gpt2-tiny", "-zero=3", "-steps=3"))


def struck(fault, *options, status=0):
    path, data = model("gpt2-tiny")
    log = os.path.join(folder, "log.jsonl")
    done = subprocess.run(varied([dsopt, path, "-run", f"-data={data}", f"-log={log}", "-quiet", "-zero=3", *options]), capture_output=True, text=True, timeout=300,
                          env={**os.environ, "DSOPT_FAULT": fault})
    check(done.returncode == status, f"{fault} {options}: status {done.returncode}, expected {status}\n{done.stdout}\n{done.stderr}")
    return done.stderr, log


for fault, said in (("", ""), ("ringRead,every=3:short;ringWrite,every=2:short", ""), ("ring:error=ENOSYS", f"{disk}: no io_uring here (Function not implemented)"),
                    ("pread,rank=0:error=EINVAL", f"{disk}: no direct I/O there (Invalid argument)"), ("ring:error=EPERM;pread,rank=0,from=2:short", "no io_uring here"),
                    ("fallocate:error=EOPNOTSUPP", "")):
    for options in sampled(([], ["-aio=block_size=4096,queue_depth=3"]), 1 if fault else 2):
        said_now, log = struck(fault, *PARAMETERS, "-steps=3", *options)
        check(said in said_now and bool(said) == bool(said_now), f"{fault}: {said_now}")
        check(bits(Run(log)) == expected, f"{fault} {options}: other bits")
print("short, one after the other and through the page cache: the same bits", flush=True)

# Beside the host's memory, in part, with what else moves; a program that only evaluates.
for options in (["-offload-optimizer=nvme", "-offload-ratio=0.5"], ["-zero=3", "-offload-optimizer=cpu", "-offload-params=nvme"],
                ["-zero=3", "-offload-optimizer=nvme", "-offload-params=cpu", "-log-norms"],
                ["-zero=3", *PARAMETERS, "-offload-activations=cpu", "-pp=2", "-micro-batches=1"]):
    check(bits(train(dsopt, "gpt2-tiny", *options, f"-nvme-path={disk}", "-steps=3")) == expected, f"{options}: other bits")
path, data = model("gpt2-tiny")
losses = {execute([dsopt, path, "-eval", f"-data={data}", *options]).stdout.splitlines()[-1].split("(")[0]
          for options in ([], ["-zero=3", "-offload-params=nvme", f"-nvme-path={disk}"])}
check(len(losses) == 1, f"evaluated: {losses}")
print("mixed with what else moves, and evaluated: the same bits", flush=True)

# Saved, killed in the middle of a step, resumed there and on the device.
base = ["-dp=2", "-zero=3", "-micro-batches=2"]
data = model("gpt2-tiny")[1]
whole = train(dsopt, "gpt2-tiny", *base, "-steps=6", f"-eval-data={data}")
program = os.path.join(folder, "train")
execute([dsopt, model("gpt2-tiny")[0], f"-data={data}", *base, "-offload-optimizer=nvme", "-offload-params=nvme", "-o", program])
done = subprocess.run([program, f"-data={data}", f"-nvme-path={disk}", "-steps=6", "-save-every=2", f"-save={folder}/c", "-quiet"], capture_output=True, text=True,
                      env={**os.environ, "DSOPT_FAULT": "ringWrite,rank=1,step=4,nth=3:kill"})
check(done.returncode != 0 and "rank 1" in done.stderr, f"{done.returncode}: {done.stderr}")
check(os.listdir(disk) == [], f"left behind: {os.listdir(disk)}")
for run in (train(dsopt, "gpt2-tiny", "-steps=6", f"-nvme-path={disk}", f"-resume={folder}/c/step-00000004", f"-eval-data={data}", program=program),
            train(dsopt, "gpt2-tiny", *base, "-steps=6", f"-resume={folder}/c/step-00000004")):
    check(run.hash == whole.hash, f"resumed {run.hash}, expected {whole.hash}")
print("killed in a step and resumed, there and on the device: the same bits", flush=True)

asynchronous = train(dsopt, "gpt2-tiny", *base, "-steps=4", *PARAMETERS, f"-save={folder}/a", "-save-every=1", "-save-async")
check(bits(asynchronous)[0] == train(dsopt, "gpt2-tiny", *base, "-steps=4").hash, "other weights with -save-async")
execute([dsopt, f"-check={folder}/a"])
check(train(dsopt, "gpt2-tiny", *base, "-steps=6", f"-resume={folder}/a/step-00000003").hash == whole.hash, "other weights from a checkpoint of -save-async")

# A disk that fails in the middle: the last checkpoint is whole, the message names folder and rank.
for fault in ("ringWrite,step=3,nth=2:error=EIO", "ringRead,step=3,nth=2:error=EIO"):
    said, _ = struck(fault, *OPTIMIZER, "-steps=6", "-save-every=1", f"-save={folder}/f", "-save-existing=aside", status=2)
    verb = "write" if "Write" in fault else "read"
    check(f"{disk}: rank 0 cannot {verb} its file there (-nvme-path): Input/output error" in said, said)
    execute([dsopt, f"-check={folder}/f/step-00000003"])
    check(not os.path.exists(f"{folder}/f/step-00000004"), "a step whose state was not written was saved")

# A disk that stands still: who waits for whom.
said, _ = struck("ringRead,rank=1,step=1:delay=8000", *OPTIMIZER, "-dp=2", "-steps=3", "-stall-timeout=1", status=2)
check("rank 0 waits for rank 1 (in step 1, " in said and "rank 1 is in step 1, in 'copy to host." in said, said)

# What is no folder to write to, and too small a disk.
plan = memories(planned("gpt2-tiny", "-zero=3", *OPTIMIZER)[0])["disk"]["bytes"]
said, _ = struck("fallocate:error=ENOSPC", *OPTIMIZER, "-steps=1", status=2)
check(f"{disk}: rank 0 needs {plan} bytes of disk there (-nvme-path), where " in said and "are free: No space left on device" in said, said)
said, _ = struck("fallocate,rank=1:error=ENOSPC", *OPTIMIZER, "-dp=2", "-steps=1", status=2)
check(f"{disk}: rank 1 needs " in said and said.count("error") == 1, said)
for place, reason in ((f"{folder}/missing", "No such file or directory"), (program, "Not a directory"), ("/sys", "")):
    said, _ = struck("", "-offload-optimizer=nvme", f"-nvme-path={place}", "-steps=1", status=1)
    check(f"{place}: rank 0 cannot make its file there (-nvme-path): {reason}" in said, said)
said, _ = struck("", "-offload-optimizer=nvme", "-steps=1", status=1)
check("the program keeps state on disk, but nothing says where: give -nvme-path=DIR" in said, said)
for aio, reason in (("block_size=1000", "expected a multiple of 4096"), ("queue_depth=0", "expected 1 to 4096"), ("depth=3", "expected block_size=BYTES or queue_depth=N")):
    said, _ = struck("", *OPTIMIZER, f"-aio={aio}", "-steps=1", status=1)
    check(f"option -aio: '{aio}': {reason}" in said, said)
print("what is no disk, too small a one and one that fails are named")
