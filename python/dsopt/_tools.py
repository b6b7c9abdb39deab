"""Finds dsopt's tools and spells their options."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import warnings
from typing import Any, List, Mapping

_HERE = os.path.dirname(os.path.abspath(__file__))


class DsoptError(RuntimeError):
    """What a tool said. `status` is its exit status: 1 the input is wrong, 2 a rank, device or
    disk failed, 3 interrupted."""

    def __init__(self, message: str, status: int = 1):
        super().__init__(message)
        self.status = status


def find_tool(name: str = "dsopt") -> str:
    """The path of a tool: in $DSOPT_BIN (a folder), in the wheel, in the clone's build folder, where
    CMake installed both, or in $PATH."""
    folders = [os.environ.get("DSOPT_BIN"), os.path.join(_HERE, "bin")]
    clone = os.path.dirname(os.path.dirname(_HERE))
    folders.append(os.path.join(os.environ.get("DSOPT_BUILD", os.path.join(clone, "build")), "bin"))
    folders.append(os.path.join(clone, os.pardir, os.pardir, "bin"))  # PREFIX/share/dsopt/python/dsopt
    for folder in folders:
        path = os.path.join(folder, name) if folder else ""
        if path and os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found:
        return found
    raise DsoptError(f"{name} is not found: build it (./dev build), or set DSOPT_BIN to the folder it is in")


def option_words(options: Mapping[str, Any]) -> List[str]:
    """Python's keywords as options: micro_batches=2 is -micro-batches=2, True a flag, False and
    None nothing, a list one option for each of its elements, a dict NAME=VALUE, a tuple A,B."""
    words: List[str] = []
    for name, value in options.items():
        option = "-" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words += [f"{option}={key}={one}" for key, one in value.items()]
        elif isinstance(value, list):
            words += [f"{option}={one}" for one in value]
        elif isinstance(value, tuple):
            words.append(f"{option}=" + ",".join(str(one) for one in value))
        else:
            words.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return words


def config_words(config: Any, folder: str) -> List[str]:
    """-config= of a path or of a dict, which is written into `folder`."""
    if config is None:
        return []
    if isinstance(config, Mapping):
        path = os.path.join(folder, "ds_config.json")
        with open(path, "w") as file:
            json.dump(config, file, indent=1)
        return [f"-config={path}"]
    return [f"-config={os.fspath(config)}"]


def message_of(text: str) -> str:
    """The error in what a tool wrote, without its name."""
    prefix = "dsopt: error: "
    lines = text.strip().splitlines()
    for at, line in enumerate(lines):
        if line.startswith(prefix):
            return "\n".join([line[len(prefix):], *lines[at + 1:]])
    return text.strip()


def pass_on_warnings(text: str) -> None:
    """Python warnings of what a tool warned about."""
    prefix = "dsopt: warning: "
    for line in text.splitlines():
        if line.startswith(prefix):
            warnings.warn(line[len(prefix):], stacklevel=3)


def run_tool(words: List[str]) -> str:
    """Runs dsopt and returns what it prints; raises what it says is wrong."""
    done = subprocess.run([find_tool(), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise DsoptError(message_of(done.stderr), done.returncode)
    pass_on_warnings(done.stderr)
    return done.stdout
