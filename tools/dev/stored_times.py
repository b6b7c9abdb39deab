"""How long each test took, kept beside the other caches so that another clone begins with the longest, too."""
import os
import tempfile

NAME = ".lit_test_times.txt"


def path_in(cache, build, folder):
    """Of a suite, named by where it lies in the build."""
    return os.path.join(cache, "times", os.path.relpath(folder, build).replace(os.sep, "-") + ".txt")


def read(path):
    """lit's lines, by test: seconds, below 0 where it failed."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return {name.strip(): seconds for seconds, name in (line.split(maxsplit=1) for line in file)}


def write(times, path):
    """Whole or not at all: other clones read and write at the same time."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=os.path.dirname(path))
    with open(descriptor, "w") as file:
        file.writelines(f"{seconds} {name}\n" for name, seconds in times.items())
    os.replace(part, path)


def take(cache, build, folders):
    """For tests that have not run here yet."""
    for folder in folders:
        own = os.path.join(folder, NAME)
        known = read(path_in(cache, build, folder))
        if known:
            write({**known, **read(own)}, own)


def keep(cache, build, folders):
    for folder in folders:
        stored = path_in(cache, build, folder)
        write({**read(stored), **read(os.path.join(folder, NAME))}, stored)
