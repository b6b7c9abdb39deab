# What a test is, and the names it may use.
import os
import sys

import lit.formats

config.name = "dsopt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Runtime"]
config.test_source_root = os.path.join(config.dsopt_source, "test")
config.test_exec_root = os.path.join(config.dsopt_build, "test")

tools = os.path.join(config.dsopt_build, "bin")
config.environment["PATH"] = os.pathsep.join([tools, config.llvm_tools, os.environ["PATH"]])
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%source", config.dsopt_source))
for tool in ["dsopt-opt", "dsopt-run", "dsopt"]:
    config.substitutions.append((rf"(?<![\w./-]){tool}(?![\w./-])", os.path.join(tools, tool)))
for tool in ["FileCheck", "not", "count", "split-file"]:
    config.substitutions.append((rf"(?<![\w./-]){tool}(?![\w./-])", os.path.join(config.llvm_tools, tool)))
