"""The handover from the initial load to replication, which determines the SCN where replication
starts.

If a table was loaded as of SCN S, the load also has a start SCN: no transaction that was open at S
began before it. So replication starts at the start SCN. Transactions that committed up to S are
skipped, because the ledger contains S as the table's position. When all changes up to S are
confirmed, the load is handed over: only the server's checkpoint determines where a restart begins.
"""

from __future__ import annotations

import shlex
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.applier.target.ledger import noted_start
from olr_pg.applier.target.table_identity import COPIED
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from psycopg import Connection

_READ = """
SELECT source_table, scn, start_scn, finished_at IS NOT NULL, handed_over, source,
    least(scn, coalesce((SELECT commit_scn FROM olr_pg.ledger AS t
        WHERE (t.subscription, t.source_table) = (l.subscription, l.source_table)), 0))
FROM olr_pg.load AS l WHERE subscription = %s ORDER BY source_table
"""
_DONE = """
UPDATE olr_pg.load SET handed_over = true
WHERE subscription = %s AND source_table = ANY(%s) AND finished_at IS NOT NULL AND NOT handed_over
    AND scn <= %s
RETURNING source_table, scn
"""
_IS_FURTHER = """
SELECT EXISTS (SELECT FROM olr_pg.subscription WHERE subscription = %s AND complete_scn > %s)
"""

_LOWEST_START: Final = """
SELECT start_scn, source_table FROM olr_pg.load WHERE subscription = %s AND NOT handed_over
ORDER BY 1, 2 LIMIT 1
"""

_PENDING: Final = """
SELECT start_scn, min(source_table) FROM olr_pg.load
WHERE subscription = %s AND NOT handed_over AND source NOT IN ('created', 'renamed')
GROUP BY start_scn
"""

_CREATED: Final = """
WITH added AS (
    INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source,
        parts, rows, bytes, finished_at)
    SELECT %(subscription)s, %(table)s, %(target)s, %(scn)s, %(start_scn)s, 'created', 0, 0, 0,
        now()
    WHERE NOT EXISTS (
        SELECT FROM olr_pg.ledger
        WHERE subscription = %(subscription)s AND source_table = %(table)s AND commit_scn > 0)
    ON CONFLICT DO NOTHING RETURNING subscription
)
INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, resetlogs_id)
SELECT subscription, %(table)s, %(target)s, %(scn)s, i.resetlogs_id
FROM added LEFT JOIN olr_pg.incarnation AS i USING (subscription)
ON CONFLICT (subscription, source_table) DO UPDATE
SET commit_scn = excluded.commit_scn, resetlogs_id = excluded.resetlogs_id
"""

_CREATED_AGAIN: Final = """
WITH there AS (
    UPDATE olr_pg.ledger AS l SET left_scn = NULL
    WHERE subscription = %(subscription)s AND source_table = %(table)s AND left_scn IS NOT NULL
        AND (left_scn <= %(scn)s OR %(is_just_read)s AND commit_scn >= %(scn)s AND NOT stopped)
        AND NOT EXISTS (SELECT FROM olr_pg.load AS o WHERE o.subscription = l.subscription
            AND o.source_table = l.source_table AND o.finished_at IS NULL)
    RETURNING subscription, source_table, target_table
)
INSERT INTO olr_pg.load AS o (subscription, source_table, target_table, scn, start_scn, source,
    parts, rows, bytes, finished_at)
SELECT there.*, %(scn)s, %(start_scn)s, 'created', 0, 0, 0, now() FROM there
ON CONFLICT (subscription, source_table) DO UPDATE
SET scn = greatest(o.scn, excluded.scn), start_scn = excluded.start_scn, handed_over = false
"""

_ADDED: Final = """
INSERT INTO olr_pg.ledger AS l (subscription, source_table, target_table, commit_scn, resetlogs_id,
    empty_at)
SELECT named.*, i.resetlogs_id, NULL
FROM (VALUES (%s::text, %s::text, %s::text, %s::bigint))
    AS named (subscription, source_table, target_table, commit_scn)
    LEFT JOIN olr_pg.incarnation AS i USING (subscription)
ON CONFLICT (subscription, source_table) DO UPDATE
SET commit_scn = excluded.commit_scn, xids = '{}', resetlogs_id = excluded.resetlogs_id,
    empty_at = NULL
WHERE (l.left_scn IS NOT NULL OR %s) AND NOT l.stopped AND l.commit_scn < excluded.commit_scn
"""


