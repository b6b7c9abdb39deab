"""What ranks along tp add among the runs of a micro-batch. By programs whose stage dist is changed by hand: each of T ranks has 1/T (or
for three of them 1/4) of a value of forward, backward and evaluation, and all go on with the sum. Losses and weights have the bits of
one rank that has the whole, in every layout and type and over every engine. And of a model that is cut in three and six: each rank has
another piece. The sizes divide by no granule.

usage: tensor_sums.py DSOPT
"""
import os
import re
import sys
import tempfile

import numpy as np

import small
import tanh_model
from runs import MPIRUN, Run, check, execute
from small import initializer, node, value

dsopt = sys.argv[1]
rng = np.random.default_rng(3)
start = {key: rng.normal(0, 0.5, shape).astype(np.float32) for key, shape in {"a": (7, 33), "c": 33, "b": (33, 5)}.items()}


def cut(text, part):
    """Puts `part` of the first product of block 0, and of the gradient that block 1 hands down, in its place, added over ranks."""
    kernels = {}
    for name in ("block0.F", "block0.E", "block1.B"):
        head = text.index(f"func.func private @{name}(")
        end = text.index("\n  }", head)
        body = text[head:end]
        line = re.search(r"\n    (%\w+) = graph\.matmul .*?-> (tensor<(\d+x\d+x)\w+>)", body, re.S)
        value, type, shape = line.groups()
        kernel = kernels.setdefault(type, f"""
  func.func private @part{len(kernels)}(%x: {type}) -> {type} attributes {{graph.iterate = #graph.iteration<rows>, graph.range = array<i64>}} {{
    %f = graph.constant dense<{part}> : tensor<f32>
    %wide = graph.cast %x : ({type}) -> tensor<{shape}f32>
    %part = graph.mul %wide, %f : (tensor<{shape}f32>, tensor<f32>) -> tensor<{shape}f32>
    %y = graph.cast %part : (tensor<{shape}f32>) -> {type}
    return %y : {type}
  }}""")
        made = f"\n    %part = graph.kernel {re.search('@part[0-9]', kernel)[0]}({value}) : ({type}) -> {type}\n    %whole = dist.all_reduce %part over [tp] : {type}"
        text = text[:head] + body[:line.end()] + made + re.sub(rf"{value}\b", "%whole", body[line.end():]) + text[end:]
    at = text.index("\n  func.func private @kernel")
    return text[:at] + "".join(kernels.values()) + text[at:]


with tempfile.TemporaryDirectory() as folder:
    path, data, dist, log, plain = (os.path.join(folder, name) for name in ("model.onnx", "data.npz", "dist.mlir", "log.jsonl", "plain.mlir"))
    tanh_model.write(path, start)
    np.savez(data, **tanh_model.batches(4, 4))

    def train(tp, part, *options, prefix=(), checked=False):
        execute([dsopt, path, f"-data={data}", "-micro-batches=2", *options, "-emit=dist", "-o", plain])
        # Nothing of the model is cut: its ranks along tp compute alike.
        text = re.sub(r"tp = \d+\]", f"tp = {tp}]", open(plain).read(), count=1).replace("dsopt.options = {", f"dsopt.options = {{tp = {tp} : i64, ", 1)
        open(dist, "w").write(cut(text, part))
        execute([*prefix, dsopt, dist, "-run", f"-data={data}", f"-eval-data={data}", "-eval-every=2", f"-log={log}", "-quiet", "-steps=4"],
                environment={"DSOPT_CHECK_ACCESSES": "1"} if checked else {})
        return Run(log)

    count = 0
    for options in ([], ["-precision=bf16"], ["-precision=fp16"], ["-pp=2"], ["-dp=2", "-zero=3", "-grad-clip=0.1"], ["-dp=2", "-pp=2", "-zero=2"]):
        ranks = (2, 3, 4) if len(options) == 0 else (2,)
        references = {}
        for tp in ranks:
            # Sums of parts that are powers of two are exact: they are those of one rank, to the bit.
            part, whole = (0.25, 0.75) if tp == 3 else (1 / tp, 1.0)
            reference = references.setdefault(whole, train(1, whole, *options))
            for more in [{}, {"checked": True}, *([{"prefix": [*MPIRUN, str(tp)]}] if not options else [])]:
                run = train(tp, part, *options, **more)
                what = f"{options} on {tp} ranks along tp, {more}"
                check(run.loss_text == reference.loss_text, f"{what}: losses {run.losses}, expected {reference.losses}")
                check(run.hash == reference.hash, f"{what}: weights {run.hash}, expected {reference.hash}")
                check([step["grad_norm"] for step in run.steps] == [step["grad_norm"] for step in reference.steps], f"{what}: other norms")
                count += 1
    print(f"{count} runs with the bits of one rank along tp")

    # A rank's pieces are its own.
    def array(*shape):
        return rng.normal(0, 0.4, shape).astype(np.float32)

    small.write(path, [node("MatMul", "x a", "xa"), node("Tanh", "xa", "h"), node("MatMul", "h b", "hb"), node("Add", "hb x", "r"), node("MatMul", "r c", "rc"),
                       node("Relu", "rc", "g"), node("MatMul", "g d", "gd"), node("Sub", "gd y", "e"), node("Mul", "e e", "q"), node("ReduceMean", "q", "loss", keepdims=0)],
                [value("x", (5, 7)), value("y", (5, 7))], [initializer(key, array(*(7, 66)[::way])) for key, way in (("a", 1), ("b", -1), ("c", 1), ("d", -1))])
    np.savez(data, x=array(40, 7), y=array(40, 7))

    def shards(*options, checked=False):
        execute([dsopt, path, "-run", f"-data={data}", "-micro-batches=2", "-steps=4", f"-log={log}", "-quiet", *options],
                environment={"DSOPT_CHECK_ACCESSES": "2"} if checked else {})
        run = Run(log)
        return run.loss_text, run.hash, [step["grad_norm"] for step in run.steps]

    for count, precision, layouts in ((3, "bf16", (["-tp=3"],)), (6, "fp32", (["-tp=3", "-pp=2"], ["-tp=6"]))):
        same = [f"-tensor-shards={count}", f"-precision={precision}"]
        reference = shards(*same, "-tp=1")
        for layout in layouts:
            run = shards(*same, *layout, checked="-tp=3" in layout)
            check(run == reference, f"{same} {layout}: {run}, expected {reference}")
    print("another piece on each rank: the bits of one")
