"""Checks for ``olr-pg doctor`` whether PostgreSQL and the account in Oracle are ready for the
fallback.

In PostgreSQL: logical decoding is enabled; a slot and a WAL sender are free; the role can
replicate, owns the tables and can publish them; each table has a replica identity; PostgreSQL has
not removed WAL that the slot needs. In Oracle: the account can read and change each table (tested
with statements that affect no row); no security policy hides rows from the account; the account can
disable and enable the tables' triggers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import psycopg
from psycopg import Connection, sql

from olr_pg.applier.statements.target_plan import target_name
from olr_pg.applier.target.catalogue import find_tables
from olr_pg.config.port_sections import Fallback, account_name
from olr_pg.dictionary.containers import unqualified
from olr_pg.dictionary.followed_dictionary import followed_tables
from olr_pg.errors import OlrPgError
from olr_pg.fallback.oracle_ledger import open_account
from olr_pg.fallback.oracle_set_aside import OracleSetAside
from olr_pg.fallback.slot_stream import SlotStream
from olr_pg.observability.findings import Finding, coded, error, warning
from olr_pg.oracle.access_policies import hiding_policies
from olr_pg.postgres.bounded_connection import BoundedConnection
from olr_pg.postgres.sqlstates import target_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.fallback.way_back import WayBack

WAL: Final = "fallback.wal-level"
SLOTS: Final = "fallback.slots"
ROLE: Final = "fallback.role"
IDENTITY: Final = "fallback.replica-identity"
SLOT: Final = "fallback.slot"
ACCOUNT: Final = "fallback.account"
RIGHTS: Final = "fallback.privileges"
POLICIES: Final = "fallback.policies"
TRIGGERS: Final = "fallback.triggers"
LEDGERS: Final = "fallback.ledger"

_MIB: Final = 1 << 20
_FORBIDDEN: Final = (942, 1031, 41900)
"""Oracle's errors: the table does not exist or is not visible; the account lacks a privilege."""

_FACTS: Final = """
SELECT current_setting('wal_level') AS wal_level,
    current_setting('max_replication_slots')::int AS slots_max,
    (SELECT count(*)::int FROM pg_replication_slots) AS slots,
    current_setting('max_wal_senders')::int AS senders_max,
    (SELECT count(*)::int FROM pg_stat_replication) AS senders,
    current_user::text AS role, current_database()::text AS database,
    r.rolsuper OR r.rolreplication OR EXISTS (SELECT FROM pg_roles m
        WHERE m.rolname = 'rds_replication' AND pg_has_role(m.oid, 'MEMBER')) AS may_replicate,
    EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_replication') AS is_rds,
    has_database_privilege(current_database(), 'CREATE') AS may_publish,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'max_slot_wal_keep_size') AS kept_mb,
    pg_is_in_recovery() AS is_standby,
    current_setting('idle_replication_slot_timeout', true) AS idle_timeout
FROM pg_roles r WHERE r.rolname = current_user
"""
_SLOT: Final = """
SELECT wal_status, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, active
FROM pg_replication_slots WHERE slot_name = %s AND NOT pg_is_in_recovery()
"""
_TABLES: Final = """
SELECT c.oid::int8, c.relreplident::text, pg_has_role(c.relowner, 'USAGE'),
    EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid
        AND i.indimmediate),
    pg_get_userbyid(c.relowner)::text
FROM pg_class c WHERE c.oid = ANY(%s::oid[])
"""


class _Published(NamedTuple):
    """The properties of a target table that concern its publication: its REPLICA IDENTITY, as in
    pg_class, and its owner.
    """

    identity: str
    is_owner: bool
    has_key: bool
    owner: str


_TRIALS: Final = (
    ("SELECT", "SELECT 1 FROM {} WHERE 1 = 0"),
    ("INSERT", "INSERT INTO {0} SELECT * FROM {0} WHERE 1 = 0"),
    ("UPDATE", "UPDATE {} SET {} = {} WHERE 1 = 0"),
    ("DELETE", "DELETE FROM {} WHERE 1 = 0"),
)


class _Facts(NamedTuple):
    wal_level: str
    slots_max: int
    slots: int
    senders_max: int
    senders: int
    role: str
    database: str
    may_replicate: bool
    is_rds: bool
    may_publish: bool
    kept_mb: int | None
    is_standby: bool
    idle_timeout: str | None


class SlotState(NamedTuple):
    """The replication slot of the fallback.

    Attributes:
        wal_status: the column `wal_status` of pg_replication_slots: reserved, extended, unreserved
            or lost.
        retained_bytes: bytes of WAL that PostgreSQL keeps for the slot; None if unknown.
        is_active: whether a process reads it.
    """

    wal_status: str
    retained_bytes: int | None
    is_active: bool

    @property
    def is_lost(self) -> bool:
        """Return whether PostgreSQL has removed WAL that the slot needs."""
        return self.wal_status == "lost"


def slot_state(connection: Connection[Any], slot: str) -> SlotState | None:
    """Read a slot's state; None if it does not exist, or if the server is a standby."""
    row = connection.execute(_SLOT, (slot,)).fetchone()
    return None if row is None else SlotState(str(row[0] or ""), row[1], bool(row[2]))


