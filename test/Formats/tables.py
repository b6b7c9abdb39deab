"""What the compiler keeps on disks: tables of products, which are read, or refused where they are of another format; and compiled objects, of which
those of another version are made anew.

usage: tables.py DSOPT
"""
import json
import os
import sys
import tempfile

from formats import ARCH, READ, check, execute, fixture, refused

dsopt = sys.argv[1]
GETS = {"v1": READ}

with tempfile.TemporaryDirectory() as folder:
    def at(name):
        return os.path.join(folder, name)

    for version, gets in GETS.items():
        compile = [dsopt, fixture(version, "model.onnx"), f"-data={fixture(version, 'data.npz')}", ARCH]
        old = fixture(version, "gemm.json")
        table = json.load(open(old))
        if gets is not READ:
            refused([*compile, f"-gemm-table={old}", "-emit=exec"], gets)
            continue
        text = execute([*compile, f"-gemm-table={old}", "-emit=exec"]).stdout
        check(table["products"] and text.count("#exec.gemm_choice<") == len(table["products"]), f"{version}'s table has {len(table['products'])} products: {text}")
        table["format"] = "dsopt-gemm-table-2"
        json.dump(table, open(at("other.json"), "w"))
        refused([*compile, f"-gemm-table={at('other.json')}", "-emit=exec"],
                "other.json:1:2: format is 'dsopt-gemm-table-2', expected dsopt-gemm-table-1, as -tune writes it")

    # Objects go by what they were made of, so those of an older compiler are met only where they have the same name: then the version says it.
    cache = at("cache")

    def compiled():
        execute([*compile, "-quiet", "-o", at("train")], environment={"DSOPT_CACHE": cache})
        return open(at("train"), "rb").read(), {name: open(os.path.join(cache, name), "rb").read() for name in os.listdir(cache)}

    program, objects = compiled()
    check(objects and all(content.startswith(b"dsopt object 1\n") for content in objects.values()), f"{list(objects)}")
    for name, content in objects.items():
        open(os.path.join(cache, name), "wb").write(content.replace(b"dsopt object 1\n", b"dsopt object 0\n", 1))
    again, made = compiled()
    check(again == program and made == objects, "objects of another version are not made anew")
    print(f"tables of {', '.join(GETS)}: each gets what is said of it; objects of another version are made anew")
