"""The runtime meets the system through System.h alone: no object outside System and Kernels refers to what opens, reads,
changes or connects something by itself; and every point of Points.def is in the code, every one of the code in the table.

usage: check_system.py SOURCE OBJECTS. Prints each reference and each point that is only in one of both; fails if there is
any."""
import pathlib
import re
import subprocess
import sys

# Of the C library; with 64 behind them, too.
CALLS = set("""open openat creat close read write pread pwrite preadv pwritev readv writev fsync fdatasync ftruncate truncate
posix_fallocate fallocate fstat fstatvfs statvfs stat lstat fstatat flock lockf rename renameat renameat2 unlink unlinkat remove mkdir mkdirat
rmdir link linkat symlink symlinkat chmod fchmod chown fchown mkstemp mkostemp mkdtemp tmpfile sendfile copy_file_range
mmap munmap madvise memfd_create shm_open shm_unlink socket bind listen connect accept accept4 send sendto sendmsg recv recvfrom
recvmsg poll ppoll select epoll_wait fork vfork posix_spawn popen system pipe pipe2 fopen freopen fdopen""".split())
# Of the C++ library: what opens a file, and what changes folders.
OPENS = re.compile(r"_ZNSt13basic_filebufI\w+E4openE|_ZNSt1[34]basic_[io]?fstream\w+C1E|_ZNSt3?10filesystem"
                   r"(10copy_file|4copy|6remove|10remove_all|6rename|16create_director|18create_directories|11resize_file|"
                   r"11permissions|14create_symlink|16create_hard_link|15last_write_time)")
# Text that is read whole: what the kernel says in /proc and /sys, another run's log, and what its best evaluation was.
ALLOWED = {file: {"ifstream"} for file in ("Comm/Rendezvous.cpp", "Core/Trace.cpp", "Driver/BestEvaluation.cpp", "Driver/Compare.cpp", "Driver/Cpus.cpp",
                                           "Driver/RankPlaces.cpp", "Driver/RankRun.cpp")}


def references(source, objects):
    for path in sorted(objects.rglob("*.o")):
        room = path.relative_to(objects).parts[0]
        if room in ("System", "Kernels"):
            continue
        listed = subprocess.run(["nm", "--undefined-only", "--format=posix", path], capture_output=True, text=True, check=True)
        file = f"{room}/{path.stem}"
        for symbol in sorted({line.split()[0].split("@")[0] for line in listed.stdout.splitlines() if line}):
            call = "ifstream" if "ifstream" in symbol or "basic_filebuf" in symbol else re.sub("64$", "", symbol)
            if (call in CALLS or OPENS.search(symbol)) and call not in ALLOWED.get(file, ()):
                yield f"lib/Runtime/{file}: calls {symbol}, which System.h is there for"


def points(source):
    table = set(re.findall(r'^DSOPT_POINT\("([\w.]+)"\)', (source / "include/dsopt/Runtime/Points.def").read_text(), re.M))
    used = {}
    for folder in ("lib", "tools", "include"):
        for path in sorted((source / folder).rglob("*.cpp")) + sorted((source / folder).rglob("*.h")):
            if path.name != "Fault.h":
                for name in re.findall(r'fault::point\(\s*"([^"]+)"', path.read_text()):
                    used.setdefault(name, path.relative_to(source))
    yield from (f"Points.def: {name} is nowhere in the code" for name in sorted(table - used.keys()))
    yield from (f"{used[name]}: {name} is not in Points.def" for name in sorted(used.keys() - table))


def main(source, objects):
    wrong = [*references(source, objects), *points(source)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
