"""Private interfaces of other packages: all that this one reaches, each with what is needed of it.

A version without one of them is named by the error, here and nowhere else; pyproject.toml bounds the versions to those
that were tried. Nothing is imported before it is asked for: dsopt works without PyTorch.
"""
from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from importlib import metadata
from typing import Any, Callable, Dict, List

from ._tools import DsoptError

#: What classes of dsopt replace or set of the private names of their bases in other packages: as these call them.
#: transformers' Trainer: _wrap_model(model, training, dataloader) makes what its loop evaluates with, and
#: _train_batch_size is what its loaders take for the size of a batch.
OVERRIDDEN = {"_wrap_model", "_train_batch_size"}
#: Which extra of pyproject.toml bounds the versions of a package.
_EXTRAS = {"torch": "export", "transformers": "hf", "accelerate": "accelerate", "lightning": "lightning",
           "pytorch-lightning": "lightning"}


def _reach(package: str, owner: Any, names: str, use: str) -> Any:
    """A name of an object of a package, or of one inside: "a.b"."""
    value = owner
    for name in names.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            place = owner.__name__ if inspect.ismodule(owner) else type(owner).__qualname__
            raise DsoptError(f"{package} {_version(package)} has no {place}.{names}, which dsopt needs to {use}"
                             f"{_remedy(package)}") from None
    return value


