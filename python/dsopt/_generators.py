"""Generators of random numbers, Python's, NumPy's and PyTorch's, and their states."""
from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

#: Those that Python and NumPy draw from where none is named.
GLOBAL = {"random": random.random.__self__, "numpy.random": np.random.rand.__self__}  # type: ignore[attr-defined]


def _is_torchs(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Generator)


def is_generator(value: Any) -> bool:
    """Whether a value draws random numbers."""
    return isinstance(value, (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)) or _is_torchs(value)


def state_of(generator: Any) -> Any:
    """The state of such a value, to be compared and set again: of numbers, texts, tuples, dicts and arrays. None of what has
    none, the system's."""
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    if _is_torchs(generator):
        return generator.get_state().numpy()
    return getattr(generator, "bit_generator", generator).state


def set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        if state is not None:
            generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    elif _is_torchs(generator):
        generator.set_state(sys.modules["torch"].from_numpy(state))
    else:
        getattr(generator, "bit_generator", generator).state = state
