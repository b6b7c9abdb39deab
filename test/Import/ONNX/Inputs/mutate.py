"""Damages models in seeded ways and feeds them to a tool: each must end in one message and
exit status 1, or be taken; never in a crash, more than 2 GB or more than 10 s.

usage: mutate.py TOOL COUNT SEED MODEL.onnx... [-- OPTION...]   (a MODEL `operators`: one of each operator)

Prints `N mutations: N refused, N accepted, 0 crashed` and fails if one crashed. TOOL is
dsopt (its -plan runs the whole compiler) or dsopt-import, also of a build with sanitizers
(docs/Operators.md); memory is then limited by the sanitizer. With DSOPT_MUTATIONS=FOLDER
the models that crashed are kept there.
"""
import collections
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

MEMORY, SECONDS = 2 << 30, 10
HUGE = [-(2**63), 2**63 - 1, 2**62, -(2**62), 2**40, 2**31, -1, 0, 1, 3, 7]
OPERATORS = """Attention AveragePool BatchNormalization Clip Concat ConstantOfShape Conv ConvTranspose CumSum DepthToSpace
 Einsum Expand Flatten Gather GatherElements GatherND Gemm GRU GroupNormalization LayerNormalization LSTM MatMul MaxPool
 NonZero OneHot Pad Range ReduceMean ReduceSum Reshape Resize RMSNormalization RotaryEmbedding ScatterElements ScatterND
 Slice Softmax SoftmaxCrossEntropyLoss Split SplitToSequence SequenceAt Squeeze Tile TopK Transpose Trilu Unsqueeze Where
 If Loop Scan Dropout Identity""".split()


def number(random):
    return random.choice(HUGE)


