#!/usr/bin/env python3
"""Makes a page of what a GPU has answered: gpu-answers.json, which answer.py of ./dev test-gpu -package writes.

usage: gpu_report.py RESULT.json [-o PAGE.md]     without -o to the standard output
The page has what was run where, a line for each step, figures, and what failed with what was said. benchmarks/results keeps both.
"""
import argparse
import json
import sys

# Of a row of figures: how many digits behind the point, by what the name ends with.
DIGITS = {"_ms": 2, "ms": 2, "_us": 1, "us": 1, "_mib": 0, "ratio": 2, "tflops": 1, "tokens_per_s": 0, "share": 3, "utilisation": 3, "of_plan": 3}


def number(name, value):
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    digits = next((digits for end, digits in DIGITS.items() if name.endswith(end)), None)
    return f"{value:.3g}" if digits is None else f"{value:.{digits}f}"


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ").strip() or "-"


def table(head, rows):
    lines = ["| " + " | ".join(map(cell, row)) + " |" for row in [head, *rows]]
    return [lines[0], "|" + " --- |" * len(head), *lines[1:], ""]


def rows_of(entries, first, skip=()):
    """A table of dictionaries by name: columns are what any of them has that is one value."""
    columns = list(dict.fromkeys(key for entry in entries.values() for key, value in entry.items() if key not in skip and not isinstance(value, (dict, list))))
    return table([first, *columns], [[name, *(number(key, entry.get(key)) for key in columns)] for name, entry in entries.items()])


def losses(values):
    return " ".join(f"{value:.6g}" for value in values)


def heading(result):
    steps, package, machine = result["steps"], result["package"], result["machine"]
    start = steps.get("start", {})
    devices = start.get("devices", [])
    name = f"{len(devices)} x {devices[0]['name']}" if devices else "an unknown GPU"
    lines = [f"# Answers of {name}", "", f"dsopt {package['commit']} ({package['compiler']}), programs for {package['arch']}, made {package['made']}; models "
             + ", ".join(f"{step} {model}" for step, model in package["models"].items()) + ".", ""]
    lines += [f"Driver {start.get('driver', 'unknown')}; {machine['system']}, {machine['libc']}, Python {machine['python']}, {machine['cpus']} CPUs.", ""]
    if devices:
        lines += rows_of({str(index): device for index, device in enumerate(devices)}, "GPU")
    if "libraries" in start:
        lines += table(["library", "version", "file"], [[name, what.get("version", f"absent: {what.get('absent')}"), what.get("file", "-")] for name, what in start["libraries"].items()])
    return lines


def summary(steps):
    counts = {}
    for step in steps.values():
        counts[step["status"]] = counts.get(step["status"], 0) + 1
    lines = ["## Steps", "", ", ".join(f"{count} {status}" for status, count in counts.items()) + ".", ""]
    first = {name: step["said"].splitlines()[0] if step["said"] else "" for name, step in steps.items()}
    return lines + table(["step", "status", "seconds", "limit", "answer"],
                         [[name, step["status"], f"{step['seconds']:.1f}", f"{step['limit']:g}", first[name][:200]] for name, step in steps.items()])


def failures(steps):
    lines = []
    for name, step in steps.items():
        if step["status"] not in ("failed", "hung"):
            continue
        lines += [f"### {name}: {step['status']}", "", "```", *step["said"].splitlines(), "```", ""]
        if "last_error" in step:
            lines += [f"The last error: `{step['last_error']}`", ""]
        if "waits" in step:
            lines += ["Where processes waited:", "", *(f"- {line}" for line in step["waits"]), ""]
    return ["## What failed", "", *lines] if lines else []


def programs(step):
    """Losses of programs beside the host's."""
    rows = {name: row for name, row in step.get("programs", {}).items() if "losses" in row}
    return table(["program", "losses", "the host's", "differ by", "expected within"],
                 [[name, losses(row["losses"]), losses(row["host"]), number("", row["differ"]), number("", row["within"])] for name, row in rows.items()]) if rows else []


def units(step):
    return table(["unit tests", "passed", "failed"], [[name, what["passed"], " ".join(test for entry in what["failed"] for test in entry["tests"] or [entry["filter"]])]
                                                      for name, what in step.items() if name.startswith("DsoptRuntime") and isinstance(what, dict)])


def kernels(step):
    return [*units(step), *programs(step)]


def mlp(step):
    if "losses" not in step:
        return []
    return table(["", "losses", "ms a step"], [["GPU", losses(step["losses"]), number("ms", step["step_ms"])], ["host", losses(step["host"]), number("ms", step["host_step_ms"])]])


def layouts(step):
    return table(["layout", "hash", "ms a step", "losses"], [[name, row["hash"][:16], number("ms", row["step_ms"]), losses(row["losses"])]
                                                             for name, row in step.get("layouts", {}).items()])


def products(step):
    rows = []
    for what, row in step.get("products", {}).items():
        planned, ran = row["planned"] or {}, row["ran"] or {}
        rows.append([what, number("", planned.get("calls")), number("", ran.get("calls")), number("ms", ran.get("ms")), number("tflops", ran.get("tflops")),
                     f"{100 * row['of_plan']:.0f} %" if "of_plan" in row else "-", ran.get("took", "")])
    return [*units(step), *table(["product", "calls planned", "ran", "ms", "TFLOP/s", "of its limit", "took"], rows)]


def graphs(step):
    return rows_of({name: step[key] for name, key in (("with graphs", "auto"), ("without", "off")) if key in step}, "", ["hash"])


def memory(step):
    keys = [key for key in step if key.endswith("_mib")]
    return table([key[:-4].replace("_", " ") + ", MiB" for key in keys], [[number(key, step[key]) for key in keys]]) if keys else []


def peers(step):
    return rows_of(step.get("rows", {}), "", ["said"])


def flash(step):
    return rows_of({name: step[name] for name in ("forward", "backward") if name in step}, "attention")


def ncu(step):
    return table(["kernel", "us", "of the time", "calls", "MB", "of the memory's limit", "of the multiprocessors'"],
                 [[row["kernel"], number("us", row["us"]), f"{100 * row['share']:.1f} %", row["calls"], f"{row['mb']:.1f}", f"{row['memory_percent']:.0f} %",
                   f"{row['multiprocessors_percent']:.0f} %"] for row in step.get("kernels", [])])


FIGURES = {"kernels": kernels, "mlp": mlp, "layouts": layouts, "products": products, "gpt2": programs, "graphs": graphs, "memory": memory, "peers": peers,
           "flash": flash, "ncu": ncu, "1.3b": peers}


def page(result):
    steps = result["steps"]
    lines = [*heading(result), *summary(steps), *failures(steps)]
    for name, figures in FIGURES.items():
        found = figures(steps[name]) if name in steps else []
        if any(line.startswith("| ") for line in found[2:]):
            lines += [f"## {name}", "", *found]
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("result", help="what answer.py wrote")
    parser.add_argument("-o", dest="output", help="the page, as Markdown")
    args = parser.parse_args()
    try:
        with open(args.result) as file:
            result = json.load(file)
        text = page(result)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{args.result} is not what answer.py writes: {type(error).__name__}: {error}")
    if args.output:
        with open(args.output, "w") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
