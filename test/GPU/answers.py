"""The package that asks a GPU, on the device in software, in an empty root: what each step answers, what is hung, failed, skipped or absent there,
and the page of it.

usage: answers.py BUILD some | all
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
source = os.path.dirname(os.path.dirname(here))
sys.path[:0] = [here, os.path.join(here, "..", "Execution")]
import empty_root
from runs import check, execute

build, what = sys.argv[1:]
STEPS = ["start", "kernels", "mlp", "layouts", "products", "gpt2", "graphs", "memory", "peers", "flash", "ncu", "1.3b"]
# Stand for what no machine without a GPU has. PyTorch's rows are dsopt's own losses.
EAGER = """import json, sys
losses = json.load(open("/losses.json"))
print("step 0 loss", losses[0])
print(json.dumps({"losses": losses, "times": [0.5] * len(losses), "device_mb": 100.0}))
"""
FLASH = "import json\nprint(json.dumps({'attention': 2.0, 'attention_grad': 5.0}))\n"
NCU = """import subprocess, sys
if sys.argv[1:] == ["--version"]:
    sys.exit(print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.0.0 (build 1)"))
assert "--csv" in sys.argv and sys.argv[-1] == "-quiet"
print("==PROF== Connected to process 1")
names = ["ID", "Kernel Name", "dram__bytes.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__time_duration.sum",
         "sm__throughput.avg.pct_of_peak_sustained_elapsed"]
rows = [["", "", "byte", "%", "ns", "%"], ["0", "short", "1,000", "10", "100", "5"], ["1", "long", "2,000,000", "80", "3,000", "20"], ["2", "long", "2,000,000", "50", "1,000", "60"]]
for row in [names, *rows]:
    print(",".join(f'"{word}"' for word in row))
"""


class Machine:
    """The root with the package unpacked, and the device in software under its driver's and libraries' names."""

    def __init__(self, place, package):
        self.root = os.path.join(place, "root")
        os.makedirs(self.root)
        self.python = empty_root.make(self.root)
        self.how = empty_root.flags(self.root)
        if not self.how:
            print("without a root of its own: no namespaces here; Python has an environment with nothing in it")
        subprocess.run(["tar", "xf", package, "-C", self.root], check=True)
        soft = os.path.join(build, "test", "SoftDevice")
        os.makedirs(os.path.join(self.root, "soft"))
        for name in os.listdir(soft):
            if re.fullmatch(r"lib\w+\.so\.\d+", name):
                shutil.copy(os.path.join(soft, name), os.path.join(self.root, "soft"))
        self.inside = "" if self.how else self.root

    def path(self, *names):
        return os.path.join(self.root, *names)

    def answer(self, *words, status=0, **environment):
        """The answers after a call."""
        given = {"LD_LIBRARY_PATH": f"{self.inside}/soft", "SOFT_DEVICE": "seed=1,arch=80,memory=8589934592", "PYTHONPATH": self.inside + empty_root.SITE,
                 "LOSSES": f"{self.inside}/losses.json", **environment}
        command = [self.python, f"{self.inside}/gpu-answers/answer.py", f"-o={self.inside}/tmp/answers.json", *words]
        if self.how:
            done = empty_root.run(self.root, self.how, command, given)
        else:
            done = subprocess.run(command, env={"PATH": f"{self.root}/bin", **given}, capture_output=True, text=True)
        check(done.returncode == status, f"{' '.join(words)} ended with status {done.returncode}, expected {status}:\n{done.stdout}{done.stderr}")
        print(done.stdout, end="", flush=True)
        with open(self.path("tmp", "answers.json")) as file:
            return json.load(file)["steps"]

    def package(self, change):
        """Changes what the package says of itself."""
        path = self.path("gpu-answers", "package.json")
        with open(path) as file:
            package = json.load(file)
        change(package)
        with open(path, "w") as file:
            json.dump(package, file)

    def write(self, path, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w") as file:
            file.write(text)
        os.chmod(self.path(path), mode)


def expect(steps, name, status, *texts):
    step = steps[name]
    check(step["status"] == status and all(text in step["said"] for text in texts), f"{name} is {step['status']}: {step['said']}; expected {status}: {texts}")
    return step


def plant(machine):
    """Steps that fail, hang and do not fit, each with the rest answered."""
    good = {}

    def spoil(package):
        good.update(package["programs"]["gpt2-fp32"])
        package["programs"]["gpt2-fp32"]["losses"] = [loss * 1.001 for loss in good["losses"]]
        # Ranks alone: one stops.
        for name in ("layouts-one", "layouts-recompute"):
            del package["programs"][name]

    machine.package(spoil)
    steps = machine.answer("-only=gpt2,mlp", status=1)
    expect(steps, "gpt2", "failed", "gpt2-fp32: losses [", "on the host [")
    check(steps["gpt2"]["programs"]["gpt2-bf16"]["differ"] < 2e-2, f"the rest of the step has no answer: {steps['gpt2']}")
    expect(steps, "mlp", "passed", "of the host's")
    check(list(steps) == ["start", "mlp", "gpt2"], f"steps are in another order: {list(steps)}")

    steps = machine.answer("-only=layouts", "-limit-scale=0.4", status=1, DSOPT_FAULT="step,rank=1,step=1:stop=0")
    expect(steps, "layouts", "hung", "rank 0 waits for rank 1", "-stall-timeout")
    check("rank 1" in steps["layouts"]["last_error"] and list(steps) == ["start", "mlp", "layouts", "gpt2"], f"{steps['layouts']}")

    # A program that nothing stops: the step is killed whole at its limit, and the next one is asked.
    program = machine.path("gpu-answers", "programs", "large")
    os.rename(program, program + ".kept")
    machine.write("gpu-answers/programs/large", f"#!{machine.python}\nimport time\nprint('begins', flush=True)\ntime.sleep(1000)\n", 0o755)
    steps = machine.answer("-only=memory,1.3b", "-limit-scale=0.3", status=1)
    step = expect(steps, "memory", "hung", "over its limit of 9 s; begins")
    check(step["seconds"] < 30 and any("state S, threads: 1 in " in line for line in step["waits"]) and len(step["waits"]) == 2, f"{step}")
    expect(steps, "1.3b", "passed")
    check("large" not in "".join(process_names(machine)), f"processes are left: {process_names(machine)}")
    os.replace(program + ".kept", program)

    steps = machine.answer("-only=layouts", SOFT_DEVICE="seed=1,arch=80,memory=1073741824")
    step = expect(steps, "layouts", "skipped", "needs 1200 MiB of the GPU's memory, of which 1024 MiB are free")
    check((step["needed_mib"], step["free_mib"]) == (1200, 1024), f"{step}")
    steps = machine.answer("-only=mlp", status=1, SOFT_DEVICE="devices=0")
    expect(steps, "mlp", "failed", "the driver finds no GPU")


def process_names(machine):
    """Commands of processes that run what is in the root."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/root") == machine.root or machine.root in open(f"/proc/{name}/cmdline").read():
                found.append(open(f"/proc/{name}/cmdline").read())
        except OSError:
            continue
    return found


