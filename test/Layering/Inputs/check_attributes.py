"""Discardable attributes are those of docs/Attributes.md: what is left of them, and why each is no inherent attribute of an operation.

usage: check_attributes.py SOURCE. Prints what only one of the two has, and a wrong count; fails if there is anything."""
import pathlib
import re
import sys

# Names of a dialect of ours, wherever the sources have them as a constant or in a call.
OURS = r"(?:graph|dist|exec|dsopt)\.[a-z_]+"
CONSTANT = re.compile(rf'\bk\w+Attr = "({OURS})"')
CALL = re.compile(r'\b(?:[sg]et|has|remove)(?:Discardable|Arg|Result)?Attr(?:OfType(?:<[^>]*>)?)?\((?:[^"()]*, )?"([\w.]+)"')
# Inherent attributes have a name in an operation's definition; those of other dialects are theirs.
INHERENT = re.compile(r":\$(\w+)")
OTHERS = re.compile(r"(?:llvm|gpu|nvvm|arith)\.|no_inline$")
ROW = re.compile(rf"^\| `({OURS})` \|", re.MULTILINE)
COUNT = re.compile(r"^\*\*(\d+)\*\* are left", re.MULTILINE)


def used(source):
    """Names, each with a place that has it."""
    found = {}
    inherent = set()
    for room in ("lib", "include", "tools", "examples"):
        for path in sorted((source / room).rglob("*.td")):
            inherent |= set(INHERENT.findall(path.read_text()))
    for room in ("lib", "include", "tools", "examples"):
        for path in sorted((source / room).rglob("*")):
            if path.suffix not in (".cpp", ".h") or (source / "lib" / "Runtime") in path.parents:
                continue
            text = path.read_text()
            names = CONSTANT.findall(text)
            names += [name for name in CALL.findall(text) if name not in inherent and not OTHERS.match(name)]
            for name in names:
                found.setdefault(name, path.relative_to(source).as_posix())
    return found


def main(source):
    text = (source / "docs" / "Attributes.md").read_text()
    rows, found = ROW.findall(text), used(source)
    wrong = [f"{found[name]}: {name} is a discardable attribute that docs/Attributes.md does not have" for name in sorted(set(found) - set(rows))]
    wrong += [f"docs/Attributes.md: {name} is no discardable attribute of the sources" for name in sorted(set(rows) - set(found))]
    wrong += [f"docs/Attributes.md: {name} has two rows" for name in sorted({name for name in rows if rows.count(name) > 1})]
    said = [int(count) for count in COUNT.findall(text)]
    if said != [len(rows)]:
        wrong.append(f"docs/Attributes.md: says that {said} are left, its table has {len(rows)}")
    print("\n".join(wrong) or f"{len(rows)} discardable attributes, each with its row")
    return bool(wrong)


sys.exit(main(pathlib.Path(sys.argv[1])))
