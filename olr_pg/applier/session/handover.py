"""The handover from the initial load: replication starts where the loaded tables need it.

A table was loaded as of S. A transaction that was open at S and commits later began at or after
the load's start SCN, so replication starts there; what commits up to S is skipped by the ledger,
which has S for the table. Once everything up to S is confirmed, the server's checkpoint alone says
where to start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from psycopg import Connection

_READ = """
SELECT source_table, scn, start_scn, finished_at IS NOT NULL, handed_over
FROM olr_pg.load WHERE subscription = %s ORDER BY source_table
"""
_DONE = """
UPDATE olr_pg.load SET handed_over = true
WHERE subscription = %s AND finished_at IS NOT NULL AND NOT handed_over AND scn <= %s
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
INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)
SELECT subscription, %(table)s, %(target)s, %(scn)s FROM added
ON CONFLICT (subscription, source_table) DO UPDATE SET commit_scn = excluded.commit_scn
"""


class Created(NamedTuple):
    """A table that was made, without rows, while its redo was read.

    Attributes:
        scn: that the statement committed at.
        start_scn: no transaction that was open then began before it; 0 the oldest log.
        obj: `Table.object_key`.
    """

    scn: int
    start_scn: int
    obj: int


class Handover(NamedTuple):
    """The loads of a subscription that replication has not passed yet.

    Attributes:
        scn: the highest SCN that tables were loaded as of; 0 where there is nothing to hand over.
        start_scn: where to start for their sake; 0 the oldest log.
        covers_all: every table of the subscription was loaded, so that nothing before
            `start_scn` is needed by another one.
        tables: that were loaded.
    """

    scn: int = 0
    start_scn: int = 0
    covers_all: bool = False
    tables: frozenset[str] = frozenset()

    def start(self, saved_scn: int | None, configured_scn: int) -> int:
        """Return the SCN to start at.

        Args:
            saved_scn: of the server's checkpoint, None where it has none.
            configured_scn: where to start without a checkpoint.
        """
        if saved_scn is not None:
            return min(saved_scn, self.start_scn) if self.scn else saved_scn
        if self.scn and self.covers_all and configured_scn == 0:
            return self.start_scn
        # A later start, as at the load's SCN, would leave out what was open then.
        return min(configured_scn, self.start_scn or configured_scn)


def read_handover(
    connection: Connection[Any], subscription: str, tables: Collection[str]
) -> Handover:
    """Return the loads that are to be handed over.

    Args:
        tables: every ``OWNER.NAME`` of the subscription, empty where they are not known.

    Raises:
        OlrPgError: 5107, a table is loaded only in part.
    """
    loads = connection.execute(_READ, (subscription,)).fetchall()
    for name, scn, _, finished, _ in loads:
        if not finished and (not tables or name in tables):
            raise OlrPgError(
                Code.TABLE_LOADED_IN_PART, f"its load as of SCN {scn} has not ended", table=name
            )
    pending = [load for load in loads if load[3] and not load[4]]
    if not pending:
        return Handover()
    return Handover(
        max(scn for _, scn, *_ in pending),
        min(start for _, _, start, *_ in pending),
        bool(tables) and set(tables) <= {row[0] for row in loads},
        frozenset(name for name, *_ in pending),
    )


def end_handover(connection: Connection[Any], subscription: str, confirmed_scn: int) -> None:
    """Note that replication is past the loads up to `confirmed_scn`."""
    connection.execute(_DONE, (subscription, confirmed_scn))


def begin_created(
    connection: Connection[Any], subscription: str, table: str, target: str, created: Created
) -> bool:
    """Note that a table is as if it had been loaded, without a row, as it was made.

    Args:
        target: as the ledger names it.

    Returns:
        False where the ledger knows the table already.
    """
    values = {
        "subscription": subscription,
        "table": table,
        "target": target,
        "scn": created.scn,
        "start_scn": created.start_scn,
    }
    return connection.execute(_CREATED, values).rowcount == 1
