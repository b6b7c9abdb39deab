"""The table of the ZeRO-Infinity paper (Rajbhandari et al., 2021, figure 2a and section 3) by plan: bytes of model states,
activation checkpoints and working memory of models of 0.1 to 1 million million parameters on one rank.

usage: infinity_table.py DSOPT
"""
import json
import os
import sys
import tempfile

from large_models import save_large
from runs import check, execute
from sampled import sampled

dsopt = sys.argv[1]
TOKENS, HEADS = 1024, 96
# Layers and widths / 96.
SIZES = {"0.1T": (80, 107), "0.5T": (100, 213), "1T": (128, 267)}

with tempfile.TemporaryDirectory() as folder:
    for size, (layers, scale) in sampled(SIZES.items(), 1):
        path = os.path.join(folder, size)
        save_large(path, layers, scale, tokens=TOKENS)
        plan = json.loads(execute([dsopt, path, "-precision=bf16", "-arch=cooperlake", "-gradient-type=param", "-recompute=full", "-zero=3", "-offload-optimizer=nvme",
                                   "-offload-params=nvme", "-offload-activations=cpu", "-nvme-path=.", "-plan=json"]).stdout)
        memories = {memory["kind"]: memory for memory in plan["ranks"][0]["memories"]}
        device, host, disk = (memories[kind] for kind in ("device", "host", "disk"))
        width, parameters = 96 * scale, plan["parameters"]
        # Equations 2 to 5: the paper has 20 bytes a parameter, one checkpoint a layer, a product's parameters and gradients,
        # and what lies between two checkpoints.
        states, checkpoints = 20 * parameters, 2 * TOKENS * width * layers
        product, between = 16 * width**2, TOKENS * (16 * width + 2 * HEADS * TOKENS)
        # Parameters are written for the rank that has them, gradients are gone by then: 14. A layer is two blocks, each
        # with its checkpoint; the MLP's block has both of its products at once, and gradients beside its activations.
        check(disk["bytes"] <= 14.01 * parameters, f"{size}: {disk['bytes']} bytes of states, expected 14 for each of {parameters}")
        check(host["activations"] <= 2.02 * checkpoints, f"{size}: {host['activations']} bytes of checkpoints, expected at most twice {checkpoints}")
        held = device["parameters"] + device["gradients"] + device["buffers"]
        check(held <= 1.6 * product, f"{size}: {held} bytes of parameters and gradients at work, the paper has {product}")
        check(device["activations"] <= 2 * between, f"{size}: {device['activations']} bytes of activations and their gradients at work, expected at most twice {between}")
        print(f"{size} ({parameters / 1e12:.2f}e12 parameters): states {disk['bytes'] / states:.2f}, checkpoints {host['activations'] / checkpoints:.2f}, "
              f"working memory of states {held / product:.2f} and of activations {device['activations'] / between:.2f} of the paper's", flush=True)
