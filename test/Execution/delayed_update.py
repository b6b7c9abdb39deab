"""Updates that lag a step behind (-delayed-update=N): a plain loop of the algorithm, bit for bit; one result in all layouts, with
state on the device, on the host and on disk, in the bytes that were planned; saved, resumed, killed and evaluated.

usage: delayed_update.py DSOPT
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

from runs import Run, check, execute, model, train, varied
from sampled import sampled
from saved_weights import safetensors

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="delayed-")
f32, f64 = np.float32, np.float64
STEPS, WARMUP, RATE = 6, 2, 0.01
SCHEDULE = [f"-lr={RATE}", "-lr-schedule=linear", f"-warmup-steps={WARMUP}"]
KINDS = {"device": "arena_bytes", "host": "host_bytes", "disk": "disk_bytes"}


def at(*path):
    return os.path.join(folder, *path)


# The algorithm: gradients come from runs of one step that change nothing, everything else is numpy.


def fma(a, b, c):
    """Rounded twice, but for cases far too rare to meet."""
    return (f64(a) * np.asarray(b, f64) + np.asarray(c, f64)).astype(f32)


def write(path, tensors):
    header, offset = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(value.tobytes() for value in tensors.values()))


class Algorithm:
    def __init__(self, name, optimizer, clip):
        self.name, self.optimizer, self.clip = name, optimizer, clip
        self.batches = {key: value for key, value in np.load(model(name)[1]).items()}
        train(dsopt, name, "-micro-batches=4", "-lr=0", "-optimizer=sgd", "-steps=1", f"-save-weights={at('start')}")
        self.weights = {key: np.array(value) for key, value in safetensors(at("start")).items()}
        self.state = {key: [np.zeros_like(value), np.zeros_like(value)] for key, value in self.weights.items()}
        self.updates, self.pending = 0, None

    def gradients(self, step):
        """At the present weights, with the factor that clips them; an empty momentum becomes the first gradient."""
        write(at("weights"), self.weights)
        np.savez(at("step.npz"), **{key: value[step : step + 1] for key, value in self.batches.items()})
        shutil.rmtree(at("one"), ignore_errors=True)
        run = train(dsopt, self.name, "-micro-batches=4", "-lr=0", "-weight-decay=0", "-optimizer=sgd", "-momentum=0.5", "-steps=1",
                    f"-weights={at('weights')}", f"-save={at('one')}", data=at("step.npz"))
        state = safetensors(at("one", "step-00000001", "optimizer.safetensors"))
        found = {key: state[f"{key}.momentum"] for key in self.weights}
        norm = np.sqrt(sum((value.astype(f64) ** 2).sum() for value in found.values()))
        return run.loss_text[0], found, f32(min(1.0, self.clip / (norm + 1e-6)) if self.clip else 1.0)

    @staticmethod
    def rate(step):
        return RATE * (step + 1) / WARMUP if step < WARMUP else RATE + (0 - RATE) * ((step - WARMUP) / (STEPS - WARMUP))

    def update(self, gradients, factor, lr):
        t = self.updates + 1
        for key, weights in self.weights.items():
            gradient = gradients[key] * factor
            if self.optimizer == "sgd":
                self.weights[key] = fma(-f32(lr), gradient, weights)
                continue
            b1, b2 = 0.9, 0.999
            m, v = self.state[key]
            weights = weights * f32(1 - lr * 0.01)
            m = fma(f32(b1), m, f32(1 - b1) * gradient)
            v = fma(f32(b2), v, (f32(1 - b2) * gradient) * gradient)
            direction = m / fma(np.sqrt(v), f32(1 / np.sqrt(1 - b2**t)), np.full_like(v, 1e-8))
            self.weights[key] = fma(-f32(lr / (1 - b1**t)), direction, weights)
            self.state[key] = [m, v]
        self.updates += 1

    def step(self, number, first):
        loss, gradients, factor = self.gradients(number)
        if number < first:
            self.update(gradients, factor, self.rate(number))
        else:
            if self.pending:
                self.update(*self.pending)
            self.pending = gradients, factor, self.rate(number)
        return loss


def follows_algorithm(name, optimizer, clip, first, *options):
    plain = Algorithm(name, optimizer, clip)
    losses = [plain.step(number, first) for number in range(STEPS)]
    optimizers = [f"-optimizer={optimizer}", *SCHEDULE, f"-steps={STEPS}", *([f"-grad-clip={clip}"] if clip else [])]
    run = train(dsopt, name, *optimizers, "-micro-batches=4", f"-delayed-update={first}", *options, f"-save-weights={at('end')}")
    check(run.loss_text == losses, f"{name} {optimizer} {clip} {first}: losses {run.loss_text}, expected {losses}")
    for key, value in safetensors(at("end")).items():
        check(np.array_equal(value, plain.weights[key]), f"{name} {optimizer} {clip} {first}: other {key}")
    without = train(dsopt, name, *optimizers, "-micro-batches=4")
    # The step after the first that lags still has what the one before made of it.
    check(without.loss_text[: first + 1] == losses[: first + 1] and without.loss_text[first + 1] != losses[first + 1], f"{name}: no lag: {without.loss_text}")
    print(f"{name} {optimizer}, clipped at {clip}, from step {first} on: losses and weights of the plain loop", flush=True)


def bits(run):
    return run.hash, *run.loss_text


def in_all_layouts(name, optimizer, layouts):
    """One result of each computation, and the bytes that were planned."""
    path, data = model(name)
    results = {}
    nvme = ["-offload-optimizer=nvme", f"-nvme-path={folder}"]
    for layout in layouts:
        precisions = ("fp32", "bf16") if name == "gpt2-toy" and layout in layouts[-2:] else ("fp32",)
        tiers = [[], ["-offload-optimizer=cpu"], [*nvme, "-sub-group-size=4096"]]
        tiers += [["-offload-optimizer=cpu", "-offload-ratio=0.5"]] if layout in layouts[:2] else []
        tiers += [["-offload-optimizer=cpu", "-offload-params=cpu"], [*nvme, "-offload-params=nvme"]] if "-zero=3" in layout else []
        for precision in precisions:
            for tier in tiers:
                dp = int(next((word[4:] for word in layout if word.startswith("-dp=")), 1))
                options = [*layout, f"-precision={precision}", f"-optimizer={optimizer}", f"-micro-batches={4 // dp}", "-reduction-shards=4",
                           "-accumulate=local", "-lr=0.01", "-delayed-update=2", *tier, *(["-momentum=0.9"] if optimizer == "sgd" else [])]
                plan = json.loads(execute([dsopt, path, f"-data={data}", "-plan=json", *options]).stdout)["ranks"]
                sizes = {kind: [sum(memory["bytes"] for memory in rank["memories"] if memory["kind"] == kind) for rank in plan] for kind in KINDS}
                # Where parameters are gathered the budget chooses for how long.
                budget = [] if "-zero=3" in layout else [f"-device-memory={max(sizes['device'])}"]
                run = train(dsopt, name, *options, "-steps=6", *budget)
                results.setdefault((precision, "-grad-clip=1" in layout), {}).setdefault(bits(run), []).append([*layout, *tier])
                for kind, key in KINDS.items():
                    check(run.head["plan"].get(key, [0] * len(plan)) == sizes[kind], f"{name} {options}: {kind} has {run.head['plan']}, planned {sizes[kind]}")
                # What waits is as much as is updated there, and lies where the optimizer's state does.
                there = [{memory["kind"]: memory for memory in rank["memories"]} for rank in plan]
                if tier and "-offload-ratio=0.5" not in tier and optimizer == "adamw" and precision == "fp32":
                    kept = [sum(memory["optimizer"] for memory in rank.values()) for rank in there]
                    where = "disk" if tier[0] == "-offload-optimizer=nvme" else "host"
                    check([rank[where]["gradients"] * 2 for rank in there] == kept, f"{name} {options}: {there}")
                    check(where == "host" or not any(rank["host"]["gradients"] for rank in there), f"{name} {options}: {there}")
    for found in results.values():
        check(len(found) == 1, f"{name}: {found}")
    print(f"{name}: one result each of {len(results)} computations in {len(layouts)} layouts", flush=True)


def saved_and_resumed():
    plain = [*SCHEDULE, "-reduction-shards=2", "-accumulate=local", "-grad-clip=1", "-steps=7"]
    base, path, data = [*plain, "-delayed-update=2"], *model("gpt2-toy")
    one, two = ["-micro-batches=4", "-offload-optimizer=cpu"], ["-dp=2", "-zero=2", "-micro-batches=2", "-offload-optimizer=nvme", f"-nvme-path={folder}"]
    stages = ["-pp=2", "-dp=2", "-zero=3", "-micro-batches=2"]
    whole, save = train(dsopt, "gpt2-toy", *base, *one), at("saved")
    for writer in sampled(([*two, "-save-async"], one, two), 1):
        shutil.rmtree(save, ignore_errors=True)
        again = train(dsopt, "gpt2-toy", *base, *writer, f"-save={save}", "-save-every=1", "-save-keep=9")
        check(bits(again) == bits(whole), f"{writer}: {bits(again)}, expected {bits(whole)}")
        execute([dsopt, f"-check={save}"])
        for step in (1, 2, 3, 4, 6):
            manifest = json.load(open(os.path.join(save, f"step-{step:08}", "manifest.json")))["manifest"]
            waiting = [tensor["name"] for tensor in manifest["tensors"] if tensor["name"].endswith(".pending")]
            check(("pending" in manifest) == (step > 2) == bool(waiting), f"step {step}: {manifest.get('pending')}, {waiting}")
            for reader in sampled((stages, one, two), 1):
                resumed = train(dsopt, "gpt2-toy", *base, *reader, f"-resume={save}/step-{step:08}")
                check(bits(resumed) == (whole.hash, *whole.loss_text[step:]), f"{writer} {step} {reader}: {bits(resumed)}, expected {bits(whole)}")
    for step, options in ((3, []), (5, ["-delayed-update=6"])):
        done = execute([dsopt, path, "-run", f"-data={data}", *plain, *one, *options, f"-resume={save}/step-{step:08}"], status=1)
        check(f"expected -delayed-update={step} or less" in done.stderr, done.stderr)
    # Where nothing waits, the first step that goes on from it updates nothing.
    train(dsopt, "gpt2-toy", *plain[:-1], *one, "-steps=4", "-lr-decay-steps=7", f"-save={at('plain')}")
    early = train(dsopt, "gpt2-toy", *base, *one, f"-resume={at('plain')}/step-00000004")
    late = train(dsopt, "gpt2-toy", *plain, *one, "-delayed-update=4")
    check(bits(early) == (late.hash, *late.loss_text[4:]), f"{bits(early)}, expected {bits(late)}")
    print("saved before, at and after the first delayed step, resumed in other layouts", flush=True)


def says_what_changes():
    """A resumed run that is delayed and whose checkpoint is not, or the other way round, says so; one like it says nothing."""
    path, data = model("gpt2-toy")
    options = ["-run", f"-data={data}", "-micro-batches=4", "-lr=0.01"]
    delayed, saves = "-delayed-update=2", {}
    for name, more in (("without", []), ("with", [delayed])):
        saves[name] = at("says", name)
        execute([dsopt, path, *options, *more, "-steps=4", f"-save={saves[name]}", "-save-every=1", "-save-keep=9"])

    def said(name, step, *more):
        done = execute([dsopt, path, *options, *more, "-steps=5", f"-resume={saves[name]}/step-{step:08}"])
        return [line.split("warning: ")[1].replace(saves[name], "") for line in (done.stdout + done.stderr).splitlines() if "warning: " in line]

    was, loses = "-delayed-update is {}, the checkpoint was written with {}", "/step-{:08} has no gradients that wait for their update: step {} updates nothing, its gradients wait"
    for name, step, more, expected in (
            ("without", 3, [delayed], [was.format("2", "off"), loses.format(3, 3)]), ("without", 2, [delayed], [was.format("2", "off")]),
            ("with", 2, [], [was.format("off", "2")]), ("with", 3, ["-delayed-update=3"], [was.format("3", "2")]),
            ("with", 3, [delayed], []), ("with", 2, [delayed], []), ("without", 3, [], [])):
        found = said(name, step, *more)
        check(found == expected, f"{name} {step} {more}: {found}, expected {expected}")
    # Older checkpoints are no way around what waits.
    shutil.copytree(saves["with"], at("says", "auto"))
    before = sorted(os.listdir(at("says", "auto")))
    done = execute([dsopt, path, *options, "-steps=5", f"-save={at('says', 'auto')}", "-resume=auto"], status=1)
    check("has gradients that wait for their update" in done.stderr, done.stderr)
    check(sorted(os.listdir(at("says", "auto"))) == before, f"{os.listdir(at('says', 'auto'))}, expected {before}")
    print("a resumed run says where updates begin or cease to lag", flush=True)


def in_bf16():
    """Gradients that wait are of the type that gradients have."""
    options = ["-lr=0.01", "-reduction-shards=2", "-accumulate=local", "-precision=bf16", "-gradient-type=param", "-delayed-update=1", "-steps=5"]
    one, two = ["-micro-batches=4", "-offload-optimizer=cpu"], ["-dp=2", "-pp=2", "-zero=1", "-micro-batches=2", "-offload-optimizer=cpu", "-offload-ratio=0.4"]
    save = at("bf16")
    for writer, reader in sampled(((one, two), (two, one)), 1):
        shutil.rmtree(save, ignore_errors=True)
        whole = train(dsopt, "gpt2-toy", *options, *writer, f"-save={save}", "-save-every=3")
        tensors = json.load(open(os.path.join(save, "step-00000003", "manifest.json")))["manifest"]["tensors"]
        types = {tensor["type"] for tensor in tensors if tensor["name"].endswith(".pending")}
        resumed = train(dsopt, "gpt2-toy", *options, *reader, f"-resume={save}/step-00000003")
        check(bits(resumed) == (whole.hash, *whole.loss_text[3:]), f"{writer} {reader}: {bits(resumed)}, expected {bits(whole)}")
        print(f"gradients of {types} wait", flush=True)
    # Only the forward: nothing lags.
    execute([dsopt, model("gpt2-toy")[0], "-eval", "-quiet", f"-data={model('gpt2-toy')[1]}", "-micro-batches=4", "-delayed-update=1", f"-resume={save}/step-00000003"])


def killed():
    path, data = model("gpt2-toy")
    options = ["-lr=0.01", "-dp=2", "-zero=1", "-micro-batches=2", "-offload-optimizer=cpu", "-delayed-update=3", "-steps=40", "-save-every=1", "-save-async"]
    whole = train(dsopt, "gpt2-toy", *options[:-2])
    save, log = at("killed"), at("killed.jsonl")
    command = [dsopt, path, "-run", f"-data={data}", "-quiet", *options, f"-save={save}", "-resume=auto", f"-log={log}"]
    for step in (5, 11):
        process = subprocess.Popen(varied(command), stderr=subprocess.PIPE)
        while process.poll() is None and not os.path.exists(os.path.join(save, f"step-{step:08}")):
            time.sleep(0.01)
        check(process.poll() is None, f"ended before step {step} was killed: {process.returncode}")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        time.sleep(1)
    execute(command)
    check(Run(log).hash == whole.hash, f"killed and resumed: {Run(log).hash}, expected {whole.hash}")
    print("killed twice and resumed: the same weights", flush=True)


def evaluates():
    """An evaluation between steps sees what the step before it left, and changes nothing."""
    held = model("gpt2-toy")[1]
    options = ["-lr=0.01", "-micro-batches=4", "-offload-optimizer=cpu", "-delayed-update=2"]
    plain, log = train(dsopt, "gpt2-toy", *options, "-steps=6"), at("evaluated.jsonl")
    execute([dsopt, model("gpt2-toy")[0], "-run", "-quiet", f"-data={held}", *options, "-steps=6", f"-eval-data={held}", "-eval-every=1", f"-save={at('evaluated')}",
             "-save-every=1", "-save-keep=9", f"-log={log}"])
    run = Run(log)
    check(bits(run)[0] == plain.hash, f"evaluated: {run.hash}, expected {plain.hash}")
    losses = {line["step"]: line["eval_loss"] for line in map(json.loads, open(log)) if "eval_loss" in line}
    for step, loss in sampled(losses.items(), 3):
        alone = at("alone.jsonl")
        execute([dsopt, model("gpt2-toy")[0], "-eval", "-quiet", f"-data={held}", "-micro-batches=4", f"-resume={at('evaluated')}/step-{step + 1:08}", f"-log={alone}"])
        found = [line["eval_loss"] for line in map(json.loads, open(alone)) if "eval_loss" in line]
        check(found == [loss], f"evaluation behind step {step}: {loss}, of its checkpoint {found}")
        os.remove(alone)
    check(len(losses) >= 6, f"{losses}")
    print(f"{len(losses)} evaluations see what checkpoints have", flush=True)


def overlaps():
    """On a slow disk blocks do not wait for updates that lag, and those that do not begin behind the agreement."""
    path, data = model("gpt2-tiny")
    trace = at("trace.json")
    execute([dsopt, path, "-run", "-quiet", f"-data={data}", "-micro-batches=4", "-grad-clip=1", "-offload-optimizer=nvme", f"-nvme-path={folder}", "-delayed-update=2",
             "-steps=6", f"-trace={trace}"], environment={"DSOPT_FAULT": "ringRead,every=1:delay=3;pread,every=1:delay=3"})
    slices = [event for event in json.load(open(trace))["traceEvents"] if event["ph"] == "X"]
    for step in range(6):
        def of(kind):
            return [(event["ts"], event["ts"] + event["dur"]) for event in slices if event["cat"] == kind and event["args"]["step"] == step]

        (agrees, agreed), updates, runs = of("agree")[0], of("update"), of("run")
        check(len(updates) == 9, f"step {step} has {len(updates)} updates")
        if step < 2:
            check(min(updates)[0] >= agreed, f"step {step}: updates from {min(updates)[0]}, agreed {agreed}")
        else:
            check(min(runs)[0] < min(updates)[0] and max(end for _, end in updates) <= agrees, f"step {step}: runs {min(runs)}, updates {updates}, agrees {agrees}")
    print("blocks run while the disk is read for updates", flush=True)


LAYOUTS = (["-grad-clip=1"], [], ["-dp=2", "-zero=0"], ["-dp=4", "-zero=1", "-grad-clip=1"], ["-dp=2", "-zero=2"], ["-pp=2"], ["-pp=2", "-dp=2", "-zero=3", "-grad-clip=1"],
           ["-dp=2", "-zero=3", "-gather-window=2"])
for name, optimizer, clip, first in sampled((("gpt2-toy", "adamw", 1.0, 2), ("mlp", "sgd", 0, 1), ("gpt2-toy", "sgd", 0, 3)), 2):
    follows_algorithm(name, optimizer, clip, first, "-offload-optimizer=cpu")
in_all_layouts("gpt2-toy", "adamw", [*sampled(LAYOUTS[:-2], 1), *sampled(LAYOUTS[-2:], 1)])
for name, optimizer, layouts in sampled((("mlp", "sgd", sampled(LAYOUTS[-3:], 2)), ("resnet-tiny", "adam", LAYOUTS[:1] + LAYOUTS[-2:])), 1):
    in_all_layouts(name, optimizer, layouts)
saved_and_resumed()
says_what_changes()
in_bf16()
evaluates()
overlaps()
killed()
shutil.rmtree(folder)
