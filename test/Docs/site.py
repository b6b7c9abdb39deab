"""The documentation is one site: every page is in it, every link and anchor leads somewhere, and what is a list or a
table in the text is one on the page. What is wrong ends the build.

usage: site.py SOURCE FOLDER
"""
import glob
import html.parser
import os
import shutil
import subprocess
import sys

source, folder = map(os.path.abspath, sys.argv[1:3])
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
shutil.copytree(os.path.join(source, "docs"), os.path.join(folder, "docs"))
for name in ("README.md", "mkdocs.yml"):
    shutil.copy(os.path.join(source, name), folder)
site = os.path.join(folder, "site")


def build():
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-d", site], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


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
if len(pages) != len(glob.glob(os.path.join(source, "docs", "*.md"))) + 1:
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
index = open(os.path.join(site, "index.html")).read()
if 'href="Tutorial/"' not in index or "docs/" in index.split("What is not there")[-1].split("The rooms")[0]:
    sys.exit("wrong: the first page does not lead to the others")
for name, line, words in (("docs/Data.md", "[no](Nothing.md)", "Nothing.md"), ("docs/Data.md", "[no](Running.md#nowhere)", "#nowhere"),
                          ("docs/Lost.md", "# Lost", "Lost.md"), ("README.md", "`docs/Missing.md`", "Missing.md")):
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
