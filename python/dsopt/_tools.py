"""Finds dsopt's tools and spells their options."""
from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set

_HERE = os.path.dirname(os.path.abspath(__file__))
#: What a warning says of keys of a configuration that writers.py obeys (DeepSpeedKeys.def).
WRITERS = "only the Python package has such writers"


class DsoptError(RuntimeError):
    """What a tool said. `status` is its exit status: 1 the input is wrong, 2 a rank, device or
    disk failed, 3 interrupted."""

    def __init__(self, message: str, status: int = 1):
        super().__init__(message)
        self.status = status


def find_tool(name: str = "dsopt", on_path: bool = True) -> str:
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
    found = shutil.which(name) if on_path else None
    if found:
        return found
    raise DsoptError(f"{name} is not found: build it (./dev build), or set DSOPT_BIN to the folder it is in")


def _become(name: str) -> None:
    """The command that pip puts on PATH: the tool itself, which PATH has only as this command."""
    try:
        path = find_tool(name, on_path=False)
    except DsoptError as error:
        sys.exit(f"{name}: error: {error}")
    os.execv(path, [path, *sys.argv[1:]])


def become_dsopt() -> None:
    _become("dsopt")


def become_report() -> None:
    _become("dsopt-report")


def need(*modules: str) -> None:
    """An ImportError with what to install, where a package that exporting takes is not there."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"exporting a model needs {' and '.join(missing)}, not installed here: pip install "
                          "'dsopt[export]' (from a clone: pip install './python[export]')", name=missing[0])


def _value_text(value: Any) -> str:
    """A value of a dict of options: numbers of lists, tuples and arrays with commas between."""
    value = value.tolist() if hasattr(value, "tolist") else value  # numpy's and PyTorch's
    if isinstance(value, (list, tuple)):
        return ",".join(_value_text(one) for one in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


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
            words += [f"{option}={key}={_value_text(one)}" for key, one in value.items()]
        elif isinstance(value, list):
            words += [f"{option}={one}" for one in value]
        elif isinstance(value, tuple):
            words.append(f"{option}=" + ",".join(str(one) for one in value))
        else:
            words.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return words


def given_values(words: List[str], name: str) -> List[str]:
    """The values of an option among the words of a command line."""
    return [word.split("=", 1)[1] for word in words if word.startswith("-") and word.lstrip("-").startswith(name + "=")]


def given_count(words: List[str], name: str) -> Optional[int]:
    """An option that counts, with its suffix, as the command line has it; whatever else is said by the tool."""
    values = given_values(words, name)
    match = re.fullmatch(r"(\d+)([kKmMgG]?)", values[-1]) if values else None
    return int(match[1]) * 1000 ** " kmg".index(match[2].lower() or " ") if match else None


def given_sizes(words: List[str]) -> Dict[str, List[int]]:
    """The symbolic dimensions that -dim gives several sizes."""
    given = dict(value.split("=", 1) for value in given_values(words, "dim") if "=" in value)
    return {name: [int(size) for size in sizes.split(",") if size.isdigit()]
            for name, sizes in given.items() if "," in sizes}


def given_inputs(words: List[str]) -> Set[str]:
    """The inputs that -input binds to values."""
    return {value.rsplit("=", 1)[0] for value in given_values(words, "input")}


def given_checkpoint(words: List[str]) -> Optional[Dict[str, Any]]:
    """The manifest of the checkpoint that a command line goes on from, with its folder."""
    resume = (given_values(words, "resume") or [""])[-1]
    folder = (given_values(words, "save") or [""])[-1] if resume == "auto" else resume
    if not folder:
        return None
    places = [folder] if os.path.exists(os.path.join(folder, "manifest.json")) else [
        os.path.join(folder, name) for name in sorted(
            (name for name in (os.listdir(folder) if os.path.isdir(folder) else []) if re.fullmatch(r"step-\d+", name)),
            key=lambda name: -int(name[5:]))]
    for place in places:
        try:
            with open(os.path.join(place, "manifest.json")) as file:
                return {**json.load(file)["manifest"], "place": place}
        except (OSError, ValueError, KeyError):
            continue  # the program says what is wrong with it
    return None


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


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Names the file that cannot be written, where Python's error does not."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        temporary = tempfile.gettempdir()
        hint = f" (temporary files are in {temporary}; TMPDIR names another folder)" if path.startswith(temporary + os.sep) else ""
        raise OSError(error.errno, f"{error.strerror or error}{hint}", path) from error


def message_of(text: str) -> str:
    """The error in what a tool wrote, without its name."""
    prefix = "dsopt: error: "
    lines = text.strip().splitlines()
    for at, line in enumerate(lines):
        if line.startswith(prefix):
            return "\n".join([line[len(prefix):], *lines[at + 1:]])
    return text.strip()


def warn(text: str) -> None:
    """A Python warning at the line of the caller's own code."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def spoken(text: str, folder: Optional[str]) -> str:
    """What a tool said, with what lies in a run's temporary folder called as the caller knows it."""
    if not folder:
        return text
    return text.replace(os.path.join(folder, "data.npz"), "data").replace(os.path.join(folder, "eval.npz"), "eval_data")


def pass_on_warnings(text: str, known: Set[str], folder: Optional[str] = None) -> None:
    """Python warnings of what a tool warned about, but for what is `known`, which they join."""
    prefix = "dsopt: warning: "
    text = spoken(text, folder)
    for line in text.splitlines(keepends=True):
        # A line that is still being written comes again.
        if line.startswith(prefix) and line.endswith("\n") and line not in known:
            known.add(line)
            if WRITERS not in line:
                warn(line[len(prefix):-1])


def run_tool(words: List[str], known: Optional[Set[str]] = None, folder: Optional[str] = None) -> str:
    """Runs dsopt and returns what it prints; raises what it says is wrong. Warnings join what is `known`;
    `folder` is what `spoken` takes."""
    done = subprocess.run([find_tool(), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise DsoptError(message_of(spoken(done.stderr, folder)), done.returncode)
    pass_on_warnings(done.stderr, set() if known is None else known, folder)
    return done.stdout
