"""Compiles graph functions to kernels, runs them, compares with numpy.

A case is one function of graph operations (text), its inputs and numpy's
results in double. It is compiled as dsopt does (decompose, form kernels, lower),
its graph.kernel calls are interpreted here, views and products by numpy. Each
kernel runs whole and cut at odd places (columns: at multiples of 64), and the
bytes are compared. With a driver's library (see device.py) kernels are compiled for
a device and run there, in grids of different sizes.
"""
import ctypes
import os
import re
import sys
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, os.pardir, os.pardir), os.path.join(HERE, os.pardir, os.pardir, os.pardir)]
from compiled import compile_ir, run

TYPES = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32, "i1": np.uint8}


def tensor(text):
    parts = re.fullmatch(r"tensor<(.*)>", text.strip()).group(1).split("x")
    return tuple(int(size) for size in parts[:-1]), TYPES[parts[-1]]


def types(text):
    return [tensor(t) for t in re.findall(r"tensor<[^>]*>", text)]


def compile_kernels(opt, folder, name, text, device=None):
    os.makedirs(folder, exist_ok=True)
    formed = run([opt, "-mlir-print-elementsattrs-with-hex-if-larger=-1", "-pass-pipeline=builtin.module(decompose-composites,canonicalize,cse,form-kernels)"], text)
    kernels, own, inside = [], [], False
    for line in formed.splitlines():
        inside |= line.startswith("  func.func private")
        (kernels if inside else own).append(line)
        inside &= not line.startswith("  }")
    # What a processor lacks is written out; the translation knows no target of ours.
    target = "" if device else run([opt, "-pass-pipeline=builtin.module(attach-target{arch=native})"], "module {}").replace("{\n}", "{")
    lowered = run([opt, "-lower-kernels-to-nvvm" if device else "-lower-kernels"], "\n".join([target or "module {"] + kernels + ["}"]))
    lowered = re.sub(r"^#target = .*|attributes \{dsopt.target = #target\} ", "", lowered, flags=re.M)
    ir = run(["mlir-translate", "--mlir-to-llvmir"], lowered)
    if device:
        # PTX has no dots in names.
        ir = re.sub(r"(define [^@]*)@([\w.]+)\(", lambda m: f"{m.group(1)}@{m.group(2).replace('.', '$')}(", ir)
    library = f"{folder}/{name}" + (".ptx" if device else ".so")
    target = (["--target=nvptx64-nvidia-cuda", "-Xclang", "-target-cpu", "-Xclang", "sm_80", "-Xclang", "-target-feature",
               "-Xclang", "+ptx80", "-S"] if device else ["-march=native", "-shared", "-fPIC", "-lm"])
    compile_ir(["-O3", "-Wno-override-module", "-x", "ir", "-", *target], ir, library)
    heads = {m.group(1): (m.group(2), [int(n) for n in re.findall(r"\d+", m.group(3))])
             for m in re.finditer(r'private @([\w.]+)\(.*graph.iterate = #graph.iteration<(\w+)>, graph.range = array<i64(.*?)>',
                                  "\n".join(kernels))}
    return own, heads, device.load(library) if device else ctypes.CDLL(library)


def call(library, name, ranges, buffers, outputs=0):
    """The last `outputs` buffers are only written."""
    if not isinstance(library, ctypes.CDLL):
        return library.call(name, ranges, buffers, outputs)
    pointers = (ctypes.c_void_p * len(buffers))(*[b.ctypes.data for b in buffers])
    function = library[name]
    function.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    function.restype = None
    for begin, end in ranges:
        function(begin, end, pointers)


