"""Finds problems that make the target slow or fill its disk before users notice them, with SQL to
fix them.

Theory of operation
-------------------
The module queries only PostgreSQL's catalogue and statistics, and no rows of your tables. `look`
queries catalogue and statistics once, for `olr-pg doctor`. While the applier runs, `TargetHealth`
queries them every `LOOK_SECONDS` over its own connection. A problem that can disappear by itself
(`SETTLES`) is reported only if two consecutive queries find it. For example, a table that was just
loaded has no statistics until autovacuum runs.

Only members of `pg_read_all_stats` can see the transactions of other roles. If the applier's role
is not a member, it does not find transactions that hold back vacuum, but it finds all other
problems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog
from psycopg import Connection, sql
from psycopg.rows import namedtuple_row

from olr_pg.applier.statements.target_plan import target_columns, target_name
from olr_pg.applier.structure_maker import is_made, read_lines
from olr_pg.applier.target.blockers import session_words
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.periodic import Periodic
from olr_pg.postgres.bounded_connection import BoundedConnection, with_timeouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Table

LOOK_SECONDS: Final = 20.0
"""Seconds between two queries. A problem that must be found by two queries is reported within a
minute.
"""

_CONNECT_SECONDS: Final = 2
"""Timeout of a connection attempt in seconds. This timeout is short, because the end of the applier
waits for a running attempt.
"""

_log = structlog.get_logger(__name__)


class Limits(NamedTuple):
    """The thresholds from which on the state of the target is reported as a problem.

    Attributes:
        rows: missing indexes and statistics are reported for tables with at least this many rows.
        dead_rows: a table has too many dead rows if it has more than this number and more than half
            as many as live rows.
        vacuum_at: autovacuum of a table should begin at this number of dead rows, or earlier.
        transaction_seconds: a transaction that is open for longer is reported, because it holds
            back vacuum.
        slot_bytes: an inactive replication slot that retains more bytes of WAL is reported.
        freeze_ages: a database whose oldest row is older than this multiple of
            autovacuum_freeze_max_age is reported.
    """

    rows: int = 10_000
    dead_rows: int = 100_000
    vacuum_at: int = 10_000_000
    transaction_seconds: float = 1800.0
    slot_bytes: int = 1 << 30
    freeze_ages: float = 1.5


class HealthProblem(NamedTuple):
    """A problem that makes the target slow or full.

    Attributes:
        table: ``OWNER.NAME`` in the source; empty if it does not concern one table.
        error: one of the errors 5161 to 5169. The error's action contains the SQL that fixes the
            problem.
        of: distinguishes the problem from others with the same code and table.
    """

    table: str
    error: OlrPgError
    of: str = ""

    @property
    def key(self) -> tuple[int, str, str]:
        """Identifies the problem when a later query finds it again."""
        return self.error.code, self.table, self.of


class _Watched(NamedTuple):
    """A target table: its name in the source, its OID, its name in SQL, and the source's table."""

    source: str
    oid: int
    identifier: str
    table: Table


SETTLES: Final = frozenset({Code.STATISTICS_MISSING, Code.DEAD_ROWS})
"""Problems that can disappear within a minute, when autovacuum runs."""

_OIDS: Final = """
SELECT number, c.oid, c.oid::regclass::text AS name
FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS wanted (schema, name, number)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name AND c.relkind IN ('r', 'p')
"""

_LEAVES: Final = """
WITH RECURSIVE tree AS (
    SELECT root, root AS oid FROM unnest(%(oids)s::oid[]) AS root
  UNION ALL
    SELECT tree.root, i.inhrelid FROM tree
        JOIN pg_class AS whole ON whole.oid = tree.oid AND whole.relkind = 'p'
        JOIN pg_inherits AS i ON i.inhparent = whole.oid AND NOT i.inhdetachpending
),
leaf AS (
    SELECT tree.root, tree.oid FROM tree
    JOIN pg_class AS part ON part.oid = tree.oid AND part.relkind <> 'p')
"""
"""Selects the tables that store the rows: the partitions of a partitioned table, or the table
itself. It locks none of them, unlike pg_partition_tree.
"""

