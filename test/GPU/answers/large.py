"""Steps of GPT-2: products, losses, graphs, memory."""
import os
import re
import subprocess
import sys
import time

import gpu
from context import MIB, Run, check, differ
from small import unit

STEPS = 8  # of runs that are timed
LOOK = 0.1  # seconds between two looks at the GPU's memory, each of which makes a context
# Beside what was planned: contexts, code of kernels, libraries. More is a leak.
MOST_BESIDE = 2 << 30
# A row of this share of a step is in both tables or is missed: they leave out what takes next to nothing.
SEEN = 0.01
# A row of a program's -report=kernels: calls and milliseconds a step, its share, GFLOP/s, share of its limit, what it was and what it took.
RAN = re.compile(r"^ +([\d.]+) +([\d.]+) +([\d.]+)% +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+) +(\d+)%  (.*?)(?:  \[.*?\])?(?:; (.*))?$", re.M)


def report(context, *options):
    """Rows of what ran, by what they are called: calls and milliseconds a step, GFLOP/s, share of the limit, what they took."""
    _, text = context.execute([os.path.join(context.root, "programs", "large"), *context.drawn("large", STEPS), "-report=kernels", *options])
    with open(os.path.join(context.work, "kernels.txt"), "w") as file:
        file.write(text)
    rows = {}
    for calls, ms, share, rate, limit, what, took in RAN.findall(text):
        rows[what] = {"calls": float(calls), "ms": float(ms), "share": float(share) / 100, "tflops": float(rate) / 1e3, "of_limit": int(limit), "took": took}
    check(rows, "-report=kernels has no rows: " + text[-500:])
    return rows


def products(context):
    """The library's products against the host's sums; then those of a step of GPT-2 as the plan lists them against those that ran."""
    wrong, right = [], 0
    for program, filters in context.package["units"]["products"].items():
        passed, failed = unit(context, program, filters)
        right += passed
        wrong += [name for entry in failed for name in entry["tests"] or [f"{program} {entry['filter']}"]]
    name, capability = gpu.gpus()[0]
    tables = context.package["programs"]["large"]["kernels"]
    table = tables.get(gpu.architecture(capability), tables[sorted(tables)[0]])
    planned = {what: row for what, row in table.items() if what.startswith("product")}
    ran = {what: row for what, row in report(context).items() if what.startswith("product")}
    rows = {what: {"planned": planned.get(what), "ran": ran.get(what)} for what in {**planned, **ran}}
    for row in rows.values():
        if row["planned"] and row["ran"]:
            us = row["planned"]["us"]
            row["of_plan"] = next((value for part, value in us.items() if part in name), max(us.values())) / max(1e3 * row["ran"]["ms"], 1e-3)
    context.note(products=rows)
    wrong += [f"{what} ran and is not planned" for what, row in ran.items() if what not in planned and row["share"] > SEEN]
    wrong += [f"{what}: {ran[what]['calls']:g} calls a step, planned {row['calls']}" for what, row in planned.items() if what in ran and ran[what]["calls"] != row["calls"]]
    wrong += [f"{what} is planned and did not run" for what, row in planned.items() if what not in ran and row["share"] > SEEN]
    check(not wrong, f"{len(wrong)} wrong: " + "; ".join(wrong))
    both = [what for what in ran if what in planned]
    check(both, f"none of {len(planned)} planned products ran")
    slow = min(both, key=lambda what: rows[what]["of_plan"])
    return f"{right} unit tests; {len(both)} of {len(planned)} planned shapes were seen, as often as planned; the farthest from its limit: {slow}, " \
           f"{100 * rows[slow]['of_plan']:.0f} % of it"


def gpt2(context):
    """Losses of the first steps, in fp32 and bf16, against those that the host's program had when the package was made."""
    rows = {}
    for name, program in context.programs().items():
        run = context.train(name, *context.drawn(name, len(program["losses"])))
        rows[name] = {"losses": run.losses, "host": program["losses"], "differ": differ(run.losses, program["losses"]), "within": program["within"],
                      "step_ms": run.step_ms(), "hash": run.hash}
        context.note(programs=rows)
    wrong = [f"{name}: losses {row['losses']}, on the host {row['host']}" for name, row in rows.items() if row["differ"] > row["within"]]
    check(not wrong, "; ".join(wrong))
    return "; ".join(f"{name}: within {row['differ']:.1e} of the host's" for name, row in rows.items())


def graphs(context):
    """A step's time with and without, and that it is the same step."""
    options, runs = context.drawn("large", STEPS), {}
    for graph in ("auto", "off"):
        runs[graph] = run = context.train("large", *options, f"-cuda-graph={graph}")
        context.note(**{graph: {"step_ms": run.step_ms(), "graphs": run.head["cuda_graphs"], "hash": run.hash, "losses": run.losses,
                                "tokens_per_s": run.steps[-1].get("tokens_per_s")}})
    auto, off = runs["auto"], runs["off"]
    check(auto.head["cuda_graphs"] > 0 and off.head["cuda_graphs"] == 0, f"{auto.head['cuda_graphs']} graphs, and {off.head['cuda_graphs']} under -cuda-graph=off")
    check((auto.hash, auto.losses) == (off.hash, off.losses), f"losses {auto.losses} {auto.hash} with graphs, {off.losses} {off.hash} without")
    return f"{auto.step_ms():.2f} ms a step with graphs, {off.step_ms():.2f} without, {off.step_ms() / auto.step_ms():.2f}x; one hash"


def memory(context):
    """What is gone of the driver's free memory while the program trains, beside what was planned."""
    options = context.drawn("large", 3)
    log = os.path.join(context.work, "log.jsonl")
    command = [os.path.join(context.root, "programs", "large"), f"-log={log}", "-quiet", f"-stall-timeout={int(context.left() / 2)}", *options]
    before, total = gpu.memory()
    least = before
    with open(os.path.join(context.work, "large.txt"), "w") as said:
        program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=context.environment())
        while program.poll() is None:
            least = min(least, gpu.memory()[0])
            time.sleep(LOOK)
    with open(said.name) as file:
        text = file.read()
    sys.stdout.write(text)
    check(program.returncode == 0, f"large ended with status {program.returncode}: {text.strip()}")
    run = Run(log)
    planned, peak = context.package["programs"]["large"]["device_bytes"], max(step["peak_bytes"][0] for step in run.steps)
    taken = before - least
    context.note(planned_mib=planned / MIB, log_peak_mib=peak / MIB, taken_mib=taken / MIB, free_before_mib=before / MIB, total_mib=total / MIB,
                 beside_mib=(taken - planned) / MIB)
    check(peak <= planned, f"the log's peak is {peak} bytes, planned {planned}")
    if taken == 0:
        return f"{planned / MIB:.0f} MiB planned; this driver does not say what other processes take"
    check(taken >= planned, f"{taken} bytes were gone, fewer than the {planned} that were planned: another process gave memory back")
    check(taken - planned <= MOST_BESIDE, f"{taken} bytes were gone, {planned} planned: more than {MOST_BESIDE} beside the plan")
    return f"{planned / MIB:.0f} MiB planned, {taken / MIB:.0f} taken: {(taken - planned) / MIB:.0f} beside the plan for context, code and libraries"
