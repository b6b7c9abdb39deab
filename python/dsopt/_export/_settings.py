"""Settings of models that are set while they are exported."""
from __future__ import annotations

import contextlib
import warnings
from typing import Any, Iterator, List, Tuple

from .._compat import sets_experts, setting_key
from ._state import State


@contextlib.contextmanager
def exporting(model: Any, code: Any = ()) -> Iterator[State]:
    """No warnings of the exporter, no cache of keys and values, which is no part of training, and nothing that
    torch.compile compiled; what forward, with its code, changes and draws is as before afterwards."""
    import torch

    configs = {id(config): config for module in model.modules() if (config := getattr(module, "config", None)) is not None
               and getattr(config, "use_cache", None) is True}
    for config in configs.values():
        config.use_cache = False
    state = State(model, code)
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]), torch.compiler.set_stance("force_eager"), _unchecked():
            warnings.simplefilter("ignore")
            yield state
    finally:
        state.close()
        for config in configs.values():
            config.use_cache = True


@contextlib.contextmanager
def _unchecked() -> Iterator[None]:
    """Distributions take what they are given: they look at values, which no program can."""
    import torch

    kind: Any = torch.distributions.Distribution
    before = {name: kind.__dict__[name] for name in ("_validate_args", "_validate_sample", "__init__")}

    def build(self: Any, batch_shape: Any = torch.Size(), event_shape: Any = torch.Size(), validate_args: Any = None) -> None:
        before["__init__"](self, batch_shape, event_shape, validate_args=False)

    for name, value in (("_validate_args", False), ("_validate_sample", lambda self, value: None), ("__init__", build)):
        setattr(kind, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(kind, name, value)


class Setting:
    """A choice of the models of transformers inside a module that can be made otherwise for a while."""

    def __init__(self, model: Any, name: str, value: str):
        self.words, self.value = f'{name}="{value}"', value
        self.method, self.attribute = f"set_{name}", setting_key(name)
        parts = [module for module in model.modules() if hasattr(module, self.method)]
        inner = {id(one) for part in parts for one in part.modules() if one is not part}
        self.models = [part for part in parts if id(part) not in inner]
        configs = {id(part.config): part.config for part in parts if hasattr(part.config, self.attribute)}
        self.before = [(config, getattr(config, self.attribute)) for config in configs.values()]

    @property
    def applies(self) -> bool:
        return any(isinstance(value, str) and value != self.value for _, value in self.before)

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        for model in self.models:
            getattr(model, self.method)(self.value)
        try:
            yield
        finally:
            for config, value in self.before:
                setattr(config, self.attribute, value)


def needed_settings(model: Any) -> List[Setting]:
    """What no exporter can do without: experts as batched products."""
    mixes = any(map(sets_experts, model.modules()))
    experts = Setting(model, "experts_implementation", "batched_mm")
    return [experts] if mixes and experts.applies else []


def other_settings(model: Any) -> List[Setting]:
    """What may help where an exporter fails."""
    attention = Setting(model, "attn_implementation", "eager")
    return [attention] if attention.applies else []


def set_all(settings: List[Setting]) -> Tuple[contextlib.ExitStack, str]:
    """The settings made; leaving the stack undoes them. In words too."""
    stack = contextlib.ExitStack()
    for setting in settings:
        stack.enter_context(setting.set())
    return stack, ", ".join(setting.words for setting in settings)
