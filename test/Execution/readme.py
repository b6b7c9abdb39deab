"""What the README says: the losses it prints are those of the example, its Python exports a
model whose parameters all keep their names, and its commands run on that model as they stand.

usage: readme.py DSOPT SOURCE PYTHON-WITH-TORCH...
The export runs where one of the Pythons has torch, onnx and onnxscript; elsewhere the commands run on a model like it.
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import Run, check, execute

dsopt, source, *pythons = sys.argv[1:]
readme = open(os.path.join(source, "README.md")).read()
folder = tempfile.mkdtemp()


def path(name):
    return os.path.join(folder, name)


def stand_in():
    """The README's model and data where no PyTorch is there to make them."""
    rng = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for at, (rows, columns) in zip((0, 2, 4, 6), ((64, 32), (64, 64), (64, 64), (10, 64))):
        for name, shape in ((f"model.{at}.weight", (rows, columns)), (f"model.{at}.bias", (rows,))):
            weights.append(numpy_helper.from_array(rng.uniform(-1, 1, shape).astype(np.float32) / columns**0.5, name))
        nodes.append(helper.make_node("Gemm", [value, f"model.{at}.weight", f"model.{at}.bias"], [f"linear{at}"], transB=1))
        nodes.append(helper.make_node("Gelu", [f"linear{at}"], [f"gelu{at}"]))
        value = f"gelu{at}"
    nodes[-1] = helper.make_node("SoftmaxCrossEntropyLoss", ["linear6", "labels"], ["loss"])
    inputs = [helper.make_tensor_value_info(name, kind, shape)
              for name, kind, shape in (("x", TensorProto.FLOAT, [8, 32]), ("labels", TensorProto.INT64, [8]))]
    graph = helper.make_graph(nodes, "readme", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path("model.onnx"))
    x = rng.normal(size=(5120, 32)).astype(np.float32)
    labels = (x @ rng.normal(size=(32, 10))).argmax(1)
    np.savez(path("batches.npz"), x=x[:4096], labels=labels[:4096])
    np.savez(path("held_out.npz"), x=x[4096:], labels=labels[4096:])


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

imported = execute([dsopt, os.path.join(source, "examples", "gpt.onnx"), "-report=import", "-plan"]).stderr
check(re.search(r"attention +4$", imported, re.M), f"attention is not raised in all layers:\n{imported}")
check("52 are trained" in imported, f"not the parameters alone are trained:\n{imported}")

code, shell = (re.search(rf"```{language}\n(.*?)```", readme, re.S).group(1) for language in ("python", "sh"))
open(path("export.py"), "w").write(code)
for python in pythons:
    if subprocess.run([python, "-c", "import torch, onnx, onnxscript"], capture_output=True).returncode == 0:
        subprocess.run([python, "export.py"], cwd=folder, check=True, capture_output=True)
        break
else:
    print("the export is left out: no Python with torch, onnx and onnxscript")
    stand_in()
listed = execute([dsopt, path("model.onnx"), "-list-parameters"]).stdout
for at in (0, 2, 4, 6):
    for name in (f"model.{at}.weight", f"model.{at}.bias"):
        check(re.search(rf"^{re.escape(name)} .* trained +\S.*$", listed, re.M), f"{name} was lost:\n{listed}")
environment = {**os.environ, "PATH": os.path.dirname(os.path.abspath(dsopt)) + os.pathsep + os.environ["PATH"]}
for line in shell.splitlines():
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
    check(done.returncode == 0 and not done.stderr, f"{line}\nended with {done.returncode}: {done.stderr}")
    if " -eval " in line:
        print(line.split("#")[0].strip(), "->", done.stdout.strip())
run = Run(path("run.jsonl"))
check(run.losses[-1] < 0.5 * run.losses[0], f"the exported model's loss does not fall: {run.losses[::100]}")
check(all(os.path.exists(path(name)) for name in ("train", "step.mlir", "run.html", "run")), os.listdir(folder))
print(f"exported model: loss {run.losses[0]:.4f}, after {len(run.losses)} steps {run.losses[-1]:.4f}")