_ROWS: Final = f"""{_LEAVES}
SELECT leaf.root, leaf.oid::regclass::text AS name,
    coalesce(stat.n_live_tup, 0) AS live, coalesce(stat.n_dead_tup, 0) AS dead,
    greatest(class.reltuples, 0)::float8 AS estimated,
    coalesce(stat.n_tup_upd + stat.n_tup_del, 0) AS changed,
    greatest(stat.last_vacuum, stat.last_autovacuum) AS vacuumed,
    coalesce(stat.last_analyze, stat.last_autoanalyze) IS NULL AND class.reltuples <= 0 AS unknown,
    (SELECT option_value FROM pg_options_to_table(class.reloptions)
        WHERE option_name = 'autovacuum_enabled') AS enabled,
    coalesce((SELECT option_value FROM pg_options_to_table(class.reloptions)
        WHERE option_name = 'autovacuum_vacuum_scale_factor'),
        current_setting('autovacuum_vacuum_scale_factor'))::float8 AS scale,
    coalesce((SELECT option_value FROM pg_options_to_table(class.reloptions)
        WHERE option_name = 'autovacuum_vacuum_threshold'),
        current_setting('autovacuum_vacuum_threshold'))::float8 AS threshold,
    current_setting('autovacuum_vacuum_max_threshold', true)::float8 AS highest
FROM leaf JOIN pg_class class ON class.oid = leaf.oid
LEFT JOIN pg_stat_user_tables stat ON stat.relid = leaf.oid
"""  # noqa: S608 - of a constant

_UNINDEXED: Final = """
SELECT wanted.number FROM unnest(%(oids)s::oid[], %(keys)s::text[])
    WITH ORDINALITY AS wanted (oid, key, number)
WHERE NOT EXISTS (
    SELECT FROM pg_index i CROSS JOIN LATERAL (
        SELECT array_agg(a.attname::text ORDER BY k.place) AS names
        FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
        LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE k.place <= i.indnkeyatts) own
    WHERE i.indrelid = wanted.oid AND i.indisvalid AND i.indpred IS NULL AND (
        (i.indisunique AND own.names <@ string_to_array(wanted.key, chr(1)))
        OR string_to_array(wanted.key, chr(1)) <@ own.names[
            1:cardinality(string_to_array(wanted.key, chr(1)))]))
"""
"""Selects tables without an index that finds a row by its key. Such an index is unique and contains
only columns of the key, or begins with all columns of the key. In the parameter `keys`, the
character with code 1 separates the column names, because names do not contain it.
"""

_TRIGGERS: Final = f"""{_LEAVES}
SELECT leaf.root, string_agg(DISTINCT quote_ident(t.tgname), ', ') AS names,
    min(format('ALTER TABLE %%s ENABLE TRIGGER %%I', leaf.oid::regclass, t.tgname)) AS statement
FROM leaf JOIN pg_trigger t ON t.tgrelid = leaf.oid
WHERE NOT t.tgisinternal AND t.tgenabled IN ('A', 'R') GROUP BY leaf.root
"""  # noqa: S608 - of a constant

_SERVER: Final = """
SELECT current_setting('autovacuum')::bool AND current_setting('track_counts')::bool AS vacuums,
    (SELECT CASE source
            WHEN 'user' THEN format('ALTER ROLE %I RESET track_counts;', session_user)
            WHEN 'database' THEN format('ALTER DATABASE %I RESET track_counts;', current_database())
            WHEN 'database user' THEN format('ALTER ROLE %I IN DATABASE %I RESET track_counts;',
                session_user, current_database()) END
        FROM pg_settings WHERE name = 'track_counts' AND setting = 'off') AS uncounted,
    age(datfrozenxid)::int8 AS age, current_setting('autovacuum_freeze_max_age')::int8 AS age_max,
    mxid_age(datminmxid)::int8 AS members_age,
    current_setting('autovacuum_multixact_freeze_max_age')::int8 AS members_age_max
FROM pg_database WHERE datname = current_database()
"""

