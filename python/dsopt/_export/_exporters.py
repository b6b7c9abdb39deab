"""PyTorch's two exporters, and which of them works."""
from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
import tempfile
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from .._compat import export_by_torchscript, sizes_as_symbols
from . import _operators as operators
from ._cache import kept
from ._graph import is_the_models
from ._inputs import Job, shape_list
from ._progress import Progress
from ._refused import Refused, chain_of, refusal_in
from ._settings import needed_settings, other_settings, set_all


class ExportFailed(RuntimeError):
    """PyTorch's exporters failed."""


@dataclass
class Exported:
    """A model as an exporter wrote it."""
    proto: Any
    exporter: str
    settings: str  #: in words


def _dynamo(wrapped: Any, values: List[Any], names: Sequence[str], outputs: Sequence[str], opset: int,
            dynamic_shapes: Any, progress: Progress) -> Exported:
    import torch

    shapes = shape_list(names, dynamic_shapes)
    with sizes_as_symbols(needed=shapes is not None), progress.doing("tracing forward (torch.export)"):
        program = torch.export.export(wrapped, tuple(values), strict=False,
                                      dynamic_shapes=None if shapes is None else {"values": tuple(shapes)})

    def write() -> Any:
        count = len(program.graph.nodes)
        try:
            with progress.doing(f"writing {count:,} operations of PyTorch as ONNX (torch.onnx.export)"):
                return torch.onnx.export(program, (), None, input_names=list(names), output_names=["loss", *outputs],
                                         opset_version=opset, dynamo=True, optimize=False, verbose=False,
                                         custom_translation_table=operators.translations()).model_proto
        except Exception as error:
            raise ExportFailed(_lines_of(program, str(error))) from error

    return Exported(kept(program, (list(names), list(outputs), opset), write), "dynamo", "")


def _lines_of(program: Any, text: str) -> str:
    """The lines of source that the operation comes from at which writing failed, by the error's text."""
    failed = re.search(r"translating node %(\w+)", text)
    operation = re.search(r"target=torch\.ops\.\w+\.(\w+)", text)
    nodes = [(str(getattr(node.target, "__name__", node.target)).partition(".")[0], node) for node in program.graph.nodes]
    found = [node for _, node in nodes if failed and node.name == failed[1]] or [
        node for name, node in nodes if operation and (name in operation[1] or operation[1] in name)]  # or what it was before
    return str(found[0].meta.get("stack_trace") or "") if found else ""