def check_ledger_known(snapshot: Snapshot, way: Fallback) -> list[Finding]:
    """Check whether the replication from Oracle can recognise transactions of the fallback.

    The replication from Oracle recognises these transactions by the ledger table. Each fallback
    creates a new ledger table, so the dictionary must be one to which DDL can be applied.
    """
    return [
        error(
            LEDGERS,
            f"{_of_container(one, snapshot)} cannot follow the DDL of {way.ledger}, so"
            " changes that the way back writes to Oracle would be replicated to"
            " PostgreSQL again",
            "export the dictionary with `olr-pg dictionary export`; such a dictionary follows DDL",
        )
        for one in snapshot.containers
        if not followed_tables(one)
    ]


def _of_container(one: Snapshot, snapshot: Snapshot) -> str:
    return f"the dictionary of {one.database.con_name}" if snapshot.members else "the dictionary"


def check_way_back(
    connection: Connection[Any], ways: Sequence[WayBack], section: Fallback
) -> list[Finding]:
    """Return findings about problems that prevent the fallback.

    Args:
        connection: a connection to PostgreSQL.
        ways: the fallbacks, one for each PDB.
    """
    found = list(_check_server(connection, section, [way.slot for way in ways]))
    if isinstance(connection, BoundedConnection) and connection.pooled is not None and ways:
        found += _check_stream(ways[0].connect_string)
    for way in ways:
        names = [target_name(way.settings, table.owner, table.name) for table in way.tables]
        found += _check_tables(connection, names)
        of = f"{way.container}: " if way.container else ""
        own = _check_account(way.source, way.tables)
        found += [replace(one, what=f"{of}{one.what}") for one in own]
    return found


# --- PostgreSQL ----------------------------------------------------------------------------------


def _check_server(
    connection: Connection[Any], way: Fallback, slots: Sequence[str]
) -> Iterator[Finding]:
    row = connection.execute(_FACTS).fetchone()
    assert row is not None
    facts = _Facts(*row)
    if facts.is_standby:
        yield error(SLOTS, "the target is a standby, but the way back requires the primary")
        return
    if facts.wal_level != "logical":
        yield error(
            WAL,
            f"wal_level is {facts.wal_level}, which is too low for the way back",
            "ALTER SYSTEM SET wal_level = 'logical'; -- then restart PostgreSQL",
            "managed services: rds.logical_replication = 1 (Amazon RDS, Aurora),"
            " cloudsql.logical_decoding = on (Cloud SQL), wal_level = logical (Azure)",
        )
    states = {name: slot_state(connection, name) for name in slots}
    yield from _check_room(facts, sum(one is None for one in states.values()))
    for name, slot in states.items():
        if slot is not None:
            yield from _check_slot(slot, name, way)
    yield from _check_role(connection, facts)
    if facts.kept_mb is not None and 0 <= facts.kept_mb < way.max_wal_mb:
        yield warning(
            SLOT,
            f"max_slot_wal_keep_size is {facts.kept_mb} MB: if Oracle is unavailable"
            " until the slot needs more WAL than this, PostgreSQL removes the WAL, and"
            " the way back is lost",
            "ALTER SYSTEM SET max_slot_wal_keep_size = -1;",
            "SELECT pg_reload_conf();",
        )
    if facts.idle_timeout not in (None, "0"):
        yield warning(
            SLOT,
            f"idle_replication_slot_timeout is {facts.idle_timeout}: if `olr-pg fallback run` does"
            " not run for longer than this, PostgreSQL invalidates the slot, and the way back is"
            " lost",
            "ALTER SYSTEM SET idle_replication_slot_timeout = 0;",
            "SELECT pg_reload_conf();",
        )


def _check_stream(connect_string: str) -> list[Finding]:
    """Check that the pooler in front of PostgreSQL passes on the replication protocol."""
    try:
        SlotStream(connect_string).close()
    except psycopg.Error as problem:
        return [coded(SLOT, target_error(problem, "opening the replication connection"))]
    return []


def _check_room(facts: _Facts, wanted: int) -> Iterator[Finding]:
    for setting, used, most in (
        ("max_replication_slots", facts.slots, facts.slots_max),
        ("max_wal_senders", facts.senders, facts.senders_max),
    ):
        if used + wanted > most:
            more = "one" if wanted == 1 else str(wanted)
            yield error(
                SLOTS,
                f"{setting} is {most}, of which {used} are in use; the way back needs {more} more",
                f"ALTER SYSTEM SET {setting} = {used + wanted + 3}; -- then restart PostgreSQL",
            )


def _check_slot(slot: SlotState, name: str, way: Fallback) -> Iterator[Finding]:
    if slot.is_lost:
        yield error(
            SLOT,
            f"the slot {name} is lost: PostgreSQL removed changes that had not reached Oracle",
            "end the way back (`olr-pg fallback end`). To get a new way back, load"
            " Oracle's tables from PostgreSQL, or return to Oracle and cut over again",
        )
    elif slot.retained_bytes is not None and slot.retained_bytes > way.max_wal_mb * _MIB:
        yield error(
            SLOT,
            f"the slot {name} keeps {slot.retained_bytes // _MIB:,} MiB of WAL,"
            f" more than `fallback.max-wal-mb` ({way.max_wal_mb:,})",
            "start `olr-pg fallback run`, or end the way back with `olr-pg fallback end`",
        )