_SLOTS: Final = """
SELECT slot_name, wal_status, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::int8 AS kept,
    format('SELECT pg_drop_replication_slot(%%L);', slot_name) AS statement
FROM pg_replication_slots
WHERE NOT active AND restart_lsn IS NOT NULL
    AND pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > %s
ORDER BY kept DESC
"""

_TRANSACTIONS: Final = """
SELECT pid, usename, application_name, state, query,
    extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
FROM pg_stat_activity
WHERE datname = current_database() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    AND xact_start < clock_timestamp() - make_interval(secs => %s)
ORDER BY xact_start
"""


def look(
    connection: Connection[Any],
    settings: ApplierSettings,
    tables: Sequence[Table],
    limits: Limits = Limits(),  # noqa: B008 - it is immutable
) -> list[HealthProblem]:
    """Return the current problems that make the target slow or fill its disk.

    Args:
        tables: the replicated tables of the source.

    Raises:
        psycopg.Error: PostgreSQL cannot be queried.
    """
    cursor: Any = connection.cursor(row_factory=namedtuple_row)
    watched = _watched(cursor, connection, settings, tables)
    found = [*_server(cursor, limits), *_slots(cursor, limits), *_transactions(cursor, limits)]
    found += [
        HealthProblem(one.source, one.error, str(one.number))
        for one in read_lines(connection, settings.subscription)
        if one.reason or not (one.is_due and is_made(settings))
    ]
    if watched:
        rows = _rows(cursor, watched)
        found += _unindexed(cursor, settings, watched, rows, limits)
        found += _triggers(cursor, watched)
        for source, leaves in rows.items():
            for leaf in leaves:
                found += _leaf(source, leaf, limits)
    return list({one.key: one for one in reversed(found)}.values())[::-1]


def _watched(
    cursor: Any, connection: Connection[Any], settings: ApplierSettings, tables: Sequence[Table]
) -> list[_Watched]:
    wanted = [table for table in tables if table.refusal is None]
    names = [target_name(settings, table.owner, table.name) for table in wanted]
    rows = cursor.execute(_OIDS, ([n[0] for n in names], [n[1] for n in names])).fetchall()
    found = []
    for row in rows:
        table = wanted[row.number - 1]
        identifier = sql.Identifier(*names[row.number - 1]).as_string(connection)
        found.append(_Watched(table.full_name, row.oid, identifier, table))
    return found


def _key(settings: ApplierSettings, table: Table) -> list[str]:
    """Return the names of the target columns of a table's key."""
    columns = target_columns(settings, table)
    by_number = {column.intcol: columns.get(column.name) for column in table.columns}
    return [name for number in table.key if (name := by_number.get(number))]


def _rows(cursor: Any, watched: Sequence[_Watched]) -> Mapping[str, list[Any]]:
    """Return for each source table the statistics of the target tables that store its rows."""
    source = {one.oid: one.source for one in watched}
    found: dict[str, list[Any]] = {}
    for row in cursor.execute(_ROWS, {"oids": list(source)}).fetchall():
        found.setdefault(source[row.root], []).append(row)
    return found


