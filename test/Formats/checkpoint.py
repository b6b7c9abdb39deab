"""Checkpoints that lie on disks: each goes on as the run that wrote it did, in its layout and others, with the weights it holds; one of another
format is refused by name, whatever asks for it.

usage: checkpoint.py DSOPT
"""
import json
import os
import re
import shutil
import sys
import tempfile

import numpy as np

from formats import ARCH, READ, check, execute, fixture, near, read_manifest, refused, write_manifest
from runs import Run
from saved_weights import safetensors

dsopt = sys.argv[1]
GETS = {"v1": READ, "v3": READ, "v4": READ}
RUN = ["-run", "-quiet", "-steps=10", "-lr=0.05", ARCH]
# Of each checkpoint: options that are no layout's, layouts, how near losses have to be (another processor's library has other last bits of fp16) and
# what is in it beside parameters.
SAVED = {
    "checkpoint": (["-shuffle", "-seed=3", "-lr-schedule=cosine", "-warmup-steps=2", "-grad-clip=1"],
                   [["-dp=2", "-zero=2"], ["-dp=1"], ["-dp=2", "-pp=3", "-zero=1"]], 1e-5, ["m", "v"]),
    "checkpoint-fp16": (["-precision=fp16", "-delayed-update=2"], [["-dp=2", "-zero=1"], ["-dp=1"]], 1e-3, ["m", "v", "pending"]),
    "checkpoint-powersgd": (["-compress-gradients=powersgd"], [["-dp=2", "-zero=1"], ["-dp=2"]], 1e-5, ["m", "v", "worker_error.0", "worker_error.1", "factor"]),
    "checkpoint-apart": (["-optimizer=zero-one-adam", "-freeze-step=2", "-var-update-scaler=1", "-local-step-scaler=1", "-local-step-clipper=4"],
                         [["-dp=2", "-zero=0"], ["-dp=2", "-pp=3"]], 1e-5, ["m.0", "m.1", "u.0", "u.1", "v", "worker_error.0", "server_error"]),
}
folder = tempfile.mkdtemp(prefix="formats-")


def command(version, *options):
    return [dsopt, fixture(version, "model.onnx"), f"-data={fixture(version, 'data.npz')}", *options]


def resume(version, checkpoint, *options):
    log = os.path.join(folder, "log.jsonl")
    if os.path.exists(log):
        os.remove(log)
    done = execute(command(version, *RUN, f"-resume={checkpoint}", f"-log={log}", *options))
    run = Run(log)
    run.said = done.stderr
    return run


def goes_on(version, name):
    options, layouts, bound, states = SAVED[name]
    expected = json.load(open(fixture(version, "expected.json")))[name]
    saved = fixture(version, name)
    manifest = read_manifest(saved)
    held = {row["name"] for row in manifest["tensors"]}
    check(all(any(tensor.endswith("." + state) for tensor in held) for state in states), f"{name} of {version} holds {held}, expected states {states}")
    texts = set()
    for layout in layouts:
        run = resume(version, saved, *options, *layout)
        near(run.losses, expected[manifest["step"]:], f"{name} of {version} under {layout}", bound)
        texts.add((run.hash, *run.loss_text))
    check(len(texts) == 1, f"{name} of {version} goes on with other bits in other layouts: {texts}")


def weights(version):
    """Nothing is computed on the way from the checkpoint to a file of weights: they are the same to the bit."""
    saved, target = fixture(version, "checkpoint"), os.path.join(folder, "weights.safetensors")
    execute(command(version, "-eval", "-quiet", ARCH, "-eval-batches=4", f"-resume={saved}", f"-save-weights={target}"))
    got, expected = safetensors(target), safetensors(os.path.join(saved, "model.safetensors"))
    check(got.keys() == expected.keys() and all(np.array_equal(got[name], expected[name]) for name in expected), f"weights of {version} are other ones")


def copy(version, change):
    """The checkpoint with another manifest, in a folder of checkpoints."""
    saves = os.path.join(folder, "saves")
    shutil.rmtree(saves, ignore_errors=True)
    manifest = read_manifest(fixture(version, "checkpoint"))
    target = os.path.join(saves, f"step-{manifest['step']:08d}")
    shutil.copytree(fixture(version, "checkpoint"), target)
    change(manifest)
    write_manifest(target, manifest)
    return saves, target


def earlier(version):
    """As it was before runs had names, when ranks kept state that no program has a use for today."""
    def change(manifest):
        for key in ("run", "parent"):
            manifest.pop(key, None)
        manifest["ranks"] = {"layout": "dp 2", "tensors": []}

    _, target = copy(version, change)
    expected = json.load(open(fixture(version, "expected.json")))["checkpoint"]
    options, layouts, _, _ = SAVED["checkpoint"]
    run = resume(version, target, *options, *layouts[0])
    near(run.losses, expected[5:], "a checkpoint without a run's name")
    check("has state of ranks of the layout dp 2, for which the program has no use: it is dropped" in run.said, run.said)


def other_kernels(version):
    """Kernels that add in another order give other last bits: it goes on, and says so."""
    _, target = copy(version, lambda manifest: manifest.update(kernel_table=1))
    layout = [*SAVED["checkpoint"][0], *SAVED["checkpoint"][1][0]]
    done = execute(command(version, *RUN, "-steps=6", f"-resume={target}", *layout))
    check(re.search(r"warning: kernel table is \d+, the checkpoint was written with 1\n", done.stderr), f"of other kernels it says {done.stderr!r}")


def another_format(version, number):
    saves, target = copy(version, lambda manifest: manifest.update(format=number))
    says = f"{target}/manifest.json has format {number}, this dsopt reads format 1"
    train = command(version, *RUN, "-dp=2")
    refused([*train, f"-resume={target}"], says)
    refused([*train, f"-resume={saves}"], says)
    # It is not begun anew in its place.
    refused([*train, f"-save={saves}", "-resume=auto"], says)
    program = os.path.join(folder, "train")
    execute(command(version, ARCH, "-quiet", "-o", program, "-dp=2", "-micro-batches=2"))
    refused([program, f"-data={fixture(version, 'data.npz')}", f"-resume={target}"], says)
    done = execute([dsopt, f"-check={saves}"], status=1)
    check(f"{target}: bad: {says}" in done.stdout, done.stdout)
    check(sorted(os.listdir(saves)) == [os.path.basename(target)] and read_manifest(target)["format"] == number, f"left {os.listdir(saves)}")


try:
    for version, gets in GETS.items():
        if gets is not READ:
            refused(command(version, *RUN, "-dp=2", f"-resume={fixture(version, 'checkpoint')}"), gets)
            continue
        for name in SAVED:
            goes_on(version, name)
        weights(version)
        earlier(version)
    other_kernels(max(GETS))
    another_format(max(GETS), 2)
    print(f"checkpoints of {', '.join(GETS)}: each gets what is said of it, other formats are refused by name")
finally:
    shutil.rmtree(folder)
