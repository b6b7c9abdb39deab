"""What the kernels of products reach, beside libraries: the share of the peak of multiplications on registers.

usage: ./dev bench -products [-models=tiny,s6x512,gpt2,llama,resnet] [-types=f32,bf16,f16] [-threads=1,2] [-least=GFLOP]
Each distinct product of a step, forward and both gradients. Peak, kernel and libraries are measured in turn, in one
process, and the best of each counts. A library that is not there is left out: oneDNN (the system's), OpenBLAS (numpy's,
with its kernels for AVX-512), PyTorch (of the peers' Python, with its own oneDNN).
"""
import argparse
import ctypes
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "test", "Conversion", "ProductToLoops", "Inputs"))


def transformer(tokens, width, inner, vocabulary, heads, length, qkv=3):
    """(m, n, k, transposed a, transposed b, batch) of a step; the vocabulary's for the rows that have logits at once."""
    found = []
    for outputs, inputs in [(qkv * width, width), (width, width), (inner, width), (width, inner)]:
        found += layer(tokens, outputs, inputs)
    rows, size = min(tokens, 256), width // heads
    pairs = tokens // length * heads
    found += [(length, length, size, 0, 1, pairs), (length, size, length, 0, 0, pairs), (length, size, length, 1, 0, pairs)]
    return found + layer(rows, vocabulary, width)


def layer(rows, outputs, inputs):
    """Of y = x w^T with a weight of [outputs, inputs]: y, the gradient of x, that of w."""
    return [(rows, outputs, inputs, 0, 1, 1), (rows, inputs, outputs, 0, 0, 1), (outputs, inputs, rows, 1, 0, 1)]


def resnet(batch):
    """Convolutions of ResNet-18 as products of windows."""
    found = []
    for side, channels, inputs, window in [(112, 64, 3, 7), (56, 64, 64, 3), (28, 128, 64, 3), (28, 128, 128, 3), (28, 128, 64, 1),
                                           (14, 256, 128, 3), (14, 256, 256, 3), (14, 256, 128, 1), (7, 512, 256, 3), (7, 512, 512, 3),
                                           (7, 512, 256, 1)]:
        found += layer(batch * side * side, channels, inputs * window * window)
    return found


MODELS = {"tiny": lambda: transformer(256, 128, 512, 1024, 4, 64), "s6x512": lambda: transformer(1024, 512, 2048, 50257, 8, 256),
          "gpt2": lambda: transformer(1024, 768, 3072, 50257, 12, 256),
          "llama": lambda: transformer(1024, 768, 3072, 32000, 12, 256, qkv=1), "resnet": lambda: resnet(8)}


def arguments(words):
    parser = argparse.ArgumentParser(prog="dev bench -products", allow_abbrev=False)
    add = parser.add_argument

    def some(text):
        return text.split(",")

    add("--build", required=True)
    add("-models", type=some, default=list(MODELS), help="of " + ",".join(MODELS))
    add("-types", type=some, default=["f32", "bf16"])
    add("-threads", type=some, default=["1", "2"])
    add("-least", type=float, default=0.0, help="leave out products of fewer GFLOP")
    add("-rounds", type=int, default=9)
    add("-peer-python", default=os.environ.get("DSOPT_PEER_PYTHON"), help="the peers' Python (default: DSOPT_PEER_PYTHON or BUILD/peers)")
    add("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    args.types = [{"fp32": "f32", "fp16": "f16"}.get(type, type) for type in args.types]
    if wrong := [type for type in args.types if type not in ("f32", "bf16", "f16")]:
        parser.error(f"-types: expected f32, bf16 or f16, got {wrong[0]}")
    return args


class Torch:
    """PyTorch in a process of its own, which measures when it is asked."""

    def __init__(self, python, threads):
        self.process = subprocess.Popen([python, os.path.join(here, "torch_products.py"), str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def seconds(self, shape, type, repeats):
        try:
            print(json.dumps([*shape, type, repeats]), file=self.process.stdin, flush=True)
            return float(self.process.stdout.readline() or "nan")
        except (BrokenPipeError, ValueError):
            return float("nan")


def library(*paths):
    """The first that there is."""
    for path in paths:
        try:
            return ctypes.CDLL(path)
        except OSError:
            pass
    return None


def placed(arrays):
    """Copies that begin where cache lines do, as a program's buffers, each at another place in its page."""
    import numpy as np
    page, line, copies = 4096, 64, []
    for place, array in enumerate(arrays):
        space = np.empty(array.nbytes + 2 * page, np.uint8)
        copies.append(space[-space.ctypes.data % page + 21 * place * line:][:array.nbytes].view(array.dtype))
        copies[-1][:] = array
    return copies


def measure(args, threads, shapes, type):
    """Prints a row of each product."""
    import numpy as np
    import products
    tools = os.path.join(args.build, "bin", "dsopt-opt")
    narrow, integer = type == "bf16", ctypes.c_int64
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["clang", "-O3", "-march=native", "-mprefer-vector-width=512", "-shared", "-fPIC", os.path.join(here, "products.c"),
                        "-o", f"{folder}/timer.so", "-lpthread"], check=True)
        timer = ctypes.CDLL(f"{folder}/timer.so")
        for function in (timer.peak, timer.time_kernel, timer.time_dnnl, timer.time_cblas):
            function.restype = ctypes.c_double
        some = [products.Product(*shape[:5], batch=(shape[5],) if shape[5] > 1 else (), type=type, result="f32") for shape in shapes]
        kernels, calls = products.compile_kernels(tools, folder, some, "native")
    dnnl = library("libdnnl.so.2") if type == "f32" or (narrow and has_feature("avx512bw")) else None
    blas = None if type != "f32" else library(*glob.glob(os.path.join(os.path.dirname(os.path.dirname(np.__file__)), "numpy.libs", "libscipy_openblas64*.so")))
    torch = Torch(args.peer_python, threads) if args.peer_python else None
    for (m, n, k, ta, tb, batch), (name, units) in zip(shapes, calls):
        random = np.random.default_rng(0)
        a, b, c = placed([*(products.numbers(random, batch * count, type) for count in (m * k, k * n)), np.zeros(batch * m * n, np.float32)])
        at = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, c)]
        pointers = (ctypes.c_void_p * 3)(*at)
        operations = 2.0 * m * n * k * batch
        repeats = max(1, int(1e9 / operations))
        sizes = (ta, tb, integer(m), integer(n), integer(k), *at, integer(batch))
        ways = {"dsopt": lambda: timer.time_kernel(threads, ctypes.cast(kernels[name], ctypes.c_void_p), integer(units), pointers, integer(repeats))}
        if dnnl:
            call = ctypes.cast(dnnl.dnnl_gemm_bf16bf16f32 if narrow else dnnl.dnnl_sgemm, ctypes.c_void_p)
            ways["oneDNN"] = lambda: timer.time_dnnl(call, *sizes, integer(2 if narrow else 4), integer(repeats))
        if blas:
            other = ctypes.cast(blas.scipy_cblas_sgemm64_, ctypes.c_void_p)
            ways["OpenBLAS"] = lambda: timer.time_cblas(other, *sizes, integer(repeats))
        if torch:
            ways["PyTorch"] = lambda: torch.seconds((m, n, k, ta, tb, batch), type, repeats)
        best, peak = {}, 0.0
        for _ in range(args.rounds):
            # Where bf16 has half of fp32's rate it is extended.
            peak = max(peak, *(timer.peak(threads, pairs) for pairs in range(1 + narrow)))
            for way, run in ways.items():
                seconds = run()
                if threads > 1:  # libraries' threads wait so long for more, on a processor
                    time.sleep(0.3 if way == "OpenBLAS" else 0.05)
                best[way] = min(best.get(way, seconds), seconds)
        shares = {way: operations / seconds / peak for way, seconds in best.items()}
        print(json.dumps(dict(shape=[m, n, k, ta, tb, batch], gflop=operations / 1e9, peak=peak / 1e9, shares=shares)), flush=True)