def page(machine, *texts):
    """What gpu_report.py makes of the answers."""
    path = os.path.join(machine.root, "tmp", "page.md")
    script = os.path.join(source, "benchmarks", "gpu_report.py")
    execute([sys.executable, script, machine.path("tmp", "answers.json"), "-o", path])
    with open(path) as file:
        text = file.read()
    check(all(part in text for part in texts), f"expected {texts} in the page:\n{text}")
    done = execute([sys.executable, script, machine.path("gpu-answers", "package.json")], 1)
    check("is not what answer.py writes" in done.stderr, done.stderr)
    return text


def some(machine):
    steps = machine.answer("-only=start,mlp")
    start = expect(steps, "start", "passed", "1 x software device (sm_80)", "driver 13.0", "cublaslt 130100")
    check(start["libraries"]["torch"] == {"absent": "not installed"} and start["libraries"]["ncu"] == {"absent": "not found"}, f"{start}")
    plant(machine)
    page(machine, "# Answers of 1 x software device", "| layouts | skipped |", "### gpt2: failed", "### memory: hung", "Where processes waited:", "| gpt2-bf16 | ")


def planned():
    """What is read of a plan whose GPUs have columns of their own."""
    sys.path.insert(0, os.path.join(here, "answers"))
    import pack

    tables = pack.kernel_tables("""
sm_80
    calls        MB     GFLOP  regs  shared  block  warps   A100 us  limit
        1       0.2      0.00    39       0    256    75%       0.1  memory  update update.adamw flat: adam
sm_90a
    calls        MB     GFLOP  regs  shared  block  warps   H100 us   H200 us  limit
       12    3133.1   1855.45     -       -      -      -    1876.1    1800.1  flops   product bf16 3072x768x32768 TN  [node_a and 11 more]
       12    4831.8     13.29    30       0    256   100%     123.9    1006.6  memory  kernel bf16 kernel10.bf16 rows 32768: cast*2 mul*6
""")
    check(list(tables) == ["sm_80", "sm_90a"] and list(tables["sm_80"]) == ["update update.adamw flat: adam"], f"{tables}")
    row = tables["sm_90a"].get("product bf16 3072x768x32768 TN")
    check(row and row["calls"] == 12 and row["us"] == {"H100": 1876.1, "H200": 1800.1} and abs(row["share"] - 1876.1 / 2882.7) < 1e-9, f"{tables}")


