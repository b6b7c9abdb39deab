"""The way of a model into its file."""
from __future__ import annotations

import contextlib
import json
import os
import tempfile
from typing import Any, Dict, List, Optional, Tuple

import onnx
import onnx.numpy_helper
import torch

from . import ExportReport, _INLINE_LIMIT
from . import _losses, _rules  # noqa: F401  (they register what is called instead)
from .._compat import buffers_of, has_backward_hook, has_gradient_hook, is_normalization
from .._tools import DsoptError, writing
from .._weights import METADATA_KEY
from ._buffers import fold_buffers
from ._check import Reference, check, check_decisions
from ._exporters import EXPORTERS, ExportFailed, run_exporters
from ._functions import fold_backwards
from ._graph import OPTIONS_KEY, depends_on, keep_places
from ._inputs import Job
from ._operators import DOMAIN, VERSION
from ._optimizer import optimizer_options
from ._probe import Probe
from ._parameters import Found, check_values, gradients_of, match, own_names, rename, rows_of
from ._progress import Progress
from ._random import Draws, Sides
from ._recorder import Recorder
from ._refused import Decides, Refused
from ._rows import words
from ._settings import exporting


def refuse_what_no_file_holds(model: Any) -> None:
    """Hooks, lazy parameters, statistics over all batches."""
    for name, parameter in model.named_parameters():
        if torch.nn.parameter.is_lazy(parameter):
            raise Refused(f"parameter '{name}' has no shape yet: call the model once before it is exported")
        if has_gradient_hook(parameter):
            raise Refused(f"parameter '{name}' has a hook on its gradient, which no file can hold: remove it")
    for name, module in model.named_modules():
        if has_backward_hook(module):
            raise Refused(f"module '{name}' has a hook on its gradients, which no file can hold: remove it")
        if is_normalization(module) and module.training and module.track_running_stats and module.momentum is None:
            raise Refused(f"module '{name}' averages its statistics over all batches (momentum=None), which the file "
                          "cannot say: give it a momentum")


def _padding(recorder: Recorder, names: Dict[str, str]) -> List[str]:
    """Rows of embeddings whose look-ups have no gradient."""
    rows = []
    for parameter, said in recorder.padding.items():
        if len(set(said)) > 1:
            words = sorted({"no padding_idx" if row is None else f"padding_idx {row}" for row in said})
            raise Refused(f"embedding '{parameter}' is looked up with {' and with '.join(words)}, expected one for all")
        if said[0] is not None and parameter in names:
            rows.append(f"{names[parameter]}={said[0]}")
    return rows


