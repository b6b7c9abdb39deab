"""What a refused plan says would fit does fit, in the bytes it says, and none of the options is there for nothing; the least it
says is the least of them.

usage: remedies.py DSOPT
"""
import json
import os
import re
import resource
import sys
import tempfile

from runs import SOURCE, check, execute, model
from sampled import NIGHTLY, sampled

dsopt = sys.argv[1]


def plan(name, *options, status=0):
    path, data = model(name)
    done = execute([dsopt, path, f"-data={data}", "-plan=json", *options], status)
    return max(rank["memory"]["total"] for rank in json.loads(done.stdout)["ranks"]) if status == 0 else done.stderr


LAYOUTS = ([], ["-dp=2", "-gather-window=4", "-zero=3"], ["-dp=2", "-precision=bf16"], ["-offload-optimizer=cpu", "-recompute=full"], ["-recompute=auto"])
PLANS = {"gpt2-tiny": (*LAYOUTS, ["-pp=2", "-dp=2"]), "resnet-tiny": LAYOUTS}
for name, layouts in PLANS.items():
    for layout in sampled(layouts, 1 + (name == "gpt2-tiny")):
        options = [*layout, "-optimizer=adam", "-micro-batches=2"]
        needed, said = plan(name, *options), set()
        for budget in sampled([needed * tenths // 10 for tenths in (7, 9, 5, 3)] + [4096], 3):
            path, data = model(name)
            refused = execute([dsopt, path, f"-data={data}", "-plan", *options, f"-device-memory={budget}"], status=None)
            if refused.returncode == 0 and "-recompute=auto" in options:
                continue
            check(refused.returncode == 1, f"{name} {options}: {budget} bytes are not refused")
            message = refused.stderr
            fits = re.search(r"note: (.*) fits \((\d+) bytes\)", message)
            least = re.search(r"note: no other option is enough: the least is (\d+) bytes(?:, with (.*))?;", message)
            check(bool(fits) != bool(least) and message.count("note:") == 2, message)
            more, bytes_said = (fits[1], int(fits[2])) if fits else (least[2] or "", int(least[1]))
            more = more.split()
            said.add(" ".join(more))
            check(bytes_said <= budget if fits else bytes_said > budget, message)
            check(not ("-recompute=auto" in options and any("recompute" in option for option in more)), message)
            both = [option for option in options if "-recompute=auto" not in more or option != "-recompute=full"] + more
            plan(name, *both, f"-device-memory={budget if fits else bytes_said}")
            # What recomputes automatically takes as little as it can: all, or a choice for each block under the budget.
            possible = [plan(name, *[option.replace("=auto", "=full") for option in both])]
            if "-recompute=auto" in both and fits:
                possible.append(plan(name, *both, f"-device-memory={budget}"))
            check(bytes_said in possible, f"{possible}: {message}")
            for option in more if fits else ():
                others = [other for other in more if other != option]
                done = execute([dsopt, path, f"-data={data}", "-plan", *options, *others, f"-device-memory={budget}"], status=None)
                check(done.returncode == 1, f"{name} {options}: {option} is not needed, {message}")
        print(f"{name} {' '.join(layout)}: {needed} bytes; {' | '.join(sorted(said))}", flush=True)

# Of a long step few micro-batches are asked about: what is said is the plan's nevertheless. The times are for who reads them.
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "deep.onnx")
    execute([sys.executable, os.path.join(SOURCE, "examples", "make_gpt.py"), path, "--layers=40" if NIGHTLY else "--layers=12", "--width=64", "--tokens=16", "--rows=1"])
    layout = [dsopt, path, "-plan=json", "-zero=3", "-dp=2", "-micro-batches=64"]

    def timed(*options, status=0):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = execute([*layout, *options], status)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime, done

    def total(done):
        return max(rank["memory"]["total"] for rank in json.loads(done.stdout)["ranks"])

    plain, done = timed()
    needed = total(done)
    seconds, refused = timed(f"-device-memory={needed * 7 // 10}", status=1)
    fits = re.search(r"note: (.*) fits \((\d+) bytes\)", refused.stderr)
    check(bool(fits), refused.stderr)
    found = total(timed(*fits[1].split())[1])
    check(found == int(fits[2]) <= needed * 7 // 10, f"{found} bytes: {refused.stderr}")
    _, refused = timed(f"-device-memory={needed // 4}", status=1)
    least = re.search(r"the least is (\d+) bytes, with (.*?);", refused.stderr)
    check(bool(least), refused.stderr)
    found = total(timed(*[option.replace("=auto", "=full") for option in least[2].split()])[1])
    check(found == int(least[1]), f"{found} bytes: {refused.stderr}")
    print(f"a step of 64 micro-batches: refused in {seconds:.1f} s, planned in {plain:.1f} s; {fits[1]} takes {fits[2]} bytes; the least is {least[1]}", flush=True)

# What is wrong otherwise is said by itself.
path, data = model("mlp")
done = execute([dsopt, path, f"-data={data}", "-plan", "-device-memory=1M", "-offload-params=cpu"], status=1)
check("-offload-params=cpu needs -zero=3" in done.stderr and "fits" not in done.stderr, done.stderr)
