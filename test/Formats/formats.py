"""Old files: where they lie, how a copy of one is changed so that only the change is wrong, and what a test demands of each.

Inputs/vN has what the tools of one day wrote (make_fixtures.py). A test says of each of these folders what its file gets: READ, or
the words that it is refused with. Whoever changes a format changes that line, and adds a folder of new files; the old ones stay.
"""
import json
import lzma
import os
import struct
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(FOLDER))
sys.path[:0] = [os.path.join(SOURCE, "test", "Execution"), os.path.join(SOURCE, "python")]

from dsopt._universal import _manifest_text  # noqa: E402
from dsopt._xxh3 import xxh3  # noqa: E402
from runs import check, execute, relative  # noqa: E402

__all__ = ["READ", "check", "embed", "execute", "fixture", "footer_of", "near", "packed", "read_manifest", "refused", "relative", "write_manifest"]

READ = None
#: As Footer.h has it: offset, size and hash of two programs, the runtime's hash, that of all these, magic, version.
_FOOTER, _ALIGNMENT = struct.Struct("<8Q8sQ"), 4096
#: The processor that programs are compiled for: fp32 has the same bits on all that have it.
ARCH = "-arch=x86-64-v3"


def fixture(version, *names):
    path = os.path.join(FOLDER, "Inputs", version, *names)
    check(os.path.exists(path), f"{path} is not there: old files stay when new ones are made")
    return path


def packed(version, name):
    """The bytes of a fixture that is kept compressed."""
    with lzma.open(fixture(version, name)) as file:
        return file.read()


def read_manifest(checkpoint):
    with open(os.path.join(checkpoint, "manifest.json"), encoding="utf-8") as file:
        return json.load(file)["manifest"]


def write_manifest(checkpoint, manifest):
    """As dsopt writes it, under its hash: what is refused then is not its damage."""
    text = _manifest_text(manifest)
    with open(os.path.join(checkpoint, "manifest.json"), "w", encoding="utf-8") as file:
        file.write(f'{{"manifest":{text},"xxh3":"{xxh3(text.encode())}"}}\n')


def footer_of(executable):
    """Numbers, magic and version of the footer at the end of the executable's bytes."""
    *numbers, magic, version = _FOOTER.unpack(executable[-_FOOTER.size:])
    return numbers, magic, version


def embed(runtime, program, footer, path):
    """An executable of this runtime and an old program: the footer is the old one but for what the runtime's size changes."""
    runtime += bytes(-len(runtime) % _ALIGNMENT)
    _, magic, version = footer_of(footer)
    numbers = [len(runtime), len(program), int(xxh3(program), 16), 0, 0, 0, int(xxh3(runtime), 16)]
    own = int(xxh3(struct.pack("<7Q", *numbers)), 16)
    with open(path, "wb") as file:
        file.write(runtime + program + _FOOTER.pack(*numbers, own, magic, version))
    os.chmod(path, 0o755)
    return path


def near(got, expected, what, bound=1e-5):
    """Losses that were computed anew. Bits may change with the compiler's kernels; a state or a place in the data that was lost is
    far beyond the bound."""
    check(len(got) == len(expected) and relative(got, expected) < bound, f"{what}: losses {got}, expected {expected}")


def refused(command, *words, status=1):
    """What is refused is so in one message with these words, and nothing is done."""
    done = execute(command, status=status)
    text = done.stderr + done.stdout
    check(text.count("error: ") == 1 and all(word in text for word in words), f"{' '.join(command)} says {text}, expected {words}")
    return text
