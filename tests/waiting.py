"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_until(
    condition: Callable[[], bool], seconds: float = 120.0, *, pause: float = 0.01
) -> None:
    """Wait until the condition is true; it fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(pause)