class _Writer:
    """One export under way."""

    def __init__(self, job: Job, path: str, opset: int, dynamic_shapes: Any, exporter: Optional[str], progress: Progress):
        self.job, self.path, self.opset, self.progress = job, path, opset, progress
        self.folder = os.path.dirname(os.path.abspath(path))
        self.told: List[str] = []
        self.unused: List[str] = []
        self.options: Dict[str, Any] = {}
        with exporting(job.model, job.code):
            try:
                self.exported, self.failures = run_exporters(self._traced, job, opset, dynamic_shapes, exporter, progress)
            except ExportFailed as error:
                if self.recorder.counted and "ata-dependent" in str(error):
                    raise Refused(f"{words(job.model, self.recorder.counted)}\n{error}") from None
                raise
        self.proto, self.graph = self.exported.proto, self.exported.proto.graph

    def _traced(self) -> Any:
        self.recorder = Recorder(self.job.model, branches=self.job.branches)
        return self.job.module(self.recorder)

    def _find_unused(self) -> List[str]:
        module = self.job.module(contextlib.nullcontext())
        with exporting(self.job.model, self.job.code):
            _, found = gradients_of(self.job.model, lambda: module(*self.job.values))
        self.unused = [name for name, gradient in found.items() if gradient is None]
        return self.unused

    def match(self) -> None:
        """Finds parameters and buffers again, with their values."""
        model = self.job.model
        self.found, self.missing = match(model, self.graph, self.folder, self._find_unused)
        parameters = dict(model.named_parameters())
        lost = [name for name in self.missing if name not in self.unused and parameters[name].requires_grad]
        if lost:
            words = f"the exporter lost {len(lost)} parameters: {', '.join(lost[:5])}{' and more' if len(lost) > 5 else ''}"
            if self.recorder.decided:
                raise Refused(f"{words}; {next(iter(self.recorder.decided))} decides by the values of a tensor, which one "
                              "program cannot")
            raise RuntimeError(f"{words}; torch {torch.__version__}, opset {self.opset}")
        self._undo_changes()
        check_values(model, self.graph, self.found, self.folder)

    def _undo_changes(self) -> None:
        """The older exporter has run forward, and wrote what that has left of buffers."""
        buffers = dict(self.job.model.named_buffers())
        for initializer in self.graph.initializer:
            one = self.found.get(initializer.name)
            if one and one.torch in self.recorder.changed:
                value = buffers[one.torch].detach().cpu().numpy()
                initializer.CopyFrom(onnx.numpy_helper.from_array(value, initializer.name))

    def fold(self) -> None:
        """Gradients of functions and changes of buffers become nodes."""
        fold_backwards(self.graph)
        first = 1 + len(self.job.outputs)
        values = [one.name for one in self.graph.output[first:]]
        del self.graph.output[first:]
        known, own = _statistics(self.job.model), {one.torch: name for name, one in self.found.items()}
        for name in self.recorder.changed:
            if name not in own and name not in known:  # what it was is overwritten before it is read
                own[name] = self._add_buffer(name)
        changed = {value: own[name] for value, name in zip(values, self.recorder.changed)
                   if name in own and name not in known}
        kept = fold_buffers(self.graph, changed)
        if kept:
            names = ", ".join(self.found[name].torch for name in kept)
            self.told.append(f"forward changes {names}, which the loss does not read: training with dsopt leaves them "
                             "as they are")
        if DOMAIN not in [one.domain for one in self.proto.opset_import]:
            self.proto.opset_import.add(domain=DOMAIN, version=VERSION)

    def _add_buffer(self, name: str) -> str:
        value = dict(self.job.model.named_buffers())[name].detach().cpu().numpy()
        own = f"buffer/{name}"
        self.graph.initializer.append(onnx.numpy_helper.from_array(value, own))
        self.found[own] = Found(name)
        return own

    def name(self) -> None:
        """PyTorch's own names, and what each initializer is."""
        new = own_names(self.graph, self.found)
        rename(self.graph, new)
        self.names = {one.torch: new.get(old, old) for old, one in self.found.items()}
        self.rows = rows_of(self.job.model, self.found, new)

    def find_unread(self) -> List[str]:
        """Parameters that would be trained, but that nothing in the file leads to: they are as if they were not there."""
        read = set(depends_on(self.graph, "loss"))
        there = {one.torch for name, one in self.found.items() if name in read or self.names.get(one.torch) in read}
        return [name for name, one in self.job.model.named_parameters() if one.requires_grad and name not in there
                and name not in self.job.left_out]

    def say_options(self, optimizer: Any) -> None:
        """What the file asks for."""
        if padding := _padding(self.recorder, self.names):
            self.options["padding-index"] = padding
        if any(node.op_type == "BatchNormalization" for node in self.graph.node):
            self.options["batchnorm"] = "model"  # each node says what it does
        if optimizer is None:
            return
        by_id = {id(parameter): self.names[name] for name, parameter in self.job.model.named_parameters()
                 if name in self.names and parameter.requires_grad}
        said, left_out = optimizer_options(optimizer, by_id)
        self.options.update(said)
        frozen = {by_id[key] for key in left_out}
        for row in self.rows:
            if row["onnx"] in frozen:
                row["trainable"] = False
                self.job.left_out.append(row["torch"])

    def save(self) -> None:
        """Writes the file."""
        keep_places(self.proto)
        properties = {METADATA_KEY: json.dumps(self.rows)}
        if self.options:
            properties[OPTIONS_KEY] = json.dumps(self.options)
        onnx.helper.set_model_props(self.proto, properties)
        large = sum(len(initializer.raw_data) for initializer in self.graph.initializer) > _INLINE_LIMIT
        self.remove()
        with writing(self.path):
            onnx.save(self.proto, self.path, save_as_external_data=large, location=os.path.basename(self.path) + ".data")

    def remove(self) -> None:
        for old in (self.path, self.path + ".data"):
            if os.path.exists(old):
                os.remove(old)

    def check(self) -> str:
        """Compares the file with the model; where something is drawn, a file of the same numbers."""
        try:
            return self._check()
        except DsoptError as error:
            if self.recorder.counted and "data decide how many" in str(error):
                raise Refused(words(self.job.model, self.recorder.counted)) from error
            raise

    def _check(self) -> str:
        scales = {name: float(scale) for name, scale in (one.rsplit("=", 1) for one in self.options.get("lr-scale", []))}
        draws = Draws(keeps=True)
        check_decisions(self.job, self.recorder.decided, draws)
        if not self.recorder.draws.count:
            return check(self.job, self.path, self.rows, scales, self.exported.exporter, draws)
        with exporting(self.job.model, self.job.code), torch.no_grad():
            self.job.module(Reference(self.job.model, draws))(*self.job.values)
        sides = both_sides(self.job, draws)
        with tempfile.TemporaryDirectory(prefix="dsopt-check-") as folder:
            other = _Fixed(self.job, os.path.join(folder, "model.onnx"), self.opset, sides, self.exported.exporter, self.progress)
            other.match()
            other.fold()
            other.name()
            other.say_options(None)
            other.save()
            return check(self.job, other.path, other.rows, {}, self.exported.exporter, draws)


