"""Keeps in the target which partitions of an initial load are in, and as of which SCN.

A partition's line of ``olr_pg.load_part`` is written in the transaction of its rows, so that a
killed load goes on where it was, and a task that Spark runs twice finds its work done. The line
comes first: a second task waits there until the first one has committed or is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

_LOCK_CLASS = 0x6F6C_7264

_READ = """
SELECT scn, start_scn, source, parts, finished_at IS NOT NULL,
    (SELECT coalesce(array_agg(part), '{}') FROM olr_pg.load_part p
     WHERE p.subscription = l.subscription AND p.source_table = l.source_table)
FROM olr_pg.load l WHERE subscription = %s AND source_table = %s
"""
_BEGIN = """
INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source, parts)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""
_LOCK = "SELECT FROM olr_pg.load WHERE subscription = %s AND source_table = %s FOR UPDATE"
_FORGET = """
WITH parts AS (DELETE FROM olr_pg.load_part WHERE subscription = %(s)s AND source_table = %(t)s),
emptied AS (DELETE FROM olr_pg.unlogged WHERE subscription = %(s)s AND source_table = %(t)s)
DELETE FROM olr_pg.load WHERE subscription = %(s)s AND source_table = %(t)s
"""
_FORGET_APPLIED = "DELETE FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s"
_BEGIN_ANEW = """
WITH former AS (
    DELETE FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s
    RETURNING subscription, source_table, target_table, paused
)
INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, paused, stopped)
SELECT subscription, source_table, target_table, 0, true, true FROM former WHERE paused
"""
_DROP_HELD = """
WITH held AS (DELETE FROM olr_pg.held WHERE subscription = %(s)s AND source_table = %(t)s),
listed AS (DELETE FROM olr_pg.incomplete WHERE subscription = %(s)s AND source_table = %(t)s)
UPDATE olr_pg.error SET resolution = 'skipped', last_seen = now()
WHERE subscription = %(s)s AND source_table = %(t)s AND resolution = 'stopped'
"""
_CLAIM = """
INSERT INTO olr_pg.load_part (subscription, source_table, part)
SELECT subscription, source_table, %s FROM olr_pg.load
WHERE subscription = %s AND source_table = %s AND scn = %s FOR SHARE
ON CONFLICT DO NOTHING
"""
_COUNT = """
UPDATE olr_pg.load_part SET rows = %s, bytes = %s
WHERE subscription = %s AND source_table = %s AND part = %s
"""
_FINISH = """
UPDATE olr_pg.load SET finished_at = now(), rows = p.rows, bytes = p.bytes
FROM (SELECT count(*) AS parts, coalesce(sum(rows), 0) AS rows, coalesce(sum(bytes), 0) AS bytes
      FROM olr_pg.load_part WHERE subscription = %(s)s AND source_table = %(t)s) p
WHERE subscription = %(s)s AND source_table = %(t)s AND p.parts = load.parts
RETURNING load.rows, load.bytes
"""
_SEED = """
INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)
VALUES (%s, %s, %s, %s)
ON CONFLICT (subscription, source_table) DO UPDATE
SET target_table = excluded.target_table, commit_scn = excluded.commit_scn, xids = '{}',
    stopped = olr_pg.ledger.paused, applied_at = now()
WHERE olr_pg.ledger.commit_scn = 0
"""
_AGE = """
SELECT extract(epoch FROM clock_timestamp() - started_at)::float8
FROM olr_pg.load WHERE subscription = %s AND source_table = %s
"""
_APPLIED = "SELECT commit_scn FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s"


class LoadState(NamedTuple):
    """Holds what is known of one table's load.

    Attributes:
        scn: as of which the rows are.
        start_scn: where `run` starts for the sake of this table; 0 the oldest log.
        source: identity of the table data.
        parts: partitions in all.
        finished: everything is in, and the ledger knows it.
        done: the partitions that are in.
    """

    scn: int
    start_scn: int
    source: str
    parts: int
    finished: bool
    done: frozenset[int]


