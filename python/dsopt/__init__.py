"""dsopt from Python: export a PyTorch model, train it, take the weights home.

    dsopt.export(model, example_inputs, "model.onnx")
    result = dsopt.train("model.onnx", loader, zero=3, dp=2, lr=3e-4)
    dsopt.load_weights(model, result.weights)

Nothing is computed here: `train` starts the compiled program and reads its
metrics. docs/Tutorial.md walks through it; docs/FromDeepSpeed.md has the four
calls of `initialize`.
"""
from . import writers
from ._callbacks import Best, Callback, KeepBest, Stop, StopAfter
from ._engine import Engine, Loss, initialize
from ._export import ExportReport, export
from ._find_lr import FoundRate, find_lr
from ._generate import generate
from ._run import Evaluation, Result, Run, evaluate, plan, predict, start, train
from ._tools import DsoptError, find_tool
from ._turns import in_turn
from ._universal import export_universal, import_universal
from ._weights import load_weights, read_weights, write_weights


def __getattr__(name: str) -> object:
    """Front ends, which need what they are a front of, come when they are asked for."""
    if name in ("accelerate", "deepspeed", "hf", "lightning"):
        import importlib

        return importlib.import_module("dsopt." + name)
    raise AttributeError(f"module 'dsopt' has no attribute '{name}'")


__version__ = "0.1.0"
__all__ = ["Best", "Callback", "DsoptError", "Engine", "Evaluation", "ExportReport", "FoundRate", "KeepBest", "Loss", "Result", "Run",
           "Stop", "StopAfter", "evaluate", "export", "export_universal", "find_lr", "find_tool", "generate", "import_universal",
           "in_turn", "initialize", "load_weights", "plan", "predict", "read_weights", "start", "train", "write_weights", "writers"]
