"""From where a first run reads the redo behind initial loads: as of there it needs the dictionary.

One of an earlier time, such as that of the oldest log, lacks the DDL between it and the load: no
redo of that is read, so that rows would be decoded with columns and partitions of then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import psycopg

from olr_pg.applier.session.handover import read_handover
from olr_pg.applier.target.connection import connect
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Collection


class _Target(NamedTuple):
    connect_string: str
    subscription: str


class LoadedStart:
    """Asks the one target of a configuration for its loads; with several nothing is known."""

    def __init__(self) -> None:
        self._target: _Target | None = None

    def know(self, connect_string: str, subscription: str) -> None:
        """Note where the target is, once it is there."""
        self._target = _Target(connect_string, subscription)

    def scn(self, tables: Collection[str]) -> int:
        """Return where a run without a checkpoint starts for the loads' sake.

        Args:
            tables: every ``OWNER.NAME`` that is wanted.

        Returns:
            0 where it starts at the oldest log, or the target cannot be asked.

        Raises:
            OlrPgError: 5107, a table is loaded only in part.
        """
        if self._target is None:
            return 0
        try:
            with connect(self._target.connect_string, replica=False) as connection:
                row = connection.execute("SELECT to_regclass('olr_pg.load') IS NOT NULL").fetchone()
                if row != (True,):
                    return 0
                found = read_handover(connection, self._target.subscription, tables)
        except (OlrPgError, psycopg.Error) as error:
            if isinstance(error, OlrPgError) and error.code == Code.TABLE_LOADED_IN_PART:
                raise  # before a dictionary is kept that is older than the rest of the load
            return 0  # what is wrong is told by who goes on to use the target
        return found.start(None, 0)