class _Fixed(_Writer):
    """An export in which nothing is drawn: the numbers are there."""

    def __init__(self, job: Job, path: str, opset: int, draws: Draws, exporter: str, progress: Progress):
        self.draws = draws
        super().__init__(job, path, opset, None, exporter, progress)

    def _traced(self) -> Any:
        self.recorder = Recorder(self.job.model, self.draws, self.job.branches)
        return self.job.module(self.recorder)


def both_sides(job: Job, draws: Draws) -> Draws:
    """What forward draws where it computes both sides of its branches, of what it drew where it took one."""
    if not job.branches.any():
        return draws
    sides = Sides(draws)
    with exporting(job.model, job.code), torch.no_grad():
        job.module(Recorder(job.model, sides, job.branches))(*job.values)
    fixed = Draws(keeps=True)
    fixed.kept = sides.kept
    return fixed


def _note(job: Job, found: Decides) -> None:
    if found.code is None or not job.branches.add(found.code, found.line):
        raise found


def find_branches(job: Job) -> None:
    """Where forward decides by what it draws, in both sides of what it decides."""
    while True:
        try:
            with exporting(job.model, job.code), torch.no_grad():
                job.module(Recorder(job.model, Draws(keeps=True), job.branches))(*job.values)
            break
        except Decides as found:
            _note(job, found)
        except Refused:
            raise
        except Exception:  # the exporters say what it is
            return
    Probe(job).look_at_sides()


def _written(job: Job, path: str, *settings: Any) -> _Writer:
    """The file, in which both sides of branches are that a draw decides."""
    while True:
        try:
            return _Writer(job, path, *settings)
        except Decides as found:
            _note(job, found)
            find_branches(job)


def write(model: Any, example_inputs: Any, path: str, loss: Any, opset: int, dynamic_shapes: Any,
          exporter: Optional[str], compares: bool, optimizer: Any, outputs: Any,
          progress: Progress) -> Tuple[ExportReport, List[str]]:
    """Writes the file; the report, and what there is to warn about."""
    if exporter is not None and exporter not in EXPORTERS:
        raise ValueError(f"exporter={exporter!r}: expected one of {', '.join(EXPORTERS)}")
    refuse_what_no_file_holds(model)
    job = Job(model, example_inputs, loss, outputs)
    Probe(job).run()
    writer = _written(job, path, opset, dynamic_shapes, exporter, progress)
    exported, told = writer.exported, writer.told
    told.extend(job.told)
    if writer.failures:
        words = f" with {exported.settings}" if exported.settings else ""
        told.append(f"exported by {exported.exporter}{words}, since {'; '.join(writer.failures)}")
    if writer.recorder.decided:
        places = list(writer.recorder.decided)
        told.append(f"{'; '.join(places[:3])}{' and more' if len(places) > 3 else ''}: Python decides by the values of "
                    "a tensor, and the file keeps what the example's decide")
    writer.match()
    writer.fold()
    writer.name()
    writer.say_options(optimizer)
    writer.save()
    unread = writer.find_unread()
    inputs = [value.name for value in writer.graph.input]
    needed = {name for output in ("loss", *job.output_names) for name in depends_on(writer.graph, output)}
    unseen = [name for name in job.names if name not in inputs or name not in needed]
    if unseen:
        told.append(f"the loss does not depend on the inputs {', '.join(unseen)}: they are not in {path}")
    checked = "not compared with PyTorch: check=False"
    if compares:
        try:
            with progress.doing("comparing the file with PyTorch, for which it is compiled (check=False does without)"):
                checked = writer.check()
        except Exception:
            writer.remove()
            raise
        if checked.startswith("not"):
            told.append(checked)
    unread += [name for name in job.unreached if name not in unread and name not in job.left_out]
    if unread:
        told.append(f"the loss does not depend on parameters {', '.join(unread[:8])}{f' and {len(unread) - 8} more' if len(unread) > 8 else ''}: "
                    "training with dsopt leaves them as they are (an optimizer of PyTorch decays those whose gradient is zero, not None)")
    report = ExportReport(path, len(writer.found), [one.torch for one in writer.found.values() if one.transposed],
                          unread, inputs, exported.exporter,
                          exported.settings, writer.options, checked)
    return report, told


def _statistics(model: Any) -> List[str]:
    """Buffers of normalizations, which are folded by themselves."""
    return [f"{name}.{buffer}" if name else buffer for name, module in model.named_modules()
            if is_normalization(module) for buffer in buffers_of(module)]
