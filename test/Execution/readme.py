"""What README and docs/Start.md say: the losses that README prints are those of the example and of the run in its
picture, their Python exports models whose parameters all keep their names, and their commands run on these as they stand.

usage: readme.py DSOPT SOURCE PYTHON-WITH-TORCH...
Python runs where one of the Pythons has torch, onnx and onnxscript; elsewhere the commands run on a model like that one.
"""
import json
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


def path(*names):
    return os.path.join(folder, *names)


def stand_in(where, prefix):
    """A page's model and data where no PyTorch is there to make them."""
    rng = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for at, (rows, columns) in zip((0, 2, 4, 6), ((64, 32), (64, 64), (64, 64), (10, 64))):
        for name, shape in ((f"{prefix}{at}.weight", (rows, columns)), (f"{prefix}{at}.bias", (rows,))):
            weights.append(numpy_helper.from_array(rng.uniform(-1, 1, shape).astype(np.float32) / columns**0.5, name))
        nodes.append(helper.make_node("Gemm", [value, f"{prefix}{at}.weight", f"{prefix}{at}.bias"], [f"linear{at}"], transB=1))
        nodes.append(helper.make_node("Gelu", [f"linear{at}"], [f"gelu{at}"]))
        value = f"gelu{at}"
    nodes[-1] = helper.make_node("SoftmaxCrossEntropyLoss", ["linear6", "labels"], ["loss"])
    inputs = [helper.make_tensor_value_info(name, kind, shape)
              for name, kind, shape in (("x", TensorProto.FLOAT, [8, 32]), ("labels", TensorProto.INT64, [8]))]
    graph = helper.make_graph(nodes, "page", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path(where, "model.onnx"))
    x = rng.normal(size=(5120, 32)).astype(np.float32)
    np.savez(path(where, "batches.npz"), x=x[:4096], labels=x[:4096, :10].argmax(1))
    np.savez(path(where, "held_out.npz"), x=x[4096:], labels=x[4096:, :10].argmax(1))


def follow(page, prefix):
    """Runs a page's Python and its commands in a folder of its own, and gives that folder's name."""
    where = os.path.splitext(os.path.basename(page))[0]
    os.mkdir(path(where))
    with open(os.path.join(source, page)) as file:
        text = file.read()
    (code,), (shell,) = (re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S) for language in ("python", "sh"))
    environment = {**os.environ, "PATH": os.path.dirname(os.path.abspath(dsopt)) + os.pathsep + os.environ["PATH"]}
    for python in pythons:
        if subprocess.run([python, "-c", "import torch, onnx, onnxscript"], capture_output=True).returncode == 0:
            with open(path(where, "page.py"), "w") as file:
                file.write(code)
            done = subprocess.run([python, "page.py"], cwd=path(where), capture_output=True, text=True,
                                  env={**environment, "PYTHONPATH": os.path.join(os.path.abspath(source), "python")})
            check(done.returncode == 0, f"the Python of {page} ended with {done.returncode}: {done.stderr}")
            break
    else:
        print(f"the Python of {page} is left out: there is none with torch, onnx and onnxscript")
        stand_in(where, prefix)
    listed = execute([dsopt, path(where, "model.onnx"), "-list-parameters"]).stdout
    for at in (0, 2, 4, 6):
        for name in (f"{prefix}{at}.weight", f"{prefix}{at}.bias"):
            check(re.search(rf"^{re.escape(name)} .* trained +\S.*$", listed, re.M), f"{name} was lost:\n{listed}")
    for line in shell.splitlines():
        done = subprocess.run(["sh", "-c", line], cwd=path(where), env=environment, capture_output=True, text=True)
        check(done.returncode == 0 and not done.stderr, f"{line}\nended with {done.returncode}: {done.stderr}")
        if " eval " in line or " -eval " in line:
            print(line.split("#")[0].strip(), "->", done.stdout.strip())
    return where


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
with open(os.path.join(source, "docs", ".site", "run.jsonl")) as file:
    drawn = {line["step"]: line["loss"] for line in map(json.loads, file) if "step" in line}
for step, loss in printed.items():
    check(f"{drawn[step]:.5f}" == f"{loss:.5f}", f"step {step}: loss {loss} in the README, {drawn[step]} in its picture")
print(f"./dev run: loss {losses[0]:.5f}, after 50 steps {losses[49]:.5f}")

imported = execute([dsopt, os.path.join(source, "examples", "gpt.onnx"), "-report=import", "-plan"]).stderr
check(re.search(r"attention +4$", imported, re.M), f"attention is not raised in all layers:\n{imported}")
check("52 are trained" in imported, f"not the parameters alone are trained:\n{imported}")

where = follow("README.md", "")
run = Run(path(where, "run.jsonl"))
check(run.losses[-1] < 0.5 * run.losses[0], f"the exported model's loss does not fall: {run.losses[::100]}")
check(all(os.path.exists(path(where, name)) for name in ("train", "run.html", "run")), os.listdir(path(where)))
print(f"exported model: loss {run.losses[0]:.4f}, after {len(run.losses)} steps {run.losses[-1]:.4f}")
where = follow(os.path.join("docs", "Start.md"), "model.")
check(all(os.path.exists(path(where, name)) for name in ("train", "run", "trained.safetensors", "step.mlir")), os.listdir(path(where)))
