"""onnx_cases.py BIN SCRATCH [--sample=N] [--operators=A,B] [--gradients] [--docs=FILE] [-v]:
onnx's own test cases of its operators, from the package's case generators, through dsopt's
compiled kernels; BIN is the folder of dsopt-forward.

Of each operator that dsopt lists, every case whose values are numbers or bools is a model that is
imported, compiled, run with 1 and 3 threads (equal bytes) and compared as onnx's runner compares;
random numbers by what they may be. With --older onnx's converter rewrites the cases to opsets 7 to 12 first, as
far as it reaches, and old_forms.py adds what it does not write. Prints the failures with their reasons and a line `N passed, N failed, N skipped`. With --gradients the
gradients of the cases with float32 inputs and outputs, and of those in odd_shapes.py, are compared
with finite differences of the folded model in double instead; `exempt` are those without a
derivative anywhere. --docs does both and writes the table of operators."""
import argparse
import collections
import os
import pickle
import queue
import random
import re
import subprocess
import sys
import tempfile
import threading
import types
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

warnings.simplefilter("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402

import old_forms  # noqa: E402
from odd_shapes import CASES  # noqa: E402
from operators import CONSTANTS, DRAWN, LISTED, NO_GRADIENT, SKIPPED, TOLERANCES  # noqa: E402

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir))
from aging import aged as older_model  # noqa: E402

# ONNX's element types that dsopt computes with, as it spells them.
TYPES = {TensorProto.FLOAT: "f32", TensorProto.DOUBLE: "f64", TensorProto.FLOAT16: "f16", TensorProto.BFLOAT16: "bf16",
         TensorProto.INT8: "i8", TensorProto.INT16: "i16", TensorProto.INT32: "i32", TensorProto.INT64: "i64",
         TensorProto.UINT8: "ui8", TensorProto.UINT16: "ui16", TensorProto.UINT32: "ui32", TensorProto.UINT64: "ui64",
         TensorProto.BOOL: "i1"}
# Those that only come about within a model, and as what dsopt-forward reads and writes them.
SMALL = {getattr(TensorProto, name): np.dtype(carrier) for names, carrier in
         (("FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0 FLOAT4E2M1", np.float32),
          ("INT4 INT2", np.int8), ("UINT4 UINT2", np.uint8)) for name in names.split()}
CARRIERS = {np.dtype(helper.tensor_dtype_to_np_dtype(kind)): carrier for kind, carrier in SMALL.items()}
DTYPES = {text: np.dtype(helper.tensor_dtype_to_np_dtype(kind)) for kind, text in TYPES.items()}
NARROW = {DTYPES["f16"], DTYPES["bf16"]}  # given to programs as f32, which computes with them
OLDEST = 7  # of the opsets that are read; onnx has cases that it writes in older ones


def array_of(value):
    """A value of a case, which may be a protobuf."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def by_name(table, name):
    """What a table by patterns of cases' names says about one, or None."""
    return next((value for pattern, value in table.items() if re.fullmatch(pattern, name)), None)


