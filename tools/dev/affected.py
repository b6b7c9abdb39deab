"""What a path reaches: what has to be built for it, and the tests that ask about it, the closest first.

Sources and headers by the build's own records (ninja's dependencies), scripts by what they import, tests by the scripts
that their RUN lines name.
"""
import ast
import glob
import os
import re
import subprocess

UNITS = "units"  # the folder of unit tests in a build


def kebab(name):
    """`PartitionZero` as its pass and test are named: `partition-zero`."""
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1-\2", re.sub(r"([a-z0-9])([A-Z])", r"\1-\2", name)).lower()


class Affected:
    """Tests by how far they are from the paths, and targets of ninja."""

    def __init__(self, build, source):
        self.build, self.source = os.path.abspath(build), os.path.abspath(source)
        self.distance = {}  # of a test, named by its path in the build
        self.targets = set()

    def add_test(self, test, distance):
        """`test` is a path below `test` of the source, or of the build's unit tests."""
        self.distance[test] = min(distance, self.distance.get(test, distance))

    def add_folder(self, folder, distance):
        for path in self.lit_tests(folder):
            self.add_test(path, distance)

    def lit_tests(self, folder):
        found = []
        for place, folders, files in os.walk(os.path.join(self.source, folder)):
            folders[:] = sorted(set(folders) - {"Inputs"})
            found += [os.path.relpath(os.path.join(place, name), self.source) for name in sorted(files) if name.endswith((".test", ".mlir"))]
        return [path for path in found if not path.startswith(("test/Runtime", "test/lit"))]

    def add(self, path):
        """Whether the path reaches anything."""
        before = len(self.distance) + len(self.targets)
        full = os.path.join(self.source, path)
        if os.path.isdir(full):
            if path.split(os.sep)[0] == "test":
                self.add_folder(path, 0)
            for place, _, files in os.walk(full):
                for name in files:
                    self.add(os.path.relpath(os.path.join(place, name), self.source))
        elif path.endswith((".test", ".mlir")) and path.startswith("test/"):
            self.add_test(path, 0)
        elif path.endswith(".py"):
            self.add_script(path)
        elif path.endswith((".cpp", ".c", ".h", ".td", ".def", ".inc", ".cu")):
            self.add_source(path)
        else:
            self.add_mentions(path, 0)
        return len(self.distance) + len(self.targets) > before

    # Sources.

    def ninja(self, *arguments):
        done = subprocess.run(["ninja", "-C", self.build, *arguments], capture_output=True, text=True)
        return [line for line in done.stdout.splitlines() if not line.startswith("ninja: Entering")]

    def dependents(self, path):
        """Outputs that are made of a source or header, with those made of what is generated from it."""
        if not hasattr(self, "made_of"):
            self.made_of, output = {}, None
            for line in self.ninja("-t", "deps"):
                if line.startswith("    "):
                    name = os.path.normpath(os.path.join(self.build, line.strip()))
                    self.made_of.setdefault(name, set()).add(output)
                elif line:
                    output = line.split(":")[0]
            # What TableGen writes has files of its own that say what it read.
            for file in glob.glob(os.path.join(self.build, "include", "**", "*.d"), recursive=True):
                for name in open(file).read().replace("\\\n", " ").partition(":")[2].split():
                    name = os.path.normpath(os.path.join(self.build, name))
                    self.made_of.setdefault(name, set()).add(os.path.relpath(file[: -len(".d")], self.build))
        found, todo = set(), [os.path.join(self.source, path)]
        if path.endswith(".td"):
            # A table's own name is in no record; what is written of it lies where it does.
            todo += glob.glob(os.path.join(self.build, os.path.dirname(path), "*.inc"))
        while todo:
            for output in self.made_of.get(todo.pop(), ()):
                if output not in found:
                    found.add(output)
                    todo.append(os.path.join(self.build, output))
        return found

    def programs(self):
        """Unit tests' names by the program that each runs, as ninja names it."""
        found = {}
        for path in glob.glob(os.path.join(self.build, UNITS, "*.test")):
            program = re.search(r"timeout \d+ (\S+)", open(path).read()).group(1)
            found.setdefault(os.path.relpath(program, self.build), []).append(os.path.relpath(path, self.build))
        return found

    def add_source(self, path):
        objects = {output for output in self.dependents(path) if output.endswith(".o")}
        is_test = path.startswith("test/")
        programs = self.programs()
        inputs = {program: self.ninja("-t", "inputs", program) for program in programs}
        homes = {program: self.home(program, inputs[program]) for program in programs}
        own = os.path.dirname(path) if is_test else self.mirror(path, homes.values())
        for program, units in programs.items():
            if objects.isdisjoint(inputs[program]):
                continue
            # What all tools share is in every one of their tests: those of its own room are close.
            for unit in units:
                self.add_test(unit, 1 if homes[program] == own else 4)
            if homes[program] == own:
                self.targets.add(program)
        rooms = set() if is_test else {self.mirror(path, self.folders())}
        stem = kebab(os.path.splitext(os.path.basename(path))[0])
        for test in self.lit_tests("test"):
            if re.fullmatch(re.escape(stem) + r"(-[a-z-]+)?\.(mlir|test)", os.path.basename(test)):
                self.add_test(test, 1)
        for room in rooms - {None}:
            self.add_folder(room, 2)
        for room in {self.mirror(output.replace("/CMakeFiles/", "/"), self.folders()) for output in objects} - rooms - {None}:
            self.add_folder(room, 3)
        if not is_test:
            self.targets.add("dsopt-driver")

    def home(self, program, inputs):
        """The folder of a unit test's own sources."""
        name = re.escape(os.path.basename(program))
        objects = (re.match(rf"(test/.*)/CMakeFiles/{name}\.dir/", line) for line in inputs)
        return next((found.group(1) for found in objects if found), None)

    def folders(self):
        """Those that have tests of lit."""
        if not hasattr(self, "with_tests"):
            self.with_tests = {os.path.dirname(test) for test in self.lit_tests("test")}
        return self.with_tests

    def mirror(self, path, folders):
        """Of the folders the nearest to a source's: lib/Transforms/Fuse has test/Transforms/Fuse."""
        parts = path.split("/")
        if parts[:2] == ["include", "dsopt"]:
            parts = parts[1:]
        if parts[0] not in ("lib", "dsopt", "tools"):
            return None
        parts = parts[1:-1]
        while parts and os.path.join("test", *parts) not in folders:
            parts.pop()
        return os.path.join("test", *parts) if parts else None

    # Scripts.

    def importers(self):
        """For each script, those that import it or name it."""
        if hasattr(self, "imported_by"):
            return self.imported_by
        scripts = [path for top in ("test", "python", "examples", "benchmarks", "docs")
                   for path in glob.glob(os.path.join(self.source, top, "**", "*.py"), recursive=True)]
        scripts = {os.path.relpath(path, self.source) for path in scripts}
        self.imported_by = {path: set() for path in scripts}
        for path in scripts:
            text = open(os.path.join(self.source, path)).read()
            for name in self.imports(path, text):
                if name in scripts:
                    self.imported_by[name].add(path)
        return self.imported_by

    def imports(self, path, text):
        """Files that a script may mean by what it imports."""
        folder = os.path.dirname(path)
        for found in ast.walk(ast.parse(text)):
            if isinstance(found, ast.Import):
                modules = [alias.name for alias in found.names]
            elif isinstance(found, ast.ImportFrom):
                above = folder
                for _ in range(found.level - 1):
                    above = os.path.dirname(above)
                base = "." * bool(found.level) + (found.module or "")
                modules = [base, *(f"{base.rstrip('.')}.{alias.name}" for alias in found.names)]
                if found.level:
                    for module in modules:
                        place = os.path.join(above, *filter(None, module.split(".")))
                        yield from (place + ".py", os.path.join(place, "__init__.py"))
                    continue
            elif isinstance(found, ast.Attribute) and isinstance(found.value, ast.Name) and found.value.id == "dsopt":
                modules = [f"dsopt.{found.attr}"]  # a front end, which comes when it is asked for
            else:
                continue
            for module in modules:
                place = module.replace(".", "/")
                for top in ("python", folder, "test/Execution", "test/Fuzz", "test/Faults", "test/Python"):
                    yield from (os.path.join(top, place + ".py"), os.path.join(top, place, "__init__.py"))

    def add_script(self, path):
        distance, seen, level = 0, {path}, [path]
        while level:
            for script in level:
                self.add_mentions(script, distance)
            level = sorted({by for script in level for by in self.importers().get(script, ())} - seen)
            seen.update(level)
            distance += 1

    def add_mentions(self, path, distance):
        """Tests that name a file, or the folder of a model."""
        name = path.split("/")[2] if path.startswith("test/Models/") else os.path.basename(path)
        pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
        # test/Python/together.py is given names.
        alone = re.compile(rf"^RUN:.* {re.escape(os.path.splitext(name)[0])}( |$)", re.M)
        for test in self.lit_tests("test"):
            text = open(os.path.join(self.source, test), errors="replace").read()
            if pattern.search(text) or os.path.dirname(path) == os.path.dirname(test) and alone.search(text):
                self.add_test(test, distance)

    # What is to be built for tests.

    def targets_of(self, tests):
        """Targets that tests need, by what their RUN lines name."""
        programs = {unit: program for program, units in self.programs().items() for unit in units}
        needed = set(self.targets)
        for test in tests:
            if test.startswith(UNITS):
                needed.add(programs[test])
                continue
            text = open(os.path.join(self.source, test)).read()
            needed |= {"dsopt-driver", "dsopt-run", "dsopt-opt"}
            needed |= {tool for tool in ("dsopt-import", "dsopt-forward", "dsopt-report") if tool in text}
            if "SoftDevice" in text or "%build" in text:
                needed |= {"SoftDeviceCuda", "SoftDeviceProducts", "SoftDeviceConvolutions", "SoftDeviceNccl"}
            needed |= {"dsopt-run-installed", "dsopt-driver-installed"} if "installed" in text or "wheel" in test else set()
            needed |= {"tiny1", "tiny2"} if "Faults" in test else set()
            needed |= {"dsopt-import", "dsopt-forward"} if "%build/bin" in text else set()
        return sorted(needed)
