"""Prints results to stdout, and progress to stderr on a terminal."""

from __future__ import annotations

import errno
import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.observability.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

    from olr_pg.wire.frames import Buffer

UNCUT_WIDTH: Final = 10_000
"""Width in columns that is used if stdout is not a terminal, so that no line is cut."""

_WRITE_BYTES: Final = 256 << 10
"""Bytes written at a time. For larger writes, Linux allocates huge pages for a file. On a virtual
machine, their first use can cost more processor time than all other work: the host must provide
them.
"""


def print_line(text: str, *, at_once: bool = False) -> None:
    """Print one line to stdout, without control characters that a terminal would execute. Ends of
    lines in it are printed as escapes, so that a name cannot add lines to the output.

    Args:
        at_once: flush at once, so that a reader sees the line immediately, even through a pipe.

    Raises:
        BrokenPipeError: the reader has closed the pipe.
        OlrPgError: 1107, the line cannot be written.
    """
    _write(one_line(text), at_once=at_once)


def _write(text: str, *, at_once: bool) -> None:
    try:
        sys.stdout.write(text + "\n")
    except OSError as error:
        raise unwritten(error) from error
    if at_once:
        flush()


def print_json(value: Any, *, at_once: bool = False) -> None:
    """Print one JSON value on one line to stdout; see `print_line` for `at_once` and the errors."""
    import orjson

    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        if "surrogates" not in str(error):
            raise
        # The name of a file need not be UTF-8. orjson does not write such texts; json escapes them.
        text = json.dumps(value, separators=(",", ":"))
    if not text.isascii() and not (sys.stdout.encoding or "").lower().startswith("utf"):
        # Only strings contain such characters, so JSON's escapes can replace them.
        text = "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in text)
    _write(text, at_once=at_once)


def write_bytes(data: Buffer) -> None:
    """Write bytes to stdout; first flush the text that was printed earlier.

    The printed bytes are the result for which the command was called. So a stdout that the parent
    process has closed is an error, although `print_line` discards its lines then.

    Raises:
        BrokenPipeError: the reader has closed the pipe.
        OlrPgError: 1107, the bytes cannot be written.
    """
    if (
        getattr(sys.stdout, "name", None) == os.devnull
    ):  # `entry` has opened it in place of a closed stream
        raise unwritten(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    flush()
    whole = memoryview(data).cast("B")
    try:
        for first in range(0, len(whole), _WRITE_BYTES):
            sys.stdout.buffer.write(whole[first : first + _WRITE_BYTES])
    except OSError as error:
        raise unwritten(error) from error


def flush() -> None:
    """Flush stdout; see `print_line` for the errors."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise unwritten(error) from error


def unwritten(error: OSError) -> Exception:
    """Return the exception to raise for an error of stdout."""
    return (
        error
        if isinstance(error, BrokenPipeError)
        else OlrPgError(Code.STDOUT_UNWRITABLE, system_reason(error))
    )


def report_console(**options: Any) -> Console:
    """Return a console of rich on stdout for tables; `options` are the options of
    `rich.console.Console`. See `print_line` for the errors.

    If stdout is not a terminal, lines are not cut or wrapped. A text is printed as it is: names of
    tables can contain control characters, and brackets that rich would read as markup.
    """
    from rich.console import Console
    from rich.text import Text

    class ReportConsole(Console):
        def print(self, *objects: Any, **style: Any) -> None:
            try:
                super().print(*objects, **style)
            except OSError as error:
                raise unwritten(error) from error

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(one_line(text), **options)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if not sys.stdout.isatty():
        options.setdefault("width", UNCUT_WIDTH)
    return ReportConsole(markup=False, emoji=False, **options)


def report_table(*names: str, numbers: Sequence[str] = (), **options: Any) -> Table:
    """Return a table whose cells are never cut, however narrow the terminal is.

    Args:
        names: headings of text columns, which are wrapped.
        numbers: headings of the columns after the text columns; their cells stay on one line.
        options: options of rich's `Table`.
    """
    from rich.table import Table

    table = Table(**options)
    for heading in names:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def print_table(console: Console, table: Table) -> None:
    """Print a table; if it is wider than the terminal, the terminal wraps it, so nothing is cut."""
    needed = console.measure(table, options=console.options.update(width=UNCUT_WIDTH)).minimum
    width = console.width
    console.width = max(width, needed)
    try:
        console.print(table, crop=False)
    finally:
        console.width = width


def on_terminal() -> bool:
    """Return whether stderr is a terminal, so that progress can be shown."""
    return sys.stderr.isatty()


def log_to_stderr() -> None:
    """Log warnings and errors to stderr; for commands that have no log of their own."""
    from olr_pg.observability.logging_setup import WARNINGS, configure_logging

    configure_logging(WARNINGS)


def print_step(text: str) -> None:
    """Print on stderr what a command does next, so that nobody thinks during a long step that the
    command hangs.
    """
    sys.stderr.write(f"{text} …\n")
    sys.stderr.flush()


@contextmanager
def byte_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr, if stderr is a terminal.

    Yields:
        A function; call it with (bytes done, total bytes).
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
