"""The lines that dsopt inspect gives as an example work as they are: Python's makes the data, training and prediction take them.

usage: inspected_lines.py DSOPT
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

from runs import SOURCE, check, execute

dsopt = sys.argv[1]
# What each trains by, and the outputs that it predicts with their shapes.
EXPECTED = {
    "classifier": ("cross-entropy:p,labels", {"p": (16, 5), "choice": (16,)}),
    "old": ("cross-entropy:p,labels", {"p": (16, 5)}),
    "regression": ("mse:y,target", {"y": (16, 1)}),
    "binary": ("cross-entropy:p,labels", {"p": (16, 1)}),
    "image": ("cross-entropy:p,labels", {"p": (16, 4, 62, 62)}),
    "loss": ("", {"objective": (4,), "y": (16, 5)}),
    "states": ("mse:y,target", {"y": (4, 16, 4)}),
    "tokens": ("mse:y,target", {"y": (16, 16, 8)}),
    "guessed": ("cross-entropy:y,labels", {"y": (16, 3)}),
    "refused": ("cross-entropy:p,labels", {"p": (16, 5)}),
    "double": (None, {"y": (16, 5)}),
}

with tempfile.TemporaryDirectory() as folder:
    maker = os.path.join(SOURCE, "test", "Import", "ONNX", "Inputs", "make_inspected.py")
    subprocess.run([sys.executable, maker, folder], check=True)
    os.chdir(folder)
    for name, (loss, outputs) in EXPECTED.items():
        # A name that a shell and Python have to be told as it is.
        model = f"{name}'s $model.onnx"
        os.rename(f"{name}.onnx", model)
        example = json.loads(execute([dsopt, "inspect", model, "-inspect=json"]).stdout)["example"]
        check((loss is None) == (example["train"] == ""), f"{name}: {example}")
        subprocess.run([sys.executable, "-c", example["python"]], check=True)
        for line in filter(None, (example["train"], example["predict"])):
            words = shlex.split(line)
            check(words[0] == "dsopt" and (words[1] == "predict" or f"-loss={loss}" in words or loss == ""), f"{name}: {line}")
            execute([dsopt, *words[1:], *(["-log=log.jsonl", "-quiet"] if words[1] == "train" else [])])
        if loss is not None:
            steps = [json.loads(line) for line in open("log.jsonl") if '"loss"' in line]
            check(len(steps) == 4 and all(step["grad_norm"] > 0 for step in steps), f"{name}: {steps}")
            os.remove("log.jsonl")
        got = {key: array.shape for key, array in np.load("outputs.npz").items()}
        check(got == outputs, f"{name}: outputs {got}, expected {outputs}")
    print(f"{len(EXPECTED)} models")
