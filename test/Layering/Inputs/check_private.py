"""Private names of other packages are reached in python/dsopt/_compat.py, and nowhere else in the package.

usage: check_private.py SOURCE

A private name begins with one underscore. It is the package's own where some class or module of it defines it; what
_compat.py reaches is not, but on self.
"""
import ast
import os
import sys

COMPAT = "_compat.py"
#: Private in spelling only: documented for everyone.
PUBLIC = {"_fields", "_asdict", "_replace", "_make", "_getframe"}
#: Functions that take an attribute's name.
TAKE_NAMES = {"getattr", "hasattr", "setattr", "delattr"}


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in PUBLIC


def of_self(node):
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def own_names(tree):
    """What a file defines: names of its scopes, and attributes of self."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_self(node):
            yield node.attr


def reached(tree):
    """Line, private name, how it is written, and whether it is one of self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.lineno, node.attr, ast.unparse(node), of_self(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TAKE_NAMES and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and is_private(name.value):
                yield node.lineno, name.value, ast.unparse(node), ast.unparse(node.args[0]) in ("self", "cls")
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            path = [part for part in node.slice.value.split(".") if is_private(part)]  # sys.modules["torch._tensor"], vars(x)["_y"]
            yield from ((node.lineno, part, ast.unparse(node), ast.unparse(node.value) == "self.__dict__") for part in path)


def imported(tree):
    """Line and private name of what is imported from elsewhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [*(node.module or "").split("."), *(one.name for one in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for one in node.names for part in one.name.split(".")]
        else:
            continue
        yield from ((node.lineno, name, ast.unparse(node)) for name in names if is_private(name))


def roots(tree):
    """Names that an import of another package binds: all that hangs on them is that package's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) or isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (one.asname or one.name.partition(".")[0] for one in node.names)


def root_of(text):
    return text.partition(".")[0]


def main():
    folder = os.path.join(sys.argv[1], "python", "dsopt")
    trees = {}
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(place, name)
                with open(path) as file:
                    trees[os.path.relpath(path, folder)] = ast.parse(file.read())
    compat = trees.pop(COMPAT)
    own = {name for tree in trees.values() for name in own_names(tree)}
    # A dotted name in a string of _compat.py is one that it reaches, as _reach takes them.
    foreign = {part for node in ast.walk(compat) if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value
               for part in node.value.split(".") if is_private(part)} | {name for _, name, _, _ in reached(compat)}
    wrong = []
    for path, tree in sorted(trees.items()):
        others = set(roots(tree))
        for line, name, text, on_self in reached(tree):
            if root_of(text) in others or name not in own or name in foreign and not on_self:
                wrong.append((path, line, text))
        wrong += [(path, line, text) for line, _, text in imported(tree)]
    for path, line, text in wrong:
        print(f"python/dsopt/{path}:{line}: {text}: a private name of another package, which {COMPAT} should reach")
    sys.exit(bool(wrong))


main()
