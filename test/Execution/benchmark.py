"""The benchmark without any peer: dsopt is compiled, timed and read, and the table's ratios and loss check are right.

usage: benchmark.py DSOPT
"""
import json
import os
import subprocess
import sys
import tempfile

from runs import SOURCE, check, model

sys.path.insert(0, os.path.join(SOURCE, "benchmarks"))
import bench
import measure
import table

dsopt = sys.argv[1]
path, data = model("gpt2-tiny")
steps = 4
with tempfile.TemporaryDirectory() as folder:
    program = measure.Program(dsopt, path, os.path.join(folder, "train"), [f"-data={data}", "-threads=1", *bench.DSOPT_ADAMW])
    check(not program.error and not os.path.exists(program.path + ".cache"), f"compiling says {program.error}")
    ours, why = program.train(data, steps)
    check(ours and len(ours["losses"]) == steps and 0 < ours["step_s"] and 0 < ours["first_loss_s"] < 60, f"a run is read as {ours} ({why})")
    check(1 < ours["peak_mb"] < 4096, f"peak memory is read as {ours['peak_mb']} MB")
    report = program.report(data, steps)
    check(report.gflop > 0 and report.rate > 0 and report.efficiency > 0, f"the report is read as {vars(report)}")
    check(0 < report.ms("update") < report.step_ms, "the report has no update")
    failed, why = measure.Program(dsopt, path, os.path.join(folder, "none"), ["-no-such-option"]).error, program.train("absent.npz", 1)[1]
    check("no-such-option" in failed and "absent.npz" in why, f"errors are read as {failed} and {why}")

    # A peer that needs twice the time and four times the memory, once with the same losses and once with others.
    raw = bench.Raw(os.path.join(folder, "bench.jsonl"))
    for peer, change in (("same", 0), ("other", 0.1)):
        rows = []
        for number in range(3):
            theirs = {"losses": [loss * (1 + change) for loss in ours["losses"]], "step_s": 2 * ours["step_s"], "peak_mb": 4 * ours["peak_mb"],
                      "first_loss_s": 10 - number}
            ours_compiled = {**ours, **{f"compile_{when}_s": value for when, value in program.compile_s.items()}}
            rows += [raw.write(kind="training", size="tiny", precision="fp32", layout="", against=peer, tokens=64, tolerance=1e-3, who=who, **row)
                     for who, row in (("dsopt", ours_compiled), (peer, theirs))]
        line, agree = table.training_line(rows)
        check("2.00x" in line and "4.00x" in line and " 10.00   8.50 " in line, f"the line is {line}")
        check(agree == (change == 0) == ("LOSSES DIFFER" not in line), f"losses that differ by {change} give {line}")
    check(table.training_line([{**rows[0], "against": None}])[1], "dsopt alone is no line")
    raw.write(kind="update", parameters=1000, threads=1, ms={"dsopt": 2.0, "torch": 3.0})
    raw.write(kind="efficiency", size="tiny", precision="fp32", gflop=report.gflop, rate=report.rate, efficiency=50.0)
    text = table.table([json.loads(line) for line in open(raw.file.name)])
    check(len(text.splitlines()) == 2 + 2 + 1 + 2 and "1.50x" in text and "50 %" in text, f"the table is\n{text}")

    # The update alone, as the command measures it.
    os.symlink(os.path.dirname(dsopt), os.path.join(folder, "bin"))
    command = [sys.executable, bench.__file__, "--build", folder, "-size=", "-peers=", "-update=1280000", "-rounds=1"]
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0 and " ms " in done.stdout and '"kind": "update"' in open(raw.file.name).readlines()[-1], done.stdout + done.stderr)

    # Products, where the processor has what the clock of the benchmark needs.
    if "avx2" in open("/proc/cpuinfo").read():
        command = [sys.executable, os.path.join(SOURCE, "benchmarks", "bench_products.py"), "--build", folder, "-models=tiny", "-types=f32",
                   "-threads=1", "-least=0.06", "-rounds=1", "-peer-python="]
        done = subprocess.run(command, capture_output=True, text=True)
        rows = [line for line in done.stdout.splitlines() if "dsopt" in line]
        check(done.returncode == 0 and len(rows) == 3 and all("oneDNN" in row for row in rows) and "less: median" in done.stdout,
              done.stdout + done.stderr)

    # What the command says where nothing is installed.
    command = [sys.executable, bench.__file__, "--build", folder, "-peer-python=absent", "-size=tiny", "-peers=eager,jax"]
    done = subprocess.run(command, capture_output=True, text=True)
    check("eager: left out" in done.stdout and "jax: left out" in done.stdout and "bench -install" in done.stderr, done.stdout + done.stderr)