def has_feature(name):
    with open("/proc/cpuinfo") as lines:
        return any(line.startswith("flags") and name in line.split() for line in lines)


def main(words=None):
    args = arguments(words)
    args.build = os.path.abspath(args.build)
    if not args.peer_python and os.path.exists(os.path.join(args.build, "peers", "bin", "python")):
        args.peer_python = os.path.join(args.build, "peers", "bin", "python")
    if args.measure:
        return measure(args, *json.loads(args.measure))
    for type in args.types:
        for threads in map(int, args.threads):
            print(f"{type}, {threads} thread{'s' * (threads > 1)}: share of the peak")
            seen, rows = set(), []
            for model in args.models:
                shapes = [shape for shape in dict.fromkeys(MODELS[model]()) if shape not in seen and 2e-9 * shape[0] * shape[1] * shape[2] * shape[5] >= args.least]
                seen.update(shapes)
                # Libraries read how many threads they have when they are loaded.
                settings = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
                if has_feature("avx512f"):  # OpenBLAS does not know every processor that has it
                    settings["OPENBLAS_CORETYPE"] = "SkylakeX"
                done = subprocess.Popen([sys.executable, __file__, *(words if words is not None else sys.argv[1:]), "--measure",
                                         json.dumps([threads, shapes, type])], env=settings, stdout=subprocess.PIPE, text=True)
                for line in done.stdout:
                    row = json.loads(line)
                    rows.append(row)
                    m, n, k, ta, tb, batch = row["shape"]
                    text = "".join(f"  {way} {share:5.1%}" for way, share in row["shares"].items())
                    print(f"  {model:7}{batch:4} of {m:6}x{n:5}x{k:5} {'NT'[ta]}{'NT'[tb]} {row['gflop']:7.2f} GFLOP, {row['peak']:6.0f} GFLOP/s {text}", flush=True)
                if done.wait():
                    sys.exit(f"{model} cannot be measured")
            for name, chosen in [("1 GFLOP and more", [r for r in rows if r["gflop"] >= 1]), ("less", [r for r in rows if r["gflop"] < 1])]:
                if chosen:
                    own = sorted(r["shares"]["dsopt"] for r in chosen)
                    beside = sorted(r["shares"]["dsopt"] / max(share for way, share in r["shares"].items() if way != "dsopt")
                                    for r in chosen if len(r["shares"]) > 1)
                    print(f"  {name}: median {own[len(own) // 2]:.1%}, least {own[0]:.1%}" +
                          (f"; of the best library's median {beside[len(beside) // 2]:.2f}, least {beside[0]:.2f}" if beside else ""))


if __name__ == "__main__":
    main()
