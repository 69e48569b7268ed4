"""Determines the SCN at which a run starts to read redo because of initial loads, and so which redo
must be kept for it.

After initial loads, a first run needs the dictionary as of the SCN at which it starts. An earlier
dictionary, for example as of the oldest log, would lack the DDL up to that SCN, because the redo of
this DDL is not read. Rows would then be decoded with old columns and partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
import structlog

from olr_pg.applier.session.handover import read_handover
from olr_pg.applier.target.connection import connect
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Collection

_log = structlog.get_logger(__name__)

_NEEDED: Final = """
SELECT least(
    (SELECT min(start_scn) FROM olr_pg.load WHERE subscription = %(name)s AND NOT handed_over),
    (SELECT start_scn FROM olr_pg.subscription WHERE subscription = %(name)s))
"""


class _Target(NamedTuple):
    connect_string: str
    subscription: str


class LoadedStart:
    """Queries the targets of a configuration for their loads."""

    def __init__(self) -> None:
        self._targets = list[_Target]()

    def know(self, connect_string: str, subscription: str) -> None:
        """Add a target to query."""
        self._targets.append(_Target(connect_string, subscription))

    def needed(self, scn: int) -> int | None:
        """Return the SCN below which no target needs redo, if everything below `scn` is confirmed.

        A load that replication has not passed can need older redo, also while it is still in
        progress: it can take hours, and meanwhile replication of the other tables continues. The
        same is true of a target that was restored from a backup.

        Returns:
            The SCN; None if a target cannot be queried.
        """
        for target in self._targets:
            try:
                with connect(target.connect_string, replica=None) as connection:
                    row = connection.execute(_NEEDED, {"name": target.subscription}).fetchone()
            except (OlrPgError, psycopg.Error) as error:
                _log.info(
                    "the vault removes no logs until this target can be queried", reason=str(error)
                )
                return None
            if row is not None and row[0] is not None:
                scn = min(scn, int(row[0]))
        return scn

    def scn(self, tables: Collection[str]) -> int:
        """Return the SCN at which a run without a checkpoint starts because of loads. If there are
        several targets, no query is made.

        Args:
            tables: ``OWNER.NAME`` of every replicated table.

        Returns:
            The SCN; 0 if the run starts at the oldest log, or if the target cannot be queried.

        Raises:
            OlrPgError: 5107, a table is only partly loaded.
        """
        if len(self._targets) != 1:
            return 0
        (target,) = self._targets
        try:
            with connect(target.connect_string, replica=None) as connection:
                row = connection.execute("SELECT to_regclass('olr_pg.load') IS NOT NULL").fetchone()
                if row != (True,):
                    return 0
                found = read_handover(connection, target.subscription, tables)
        except (OlrPgError, psycopg.Error) as error:
            if isinstance(error, OlrPgError) and error.code == Code.TABLE_LOADED_IN_PART:
                raise  # fail before an older dictionary is stored
            return 0  # the applier reports an error of the target
        return found.start(None, 0)
