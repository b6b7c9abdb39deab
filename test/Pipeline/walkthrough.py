"""walkthrough.py DSOPT DSOPT-OPT MODEL DATA: prints docs/Walkthrough.md, the way of one parameter and of its
gradient through the stages of the compiler, as they print it."""
import os
import re
import subprocess
import sys
import tempfile

import onnx

dsopt, opt, model, data = sys.argv[1:]
LAYOUT = ["-dp=2", "-pp=2", "-zero=3", "-micro-batches=2", "-threads=1", "-arch=x86-64-v3", f"-data={data}"]
PARAMETER, BUCKET = "net.2.weight", "b1"


def run(command, text=None):
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


def emit(stage):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.mlir")
        run([dsopt, model, *LAYOUT, f"-emit={stage}", "-o", path])
        return run([opt, path])  # one operation a line


def passes():
    text = run([dsopt, model, *LAYOUT, "-print-pipeline"]).strip()
    return text.removeprefix("builtin.module(").removesuffix(")").split(",")


def up_to(text, last):
    """The graph form after the passes up to one, and which they are."""
    names = passes()
    names = names[:len(names) - names[::-1].index(last)]
    return run([opt, f"-pass-pipeline=builtin.module({','.join(names)})"], text), names


def function(text, name):
    """A function's lines."""
    match = re.search(rf"^  func\.func (?:private )?@{re.escape(name)}\(.*?^  }}$", text, re.S | re.M)
    return match[0].splitlines()


def show(lines, *patterns, width=140):
    """The lines that match, with dots where others stand between."""
    shown, skipped = [], False
    for line in lines:
        if re.search("|".join(patterns), line) if patterns else True:
            if skipped and shown:
                shown.append(re.match(r"\s*", line)[0] + "...")
            skipped = False
            shown.append(line if len(line) <= width else line[:width].rstrip() + " ...")
        else:
            skipped = True
    indent = min(len(re.match(r"\s*", line)[0]) for line in shown)
    return "```mlir\n" + "\n".join(line[indent:] for line in shown) + "\n```\n"


proto = onnx.load(model)
node = next(n for n in proto.graph.node if PARAMETER in n.input)
graph = emit("graph")
trained, names = up_to(graph, "verify-graph")
blocks, _ = up_to(graph, "form-blocks")
ordered, _ = up_to(graph, "order-pipeline")
dist, exec_ = emit("dist"), emit("exec")
escaped = re.escape(PARAMETER)
print(f"""# The way of one parameter

Printed by `test/Pipeline/walkthrough.py` from the model in `test/Models/mlp`: where its parameter
`{PARAMETER}` and the gradient of it are in each form of the program, from the file to the updated
weights, with `-dp=2 -pp=2 -zero=3 -micro-batches=2`. `dsopt model.onnx -emit=graph|dist|exec` prints
these forms whole; `-print-pipeline` lists the passes between them.

## The file

```
{onnx.helper.printable_node(node)}
```

## Graph: what is computed

The importer names file, offset and length; the bytes stay where they are. Forward reads the parameter
by name.
""")
print(show(graph.splitlines(), rf"graph\.parameter @{escaped} ", rf"graph\.read @{escaped} ", r"func\.func @forward"))
value = re.search(rf"(%[\w.$-]+) = graph\.read @{escaped} ", graph)[1]
print(show(function(graph, "forward"), rf"{re.escape(value)}(?![\w.])"))
print("""## Graph with backward and update

Stage 2 cuts the model into blocks, tags each operation with block and phase, and gives each block that uses a
parameter an accumulator. Backward to weights is phase W; the update is a function of its own.
""")
print(show(trained.splitlines(), rf"graph\.state @{escaped}\."))
body = [line for name in re.findall(r"^  func\.func (?:private )?@([\w.]+)\(", trained, re.M) for line in function(trained, name)]
gradient = re.search(rf"graph\.accumulate @{escaped}\.grad\.1, (%[\w.$-]+)", trained)[1]
step = next(name for name in ("micro_batch", "forward") if re.search(rf"@{name}\(", trained))
print(show(function(trained, step), rf"graph\.accumulate @{escaped}\.grad\.1", rf"{re.escape(gradient)} = ", rf"graph\.read @{escaped} "))
update = function(trained, "update")
index = next(i for i, line in enumerate(update) if f"graph.read @{PARAMETER} " in line)
print(show([update[0], *update[index:index + 8]]))
print("""## Blocks of kernels

Stage 3 groups operations into kernels and outlines each phase of each block.
""")
print(show(function(blocks, "block1.F")))
print(show(function(blocks, "block1.W")))
print("""## Dist: where it lives and who talks

Stage 4 puts the block's parameters into a bucket, cut into a slice for each data-parallel rank. What a rank has
a slice of, a block is given: a gather yields it, a reduction takes what ranks have added up.
""")
print(show(dist.splitlines(), rf"dist\.bucket @{BUCKET} "))
print(show(function(dist, "block1.F")))
print(show(function(dist, "micro_batch"), r"func\.func", rf"dist\.gather @{BUCKET} ", r"@block1\.", rf"dist\.reduce @{BUCKET} "))
print("""## Exec: when it runs

Stages 5 and 6 write a program for each pipeline position: memories, buffers at places in them, and actions on streams.
`order-pipeline` runs the function once for each micro-batch, in the order of the schedule. Here is how the block's
weight gradient leaves it on two micro-batches; each gather still serves one.
""")
ordered = re.search(r"^  exec\.program @position1 .*?^  }$", ordered, re.S | re.M)[0].splitlines()
print(show(ordered, rf"exec\.gather @{BUCKET}\.", r"exec\.run @block1\.", rf"exec\.reduce @{BUCKET}\."))
print("""`share-gathers` lets a gather serve a window of micro-batches, `place-reductions` adds gradients in the order that
every layout has, `finish-step` takes norms and updates, `prefetch-gathers` starts gathers earlier and
`insert-waits` writes what each action has to wait for. A run of a block's phase is given addresses; a gather fills `full` from every rank's `param`, a reduction leaves
this rank's slice of the sum in `grad.0`, and after its norm and the agreement of all ranks the update changes
the slice of the parameter with those of the optimizer's state. Which ranks talk among themselves is declared beside
the programs, and what runs their actions; each rank has all streams, and takes part in the group that it is in.
""")
print(show(exec_.splitlines(), r"exec\.communicator", r"exec\.stream").replace("...\n", ""))
print("""What it is compiled for stands on the module, and on the one that has its kernels: machine, features, and the threads
that routines have scratch for. Segments and updates name kernels there.
""")
print(show(exec_.splitlines(), r"^#target", r"^  module @kernels", r"func\.func nested @update\."))
program = re.search(r"^  exec\.program @position1 .*?^  }$", exec_, re.S | re.M)[0].splitlines()
print(show(program, r"exec\.program", r"exec\.memory", rf"exec\.buffer @{BUCKET}\.", r"exec\.schedule", rf"exec\.gather @{BUCKET}\.", rf"exec\.run .*@{BUCKET}\.",
           rf"exec\.reduce @{BUCKET}\.", rf"exec\.norm @{BUCKET}\.", r"exec\.agree", rf"exec\.update .* of @{BUCKET} ").rstrip("\n"))
