"""Runs dsopt and its peers in turn on the same weights and tokens; prints a table of ratios.

usage: ./dev bench [-install] [-size=tiny,s6x512,gpt2] [-precision=fp32,bf16] [-peers=eager,compile,jax,deepspeed] [...]
-install makes the peers' environment in the build folder. A peer that is not installed is left out with a line that
says so; without any, dsopt's own figures are printed. docs/Performance.md says what the columns mean. The status is 1
where losses differ.
"""
import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import gpt
from measure import Program, run_peer
from table import HEAD, efficiency_line, training_line, update_lines

MODULES = {"eager": "torch", "compile": "torch", "budget": "torch", "jax": "jax", "deepspeed": "deepspeed"}
DSOPT_ADAMW = ["-optimizer=adamw", f"-lr={gpt.ADAMW['lr']}", "-betas=" + ",".join(map(str, gpt.ADAMW["betas"])),
               f"-eps={gpt.ADAMW['eps']}", f"-weight-decay={gpt.ADAMW['weight_decay']}"]


def words_of(choices):
    """The type of an argument that is some of the choices, separated by commas."""
    def split(text):
        found = [word for word in text.split(",") if word]
        unknown = [word for word in found if word not in choices]
        if unknown:
            raise argparse.ArgumentTypeError(f"got {unknown[0]}, expected some of {','.join(choices)}")
        return found
    return split


def arguments(words=None):
    parser = argparse.ArgumentParser(prog="dev bench", allow_abbrev=False)
    add = parser.add_argument
    add("--build", required=True, help="dsopt's build folder (./dev passes it)")
    add("-install", action="store_true", help="install the peers into BUILD/peers, and end")
    add("-size", type=words_of(gpt.SIZES), default=["tiny", "s6x512"], help="of " + ",".join(gpt.SIZES))
    add("-precision", type=words_of(["fp32", "bf16"]), default=["fp32", "bf16"])
    add("-peers", type=words_of(MODULES), default=[peer for peer in MODULES if peer != "budget"], help="of " + ",".join(MODULES) + "; empty: dsopt alone")
    add("-zero", type=words_of("0123"), default=["1", "3"], help="ZeRO stages to run on 2 ranks with 1 thread each, beside deepspeed; may be empty")
    add("-recompute", default=["none"], type=lambda text: text.split(","), help="what a process alone computes again, a row for each of none, full, or a size: what that much -device-memory makes auto choose")
    add("-offload", type=words_of(["cpu", "nvme"]), default=[], help="where to keep the optimizer's state (and under ZeRO-3 parameters), in rows of their own")
    add("-nvme-path", help="folder for -offload=nvme (default: in the build folder)")
    add("-rounds", type=int, default=3, help="pairs of runs, of which medians are printed")
    add("-steps", type=int, default=7, help="of a run; the median leaves out the first two")
    add("-threads", type=int, default=2, help="of a process alone")
    add("-update", type=int, default=100_000_000, help="parameters of the AdamW benchmark; 0: none")
    add("-peer-python", default=os.environ.get("DSOPT_PEER_PYTHON"), help="the peers' Python (default: DSOPT_PEER_PYTHON or BUILD/peers)")
    add("-raw", help="where raw rows are added as JSON lines (default: BUILD/bench.jsonl)")
    add("-fp32-tolerance", type=float, default=1e-3, help="largest relative difference of losses that is the same training")
    add("-bf16-tolerance", type=float, default=2e-2)
    args = parser.parse_args(words)
    args.build = os.path.abspath(args.build)
    args.folder = os.path.join(args.build, "bench")
    args.dsopt = os.path.join(args.build, "bin", "dsopt")
    args.peer_python = args.peer_python or os.path.join(args.build, "peers", "bin", "python")
    args.nvme_path = os.path.abspath(args.nvme_path or os.path.join(args.folder, "nvme"))
    # What runs on 2 ranks: a stage, and where what it keeps lies.
    args.layouts = args.zero + [f"{zero}+{place}" for zero in args.zero if zero != "0" for place in args.offload]
    args.raw = args.raw or os.path.join(args.build, "bench.jsonl")
    return args