class Case:
    def __init__(self, case, op):
        self.name, self.op, self.case = case.name.removeprefix("test_"), op, case
        self.inputs, self.outputs = ([array_of(value) for value in values] for values in case.data_sets[0])
        self.problem = None

    def unsuitable(self):
        """Why the case is not run, if it is not."""
        graph = self.case.model.graph
        for value in [*graph.input, *graph.output]:
            if not value.type.HasField("tensor_type"):
                return "sequences and optionals as inputs or outputs of a model"
            if value.type.tensor_type.elem_type not in {**TYPES, **SMALL}:
                kind = TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
                return f"values of type {kind}"
        return by_name(SKIPPED, self.name)

    def write(self, folder):
        """The model with inputs that have to be constants made so, and other inputs' bytes."""
        os.makedirs(folder, exist_ok=True)
        model = onnx.ModelProto()
        model.CopyFrom(self.case.model)
        if any(opset.domain == "" and opset.version < OLDEST for opset in model.opset_import):
            model = version_converter.convert_version(model, OLDEST)
        graph = model.graph
        known = {initializer.name for initializer in graph.initializer}
        given = [value for value in graph.input if value.name not in known]
        values = dict(zip([value.name for value in given], self.inputs))
        # Inputs whose values decide shapes, by their place in the operator's own node.
        places = CONSTANTS.get(self.op, ())
        constants = [name for place, name in enumerate(self.own_inputs) if place in places and name in values]
        for name in constants:
            graph.node.insert(0, helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values[name])))
            graph.input.remove(next(i for i in graph.input if i.name == name))
        for value in given:
            if value.name in constants:
                continue
            array = np.ascontiguousarray(values[value.name])
            array = array.astype(np.float32 if array.dtype in NARROW else CARRIERS.get(array.dtype, array.dtype))
            array.tofile(os.path.join(folder, value.name + ".in"))
        # What a runtime tells of a micro-batch (dsopt/Runtime/Scalars.h): seed, step, micro-batch, training, ranks along tp and sp.
        np.array([7, 0, 1, 0, 1, 0, 0], np.int32).tofile(os.path.join(folder, "context.in"))
        onnx.save(model, os.path.join(folder, "model.onnx"))

    def compare(self, folder, line):
        """What is wrong with the run that this line reports."""
        if not line.startswith("ok"):
            return line.removeprefix("error ")
        texts = line.split()[1:]
        if len(texts) != len(self.outputs):
            return f"gives {len(texts)} outputs, expected {len(self.outputs)}"
        drawn, outputs = by_name(DRAWN, self.name), []
        for k, (want, text) in enumerate(zip(self.outputs, texts)):
            *shape, element = re.fullmatch(r"tensor<(.*)>", text).group(1).split("x")
            if element not in DTYPES:
                return f"output {k} is {text}"
            got = np.fromfile(os.path.join(folder, f"{k}.out"), DTYPES[element]).reshape([int(s) for s in shape])
            want = np.asarray(want)
            want = want.astype(CARRIERS.get(want.dtype, want.dtype))
            if got.dtype != want.dtype or got.shape != want.shape:
                return f"output {k} is {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
            outputs.append(got)
            if drawn:
                continue
            rtol, atol = self.case.rtol, by_name(TOLERANCES, self.name) or self.case.atol
            if got.dtype in NARROW:
                # The reference rounds after each of its own operations, a program after each of the model's.
                rtol = max(rtol, 4 * float(ml_dtypes.finfo(got.dtype).eps))
                got, want = got.astype(np.float32), want.astype(np.float32)
            try:
                np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
            except AssertionError as error:
                return f"output {k} differs: " + " ".join(str(error).split())[:120]
        return drawn(self.inputs, outputs) if drawn else None

    def has_floats(self):
        """Whether there is something to differentiate, and with respect to something."""
        graph = self.case.model.graph
        if any(np.size(value) == 0 for value in self.inputs) or by_name(NO_GRADIENT, self.name):
            return False
        places = CONSTANTS.get(self.op, ())
        constants = {name for place, name in enumerate(self.own_inputs) if place in places}
        return any(v.type.tensor_type.elem_type == TensorProto.FLOAT for v in graph.input if v.name not in constants) \
            and any(v.type.tensor_type.elem_type == TensorProto.FLOAT for v in graph.output)

    def check_gradients(self, folder, line):
        """What is wrong with the gradients, or None; sets whether some have been compared."""
        if not line.startswith("ok"):
            return line.removeprefix("error ")
        self.compared = int(line.split()[1])
        return None


