"""Cuts that a user asks for: what -shard has cut trains with one hash at every degree, and -plan shows it in both forms; a matrix that PyTorch has
the other way round is counted as PyTorch does; all sizes of a dimension have the cuts of the largest; what cannot be had is refused in one line.

usage: tensor_cuts.py DSOPT
"""
import json
import os
import re
import sys
import tempfile

import numpy as np

from runs import check, execute, model, relative, train
from small import initializer, node, value, write

dsopt = sys.argv[1]
STEP = ["-steps=3", "-lr=3e-3", "-micro-batch-size=2", "-global-batch=8", "-reduction-shards=4", "-accumulate=sharded"]
HALF = ["-shard=*.h.[02].mlp.*=none", "-shard=*.h.1.attn.c_attn.weight=tp:1", "-shard=*.h.3.mlp.c_proj.weight=tp:0"]


def planned(*words):
    return json.loads(execute([dsopt, *words, "-plan=json"]).stdout)["sharding"]


def cuts(sharding):
    return {one["name"]: one["cut"] and one["cut"]["dim"] for one in sharding["parameters"]}


def same_bits():
    """The same cuts at every degree, others than without -shard."""
    path, _ = model("gpt2-tiny")
    runs = [train(dsopt, "gpt2-tiny", "-tensor-shards=4", *STEP, *HALF, *words.split())
            for words in ("-tp=1", "-tp=2", "-tp=4 -pp=2", "-tp=2 -dp=2 -zero=3", "-tp=1 -threads=1")]
    check(len({run.hash for run in runs}) == 1 and len({str(run.loss_text) for run in runs}) == 1, f"degrees differ: {[run.hash for run in runs]}")
    free = train(dsopt, "gpt2-tiny", "-tensor-shards=4", *STEP)
    check(free.hash != runs[0].hash and relative(free.losses, runs[0].losses) < 1e-5, f"-shard: {runs[0].losses}, without: {free.losses}")
    degrees = [planned(path, "-tensor-shards=4", *HALF, f"-tp={tp}") for tp in (1, 2, 4)]
    check(len({str((cuts(one), one["cost_ms"], one["bound_ms"])) for one in degrees}) == 1, f"degrees choose otherwise: {degrees}")
    whole = {name for name, cut in cuts(degrees[0]).items() if cut is None}
    check({name for name in whole if ".mlp.c_" in name and ".weight" in name} == {f"m.transformer.h.{h}.mlp.{one}.weight" for h in (0, 2) for one in ("c_fc", "c_proj")},
          f"whole: {whole}")
    print(f"-shard: {len(runs)} layouts, one hash {runs[0].hash[:16]}", flush=True)


def resumed():
    """A checkpoint says what was cut: other cuts are other sums."""
    path, data = model("gpt2-tiny")
    base = [dsopt, path, "-run", f"-data={data}", "-tensor-shards=4", *STEP]
    with tempfile.TemporaryDirectory() as folder:
        for saved, *words in ((f"{folder}/cut", *HALF), (f"{folder}/whole", "-tp=4")):
            execute([*base, *words, "-tp=2", "-steps=1", f"-save={saved}"])
        for saved, words, expected in ((f"{folder}/cut", [*HALF, "-tp=4"], False), (f"{folder}/cut", ["-tp=2"], True), (f"{folder}/cut", ["-tp=1", *HALF[1:]], True),
                                       (f"{folder}/whole", ["-tp=1"], False), (f"{folder}/whole", [*HALF, "-tp=2"], True)):
            done = execute([*base, *words, "-steps=2", f"-resume={saved}"])
            notes = re.findall(r"what tensor shards cut \(-shard\) is \d+ parameters \([0-9a-f]{16}\), the checkpoint was written with \d+ parameters", done.stdout + done.stderr)
            check(len(notes) == expected, f"{saved} {words}: {done.stdout} {done.stderr}")
    print("other cuts than a checkpoint's are said", flush=True)


