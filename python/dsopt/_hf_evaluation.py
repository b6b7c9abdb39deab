"""How `dsopt.hf.Trainer` measures: transformers' own evaluation loop over what a compiled program predicts."""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import torch
from transformers.trainer_utils import has_length

from ._data import model_inputs
from ._run import predict
from ._stream import to_array
from ._tools import DsoptError

Batch = Dict[str, Any]


class Replay:
    """What transformers' loop takes for a loader: batches that were read once, whatever draws them."""

    def __init__(self, loader: Any, batches: Sequence[Batch]):
        self.dataset, self._batches = getattr(loader, "dataset", None), batches

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)


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


def truncated(value: Any, rows: int) -> Any:
    """The first rows of all tensors."""
    if isinstance(value, (list, tuple)):
        return type(value)(truncated(one, rows) for one in value)
    if isinstance(value, dict):
        return type(value)({name: truncated(one, rows) for name, one in value.items()})
    return value[:rows]


class Evaluation:
    """The part of `dsopt.hf.Trainer` that transformers' loop asks for losses and predictions."""

    _resume: Optional[str] = None  #: the checkpoint whose weights are measured; None: the model has them

    def _wrap_model(self, model: Any, training: bool = True, dataloader: Any = None) -> Any:
        return torch.nn.Identity()  # nothing of a model is called here, nor is one changed for it

    def _outputs_of(self, example: Batch, ignored: Optional[List[str]]) -> List[str]:
        """What of forward's outputs transformers takes for predictions, as `export` names them."""
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
        nested = [name for name, one in named if not isinstance(one, torch.Tensor)]
        if nested:
            raise DsoptError(f"dsopt.hf.Trainer does not have: predictions that are no tensors ({', '.join(nested)}; ignore_keys= "
                             "or the model's keys_to_ignore_at_inference leave them out)")
        return [name for name, _ in named]

    def _with_labels(self, batch: Batch) -> Batch:
        """A batch of this form that has a loss: what it lacks is of the batch that was exported first."""
        known = self._first_example()
        rows, given = rows_in(known), rows_in(batch)
        lacking = {name: value[:given] if value.ndim and value.shape[0] == rows else value
                   for name, value in known.items() if name not in batch}
        if any(value.ndim and value.shape[0] < given for value in lacking.values()):
            raise DsoptError(f"a dataset without {', '.join(lacking)} is predicted in batches of {rows} rows or fewer, got {given}")
        return {**batch, **lacking}

    def _predicted(self, batches: List[Batch], loss: bool, outputs: Optional[List[str]]) -> List[Tuple[Any, List[Any]]]:
        """Loss and outputs of batches of one shape."""
        path, outputs = self._program(self._with_labels(batches[0]), outputs)
        names = ["loss"] * loss + [f"output{name}" if name.isdigit() else name for name in outputs]
        if not names:
            return [(None, [])] * len(batches)
        if loss and self._counts:
            groups = [batches[at:at + self._ranks] for at in range(0, len(batches), self._ranks)]
            batches = [one for group in groups for one in self._counted(group)]
        there = [name for name in model_inputs(path) if name in batches[0]]
        arrays = {name: np.stack([to_array(batch[name]) for batch in batches]) for name in there}
        weights = {"resume": self._resume} if self._resume else {"weights": self._start_weights()}
        found = predict(path, arrays, outputs=names, **weights, **self._common(forward=True))
        own = [[torch.from_numpy(found[name][at]) for name in names[loss:]] for at in range(len(batches))]
        return [(torch.tensor(self._measured(float(found["loss"][at]))) if loss else None, one) for at, one in enumerate(own)]

    def evaluation_loop(self, dataloader: Any, description: str, prediction_loss_only: Optional[bool] = None,
                        ignore_keys: Optional[List[str]] = None, metric_key_prefix: str = "eval") -> Any:
        """transformers' loop, over batches whose losses and predictions are known before it begins."""
        if not has_length(getattr(dataloader, "dataset", None)):
            raise DsoptError("dsopt.hf.Trainer does not have: an eval_dataset without a length")
        args = self.args
        loss_only = args.prediction_loss_only if prediction_loss_only is None else prediction_loss_only
        size = args.per_device_eval_batch_size
        batches, counts = whole_batches([dict(batch) for batch in dataloader], size, self._ranks, args.dataloader_drop_last)
        if not batches:
            raise DsoptError("there is not one batch to evaluate")
        check_shapes(batches)
        has_loss = bool(self.label_names) and all(batches[0].get(name) is not None for name in self.label_names)
        outputs: Optional[List[str]] = [] if loss_only else None
        if outputs is None:
            outputs = self._outputs_of(self._with_labels(batches[0]), ignore_keys)
        full = [batch for batch in batches if rows_in(batch) == rows_in(batches[0])]
        answers = self._predicted(full, has_loss, outputs)
        if len(full) < len(batches):
            answers += self._predicted(batches[len(full):], has_loss, outputs)
        self._answers = iter(zip(answers, counts))
        self.gather_function = lambda value: truncated(value, self._count)
        try:
            return super().evaluation_loop(Replay(dataloader, batches), description, prediction_loss_only, ignore_keys,
                                           metric_key_prefix)
        finally:
            self.gather_function = self.accelerator.gather_for_metrics

    def prediction_step(self, model: Any, inputs: Batch, prediction_loss_only: bool,
                        ignore_keys: Optional[List[str]] = None) -> Tuple[Any, Any, Any]:
        """The loss, predictions and labels of the loop's next batch."""
        (loss, outputs), self._count = next(self._answers)
        if prediction_loss_only:
            return loss, None, None
        labels = tuple(inputs[name] for name in self.label_names) if loss is not None else None
        return loss, outputs[0] if len(outputs) == 1 else tuple(outputs), labels[0] if labels and len(labels) == 1 else labels
