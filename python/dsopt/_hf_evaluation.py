"""How `dsopt.hf.Trainer` measures: transformers' own evaluation loop over what a compiled program predicts."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
from accelerate.state import GradientState
from transformers.trainer_utils import has_length

from ._compat import active_loader
from ._data import model_inputs
from ._export._inputs import output_name
from ._run import predict
from ._stream import to_array
from ._tools import DsoptError

if TYPE_CHECKING:
    from transformers import Trainer as _Trainer  # what it is mixed into
else:
    _Trainer = object

Batch = Dict[str, Any]


class Replay:
    """What transformers' loop takes for a loader: batches that were read once, whatever draws them."""

    end_of_dataloader = False  #: what the loop asks accelerate for

    def __init__(self, loader: Any, batches: Sequence[Batch]):
        self.dataset, self._batches = getattr(loader, "dataset", None), batches

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        with active_loader(GradientState(), self):
            for at, batch in enumerate(self._batches):
                self.end_of_dataloader = at + 1 == len(self._batches)
                yield batch


def rows_in(batch: Batch) -> int:
    """Rows of a batch: the first dimension that its tensors begin with."""
    return next((value.shape[0] for value in batch.values() if getattr(value, "ndim", 0)), 0)


def whole_batches(batches: List[Batch], size: int, ranks: int, drops: bool) -> Tuple[List[Batch], List[int]]:
    """The batches that `ranks` processes of transformers have, and how many rows of each count: what is left after the
    last full batch of each is filled up from the beginning, as accelerate does. One process has a smaller last batch."""
    if drops:
        batches = batches[:len(batches) // ranks * ranks]
    rows = sum(map(rows_in, batches))
    lacking = -rows % (size * ranks)
    if ranks == 1 or not lacking:
        return batches, [rows_in(batch) for batch in batches]
    first = batches[:ranks]
    pool = {name: torch.cat([batch[name] for batch in first]) if value.ndim else value for name, value in first[0].items()}
    chosen = torch.arange(lacking) % rows_in(pool)
    last = batches.pop() if rows_in(batches[-1]) < size else {name: value[:0] if value.ndim else value for name, value in pool.items()}
    rest = {name: torch.cat([last[name], value[chosen]]) if value.ndim else value for name, value in pool.items()}
    for at in range(0, rows_in(rest), size):
        batches.append({name: value[at:at + size] if value.ndim else value for name, value in rest.items()})
    return batches, [min(max(rows - at * size, 0), size) for at in range(len(batches))]


def check_shapes(batches: List[Batch]) -> None:
    """An error where batches but for the last one's rows differ."""
    first = {name: list(value.shape) for name, value in batches[0].items()}
    for at, batch in enumerate(batches):
        for name, shape in first.items():
            got = list(batch[name].shape) if name in batch else "nothing"
            if got != shape and (at + 1 < len(batches) or got[1:] != shape[1:]):
                raise DsoptError(f"batch {at} to evaluate has {got} for '{name}', the first has {shape}: a program has one "
                                 'shape (pad to one length: padding="max_length")')


def mapped(value: Any, function: Callable[[Any, str], Any], path: str = "") -> Any:
    """The same nested containers of what function(leaf, path) gives."""
    if isinstance(value, Mapping):
        return type(value)({key: mapped(one, function, f"{path}.{key}" if path else str(key)) for key, one in value.items()})  # type: ignore[call-arg]
    if isinstance(value, (list, tuple)):
        parts = [mapped(one, function, f"{path}.{at}" if path else str(at)) for at, one in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return function(value, path)


def joined(values: Sequence[Any]) -> Any:
    """The rows of nested containers of one form, one after the other."""
    if len(values) == 1:
        return values[0]
    parts: List[List[Any]] = [[] for _ in values]
    for value, leaves in zip(values, parts):
        mapped(value, lambda one, _: leaves.append(one))
    together = iter([torch.cat(leaf) if leaf[0].ndim else leaf[0] for leaf in zip(*parts)])
    return mapped(values[0], lambda one, _: next(together))


class Evaluation(_Trainer):
    """The part of `dsopt.hf.Trainer` that transformers' loop asks for losses and predictions."""

    def _wrap_model(self, model: Any, training: bool = True, dataloader: Any = None) -> Any:
        return torch.nn.Identity()  # nothing of a model is called here, nor is one changed for it

    def _outputs_of(self, example: Batch, ignored: Optional[List[str]]) -> List[Any]:
        """What of forward's outputs transformers takes for predictions, as `export` names them: in containers as they
        are in."""
        if ignored is None:
            ignored = getattr(getattr(self.model, "config", None), "keys_to_ignore_at_inference", None) or []
        training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                outputs = self.model(**example)
        finally:
            self.model.train(training)
        named = list(outputs.items()) if isinstance(outputs, dict) else [(str(at), one) for at, one in enumerate(outputs)]
        named = [(name, one) for name, one in named if name not in [*ignored, "loss", "" if isinstance(outputs, dict) else "0"]]
        others = []

        def name_of(value: Any, path: str) -> str:
            if not isinstance(value, torch.Tensor):
                others.append(f"{path}, a {type(value).__name__}")
            return path

        form = [mapped(one, name_of, name) for name, one in named]
        if others:
            raise DsoptError(f"dsopt.hf.Trainer does not have: predictions that are no tensors ({'; '.join(others)}; ignore_keys= "
                             "or the model's keys_to_ignore_at_inference leave them out)")
        return form

    @staticmethod
    def _names_in(form: List[Any]) -> List[str]:
        names: List[str] = []
        mapped(form, lambda name, _: names.append(name))
        return names

    def _with_labels(self, batch: Batch) -> Batch:
        """A batch of this form that has a loss: what it lacks is of the batch that was exported first."""
        known = self._first_example()
        rows, given = rows_in(known), rows_in(batch)
        lacking = {name: value[:given] if value.ndim and value.shape[0] == rows else value
                   for name, value in known.items() if name not in batch}
        if any(value.ndim and value.shape[0] < given for value in lacking.values()):
            raise DsoptError(f"a dataset without {', '.join(lacking)} is predicted in batches of {rows} rows or fewer, got {given}")
        return {**batch, **lacking}

    def _predicted(self, batches: List[Batch], loss: bool, form: List[Any]) -> List[Tuple[Any, List[Any]]]:
        """Loss and outputs of batches of one shape."""
        outputs = self._names_in(form)
        path = self._program(self._with_labels(batches[0]), outputs)
        names = ["loss"] * loss + list(map(output_name, outputs))
        if not names:
            return [(None, [])] * len(batches)
        if loss and self._counts:
            groups = [batches[at:at + self._ranks] for at in range(0, len(batches), self._ranks)]
            batches = [one for group in groups for one in self._counted(group)]
        there = [name for name in model_inputs(path) if name in batches[0]]
        arrays = {name: np.stack([to_array(batch[name]) for batch in batches]) for name in there}
        found = predict(path, arrays, outputs=names, weights=self._start_weights(), **self._common(forward=True))
        own = [mapped(form, lambda name, _: torch.from_numpy(found[output_name(name)][at])) for at in range(len(batches))]
        return [(torch.tensor(self._measured(float(found["loss"][at]))) if loss else None, one) for at, one in enumerate(own)]

    def evaluation_loop(self, dataloader: Any, description: str, prediction_loss_only: Optional[bool] = None,
                        ignore_keys: Optional[List[str]] = None, metric_key_prefix: str = "eval") -> Any:
        """transformers' loop, over batches whose losses and predictions are known before it begins. Each of its turns has
        those of all ranks, as they have been gathered there."""
        if not has_length(getattr(dataloader, "dataset", None)):
            raise DsoptError("dsopt.hf.Trainer does not have: an eval_dataset without a length")
        args, ranks = self.args, self._ranks
        loss_only = args.prediction_loss_only if prediction_loss_only is None else prediction_loss_only
        batches, counts = whole_batches([dict(batch) for batch in dataloader], args.per_device_eval_batch_size, ranks,
                                        args.dataloader_drop_last)
        if not batches:
            raise DsoptError("there is not one batch to evaluate")
        check_shapes(batches)
        has_loss = bool(self.label_names) and all(batches[0].get(name) is not None for name in self.label_names)
        form = [] if loss_only else self._outputs_of(self._with_labels(batches[0]), ignore_keys)
        full = [batch for batch in batches if rows_in(batch) == rows_in(batches[0])]
        answers = self._predicted(full, has_loss, form)
        if len(full) < len(batches):
            answers += self._predicted(batches[len(full):], has_loss, form)
        starts = range(0, len(batches), ranks)
        self._answers = iter([(answers[at:at + ranks], sum(counts[at:at + ranks])) for at in starts])
        self.gather_function = self._gather
        try:
            return super().evaluation_loop(Replay(dataloader, [joined(batches[at:at + ranks]) for at in starts]), description,
                                           prediction_loss_only, ignore_keys, metric_key_prefix)
        finally:
            self.gather_function = self.accelerator.gather_for_metrics

    def prediction_step(self, model: Any, inputs: Batch, prediction_loss_only: bool,
                        ignore_keys: Optional[List[str]] = None) -> Tuple[Any, Any, Any]:
        """The losses, predictions and labels of the loop's next turn."""
        answers, self._count = next(self._answers)
        losses = torch.stack([loss for loss, _ in answers]) if answers[0][0] is not None else None
        self._has_losses = losses is not None
        if prediction_loss_only:
            return losses, None, None
        outputs = joined([outputs for _, outputs in answers])
        labels = tuple(inputs[name] for name in self.label_names) if losses is not None else None
        return losses, outputs[0] if len(outputs) == 1 else tuple(outputs), labels[0] if labels and len(labels) == 1 else labels

    def _gather(self, value: Any) -> Any:
        """What of a turn's rows counts."""
        if self._has_losses:  # these come first, as a loss of each rank that is repeated for its rows
            self._has_losses = False
            value = value.reshape(-1, self._ranks).T.reshape(-1)
        return mapped(value, lambda one, _: one[:self._count])
