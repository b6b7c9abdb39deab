"""Each room of lib has a README that names all of its files, those of its table by what their first line says.

usage: check_rooms.py SOURCE. Prints what is missing, gone or said otherwise; fails if anything is."""
import pathlib
import re
import sys

FIRST_LINE = re.compile(r"//===-+ \S+ - (.*?) -*(?:\*- .*? -\*-*)?===//")
ROW = re.compile(r"^\| `([^`]+)` \| (.*) \|$", re.MULTILINE)


def files_of(source, room):
    """Files by name, without those that say what passes there are."""
    found = {}
    for folder in (source / "lib" / room, source / "include" / "dsopt" / room):
        for path in sorted(folder.glob("*")) if folder.is_dir() else []:
            if path.suffix in (".cpp", ".h", ".td") and path.stem != "Passes":
                found.setdefault(path.stem, []).append(path)
    return found


def first_line(path):
    found = FIRST_LINE.match(path.read_text().split("\n", 1)[0])
    return found.group(1).rstrip(" -") if found else ""


def problems_of(source, room):
    readme = source / "lib" / room / "README.md"
    if not readme.exists():
        yield "has no README.md"
        return
    text, files = readme.read_text(), files_of(source, room)
    for name in sorted(set(files) - set(re.findall(r"`([^`]+)`", text))):
        yield f"README.md does not name {name}: {first_line(files[name][0])}"
    for name, said in ROW.findall(text):
        lines = [first_line(path) for path in files.get(name, [])]
        if said not in lines:
            yield f"README.md says of {name} '{said}', " + (f"its first line '{lines[0]}'" if lines else "which is not there")


def main(source):
    rooms = sorted({path.parent.relative_to(source / "lib") for path in (source / "lib").rglob("*.cpp")})
    problems = [f"lib/{room}: {problem}" for room in rooms for problem in problems_of(source, room)]
    print("\n".join(problems or [f"{len(rooms)} rooms"]))
    return 1 if problems or not rooms else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
