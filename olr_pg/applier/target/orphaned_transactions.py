"""Finds out from the ledger which applied transactions the source no longer contains after a
RESETLOGS.

`follow_incarnation` records which incarnation of the source the target contains, and notices a
RESETLOGS to an SCN that the target has passed.

An OPEN RESETLOGS at an SCN orphans the transactions that committed from this SCN on, and the new
incarnation uses their SCNs again. If the target has orphaned transactions, no other check notices
them: the source does not contain them, and the ledger would skip the transactions of the new
incarnation with the same SCNs. `context.data` has its own record (`capture.lineage`), but it can be
lost, be restored from an older backup, or serve several targets.

So each row of the ledger names the incarnation that contains its position. The session checks and
updates these rows when the server announces the incarnations of the source: at its start, and
before it delivers the first change of a new incarnation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog

from olr_pg.applier.target.connection import connect
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import target_error

if TYPE_CHECKING:
    from collections.abc import Collection

    from psycopg import Connection

    from olr_pg.transactions.schema_event import Ancestry

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
        resetlogs_id: the incarnation that began at `scn`. If a table's position belongs to this
            incarnation, the table was loaded again after the RESETLOGS.

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


_BEFORE: Final = "SELECT resetlogs_id FROM olr_pg.incarnation WHERE subscription = %s FOR UPDATE"
_FURTHEST: Final = """
SELECT DISTINCT ON (resetlogs_id) resetlogs_id, source_table, commit_scn FROM olr_pg.ledger
WHERE subscription = %(name)s AND resetlogs_id <> %(current)s AND commit_scn > 0
    AND (source_table = ANY(%(tables)s) OR cardinality(%(tables)s::text[]) = 0)
ORDER BY resetlogs_id, commit_scn DESC, source_table
"""
_TABLES: Final = """
UPDATE olr_pg.ledger SET resetlogs_id = %(current)s
WHERE subscription = %(name)s AND resetlogs_id IS DISTINCT FROM %(current)s
    AND (source_table = ANY(%(tables)s) OR cardinality(%(tables)s::text[]) = 0)
"""
_SUBSCRIPTION: Final = """
INSERT INTO olr_pg.incarnation AS i (subscription, resetlogs_id, resetlogs_scn)
VALUES (%(name)s, %(current)s, %(scn)s)
ON CONFLICT (subscription) DO UPDATE SET resetlogs_id = excluded.resetlogs_id,
    resetlogs_scn = excluded.resetlogs_scn, followed_at = now()
    WHERE i.resetlogs_id <> excluded.resetlogs_id
"""
_SET_BACK: Final = """
UPDATE olr_pg.subscription
SET complete_scn = least(complete_scn, greatest(%(end)s - 1, 0)),
    start_scn = least(start_scn, %(end)s)
WHERE subscription = %(name)s AND (complete_scn >= %(end)s OR start_scn > %(end)s)
"""

_log = structlog.get_logger(__name__)


def follow_incarnation(
    connection: Connection[Any],
    subscription: str,
    ancestry: Ancestry,
    tables: Collection[str],
    saved_scn: int | None,
) -> bool:
    """Check that the source's current incarnation contains the tables' positions, and record it for
    them. Rows of the ledger without an incarnation are assumed to belong to it.

    No other session may advance the positions meanwhile.

    Args:
        tables: ``OWNER.NAME`` of each table; empty if unknown, which means all.
        saved_scn: the SCN in the server's checkpoint at the start of the session, or None.

    Returns:
        Whether the positions of the subscription were lowered to where the new incarnation began.

    Raises:
        OlrPgError: 7020, a table or the checkpoint is at an SCN that was orphaned.
    """
    current = ancestry.current
    named: dict[str, Any] = {
        "name": subscription,
        "current": current.resetlogs_id,
        "scn": current.resetlogs_scn,
        "tables": list(tables),
    }
    with connection.transaction():
        for former, table, scn in connection.execute(_FURTHEST, named).fetchall():
            end = ancestry.end_of(former)
            if end is not None and scn >= end:
                what = f"the target contains its transactions up to SCN {scn}"
                raise _behind(ancestry, former, end, what, table=table)
        row = connection.execute(_BEFORE, (subscription,)).fetchone()
        end = None if row is None else ancestry.end_of(int(row[0]))
        is_set_back = False
        if row is not None and end is not None:
            if saved_scn is not None and saved_scn > end:
                what = f"the checkpoint is at SCN {saved_scn}"
                raise _behind(ancestry, int(row[0]), end, what)
            is_set_back = connection.execute(_SET_BACK, {**named, "end": end}).rowcount > 0
            _log.info(
                "the source has a new incarnation",
                subscription=subscription,
                resetlogs_id=current.resetlogs_id,
                resetlogs_scn=current.resetlogs_scn,
            )
        connection.execute(_TABLES, named)
        connection.execute(_SUBSCRIPTION, named)
    return is_set_back


def _behind(
    ancestry: Ancestry, former: int, end: int, what: str, table: str | None = None
) -> OlrPgError:
    """Return the error that the target has passed the end of an incarnation.

    Args:
        end: the SCN at which the incarnation ended; 0 if the current one does not descend from it.
        what: a clause that says what shows this.
    """
    current = ancestry.current.resetlogs_id
    begin = (
        f"orphaned the redo of incarnation {former} from SCN {end} on"
        if end
        else f"does not descend from incarnation {former}"
    )
    return OlrPgError(
        Code.RESETLOGS_BEHIND_DELIVERED,
        f"incarnation {current} of the source {begin}, but {what}",
        table=table,
        resetlogs=current,
        scn=end,
    )
