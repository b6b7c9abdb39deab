"""Evaluation: one loss in all layouts, weights untouched, partial groups, checkpoints and executables.

usage: evaluation.py DSOPT
"""
import json
import os
import sys
import tempfile

import numpy as np

from runs import MPIRUN, Run, check, execute, model, relative, train

dsopt = sys.argv[1]
path, batches = model("gpt2-tiny")
base = ["-steps=4", "-lr=3e-3", "-micro-batches=2", "-reduction-shards=4"]
layouts = [["-dp=2"], ["-dp=2", "-pp=2", "-zero=3"], ["-dp=4", "-zero=1", "-micro-batches=1"],
           ["-pp=4", "-micro-batches=4"], ["-dp=2", "-zero=2", "-threads=3", "-schedule=gpipe"]]


def evaluations(log):
    """The text of each "eval_loss": equal text is equal bits."""
    return [line.split('"eval_loss":')[1].split(",")[0] for line in open(log) if "eval_loss" in line]


def evaluate(*options, program=(), data=batches, status=0):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        command = [*program] if program else [dsopt, path]
        done = execute([*command, "-eval", f"-data={data}", f"-log={log}", *options], status)
        return done if status else (evaluations(log)[0], Run(log))


with tempfile.TemporaryDirectory() as folder:
    data = np.load(batches)
    # 7 micro-batches: no multiple of a step's 4; fewer than a step.
    seven, three = (os.path.join(folder, f"{n}.npz") for n in (7, 3))
    np.savez(seven, **{name: data[name].reshape(-1, *data[name].shape[-2:])[:7] for name in data.files})
    np.savez(three, **{name: data[name].reshape(-1, *data[name].shape[-2:])[:3] for name in data.files})

    # Beside training: the same losses and weights with it as without, evaluations equal in all layouts.
    plain = train(dsopt, "gpt2-tiny", *base, "-dp=2")
    seen = set()
    for index, layout in enumerate(layouts):
        log = os.path.join(folder, f"{index}.jsonl")
        execute([dsopt, path, "-run", f"-data={batches}", *base, *layout, f"-eval-data={seven}", "-eval-every=3", f"-log={log}"])
        run = Run(log)
        check([s["loss"] for s in run.steps] == plain.losses and run.hash == plain.hash,
              f"{layout}: evaluation changes training")
        seen.add(tuple(evaluations(log)))
    check(len(seen) == 1 and len(next(iter(seen))) == 2, f"evaluations differ: {seen}")
    lines = [json.loads(line) for line in open(log) if "eval_loss" in line]
    steps = [line["step"] for line in lines]
    check(steps == [2, 3], f"evaluated after steps {steps}, expected 2 and 3")
    check(all(line["eval_ms"] > 0 for line in lines), f"evaluations take no time: {lines}")
    print(f"beside training: {len(layouts)} layouts, losses {next(iter(seen))}")

    # Alone: from the model's weights, from a checkpoint, from an executable.
    alone = {evaluate(*layout, data=seven)[0] for layout in layouts}
    alone.add(evaluate("-dp=2", data=seven, program=[*MPIRUN, "2", dsopt, path])[0])
    check(len(alone) == 1, f"-eval gives {alone}")
    first = train(dsopt, "gpt2-tiny", "-steps=1", "-lr=0", "-micro-batches=3", data=three)
    check(relative(float(evaluate(data=three)[0]), first.losses[0]) < 1e-6,
          f"-eval gives another loss than training's first step, {first.losses[0]}")
    check(evaluate(data=seven)[0] != evaluate("-eval-batches=3", data=seven)[0] == evaluate(data=three)[0],
          "-eval-batches=3 is not the loss of the first three micro-batches")
    save, program = os.path.join(folder, "save"), os.path.join(folder, "train")
    execute([dsopt, path, *base, "-dp=2", "-zero=3", "-pp=2", "-o", program])
    execute([program, f"-data={batches}", f"-save={save}", "-quiet"])
    trained, run = evaluate(f"-resume={save}", data=seven)
    check(trained == next(iter(seen))[1], f"the checkpoint gives {trained}, expected {next(iter(seen))[1]}")
    check(run.hash == plain.hash, "-eval changes the weights")
    check(evaluate(f"-resume={save}", data=seven, program=[program])[0] == trained, "the executable's -eval differs")
    # Its time is an evaluation's, of which nothing is forward, backward or update.
    log = os.path.join(folder, "breakdown.jsonl")
    table = execute([dsopt, path, "-eval", f"-data={seven}", f"-log={log}", "-breakdown", "-dp=2", "-pp=2"]).stdout
    check("ms a step" in table and "evaluation" in table and "backward" not in table, f"-breakdown says\n{table}")
    times, = [json.loads(line)["breakdown"] for line in open(log) if line.startswith('{"breakdown"')]
    check(sorted(times) == ["communication", "evaluation", "waiting"], f"the log has {times}")
    check(len(times["evaluation"]) == 4 and min(times["evaluation"]) > 0, f"ranks evaluate for {times['evaluation']} ms")
    print("alone: from the model, a checkpoint and an executable")

    # Wrong use.
    for options, message in [
        (["-eval", f"-eval-data={seven}"], "options -eval and -eval-data exclude each other"),
        (["-eval", "-steps=3"], "option -steps trains, but nothing is trained with -eval"),
        (["-run", "-eval-every=2"], "option -eval-every needs -eval-data"),
        (["-run", f"-eval-data={os.path.join(folder, 'none.npz')}"], "none.npz"),
    ]:
        done = execute([dsopt, path, f"-data={batches}", *options], 1)
        check(message in done.stderr and done.stderr.count("\n") == 1, f"{options}: {done.stderr}")