def _unindexed(
    cursor: Any,
    settings: ApplierSettings,
    watched: Sequence[_Watched],
    rows: Mapping[str, list[Any]],
    limits: Limits,
) -> Iterator[HealthProblem]:
    # Query the catalogue only about large tables, because most tables are small.
    large = list[tuple[_Watched, list[str], float]]()
    for one in watched:
        count = sum(max(leaf.live, leaf.estimated) for leaf in rows.get(one.source, ()))
        if count >= limits.rows and (key := _key(settings, one.table)):
            large.append((one, key, count))
    if not large:
        return
    asked = {
        "oids": [one.oid for one, _, _ in large],
        "keys": ["\1".join(key) for _, key, _ in large],
    }
    for row in cursor.execute(_UNINDEXED, asked).fetchall():
        one, key, count = large[row.number - 1]
        columns = ", ".join(sql.Identifier(name).as_string(None) for name in key)
        yield _problem(
            Code.TARGET_KEY_UNINDEXED,
            f"{one.identifier} has about {count:,.0f} rows and no index on ({columns})",
            f"ALTER TABLE {one.identifier} ADD PRIMARY KEY ({columns}); or, to let"
            " sessions read and write meanwhile: CREATE UNIQUE INDEX CONCURRENTLY ON"
            f" {one.identifier} ({columns});",
            one.source,
        )


def _triggers(cursor: Any, watched: Sequence[_Watched]) -> Iterator[HealthProblem]:
    source = {one.oid: one for one in watched}
    for row in cursor.execute(_TRIGGERS, {"oids": list(source)}).fetchall():
        one = source[row.root]
        yield _problem(
            Code.TARGET_TRIGGER_FIRES,
            f"{one.identifier}: {row.names}",
            f"if this is not intended: {row.statement};",
            one.source,
        )


def _leaf(source: str, leaf: Any, limits: Limits) -> Iterator[HealthProblem]:
    """Yield the problems that the statistics of one table show. The table stores rows: it is not
    partitioned.
    """
    count = max(leaf.live, leaf.estimated)
    if leaf.enabled in ("false", "off", "no", "0"):
        yield _problem(
            Code.AUTOVACUUM_UNFIT,
            f"{leaf.name} is excluded from autovacuum (autovacuum_enabled = {leaf.enabled})",
            f"ALTER TABLE {leaf.name} RESET (autovacuum_enabled);",
            source,
        )
    begins = leaf.threshold + leaf.scale * count
    if leaf.highest is not None and leaf.highest >= 0:
        begins = min(begins, leaf.highest)
    if begins > limits.vacuum_at and leaf.changed:
        yield _problem(
            Code.AUTOVACUUM_UNFIT,
            f"{leaf.name} has about {count:,.0f} rows, and autovacuum begins only at"
            f" {begins:,.0f} dead rows",
            f"ALTER TABLE {leaf.name} SET (autovacuum_vacuum_scale_factor = 0,"
            f" autovacuum_vacuum_threshold = {limits.vacuum_at // 10});",
            source,
        )
    if leaf.dead > limits.dead_rows and leaf.dead > leaf.live / 2:
        when = "was never vacuumed" if leaf.vacuumed is None else f"was vacuumed {leaf.vacuumed}"
        yield _problem(
            Code.DEAD_ROWS,
            f"{leaf.name} has {leaf.dead:,} dead rows and {leaf.live:,} live rows; it {when}",
            f"VACUUM (VERBOSE, ANALYZE) {leaf.name}; if VACUUM cannot remove rows yet, end the"
            " oldest transaction, the prepared transaction or the replication slot that keeps"
            " the rows",
            source,
        )
    if leaf.unknown and leaf.live > limits.rows:
        yield _problem(
            Code.STATISTICS_MISSING,
            f"{leaf.name} has about {leaf.live:,} rows and was never analyzed",
            f"ANALYZE {leaf.name};",
            source,
        )


