"""fp16 with a scaled loss: near PyTorch's records, one hash over all layouts, overflows that skip steps on all ranks alike.

usage: fp16.py DSOPT near MODEL... | layouts | scale | checkpoints | errors
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from runs import MODELS, check, execute, model, relative, train
from sampled import sampled

dsopt, what = sys.argv[1:3]
HALF = ["-precision=fp16", "-threads=1"]


def scales(run):
    return [(step["loss_scale"], step["skipped"]) for step in run.steps]


def near(name):
    """Within 2e-2 of PyTorch's losses in fp32; the gradient's norm is that of the loss, not of the scaled one."""
    recorded = np.load(os.path.join(MODELS, name, "reference.npz"))
    more = {"bert-tiny": ["-padding-index=*word_embeddings.weight=0"]}.get(name, [])
    base = [*HALF, "-micro-batches=4", "-steps=8", "-lr=1e-3", "-weight-decay=0.01", "-initial-scale-power=10", *more]
    worst = {}
    for gradients in ("fp32", "param"):
        run = train(dsopt, name, *base, f"-gradient-type={gradients}", "-log-norms")
        check(scales(run) == [(1024, False)] * 8, f"{name} skips: {scales(run)}")
        worst[gradients] = relative(run.losses, recorded["adamw/loss"][:8])
        check(worst[gradients] < 2e-2, f"{name}, gradients {gradients}: losses {run.losses}, expected {list(recorded['adamw/loss'][:8])}")
        norm, expected = run.steps[0]["grad_norm"], float(recorded["step0/grad_norm_total"])
        check(relative(norm, expected) < 2e-2, f"{name}: norm {norm}, expected {expected}")
        total = np.sqrt(sum(value**2 for value in run.steps[0]["grad_norms"].values()))
        check(relative(total, norm) < 1e-5, f"{name}: norms of parameters make {total}, expected {norm}")
    print(f"{name}: losses within {worst['fp32']:.1e} of PyTorch's fp32, {worst['param']:.1e} with gradients in fp16", flush=True)


def same(name, k, v, grids, *options):
    """One hash, loss text and scales of K micro-batches in V shards over (dp, pp, zero, more)."""
    first = None
    grids = sampled(grids, 8)
    for dp, pp, zero, more in grids:
        layout = [f"-dp={dp}", f"-pp={pp}", f"-zero={zero}", f"-micro-batches={k // dp}", f"-reduction-shards={v}", *more]
        run = train(dsopt, name, *HALF, *layout, *options)
        first = first or run
        check((run.hash, run.loss_text, scales(run)) == (first.hash, first.loss_text, scales(first)),
              f"{name}: {' '.join([*layout, *options])}: {run.loss_text} {scales(run)} {run.hash}, "
              f"expected {first.loss_text} {scales(first)} {first.hash}")
    print(f"{name} {' '.join(options)}: {len(grids)} layouts, one hash {first.hash[:16]}, {first.end['skipped']} skipped", flush=True)
    return first


def layouts():
    """The first steps overflow: they are skipped, in every layout, and what follows has the same bits."""
    disk = tempfile.mkdtemp()
    grids = [(1, 1, 0, []), (1, 1, 0, ["-threads=2"]), (1, 1, 0, ["-recompute=full"]), (1, 2, 0, []), (1, 2, 0, ["-schedule=gpipe"])]
    grids += [(dp, 1, zero, []) for dp in (2, 4) for zero in range(4)] + [(2, 2, zero, []) for zero in (0, 3)]
    grids += [(2, 1, 2, ["-offload-optimizer=cpu"]), (2, 1, 3, ["-offload-optimizer=cpu", "-offload-params=cpu", "-offload-activations=cpu"]),
              (1, 1, 0, ["-offload-optimizer=cpu", "-offload-ratio=0.5"]), (2, 1, 3, ["-tile-products=4096"]),
              (2, 1, 3, ["-offload-optimizer=nvme", "-offload-params=nvme", f"-nvme-path={disk}", "-sub-group-size=8192"])]
    run = same("gpt2-tiny", 4, 4, grids, "-steps=8", "-lr=3e-3", "-initial-scale-power=24", "-loss-scale-window=2")
    check(0 < run.end["skipped"] < 8, f"expected some steps to be skipped: {scales(run)}")
    same("gpt2-tiny", 4, 2, [(1, 1, 0, []), (2, 1, 0, []), (2, 1, 2, []), (2, 2, 3, [])], "-steps=4", "-grad-clip=1", "-gradient-type=param",
         "-accumulate=sharded", "-initial-scale-power=22")
    same("mlp", 4, 4, [(1, 1, 0, []), (2, 1, 1, []), (4, 1, 3, [])], "-steps=4", "-optimizer=sgd", "-momentum=0.9", "-initial-scale-power=22")
    same("resnet-tiny", 4, 4, [(1, 1, 0, []), (2, 1, 2, []), (1, 2, 0, [])], "-steps=5", "-initial-scale-power=21", "-loss-scale-hysteresis=1")
    # Updates that lag: a step that overflows leaves nothing to the next one.
    run = same("gpt2-tiny", 4, 4, [(1, 1, 0, []), (2, 1, 3, ["-offload-optimizer=cpu"]), (1, 2, 0, [])], "-steps=9", "-delayed-update=2",
               "-initial-scale-power=22", "-loss-scale-window=1")
    check({True, False} <= {skipped for _, skipped in scales(run)[3:]}, f"expected skipped steps among those that lag: {scales(run)}")


def scale():
    base = [*HALF, "-micro-batches=2", "-lr=1e-3"]
    # What overflows is skipped: the parameters stay, and learning rate and moments follow the steps that apply.
    run = train(dsopt, "mlp", *base, "-steps=4", "-initial-scale-power=127", "-lr-schedule=linear", "-warmup-steps=4")
    check(scales(run) == [(2.0**127, True), (2.0**127, True), (2.0**126, True), (2.0**125, True)], f"scales {scales(run)}")
    check(run.end["skipped"] == 4 and {step["lr"] for step in run.steps} == {2.5e-4}, f"skipped {run.end}")
    check({step["grad_norm"] for step in run.steps} == {"nan"}, f"norms {[step['grad_norm'] for step in run.steps]}")
    none = train(dsopt, "mlp", "-micro-batches=2", "-steps=1", "-lr=0", "-weight-decay=0")
    check(run.hash == none.hash, "skipped steps change parameters")
    # A power of two moves no bit of what stays finite, but for what fp16 has no room for below.
    fixed, dynamic = (train(dsopt, "mlp", *base, "-steps=4", option) for option in ("-loss-scale=1024", "-initial-scale-power=10"))
    check(fixed.hash == dynamic.hash and scales(fixed) == [(1024, False)] * 4, "a fixed scale differs from a dynamic one that stays")
    # A fixed scale that overflows skips every step.
    run = train(dsopt, "mlp", *base, "-steps=3", "-loss-scale=1e38")
    check([skipped for _, skipped in scales(run)] == [True] * 3 and run.hash == none.hash, f"a large fixed scale: {scales(run)}")
    run = train(dsopt, "mlp", *base, "-steps=6", "-initial-scale-power=4", "-loss-scale-window=2")
    check([value for value, _ in scales(run)] == [16, 16, 16, 32, 32, 64], f"a window of 2: {scales(run)}")
    print("scale")


def checkpoints():
    """Going on across a change of the scale, in another layout and with what was skipped before, has the same bits."""
    base = [*HALF, "-lr=3e-3", "-reduction-shards=4", "-initial-scale-power=24", "-loss-scale-window=2", "-lr-schedule=linear", "-lr-decay-steps=10"]
    whole = train(dsopt, "gpt2-tiny", *base, "-dp=2", "-micro-batches=2", "-steps=10")
    check(len({value for value, _ in scales(whole)}) > 2, f"expected several scales: {scales(whole)}")
    with tempfile.TemporaryDirectory() as folder:
        for cut in sampled((4, 1, 7), 1):
            save = f"{folder}/{cut}"
            train(dsopt, "gpt2-tiny", *base, "-dp=4", "-zero=3", "-micro-batches=1", f"-steps={cut}", f"-save={save}")
            rest = train(dsopt, "gpt2-tiny", *base, "-dp=1", "-pp=2", "-micro-batches=4", "-steps=10", f"-resume={save}/step-{cut:08d}")
            check((rest.hash, rest.loss_text, scales(rest)) == (whole.hash, whole.loss_text[cut:], scales(whole)[cut:]),
                  f"resumed at {cut}: {scales(rest)}, expected {scales(whole)[cut:]}")
            check(rest.end["skipped"] == whole.end["skipped"], f"skipped {rest.end['skipped']}, expected {whole.end['skipped']}")
        # Where updates lag, what waits for its update is there only behind a step that did not overflow.
        base = [*HALF, "-lr=3e-3", "-micro-batches=2", "-reduction-shards=2", "-initial-scale-power=22", "-loss-scale-window=1", "-delayed-update=2"]
        whole = train(dsopt, "gpt2-tiny", *base, "-steps=9", f"-save={folder}/lags", "-save-every=1", "-save-keep=9")
        cuts = range(3, 9)
        check({skipped for _, skipped in scales(whole)[2:8]} == {True, False}, f"expected overflows among them: {scales(whole)}")
        for cut in sampled(cuts, 2):
            rest = train(dsopt, "gpt2-tiny", *base, "-dp=2", "-micro-batches=1", "-steps=9", f"-resume={folder}/lags/step-{cut:08d}")
            check((rest.hash, rest.loss_text, scales(rest)) == (whole.hash, whole.loss_text[cut:], scales(whole)[cut:]),
                  f"resumed at {cut} of what lags: {scales(rest)}, expected {scales(whole)[cut:]}")
    print("checkpoints")


def errors():
    path, data = model("mlp")

    def fails(status, text, *options):
        done = execute([dsopt, path, "-run", f"-data={data}", "-quiet", *options], status)
        check(text in done.stderr, f"expected '{text}', got: {done.stderr}")
        check(done.stderr.count("error:") == 1, f"expected one message, got: {done.stderr}")

    fails(2, "step 2 overflows in fp16 at the least loss scale, 1e+36 (-min-loss-scale)", *HALF, "-dp=2", "-steps=9",
          "-initial-scale-power=120", "-min-loss-scale=1e36")
    fails(1, "-loss-scale-window is of -precision=fp16", "-steps=1", "-loss-scale-window=5")
    fails(1, "-loss-scale is of -precision=fp16", "-steps=1", "-precision=bf16", "-loss-scale=dynamic")
    fails(1, "option -loss-scale=much: expected dynamic, or a number above 0", *HALF, "-steps=1", "-loss-scale=much")
    fails(1, "option -min-loss-scale is of a dynamic loss scale, but -loss-scale=8 is given", *HALF, "-steps=1", "-loss-scale=8",
          "-min-loss-scale=1")
    fails(1, "-initial-scale-power=128: expected 0 to 127", *HALF, "-steps=1", "-initial-scale-power=128")
    fails(1, "-precision=fp16 needs F16C, which x86-64-v2 has not", *HALF, "-steps=1", "-arch=x86-64-v2")
    done = execute([dsopt, path, "-run", f"-data={data}", "-quiet", *HALF, "-dp=2", "-steps=2", "-loss-scale=1e38"])
    check(done.stderr.count("warning: every step has overflowed in fp16 and was skipped") == 1, done.stderr)
    with tempfile.TemporaryDirectory() as folder:
        large = onnx.load(path)
        weight = next(one for one in large.graph.initializer if len(one.dims) == 2)
        values = numpy_helper.to_array(weight).copy()
        values[0, 3] = -7e4
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))
        onnx.save(large, f"{folder}/large.onnx")
        for more in ([], ["-dp=2", "-zero=3"]):
            done = execute([dsopt, f"{folder}/large.onnx", "-run", f"-data={data}", "-steps=1", "-quiet", *HALF, *more], 1)
            check(f"parameter '{weight.name}' holds -70000 in element 3, more than fp16 can (65504)" in done.stderr
                  and done.stderr.count("error:") == 1, done.stderr)
        execute([dsopt, path, f"-o={folder}/mlp", "-precision=bf16"])
        done = execute([f"{folder}/mlp", f"-data={data}", "-steps=1", "-loss-scale=8"], 1)
        check("option -loss-scale: the program is of -precision=" in done.stderr, done.stderr)
    print("errors")


if what == "near":
    for name in sampled(sys.argv[3:], 3):
        near(name)
else:
    {"layouts": layouts, "scale": scale, "checkpoints": checkpoints, "errors": errors}[what]()
