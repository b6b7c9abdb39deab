"""What an export is doing, where it takes long."""
from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Iterator, Optional

_LONG = 10.0  # seconds, until something is said


class Progress:
    """Says on standard error what is done once an export has taken long, and then what comes."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._doing = ""
        self._lock = threading.Lock()
        self._long = False
        self._to: Optional[int] = None

    def __enter__(self) -> "Progress":
        with contextlib.suppress(OSError, ValueError, AttributeError):  # there may be no such file
            sys.stderr.flush()
            self._to = os.dup(2)  # exporters are silenced
        self._timer = threading.Timer(_LONG, self._is_long)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        with self._lock:
            if self._to is not None:
                os.close(self._to)
            self._to = None

    def _is_long(self) -> None:
        with self._lock:
            self._long = True
            self._say()

    def _say(self) -> None:
        if self._to is not None and self._doing:
            with contextlib.suppress(OSError):
                os.write(self._to, f"dsopt: export, {time.monotonic() - self._begin:.0f} s: {self._doing}\n".encode())

    @contextlib.contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """While this is done."""
        with self._lock:
            before, self._doing = self._doing, what
            if self._long:
                self._say()
        try:
            yield
        finally:
            with self._lock:
                self._doing = before
