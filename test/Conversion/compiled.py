"""Libraries that clang makes of LLVM IR, kept among the compiled objects (DSOPT_CACHE) by all that goes into them: a test
whose kernels have not changed compiles nothing, in any build."""
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile


def run(command, text=""):
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr.decode()}")
    return done.stdout.decode()


@functools.cache
def surroundings():
    """The compiler, to the bit, and the processor, which -march=native asks for."""
    path = os.path.realpath(shutil.which("clang"))
    libraries = run(["ldd", path])
    files = [path, *(word for word in libraries.split() if "libLLVM" in word and os.path.isabs(word))]
    stamps = [f"{os.path.realpath(file)} {os.stat(file).st_size} {os.stat(file).st_mtime_ns}" for file in files]
    with open("/proc/cpuinfo") as file:
        processor = sorted({line for line in file if line.startswith(("flags", "model", "cpu family"))})
    return "\n".join([*stamps, *processor])


def compile_ir(arguments, ir, library, sources=()):
    """clang's library of IR from standard input; `sources` are files among the arguments."""
    folder = os.environ.get("DSOPT_CACHE")
    command = ["clang", *arguments, "-o"]
    if not folder:
        run([*command, library], ir)
        return
    parts = [surroundings(), *arguments, ir]
    for source in sources:
        with open(source) as file:
            parts.append(file.read())
    known = os.path.join(folder, hashlib.sha256("\0".join(parts).encode()).hexdigest() + os.path.splitext(library)[1])
    try:
        os.utime(known)  # used just now: not among the first to go
        shutil.copyfile(known, library)
        return
    except FileNotFoundError:
        pass
    run([*command, library], ir)
    os.makedirs(folder, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=folder)
    os.close(descriptor)
    shutil.copyfile(library, part)
    os.replace(part, known)
