"""Convolutions by channels: at equal tensor shards one hash at every degree, beside data parallelism, ZeRO and pipelines, with the running
statistics in it; losses beside those of one shard; what is cut as -plan=sharding says it.

usage: tensor_convolutions.py DSOPT
"""
import os
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runs import Run, check, execute, relative
from sampled import sampled
from saved_weights import safetensors
from shard_kernels import check_kernels

dsopt = sys.argv[1]
SIZE, ROWS, CLASSES = 9, 4, 5


class Net:
    """Layers as they are made: images of `channels` after each."""

    def __init__(self, seed):
        self.random, self.nodes, self.initializers, self.values = np.random.default_rng(seed), [], [], 0

    def make(self, op, *inputs, count=1, **attributes):
        self.values += 1
        names = [f"v{self.values}"] + [f"v{self.values}.{i}" for i in range(1, count)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0]

    def weight(self, name, *shape, value=None):
        value = self.random.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:]))) if value is None else value
        self.initializers.append(numpy_helper.from_array(np.broadcast_to(np.float32(value), shape).copy(), name))
        return name

    def integers(self, name, values):
        self.initializers.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def conv(self, name, x, inputs, outputs, size=3, stride=1, groups=1, bias=False):
        weights = [self.weight(f"{name}.weight", outputs, inputs // groups, size, size)]
        if bias:
            weights.append(self.weight(f"{name}.bias", outputs))
        return self.make("Conv", x, *weights, kernel_shape=[size, size], strides=[stride, stride], pads=[size // 2] * 4, group=groups)

    def up(self, name, x, inputs, outputs):
        return self.make("ConvTranspose", x, self.weight(f"{name}.weight", inputs, outputs, 2, 2), self.weight(f"{name}.bias", outputs), strides=[2, 2])

    def norm(self, name, x, channels):
        scale, bias = (self.weight(f"{name}.{part}", channels, value=1 + 0.1 * self.random.standard_normal(channels)) for part in ("weight", "bias"))
        mean, variance = (self.weight(f"{name}.running_{part}", channels, value=value) for part, value in (("mean", 0.0), ("var", 1.0)))
        self.nodes.append(helper.make_node("BatchNormalization", [x, scale, bias, mean, variance], [f"{name}.y", f"{name}.running_mean.new", f"{name}.running_var.new"], training_mode=1))
        return f"{name}.y"

    def act(self, name, x, inputs, outputs, **options):
        return self.make("Relu", self.norm(f"{name}.bn", self.conv(name, x, inputs, outputs, **options), outputs))

    def finish(self, x, channels, path):
        pooled = self.make("Flatten", self.make("GlobalAveragePool", x))
        logits = self.make("Gemm", pooled, self.weight("fc.weight", CLASSES, channels), self.weight("fc.bias", CLASSES), transB=1)
        self.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [logits, "labels"], ["loss"]))
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, 3, SIZE, SIZE]), helper.make_tensor_value_info("labels", TensorProto.INT64, [ROWS])]
        graph = helper.make_graph(self.nodes, "net", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], self.initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


