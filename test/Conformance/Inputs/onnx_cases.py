"""onnx_cases.py DSOPT-FORWARD SCRATCH [--sample | --operators=A,B] [-v]: onnx's own test
cases of its operators, from the package's case generators, through dsopt's compiled kernels.

Of each operator that dsopt lists, every case whose values are float32, int32, int64 or bool
is a model that is imported, compiled, run with 1 and 3 threads (equal bytes) and compared as
onnx's runner compares. Prints the failures with their reasons and a line
`N passed, N failed, N skipped`."""
import argparse
import collections
import os
import queue
import re
import subprocess
import sys
import threading
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

warnings.simplefilter("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402

from operators import CONSTANTS, LISTED, SKIPPED  # noqa: E402

TYPES = {np.dtype(np.float32): "f32", np.dtype(np.int32): "i32", np.dtype(np.int64): "i64", np.dtype(np.bool_): "i1"}
DTYPES = {text: dtype for dtype, text in TYPES.items()}
NUMBERS = {TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL}
OLDEST = 13


class Case:
    def __init__(self, case, op):
        self.name, self.op, self.case = case.name.removeprefix("test_"), op, case
        self.inputs, self.outputs = case.data_sets[0]
        self.problem = None

    def unsuitable(self):
        """Why the case is not run, if it is not."""
        graph = self.case.model.graph
        for value in [*graph.input, *graph.output]:
            if not value.type.HasField("tensor_type"):
                return "sequences and optionals as inputs or outputs of a model"
            if value.type.tensor_type.elem_type not in NUMBERS:
                kind = TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
                return f"values of type {kind}"
        for opset in self.case.model.opset_import:
            if opset.domain == "" and opset.version < OLDEST and not self.is_unchanged(self.case.model, opset.version):
                return f"an opset before {OLDEST}, in which the operator is another"
        for pattern, reason in SKIPPED.items():
            if re.fullmatch(pattern, self.name):
                return reason
        return None

    def write(self, folder):
        """The model with inputs that have to be constants made so, and other inputs' bytes."""
        os.makedirs(folder, exist_ok=True)
        model = onnx.ModelProto()
        model.CopyFrom(self.case.model)
        model.ir_version = max(model.ir_version, 8)
        for opset in model.opset_import:
            if opset.domain == "":
                opset.version = max(opset.version, OLDEST)
        graph, values = model.graph, dict(zip([i.name for i in model.graph.input], self.inputs))
        # Inputs whose values decide shapes, by their place in the operator's own node.
        places = CONSTANTS.get(self.op, ())
        constants = [name for place, name in enumerate(self.own_inputs) if place in places and name in values]
        for name in constants:
            graph.node.insert(0, helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values[name])))
            graph.input.remove(next(i for i in graph.input if i.name == name))
        for value in graph.input:
            np.ascontiguousarray(values[value.name]).tofile(os.path.join(folder, value.name + ".in"))
        onnx.save(model, os.path.join(folder, "model.onnx"))

    @staticmethod
    def is_unchanged(model, version):
        def since(node, at):
            return onnx.defs.get_schema(node.op_type, at, node.domain).since_version

        return all(since(node, OLDEST) == since(node, version) for node in model.graph.node if node.domain == "")

    def compare(self, folder, line):
        """What is wrong with the run that this line reports."""
        if not line.startswith("ok"):
            return line.removeprefix("error ")
        texts = line.split()[1:]
        if len(texts) != len(self.outputs):
            return f"gives {len(texts)} outputs, expected {len(self.outputs)}"
        for k, (want, text) in enumerate(zip(self.outputs, texts)):
            *shape, element = re.fullmatch(r"tensor<(.*)>", text).group(1).split("x")
            if element not in DTYPES:
                return f"output {k} is {text}"
            got = np.fromfile(os.path.join(folder, f"{k}.out"), DTYPES[element]).reshape([int(s) for s in shape])
            want = np.asarray(want)
            if got.dtype != want.dtype or got.shape != want.shape:
                return f"output {k} is {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
            try:
                np.testing.assert_allclose(got, want, rtol=self.case.rtol, atol=self.case.atol)
            except AssertionError as error:
                return f"output {k} differs: " + " ".join(str(error).split())[:120]
        return None


def collect(wanted):
    cases = []
    everything = [c for c in collect_testcases(None) if c.kind == "node"]
    own = {c.name: c.model.graph.node[0] for c in everything if len(c.model.graph.node) == 1}
    for case in everything:
        # A case's expansion (the operator as a function) stands under another name.
        node = own.get(case.name) or own.get(re.sub(r"_expanded.*", "", case.name))
        if node is None or node.op_type not in wanted:
            continue
        cases.append(Case(case, node.op_type))
        cases[-1].own_inputs = list(node.input)
    return cases


def run_all(tool, cases, scratch, workers=2):
    todo = queue.Queue()
    for index, case in enumerate(cases):
        todo.put((os.path.join(scratch, str(index)), case))

    def work():
        process = None
        while True:
            try:
                folder, case = todo.get_nowait()
            except queue.Empty:
                break
            case.write(folder)
            if process is None:
                process = subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL, text=True)
            process.stdin.write(folder + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                case.problem = f"crashes with status {process.wait()}"
                process = None
            else:
                case.problem = case.compare(folder, line.strip().removeprefix(folder + " "))
        if process:
            process.stdin.close()
            process.wait()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("scratch")
    parser.add_argument("--sample", type=int, help="about so many cases, some of each operator")
    parser.add_argument("--operators", help="of these operators only")
    parser.add_argument("-v", action="store_true", help="name passed cases too")
    options = parser.parse_args()
    wanted = set(options.operators.split(",")) if options.operators else set(LISTED)
    cases, skipped, suitable = collect(wanted), collections.Counter(), []
    for case in cases:
        reason = case.unsuitable()
        if reason:
            skipped[case.op, reason] += 1
        else:
            suitable.append(case)
    if options.sample:
        # Every operator's first case, third and so on, as many as asked for.
        seen, ranked = collections.Counter(), []
        for case in suitable:
            ranked.append((seen[case.op], case.name, case))
            seen[case.op] += 1
        suitable = [case for _, _, case in sorted(ranked, key=lambda r: r[:2])[: options.sample]]
    run_all(options.tool, suitable, options.scratch)

    failed = [case for case in suitable if case.problem]
    for case in sorted(failed, key=lambda c: (c.op, c.name)):
        print(f"failed {case.op} {case.name}: {case.problem}")
    if options.v:
        for case in suitable:
            if not case.problem:
                print("passed", case.op, case.name)
    for (op, reason), count in sorted(skipped.items()):
        print(f"skipped {op}: {count} with {reason}")
    print(f"{len(suitable) - len(failed)} passed, {len(failed)} failed, {sum(skipped.values())} skipped")


main()
