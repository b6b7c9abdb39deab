"""The table of the ZeRO paper (Rajbhandari et al., 2020, table 1): bytes of model states for each parameter in mixed
precision, by stage and ranks, read off plans.

usage: zero_table.py DSOPT
"""
import json
import os
import sys
import tempfile

from large_models import save_large
from runs import check, execute
from sampled import sampled

dsopt = sys.argv[1]
# Layers and widths / 96 of models of 7.5, 128 and 1000 thousand million parameters.
SIZES = {"7.5B": (37, 43), "128B": (71, 128), "1T": (127, 267)}
# Bytes at stages 1 to 3: of what every rank has, and of what they share.
NARROW, WIDE = {1: (4, 12), 2: (2, 14), 3: (0, 16)}, {1: (6, 12), 2: (2, 16), 3: (0, 18)}

with tempfile.TemporaryDirectory() as folder:
    for size, (layers, scale) in sampled(SIZES.items(), 1):
        path = os.path.join(folder, size + ".onnx")
        save_large(path, layers, scale)
        rows = []
        for kind, table in (("param", NARROW), ("fp32", WIDE)):
            for stage, (each, shared) in table.items():
                for ranks in (4, 64, 1024) if kind == "param" else (64,):
                    # With clipping all gradients are alive before the first update.
                    plan = json.loads(execute([dsopt, path, "-precision=bf16", "-arch=cooperlake", f"-gradient-type={kind}", f"-zero={stage}", f"-dp={ranks}",
                                               "-grad-clip=1", "-plan=json"]).stdout)
                    memory = plan["ranks"][0]["memory"]
                    states = sum(memory[name] for name in ("parameters", "gradients", "optimizer"))
                    limit = each + shared / ranks
                    got = states / plan["parameters"]
                    # Buckets are rounded up to 64 elements for each rank.
                    check(got <= limit * 1.0005, f"{size}, stage {stage}, {ranks} ranks, gradients in {kind}: {got:.4f} bytes a parameter, expected at most {limit:.4f}")
                    rows.append(f"{stage}/{ranks}{'' if kind == 'param' else ' fp32'} {got:.3f}")
        print(f"{size} ({plan['parameters'] / 1e9:.1f}e9 parameters), bytes a parameter by stage/ranks: {', '.join(rows)}", flush=True)
