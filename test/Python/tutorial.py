"""docs/Tutorial.md: its blocks run one after the other.

usage: tutorial.py SOURCE BUILD   with a Python that has torch, onnxscript and transformers
"""
import os
import re
import subprocess
import sys
import tempfile
import warnings

source, build = map(os.path.abspath, sys.argv[1:3])
os.environ["DSOPT_BUILD"] = build
os.environ["PATH"] = os.path.join(build, "bin") + os.pathsep + os.environ["PATH"]
sys.path.insert(0, os.path.join(source, "python"))
warnings.filterwarnings("ignore")
tutorial = os.path.join(source, "docs", "Tutorial.md")
blocks = re.findall(r"```(python|sh)\n(.*?)```", open(tutorial).read(), re.S)
os.chdir(tempfile.mkdtemp())
names = {"tutorial": tutorial}
for language, code in blocks:
    if language == "python":
        exec(compile(code, tutorial, "exec"), names)
    else:
        subprocess.run(["sh", "-e", "-c", code], check=True)
print(f"{len(blocks)} blocks passed")
