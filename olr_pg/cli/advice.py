"""Completes the commands that an error recommends: adds the configuration and the target of this
command line.

If the configuration is the default file or comes from the environment, the commands are already
complete.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from olr_pg.errors import OlrPgError
from olr_pg.observability.advised_commands import complete_commands

if TYPE_CHECKING:
    from collections.abc import Sequence

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
