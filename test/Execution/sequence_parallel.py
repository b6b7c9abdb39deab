"""One hash and one loss text over all degrees of sequence parallelism at equal sequence shards, beside data parallelism, ZeRO and tensor
parallelism; a run resumed at another degree; what counts once; and losses beside those of one shard, which are other bits of the same numbers.

usage: sequence_parallel.py DSOPT
"""
import json
import os
import re
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper

from own_models import Nodes, save
from runs import MPIRUN, check, execute, model, refused, relative, same_bits, train

dsopt = sys.argv[1]
STEP = ["-steps=3", "-grad-clip=1", "-lr=3e-3", "-micro-batch-size=2"]
SHARDS = ["-sequence-shards=4", *STEP]


def same(title, runs, base):
    return same_bits(dsopt, title, "gpt2-tiny", runs, base)


def transformer():
    """Reduction shards count data-parallel ranks where sequence shards lie on several."""
    grids = ["-sp=1", "-sp=2", "-sp=4", "-sp=4 -sp-method=ulysses*2 -zero=3", "-sp=2 -zero=1", "-sp=2 -zero=2", "-sp=2 -zero=3", "-sp=4 -zero=3 -pp=2", "-sp=2 -recompute=full"]
    run = same("gpt2-tiny, Q = 4", grids, [*SHARDS, "-micro-batches=4"])
    one = train(dsopt, "gpt2-tiny", *STEP, "-micro-batches=4")
    check(relative(run.losses, one.losses) < 1e-5 and run.hash != one.hash, f"4 sequence shards: {run.losses}, one: {one.losses}")
    grids = ["-sp=1", "-dp=2 -zero=3", *(f"-dp=2 -sp=2 -zero={zero}" for zero in range(4)), "-dp=2 -sp=4 -zero=3", ([*MPIRUN, "4"], "-sp=2 -zero=2"),
             "-dp=2 -sp=2 -zero=3 -gather-window=2 -offload-params=cpu -offload-optimizer=cpu"]
    same("gpt2-tiny, Q = 4, V = 2", grids, [*SHARDS, "-global-batch=8", "-reduction-shards=2"])
    for precision in ("bf16", "fp16"):
        same(f"gpt2-tiny, Q = 4, V = 2, {precision}", ["-sp=1", "-dp=2 -sp=2 -zero=3", "-dp=2 -sp=4 -sp-method=ring", "-dp=2 -sp=2 -sp-method=ring", "-dp=2 -sp=4 -sp-method=ulysses*2"],
             [*SHARDS, "-global-batch=8", "-reduction-shards=2", f"-precision={precision}"])
    same("gpt2-tiny, Q = 4, T = 2", ["-sp=1", "-tp=2", "-sp=2 -tp=2 -zero=3", "-sp=4 -zero=1", "-sp=4 -tp=2 -sp-method=ulysses*2"], [*SHARDS, "-tensor-shards=2", "-micro-batches=2"])
    same("gpt2-tiny, Q = 8", ["-sp=1", "-sp=8 -sp-method=ring", "-sp=8 -sp-method=ulysses*2", "-sp=8 -sp-method=ulysses*4", "-sp=4 -sp-method=ulysses*2", "-sp=4", "-sp=2 -sp-method=ring"],
         ["-sequence-shards=8", *STEP, "-micro-batches=2"])


def others():
    for rule in ("lamb", "muon", "adafactor", "lion"):
        same(f"gpt2-tiny, Q = 4, {rule}", ["-sp=1", "-sp=2 -zero=3", "-sp=4"], [*SHARDS, f"-optimizer={rule}"])


def norms():
    """Each element counts once, whoever has it beside."""
    runs = [train(dsopt, "gpt2-tiny", *SHARDS, "-tensor-shards=2", "-log-norms", *words.split()).steps[-1] for words in ("-sp=1", "-sp=2 -tp=2", "-sp=4 -zero=3", "-tp=2")]
    for name in ("grad_norm", "grad_norms", "param_norms"):
        check(all(run[name] == runs[0][name] for run in runs), f"{name} differ: {[run[name] for run in runs]}")
    print(f"norms: {len(runs[0]['grad_norms'])} of gradients, {len(runs[0]['param_norms'])} of parameters", flush=True)


