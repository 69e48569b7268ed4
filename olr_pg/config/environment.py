"""Removes the variables that the configuration refers to from the process's environment.

A variable that the configuration refers to usually contains a secret. Child processes such as Java,
Spark's workers and PostgreSQL do not need it, but would inherit it and pass it on to their own
children.
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
"""Variables that are not removed, even if the configuration refers to them, because programs need
them.
"""


class Environment(Mapping[str, str]):
    """The environment at the time when the object was created. The object records which variables
    are read.

    Attributes:
        named: names of the variables that were read.
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
        """Return the variables that were read, for a child process that reads the same
        configuration.
        """
        return {name: self._values[name] for name in self.named if name in self._values}

    def withhold(self) -> None:
        """Remove the variables that were read from the process's environment, so that child
        processes do not inherit them.
        """
        for name in self.named - _KEPT:
            os.environ.pop(name, None)


def load_for_work(path: Path | str, environment: Environment | None = None) -> Config:
    """Load the configuration for a command whose child processes must not inherit its secrets.

    Args:
        environment: the environment that an earlier load used, if the file is loaded again.

    Raises:
        OlrPgError: as `load_config`.
    """
    environment = environment or Environment()
    config = load_config(path, environment)
    environment.withhold()
    return config
