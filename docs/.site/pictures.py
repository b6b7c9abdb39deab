"""The pictures of README and docs: a plan, as a terminal shows it, and a run, as dsopt-report shows it.

usage: pictures.py BUILD SOURCE [RUN.jsonl]    writes SOURCE/docs/assets/plan.svg and report.svg

The run is that of `./dev run`, whose losses README prints; its log, without times and what depends on the machine, is
docs/.site/run.jsonl. A new log takes its place.
"""
import html
import json
import os
import re
import subprocess
import sys
import tempfile

# What a plan depends on beside the model is said, so that every machine has the same.
PLAN = ["-zero=3", "-pp=4", "-dp=2", "-plan"]
MACHINE = ["-threads=1", "-arch=x86-64-v3"]
CELL, LINE, SIZE, MARGIN, BAR = 7.6, 17, 12.5, 18, 34
RUN_KEYS = ("version", "model", "layout", "parameters")
STEP_KEYS = ("step", "loss", "grad_norm", "lr", "sent_bytes", "peak_bytes")
FIGURES = ("loss", "gradient norm", "memory", "traffic")
WIDTH, HEIGHT, LEFT, TOP, GAP = 620, 230, 14, 34, 16


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"})
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def terminal(command, text):
    """A terminal's window with a command and what it printed."""
    lines = [f"$ {command}", *text.rstrip("\n").split("\n")]
    columns = max(map(len, lines))
    width, height = round(columns * CELL + 2 * MARGIN), BAR + len(lines) * LINE + MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
           f"<title>{html.escape(command)}</title>",
           "<style>text { font: " + f'{SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; '
           "white-space: pre; fill: #d5dae0; } .command { fill: #fff; font-weight: bold; } .rule { fill: #6b7680; }</style>",
           f'<rect width="{width}" height="{height}" rx="8" fill="#1a1e23"/>']
    out += [f'<circle cx="{MARGIN + 4 + 18 * at}" cy="17" r="5.5" fill="{color}"/>'
            for at, color in enumerate(("#e8655a", "#e6b84a", "#5fb85f"))]
    for at, line in enumerate(lines):
        # Each run of words has its own place and length: columns stay columns in every font.
        kind = ' class="command"' if at == 0 else ' class="rule"' if re.fullmatch(r"[\s\-─│┼+|=]*", line) else ""
        for word in re.finditer(r"\S+(?: \S+)*", line):
            out.append(f'<text x="{MARGIN + word.start() * CELL:.1f}" y="{BAR + (at + 0.7) * LINE:.1f}" '
                       f'textLength="{len(word[0]) * CELL:.1f}" lengthAdjust="spacingAndGlyphs"{kind}>{html.escape(word[0])}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def without_times(log):
    """A log's lines, of which only what each machine has alike is left."""
    for line in log:
        line = json.loads(line)
        if "run" in line:
            yield {"run": {key: line["run"][key] for key in RUN_KEYS if key in line["run"]}}
        elif "step" in line and "loss" in line:
            yield {key: line[key] for key in STEP_KEYS if key in line}
        elif "end" in line:
            yield {"end": {key: line["end"][key] for key in ("steps", "status")}}


def report(page):
    """Figures of dsopt-report's page, two in a row, with the page's own style."""
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    keep = [rule for rule in re.findall(r"[^{}]+\{[^{}]*\}", style) if re.match(r"\s*(:root|svg)", rule)]
    dark = re.search(r"@media \(prefers-color-scheme: dark\) \{ (:root \{[^}]*\}) \}", style)[1]
    parts, top, heights = [], 0, []
    for at, name in enumerate(FIGURES):
        figure = re.search(rf"<figure[^>]*>(?:(?!</figure>).)*<figcaption>{name}</figcaption>.*?</figure>", page, re.S)[0]
        size, drawn = re.search(r"<svg viewBox='0 0 \d+ (\d+)'[^>]*>(.*?)</svg>", figure, re.S).groups()
        # The other axis, smoothed curves and the numbers behind them are for the page's switches.
        drawn = re.sub(r"<g class='logarithmic'>.*?</g></g></g>|<desc.*?</desc>|<path class='[^']*smooth[^']*'[^>]*/>", "", drawn, flags=re.S)
        if at % 2 == 0:
            top += max(heights, default=0) + (GAP if heights else 0)
            heights = []
        heights.append(TOP + int(size) + 12)
        parts.append((LEFT + at % 2 * (WIDTH + 2 * GAP + LEFT), top, int(size), name, drawn))
    height = top + max(heights) + GAP
    width = 2 * (WIDTH + LEFT + GAP) + GAP
    cards = []
    for x, y, size, name, drawn in parts:
        row = max(other[2] for other in parts if other[1] == y)
        cards.append(f'<rect x="{x - LEFT + GAP / 2:.0f}" y="{y + GAP / 2:.0f}" width="{WIDTH + 2 * LEFT}" height="{TOP + row + 8}" rx="8" '
                     'fill="var(--card)" stroke="var(--line)"/>'
                     f'<text class="caption" x="{x + GAP / 2:.0f}" y="{y + 28}">{name}</text>'
                     f'<svg x="{x + GAP / 2:.0f}" y="{y + TOP + 4}" width="{WIDTH}" height="{size}" viewBox="0 0 {WIDTH} {size}">{drawn}</svg>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            'font-family="system-ui, \'DejaVu Sans\', sans-serif">\n<title>A run as dsopt-report shows it</title>\n<style>'
            + html.escape("".join(rule.strip() + "\n" for rule in keep), quote=False)
            + f"@media (prefers-color-scheme: dark) {{ {dark} }}\nsvg text.caption {{ font-size: 14px; font-weight: 600; fill: var(--text); }}</style>\n"
            + f'<rect width="{width}" height="{height}" rx="8" fill="var(--back)"/>\n' + "\n".join(cards) + "\n</svg>\n")


def main(build, source, log=None):
    tool, assets = os.path.join(build, "bin", "dsopt"), os.path.join(source, "docs", "assets")
    kept = os.path.join(source, "docs", ".site", "run.jsonl")
    plan = run(tool, os.path.join(source, "examples", "gpt.onnx"), *PLAN, *MACHINE)
    write(os.path.join(assets, "plan.svg"), terminal("dsopt examples/gpt.onnx " + " ".join(PLAN), plan))
    if log:
        with open(log) as file:
            write(kept, "".join(json.dumps(line) + "\n" for line in without_times(file)))
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "run.html")
        run(tool + "-report", kept, "-o", page)
        with open(page) as file:
            write(os.path.join(assets, "report.svg"), report(file.read()))


if __name__ == "__main__":
    main(*sys.argv[1:])
