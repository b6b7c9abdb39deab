"""Runs dsopt and its peers in turn on this machine's GPUs, on the same weights and tokens; prints a table of ratios.

usage: ./dev bench-gpu [-size=gpt2-1024,gpt-1.3b] [-peers=eager,compile,fsdp2,deepspeed] [-gpus=N] [...]
On one GPU dsopt is compared with PyTorch eager and torch.compile, on several also with FSDP2 and DeepSpeed. A peer that is not
installed is left out with a line that says so. docs/Performance.md says what the columns mean. The status is 1 where losses differ or layouts have
other weights. For a machine without a compiler: ./dev test-gpu -package.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(os.path.dirname(here), "test", "GPU")]
import bench
import gpt
import gpu
from measure import middle, run_peer, watch

MODULES = {"eager": "torch", "compile": "torch", "fsdp2": "torch", "deepspeed": "deepspeed"}
# TFLOP/s of dense bf16 matrices, as -plan=kernels has them; the first name that is part of the GPU's.
PEAKS = {"H100": 989, "H200": 989, "A100": 312, "B200": 2250, "L40": 181}
# Layouts of two micro-batches that have to have one hash; two ranks share a GPU where there is one.
HASHES = [("once", ["-micro-batches=2"]), ("again full", ["-micro-batches=2", "-recompute=full"]), ("two ranks", ["-dp=2", "-zero=3", "-micro-batches=1"])]
HASH_STEPS = 3
# A row of -report=kernels: calls and milliseconds a step, and what of: batch, heads, rows, columns and the sizes of a head.
ATTENTION = re.compile(r"^ +([\d.]+) +([\d.]+) .*%  (attention|attention_grad)(?: b?f16)? ([\dx]+)( causal)?", re.M)
HEAD = (f"{'':30}{'tokens/s':^25}  {'utilisation':^14}  {'step, ms':^17}  {'GPU, MB':^15}\n"
        f"{'size':11}{'layout':9}{'peer':10}{'dsopt':>9}{'peer':>9}{'ratio':>7}  {'dsopt':>7}{'peer':>7}  "
        f"{'dsopt':>8}{'peer':>9}  {'dsopt':>7}{'peer':>8}  losses differ by")


def arguments(words=None):
    sizes = [*gpt.SIZES, *gpt.GPU_SIZES]
    parser = argparse.ArgumentParser(prog="dev bench-gpu", allow_abbrev=False)
    add = parser.add_argument
    add("--build", required=True, help="dsopt's build folder (./dev passes it)")
    add("-size", type=bench.words_of(sizes), default=list(gpt.GPU_SIZES), help="of " + ",".join(sizes))
    add("-precision", choices=["bf16", "fp32"], default="bf16")
    add("-peers", type=bench.words_of(MODULES), default=list(MODULES), help="of " + ",".join(MODULES) + "; empty: dsopt alone")
    add("-gpus", type=int, help="GPUs to use (default: all); with 2 and more the layouts are -dp with -zero")
    add("-zero", type=bench.words_of("0123"), default=["1", "3"], help="ZeRO stages on several GPUs")
    add("-rounds", type=int, default=2, help="pairs of runs, of which medians are printed")
    add("-steps", type=int, default=12, help="of a run; the median leaves out the first two")
    add("-peak", type=float, help="TFLOP/s of the GPU's dense bf16 matrices (default: by its name)")
    add("-tolerance", type=float, default=2e-2, help="largest relative difference of losses that is the same training")
    add("-peer-python", default=os.environ.get("DSOPT_PEER_PYTHON"), help="the peers' Python (default: DSOPT_PEER_PYTHON, BUILD/peers or this one)")
    add("-folder", help="for weights, tokens and programs (default: BUILD/bench-gpu)")
    add("-soft", action="store_true", help="try it on the device in software")
    args = parser.parse_args(words)
    args.build = os.path.abspath(args.build)
    args.folder = os.path.abspath(args.folder or os.path.join(args.build, "bench-gpu"))
    if not args.peer_python:
        made = os.path.join(args.build, "peers", "bin", "python")
        args.peer_python = made if os.path.exists(made) else sys.executable
    return args


def layouts(gpus, zero):
    """What is measured, as (name, options, ranks)."""
    if gpus == 1:
        return [("", [], 1)]
    return [(f"zero {stage}", [f"-dp={gpus}", f"-zero={stage}"], gpus) for stage in zero]


def program_path(args, size, layout):
    return os.path.join(args.folder, "-".join(["train", size, args.precision, *layout.split()]))


def compile_command(args, size, options, output, arch):
    precision = ["-precision=bf16"] if args.precision == "bf16" else []
    return [os.path.join(args.build, "bin", "dsopt"), os.path.join(args.folder, size + ".onnx"), "-target=cuda", f"-arch={arch}", "-quiet",
            f"-weights={size}.safetensors", bench.DSOPT_ADAMW[0], *precision, *options, "-o", output]


def save_model(args, size):
    """Needs onnx, which dsopt's own environment has: the model without its weights."""
    os.makedirs(args.folder, exist_ok=True)
    path = os.path.join(args.folder, size + ".onnx")
    if not os.path.exists(path):
        script = os.path.join(here, "gpt_onnx.py")
        subprocess.run([os.path.join(args.build, "venv", "bin", "python"), script, path, "--size", size], check=True)
    return path


