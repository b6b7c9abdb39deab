"""What dsopt reaches of other packages' private interfaces is there, and a version without one is named.

usage: compat.py SOURCE BUILD
"""
import ast
import inspect
import os
import re
import sys

source = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(source, "python"))

from checks import check  # noqa: E402
from dsopt import DsoptError, _compat  # noqa: E402

check(not {"torch", "transformers", "accelerate", "lightning"} & set(sys.modules), "nothing is imported before it is asked for")

import accelerate  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import dsopt.accelerate  # noqa: E402
import dsopt.hf  # noqa: E402
import dsopt.lightning  # noqa: E402


def said(function):
    try:
        function()
    except DsoptError as error:
        return str(error)
    return "nothing"


def without(owner, name, function):
    """What is said where a name is gone."""
    kept = owner.__dict__[name]
    delattr(owner, name)
    try:
        return said(function)
    finally:
        setattr(owner, name, kept)


layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
weight = layer.weight
for name in ("cross_entropy_loss",):
    check(callable(_compat.nn_function(name)), name)
for name in ("cdist", "einsum"):
    check(callable(_compat.builtin_function(name)), name)
check(_compat.tree_leaves([1, {"a": (2, 3)}]) == [1, 2, 3], "leaves of containers")
check(_compat.tree_map(str, [1, {"a": (2,)}]) == ["1", {"a": ("2",)}], "containers anew")
check(_compat.storage_key(weight[0]) == _compat.storage_key(weight) != _compat.storage_key(layer.bias), "keys of memory")
before = _compat.changes_of(weight)
with torch.no_grad():
    weight.add_(1)
check(_compat.changes_of(weight) > before, "changes in place are counted")
norm = torch.nn.BatchNorm1d(2)
check(_compat.buffers_of(norm)["running_mean"] is norm.running_mean, "buffers")
check(_compat.forward_hooks_of(norm)[0] is norm._forward_hooks and not any(_compat.forward_hooks_of(norm)), "hooks of forward")
check(_compat.is_normalization(norm) and not _compat.is_normalization(layer), "normalizations")
check(not _compat.has_gradient_hook(weight) and not _compat.has_backward_hook(layer), "no hooks")
for register in (weight.register_hook, weight.register_post_accumulate_grad_hook):
    hook = register(lambda value: None)
    check(_compat.has_gradient_hook(weight), "a hook on a gradient")
    hook.remove()
for register in (layer.register_full_backward_hook, layer.register_full_backward_pre_hook):
    hook = register(lambda *given: None)
    check(_compat.has_backward_hook(layer), "a hook on a module's gradients")
    hook.remove()
with _compat.sizes_as_symbols(needed=True):
    check(torch.fx.experimental._config.backed_size_oblivious, "sizes are symbols")
check(not torch.fx.experimental._config.backed_size_oblivious, "sizes are as before")
_compat.note_step(optimizer)
first = _compat.scheduler_steps(scheduler)
_compat.skip_scheduler_step(scheduler)
check(_compat.scheduler_steps(scheduler) == first + 1, "a scheduler's steps")

arguments = transformers.TrainingArguments("out", use_cpu=True, report_to=[], logging_steps=0.5, max_steps=8)
_compat.use_one_device(arguments)
check(arguments.n_gpu == 1, "one device")
state = transformers.TrainerState()
_compat.compute_steps(state, arguments, 8)
check(state.logging_steps == 4, "half of the steps")
gradients = accelerate.state.GradientState()
with _compat.active_loader(gradients, norm):
    check(gradients.active_dataloader is norm, "the active loader")
check(gradients.active_dataloader is None, "no loader is active")
config = transformers.GPT2Config(attn_implementation="eager")
check(getattr(config, _compat.setting_key("attn_implementation")) == "eager", "where a configuration keeps a choice")
check(hasattr(transformers.PreTrainedModel, "_can_set_experts_implementation"), "whether experts can be chosen")

# A version without one of them.
message = without(torch.nn.modules.batchnorm, "_NormBase", lambda: _compat.is_normalization(norm))
check(message == f"torch {torch.__version__.partition('+')[0]} has no torch.nn.modules.batchnorm._NormBase, which dsopt needs to know "
      "layers with running statistics: pip install 'dsopt[export]' takes a version that has it", message)
check("torch._C._nn.gone" in said(lambda: _compat.nn_function("gone")), "a function of torch")
check("TrainerState.compute_steps" in without(transformers.trainer_callback.ExportableState if not hasattr(
    transformers.TrainerState, "compute_steps") else transformers.TrainerState, "compute_steps",
    lambda: _compat.compute_steps(state, arguments, 8)), "a method of transformers")
check("[lightning]" in said(lambda: _compat.detects_anomaly("lightning.pytorch", state)), "which extra has Lightning")
exporter, torch.onnx.export = torch.onnx.export, lambda *given: None
check("torch.onnx.export(dynamo=False)" in said(lambda: _compat.export_by_torchscript()), "no exporter by torchscript")
torch.onnx.export = exporter
settings = torch.fx.experimental._config
kept = settings._config.pop("backed_size_oblivious")
try:
    with _compat.sizes_as_symbols(needed=False):
        pass
    check("backed_size_oblivious" in said(lambda: _compat.sizes_as_symbols(needed=True)), "a setting of torch")
finally:
    settings._config["backed_size_oblivious"] = kept


# A private name of a base that a class of dsopt has, too: it is replaced, and has to be meant.
def attributes(tree):
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name) and node.value.id == "self"}


found = set()
for kind in (dsopt.hf.Trainer, dsopt.lightning.Strategy, dsopt.accelerate._Optimizer):
    own, bases = set(), set()
    for one in kind.__mro__[:-1]:
        names = {name for name in vars(one) if not name.startswith("__")}
        if one.__module__.startswith("dsopt."):
            own |= names | attributes(ast.parse(inspect.getsource(one)))
        elif not one.__module__.startswith(("typing", "abc")):
            bases |= names | set(re.findall(r"\bself\.(_\w+)\b[^=\n]*=[^=]", inspect.getsource(one)))
    found |= {name for name in own & bases if name.startswith("_") and name not in ("_abc_impl",)}
check(found == _compat.OVERRIDDEN, f"private names of bases that dsopt replaces: {sorted(found)}, expected {sorted(_compat.OVERRIDDEN)}")

# The package's bounds admit the versions that these tests are run with.
from packaging.requirements import Requirement  # noqa: E402

with open(os.path.join(source, "test", "torch-requirements.txt")) as file:
    pins = dict(line.split("==") for line in file.read().split("\n") if "==" in line)
with open(os.path.join(source, "python", "pyproject.toml")) as file:
    project = file.read().partition("[project.scripts]")[0].partition("[project]")[2]
bounds = [Requirement(text) for line in re.findall(r"^\w+ = (\[.*\])$", project, re.M) for text in ast.literal_eval(line)]
bounds = [one for one in bounds if one.name != "dsopt"]
check({one.name for one in bounds} == {"numpy", "onnx", "onnxscript", "torch", "transformers", "accelerate", "lightning"}, bounds)
for one in bounds:
    check(any(part.operator == "<" for part in one.specifier) and one.specifier.contains(pins[one.name]),
          f"pyproject.toml says {one}, expected bounds that admit {pins[one.name]} and not what comes after it")
print("passed")
