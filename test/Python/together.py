"""Tests that need the same packages, one after the other, each in a process that is forked once these are imported.

usage: together.py SOURCE BUILD MODULE,...|- NAME...   each NAME.py of this folder says "passed"
"""
import os
import resource
import sys
import time

import forks

source, build, modules, *names = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
forks.prepare(modules.split(",") if modules != "-" else [])
failed = []
for name in names:
    begin, used = time.time(), sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    said, status = forks.run(os.path.join(here, name + ".py"), source, build)
    passed = status == 0 and said.rstrip().endswith("passed")
    print(f"{said}== {name}: {'passed' if passed else f'failed with {status}'} after {time.time() - begin:.1f} s, "
          f"{sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - used:.1f} of a core", flush=True)
    if not passed:
        failed.append(name)
sys.exit(f"failed: {' '.join(failed)}" if failed else 0)
