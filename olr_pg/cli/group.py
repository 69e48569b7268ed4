"""The command group: handles Ctrl-C, error messages and exit codes in the same way for every
command.

An `OlrPgError` is printed to stderr with its code, the failure, the location, and the recommended
action. The error's entry in the catalogue determines the exit code. Other exit codes: 2 wrong usage
(also for 1xxx errors), 70 a defect, 130 Ctrl-C, 141 the reader of stdout has closed the pipe, 143
SIGTERM.

Help is formatted like a manual: values are shown by their names and not by Python types, and the
texts have enough width. Typer uses separate columns for ranges, for the opposite of a switch, and
for the type of an argument, so only a third of the terminal is left for the text. This module makes
ranges and opposites part of the text, and shows an argument by its name.

`advised` completes the commands that an error recommends: it adds the configuration and the target
of this command line. If the configuration is the default file or comes from the environment, the
commands are already complete.

SIGTERM and SIGINT: the first signal ends the command after cleanup, the second one at once. The
first signal raises an exception in the main thread, so that every `finally` runs and closes
sockets, Java and PostgreSQL. A command that must end in time calls `ends_within`; after that time
the process exits without further cleanup, as with SIGKILL. Replication loses no changes in that
case, as tests with SIGKILL show: confirmed changes are durable, and the others are delivered again.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.exceptions import TyperException

from olr_pg.cli.printing import flush, unwritten
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.system_errors import unexpected_failure
from olr_pg.observability.advised_commands import complete_commands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

EXIT_TERMINATED: Final = 128 + signal.SIGTERM

_REPEAT_SECONDS: Final = 0.1
_SAY_SECONDS: Final = 0.5
"""Maximum time to print the reason, because stderr may be blocked."""


class _Ending:
    """Ends this process after signals; each command has its own object."""

    def __init__(self) -> None:
        self._is_told = False
        self._is_repeated = False
        self._bell: int | None = None

    def end_within(self, seconds: float) -> None:
        """Start a thread that waits for the first signal, and ends the process `seconds` after it.

        The thread is started before the signal, because a signal handler must not take a lock that
        the interrupted code may hold.
        """
        heard, self._bell = os.pipe()

        def watch() -> None:
            number = os.read(heard, 1)[0]
            time.sleep(seconds)
            _end_at_once(number, f"terminated at once, because it did not end within {seconds:g} s")

        threading.Thread(target=watch, name="olr-ending", daemon=True).start()

    def take(self, number: int, _frame: FrameType | None) -> NoReturn:
        """Handle a signal in the main thread."""
        if self._is_told and not self._is_repeated:
            _end_at_once(number, "terminated at once, because a second signal arrived")
        if not self._is_told and self._bell is not None:
            os.write(self._bell, bytes([number]))
        self._is_told, self._is_repeated = True, False
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(EXIT_TERMINATED)

    def raise_again(self, lost: sys.UnraisableHookArgs) -> None:
        """Send a signal again if its exception was lost, because it was raised where Python ignores
        exceptions.

        Python ignores exceptions in callbacks from native code, such as the compilation of kernels.
        If the signal were not sent again, the command would continue as if it had received none.
        """
        number = {SystemExit: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}.get(lost.exc_type)
        if number is None:
            sys.__unraisablehook__(lost)
            return
        # Send the signal after this callback has ended; during the callback it would be lost again.
        again = threading.Timer(_REPEAT_SECONDS, self._repeat, (number,))
        again.daemon = True
        again.start()

    def _repeat(self, number: int) -> None:
        self._is_repeated = True
        os.kill(os.getpid(), number)


_ending = _Ending()


def take_signals() -> None:
    """Make SIGTERM and SIGINT end the command that now begins. Signals can be handled only in the
    main thread.
    """
    global _ending
    if threading.current_thread() is not threading.main_thread():
        return
    before, _ending = _ending, _Ending()
    signal.signal(signal.SIGTERM, _ending.take)
    sys.unraisablehook = _ending.raise_again
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, before.take):  # set by `entry`
        signal.signal(signal.SIGINT, _ending.take)


def ends_within(seconds: float) -> None:
    """Make the process end `seconds` after the first signal, even if a thread is blocked."""
    _ending.end_within(seconds)


def _end_at_once(number: int, why: str) -> NoReturn:
    # Write only if stderr is ready: if its reader has stopped reading, a write would block.
    if select.select([], [2], [], _SAY_SECONDS)[1]:
        os.write(2, f"{why}\n".encode())
    os._exit(128 + number)


_CONFIG: Final = ("--config", "--file", "-c")
_TARGET: Final = ("--target",)


def config_named(arguments: Sequence[str]) -> str | None:
    """Return the configuration file that a command line names; None if it names none."""
    return _named(arguments, _CONFIG)


def target_named(arguments: Sequence[str]) -> str | None:
    """Return the target that a command line names; None if it names none."""
    return _named(arguments, _TARGET)


def _named(arguments: Sequence[str], options: Sequence[str]) -> str | None:
    for number, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name in options and equals:
            return value
        if word in options and number + 1 < len(arguments):
            return arguments[number + 1]
        if word.startswith("-c") and "-c" in options and len(word) > len("-c"):
            return word.removeprefix("-c")
    return None


def advised(text: str) -> str:
    """Return `text`, with the configuration and the target of this command line added to its
    commands.
    """
    # For `init`, the option --target is a connection string.
    target = None if sys.argv[1:2] == ["init"] else target_named(sys.argv[1:])
    return complete_commands(text, config_named(sys.argv[1:]), target)


def with_config(error: OlrPgError) -> OlrPgError:
    """Return the error with complete commands in its recommended action; see `advised`."""
    action = advised(error.action)
    if action == error.action:
        return error
    completed = OlrPgError(error.code, error.detail, action=action, **error.where)
    return completed.with_traceback(error.__traceback__)


_VALUE_NAMES: Final = {
    "<int>": "N",
    "<int range>": "N",
    "<float>": "N",
    "<path>": "PATH",
    "<str>": "TEXT",
}


class _NamedArgument(TyperArgument):
    """An argument whose help shows its name and no type."""

    def display_type_rich(self, ctx: Any) -> str:
        """Return an empty text, because the name and the help describe the argument."""
        del ctx
        return ""

    def _usage_display_name(self) -> str:
        name = self.display_name_raw if self.nargs == 1 else f"{self.display_name_raw}..."
        return name if self.required else f"[{name}]"


class _NamedOption(TyperOption):
    """An option whose help text contains its range."""

    def _get_number_range_help_str(self) -> None:
        return None


def describe(command: Any, ctx: Any) -> None:
    """Change a command and its subcommands so that their help has the format of this module."""
    _unwrap(command)
    for param in command.get_params(ctx):
        _name_value(param, ctx)
    command.format_help = functools.partial(format_help, command)
    for below in getattr(command, "commands", {}).values():
        describe(below, ctx)


def format_help(command: Any, ctx: Any, formatter: Any, kind: Any = None) -> None:
    """Print the help of a command; see `print_line` for the errors.

    Args:
        kind: the class that formats the help; None for the command's own class.
    """
    try:
        (kind or type(command)).format_help(as_shown(command, ctx), ctx, formatter)
    except OSError as error:
        raise unwritten(error) from error
    except SystemExit as ending:
        if ending.code != 1:
            raise
        # Rich raises SystemExit if the reader of its output has closed the pipe.
        raise BrokenPipeError from None


def as_shown(command: Any, ctx: Any) -> Any:
    """Return a copy of a command, with the changes that its help needs."""
    shown = copy.copy(command)
    params = command.get_params(ctx)
    for param in params:
        _name_value(param, ctx)
    shown.params = [_without_contrary(param) for param in params]
    shown.add_help_option = False  # `params` contains it already
    return shown


def _unwrap(command: Any) -> None:
    """Join each paragraph of the help into one line, because it is wrapped at the terminal's width
    later.
    """
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)


def _name_value(param: Any, ctx: Any) -> None:
    """Set the displayed name of the value of an option or argument, if its definition has none."""
    if type(param) is TyperArgument:
        param.__class__ = _NamedArgument
    elif type(param) is TyperOption:
        if param.metavar is None:
            kind = param.display_type(ctx)
            is_switch = param.is_flag or param.count
            param.metavar = "" if is_switch else _VALUE_NAMES.get(kind, kind.strip("<>"))
        limits = _limits(param.min, param.max)
        if limits:
            param.help = f"{(param.help or '').removesuffix('.')} ({limits})."
        param.__class__ = _NamedOption


def _limits(least: float | None, most: float | None) -> str:
    """Describe a range of numbers; empty if there is no range."""
    if most is None:
        return "" if least in (None, 0) else f"at least {least:g}"
    return f"at most {most:g}" if least is None else f"{least:g} to {most:g}"


def _without_contrary(param: Any) -> Any:
    """Return a copy of an option whose opposite, such as --no-load, is part of its text."""
    if not getattr(param, "secondary_opts", None):
        return param
    shown = copy.copy(param)
    contrary = ", ".join(param.secondary_opts)
    shown.help = (
        f"{param.help} {'Disable with' if param.default is True else 'Opposite:'} {contrary}."
    )
    shown.secondary_opts = []
    shown.show_default = False
    return shown


EXIT_INTERRUPTED: Final = 128 + signal.SIGINT
EXIT_PIPE_CLOSED: Final = 128 + signal.SIGPIPE


class ReportingGroup(TyperGroup):
    """A group of commands that reports errors with their codes."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command whose help is formatted like a manual."""
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
        with _told(as_json=bool(ctx.params.get("json_errors"))):
            from olr_pg.appliance.exposure_checks import check_code_places  # not for --help

            check_code_places()
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
    return unexpected_failure(error)


def report(error: OlrPgError, *, as_json: bool, defect: Exception | None = None) -> None:
    """Print `error` to stderr, for people or as one JSON object on one line.

    Args:
        defect: the exception, if it is unexpected; it is printed with its location in the code.
    """
    from olr_pg.observability.advised_commands import failure_record, format_failure
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
