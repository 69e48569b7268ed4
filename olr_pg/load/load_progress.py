"""Records in the target which partitions of an initial load are loaded, and as of which SCN.

The record of a partition, a row of ``olr_pg.load_part``, is inserted in the same transaction as the
rows of the partition. So a load that was killed can continue where it stopped, and a task that
Spark runs a second time does nothing. The record is inserted before these rows, so a second task
waits at the insert of the record until the first task commits or rolls back.

`LoadWatch` observes a load over a separate connection: how much is loaded, and how much PostgreSQL
is receiving now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ROWS_ARE_COUNTED
from olr_pg.applier.target.table_identity import COPIED, record_loaded
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg
    from psycopg import Connection

_LOCK_CLASS = 0x6F6C_7264
_MAX_BIGINT = (1 << 63) - 1

_READ = """
SELECT scn, start_scn, source, parts, finished_at IS NOT NULL,
    (SELECT coalesce(array_agg(part), '{}') FROM olr_pg.load_part p
     WHERE p.subscription = l.subscription AND p.source_table = l.source_table AND p.part >= 0),
    resetlogs_id, target_oid::int8
FROM olr_pg.load l WHERE subscription = %s AND source_table = %s
"""
_BEGIN = """
INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source, parts,
    resetlogs_id, target_oid)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_MARK = "INSERT INTO olr_pg.load_part (subscription, source_table, part) VALUES (%s, %s, -1)"
_UNMARK = "DELETE FROM olr_pg.load_part WHERE subscription = %s AND source_table = %s AND part = -1"
_LOCK = "SELECT FROM olr_pg.load WHERE subscription = %s AND source_table = %s FOR UPDATE"
_FORGET = """
WITH parts AS (DELETE FROM olr_pg.load_part WHERE subscription = %(s)s AND source_table = %(t)s),
emptied AS (DELETE FROM olr_pg.unlogged WHERE subscription = %(s)s AND source_table = %(t)s)
DELETE FROM olr_pg.load WHERE subscription = %(s)s AND source_table = %(t)s
"""
_UNLIST = """
DELETE FROM olr_pg.listed WHERE subscription = %(s)s AND source_table = %(t)s
"""
_FORGET_APPLIED = """
DELETE FROM olr_pg.ledger WHERE subscription = %(s)s AND source_table = %(t)s
"""
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
listed AS (DELETE FROM olr_pg.incomplete WHERE subscription = %(s)s AND source_table = %(t)s),
counted AS (
    UPDATE olr_pg.ledger SET held_rows = 0 WHERE subscription = %(s)s AND source_table = %(t)s)
UPDATE olr_pg.error SET last_seen = now(),
    resolution = CASE WHEN commit_scn > %(scn)s THEN 'applied' ELSE 'skipped' END
WHERE subscription = %(s)s AND source_table = %(t)s
    AND (resolution = 'stopped' OR resolution = 'skipped' AND commit_scn > %(scn)s)
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
      FROM olr_pg.load_part WHERE subscription = %(s)s AND source_table = %(t)s AND part >= 0) p
WHERE subscription = %(s)s AND source_table = %(t)s AND p.parts = load.parts
RETURNING load.rows, load.bytes
"""
_SEED = f"""
INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, resetlogs_id,
    empty_at)
SELECT subscription, source_table, %(target)s, %(scn)s, resetlogs_id,
    CASE WHEN source <> '{COPIED}' AND {ROWS_ARE_COUNTED} THEN -rows END
FROM olr_pg.load AS l WHERE subscription = %(s)s AND source_table = %(t)s
ON CONFLICT (subscription, source_table) DO UPDATE
SET target_table = excluded.target_table, commit_scn = excluded.commit_scn, xids = '{{}}',
    resetlogs_id = excluded.resetlogs_id, stopped = olr_pg.ledger.paused, applied_at = now(),
    target_oid = NULL, target_place = NULL, empty_at = excluded.empty_at, left_scn = NULL
WHERE olr_pg.ledger.commit_scn = 0
"""  # noqa: S608 - constants alone
_AGE = """
SELECT extract(epoch FROM clock_timestamp() - started_at)::float8
FROM olr_pg.load WHERE subscription = %s AND source_table = %s
"""
_APPLIED = "SELECT commit_scn FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s"

_ANSWER_SECONDS: Final = 5.0
"""Maximum time to wait for an answer. This time is short, because a query is quick and the next
query follows soon.
"""

_PARTS = """
SELECT l.source_table, coalesce(sum(p.rows), 0)::int8, coalesce(sum(p.bytes), 0)::int8,
    count(p.part), l.parts
