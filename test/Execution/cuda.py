"""Programs for CUDA devices, on a device in software: PyTorch's recorded losses, one hash over all layouts under any order of streams,
checkpoints that go both ways between targets, what kernels took, and what is said where something is missing.

usage: cuda.py DSOPT FOLDER reference MODEL... | layouts | nccl | checkpoints | saves | precision | offload | report | errors
"""
import json
import os
import sys
import tempfile

import numpy as np

from runs import MODELS, Run, check, execute, model, relative, train
from small import initializer, node, value, write

dsopt, folder, what = sys.argv[1:4]
CUDA = ["-target=cuda", "-arch=sm_80"]


def device(**options):
    """The environment in which a program finds the device in software."""
    return {"LD_LIBRARY_PATH": folder, "SOFT_DEVICE": ",".join(f"{name}={value}" for name, value in options.items())}


def reference(name):
    """Within 1e-5 of PyTorch's losses in step 0, and of the host's program after some steps."""
    recorded = np.load(os.path.join(MODELS, name, "reference.npz"))
    more = {"bert-tiny": ["-padding-index=*word_embeddings.weight=0"]}.get(name, [])
    options = ["-micro-batches=2", "-steps=4", "-lr=1e-3", "-weight-decay=0.01", "-log-norms", *more]
    whole = ["-micro-batches=4", "-steps=2", "-lr=1e-3", "-weight-decay=0.01", "-log-norms", *more]
    os.environ.update(device(seed=1))
    run = train(dsopt, name, *CUDA, *whole)
    error = relative(run.losses, recorded["adamw/loss"][:2])
    check(error < 1e-5, f"{name} losses {run.losses}, expected {list(recorded['adamw/loss'][:2])}")
    total = float(recorded["step0/grad_norm_total"])
    for parameter, got in run.steps[0]["grad_norms"].items():
        expected = float(recorded["step0/grad_norm/" + parameter])
        check(abs(got - expected) <= max(1e-5 * expected, 1e-6 * total), f"{name} gradient norm of {parameter} is {got}, expected {expected}")
    host, other = train(dsopt, name, *options), train(dsopt, name, *CUDA, *options)
    check(relative(other.losses, host.losses) < 1e-5, f"{name} losses {other.losses}, on the host {host.losses}")
    print(f"{name}: losses within {error:.1e} of PyTorch's, {len(run.steps[0]['grad_norms'])} gradient norms")


