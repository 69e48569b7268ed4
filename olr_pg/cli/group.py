"""The command group: how every command ends.

An `OlrPgError` is printed to stderr as code, what, where and what to do, and its catalogue entry
gives the exit code. Other endings: 2 wrong usage (also of 1xxx errors), 130 Ctrl-C, 141 the reader
of stdout has gone, 143 SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from types import FrameType

EXIT_INTERRUPTED: Final = 128 + signal.SIGINT
EXIT_PIPE_CLOSED: Final = 128 + signal.SIGPIPE
EXIT_TERMINATED: Final = 128 + signal.SIGTERM


class ReportingGroup(TyperGroup):
    """A group of commands that reports errors of the catalogue."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn its ending into an exit code."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _terminate)
        try:
            result = super().invoke(ctx)
            # Here, so that a reader who has gone is noticed here too.
            sys.stdout.flush()
        except OlrPgError as error:
            _discard_unwritten()
            report(error, as_json=bool(ctx.params.get("json_errors")))
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            _close_stdout()
            raise typer.Exit(EXIT_PIPE_CLOSED) from None
        except KeyboardInterrupt:
            _discard_unwritten()
            sys.stderr.write("interrupted\n")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        return result


def report(error: OlrPgError, *, as_json: bool) -> None:
    """Print `error` to stderr, for people or as one JSON object on one line."""
    from olr_pg.observability.failures import failure_record, format_failure
    from olr_pg.observability.redaction import Redactor

    failure = failure_record(error)
    text = json.dumps(failure, ensure_ascii=False) if as_json else format_failure(failure)
    sys.stderr.write(Redactor().text(text) + "\n")


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    # An exit instead of the default death lets every `finally` run: sockets, Java, PostgreSQL.
    raise SystemExit(EXIT_TERMINATED)


def _discard_unwritten() -> None:
    """Let what was printed before the error reach its reader, if there is still one."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _close_stdout()


def _close_stdout() -> None:
    # The interpreter flushes stdout once more at its end, which must not fail again.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
