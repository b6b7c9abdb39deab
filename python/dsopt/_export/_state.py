"""What a model keeps from one forward to the next."""
from __future__ import annotations

from typing import Any, Dict, List, Tuple

from .._compat import buffers_of

_PLAIN = (bool, int, float, str, type(None))


def plain_copy(value: Any) -> Any:
    """A copy of a plain value or a short container of such; None of anything else, in a tuple either."""
    if isinstance(value, _PLAIN):
        return (value,)
    if type(value) in (list, tuple, set) and len(value) < 64 and all(isinstance(one, _PLAIN) for one in value):
        return (type(value)(value),)
    return None


class State:
    """Buffers, and attributes that are plain or tensors, of a model's modules as they are now."""

    def __init__(self, model: Any):
        import torch

        self.buffers: List[Tuple[Any, str, str, Any, Any]] = []
        self.attributes: List[Tuple[Any, str, Dict[str, Any]]] = []
        self.tensors: List[Tuple[Any, str, str, Any, Any]] = []
        self.names = [(module, set(vars(module))) for module in model.modules()]
        for path, module in model.named_modules():
            prefix = path + "." if path else ""
            for name, buffer in buffers_of(module).items():
                if buffer is not None:
                    self.buffers.append((module, name, prefix + name, buffer, buffer.detach().clone()))
            plain = {name: copy for name, value in vars(module).items() if (copy := plain_copy(value)) is not None}
            self.attributes.append((module, prefix, plain))
            self.tensors += [(module, name, prefix + name, value, value.detach().clone())
                             for name, value in vars(module).items() if isinstance(value, torch.Tensor)]

    @staticmethod
    def _differs(tensor: Any, value: Any) -> bool:
        import torch

        return not isinstance(tensor, torch.Tensor) or not torch.equal(tensor.detach().nan_to_num(), value.nan_to_num())

    def changed_buffers(self) -> List[str]:
        """Names of buffers that have another value now."""
        return [full for module, name, full, _, value in self.buffers if self._differs(buffers_of(module)[name], value)]

    def changed_attributes(self) -> List[str]:
        """Names of attributes that have another value now."""
        changed = [prefix + name for module, prefix, plain in self.attributes for name, (value,) in plain.items()
                   if plain_copy(vars(module).get(name)) != (value,)]
        return changed + [full for module, name, full, _, value in self.tensors
                          if self._differs(vars(module).get(name), value)]

    def restore_buffers(self) -> None:
        """Makes the buffers as they were."""
        import torch

        with torch.no_grad():
            for module, name, _, buffer, value in self.buffers:
                buffers_of(module)[name] = buffer
                if not torch.equal(buffer, value):
                    buffer.copy_(value)

    def restore(self) -> None:
        """Makes everything as it was."""
        import torch

        self.restore_buffers()
        for module, names in self.names:
            for name in set(vars(module)) - names:
                if isinstance(vars(module)[name], torch.Tensor):  # of tracing, which means nothing behind it
                    del vars(module)[name]
        for module, _, plain in self.attributes:
            now = vars(module)
            now.update((name, value) for name, (value,) in plain.items() if plain_copy(now.get(name)) != (value,))
        with torch.no_grad():
            for module, name, _, tensor, value in self.tensors:
                vars(module)[name] = tensor
                if not torch.equal(tensor, value):
                    tensor.data.copy_(value)