class Mutation:
    """One way to damage a model; the methods below are drawn by chance."""

    def __init__(self, data, random):
        self.data, self.random = data, random

    def model(self):
        return onnx.load_from_string(self.data)

    # On bytes.
    def bytes_flipped(self):
        data = bytearray(self.data)
        for _ in range(self.random.randint(1, 6)):
            end = min(len(data), 4000) if self.random.random() < 0.7 else len(data)
            data[self.random.randrange(1, end)] = self.random.randrange(256)
        return bytes(data)

    def truncated(self):
        return self.data[: self.random.randrange(len(self.data))]

    def bytes_dropped(self):
        at = self.random.randrange(1, len(self.data))
        return self.data[:at] + self.data[at + self.random.randint(1, 40) :]

    # On fields.
    def field_dropped(self):
        m = self.model()
        message = m
        for _ in range(self.random.randint(1, 5)):
            fields = [f for f, _ in message.ListFields()]
            if not fields:
                break
            field = self.random.choice(fields)
            value = getattr(message, field.name)
            inner = field.message_type is not None
            if inner and self.random.random() < 0.85:
                message = self.random.choice(value) if hasattr(value, "__len__") else value
                continue
            message.ClearField(field.name)
            break
        return m.SerializeToString()

    def nodes(self, m):
        return list(m.graph.node) or [helper.make_node("Identity", [], [])]

    def names(self, m):
        names = [o for n in m.graph.node for o in n.output] + [t.name for t in m.graph.initializer]
        return names + [i.name for i in m.graph.input] + ["", "nothing"]

    def cycle(self):
        m = self.model()
        for _ in range(3):
            node = self.random.choice(self.nodes(m))
            if node.input:
                node.input[self.random.randrange(len(node.input))] = self.random.choice(self.names(m))
        return m.SerializeToString()

    def inputs_lost(self):
        m = self.model()
        node = self.random.choice(self.nodes(m))
        if node.input:
            del node.input[self.random.randrange(len(node.input)) :]
        return m.SerializeToString()

    def operator_swapped(self):
        m = self.model()
        node = self.random.choice(self.nodes(m))
        node.op_type = self.random.choice(OPERATORS + [n.op_type for n in m.graph.node])
        return m.SerializeToString()

    def names_doubled(self):
        m = self.model()
        lists = [one for one in (m.graph.node, m.graph.initializer, m.graph.input, m.graph.output) if one]
        chosen = self.random.choice(lists)
        chosen.append(self.random.choice(list(chosen)))
        return m.SerializeToString()

    def initializer_missing(self):
        m = self.model()
        if m.graph.initializer:
            del m.graph.initializer[self.random.randrange(len(m.graph.initializer))]
        return m.SerializeToString()

    def tensors(self, m):
        constants = [a.t for n in m.graph.node for a in n.attribute if a.HasField("t")]
        return list(m.graph.initializer) + constants

    def shape_absurd(self):
        m = self.model()
        shapes = [t.dims for t in self.tensors(m) if t.dims]
        if shapes and self.random.random() < 0.6:
            dims = self.random.choice(shapes)
            dims[self.random.randrange(len(dims))] = number(self.random)
            if self.random.random() < 0.3:
                dims.append(number(self.random))
            return m.SerializeToString()
        values = [d for i in m.graph.input for d in i.type.tensor_type.shape.dim]
        for dim in self.random.sample(values, min(len(values), 2)):
            dim.dim_value = number(self.random)
        return m.SerializeToString()

    def type_wrong(self):
        m = self.model()
        tensors = self.tensors(m)
        if tensors and self.random.random() < 0.6:
            self.random.choice(tensors).data_type = self.random.randrange(-1, 30)
        elif m.graph.input:
            self.random.choice(list(m.graph.input)).type.tensor_type.elem_type = self.random.randrange(-1, 30)
        return m.SerializeToString()

    def attribute_absurd(self):
        m = self.model()
        with_attributes = [n for n in m.graph.node if n.attribute]
        for node in self.random.sample(with_attributes, min(len(with_attributes), 3)):
            a = self.random.choice(list(node.attribute))
            a.i = number(self.random)
            a.f = self.random.choice([0.0, -1.0, float("nan"), float("inf"), 1e38])
            if a.ints:
                a.ints[self.random.randrange(len(a.ints))] = number(self.random)
            if a.s:
                a.s = self.random.choice([b"", b"\xff\xfe", b"SAME_UPPER", b"ij,jk->ik" * 50, b"mean"])
            if self.random.random() < 0.2:
                a.type = self.random.randrange(0, 15)
        return m.SerializeToString()

    def attribute_added(self):
        m = self.model()
        node = self.random.choice(self.nodes(m))
        name = self.random.choice("axis axes epsilon group num_groups kernel_shape pads strides dilations keepdims k to perm batch_dims num_heads blocksize is_causal".split())
        value = self.random.choice([number(self.random), [number(self.random)] * self.random.randint(0, 5), 0.5, "x"])
        node.attribute.append(helper.make_attribute(name, value if value != [] else [0]))
        return m.SerializeToString()

    def integers_absurd(self):
        m = self.model()
        for t in self.tensors(m):
            if t.data_type == TensorProto.INT64 and t.raw_data and self.random.random() < 0.5:
                count = len(t.raw_data) // 8
                t.raw_data = b"".join(number(self.random).to_bytes(8, "little", signed=True) for _ in range(count))
        return m.SerializeToString()

    def initializer_hollow(self):
        m = self.model()
        if not m.graph.initializer:
            return self.truncated()
        t = self.random.choice(list(m.graph.initializer))
        t.raw_data = t.raw_data[: self.random.randrange(len(t.raw_data) + 1)]
        if self.random.random() < 0.5:
            del t.dims[:]
            t.dims.extend([2**self.random.randint(10, 39), self.random.choice([1, 2, 2**20])])
        return m.SerializeToString()

    def external(self):
        m = self.model()
        if not m.graph.initializer:
            return self.truncated()
        t = self.random.choice(list(m.graph.initializer))
        t.ClearField("raw_data")
        t.data_location = TensorProto.EXTERNAL
        places = ["../../etc/passwd", "/etc/passwd", "nothere.bin", "", "a/../../b", "model.onnx", "."]
        for key, value in (
            ("location", self.random.choice(places)),
            ("offset", str(self.random.choice([0, 4, 2**62, -1, "x"]))),
            ("length", str(self.random.choice([0, 4, 2**62, -1, "1e9"]))),
        ):
            if self.random.random() < 0.9:
                t.external_data.add(key=key, value=value)
        return m.SerializeToString()

    def strings(self):
        m = self.model()
        if not m.graph.initializer:
            return self.truncated()
        t = self.random.choice(list(m.graph.initializer))
        t.ClearField("raw_data")
        t.data_type = TensorProto.STRING
        t.string_data.extend([b"a", b"\xff"])
        return m.SerializeToString()

    def recursive_function(self):
        m = self.model()
        depth = self.random.choice([1, 2, 40, 200])
        for i in range(depth):
            # Each calls the next one twice: 2^depth nodes if it were followed.
            inner = [helper.make_node(f"f{(i + 1) % depth}", ["x"], ["y"], domain="own"),
                     helper.make_node(f"f{(i + 1) % depth}", ["y"], ["z"], domain="own")]
            m.functions.append(helper.make_function("own", f"f{i}", ["x"], ["z"], inner,
                                                    [helper.make_opsetid("", m.opset_import[0].version if m.opset_import else 18),
                                                     helper.make_opsetid("own", 1)]))
        m.opset_import.append(helper.make_opsetid("own", 1))
        node = self.random.choice(self.nodes(m))
        node.op_type, node.domain = "f0", "own"
        return m.SerializeToString()

    def deep(self):
        m = self.model()
        a = helper.make_attribute("body", m.graph)
        for _ in range(self.random.choice([2, 30, 120])):
            g = onnx.GraphProto()
            g.node.add(op_type="If").attribute.append(a)
            a = helper.make_attribute("body", g)
        self.random.choice(self.nodes(m)).attribute.append(a)
        try:
            return m.SerializeToString()
        except Exception:
            return self.truncated()

    def versions(self):
        m = self.model()
        for set in m.opset_import:
            set.version = self.random.choice([13, 14, 17, 20, 23, 28, -1, 2**62, 0])
        return m.SerializeToString()


