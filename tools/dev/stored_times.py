"""How long each test took, kept beside the other caches so that another clone begins with the longest, too."""
import os
import shutil
import tempfile

NAME = ".lit_test_times.txt"


def path_in(cache, build, folder):
    """Of a suite, named by where it lies in the build."""
    return os.path.join(cache, "times", os.path.relpath(folder, build).replace(os.sep, "-") + ".txt")


def copy(source, target):
    """Whole or not at all: other clones read and write at the same time."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=os.path.dirname(target))
    os.close(descriptor)
    shutil.copyfile(source, part)
    os.replace(part, target)


def take(cache, build, folders):
    """For suites that have not run here yet."""
    for folder in folders:
        source, target = path_in(cache, build, folder), os.path.join(folder, NAME)
        if os.path.exists(source) and not os.path.exists(target):
            copy(source, target)


def keep(cache, build, folders):
    for folder in folders:
        if os.path.exists(os.path.join(folder, NAME)):
            copy(os.path.join(folder, NAME), path_in(cache, build, folder))
