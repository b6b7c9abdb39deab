"""What the Python package reads of a checkpoint that lies on disks, with numpy alone, before it writes DeepSpeed's universal layout: all tensors to the
bit; another format, and what is no manifest, is refused by name.

usage: universal.py
"""
import os
import shutil
import tempfile

import numpy as np

from formats import READ, check, fixture, read_manifest, write_manifest
from saved_weights import safetensors

from dsopt import _universal

GETS = {"v1": READ}


def says(folder, *words):
    """For one as for the other direction."""
    try:
        _universal._read_manifest(folder)
    except ValueError as error:
        check(all(word in str(error) for word in words), f"'{error}' lacks one of {words}")
        return
    check(False, f"no error with {words}")


with tempfile.TemporaryDirectory() as folder:
    for version, gets in GETS.items():
        saved = fixture(version, "checkpoint")
        if gets is not READ:
            says(saved, gets)
            continue
        manifest = _universal._read_manifest(_universal._newest(saved))
        tensors = _universal._read_tensors(saved, manifest)
        expected = {**safetensors(os.path.join(saved, "model.safetensors")), **safetensors(os.path.join(saved, "optimizer.safetensors"))}
        check(tensors.keys() == expected.keys() and all(np.array_equal(tensors[name], expected[name]) for name in expected), f"{version}: {tensors.keys()}")
        states = _universal._split(manifest)
        check(len(states) == 3 and all(list(one) == ["exp_avg", "exp_avg_sq"] for one in states.values()), f"{version}: {states}")
        says(fixture(version, "checkpoint-apart"), "is of zero-one-adam")

    other = os.path.join(folder, "other")
    shutil.copytree(saved, other)
    manifest["format"] = 2
    write_manifest(other, manifest)
    says(other, f"{other}/manifest.json has format 2, this dsopt reads format 1")
    check(read_manifest(other)["format"] == 2, "the checkpoint was changed")
    del manifest["format"]
    write_manifest(other, manifest)
    says(other, f"{other}/manifest.json is damaged: it says no format")
    for text in ("{}", "[]", "{\"manifest\":", '{"name": "an app", "short_name": "app"}', '{"manifest": {}, "xxh3": 1}'):
        with open(os.path.join(other, "manifest.json"), "w") as file:
            file.write(text)
        says(other, f"{other}/manifest.json is damaged: ")
print(f"checkpoints of {', '.join(GETS)} are read by Python; other formats are refused by name")
