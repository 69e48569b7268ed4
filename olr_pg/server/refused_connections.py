"""Connections and requests that are refused: counted, and logged without a flood."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.errors import OlrPgError

QUIET_SECONDS: Final = 60.0
"""How long, after a line, further ones of the same code are only counted."""

_log = structlog.get_logger(__name__)


class Refusals:
    """Counts refusals by error code; may be used from any thread.

    Args:
        message: of the lines in the log.
        clock: seconds, monotonic.
    """

    def __init__(self, message: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._message = message
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = Counter[str]()
        self._unsaid = Counter[str]()
        self._said: dict[str, float] = {}

    def add(self, error: OlrPgError, peer: str) -> None:
        """Count a refusal; log it, unless one of its kind was logged of late."""
        now = self._clock()
        with self._lock:
            self._counts[error.label] += 1
            if now - self._said.get(error.label, -QUIET_SECONDS) < QUIET_SECONDS:
                self._unsaid[error.label] += 1
                return
            self._said[error.label] = now
            unsaid = self._unsaid.pop(error.label, 0)
        _log.warning(
            self._message,
            client=peer,
            code=error.label,
            reason=str(error),
            action=error.action,
            **({"others_not_logged": unsaid} if unsaid else {}),
        )

    def counts(self) -> dict[str, int]:
        """Return how many there were, by the code as it is printed."""
        with self._lock:
            return dict(self._counts)
