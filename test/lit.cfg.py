# What a test is, and the names it may use.
import os
import sys

import lit.formats

config.name = "dsopt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Runtime"]
# Ranks of one test outnumber the cores already: one such test at a time.
lit_config.parallelism_groups["ranks"] = 1
config.test_source_root = os.path.join(config.dsopt_source, "test")
config.test_exec_root = os.path.join(config.dsopt_build, "test")

tools = os.path.join(config.dsopt_build, "bin")
config.environment["PATH"] = os.pathsep.join([tools, config.llvm_tools, os.environ["PATH"]])
config.environment["DSOPT_CACHE"] = os.path.join(config.dsopt_build, "test", "cache")
venv = os.path.join(config.dsopt_build, "venv", "bin", "python")
config.substitutions.append(("%python", venv if os.path.exists(venv) else sys.executable))
config.substitutions.append(("%build", config.dsopt_build))
config.substitutions.append(("%source", config.dsopt_source))
for tool in ["dsopt-opt", "dsopt-run", "dsopt"]:
    config.substitutions.append((rf"(?<![\w./-]){tool}(?![\w./-])", os.path.join(tools, tool)))
for tool in ["FileCheck", "not", "count", "split-file"]:
    config.substitutions.append((rf"(?<![\w./-]){tool}(?![\w./-])", os.path.join(config.llvm_tools, tool)))
