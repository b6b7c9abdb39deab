"""Trains a reference model and compares with PyTorch's recorded training.

usage: reference.py DSOPT MODEL [OPTIONS]
Step-0 loss within 1e-5 relative, every gradient norm within 1e-5 relative or
1e-7 of the total norm, the curves of four optimizers within 1e-4.
"""
import os
import sys

import numpy as np

from runs import MODELS, check, relative, train

dsopt, name, *layout = sys.argv[1:]
reference = np.load(os.path.join(MODELS, name, "reference.npz"))
optimizers = {
    "adamw": ["-optimizer=adamw", "-lr=1e-3", "-weight-decay=0.01"],
    "adamw_clip": ["-optimizer=adamw", "-lr=1e-3", "-weight-decay=0.01", "-grad-clip=0.5"],
    "sgd": ["-optimizer=sgd", "-lr=0.05"],
    "sgd_momentum": ["-optimizer=sgd", "-lr=0.02", "-momentum=0.9"],
}
# What the exporter drops: nn.Embedding(padding_idx=0) has no gradient at row 0.
model_options = {"bert-tiny": ["-padding-index=*word_embeddings.weight=0"]}.get(name, [])
for key, options in optimizers.items():
    # The ninth loss is step 0's batches again: the data wraps around.
    run = train(dsopt, name, "-micro-batches=4", "-steps=9", "-log-norms", *model_options, *options, *layout)
    error = relative(run.losses, reference[key + "/loss"])
    print(f"{name} {key}: largest relative difference of a loss {error:.1e}")
    check(error < 1e-4, f"{name} {key} losses {run.losses}, expected {list(reference[key + '/loss'])}")
    norms = [step["grad_norm"] for step in run.steps[:8]]
    check(relative(norms, reference[key + "/grad_norm_total"]) < 1e-3, f"{name} {key} gradient norms {norms}")
    if key != "adamw":
        continue
    first = run.steps[0]
    check(relative(first["loss"], reference["step0/loss"]) < 1e-5, f"{name} step-0 loss {first['loss']}")
    total = float(reference["step0/grad_norm_total"])
    names = [k[len("step0/grad_norm/"):] for k in reference.files if k.startswith("step0/grad_norm/")]
    check(set(names) == set(first["grad_norms"]), f"{name} trains {sorted(first['grad_norms'])}, expected {sorted(names)}")
    worst = 0
    for parameter in names:
        got, expected = first["grad_norms"][parameter], float(reference["step0/grad_norm/" + parameter])
        worst = max(worst, abs(got - expected) / max(abs(expected), total * 1e-2, 1e-30))
        check(abs(got - expected) <= max(1e-5 * expected, 1e-7 * total),
              f"{name} gradient norm of {parameter} is {got}, expected {expected}")
    print(f"{name}: {len(names)} gradient norms, step-0 loss {first['loss']}")
