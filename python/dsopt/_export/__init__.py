"""From a PyTorch model to an ONNX model that trains.

What an exporter writes by default loses parameters and all that PyTorch knows of
gradients. Here the settings keep every parameter, a recorder sees what the model calls
while it is traced (_recorder.py), each parameter is looked for in the file, and the
file is compared with PyTorch (_check.py). docs/Export.md says what is kept.
"""
from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence

from .._tools import need
from ._inputs import named_inputs, pick_loss
from ._progress import Progress
from ._refused import NoLoss, Refused

__all__ = ["ExportReport", "NoLoss", "Refused", "export", "named_inputs", "pick_loss"]

_INLINE_LIMIT = 1_500_000_000  # a protobuf of 2 GB cannot be written


@dataclass
class ExportReport:
    """What became of a model's parameters."""
    path: str
    parameters: int  #: initializers that are parameters or buffers of the model
    transposed: List[str]  #: stored the other way round
    unused: List[str]  #: the loss does not depend on them; they are not in the file, or not trained
    inputs: List[str]
    exporter: str = ""  #: PyTorch's: "dynamo" or "torchscript"
    settings: str = ""  #: of the model that were changed while it was exported
    options: Dict[str, Any] = field(default_factory=dict)  #: defaults that the file carries
    checked: str = ""  #: how it was compared with PyTorch, or why not


def export(model: Any, example_inputs: Any, path: "os.PathLike[str] | str", *,
           loss: Optional[Callable[[Any, Dict[str, Any]], Any]] = None, opset: int = 20,
           dynamic_shapes: Any = None, exporter: Optional[str] = None, check: bool = True,
           optimizer: Any = None, outputs: Sequence[str] = ()) -> ExportReport:
    """Writes a PyTorch model and its loss as an ONNX model that dsopt trains.

    example_inputs  a dict of inputs by name (a tuple takes forward's names): one micro-batch. Its shapes are the
                    program's, unless `dynamic_shapes` (as torch.onnx.export takes them, one for each input) says more.
                    What is no tensor (use_cache=False) is fixed.
    loss            loss(outputs, inputs) -> scalar. forward then gets of the inputs what its signature has; the loss gets
                    all of them, labels too (the second element of a tuple is inputs["labels"]). Without it, forward has
                    to return the loss, or an output with `.loss`, as models of transformers do when they are given labels.
    exporter        PyTorch's: "dynamo", or "torchscript", its older one; by default the first that works.
    check           compares loss and gradients with PyTorch's, on the example and on other values (docs/Export.md)
    optimizer       a new torch.optim optimizer: its kind, its rates and what its groups say are in the file as defaults
    outputs         tensors of what forward returns that the file gives beside the loss, by name ("logits") or, of a
                    tuple, by place ("1", which is output1 in the file), and by both ("hidden_states.0") in what is
                    nested: for dsopt.predict, log_outputs= and metric="accuracy:logits,labels"

    The model is exported in the mode it is in. Every parameter that the loss depends on is found again in the
    file, with its value and under PyTorch's name, or this raises: none is folded, merged or dropped.
    """
    need("torch", "onnx", "onnxscript")
    from ._write import write

    path = os.fspath(path)
    with Progress() as progress:
        report, told = write(model, example_inputs, path, loss, opset, dynamic_shapes, exporter, check, optimizer, outputs, progress)
    for line in told:
        warnings.warn(line, stacklevel=2)
    return report
