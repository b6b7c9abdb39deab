"""Steps that ask PyTorch and Nsight Compute, and the largest model."""
import csv
import json
import os
import sys
import types

import bench_gpu
import gpt
import gpu
from context import Absent, Failed, check, differ
from large import STEPS, report
from measure import middle
from small import find_ncu, need_torch

TOLERANCE = 2e-2  # of losses in bf16
LONGEST = 10  # kernels
METRICS = {"gpu__time_duration.sum": "ns", "dram__bytes.sum": "bytes", "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory",
           "sm__throughput.avg.pct_of_peak_sustained_elapsed": "multiprocessors"}


def tokens_of(size):
    geometry = gpt.sized(size)
    return geometry.rows * geometry.tokens


def utilisation(size, seconds):
    """Share of the GPU's peak in bf16, or none where the GPU is unknown."""
    name = gpu.gpus()[0][0]
    peak = next((peak for part, peak in bench_gpu.PEAKS.items() if part in name), None)
    return peak and gpt.flops_per_token(gpt.sized(size)) * tokens_of(size) / seconds / (peak * 1e12)


def peer(context, mode, size, weights):
    """A peer's row."""
    args = types.SimpleNamespace(steps=STEPS, precision="bf16", folder=context.shared, peer_python=sys.executable)
    command, environment = bench_gpu.peer_command(args, mode, size, "", 1, weights)
    _, text = context.execute(command, environment={**os.environ, **environment})
    rows = [line for line in text.splitlines() if line.startswith("{")]
    check(rows, f"{mode} printed no row: {text[-500:]}")
    row = json.loads(rows[-1])
    return {"losses": row["losses"], "step_ms": 1e3 * middle(row["times"]), "device_mib": row.get("device_mb")}


def beside(context, program, modes):
    """dsopt's row and those of peers on the same weights and tokens."""
    size, options = context.package["programs"][program]["model"], context.drawn(program, STEPS)
    run = context.train(program, *options)
    rows = {"dsopt": {"losses": run.losses, "step_ms": run.step_ms(), "device_mib": max(run.steps[-1]["peak_bytes"]) / 2**20}}
    weights = next(word for word in options if word.startswith("-weights=")).split("=", 1)[1]
    wrong = []
    for mode in modes:
        try:
            rows[mode] = peer(context, mode, size, weights)
            rows[mode]["differ"] = differ(run.losses, rows[mode]["losses"])
            rows[mode]["ratio"] = rows[mode]["step_ms"] / run.step_ms()
            if rows[mode]["differ"] > TOLERANCE:
                wrong.append(f"{mode}: losses {rows[mode]['losses']}, dsopt's {run.losses}")
        except Failed as error:
            rows[mode] = {"said": str(error)}
            wrong.append(f"{mode}: {error}")
        context.note(rows=rows)
    for row in rows.values():
        if "step_ms" in row:
            row["tokens_per_s"], row["utilisation"] = tokens_of(size) / row["step_ms"] * 1e3, utilisation(size, row["step_ms"] / 1e3)
    context.note(rows=rows)
    check(not wrong, "; ".join(wrong))
    check(differ(run.losses, run.losses) == 0, f"losses {run.losses}")
    return ", ".join(f"{name} {row['step_ms']:.2f} ms" + (f" ({row['ratio']:.2f}x)" if "ratio" in row else "") for name, row in rows.items())


def peers(context):
    need_torch()
    return beside(context, "large", ["eager", "compile"])


def huge(context):
    """With eager PyTorch beside it, where there is one."""
    try:
        need_torch()
        modes = ["eager"]
    except Absent as error:
        context.note(eager=str(error))
        modes = []
    return beside(context, "huge", modes)


def flash(context):
    need_torch()
    rows = bench_gpu.attention_rows(" \n".join(f" {row['calls']} {row['ms']} 0%  {what}" for what, row in report(context).items()))
    check(set(rows) == {"attention", "attention_grad"}, f"-report=kernels has no rows of attention in 16 bits, but {sorted(rows)}")
    batch, heads, tokens, _, head, _ = rows["attention"][1]
    script = os.path.join(context.root, "torch_attention.py")
    _, text = context.execute([sys.executable, script, *map(str, (batch, heads, tokens, head))], environment=os.environ)
    theirs, said = json.loads(text.splitlines()[-1]), []
    for kind, name in (("attention", "forward"), ("attention_grad", "backward")):
        ours = rows[kind][0]
        context.note(**{name: {"shape": [batch, heads, tokens, head], "dsopt_us": ours, "flash_us": theirs[kind], "ratio": theirs[kind] / ours}})
        said.append(f"{name} {ours:.0f} us, flash {theirs[kind]:.0f} ({theirs[kind] / ours:.2f}x)")
    return "; ".join(said)


def longest(lines):
    """The longest kernels of Nsight Compute's raw page as CSV: all calls of a name together, shares as means by time."""
    head = next((index for index, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        raise Failed("ncu printed no table: " + "\n".join(lines[-8:]))
    names, _, *rows = csv.reader(lines[head:])  # the second line has the units
    found = {}
    for row in rows:
        values = dict(zip(names, row))
        one = {short: float(values[name].replace(",", "") or 0) for name, short in METRICS.items()}
        kernel = found.setdefault(values["Kernel Name"], {"calls": 0, "ns": 0.0, "bytes": 0.0, "memory": 0.0, "multiprocessors": 0.0})
        kernel["calls"] += 1
        kernel["ns"] += one["ns"]
        kernel["bytes"] += one["bytes"]
        for share in ("memory", "multiprocessors"):
            kernel[share] += one[share] * one["ns"]
    for kernel in found.values():
        for share in ("memory", "multiprocessors"):
            kernel[share] /= max(kernel["ns"], 1e-9)
    total = sum(kernel["ns"] for kernel in found.values())
    ordered = sorted(found.items(), key=lambda entry: -entry[1]["ns"])[:LONGEST]
    return [{"kernel": name, "us": kernel["ns"] / 1e3, "share": kernel["ns"] / max(total, 1e-9), "calls": kernel["calls"], "mb": kernel["bytes"] / 1e6,
             "memory_percent": kernel["memory"], "multiprocessors_percent": kernel["multiprocessors"]} for name, kernel in ordered]


def ncu(context):
    """A first step, whose kernels are those of all, each measured by itself."""
    tool = find_ncu()
    if not tool:
        raise Absent("ncu is not installed")
    _, text = context.execute([tool, "--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(METRICS), "--target-processes", "all",
                               os.path.join(context.root, "programs", "large"), *context.drawn("large", 1), "-cuda-graph=off", "-quiet"])
    rows = longest(text.splitlines())
    context.note(kernels=rows)
    check(rows, "ncu saw no kernel")
    return f"the longest: {rows[0]['kernel']}, {100 * rows[0]['share']:.0f} % of the time, at {rows[0]['memory_percent']:.0f} % of the memory's limit and " \
           f"{rows[0]['multiprocessors_percent']:.0f} % of the multiprocessors'"