def compile_program(args, size, name, options, arch):
    """Seconds, or why there is no program."""
    save_model(args, size)
    output = program_path(args, size, name)
    done = watch(compile_command(args, size, options, output, arch))
    return "" if done.status == 0 else done.why()


def data_of(args, size, ranks):
    """Weights, written where they are not there yet, and as many micro-batches a step as there are ranks."""
    os.makedirs(args.folder, exist_ok=True)
    geometry = gpt.sized(size)
    weights, data = os.path.join(args.folder, size + ".safetensors"), os.path.join(args.folder, f"{size}-{ranks}.npz")
    gpt.keep_weights(weights, geometry)
    gpt.save_batches(data, geometry, ranks * args.steps)
    return weights, data


def train(args, program, weights, data, steps, options=()):
    """A run's row, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        done = watch([program, f"-data={data}", f"-weights={weights}", f"-steps={steps}", f"-log={log}", *bench.DSOPT_ADAMW[1:], *options], args.environment)
        if done.status:
            return None, done.why()
        lines = [json.loads(line) for line in open(log)]
    rows = [line for line in lines if "step_ms" in line]
    return {"losses": [row["loss"] for row in rows], "step_s": middle([row["step_ms"] / 1e3 for row in rows]), "first_loss_s": done.first_s,
            "peak_mb": done.peak_mb, "device_mb": max(rows[-1]["peak_bytes"]) / 2**20, "hash": lines[-1]["end"]["weights_hash"]}, ""


def peer_command(args, peer, size, stage, ranks, weights):
    """What to run, and in which environment."""
    mode = {"deepspeed": f"zero{stage}"}.get(peer, peer)
    words = [os.path.join(here, "torch_gpt.py"), mode, "--size", size, "--steps", str(args.steps), "--precision", args.precision, "--device", "cuda",
             "--weights", weights]
    env = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(args.folder, "inductor", size), "DS_ACCELERATOR": "cuda",
           "PATH": os.path.dirname(args.peer_python) + os.pathsep + os.environ["PATH"]}
    if ranks == 1:
        return [args.peer_python, *words], env
    return [args.peer_python, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}", *words], env


def peers_of(peers, stage, ranks):
    """Those that a layout is compared with: FSDP2 slices all, as ZeRO-3 does."""
    if ranks == 1:
        return [peer for peer in peers if peer in ("eager", "compile")]
    return [peer for peer in peers if peer == "deepspeed" or (peer == "fsdp2" and stage == "3")]


def line_of(size, layout, peer, rounds, tokens, utilisation):
    """A line of the table from rounds of (dsopt's row, the peer's or None); ratios are medians of the rounds' ratios. And
    how far the losses differ."""
    def mid(values):
        return sorted(values)[len(values) // 2]

    ours = mid([o["step_s"] for o, _ in rounds])
    text = f"{size:11}{layout:9}{peer or 'none':10}{tokens / ours:9.0f}"
    device = rounds[0][0]["device_mb"]
    if not peer:
        return f"{text}{'-':>9}{'-':>7}  {100 * utilisation / ours:6.1f}%{'-':>7}  {1e3 * ours:8.2f}{'-':>9}  {device:7.0f}{'-':>8}", 0.0
    theirs = mid([t["step_s"] for _, t in rounds])
    ratio = mid([t["step_s"] / o["step_s"] for o, t in rounds])
    differ = max(abs(a - b) / abs(b) for o, t in rounds for a, b in zip(o["losses"], t["losses"], strict=True))
    return (f"{text}{tokens / theirs:9.0f}{ratio:6.2f}x  {100 * utilisation / ours:6.1f}%{100 * utilisation / theirs:6.1f}%  {1e3 * ours:8.2f}{1e3 * theirs:9.2f}"
            f"  {device:7.0f}{rounds[0][1]['device_mb']:8.0f}  {differ:.0e}"), differ


def peak_of(name, given):
    if given:
        return given
    found = [peak for part, peak in PEAKS.items() if part in name]
    if not found:
        sys.exit(f"dev bench-gpu: error: no peak of '{name}' is known: give -peak=TFLOP/s of its dense bf16 matrices")
    return found[0]


def compare(args, size, name, ranks, peak, raw):
    """The lines of one layout; whether all is as it should be."""
    weights, data = data_of(args, size, ranks)
    program, geometry = program_path(args, size, name), gpt.sized(size)
    tokens = geometry.rows * geometry.tokens * ranks
    utilisation = gpt.flops_per_token(geometry) * tokens / (peak * 1e12 * ranks)  # times seconds: 1
    stage, fine, hashes = name[-1:], True, set()
    for peer in [peer for peer in peers_of(args.peers, stage, ranks) if peer in args.installed] or [None]:
        rounds = []
        for number in range(args.rounds):
            ours, why = train(args, program, weights, data, args.steps)
            if not ours:
                print(f"{size} {name}: dsopt failed: {why}", flush=True)
                return False
            hashes.add(ours["hash"])
            theirs = None
            if peer:
                theirs, why = run_peer(*peer_command(args, peer, size, stage, ranks, weights))
                if not theirs:
                    print(f"{size} {name} {peer}: left out ({why})", flush=True)
                    break
            rounds.append((ours, theirs))
            for who, row in (("dsopt", ours), (peer, theirs)):
                if row:
                    raw.write(kind="gpu", size=size, precision=args.precision, layout=name, against=peer, round=number, who=who, tokens=tokens,
                              utilisation=utilisation / row["step_s"], **row)
        if rounds:
            line, differ = line_of(size, name, peer, rounds, tokens, utilisation)
            same = differ <= args.tolerance
            print(line + ("" if same else " LOSSES DIFFER"), flush=True)
            fine = fine and same
    print(f"{size} {name}: {'one hash' if len(hashes) == 1 else f'{len(hashes)} HASHES'} of {'all runs' if len(hashes) == 1 else 'equal runs'}: "
          + " ".join(value[:16] for value in sorted(hashes)), flush=True)
    return fine and len(hashes) == 1


def compare_hashes(args, size, arch):
    """Whether all layouts have the same weights after some steps."""
    weights, data = data_of(args, size, 2)
    hashes, fine = {}, True
    for name, options in HASHES:
        if why := compile_program(args, size, "hash " + name, [*options, "-reduction-shards=2"], arch):
            print(f"{size} {name}: left out ({why})", flush=True)
            fine = False
            continue
        row, why = train(args, program_path(args, size, "hash " + name), weights, data, HASH_STEPS)
        hashes[name] = row["hash"][:16] if row else f"failed ({why})"
        fine = fine and row is not None
    same = fine and len(set(hashes.values())) == 1
    print(f"{size}: {'one hash' if same else 'NOT ONE HASH'} of " + ", ".join(f"{name} {value}" for name, value in hashes.items()), flush=True)
    return same


def compare_graphs(args, size, raw):
    """A step with and without CUDA graphs: its time, and that it is the same."""
    weights, data = data_of(args, size, 1)
    rows = {"auto": [], "off": []}
    for number in range(args.rounds):
        for graph, those in rows.items():
            row, why = train(args, program_path(args, size, ""), weights, data, args.steps, [f"-cuda-graph={graph}"])
            if not row:
                print(f"{size} -cuda-graph={graph}: failed ({why})", flush=True)
                return False
            those.append(row)
            raw.write(kind="graphs", size=size, precision=args.precision, layout="", against=f"-cuda-graph={graph}", round=number, **row)
    times = {graph: statistics.median(row["step_s"] for row in those) * 1e3 for graph, those in rows.items()}
    hashes = {row["hash"] for those in rows.values() for row in those}
    print(f"{size}: {times['auto']:.2f} ms a step with CUDA graphs, {times['off']:.2f} with -cuda-graph=off, {times['off'] / times['auto']:.2f}x; "
          + ("one hash" if len(hashes) == 1 else "NOT ONE HASH"), flush=True)
    return len(hashes) == 1


def report(args, size):
    """What each kernel takes beside its limit, in a file; its text, empty where the program cannot say it."""
    weights, data = data_of(args, size, 1)
    done = watch([program_path(args, size, ""), f"-data={data}", f"-weights={weights}", f"-steps={args.steps}", "-report=kernels"], args.environment)
    if done.status:
        return ""
    path = os.path.join(args.folder, f"kernels-{size}.txt")
    open(path, "w").writelines(done.lines)
    print(f"{size}: kernels are in {path}", flush=True)
    return "".join(done.lines)


def attention_rows(text):
    """Microseconds of a call and its shape, by kind."""
    return {kind: (float(ms) / float(calls) * 1e3, [int(extent) for extent in shape.split("x")])
            for calls, ms, kind, shape, causal in ATTENTION.findall(text) if causal}


def compare_attention(args, size, text, raw):
    """Lines of attention forward and backward beside PyTorch's flash attention of the same shape."""
    def left_out(why):
        print(f"{size} attention: not compared with flash attention: {why}", flush=True)

    if args.precision != "bf16":
        return left_out("it has no fp32 (-precision=bf16)")
    ours = attention_rows(text)
    if set(ours) != {"attention", "attention_grad"}:
        return left_out("-report=kernels has no rows of it")
    if not bench.has(args, "torch"):
        return left_out(f"torch is not installed for {args.peer_python} (./dev bench -install)")
    batch, heads, tokens, _, head, _ = ours["attention"][1]
    done = watch([args.peer_python, os.path.join(here, "torch_attention.py"), *map(str, (batch, heads, tokens, head))])
    if done.status:
        return left_out(done.why())
    theirs = json.loads(done.lines[-1])
    for kind, said, share in (("attention", "forward", 1.0), ("attention_grad", "backward", 2.5)):
        # Half of the products of rows and columns: two forward, five backward.
        flops, mine, other = share * 2 * batch * heads * tokens * tokens * head, ours[kind][0], theirs[kind]
        print(f"{size} attention {said} {batch}x{heads}x{tokens}x{head} causal bf16: dsopt {mine:.1f} us ({flops / mine / 1e6:.1f} TFLOP/s), "
              f"flash {other:.1f} us ({flops / other / 1e6:.1f}), {other / mine:.2f}x", flush=True)
        raw.write(kind="attention", size=size, precision="bf16", layout=said, against="flash", us={"dsopt": mine, "flash": other})


