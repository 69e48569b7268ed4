"""The command group: handles Ctrl-C, error messages and exit codes in the same way for every
command.

An `OlrPgError` is printed to stderr with its code, the failure, the location, and the recommended
action. Its entry in the error catalogue determines the exit code. Other exit codes: 2 wrong usage
(also for 1xxx errors), 70 a defect, 130 Ctrl-C, 141 the reader of stdout has closed the pipe, 143
SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from olr_pg.cli.advice import with_config
from olr_pg.cli.help_texts import describe, format_help
from olr_pg.cli.printing import flush
from olr_pg.cli.signals import EXIT_TERMINATED, take_signals
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_INTERRUPTED: Final = 128 + signal.SIGINT
EXIT_PIPE_CLOSED: Final = 128 + signal.SIGPIPE


class ReportingGroup(TyperGroup):
    """A group of commands that reports errors with their codes."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command whose help `help_texts` formats."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            describe(command, ctx)
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of the program."""
        format_help(self, ctx, formatter, TyperGroup)

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the command line, or print the help of the program."""
        with _told(as_json=False):
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and convert its result or error to an exit code."""
        take_signals()
        _ensure_stdout()
        with _told(as_json=bool(ctx.params.get("json_errors"))):
            result = super().invoke(ctx)
            # Flush stdout now, so that an error of stdout is handled here.
            flush()
        return result


@contextmanager
def _told(*, as_json: bool) -> Iterator[None]:
    """Report the error with which the context ended, and convert it to an exit code."""
    try:
        yield
    except (typer.Exit, typer.Abort, TyperException):
        raise
    except BrokenPipeError:
        _close_stdout()
        raise typer.Exit(EXIT_PIPE_CLOSED) from None
    except SystemExit as ending:
        if ending.code != EXIT_TERMINATED:
            raise
        _discard_unwritten()
        sys.stderr.write("terminated\n")
        raise typer.Exit(EXIT_TERMINATED) from None
    except KeyboardInterrupt:
        _discard_unwritten()
        sys.stderr.write("interrupted\n")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except Exception as error:  # noqa: BLE001 - every ending is told, a defect with its calls
        _discard_unwritten()
        failure = with_config(coded(error))
        report(failure, as_json=as_json, defect=error if failure.code == Code.INTERNAL else None)
        raise typer.Exit(failure.exit_code) from None


def coded(error: Exception) -> OlrPgError:
    """Convert any exception that ends a command to an error with a code."""
    if isinstance(error, OlrPgError):
        return error
    if "psycopg" in sys.modules:
        import psycopg

        from olr_pg.postgres.sqlstates import target_error

        if isinstance(error, psycopg.Error):
            return target_error(error)
    return OlrPgError(Code.INTERNAL, f"{type(error).__name__}: {error}")


def report(error: OlrPgError, *, as_json: bool, defect: Exception | None = None) -> None:
    """Print `error` to stderr, for people or as one JSON object on one line.

    Args:
        defect: the exception, if it is unexpected; it is printed with its location in the code.
    """
    from olr_pg.observability.error_records import failure_record, format_failure
    from olr_pg.observability.redaction import known_redactor
    from olr_pg.observability.wording import visible

    failure = failure_record(error)
    calls = "" if defect is None else "".join(traceback.format_exception(defect))
    if as_json:
        record = {**failure, "traceback": calls} if calls else failure
        # Redact secrets before the conversion to JSON, because a secret may extend to the end of a
        # text.
        text = json.dumps(known_redactor().value(record), ensure_ascii=False)
    else:
        text = visible(known_redactor().text(calls + format_failure(failure)))
    sys.stderr.write(text + "\n")


def _ensure_stdout() -> None:
    """If the parent process has closed stdout, replace it by /dev/null."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good


def _discard_unwritten() -> None:
    """Flush the output that was printed before the error; discard this output if it cannot be
    flushed.
    """
    try:
        sys.stdout.flush()
    except OSError:
        _close_stdout()


def _close_stdout() -> None:
    # Redirect stdout to /dev/null, because the interpreter flushes it again at exit, which must not
    # fail.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