def _server(cursor: Any, limits: Limits) -> Iterator[HealthProblem]:
    row = cursor.execute(_SERVER).fetchone()
    if row.uncounted:
        yield _problem(
            Code.AUTOVACUUM_UNFIT,
            "track_counts is off for the role or the database, so autovacuum does not see the rows"
            " that olr_pg changes",
            row.uncounted,
        )
    elif not row.vacuums:
        yield _problem(
            Code.AUTOVACUUM_UNFIT,
            "autovacuum or track_counts is off for the whole server",
            "ALTER SYSTEM SET autovacuum = on; ALTER SYSTEM SET track_counts = on;"
            " SELECT pg_reload_conf();",
        )
    for age, most, what in (
        (row.age, row.age_max, "transaction ID"),
        (row.members_age, row.members_age_max, "multixact ID"),
    ):
        if age > most * limits.freeze_ages:
            yield _problem(
                Code.WRAPAROUND_NEAR,
                f"the oldest {what} of this database is {age:,} transactions old;"
                f" autovacuum should freeze it at an age of {most:,}, and PostgreSQL"
                " rejects all writes at an age of about 2,100,000,000",
                "end the oldest transaction, the prepared transaction or the replication slot"
                " that prevents the freeze. Then run in this database as its owner: VACUUM"
                " (FREEZE, VERBOSE);",
            )


def _slots(cursor: Any, limits: Limits) -> Iterator[HealthProblem]:
    for row in cursor.execute(_SLOTS, (limits.slot_bytes,)).fetchall():
        yield _problem(
            Code.SLOT_KEEPS_WAL,
            f"no client reads the replication slot {row.slot_name!r}, which keeps"
            f" {row.kept / (1 << 20):,.0f} MiB of WAL (wal_status {row.wal_status})",
            "start the program that reads the slot; if the slot is no longer used:"
            f" {row.statement}",
        )


def _transactions(cursor: Any, limits: Limits) -> Iterator[HealthProblem]:
    rows = cursor.execute(_TRANSACTIONS, (limits.transaction_seconds,)).fetchall()
    if rows:
        more = f"; {len(rows) - 1} more" if len(rows) > 1 else ""
        yield _problem(
            Code.TRANSACTION_KEEPS_ROWS,
            f"{session_words(rows[0])}{more}; vacuum cannot remove rows that were deleted"
            " after its begin",
            f"wait until it ends, or run: SELECT pg_terminate_backend({rows[0].pid});",
        )


def _problem(code: Code, detail: str, action: str, source: str = "") -> HealthProblem:
    if source:
        return HealthProblem(source, OlrPgError(code, detail, action=action, table=source))
    return HealthProblem("", OlrPgError(code, detail, action=action))


class TargetHealth:
    """Queries the target periodically in its own thread, from `start` to `stop`.

    Args:
        settings: the settings of the applier.
        tables: returns the tables of the source that are currently replicated.
    """

    def __init__(
        self,
        settings: ApplierSettings,
        tables: Callable[[], Sequence[Table]],
        *,
        seconds: float = LOOK_SECONDS,
        limits: Limits = Limits(),  # noqa: B008 - it is immutable
    ) -> None:
        self._settings = settings
        self._tables = tables
        self._limits = limits
        self._before: frozenset[tuple[int, str, str]] = frozenset()
        self._looking = Periodic("olr-health", seconds, self._look, at_once=True)
        self._own: BoundedConnection | None = None
        self.problems: Sequence[HealthProblem] = ()

    def start(self) -> None:
        """Start the thread."""
        self._looking.start()

    def stop(self) -> None:
        """Stop the thread."""
        own = self._own
        if own is not None:
            own.give_up("the applier ends")
        self._looking.stop()

    def _look(self) -> None:
        try:
            found = self._ask()
        except psycopg.Error as error:
            # `TargetOutage` reports outages. Keep the problems that were found before, because they
            # may still exist.
            _log.debug("could not determine the target's health", reason=str(error).strip())
            return
        known = self._before
        self._before = frozenset(one.key for one in found)
        self.problems = tuple(
            one for one in found if one.error.code not in SETTLES or one.key in known
        )

    def _ask(self) -> list[HealthProblem]:
        self._own = BoundedConnection.connect(
            with_timeouts(self._settings.connect_string, connect_timeout=_CONNECT_SECONDS),
            autocommit=True,
            application_name="olr_pg health",
        )
        try:
            self._own.answer_seconds = self._settings.answer_seconds
            return look(self._own, self._settings, self._tables(), self._limits)
        finally:
            own, self._own = self._own, None
            own.close()
