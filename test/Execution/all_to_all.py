"""A program written by hand: two all-to-alls in front of each reduction bring every part of the gradient to another
rank and back again, so that the bits stay the same. With one engine as with the other.

usage: all_to_all.py DSOPT DSOPT-OPT
"""
import os
import re
import sys
import tempfile

from runs import MPIRUN, Run, check, execute, model, train

dsopt, opt = sys.argv[1:]
path, data = model("mlp")
layout = ["-dp=2", "-zero=2", "-micro-batches=2", "-steps=3"]
reference = train(dsopt, "mlp", *layout)


def rewrite(text):
    lines, sizes, order = [], {}, 0
    for line in text.splitlines():
        if reduce := re.match(r"(\s*)%([\w.]+) = exec\.reduce (@[\w.]+) .* elements (\d+) : f32", line):
            indent, event, whole, elements = reduce.groups()
            sizes[whole] = 4 * int(elements)
            for i, (source, target) in enumerate([(whole, whole + ".there"), (whole + ".there", whole)]):
                lines.append(f"{indent}%back{event}_{i} = exec.all_to_all {source} to {target} bytes {sizes[whole]} order 0 over @dp on @comm")
        lines.append(line)
    for i, line in enumerate(lines):
        if "exec.program" in line:
            order = 0
        if " order " in line:
            lines[i] = re.sub(r" order \d+ ", f" order {order} ", line)
            order += 1
    at = next(i for i, line in enumerate(lines) if "exec.schedule" in line)
    lines[at:at] = [f'exec.buffer {whole}.there : memref<{2 * size}xi8> buffers slots 1 stride {2 * size}' for whole, size in sizes.items()]
    return "\n".join(lines), sizes


with tempfile.TemporaryDirectory() as folder:
    first, second, planned, log, trace = (os.path.join(folder, name) for name in ("1.mlir", "2.mlir", "3.mlir", "log.jsonl", "trace.json"))
    execute([dsopt, path, *layout, f"-data={data}", "-emit=exec", "-o", first])
    text, sizes = rewrite(open(first).read())
    open(second, "w").write(text)
    execute([opt, "-insert-waits", "-plan-memory", "-verify-exec", second, "-o", planned])
    traffic = int(re.search(r"\btraffic = \{.*?all_to_all = (\d+)", open(planned).read())[1])
    count = text.count("exec.all_to_all")
    # A rank keeps its own part of the two.
    expected = sum(sizes[whole] for whole in re.findall(r"exec\.all_to_all (@[\w.]+?)(?:\.there)? ", text))
    check(traffic == expected, f"the plan counts {traffic} bytes of all-to-all, expected {expected}")
    for prefix in ([], [*MPIRUN, "2"]):
        execute([*prefix, dsopt, planned, "-run", f"-data={data}", f"-log={log}", f"-trace={trace}", "-quiet"])
        run = Run(log)
        check(run.hash == reference.hash, f"with all-to-alls the weights are {run.hash}, expected {reference.hash}")
        check(open(trace).read().count('"cat":"all_to_all"') >= 2 * count, "the trace has no all-to-alls")
    print(f"{count} all-to-alls a step, one hash {reference.hash[:16]}")
