"""What cannot be exported is refused in one sentence."""
from __future__ import annotations

from typing import Any, List, Optional


class Refused(ValueError):
    """What PyTorch means here and the file could not say. The message names it, and what to do."""


class Decides(Refused):
    """Python decides by what forward draws, at a line of this code."""

    def __init__(self, words: str, code: Any, line: int):
        super().__init__(words)
        self.code, self.line = code, line


class NoLoss(Refused):
    """A model that gives no scalar to train."""


def chain_of(error: BaseException, outer: Optional[BaseException]) -> List[BaseException]:
    """An error and what it was raised for; `outer`, which whoever exports was handling, is no part of it."""
    chain: List[BaseException] = []
    cause: Optional[BaseException] = error
    while cause is not None and cause is not outer and not any(cause is one for one in chain):
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def refusal_in(error: BaseException, outer: Optional[BaseException]) -> Optional[Refused]:
    """The refusal that an exporter passed on, wrapped in errors of its own."""
    return next((one for one in chain_of(error, outer) if isinstance(one, Refused)), None)
