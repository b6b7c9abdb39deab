"""What the README says: its Python exports a model whose parameters all keep their
names, which then trains; the losses it prints are those of the example.

usage: readme.py DSOPT SOURCE PYTHON-WITH-TORCH...
The export runs where one of the Pythons has torch, onnx and onnxscript.
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from runs import Run, check, execute

dsopt, source, *pythons = sys.argv[1:]
readme = open(os.path.join(source, "README.md")).read()
folder = tempfile.mkdtemp()


def path(name):
    return os.path.join(folder, name)


execute([sys.executable, os.path.join(source, "examples", "make_bytes.py"), "/usr/share/common-licenses/GPL-3", path("text.npz")])
command = re.search(r'examples/gpt.onnx (.*?)\n\}', open(os.path.join(source, "dev")).read(), re.S).group(1)
options = command.replace("\\\n", " ").replace('"-data=$build/text.npz"', f"-data={path('text.npz')}").split()
check("-zero=3" in options and "-pp=4" in options and "-dp=2" in options, f"./dev run trains with {options}")
# The learning rate's curve spans all steps; the first 50 of them are the same.
options[[i for i, o in enumerate(options) if o.startswith("-steps=")][0]] = "-steps=50"
execute([dsopt, os.path.join(source, "examples", "gpt.onnx"), *options, "-lr-decay-steps=300", "-quiet", f"-log={path('log')}"])
losses = {step["step"]: step["loss"] for step in Run(path("log")).steps}
printed = {int(step): float(loss) for step, loss in re.findall(r"step +(\d+)/300  loss ([\d.]+)", readme)}
check(len(printed) >= 4, "the README prints no losses")
for step in (0, 49):
    check(abs(losses[step] - printed[step]) < 0.02 * printed[step], f"step {step}: loss {losses[step]}, the README says {printed[step]}")
print(f"./dev run: loss {losses[0]:.5f}, after 50 steps {losses[49]:.5f}")

code = re.search(r"```python\n(.*?)```", readme, re.S).group(1)
open(path("export.py"), "w").write(code)
for python in pythons:
    if subprocess.run([python, "-c", "import torch, onnx, onnxscript"], capture_output=True).returncode == 0:
        break
else:
    print("the export is left out: no Python with torch, onnx and onnxscript")
    sys.exit(0)
subprocess.run([python, "export.py"], cwd=folder, check=True, capture_output=True)
listed = execute([dsopt, path("model.onnx"), "-list-parameters"]).stdout
for name in ("model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"):
    check(re.search(rf"^{re.escape(name)} .* trained$", listed, re.M), f"{name} was lost:\n{listed}")
rng = np.random.default_rng(0)
np.savez(path("batches.npz"), x=rng.normal(size=(4, 8, 32)).astype(np.float32), labels=rng.integers(0, 10, (4, 8)))
execute([dsopt, path("model.onnx"), "-run", f"-data={path('batches.npz')}", "-steps=20", "-lr=0.01", "-quiet", f"-log={path('log')}"])
run = Run(path("log"))
check(run.losses[-1] < run.losses[0], f"the exported model's loss does not fall: {run.losses}")
print(f"exported model: loss {run.losses[0]:.4f}, after 20 steps {run.losses[-1]:.4f}")