FROM olr_pg.load l LEFT JOIN olr_pg.load_part p
    ON (p.subscription, p.source_table) = (l.subscription, l.source_table) AND p.part >= 0
WHERE l.subscription = %s GROUP BY l.source_table, l.parts
"""
_UNDER_WAY = """
SELECT n.nspname, c.relname, sum(p.tuples_processed)::int8, sum(p.bytes_processed)::int8
FROM pg_stat_progress_copy p JOIN pg_class c ON c.oid = p.relid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.datname = current_database() AND p.command = 'COPY FROM' GROUP BY 1, 2
"""


class LoadState(NamedTuple):
    """The recorded state of one table's load.

    Attributes:
        scn: the SCN of the rows.
        start_scn: the SCN from which `run` must read redo for this table; 0 for the oldest log.
        source: identity of the table data.
        parts: number of partitions.
        finished: whether the table is completely loaded and recorded in the ledger.
        done: numbers of the loaded partitions.
        resetlogs_id: the incarnation of the source that the rows come from; None if unknown.
        target_oid: the OID of the target table that contains the rows; None if unknown.
    """

    scn: int
    start_scn: int
    source: str
    parts: int
    finished: bool = False
    done: frozenset[int] = frozenset()
    resetlogs_id: int | None = None
    target_oid: int | None = None


class TableLoadProgress(NamedTuple):
    """The load of one table of a subscription.

    Attributes:
        source_table: ``OWNER.NAME``.
        target_table: the name of the target table in the ledger.
    """

    subscription: str
    source_table: str
    target_table: str

    def read(self, connection: Connection[Any]) -> LoadState | None:
        """Read the record of the load; None if there is none."""
        row = connection.execute(_READ, self[:2]).fetchone()
        return None if row is None else LoadState(*row)._replace(done=frozenset(row[5]))

    def begin(self, connection: Connection[Any], load: LoadState) -> None:
        """Record the start of the load; records of the table's earlier state are deleted.

        The deleted records are held changes, and records of loaded partitions. Records of loaded
        partitions can exist if someone has deleted the record of an earlier load. Such partitions
        would count as partitions of this load, although their rows are missing. Changes after the
        load's SCN are delivered again, and none of them is skipped. If an operator has skipped a
        change before, this decision was about rows that the load replaces.
        """
        self._drop_held(connection, load.scn)
        self.forget(connection)
        connection.execute(_BEGIN, (*self, *load[:4], load.resetlogs_id, load.target_oid))
        # The transaction may also truncate the table. Because it also changes `load_part`, a way
        # back recognises that the TRUNCATE comes from Oracle, and does not empty Oracle's table.
        connection.execute(_MARK, self[:2])
        connection.execute(_UNMARK, self[:2])

    def forget(self, connection: Connection[Any]) -> None:
        """Delete the record of the load, in a transaction that also empties the table.

        The deletion waits until the running tasks of the load have ended. Tasks that start later do
        nothing, because they no longer find their SCN.
        """
        connection.execute(_LOCK, self[:2])
        connection.execute(_FORGET, {"s": self.subscription, "t": self.source_table})

    def forget_applied(self, connection: Connection[Any]) -> None:
        """Delete the table's position in the ledger, in a transaction that also empties the table.

        If an operator has paused the table, it stays paused.
        """
        connection.execute(_BEGIN_ANEW, self[:2])

    def leave(self, connection: Connection[Any]) -> None:
        """Delete all records of a table that is no longer replicated. The rows of the table are not
        deleted.
        """
        named = {"s": self.subscription, "t": self.source_table}
        with connection.transaction():
            # Delete this row first: an applier that starts meanwhile reads it, and would create the
            # table's row in the ledger again (`left_out`).
            connection.execute(_UNLIST, named)
            self._drop_held(connection, _MAX_BIGINT)
            self.forget(connection)
            connection.execute(_FORGET_APPLIED, named)

    def _drop_held(self, connection: Connection[Any], scn: int) -> None:
        """Delete the table's held changes, and resolve its errors.

        Args:
            scn: changes that commit after this SCN are delivered again.
        """
        values = {"s": self.subscription, "t": self.source_table, "scn": scn}
        connection.execute(_DROP_HELD, values)

    def claim(self, connection: Connection[Any], part: int, scn: int) -> bool:
        """Insert the partition's record, so that no other task loads it.

        Args:
            scn: the SCN of the partition's rows.

        Returns:
            False if the partition is already loaded, or if the load now has another SCN.
        """
        return connection.execute(_CLAIM, (part, *self[:2], scn)).rowcount == 1

    def note(self, connection: Connection[Any], part: int, rows: int, size: int) -> None:
        """Record the contents of a claimed partition, in the same transaction."""
        connection.execute(_COUNT, (rows, size, *self[:2], part))

    def finish(
        self, connection: Connection[Any], scn: int, oid: int | None = None
    ) -> tuple[int, int]:
        """Set the table's position in the ledger and record the end of the load, in one
        transaction; return (rows, bytes).

        Args:
            oid: the OID of the target table that contains the rows; None if it is unknown.

        Raises:
            OlrPgError: 5106 partitions are missing, 5105 the table is already replicated.
        """
        named = {"s": self.subscription, "t": self.source_table}
        with connection.transaction():
            done = connection.execute(_FINISH, named).fetchone()
            if done is None:
                raise OlrPgError(
                    Code.LOAD_INTERRUPTED, "partitions are missing", table=self.source_table
                )
            position = {**named, "target": self.target_table, "scn": scn}
            if connection.execute(_SEED, position).rowcount != 1:
                raise OlrPgError(
                    Code.TABLE_REPLICATED_ALREADY,
                    "the ledger's position has changed",
                    table=self.source_table,
                )
            if oid is not None:
                record_loaded(connection, *self[:2], oid)
        return int(done[0]), int(done[1])

    def age_seconds(self, connection: Connection[Any]) -> float:
        """Return the seconds since the load began. The SCN of the load was chosen slightly before
        this begin.
        """
        row = connection.execute(_AGE, self[:2]).fetchone()
        return 0.0 if row is None else float(row[0])

    def applied_scn(self, connection: Connection[Any]) -> int:
        """Return the commit SCN in the ledger; 0 if the table was never replicated."""
        row = connection.execute(_APPLIED, self[:2]).fetchone()
        return 0 if row is None else int(row[0])


def lock_subscription(connection: Connection[Any], subscription: str) -> None:
    """Lock the subscription while the connection is open, so that no other load of it can run.

    Raises:
        OlrPgError: 5108, another load is running.
    """
    row = connection.execute(
        "SELECT pg_try_advisory_lock(%s, hashtext(%s))", (_LOCK_CLASS, subscription)
    ).fetchone()
    if row != (True,):
        raise OlrPgError(Code.ANOTHER_LOAD, f"subscription {subscription}")


class Amount(NamedTuple):
    """How much of a table is loaded.

    Attributes:
        rows: number of rows, including rows that PostgreSQL is receiving now.
        bytes: number of bytes sent by COPY.
        expected: total number of rows, estimated from the loaded partitions; None if no partition
            is loaded.
        is_done: whether all partitions are loaded.
    """

    rows: int = 0
    bytes: int = 0
    expected: int | None = None
    is_done: bool = False


class LoadWatch:
    """Observes a load over its own connection to the target.

    Args:
        targets: ``OWNER.NAME`` → (schema, table) in the target.
    """

    def __init__(
        self, connect_string: str, subscription: str, targets: Mapping[str, tuple[str, str]]
    ) -> None:
        self._connection = connect(connect_string, replica=None, answer_seconds=_ANSWER_SECONDS)
        self._subscription = subscription
        self._sources = {target: source for source, target in targets.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection to the target."""
        return self._connection

    def read(self) -> dict[str, Amount]:
        """Read how much of each table is loaded, by ``OWNER.NAME``."""
        found = dict[str, Amount]()
        for name, rows, size, done, parts in self._connection.execute(
            _PARTS, (self._subscription,)
        ):
            expected = rows * parts // done if done else None
            found[name] = Amount(rows, size, expected, is_done=done == parts)
        for schema, table, rows, size in self._connection.execute(_UNDER_WAY):
            source = self._sources.get((schema, table))
            if source is not None:
                before = found.get(source, Amount())
                found[source] = before._replace(rows=before.rows + rows, bytes=before.bytes + size)
        return found
