"""Printing: results to stdout, progress to a terminal's stderr."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from olr_pg.wire.frames import Buffer


def print_line(text: str, *, at_once: bool = False) -> None:
    """Print one line to stdout.

    Args:
        at_once: whoever reads it is told what goes on, even through a pipe.

    Raises:
        BrokenPipeError: nobody reads it any more.
        OlrPgError: 1107, it cannot be written.
    """
    try:
        sys.stdout.write(text + "\n")
    except OSError as error:
        raise _unwritten(error) from error
    if at_once:
        flush()


def print_json(value: Any) -> None:
    """Print one JSON value on one line to stdout; errors as of `print_line`."""
    import orjson

    print_line(orjson.dumps(value).decode())


def write_bytes(data: Buffer) -> None:
    """Bytes to stdout, after everything printed before; errors as of `print_line`."""
    flush()
    try:
        sys.stdout.buffer.write(data)
    except OSError as error:
        raise _unwritten(error) from error


def flush() -> None:
    """Write what is printed but not written; errors as of `print_line`."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _unwritten(error) from error


def _unwritten(error: OSError) -> Exception:
    """Return what an error of stdout is raised as."""
    return (
        error
        if isinstance(error, BrokenPipeError)
        else OlrPgError(Code.STDOUT_UNWRITABLE, str(error.strerror))
    )


def report_console(**options: Any) -> Console:
    """Make a console on stdout for tables; errors as of `print_line`, options as of rich."""
    from rich.console import Console

    class ReportConsole(Console):
        def print(self, *objects: Any, **style: Any) -> None:
            try:
                super().print(*objects, **style)
            except OSError as error:
                raise _unwritten(error) from error

    return ReportConsole(**options)


def on_terminal() -> bool:
    """Tell whether progress may be shown: stderr is a terminal."""
    return sys.stderr.isatty()


def log_to_stderr() -> None:
    """Let warnings and errors of the parts be logged, for commands without a log of their own."""
    from olr_pg.observability.logging_setup import WARNINGS, configure_logging

    configure_logging(WARNINGS)


@contextmanager
def byte_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr, if that is a terminal.

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