def resumed():
    """Each degree goes on from what another one saved; the weights go home whole."""
    path, data = model("gpt2-tiny")
    base = [dsopt, path, "-run", f"-data={data}", "-quiet", *STEP, "-global-batch=8", "-reduction-shards=2"]
    with tempfile.TemporaryDirectory() as folder:
        whole = os.path.join(folder, "whole.safetensors")
        execute([*base, "-sequence-shards=4", "-steps=4", f"-save-weights={whole}"])
        expected = open(whole, "rb").read()
        for before, behind in (("-dp=2 -sp=2 -zero=3", "-dp=2 -zero=1"), ("-sp=1 -sequence-shards=4", "-dp=2 -sp=4"), ("-dp=2 -sp=4 -zero=1", "-sp=1")):
            saved, weights = os.path.join(folder, "saved"), os.path.join(folder, "weights.safetensors")
            execute([*base, "-sequence-shards=4", *before.split(), "-steps=2", f"-save={saved}"])
            # Without the option the checkpoint's number is taken.
            execute([*base, *behind.split(), "-steps=4", f"-resume={saved}", f"-save-weights={weights}"])
            check(open(weights, "rb").read() == expected, f"from {before} to {behind}: other weights than without a stop")
            execute(["rm", "-r", saved])
        execute([*base, "-sequence-shards=4", "-steps=1", f"-save={folder}/four"])
        for words, text in (("-sequence-shards=2", "was written with Q 4 sequence shards; the program has Q 2. It goes on with the same bits under -sequence-shards=4 and -sp of 1, 2, 4;"),
                            ("-sp=3", "-sequence-shards=4, as the checkpoint of -resume has them, over -sp=3: expected -sp times a power of two")):
            said = execute([*base, *words.split(), f"-resume={folder}/four"], status=1).stderr
            check(text in said, f"{words} from a checkpoint of 4 shards: {said}")
    print("resumed at other degrees: the same weights", flush=True)


def forward_alone():
    path, data = model("gpt2-tiny")
    losses = set()
    for words in ("-sp=1", "-sp=2", "-sp=4 -dp=2"):
        said = execute([dsopt, path, "-eval", f"-data={data}", "-sequence-shards=4", *words.split()]).stdout
        losses.update(re.findall(r"eval loss (\S+)", said))
    check(len(losses) == 1, f"evaluations differ: {losses}")
    with tempfile.TemporaryDirectory() as folder:
        outputs = set()
        for words in ("-sp=1", "-sp=2", "-sp=4 -sp-method=ring", "-sp=2 -pp=2"):
            file = os.path.join(folder, "outputs.npz")
            execute([dsopt, path, "-predict", f"-data={data}", "-sequence-shards=4", f"-save-outputs={file}", *words.split()])
            outputs.add(open(file, "rb").read())
        check(len(outputs) == 1, "what is predicted differs between degrees")
    print(f"evaluated: {losses.pop()}", flush=True)


