"""Commands that an error advises, complete with the configuration that this one was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.errors import OlrPgError
from olr_pg.observability.advised_commands import complete_commands

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTIONS: Final = ("--config", "--file", "-c")


def config_named(arguments: Sequence[str]) -> str | None:
    """Return the configuration file that a command line names; None where it names none."""
    for number, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name in _OPTIONS and equals:
            return value
        if word in _OPTIONS and number + 1 < len(arguments):
            return arguments[number + 1]
        if word.startswith("-c") and not word.startswith("--") and len(word) > len("-c"):
            return word.removeprefix("-c")
    return None


def with_config(error: OlrPgError, config: str | None) -> OlrPgError:
    """Return an error whose advice names the configuration in every command that takes one."""
    action = complete_commands(error.action, config)
    if action == error.action:
        return error
    completed = OlrPgError(error.code, error.detail, action=action, **error.where)
    return completed.with_traceback(error.__traceback__)
