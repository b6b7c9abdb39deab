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
PLAN = ["-zero=3", "-pp=4", "-dp=2", "-plan", "-threads=1", "-arch=x86-64-v3"]
CELL, LINE, SIZE, MARGIN, BAR = 7.6, 17, 12.5, 18, 34
RUN_KEYS = ("version", "model", "layout")
STEP_KEYS = ("step", "loss", "grad_norm", "lr")
LAST_KEYS = (*STEP_KEYS, "peak_bytes", "sent_bytes")
FIGURES = ("loss", "gradient norm", "memory", "traffic")
WIDTH, PAD, TOP, GAP = 620, 14, 38, 16


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
    lines = [json.loads(line) for line in log]
    last = max(line["step"] for line in lines if "loss" in line)
    for line in lines:
        if "run" in line:
            yield {"run": {key: line["run"][key] for key in RUN_KEYS}}
        elif "loss" in line:
            yield {key: line[key] for key in (LAST_KEYS if line["step"] == last else STEP_KEYS)}
        elif "end" in line:
            yield {"end": {key: line["end"][key] for key in ("steps", "status")}}


def report(page):
    """Figures of dsopt-report's page, two in a row, with the page's own style."""
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    media = r"@media [^{]*\{(?:[^{}]*\{[^{}]*\})*\s*\}"
    dark = re.search(media.replace("[^{]*", r"\(prefers-color-scheme: dark\) ", 1), style)[0]
    rules = [rule.strip() for rule in re.findall(r"[^{}]+\{[^{}]*\}", re.sub(media, "", style)) if re.match(r"\s*(:root|svg) ", rule)]
    # Pictures are shown smaller than they are.
    rules += [dark, "svg text { font-size: 14px; } svg text.caption { font-weight: 600; fill: var(--text); }"]
    cards, top, card = [], GAP, WIDTH + 2 * PAD
    for row in range(0, len(FIGURES), 2):
        highest = 0
        for column, name in enumerate(FIGURES[row:row + 2]):
            figure = re.search(rf"<figure[^>]*>(?:(?!</figure>).)*<figcaption>{name}</figcaption>.*?</figure>", page, re.S)[0]
            size, drawn = re.search(r"<svg viewBox='0 0 \d+ (\d+)'[^>]*>(.*?)</svg>", figure, re.S).groups()
            # The other axis, smoothed curves and the numbers behind them are for the page's switches.
            other = r"linear'>.*?(?=<g class='logarithmic)" if "class='log' checked" in figure else r"logarithmic'>.*?(?=<desc)"
            drawn = re.sub(rf"<g class='{other}|<desc.*?</desc>|<path class='[^']*smooth[^']*'[^>]*/>|<g class='cursor'></g>", "", drawn, flags=re.S)
            left, highest = GAP + column * (card + GAP), max(highest, int(size))
            cards.append(f'<text class="caption" x="{left + PAD}" y="{top + 24}">{name}</text>\n'
                         f'<svg x="{left + PAD}" y="{top + TOP}" width="{WIDTH}" height="{size}" viewBox="0 0 {WIDTH} {size}">{drawn}</svg>')
        cards = [*cards[:-2], *(f'<rect x="{GAP + column * (card + GAP)}" y="{top}" width="{card}" height="{highest + TOP + PAD}" rx="8" '
                                'fill="var(--card)" stroke="var(--line)"/>' for column in (0, 1)), *cards[-2:]]
        top += highest + TOP + PAD + GAP
    width = 2 * card + 3 * GAP
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}" role="img" '
                      'font-family="system-ui, DejaVu Sans, sans-serif">', "<title>A run as dsopt-report shows it</title>",
                      "<style>", *(html.escape(rule, quote=False) for rule in rules), "</style>",
                      f'<rect width="{width}" height="{top}" rx="8" fill="var(--back)"/>', *cards, "</svg>"]) + "\n"


def main(build, source, log=None):
    tool, assets = os.path.join(build, "bin", "dsopt"), os.path.join(source, "docs", "assets")
    kept = os.path.join(source, "docs", ".site", "run.jsonl")
    # Without the legend below it.
    plan = run(tool, os.path.join(source, "examples", "gpt.onnx"), *PLAN).partition("\nblocks            the")[0]
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
