"""A pass and a schedule outside the tree, built against the install tree, change a
real run but not its bits.

usage: plugin.py BUILD SOURCE
"""
import json
import os
import shutil
import sys
import tempfile

import numpy as np

import small
from runs import Run, check, execute, model, relative
from small import initializer, node, value

build, source = sys.argv[1:]
path, data = model("gpt2-tiny")
layout = ["-dp=1", "-pp=2", "-steps=2", f"-data={data}"]
with tempfile.TemporaryDirectory() as folder:
    tree, plugin = os.path.join(folder, "tree"), os.path.join(folder, "plugin")
    execute(["cmake", "--install", build, "--prefix", tree])
    execute(["cmake", "-G", "Ninja", "-S", os.path.join(source, "examples", "plugin"), "-B", plugin,
             f"-Ddsopt_DIR={tree}/lib/cmake/dsopt", "-DCMAKE_CXX_COMPILER=clang++-22", "-DCMAKE_C_COMPILER=clang-22",
             *(["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else [])])
    # Each time the tree is in another folder.
    execute(["cmake", "--build", plugin], environment={"CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1"})
    dsopt = os.path.join(tree, "bin", "dsopt")
    extra = [f"-load-pass-plugin={plugin}/uneven-stages.so", "-insert-pass=after:split-stages:uneven-stages{first=1}"]
    blocks, hashes = [], []
    for options in ([], extra):
        plan = json.loads(execute([dsopt, path, "-plan=json", *layout, *options]).stdout)
        blocks.append(plan["ranks"][0]["blocks"])
        log = os.path.join(folder, "log.jsonl")
        execute([dsopt, path, "-run", "-quiet", f"-log={log}", *layout, *options])
        hashes.append(Run(log).hash)
    check(blocks[1] == [[0, 1]] and blocks[0] != blocks[1], f"first stage has blocks {blocks[1]}, expected [[0, 1]]")
    check(hashes[0] == hashes[1], f"another cut gives another result: {hashes}")
    print(f"first stage: blocks {blocks[0]} before, {blocks[1]} with the plugin; one hash {hashes[0][:16]}")

    # Another order of the pipeline: fewer bubbles, which plan and log say alike, and the same bits.
    late = [f"-load-pass-plugin={plugin}/zero-bubble.so", "-schedule=zb-h1"]
    layout = ["-dp=2", "-pp=4", "-zero=2", "-micro-batches=8", "-steps=2", f"-data={data}"]
    bubbles, hashes = [], []
    for options in ([], late):
        plan = json.loads(execute([dsopt, path, "-plan=json", *layout, *options]).stdout)
        log = os.path.join(folder, "log.jsonl")
        execute([dsopt, path, "-run", "-quiet", f"-log={log}", *layout, *options])
        run = Run(log)
        logged = run.head["plan"]
        check(0 < plan["bubble"] < 1 and plan["bubble"] == logged["bubble"], f"{options}: bubble {plan['bubble']} planned, {logged['bubble']} logged")
        check(plan["flops_per_step"] == logged["flops_per_step"], f"{options}: {plan['flops_per_step']} flops planned, {logged['flops_per_step']} logged")
        bubbles.append(plan["bubble"])
        hashes.append(run.hash)
    check(bubbles[1] < 0.9 * bubbles[0], f"bubbles {bubbles}: W apart from B does not fill them")
    check(hashes[0] == hashes[1], f"another order gives another result: {hashes}")
    print(f"zb-h1: bubble {bubbles[0]:.3f} before, {bubbles[1]:.3f} with the plugin; one hash {hashes[0][:16]}")
    # W behind its B on every stage: bubbles are back.
    plan = json.loads(execute([dsopt, path, "-plan=json", *layout, late[0], "-schedule=zb-h1{trail=0}"]).stdout)
    check(bubbles[1] < plan["bubble"], f"bubble {plan['bubble']} with W right behind B, {bubbles[1]} with W apart")
    for options, words in (([late[0], "-schedule=zb-h1{lag=0}"], "option -schedule: zb-h1 has no option 'lag', expected trail"),
                           ([late[0], "-schedule=zb-h1{trail=few}"], "option -schedule: zb-h1 got trail='few', expected a whole number"),
                           (["-schedule=1f1b{trail=1}"], "option -schedule: 1f1b has no option 'trail', expected none"),
                           (["-schedule=1f1b{"], "option -schedule: is \"1f1b{\", expected NAME{option=N,...}"),
                           (["-schedule=zb-h1"], "option -schedule: expected one of 1f1b|gpipe|interleaved, got 'zb-h1'"),
                           ([*late, "-schedule=zb-h2"], "option -schedule: expected one of 1f1b|gpipe|interleaved|zb-h1, got 'zb-h2'; did you mean zb-h1?"),
                           (["-schedule=zero-bubble"], "option -schedule=zero-bubble is not available yet")):
        said = execute([dsopt, path, "-plan", *layout, *options], status=1).stderr
        check(said == f"dsopt: error: {words}\n", f"{options}: {said}")

    # Another place for blocks: the first and the last on one stage, which share the embedding and send it nowhere.
    plugged = [f"-load-pass-plugin={plugin}/v-shape.so", "-schedule=v"]
    sent, hashes = [], []
    for options in ([], plugged):
        plan = json.loads(execute([dsopt, path, "-plan=json", "-dp=2", "-pp=2", "-micro-batches=4", "-zero=1", f"-data={data}", *options]).stdout)
        sent.append(sum(rank["traffic"]["tied"] for rank in plan["ranks"]))
        for layout in (["-dp=2", "-pp=2", "-micro-batches=4", "-zero=1"], ["-dp=1", "-pp=3", "-micro-batches=8"]):
            log = os.path.join(folder, "log.jsonl")
            execute([dsopt, path, "-run", "-quiet", f"-log={log}", *layout, "-steps=2", "-reduction-shards=2", f"-data={data}", *options])
            hashes.append(Run(log).hash)
    check([len(rank["blocks"]) for rank in plan["ranks"]] == [2] * 4 and plan["ranks"][0]["blocks"][1][1] == 9, f"blocks {plan['ranks']}")
    check(sent[0] > 0 and sent[1] == 0, f"shared weights send {sent} bytes")
    check(len(set(hashes)) == 1, f"another place for blocks gives another result: {hashes}")
    print(f"v: shared weights send {sent} bytes, one hash {hashes[0][:16]}")

    # Another rule for gathers: by bytes. More of them are ahead, in a larger arena, and the bits are the same.
    layout = ["-dp=2", "-zero=3", "-prefetch=0", "-micro-batches=2", "-steps=2", f"-data={data}"]
    arenas, hashes = [], []
    for budget in (0, 400000):
        rule = [f"-load-pass-plugin={plugin}/gather-budget.so", f"-insert-pass=after:prefetch-gathers:gather-budget{{bytes={budget}}}"]
        plan = json.loads(execute([dsopt, path, "-plan=json", *layout, *rule]).stdout)
        arenas.append(plan["ranks"][0]["memory"]["total"])
        log = os.path.join(folder, "log.jsonl")
        execute([dsopt, path, "-run", "-quiet", f"-log={log}", *layout, *rule])
        hashes.append(Run(log).hash)
    check(arenas[1] > arenas[0], f"arenas {arenas}: nothing is gathered ahead")
    check(hashes[0] == hashes[1], f"another rule for gathers gives another result: {hashes}")
    print(f"gathers ahead: arenas of {arenas} bytes, one hash {hashes[0][:16]}")

    # A collective on values of its own: sums of tensor shards in the order of ranks, which of two is that of a tree.
    chain = [f"-load-pass-plugin={plugin}/chain-sums.so", "-insert-pass=before:form-blocks:chain-sums"]
    for degree in (2, 4):
        runs = []
        for options in ([], chain, ["-recompute=full", *chain]):
            log = os.path.join(folder, "log.jsonl")
            execute([dsopt, path, "-run", "-quiet", f"-log={log}", f"-tp={degree}", "-steps=2", f"-data={data}", *options])
            runs.append(Run(log))
        check((runs[0].hash == runs[1].hash) == (degree == 2), f"sums in order over {degree} ranks: {[run.hash for run in runs]}")
        check(runs[1].hash == runs[2].hash and relative(runs[0].losses, runs[1].losses) < 1e-5, f"sums in order over {degree} ranks: {[run.losses for run in runs]}")
    print("sums in the order of ranks: another result at 4 ranks, one in both layouts")

    # Plugins may have optimizers of their own: the pass that takes one says which there are.
    for options, words in (([], "dsopt: error: option -optimizer: expected one of adafactor|adagrad|adam|adamw|lamb|lion|muon|onebit-adam|onebit-lamb|sgd|zero-one-adam, got 'adamv'; did you mean adam?"),
                           ([late[0]], "optimizer 'adamv' is not available, expected one of adafactor, adagrad, adam, adamw, lamb, lion, muon, onebit-adam, onebit-lamb, sgd, zero-one-adam")):
        said = execute([dsopt, path, "-plan", f"-data={data}", "-optimizer=adamv", *options], status=1).stderr
        check(words in said, f"{options}: {said}")

    # A method of its own for reductions: half the bytes between ranks, the losses of before but for rounding, one result.
    narrow = [f"-load-pass-plugin={plugin}/narrow-reductions.so", "-compress-gradients=narrow"]
    small_ones = [narrow[0], "-compress-gradients=narrow{least=0.0001}"]
    bytes_sent, losses, hashes = [], [], []
    for layout, options in ((["-zero=1"], []), (["-zero=1"], narrow), (["-zero=2", "-accumulate=local"], narrow), (["-zero=0"], narrow), (["-zero=1"], small_ones)):
        layout = ["-dp=2", "-micro-batches=2", "-steps=30", f"-data={data}", *layout, *options]
        plan = json.loads(execute([dsopt, path, "-plan=json", *layout]).stdout)
        bytes_sent.append(plan["ranks"][0]["traffic"])
        log = os.path.join(folder, "log.jsonl")
        execute([dsopt, path, "-run", "-quiet", f"-log={log}", *layout])
        losses.append(Run(log).losses)
        hashes.append(Run(log).hash)
    # What blocks share goes whole; records have padding, too.
    moved, whole = bytes_sent[0]["reduce_scatter"] - bytes_sent[1]["reduce_scatter"], bytes_sent[1]["reduce_scatter"]
    check(0 < whole < moved and abs(bytes_sent[1]["all_to_all"] / moved - 0.5) < 0.01, f"reductions send {bytes_sent[:2]}, expected half")
    check(len(set(hashes)) == 3 and len(set(hashes[1:4])) == 1, f"the method gives {hashes}")
    apart = [max(abs(b / a - 1) for a, b in zip(losses[0], run)) for run in (losses[1], losses[4])]
    check(len(losses[1]) == 30 and 0 < apart[0] < 0.02 and apart[0] != apart[1] < 0.02, f"losses are {apart} apart")
    print(f"reductions in bf16 with error feedback: {moved} bytes in half as many, losses at most {apart[0]:.4%} apart, one hash")
    for options, words in ((["-compress-gradients=narrow"], "option -compress-gradients: expected one of none|onebit|powersgd|topk, got 'narrow'"),
                           ([narrow[0], "-compress-gradients=narrow{most=1}"], "option -compress-gradients: narrow has no option 'most', expected least"),
                           ([narrow[0], "-compress-gradients=narrow{least=-1}"], "option -compress-gradients: narrow got least='-1', expected a number from 0 to 1e+30"),
                           ([narrow[0], "-compress-gradients=narow"], "expected one of none|narrow|onebit|powersgd|topk, got 'narow'; did you mean narrow?"),
                           (["-compress-gradients=onebit{least=1}"], "option -compress-gradients: onebit has no option 'least', expected none"),
                           (["-compress-gradients=onebit{"], "option -compress-gradients: is \"onebit{\", expected NAME{option=N,...}")):
        said = execute([dsopt, path, "-plan", "-dp=2", f"-data={data}", *options], status=1).stderr
        check(words in said, f"{options}: {said}")

    # Forward of blocks again in backward: they keep less, B hands on to W what it made anew, and the bits are the same.
    rng = np.random.default_rng(5)
    nodes, last = [], "x"
    for i in range(4):
        nodes += [node("MatMul", f"{last} a{i}", f"m{i}"), node("Add", f"m{i} c{i}", f"p{i}"), node("Gelu", f"p{i}", f"u{i}"),
                  node("MatMul", f"u{i} b{i}", f"v{i}"), node("Add", f"{last} v{i}", f"h{i}")]
        last = f"h{i}"
    nodes += [node("Sub", f"{last} t", "e"), node("Mul", "e e", "q"), node("ReduceMean", "q", "loss", keepdims=0)]
    weights = [initializer(f"{letter}{i}", rng.normal(0, 0.2, shape).astype(np.float32))
               for i in range(4) for letter, shape in (("a", (16, 64)), ("b", (64, 16)), ("c", (64,)))]
    wide = small.write(os.path.join(folder, "wide.onnx"), nodes, [value("x", (32, 16)), value("t", (32, 16))], weights)
    batches = {name: rng.normal(0, 1, (512, 16)).astype(np.float32) for name in ("x", "t")}
    np.savez(os.path.join(folder, "wide.npz"), **batches)
    again = [f"-load-pass-plugin={plugin}/recompute-blocks.so", "-insert-pass=before:form-blocks:recompute-blocks"]
    late = [f"-load-pass-plugin={plugin}/zero-bubble.so", "-schedule=zb-h1{trail=2}"]
    kept, hashes = [], set()
    for options in ([], again):
        for layout in (["-dp=1", "-pp=1"], ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=4"], ["-dp=1", "-pp=2", *late]):
            layout = ["-micro-batches=8", "-reduction-shards=2", "-accumulate=local", *layout, *options]
            plan = json.loads(execute([dsopt, wide, "-plan=json", f"-data={os.path.join(folder, 'wide.npz')}", *layout]).stdout)
            kept.append([rank["memory"]["activations"] for rank in plan["ranks"]])
            hashes.add(small.train(dsopt, wide, batches, "-steps=2", "-quiet", *layout)[0].hash)
    check(len(hashes) == 1, f"blocks run again give another result: {hashes}")
    # What B made anew is held until a late W. Each rank's are those alive at its peak, which may come at another time now.
    for most, before, after in zip((0.75, 0.75, 0.9), kept[:3], kept[3:]):
        check(sum(after) < most * sum(before) and all(b < a for a, b in zip(before, after)), f"activations of {before} bytes before, {after} after")
    dist = os.path.join(folder, "dist.mlir")
    execute([dsopt, wide, "-emit=dist", "-o", dist, f"-data={os.path.join(folder, 'wide.npz')}", "-micro-batches=8", "-reduction-shards=2", *again])
    check(small.train(dsopt, dist, batches, "-steps=2", "-quiet")[0].hash in hashes, "its dist form gives another result")
    print(f"blocks again: activations of {kept[:3]} bytes before, {kept[3:]} after, one hash {hashes.pop()[:16]}")
