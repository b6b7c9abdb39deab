"""Tables of products: -tune measures and writes one, -gemm-table compiles with it, and what a table says changes no bit but by the library.

usage: gemm_table.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np

from runs import Run, check, execute, relative
from saved_weights import safetensors
from small import initializer, node, value, write

dsopt = sys.argv[1]
random = np.random.default_rng(11)
FORMAT = "dsopt-gemm-table-1"


def perceptron(path, widths, rows):
    weights = [random.normal(0, 0.3, shape).astype(np.float32) for shape in zip(widths, widths[1:])]
    nodes, last = [], "x"
    for at, _ in enumerate(weights):
        nodes += [node("MatMul", f"{last} w{at}", f"y{at}"), node("Tanh", f"y{at}", f"h{at}")]
        last = f"h{at}"
    nodes += [node("Sub", f"{last} target", "d"), node("Mul", "d d", "square"), node("ReduceMean", "square", "loss", keepdims=0)]
    return write(path, nodes, [value("x", (rows, widths[0])), value("target", (rows, widths[-1]))],
                 [initializer(f"w{at}", weight) for at, weight in enumerate(weights)])


def data(path, widths, rows, count):
    np.savez(path, x=random.normal(0, 1, (count, rows, widths[0])).astype(np.float32),
             target=random.normal(0, 1, (count, rows, widths[-1])).astype(np.float32))


def entry(m, n, k, **more):
    return dict(operands="f32", m=m, n=n, k=k, **more)


with tempfile.TemporaryDirectory() as folder:
    def at(name):
        return os.path.join(folder, name)

    def save(name, table):
        return json.dump(table, open(at(name), "w")) or at(name)

    small, widths, rows = perceptron(at("small.onnx"), (20, 33), 6), (20, 33), 6
    data(at("small.npz"), widths, rows, 8)

    # Measured: the forward product and the weight's gradient.
    done = execute([dsopt, small, f"-data={at('small.npz')}", f"-tune={at('tuned.json')}", "-threads=1"])
    tuned = json.load(open(at("tuned.json")))
    shapes = [(one["m"], one["n"], one["k"], bool(one.get("transpose_a"))) for one in tuned["products"]]
    check(sorted(shapes) == [(6, 33, 20, False), (20, 33, 6, True)], f"-tune measured {shapes}")
    check(tuned["format"] == FORMAT and all(one["gflops"] >= 0.99 * one["model_gflops"] > 0 for one in tuned["products"]), f"{tuned}")
    check("wrote" in done.stdout and "2 products" in done.stdout, done.stdout)

    # What is measured later joins what is there.
    other = save("other.json", dict(tuned, products=[entry(1, 2, 3, library=True), *tuned["products"][:1]]))
    execute([dsopt, small, f"-data={at('small.npz')}", f"-gemm-table={other}", f"-tune={at('both.json')}", "-threads=1"])
    both = json.load(open(at("both.json")))["products"]
    check(len(both) == 3 and both[-1] == entry(1, 2, 3, library=True), f"{both}")

    # In the text of the program: kernels cut as the table says, and what it leaves to the library.
    def table(*products):
        return dict(format=FORMAT, arch=tuned["arch"], vector_bits=tuned["vector_bits"], products=list(products))

    cut = entry(6, 33, 20, rows=2, vectors=1, band=1, packing="fused", result_ahead=1)
    gradient = entry(20, 33, 6, transpose_a=True, library=True)
    path = save("table.json", table(cut, gradient, entry(7, 7, 7, library=True)))
    text = execute([dsopt, small, f"-data={at('small.npz')}", f"-gemm-table={path}", "-emit=exec"]).stdout
    check("exec.gemm_table" in text and "result_ahead = 1" in text, "-emit=exec shows no table")
    calls = [execute([dsopt, small, f"-data={at('small.npz')}", "-emit=llvm", *options]).stdout.count("call void @dsopt_rt_gemm(")
             for options in ([], [f"-gemm-table={path}"])]
    check(calls == [0, 1], f"{calls} products are the library's, expected none and one")

    # Of a larger model: by blocks no bit changes, by the library all layouts have the same.
    widths, rows = (48, 80, 96, 32), 24
    large = perceptron(at("large.onnx"), widths, rows)
    data(at("large.npz"), widths, rows, 24)

    def train(*options, name="run"):
        execute([dsopt, large, f"-data={at('large.npz')}", "-run", "-steps=3", "-lr=0.01", "-micro-batches=4", "-reduction-shards=2",
                 "-accumulate=sharded", f"-log={at('log.jsonl')}", f"-save-weights={at(name)}", *options])
        return Run(at("log.jsonl")).hash

    plain = train(name="plain")
    blocks = save("blocks.json", table(*(entry(24, n, k, rows=3, vectors=2, band=2, packing="fused") for k, n in zip(widths, widths[1:])),
                                       entry(24, 80, 96, transpose_b=True, rows=5, vectors=1, band=1, packing="transpose")))
    check(train(f"-gemm-table={blocks}") == plain, "blocks of a table change bits")
    libraries = save("library.json", table(*(entry(24, n, k, library=True) for k, n in zip(widths, widths[1:])),
                                           *(entry(k, n, 24, transpose_a=True, library=True) for k, n in zip(widths, widths[1:]))))
    whole = [f"-gemm-table={libraries}", "-micro-batches=4"]
    hashes = {" ".join(options): train(*whole, *options, name="library") for options in (
        ["-dp=1"], ["-dp=2", "-micro-batches=2"], ["-dp=2", "-micro-batches=2", "-zero=3"], ["-pp=3"], ["-threads=1"])}
    check(len(set(hashes.values())) == 1, f"layouts with a table's library differ: {hashes}")
    ours, theirs = safetensors(at("plain")), safetensors(at("library"))
    check(all(relative(ours[name], theirs[name]) < 1e-5 for name in ours), "the library computes other weights")

    # A checkpoint remembers what the library computed.
    train(*whole, f"-save={at('checkpoints')}", "-save-every=1")
    resume = [dsopt, large, f"-data={at('large.npz')}", "-run", "-steps=5", "-lr=0.01", "-micro-batches=4", "-reduction-shards=2",
              "-accumulate=sharded", f"-resume={at('checkpoints')}/step-00000003"]
    check("gemm-table" in execute(resume).stderr, "going on without the library gives no warning")
    check("gemm-table" not in execute([*resume, f"-gemm-table={libraries}"]).stderr, "going on with it does")

    # Wrong ones, each with its place.
    def refused(table, expected, *options):
        path = table if isinstance(table, str) else save("wrong.json", table)
        said = execute([dsopt, small, f"-data={at('small.npz')}", "-run", f"-gemm-table={path}", *options], status=1).stderr
        check(expected in said and said.count("\n") == 1, f"expected {expected!r}, got {said}")

    refused(at("none.json"), "none.json: No such file")
    refused(dict(table(), format="x"), "wrong.json:1:2: format is 'x', expected dsopt-gemm-table-1, as -tune writes it")
    refused(dict(table(), arch="z80"), f"is for z80 with vectors of {tuned['vector_bits']} bits, and this program for {tuned['arch']}")
    refused(table(dict(cut, rows=0)), "products[0].rows is no integer of 1 or more")
    refused(table(dict(cut, row=1)), "products[0].row is no key of a table")
    refused(table({key: cut[key] for key in cut if key != "band"}), "products[0].band is missing, expected an integer of 1 or more")
    refused(table(dict(cut, packing="tight")), "products[0].packing is 'tight', expected none, fused, transpose, registers or lines")
    refused(table(dict(cut, operands="f64")), "products[0].operands is 'f64', expected f32, bf16 or f16")
    refused(table(cut, cut), "products[1].m begins a second choice for a product, which products[0] has already")
    refused(table(dict(cut, rows=6, vectors=3, packing="transpose")), "b does not lie transposed, expected packing none, fused or lines")
    tune = [dsopt, small, f"-data={at('small.npz')}", f"-tune={at('x.json')}"]
    check("-tune and -run exclude each other" in execute([*tune, "-run"], status=1).stderr, "-tune -run")
    check("this program is for a GPU" in execute([*tune, "-target=cuda"], status=1).stderr, "-tune -target=cuda")
    check("cannot write" in execute([dsopt, small, f"-data={at('small.npz')}", f"-tune={at('no/x.json')}"], status=1).stderr, "-tune=no/x.json")
print("ok")