def both_forms():
    """The two forms of the plan say the same, and what the traffic counts."""
    path, _ = model("gpt2-tiny")
    for words in (["-tp=2"], ["-tp=4", "-micro-batches=3"], ["-tensor-shards=2"], ["-tp=2", "-dp=2", "-pp=2", "-zero=3", *HALF]):
        whole = json.loads(execute([dsopt, path, *words, "-plan=json"]).stdout)
        sharding, text = whole["sharding"], execute([dsopt, path, *words, "-plan=sharding"]).stdout
        rows = {name: (shape, cut) for name, shape, cut in re.findall(r"^(m\.\S+) +([0-9x]+) +(.*)$", text, re.M)}
        check(len(rows) == len(sharding["parameters"]), f"{words}: {text}")
        for one in sharding["parameters"]:
            reason = f": {one['reason']}" if "reason" in one else ""
            expected = f"dimension {one['cut']['dim']} over tp" if one["cut"] else f"whole{reason}"
            check(rows[one["name"]] == ("x".join(map(str, one["shape"])), expected) and (not one["cut"] or one["cut"]["axes"] == ["tp"]),
                  f"{words}: {one} and {rows[one['name']]}")
        sums = re.findall(r"^ +(\d+)  (\w) +(\w+) +(\w+) +(\d+) +(\d+)  (.*)$", text, re.M)
        check([(str(one["block"]), one["phase"], one["kind"], *one["axes"], str(one["calls"]), str(one["bytes"]), one["reason"]) for one in sharding["collectives"]] == sums,
              f"{words}: {sharding['collectives']} and {sums}")
        check(all(one["kind"] in ("all_reduce", "all_gather", "reduce_scatter") and one["axes"] == ["tp"] for one in sharding["collectives"]), f"{words}: {sharding['collectives']}")
        sent = sum(rank["traffic"]["tensor_parallel"] for rank in whole["ranks"]) / whole["layout"]["dp"] / whole["layout"]["tp"]
        check(sum(one["bytes"] for one in sharding["collectives"]) == sent, f"{words}: {sharding['collectives']}, sent {sent}")
        figures = [float(re.search(rf"^{name} +([0-9.]+)", text, re.M)[1]) for name in ("cost_ms", "bound_ms")]
        check(np.allclose(figures, [sharding["cost_ms"], sharding["bound_ms"]], atol=5e-4) and sharding["cost_ms"] >= sharding["bound_ms"] > 0,
              f"{words}: {figures}, {sharding['cost_ms']}")
    check("sharding" not in json.loads(execute([dsopt, path, "-plan=json"]).stdout), "a plan without tensor shards")
    check("no tensor shards" in execute([dsopt, path, "-plan=sharding"]).stdout, "-plan=sharding without tensor shards")
    print("-plan: both forms agree", flush=True)


def turned(folder):
    """A matrix that lies as a product reads it, and one that PyTorch has the other way round: `up` is [8, 32] in the file, [32, 8] in PyTorch."""
    draws = np.random.default_rng(3)
    weights = {"up": (8, 32), "bias": (32,), "down": (32, 8)}
    path = os.path.join(folder, "turned.onnx")
    nodes = [node("MatMul", "x up", "a"), node("Add", "a bias", "b"), node("Relu", "b", "c"), node("MatMul", "c down", "d"), node("ReduceMean", "d", "loss", keepdims=0)]
    rows = [{"onnx": name, "torch": name, "kind": "parameter", **({"transposed": True} if name == "up" else {})} for name in weights]
    write(path, nodes, [value("x", (4, 8))], [initializer(name, draws.normal(0, 1, shape).astype(np.float32)) for name, shape in weights.items()],
          [value("loss", ())], metadata={"dsopt.parameters": json.dumps(rows)})
    for words in (["-shard=up=tp:0"], ["-shard=up=tp:0", "-shard=down=tp:0", "-shard=bias=tp:0"], []):
        sharding = planned(path, "-tp=2", *words)
        up = next(one for one in sharding["parameters"] if one["name"] == "up")
        check(up["shape"] == [32, 8] and cuts(sharding) == {"up": 0, "bias": 0, "down": 0}, f"{words}: {sharding['parameters']}")
    said = execute([dsopt, path, "-tp=2", "-plan", "-shard=up=tp:1"], status=1).stderr
    check("-shard=up=tp:1: parameter 'up' cannot be cut along dimension 1: an input would be cut" in said, said)
    print("dimensions as PyTorch counts them", flush=True)


