"""Every printed stage reads back to the same text and runs to the same bits. Options that it was built with may be
given again in another spelling; those of later stages may still be chosen.

usage: stages.py DSOPT DSOPT-OPT
"""
import json
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
            # It breaks no lines.
            check(open(first).read().split() == third.split(), f"{name}: dsopt-opt prints another {stage}")
            # A string is never broken, whatever command it records.
            longest = max((re.sub(r'"dsopt [^"]*"', "", line) for line in open(first).read().splitlines()), key=len)
            check(stage != "exec" or len(longest) <= 160, f"{name}: a line of exec has {len(longest)} characters: {longest}")
            log = os.path.join(folder, "log.jsonl")
            execute([dsopt, first, "-run", f"-data={data}", f"-log={log}", "-quiet"])
            run = Run(log)
            check(run.hash == reference.hash, f"{name}: {stage} read back gives {run.hash}, expected {reference.hash}")
        pipeline = execute([dsopt, path, f"-data={data}", "-print-pipeline", "-emit=exec", *layout]).stdout.strip()
        graph = os.path.join(folder, "graph.mlir")
        text = execute([opt, graph, f"-pass-pipeline={pipeline}"]).stdout
        # The recorded command line names the output file.
        text, expected = (re.sub(r'command =\s+"[^"]*"', "", t).split() for t in (text, open(os.path.join(folder, "exec.mlir")).read()))
        check(text == expected, f"{name}: the printed pipeline gives another program")
    print(f"{name}: graph, dist and exec read back, one hash {reference.hash[:16]}")

path, data = model("mlp")
layout = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=4", "-no-decay=*.bias", "-lr-scale=*.weight=0.5", "-init=normal:0.02"]
with tempfile.TemporaryDirectory() as folder:
    def emit(source, stage, *options, status=0):
        return execute([dsopt, source, f"-emit={stage}", "-o", os.path.join(folder, stage + ".mlir"), *options], status=status).stderr

    def refuses(stage, option, built):
        said = emit(os.path.join(folder, stage + ".mlir"), "exec", option, status=1)
        expected = f"dsopt: error: {option} cannot be changed any more: this module {built}; start from the model\n"
        check(said == expected, f"{stage} {option}: {said}, expected {expected}")

    dist, run = os.path.join(folder, "dist.mlir"), os.path.join(folder, "exec.mlir")
    emit(path, "dist", f"-data={data}", "-device-memory=1G", *layout)
    rows = json.loads(execute([dsopt, dist, "-plan=json"]).stdout)["batch"]["micro_batch_size"]
    same = ["-device-memory=1073741824", "-device-memory=1024M", "-zero=3", "-no-decay=*.bias", "-lr-scale=*.weight=5e-1",
            "-init=normal:2e-2", f"-global-batch={8 * rows}", f"-micro-batch-size={rows}", "-schedule=1f1b", "-optimizer=adamw"]
    emit(dist, "exec")
    expected = open(run).read()
    for option in same:
        emit(dist, "exec", option)
        check(open(run).read() == expected, f"{option} given again changes the program")
    for option, built in (("-zero=2", "was built with 3"), (f"-global-batch={16 * rows}", f"was built with {8 * rows}"),
                          ("-no-decay=*.weight", "was built with *.bias"), ("-lr-scale=*.weight=0.25", "was built with *.weight=0.5"),
                          ("-init=normal:0.03", "was built with normal:0.02"), ("-optimizer=sgd", "was built with adamw"),
                          ("-freeze=*.bias", "does not say what it was built with")):
        refuses("dist", option, built)
    emit(path, "exec", f"-data={data}", "-device-memory=1G", *layout)
    refuses("exec", "-schedule=gpipe", "was built with 1f1b")
    for stage in "dist", "exec":
        emit(path, stage, f"-data={data}", "-device-memory=1G", "-arch=x86-64-v3", "-threads=2", *layout)
        refuses(stage, "-arch=x86-64-v2", "was built for x86-64-v3")
        refuses(stage, "-threads=3", "was built for 2 threads")
        emit(dist if stage == "dist" else run, "exec", "-arch=x86-64-v3", "-threads=2")
    emit(path, "exec", f"-data={data}", "-device-memory=1G", *layout)
    refuses("exec", "-device-memory=2G", "was built with 1073741824")
    emit(run, "exec", "-device-memory=1G")
    plans = [json.loads(execute([dsopt, dist, "-plan=json", *options]).stdout) for options in ([], ["-schedule=gpipe"], ["-gather-window=1"])]
    check([plan["layout"]["schedule"] for plan in plans] == ["1f1b", "gpipe", "1f1b"], "the schedule is not chosen at stage dist")
    gathered = [plan["ranks"][0]["traffic"]["all_gather"] for plan in plans]
    check(gathered[2] > gathered[0], f"the gather window is not chosen at stage dist: {gathered}")
    programs = []
    for option in ("-prefetch=1", "-prefetch=0", "-reductions-in-flight=1"):
        emit(dist, "exec", option)
        programs.append(re.sub(r"(prefetch|reductions_in_flight) = \d+", "", open(run).read()))
    check(len(set(programs)) == 3, "prefetch and throttle are not chosen at stage dist")
    check("more than the 1000 that" in execute([dsopt, dist, "-plan", "-device-memory=1000"], status=1).stderr, "nor is the budget")
print("options at later stages: by value")