def planned():
    """What travels between sequence shards is listed by kind, and what the traffic counts."""
    path, _ = model("gpt2-tiny")
    for words in (["-sp=2"], ["-sp=4", "-micro-batches=3"], ["-sp=2", "-tp=2"], ["-sp=2", "-dp=2", "-pp=2", "-zero=3"]):
        whole = json.loads(execute([dsopt, path, *words, "-plan=json"]).stdout)
        text, layout = execute([dsopt, path, *words, "-plan=sharding"]).stdout, whole["layout"]
        ranks = len(whole["ranks"]) / layout["pp"]
        for axis, traffic in (("sp", "sequence_parallel"), ("tp", "tensor_parallel")):
            listed = [one for one in whole["sharding"]["collectives"] if one["axes"] == [axis]]
            sent = sum(rank["traffic"].get(traffic, 0) for rank in whole["ranks"]) / ranks
            check(sum(one["bytes"] for one in listed) == sent and (sent > 0) == (layout[axis] > 1), f"{words}: {listed}, sent {sent}")
            check(sent == 0 or f"a rank sends {int(sent)} bytes along {axis} in a step" in text, f"{words}: {text}")
        kinds = {one["kind"] for one in whole["sharding"]["collectives"] if one["axes"] == ["sp"]}
        check(kinds in ({"all_gather", "reduce_scatter", "all_reduce"}, {"all_to_all", "all_reduce"}), f"{words}: {kinds}")
        check(f"sequence shards  {layout['sp']} over {layout['sp']} ranks" in text, f"{words}: {text}")
    # More ranks than the 4 heads: groups as large as these allow, which send and wait least.
    (chosen,) = json.loads(execute([dsopt, path, "-sp=8", "-plan=json"]).stdout)["sharding"]["attention"]
    times = {one["group"]: one["ms"] for one in chosen["choices"]}
    check((chosen["attentions"], chosen["group"], chosen["ring"]) == (4, 4, 2) and list(times) == [4, 2, 1] and times[4] == min(times.values()), f"8 ranks of 4 heads: {chosen}")
    text = execute([dsopt, path, "-sp=8", "-plan=sharding"]).stdout
    check(re.search(r"^ +4 +4 +2 +\d+ +[\d.]+  chosen$", text, re.M), f"8 ranks of 4 heads: {text}")
    print("planned: what is sent", flush=True)


def long_step():
    """More flops than 64 bits hold, of all ranks together."""
    nodes, rows, width = Nodes(seed=1), 1 << 20, 4096
    x = nodes.make("Mul", "x", nodes.parameter("w", np.ones(width)))
    y = nodes.make("Attention", x, x, x, is_causal=1, q_num_heads=1, kv_num_heads=1)
    nodes.nodes.append(helper.make_node("ReduceMean", [nodes.make("Mul", y, y)], ["loss"], keepdims=0))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "long.onnx")
        save(path, nodes.nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, rows, width])], nodes.initializers, 23)
        steps = json.loads(execute([dsopt, path, "-sp=2", "-micro-batches=400", "-plan=json"]).stdout)["flops_per_step"]
    # Of causal products half: two forward, five backward.
    flops = 400 * 7 * rows * rows * width
    check(flops > 1 << 63 and abs(steps / flops - 1) < 1e-3, f"a step of {flops:.3e} flops is said to have {steps}")


# Each in one line.
REFUSED = (
    ("-sp=2 -sequence-shards=3", "-sequence-shards=3 over -sp=2: expected -sp times a power of two"),
    ("-sp=4 -sp-method=ulysses*3", "-sp-method=ulysses*3 with -sp=4: expected a divisor of -sp"),
    ("-sp=4 -sp-method=ulysses*0", "option -sp-method: expected one of auto|ulysses|ulysses*N|ring, got 'ulysses*0'"),
    ("-sp=2 -sequence-shards=6", "-sequence-shards=6 over -sp=2: expected -sp times a power of two"),
    ("-sp=2 -reduction-shards=2 -micro-batches=2", "-reduction-shards=2 with -dp=1 and -sp=2: expected as many as -dp where -sp is above 1"),
    ("-sp=3 -dp=2", "-sp=3 with -dp=2: expected a power of two where -dp is above 1"),
    ("-sp=2 -sequence-shards=4 -accumulate=local -micro-batches=2", "-accumulate=local with 2 sequence shards a rank and 2 micro-batches a reduction shard"),
    ("-sp=2 -compress-gradients=onebit", "-compress-gradients=onebit does not go with -sp=2 yet: what it leaves out of exchanges is not kept by sequence shards"),
    ("-sp=2 -optimizer=onebit-adam -freeze-step=2", "-optimizer=onebit-adam does not go with"),
    ("-sp=2 -dp=2 -zero=3 -node-size=1 -reduce-type=int4", "-reduce-type=int4 does not go with -sp=2 yet"),
    ("-sp=2 -dp=4 -zero=3 -node-size=2 -secondary-params=node", "-secondary-params=node does not go with -sp=2 yet"),
)


transformer()
others()
norms()
resumed()
forward_alone()
planned()
long_step()
refused(dsopt, "gpt2-tiny", REFUSED)
