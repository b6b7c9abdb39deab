"""seeds.py MODELS OUTPUT.cpp: the small models of these tests and one or two of each operator, as what FuzzModel begins with.

MODELS is test/Models, of which the small ones are taken.
"""
import glob
import os
import subprocess
import sys
import tempfile

from mutate import operator_models

MOST = 1 << 15  # bytes: to parse is most of what an input takes
WRITERS = ("branches", "bound_inputs", "control_flow", "make_inspected", "make_models", "make_trainable")


def written():
    """Models that scripts beside this one write, good and bad."""
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        for writer in WRITERS:
            place = os.path.join(folder, writer)
            subprocess.check_call([sys.executable, os.path.join(here, writer + ".py"), place], stdout=subprocess.DEVNULL)
            for path in sorted(glob.glob(os.path.join(place, "*.onnx"))):
                yield open(path, "rb").read()


def literal(data):
    """Bytes as C++ has them in a string."""
    lines = [data[at : at + 64] for at in range(0, len(data), 64)]
    return "\n".join('"' + "".join(f"\\{byte:03o}" for byte in line) + '"' for line in lines) or '""'


def main():
    models, output = sys.argv[1:]
    seeds = [*written(), *operator_models().values()]
    seeds += [open(path, "rb").read() for path in sorted(glob.glob(os.path.join(models, "*", "model.onnx")))]
    seeds = dict.fromkeys(seed for seed in seeds if len(seed) <= MOST)  # in their order, each once
    with open(output, "w") as file:
        file.write('// Written by test/Import/ONNX/Inputs/seeds.py.\n#include "Fuzz.h"\n\n')
        file.write("std::vector<std::string> dsopt::test::fuzzSeeds() {\n  return {\n")
        for seed in seeds:
            file.write(f"std::string({literal(seed)}, {len(seed)}),\n")
        file.write("  };\n}\n")


main()
