"""Printing: results to stdout, progress to a terminal's stderr."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import Code, OlrPgError, system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

    from olr_pg.wire.frames import Buffer

UNCUT_WIDTH: Final = 10_000
"""Columns of what is no terminal: a file or a pipe cuts no line."""


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
        raise unwritten(error) from error
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
        raise unwritten(error) from error


def flush() -> None:
    """Write what is printed but not written; errors as of `print_line`."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise unwritten(error) from error


def unwritten(error: OSError) -> Exception:
    """Return what an error of stdout is raised as."""
    return (
        error
        if isinstance(error, BrokenPipeError)
        else OlrPgError(Code.STDOUT_UNWRITABLE, system_reason(error))
    )


def report_console(**options: Any) -> Console:
    """Make a console on stdout for tables; errors as of `print_line`, options as of rich.

    Nothing is cut or wrapped where stdout is no terminal.
    """
    from rich.console import Console

    class ReportConsole(Console):
        def print(self, *objects: Any, **style: Any) -> None:
            try:
                super().print(*objects, **style)
            except OSError as error:
                raise unwritten(error) from error

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if not sys.stdout.isatty():
        options.setdefault("width", UNCUT_WIDTH)
    return ReportConsole(**options)


def report_table(*names: str, numbers: Sequence[str] = (), **options: Any) -> Table:
    """Make a table whose cells are whole on every terminal.

    Args:
        names: headings of columns of text, which goes on in the next line where it is too long.
        numbers: headings of the columns behind them, which stay on one line.
        options: as of rich.
    """
    from rich.table import Table

    table = Table(**options)
    for heading in names:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def print_table(console: Console, table: Table) -> None:
    """Print a table; one that a terminal is too narrow for, the terminal wraps: nothing is cut."""
    needed = console.measure(table, options=console.options.update(width=UNCUT_WIDTH)).minimum
    width = console.width
    console.width = max(width, needed)
    try:
        console.print(table, crop=False)
    finally:
        console.width = width


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