class TableLoadProgress(NamedTuple):
    """The load of one table of a subscription.

    Attributes:
        source_table: ``OWNER.NAME``.
        target_table: as the ledger names it.
    """

    subscription: str
    source_table: str
    target_table: str

    def read(self, connection: Connection[Any]) -> LoadState | None:
        """Read what is known; None where there was no load."""
        row = connection.execute(_READ, self[:2]).fetchone()
        return None if row is None else LoadState(*row)._replace(done=frozenset(row[5]))

    def begin(
        self, connection: Connection[Any], scn: int, start_scn: int, source: str, parts: int
    ) -> None:
        """Note that the load begins: what is noted of the table's former life counts no more.

        That is what was held, and partitions of a load whose own line somebody has deleted: they
        would pass for partitions of this one, and their rows would be missing.
        """
        connection.execute(_DROP_HELD, {"s": self.subscription, "t": self.source_table})
        self.forget(connection)
        connection.execute(_BEGIN, (*self, scn, start_scn, source, parts))

    def forget(self, connection: Connection[Any]) -> None:
        """Forget the load, in a transaction that empties the table too.

        Tasks of it that still run are waited for; later ones do not find their SCN any more.
        """
        connection.execute(_LOCK, self[:2])
        connection.execute(_FORGET, {"s": self.subscription, "t": self.source_table})

    def forget_applied(self, connection: Connection[Any]) -> None:
        """Forget how far the table is, in a transaction that empties the table too.

        A pause that somebody decided stays.
        """
        connection.execute(_BEGIN_ANEW, self[:2])

    def leave(self, connection: Connection[Any]) -> None:
        """Forget everything of a table that is replicated no more; its rows stay as they are."""
        with connection.transaction():
            connection.execute(_DROP_HELD, {"s": self.subscription, "t": self.source_table})
            self.forget(connection)
            connection.execute(_FORGET_APPLIED, self[:2])

    def claim(self, connection: Connection[Any], part: int, scn: int) -> bool:
        """Take a partition for this transaction.

        Args:
            scn: as of which its rows are.

        Returns:
            False where it is in already, or the load is not as of that SCN any more.
        """
        return connection.execute(_CLAIM, (part, *self[:2], scn)).rowcount == 1

    def note(self, connection: Connection[Any], part: int, rows: int, size: int) -> None:
        """Note what a claimed partition held, in the same transaction."""
        connection.execute(_COUNT, (rows, size, *self[:2], part))

    def finish(self, connection: Connection[Any], scn: int) -> tuple[int, int]:
        """Seed the ledger and note the end, together; (rows, bytes).

        Raises:
            OlrPgError: 5106 partitions are missing, 5105 the table has been replicated meanwhile.
        """
        with connection.transaction():
            done = connection.execute(
                _FINISH, {"s": self.subscription, "t": self.source_table}
            ).fetchone()
            if done is None:
                raise OlrPgError(
                    Code.LOAD_INTERRUPTED, "partitions are missing", table=self.source_table
                )
            if connection.execute(_SEED, (*self, scn)).rowcount != 1:
                raise OlrPgError(
                    Code.TABLE_REPLICATED_ALREADY, "the ledger has moved", table=self.source_table
                )
        return int(done[0]), int(done[1])

    def age_seconds(self, connection: Connection[Any]) -> float:
        """Return for how long the load has been going on; it was begun after its SCN was taken."""
        row = connection.execute(_AGE, self[:2]).fetchone()
        return 0.0 if row is None else float(row[0])

    def applied_scn(self, connection: Connection[Any]) -> int:
        """Read the commit SCN in the ledger; 0 where the table has never been replicated."""
        row = connection.execute(_APPLIED, self[:2]).fetchone()
        return 0 if row is None else int(row[0])


def lock_subscription(connection: Connection[Any], subscription: str) -> None:
    """Be the only load of the subscription, as long as the connection is open.

    Raises:
        OlrPgError: 5108, another one is at work.
    """
    row = connection.execute(
        "SELECT pg_try_advisory_lock(%s, hashtext(%s))", (_LOCK_CLASS, subscription)
    ).fetchone()
    if row != (True,):
        raise OlrPgError(Code.ANOTHER_LOAD, f"subscription {subscription}")
