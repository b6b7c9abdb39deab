"""Short runs from end to end, of which one breaks with almost anything: ./dev check adds them to the tests of every path.

usage: smoke.py DSOPT reference | layouts | resume | executable | device FOLDER
FOLDER has the device in software.
"""
import os
import sys
import tempfile

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "Execution"))
from runs import MODELS, Run, check, execute, model, relative, train

dsopt, what = sys.argv[1:3]


def reference():
    """PyTorch's recorded losses."""
    recorded = np.load(os.path.join(MODELS, "mlp", "reference.npz"))["adamw/loss"]
    losses = train(dsopt, "mlp", "-micro-batches=4", "-steps=4", "-lr=1e-3", "-weight-decay=0.01", "-lr-schedule=constant").losses
    check(relative(losses, recorded[:4]) < 1e-5, f"losses {losses}, expected {list(recorded[:4])}")


def layouts():
    """One hash."""
    base = ["-steps=3", "-reduction-shards=2", "-grad-clip=1", "-accumulate=local", "-threads=1"]
    grids = (["-micro-batches=2"], ["-micro-batches=2", "-pp=2"], ["-micro-batches=1", "-dp=2", "-zero=1"], ["-micro-batches=1", "-dp=2", "-zero=3", "-recompute=full"])
    runs = {" ".join(grid): train(dsopt, "mlp", *base, *grid) for grid in grids}
    check(len({(run.hash, *run.loss_text) for run in runs.values()}) == 1, {grid: (run.hash, run.loss_text) for grid, run in runs.items()})


def resume():
    """The bits of a run that went through, in another layout."""
    base = ["-reduction-shards=2", "-steps=4", "-accumulate=local", "-threads=1"]
    whole = train(dsopt, "mlp", *base, "-micro-batches=2")
    with tempfile.TemporaryDirectory() as folder:
        train(dsopt, "mlp", *base, "-micro-batches=2", "-steps=2", "-lr-decay-steps=4", f"-save={folder}")
        rest = train(dsopt, "mlp", *base, "-dp=2", "-zero=2", "-micro-batches=1", f"-resume={folder}/step-00000002")
    check(rest.hash == whole.hash, f"resumed: {rest.hash}, expected {whole.hash}")


def executable():
    """A program of its own trains as -run does; the plan has its bytes."""
    path, data = model("mlp")
    with tempfile.TemporaryDirectory() as folder:
        options = ["-dp=2", "-zero=3", "-micro-batches=1"]
        execute([dsopt, path, f"-data={data}", *options, "-o", f"{folder}/train"])
        execute([f"{folder}/train", f"-data={data}", "-steps=3", "-quiet", f"-log={folder}/log"])
        own, run = Run(f"{folder}/log"), train(dsopt, "mlp", *options, "-steps=3")
    check(own.hash == run.hash, f"executable: {own.hash}, expected {run.hash}")


def device():
    """Near the host's losses, on the device in software."""
    os.environ.update({"LD_LIBRARY_PATH": sys.argv[3], "SOFT_DEVICE": "seed=1"})
    base = ["-micro-batches=2", "-steps=3"]
    run = train(dsopt, "mlp", "-target=cuda", "-arch=sm_80", *base)
    host = train(dsopt, "mlp", *base)
    check(relative(run.losses, host.losses) < 1e-5, f"losses {run.losses}, on the host {host.losses}")


{"reference": reference, "layouts": layouts, "resume": resume, "executable": executable, "device": device}[what]()
