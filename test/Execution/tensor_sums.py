"""What tensor shards add among the runs of a micro-batch, by programs whose stage dist is written by hand: each of T ranks along tp has
a part (here 1/T) of a value that crosses runs, in forward, backward and evaluation, and all go on with the sum. Losses and weights have
the bits of one rank with whole values, in every layout, type and engine. The sizes divide by no granule.

usage: tensor_sums.py DSOPT
"""
import os
import re
import sys
import tempfile

import numpy as np

import tanh_model
from runs import MPIRUN, Run, check, execute

dsopt = sys.argv[1]
rng = np.random.default_rng(3)
start = {key: rng.normal(0, 0.5, shape).astype(np.float32) for key, shape in {"a": (7, 33), "c": 33, "b": (33, 5)}.items()}


def cut(text, part):
    """Multiplies what block 0 hands to block 1, and what comes back, by `part`, and has what `tp` ranks have of it added."""
    # The types of values between blocks, forward and backward; -precision decides them.
    results = dict(re.findall(r"func\.func private @(block\d\.[FBE])\((?:[^()]|\([^()]*\))*\) -> \(?([^{]*?)\)? attributes", text))
    crossing = {"block0.F": 0, "block0.E": 0, "block1.B": 1}
    kernels, made = [], {}
    for name, place in crossing.items():
        type = re.split(r",\s*(?=tensor)", results[name])[place].strip()
        element = re.search(r"x(\w+)>", type)[1]
        made.setdefault(type, f"part{len(made)}")
        if len(kernels) < len(made):
            kernels.append(f"""
  func.func private @{made[type]}(%x: {type}) -> {type} attributes {{graph.iterate = #graph.iteration<rows>, graph.range = array<i64>}} {{
    %f = graph.constant dense<{part}> : tensor<{element}>
    %y = graph.mul %x, %f : ({type}, tensor<{element}>) -> {type}
    return %y : {type}
  }}""")
        # Its function returns the part,
        head = text.index(f"func.func private @{name}(")
        end = text.index("\n  }", head)
        body = text[head:end]
        values = re.search(r"return ([^:]*) :", body)[1].split(", ")
        whole, values[place] = values[place], "%part"
        body = re.sub(r"\n    return [^:]* :", lambda match: f"\n    %part = graph.kernel @{made[type]}({whole}) : ({type}) -> {type}\n    return {', '.join(values)} :", body)
        text = text[:head] + body + text[end:]
        # and behind its run all have the sum.
        run = re.search(rf"%({re.escape(name)}\S*?)(?::\d)? = graph\.run @{re.escape(name)}\([^\n]*(?:\n {{8,}}[^\n]*)*\n", text)
        result = f"%{run[1]}" + (f"#{place}" if len(values) > 1 else "")
        after = re.sub(rf"{re.escape(result)}(?![\w.#])", f"%sum{name}", text[run.end():].split("\n  }", 1)[0])
        rest = text[run.end():].split("\n  }", 1)[1]
        text = text[:run.end()] + f"    %sum{name} = dist.all_reduce {result} over [tp] : {type}\n" + after + "\n  }" + rest
    at = text.index("\n  func.func private @kernel0(")
    return text[:at] + "".join(kernels) + text[at:]


with tempfile.TemporaryDirectory() as folder:
    path, data, dist, log = (os.path.join(folder, name) for name in ("model.onnx", "data.npz", "dist.mlir", "log.jsonl"))
    tanh_model.write(path, start)
    np.savez(data, **tanh_model.batches(4, 2))

    def train(tp, part, *layout, prefix=(), checked=False):
        execute([dsopt, path, f"-data={data}", f"-eval-data={data}", "-eval-every=2", *layout, f"-tp={tp}", "-emit=dist", "-o", dist])
        text = open(dist).read()
        if "dist.all_reduce" not in text:
            open(dist, "w").write(cut(text, part))
        env = dict(os.environ, DSOPT_CHECK_ACCESSES="1") if checked else None
        execute([*prefix, dsopt, dist, "-run", f"-data={data}", f"-log={log}", "-quiet", "-steps=4"], env=env)
        return Run(log)

    count = 0
    for layout in (["-pp=2", "-micro-batches=2"], ["-pp=2", "-micro-batches=2", "-precision=bf16"]):
        # Parts whose sums are exact: they are those of one rank, to the bit.
        references = {ranks: train(1, part, *layout) for ranks, part in ((2, 1.0), (3, 0.75))}
        for tp, part, more in ((2, 0.5, []), (3, 0.25, []), (4, 0.25, [])):
            run, reference = train(tp, part, *layout, *more), references[3 if tp == 3 else 2]
            check(run.hash == reference.hash and run.losses == reference.losses, f"{layout} on {tp} ranks along tp: {run.losses}, expected {reference.losses}")
            count += 1
    print(f"{count} runs with the bits of one rank along tp")
