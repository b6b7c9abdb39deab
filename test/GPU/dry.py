"""What ./dev test-gpu and ./dev bench-gpu do, on the device in software: parts that pass and fail, the benchmark's table,
formula and commands.

usage: dry.py BUILD tests | bench
"""
import contextlib
import io
import os
import re
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "..", "Execution"), os.path.join(here, "..", "..", "benchmarks")]
import bench_gpu
import gpt
import gpu
from runs import check, execute

build, what = sys.argv[1:]
SOFT = {"LD_LIBRARY_PATH": os.path.join(build, "test", "SoftDevice"), "SOFT_DEVICE": "seed=1,arch=80", "DSOPT_PTXAS": "off"}


def tests(script, *words, status=0, **environment):
    return execute([sys.executable, script, *words], status, environment={**SOFT, **environment})


def parts():
    check([gpu.architecture(one) for one in ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))] == ["sm_80", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_90"],
          "other architectures")
    script, ours = os.path.join(here, "test_gpu.py"), ["--build", build]
    listed = tests(script, *ours, "-list").stdout
    check("1 x software device" in listed and "on_gpu layouts" in listed and "on_gpu reference gpt2-tiny" in listed and "NcclTest: left out, it needs 4 GPUs" in listed, listed)
    said = tests(script, *ours, "-only=reference mlp$|errors").stdout
    check(said.count("\nok ") == 2 and "of PyTorch's" in said and "is for the device in software" in said, said)
    # A GPU with too little memory: the part fails, with what it said, and the next runs.
    done = tests(script, *ours, "-only=reference mlp$|errors", status=1, SOFT_DEVICE="seed=1,arch=80,memory=65536")
    check("FAILED on_gpu reference mlp" in done.stdout and "'s memory, which has" in done.stdout and "ok     on_gpu errors" in done.stdout and "1 parts failed" in done.stderr, done.stdout + done.stderr)
    for environment, text in ((dict(SOFT_DEVICE="devices=0"), "no GPU"), (dict(SOFT_DEVICE="arch=75"), "compute capability 7.5, expected 8.0 or newer")):
        done = tests(script, *ours, status=1, **environment)
        check(text in done.stderr and done.stderr.count("error:") == 1, done.stderr)


def flash_lines(args, text, folder):
    """With figures in PyTorch's place."""
    stand_in, bench_gpu.here = bench_gpu.here, os.path.join(folder, "peers")
    os.makedirs(bench_gpu.here)
    with open(os.path.join(bench_gpu.here, "torch_attention.py"), "w") as file:
        file.write("import json, sys\nassert sys.argv[1:] == ['2', '2', '16', '16']\nprint(json.dumps({'attention': 2.0, 'attention_grad': 5.0}))\n")
    has, bench_gpu.bench.has = bench_gpu.bench.has, lambda args, module: module == "torch"
    text = re.sub(r"^ +[\d.]+ +[\d.]+ (.*%  attention(_grad)? )", lambda m: f"      4.0     {0.02 if m[2] else 0.004} {m[1]}", text, flags=re.M)
    with contextlib.redirect_stdout(io.StringIO()) as lines:
        bench_gpu.compare_attention(args, "mini", text, bench_gpu.bench.Raw(os.path.join(folder, "raw.jsonl")))
    bench_gpu.here, bench_gpu.bench.has = stand_in, has
    said = lines.getvalue()
    check("forward 2x2x16x16 causal bf16: dsopt 1.0 us" in said and "flash 2.0 us" in said and "2.00x" in said, said)
    check("backward 2x2x16x16 causal bf16: dsopt 5.0 us" in said and "1.00x" in said, said)