def install(args):
    """One package after the other, so that one that cannot be had does not hinder the others."""
    environment = os.path.join(args.build, "peers")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    # DeepSpeed builds with it what reads and writes disks.
    library = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "libaio-dev"]
    if not os.path.exists("/usr/include/libaio.h") and (os.geteuid() or subprocess.run(library).returncode):
        print(f"libaio-dev is not installed ({' '.join(library)}): DeepSpeed's rows of -offload=nvme will be missing")
    for packages in (["torch", "numpy", "onnx", "onnxscript"], ["jax"], ["setuptools", "wheel"], ["deepspeed", "ninja"]):
        command = [os.path.join(environment, "bin", "pip"), "install", "-q", "--disable-pip-version-check", *packages]
        if subprocess.run(command, env={**os.environ, "DS_BUILD_OPS": "0"}).returncode:
            print(f"{packages[0]} cannot be installed: its rows will be missing")


def has(args, module):
    command = [args.peer_python, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"]
    return os.path.exists(args.peer_python) and subprocess.run(command, capture_output=True).returncode == 0


def environment(args):
    """What a peer builds for itself is kept in the build folder; what it builds with lies beside its Python."""
    return {"TORCH_EXTENSIONS_DIR": os.path.join(args.folder, "extensions"), "DS_ACCELERATOR": "cpu",
            "PATH": os.path.dirname(args.peer_python) + os.pathsep + os.environ["PATH"]}


def offload_options(layout):
    """dsopt's for a layout as "3+cpu"."""
    zero, _, place = layout.partition("+")
    return [f"-zero={zero}", *([f"-offload-optimizer={place}"] if place else []), *([f"-offload-params={place}"] if place and zero == "3" else [])]


def recompute_options(recompute):
    """dsopt's for none, full, or the bytes that `auto` has, and the row's name."""
    if recompute in ("none", "full"):
        return [f"-recompute={recompute}"], "again full" if recompute == "full" else ""
    return ["-recompute=auto", f"-device-memory={recompute}"], f"in {recompute}"


def peer_command(args, peer, size, precision, layout):
    """What to run and in which environment; on 2 ranks with one thread each if `layout` is given."""
    words = ["--size", size, "--steps", str(args.steps), "--precision", precision]
    env = environment(args)
    if layout is None:
        script, mode = ("jax_gpt.py", "jit") if peer == "jax" else ("torch_gpt.py", peer)
        env["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(args.folder, "inductor", size + precision)
        return [args.peer_python, os.path.join(here, script), mode, *words, "--threads", str(args.threads)], env
    env["OMP_NUM_THREADS"] = "1"
    zero, _, place = layout.partition("+")
    if place:
        words += ["--offload", place, "--nvme", args.nvme_path]
    return [args.peer_python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", os.path.join(here, "torch_gpt.py"),
            "zero" + zero, *words, "--threads", "1"], env


def exported(args, size):
    """The model and its data, written again where the scripts that make them changed or more steps are wanted."""
    folder = os.path.join(args.folder, size)
    model, data, stamp = (os.path.join(folder, name) for name in ("model.onnx", "batches.npz", "stamp"))
    key = hashlib.sha256(b"".join(open(os.path.join(here, name), "rb").read() for name in ("gpt.py", "torch_gpt.py"))).hexdigest()
    steps, made_by = open(stamp).read().split() if os.path.exists(stamp) else ("0", "")
    if made_by != key or int(steps) < args.steps:
        if not (has(args, "torch") and has(args, "onnxscript")):
            sys.exit(f"{size}: PyTorch, which exports the model, is not installed for {args.peer_python}: ./dev bench -install")
        command = [args.peer_python, os.path.join(here, "torch_gpt.py"), "export", "--size", size, "--steps", str(args.steps), "--out", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        open(stamp, "w").write(f"{args.steps} {key}")
    return model, data


class Raw:
    """The raw rows. All of one call carry the time at which it began."""

    def __init__(self, path):
        self.file, self.began = open(path, "a", buffering=1), time.strftime("%Y-%m-%dT%H:%M:%S")

    def write(self, **row):
        row = {"began": self.began, **row}
        self.file.write(json.dumps(row) + "\n")
        return row


def compare(args, program, data, size, precision, layout, zero, peer, raw):
    """Rounds of dsopt and one peer in turn, and their line; whether the losses agree."""
    rows = []
    options = [f"-nvme-path={args.nvme_path}"] if zero and zero.endswith("nvme") else []
    _, _, _, columns, lines, _ = gpt.SIZES[size]
    same = {"kind": "training", "size": size, "precision": precision, "layout": layout, "against": peer, "steps": args.steps,
            "threads": 1 if zero else args.threads, "tokens": columns * lines * (2 if zero else 1),
            "tolerance": args.fp32_tolerance if precision == "fp32" else args.bf16_tolerance}
    for number in range(args.rounds):
        ours, why = program.train(data, args.steps, options)
        if not ours:
            sys.exit(f"{program.path}: {why}")
        measured = {"dsopt": {**ours, **{f"compile_{when}_s": value for when, value in program.compile_s.items()}}}
        if peer:
            if peer in ("compile", "budget") and number == 0:
                shutil.rmtree(os.path.join(args.folder, "inductor", size + precision), ignore_errors=True)
            measured[peer], why = run_peer(*peer_command(args, peer, size, precision, zero))
            if not measured[peer]:
                print(f"{size} {precision} {layout} {peer}: left out ({why})", flush=True)
                return True
        rows += [raw.write(**same, round=number, who=who, **row) for who, row in measured.items()]
    line, agree = training_line(rows)
    print(line, flush=True)
    return agree


def compare_training(args, size, raw):
    """The lines of one size; whether all losses agree, and lines for the end of the table."""
    model, data = exported(args, size)
    agree, notes = True, []
    for precision in args.precision:
        for zero, recompute in [*((None, choice) for choice in args.recompute), *((zero, "none") for zero in args.layouts)]:
            asked = [peer for peer in args.peers if (peer == "deepspeed") == (zero is not None)]
            if args.peers and not asked:
                continue
            again, layout = recompute_options(recompute)
            layout = f"zero {zero}" if zero else layout
            placed = [f"-threads={args.threads}", *again] if zero is None else ["-threads=1", "-dp=2", *offload_options(zero)]
            options = [f"-data={data}", *DSOPT_ADAMW, *placed, *(["-precision=bf16"] if precision == "bf16" else [])]
            name = "-".join(["train", precision, *layout.split()])
            program = Program(args.dsopt, model, os.path.join(args.folder, size, name), options, args.rounds)
            if program.error:
                print(f"{size} {precision} {layout}: left out ({program.error})", flush=True)
                continue
            for peer in [peer for peer in asked if peer in args.installed] or [None]:
                agree = compare(args, program, data, size, precision, layout, zero, peer, raw) and agree
            if not layout:
                report = program.report(data, args.steps)
                notes.append(efficiency_line(raw.write(kind="efficiency", size=size, precision=precision, gflop=report.gflop,
                                                       rate=report.rate, efficiency=report.efficiency)))
    return agree, notes


def compare_update(args, raw):
    """dsopt's update of one big parameter, of which a step reads some rows, and PyTorch's and DeepSpeed's AdamW."""
    script = os.path.join(here, "adamw.py")
    model, data = (os.path.join(args.folder, f"adamw{args.update}.{ending}") for ending in ("onnx", "npz"))
    if not os.path.exists(data):
        subprocess.run([sys.executable, script, "model", "--parameters", str(args.update), "--out", model, "--data", data], check=True)
    program = Program(args.dsopt, model, os.path.join(args.folder, "adamw"), [f"-data={data}", f"-threads={args.threads}", *DSOPT_ADAMW])
    if program.error:
        sys.exit(f"{model}: {program.error}")
    peers = [mode for mode, peer in (("torch", "eager"), ("deepspeed", "deepspeed")) if peer in args.installed]
    rows = []
    for number in range(args.rounds):
        ms = {"dsopt": program.report(data, args.steps + 2).ms("update")}
        for peer in list(peers):
            command = [args.peer_python, script, peer, "--parameters", str(args.update), "--threads", str(args.threads)]
            theirs, why = run_peer(command, environment(args))
            if theirs:
                ms[peer] = 1e3 * theirs["step_s"]
            else:
                print(f"AdamW of {peer}: left out ({why})")
                peers.remove(peer)
        rows.append(raw.write(kind="update", parameters=args.update, threads=args.threads, round=number, ms=ms))
    print("\n".join(update_lines(rows)), flush=True)


def main():
    args = arguments()
    if args.install:
        return install(args)
    os.makedirs(args.nvme_path if "nvme" in args.offload else args.folder, exist_ok=True)
    args.installed = [peer for peer in args.peers if has(args, MODULES[peer])]
    for peer in args.peers:
        if peer not in args.installed:
            print(f"{peer}: left out, {MODULES[peer]} is not installed for {args.peer_python} (./dev bench -install)")
    raw, agree, notes = Raw(args.raw), True, []
    if args.size:
        print(HEAD, flush=True)
    for size in args.size:
        same, said = compare_training(args, size, raw)
        agree, notes = agree and same, notes + said
    print("\n".join(notes), end="\n" if notes else "")
    if args.update:
        compare_update(args, raw)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
