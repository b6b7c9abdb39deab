"""deepspeed_itself.py DSOPT MODELS FOLDER: the batch rule and every schedule beside DeepSpeed's own code.

Needs a Python with deepspeed; says so and passes where it is not installed.
"""
import itertools
import json
import logging
import os
import random
import re
import subprocess
import sys

os.environ["DS_ACCELERATOR"] = "cpu"
try:
    import torch
    from deepspeed.runtime import lr_schedules
    from deepspeed.runtime.config import DeepSpeedConfig
except ImportError:
    print("left out: DeepSpeed is not installed; passed")
    sys.exit(0)
logging.disable(logging.WARNING)
dsopt, models, folder = sys.argv[1:4]
mlp = f"{models}/mlp/model.onnx"
gpt = f"{models}/gpt2-tiny-opset23-dynamic/model.onnx"


def check(truth, what):
    if not truth:
        sys.exit(f"wrong: {what}")


def write(config):
    with open(f"{folder}/ds_config.json", "w") as file:
        json.dump(config, file)
    return f"-config={folder}/ds_config.json"


# The batch rule: which of three numbers are given, and whether they fit.
random.seed(5)
keys = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
agreed = 0
for given, dp in itertools.product(itertools.product((0, 1), repeat=3), (1, 2, 3)):
    if not given[0] and not given[1]:
        continue  # the model's own rows, where DeepSpeed refuses
    for _ in range(3):
        micro, steps = random.choice((1, 2, 3, 4)), random.choice((1, 2, 4))
        numbers = (micro * steps * dp + random.choice((0, 0, 1, dp)), micro, steps)
        config = {key: number for key, number, one in zip(keys, numbers, given) if one}
        theirs = DeepSpeedConfig.__new__(DeepSpeedConfig)
        theirs.world_size = dp
        theirs.train_batch_size, theirs.train_micro_batch_size_per_gpu, theirs.gradient_accumulation_steps = (
            config.get(key) for key in keys)
        try:
            theirs._configure_train_batch_size()
            want = (theirs.train_micro_batch_size_per_gpu, theirs.gradient_accumulation_steps)
        except AssertionError:
            want = None
        mine = subprocess.run([dsopt, gpt, write(config), f"-dp={dp}", "-dim=s38=16", "-dim=s70=16", "-emit=graph"],
                              capture_output=True, text=True)
        got = None if mine.returncode else tuple(int(re.search(rf"\b{name} = (\d+)", mine.stdout).group(1))
                                                 for name in ("micro_batch_size", "micro_batches"))
        check(got == want, f"{config} over {dp}: DeepSpeed says {want}, dsopt {got} {mine.stderr}")
        agreed += 1
print(f"{agreed} batches alike")

# The rates of 24 steps, as a run logs them.
optimizer_rate = 0.004
schedules = [
    ("WarmupLR", {"warmup_num_steps": 7}),
    ("WarmupLR", {"warmup_min_lr": 1e-4, "warmup_max_lr": 0.003, "warmup_num_steps": 9, "warmup_type": "linear"}),
    ("WarmupDecayLR", {"warmup_num_steps": 5, "total_num_steps": 20}),
    ("WarmupDecayLR", {"warmup_max_lr": 0.002, "warmup_min_lr": 1e-5, "warmup_num_steps": 1, "total_num_steps": 30,
                       "warmup_type": "linear"}),
    ("WarmupCosineLR", {"warmup_num_steps": 6, "total_num_steps": 21}),
    ("WarmupCosineLR", {"warmup_num_steps": 4, "total_num_steps": 3, "warmup_min_ratio": 0.1, "cos_min_ratio": 0.05,
                        "warmup_type": "linear"}),
    ("OneCycle", {"cycle_min_lr": 1e-3, "cycle_max_lr": 0.01, "cycle_first_step_size": 5, "cycle_second_step_size": 8,
                  "decay_step_size": 3, "decay_lr_rate": 0.4}),
    ("OneCycle", {"cycle_min_lr": 1e-3, "cycle_max_lr": 0.01, "cycle_first_step_size": 6,
                  "cycle_first_stair_count": 3, "cycle_second_stair_count": 2, "cycle_momentum": False}),
    ("LRRangeTest", {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 4, "lr_range_test_step_rate": 2}),
    ("LRRangeTest", {"lr_range_test_step_size": 5, "lr_range_test_staircase": True}),
]
for kind, params in schedules:
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=optimizer_rate)
    theirs = getattr(lr_schedules, kind)(optimizer, **params)
    want = []
    for _ in range(24):
        want.append(optimizer.param_groups[0]["lr"])
        theirs.step()
    config = {"optimizer": {"type": "AdamW", "params": {"lr": optimizer_rate}},
              "scheduler": {"type": kind, "params": params}}
    log = f"{folder}/log.jsonl"
    subprocess.run([dsopt, mlp, write(config), "-run", f"-data={models}/mlp/batches.npz", "-steps=24", "-quiet", f"-log={log}"],
                   check=True, stderr=subprocess.DEVNULL)
    got = [line["lr"] for line in map(json.loads, open(log)) if "lr" in line]
    worst = max(abs(a - b) for a, b in zip(got, want))
    check(len(got) == 24 and worst < 1e-12, f"{kind} {params}: {got}, DeepSpeed's {want}")
print(f"{len(schedules)} schedules alike; passed")
