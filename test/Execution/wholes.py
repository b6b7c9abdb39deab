"""What rules keep of whole parameters: optimizers in tiles, stages and ranks, saved in the middle, asynchronously and not, and gone on with
in another layout: one result. In one of the two of some each action is compared with what it says it touches; at night once in each. The first cases are of
families that went wrong before, the others are drawn; all 300 at night.

usage: wholes.py DSOPT
"""
import os
import random
import re
import shutil
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from own_models import save
from runs import Run, check, execute
from sampled import NIGHTLY

dsopt = sys.argv[1]
STEPS, SHARDS = 5, 4
ONE_BIT = ("onebit-adam", "onebit-lamb", "zero-one-adam")
RULES = {"lamb": ["-lr=0.05"], "onebit-lamb": ["-freeze-step=2", "-lr=0.02"], "onebit-adam": ["-freeze-step=2", "-lr=0.002"],
         "zero-one-adam": ["-freeze-step=2", "-local-step-scaler=2", "-local-step-clipper=2"], "adafactor": [], "muon": [], "adamw": ["-grad-clip=0.1"],
         "sgd": ["-momentum=0.9"], "lion": [], "adagrad": ["-lr=0.01"]}


def build(folder, hidden, width, outputs):
    """Layers of which two have weights that tiles cut where `hidden` is large; where it is small, ranks have slices that are all padding."""
    rng = np.random.default_rng(hidden)
    shapes = {"w0": (24, hidden), "b0": (hidden,), "w1": (hidden, width), "b1": (width,), "w2": (width, outputs)}
    weights = [(rng.standard_normal(shape) * 0.05).astype(np.float32) for shape in shapes.values()]
    weights[2][:hidden // 4] *= 20  # the tiles' norms are unlike
    nodes = [helper.make_node(*one) for one in (("Gemm", ["x", "w0", "b0"], ["h0"]), ("Relu", ["h0"], ["r0"]), ("Gemm", ["r0", "w1", "b1"], ["h1"]),
                                                ("Tanh", ["h1"], ["r1"]), ("MatMul", ["r1", "w2"], ["o"]), ("SoftmaxCrossEntropyLoss", ["o", "y"], ["loss"]))]
    path, data = os.path.join(folder, f"wholes{hidden}.onnx"), os.path.join(folder, f"wholes{hidden}.npz")
    save(path, nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 24]), helper.make_tensor_value_info("y", TensorProto.INT64, [4])],
         [numpy_helper.from_array(*pair) for pair in zip(weights, shapes)], 18)
    np.savez(data, x=rng.standard_normal((SHARDS * STEPS, 4, 24)).astype(np.float32), y=rng.integers(0, outputs, (SHARDS * STEPS, 4)))
    return path, data


class Case:
    def __init__(self, seed, optimizer=None, size=None, ranks=None, **fixed):
        draw = random.Random(seed)
        self.seed = seed
        self.optimizer = optimizer or draw.choice(list(RULES))
        self.size = size or draw.choice(["wide", "wide", "small"])
        # Errors of what was compressed are by rank.
        self.ranks = ranks or draw.choice([1, 2, 4])
        self.tiles = fixed.get("tiles", self.size == "wide" and draw.random() < 0.7)
        self.at = fixed.get("at", draw.randint(1, STEPS - 1))
        self.later = fixed.get("later", draw.random() < 0.6)
        self.layouts = fixed.get("layouts") or [self.layout(draw), self.layout(draw)]
        precision = draw.choice([[], [], ["-precision=bf16"]]) if "layouts" not in fixed else []
        self.computation = [f"-optimizer={self.optimizer}", *RULES[self.optimizer], *precision]

    def layout(self, draw):
        is_one_bit = self.optimizer in ONE_BIT
        ranks = self.ranks if is_one_bit else draw.choice([1, 2, 4])
        stages = draw.choice([1, 2, 3])
        zero = draw.choice([0, 1] if is_one_bit else [0, 1, 2, 3])
        words = [f"-dp={ranks}", f"-pp={stages}", f"-zero={zero}", f"-threads={draw.choice([1, 2])}"]
        if self.optimizer == "onebit-adam" and zero and draw.random() < 0.6:
            words.append("-onebit-gather=parameters")
        if not is_one_bit and draw.random() < 0.3:
            words.append("-offload-optimizer=cpu")
        return words


