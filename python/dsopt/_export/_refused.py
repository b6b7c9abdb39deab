"""What cannot be exported is refused in one sentence."""
from __future__ import annotations

from typing import Optional


class Refused(ValueError):
    """What PyTorch means here and the file could not say. The message names it, and what to do."""


class NoLoss(Refused):
    """A model that gives no scalar to train."""


def refusal_in(error: BaseException) -> Optional[Refused]:
    """The refusal that an exporter passed on, wrapped in errors of its own."""
    seen = set()
    cause: Optional[BaseException] = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, Refused):
            return cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return None