def bench():
    geometry = gpt.sized("gpt2-1024")
    check(gpt.parameters(geometry) == 124439808 and gpt.parameters(gpt.sized("gpt-1.3b")) == 1315723264, "other numbers of parameters")
    # nanoGPT's: 6 * (124439808 - 1024 * 768) + 12 * 12 * 12 * 64 * 1024
    check(gpt.flops_per_token(geometry) == 855166464, f"{gpt.flops_per_token(geometry)} flops a token")
    mlp = os.path.join(here, "..", "Models", "mlp", "model.onnx")
    head = execute([os.path.join(build, "bin", "dsopt"), mlp, "-target=cuda", "-arch=sm_80,sm_89,sm_90,sm_100a", "-plan=kernels"], environment=SOFT).stdout
    for name, peak in bench_gpu.PEAKS.items():
        check(any(line.split()[:1] == [name] and f"TFLOP/s: {peak} bf16" in line for line in head.splitlines()), f"the compiler's peak of {name} is not {peak}:\n{head}")
    check(bench_gpu.peak_of("NVIDIA H200", None) == 989 and bench_gpu.peak_of("else", 5) == 5, "other peaks")
    check(bench_gpu.layouts(1, ["1"]) == [("", [], 1)] and bench_gpu.layouts(4, ["1", "3"])[1] == ("zero 3", ["-dp=4", "-zero=3"], 4), "other layouts")
    peers = list(bench_gpu.MODULES)
    check([bench_gpu.peers_of(peers, *of) for of in (("", 1), ("1", 2), ("3", 2))] == [["eager", "compile"], ["deepspeed"], ["fsdp2", "deepspeed"]], "other peers")
    args = bench_gpu.arguments(["--build", build, "-peer-python=python"])
    command, environment = bench_gpu.peer_command(args, "deepspeed", "gpt-1.3b", "3", 2, "w")
    check("--nproc_per_node=2" in command and "zero3" in command and command[-4:] == ["--device", "cuda", "--weights", "w"] and environment["DS_ACCELERATOR"] == "cuda", command)
    ours, theirs = ({"step_s": s, "losses": [2.0, loss], "device_mb": mb} for s, loss, mb in ((0.5, 1.0, 100), (1.0, 1.001, 300)))
    line, differ = bench_gpu.line_of("size", "", "eager", [(ours, theirs)], 1000, 0.25)
    check(line.split() == "size eager 2000 1000 2.00x 50.0% 25.0% 500.00 1000.00 100 300 1e-03".split() and 9e-4 < differ < 1e-3, line)
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, bench_gpu.__file__, "--build", build, "-soft", "-size=mini", "-peers=eager", "-peer-python=absent", "-steps=2", "-rounds=2",
                 "-precision=fp32", f"-folder={folder}"]
        said = execute(words, environment=SOFT).stdout
        check("eager: left out, torch is not installed" in said and "mini : one hash of all runs" in said and "one hash of once" in said and "two ranks" in said, said)
        check("with CUDA graphs" in said and "with -cuda-graph=off" in said and "x; one hash" in said, said)
        check("mini attention: not compared with flash attention: it has no fp32" in said, said)
        args = bench_gpu.arguments(["--build", build, "-peer-python=absent", "-steps=2", "-size=mini", f"-folder={folder}"])
        args.environment = SOFT
        os.environ.update(SOFT)
        why = bench_gpu.compile_program(args, "mini", "", [], "sm_80")
        check(not why, why)
        with contextlib.redirect_stdout(io.StringIO()) as lines:
            text = bench_gpu.report(args, "mini")
            bench_gpu.compare_attention(args, "mini", text, None)
            bench_gpu.compare_attention(args, "mini", "", None)
        rows = bench_gpu.attention_rows(text)
        check({kind: shape for kind, (_, shape) in rows.items()} == dict.fromkeys(("attention", "attention_grad"), [2, 2, 16, 16, 16, 16]) and
              all(us > 0 for us, _ in rows.values()), text)
        check("flash attention: torch is not installed for absent" in lines.getvalue() and "kernels has no rows of it" in lines.getvalue(), lines.getvalue())
        args.peer_python = sys.executable
        flash_lines(args, text, folder)
        gpt.save_weights(os.path.join(folder, "w"), gpt.sized("mini"))
        read, drawn = gpt.load_weights(os.path.join(folder, "w")), gpt.weights(gpt.sized("mini"))
        check(read.keys() == drawn.keys() and all((read[name] == drawn[name]).all() for name in read), "weights are read as others")
    done = execute([sys.executable, bench_gpu.__file__, "--build", build, "-size=tiny"], 1, environment={**SOFT, "SOFT_DEVICE": "devices=0"})
    check("no GPU; ./dev bench compares on this machine's processor" in done.stderr, done.stderr)


{"tests": parts, "bench": bench}[what]()