def _check_role(connection: Connection[Any], facts: _Facts) -> Iterator[Finding]:
    role, database = (
        sql.Identifier(one).as_string(connection) for one in (facts.role, facts.database)
    )
    if not facts.may_replicate:
        grant = f"GRANT rds_replication TO {role};" if facts.is_rds else ""
        yield error(
            ROLE,
            f"{facts.role} is not allowed to use replication slots",
            grant or f"ALTER ROLE {role} REPLICATION;",
        )
    if not facts.may_publish:
        yield error(
            ROLE,
            f"{facts.role} is not allowed to create a publication in {facts.database}",
            f"GRANT CREATE ON DATABASE {database} TO {role};",
        )


def _check_tables(
    connection: Connection[Any], names: Sequence[tuple[str, str]]
) -> Iterator[Finding]:
    """Check that the existing tables can be published."""
    oids = {name: oid for name, (oid, _) in find_tables(connection, names).items()}
    rows = connection.execute(_TABLES, (list(oids.values()),)).fetchall()
    found = {oid: _Published(*row) for oid, *row in rows}
    for name in names:
        if name in oids:
            yield from _check_table(connection, name, found[oids[name]])


def _check_table(
    connection: Connection[Any], name: tuple[str, str], found: _Published
) -> Iterator[Finding]:
    identity, is_owner, has_key, owner = found
    table, full_name = sql.Identifier(*name).as_string(connection), ".".join(name)
    if not is_owner:
        yield error(
            ROLE,
            f"{full_name} belongs to {owner}, and only its owner may publish it",
            f"GRANT {sql.Identifier(owner).as_string(connection)} TO CURRENT_USER;",
        )
    if identity == "f" or identity == "i" or (identity == "d" and has_key):
        return
    if has_key:
        yield error(
            IDENTITY,
            f"{full_name} has REPLICA IDENTITY NOTHING: when it is published,"
            " PostgreSQL rejects updates and deletes of applications",
            f"ALTER TABLE {table} REPLICA IDENTITY DEFAULT;",
        )
        return
    yield error(
        IDENTITY,
        f"{full_name} has no primary key: when it is published, PostgreSQL rejects"
        " updates and deletes of applications",
        f"ALTER TABLE {table} REPLICA IDENTITY FULL; -- or add a primary key",
    )


# --- Oracle --------------------------------------------------------------------------------------


def _check_account(source: OracleSource, tables: Sequence[Table]) -> Iterator[Finding]:
    """Check the account's privileges with statements that change no rows."""
    try:
        connection = open_account(source)
    except OlrPgError as problem:
        yield coded(ACCOUNT, problem)
        return
    with connection, connection.cursor() as cursor:
        own = [unqualified(table) for table in tables]
        hidden = {
            error.where["table"]: error for error in hiding_policies(connection, own, writes=True)
        }
        for table in tables:
            lacking = [right for right, text in _statements(table) if not _may(cursor, text)]
            if lacking:
                rights, owner = ", ".join(lacking), table.source_owner
                yield error(
                    RIGHTS,
                    f"{source.user} lacks {rights} on {table.full_name}",
                    f'GRANT {rights} ON "{owner}"."{table.name}" TO {source.user};',
                    "or run sql/oracle/fallback.sql again for the schema",
                )
            policies = hidden.get(unqualified(table).full_name)
            if policies is not None:
                yield coded(POLICIES, policies)
        yield from _check_triggers(connection, source, tables)
        connection.rollback()


def _check_triggers(
    connection: oracledb.Connection, source: OracleSource, tables: Sequence[Table]
) -> Iterator[Finding]:
    aside = OracleSetAside(connection, "", tables)
    try:
        found = aside.unrestorable(account_name(source.user))
    except OlrPgError as problem:
        yield coded(TRIGGERS, problem)
        return
    for table, statements in sorted(found.items()):
        yield warning(
            TRIGGERS,
            f"{table} has disabled and enabled triggers. After the way back,"
            f" {source.user} must enable only those that were enabled before, by name,"
            " and lacks the privilege",
            f"GRANT ALTER ANY TRIGGER TO {source.user};",
            "or let the owner of the tables run, before `olr-pg fallback cutover`: "
            + " ".join(f"{one};" for one in statements),
        )


def _statements(table: Table) -> Iterator[tuple[str, str]]:
    name = f'"{table.source_owner}"."{table.name}"'
    column = f'"{table.delivered[0].name}"' if table.delivered else "1"
    for right, text in _TRIALS:
        yield right, text.format(name, column, column)


def _may(cursor: oracledb.Cursor, text: str) -> bool:
    try:
        cursor.execute(text)
    except oracledb.DatabaseError as problem:
        if problem.args[0].code in _FORBIDDEN:
            return False
        raise
    return True
