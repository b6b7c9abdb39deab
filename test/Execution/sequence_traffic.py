"""What sequence shards send is what docs/SequenceParallel.md has as formulas, by kind, and what a run counts.

usage: sequence_traffic.py DSOPT
Of b sequences of s positions and width h, with g key and value heads for each query head, a rank of P sends of a layer 4 (1 + g) b s h (P-1)/P^2
elements where positions are exchanged for heads, half of them in backward, and 2 g b s h (3 (P-1) + 1)/P along a ring: keys and values P-1 times
forward and backward, and P times the sums of their gradients, which are fp32 but for the last hop. Where groups of U exchange heads and are a ring
of R = P / U it is 4 (1 + g) b s h (U-1)/(U P) and 2 g b s h (3 (R-1) + 1)/P. What is left is named: sums over positions (the loss), and sums of gradients, which are along data-parallel ranks as well.
"""
import json
import os
import sys
import tempfile

from grouped_model import LENGTH, ROWS, SIZE, grouped
from runs import Run, check, execute, model

dsopt = sys.argv[1]
SUMS = "pieces of what is summed over the cut"
REASONS = {"all_to_all": ("positions for heads", "gradients of positions for heads"), "shift": ("keys and values along a ring", "keys, values and their gradients along a ring")}


def sent_by(group, ranks, share, activation, width):
    """A rank's bytes and elements of a layer by kind, forward and backward: heads exchanged in groups, which are a ring."""
    ring, own, swapped = ranks // group, 2 * share * activation / ranks, 2 * (1 + share) * activation * (group - 1) / (group * ranks)
    # Of what comes home last, the first of the shards that a rank has is rounded.
    back = width * own * (ring - 1) + 4 * own * ring - own / group * (4 - width)
    sent = {"all_to_all": (width * swapped, width * swapped), "shift": (width * own * (ring - 1), back)}
    elements = 2 * swapped + (own * (3 * (ring - 1) + 1) if ring > 1 else 0)
    return {kind: sent[kind] for kind, there in (("all_to_all", group > 1), ("shift", ring > 1)) if there}, elements


def compare(name, path, data, layers, activation, share, folder, words=(), width=4, copies=1):
    """With `copies` micro-batches of values of `width` bytes."""
    for method, groups in (("ulysses", {2: 2, 4: 4}), ("ulysses*2", {4: 2}), ("ring", {2: 1, 4: 1})):
        for ranks, group in groups.items():
            options = [f"-data={data}", f"-sp={ranks}", f"-sp-method={method}", *words]
            what = f"{name}, {' '.join(options[1:])}"
            planned = json.loads(execute([dsopt, path, "-plan=json", *options]).stdout)
            sent = {}
            for one in planned["sharding"]["collectives"]:
                if one["axes"][0].startswith("sp"):
                    direction = "forward" if one["phase"] == "F" else "backward"
                    key = (one["kind"], one["reason"], direction)
                    sent[key] = sent.get(key, 0) + one["bytes"]
            by_kind, elements = sent_by(group, ranks, share, activation, width)
            expected = {(kind, reason, direction): copies * layers * one for kind, layer in by_kind.items() for one, reason, direction in zip(layer, REASONS[kind], ("forward", "backward"))}
            # Of the loss's one number a rank sends a part of it to each other one, and its sum.
            expected["all_reduce", SUMS, "forward"] = 2 * (ranks - 1) / ranks * 4 * copies
            check(sent == expected, f"{what}: sends {sent}, expected {expected}")
            said = [(one["attentions"], one["group"], one["ring"], *(each["elements"] for each in one["choices"] if each["group"] == group)) for one in planned["sharding"]["attention"]]
            check(said == [(layers, group, ranks // group, elements)], f"{what}: says {said}, expected {elements} elements")
            log = os.path.join(folder, "log.jsonl")
            execute([dsopt, path, "-run", "-steps=2", "-quiet", f"-log={log}", *options])
            step = Run(log).steps[-1]
            for rank, entry in enumerate(planned["ranks"]):
                total = sum(entry["traffic"].values())
                check(step["sent_bytes"][rank] == total, f"{what}: rank {rank} sent {step['sent_bytes'][rank]} bytes, planned {total}")
                check(step["peak_bytes"][rank] == entry["memory"]["total"], f"{what}: rank {rank} maps {step['peak_bytes'][rank]} bytes, planned {entry['memory']['total']}")
                values = entry["traffic"]["sequence_parallel"]
                check(values == sum(expected.values()), f"{what}: rank {rank} is planned to send {values} bytes of values along sp, expected {sum(expected.values())}")
            # Gradients are added and parameters gathered as along data-parallel ranks, which both are.
            rows = json.loads(execute([dsopt, path, "-plan=json", "-accumulate=sharded", *options, "-sp=1", f"-dp={ranks}"]).stdout)
            for kind in ("all_gather", "reduce_scatter"):
                got, right = ([rank["traffic"][kind] for rank in one["ranks"]] for one in (planned, rows))
                check(got == right, f"{what}: {kind} of parameters and gradients {got}, along -dp {right}")
    print(f"{name}{''.join(f' {word}' for word in words)}: planned, counted and computed alike", flush=True)


def recomputed(path, data):
    """What forward exchanges again is said to be so."""
    for again in (False, True):
        planned = json.loads(execute([dsopt, path, f"-data={data}", "-plan=json", "-sp=2", *(["-recompute=full"] if again else [])]).stdout)
        said = {(one["phase"] == "F", one["reason"]) for one in planned["sharding"]["collectives"] if one["kind"] == "all_to_all"}
        check(said == {(True, "positions for heads"), (False, "gradients of positions for heads" + ", and what is computed again" * again)}, f"computed again {again}: {said}")


with tempfile.TemporaryDirectory() as folder:
    gpt = ("gpt2-tiny", *model("gpt2-tiny"), 4, 2 * 32 * 64, 1, folder)
    compare(*gpt)
    compare(*gpt, words=["-micro-batches=3"], copies=3)
    compare(*gpt, words=["-precision=bf16"], width=2)
    path, data = grouped(folder, heads=8, few=4, dropout=0, classes=False)
    few = ("8 heads over 4", path, data, 2, ROWS * LENGTH * 8 * SIZE, 0.5, folder)
    compare(*few)
    compare(*few, words=["-zero=3"])
    recomputed(path, data)
