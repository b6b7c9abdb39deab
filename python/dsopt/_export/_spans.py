"""SpecAugment as transformers draws it by NumPy, drawn by PyTorch: spans of equal length, masked in each row."""
from __future__ import annotations

import functools
import hashlib
import inspect
import io
import tokenize
from typing import Any

import torch

#: What the functions are, without comments and spaces: all models of transformers have a copy of the same one.
_KNOWN = {"5b002b37a7052922"}


@functools.lru_cache(maxsize=64)
def _digest(function: Any) -> str:
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    tokens = [one.string for one in tokenize.generate_tokens(io.StringIO(source).readline) if one.type not in skipped]
    body = tokens[tokens.index(":", tokens.index("->")) + 1:] if "->" in tokens else tokens
    words = [one for one in body if not one.startswith(('"""', "'''"))]
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]


def is_span_mask(value: Any) -> bool:
    """Whether a value is transformers' function that draws such masks, in a form whose distribution is known."""
    return getattr(value, "__name__", "") == "_compute_mask_indices" and inspect.isfunction(value) and _digest(value) in _KNOWN


def span_mask(shape: Any, mask_prob: float, mask_length: int, attention_mask: Any = None, min_masks: int = 0) -> Any:
    """The mask: in each row spans at as many different places as the row's length asks for, rounded at random."""
    rows, length = shape
    if mask_length < 1 or mask_length > length:
        raise ValueError(f"mask_length is {mask_length}, expected 1 to the length {length}")
    lengths = torch.full((rows,), length) if attention_mask is None else attention_mask.detach().sum(-1).long()
    rounding = torch.rand(1)

    def count(of: Any) -> Any:
        spans = torch.floor(mask_prob * of / mask_length + rounding).long().clamp(min=min_masks)
        spans = torch.where(spans * mask_length > length, torch.full((), length // mask_length), spans)
        room = of - (mask_length - 1)
        return torch.where(room < spans, room.clamp(min=0), spans)

    spans, most = count(lengths), count(torch.full((1,), length))
    # The first places of a random order of those where a span has room.
    places = torch.arange(length)
    order = torch.where(places < (lengths - (mask_length - 1)).unsqueeze(-1), torch.rand((rows, length)), torch.full((), 2.0))
    rank = torch.argsort(torch.argsort(order, dim=-1), dim=-1)
    starts = (rank < spans.unsqueeze(-1)).long().cumsum(-1)
    before = torch.nn.functional.pad(starts, (mask_length, 0))[:, :length]
    masked = (starts - before) > 0
    # A row without a span of its own has its last place masked where a whole row would have spans.
    last = (places == length - 1) & ((spans == 0) & (most > 0)).unsqueeze(-1)
    return masked | last
