"""Learning rates of resumed runs: one that asks for more steps follows the schedule to its new end, and says from where to
where; an end that was given stays; a run that was stopped goes on with the bits of the one that was not.

usage: resumed_rates.py DSOPT
"""
import os
import sys
import tempfile

from runs import Run, check, execute, model

dsopt = sys.argv[1]
folder = tempfile.mkdtemp(prefix="resumed-rates-")
path, data = model("mlp")
LEAST = "-min-lr=1e-5"


def at(name):
    return os.path.join(folder, name)


def run(*options, resume=""):
    """What a run logged, and the lines that warn."""
    log = at("log.jsonl")
    if os.path.exists(log):
        os.remove(log)
    words = [f"-resume={at(resume)}"] if resume else []
    done = execute([dsopt, path, "-run", f"-data={data}", "-quiet", f"-log={log}", "-lr=1e-2", *options, *words])
    return Run(log), [line for line in done.stderr.splitlines() if "-lr" in line]


def rates(logged):
    return [step["lr"] for step in logged.steps]


SCHEDULES = {"linear": [LEAST], "cosine": [LEAST], "warmup-decay": [], "warmup-cosine": []}
for name, options in SCHEDULES.items():
    options = [f"-lr-schedule={name}", "-warmup-steps=2", *options]
    run(*options, "-steps=5", f"-save={at(name)}", "-save-every=3", "-save-keep=9")
    fresh, _ = run(*options, "-steps=9")
    longer, said = run(*options, "-steps=9", f"-save={at(name + '-more')}", "-save-every=7", "-save-keep=9", resume=name)
    check(rates(longer) == rates(fresh)[5:], f"{name}: rates {rates(longer)}, expected {rates(fresh)[5:]}")
    check(min(rates(longer)) > 0, f"{name}: a step at rate 0: {rates(longer)}")
    check(len(said) == 1 and f"-lr-schedule={name} now ends at step 9 instead of 5" in said[0]
          and "the rate of step 5 is" in said[0] and "-lr-decay-steps=5 keeps the end" in said[0], f"{name}: {said}")
    # The new end is kept: stopped again, the run goes on with the same bits and says nothing.
    again, said = run(*options, "-steps=9", resume=f"{name}-more/step-00000007")
    check(again.hash == longer.hash and not said, f"{name}: {again.hash} against {longer.hash}, said {said}")
    # As before where it is asked for, in words or by the run that was stopped.
    kept, _ = run(*options, "-steps=9", "-lr-decay-steps=5", resume=name)
    given, _ = run(*options, "-steps=9", "-lr-decay-steps=5")
    check(rates(kept) == rates(given)[5:], f"{name}: -lr-decay-steps=5 gives {rates(kept)}, expected {rates(given)[5:]}")
    whole, _ = run(*options, "-steps=5")
    rest, said = run(*options, "-steps=5", resume=f"{name}/step-00000003")
    check(rest.hash == whole.hash and not said, f"{name}: {rest.hash} against {whole.hash}, said {said}")
    fewer, said = run(*options, "-steps=4", resume=f"{name}/step-00000003")
    check(rates(fewer) == rates(whole)[3:4] and not said, f"{name}: fewer steps have {rates(fewer)}, said {said}")
print("schedules follow -steps", flush=True)

# An end that was given is kept in checkpoints, and what that means is said.
options = ["-lr-schedule=linear", LEAST]
run(*options, "-steps=5", "-lr-decay-steps=7", f"-save={at('given')}")
fresh, _ = run(*options, "-steps=9", "-lr-decay-steps=7")
longer, said = run(*options, "-steps=9", resume="given")
check(rates(longer) == rates(fresh)[5:], f"rates {rates(longer)}, expected {rates(fresh)[5:]}")
check(len(said) == 1 and "ends at step 7" in said[0] and "-lr-decay-steps=9 moves the end" in said[0], said)
rest, said = run(*options, "-steps=7", resume="given")
check(not said, said)
# A schedule that comes with the resumed run ends where that ends.
run("-lr-schedule=constant", "-steps=5", f"-save={at('constant')}")
fresh, _ = run(*options, "-steps=9")
longer, said = run(*options, "-steps=9", resume="constant")
check(rates(longer) == rates(fresh)[5:] and not any("ends at" in line for line in said), f"{rates(longer)}, said {said}")
print("passed")
