# What a test is, and the names it may use.
import os
import shutil
import subprocess
import sys

import lit.formats

config.name = "dsopt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Runtime"]
# Ranks of one test outnumber the cores already; half of the time they wait, so two such tests go at once.
lit_config.parallelism_groups["ranks"] = 2
config.test_source_root = os.path.join(config.dsopt_source, "test")
config.test_exec_root = os.path.join(config.dsopt_build, "test")

tools = os.path.join(config.dsopt_build, "bin")
config.environment["PATH"] = os.pathsep.join([tools, config.llvm_tools, os.environ["PATH"]])
config.environment["DSOPT_CACHE"] = os.path.join(config.dsopt_build, "test", "cache")
venv = os.path.join(config.dsopt_build, "venv", "bin", "python")
config.substitutions.append(("%python", venv if os.path.exists(venv) else sys.executable))
# A Python with PyTorch, for tests that say REQUIRES: torch.
modules = ("torch", "onnx", "onnxscript", "transformers", "numpy")
probe = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules})))"
for candidate in [os.environ.get("DSOPT_TORCH_PYTHON"), venv, "python3"]:
    found = candidate and shutil.which(candidate)
    if found and subprocess.run([found, "-c", probe], capture_output=True).returncode == 0:
        config.available_features.add("torch")
        break
else:
    found = "python3"
config.substitutions.append(("%torch-python", found))
config.substitutions.append(("%build", config.dsopt_build))
config.substitutions.append(("%source", config.dsopt_source))
for tool in ["dsopt-opt", "dsopt-run", "dsopt-report", "dsopt"]:
    config.substitutions.append((rf"(?<![\w./-]){tool}(?![\w./-])", os.path.join(tools, tool)))
for tool in ["FileCheck", "not", "count", "split-file"]:
    config.substitutions.append((rf"(?<![\w./-]){tool}(?![\w./-])", os.path.join(config.llvm_tools, tool)))
# Tests of several hosts make network namespaces, where users may.
attempt = "ip link add left type veth peer name right && mount --bind /etc/hosts /etc/hosts"
for flags in ("-Urnum", "-num"):
    if subprocess.run(["unshare", flags, "sh", "-c", attempt], capture_output=True).returncode == 0:
        config.available_features.add("namespaces")
        break