def _module(package: str, name: str, use: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name is None or not name.startswith(error.name):
            raise  # something that it imports is not there
        raise DsoptError(f"{package} {_version(package)} has no module {name}, which dsopt needs to {use}"
                         f"{_remedy(package)}") from None


def _remedy(package: str) -> str:
    return f": pip install 'dsopt[{_EXTRAS[package]}]' takes a version that has it"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(of an unknown version)"


# PyTorch.

def nn_function(name: str) -> Any:
    """torch._C._nn: functions of torch.nn.functional as a mode of torch functions gets them, by which rules are found."""
    return _reach("torch", _module("torch", "torch", "export"), f"_C._nn.{name}", "see calls of that function")


def builtin_function(name: str) -> Any:
    """torch._C._VariableFunctions: those of torch that are wrapped in Python, likewise."""
    return _reach("torch", _module("torch", "torch", "export"), f"_C._VariableFunctions.{name}", "see calls of that function")


def derivatives_module() -> Any:
    """torch._functorch.eager_transforms: what torch.func's derivatives call, _vjp_with_argnums and grad_and_value_impl."""
    return _module("torch", "torch._functorch.eager_transforms", "see derivatives that are taken in forward")


def destination_of(arguments: Any, keywords: Any) -> Any:
    """Device and type that the arguments of Module.to name (torch._C._nn._parse_to), None where they name none."""
    return nn_function("_parse_to")(*arguments, **keywords)[:2]


def indices_left(iterator: Any) -> Any:
    """What a pass of a DataLoader still draws in this process, where each pass has workers of its own: the rest of its
    sampler. None where reading may draw more, or keep something."""
    kind = getattr(sys.modules.get("torch.utils.data.dataloader"), "_MultiProcessingDataLoaderIter", None)
    if kind is None or type(iterator) is not kind or getattr(iterator, "_persistent_workers", True):
        return None
    if not hasattr(getattr(iterator, "_dataset", None), "__getitem__"):
        return iter(())  # of an iterable dataset: its sampler draws nothing
    return getattr(iterator, "_sampler_iter", None)


def tensor_module() -> Any:
    """torch._tensor: the Python part of tensors' methods, whose checks for modes are put off while one is active."""
    return _module("torch", "torch._tensor", "see what methods of tensors call")


@functools.lru_cache(maxsize=None)
def _tree(name: str) -> Callable[..., Any]:
    use = "find tensors in containers"
    found: Callable[..., Any] = _reach("torch", _module("torch", "torch.utils._pytree", use), name, use)
    return found


def tree_leaves(value: Any) -> List[Any]:
    """torch.utils._pytree.tree_leaves: what is in nested containers, with those that packages have registered."""
    leaves: List[Any] = _tree("tree_leaves")(value)
    return leaves


def tree_map(function: Callable[[Any], Any], value: Any) -> Any:
    """torch.utils._pytree.tree_map: such containers anew, of what a function makes of what is in them."""
    return _tree("tree_map")(function, value)


def storage_key(tensor: Any) -> int:
    """UntypedStorage._cdata: a number that two tensors share where they share memory, fake tensors' too (data_ptr() of those
    is 0)."""
    return int(_reach("torch", tensor.untyped_storage(), "_cdata", "tell whether tensors share memory"))


def changes_of(tensor: Any) -> int:
    """Tensor._version: counts changes in place."""
    return int(_reach("torch", tensor, "_version", "see that a tensor has been changed in place"))


def plainly(condition: Any) -> bool:
    """torch._C.DisableTorchFunction: the value of a tensor of one element, which no mode sees."""
    owner = _module("torch", "torch", "export")
    with _reach("torch", owner, "_C.DisableTorchFunction", "compute both sides of branches")():
        return bool(condition)


def buffers_of(module: Any) -> Dict[str, Any]:
    """Module._buffers: the dict itself, through which a buffer is put back where forward has bound another."""
    found: Dict[str, Any] = _reach("torch", module, "_buffers", "put buffers back after tracing")
    return found


def forward_hooks_of(module: Any) -> List[Dict[int, Any]]:
    """Module._forward_hooks, _forward_pre_hooks and what says how they are called: the dicts themselves."""
    names = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called")
    return [_reach("torch", module, name, "take hooks away that forward registers while it is traced") for name in names]


def uncompiled(model: Any) -> Any:
    """OptimizedModule._orig_mod: the model that torch.compile was given, whose forward says what it takes; else the model."""
    return getattr(model, "_orig_mod", model)


def has_gradient_hook(parameter: Any) -> bool:
    """Tensor._backward_hooks and _post_accumulate_grad_hooks: empty where nobody has registered one."""
    use = "see hooks on gradients"
    return bool(_reach("torch", parameter, "_backward_hooks", use)) or bool(
        _reach("torch", parameter, "_post_accumulate_grad_hooks", use))


def has_backward_hook(module: Any) -> bool:
    """Module._backward_hooks and _backward_pre_hooks: likewise."""
    use = "see hooks on gradients"
    return bool(_reach("torch", module, "_backward_hooks", use)) or bool(_reach("torch", module, "_backward_pre_hooks", use))


def is_normalization(module: Any) -> bool:
    """batchnorm._NormBase: the base of all layers with running statistics."""
    owner = _module("torch", "torch.nn.modules.batchnorm", "know layers with running statistics")
    return isinstance(module, _reach("torch", owner, "_NormBase", "know layers with running statistics"))


def sizes_as_symbols(needed: bool) -> "contextlib.AbstractContextManager[Any]":
    """torch.fx.experimental._config.backed_size_oblivious: a dimension that may vary isn't taken for the example's size where
    that is 0 or 1. Needed where dimensions may vary only."""
    use = "export sizes that vary"
    try:
        config = _module("torch", "torch.fx.experimental._config", use)
        _reach("torch", config, "backed_size_oblivious", use)
    except DsoptError:
        if needed:
            raise
        return contextlib.nullcontext()
    found: "contextlib.AbstractContextManager[Any]" = config.patch(backed_size_oblivious=True)
    return found


def export_by_torchscript(*arguments: Any, **options: Any) -> None:
    """torch.onnx.export(dynamo=False), which is deprecated: the only exporter of models that torch.export cannot trace."""
    export = _module("torch", "torch.onnx", "export").export
    if "dynamo" not in inspect.signature(export).parameters:
        raise DsoptError(f"torch {_version('torch')} has no torch.onnx.export(dynamo=False), which dsopt needs to export by "
                         "torchscript: the exporter dynamo is left")
    export(*arguments, dynamo=False, **options)


def reads_of(tensor: Any) -> Callable[[], int]:
    """torch._C._get_value_trace: what tells how often the graph that torchscript traces has read a tensor so far."""
    found = _reach("torch", _module("torch", "torch", "export"), "_C._get_value_trace", "see that a number is no constant of a file")
    value = found(tensor)
    return lambda: len(value.uses())


def constant_of(value: Any, kind: str) -> Any:
    """symbolic_helper._get_const: a constant argument of a symbolic of torchscript's exporter ("i", "f" or "s")."""
    owner = _module("torch", "torch.onnx.symbolic_helper", "export by torchscript")
    return _reach("torch", owner, "_get_const", "export by torchscript")(value, kind, "")


def list_of(value: Any) -> List[Any]:
    """symbolic_helper._unpack_list: the values of a list that such a symbolic is given."""
    owner = _module("torch", "torch.onnx.symbolic_helper", "export by torchscript")
    return list(_reach("torch", owner, "_unpack_list", "export by torchscript")(value))


def note_step(optimizer: Any) -> None:
    """Optimizer._opt_called: what schedulers look for; without it they warn of a step before the optimizer's."""
    optimizer._opt_called = True


def scheduler_steps(scheduler: Any) -> int:
    """LRScheduler._step_count: how often it has stepped, the first time when it is made."""
    return int(_reach("torch", scheduler, "_step_count", "step schedulers as accelerate does"))


def skip_scheduler_step(scheduler: Any) -> None:
    """LRScheduler._step_count: what accelerate counts up in place of a step within a window."""
    scheduler._step_count = scheduler_steps(scheduler) + 1


# transformers, and accelerate beside it.

def use_one_device(args: Any) -> None:
    """TrainingArguments._n_gpu: the devices of one process, which multiply a batch; those are dsopt's ranks."""
    _reach("transformers", args, "_n_gpu", "have batches of one device")
    args._n_gpu = 1


def compute_steps(state: Any, args: Any, steps: int) -> None:
    """TrainerState.compute_steps: makes absolute counts of logging_steps, eval_steps and save_steps."""
    _reach("transformers", state, "compute_steps", "log, evaluate and save at transformers' steps")(args, steps)


def items_in(trainer: Any, batches: List[Any], device: Any) -> Any:
    """Trainer._get_num_items_in_batch: what a summed loss is divided by; None where the model does not take it."""
    return _reach("transformers", trainer, "_get_num_items_in_batch", "divide losses as transformers does")(batches, device)


def is_best(trainer: Any, metrics: Any) -> bool:
    """Trainer._determine_best_metric: compares, and keeps the best metric and its step in the state."""
    return bool(_reach("transformers", trainer, "_determine_best_metric", "keep the best model")(metrics=metrics, trial=None))


def sets_experts(module: Any) -> bool:
    """PreTrainedModel._can_set_experts_implementation: whether a model mixes experts in a way that can be chosen. Other
    modules, and models of versions without such a choice, do not have it."""
    return bool(getattr(type(module), "_can_set_experts_implementation", lambda: False)())


def setting_key(name: str) -> str:
    """PreTrainedConfig._NAME_internal: where a configuration keeps what set_NAME() chose, by which it's set back."""
    return f"_{name}_internal"


@contextlib.contextmanager
def active_loader(state: Any, loader: Any) -> Any:
    """GradientState._add_dataloader and _remove_dataloader of accelerate: a loader whose end_of_dataloader is asked for."""
    use = "evaluate in transformers' loop"
    _reach("accelerate", state, "_add_dataloader", use)(loader)
    try:
        yield
    finally:
        _reach("accelerate", state, "_remove_dataloader", use)(loader)


# Lightning: `package` is lightning.pytorch or pytorch_lightning.

#: LightningModule._trainer: what its property `trainer` gives, and self.log.
TRAINER_KEY = "_trainer"


def _lightning(package: str) -> str:
    return package.partition(".")[0].replace("pytorch_lightning", "pytorch-lightning")


def synchronizes_batchnorm(package: str, trainer: Any) -> bool:
    """Trainer._accelerator_connector._layer_sync: not None with sync_batchnorm=True."""
    use = "refuse sync_batchnorm"
    return _reach(_lightning(package), trainer, "_accelerator_connector._layer_sync", use) is not None


def shares_data(package: str, trainer: Any) -> bool:
    """Trainer._accelerator_connector.use_distributed_sampler."""
    return bool(_reach(_lightning(package), trainer, "_accelerator_connector.use_distributed_sampler", "share data among ranks"))


def detects_anomaly(package: str, trainer: Any) -> bool:
    """Trainer._detect_anomaly."""
    return bool(_reach(_lightning(package), trainer, "_detect_anomaly", "refuse detect_anomaly"))


def loader_of_rank(package: str, loader: Any, trainer: Any, ranks: int, rank: int) -> Any:
    """utilities.data._update_dataloader and data_connector._get_distributed_sampler: a loader like another, with a rank's rows
    as Lightning would choose them."""
    use, name = "share data among ranks", _lightning(package)
    update = _reach(name, _module(name, package + ".utilities.data", use), "_update_dataloader", use)
    sampler = _reach(name, _module(name, package + ".trainer.connectors.data_connector", use), "_get_distributed_sampler", use)
    mode = trainer.state.stage
    return update(loader, sampler(loader, True, trainer.overfit_batches, mode=mode, num_replicas=ranks, rank=rank), mode=mode)


def train_loaders(package: str, trainer: Any) -> Any:
    """fit_loop._combined_loader.iterables: what the strategy made of the train loaders."""
    return _reach(_lightning(package), trainer.fit_loop, "_combined_loader.iterables", "refuse several train loaders")


def forget_loaders(package: str, trainer: Any) -> None:
    """fit_loop._combined_loader = None: the loop makes its loaders anew."""
    _reach(_lightning(package), trainer.fit_loop, "_combined_loader", "go on from a checkpoint")
    trainer.fit_loop._combined_loader = None
