"""Outputs of the compiler, of programs and of dsopt-report: whole or not there, devices and FIFOs in place, umask, names.

usage: outputs.py DSOPT"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading

from runs import check, execute, model

dsopt = shutil.which(sys.argv[1])
report = os.path.join(os.path.dirname(dsopt), "dsopt-report")
mlp, data = model("mlp")
folder = tempfile.mkdtemp()


def path(name):
    return os.path.join(folder, name)


train = path("train")
execute([dsopt, mlp, "-dp=2", "-o", train, "-quiet"])


def run(*options):
    return [train, f"-data={data}", "-steps=2", "-quiet", *options]


execute(run(f"-save-weights={path('weights')}", f"-log={path('log.jsonl')}"))


def failed(what, command, message, status=2, **how):
    """Ends with the status and one line that has the message, or with no line at all."""
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, **how)
    check(done.returncode == status, f"{what}: status {done.returncode}, expected {status}\n{done.stderr}")
    if message is None:
        check(not done.stderr, f"{what}: expected no line, got:\n{done.stderr}")
        return
    check(message in done.stderr and done.stderr.count("\n") == 1, f"{what}: expected one line with '{message}', got:\n{done.stderr}")


def places():
    """Devices and FIFOs are written in place, whoever writes: nothing takes their name."""
    fifo = path("fifo")
    os.mkfifo(fifo)
    writers = {"-o": [dsopt, mlp, "-quiet", "-o", fifo], "-emit": [dsopt, mlp, "-emit=exec", "-o", fifo],
               "-emit=obj": [dsopt, mlp, "-emit=obj", "-o", fifo], "-plan": [dsopt, mlp, "-plan", "-o", fifo],
               "-save-weights": run(f"-save-weights={fifo}"), "-save-onnx": run(f"-save-onnx={fifo}"), "-trace": run(f"-trace={fifo}"),
               "dsopt-report": [report, path("log.jsonl"), "-o", fifo]}
    for name, command in writers.items():
        got = []
        reader = threading.Thread(target=lambda: got.append(open(fifo, "rb").read()))
        reader.start()
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode:
            os.close(os.open(fifo, os.O_RDWR | os.O_NONBLOCK))  # lets the reader go
        reader.join(60)
        check(done.returncode == 0, f"{name} to a FIFO: status {done.returncode}\n{done.stderr}")
        check(stat.S_ISFIFO(os.stat(fifo).st_mode), f"{name} replaced a FIFO")
        check(got[0], f"{name} wrote nothing to a FIFO")
        if name == "-save-weights":
            check(got[0] == open(path("weights"), "rb").read(), "a FIFO got other weights than a file")
    null = path("null")
    try:
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        open(null, "wb").close()
    except PermissionError:
        print("devices cannot be made here")
        null = None
    if null:
        for command in ([dsopt, mlp, "-quiet", "-o", null], run(*(f"-{option}={null}" for option in ("save-weights", "save-onnx", "trace", "log")))):
            execute(command)
            check(stat.S_ISCHR(os.stat(null).st_mode), f"a device was replaced by {command}")
    # /dev/stdout is a link to a file here, which keeps its name and its shell.
    with open(path("stdout"), "wb") as out:
        subprocess.run(run("-save-weights=/dev/stdout"), stdout=out, check=True, timeout=60)
    check(os.path.islink("/dev/stdout"), "/dev/stdout was replaced")
    check(open(path("stdout"), "rb").read() == open(path("weights"), "rb").read(), "/dev/stdout got other weights than a file")


def full():
    """What cannot be printed is an error of status 2, and no half file stays."""
    with open("/dev/full", "w") as out:
        for command in ([dsopt, "--help"], [dsopt, mlp, "-emit=graph"], [dsopt, mlp, "-emit=llvm"], [dsopt, mlp, "-plan"],
                        [dsopt, mlp, "-list-parameters"], [dsopt, "-config=help"], [train, "--help"], [train, "--version"],
                        [report, "--help"]):
            failed(" ".join(command), command, "standard output: writing failed: No space left on device", stdout=out)
    for options in (["-quiet"], ["-emit=exec"], ["-emit=obj"], ["-plan=json"]):
        failed(f"{options} -o /dev/full", [dsopt, mlp, *options, "-o", "/dev/full"], "/dev/full: writing failed: No space left on device")

    # A file that may not grow is what a full disk is: status 2, nothing left.
    limited = path("limited")
    os.mkdir(limited)
    limit = "import resource, signal, os, sys; signal.signal(signal.SIGXFSZ, signal.SIG_DFL);" \
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); os.execv(sys.argv[1], sys.argv[1:])"
    for options in (["-emit=exec", "-o", limited + "/exec.mlir"], ["-plan=json", "-o", limited + "/plan.json"],
                    ["-emit=obj", "-o", limited + "/mlp.o"], ["-quiet", "-o", limited + "/train"]):
        failed(f"{options} on a full disk", [sys.executable, "-c", limit, dsopt, mlp, *options], "File too large")
    check(not os.listdir(limited), f"half files: {os.listdir(limited)}")

    # A stack that may be raised is; what may not grow is too small for any program.
    for soft, hard, status in ((65536, 8 << 20, 0), (65536, 65536, 1)):
        limit = f"import resource, os, sys; resource.setrlimit(resource.RLIMIT_STACK, ({soft}, {hard})); os.execv(sys.argv[1], sys.argv[1:])"
        for command in ([dsopt, mlp, "-plan"], [train, f"-data={model('mlp')[1]}", "-steps=1", "-quiet"]):
            done = execute([sys.executable, "-c", limit, *command], status)
            check(("the limit of the stack (ulimit -Hs) is 65536 bytes, expected 262144 or more" in done.stderr) == (status == 1), done.stderr)


def streams():
    """Standard streams that are closed stay apart from files, and a reader that is gone is no crash."""
    output = path("exec.mlir")
    command = [dsopt, mlp, "-emit=exec", "-o", output]
    execute(command)
    expected = open(output).read()
    for closed in (">&-", "<&- >&-", "<&- >&- 2>&-"):
        os.remove(output)
        subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *command], check=True, timeout=60)
        check(open(output).read() == expected, f"other text with {closed}")
    reader, writer = os.pipe()
    os.close(reader)
    for command in ([dsopt, "--help"], [dsopt, mlp, "-emit=graph"], [dsopt, mlp, "-plan"]):
        failed(f"{command} | head", command, None, stdout=writer)
        done = subprocess.run(command, stdout=writer, stderr=writer, timeout=60)
        check(done.returncode == 2, f"{command} 2>&1 | head: status {done.returncode}, expected 2")
    # What it has to say is a warning.
    done = subprocess.run([dsopt, mlp, "-o", path("gone"), f"-log={path('none')}"], stderr=writer, timeout=60)
    check(done.returncode == 0, f"nobody reads a warning: status {done.returncode}")
    os.close(writer)


def names():
    """Long names, '%', a folder for temporary files that is none, a link that waits, a path that is no text."""
    long = path("x" * 250)
    odd = path("a%s%d")
    os.mkdir(odd)
    for output in (long, odd + "/train"):
        execute([dsopt, mlp, "-quiet", "-o", output])
        execute([output, f"-data={data}", "-steps=1", "-quiet", f"-save-weights={output[:-1]}w"])
    failed("a name too long", [dsopt, mlp, "-o", path("x" * 256)], "File name too long", status=1)
    # Linking needs no folder for temporary files: whenever it is killed, nothing stays.
    for place in (odd, path("none")):
        done = subprocess.run([dsopt, mlp, "-quiet", "-o", path("temporary")], env=dict(os.environ, TMPDIR=place, DSOPT_CACHE="off"), timeout=60)
        check(done.returncode == 0, f"TMPDIR={place}: status {done.returncode}")
    check(sorted(os.listdir(odd)) == ["train", "traiw"], f"left in TMPDIR: {os.listdir(odd)}")
    victim, link = path("victim"), path("link")
    open(victim, "w").write("mine")
    os.symlink(victim, link)
    execute(run(f"-save-weights={link}"))
    check(open(victim).read() == "mine" and not os.path.islink(link), "a link at the output's name was followed")
    bytes_path = os.path.join(folder.encode(), b"mod\xff.onnx")
    shutil.copy(mlp, bytes_path)
    failed("a model whose path is no UTF-8", [dsopt.encode(), bytes_path, b"-o", path("odd").encode()], "is not UTF-8", status=1)
    for name in ("a,b.npz", "c[1].npz"):
        shutil.copy(data, path(name))
        execute([train, f"-data={path(name)}", "-steps=1", "-quiet"])


def permissions():
    """The umask is obeyed."""
    for mask, program, other in ((0o077, 0o700, 0o600), (0o027, 0o750, 0o640), (0o022, 0o755, 0o644)):
        made = {path("mode"): [dsopt, mlp, "-quiet", "-o", path("mode")], path("mode.o"): [dsopt, mlp, "-emit=obj", "-o", path("mode.o")],
                path("mode.safetensors"): run(f"-save-weights={path('mode.safetensors')}")}
        for file, command in made.items():
            subprocess.run(command, check=True, umask=mask, timeout=60)
            got = stat.S_IMODE(os.stat(file).st_mode)
            check(got == (program if file == path("mode") else other), f"{file} has mode {got:o} under umask {mask:o}")


places()
full()
streams()
names()
permissions()
left = [name for name in os.listdir(folder) if name.startswith(".dsopt")]
check(not left, f"left behind: {left}")
shutil.rmtree(folder)
print("outputs are whole or not there")
