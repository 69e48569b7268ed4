"""The process's environment, which every child inherits, without what the configuration names.

A variable that a configuration refers to holds a secret, as a rule. Java, Spark's workers and
PostgreSQL have no use for it, and what is in their environment is in that of all they start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from olr_pg.config.reading import load_config

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config

_KEPT: Final = frozenset(
    {
        *("HOME", "HOSTNAME", "JAVA_HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR"),
        *("TNS_ADMIN", "TZ", "USER", "XDG_CACHE_HOME"),
    }
)
"""What programs need that a configuration may refer to as well."""


class Environment(Mapping[str, str]):
    """The environment as it was when this was made; remembers what is asked for.

    Attributes:
        named: the variables that were asked for.
    """

    def __init__(self) -> None:
        self._values = dict(os.environ)
        self.named: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.named.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def withheld(self) -> dict[str, str]:
        """Return what was asked for: for a process that reads the same configuration."""
        return {name: self._values[name] for name in self.named if name in self._values}

    def withhold(self) -> None:
        """Take what was asked for out of the process's own environment: children get none of it."""
        for name in self.named - _KEPT:
            os.environ.pop(name, None)


def load_for_work(path: Path | str, environment: Environment | None = None) -> Config:
    """Read the configuration for a command whose processes do not inherit its secrets.

    Args:
        environment: of an earlier load, where the file is read again.

    Raises:
        OlrPgError: as `load_config`.
    """
    environment = environment or Environment()
    config = load_config(path, environment)
    environment.withhold()
    return config
