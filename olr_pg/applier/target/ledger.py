"""The ledger: tables in the target that record which transactions each replicated table contains.

Facts: architecture, “The ledger is a table” (why no replication origin), protocol, “Positions” (two
transactions can have the same commit SCN).

`LoadsUnderWay` reads the progress of a subscription's initial loads, for status displays.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg

from olr_pg.applier.target.catalogue import relation_exists
from olr_pg.applier.target.connection import (
    OWN_MARK,
    check_owners,
    check_session,
    hash_joins,
    storable,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.monitor.status_values import LoadStatus
from olr_pg.observability.periodic import steady_time
from olr_pg.observability.redaction import mask
from olr_pg.postgres.sqlstates import LEDGER_GONE_ACTION, is_transient, plain_words
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from psycopg import Connection, Cursor

_CREATE_LOCK = 0x6F6C_725F_7067  # "olr_pg" in ASCII: one session at a time may create the ledger
VERSION: Final = 23
"""Version of the tables that this release creates."""

_COMMENT: Final = re.compile(r"--.*")
_CREATED_TABLE: Final = re.compile(
    r"CREATE (?:UNLOGGED )?TABLE IF NOT EXISTS olr_pg\.(\w+) \((.*?)\)(?: WITH \([^)]*\))?;",
    re.DOTALL,
)
_ADDED_COLUMN: Final = re.compile(r"ALTER TABLE olr_pg\.(\w+) ADD COLUMN IF NOT EXISTS (\w+)")
_KEY: Final = re.compile(r"(PRIMARY KEY|UNIQUE) \(([\w, ]+)\)")
_KEY_COLUMN: Final = re.compile(r"^ *(\w+) .*PRIMARY KEY(?! \()", re.MULTILINE)
_IN_PARENTHESES: Final = re.compile(r"\([^()]*\)")
_MISSING: Final = """
WITH own AS (
    SELECT c.oid, c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'olr_pg' AND c.relkind = 'r'
)
SELECT w.name, w.part, false, own.oid IS NULL
FROM unnest(%s::text[], %s::text[]) AS w (name, part) LEFT JOIN own ON own.relname = w.name
WHERE NOT EXISTS (SELECT FROM pg_attribute AS a
    WHERE a.attrelid = own.oid AND a.attname = w.part AND a.attnum > 0 AND NOT a.attisdropped)
UNION ALL
SELECT w.name, w.part, true, own.oid IS NULL
FROM unnest(%s::text[], %s::text[]) AS w (name, part) LEFT JOIN own ON own.relname = w.name
WHERE NOT EXISTS (SELECT FROM pg_index AS i
    WHERE i.indrelid = own.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
        AND i.indpred IS NULL AND w.part = (SELECT string_agg(a.attname, ',' ORDER BY a.attname)
            FROM pg_attribute AS a WHERE a.attrelid = own.oid AND a.attnum = ANY(i.indkey)))
ORDER BY 1, 2
"""
"""Selects missing parts: the table, the column or the key, whether it is a key, and whether the
whole table is missing.
"""
_OF_POSITIONS: Final = frozenset(
    ("ledger", "held", "subscription", "incarnation", "load", "load_part")
)
"""The tables without which it is unknown which changes the target contains."""

_PARTS_GONE_ACTION: Final = (
    "restore the missing tables of the schema olr_pg from a backup. If there is no backup, run"
    " sql/postgres/ledger.sql as the owner of the schema: it creates them empty, so olr_pg no"
    " longer knows what they contained. Then start the same command again, and run"
    " `olr-pg doctor` and `olr-pg verify`"
)

_SCHEMA = "CREATE SCHEMA IF NOT EXISTS olr_pg"
_VERSION = "SELECT max(version) FROM olr_pg.version"

LOCK = f"""
SELECT commit_scn, xids, stopped, incomplete > 0, {OWN_MARK} FROM olr_pg.ledger
WHERE subscription = %s AND source_table = %s FOR UPDATE
"""  # noqa: S608 - constants alone
LOCK_ROW: Final = """
SELECT FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s FOR UPDATE
"""
"""Locks the row of a table, also outside the applier, and creates none."""

ADVANCE = """
UPDATE olr_pg.ledger SET commit_scn = %s, xids = %s, applied_at = now(),
    transactions = transactions + %s, inserted = inserted + %s, updated = updated + %s,
    deleted = deleted + %s, conflicts = conflicts + %s
