"""A disk that forgets what was not synced: from the record of a run (DSOPT_FAULT=record=FILE) every state in which a power
cut may leave a folder.

A file's data last once the file is synced, a name once its folder is. Until then a folder has a prefix of its changes, a
file a prefix of its writes (pages apart), or all of them but one.
"""
from __future__ import annotations

import hashlib
import itertools
import os
import random

PAGE = 4096


class File:
    def __init__(self, content: bytes = b""):
        self.base, self.changes, self.synced = content, [], 0

    def change(self, *change) -> None:
        self.changes.append(change)

    def write(self, offset: int, data: bytes) -> None:
        for begin in range(0, len(data), PAGE):
            self.change("write", offset + begin, data[begin:begin + PAGE])

    def choices(self) -> list[tuple[int, int]]:
        """(how many changes, which one of them is missing or -1)"""
        count = len(self.changes)
        prefixes = [(kept, -1) for kept in range(self.synced, count + 1)]
        return prefixes + [(count, missing) for missing in range(self.synced, count - 1) if self.changes[missing][0] == "write"]

    def content(self, choice: tuple[int, int]) -> bytes:
        kept, missing = choice
        data = bytearray(self.base)
        for index, (what, place, *rest) in enumerate(self.changes[:kept]):
            size = place + len(rest[0]) if what == "write" else place
            if what == "truncate":
                del data[size:]
            data.extend(bytes(max(size - len(data), 0)))
            if what == "write" and index != missing:
                data[place:size] = rest[0]
        return bytes(data)


class Folder:
    def __init__(self):
        self.base, self.changes, self.synced = {}, [], 0

    def change(self, *change) -> None:
        self.changes.append(change)

    def entries(self, kept: int | None = None) -> dict:
        names = dict(self.base)
        for what, one, other in self.changes[:kept]:
            if what == "add":
                names[one] = other
            elif what == "remove":
                names.pop(one)
            elif what == "rename":
                names[other] = names.pop(one)
            else:
                names[one], names[other] = names[other], names[one]
        return names


class Disk:
    """What lies under `root`; all of it as it is now has lasted."""

    def __init__(self, root: str):
        self.root, self.inodes, self.paths, self.folders = root, {}, {}, set()
        self.top = self._read(root)

    def _read(self, path: str):
        made = Folder() if os.path.isdir(path) else File(open(path, "rb").read())
        inode = os.stat(path).st_ino
        self.inodes[inode] = made
        self._called(inode, path, isinstance(made, Folder))
        if isinstance(made, Folder):
            made.base = {name: self._read(f"{path}/{name}") for name in os.listdir(path)}
        return made

    def _called(self, inode: int, path: str, is_folder: bool) -> None:
        """The name under which a file or folder was first seen."""
        self.paths[inode] = os.path.relpath(path, self.root)
        (self.folders.add if is_folder else self.folders.discard)(inode)

    def _place(self, path: str) -> tuple[Folder, str] | None:
        """The folder that a name is in; None outside the root."""
        path = os.path.normpath(path)
        if not path.startswith(self.root + "/"):
            return None
        folder, *parts = self.top, *path[len(self.root) + 1:].split("/")
        for part in parts[:-1]:
            folder = folder.entries()[part]
        return folder, parts[-1]

    def _name(self, what: str, one: str, other: str) -> None:
        first, second = self._place(one), self._place(other)
        if not first and not second:
            return
        if not first or not second or first[0] is not second[0]:
            raise ValueError(f"{what} {one} -> {other}: not within one folder")
        first[0].change(what, first[1], second[1])

    def apply(self, what: str, text: str, data: bytes) -> None:
        """One line of the record."""
        if what in ("create", "mkdir"):
            inode, path = text.split(" ", 1)
            self._called(int(inode), path, what == "mkdir")
            if place := self._place(path):
                made = self.inodes[int(inode)] = File() if what == "create" else Folder()
                place[0].change("add", place[1], made)
            else:
                self.inodes.pop(int(inode), None)
        elif what in ("unlink", "rmdir"):
            if place := self._place(text):
                place[0].change("remove", place[1], None)
        elif what in ("rename", "exchange"):
            self._name(what, *text.split(" -> "))
        elif what != "point":
            number, *values = map(int, text.split())
            if (changed := self.inodes.get(number)) is None:
                return
            if what == "fsync":
                changed.synced = len(changed.changes)
            elif what == "write":
                changed.write(values[0], data)
            else:
                changed.change(what, values[0])

    def _trees(self, node, generator):
        """All of what `node` may be: dicts of folders, bytes of files; one at random with a generator."""
        if isinstance(node, File):
            choices = node.choices()
            for choice in [generator.choice(choices)] if generator else choices:
                yield node.content(choice)
            return
        prefixes = range(node.synced, len(node.changes) + 1)
        for kept in [generator.choice(prefixes)] if generator else prefixes:
            names = node.entries(kept)
            for values in itertools.product(*[list(self._trees(child, generator)) for child in names.values()]):
                yield dict(zip(names, values))

    def count(self, node=None) -> int:
        node = node or self.top
        if isinstance(node, File):
            return len(node.choices())
        total = 0
        for kept in range(node.synced, len(node.changes) + 1):
            product = 1
            for child in node.entries(kept).values():
                product *= self.count(child)
            total += product
        return total

    def states(self, most: int, generator: random.Random):
        """All states after a power cut now, or so many of them at random."""
        if self.count() <= most:
            yield from self._trees(self.top, None)
        else:
            for _ in range(most):
                yield from self._trees(self.top, generator)


def lines_of(record: str):
    """(change, text, data) of each line."""
    data = open(record, "rb").read()
    place = 0
    while place < len(data):
        end = data.index(b"\n", place)
        what, text = data[place:end].decode().split(" ", 1)
        place = end + 1
        size = int(text.split()[2]) if what == "write" else 0
        yield what, text, data[place:place + size]
        place += size


def digest(tree) -> bytes:
    hashed = hashlib.sha256()
    if isinstance(tree, bytes):
        hashed.update(b"file" + tree)
    else:
        for name in sorted(tree):
            hashed.update(b"name" + name.encode() + b"\0" + digest(tree[name]))
    return hashed.digest()


def write(tree, path: str) -> None:
    if isinstance(tree, bytes):
        with open(path, "wb") as file:
            file.write(tree)
        return
    os.mkdir(path)
    for name, child in tree.items():
        write(child, f"{path}/{name}")
