# What a test is, and the names it may use.
import os
import shutil
import subprocess
import sys

sys.path.append(os.path.join(config.dsopt_source, "tools", "dev"))
from formats import Timed

config.name = "dsopt"
config.test_format = Timed(execute_external=False)
# What takes long and finds what nothing else does is a .nightly: ./dev nightly.
config.suffixes = [".mlir", ".test"] + [".nightly"] * bool(lit_config.params.get("nightly"))
config.excludes = ["Inputs", "Runtime"]
config.test_source_root = os.path.join(config.dsopt_source, "test")
config.test_exec_root = os.path.join(config.dsopt_build, "test")

tools = os.path.join(config.dsopt_build, "bin")
config.environment["DSOPT_NIGHTLY"] = str(int(bool(lit_config.params.get("nightly"))))
config.environment["PATH"] = os.pathsep.join([tools, config.llvm_tools, os.environ["PATH"]])
# Objects are known by what goes into LLVM: they serve every build of this machine.
cache = os.environ.get("DSOPT_DEV_CACHE", os.path.join(config.dsopt_build, "test"))
config.environment["DSOPT_CACHE"] = os.path.join(cache, "objects")
config.environment["CCACHE_DIR"] = os.environ.get("CCACHE_DIR", os.path.join(cache, "ccache"))
venv = os.path.join(config.dsopt_build, "venv", "bin", "python")
config.substitutions.append(("%python", venv if os.path.exists(venv) else sys.executable))
# A Python with PyTorch, for tests that say REQUIRES: torch.
modules = ("torch", "onnx", "onnxscript", "transformers", "accelerate", "lightning", "tensorboard", "numpy")
probe = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules})))"
for candidate in [os.environ.get("DSOPT_TORCH_PYTHON"), venv]:
    found = candidate and shutil.which(candidate)
    if found and subprocess.run([found, "-c", probe], capture_output=True).returncode == 0:
        config.available_features.add("torch")
        break
else:
    found = sys.executable
config.substitutions.append(("%torch-python", found))
# One with other tokenizers, for tests that say REQUIRES: tokenizers.
text_python = os.environ.get("DSOPT_TEXT_PYTHON", "")
if text_python:
    config.available_features.add("tokenizers")
config.substitutions.append(("%text-python", text_python or sys.executable))
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
