"""Reads the state of each table of a subscription from the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg.rows import class_row

if TYPE_CHECKING:
    from psycopg import Connection

_READ = """
SELECT l.source_table, l.target_table, l.commit_scn, l.stopped, l.paused,
    coalesce(h.transactions, 0) AS held_transactions, coalesce(h.bytes, 0) AS held_bytes,
    (load.source_table IS NOT NULL AND load.finished_at IS NULL) AS loading
FROM olr_pg.ledger AS l LEFT JOIN LATERAL (
    SELECT count(DISTINCT (commit_scn, xid)) AS transactions,
        sum(octet_length(data))::bigint AS bytes
    FROM olr_pg.held AS h
    WHERE h.subscription = l.subscription AND h.source_table = l.source_table
) AS h ON l.stopped
LEFT JOIN olr_pg.load AS load USING (subscription, source_table)
WHERE l.subscription = %s ORDER BY l.source_table
"""


class TableState(NamedTuple):
    """The state of a table in the ledger.

    Attributes:
        commit_scn: the commit SCN up to which its changes are applied or held.
        stopped: whether the changes of the table are held. `paused`: whether they are held because
            an operator has paused the table.
        loading: whether the table's initial load is not complete yet.
    """

    source_table: str
    target_table: str
    commit_scn: int
    stopped: bool
    paused: bool
    held_transactions: int
    held_bytes: int
    loading: bool

    @property
    def word(self) -> str:
        """The state in one word: "paused", "stopped", "loading" or "replicated"."""
        if self.paused:
            return "paused"
        return "stopped" if self.stopped else "loading" if self.loading else "replicated"


def read_table_states(connection: Connection[Any], subscription: str) -> list[TableState]:
    """Read the state of each table in the ledger."""
    with connection.cursor(row_factory=class_row(TableState)) as cursor:
        return cursor.execute(_READ, (subscription,)).fetchall()
