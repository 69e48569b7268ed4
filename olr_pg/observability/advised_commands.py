"""Commands that a text advises, complete with the configuration that they are for.

So they do what they say when they are copied. Where nobody has named a configuration, it is the
usual file or that of the environment, and they are complete as they are.
"""

from __future__ import annotations

import re
import shlex
from typing import Final

_COMMAND: Final = re.compile(r"`(olr-pg ([a-z-]+(?: [a-z-]+)?)[^`]*)`")
_PLACE: Final = " --config FILE"
_WITHOUT: Final = frozenset(
    (
        *("bench", "config schema", "decode", "demo", "dump", "init", "prepare", "simulate"),
        "version",
    )
)
"""Commands that take no configuration, or write one."""


def complete_commands(text: str, config: str | None) -> str:
    """Return a text whose commands name the configuration, as far as they take one.

    Args:
        config: the file's path; None or empty where nobody has named one.
    """
    given = f" --config {shlex.quote(config)}" if config else ""

    def complete(found: re.Match[str]) -> str:
        command, name = found.groups()
        bare = command.replace(_PLACE, "")
        if not _WITHOUT.isdisjoint((name, name.split()[0])) or " --config " in bare:
            return found.group()
        return f"`{bare}{given}`"

    return _COMMAND.sub(complete, text)
