"""Programs for CUDA devices, on a device in software: PyTorch's recorded losses, one hash over all layouts under any order of streams,
checkpoints that go both ways between targets, what kernels took, and what is said where something is missing.

usage: on_gpu.py DSOPT FOLDER|gpu reference MODEL... | layouts | nccl | tensor | graphs | checkpoints | saves | convolutions | precision | scale | memory | odd | offload | report | errors
FOLDER has the device in software. gpu: on the GPUs that are there (./dev test-gpu, which says of which architecture
and how many), without what only the former can do.
"""
import json
import os
import re
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from on_device import CUDA, device, dsopt, is_real, what
from on_gpu_numbers import convolutions, odd, precision, scale
from own_models import save
from runs import MODELS, Run, check, execute, model, relative, train
from sampled import sampled
from small import initializer, node, value, write


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
    name, seed = "gpt2-toy", 0
    base = [*CUDA, "-steps=2", "-grad-clip=1", "-lr=3e-3", "-threads=1"]
    grids = [(1, 1, 0, []), (2, 1, 0, []), (2, 1, 1, []), (2, 1, 2, []), (2, 1, 3, []), (4, 1, 3, []), (1, 2, 0, []), (2, 2, 3, []),
             (1, 2, 0, ["-schedule=gpipe"]), (1, 1, 0, ["-recompute=full"]), (2, 2, 3, ["-recompute=full"]), (2, 1, 3, ["-gather-window=2"])]
    first = None
    for dp, pp, zero, more in sampled(grids, 4):
        seed += 1
        os.environ.update(device(seed=seed))
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={4 // dp}", "-reduction-shards=4", *more]
        run = train(dsopt, name, *base, *layout)
        first = first or run
        check(run.hash == first.hash and run.loss_text == first.loss_text,
              f"{' '.join(layout)} seed {seed}: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
    print(f"{len(grids)} layouts, one hash {first.hash[:16]}")
    # An update that sees whole matrices.
    same = ["-optimizer=muon", "-steps=2", "-lr=3e-3", "-reduction-shards=4"]
    runs = [train(dsopt, name, *CUDA, *same, *layout) for layout in (["-micro-batches=4"], ["-dp=2", "-zero=3", "-micro-batches=2", "-accumulate=local"])]
    host = train(dsopt, name, *same, "-micro-batches=4")
    check(runs[0].hash == runs[1].hash, f"muon: {runs[0].hash} and {runs[1].hash}")
    check(relative(runs[0].losses, host.losses) < 1e-5, f"muon: losses {runs[0].losses}, on the host {host.losses}")
    # One that sees norms of whole parameters, by small graphs, single calls, and in part on the host.
    same = ["-optimizer=lamb", "-steps=3", "-lr=3e-3", "-weight-decay=0.1", "-reduction-shards=4", "-grad-clip=1"]
    host = train(dsopt, "mlp", *same, "-micro-batches=4")
    runs = {}
    for layout in sampled((["-micro-batches=4"], ["-micro-batches=4", "-cuda-graph=off"], ["-dp=2", "-zero=1", "-pp=2", "-micro-batches=2"],
                           ["-dp=2", "-zero=3", "-micro-batches=2", "-accumulate=local"], ["-micro-batches=4", "-offload-optimizer=cpu", "-offload-ratio=0.5"]), 2):
        seed += 1
        os.environ.update(device(seed=seed))
        runs[" ".join(layout)] = run = train(dsopt, "mlp", *CUDA, *same, *layout)
        check(relative(run.losses, host.losses) < 1e-5, f"lamb {layout}: losses {run.losses}, on the host {host.losses}")
    check(len({run.hash for run in runs.values()}) == 1, f"lamb: {[(layout, run.hash) for layout, run in runs.items()]}")
    # One that sees whole parameters and their norms, and keeps what its segments replace.
    same = ["-optimizer=adafactor", "-steps=3", "-weight-decay=0.1", "-reduction-shards=4", "-grad-clip=1"]
    host = train(dsopt, "mlp", *same, "-micro-batches=4")
    runs = {}
    for layout in sampled((["-micro-batches=4"], ["-micro-batches=4", "-cuda-graph=off"], ["-dp=2", "-zero=1", "-pp=2", "-micro-batches=2"],
                           ["-dp=2", "-zero=3", "-micro-batches=2", "-accumulate=local"], ["-micro-batches=4", "-offload-optimizer=cpu"]), 2):
        seed += 1
        os.environ.update(device(seed=seed))
        runs[" ".join(layout)] = run = train(dsopt, "mlp", *CUDA, *same, *layout)
        check(relative(run.losses, host.losses) < 1e-5, f"adafactor {layout}: losses {run.losses}, on the host {host.losses}")
    check(len({run.hash for run in runs.values()}) == 1, f"adafactor: {[(layout, run.hash) for layout, run in runs.items()]}")
    # Steps that are not applied leave it as it is, whatever overflowed.
    same = ["-optimizer=adafactor", "-precision=fp16", "-initial-scale-power=24", "-loss-scale-hysteresis=1", "-steps=8", "-micro-batches=4"]
    host, run = train(dsopt, "mlp", *same), train(dsopt, "mlp", *CUDA, *same)
    applied = [step["skipped"] for step in run.steps]
    check(applied[0] and not applied[-2] and relative(run.losses, host.losses) < 1e-3, f"adafactor: skips {applied}, losses {run.losses}, on the host {host.losses}")


def nccl():
    """Ranks with a device each are joined by NCCL: one hash with one rank's, whatever order streams go in, and one message where one fails."""
    seed, hashes = 0, {}
    base = [*CUDA, "-steps=2", "-grad-clip=1", "-lr=3e-3", "-threads=1", "-reduction-shards=4"]
    os.environ.update(device(seed=1))
    grids = [("mlp", 2, 1, 0, []), ("mlp", 2, 1, 1, []), ("mlp", 4, 1, 2, []), ("mlp", 2, 1, 3, []), ("mlp", 4, 1, 3, []), ("mlp", 1, 2, 0, []),
             ("mlp", 2, 2, 3, []), ("mlp", 1, 2, 0, ["-schedule=gpipe"]), ("mlp", 2, 1, 3, ["-gather-window=2"]), ("gpt2-toy", 4, 1, 3, []),
             ("gpt2-toy", 2, 2, 3, ["-recompute=full"]), ("gpt2-toy", 1, 4, 1, [])]
    if is_real:
        grids = [grid for grid in grids if grid[1] * grid[2] <= int(os.environ["DSOPT_GPUS"])]
    grids = sampled(grids, 6)
    for name, dp, pp, zero, more in grids:
        seed += 1
        if name not in hashes:
            hashes[name] = train(dsopt, name, *base, "-micro-batches=4")
        first = hashes[name]
        os.environ.update(device(devices=4, seed=seed))
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={4 // dp}", *more]
        run = train(dsopt, name, *base, *layout)
        check(run.head["engine"] == "NCCL", f"{' '.join(layout)}: joined by {run.head['engine']}")
        check(run.hash == first.hash and run.loss_text == first.loss_text,
              f"{' '.join(layout)} seed {seed}: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
        sent = train(dsopt, name, *base, *layout, "-engine=host")
        check(sent.head["engine"] != "NCCL" and sent.hash == first.hash, f"{' '.join(layout)} -engine=host: {sent.head['engine']} {sent.hash}")
        check([step["sent_bytes"] for step in sent.steps] == [step["sent_bytes"] for step in run.steps], f"{' '.join(layout)}: other bytes were counted than by hosts")

    # Sums of squares that ranks gather, and whole gradients.
    for optimizer in sampled(("lamb", "adafactor"), 1):
        same = [*base, f"-optimizer={optimizer}"]
        os.environ.update(device(devices=4, seed=1))
        first, cut = train(dsopt, "mlp", *same, "-micro-batches=4"), train(dsopt, "mlp", *same, "-dp=2", "-zero=2", "-micro-batches=2")
        check(cut.head["engine"] == "NCCL" and cut.hash == first.hash, f"{optimizer} by {cut.head['engine']}: {cut.hash}, expected {first.hash}")

    # In NCCL's own order the bits are those of as many ranks, and near the others'.
    name = "mlp"
    for dp, zero, more in sampled(((4, 2, ["-accumulate=sharded"]), (4, 3, [])), 1):
        layout = [f"-dp={dp}", f"-zero={zero}", "-micro-batches=2", "-reduction=fast", *more]
        runs = []
        for seed in (1, 2):
            os.environ.update(device(devices=4, seed=seed))
            runs.append(train(dsopt, name, *base, *layout))
        exact = train(dsopt, name, *base, *layout, "-reduction=canonical")
        apart = max(abs(a / b - 1) for a, b in zip(runs[0].losses, exact.losses))
        check(runs[0].hash == runs[1].hash != exact.hash and apart < 1e-5, f"{layout}: losses are {apart} apart; {runs[0].hash} {runs[1].hash} {exact.hash}")
        check(runs[0].steps[-1]["sent_bytes"] == exact.steps[-1]["sent_bytes"], f"{layout}: sends other bytes")

    if is_real:
        return print(f"{len(grids)} layouts, one hash for each model; the rest is for the device in software")
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
    print(f"{len(grids)} layouts, one hash for each model")


def tensor():
    """What tensor and sequence shards send has one hash at every degree, joined by NCCL or by hosts, whatever order streams go in."""
    base, four, seed = [*CUDA, "-steps=2", "-grad-clip=1", "-lr=3e-3", "-threads=1"], ["-micro-batches=4", "-reduction-shards=4"], 0
    for name, same, degrees in (("gpt2-toy", ["-tensor-shards=2", *four], (["-tp=2"], ["-tp=2", "-dp=2", "-zero=3", "-micro-batches=2"], ["-tp=2", "-pp=2"])),
                                ("gpt2-toy", ["-tensor-shards=2", "-optimizer=lamb", *four], (["-tp=2", "-dp=2", "-zero=2", "-micro-batches=2"],)),
                                ("mlp", ["-tensor-shards=4", "-precision=bf16", *four], (["-tp=2"], ["-tp=4"])), ("resnet-tiny", ["-tensor-shards=2", *four], (["-tp=2"],)),
                                ("gpt2-toy", ["-sequence-shards=2", "-precision=bf16"], (["-sp=2"], ["-sp=2", "-sp-method=ring"])), ("gpt2-toy", ["-sequence-shards=4"], (["-sp=2"], ["-sp=4", "-sp-method=ring"])),
                                ("gpt2-toy", ["-sequence-shards=2", "-tensor-shards=2", "-micro-batches=2", "-reduction-shards=2"],
                                 (["-sp=2", "-dp=2", "-zero=3", "-micro-batches=1"],))):
        same = [*base, *same]
        os.environ.update(device(seed=1))
        first = train(dsopt, name, *same)
        for layout in degrees:
            for engine in [] if is_real and int(os.environ["DSOPT_GPUS"]) < 4 else ([], ["-engine=host"]) if layout == degrees[-1] else ([],):
                seed += 1
                os.environ.update(device(devices=4, seed=seed))
                run = train(dsopt, name, *same, *layout, *engine)
                check((run.head["engine"] == "NCCL") == (not engine), f"{name} {' '.join(layout)}: joined by {run.head['engine']}")
                check(run.hash == first.hash and run.loss_text == first.loss_text,
                      f"{name} {' '.join([*layout, *engine])} seed {seed}: {run.loss_text} {run.hash}, expected {first.loss_text} {first.hash}")
    print(f"{seed} runs by shards, the bits of one rank")


def graphs():
    """Replayed steps have the bits of single calls, in any order of streams, and end as those do; how many calls they save."""
    tiny = [*CUDA, "-steps=3", "-grad-clip=1", "-lr=3e-3", "-threads=1", "-reduction-shards=2"]
    for name, layouts in sampled({"gpt2-toy": [(2, 1, 3, 2), (1, 1, 0, 1), (1, 2, 0, 1)], "resnet-tiny": [(1, 1, 0, 1)]}.items(), 1):
        os.environ.update(device(seed=1))
        one = train(dsopt, name, *tiny, "-micro-batches=2", "-cuda-graph=off")
        check(one.head["cuda_graphs"] == 0, f"{name}: {one.head['cuda_graphs']} graphs under -cuda-graph=off")
        for seed, (dp, pp, zero, devices) in enumerate(layouts, 2):
            os.environ.update(device(seed=seed, devices=devices))
            layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={2 // dp}"]
            run = train(dsopt, name, *tiny, *layout)
            check(run.head["cuda_graphs"] > 1, f"{name} {' '.join(layout)}: {run.head['cuda_graphs']} graphs")
            check(run.hash == one.hash and run.loss_text == one.loss_text,
                  f"{name} {' '.join(layout)} seed {seed} with graphs: {run.loss_text} {run.hash}, without {one.loss_text} {one.hash}")

    path, data = model("mlp")
    command = [dsopt, path, "-run", f"-data={data}", *CUDA, "-micro-batches=2", "-grad-clip=1", "-threads=1"]

    def calls(graph, *options):
        """Calls that put something into streams, of one later step."""
        counts = []
        for steps in (3, 4):
            done = execute([*command, f"-cuda-graph={graph}", f"-steps={steps}", *options], environment=device(seed=1, issues=1))
            counts.append(int(done.stderr.split("software device: ")[1].split()[0]))
        return counts[1] - counts[0]

    without, replayed = calls("off"), calls("auto")
    check(replayed <= 0.5 * without, f"mlp: {replayed} calls a step with graphs, {without} without")

    def says(status, text, *options, **environment):
        done = execute([*command, *options], status, timeout=60, environment={**device(seed=1), **environment})
        check(text in done.stdout + done.stderr, f"expected '{text}', got: {done.stdout}{done.stderr}")
        check(done.stderr.count("error:") == (status == 2), f"expected {int(status == 2)} messages, got: {done.stderr}")
        return done.stdout

    says(0, "no CUDA graphs: -cuda-graph=off", "-steps=1", "-cuda-graph=off")
    says(0, "CUDA graphs: ", "-steps=3", "-breakdown")
    with tempfile.TemporaryDirectory() as place:
        says(0, ", but not in the steps that -trace shows", "-steps=22", f"-trace={place}/trace.json")
        events = [event for event in json.load(open(f"{place}/trace.json"))["traceEvents"] if event.get("ph") == "X"]
        forward = [event for event in events if event["name"].endswith(" F")]
        check(len(forward) % 40 == 0 and forward, f"{len(forward)} forwards in a trace of 20 steps with 2 micro-batches")
    two = ["-dp=2", "-micro-batches=1", "-steps=5"]
    says(2, "rank 1 was killed by signal 9 (Killed) in step 3", *two, DSOPT_FAULT="action,rank=1,step=3,nth=4:kill")
    says(2, "rank 0 waits for rank 1 (in step 3, in '", *two, "-stall-timeout=2", DSOPT_FAULT="step,rank=1,step=3:stop=0")
    says(3, "", *two, DSOPT_FAULT="action,rank=0,step=3,nth=4:signal=INT")
    print(f"4 layouts; mlp takes {replayed} calls a step with graphs, {without} without")


def checkpoints():
    """A checkpoint of one target goes on under the other; resumed on the device a run has the bits of one that went through. What makes other
    bits is said, and which target and device a run has."""
    path, data = model("mlp")
    os.environ.update(device(seed=3))
    with tempfile.TemporaryDirectory() as place:
        def run(*options, says=(), quiet=True):
            done = execute([dsopt, path, "-run", f"-data={data}", *["-quiet"] * quiet, "-micro-batches=1", f"-log={place}/log", *options])
            differ = [line.split("warning: ")[-1] for line in done.stderr.splitlines() if "the checkpoint was written with" in line and "architecture" not in line]
            check(differ == list(says), f"{' '.join(options)}: {done.stderr}, expected {list(says)}")
            return [json.loads(line) for line in open(f"{place}/log")][-1]["end"]["weights_hash"], done.stdout

        def head():
            with open(f"{place}/log") as file:
                return json.loads(file.readline())["run"]

        whole, said = run(*CUDA, "-steps=4", quiet=False)
        name = head()["device"]
        check(f"target: cuda, {name}\n" in said and name.endswith(")") and " (sm_" in name, f"{name}: {said}")
        check((head()["target"], head()["arch"].startswith("sm_")) == ("cuda", False), head())
        run(*CUDA, "-steps=2", "-lr-decay-steps=4", f"-save={place}/c")
        check(run(*CUDA, "-steps=4", f"-resume={place}/c")[0] == whole, "a resumed run has other bits")
        high = "-matmul-precision is high, the checkpoint was written with highest"
        run(*CUDA, "-steps=3", f"-resume={place}/c", "-matmul-precision=high", f"-save={place}/t", says=[high])
        run(*CUDA, "-steps=4", f"-resume={place}/t", "-matmul-precision=high")
        run(*CUDA, "-steps=4", f"-resume={place}/t", says=["-matmul-precision is highest, the checkpoint was written with high"])
        _, said = run("-steps=3", f"-resume={place}/c", f"-save={place}/h", says=["-target is cpu, the checkpoint was written with cuda"], quiet=False)
        os.remove(f"{place}/log")
        run(*CUDA, "-steps=4", f"-resume={place}/h", says=["-target is cuda, the checkpoint was written with cpu"])
        os.remove(f"{place}/log")
        _, said = run("-steps=1", quiet=False)
        check((head()["target"], "device" in head()) == ("cpu", False) and f"target: cpu, {head()['arch']}\n" in said, f"{head()}: {said}")
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


def long_contraction(folder):
    """A model with a contraction of 4100."""
    random = np.random.default_rng(0)
    weights = [numpy_helper.from_array((random.standard_normal(shape) * 0.05).astype(np.float32), name)
               for name, shape in (("in", (4100, 12)), ("bias", (12,)), ("out", (12, 7)))]
    nodes = [helper.make_node(*node) for node in (
        ("MatMul", ["x", "in"], ["a"]), ("Add", ["a", "bias"], ["b"]), ("Tanh", ["b"], ["h"]), ("MatMul", ["h", "out"], ["logits"]),
        ("SoftmaxCrossEntropyLoss", ["logits", "labels"], ["loss"]))]
    path, data = os.path.join(folder, "long.onnx"), os.path.join(folder, "long.npz")
    save(path, nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4100]),
                       helper.make_tensor_value_info("labels", TensorProto.INT64, [3])], weights, 17)
    np.savez(data, x=random.standard_normal((24, 4100)).astype(np.float32), labels=random.integers(0, 7, 24))
    return path, data


def memory():
    """What the driver has given is what was planned, to the byte: as much memory is enough, and a byte less is not."""
    with tempfile.TemporaryDirectory() as place:
        half, clip = ["-precision=bf16", "-gradient-type=param"], ["-grad-clip=1"]
        own = long_contraction(place)
        first = None
        for (path, data), options in sampled(((own, [*half, *clip, "-micro-batches=2"]), (own, [*half, *clip, "-micro-batches=1", "-dp=2", "-zero=3"]),
                                              (model("gpt2-toy"), ["-micro-batches=2", *clip]), (model("resnet-tiny"), ["-micro-batches=2"])), 3):
            base = [dsopt, path, f"-data={data}", *CUDA, "-reduction-shards=2", *options]
            # What a rank has takes the same in each of them.
            planned = {memory["bytes"] for rank in json.loads(execute([*base, "-plan=json"]).stdout)["ranks"] for memory in rank["memories"]}
            check(len(planned) == 1, f"{options}: planned {planned}")
            bytes = planned.pop()
            run = [*base, "-run", "-quiet", "-steps=2", f"-log={place}/log"]
            execute(run, environment=device(memory=bytes))
            done = execute(run, 2, environment=device(memory=bytes - 1))
            check("'s memory, which has" in done.stderr, f"a byte less than planned: {done.stderr}")
            execute(run, environment=device(memory=bytes))
            if path == own[0]:
                end = [json.loads(line) for line in open(f"{place}/log")][-1]["end"]["weights_hash"]
                first = first or end
                check(end == first, f"{options}: other bits")
    print("as planned")


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
            for moved in sampled(offloads, 1):
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
    products = [line for line in said.splitlines() if "%  product " in line]
    check(products and all(re.search(r"; algorithm \d+ \(tile \d+, .*\)$", row) for row in products), said)
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
    if is_real:
        return print("is for the device in software")
    path, data = model("mlp")

    def fails(status, text, environment, *options):
        done = execute([dsopt, path, "-run", f"-data={data}", "-steps=1", "-quiet", *CUDA, *options], status, environment=environment)
        check(text in done.stderr, f"expected '{text}', got: {done.stderr}")
        check(done.stderr.count("error:") == 1, f"expected one message, got: {done.stderr}")

    for ranks in ([], ["-dp=2", "-micro-batches=1"]):
        fails(2, "no CUDA driver", {"LD_LIBRARY_PATH": ""}, *ranks)
        fails(2, "the CUDA driver is version 11.0, expected 12.0 or newer", device(driver=11000), *ranks)
        fails(2, "finds no device", device(devices=0), *ranks)
        fails(1, "compiled for sm_80, but this machine's", device(arch=75, devices=2), *ranks)
        fails(2, "'s memory, which has", device(memory=65536, devices=2), *ranks)
    fails(1, "unknown -arch=sm_70, expected sm_80, sm_89, sm_90, sm_90a, sm_100a", {}, "-arch=sm_70")
    print("errors")


if what == "reference":
    for name in sys.argv[4:] if is_real else sampled(sys.argv[4:], 3):
        reference(name)
else:
    {"layouts": layouts, "nccl": nccl, "tensor": tensor, "graphs": graphs, "checkpoints": checkpoints, "saves": saves, "convolutions": convolutions, "precision": precision,
     "scale": scale, "memory": memory, "odd": odd, "offload": offload, "report": report, "errors": errors}[what]()