WHERE subscription = %s AND source_table = %s
"""
_MOVE = """
UPDATE olr_pg.ledger SET commit_scn = %s, xids = %s
WHERE subscription = %s AND source_table = %s
"""
_COUNT = """
UPDATE olr_pg.ledger SET applied_at = now(),
    transactions = transactions + %s, inserted = inserted + %s, updated = updated + %s,
    deleted = deleted + %s, conflicts = conflicts + %s
WHERE subscription = %s AND source_table = %s
"""
_TOUCH = """
UPDATE olr_pg.ledger SET applied_at = applied_at WHERE subscription = %s AND source_table = %s
"""
_COUNT_INCOMPLETE = """
UPDATE olr_pg.ledger AS l SET incomplete = (
    SELECT count(*) FROM olr_pg.incomplete AS i
    WHERE i.subscription = l.subscription AND i.source_table = l.source_table)
WHERE subscription = %s AND source_table = %s RETURNING incomplete > 0
"""
_ADD_INCOMPLETE = """
UPDATE olr_pg.ledger SET incomplete = incomplete + %s
WHERE subscription = %s AND source_table = %s RETURNING incomplete > 0
"""
_STOP = """
UPDATE olr_pg.ledger SET stopped = true, held_source = %s
WHERE subscription = %s AND source_table = %s
"""
_KEEP_SOURCE = """
UPDATE olr_pg.ledger SET held_source = %s
WHERE subscription = %s AND source_table = %s AND held_source IS NULL
"""
_GO_ON = """
UPDATE olr_pg.ledger SET stopped = false, held_source = NULL
WHERE subscription = %s AND source_table = %s
"""
_TARGETS = """
SELECT source_table, target_table, commit_scn FROM olr_pg.ledger
WHERE subscription = %s AND source_table = ANY(%s) ORDER BY source_table
"""
_OF_OTHERS = """
SELECT DISTINCT ON (source_table) source_table, other.subscription,
    coalesce(other.dbid = %(dbid)s::bigint, false)
FROM olr_pg.ledger AS other
    JOIN unnest(%(sources)s::text[], %(targets)s::text[]) AS asked (source_table, target_table)
    USING (source_table, target_table)
WHERE other.commit_scn > greatest(%(start)s, (
        SELECT start_scn FROM olr_pg.subscription WHERE subscription = %(subscription)s))
    AND coalesce(other.dbid = %(dbid)s::bigint, true)
    AND NOT EXISTS (
        SELECT FROM olr_pg.ledger AS own
        WHERE own.subscription = %(subscription)s AND own.source_table = other.source_table)
ORDER BY source_table, other.dbid IS NULL, other.subscription
"""
_IF_ANOTHER_SOURCE: Final = (
    ". If this is another source database that writes to the same table, ignore this warning"
)
_RENAME = """
UPDATE olr_pg.ledger SET target_table = %s WHERE subscription = %s AND source_table = %s
"""
_EXISTING = """
SELECT n.nspname || '.' || c.relname FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname || '.' || c.relname = ANY(%s)
"""
ROWS_ARE_COUNTED: Final = """NOT EXISTS (SELECT FROM olr_pg.load_part AS p
    WHERE (p.subscription, p.source_table, p.part) = (l.subscription, l.source_table, -2))"""
"""The condition that no rename has brought rows to the table `l` (`stopped.renaming`)."""

SEED = f"""
INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, resetlogs_id,
    empty_at)
SELECT l.*, 0, i.resetlogs_id, CASE WHEN {ROWS_ARE_COUNTED} THEN 0 END
FROM (VALUES (%s::text, %s::text, %s::text)) AS l (subscription, source_table, target_table)
    LEFT JOIN olr_pg.incarnation AS i USING (subscription)
ON CONFLICT DO NOTHING
"""  # noqa: S608 - constants alone
"""Creates the row of a table without changes, in the incarnation that the subscription follows."""

_CLAIM = """
UPDATE olr_pg.ledger SET dbid = %s
WHERE subscription = %s AND source_table = ANY(%s) AND dbid IS NULL
"""
_STRANGER = """
SELECT source_table, dbid FROM olr_pg.ledger
WHERE subscription = %s AND source_table = ANY(%s) AND dbid <> %s ORDER BY source_table LIMIT 1
"""
_COMPLETE = """
INSERT INTO olr_pg.subscription AS s (subscription, complete_scn) VALUES (%s, %s)
ON CONFLICT (subscription) DO UPDATE
    SET complete_scn = excluded.complete_scn, complete_at = now()
    WHERE s.complete_scn < excluded.complete_scn
