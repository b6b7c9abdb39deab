"""The properties of a case: numbers as the oracle has them, and bits that no layout, stage,
program or checkpoint changes."""
from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil

import numpy as np
import onnx

from compare import Oracle, compare
from generate import Case
from metamorphic import VARIANTS
from tool import Failure, Refused, Run, Tool

#: By name, with how likely each is drawn.
PROPERTIES = {"layout": 5, "variant": 4, "readback": 2, "program": 1, "resume": 2, "plan": 1, "evaluate": 1, "saved": 1, "budget": 1, "bf16": 3,
              "compressed": 3}
#: What compares with the oracle's numbers, or with one rank's in fp32.
ONE_RANK = {"variant", "evaluate", "bf16", "compressed"}
EXTRAS = [("-precision=bf16",), ("-precision=bf16", "-gradient-type=param"), ("-precision=bf16", "-shuffle"), ("-shuffle",), ("-seed=7",),
          ("-precision=fp16",), ("-precision=fp16", "-initial-scale-power=30", "-loss-scale-hysteresis=1"), ("-dropout=off",), ("-batchnorm=frozen",),
          ("-no-decay=rank1",)]
#: What changes numbers: rules for whole matrices, and exchanges whose bits are those of as many ranks.
WAYS = [("-optimizer=muon",), ("-optimizer=onebit-adam", "-freeze-step=1"), ("-compress-gradients=onebit",), ("-reduce-type=int4", "-node-size=2"),
        ("-gather-type=int8",)]
#: How much is gathered, reduced and kept at once, which changes no bits.
LIMITS = [("-param-persistence-threshold=16",), ("-max-reuse-distance=0",), ("-max-reuse-distance=1000000",), ("-prefetch=3", "-prefetch-bucket-size=64"),
          ("-gather-bucket-size=32", "-reduce-bucket-size=48"), ("-param-persistence-threshold=8", "-reduce-bucket-size=16", "-max-reuse-distance=100")]


@dataclasses.dataclass
class Layout:
    dp: int = 1
    pp: int = 1
    zero: int = 0
    schedule: str = "1f1b"
    threads: int = 1
    window: int = 0
    recompute: bool = False
    #: What lies where: activations, what updates keep, and with it the parameters.
    activations: str = "none"
    optimizer: str = "none"
    params: str = "none"
    #: Share of the update that stays on the device, and elements of what passes between disk and host.
    ratio: float = 0
    group: int = 0
    limits: tuple[str, ...] = ()
    #: Empty: the case's.
    accumulate: str = ""

    def arguments(self, case: Case) -> list[str]:
        options = case.options
        words = [f"-dp={self.dp}", f"-pp={self.pp}", f"-zero={self.zero}", f"-micro-batches={options.micro_batches // self.dp}",
                 f"-reduction-shards={options.shards}", f"-accumulate={self.accumulate or options.accumulate}", f"-threads={self.threads}"]
        # As many micro-batches as there are stages go through a chunk of blocks together.
        chunks = self.schedule == "interleaved" and options.micro_batches // self.dp % self.pp == 0
        words += [f"-schedule={self.schedule if chunks or self.schedule != 'interleaved' else '1f1b'}"] if self.pp > 1 else []
        words += [f"-gather-window={self.window}"] if self.window else []
        return [*words, *self.limits, *self.memory()]

    def memory(self) -> list[str]:
        words = ["-recompute=full"] if self.recompute else []
        words += [f"-offload-activations={self.activations}"] if self.activations != "none" else []
        if self.optimizer != "none":
            words += [f"-offload-optimizer={self.optimizer}"]
            words += [f"-offload-params={self.params}"] if self.params != "none" and self.zero == 3 else []
            words += [f"-offload-ratio={self.ratio}"] if self.ratio else []
            words += [f"-sub-group-size={self.group}"] if self.group else []
        return words

    def places(self) -> list[str]:
        """Where a run finds the disk that it needs."""
        return ["-nvme-path=."] if any(word.endswith("=nvme") for word in self.memory()) else []


@dataclasses.dataclass
class Property:
    """What is checked beside the numbers of one rank, and with which choices."""
    name: str
    layout: Layout
    #: Where a checkpoint goes on, and after how many steps it was written.
    other: Layout
    half: int = 1
    stage: str = "graph"
    variant: str = ""
    #: Options that change the bits, in all layouts alike.
    extra: tuple[str, ...] = ()


