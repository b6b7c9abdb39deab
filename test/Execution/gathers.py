"""What a dist.gather says is what runs: as bf16 the blocks compute with rounded parameters, half the bytes are sent, and
every layout has the same bits; another type, or one of what is bf16 already, is refused at its place.

usage: gathers.py DSOPT DSOPT-OPT
"""
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from runs import Run, check, execute, model

dsopt, opt = sys.argv[1:]


def changed(folder, dist, wire):
    """The module whose gathers travel as `wire`."""
    path = os.path.join(folder, "changed.mlir")
    lines = execute([opt, dist]).stdout.split("\n")  # one operation a line
    gathers = [i for i, line in enumerate(lines) if "dist.gather" in line]
    check(gathers and not any(" as " in lines[i] for i in gathers), f"gathers of {dist}")
    for i in gathers:
        lines[i] = lines[i].replace("] :", f"] as {wire} :")
    open(path, "w").write("\n".join(lines))
    return path


def rounded(folder, path):
    """The model whose parameters are the nearest bf16 values (scalars are constants of its activations)."""
    found = onnx.load(path)
    for tensor in found.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims:
            bits = numpy_helper.to_array(tensor).view(np.uint32).astype(np.uint64)
            bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
            tensor.CopyFrom(numpy_helper.from_array(bits.astype(np.uint32).view(np.float32), tensor.name))
    onnx.save(found, os.path.join(folder, "rounded.onnx"))
    return os.path.join(folder, "rounded.onnx")


for name, layouts in (("mlp", (["-dp=2"], ["-dp=2", "-pp=2"])),
                      ("gpt2-tiny", (["-dp=2"], ["-dp=2", "-pp=2", "-prefetch=3"], ["-dp=2", "-gather-window=4"]))):
    path, data = model(name)
    hashes, losses = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        dist, log = os.path.join(folder, "dist.mlir"), os.path.join(folder, "log.jsonl")
        for layout in layouts:
            execute([dsopt, path, f"-data={data}", "-zero=3", "-micro-batches=4", *layout, "-emit=dist", "-o", dist])
            traffic = {}
            for module, wire in ((dist, "f32"), (changed(folder, dist, "bf16"), "bf16")):
                execute([dsopt, module, "-run", "-quiet", f"-data={data}", f"-log={log}", "-steps=8"])
                run = Run(log)
                hashes.setdefault(wire, set()).add(run.hash)
                losses[wire] = run.losses
                traffic[wire] = json.loads(execute([dsopt, module, f"-data={data}", "-plan=json"]).stdout)["ranks"][0]["traffic"]
            sent = {wire: figures["all_gather"] for wire, figures in traffic.items()}
            others = {wire: {kind: figures[kind] for kind in figures if kind not in ("all_gather", "padding")} for wire, figures in traffic.items()}
            check(sent["f32"] == 2 * sent["bf16"] > 0 and others["f32"] == others["bf16"], f"{name} {layout}: traffic {traffic}")
            print(f"{name} {' '.join(layout)}: gathers send {sent['f32']} bytes in f32, {sent['bf16']} in bf16")
        check(len(hashes["f32"]) == len(hashes["bf16"]) == 1 and hashes["f32"] != hashes["bf16"], f"{name}: hashes {hashes}")
        apart = max(abs(b / a - 1) for a, b in zip(losses["f32"], losses["bf16"]))
        check(len(losses["bf16"]) == 8 and apart < 0.02, f"{name}: losses are {apart:.2%} apart")
        execute([dsopt, rounded(folder, path), "-run", "-quiet", f"-data={data}", f"-log={log}", "-steps=1", "-dp=2", "-micro-batches=4"])
        check(Run(log).losses[0] == losses["bf16"][0] != losses["f32"][0], f"{name}: first loss {losses['bf16'][0]}, of rounded parameters {Run(log).losses[0]}")

        said = execute([dsopt, changed(folder, dist, "f16"), "-plan", f"-data={data}"], status=1).stderr
        check("sends 'f16', but the bucket's parameters are 'f32'" in said, said)