"""
_LOADED = """
UPDATE olr_pg.subscription SET complete_scn = %(scn)s
WHERE subscription = %(name)s AND complete_scn > %(scn)s
"""
_START = """
UPDATE olr_pg.subscription SET start_scn = %(scn)s
WHERE subscription = %(name)s AND start_scn IS DISTINCT FROM %(scn)s
"""
_SAVED = """
INSERT INTO olr_pg.subscription (subscription, complete_scn, start_scn)
VALUES (%(name)s, greatest(%(scn)s - 1, 0), %(scn)s)
ON CONFLICT (subscription) DO UPDATE SET start_scn = excluded.start_scn
    WHERE olr_pg.subscription.start_scn IS DISTINCT FROM excluded.start_scn
"""
_NOTED_START = "SELECT start_scn FROM olr_pg.subscription WHERE subscription = %s"
_NOTED_COMPLETE = "SELECT complete_scn FROM olr_pg.subscription WHERE subscription = %s"
_RECORD = """
INSERT INTO olr_pg.error (subscription, source_table, target_table, commit_scn, xid, position,
    scn, row_id, operation, code, sqlstate, message, statement, before, after, resolution, action)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (subscription, source_table, commit_scn, xid, position) DO UPDATE SET
    last_seen = now(), attempts = olr_pg.error.attempts + 1, code = excluded.code,
    sqlstate = excluded.sqlstate, message = excluded.message, statement = excluded.statement,
    resolution = excluded.resolution, action = excluded.action
"""
_NOTED_REASON = """
SELECT FROM olr_pg.error
WHERE subscription = %s AND source_table = %s AND code = %s AND resolution = 'stopped' LIMIT 1
"""
_RETELL = """
UPDATE olr_pg.error SET message = %s, last_seen = now()
WHERE subscription = %s AND source_table = %s AND commit_scn = %s AND xid = %s AND position = %s
    AND resolution = 'stopped'
