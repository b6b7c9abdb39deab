"""costs.py DSOPT DSOPT-OPT FOLDER-OF-MODELS MODEL...: flops have one source. In each model every segment costs what its
calls cost together, reports have the same figures, and the plan's step is their sum over all runs."""
import json
import re
import subprocess
import sys

dsopt, opt, folder, *models = sys.argv[1:]


def run(command, text=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True, text=True).stdout


for name in models:
    path = f"{folder}/{name}"
    program_options = [dsopt, f"{path}/model.onnx", f"-data={path}/batches.npz", "-pp=2"]
    text = run([opt, "-describe-calls"], run([*program_options, "-emit=exec"]))
    calls = [int(flops) for flops in re.findall(r"\{bytes = \d+ : i64, flops = (\d+) : i64", text)]
    segments = {}
    for function in re.findall(r"^  func\.func private @.*?^  \}", text, re.MULTILINE | re.DOTALL):
        head, *body = function.splitlines()
        if "exec.segment" not in head:
            continue
        symbol = re.match(r'\s*func\.func private @("[^"]*"|[^(]*)\(', head)[1]
        total = int(re.search(r"exec\.flops = (\d+)", head)[1])
        parts = sum(int(flops) for line in body for flops in re.findall(r"exec\.flops = (\d+)", line))
        reported = sum(calls[int(i)] for i in re.search(r"exec\.calls = array<i64: ([\d, ]+)>", head)[1].split(","))
        if not total == parts == reported:
            sys.exit(f"FAILED: {name}: @{symbol} costs {total} flops, its calls {parts}, those in reports {reported}")
        segments[symbol] = total
    step = 0
    for program in re.findall(r"^  exec\.program .*?^  \}", text, re.MULTILINE | re.DOTALL):
        if " evaluation position " not in program.splitlines()[0]:
            step += sum(segments[symbol] for symbol in re.findall(r'exec\.run @("[^"]*"|[^ ]*)', program))
    plan = json.loads(run([*program_options, "-plan=json"]))
    if step != plan["flops_per_step"]:
        sys.exit(f"FAILED: {name}: the runs cost {step} flops, the plan has {plan['flops_per_step']}")
    print(f"{name}: {len(segments)} segments, {sum(segments.values())} flops, {step} a step, equal", flush=True)
