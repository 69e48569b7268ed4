"""Checks the target database and its server: encoding, state, limits, and event triggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg import Connection, sql
from psycopg.rows import class_row

from olr_pg.applier.settings import ApplierSettings, Consistency
from olr_pg.applier.target.table_kinds import (
    Unfit,
    firing_states,
    first_refusal,
    refused_for,
    warned_of,
)
from olr_pg.errors import Code
from olr_pg.observability.findings import error
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


DATABASE: Final = "postgres.database"
CONNECTIONS: Final = "postgres.connections"
LOCKS: Final = "postgres.locks"
PREPARED: Final = "postgres.prepared-transactions"
EVENTS: Final = "postgres.event-triggers"

_CONNECTIONS_MIN: Final = 2
"""Minimum number of connections: one for a worker and one for the session."""

# Connection limits of roles and databases do not apply to superusers.
_FACTS: Final = """
SELECT current_database()::text AS database, session_user::text AS role,
    getdatabaseencoding()::text AS encoding, pg_is_in_recovery() AS is_standby,
    s.setting = 'on' AS is_read_only, s.source AS read_only_by,
    r.rolsuper AS is_superuser, r.rolconnlimit AS role_limit, d.datconnlimit AS database_limit,
    current_setting('max_connections')::int - CASE WHEN r.rolsuper THEN 0 ELSE
        current_setting('superuser_reserved_connections')::int
        + coalesce(current_setting('reserved_connections', true), '0')::int END AS server_limit,
    (SELECT count(*)::int FROM pg_stat_activity
        WHERE usename = session_user AND pid <> pg_backend_pid()) AS role_used,
    (SELECT count(*)::int FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()) AS database_used,
    (SELECT count(*)::int FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS server_used,
    current_setting('max_locks_per_transaction')::int AS locks_each,
    current_setting('max_connections')::int
        + current_setting('max_prepared_transactions')::int AS lock_holders
FROM pg_settings s, pg_roles r, pg_database d
WHERE s.name = 'default_transaction_read_only' AND r.rolname = session_user
    AND d.datname = current_database()
"""
_PARTS: Final = """
WITH RECURSIVE part AS (
    SELECT t.oid::oid AS whole, t.oid::oid AS oid FROM unnest(%(tables)s::int8[]) AS t (oid)
  UNION
    SELECT part.whole, i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid
)
"""
_LOCKS: Final = (
    _PARTS
    + """
SELECT part.whole::regclass::text, (count(DISTINCT part.oid) + count(x.indexrelid))::int
FROM part LEFT JOIN pg_index x ON x.indrelid = part.oid
GROUP BY part.whole ORDER BY 2 DESC, 1 LIMIT 1
"""
)
_PREPARED: Final = (
    _PARTS
    + """
SELECT x.gid, x.prepared::text, string_agg(DISTINCT part.whole::regclass::text, ', ')
FROM pg_prepared_xacts x
JOIN pg_locks own ON own.locktype = 'transactionid' AND own.transactionid = x.transaction
    AND own.pid IS NULL
JOIN pg_locks l ON l.virtualtransaction = own.virtualtransaction AND l.pid IS NULL
    AND l.mode <> 'AccessShareLock'
JOIN part ON part.oid = l.relation
WHERE x.database = current_database() GROUP BY x.gid, x.prepared ORDER BY x.prepared
"""
)
_EVENT_TRIGGERS: Final = """
SELECT evtname::text, evtenabled::text FROM pg_event_trigger
WHERE evtevent <> 'login' AND evtenabled = ANY(%s) ORDER BY evtname
"""
# The applier sets neither of these two parameters itself.
_LIMITS: Final = """
SELECT name, setting || coalesce(' ' || unit, ''), source FROM pg_settings
WHERE name = 'lock_timeout' AND setting <> '0' OR name = 'temp_file_limit' AND setting <> '-1'
ORDER BY name
"""
_RESETS: Final = {
    "database": ("ALTER DATABASE {database} RESET {name};",),
    "user": ("ALTER ROLE {role} RESET {name};",),
    "database user": ("ALTER ROLE {role} IN DATABASE {database} RESET {name};",),
}
# One statement in each line: PostgreSQL rejects ALTER SYSTEM if a client sends it with others.
_ANYWHERE: Final = (
    "ALTER SYSTEM RESET {name};",
    "SELECT pg_reload_conf();",
    "-- or remove it from the connection string, if it comes from there",
)


class _Facts(NamedTuple):
    database: str
    role: str
    encoding: str
    is_standby: bool
    is_read_only: bool
    read_only_by: str
    is_superuser: bool
    role_limit: int
    database_limit: int
    server_limit: int
    role_used: int
    database_used: int
    server_used: int
    locks_each: int
    lock_holders: int


class _Limit(NamedTuple):
    """A limit on connections. `used` is how many connections other clients use now."""

    what: str
    size: int
    used: int
    mend: str


def check_database(
    connection: Connection[Any], settings: ApplierSettings, tables: Sequence[int]
) -> Iterator[Unfit]:
    """Yield the properties of the target database and its server that are unfit for replication.

    Args:
        tables: OIDs of the existing target tables.
    """
    facts = _read(connection)
    yield from _encoding(facts)
    yield from _state(facts)
    yield from _limits_of_statements(connection, facts)
    yield from _connections(settings, facts)
    yield from _locks(connection, settings, facts, tables)
    for gid, since, held in connection.execute(_PREPARED, {"tables": list(tables)}):
        yield warned_of(
            PREPARED,
            f"the prepared transaction {gid}, of {since}, holds locks on {held}; changes"
            " of these tables may have to wait until it ends",
            f"ROLLBACK PREPARED {sql.Literal(gid).as_string()}; -- or COMMIT PREPARED, if"
            " its transaction manager has decided to commit",
        )
    yield from _event_triggers(connection, settings)


def refuse_database(connection: Connection[Any], settings: ApplierSettings) -> None:
    """Refuse a database that cannot store the values, or that allows too few connections.

    Raises:
        OlrPgError: 5044, the database has an unfit encoding; 5045, a limit on connections is too
            low.
    """
    facts = _read(connection)
    refusal = first_refusal([*_encoding(facts), *_connections(settings, facts)])
    if refusal is not None:
        raise refusal


def _read(connection: Connection[Any]) -> _Facts:
    with connection.cursor(row_factory=class_row(_Facts)) as cursor:
        facts = cursor.execute(_FACTS).fetchone()
    assert facts is not None
    return facts


def _encoding(facts: _Facts) -> Iterator[Unfit]:
    mend = (
        "CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0; then name the new"
        " database in `apply.connect-string`"
    )
    if facts.encoding == "SQL_ASCII":
        yield refused_for(
            Code.TARGET_DATABASE_UNFIT,
            DATABASE,
            f"the database {facts.database} has the encoding SQL_ASCII: PostgreSQL counts"
            " bytes instead of characters there",
            mend,
        )
    elif facts.encoding != "UTF8":
        yield warned_of(
            DATABASE,
            f"the database {facts.database} has the encoding {facts.encoding}: a"
            " character that this encoding lacks stops the table",
            mend,
        )


def _state(facts: _Facts) -> Iterator[Unfit]:
    if facts.is_standby:
        yield Unfit(
            error(
                DATABASE,
                "the server is a standby: nothing can be written to it",
                "name the primary of this standby in `apply.connect-string`, or `SELECT"
                " pg_promote();`",
            )
        )
    if facts.is_read_only:
        yield Unfit(
            error(
                DATABASE,
                "sessions here are read-only: default_transaction_read_only is on",
                *_reset(facts, "default_transaction_read_only", facts.read_only_by),
            )
        )


def _limits_of_statements(connection: Connection[Any], facts: _Facts) -> Iterator[Unfit]:
    for name, setting, source in connection.execute(_LIMITS):
        yield warned_of(
            DATABASE,
            f"{name} is {setting}; a statement that needs more than this fails",
            *_reset(facts, name, source),
        )


def _reset(facts: _Facts, name: str, source: str) -> list[str]:
    """Return SQL that resets a setting where it was set. `source` is the column of pg_settings."""
    database, role = (sql.Identifier(n).as_string() for n in (facts.database, facts.role))
    return [
        line.format(database=database, role=role, name=name)
        for line in _RESETS.get(source, _ANYWHERE)
    ]


def _connections(settings: ApplierSettings, facts: _Facts) -> Iterator[Unfit]:
    is_stream = settings.consistency is Consistency.TRANSACTION
    workers = 1 if is_stream else max(1, settings.workers)
    needed = workers + 1
    lowest = min(_limits(facts), key=lambda one: one.size, default=None)
    if lowest is not None and lowest.size < needed:
        fewer = (
            (f"or set `apply.workers` to {lowest.size - 1}",)
            if lowest.size >= _CONNECTIONS_MIN
            else ()
        )
        yield refused_for(
            Code.TARGET_CONNECTIONS_TOO_FEW,
            CONNECTIONS,
            f"{lowest.what} is {lowest.size}; {counted(workers, 'worker')} and one more"
            f" session need {needed} connections",
            lowest.mend.format(needed=needed),
            *fewer,
        )
        return
    for one in _limits(facts):
        if one.size - one.used < needed:
            yield warned_of(
                CONNECTIONS,
                f"{one.what} is {one.size}, and other sessions use {one.used} of them"
                f" now; the appliance needs {needed} connections",
                one.mend.format(needed=one.used + needed),
            )


def _limits(facts: _Facts) -> Iterator[_Limit]:
    database, role = (
        sql.Identifier(n).as_string().replace("{", "{{").replace("}", "}}")
        for n in (facts.database, facts.role)
    )
    if facts.role_limit >= 0 and not facts.is_superuser:
        mend = f"ALTER ROLE {role} CONNECTION LIMIT {{needed}};"
        yield _Limit(f"CONNECTION LIMIT of the role {facts.role}", facts.role_limit,
                     facts.role_used, mend)  # fmt: skip
    if facts.database_limit >= 0 and not facts.is_superuser:
        mend = f"ALTER DATABASE {database} CONNECTION LIMIT {{needed}};"
        yield _Limit(f"CONNECTION LIMIT of the database {facts.database}", facts.database_limit,
                     facts.database_used, mend)  # fmt: skip
    mend = "ALTER SYSTEM SET max_connections = {needed}; -- and the reserved ones; then restart"
    yield _Limit("max_connections without the reserved connections", facts.server_limit,
                 facts.server_used, mend)  # fmt: skip


def _locks(
    connection: Connection[Any],
    settings: ApplierSettings,
    facts: _Facts,
    tables: Sequence[int],
) -> Iterator[Unfit]:
    """Yield a warning if the server's lock table is too small for statements on the table that has
    the most partitions.
    """
    row = connection.execute(_LOCKS, {"tables": list(tables)}).fetchone()
    if row is None:
        return
    workers = min(max(1, settings.workers), len(tables))
    has, needed = facts.locks_each * facts.lock_holders, row[1] * workers
    if needed > has:
        wanted = -(-needed // facts.lock_holders) + facts.locks_each
        yield warned_of(
            LOCKS,
            f"{row[0]} is {row[1]} tables and indexes, and an update locks each of them:"
            f" {counted(workers, 'worker')} may need {needed} locks, but the server has"
            f" {has}",
            f"ALTER SYSTEM SET max_locks_per_transaction = {wanted}; -- then restart PostgreSQL",
        )


def _event_triggers(connection: Connection[Any], settings: ApplierSettings) -> Iterator[Unfit]:
    states = firing_states(settings) if settings.is_replica else ["A", "O"]
    for name, state in connection.execute(_EVENT_TRIGGERS, (states,)):
        trigger = sql.Identifier(name).as_string()
        action = "DISABLE" if state == "O" or not settings.is_replica else "ENABLE"
        yield warned_of(
            EVENTS,
            f"the event trigger {name} fires when the appliance creates or alters tables",
            f"ALTER EVENT TRIGGER {trigger} {action};",
        )