def everything(machine):
    """In order; then with what stands for PyTorch and Nsight Compute."""
    planned()
    steps = machine.answer()
    check(list(steps) == STEPS, f"steps are {list(steps)}")
    for name in STEPS[:8]:
        expect(steps, name, "passed")
    check(sum(step["limit"] for step in list(steps.values())[:8]) == 360, "the first steps may take longer than six minutes, or less")
    check(steps["layouts"]["said"].startswith("4 layouts, one hash"), steps["layouts"]["said"])
    for name, text in (("peers", "PyTorch is not installed"), ("flash", "PyTorch is not installed"), ("ncu", "ncu is not installed")):
        expect(steps, name, "absent", text)
    expect(steps, "1.3b", "passed")

    library = machine.path("soft", "libcudnn.so.9")
    os.rename(library, library + ".kept")
    machine.package(lambda package: package["programs"]["kernels-fp32"].update(needs="cudnn"))
    expect(machine.answer("-only=kernels"), "kernels", "passed", "losses of 1 programs", "cuDNN is absent, and so are DsoptRuntimeConvolutionsTest, kernels-fp32")
    os.rename(library + ".kept", library)

    machine.write("losses.json", json.dumps(steps["1.3b"]["rows"]["dsopt"]["losses"]))
    machine.write("site-packages/torch-2.9.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0\n")
    machine.write("gpu-answers/torch_gpt.py", EAGER.replace('"/losses.json"', f'"{machine.inside}/losses.json"'))
    machine.write("gpu-answers/torch_attention.py", FLASH)
    machine.write("bin/ncu", f"#!{machine.python}\n{NCU}", 0o755)
    steps = machine.answer("-only=start,peers,flash,ncu,1.3b")
    found = steps["start"]["libraries"]
    check(found["torch"] == {"version": "2.9.0"} and found["ncu"]["version"] == "2025.3.0.0", f"{found}")
    rows = expect(steps, "peers", "passed", "eager 500.00 ms", "compile 500.00 ms")["rows"]
    check(rows["eager"]["differ"] == 0 and rows["eager"]["ratio"] == 500 / rows["dsopt"]["step_ms"], f"{rows}")
    flash = expect(steps, "flash", "passed", "flash 2 ", "flash 5 ")
    check(flash["forward"]["shape"] == [2, 2, 16, 16], f"{flash}")
    kernels = expect(steps, "ncu", "passed", "the longest: long, 98 % of the time, at 72 % of the memory's limit and 30 % of the multiprocessors'")["kernels"]
    check([(kernel["kernel"], kernel["calls"], kernel["mb"]) for kernel in kernels] == [("long", 2, 4.0), ("short", 1, 0.001)], f"{kernels}")
    expect(steps, "1.3b", "passed", "eager 500.00 ms")
    page(machine, "| product bf16 32x32x128 NN | 1 | ", "| layouts-zero3 | ", "| with graphs | ", "| long | 4.0 | 97.6 % | 2 | 4.0 | 72 % | 30 % |", "| forward | ")
    # Another loss is another training.
    machine.write("losses.json", json.dumps([loss * 1.1 for loss in steps["1.3b"]["rows"]["dsopt"]["losses"]]))
    expect(machine.answer("-only=1.3b", status=1), "1.3b", "failed", "eager: losses [")
    # Those of another package are not mixed with these.
    machine.package(lambda package: package.update(commit="another"))
    with open(machine.path("tmp", "answers.json")) as file:
        before = file.read()
    machine.answer("-only=start", status=1)
    check(open(machine.path("tmp", "answers.json")).read() == before, "answers of two packages are in one file")
    machine.answer("-only=strt", status=2)


with tempfile.TemporaryDirectory() as place:
    made = os.path.join(place, "answers.tar")
    execute([sys.executable, os.path.join(here, "test_gpu.py"), "--build", build, f"-package={made}", "-models=tiny", "-arch=sm_80"], environment={"DSOPT_PTXAS": "off"})
    {"some": some, "all": everything}[what](Machine(place, made))
