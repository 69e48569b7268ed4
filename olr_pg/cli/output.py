"""Printing: results to stdout, progress to a terminal's stderr."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def print_line(text: str) -> None:
    """One line to stdout."""
    sys.stdout.write(text + "\n")


def print_json(value: Any) -> None:
    """One JSON value on one line to stdout."""
    import orjson

    sys.stdout.write(orjson.dumps(value).decode() + "\n")


def write_bytes(data: bytes) -> None:
    """Bytes to stdout, after everything printed before."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def on_terminal() -> bool:
    """Whether progress may be shown: stderr is a terminal."""
    return sys.stderr.isatty()


def log_to_stderr() -> None:
    """Let warnings and errors of the parts be logged, for commands without a log of their own."""
    from olr_pg.observability.logs import configure_logging

    configure_logging(1)


@contextmanager
def byte_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, shown only where stderr is a terminal.

    Yields:
        A function to call with (done, total), both in bytes.
    """
    if not on_terminal():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