RENAMED: Final = "renamed"
"""The identity of the data of the old name of a renamed table (`stopped.renaming`)."""


class Created(NamedTuple):
    """A table that was created empty, or renamed, while its redo was read.

    Attributes:
        scn: the table has no changes up to this SCN. The value is the commit SCN of the CREATE, or
            the SCN before the commit of a rename.
        start_scn: no transaction that was open at `scn` began before this SCN; 0 to start with the
            oldest log.
        obj: the table's `Table.object_key`.
        is_renamed: whether the table was renamed, and not created. Until the rename is applied, its
            rows are in the target table of the old name.
        is_just_read: whether this process has read the redo of the creation, and no applier has
            begun with the table since then.
    """

    scn: int
    start_scn: int
    obj: int
    is_renamed: bool = False
    is_just_read: bool = False


class Handover(NamedTuple):
    """The loads of a subscription that replication has not caught up with yet.

    Attributes:
        scn: each table was loaded as of an SCN; this is the highest of these SCNs. 0 if there is
            nothing to hand over.
        start_scn: the SCN at which replication must start for these loads; 0 to start with the
            oldest log.
        covers_all: whether these are loads of every table of the subscription, so that no table
            needs redo before `start_scn`.
        tables: the loaded tables, each with the SCN up to which the ledger contains its load; 0
            if the ledger lacks the table.
        unlisted: tables with a complete load that the subscription does not contain, so that the
            load is not handed over. The redo from the load on is kept for these tables.
        lowest_scn: the lowest of the SCNs as of which these tables were loaded; 0 if there is
            nothing to hand over.
    """

    scn: int = 0
    start_scn: int = 0
    covers_all: bool = False
    tables: Mapping[str, int] = MappingProxyType({})
    unlisted: frozenset[str] = frozenset()
    lowest_scn: int = 0

    def start(self, saved_scn: int | None, configured_scn: int) -> int:
        """Return the SCN at which replication must start.

        Args:
            saved_scn: the SCN of the server's checkpoint; None if it has none.
            configured_scn: where to start if there is no checkpoint.
        """
        if saved_scn is not None:
            return min(saved_scn, self.start_scn) if self.scn else saved_scn
        if self.scn and self.covers_all and configured_scn == 0:
            return self.start_scn
        # A later start would miss transactions that were open at the SCN of a load.
        return min(configured_scn, self.start_scn or configured_scn)


class NeededRedo(NamedTuple):
    """What the target knows about the redo that replication will need, besides the server's
    checkpoint.

    Attributes:
        loads: the lowest start SCN of the loads that replication has not reached yet. This includes
            incomplete loads and copies. None without such a load.
        table: ``OWNER.NAME`` of the table with this load; empty without such a load.
        recorded: the SCN of the last checkpoint that the target has a record of; None without a
            record. This SCN is lower than that of the server's checkpoint if the target was
            restored from a backup.
    """

    loads: int | None
    table: str
    recorded: int | None


def read_needed(connection: Connection[Any], subscription: str) -> NeededRedo:
    """Return what the target knows about the redo that replication will need."""
    load = connection.execute(_LOWEST_START, (subscription,)).fetchone()
    loads, table = (None, "") if load is None else load
    return NeededRedo(loads, table, noted_start(connection, subscription))


def read_pending(connection: Connection[Any], subscription: str) -> dict[int, str]:
    """Return the start SCNs of the loads that replication has not reached yet, each with the name
    of a loaded table; also of loads and copies that are not complete.
    """
    return dict(connection.execute(_PENDING, (subscription,)).fetchall())


def read_handover(
    connection: Connection[Any], subscription: str, tables: Collection[str]
) -> Handover:
    """Return the loads that are complete but not handed over yet.

    Args:
        tables: the names of all tables of the subscription (``OWNER.NAME``); empty if unknown. The
            load of another table is not handed over, because its changes are not requested. An
            exception is the old name of a renamed table: no table will have it again.

    Raises:
        OlrPgError: 5107, a table is only partly loaded; 5119, another tool copies its rows.
    """
    loads = connection.execute(_READ, (subscription,)).fetchall()
    for name, scn, _, finished, _, source, _ in loads:
        if not finished and (not tables or name in tables):
            if source == COPIED:
                raise copy_under_way(name, scn)
            raise OlrPgError(
                Code.TABLE_LOADED_IN_PART,
                f"the load of the table as of SCN {scn} is not complete",
                table=name,
            )
    complete = [load for load in loads if load[3] and not load[4]]
    pending = [load for load in complete if not tables or load[0] in tables or load[5] == RENAMED]
    unlisted = frozenset(name for name, *_ in complete) - {name for name, *_ in pending}
    if not pending:
        return Handover(unlisted=unlisted)
    return Handover(
        max(scn for _, scn, *_ in pending),
        min(start for _, _, start, *_ in pending),
        bool(tables) and set(tables) <= {row[0] for row in pending},
        {name: loaded_scn for name, *_, loaded_scn in pending},
        unlisted,
        min(scn for _, scn, *_ in pending),
    )


