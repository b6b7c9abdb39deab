"""Examples of examples/gallery, and their twins in PyTorch: equal losses, and docs/Gallery.md says what differs and what
one sees. With -write the page is written.

usage: gallery.py SOURCE BUILD NAME... [-write]   with a Python that has torch, onnxscript and what the examples import
"""
import ast
import difflib
import os
import re
import sys
import tempfile

source, build = map(os.path.abspath, sys.argv[1:3])
writes = sys.argv[-1] == "-write"
gallery, page = os.path.join(source, "examples", "gallery"), os.path.join(source, "docs", "Gallery.md")
sys.path.insert(0, os.path.join(source, "test", "Python"))

import forks

#: What examples import that takes long, imported once.
MODULES = {"bert": ["transformers.trainer", "accelerate"], "lora": ["transformers.trainer", "accelerate"], "tabular": ["lightning"]}
WIDTH, HEIGHT = 520, 200


def code(name, which):
    with open(os.path.join(gallery, f"{name}_{which}.py")) as file:
        return file.read()


def run(name, which):
    """What a script prints: losses of its steps, and the rest of what it finds."""
    folder = tempfile.mkdtemp()
    environment = {"DSOPT_BUILD": build, "PYTHONPATH": os.path.join(source, "python"), "OMP_NUM_THREADS": "1",
                   "TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore"}
    words = [os.path.join(source, "LICENSE")] if name == "gpt" else []
    said, status = forks.run(os.path.join(gallery, f"{name}_{which}.py"), *words, environment=environment, folder=folder)
    if status:
        sys.exit(f"wrong: {name}_{which}.py ended with {status}:\n{said[-5000:]}")
    found = {int(step): float(loss) for step, loss in re.findall(r"^step (\d+) loss ([\d.]+)$", said, re.M)}
    rest = re.findall(r"^(?:goes on|held out|epoch|picture|trains)\b.*$", said, re.M)
    rest = [line.rstrip() for line in rest]
    return [found[step] for step in range(len(found))], rest


def changes(name):
    """The lines that differ."""
    lines = difflib.unified_diff(code(name, "torch").splitlines(), code(name, "dsopt").splitlines(), n=0, lineterm="")
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@") and "usage:" not in line)


def curve(losses, least, most):
    step = (WIDTH - 60) / max(len(losses) - 1, 1)
    return [(50 + at * step, 10 + (HEIGHT - 40) * (most - loss) / (most - least)) for at, loss in enumerate(losses)]


def drawn(name, theirs, mine):
    """Both curves, one over the other."""
    least, most = min(theirs + mine), max(theirs + mine)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
             f'font-family="sans-serif" font-size="12" fill="#666"><title>Loss by step of {name}: PyTorch, and dsopt over it</title>']
    for losses, style in ((theirs, 'stroke="#ff9f40" stroke-width="5"'), (mine, 'stroke="#205080" stroke-width="1.5"')):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve(losses, least, most))
        lines.append(f'<polyline fill="none" {style} points="{points}"/>')
    lines.append(f'<path d="M50 10V{HEIGHT - 30}H{WIDTH - 10}" fill="none" stroke="#999"/>')
    for x, y, anchor, text in ((45, 20, "end", f"{most:.2f}"), (45, HEIGHT - 30, "end", f"{least:.2f}"), (50, HEIGHT - 12, "start", "step 0"),
                               (WIDTH - 10, HEIGHT - 12, "end", str(len(mine) - 1))):
        lines.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')
    for y, color, text in ((28, "#ff9f40", "PyTorch"), (46, "#205080", "dsopt")):
        lines.append(f'<text x="{WIDTH - 20}" y="{y}" text-anchor="end" fill="{color}">{text}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def section(name, theirs, mine, rest):
    """This example's part of the page."""
    shown = sorted({round(at * (len(mine) - 1) / 5) for at in range(6)})
    rows = "\n".join(f"| {step} | {theirs[step]:.4f} | {mine[step]:.4f} |" for step in shown)
    about = ast.get_docstring(ast.parse(code(name, "dsopt"))).split("\n\nusage")[0].replace("\n\n", " ").replace("\n", " ")
    return (f"{about}\n\n```diff\n{changes(name)}\n```\n\n![Losses of {name}](assets/gallery/{name}.svg)\n\n"
            f"| step | PyTorch | dsopt |\n| --- | --- | --- |\n{rows}\n\n```text\n" + "\n".join(rest) + "\n```\n\n")


def part(name, text):
    """Where this example's part is, between two headings."""
    found = re.search(rf"^## .*<!-- {name} -->\n\n", text, re.M)
    if not found:
        sys.exit(f"wrong: docs/Gallery.md has no heading with <!-- {name} -->")
    following = re.compile("^## ", re.M).search(text, found.end())
    return found.end(), following.start() if following else len(text)


def compare(name):
    picture = os.path.join(source, "docs", "assets", "gallery", name + ".svg")
    (theirs, _), (mine, rest) = run(name, "torch"), run(name, "dsopt")
    worst = max((abs(a - b) for a, b in zip(theirs, mine)), default=1)
    if len(theirs) != len(mine) or len(mine) < 50 or worst > 1e-4 or sum(mine[-10:]) > 7 * mine[0]:
        sys.exit(f"wrong: losses are {worst} apart: {theirs}, {mine}")
    print(f"{name}: {len(mine)} losses from {mine[0]:.4f} to {mine[-1]:.4f}, at most {worst:.1e} apart")
    with open(page) as file:
        text = file.read()
    begin, end = part(name, text)
    if writes:
        os.makedirs(os.path.dirname(picture), exist_ok=True)
        with open(picture, "w") as file:
            file.write(drawn(name, theirs, mine))
        with open(page, "w") as file:
            file.write((text[:begin] + section(name, theirs, mine, rest) + text[end:]).rstrip("\n") + "\n")
        return
    # Another processor rounds otherwise: numbers may be a little off.
    numbers = re.compile(r"-?\d+\.\d+")
    there, here = text[begin:end], section(name, theirs, mine, rest)
    program = there.index("```text")
    if numbers.sub("", there[:program]) != numbers.sub("", here[:here.index("```text")]):
        sys.exit(f"wrong: docs/Gallery.md has\n{there[:program]}\nexpected\n{here} (gallery.py ... {name} -write writes it)")
    for one, other in zip(re.findall(r"^\| \d.*", there, re.M), re.findall(r"^\| \d.*", here, re.M)):
        if any(abs(float(a) - float(b)) > 5e-3 for a, b in zip(numbers.findall(one), numbers.findall(other))):
            sys.exit(f"wrong: docs/Gallery.md has the losses {one}, expected {other}")
    with open(picture) as file:
        points = [[tuple(map(float, point.split(","))) for point in line.split()] for line in re.findall(r'points="([^"]*)"', file.read())]
    for there, losses in zip(points, (theirs, mine)):
        here = curve(losses, min(theirs + mine), max(theirs + mine))
        if len(there) != len(here) or any(abs(a - b) > 2 for one, other in zip(there, here) for a, b in zip(one, other)):
            sys.exit(f"wrong: {picture} has other curves")


forks.prepare([one for name in sys.argv[3:] for one in MODULES.get(name, [])])
for name in sys.argv[3:len(sys.argv) - writes]:
    compare(name)
print("passed")
