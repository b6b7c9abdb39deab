"""docs/FromDeepSpeed.md: both scripts run and print the same losses. Where DeepSpeed is not installed,
dsopt's are compared with PyTorch's own loop of the same configuration.

usage: from_deepspeed.py SOURCE BUILD   with a Python that has torch, onnxscript and transformers
"""
import importlib
import importlib.util
import os
import re
import sys
import tempfile

import forks

source, build = map(os.path.abspath, sys.argv[1:3])
text = open(os.path.join(source, "docs", "FromDeepSpeed.md")).read()
folder = tempfile.mkdtemp()
environment = {"DSOPT_BUILD": build, "PYTHONPATH": os.path.join(source, "python"), "DS_ACCELERATOR": "cpu",
               "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
importlib.import_module("transformers.trainer")  # once, for all scripts
REFERENCE = '''
import json, math, torch
config = json.load(open("ds_config.json"))
params = config["optimizer"]["params"]
optimizer = torch.optim.AdamW(model.parameters(), lr=params["lr"], betas=params["betas"], weight_decay=params["weight_decay"])
for step in range(12):
    at = step - 1  # DeepSpeed's scheduler steps after the optimizer
    ratio = 0 if at < 0 else at / 3 if at < 3 else 1e-4 + (1 - 1e-4) * (1 + math.cos(math.pi * min(1, (at - 2) / 9))) / 2
    optimizer.param_groups[0]["lr"] = params["lr"] * ratio
    optimizer.zero_grad()
    total = 0
    for micro in range(2):
        for rank in range(2):
            ids = tokens[step, micro, rank * 4:rank * 4 + 4]
            loss = model(input_ids=ids, labels=ids).loss
            (loss / 4).backward()
            total += loss.item() / 4
    torch.nn.utils.clip_grad_norm_(model.parameters(), config["gradient_clipping"])
    optimizer.step()
    print(f"step {step} loss {total:.6f}")
'''


def write(name, content):
    with open(os.path.join(folder, name), "w") as file:
        file.write(content)


def losses(script, ranks=1):
    said, status = forks.run(os.path.join(folder, script), ranks=ranks, environment=environment, folder=folder)
    found = [float(loss) for loss in re.findall(r"step \d+ loss ([\d.]+)", said)]
    if status or len(found) != 12:
        sys.exit(f"{script} ended with {status}:\n{said[-4000:]}")
    return found


write("ds_config.json", re.search(r"```json\n(.*?)```", text, re.S).group(1))
for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.S):
    write(name, code)
mine = losses("train_dsopt.py")
script = open(os.path.join(folder, "train_dsopt.py")).read()
write("reference.py", script[:script.index("example =")].replace("import dsopt\n", "") + REFERENCE)
others = {"PyTorch": losses("reference.py")}
if importlib.util.find_spec("deepspeed"):
    others["DeepSpeed"] = losses("train_deepspeed.py", ranks=2)
else:
    print("left out: DeepSpeed is not installed")
for name, theirs in others.items():
    off = max(abs(a - b) / b for a, b in zip(mine, theirs))
    print(f"{name}: loss {theirs[0]:.6f} to {theirs[-1]:.6f}, dsopt {mine[0]:.6f} to {mine[-1]:.6f}, at most {off:.1e} apart")
    if off > 2e-6:
        sys.exit(f"wrong: {mine} against {theirs}")
first, last = map(float, re.search(r"fall\s+from ([\d.]+) to ([\d.]+)", text).groups())
if abs(mine[0] - first) > 0.01 or abs(mine[-1] - last) > 0.01:
    sys.exit(f"wrong: losses {mine}, the page says that they fall from {first} to {last}")
print("passed")
