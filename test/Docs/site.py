"""The documentation is one site: every page is in it, every link and anchor leads somewhere, and what is a list or a
table in the text is one on the page; what is wrong ends the build. The texts in the root lead to files that there are,
and to headings in them; README fits on a page, and the site's first page has all others in the order of its menu.

usage: site.py SOURCE FOLDER
"""
import glob
import html.parser
import os
import re
import shutil
import subprocess
import sys

LONGEST_README = 130

source, folder = map(os.path.abspath, sys.argv[1:3])
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
shutil.copytree(os.path.join(source, "docs"), os.path.join(folder, "docs"))
roots = [os.path.basename(path) for path in glob.glob(os.path.join(source, "*.md"))]
for name in (*roots, "mkdocs.yml"):
    shutil.copy(os.path.join(source, name), folder)
site = os.path.join(folder, "site")


def build():
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-d", site], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def headings(path):
    """The anchors of a text's headings, as GitHub and the site name them."""
    with open(path) as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.*?)(?: *<!--.*)?$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def expanded(path):
    """The paths that one with braces stands for."""
    braces = re.search(r"\{([^}]*)\}", path)
    return [one for choice in braces[1].split(",") for one in expanded(path.replace(braces[0], choice, 1))] if braces else [path]


def dead_links(name):
    """What a text in the root leads to that is not there: files, by their names alone too, and headings."""
    with open(os.path.join(folder, name)) as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
    links = re.findall(r"\]\((?!https?://)([^)\s]+)\)", text)
    for link in re.findall(r"`((?:docs|examples|include|lib|python|test|tools)/[^`\s]+)`", text):
        if not re.search("STAGE|NAME", link):
            yield from (path for path in expanded(link) if not glob.glob(os.path.join(source, path)))
    for link in links:
        path, _, anchor = link.partition("#")
        # Texts are those of the copy, all else is the source's.
        found = [at for at in (os.path.join(root, path or name) for root in (folder, source)) if os.path.exists(at)]
        if not found or anchor and anchor not in headings(found[0]):
            yield link


class Paragraphs(html.parser.HTMLParser):
    """The text of paragraphs, without programs and words of them."""

    def __init__(self):
        super().__init__()
        self.inside, self.text = [], ""

    def handle_starttag(self, tag, attributes):
        if tag not in ("br", "img", "hr", "input", "link", "meta"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if "p" in self.inside and "code" not in self.inside:
            self.text += data


code, said = build()
if code:
    sys.exit(f"wrong: {said}")
pages = glob.glob(os.path.join(site, "**", "index.html"), recursive=True)
if len(pages) != len(glob.glob(os.path.join(source, "docs", "*.md"))):
    sys.exit(f"wrong: {len(pages)} pages")
for page in pages:
    with open(page) as file:
        text = file.read()
    paragraphs = Paragraphs()
    paragraphs.feed(text)
    lines = [line for line in paragraphs.text.split("\n") if line.startswith(("- ", "* ", "|", "```", "#", "1. "))]
    if lines:
        sys.exit(f"wrong: {page} has in its paragraphs: {lines[:3]} (an empty line is before a list, a table and a program)")
    if 'src="http' in text or 'rel="stylesheet" href="http' in text:
        sys.exit(f"wrong: {page} takes scripts or styles from elsewhere")
with open(os.path.join(site, "index.html")) as file:
    index = file.read()
menu = re.findall(r'class="toctree-l1"><a class="reference internal" href="([\w-]+/)"', index)
listed = re.findall(r'<li><a href="([\w-]+/)">', index)
if not listed or listed != menu or len(listed) != len(pages) - 1:
    sys.exit(f"wrong: the first page leads to {listed}, the menu to {menu}")
for name in roots:
    if dead := list(dead_links(name)):
        sys.exit(f"wrong: {name} leads to {dead}")
with open(os.path.join(folder, "README.md")) as file:
    lines = len(file.readlines())
if lines > LONGEST_README:
    sys.exit(f"wrong: README.md has {lines} lines, expected at most {LONGEST_README}")
# What is planted is found.
for line in ("[no](docs/Missing.md)", "[no](docs/Data.md#nowhere)", "`docs/Missing.md`", "[no](Missing.md)", "`lib/{Target,Nowhere}`"):
    path = os.path.join(folder, "README.md")
    shutil.copy(os.path.join(source, "README.md"), path)
    with open(path, "a") as file:
        file.write(f"\n{line}\n")
    if len(list(dead_links("README.md"))) != 1:
        sys.exit(f"wrong: {line} in README.md was taken")
for name, line, words in (("docs/Data.md", "[no](Nothing.md)", "Nothing.md"), ("docs/Data.md", "[no](Running.md#nowhere)", "#nowhere"),
                          ("docs/Lost.md", "# Lost", "Lost.md"), ("docs/index.md", "[no](Missing.md)", "Missing.md")):
    path = os.path.join(folder, name)
    before = open(path).read() if os.path.exists(path) else None
    with open(path, "a") as file:
        file.write(f"\n{line}\n")
    code, said = build()
    if code == 0 or words not in said:
        sys.exit(f"wrong: {line} in {name} was taken: {said}")
    os.remove(path)
    if before is not None:
        with open(path, "w") as file:
            file.write(before)
print("passed")
