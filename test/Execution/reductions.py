"""What a dist.reduce says is what runs: in one hop to the owners of slices the bits are those of the engine's reduction,
in bf16 half the bytes are sent, and another type, method or order than there is is refused.

usage: reductions.py DSOPT DSOPT-OPT
"""
import json
import os
import sys
import tempfile

from runs import Run, check, execute, model

dsopt, opt = sys.argv[1:]


def changed(folder, dist, word):
    """The module whose reductions end with `word`."""
    path = os.path.join(folder, "changed.mlir")
    lines = execute([opt, dist]).stdout.split("\n")  # one operation a line
    reductions = [i for i, line in enumerate(lines) if "dist.reduce" in line]
    check(reductions and all(lines[i].endswith(" as f32") for i in reductions), f"reductions of {dist}")
    for i in reductions:
        lines[i] = lines[i].removesuffix("as f32") + word
    open(path, "w").write("\n".join(lines))
    return path


for name, dp, zero, options in (("mlp", 2, 0, []), ("mlp", 3, 1, []), ("mlp", 4, 2, ["-accumulate=sharded"]), ("mlp", 3, 3, ["-pp=2"]),
                                ("gpt2-tiny", 2, 2, ["-pp=2"]), ("gpt2-tiny", 2, 3, ["-accumulate=local"])):
    path, data = model(name)
    layout = [f"-dp={dp}", f"-zero={zero}", "-micro-batches=2", "-steps=8", *options]
    with tempfile.TemporaryDirectory() as folder:
        dist, log = os.path.join(folder, "dist.mlir"), os.path.join(folder, "log.jsonl")
        execute([dsopt, path, f"-data={data}", *layout, "-emit=dist", "-o", dist])
        runs, traffic = {}, {}
        for word in ("as f32", "as f32 by all_to_all", "as bf16", "as bf16 by all_to_all"):
            module = changed(folder, dist, word)
            execute([dsopt, module, "-run", "-quiet", f"-data={data}", f"-log={log}", "-steps=8"])
            runs[word] = Run(log)
            traffic[word] = json.loads(execute([dsopt, module, f"-data={data}", "-plan=json"]).stdout)["ranks"][0]["traffic"]
        hashes = {word: run.hash for word, run in runs.items()}
        check(hashes["as f32"] == hashes["as f32 by all_to_all"], f"{name} {layout}: other bits by all_to_all: {hashes}")
        check(hashes["as f32"] != hashes["as bf16"], f"{name} {layout}: bf16 changes nothing")
        apart = max(abs(b / a - 1) for a, b in zip(runs["as f32"].losses, runs["as bf16"].losses))
        check(len(runs["as bf16"].losses) == 8 and apart < 0.02, f"{name} {layout}: losses are {apart:.2%} apart in bf16")
        # The engine rounds the sums of two ranks as the owner does.
        check(hashes["as bf16"] == hashes["as bf16 by all_to_all"], f"{name} {layout}: other bits by all_to_all in bf16: {hashes}")
        sent = {word: (figures["reduce_scatter"], figures["all_to_all"]) for word, figures in traffic.items()}
        whole = {word: sum(figures[kind] for kind in ("reduce_scatter", "all_to_all", "padding")) for word, figures in traffic.items()}
        apart_by = sent["as f32 by all_to_all"][1] // 2
        check(all((scattered > 0, apart > 0) == ("by" not in word, "by" in word) for word, (scattered, apart) in sent.items()) and
              whole["as f32"] == whole["as f32 by all_to_all"] and whole["as bf16"] == whole["as bf16 by all_to_all"] == whole["as f32"] - apart_by,
              f"{name} {layout}: reductions send {sent}, with padding {whole} bytes")
        module = changed(folder, dist, "as f32 order fast")
        said = execute([dsopt, module, "-plan", f"-data={data}"], status=1).stderr
        check("asks for the order fast, which only NCCL has, expected canonical" in said, said)
        print(f"{name}, dp {dp}, zero {zero}: {sent['as f32'][0]} bytes in f32, {sent['as bf16'][0]} in bf16, losses at most {apart:.3%} apart; one hash {hashes['as f32'][:16]}")
