"""Small changes of lines of lib/ and python/, drawn by a seed: draw number N of a seed is the same wherever the source is.

A draw takes a file by its lines, one of its lines, and one of the places where an operator fits; where none does, the next
draw's numbers. Tests of a change are those below the folder of test/ that its folder is like, and the smoke runs.
"""
from __future__ import annotations

import dataclasses
import os
import random
import re

from planting import Defect

#: Name, pattern and what takes its place; of C++ and of Python.
COMMON = [("< to <=", r"(?<=[\w)\]]) < (?=[\w(])", " <= "), ("<= to <", r" <= ", " < "), ("> to >=", r"(?<=[\w)\]]) > (?=[\w(])", " >= "),
          (">= to >", r" >= ", " > "), ("== to !=", r" == ", " != "), ("!= to ==", r" != ", " == "),
          ("+ to -", r"(?<=[\w)\]]) \+ (?=[\w(])", " - "), ("- to +", r"(?<=[\w)\]]) - (?=[\w(])", " + "),
          ("a constant off by one", r"(?<![\w.\"'%<])(\d)(?![\w.\"'>])", None)]
CPP = [("&& to ||", r" && ", " || "), ("|| to &&", r" \|\| ", " && "), ("a ! dropped", r"(?<=[ (])!(?=[\w(])", ""),
       ("a call dropped", r"^\s+[\w.>:-]+\(.*\);$", None)]
PYTHON = [("and to or", r" and ", " or "), ("or to and", r" or ", " and "), ("a not dropped", r"\bnot (?!in\b)", ""),
          ("a call dropped", r"^\s+[\w.]+\(.*\)$", None)]
#: GoogleTests by the folder that they are in.
GOOGLE = {"Runtime/System": "SystemTest", "Runtime/Core": "CoreTest DeviceTest NcclTest", "Runtime/Data": "DataTest",
          "Runtime/Comm": "WireTest RendezvousTest SocketsTest LivenessTest CommTest", "Runtime/Checkpoint": "CheckpointTest",
          "Runtime/Kernels/CPU": "KernelsTest", "Runtime/Kernels/CUDA": "CudaTest ProductsTest ConvolutionsTest",
          "Runtime/Driver": "OptionsTest CpusTest HandoverTest LaunchTest ExecutableTest CheckpointSearchTest RunTest RunEndsTest"}
OTHERS = {"Dialect/Graph": "DsoptGraphTest", "Transforms/Autodiff": "DsoptGraphTest", "Transforms/Memory": "DsoptMemoryTest",
          "Analysis/Exec": "DsoptAnalysisTest", "Interfaces": "DsoptInterfacesTest", "Target": "DsoptTargetTest"}
TOOLS = "dsopt-driver dsopt-opt dsopt-run dsopt-import dsopt-forward SoftDeviceCuda SoftDeviceProducts SoftDeviceConvolutions SoftDeviceNccl"


@dataclasses.dataclass(frozen=True)
class Mutant:
    seed: int
    index: int
    file: str
    line: int
    change: str
    text: str  #: of the file
    begin: int
    end: int
    new: str  #: in the place of text[begin:end]

    def defect(self) -> Defect:
        """The lines around it, as many as make it the only place in the file."""
        begin, end = self.text.rfind("\n", 0, self.begin) + 1, self.text.find("\n", self.end)
        for _ in range(20):
            if self.text.count(self.text[begin:end]) == 1:
                break
            begin = self.text.rfind("\n", 0, max(begin - 1, 0)) + 1
            end = self.text.find("\n", end + 1)
        old = self.text[begin:end]
        new = old[:self.begin - begin] + self.new + old[self.end - begin:]
        folder = os.path.dirname(self.file)
        room = "python" if folder.startswith("python") else " ".join(folder.split("/")[1:3])
        return Defect(f"drawn-{self.seed}-{self.index}", room, f"line {self.line}: {self.change}", self.file, old, new, "", "", "",
                      drawn=f"seed {self.seed}, draw {self.index}")

    def folder(self) -> str:
        """Of test/, the one that the file's folder is like."""
        return "Python" if self.file.startswith("python/") else os.path.dirname(self.file).removeprefix("lib/")

    def google(self) -> list[str]:
        return [f"DsoptRuntime{name}" for name in GOOGLE.get(self.folder(), "").split()] + OTHERS.get(self.folder(), "").split()

    def stages(self, source: str) -> list[tuple[str, str]]:
        """Targets and a test of theirs, those that take the least first."""
        stages = [(name, f"{name}:*") for name in self.google()]
        place = os.path.join(source, "test", self.folder())
        if os.path.isdir(place) and not self.folder().startswith("Runtime"):
            passes = self.folder().startswith(("Transforms", "Dialect", "Interfaces"))
            stages.append(("dsopt-opt" if passes else TOOLS, self.folder()))
        return [*stages, (TOOLS, "Smoke")]


class Mutants:
    def __init__(self, source: str, seed: int):
        self.seed = seed
        self.files: list[tuple[str, str]] = []
        for top, ends in (("lib", ".cpp"), ("python/dsopt", ".py")):
            for folder, folders, names in os.walk(os.path.join(source, top)):
                folders.sort()
                for name in sorted(names):
                    if name.endswith(ends):
                        path = os.path.join(folder, name)
                        with open(path, newline="") as file:
                            self.files.append((os.path.relpath(path, source), file.read()))

    def at(self, index: int) -> Mutant:
        generator = random.Random(f"{self.seed} {index}")
        while True:
            path, text = generator.choices(self.files, [text.count("\n") for _, text in self.files])[0]
            lines = text.split("\n")
            number = generator.randrange(len(lines))
            line, start = lines[number], sum(len(one) + 1 for one in lines[:number])
            places = [] if self.is_prose(path, line, text[:start]) else [
                (name, found.start(), found.end(), self.replaced(path, name, found[0], new))
                for name, pattern, new in COMMON + (PYTHON if path.endswith(".py") else CPP) for found in re.finditer(pattern, line)
                if name != "a call dropped" or self.is_statement(line, lines[number - 1])]
            if places:
                name, begin, end, new = generator.choice(places)
                return Mutant(self.seed, index, path, number + 1, name, text, start + begin, start + end, new)

    @staticmethod
    def is_prose(path: str, line: str, before: str) -> bool:
        """Comments, texts of several lines, what is included, and lines that hold texts."""
        if path.endswith(".py"):
            return before.count('"""') % 2 == 1 or '"' in line or line.lstrip().startswith(("#", "import ", "from "))
        return '"' in line or line.lstrip().startswith(("//", "#", "/*", "*")) or "//" in line \
            or before.rfind('R"mlir(') > before.rfind(')mlir"')

    @staticmethod
    def is_statement(line: str, before: str) -> bool:
        """Whether a call is one by itself: not the end of one that begins above."""
        return line.count("(") == line.count(")") and before.rstrip().endswith((";", "{", "}", ":", "*/"))

    @staticmethod
    def replaced(path: str, name: str, found: str, new: str | None) -> str:
        if new is not None:
            return new
        if name == "a call dropped":
            return found[:len(found) - len(found.lstrip())] + ("pass" if path.endswith(".py") else ";")
        return str(int(found) + 1)