def degrees(shards: int) -> list[int]:
    """Of data parallelism, with the bits of all others: V over dp is a power of two."""
    return [dp for dp in range(1, min(shards, 4) + 1) if shards % dp == 0 and (shards // dp).bit_count() == 1]


def draw_layout(case: Case, rng: np.random.Generator) -> Layout:
    layout = Layout(int(rng.choice([1, *degrees(case.options.shards) * 2])))
    layout.pp = int(rng.integers(1, 6 // layout.dp + 1))
    layout.zero = int(rng.integers(4))
    layout.schedule = str(rng.choice(["1f1b", "gpipe", "interleaved"]))
    layout.threads = int(rng.integers(1, 4))
    layout.window = int(rng.integers(1, 4)) if layout.zero == 3 and rng.random() < 0.3 else 0
    layout.recompute = bool(rng.random() < 0.25)
    layout.activations = str(rng.choice(["none", "cpu"], p=[0.75, 0.25]))
    layout.optimizer = str(rng.choice(["none", "cpu", "nvme"], p=[0.5, 0.25, 0.25]))
    if layout.optimizer != "none":
        layout.params = str(rng.choice(["none", "cpu", "nvme"]))
        layout.ratio = float(rng.choice([0, 0.4]))
        layout.group = int(rng.choice([0, 1]))
    # Other choices do not depend on it.
    other = np.random.default_rng([case.seed, 6, layout.dp, layout.pp, layout.zero])
    layout.limits = LIMITS[int(other.integers(len(LIMITS)))] if layout.dp > 1 and other.random() < 0.5 else ()
    return layout


def draw_properties(case: Case, count: int) -> list[Property]:
    rng = np.random.default_rng([case.seed, 5])
    weights = np.array(list(PROPERTIES.values()), float)
    found = []
    for name in rng.choice(list(PROPERTIES), count, replace=False, p=weights / weights.sum()):
        found.append(Property(str(name), draw_layout(case, rng), draw_layout(case, rng), int(rng.integers(1, max(2, case.options.steps))),
                              str(rng.choice(["graph", "dist", "exec"])), str(rng.choice(list(VARIANTS)))))
        if name not in ONE_RANK and rng.random() < 0.3:
            found[-1].extra = EXTRAS[int(rng.integers(len(EXTRAS)))]
    # Other choices do not depend on it.
    other = np.random.default_rng([case.seed, 8])
    if other.random() < 0.5:
        found.append(Property("tensor", draw_layout(case, other), Layout(), extra=("-precision=bf16",) if other.random() < 0.4 else ()))
    return found


def initializers(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """A graph's own, and those of graphs inside of it."""
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return [*graph.initializer, *(array for other in inner for array in initializers(other))]


class Checker:
    """One case and the files it lies in."""

    def __init__(self, tool: Tool, case: Case):
        self.tool, self.case = tool, case
        self.blocks = 6
        self.sensitive = False
        self.extra: tuple[str, ...] = ()

    def write(self, case: Case) -> None:
        with open(self.tool.path("model.onnx"), "wb") as file:
            file.write(case.graph.to_onnx().SerializeToString())
        np.savez(self.tool.path("data.npz"), **case.arrays())

    def check(self, properties: list[Property], numbers: bool = True) -> None:
        """Trains on one rank, compares with the oracle unless only the rest is asked for, then checks the properties."""
        self.write(self.case)
        run = self.train(Layout(), norms=True, weights=True)
        if numbers:
            self.oracle = Oracle(self.case)
            self.expected = self.oracle.train()
            self.sensitive = compare(self.oracle, self.expected, run)
        for chosen in properties:
            self.extra = chosen.extra
            getattr(self, chosen.name)(self.train(Layout(), norms=True, weights=True) if chosen.extra else run, chosen)

    def in_layout(self, layout: Layout, work):
        """A pipeline that the model is too small for gets as many stages as there are blocks, and one chunk each."""
        def fitting() -> Layout:
            pp = min(layout.pp, self.blocks)
            return dataclasses.replace(layout, pp=pp, schedule="1f1b" if 2 * pp > self.blocks and layout.schedule == "interleaved" else layout.schedule)

        try:
            return work(fitting())
        except Refused as refusal:
            found = re.search(r"cannot cut (\d+) blocks?", str(refusal))
            if not found or layout.pp == 1:
                raise
            self.blocks = int(found.group(1))
            return work(fitting())

    def arguments(self, layout: Layout) -> list[str]:
        return [*layout.arguments(self.case), *self.case.arguments(), *self.extra]

    def train(self, layout: Layout, *options: str, model: str = "model.onnx", **files: bool) -> Run:
        return self.tool.train(model, *self.arguments(layout), *layout.places(), *options, **files)

    def produce(self, layout: Layout, *options: str) -> str:
        """What dsopt prints or writes instead of training."""
        return self.tool.execute([self.tool.dsopt, "model.onnx", "-data=data.npz", *options, *self.arguments(layout)])

    @staticmethod
    def same(kind: str, run: Run, base: Run, first: int = 0) -> None:
        for step, text in base.text.items():
            if step >= first and run.text.get(step) != text:
                raise Failure(kind, f"step {step} has loss and gradient norm {run.text.get(step)}, on one rank {text}", run.command)
        if run.hash != base.hash:
            raise Failure(kind, f"equal losses, but other weights than on one rank: {run.hash[:12]}, {base.hash[:12]}", run.command)

    def layout(self, base: Run, chosen: Property) -> None:
        run = self.in_layout(chosen.layout, lambda layout: self.train(layout, norms=True))
        self.same("layout", run, base)
        for got, expected in zip(run.steps, base.steps):
            for what in ("grad_norms", "param_norms"):
                if got[what] != expected[what]:
                    raise Failure("layout", f"{what} of step {got['step']} are {got[what]}, on one rank {expected[what]}", run.command)

    def variant(self, base: Run, chosen: Property) -> None:
        """The same in other words: the first variant from the chosen one on that applies."""
        names = list(VARIANTS)
        begin = names.index(chosen.variant)
        for name in names[begin:] + names[:begin]:
            case = VARIANTS[name](self.case, self.oracle, np.random.default_rng(self.case.seed))
            if case is not None:
                break
        else:
            return
        self.write(case)
        try:
            run = Checker(self.tool, case).train(Layout(), norms=True, weights=True)
            compare(Oracle(case), self.expected, run)
        except Failure as failure:
            failure.kind, failure.what = f"{name}: {failure.kind}", f"{name.replace('_', ' ')}: {failure.what}"
            raise
        self.write(self.case)

    def readback(self, base: Run, chosen: Property) -> None:
        """A printed stage reads back to the same text and the same bits."""
        emit = [self.tool.dsopt, "stage.mlir", f"-emit={chosen.stage}"]

        def through(layout: Layout) -> Run:
            self.produce(layout, emit[2], "-o", "stage.mlir")
            self.tool.execute([*emit, "-o", "again.mlir"])
            first, second = (open(self.tool.path(name)).read() for name in ("stage.mlir", "again.mlir"))
            if first != second:
                raise Failure("readback", f"stage {chosen.stage} reads back to another text", emit)
            return self.tool.train("stage.mlir", *layout.places())

        self.same("readback", self.in_layout(chosen.layout, through), base)

    def program(self, base: Run, chosen: Property) -> None:
        """An executable, which also writes down what ran when."""
        self.in_layout(chosen.layout, lambda layout: self.produce(layout, "-o", "train"))
        self.same("program", self.tool.train("", "-trace=trace.json", "-breakdown", *chosen.layout.places(), command=["./train"]), base)
        try:
            with open(self.tool.path("trace.json")) as file:
                json.load(file)
        except ValueError as error:
            raise Failure("program", f"-trace writes no JSON: {error}", ["./train", "-trace=trace.json"]) from None

    def resume(self, base: Run, chosen: Property) -> None:
        """Saved in one layout, continued in another."""
        self.go_on(base, chosen, [*self.case.arguments(), *self.extra])

    def go_on(self, base: Run, chosen: Property, words: list[str]) -> None:
        options = self.case.options
        if options.steps < 2:
            return
        shutil.rmtree(self.tool.path("saved"), ignore_errors=True)
        # How far the rate falls follows from -steps where nothing else is given.
        words = [word for word in words if not word.startswith(("-steps", "-lr-decay-steps"))]
        words += [f"-lr-decay-steps={options.decay_steps or options.steps}"] if options.schedule != "constant" else []

        def part(*more: str):
            return lambda layout: self.tool.train("model.onnx", *layout.arguments(self.case), *layout.places(), *words, *more)

        half = min(chosen.half, options.steps - 1)
        self.in_layout(chosen.layout, part(f"-steps={half}", "-save=saved"))
        self.same("resume", self.in_layout(chosen.other, part(f"-steps={options.steps}", "-resume=saved")), base, half)

    def compressed(self, base: Run, chosen: Property) -> None:
        """One set of bits for each number of ranks, and checkpoints that go on with them."""
        case = np.random.default_rng([self.case.seed, 7])
        way = WAYS[int(case.integers(len(WAYS)))]
        words = self.case.arguments()
        if way[0].startswith("-optimizer"):
            words = [word for word in words if not word.startswith(("-optimizer", "-momentum", "-betas", "-eps"))]

        def fitting(layout: Layout) -> Layout:
            # Buckets are the units of what is compressed; stage 3 has others for what stays whole.
            limits = tuple(word for word in chosen.layout.limits if not word.startswith("-param-persistence"))
            layout = dataclasses.replace(layout, dp=chosen.layout.dp, limits=limits)
            if way[0] == "-gather-type=int8":
                return dataclasses.replace(layout, zero=3)
            if way[0] == "-optimizer=onebit-adam":
                layout = dataclasses.replace(layout, zero=min(layout.zero, 2), params="none", accumulate="local",
                                             optimizer="none" if layout.optimizer == "nvme" else layout.optimizer)
            return layout

        words += [word for word in way if not word.startswith("-node-size") or chosen.layout.dp % 2 == 0]

        def train(layout: Layout) -> Run:
            return self.tool.train("model.onnx", *layout.arguments(self.case), *layout.places(), *words)

        alone = train(fitting(Layout()))
        first, second = fitting(chosen.layout), fitting(chosen.other)
        self.same("compressed", self.in_layout(first, train), alone)
        self.go_on(alone, dataclasses.replace(chosen, layout=first, other=second), words)

    def tensor(self, base: Run, chosen: Property) -> None:
        """One set of bits for each number of tensor shards, on however many ranks they are, and numbers near those of one shard."""
        rng = np.random.default_rng([self.case.seed, 9])
        shards = int(rng.choice([2, 2, 3, 4]))
        ranks = int(rng.choice([n for n in range(2, shards + 1) if shards % n == 0 and (shards // n).bit_count() == 1]))
        layout = dataclasses.replace(chosen.layout, dp=chosen.layout.dp if chosen.layout.dp < 3 else 1, pp=min(chosen.layout.pp, 2))
        try:
            many = self.in_layout(layout, lambda layout: self.train(layout, f"-tensor-shards={shards}", f"-tp={ranks}"))
        except Refused as refusal:
            # Nothing can be cut, or the rule sees what is.
            if "tensor shards could cut" in str(refusal) or "is cut in tensor shards" in str(refusal):
                return
            raise
        alone = self.train(Layout(), f"-tensor-shards={shards}")
        self.same("tensor", many, alone)
        loss, whole = alone.steps[0]["loss"], base.steps[0]["loss"]
        if not self.extra and not self.sensitive and not abs(loss - whole) <= 1e-4 * max(abs(whole), 0.1):
            raise Failure("tensor", f"the first loss is {loss} in {shards} tensor shards, {whole} in one", alone.command)

    def plan(self, base: Run, chosen: Property) -> None:
        """Planned bytes and traffic are those of the run."""
        def both(layout: Layout) -> tuple[dict, Run]:
            return json.loads(self.produce(layout, "-plan=json")), self.train(layout)

        planned, run = self.in_layout(chosen.layout, both)
        self.same("layout", run, base)
        for rank, entry in enumerate(planned["ranks"]):
            for what, got, expected in (("maps", run.steps[-1]["peak_bytes"][rank], entry["memory"]["total"]),
                                        *((f"has on the {kind}", run.head["plan"][key][rank], sum(memory["bytes"] for memory in entry["memories"] if memory["kind"] == kind))
                                          for kind, key in (("device", "arena_bytes"), ("host", "host_bytes"), ("disk", "disk_bytes"))),
                                        ("sends", run.steps[-1]["sent_bytes"][rank], sum(entry["traffic"].values()))):
                if got != expected:
                    raise Failure("plan", f"rank {rank} {what} {got} bytes, planned {expected}", run.command)

    def saved(self, base: Run, chosen: Property) -> None:
        """What is saved are the trained weights, and where training goes on from."""
        run = self.in_layout(chosen.layout, lambda layout: self.train(layout, "-save-onnx=trained.onnx", weights=True))
        written = {array.name: onnx.numpy_helper.to_array(array) for array in initializers(onnx.load(self.tool.path("trained.onnx")).graph)}
        for name, array in base.weights.items():
            for what, other in (("-save-weights", run.weights.get(name)), ("-save-onnx", written.get(name))):
                if other is None or other.tobytes() != array.tobytes():
                    raise Failure("saved", f"{what} has other values of '{name}' than one rank", run.command)
        shutil.copy(self.tool.path("weights.safetensors"), self.tool.path("start.safetensors"))
        again = self.train(Layout(), "-weights=start.safetensors", "-steps=1")
        self.same("saved", self.train(Layout(), "-steps=1", model="trained.onnx"), again)

    def budget(self, base: Run, chosen: Property) -> None:
        """A rank gets by with the bytes that the plan says."""
        def within(layout: Layout) -> Run:
            most = max(entry["memory"]["total"] for entry in json.loads(self.produce(layout, "-plan=json"))["ranks"])
            return self.train(layout, f"-device-memory={most}")

        self.same("budget", self.in_layout(chosen.layout, within), base)

    def evaluate(self, base: Run, chosen: Property) -> None:
        """Evaluations change nothing, and that of the first step's micro-batches is its loss, where training does nothing of its own."""
        self.same("evaluate", self.in_layout(chosen.layout, lambda layout: self.train(layout, "-eval-data=data.npz", "-eval-every=1")), base)
        if self.oracle.forward.draws or self.oracle.forward.folds:
            return
        words = [self.tool.dsopt, "model.onnx", "-eval", "-data=data.npz", "-log=eval.jsonl", "-quiet",
                 f"-eval-batches={self.case.options.micro_batches}", *self.case.choices()]

        def measure(layout: Layout) -> str:
            log = self.tool.path("eval.jsonl")
            if os.path.exists(log):
                os.remove(log)
            self.tool.execute([*words, *layout.arguments(self.case), *layout.places()])
            return next(re.search(r'"eval_loss":([^,}]*)', line).group(1) for line in open(log) if "eval_loss" in line)

        texts = [self.in_layout(layout, measure) for layout in (Layout(), chosen.layout)]
        if texts[0] != texts[1]:
            raise Failure("evaluate", f"-eval gives {texts[1]} in one layout, {texts[0]} on one rank", words)
        first = base.steps[0]["loss"]
        if not abs(float(texts[0]) - first) <= 1e-5 * max(abs(first), 0.1) and not self.sensitive:
            raise Failure("evaluate", f"-eval gives {texts[0]}, the first step's loss is {first}", words)

    def bf16(self, base: Run, chosen: Property) -> None:
        """Near fp32 as far as noise of bf16's size explains, and one set of bits in all layouts."""
        self.extra = ("-precision=bf16",)
        alone = self.train(Layout())
        self.same("bf16", self.in_layout(chosen.layout, self.train), alone)
        loss, exact = float(alone.steps[0]["loss"]), self.expected.losses[0]
        noise, spread = np.random.default_rng(self.case.seed), 0.0
        for _ in range(6):
            losses = [self.oracle.first_loss(k, rng=noise, level=2.0 ** -8) for k in range(self.case.options.micro_batches)]
            spread = max(spread, abs(float(np.mean(losses)) - exact))
        if not abs(loss - exact) <= 0.02 * abs(exact) + 6 * spread + 1e-3:
            raise Failure("bf16", f"the first loss is {loss}, expected {exact:.6g} (noise of bf16 moves it by {spread:.2g})", alone.command)
