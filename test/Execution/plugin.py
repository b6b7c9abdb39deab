"""A pass outside the tree, built against the install tree, changes a real run
but not its bits.

usage: plugin.py BUILD SOURCE
"""
import json
import os
import sys
import tempfile

from runs import Run, check, execute, model

build, source = sys.argv[1:]
path, data = model("gpt2-tiny")
layout = ["-dp=1", "-pp=2", "-steps=2", f"-data={data}"]
with tempfile.TemporaryDirectory() as folder:
    tree, plugin = os.path.join(folder, "tree"), os.path.join(folder, "plugin")
    execute(["cmake", "--install", build, "--prefix", tree])
    execute(["cmake", "-G", "Ninja", "-S", os.path.join(source, "examples", "plugin"), "-B", plugin,
             f"-Ddsopt_DIR={tree}/lib/cmake/dsopt", "-DCMAKE_CXX_COMPILER=clang++-22", "-DCMAKE_C_COMPILER=clang-22"])
    execute(["cmake", "--build", plugin])
    dsopt = os.path.join(tree, "bin", "dsopt")
    extra = [f"-load-pass-plugin={plugin}/uneven-stages.so", "-insert-pass=after:split-stages:uneven-stages{first=1}"]
    blocks, hashes = [], []
    for options in ([], extra):
        plan = json.loads(execute([dsopt, path, "-plan=json", *layout, *options]).stdout)
        blocks.append(plan["ranks"][0]["blocks"])
        log = os.path.join(folder, "log.jsonl")
        execute([dsopt, path, "-run", "-quiet", f"-log={log}", *layout, *options])
        hashes.append(Run(log).hash)
    check(blocks[1] == [[0, 1]] and blocks[0] != blocks[1], f"first stage has blocks {blocks[1]}, expected [[0, 1]]")
    check(hashes[0] == hashes[1], f"another cut gives another result: {hashes}")
    print(f"first stage: blocks {blocks[0]} before, {blocks[1]} with the plugin; one hash {hashes[0][:16]}")
