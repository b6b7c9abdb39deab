"""Packs what answer.py asks a GPU: programs that are compiled here, and what the host's programs have to the same questions."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
source = os.path.dirname(os.path.dirname(os.path.dirname(here)))
sys.path[:0] = [os.path.dirname(here), os.path.join(source, "benchmarks")]
import bench
import gpt
import gpu
from context import Run, write_json

# Every processor of a machine with such GPUs has it.
HOST = "x86-64-v3"
# Sizes of benchmarks/gpt.py, and of what is in test/Models for the small questions. `tiny` is for the device in software.
MODELS = {"full": {"kernels": "gpt2-toy", "layouts": "gpt2-toy", "gpt2": "gpt2", "large": "gpt2-1024", "huge": "gpt-1.3b"},
          "tiny": {"kernels": "mlp", "layouts": "mlp", "gpt2": "mini", "large": "mini", "huge": "mini"}}
SMALL = ["-micro-batches=2", "-steps=4", "-lr=1e-3"]
# What is compiled in, what a run is told, and how far its losses may be from the host's in fp32.
KERNELS = {"fp32": ([], [], 1e-5), "bf16": (["-precision=bf16"], [], 2e-2), "fp16": (["-precision=fp16"], ["-initial-scale-power=10"], 2e-2),
           "tf32": (["-matmul-precision=high"], [], 1e-3)}
# More models of the first question, and which library they need: convolutions, and attention with a mask.
OTHERS = {"convolutions": ("resnet-tiny", [], {"needs": "cudnn"}), "bert": ("bert-tiny", ["-padding-index=*word_embeddings.weight=0"], {})}
LAYOUTS = {"one": [], "recompute": ["-recompute=full"], "offload": ["-offload-optimizer=cpu"], "zero1": ["-dp=2", "-zero=1"],
           "zero3": ["-dp=2", "-zero=3"], "pp": ["-pp=2"], "gpipe": ["-pp=2", "-schedule=gpipe"], "zero3-pp": ["-dp=2", "-zero=3", "-pp=2"]}
LAYOUT = ["-steps=3", "-grad-clip=1", "-lr=3e-3"]
GPT2 = {"gpt2-fp32": ([], 1e-4), "gpt2-bf16": (["-precision=bf16"], 2e-2)}
GPT2_STEPS = 3
# Attention's cases of a type, of which there are 28: plain, wide heads, causal, masked, and packed with a causal mask.
ATTENTION = [":".join(f"*Attention.IsTheDefinition/{28 * kind + case}" for case in (5, 6, 11, 17, 23)) for kind in range(3)]
# Unit tests of the runtime, in groups that each have a process; without what only the device in software can do. A test loads all of the
# runtime's kernels: some of each suite have to do.
UNITS = {"full": {"kernels": {"DsoptRuntimeCudaTest": ["Elementwise.*", "TreeSumTest.*:SquareSums.*", "LambSums.*:RatiosOfNorms.*", "Scatter.*", "Ctc.*",
                                                      "LinearNll.*:LinearNllWorkspace.*", *ATTENTION],
                              "DsoptRuntimeConvolutionsTest": ["ConvolutionsTest.AllKindsOfOddShapes:ConvolutionsTest.Bf16*"]},
                  "products": {"DsoptRuntimeProductsTest": ["ProductsRun.*", "EpiloguesTest.*"]}},
         "tiny": {"kernels": {"DsoptRuntimeCudaTest": ["Elementwise.AddInto*", "*Attention.IsTheDefinition/1:*Attention.IsTheDefinition/41"],
                              "DsoptRuntimeConvolutionsTest": ["ConvolutionsTest.Bf16*"]},
                  "products": {"DsoptRuntimeProductsTest": ["ProductsRun.RightForBatches"]}}}
# A row of -plan=kernels: calls, GFLOP, microseconds by GPU, and what it is.
PLANNED = re.compile(r"^ +(\d+) +[\d.]+ +([\d.]+) +\S+ +\S+ +\S+ +\S+ +([\d. ]+?) +(?:memory|flops) +(.*?)(?:  \[.*\])?$")


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def kernel_tables(text):
    """-plan=kernels by architecture: calls of each row, GFLOP, microseconds at the limit of each GPU, and its share of a step."""
    tables, arch, names = {}, None, []
    for line in text.splitlines():
        if re.fullmatch(r"sm_\d+a?", line):
            arch, tables[line] = line, {}
        elif line.lstrip().startswith("calls "):
            names = re.findall(r"(\S+) us", line)
        elif arch and (row := PLANNED.match(line)):
            us = dict(zip(names, map(float, row[3].split())))
            tables[arch][row[4]] = {"calls": int(row[1]), "gflop": float(row[2]), "us": us}
    for table in tables.values():
        total = sum(max(row["us"].values()) for row in table.values())
        for row in table.values():
            row["share"] = max(row["us"].values()) / total if total else 0.0
    return tables


class Packer:
    def __init__(self, args, root):
        self.build, self.arch, self.root, self.tiny = args.build, args.arch, root, args.models == "tiny"
        self.models, self.units = MODELS[args.models], UNITS[args.models]
        self.dsopt, self.programs, self.had = os.path.join(args.build, "bin", "dsopt"), {}, {}
        self.made = os.path.join(os.path.dirname(root), "made")
        for name in ("programs", "units", "lib", "models"):
            os.makedirs(os.path.join(root, name))
        os.makedirs(self.made)

    def add(self, name, step, model, path, options, told, host=None, both=False, **more):
        """Compiles a program, or one for both targets. `host`: the options with which the host's program says what losses are expected."""
        began = time.monotonic()
        words = [self.dsopt, path, *options, "-target=cuda", f"-arch={self.arch}"]
        ranks = json.loads(run([*words, "-plan=json"]))["ranks"]
        if both:
            words[-2:] = ["-target=cpu,cuda", f"-arch={self.arch},{HOST}"]
        run([*words, "-quiet", "-o", os.path.join(self.root, "programs", name)])
        memories = [memory for rank in ranks for memory in rank["memories"] if memory["kind"] == "device"]
        entry = {"step": step, "model": model, "options": " ".join(options), "run": told, "ranks": len(ranks),
                 "device_bytes": sum(memory["bytes"] for memory in memories), **more}
        if host is not None:
            entry["losses"] = self.losses(path, host)
        self.programs[name] = entry
        print(f"{step:9}{name:22}{entry['device_bytes'] / 2**20:9.0f} MiB of a GPU's memory  {time.monotonic() - began:6.1f} s", flush=True)

    def losses(self, path, options):
        """The host's program's, which are asked for once."""
        key = (path, *options)
        if key not in self.had:
            log = os.path.join(self.made, "log.jsonl")
            run([self.dsopt, path, "-run", "-quiet", f"-log={log}", *options])
            self.had[key] = Run(log).losses
        return self.had[key]

    def small(self, name, step, model, compiled, told, host=None, **more):
        folder = os.path.join(source, "test", "Models", model)
        copy = os.path.join(self.root, "models", model)
        if not os.path.exists(copy):
            os.makedirs(copy)
            for file in ("model.onnx", "batches.npz"):
                shutil.copy(os.path.join(folder, file), copy)
        data = [f"-data={folder}/batches.npz"]
        self.add(name, step, model, os.path.join(folder, "model.onnx"), [*data, *compiled], told, None if host is None else [*data, *host], **more)

    def drawn(self, name, step, size, compiled, host_steps=0, **more):
        """A model of benchmarks/gpt.py, without its weights."""
        model, weights, adam = os.path.join(self.made, size + ".onnx"), f"{size}.safetensors", bench.DSOPT_ADAMW
        if not os.path.exists(model):
            run([os.path.join(self.build, "venv", "bin", "python"), os.path.join(source, "benchmarks", "gpt_onnx.py"), model, "--size", size])
        host = None
        if host_steps:
            geometry = gpt.sized(size)
            file, data = os.path.join(self.made, weights), os.path.join(self.made, size + ".npz")
            gpt.keep_weights(file, geometry)
            gpt.save_batches(data, geometry, host_steps)
            host = [f"-weights={file}", f"-data={data}", f"-steps={host_steps}", *adam]
        self.add(name, step, size, model, [f"-weights={weights}", adam[0], *compiled], adam[1:], host, **more)

    def compile(self):
        for name, (compiled, told, within) in KERNELS.items():
            if self.tiny and name not in ("fp32", "bf16"):
                continue
            self.small(f"kernels-{name}", "kernels", self.models["kernels"], [SMALL[0], *compiled], [*SMALL[1:], *told], SMALL, within=within)
        for name, (model, compiled, more) in ({} if self.tiny else OTHERS).items():
            self.small(f"kernels-{name}", "kernels", model, [SMALL[0], *compiled], SMALL[1:], [*SMALL, *compiled], within=1e-5, **more)
        self.small("mlp", "mlp", "mlp", SMALL[:1], SMALL[1:], both=True)
        for name, compiled in LAYOUTS.items():
            if self.tiny and name not in ("one", "recompute", "zero3"):
                continue
            ranks = 2 if "-dp=2" in compiled else 1
            self.small(f"layouts-{name}", "layouts", self.models["layouts"],
                       [*compiled, *LAYOUT, f"-micro-batches={4 // ranks}", "-reduction-shards=4", "-accumulate=local"], LAYOUT)
        for name, (compiled, within) in GPT2.items():
            self.drawn(name, "gpt2", self.models["gpt2"], compiled, GPT2_STEPS, within=within)
        self.drawn("large", "large", self.models["large"], ["-precision=bf16"])
        entry = self.programs["large"]
        model = os.path.join(self.made, entry["model"] + ".onnx")
        entry["kernels"] = kernel_tables(run([self.dsopt, model, *entry["options"].split(), "-target=cuda", f"-arch={self.arch}", "-plan=kernels"]))
        self.drawn("huge", "huge", self.models["huge"], ["-precision=bf16"])

    def copy(self):
        """What is no program of dsopt's."""
        for name in ("answer", "asked", "context", "process", "small", "large", "others"):
            shutil.copy(os.path.join(here, name + ".py"), self.root)
        for name in ("bench", "bench_gpu", "gpt", "measure", "table", "torch_attention", "torch_gpt"):
            shutil.copy(os.path.join(source, "benchmarks", name + ".py"), self.root)
        shutil.copy(gpu.__file__, self.root)
        for programs in self.units.values():
            for name in programs:
                run(["strip", "-o", os.path.join(self.root, "units", name), os.path.join(self.build, "test", "Runtime", name)])
        for name, path in gpu.BARE.findall(run(["ldd", os.path.join(self.build, "bin", "dsopt-run")])):
            shutil.copy(path, os.path.join(self.root, "lib", name))
        version = run([self.dsopt, "-version"]).splitlines()[0]
        commit = subprocess.run(["git", "-C", source, "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True).stdout.strip()
        write_json(os.path.join(self.root, "package.json"),
                   {"commit": commit or "unknown", "compiler": version, "arch": self.arch, "models": self.models, "made": time.strftime("%Y-%m-%dT%H:%M:%S"),
                    "units": self.units, "programs": self.programs})


def pack(args):
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "gpu-answers")
        os.makedirs(root)
        packer = Packer(args, root)
        packer.compile()
        packer.copy()
        gpu.archive(args.package, root)
    print(f"wrote {args.package}: {len(packer.programs)} programs for {args.arch}, {os.path.getsize(args.package) / 2**20:.1f} MiB; "
          f"there: tar xf {os.path.basename(args.package)} && python3 gpu-answers/answer.py")
