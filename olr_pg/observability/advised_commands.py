"""Describes errors: as text, as a record, and with commands that a reader can copy and run.

The texts of the error catalogue contain commands in backticks, such as `olr-pg status`. The code
that reports an error adds the options that only it knows: the configuration, the target if there
are several, and the table and the number of the error.

`failure_record` converts an `OlrPgError` to a record of its code, what failed, where, and what to
do.
"""

from __future__ import annotations

import re
import shlex
from typing import Final, TypedDict

from olr_pg.errors import Code, OlrPgError, Place, format_place
from olr_pg.observability.wording import one_line

_COMMAND: Final = re.compile(r"`(olr-pg ([a-z-]+)[^`]*)`")
_WITH_LISTS: Final = frozenset(
    f"OLR-{code:05d}"
    for code in (
        *(Code.CONFIG_INVALID, Code.SECRET_UNRESOLVED, Code.ENCRYPTION_KEY_UNUSABLE),
        *(Code.TLS_FILES_UNUSABLE, Code.ORACLE_ADDRESS_INVALID, Code.CONTROL_TOKEN_WEAK),
    )
)
"""Errors of the configuration file, which list their problems in lines."""

_WITHOUT: Final = frozenset(
    ("bench", "config", "decode", "demo", "dump", "init", "prepare", "simulate", "version")
)
"""Commands that get no option --config, because they need no configuration or write one."""

_OF_ONE_TARGET: Final = frozenset(
    (
        *("assess", "cutover", "doctor", "errors", "fallback", "fetch-lobs", "initial-load"),
        *("migrate", "repair", "schema", "status", "tables", "verify"),
    )
)
"""Commands with the option --target."""


def complete_commands(text: str, config: str | None, target: str | None = None) -> str:
    """Return the text with the options --config and --target added to its commands, as far as they
    accept them.

    Args:
        config: the path of the configuration file; None or empty if commands use the default file.
        target: the name of the target, if there are several; otherwise None.
    """

    def complete(found: re.Match[str]) -> str:
        command, name = found.groups()
        if name in _WITHOUT or "--help" in command:
            return found.group()
        if config:
            command = command.replace(" --config FILE", "")
            if " --config " not in command:
                command += f" --config {shlex.quote(config)}"
        if target and name in _OF_ONE_TARGET and " --target " not in command:
            command += f" --target {shlex.quote(target)}"
        return f"`{command}`"

    return _COMMAND.sub(complete, text)


def commands_of_error(text: str, table: str, number: int | None) -> str:
    """Return the text with the stopped table and the number of its error added to its commands, and
    with the table in its SQL statements.

    Args:
        number: the number of the table's error; None if unknown.
    """

    def complete(found: re.Match[str]) -> str:
        command = found[1].replace("OWNER.NAME", shlex.quote(table))
        if command == "olr-pg errors retry":
            command += f" {shlex.quote(table)}"
        elif command in ("olr-pg errors show", "olr-pg errors skip") and number:
            command += f" {number}"
        return f"`{command}`"

    of_table = table.replace("'", "''")
    return _COMMAND.sub(complete, text).replace("'OWNER.NAME'", f"'{of_table}'")


class Failure(TypedDict):
    """The parts of an error, for logs and for scripts."""

    code: str
    what: str
    where: dict[str, Place]
    action: str


def failure_record(error: OlrPgError) -> Failure:
    """Split `error` into its parts."""
    return Failure(
        code=error.label,
        what=f"{error.title}: {error.detail}",
        where=dict(error.where),
        action=error.action,
    )


def format_failure(failure: Failure) -> str:
    """Format an error for people, in lines: the code and what failed, where, and what to do. Line
    breaks in names are escapes.
    """
    what = failure["what"] if failure["code"] in _WITH_LISTS else one_line(failure["what"])
    lines = [f"{failure['code']}: {what}"]
    if failure["where"]:
        lines.append(f"  where: {one_line(format_place(failure['where']))}")
    lines.append(f"  to do: {one_line(failure['action'])}")
    return "\n".join(lines)