"""


class Reach(NamedTuple):
    """How far a table is, for comparisons: a larger tuple is further.

    Attributes:
        commit_scn: all transactions that commit below it are applied.
        transactions: the number of applied transactions that commit at `commit_scn`; `ALL` for all
            of them, 0 if the number is unknown.
    """

    commit_scn: int = 0
    transactions: int = 0


ALL: Final = (1 << 63) - 1
"""More transactions than can commit at one SCN."""


class TablePosition(NamedTuple):
    """A table's position: all transactions that commit below `commit_scn` are applied, and of those
    that commit at `commit_scn`, the ones in `xids`.

    Attributes:
        xids: XIDs as text, in the order in which they were applied. If empty, all transactions that
            commit at `commit_scn` are applied: the table was loaded as of this SCN, or has no
            transactions yet.
    """

    commit_scn: int
    xids: tuple[str, ...]

    @property
    def reach(self) -> Reach:
        """The position in the form in which positions are compared."""
        return Reach(self.commit_scn, len(self.xids) or ALL)

    def has(self, commit_scn: int, xid: int) -> bool:
        """Return whether this transaction is already applied."""
        if commit_scn != self.commit_scn or not self.xids:
            return commit_scn <= self.commit_scn
        return format_xid(xid) in self.xids

    def after(self, commit_scn: int, xid: int) -> TablePosition:
        """Return the position after this transaction is applied."""
        if commit_scn == self.commit_scn:
            return TablePosition(commit_scn, (*self.xids, format_xid(xid)))
        return TablePosition(commit_scn, (format_xid(xid),))


class LedgerState(NamedTuple):
    """The ledger's row of a table.

    Attributes:
        stopped: whether the table's changes are held. The table's changes up to `position` are
            applied or held.
    """

    position: TablePosition
    stopped: bool


class ChangeCounts(NamedTuple):
    """Counts of the applied transactions, of changes by kind, and of conflicts."""

    transactions: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    conflicts: int = 0

    @property
    def changes(self) -> int:
        """The number of inserted, updated and deleted rows."""
        return self.inserted + self.updated + self.deleted

    def plus(self, other: ChangeCounts) -> ChangeCounts:
        """Return the sum of the counts and other counts."""
        return ChangeCounts(*(a + b for a, b in zip(self, other, strict=True)))


class ErrorRow(NamedTuple):
    """A row of the error table; ledger.sql documents the columns."""

    commit_scn: int
    xid: str
    position: int
    scn: int
    row_id: str | None
    operation: str
    code: int
    sqlstate: str | None
    message: str
    statement: str | None
    before: str | None
    after: str | None
    resolution: str
    action: str | None = None


class _Shape(NamedTuple):
    """What sql/ledger.sql creates: pairs of a table and a column; and the SQL of each unique key,
    by the table and the columns of the key, sorted and separated by commas.
    """

    columns: list[tuple[str, str]]
    keys: dict[tuple[str, str], str]


def _script() -> bytes:
    return resources.files("olr_pg.applier").joinpath("sql/ledger.sql").read_bytes()


@cache
def _shape() -> _Shape:
    text = _COMMENT.sub("", _script().decode())
    shape = _Shape(_ADDED_COLUMN.findall(text), {})
    for table, body in _CREATED_TABLE.findall(text):
        own = (("PRIMARY KEY", name) for name in _KEY_COLUMN.findall(body))
        for kind, listed in (*_KEY.findall(body), *own):
            shape.keys[table, ",".join(sorted(listed.split(", ")))] = f"{kind} ({listed})"
        words = body
        while (shorter := _IN_PARENTHESES.sub("", words)) != words:
            words = shorter
        names = [one.split()[0] for one in words.split(",")]
        shape.columns.extend((table, name) for name in names if name.islower())
    return shape


def missing_parts(connection: Connection[Any]) -> OlrPgError | None:
    """Return the error that tables, columns or unique keys of the ledger are missing, although its
    version is current: somebody has dropped them. None if nothing is missing.
    """
    shape = _shape()
    values = [
        list(one) for one in (*zip(*shape.columns, strict=True), *zip(*shape.keys, strict=True))
    ]
    found = connection.execute(_MISSING, values).fetchall()
    if not found:
        return None
    tables = sorted({table for table, _, _, is_whole in found if is_whole})
    columns = sorted(
        f"{table}.{name}" for table, name, is_key, is_whole in found if not (is_key or is_whole)
    )
    keys = [(table, key) for table, key, is_key, is_whole in found if is_key and not is_whole]
    if tables or columns:
        names = ", ".join(f"olr_pg.{name}" for name in (*tables, *columns))
        action = LEDGER_GONE_ACTION if {*tables} & _OF_POSITIONS or columns else _PARTS_GONE_ACTION
        return OlrPgError(Code.LEDGER_UNUSABLE, f"the ledger lacks {names}", action=action)
    table, _ = keys[0]
    more = f" (and {len(keys) - 1} more keys are missing)" if len(keys) > 1 else ""
    script = "; ".join(f"ALTER TABLE olr_pg.{one[0]} ADD {shape.keys[one]}" for one in keys)
    return OlrPgError(
        Code.LEDGER_UNUSABLE,
        f"olr_pg.{table} lacks {shape.keys[keys[0]]}{more}",
        action=f"as the owner of the schema, run `{script}`, then start the same command again. If"
        " you have restored the database without the section post-data, restore this section"
        " instead: `pg_restore --section=post-data`",
    )


def ensure_ledger(connection: Connection[Any]) -> None:
    """Create the ledger's tables if they are missing, or upgrade them (`connection` in autocommit
    mode).

    Raises:
        OlrPgError: 5015, the role cannot create or upgrade the tables, or somebody has dropped a
            part of them; 5033, they belong to a stranger; 5140, a later release has created them.
    """
    if ledger_version(connection) != VERSION:
        _create_ledger(connection)
    missing = missing_parts(connection)
    if missing is not None:
        raise missing


def _create_ledger(connection: Connection[Any]) -> None:
    script = _script()
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_CREATE_LOCK])
            if ledger_version(connection) != VERSION:
                # A stranger can have created the schema since the connection was opened. From here
                # on, the schema exists, so no other transaction can create it.
                connection.execute(_SCHEMA)
                check_owners(connection)
                connection.execute(script)
    except psycopg.Error as error:
        if is_transient(error):
            raise
        reason = mask(plain_words(error))
        raise OlrPgError(
            Code.LEDGER_UNUSABLE,
            f"the tables of the ledger are missing or of an old version: {reason}",
        ) from error


def require_ledger(connection: Connection[Any]) -> None:
    """Upgrade the ledger's tables if necessary, but do not create them: without a ledger, the
    database may be a wrong one.

    Raises:
        OlrPgError: 5031, there is no ledger; and as `ensure_ledger`.
    """
    if not ledger_version(connection):
        info = connection.info
        raise OlrPgError(
            Code.LEDGER_MISSING,
            f"{info.dbname} on {info.host}, port {info.port}, has no schema olr_pg with the ledger",
        )
    ensure_ledger(connection)


def ledger_version(connection: Connection[Any]) -> int:
    """Return the version of the ledger's tables; 0 if they do not exist, or their version is
    unknown.
    """
    if not relation_exists(connection, "olr_pg.version"):
        return 0
    row = connection.execute(_VERSION).fetchone()
    found = 0 if row is None or row[0] is None else int(row[0])
    if found > VERSION:
        raise OlrPgError(
            Code.LEDGER_OF_LATER_RELEASE,
            f"the tables are of version {found}; this release supports version {VERSION} at most",
        )
    return found


def check_targets(
    connection: Connection[Any], subscription: str, targets: Mapping[str, str]
) -> None:
    """Check that the ledger's rows of these tables belong to their current target tables.

    If a row names another target table, it belongs to another stream of changes, so its position
    has no meaning for this stream. But if nothing was applied yet, or if the other target table no
    longer exists (because it was renamed), the row is updated to the current name.

    Args:
        targets: ``schema.name`` of the target table, by source table.

    Raises:
        OlrPgError: 5025, a row belongs to another target table.
    """
    for source, problem in _elsewhere(connection, subscription, targets):
        if problem is not None:
            raise problem
        connection.execute(_RENAME, (targets[source], subscription, source))


def of_other_tables(
    connection: Connection[Any], subscription: str, targets: Mapping[str, str]
) -> dict[str, OlrPgError]:
    """Return the errors with which a run would refuse target tables, because the ledger records
    their source tables for other target tables; see `check_targets`. This changes nothing.

    Returns:
        The errors by source table.
    """
    found = _elsewhere(connection, subscription, targets)
    return {source: problem for source, problem in found if problem is not None}


class OtherSubscription(NamedTuple):
    """Another subscription that has applied the changes of a source table to the same target table.

    Attributes:
        problem: the error 5032.
        is_certain: whether a run would apply changes of the same source database again. If False,
            the ledger does not show which database the changes come from.
    """

    problem: OlrPgError
    is_certain: bool


def other_subscriptions(
    connection: Connection[Any],
    subscription: str,
    targets: Mapping[str, str],
    *,
    dbid: int | None,
    start_scn: int,
) -> list[OtherSubscription]:
    """Return the other subscriptions whose changes a run of `subscription` would apply again,
    because it has not applied changes of these tables.

    A new subscription begins at the oldest log, so the rows of a table without a key would be
    inserted twice. The subscriptions of other source databases are left out: several databases can
    write to one table.

    Args:
        targets: as for `check_targets`.
        dbid: the DBID of the source; None if unknown.
        start_scn: the SCN at which a new subscription begins (`apply.start-scn`); 0 for the oldest
            log. A subscription that has begun continues at its own SCN (`note_start`). What was
            applied up to this SCN is not applied again.
    """
    asked = {"sources": list(targets), "targets": list(targets.values())}
    own = {"subscription": subscription, "dbid": dbid, "start": start_scn}
    with hash_joins(connection):
        rows = connection.execute(_OF_OTHERS, own | asked).fetchall()
    return [
        OtherSubscription(
            OlrPgError(
                Code.APPLIED_BY_ANOTHER,
                f"the subscription {other} has applied changes to {targets[source]}, and"
                f" {subscription} has not: a run would apply them again",
                action="if you have only changed the name, set `apply.subscription` to"
                f' "{other}" again. Otherwise load the table: `olr-pg initial-load --anew --table'
                f" {shlex.quote(source)}`, or set `apply.start-scn` to an SCN after these changes"
                + ("" if is_certain else _IF_ANOTHER_SOURCE),
                table=source,
            ),
            is_certain,
        )
        for source, other, is_certain in rows
    ]


def _elsewhere(
    connection: Connection[Any], subscription: str, targets: Mapping[str, str]
) -> Iterator[tuple[str, OlrPgError | None]]:
    """Yield the source tables that the ledger records for other target tables, with the error if
    the other table has rows of them.
    """
    lines = [
        (source, target, scn)
        for source, target, scn in connection.execute(_TARGETS, (subscription, list(targets)))
        if target != targets[source]
    ]
    asked = [target for _, target, scn in lines if scn]
    rows = connection.execute(_EXISTING, (asked,)).fetchall() if asked else []
    existing = {name for (name,) in rows}
    for source, target, scn in lines:
        if not scn or target not in existing:
            yield source, None
            continue
        yield (
            source,
            OlrPgError(
                Code.LEDGER_OF_ANOTHER_TABLE,
                f"the ledger records the table for the target table {target}, but the"
                f" configuration maps it to {targets[source]}",
                table=source,
                subscription=subscription,
            ),
        )


def check_source(
    connection: Connection[Any], subscription: str, dbid: int | None, tables: Collection[str]
) -> None:
    """Check that the ledger's rows of these tables belong to this source database. Assign ledger
    rows without a database to this source database.

    The SCNs of another database have no meaning for this database, even if the target tables are
    the same.

    Args:
        dbid: the DBID of the source; None if unknown, so that nothing is checked.
        tables: ``OWNER.NAME`` of each table.

    Raises:
        OlrPgError: 5027, a row belongs to another database.
    """
    if dbid is None:
        return
    names = list(tables)
    connection.execute(_CLAIM, (dbid, subscription, names))
    stranger = connection.execute(_STRANGER, (subscription, names, dbid)).fetchone()
    if stranger is not None:
        raise OlrPgError(
            Code.LEDGER_OF_ANOTHER_SOURCE,
            f"the ledger records the table for the database with DBID {stranger[1]}, but the"
            f" DBID of the source is {dbid}",
            table=stranger[0],
            subscription=subscription,
        )


def note_complete(connection: Connection[Any], subscription: str, scn: int) -> None:
    """Record that all transactions that commit up to `scn` are applied or held."""
    connection.execute(_COMPLETE, (subscription, scn))


def note_loaded(connection: Connection[Any], subscription: str, scn: int) -> None:
    """Record that every table of the subscription was loaded as of `scn` or later, and contains no
    changes that commit after its load.
    """
    connection.execute(_LOADED, {"name": subscription, "scn": scn})


def note_start(connection: Connection[Any], subscription: str, scn: int) -> None:
    """Record the SCN from which the server delivers all changes that the tables lack now."""
    connection.execute(_START, {"name": subscription, "scn": scn})


def note_saved(connection: Connection[Any], subscription: str, scn: int) -> None:
    """Record the same SCN as `note_start`, after all changes of transactions that began before
    `scn` are confirmed.

    The SCN is recorded even if nothing was ever applied, because the tables lack no transaction
    that commits before it.
    """
    connection.execute(_SAVED, {"name": subscription, "scn": scn})


def noted_start(connection: Connection[Any], subscription: str) -> int | None:
    """Return the SCN that `note_start` or `note_saved` has recorded; None if there is none."""
    row = connection.execute(_NOTED_START, (subscription,)).fetchone()
    return None if row is None else row[0]


def noted_complete(connection: Connection[Any], subscription: str) -> int:
    """Return the SCN that `note_complete` has recorded; 0 if there is none."""
    row = connection.execute(_NOTED_COMPLETE, (subscription,)).fetchone()
    return 0 if row is None else int(row[0])


class TableLedger:
    """The ledger's row of one table.

    Args:
        source_table: ``OWNER.NAME``.
        target_table: ``schema.name`` of the target table.
        dbid: the DBID of the source database, if it is known and must be checked.

    Attributes:
        listed: whether the list of incomplete rows contains entries of the table, as read when the
            row was locked.
    """

    def __init__(
        self, subscription: str, source_table: str, target_table: str, dbid: int | None = None
    ) -> None:
        self._key = (subscription, source_table)
        self._target = target_table
        self._dbid = dbid
        self._is_ours = False
        self.listed = False

    @property
    def key(self) -> tuple[str, str]:
        """Subscription and source table."""
        return self._key

    def lock(self, connection: Connection[Any]) -> LedgerState:
        """Lock the row until the end of the transaction. Create the row if it is missing.

        If the session of a killed applier is still executing its COMMIT, this waits for it.

        Raises:
            OlrPgError: 5015, the row cannot be created; 5027, the row belongs to another source
                database; 5029, the session is not the connection's own.
        """
        for _ in range(2):
            state = self.locked(self.send_lock(connection))
            if state is not None:
                if not self._is_ours:
                    check_source(connection, self._key[0], self._dbid, self._key[1:])
                    self._is_ours = True
                return state
            connection.execute(SEED, (*self._key, self._target))
        raise self._disappeared()

    def send_lock(self, connection: Connection[Any]) -> Cursor[Any]:
        """Send the query that locks the row and reads its state (pipelined). `locked` reads the
        answer.
        """
        return connection.execute(LOCK, self._key)

    def locked(self, cursor: Cursor[Any]) -> LedgerState | None:
        """Return the answer to the query of `send_lock`; None if the row does not exist.

        Raises:
            OlrPgError: 5029, the session is not the connection's own.
        """
        row = cursor.fetchone()
        if row is None:
            return None
        check_session(cursor.connection, row[4])
        self.listed = row[3]
        return LedgerState(TablePosition(row[0], tuple(row[1])), row[2])

    def advance(
        self, connection: Connection[Any], position: TablePosition, counters: ChangeCounts
    ) -> None:
        """Advance the row to `position`, in the transaction that has locked it."""
        connection.execute(
            ADVANCE, (position.commit_scn, list(position.xids), *counters, *self._key)
        )

    def move(self, connection: Connection[Any], position: TablePosition) -> None:
        """Advance the row to `position` for changes that are held, not applied."""
        connection.execute(_MOVE, (position.commit_scn, list(position.xids), *self._key))

    def touch(self, connection: Connection[Any]) -> None:
        """Update the row without changing it. The commit of this update makes PostgreSQL flush all
        earlier commits to disk.

        Raises:
            OlrPgError: 5015, the row is missing.
        """
        if connection.execute(_TOUCH, self._key).rowcount != 1:
            raise self._disappeared()

    def _disappeared(self) -> OlrPgError:
        return OlrPgError(
            Code.LEDGER_UNUSABLE,
            "the row of the table in the ledger has disappeared",
            action="something has deleted the row from olr_pg.ledger. Restore the row from a"
            " backup, or stop the appliance and load the table again: `olr-pg initial-load --anew"
            " --table OWNER.NAME`",
            table=self._key[1],
        )

    def count(self, connection: Connection[Any], counters: ChangeCounts) -> None:
        """Add the counts of held changes that were applied. The position does not change."""
        connection.execute(_COUNT, (*counters, *self._key))

    def count_incomplete(self, connection: Connection[Any], more: int | None = None) -> None:
        """Update the count of the table's entries in the list of incomplete rows.

        Args:
            more: the number by which the count changes; None to count the entries.
        """
        if more is None:
            row = connection.execute(_COUNT_INCOMPLETE, self._key).fetchone()
        else:
            row = connection.execute(_ADD_INCOMPLETE, (more, *self._key)).fetchone()
        self.listed = row is not None and row[0]

    def record(self, connection: Connection[Any], row: ErrorRow) -> None:
        """Insert a row into the error table. If the change already has a row, update it and count
        another attempt.
        """
        row = row._replace(
            message=storable(connection, row.message),
            statement=storable(connection, row.statement),
            action=storable(connection, row.action),
        )
        connection.execute(_RECORD, (*self._key, self._target, *row))

    def update_message(self, connection: Connection[Any], row: ErrorRow) -> None:
        """Set the message of the error table's row that stops the table, if there is one."""
        identity = (row.commit_scn, row.xid, row.position)
        message = storable(connection, row.message)
        connection.execute(_RETELL, (message, *self._key, *identity))

    def stop(self, connection: Connection[Any], held_source: str) -> None:
        """Mark the table as stopped.

        Args:
            held_source: the definition of the table for its first held change, as JSON
                (`held_events.source_document`).
        """
        connection.execute(_STOP, (held_source, *self._key))

    def stop_in_place(
        self, connection: Connection[Any], held_source: Callable[[int], str], reason: OlrPgError
    ) -> bool:
        """Stop the table at its current position, before its next change, in a transaction of its
        own.

        Args:
            held_source: returns the table's definition as of an SCN, as JSON
                (`held_events.source_document`).

        Returns:
            True if the table was not stopped before.
        """
        with connection.transaction():
            state = self.lock(connection)
            if state.stopped:
                return False
            self.stop(connection, held_source(state.position.commit_scn))
            self.record(connection, _stop_row(reason, state.position))
        return True

    def note_reason(self, connection: Connection[Any], reason: OlrPgError) -> None:
        """Record why a stopped table stays stopped, in a transaction of its own, unless a row with
        the code of the reason stops the table. There is no such row if somebody has skipped it, or
        if another error stopped the table first.
        """
        with connection.transaction():
            state = self.lock(connection)
            if state.stopped and not self._has_noted(connection, reason):
                self.record(connection, _stop_row(reason, state.position))

    def stop_before(
        self, connection: Connection[Any], held_source: str, reason: OlrPgError, scn: int
    ) -> bool:
        """Stop the table because changes after `scn` are missing, in a transaction of its own. If
        the table is already stopped, only record the reason, unless a retry has recorded it.

        Returns:
            True if the table was not stopped before.
        """
        with connection.transaction():
            state = self.lock(connection)
            if not state.stopped:
                self.stop(connection, held_source)
            if not state.stopped or not self._has_noted(connection, reason):
                self.record(connection, _stop_row(reason, TablePosition(scn, ())))
        return not state.stopped

    def _has_noted(self, connection: Connection[Any], reason: OlrPgError) -> bool:
        """Return whether a row with the code of the reason stops the table."""
        values = *self._key, int(reason.code)
        return connection.execute(_NOTED_REASON, values).fetchone() is not None

    def keep_source(self, connection: Connection[Any], held_source: str) -> None:
        """Store the definition of the table for its first held change, if none is stored yet. The
        definition is needed if an operator has paused the table.

        Args:
            held_source: as for `stop`.
        """
        connection.execute(_KEEP_SOURCE, (held_source, *self._key))

    def resume(self, connection: Connection[Any]) -> None:
        """Mark the table as no longer stopped."""
        connection.execute(_GO_ON, self._key)