def sizes():
    """At its own number of tokens each size might pay otherwise."""
    path = model("gpt2-tiny-opset23-dynamic")[0]
    words = [path, "-micro-batch-size=2", "-dim=s70=32,8", "-dim=s38=32,8"]
    check(cuts(planned(*words, "-tp=2")) == cuts(planned(path, "-micro-batch-size=2", "-dim=s70=32", "-dim=s38=32", "-tp=2")), "sizes choose otherwise")
    tokens = np.random.default_rng(0).integers(0, 512, (16, 32))
    with tempfile.TemporaryDirectory() as folder:
        data, short = os.path.join(folder, "data.npz"), os.path.join(folder, "short.npz")
        np.savez(data, input_ids=tokens, labels=tokens)
        np.savez(short, input_ids=tokens[:, :8], labels=tokens[:, :8])
        for file in (data, short):
            said = {execute([dsopt, *words, "-run", "-steps=2", "-tensor-shards=2", f"-data={file}", tp, f"-save-weights={folder}/w"]).stdout.split("step 0")[1].split("grad")[0]
                    + str(hash(open(f"{folder}/w", "rb").read())) for tp in ("-tp=1", "-tp=2")}
            check(len(said) == 1, f"{file}: {said}")
    print("one choice for all sizes", flush=True)


def refused():
    """One line each; where there are no shards, a warning."""
    path, data = model("gpt2-tiny")
    for words, said in (("-shard=*.nothing.*=tp:0", "-shard=*.nothing.*=tp:0 matches no parameter of the model"),
                        ("-shard=*.c_fc.weight=sp:0", "-shard=*.c_fc.weight=sp:0: there is no axis 'sp' to cut over, expected tp"),
                        ("-shard=*.c_fc.weight=1", "expected GLOB=tp:DIM with a dimension from 0 on, or GLOB=none"),
                        ("-shard=c_fc", "option -shard: expected GLOB=tp:DIM|none, got 'c_fc'"),
                        ("-shard=*.c_fc.weight=tp:2", "parameter 'm.transformer.h.0.mlp.c_fc.weight' has 2 dimensions, expected one from 0 to 1"),
                        ("-shard=*.h.0.mlp.c_fc.weight=tp:0", "cannot be cut along dimension 0: 'graph.layer_norm' sees whole what would be cut"),
                        ("-shard=*.ln_1.weight=tp:0", "-shard=*.ln_1.weight=tp:0: parameter 'm.transformer.h.0.ln_1.weight' cannot be cut along dimension 0: "),
                        ("-shard=*.c_fc.weight=tp:1 -shard=*.0.mlp.*=none", "-shard=*.c_fc.weight=tp:1 and -shard=*.0.mlp.*=none contradict each other"),
                        ("-shard=*.c_fc.weight=tp:1 -shard=*.c_proj.weight=tp:1", "contradict each other"),
                        ("-shard=*=none", "has nothing that 2 tensor shards could cut (-tp, -tensor-shards): -shard=*=none keeps it whole")):
        done = execute([dsopt, path, "-run", f"-data={data}", "-steps=1", "-tp=2", *words.split()], status=1)
        check(said in done.stderr and done.stderr.count("error:") == 1, f"{words}: {done.stderr}")
    for words in ([], ["-tp=1"]):
        said = execute([dsopt, path, "-plan", "-shard=*.c_fc.weight=tp:1", *words]).stderr
        check("dsopt: warning: option -shard=*.c_fc.weight=tp:1 has no effect here: it goes with -tp or -tensor-shards of 2 or more" in said, f"{words}: {said}")
    # Programs follow from it.
    with tempfile.TemporaryDirectory() as folder:
        stage = os.path.join(folder, "stage.mlir")
        execute([dsopt, path, "-tp=2", *HALF, "-emit=dist", "-o", stage])
        execute([dsopt, stage, *HALF, "-plan"])
        said = execute([dsopt, stage, "-shard=*.c_fc.weight=tp:1", "-plan"], status=1).stderr
        check("-shard=*.c_fc.weight=tp:1 cannot be changed any more: this module was built with" in said, said)
    print("refused by name", flush=True)


with tempfile.TemporaryDirectory() as folder:
    turned(folder)
both_forms()
sizes()
refused()
resumed()
same_bits()
