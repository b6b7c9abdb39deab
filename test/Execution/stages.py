"""Every printed stage reads back to the same text and runs to the same bits.

usage: stages.py DSOPT DSOPT-OPT
"""
import os
import re
import sys
import tempfile

from runs import Run, check, execute, model, train

dsopt, opt = sys.argv[1:]
for name in ("mlp", "gpt2-tiny"):
    path, data = model(name)
    layout = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-steps=2"]
    reference = train(dsopt, name, *layout)
    with tempfile.TemporaryDirectory() as folder:
        for stage in ("graph", "dist", "exec"):
            first, second = os.path.join(folder, stage + ".mlir"), os.path.join(folder, stage + "2.mlir")
            execute([dsopt, path, f"-data={data}", f"-emit={stage}", "-o", first, *layout])
            execute([dsopt, first, f"-emit={stage}", "-o", second])
            check(open(first).read() == open(second).read(), f"{name}: {stage} reads back to another text")
            third = execute([opt, first]).stdout
            check(open(first).read().rstrip() == third.rstrip(), f"{name}: dsopt-opt prints another {stage}")
            log = os.path.join(folder, "log.jsonl")
            execute([dsopt, first, "-run", f"-data={data}", f"-log={log}", "-quiet"])
            run = Run(log)
            check(run.hash == reference.hash, f"{name}: {stage} read back gives {run.hash}, expected {reference.hash}")
        pipeline = execute([dsopt, path, f"-data={data}", "-print-pipeline", "-emit=exec", *layout]).stdout.strip()
        graph = os.path.join(folder, "graph.mlir")
        text = execute([opt, graph, f"-pass-pipeline={pipeline}"]).stdout
        # The recorded command line names the output file.
        text, expected = (re.sub(r'command = "[^"]*"', "", t).rstrip() for t in (text, open(os.path.join(folder, "exec.mlir")).read()))
        check(text == expected, f"{name}: the printed pipeline gives another program")
    print(f"{name}: graph, dist and exec read back, one hash {reference.hash[:16]}")
