"""Answers what is asked of a GPU: one step after the other, each in a process of its own with a limit. Lies in a package that
`./dev test-gpu -package=FILE` makes; needs the driver, cuBLASLt, Python 3.9 or newer and numpy.

usage: tar xf FILE && python3 gpu-answers/answer.py [-only=STEP,...] [-o FILE.json] [-limit-scale=X] [-list]
After each step FILE.json (gpu-answers.json) is written anew: -only replaces steps of a file that is there. A step is passed, failed,
hung (over its limit, or no rank got on), skipped (it needs more memory than is free) or absent (it needs what is not installed).
The status is 0 where nothing failed or hung.
"""
import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time

root = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, root)
import asked
import process
from context import Context, write_json

KILLED = 10  # seconds that a process in the driver may take to end


def arguments():
    names = [step.name for step in asked.STEPS]

    def some(text):
        unknown = [word for word in text.split(",") if word not in names]
        if unknown:
            raise argparse.ArgumentTypeError(f"got {unknown[0]}, expected some of {','.join(names)}")
        return text.split(",")

    parser = argparse.ArgumentParser(prog="answer.py", allow_abbrev=False)
    parser.add_argument("-only", type=some, default=names, help="steps, of " + ",".join(names))
    parser.add_argument("-o", dest="output", default="gpu-answers.json", help="what was answered (default: gpu-answers.json)")
    parser.add_argument("-limit-scale", type=float, default=1, help="times a step's limit")
    parser.add_argument("-list", action="store_true", help="print steps, limits and what they need of the GPU's memory")
    parser.add_argument("-step", choices=names, help=argparse.SUPPRESS)
    return parser.parse_args()


def end(group, ended):
    """Kills all that a step has started."""
    try:
        os.killpg(group.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        group.wait(KILLED)
    except subprocess.TimeoutExpired:
        ended["said"] += f"; its process {group.pid} did not end when it was killed"


def run_step(step, limit):
    """The answer of one step, which lies in a file that the step rewrites as it goes on."""
    context = Context(root, step, limit)
    shutil.rmtree(context.work, ignore_errors=True)
    os.makedirs(context.work)
    command = [sys.executable, os.path.abspath(__file__), f"-step={step.name}", f"-limit-scale={limit / step.limit}"]
    began = time.monotonic()
    with open(context.said, "wb") as said:
        group = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        status = group.wait(limit)
        answer = context.answered() or {"status": "running"}
        if answer["status"] == "running":
            answer.update(status="failed", said=f"the step's process ended with status {status}: " + process.last(context.said))
    except subprocess.TimeoutExpired:
        answer = context.answered() or {}
        waits = process.where(group.pid)
        path = process.newest(context.work)
        answer.update(status="hung", waits=waits, last_error=process.last_error(path), said=f"over its limit of {limit:g} s; " + process.last(path))
    except BaseException:
        end(group, {"said": ""})
        raise
    end(group, answer)
    first = ["status", "said"]
    return {**{key: answer[key] for key in first}, "seconds": round(time.monotonic() - began, 1), "limit": limit,
            **{key: value for key, value in answer.items() if key not in first}}


def main():
    args = arguments()
    steps = {step.name: step for step in asked.STEPS}
    if args.step:
        step = steps[args.step]
        return Context(root, step, step.limit * args.limit_scale).run()
    if args.list:
        for step in asked.STEPS:
            print(f"{step.name:10}{step.limit * args.limit_scale:5.0f} s {Context(root, step, step.limit).needed() / 2**20:8.0f} MiB  {step.asks}")
        return 0
    # What stops this stops the step.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    result = {"package": {key: value for key, value in Context.read_package(root).items() if key not in ("programs", "units")}, "steps": {}}
    if os.path.exists(args.output):
        with open(args.output) as file:
            had = json.load(file)
        if had["package"] != result["package"]:
            sys.exit(f"{args.output} has answers of a package of {had['package']['made']}, this one is of {result['package']['made']}: give another -o")
        result["steps"] = had["steps"]
    result["machine"] = {"host": platform.node(), "system": platform.platform(), "libc": " ".join(platform.libc_ver()), "python": platform.python_version(),
                         "cpus": len(os.sched_getaffinity(0))}
    failed = []
    for step in asked.STEPS:
        if step.name not in args.only:
            continue
        answer = run_step(step, step.limit * args.limit_scale)
        answer["at"] = time.strftime("%Y-%m-%dT%H:%M:%S")
        result["steps"][step.name] = answer
        result["steps"] = {one.name: result["steps"][one.name] for one in asked.STEPS if one.name in result["steps"]}
        write_json(args.output, result)
        print(f"{answer['status']:8}{step.name:10}{answer['seconds']:7.1f} s  {answer['said'].splitlines()[0] if answer['said'] else ''}", flush=True)
        if answer["status"] in ("failed", "hung"):
            failed.append(step.name)
    print(f"{args.output}: " + (", ".join(failed) + " failed" if failed else "nothing failed"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