def residual(path):
    """Two residual blocks, the second one with a stride and a projection; the stream itself is cut too."""
    net = Net(1)
    x = net.make("MaxPool", net.act("stem", "x", 3, 8), kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    for block, (inputs, outputs, stride) in enumerate([(8, 8, 1), (8, 16, 2)]):
        y = net.act(f"b{block}.1", x, inputs, 12, size=1)
        y = net.act(f"b{block}.2", y, 12, 12, stride=stride)
        y = net.norm(f"b{block}.bn3", net.conv(f"b{block}.3", y, 12, outputs, size=1), outputs)
        if stride > 1:
            x = net.norm(f"b{block}.down.bn", net.conv(f"b{block}.down", x, inputs, outputs, size=1, stride=stride), outputs)
        x = net.make("Relu", net.make("Add", y, x))
    net.finish(x, 16, path)


def inverted(path):
    """Depthwise convolutions between pointwise ones, squeeze and excitation, groups of channels normalized together, a grouped convolution."""
    net = Net(2)
    x = net.conv("stem", "x", 3, 6, bias=True)
    y = net.act("expand", x, 6, 16, size=1)
    y = net.act("depthwise", y, 16, 16, groups=16)
    s = net.make("Relu", net.conv("squeeze", net.make("GlobalAveragePool", y), 16, 4, size=1, bias=True))
    y = net.make("Mul", y, net.make("Sigmoid", net.conv("excite", s, 4, 16, size=1, bias=True)))
    x = net.make("Add", x, net.conv("project", y, 16, 6, size=1))
    y = net.conv("wide", x, 6, 16, bias=True)
    y = net.make("GroupNormalization", y, net.weight("gn.weight", 4, value=1.0), net.weight("gn.bias", 4, value=0.0), num_groups=4)
    y = net.make("AveragePool", net.make("Sigmoid", y), kernel_shape=[2, 2], strides=[2, 2])
    y = net.make("Relu", net.conv("grouped", y, 16, 24, groups=4))
    net.finish(net.conv("last", y, 24, 8), 8, path)


def unet(path):
    """Skip connections are concatenated: of channels as many and of half as many."""
    net = Net(3)
    x = net.make("Pad", "x", net.integers("pads", [0, 0, 0, 0, 0, 0, 3, 3]))
    one = net.act("down1", x, 3, 8)
    two = net.act("down2", net.make("MaxPool", one, kernel_shape=[2, 2], strides=[2, 2]), 8, 16)
    three = net.act("middle", net.make("MaxPool", two, kernel_shape=[2, 2], strides=[2, 2]), 16, 24)
    y = net.act("up2", net.make("Concat", net.up("t2", three, 24, 16), two, axis=1), 32, 16)
    big = net.make("Resize", y, "", net.weight("scales", 4, value=[1, 1, 2, 2]), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    y = net.act("up1", net.make("Concat", big, one, axis=1), 24, 8)
    net.finish(net.conv("head", y, 8, 8, size=1, bias=True), 8, path)


def odd(path):
    """Channels that neither 2 nor 4 divide stay whole beside those that they do."""
    net = Net(4)
    x = net.act("a", "x", 3, 7)
    x = net.act("b", x, 7, 8)
    x = net.act("c", x, 8, 9)
    net.finish(x, 9, path)


class Random(Net):
    """Layers drawn one after the other, each of images of some earlier layer's channels and size."""

    def any(self, *choices):
        return choices[self.random.integers(len(choices))]

    def layer(self, at, x, channels, size):
        """Another value, its channels and its size."""
        name, kind = f"l{at}", self.any("conv", "conv", "conv", "grouped", "depthwise", "transposed", "norm", "groups", "pool", "excite", "dropout", "slopes", "shuffle", "resize", "response", "activation")
        outputs = self.any(6, 8, 12, 16, 24)
        if kind == "conv":
            stride = self.any(1, 1, 2) if size > 4 else 1
            return self.conv(name, x, channels, outputs, size=self.any(1, 3), stride=stride, bias=self.any(True, False)), outputs, (size + stride - 1) // stride
        if kind == "grouped":
            groups = self.any(*[count for count in (2, 4) if channels % count == 0] or [1])
            return self.conv(name, x, channels, outputs if outputs % groups == 0 else 8, groups=groups), outputs if outputs % groups == 0 else 8, size
        if kind == "depthwise":
            times = self.any(1, 2)
            return self.conv(name, x, channels, times * channels, groups=channels), times * channels, size
        if kind == "transposed" and size < 10:
            return self.up(name, x, channels, outputs), outputs, 2 * size
        if kind == "norm":
            return self.norm(name, x, channels), channels, size
        if kind == "groups":
            groups = self.any(*[count for count in (2, 4, channels) if channels % count == 0])
            return self.make("GroupNormalization", x, self.weight(f"{name}.gn", groups, value=1.0), self.weight(f"{name}.gb", groups, value=0.1), num_groups=groups), channels, size
        if kind == "pool" and size > 3:
            op = self.any("MaxPool", "AveragePool")
            return self.make(op, x, kernel_shape=[2, 2], strides=[2, 2]), channels, size // 2
        if kind == "excite":
            s = self.make("Relu", self.conv(f"{name}.s", self.make("GlobalAveragePool", x), channels, 4, size=1))
            return self.make("Mul", x, self.make("Sigmoid", self.conv(f"{name}.e", s, 4, channels, size=1, bias=True))), channels, size
        if kind == "dropout":
            return self.make("Dropout", x, self.weight(f"{name}.ratio", value=0.25), self.true()), channels, size
        if kind == "slopes":
            return self.make("PRelu", x, self.weight(f"{name}.slope", channels, 1, 1)), channels, size
        if kind == "shuffle" and channels % 2 == 0:
            split = self.make("Reshape", x, self.integers(f"{name}.split", [ROWS, self.any(2, channels // 2), -1, size, size]))
            return self.make("Reshape", self.make("Transpose", split, perm=[0, 2, 1, 3, 4]), self.integers(f"{name}.join", [ROWS, channels, size, size])), channels, size
        if kind == "resize" and size < 8:
            how = {"mode": "nearest", "nearest_mode": "floor"} if self.any(True, False) else {"mode": "linear"}
            return self.make("Resize", x, "", self.weight(f"{name}.scales", 4, value=[1, 1, 2, 2]), coordinate_transformation_mode="half_pixel", **how), channels, 2 * size
        if kind == "response":
            return self.make("LRN", x, size=3), channels, size
        return self.make(self.any("Relu", "Sigmoid", "Tanh", "Softplus"), x), channels, size

    def true(self):
        self.initializers.append(numpy_helper.from_array(np.array(True), f"true{len(self.initializers)}"))
        return self.initializers[-1].name

    def build(self, path):
        values = [("x", 3, SIZE)]
        for at in range(self.random.integers(6, 14)):
            x, channels, size = values[-1] if self.random.random() < 0.7 else self.any(*values)
            values.append(self.layer(at, x, channels, size))
            # Of one size, some earlier value is added or joined.
            x, channels, size = values[-1]
            others = [other for other in values[1:-1] if other[2] == size]
            if others and self.random.random() < 0.4:
                y, more, _ = self.any(*others)
                added = more == channels and self.any(True, False)
                values.append((self.make("Add", x, y), channels, size) if added else (self.make("Concat", x, y, axis=1), channels + more, size))
        x, channels, _ = values[-1]
        self.finish(self.conv("end", x, channels, 8, size=1), 8, path)


def plan(path, data, shards, words):
    said = execute([dsopt, path, f"-data={data}", f"-tp={shards}", "-plan=sharding", *words]).stdout
    cut = re.findall(r"^(\S+) +\S+ +dimension (\d) over tp", said, re.M)
    whole = dict(re.findall(r"^(\S+) +\S+ +whole(?:: (.*))?$", said, re.M))
    return {name: int(dim) for name, dim in cut}, whole


GRIDS = ["-tp=1", "-tp=2", "-tp=4", "-tp=2 -dp=2 -zero=1", "-tp=2 -dp=2 -zero=2", "-tp=2 -dp=2 -zero=3", "-dp=2 -zero=3", "-tp=2 -pp=2", "-tp=2 -recompute=full", "-tp=4 -threads=1"]


def compare(name, build, folder, data, shards, grids, extra=(), near=None, asked=()):
    """`near`: how far the first step's losses may be from one shard's where later ones may be anywhere; `asked`: what is to be cut."""
    path, log, weights = (os.path.join(folder, file) for file in (f"{name}.onnx", "log.jsonl", "weights.safetensors"))
    build(path)

    def run(*words):
        execute([dsopt, path, "-run", f"-data={data}", "-steps=3", "-optimizer=sgd", "-lr=1e-1", "-reduction-shards=4", "-accumulate=sharded", "-quiet", f"-log={log}", f"-save-weights={weights}", *extra, *words])
        return Run(log), open(weights, "rb").read(), safetensors(weights)

    cut, whole = plan(path, data, shards, asked) if not near else ({}, {})
    check_kernels(f"{name}, T = {shards}", dsopt, [path, f"-data={data}", "-micro-batches=4", f"-tensor-shards={shards}", *extra, *asked], sorted({1, 2, shards}))
    one, _, before = run("-micro-batches=4")
    first = None
    for words in grids:
        dp = 2 if "-dp=2" in words else 1
        done, saved, after = run(f"-tensor-shards={shards}", f"-micro-batches={4 // dp}", *asked, *words.split())
        first = first or (done, saved)
        check(done.loss_text == first[0].loss_text and done.hash == first[0].hash and saved == first[1],
              f"{name}, T = {shards}: {words} differs from {grids[0]}: {done.loss_text} {done.hash}, expected {first[0].loss_text} {first[0].hash}")
        if near:
            check(relative(done.losses[:1], one.losses[:1]) < near, f"{name}, T = {shards}: {done.losses}, one shard: {one.losses}")
            continue
        check(relative(done.losses, one.losses) < (1e-4 if not extra else 2e-2), f"{name}, T = {shards}: {done.losses}, one shard: {one.losses}")
        for key, value in after.items():
            check(value.shape == before[key].shape and np.allclose(value, before[key], rtol=1e-2, atol=2e-3 if not extra else 5e-2),
                  f"{name}, T = {shards}: {key} differs from one shard's by {np.max(np.abs(value - before[key]))}")
    print(f"{name}, T = {shards}{' ' + ' '.join(extra) if extra else ''}: {len(grids)} layouts, one hash; {f'{len(cut)} parameters cut, ' if cut else ''}losses differ from one shard's by {relative(first[0].losses, one.losses):.1e}", flush=True)
    return cut, whole


def statistics(folder, data):
    """Running statistics in evaluations, in what is saved at one degree and goes on at another, and in a model that is saved."""
    path, log = os.path.join(folder, "residual.onnx"), os.path.join(folder, "log.jsonl")
    base = [dsopt, path, "-run", f"-data={data}", "-lr=1e-2", "-micro-batches=2", "-tensor-shards=4", "-quiet", f"-log={log}", f"-eval-data={data}"]
    ends = set()
    for at, words in enumerate((["-tp=1"], ["-tp=4", "-pp=2"], ["-tp=2", "-dp=2", "-zero=3", "-micro-batches=1"])):
        saved, onnx_file = os.path.join(folder, f"saved{at}"), os.path.join(folder, "trained.onnx")
        common = ["-reduction-shards=2", "-accumulate=sharded"]
        execute([*base, *common, *words, "-steps=2", f"-save={saved}"])
        execute([*base, *common, "-tp=2", "-steps=4", f"-resume={saved}", f"-save-onnx={onnx_file}"])
        evaluated = re.findall(r'"eval_loss":([^,}]+)', open(log).read())[-1]
        alone = [re.search(r"eval loss (\S+)", execute([dsopt, onnx_file, "-eval", f"-data={data}", *more]).stdout)[1] for more in (["-tensor-shards=4"], ["-tensor-shards=4", "-tp=4"])]
        ends.add((Run(log).hash, evaluated, *alone))
        check(float(alone[0]) == float(evaluated), f"{words}: evaluated to {evaluated}, the saved model to {alone}")
    check(len(ends) == 1, f"runs that go on at another degree differ: {ends}")
    print(f"running statistics go on at other degrees: evaluated {ends.pop()[1]}", flush=True)


CUT = {  # what must be cut at T = 4, along which dimension
    "residual": {"b0.1.weight": 0, "b0.1.bn.running_mean": 0, "b0.2.weight": 1, "b1.1.weight": 0, "b1.2.weight": 1},
    "stream": {"stem.weight": 0, "stem.bn.running_mean": 0, "b0.1.weight": 1, "b0.3.weight": 0, "b1.1.weight": 1, "b1.down.weight": 1},
    "inverted": {"expand.weight": 0, "depthwise.weight": 0, "depthwise.bn.running_var": 0, "squeeze.weight": 1, "excite.weight": 0, "excite.bias": 0, "project.weight": 1, "wide.weight": 0, "gn.weight": 0, "grouped.weight": 0, "last.weight": 1},
    "unet": {"down1.weight": 0, "down2.weight": 1, "middle.weight": 0, "t2.weight": 0, "up2.weight": 0, "up2.bn.running_mean": 0, "up1.weight": 1},
    "odd": {"b.weight": 0, "b.bn.running_var": 0, "c.weight": 1},
}
WHOLE = {"inverted": {"stem.weight": "6 are not divided by 4"}, "odd": {"a.weight": "7 are not divided by 4"}}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        data, random = os.path.join(folder, "data.npz"), np.random.default_rng(0)
        np.savez(data, x=random.standard_normal((8, ROWS, 3, SIZE, SIZE)).astype(np.float32), labels=random.integers(0, CLASSES, (8, ROWS)))
        # Of the second the stream itself is cut: asked for, as less is sent where blocks are.
        for name, build, asked in (("residual", residual, []), ("stream", residual, ["-shard=stem.weight=tp:0"]), ("inverted", inverted, []), ("unet", unet, []), ("odd", odd, [])):
            for shards in (2, 4):
                cut, whole = compare(name, build, folder, data, shards, sampled([grid for grid in GRIDS if shards == 4 or "-tp=4" not in grid], 6), asked=asked)
            for parameter, dim in CUT[name].items():
                check(cut.get(parameter) == dim, f"{name}: {parameter} is cut along {cut.get(parameter)} ({whole.get(parameter)}), expected dimension {dim}")
            for parameter, reason in WHOLE.get(name, {}).items():
                check(whole.get(parameter) == reason, f"{name}: {parameter} is whole: {whole.get(parameter)}, expected '{reason}'")
        for precision in ("bf16", "fp16"):
            compare("residual", residual, folder, data, 4, ["-tp=1", "-tp=2 -dp=2 -zero=3", "-tp=4"], [f"-precision={precision}"])
        statistics(folder, data)
        for seed in sampled(range(1, 61), 6):
            net, path, shards = Random(seed), os.path.join(folder, "random.onnx"), (2, 4)[seed % 2]
            net.build(path)
            if "could cut" not in execute([dsopt, path, f"-data={data}", f"-tp={shards}", "-plan=sharding"], status=None).stderr:
                compare(f"random {seed}", Random(seed).build, folder, data, shards, ["-tp=1", "-tp=2 -dp=2 -zero=3", "-tp=2 -recompute=full"], near=1e-5)