def main():
    args = arguments()
    args.environment = gpu.environment(args.build)
    if args.soft:
        args.environment = {"LD_LIBRARY_PATH": os.path.join(args.build, "test", "SoftDevice"), "SOFT_DEVICE": f"seed=1,devices={args.gpus or 1}"}
        found, arch, peak = [("the device in software", None)] * (args.gpus or 1), "sm_80", args.peak or 1
    else:
        try:
            found = gpu.gpus()
            arch = gpu.architecture(found[0][1])
        except gpu.NoGPU as error:
            sys.exit(f"dev bench-gpu: error: {error}; ./dev bench compares on this machine's processor")
        peak = peak_of(found[0][0], args.peak)
    count = args.gpus or len(found)
    if count > len(found):
        sys.exit(f"dev bench-gpu: error: -gpus={count}, but there are {len(found)}")
    args.installed = [peer for peer in args.peers if bench.has(args, MODULES[peer])]
    for peer in args.peers:
        if peer not in args.installed:
            print(f"{peer}: left out, {MODULES[peer]} is not installed for {args.peer_python} (./dev bench -install)")
    print(f"{count} x {found[0][0]}; utilisation = tokens/s x (6 x parameters without positions + 12 x layers x width x tokens) / ({peak:g} TFLOP/s x GPUs)")
    print(HEAD, flush=True)
    os.makedirs(args.folder, exist_ok=True)
    raw, fine = bench.Raw(os.path.join(args.folder, "bench-gpu.jsonl")), True
    for size in args.size:
        for name, options, ranks in [entry for n in sorted({1, count}) for entry in layouts(n, args.zero)]:
            if why := compile_program(args, size, name, options, arch):
                print(f"{size} {name}: left out ({why})", flush=True)
                continue
            fine = compare(args, size, name, ranks, peak, raw) and fine
        fine = compare_hashes(args, size, arch) and fine
        if os.path.exists(program_path(args, size, "")):
            fine = compare_graphs(args, size, raw) and fine
            compare_attention(args, size, report(args, size), raw)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