FAMILIES = [Case(-1, "lamb", "wide", tiles=True, at=2, later=True, layouts=[["-dp=1", "-pp=2"], ["-dp=2", "-pp=3", "-zero=1"]]),
            Case(-2, "onebit-lamb", "wide", 1, tiles=True, at=3, later=False, layouts=[["-dp=1", "-pp=2"], ["-dp=1", "-pp=3"]]),
            Case(-3, "onebit-lamb", "wide", 1, tiles=False, at=1, later=True, layouts=[["-dp=1", "-threads=1"], ["-dp=1", "-pp=2"]]),
            Case(-4, "onebit-lamb", "wide", 2, tiles=False, at=2, later=True, layouts=[["-dp=2", "-threads=1"], ["-dp=2", "-pp=2"]]),
            Case(-5, "onebit-adam", "small", 4, tiles=False, at=3, later=False,
                 layouts=[["-dp=4", "-zero=1", "-onebit-gather=parameters"], ["-dp=4"]])]


def run(case, path, data, layout, *more, status=0, checks=False):
    tiles = ["-tile-products=60000" if case.tiles else "-tile-products=none"]
    ranks = int(layout[0].split("=")[1])
    log = os.path.join(tempfile.mkdtemp(dir=folder), "log.jsonl")  # what is there would be gone on with
    environment = {"DSOPT_CHECK_ACCESSES": str(abs(case.seed) + 1)} if checks else {}
    done = execute([dsopt, path, "-run", "-quiet", f"-data={data}", f"-log={log}", f"-steps={STEPS}", f"-micro-batches={SHARDS // ranks}",
                    f"-reduction-shards={SHARDS}", "-accumulate=local", *case.computation, *layout, *tiles, *more], status, environment=environment)
    return Run(log) if done.returncode == 0 else done.stderr


def try_case(case, path, data):
    """Whether it was compared: a layout may be refused by name."""
    # By day no wide ones but the first: checking goes by all bytes.
    sampled = (abs(case.seed) % 2,) if case.size == "small" else (0,) if case is FAMILIES[0] else (None,)
    return all(try_layouts(case, path, data, checked) for checked in ((0, 1) if NIGHTLY else sampled))


def try_layouts(case, path, data, checked):
    """The same where accesses are checked in the layout of that number, if any."""
    alone = [f"-dp={case.ranks if case.optimizer in ONE_BIT else 1}"]
    first = run(case, path, data, alone, status=None)
    check(isinstance(first, Run), f"seed {case.seed}: {first}")
    saved = os.path.join(folder, "saved")
    shutil.rmtree(saved, ignore_errors=True)
    saves = [f"-save={saved}", f"-save-every={case.at}", "-save-keep=9", *(["-save-async"] if case.later else [])]
    runs = ((case.layouts[0], saves, 0), (case.layouts[1], [f"-resume={saved}/step-{case.at:08d}"], case.at))
    for index, (layout, more, skipped) in enumerate(runs):
        other = run(case, path, data, layout, *more, status=None, checks=index == checked)
        if isinstance(other, str):
            check("dsopt: error: " in other and not re.search(r"program table|exec\.|DSOPT_CHECK_ACCESSES", other), f"seed {case.seed}, {layout}: {other}")
            return False
        check((other.hash, other.loss_text) == (first.hash, first.loss_text[skipped:]),
              f"seed {case.seed}, {case.computation} tiles {case.tiles} {layout} {more}: {other.loss_text} {other.hash}, expected {first.loss_text} {first.hash}")
    return True


with tempfile.TemporaryDirectory() as folder:
    models = {"wide": build(folder, 9001, 40, 6), "small": build(folder, 5, 3, 2)}
    for case in FAMILIES:
        check(try_case(case, *models[case.size]), f"refused: {vars(case)}")
    for case in (Case(seed, size="small") for seed in range(1000, 1000 if NIGHTLY else 1006)):
        try_case(case, *models[case.size])
    count = int(os.environ.get("DSOPT_WHOLES", 300 if NIGHTLY else 4))
    compared = sum(try_case(case, *models[case.size]) for case in map(Case, range(count)))
    check(compared >= 0.6 * count, f"only {compared} of {count} were not refused")
print(f"{compared} of {count} drawn ones have the bits of one layout")
