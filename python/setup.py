"""Builds the package; where the clone has been built, its tools go into the wheel.

DSOPT_BUILD names the build folder (default: build, beside this folder). The tools
need LLVM 22, oneDNN, zlib and (dsopt-report) libmicrohttpd of the machine they were built on.
"""
import os
import shutil

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

here = os.path.dirname(os.path.abspath(__file__))
build = os.environ.get("DSOPT_BUILD", os.path.join(here, os.pardir, "build"))
# Where each lies in the wheel and in the build: programs that cannot be asked for faults.
TOOLS = {"bin/dsopt": "installed/bin/dsopt", "bin/dsopt-run": "installed/bin/dsopt-run", "lib/libdsopt.so": "lib/libdsopt.so"}
MORE = {"bin/dsopt-report": "bin/dsopt-report"}  # where it was built
built = all(os.path.exists(os.path.join(build, tool)) for tool in TOOLS.values())


class BuildWithTools(build_py):
    """Copies the tools beside the modules, unless the package is used in place."""

    def run(self):
        super().run()
        if not built or getattr(self, "editable_mode", False):
            return
        for place, tool in [*TOOLS.items(), *(item for item in MORE.items() if os.path.exists(os.path.join(build, item[1])))]:
            target = os.path.join(self.build_lib, "dsopt", place)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(build, tool), target)


class Tagged(Distribution):
    """With the tools inside, a wheel is for this platform, whatever its Python."""

    def has_ext_modules(self):
        return built


commands = {"build_py": BuildWithTools}
try:
    try:
        from setuptools.command.bdist_wheel import bdist_wheel
    except ImportError:
        from wheel.bdist_wheel import bdist_wheel

    class AnyPython(bdist_wheel):
        def get_tag(self):
            python, abi, platform = super().get_tag()
            return ("py3", "none", platform) if built else (python, abi, platform)

    commands["bdist_wheel"] = AnyPython
except ImportError:
    pass

setup(cmdclass=commands, distclass=Tagged)
