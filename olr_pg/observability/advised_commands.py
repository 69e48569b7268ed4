"""Completes the commands in backticks in a text, so that they work when copied.

The catalogue of errors cannot contain these parts, which are known where an error is reported: the
configuration, the target if there are several, and the table and number of the error.
"""

from __future__ import annotations

import re
import shlex
from typing import Final

_COMMAND: Final = re.compile(r"`(olr-pg ([a-z-]+)[^`]*)`")
_WITHOUT: Final = frozenset(
    ("bench", "config", "decode", "demo", "dump", "init", "prepare", "simulate", "version")
)
"""Commands that need no configuration, or write one."""

_OF_ONE_TARGET: Final = frozenset(
    (
        *("assess", "cutover", "doctor", "errors", "fallback", "fetch-lobs", "initial-load"),
        *("migrate", "repair", "schema", "status", "tables", "verify"),
    )
)
"""Commands with the option --target."""


def complete_commands(text: str, config: str | None, target: str | None = None) -> str:
    """Return a text whose commands include the configuration, and the target if they accept one.

    Args:
        config: the path of the file; None or empty if commands use the default.
        target: its name, if there are several.
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
    """Return a text whose commands include the stopped table and its error.

    Args:
        number: of the error; None if unknown.
    """

    def complete(found: re.Match[str]) -> str:
        command = found[1].replace("OWNER.NAME", shlex.quote(table))
        if command == "olr-pg errors retry":
            command += f" {shlex.quote(table)}"
        elif command in ("olr-pg errors show", "olr-pg errors skip") and number:
            command += f" {number}"
        return f"`{command}`"

    return _COMMAND.sub(complete, text)