def _torchscript(wrapped: Any, values: List[Any], names: Sequence[str], outputs: Sequence[str], opset: int,
                 dynamic_shapes: Any, progress: Progress) -> Exported:
    import onnx
    import torch

    if dynamic_shapes is not None:
        raise Refused("dynamic_shapes is for the exporter dynamo")
    operators.register_symbolics(opset)
    # Of a model in training it merges what is one tensor; else what is equal. Only the wrapper says so.
    mode, wrapped.training = wrapped.training, True
    buffer = io.BytesIO()
    try:
        with progress.doing("tracing and writing forward (PyTorch's older exporter)"):
            export_by_torchscript(wrapped, tuple(values), buffer, input_names=list(names), output_names=["loss", *outputs],
                                  opset_version=opset, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    finally:
        wrapped.training = mode
    return Exported(onnx.load_from_string(buffer.getvalue()), "torchscript", "")


EXPORTERS: Dict[str, Callable[..., Exported]] = {"dynamo": _dynamo, "torchscript": _torchscript}


def run_exporters(traced: Callable[[], Any], job: Job, opset: int, dynamic_shapes: Any,
                  exporter: Optional[str], progress: Progress) -> "tuple[Exported, List[str]]":
    """What the first exporter wrote that works, and a line on each that did not. `traced` makes the module that
    is exported."""
    choices = [exporter] if exporter else [name for name in EXPORTERS if name == "dynamo" or dynamic_shapes is None]
    failures: List[str] = []
    whole: List[str] = []
    others = other_settings(job.model)
    outer = sys.exc_info()[1]
    for name in choices:
        for settings in [[], others] if others else [[]]:
            stack, words = set_all(needed_settings(job.model) + settings)
            with stack, _silence() as said:
                try:
                    exported = EXPORTERS[name](traced(), list(job.values), job.names, job.output_names, opset,
                                               dynamic_shapes, progress)
                    exported.settings = words
                    return exported, failures
                except Exception as error:
                    refused = refusal_in(error, outer)
                    if refused is not None:
                        raise refused from None
                    label = f"exporter {name}" + (f" with {words}" if words else "")
                    failures.append(f"{label}: {shortened(error, outer)}")
                    whole.append(f"{label}\n\n{''.join(traceback.format_exception(type(error), error, error.__traceback__))}\n{said()}")
    with tempfile.NamedTemporaryFile("w", prefix="dsopt-export-", suffix=".txt", delete=False) as file:
        file.write("\n\n".join(whole))
    raise ExportFailed("PyTorch cannot export this model:\n  " + "\n  ".join(failures) +
                       f"\n  the whole text is in {file.name}") from None


@contextlib.contextmanager
def _silence() -> Iterator[Callable[[], str]]:
    """What exporters print and log, kept from the terminal; the text of it."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        def text() -> str:
            sys.stdout.flush()
            sys.stderr.flush()
            said.seek(0)
            return said.read()

        before, kept = logging.root.manager.disable, [os.dup(number) for number in (1, 2)]
        logging.disable(logging.CRITICAL)
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                for number in (1, 2):  # the older one prints past Python
                    os.dup2(said.fileno(), number)
                yield text
        finally:
            for number, old in zip((1, 2), kept):
                os.dup2(old, number)
                os.close(old)
            logging.disable(before)


#: What to write instead of operators that no file has.
_INSTEAD = {
    **dict.fromkeys(("cholesky", "cholesky_ex", "slogdet", "det", "logdet", "inv", "inv_ex", "solve", "solve_ex", "qr", "svd",
                     "eigh", "lu_factor_ex", "triangular_solve", "solve_triangular"),
                    "ONNX factors no matrices: train the factor itself (of a covariance its lower triangle L, of which the log-"
                    "determinant is 2 * L.diagonal().log().sum())"),
    "matrix_exp": "write its series, or another map with matmul (Newton-Schulz steps for an orthogonal matrix)",
    **dict.fromkeys(("digamma", "polygamma"), "write Stirling's series, or leave out what is constant in the loss"),
    "multinomial": "draw by argmax of the logarithms plus Gumbel noise, -log(-log(torch.rand(...)))",
}
_HINTS = [
    (r"GuardOnDataDependentSymNode|data-dependent|\.item\(\)", "the model decides by the values of a tensor, which one "
     "program cannot: use torch.where, or decide outside of forward"),
    (r"complex-valued|ComplexFloat|complex64|complex dtype", "write it with real and imaginary parts"),
    (r"No ONNX function found|UnsupportedOperatorError|is not currently supported|not supported",
     "write it with other operations of PyTorch"),
]


def shortened(error: BaseException, outer: Optional[BaseException] = None) -> str:
    """The line of an exporter's failure that helps: what, at which operation, where in the model."""
    chain = chain_of(error, outer)
    text = "\n".join(str(one) for one in chain)
    root = next((one for one in reversed(chain) if str(one).strip()), error)
    line = re.sub(r"\x1b\[\d*m", "", str(root)).strip().splitlines()
    what = f"{type(root).__name__}: {line[0].strip() if line else 'no message'}"
    operation = re.search(r"call_function\[target=(?:torch\.ops\.)?([\w.]+)\]", text) or \
        re.search(r"(?:operator|op|kernel) '?((?:aten|torchvision|transformers|prims)[:.]+[\w.]+)", text)
    if operation and operation.group(1) not in what:
        what += f" (at {operation.group(1)})"
    where = _line_in_model(chain, text)
    if where:
        what += f", {where}"
    named = re.search(r"(?:aten|prims)(?:\.|::)_?(?:linalg_)?(\w+?)_?\b", what)
    hint = _INSTEAD.get(named.group(1), "") if named else ""
    hint = hint or next((advice for pattern, advice in _HINTS if re.search(pattern, f"{type(root).__name__} {text}")), "")
    return what[:600] + (f"; {hint}" if hint else "")


def _line_in_model(chain: Sequence[BaseException], text: str) -> str:
    """"model.py:42": the innermost line outside of PyTorch that a failure speaks of."""
    places: List[Any] = []
    for one in chain:
        frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(one.__traceback__)]
        last = max((at for at, (name, _) in enumerate(frames) if "/dsopt/_export/" in name), default=-1)
        places += frames[last + 1:]
    places += [(name, int(line)) for name, line in re.findall(r'File "([^"]+)", line (\d+)', text)]
    mine = [f"{name.rpartition('/')[2]}:{line}" for name, line in places if is_the_models(name)]
    return mine[-1] if mine else ""