def _stop_row(reason: OlrPgError, position: TablePosition) -> ErrorRow:
    """Return a row of the error table for a stop after the last applied transaction, not at a
    change.
    """
    return ErrorRow(
        commit_scn=position.commit_scn,
        xid=position.xids[-1] if position.xids else format_xid(0),
        position=-1,
        scn=position.commit_scn,
        row_id=None,
        operation="ddl",
        code=reason.code,
        sqlstate=None,
        message=reason.detail,
        statement=None,
        before=None,
        after=None,
        resolution="stopped",
        action=reason.own_action,
    )


# Select the age, not the time, because the clock of the target can differ from ours.
_READ: Final = """
SELECT l.source_table, l.scn, l.parts, p.parts, p.rows, p.bytes,
    extract(epoch FROM clock_timestamp() - l.started_at)::float8
FROM olr_pg.load AS l CROSS JOIN LATERAL (
    SELECT count(*) AS parts, coalesce(sum(rows), 0)::int8 AS rows,
        coalesce(sum(bytes), 0)::int8 AS bytes
    FROM olr_pg.load_part AS p
    WHERE p.subscription = l.subscription AND p.source_table = l.source_table AND p.part >= 0
) AS p
WHERE l.subscription = %s AND l.finished_at IS NULL ORDER BY l.source_table
"""


class LoadsUnderWay:
    """The loads of a subscription that were in progress at the last `look`; thread-safe."""

    def __init__(self, subscription: str) -> None:
        self._subscription = subscription
        self.loads: Sequence[LoadStatus] = ()

    def look(self, connection: Connection[Any]) -> None:
        """Read the loads from the target."""
        found = connection.execute(_READ, (self._subscription,)).fetchall()
        now = steady_time()
        self.loads = tuple(
            LoadStatus(name, scn, parts, done, rows, size, now - max(age, 0.0))
            for name, scn, parts, done, rows, size, age in found
        )
