"""A wheel with the tools inside: built from the clone, installed elsewhere, used from there.

usage: wheel.py SOURCE BUILD PYTHON...   takes the first Python that can build wheels without a network
"""
import os
import shutil
import subprocess
import sys
import tempfile

source, build = map(os.path.abspath, sys.argv[1:3])
CAN = """
import setuptools  # before pip, which takes distutils its own way
import importlib.util as u, pip, numpy
assert u.find_spec("wheel") or tuple(map(int, setuptools.__version__.split(".")[:2])) >= (70, 1)
"""
USE = """
import dsopt, os, sys
assert os.path.dirname(dsopt.find_tool()) == os.path.join(os.path.dirname(dsopt.__file__), "bin"), dsopt.find_tool()
result = dsopt.train(sys.argv[1] + "/model.onnx", sys.argv[1] + "/batches.npz", steps=2, dp=2)
assert result.status == "ok" and len(result.losses) == 2, result
"""
for python in sys.argv[3:]:
    if shutil.which(python) and subprocess.run([python, "-c", CAN], capture_output=True).returncode == 0:
        break
else:
    print("left out: no Python here can build wheels (setuptools 70.1 or the wheel package, and numpy)")
    sys.exit(0)
folder = tempfile.mkdtemp()
shutil.copytree(os.path.join(source, "python"), os.path.join(folder, "python"))
environment = {**os.environ, "DSOPT_BUILD": build, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
environment.pop("DSOPT_BIN", None)
subprocess.run([python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-q", "-w", folder, os.path.join(folder, "python")],
               env=environment, check=True)
(wheel,) = [name for name in os.listdir(folder) if name.endswith(".whl")]
subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", os.path.join(folder, "site"),
                os.path.join(folder, wheel)], env=environment, check=True)
del environment["DSOPT_BUILD"]
environment["PYTHONPATH"] = os.path.join(folder, "site")
subprocess.run([python, "-c", USE, os.path.join(source, "test", "Models", "mlp")], cwd=folder, env=environment, check=True)
# The commands on PATH are the tools in the wheel, and not themselves.
path = os.pathsep.join([os.path.join(folder, "site", "bin"), os.environ["PATH"]])
for command in (["dsopt", "--version"], ["dsopt", os.path.join(source, "test", "Models", "mlp", "model.onnx"), "-plan"], ["dsopt-report", "--help"]):
    done = subprocess.run(command, cwd=folder, env={**environment, "PATH": path}, capture_output=True, text=True)
    if done.returncode or not done.stdout or shutil.which(command[0], path=path) != os.path.join(folder, "site", "bin", command[0]):
        sys.exit(f"wrong: {command} ended with {done.returncode}: {done.stdout}{done.stderr}")
shutil.rmtree(os.path.join(folder, "site", "dsopt", "bin"))
done = subprocess.run(["dsopt", "--version"], cwd=folder, env={**environment, "PATH": path}, capture_output=True, text=True, timeout=60)
if done.returncode == 0 or "dsopt is not found" not in done.stderr:
    sys.exit(f"wrong: without a tool dsopt ended with {done.returncode}: {done.stderr}")
print(wheel, "passed")
