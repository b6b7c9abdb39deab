"""Programs of the build's tools and of those that are installed, with DSOPT_FAULT set.

usage: installed.py DSOPT INSTALLED-DSOPT MODEL
"""
import os
import subprocess
import sys
import tempfile

*tools, model = sys.argv[1:]
FAULT = "step,step=1:exit=7"

with tempfile.TemporaryDirectory() as folder:
    ends = []
    for number, tool in enumerate(tools):
        program, log = os.path.join(folder, f"train{number}"), os.path.join(folder, f"log{number}")
        train = [f"{model}/model.onnx", "-micro-batches=1", "-threads=1"]
        data = [f"-data={model}/batches.npz", "-steps=2", "-quiet"]
        subprocess.run([tool, *train, "-o", program], check=True, capture_output=True)
        for words in ([program, *data, f"-log={log}"], [tool, *train, "-run", *data]):
            for fault in (FAULT, "nonsense"):
                done = subprocess.run(words, env={**os.environ, "DSOPT_FAULT": fault}, capture_output=True, text=True)
                ends.append((done.returncode, "DSOPT_FAULT" in done.stderr))
    here, installed = ends[:4], ends[4:]
    assert here[0][0] == here[2][0] == 7 and here[1] == here[3] == (1, True), here
    assert installed == [(0, False)] * 4, installed
    for path in (tools[1], program, os.path.join(os.path.dirname(tools[1]), "dsopt-run")):
        with open(path, "rb") as file:
            assert b"DSOPT_FAULT" not in file.read(), path
print("struck here, and nowhere in what is installed")
