"""The main module of ``olr-pg``.

No slow module is imported here or at the top of a command's module, so ``--help`` answers at once.
Commands that need Spark, Numba or database drivers import them when they run. A process imports
only the module of its own command, because reading the options of all commands takes longer than
``version``.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.completion import completion_init, install_callback, show_callback  # type: ignore[attr-defined]

from olr_pg.cli.group import ReportingGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    app: typer.Typer

COMMANDS: Final = {
    "init": "init:init",
    "run": "run:run",
    "status": "status:status",
    "reload": "run:reload",
    "initial-load": "migration.load:initial_load",
    "logs": "status:logs",
    "verify": "migration.verify:verify",
    "repair": "migration.verify:repair",
    "fetch-lobs": "migration.load:fetch_lobs",
    "cutover": "migration.cutover:cutover",
    "migrate": "migration.migrate:migrate",
    "assess": "migration.assess:assess",
    "prove": "prove:prove",
    "decode": "decode:decode",
    "dump": "dump:dump",
    "doctor": "doctor:doctor",
    "demo": "simulate:demo",
    "prepare": "prepare:prepare",
    "simulate": "simulate:simulate",
    "bench": "bench:bench",
    "version": "version:version",
    "errors": "errors:app",
    "tables": "tables:app",
    "schema": "migration.schema:app",
    "dictionary": "dictionary:app",
    "fallback": "migration.fallback:app",
    "config": "config:app",
}
"""The module (below `cli`) and the function or group of each command. Groups come last, as in the
help.
"""

_HELP: Final = ("-h", "--help")
_COMPLETING: Final = "_OLR_PG_COMPLETE"
"""The environment variable that a shell sets to request completions."""


class Shell(StrEnum):
    """A shell that completes command lines."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def _print_version(wanted: bool) -> None:
    from olr_pg.cli.version import print_and_exit

    print_and_exit(wanted)


def main(
    *,
    version_wanted: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
    json_errors: Annotated[
        bool,
        typer.Option(
            "--json-errors",
            help="Report an error as one JSON object on stderr, with the keys code, what,"
            " where and action.",
        ),
    ] = False,
    _install_completion: Annotated[
        bool,
        typer.Option(
            "--install-completion",
            help="Install completion for the current shell.",
            is_eager=True,
            callback=install_callback,
        ),
    ] = False,
    _show_completion: Annotated[
        Shell | None,
        typer.Option(
            "--show-completion",
            help="Print the completion script for the current shell, so that you can install"
            " it yourself.",
            is_eager=True,
            callback=show_callback,
        ),
    ] = None,
) -> None:
    """Replicates Oracle into PostgreSQL by reading Oracle's binary redo logs."""


def make_app(names: Iterable[str], *, brief: bool = False) -> typer.Typer:
    """Return the program with these commands.

    Args:
        names: names in `COMMANDS`.
        brief: include the commands' help texts without their options. The program's help needs no
            options.
    """
    made = typer.Typer(
        name="olr-pg",
        cls=ReportingGroup,
        help="Replicates Oracle into PostgreSQL by reading Oracle's binary redo logs.",
        epilog=(
            "Exit codes: 0 done, 1 differences or stopped tables, 2 usage or"
            " configuration, 3 logs, 4 dictionary, 5 server, 6 PostgreSQL, 7 Spark, 8"
            " Oracle, 9 simulator, 10 and 11 findings of doctor, 12 no appliance runs,"
            " 70 a defect, 130 interrupted, 143 terminated, 141 the reader of the output"
            " has ended."
        ),
        no_args_is_help=True,
        add_completion=False,  # Typer's own options do not accept the name of a shell, or ignore it
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": list(_HELP)},
    )
    completion_init()  # Typer calls this for its own options
    made.callback()(main)
    for name in names:
        command = _command(name)
        if not isinstance(command, typer.Typer):
            made.command(name, help=command.__doc__)(_nothing if brief else command)
        elif brief:
            made.command(name, help=command.info.help)(_nothing)
        else:
            made.add_typer(command, name=name)
    return made


def _command(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    return getattr(import_module(f"{__package__}.{module}"), attribute)


def _nothing() -> None:
    """Do nothing. This function replaces commands that the help only lists."""


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """Return the program with the commands that a command line needs.

    Args:
        arguments: the arguments, without the program's name.
    """
    if _COMPLETING not in os.environ:
        if not arguments or (len(arguments) == 1 and arguments[0] in _HELP):
            return make_app(COMMANDS, brief=True)
        # Options before the command have no values, so the first other word is the command.
        word = next((one for one in arguments if not one.startswith("-")), "")
        if word in COMMANDS:
            return make_app((word,))
    return _whole()


@cache
def _whole() -> typer.Typer:
    return make_app(COMMANDS)


def __getattr__(name: str) -> Any:
    """Return `app`, the program with all its commands."""
    if name == "app":
        return _whole()
    raise AttributeError(name)


def run() -> None:
    """Run the command line of this process; never returns."""
    app_for(sys.argv[1:])(prog_name="olr-pg")
