"""A root folder with a Python and numpy alone, in which a command runs as on a bare machine."""
import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig

import numpy

import gpu

SITE = "/site-packages"
# What is no part of answering: tests and tools of Python's, and what others have installed.
WITHOUT = shutil.ignore_patterns("__pycache__", "test", "tests", "site-packages", "dist-packages", "idlelib", "lib2to3", "tkinter", "ensurepip", "config-*", "*.a")
ENTER = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && enter=$(command -v chroot) && PATH=/bin && exec "$enter" "$0" "$@"'
# Namespaces in which one may mount: a user's, or root's.
FLAGS = ("-Urm", "-m")


def copy_files(root, paths):
    for path in paths:
        copy = root + path
        if not os.path.exists(copy):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy(path, copy)


def libraries_of(paths):
    said = subprocess.run(["ldd", *paths], capture_output=True, text=True).stdout
    return set(re.findall(r"(?:=> )?(/\S+) \(0x", said))


def make(root):
    """Python where it lies here, numpy in SITE, and the libraries of both. A package has to bring the others: of those that Python shares with
    programs only zlib is there, modules that need another one are left out."""
    python, stdlib = os.path.realpath(sys.executable), sysconfig.get_path("stdlib")
    shutil.copytree(stdlib, root + stdlib, ignore=WITHOUT)
    for folder in glob.glob(os.path.dirname(numpy.__file__) + "*"):
        shutil.copytree(folder, os.path.join(root + SITE, os.path.basename(folder)), ignore=WITHOUT)
    modules = glob.glob(root + stdlib + "/lib-dynload/*.so")
    said = {module: subprocess.run(["ldd", module], capture_output=True, text=True).stdout for module in modules}
    for module, text in said.items():
        if any(not name.startswith("libz.") for name, _ in gpu.BARE.findall(text)):
            os.remove(module)
    kept = [module for module in modules if os.path.exists(module)] + glob.glob(root + SITE + "/**/*.so*", recursive=True)
    found = libraries_of([python, *kept]) | libraries_of([path for path in libraries_of([python, *kept]) if "libstdc++" in path])
    copy_files(root, [python, *(path for path in found if not path.startswith(root))])
    for name in ("proc", "dev", "tmp"):
        os.makedirs(os.path.join(root, name))
    return python


def flags(root):
    """How the root can be entered here; none: it cannot."""
    for one in FLAGS:
        if subprocess.run(["unshare", one, "sh", "-c", ENTER, root, "/none"], capture_output=True, text=True).stderr.find("No such file") >= 0:
            return one
    return None


def run(root, how, command, environment):
    """In the root, with nothing of this environment."""
    words = ["unshare", how, "sh", "-c", ENTER, root, *command]
    # The shell needs a path until it has mounted.
    given = [f"{name}={value}" for name, value in environment.items()]
    return subprocess.run(["env", "-i", f"PATH={os.environ['PATH']}", *given, *words], capture_output=True, text=True)