def onnx_cases():
    """onnx's own cases of nodes. They take longer to make than most of them to run: kept with compiled objects (DSOPT_CACHE), by their version."""
    folder = os.environ.get("DSOPT_CACHE")
    kept = os.path.join(folder or "", f"onnx-{onnx.__version__}-numpy-{np.__version__}-{sys.version_info.major}.{sys.version_info.minor}.cases")
    if folder and os.path.exists(kept):
        os.utime(kept)  # used just now: not among the first to go
        with open(kept, "rb") as file:
            return pickle.load(file)
    cases = [case for case in collect_testcases(None) if case.kind == "node"]
    if folder:
        os.makedirs(folder, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            pickle.dump(cases, file)
        os.replace(file.name, kept)
    return cases


def collect(wanted):
    cases = []
    everything = onnx_cases()
    own = {c.name: c.model.graph.node[0] for c in everything if len(c.model.graph.node) == 1}
    for case in everything:
        # A case's expansion (the operator as a function) stands under another name.
        node = own.get(case.name) or own.get(re.sub(r"_expanded.*", "", case.name))
        if node is None or node.op_type not in wanted:
            continue
        cases.append(Case(case, node.op_type))
        cases[-1].own_inputs = list(node.input)
    return cases


def aged(cases, count):
    """Of the cases, so many: each as onnx's converter writes it in an older opset, the oldest IR version that has it."""
    drawn = random.Random(7)
    cases = [case for case in cases if len(case.case.model.opset_import) == 1 and not case.case.model.functions]
    result = []
    for case in drawn.sample(cases, len(cases)):
        newest = case.case.model.opset_import[0].version
        opsets = range(9 if case.op == "Scan" else OLDEST, min(newest, 13))
        for opset in drawn.sample(opsets, len(opsets)):
            model = older_model(case.case.model, opset)
            if model is None:
                continue
            old = Case(types.SimpleNamespace(name=f"{case.case.name}_opset{opset}", model=model, rtol=case.case.rtol, atol=case.case.atol,
                                             data_sets=case.case.data_sets), case.op)
            old.own_inputs = case.own_inputs
            result.append(old)
            if count:
                break
        if count and len(result) >= count:
            break
    return result


def collect_odd(wanted, own=CASES):
    """The cases of our own: for gradients, or of old opsets."""
    cases = []
    for case in own:
        node = case.model.graph.node[0]
        if node.op_type in wanted:
            cases.append(Case(case, node.op_type))
            cases[-1].own_inputs = list(node.input)
    return cases


def run_all(command, check, cases, scratch, workers=2):
    """Runs the command over the cases; what `check` says of each line is the case's problem."""
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
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL, text=True)
            process.stdin.write(folder + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                case.problem = f"crashes with status {process.wait()}"
                process = None
            else:
                case.problem = check(case, folder, line.strip().removeprefix(folder + " "))
        if process:
            process.stdin.close()
            process.wait()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def report(cases, skipped, verbose, last):
    failed = [case for case in cases if case.problem]
    for case in sorted(failed, key=lambda c: (c.op, c.name)):
        print(f"failed {case.op} {case.name}: {case.problem}")
    if verbose:
        for case in cases:
            if not case.problem:
                print("passed", case.op, case.name)
    for (op, reason), count in sorted(skipped.items()):
        print(f"skipped {op}: {count} with {reason}")
    print(f"{len(cases) - len(failed)} passed, {len(failed)} failed, {last}")


def sample(cases, count):
    """Every operator's first case, second and so on, until there are as many as asked for."""
    seen, ranked = collections.Counter(), []
    for case in cases:
        ranked.append((seen[case.op], case.name, case))
        seen[case.op] += 1
    return [case for _, _, case in sorted(ranked, key=lambda r: r[:2])[:count]]


def run_gradients(options, cases):
    cases = [case for case in cases if case.has_floats()]
    run_all([os.path.join(options.bin, "dsopt-forward"), "--gradients"], Case.check_gradients, cases,
            os.path.join(options.scratch, "gradients"))
    # Of our own cases each has to be compared: none lies on a kink.
    for case in cases:
        if "odd_" in case.name and not case.problem and case.compared == 0:
            case.problem = "nothing of it was compared"
    exempt = sum(not case.problem and case.compared == 0 for case in cases)
    return cases, f"{exempt} exempt"


def write_docs(options, values, odd, skipped):
    """docs/Operators.md: what the operators' rows, cases and gradients say."""
    listed = subprocess.run([os.path.join(options.bin, "dsopt-import"), "--list-operators"], check=True,
                            capture_output=True, text=True).stdout
    opsets = {name: (first, last) for name, first, last in map(str.split, listed.splitlines())}
    passed, all_cases = collections.Counter(), collections.Counter()
    for case in values:
        all_cases[case.op] += 1
        passed[case.op] += not case.problem
    cases, _ = run_gradients(options, values + odd)
    compared, wrong = collections.Counter(), collections.Counter()
    for case in cases:
        wrong[case.op] += bool(case.problem)
        compared[case.op] += not case.problem and case.compared > 0
    with open(options.docs, "w") as file:
        print("# Operators\n", file=file)
        print("Generated by `test/Conformance/Inputs/onnx_cases.py --docs`. Cases are those of onnx "
              f"{onnx.__version__} with values\nthat are numbers or bools, as one node and as the operator's own expansion (random "
              "numbers by what they\nmay be); gradients are those of the cases and of two odd shapes of each "
              "operator (primes,\ndimensions of one), compared with finite differences in double to 1e-5 "
              "(`-`: none of the operator's inputs has one).\n\"Known\" inputs have to be constants "
              "when the model is compiled.\n", file=file)
        print("| operator | opsets | cases passed | gradients compared | known inputs |", file=file)
        print("| --- | --- | --- | --- | --- |", file=file)
        for op in sorted(opsets):
            first, last = opsets[op]
            count = f"{passed[op]} of {all_cases[op]}" if all_cases[op] else "no cases"
            gradient = f"{compared[op]} of {compared[op] + wrong[op]}" if compared[op] + wrong[op] else "-"
            known = ", ".join(map(str, CONSTANTS.get(op, ()))) or ""
            print(f"| {op} | {first} to {last} | {count} | {gradient} | {known} |", file=file)
        print("\nNot run:\n", file=file)
        for (op, reason), count in sorted(skipped.items()):
            print(f"- {op}: {count} with {reason}", file=file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("scratch")
    parser.add_argument("--sample", type=int, help="so many cases, some of each operator")
    parser.add_argument("--operators", help="of these operators only")
    parser.add_argument("--older", action="store_true", help="rewritten to older opsets")
    parser.add_argument("--gradients", action="store_true", help="compare gradients instead of values")
    parser.add_argument("--docs", help="write the table of operators to this file")
    parser.add_argument("-v", action="store_true", help="name passed cases too")
    options = parser.parse_args()
    wanted = set(options.operators.split(",")) if options.operators else set(LISTED)
    skipped, cases = collections.Counter(), []
    for case in collect(wanted):
        reason = case.unsuitable()
        if reason:
            skipped[case.op, reason] += 1
        else:
            cases.append(case)
    odd = collect_odd(wanted) if options.gradients or options.docs else []
    if options.older:
        old = collect_odd(wanted, old_forms.CASES)
        cases = old + aged(cases, options.sample)
    elif options.sample:
        cases, odd = sample(cases, options.sample), sample(odd, options.sample)
    if options.gradients:
        cases += odd
        cases, exempt = run_gradients(options, cases)
        report(cases, {}, options.v, exempt)
        return
    run_all([os.path.join(options.bin, "dsopt-forward")], Case.compare, cases, options.scratch)
    report(cases, skipped, options.v, f"{sum(skipped.values())} skipped")
    if options.docs:
        write_docs(options, cases, odd, skipped)


if __name__ == "__main__":
    main()