def cuts(total, grain, step):
    places = sorted({min(i * grain, total) for i in range(0, -(-total // grain) + 1, step)} | {0, total})
    return list(reversed(list(zip(places, places[1:]))))


def launch(library, name, head, inputs, results):
    """Whole and in parts, in descending order; equal bytes. Outputs start as NaN."""
    iterate, sizes = head
    total, grain = int(np.prod(sizes, dtype=np.int64)), 64 if iterate == "columns" else 1
    outcomes = []
    for ranges in [[(0, total)], cuts(total, grain, 1), cuts(total, grain, 7)]:
        outputs = [np.full(shape, 0x7F, np.uint8).astype(t) if t is np.uint8 else
                   np.full(shape, np.nan if np.issubdtype(t, np.floating) else -77, t) for shape, t in results]
        call(library, name, ranges, inputs + outputs, len(outputs))
        outcomes.append(outputs)
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other):
            if a.tobytes() != b.tobytes():
                sys.exit(f"@{name}: bytes change with the cut in {np.sum(a != b)} of {a.size} elements")
    return outcomes[0]


def interpret(own, heads, library, arguments):
    values = {f"%arg{i}": np.ascontiguousarray(a) for i, a in enumerate(arguments)}
    for line in own:
        line = line.strip()
        if m := re.match(r"(%\w+)(:\d+)? = graph\.kernel @([\w.]+)\((.*?)\).* -> (.*)", line):
            outputs = launch(library, m.group(3), heads[m.group(3)],
                             [values[v] for v in m.group(4).split(", ") if v], types(m.group(5)))
            for i, output in enumerate(outputs):
                values[f"{m.group(1)}#{i}" if m.group(2) else m.group(1)] = output
        elif m := re.match(r"(%\w+) = graph\.reshape (\S+) : .* -> (.*)", line):
            values[m.group(1)] = values[m.group(2)].reshape(tensor(m.group(3))[0])
        elif m := re.match(r"(%\w+) = graph\.constant dense<(.*)> : (.*)", line):
            shape, t = tensor(m.group(3))
            values[m.group(1)] = np.ascontiguousarray(np.broadcast_to(np.array(eval(m.group(2), {"true": 1, "false": 0}), t), shape))
        elif m := re.match(r"return (.*) : ", line):
            return [values[v] for v in m.group(1).split(", ")]
        elif "graph." in line:
            sys.exit(f"cannot interpret: {line}")


def spell(array):
    t = {np.float32: "f32", np.int64: "i64", np.int32: "i32", np.bool_: "i1", np.uint8: "i1"}[array.dtype.type]
    return "tensor<" + "x".join([str(s) for s in array.shape] + [t]) + ">"


class Suite:
    def __init__(self, opt, folder, driver=None):
        self.opt, self.folder, self.count = opt, folder, 0
        if driver:
            from device import Device
        self.device = Device(driver) if driver else None

    def check(self, name, body, inputs, expected, tolerance=3e-6, exact=False):
        """`body` uses %arg0...; its last line returns what `expected` lists, to a part of the largest value or `exact`ly."""
        arguments = ", ".join(f"%arg{i}: {spell(x)}" for i, x in enumerate(inputs))
        expected = [np.asarray(e) for e in expected]
        returned = re.findall(r"return .* : (.*)", body)[-1]
        text = f"func.func @case({arguments}) -> ({returned}) {{\n{body}\n}}\n"
        own, heads, library = compile_kernels(self.opt, self.folder, f"case{self.count}", text, self.device)
        self.count += 1
        results = interpret(own, heads, library, inputs)
        for i, (got, want) in enumerate(zip(results, expected)):
            if got.shape != want.shape:
                sys.exit(f"{name}: result {i} has shape {got.shape}, expected {want.shape}")
            if exact and not np.array_equal(got, want, equal_nan=True):
                wrong = ~((got == want) | (np.isnan(got) & np.isnan(want)))
                sys.exit(f"{name}: result {i} is {got[wrong][:8]}, expected {want[wrong][:8]}, of {[x[wrong][:8] for x in inputs if x.shape == got.shape]}")
            got, want = got.astype(np.float64), want.astype(np.float64)
            finite = np.isfinite(want)
            if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
                sys.exit(f"{name}: result {i} is {got[~finite]}, expected {want[~finite]}")
            scale = max(np.max(np.abs(want[finite]), initial=0), 1e-30)
            error = np.max(np.abs(got[finite] - want[finite]), initial=0) / scale
            if not error <= tolerance:
                sys.exit(f"{name}: result {i} differs by {error:.3g} of the largest value, allowed {tolerance:.3g}")
        print(f"ok {name} ({len(heads)} kernels)")
