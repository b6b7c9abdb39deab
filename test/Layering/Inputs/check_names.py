"""Passes know interfaces, not operations: no pass names a routine of the runtime, the operation of a segment that it
becomes, or an update rule.

usage: check_names.py SOURCE. The operations are those that the files of models attach the interfaces to. Prints each
line of a pass that names one; fails if there is any."""
import pathlib
import re
import sys

# Where an operation gets its interface, or a composite is taken apart; these may name it.
MODELS = ["lib/Transforms/Place/SequenceAttention.cpp", "lib/Conversion/GraphToExec/*Routines.cpp", "lib/Conversion/ExecToLLVM/*Calls.cpp",
          "lib/Dialect/Graph/GraphOptimizers.cpp"]
PASSES = ["lib/Transforms", "lib/Conversion", "lib/Pipeline", "lib/Target"]
# They find what a model computes, or what backward made of it, and write it as another operation.
REWRITES = ["Raise*.cpp", "ConvolutionWindows.*", "MergeLossGradient.cpp", "BuildEvaluation.cpp", "Origins.cpp"]


# An effect on state, which passes follow as such; it becomes a call by itself.
STATE = {"exec::AccumulateOp"}


def main(source):
    models = {path for pattern in MODELS for path in source.glob(pattern)}
    operations = set()
    for path in models:
        dialect = "exec" if "ExecToLLVM" in path.parts else "graph"
        found = re.findall(r"(\w+Op)::attachInterface", path.read_text())
        operations.update(f"{dialect}::{name}" for name in found)
    operations -= STATE
    if len(operations) < 15:
        sys.exit(f"{len(operations)} operations have models in {', '.join(MODELS)}, expected 15 or more")
    named = re.compile(r"\b(" + "|".join(sorted(operations)) + r")\b")
    wrong = 0
    for folder in PASSES:
        for path in sorted((source / folder).rglob("*.cpp")) + sorted((source / folder).rglob("*.h")):
            if path in models or any(path.match(pattern) for pattern in REWRITES):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if found := named.search(line):
                    print(f"{path.relative_to(source)}:{number}: a pass names {found.group(0)}: it should ask an interface")
                    wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
