"""No room of lib and include reads headers of a later room: which may include which, as DESIGN section 3 has it.

usage: check_includes.py SOURCE. Prints each include that is against the table; fails if there is any."""
import pathlib
import re
import sys

GRAPH, DIST, EXEC = "Dialect/Graph", "Dialect/Dist", "Dialect/Exec"
# In the order that data flows: a room may include rooms before it and the dialects it reads or writes.
STAGES = {
    "Import": [GRAPH],
    "Transforms/Place": [GRAPH, DIST],
    "Transforms/Generate": [GRAPH, DIST],
    "Transforms/Autodiff": [GRAPH],
    "Transforms/Fuse": [GRAPH, DIST],
    "Analysis/Exec": [GRAPH, DIST, EXEC],
    "Transforms/Parallel": [GRAPH, DIST],
    "Planner": [GRAPH, DIST, EXEC],
    "Transforms/Memory": [GRAPH, DIST, EXEC],
    "Transforms/Order": [GRAPH, DIST, EXEC],
    "Transforms/Step": [GRAPH, DIST, EXEC],
    "Transforms/Overlap": [GRAPH, DIST, EXEC],
    "Transforms/Offload": [GRAPH, DIST, EXEC],
    "Transforms/Wire": [GRAPH, DIST, EXEC],
    "Transforms/Arena": [GRAPH, DIST, EXEC],
    "Verify": [GRAPH, DIST, EXEC],
    "Conversion": [GRAPH, DIST, EXEC],
    "Target": [GRAPH, DIST, EXEC],
    "Pipeline": [GRAPH, DIST, EXEC],
}
ALLOWED = {"Interfaces": [], GRAPH: ["Interfaces"], DIST: ["Interfaces"], EXEC: ["Interfaces", DIST], "Runtime": []}
for place, (room, dialects) in enumerate(STAGES.items()):
    ALLOWED[room] = ["Interfaces"] + dialects + list(STAGES)[:place]

# What compiler, generated programs and runtime say to each other: headers that include nothing but each other.
SHARED = ["ABI.h", "Attention.h", "Coefficients.h", "Convolution.h", "Ctc.h", "DeviceWorkspaces.h", "Epilogue.h", "Footer.h", "Gemm.h", "GenerateInputs.h", "Grid.h", "Metrics.h", "Options.def", "Philox.h", "RoutineImages.h", "Scalars.h"]
# Of these, what a room may include.
SHARED_WITH = {
    "Interfaces": ["Convolution.h", "Epilogue.h", "Options.def"],  # sizes of convolutions and what products go on with; what a module's options may be
    GRAPH: ["Ctc.h", "Gemm.h", "Grid.h", "Philox.h", "Scalars.h"],  # folding computes what the runtime would; parts of products; a rank's places
    DIST: ["Grid.h"],  # who is where, as the runtime computes it
    "Import": ["Scalars.h"],
    "Transforms/Generate": ["GenerateInputs.h"],  # what a program is given
    "Transforms/Autodiff": ["Metrics.h", "Scalars.h"],
    "Transforms/Wire": ["Coefficients.h", "Scalars.h"],
    "Conversion": ["ABI.h", "DeviceWorkspaces.h"],
    "Target": ["ABI.h", "RoutineImages.h"],
    "Pipeline": ["ABI.h"],
}


def room_of(path):
    """The room of a path below lib or include/dsopt, None where the table has none."""
    return max((room for room in ALLOWED if path.startswith(room + "/")), key=len, default=None)


def complaint(room, name, local):
    """What is wrong with including a header, None where nothing is. `local` are this tree's private headers."""
    if name.startswith("dsopt/"):
        path = name[len("dsopt/") :]
        other = room_of(path)
        if other == room or other in ALLOWED[room]:
            return None
        if other == "Runtime" and path[len("Runtime/") :] in SHARED_WITH.get(room, []):
            return None
        return f"{room} may not include {other or 'what is in no room'}"
    if re.match(r"(mlir|llvm)(-c)?/", name):
        return "Runtime links no MLIR and no LLVM" if room == "Runtime" else None
    others = {room_of(path) for path in local if path.endswith("/" + name)}
    if others and room not in others:
        return f"{room} may not include a private header of {', '.join(sorted(map(str, others)))}"
    return None


def main(source):
    roots = [source / "lib", source / "include" / "dsopt"]
    files = [(root, path) for root in roots for path in sorted(root.rglob("*"))]
    files = [(root, path) for root, path in files if path.suffix in (".h", ".cpp", ".inc", ".td", ".def")]
    local = [path.relative_to(root).as_posix() for root, path in files if root.name == "lib"]
    wrong = 0
    for root, path in files:
        name = path.relative_to(root).as_posix()
        room = room_of(name)
        includes = re.finditer(r'^\s*#?\s*include\s*["<]([^">]+)[">]', path.read_text(), re.MULTILINE)
        for include in includes:
            header = include.group(1)
            if room is None:
                what = "is in no room of the table"
            else:
                what = complaint(room, header, local)
            shared = root.name == "dsopt" and room == "Runtime" and path.name in SHARED
            if shared and header.startswith("dsopt/") and header.removeprefix("dsopt/Runtime/") not in SHARED:
                what = "headers that the compiler shares with the runtime include only each other"
            if what:
                line = path.read_text()[: include.start(1)].count("\n") + 1
                print(f"{path.relative_to(source)}:{line}: {header}: {what}")
                wrong += 1
    if not files:
        print(f"{source} has no sources")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
