"""Determines the SCN at which a first run starts to read redo after initial loads. The run needs
the dictionary as of that SCN.

An earlier dictionary, for example as of the oldest log, would lack the DDL up to that SCN, because
the redo of this DDL is not read. Rows would then be decoded with old columns and partitions.
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
    """Queries the target of a configuration for its loads. If there are several targets, no query
    is made.
    """

    def __init__(self) -> None:
        self._target: _Target | None = None

    def know(self, connect_string: str, subscription: str) -> None:
        """Set the target to query."""
        self._target = _Target(connect_string, subscription)

    def scn(self, tables: Collection[str]) -> int:
        """Return the SCN at which a run without a checkpoint starts because of loads.

        Args:
            tables: ``OWNER.NAME`` of every replicated table.

        Returns:
            The SCN; 0 if the run starts at the oldest log, or if the target cannot be queried.

        Raises:
            OlrPgError: 5107, a table is only partly loaded.
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
                raise  # fail before an older dictionary is stored
            return 0  # the applier reports an error of the target
        return found.start(None, 0)