def layouts():
    """K = V = 4 and K = 8, V = 2 on the device: one hash and one text of losses, whatever order streams go in."""
    name, seed = "gpt2-tiny", 0
    base = [*CUDA, "-steps=2", "-grad-clip=1", "-lr=3e-3", "-threads=1"]
    grids = [(1, 1, 0, []), (2, 1, 0, []), (2, 1, 1, []), (2, 1, 2, []), (2, 1, 3, []), (4, 1, 3, []), (1, 2, 0, []), (2, 2, 3, []),
             (1, 2, 0, ["-schedule=gpipe"]), (1, 1, 0, ["-recompute=full"]), (2, 2, 3, ["-recompute=full"]), (2, 1, 3, ["-gather-window=2"])]
    first = None
    for dp, pp, zero, more in grids:
        seed += 1
        os.environ.update(device(seed=seed))
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={4 // dp}", "-reduction-shards=4", *more]
        run = train(dsopt, name, *base, *layout)
        first = first or run
        check(run.hash == first.hash and run.loss_text == first.loss_text,
              f"{' '.join(layout)} seed {seed}: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
    print(f"{len(grids)} layouts, one hash {first.hash[:16]}")


def nccl():
    """Ranks with a device each are joined by NCCL: one hash with one rank's, whatever order streams go in, and one message where one fails."""
    name, seed = "gpt2-tiny", 0
    base = [*CUDA, "-steps=2", "-grad-clip=1", "-lr=3e-3", "-threads=1", "-reduction-shards=4"]
    os.environ.update(device(seed=1))
    first = train(dsopt, name, *base, "-micro-batches=4")
    grids = [(2, 1, 0, []), (2, 1, 1, []), (4, 1, 2, []), (2, 1, 3, []), (4, 1, 3, []), (1, 2, 0, []), (2, 2, 3, []), (1, 4, 1, []),
             (1, 2, 0, ["-schedule=gpipe"]), (2, 2, 3, ["-recompute=full"]), (2, 1, 3, ["-gather-window=2"])]
    for dp, pp, zero, more in grids:
        seed += 1
        os.environ.update(device(devices=4, seed=seed))
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={4 // dp}", *more]
        run = train(dsopt, name, *base, *layout)
        check(run.head["engine"] == "NCCL", f"{' '.join(layout)}: joined by {run.head['engine']}")
        check(run.hash == first.hash and run.loss_text == first.loss_text,
              f"{' '.join(layout)} seed {seed}: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
        sent = train(dsopt, name, *base, *layout, "-engine=host")
        check(sent.head["engine"] != "NCCL" and sent.hash == first.hash, f"{' '.join(layout)} -engine=host: {sent.head['engine']} {sent.hash}")
        check([step["sent_bytes"] for step in sent.steps] == [step["sent_bytes"] for step in run.steps], f"{' '.join(layout)}: other bytes were counted than by hosts")

    path, data = model("mlp")

    def ends(status, text, environment, *options):
        command = [dsopt, path, "-run", f"-data={data}", "-steps=3", *CUDA, "-dp=2", "-micro-batches=1", *options]
        done = execute(command, status, timeout=60, environment={**device(devices=2, seed=1), **environment})
        check(text in (done.stderr if status else done.stdout), f"expected '{text}', got: {done.stdout}{done.stderr}")
        check(done.stderr.count("error:") == bool(status), f"expected one message, got: {done.stderr}")

    one = {"SOFT_DEVICE": "devices=1"}
    ends(0, "GPUs are joined by their hosts, not by NCCL: ranks 0 and 1 share a GPU", one)
    ends(0, "not by NCCL: libnccl.so.2 is version 2.17.0, expected 2.18.0 or newer", {"SOFT_NCCL": "version=21700"})
    ends(2, "-engine=nccl: ranks 0 and 1 share a GPU", one, "-engine=nccl")
    ends(2, "-engine=nccl: libnccl.so.2 is version 2.17.0", {"SOFT_NCCL": "version=21700"}, "-engine=nccl")
    ends(2, "rank 1 was killed by signal 9 (Killed) in step 1", {"DSOPT_FAULT": "action,rank=1,step=1,nth=5:kill"})
    ends(2, "rank 0 waits for rank 1 (in step 1, in 'reduce ", {"DSOPT_FAULT": "step,rank=1,step=1:stop=0"}, "-stall-timeout=2")
    ends(0, "step 2/3", {"DSOPT_FAULT": "step,rank=1,step=1:delay=1000"})
    print(f"{len(grids)} layouts, one hash {first.hash[:16]}")


def checkpoints():
    """A checkpoint of one target goes on under the other; resumed on the device a run has the bits of one that went through."""
    path, data = model("gpt2-tiny")
    os.environ.update(device(seed=3))
    with tempfile.TemporaryDirectory() as place:
        def run(*options):
            execute([dsopt, path, "-run", f"-data={data}", "-quiet", "-micro-batches=1", f"-log={place}/log", *options])
            return [json.loads(line) for line in open(f"{place}/log")][-1]["end"]["weights_hash"]

        whole = run(*CUDA, "-steps=4")
        run(*CUDA, "-steps=2", "-lr-decay-steps=4", f"-save={place}/c")
        check(run(*CUDA, "-steps=4", f"-resume={place}/c") == whole, "a resumed run has other bits")
        run("-steps=3", f"-resume={place}/c", f"-save={place}/h")
        run(*CUDA, "-steps=4", f"-resume={place}/h")
    print("checkpoints go both ways")


def saves():
    """Checkpoints that are written while steps go on, however slow the disk, have the bytes of those that steps wait for."""
    path, data = model("mlp")
    slow = {"DSOPT_FAULT": "pwrite,every=1:delay=10"}
    layouts = ([], ["-dp=2", "-zero=1", "-grad-clip=1"], ["-dp=2", "-zero=3"], ["-pp=2", "-precision=bf16"])
    for seed, layout in enumerate(layouts):
        os.environ.update(device(seed=seed))
        with tempfile.TemporaryDirectory() as place:
            def run(*options, environment=None):
                execute([dsopt, path, "-run", f"-data={data}", "-quiet", *CUDA, "-micro-batches=1", "-steps=3", f"-log={place}/log", *layout, *options],
                        environment=environment)
                return [json.loads(line) for line in open(f"{place}/log")][-1]["end"]["weights_hash"]

            whole = run(f"-save={place}/waiting", "-save-every=1", "-save-keep=9")
            check(run(f"-save={place}/going", "-save-every=1", "-save-keep=9", "-save-async", environment=slow) == whole, f"{layout}: other bits with -save-async")
            names = sorted(os.path.relpath(os.path.join(folder, name), f"{place}/waiting")
                           for folder, _, found in os.walk(f"{place}/waiting") for name in found if name != "manifest.json")
            check(len(names) == 6, f"{layout}: {names}")
            for name in names:
                check(open(f"{place}/waiting/{name}", "rb").read() == open(f"{place}/going/{name}", "rb").read(), f"{layout}: {name} differs")
            execute([dsopt, f"-check={place}/going"])
            check(run(f"-resume={place}/going/step-00000002") == whole, f"{layout}: a resumed run has other bits")
    print(f"{len(layouts)} layouts save while steps go on")


def precision():
    """bf16 within 2e-2 of fp32, one hash and text of losses over layouts, with gradients of either type."""
    for name in ("mlp", "gpt2-tiny", "bert-tiny"):
        options = ["-micro-batches=2", "-steps=3", "-lr=1e-3"]
        os.environ.update(device(seed=1))
        full = train(dsopt, name, *options).losses
        for gradients in ("fp32", "param"):
            half = [*CUDA, *options[1:], "-precision=bf16", f"-gradient-type={gradients}", "-reduction-shards=2"]
            one = train(dsopt, name, *half, "-micro-batches=2")
            check(relative(one.losses, full) < 2e-2, f"{name}, gradients {gradients}: losses {one.losses}, in fp32 {full}")
            os.environ.update(device(seed=2))
            two = train(dsopt, name, *half, "-dp=2", "-zero=3", "-micro-batches=1")
            check(two.hash == one.hash and two.loss_text == one.loss_text, f"{name}, gradients {gradients}: other bits under -dp=2 -zero=3")
    print("bf16")


def offload():
    """State, parameters and activations in the host's memory and on disk: the bits of a run that keeps them on the device, in the bytes of each memory
    that were planned; saved, resumed and evaluated."""
    seed, runs = 0, 0
    kinds = {"device": "arena_bytes", "host": "host_bytes", "disk": "disk_bytes"}

    def same(path, data, first, *options):
        """The run's bits, which are `first`'s if there is one."""
        nonlocal seed, runs
        seed, runs = seed + 1, runs + 1
        os.environ.update(device(seed=seed))
        with tempfile.TemporaryDirectory() as disk:
            more = [*options, f"-nvme-path={disk}"] if any(option.endswith("=nvme") for option in options) else options
            plan = json.loads(execute([dsopt, path, f"-data={data}", "-plan=json", *CUDA, *more]).stdout)["ranks"]
            execute([dsopt, path, "-run", f"-data={data}", "-quiet", f"-log={disk}/log", *CUDA, *more])
            run = Run(f"{disk}/log")
        found = run.hash, *run.loss_text
        check(first in (None, found), f"{' '.join(options)} seed {seed}: {found}, expected {first}")
        planned = [{memory["kind"]: memory["bytes"] for memory in rank["memories"]} for rank in plan]
        for kind, key in kinds.items():
            check(run.head["plan"][key] == [rank.get(kind, 0) for rank in planned], f"{' '.join(options)}: {kind} has {run.head['plan'][key]}, planned {planned}")
        if any(option.startswith("-offload") for option in options):
            check(all(rank["host"] > 0 and rank["copied"]["device"] > 0 for rank in [{**a, **b} for a, b in zip(plan, planned)]), f"{' '.join(options)}: {plan}")
        return found

    path, data = model("mlp")
    host, half = ["-offload-optimizer=cpu"], ["-offload-optimizer=cpu", "-offload-ratio=0.5"]
    disk, all_host = ["-offload-optimizer=nvme"], ["-offload-optimizer=cpu", "-offload-params=cpu"]
    all_disk = ["-offload-optimizer=nvme", "-offload-params=nvme", "-sub-group-size=2048"]
    for more, grids in (([], [(1, 1, 0, [host, half, disk]), (2, 1, 1, [host]), (2, 1, 2, [half]), (2, 1, 3, [host, all_disk]), (1, 2, 0, [host]),
                              (2, 2, 3, [all_host, all_disk])]),
                        (["-precision=bf16", "-grad-clip=0.1"], [(1, 1, 0, [disk]), (2, 1, 3, [all_host])]),
                        (["-optimizer=sgd", "-momentum=0.9", "-delayed-update=1"], [(1, 1, 0, [host]), (2, 2, 3, [all_disk])])):
        base = [*more, f"-steps={3 if more else 2}", "-lr=3e-3", "-threads=1", "-reduction-shards=2", "-accumulate=local"]
        first = same(path, data, None, *base, "-micro-batches=2")
        for dp, pp, zero, offloads in grids:
            for moved in offloads:
                same(path, data, first, *base, f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={2 // dp}", *moved)

    # Values of 64 KiB and more, between forward and backward.
    with tempfile.TemporaryDirectory() as place:
        random = np.random.default_rng(0)
        weights = [initializer(f"w{i}", (random.standard_normal((64, 64)) / 8).astype(np.float32)) for i in range(5)]
        layers = [node(op, inputs, outputs) for i in range(5) for op, inputs, outputs in
                  (("MatMul", f"x{i} w{i}", f"m{i}"), ("Tanh", f"m{i}", f"x{i + 1}"))]
        wide = write(f"{place}/wide.onnx", [*layers, node("Mul", "x5 x5", "squares"), node("ReduceMean", "squares", "loss", keepdims=0)],
                     [value("x0", (256, 64))], weights)
        batches = f"{place}/wide.npz"
        np.savez(batches, x0=random.standard_normal((2048, 64)).astype(np.float32))
        base = ["-steps=2", "-lr=3e-3", "-threads=1", "-reduction-shards=2"]
        first = same(wide, batches, None, *base, "-micro-batches=2")
        for dp, pp, zero, more in ((1, 1, 0, []), (2, 1, 3, all_host), (1, 2, 0, ["-schedule=gpipe"])):
            same(wide, batches, first, *base, f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={2 // dp}", "-offload-activations=cpu", *more)

    with tempfile.TemporaryDirectory() as place:
        base = ["-zero=3", "-dp=2", "-micro-batches=1", f"-eval-data={data}"]
        whole = train(dsopt, "mlp", *CUDA, *base, "-steps=4")
        train(dsopt, "mlp", *CUDA, *base, *all_host, "-steps=2", "-lr-decay-steps=4", f"-save={place}/c", "-save-async")
        for more in ([], all_host, [*all_disk, f"-nvme-path={place}"]):
            check(train(dsopt, "mlp", *CUDA, *base, *more, "-steps=4", f"-resume={place}/c/step-00000002").hash == whole.hash, f"{more}: a resumed run has other bits")
    print(f"{runs} layouts and tiers, the bits of runs that keep all on the device")


def report():
    """The device's time by kernel, with what each takes of it, and the bits of a run that measures nothing."""
    path, data = model("mlp")
    os.environ.update(device(seed=1))
    plain = train(dsopt, "mlp", *CUDA, "-micro-batches=2", "-steps=3")
    with tempfile.TemporaryDirectory() as place:
        said = execute([dsopt, path, "-run", f"-data={data}", *CUDA, "-micro-batches=2", "-steps=3", "-report=kernels", f"-log={place}/log"]).stdout
        check([json.loads(line) for line in open(f"{place}/log")][-1]["end"]["weights_hash"] == plain.hash, "a run that is measured has other bits")
    check("kernels: mean of 2 steps" in said and "this GPU: " in said, said)
    rows = [line for line in said.splitlines() if line.rstrip().endswith(" B spilled")]
    # Which rows are too short to be shown depends on what else the machine does.
    check(rows and all("registers, " in row and " B shared, 0 B spilled" in row for row in rows), said)
    check(all("; 32 registers, 1024 B shared" in row for row in rows if " columns " in row), said)
    shown = 0
    for kind, calls in (("update update.adamw", [3]), ("norm ", [3]), ("linear_nll ", [2]), ("kernel ", [2, 4])):
        for line in (line.split() for line in said.splitlines() if f"%  {kind}" in line):
            check(float(line[0]) in calls, f"{kind}: {said}")
            shown += float(line[1]) > 0
    check(shown >= 3, said)
    print(f"{len(rows)} kernels")


def errors():
    path, data = model("mlp")

    def fails(status, text, environment, *options):
        done = execute([dsopt, path, "-run", f"-data={data}", "-steps=1", "-quiet", *CUDA, *options], status, environment=environment)
        check(text in done.stderr, f"expected '{text}', got: {done.stderr}")
        check(done.stderr.count("error:") == 1, f"expected one message, got: {done.stderr}")

    fails(2, "no CUDA driver", {"LD_LIBRARY_PATH": ""})
    fails(2, "the CUDA driver is version 11.0, expected 12.0 or newer", device(driver=11000))
    fails(2, "finds no device", device(devices=0))
    fails(1, "compiled for sm_80, but this machine's", device(arch=75))
    fails(2, "'s memory, which has", device(memory=65536))
    print("errors")


if what == "reference":
    for name in sys.argv[4:]:
        reference(name)
else:
    {"layouts": layouts, "nccl": nccl, "checkpoints": checkpoints, "saves": saves, "precision": precision, "offload": offload, "report": report, "errors": errors}[what]()
