"""ZeRO++: parameters that a node keeps change no bit and leave backward nothing to fetch from other nodes; int8
gathers are those of parameters that numpy rounds to the same multiples, with exact masters and the documented bound; int4
reductions keep to theirs and have the same bits in all stages.

usage: zeropp.py DSOPT DSOPT-OPT nodes|weights|gradients|bound|traffic|device|refused
"""
import json
import os
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from runs import Run, check, execute, model
from sampled import sampled
from saved_weights import safetensors

dsopt, opt, what = sys.argv[1:]
BLOCK = 2048


def run(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        execute([dsopt, *arguments, "-run", "-quiet", f"-log={log}"])
        return Run(log)


def plan(*arguments):
    return json.loads(execute([dsopt, *arguments, "-plan=json"]).stdout)["ranks"]


def measured(trained, ranks, what):
    """A step sends what the plan says."""
    for rank, entry in enumerate(ranks):
        sent, planned = trained.steps[0]["sent_bytes"][rank], sum(entry["traffic"].values())
        check(sent == planned, f"{what}: rank {rank} sends {sent} bytes, planned {planned}")


def nodes():
    """-secondary-params=node"""
    for name, layout, ways in (
        ("mlp", ["-dp=4", "-micro-batches=2"], ([], ["-prefetch=3"], ["-offload-params=cpu", "-offload-optimizer=cpu"])),
        ("gpt2-toy", ["-dp=4", "-micro-batches=2"], ([], ["-micro-batches=4", "-gather-window=2", "-grad-clip=1"], ["-precision=fp16", "-delayed-update=1"])),
        ("gpt2-toy", ["-dp=4", "-pp=2", "-micro-batches=2"], ([],)),
        # The loss's parameters leave some nodes nothing but padding.
        ("mlp", ["-dp=8", "-micro-batches=2"], ([],)),
    ):
        path, data = model(name)
        for way in sampled(ways, 2):
            common = [path, f"-data={data}", "-zero=3", *layout, *way, "-node-size=2"]
            plain, kept = run(*common, "-steps=3"), run(*common, "-steps=3", "-secondary-params=node")
            check(plain.hash == kept.hash and plain.loss_text == kept.loss_text, f"{name} {layout} {way}: {plain.hash}, {kept.hash}")
            before, after = plan(*common), plan(*common, "-secondary-params=node")
            measured(kept, after, f"{name} {layout} {way}")
            measured(plain, before, f"{name} {layout} {way}")
            for a, b in zip(before, after):
                was, now = a["between_nodes"]["all_gather"], b["between_nodes"]["all_gather"]
                # Forward and backward of two micro-batches, or of two windows, gather each bucket.
                check(was > now > 0 and now * 4 >= was, f"{name} {way}: {was} bytes between nodes, {now} with slices kept")
                check("secondary" not in a["memory"] and b["memory"]["secondary"] > 0, f"{name}: {b['memory']}")
            print(f"{name} {' '.join(layout + way)}: {was} bytes of gathers leave the node, {now} with slices kept, which take {b['memory']['secondary']}")
    said = execute([dsopt, *common, "-secondary-params=node", "-plan"]).stdout
    check("secondary" in said and "leave a node of 2 ranks" in said, said)


def quantized(values, slices):
    """What other ranks see of a bucket, and the scale of each element."""
    seen, scales = np.empty_like(values), np.empty_like(values)
    for part in np.split(np.arange(values.size), slices):
        for begin in range(0, part.size, BLOCK):
            block = part[begin : begin + BLOCK]
            scale = max(np.abs(values[block]).max() / np.float32(127), np.float32(2.0**-126))
            inverse = np.float32(1) / scale
            seen[block] = np.rint(values[block] * inverse).astype(np.int8).astype(np.float32) * scale
            scales[block] = scale
    return seen, scales


def buckets(dist):
    """Of each bucket the parameters, where they lie, and all elements."""
    found = []
    for ranges, padded in re.findall(r"dist\.bucket @\S+ : f32 of \[[^\]]*\] \[(.*?)\] elements \d+ padded (\d+)", execute([opt, dist]).stdout):
        found.append(([(name.strip('"'), int(first), int(count)) for name, first, count in re.findall(r"#dist\.range<@([^,]+), (\d+), (\d+)>", ranges)], int(padded)))
    check(found, f"buckets of {dist}")
    return found


def rounded(folder, path, dist, ranks):
    """The model of what int8 gathers yield; the largest error in scales."""
    found, worst = onnx.load(path), 0
    tensors = {tensor.name: tensor for tensor in found.graph.initializer}
    for places, padded in buckets(dist):
        bucket = np.zeros(padded, np.float32)
        for parameter, first, count in places:
            bucket[first : first + count] = numpy_helper.to_array(tensors[parameter]).reshape(-1)
        seen, scales = quantized(bucket, ranks)
        worst = max(worst, float((np.abs(seen.astype(np.float64) - bucket) / scales).max()))
        for parameter, first, count in places:
            tensor = tensors[parameter]
            tensor.CopyFrom(numpy_helper.from_array(seen[first : first + count].reshape(tuple(tensor.dims)), parameter))
    onnx.save(found, os.path.join(folder, "rounded.onnx"))
    return os.path.join(folder, "rounded.onnx"), worst


def weights():
    """-gather-type=int8"""
    for name in sampled(("mlp", "gpt2-toy"), 1):
        path, data = model(name)
        common = [path, f"-data={data}", "-zero=3", "-dp=4", "-micro-batches=2"]
        int8 = [*common, "-gather-type=int8"]
        exact, first = run(*common, "-steps=6"), run(*int8, "-steps=6")
        measured(first, plan(*int8), name)
        check(first.hash != exact.hash, f"{name}: int8 gathers change nothing")
        apart = max(abs(b / a - 1) for a, b in zip(exact.losses, first.losses))
        check(apart < 0.02, f"{name}: losses are {apart:.2%} apart")
        # Layouts of as many ranks and equal buckets.
        for way in (["-prefetch=3", "-threads=2"], ["-gather-window=2"], ["-node-size=2", "-secondary-params=node"], ["-pp=2"],
                    ["-offload-params=cpu", "-offload-optimizer=cpu", "-node-size=2", "-secondary-params=node"]):
            other = run(*int8, *way, "-steps=6")
            check(other.hash == first.hash, f"{name} {way}: {other.hash}, expected {first.hash}")
            measured(other, plan(*int8, *way), f"{name} {way}")
        with tempfile.TemporaryDirectory() as folder:
            dist = os.path.join(folder, "dist.mlir")
            execute([dsopt, *int8, "-emit=dist", "-o", dist])
            seen, worst = rounded(folder, path, dist, 4)
            check(0.4 < worst <= 0.5 + 2**-14, f"{name}: an error of {worst} scales")
            same = run(seen, *common[1:], "-steps=1")
            check(same.losses[0] == first.losses[0] != exact.losses[0], f"{name}: first loss {first.losses[0]}, of rounded parameters {same.losses[0]}")
            # What a run goes on from is exact as well.
            save = os.path.join(folder, "save")
            run(*int8, "-steps=3", f"-save={save}")
            check(run(*int8, "-steps=6", f"-resume={save}").hash == first.hash, f"{name}: a resumed run ends elsewhere")
            said = execute([dsopt, *common, "-run", "-steps=4", f"-resume={save}"]).stderr
            check("-gather-type is param, the checkpoint was written with int8" in said, said)
            # Updates that change nothing leave the parameters as they were.
            saved = [os.path.join(folder, file) for file in ("before.safetensors", "after.safetensors")]
            for file, options in zip(saved, (common, int8)):
                execute([dsopt, *options, "-run", "-quiet", "-steps=2", "-lr=0", f"-save-weights={file}"])
            check(open(saved[0], "rb").read() == open(saved[1], "rb").read(), f"{name}: masters are not what they were")
        rank = plan(*int8)[0]
        print(f"{name}: {rank['logical']['all_gather']} bytes of gathers travel as {rank['traffic']['all_gather']}, errors up to {worst:.6f} scales, losses {apart:.3%} apart")


def gradients():
    """-reduce-type=int4"""
    for name in sampled(("mlp", "gpt2-toy"), 1):
        path, data = model(name)
        common = [path, f"-data={data}", "-dp=4", "-micro-batches=2"]
        exact = run(*common, "-steps=6")
        hashes = {}
        # The same bits in all stages and layouts of as many ranks in as large nodes.
        for size in (2, 4, 1):
            int4 = [*common, "-reduce-type=int4", f"-node-size={size}"]
            for way in (["-zero=3"], ["-zero=2", "-accumulate=local"], ["-zero=1"], ["-zero=0", "-threads=2"], ["-zero=3", "-accumulate=local", "-pp=2"],
                        ["-zero=3", "-offload-optimizer=cpu", "-accumulate=local"])[: 6 if size == 2 else 2]:
                other = run(*int4, *way, "-steps=6")
                measured(other, plan(*int4, *way), f"{name} {way}")
                order = "sharded" if way == ["-zero=3"] else "local"
                hashes.setdefault((size, order), set()).add(other.hash)
                apart = max(abs(b / a - 1) for a, b in zip(exact.losses, other.losses))
                check(apart < 0.05, f"{name} {way}: losses are {apart:.2%} apart")
        check(all(len(found) == 1 for found in hashes.values()), f"{name}: {hashes}")
        # One exchange, or two.
        check(all(hashes[1, order] == hashes[4, order] != hashes[2, order] for order in ("sharded", "local")), f"{name}: {hashes}")
        rank = plan(*common, "-zero=3", "-reduce-type=int4", "-node-size=2")[0]
        print(f"{name}: {rank['logical']['all_to_all']} bytes of gradients travel as {rank['traffic']['all_to_all']}, losses {apart:.3%} apart")


def bound():
    """What a step of plain descent does with gradients in int4, against its documented bound."""
    path, data = model("mlp")
    arrays = np.load(data)
    with tempfile.TemporaryDirectory() as folder:
        dist, weights = os.path.join(folder, "dist.mlir"), os.path.join(folder, "weights.safetensors")

        def step(batches, *options):
            np.savez(os.path.join(folder, "one.npz"), **batches)
            common = [dsopt, path, f"-data={folder}/one.npz", "-optimizer=sgd", "-steps=1", "-zero=1", *options]
            execute([*common, "-run", "-quiet", f"-save-weights={weights}"])
            return {key: np.array(value, np.float64) for key, value in safetensors(weights).items()}

        start = step({key: arrays[key][:1, :1] for key in arrays}, "-lr=0")
        own = [step({key: arrays[key][:1, rank : rank + 1] for key in arrays}, "-lr=1") for rank in range(4)]
        execute([dsopt, path, f"-data={data}", "-dp=4", "-zero=1", "-emit=dist", "-o", dist])
        found = buckets(dist)
        for size in (1, 2, 4):
            after = step({key: arrays[key][:1] for key in arrays}, "-lr=1", "-dp=4", "-reduce-type=int4", f"-node-size={size}")
            worst = 0
            for places, padded in found:
                def flat(state):
                    return scattered(places, padded, {key: (start[key] - state[key]) for key in start})

                parts, got = np.stack([flat(state) / 4 for state in own]), flat(after)
                nodes = parts.reshape(4 // size, size, padded).sum(1)
                # Each rank's own, and in two exchanges each node's sum as it is received.
                most = sum(pair_scales(part, 4) for part in parts) / 2
                if 1 < size < 4:
                    shaken = [sum(pair_scales(part, 4) for part in parts.reshape(4 // size, size, padded)[node]) / 2 for node in range(4 // size)]
                    most = most + sum(pair_scales(np.abs(node) + more, 4) for node, more in zip(nodes, shaken)) / 2
                real = scattered(places, padded, {key: np.ones_like(start[key]) for key in start}) > 0
                errors = np.abs(got - parts.sum(0))[real] / (most[real] + 1e-6)
                worst = max(worst, float(errors.max()))
            check(0.3 < worst <= 1 + 1e-3, f"nodes of {size}: errors of {worst} times the bound")
            print(f"gradients in int4, nodes of {size}: errors up to {worst:.3f} of the bound")


def scattered(places, padded, values):
    """A bucket with these values."""
    flat = np.zeros(padded)
    for parameter, first, count in places:
        flat[first : first + count] = values[parameter].reshape(-1)
    return flat


def pair_scales(values, slices):
    """Of each element the scale that it travels with."""
    scales = np.empty_like(values)
    for part in np.split(np.arange(values.size), slices):
        for half in np.split(part, 2):
            for begin in range(0, half.size, 256):
                block = half[begin : begin + 256]
                scales[block] = np.abs(values[block]).max() / 7
    return scales


def device():
    """The same on a GPU: kept slices change nothing, whether or not gathers and reductions are quantized."""
    path, data = model("mlp")
    common = [path, f"-data={data}", "-dp=4", "-zero=3", "-node-size=2", "-target=cuda", "-arch=sm_80", "-steps=2"]
    exact = run(*common)
    check(run(*common, "-secondary-params=node").hash == exact.hash, "kept slices change what a GPU computes")
    narrow = ["-gather-type=int8", "-reduce-type=int4"]
    found = run(*common, *narrow, "-secondary-params=node")
    check(run(*common, *narrow).hash == found.hash != exact.hash, "kept slices change what a GPU computes with quantized values")
    processor = run(*[option for option in common if "-target" not in option and "-arch" not in option], *narrow)
    apart = max(abs(b / a - 1) for a, b in zip(processor.losses, found.losses))
    check(apart < 1e-4, f"losses of a GPU are {apart} apart")
    print(f"a GPU's losses are {apart:.1e} apart from a processor's")


def traffic():
    """What of fp16 leaves a node, with everything above: at least 3.9 times less."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples", "gpt.onnx")
    common = [path, "-dp=8", "-zero=3", "-node-size=4", "-micro-batches=1", "-precision=fp16"]
    all16 = sum(plan(*common, "-gradient-type=param")[0]["between_nodes"].values())
    rank = plan(*common, "-secondary-params=node", "-gather-type=int8", "-reduce-type=int4")[0]
    narrow = sum(rank["between_nodes"].values())
    check(all16 >= 3.9 * narrow and rank["memory"]["secondary"] > 0, f"{all16} bytes between nodes in fp16, {narrow} quantized")
    print(f"{all16} bytes between nodes in fp16, {narrow} quantized: {all16 / narrow:.2f} times less")


def refused():
    path, data = model("mlp")
    for options, message in (
        (["-dp=4", "-zero=2", "-secondary-params=node"], "-secondary-params=node is for what -zero=3 gathers, and the stage is 2: give -zero=3, or leave it out"),
        (["-dp=4", "-gather-type=int8"], "-gather-type=int8 is for what -zero=3 gathers, and the stage is 0"),
        (["-dp=4", "-reduce-type=int4", "-gradient-type=param"], "-reduce-type=int4 adds in fp32, and -gradient-type=param accumulates in 16 bits: leave one of them out"),
        (["-dp=4", "-reduce-type=int4", "-reduction=fast", "-target=cuda"], "-reduce-type=int4 adds what ranks have in their order, and -reduction=fast leaves that to NCCL"),
        (["-dp=4", "-zero=3", "-node-size=3"], "-node-size=3 does not divide the 4 data-parallel ranks (-dp)"),
        (["-dp=4", "-zero=3", "-node-size=1", "-secondary-params=node"], "-secondary-params=node with -node-size=1 keeps everything whole on each rank"),
    ):
        said = execute([dsopt, path, f"-data={data}", *options, "-plan"], status=1).stderr
        check(message in said, said)
    said = execute([dsopt, path, f"-data={data}", "-zero=3", "-gather-type=int8", "-reduce-type=int4", "-plan"]).stderr
    check(all(f"option -{name} has no effect here: it goes with {ranks} of 2 or more" in said for name, ranks in (("gather-type=int8", "-dp or -sp"), ("reduce-type=int4", "-dp"))), said)
    said = execute([dsopt, path, f"-data={data}", "-dp=4", "-zero=3", "-secondary-params=node", "-plan"]).stderr
    check("-secondary-params=node has no effect: all 4 data-parallel ranks are in one node" in said, said)


{"nodes": nodes, "weights": weights, "gradients": gradients, "bound": bound, "device": device, "traffic": traffic, "refused": refused}[what]()
