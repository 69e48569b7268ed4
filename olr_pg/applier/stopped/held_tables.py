"""Reads which tables are stopped, and the oldest held change of each table. This change shows since
when the table is behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.applier.stopped.error_table import count_incomplete
from olr_pg.observability.periodic import steady_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from psycopg import Connection

# Select the age, not the time, because the clock of the target can differ from ours.
_FIRST: Final = """
SELECT l.source_table, h.commit_scn,
    extract(epoch FROM clock_timestamp() - h.held_at)::float8, e.id
FROM olr_pg.ledger AS l CROSS JOIN LATERAL (
    SELECT commit_scn, held_at FROM olr_pg.held AS h
    WHERE h.subscription = l.subscription AND h.source_table = l.source_table
    ORDER BY h.id LIMIT 1
) AS h LEFT JOIN LATERAL (
    SELECT id FROM olr_pg.error AS e
    WHERE e.subscription = l.subscription AND e.source_table = l.source_table
        AND e.resolution = 'stopped' ORDER BY commit_scn, id LIMIT 1
) AS e ON true
WHERE l.subscription = %s AND l.stopped
"""
_STOPPED: Final = "SELECT source_table FROM olr_pg.ledger WHERE subscription = %s AND stopped"


class FirstHeld(NamedTuple):
    """The first held change of a stopped table.

    Attributes:
        commit_scn: the commit SCN of the change's transaction. The table contains all transactions
            that committed before this SCN.
        since: when the change was held, in seconds of Unix time.
        error_id: the id of the row in `olr_pg.error` that stops the table, or None.
    """

    commit_scn: int
    since: float
    error_id: int | None = None


class HeldTables:
    """The stopped tables of a subscription, their first held changes, and the numbers of missing
    LOB values, as of the last `look`; thread-safe.

    Attributes:
        stopped: the tables that are stopped or paused.
    """

    def __init__(self, subscription: str) -> None:
        self._subscription = subscription
        self.stopped: frozenset[str] = frozenset()
        self._first: Mapping[str, FirstHeld] = {}
        self._incomplete: Mapping[str, int] = {}

    def look(self, connection: Connection[Any]) -> None:
        """Read the held tables from the target."""
        stopped = connection.execute(_STOPPED, (self._subscription,)).fetchall()
        self.stopped = frozenset(name for (name,) in stopped)
        found = connection.execute(_FIRST, (self._subscription,)).fetchall()
        now = steady_time()
        self._first = {
            name: FirstHeld(scn, now - max(age, 0.0), number) for name, scn, age, number in found
        }
        self._incomplete = count_incomplete(connection, self._subscription)

    def incomplete(self, table: str) -> int:
        """Return the number of a table's missing LOB values."""
        return self._incomplete.get(table, 0)

    def first(self, table: str) -> FirstHeld | None:
        """Return the first held change of a table, or None."""
        return self._first.get(table)