def copy_under_way(name: str, scn: int) -> OlrPgError:
    """Return the error that another tool copies the rows of a table."""
    word = shlex.quote(name)
    return OlrPgError(
        Code.COPY_NOT_USABLE,
        f"another tool copies the rows of the table as of SCN {scn}",
        action="when the copy is complete, repeat the command that began it, with --end-copy"
        f" instead of --begin-copy. To load the table with olr_pg instead, run `olr-pg initial-load"
        f" --restart --table {word}`, which empties it. For a copy that `olr-pg tables add` began,"
        f" run `olr-pg tables remove {word}`, empty the table, and run `olr-pg tables add {word}`",
        table=name,
    )


def begin_again(name: str) -> str:
    """Return how to begin a copy by another tool again, at a later SCN."""
    word = shlex.quote(name)
    return (
        f"begin the copy again with `olr-pg initial-load --begin-copy --restart --table {word}`,"
        " which empties the table. For a copy that `olr-pg tables add` began, run `olr-pg tables"
        f" remove {word}`, empty the table, and run `olr-pg tables add {word} --begin-copy`"
    )


def end_handover(
    connection: Connection[Any], subscription: str, handover: Handover, confirmed_scn: int
) -> Mapping[str, int] | None:
    """Record that the loads up to `confirmed_scn` are handed over.

    The result does not contain a load that was completed after `handover` was read. The changes of
    its table are not requested yet, although `confirmed_scn` may be higher than the SCN of the
    load.

    Call this method only if `confirmed_scn` has reached the SCN up to which all tables of the
    subscription were recorded as complete. That SCN may be higher than the SCN of a new load. The
    loaded tables must also contain all their changes up to that SCN.

    Returns:
        The tables that are now handed over, with the SCN of their load; None if it is too early.
    """
    if connection.execute(_IS_FURTHER, (subscription, confirmed_scn)).fetchone() == (True,):
        return None
    tables = list(handover.tables)
    return dict(connection.execute(_DONE, (subscription, tables, confirmed_scn)).fetchall())


def begin_created(
    connection: Connection[Any], subscription: str, table: str, target: str, created: Created
) -> bool:
    """Record a newly created table as loaded, with no rows, as of its creation.

    Args:
        target: the name of the target table for the ledger.

    Returns:
        False if the ledger already contains the table.
    """
    values = {**_values(subscription, table, created), "target": target}
    return connection.execute(_CREATED, values).rowcount == 1


def begin_created_again(
    connection: Connection[Any], subscription: str, table: str, created: Created
) -> bool:
    """Make replication start at the creation of a table that the ledger already contains, if
    changes since the creation may not have been delivered.

    There are two such tables. The first one was created after the list had lost an earlier table of
    its name: the ledger contains only the earlier table. The creation of the other one was read
    again by this process: somebody has restored older files of `context.data`, so the first list of
    this process lacked the table. The ledger shows which changes the table already has. The other
    tables may have confirmed more since the creation, but the redo since then is available.

    Returns:
        False if the ledger does not contain such a table.
    """
    values = _values(subscription, table, created)
    return connection.execute(_CREATED_AGAIN, values).rowcount == 1


def _values(subscription: str, table: str, created: Created) -> dict[str, Any]:
    return {
        "subscription": subscription,
        "table": table,
        "scn": created.scn,
        "start_scn": created.start_scn,
        "is_just_read": created.is_just_read,
    }


def begin_added(
    connection: Connection[Any],
    subscription: str,
    table: str,
    target: str,
    scn: int,
    *,
    is_absent: bool = False,
) -> None:
    """Record that an operator wants only the changes of a table that commit after `scn`: its rows
    are in the target already, so earlier changes would be applied a second time. If the table is
    being replicated, nothing changes.

    Args:
        target: the name of the target table for the ledger.
        is_absent: whether it is known that the table is not being replicated, although no start
            has recorded this yet: an earlier command was killed before it changed the list.
    """
    connection.execute(_ADDED, (subscription, table, target, scn, is_absent))
