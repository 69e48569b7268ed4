"""Commands that an error advises, complete with the configuration that this one was given.

So they do what they say when they are copied. Where the configuration is the usual file or that of
the environment, they are complete as they are.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTIONS: Final = ("--config", "--file", "-c")
_COMMAND: Final = re.compile(r"`(olr-pg ([a-z-]+)[^`]*)`")
_WITHOUT: Final = frozenset(
    ("bench", "config", "decode", "demo", "dictionary", "dump", "init", "prepare", "simulate")
)
"""Commands that take no configuration, or write one."""


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
    given = "" if config is None else f" --config {shlex.quote(config)}"

    def complete(found: re.Match[str]) -> str:
        command, name = found.groups()
        if name in _WITHOUT:
            return found.group()
        return f"`{command.replace(' --config FILE', '')}{given}`"

    action = _COMMAND.sub(complete, error.action)
    if action == error.action:
        return error
    completed = OlrPgError(error.code, error.detail, action=action, **error.where)
    return completed.with_traceback(error.__traceback__)
