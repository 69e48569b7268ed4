"""Waiting for what another thread or process does, also to kill it then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable


def wait_until(
    condition: Callable[[], bool], seconds: float = 120.0, *, pause: float = 0.01
) -> None:
    """Wait until the condition is true; it fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(pause)


def kill_when(
    process: subprocess.Popen[bytes], connection: psycopg.Connection[Any], query: str
) -> None:
    """Kill a process once the query is true; return at its end if it ends before.

    Args:
        connection: in autocommit mode, and open before: to open one costs both sides more than what
            is asked.
    """
    while process.poll() is None:
        try:
            if connection.execute(query.encode()).fetchone() == (True,):
                process.kill()
                break
        except psycopg.errors.UndefinedTable:
            pass
        time.sleep(0.002)
    process.communicate()