MUTATIONS = [name for name in vars(Mutation) if name not in ("__init__", "model", "nodes", "names", "tensors")
             and not name.startswith("_")]


def operator_models():
    """The models of odd_shapes.py with a loss; inputs are initializers by turns, integers always."""
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Conformance/Inputs"))
    from odd_shapes import CASES

    models = {}
    for index, case in enumerate(CASES):
        graph, values = case.model.graph, case.data_sets[0][0]
        for place, (name, value) in enumerate([(i.name, v) for i, v in zip(graph.input, values)]):
            if value.dtype != np.float32 or value.ndim == 0 or (place + index) % 2:
                graph.initializer.append(onnx.numpy_helper.from_array(value, name))
                graph.input.remove(next(i for i in graph.input if i.name == name))
        graph.node.append(helper.make_node("ReduceSum", [graph.output[0].name], ["loss"], keepdims=0))
        del graph.output[:]
        graph.output.append(helper.make_tensor_value_info("loss", TensorProto.FLOAT, []))
        models[f"{case.name}/model.onnx"] = case.model.SerializeToString()
    return models


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main():
    arguments = sys.argv[1:]
    options = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    files = arguments[: arguments.index("--")] if "--" in arguments else arguments
    tool, count, seed, models = os.path.abspath(files[0]), int(files[1]), int(files[2]), files[3:]
    sanitized = b"__asan_init" in open(tool, "rb").read()
    environment = dict(os.environ, ASAN_OPTIONS=f"hard_rss_limit_mb={MEMORY >> 20}:detect_leaks=0:allocator_may_return_null=0",
                       UBSAN_OPTIONS="print_stacktrace=1", DSOPT_CACHE="off")
    draw = random.Random(seed)
    kept = os.environ.get("DSOPT_MUTATIONS")
    results, kinds = collections.Counter(), collections.Counter()
    contents = {path: open(path, "rb").read() for path in models if path != "operators"}
    whole = list(contents)
    if "operators" in models:
        contents.update(operator_models())
    single = list(contents)[len(whole) :]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        for index in range(count):
            # Whole models and single operators by turns.
            pool = single if single and (index % 2 or not whole) else whole
            source, kind = pool[index // (1 + bool(whole and single)) % len(pool)], MUTATIONS[draw.randrange(len(MUTATIONS))]
            try:
                data = getattr(Mutation(contents[source], draw), kind)()
            except Exception:  # what protobuf itself refuses to write
                kind, data = "truncated", Mutation(contents[source], draw).truncated()
            with open(path, "wb") as file:
                file.write(data)
            command = [tool, path, *options]
            try:
                done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS * (6 if sanitized else 1),
                                      preexec_fn=None if sanitized else limit)
                message = done.stderr.decode(errors="replace")
                errors = len(re.findall(r"\berror: ", message))
                problem = ""
                if done.returncode == 0 and errors == 0:
                    results["accepted"] += 1
                elif done.returncode == 1 and errors == 1 and "Sanitizer" not in message and "runtime error" not in message:
                    results["refused"] += 1
                else:
                    problem = f"status {done.returncode}, {errors} errors: {message[:1500]}"
            except subprocess.TimeoutExpired:
                problem = f"took more than {SECONDS} s"
            kinds[kind] += 1
            if problem:
                results["crashed"] += 1
                print(f"{os.path.basename(os.path.dirname(source))} {kind} ({index}): {problem}", flush=True)
                if kept:
                    with open(os.path.join(kept, f"{seed}-{index}-{kind}.onnx"), "wb") as file:
                        file.write(data)
    print(f"{count} mutations: {results['refused']} refused, {results['accepted']} accepted, {results['crashed']} crashed")
    sys.exit(1 if results["crashed"] else 0)


if __name__ == "__main__":
    main()
