"""Finds out from the ledger which applied transactions the source no longer contains after a
RESETLOGS.
"""

from __future__ import annotations

from typing import NamedTuple

import psycopg

from olr_pg.applier.target.connection import connect
from olr_pg.postgres.sqlstates import target_error

_SELECT = """
SELECT source_table, target_table, commit_scn, xids FROM olr_pg.ledger AS l
WHERE subscription = %s AND commit_scn >= %s
    AND to_jsonb(l) ->> 'resetlogs_id' IS DISTINCT FROM %s::text
ORDER BY commit_scn, source_table
"""
"""The column is missing before version 14 of the ledger."""


class Orphan(NamedTuple):
    """The last transactions that were applied to a table, if they commit at or after the SCN to
    which the source was set back.

    Attributes:
        xids: the XIDs, as text, of the transactions that commit at `commit_scn`. The ledger does
            not contain XIDs of earlier transactions.
    """

    source_table: str
    target_table: str
    commit_scn: int
    xids: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.target_table} up to SCN {self.commit_scn} (XID {', '.join(self.xids)})"


def orphaned_transactions(
    connect_string: str, subscription: str, scn: int, resetlogs_id: int
) -> list[Orphan]:
    """Return the last applied transactions of each table that commit at or after `scn`, as recorded
    in the ledger.

    Args:
        resetlogs_id: the incarnation that began at `scn`. Tables whose position belongs to it were
            loaded again since.

    Raises:
        OlrPgError: any error of `postgres.sqlstates`, such as 5003, the target cannot be reached.
    """
    try:
        with connect(connect_string, replica=None) as connection:
            rows = connection.execute(_SELECT, (subscription, scn, resetlogs_id)).fetchall()
    except psycopg.errors.UndefinedTable:
        return []
    except psycopg.Error as error:
        raise target_error(error) from error
    return [Orphan(table, target, at, tuple(xids)) for table, target, at, xids in rows]
