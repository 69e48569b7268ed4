"""Creates the objects that the fallback needs: publication, slot and replica identities in
PostgreSQL, and the ledger in Oracle.

The publication's comment contains the LSN at which the fallback begins. The comment is written
last. If the comment exists but the ledger does not, the ledger in Oracle was lost. If the comment
is missing, the preparation was interrupted.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog
from psycopg import Connection, sql

from olr_pg.applier.statements.target_plan import target_columns
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.ledger import require_ledger
from olr_pg.applier.target.way_back_lives import (
    Life,
    account_text,
    begin_life,
    end_lives,
    is_open,
    note_begin,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.pgoutput import lsn_number, lsn_text
from olr_pg.fallback.relation_plans import (
    GENERATED_ACTION,
    NOT_SENT,
    OWN_TABLES,
    key_names,
    target_tables,
)
from olr_pg.postgres.sqlstates import is_forbidden, is_locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.fallback.oracle_ledger import OracleLedger
    from olr_pg.fallback.slot_stream import System
    from olr_pg.fallback.way_back import WayBack

_log = structlog.get_logger(__name__)

FREE_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.05

_SLOT: Final = """
SELECT confirmed_flush_lsn::text, active, wal_status, restart_lsn::text,
    pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::int8
FROM pg_replication_slots WHERE slot_name = %s
"""
# The column exists since PostgreSQL 17.
_INVALIDATION: Final = """
SELECT to_jsonb(s) ->> 'invalidation_reason' FROM pg_replication_slots s WHERE slot_name = %s
"""
_INVALIDATIONS: Final[dict[str | None, str]] = {
    None: "PostgreSQL has removed WAL that the slot needs",
    "idle_timeout": "no process has read the slot for longer than idle_replication_slot_timeout,"
    " so PostgreSQL has invalidated it",
    "rows_removed": "PostgreSQL has removed rows of its catalogue that the slot needs",
    "wal_level_insufficient": "wal_level was lowered, so PostgreSQL has invalidated the slot",
}
_CREATE_SLOT: Final = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput'{})"
_FAILOVER_VERSION: Final = 170000

_COMMENT: Final = """
SELECT obj_description(oid, 'pg_publication') FROM pg_publication WHERE pubname = %s
"""
_IDENTITY: Final = """
SELECT c.relreplident::text,
    coalesce(array_agg(a.attname::text) FILTER (WHERE a.attname IS NOT NULL), '{}')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisvalid AND (c.relreplident = 'd'
    AND i.indisprimary OR c.relreplident = 'i' AND i.indisreplident)
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p') GROUP BY c.oid, c.relreplident
"""
_FULL: Final = "f"
_LEAVES: Final = """
SELECT n.nspname, c.relname FROM pg_partition_tree(%s::regclass) t
JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace
"""
_LACKING: Final = """
WITH RECURSIVE part AS (
    SELECT c.oid
    FROM unnest(%s::text[], %s::text[]) AS w (schema, name)
    JOIN pg_namespace n ON n.nspname = w.schema
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name AND c.relkind = 'p'
        AND c.relreplident = 'f'
  UNION ALL
    SELECT i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid
)
SELECT n.nspname, c.relname FROM part JOIN pg_class c ON c.oid = part.oid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relreplident <> 'f' AND c.relkind IN ('r', 'p') ORDER BY 1, 2
"""
_LOCK_TIMEOUT: Final = "SET LOCAL lock_timeout = '2s'"


class Slot(NamedTuple):
    """The state of a replication slot in PostgreSQL.

    Attributes:
        lsn: the slot's confirmed position; transactions that ended before it are not sent again.
        wal_bytes: bytes of WAL that PostgreSQL keeps for the slot; None if PostgreSQL has removed
            some of that WAL.
    """

    lsn: int
    is_active: bool
    wal_status: str | None
    wal_bytes: int | None


class Prepared(NamedTuple):
    """The position at which a fallback begins; `container` is the name of the PDB, if there are
    several.
    """

    slot: str
    publication: str
    lsn: int
    container: str = ""


def begun_record(begun: Sequence[Prepared]) -> dict[str, Any]:
    """Return as a JSON object the slot, publication and LSN at which a fallback begins. If there
    are several PDBs, the object contains slot, publication and LSN for each PDB.
    """
    records = {
        one.container: {"slot": one.slot, "publication": one.publication, "lsn": lsn_text(one.lsn)}
        for one in begun
    }
    return records.get("", {"containers": records})


def read_slot(connection: Connection[Any], name: str) -> Slot | None:
    """Read the slot; None if it does not exist."""
    found = connection.execute(_SLOT, (name,)).fetchone()
    if found is None:
        return None
    confirmed, active, status, restart, kept = found
    return Slot(
        lsn_number(confirmed or "0/0"), active, status, None if restart is None else int(kept)
    )


def read_invalidation(connection: Connection[Any], name: str) -> str:
    """Return as a sentence why PostgreSQL has invalidated the slot."""
    found = connection.execute(_INVALIDATION, (name,)).fetchone()
    return _INVALIDATIONS.get(found[0] if found else None, _INVALIDATIONS[None])


def wait_until_free(connection: Connection[Any], name: str) -> None:
    """Wait until no process reads the slot. The wait is needed because PostgreSQL notices with a
    delay that the last reader has ended.

    Raises:
        OlrPgError: 7302, another process reads the slot.
    """
    until = time.monotonic() + FREE_SECONDS
    while (slot := read_slot(connection, name)) is not None and slot.is_active:
        if time.monotonic() >= until:
            raise OlrPgError(Code.FALLBACK_SLOT_IN_USE, "another process reads the slot", slot=name)
        time.sleep(_LOOK_SECONDS)


def prepare_target(way: WayBack, connection: Connection[Any]) -> int:
    """Create the publication and the slot if they are missing; return the slot's position.

    Raises:
        OlrPgError: 5004 the role lacks a privilege, 7308 `wal_level` is not logical, 7310 a table
            cannot be replicated to Oracle.
    """
    level = connection.execute("SHOW wal_level").fetchone()
    if level != ("logical",):
        raise OlrPgError(
            Code.FALLBACK_WAL_LEVEL, f"wal_level is {level[0] if level else 'unknown'}"
        )
    tables = target_tables(way)
    for (schema, name), table in tables.items():
        _ensure_identity(way, connection, schema, name, table)
    _ensure_publication(way, connection, [*tables, *OWN_TABLES])
    if read_slot(connection, way.slot) is None:
        # With FAILOVER, PostgreSQL copies the slot to standbys that synchronise slots, so the slot
        # survives a promotion.
        has_failover = connection.info.server_version >= _FAILOVER_VERSION
        create = _CREATE_SLOT.format(", failover => true" if has_failover else "")
        with _refusals(create.replace("%s", f"'{way.slot}'")):
            connection.execute(create.encode(), (way.slot,))
    slot = read_slot(connection, way.slot)
    assert slot is not None
    return slot.lsn


def begin(
    way: WayBack, connection: Connection[Any], ledger: OracleLedger, system: System
) -> Prepared:
    """Create the missing objects in PostgreSQL and Oracle, and set the list of published tables. A
    fallback that has begun keeps its position.

    Raises:
        OlrPgError: 5031 the target has no ledger, errors of `prepare_target`, 7301 the slot is
            lost, 7303 the ledger is lost, 7319 the replication from Oracle does not know the
            account.
    """
    has_begun, known = read_beginning(connection, way) is not None, ledger.read()
    account = account_text(*ledger.account(), way.container)
    require_ledger(connection)
    if known is not None or not has_begun:
        life = Life(way.container, account)
        begin_life(connection, way.subscription, life, exists=known is not None)
    if known is not None:
        if read_slot(connection, way.slot) is None:
            raise OlrPgError(Code.FALLBACK_SLOT_LOST, "the slot does not exist", slot=way.slot)
        # The fallback has begun, but tables may have been added to the configuration since then.
        prepare_target(way, connection)
        _note_life(way, connection, ledger, account)
        if not has_begun:
            _note_beginning(connection, way, known.lsn)
        return Prepared(way.slot, way.publication, known.lsn, way.container)
    if has_begun:
        raise OlrPgError(
            Code.FALLBACK_LEDGER_LOST,
            "the ledger's row of this subscription is missing",
            slot=way.slot,
        )
    ledger.create()
    lsn = prepare_target(way, connection)
    ledger.begin(way.slot, system, lsn)
    _note_life(way, connection, ledger, account)
    _note_beginning(connection, way, lsn)
    return Prepared(way.slot, way.publication, lsn, way.container)


def end_life(
    way: WayBack,
    connection: Connection[Any],
    ledger: OracleLedger,
    identify: Callable[[], System],
) -> None:
    """Store the SCN up to which the replication from Oracle must recognise changes of the ledger.

    No process writes to the ledger any more, because the slot is dropped. If someone has removed
    the ledger, a new ledger is created to get the SCN.

    Args:
        identify: returns the identity of the target's cluster.
    """
    if not is_open(connection, way.subscription, way.container):
        return
    scn = ledger.changed_scn()
    if scn is None:
        ledger.create()
        ledger.begin(way.slot, identify(), 0)
        scn = ledger.changed_scn()
        assert scn is not None
    end_lives(connection, way.subscription, way.container, scn)


def _note_life(
    way: WayBack, connection: Connection[Any], ledger: OracleLedger, account: str
) -> None:
    scn = ledger.changed_scn()
    assert scn is not None
    note_begin(connection, way.subscription, account, scn)


def read_beginning(connection: Connection[Any], way: WayBack) -> str | None:
    """Return the recorded start of the fallback; None if it has not begun."""
    found = connection.execute(_COMMENT, (way.publication,)).fetchone()
    return None if found is None else found[0]


def remove_target(way: WayBack, connection: Connection[Any]) -> None:
    """Drop the slot and the publication.

    Raises:
        OlrPgError: 7302, a process still reads the slot; 5004 the role lacks a privilege.
    """
    wait_until_free(connection, way.slot)
    with _refusals(f"SELECT pg_drop_replication_slot('{way.slot}')"):
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE slot_name = %s",
            (way.slot,),
        )
        connection.execute(
            sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(way.publication))
        )


def _note_beginning(connection: Connection[Any], way: WayBack, lsn: int) -> None:
    connection.execute(
        sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(
            sql.Identifier(way.publication),
            sql.Literal(f"olr_pg: way back of {way.subscription} from {lsn_text(lsn)}"),
        )
    )


def _ensure_publication(
    way: WayBack, connection: Connection[Any], tables: Sequence[tuple[str, str]]
) -> None:
    """Create the publication if it is missing, and set its tables."""
    listed = sql.SQL(", ").join(sql.Identifier(*one) for one in tables)
    name = sql.Identifier(way.publication)
    exists = connection.execute(
        "SELECT FROM pg_publication WHERE pubname = %s", (way.publication,)
    ).fetchone()
    form = (
        "CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)"
        if exists is None
        else "ALTER PUBLICATION {} SET TABLE {}"
    )
    statement = sql.SQL(form).format(name, listed)
    with _refusals(statement.as_string(connection)):
        connection.execute(statement)


def _ensure_identity(
    way: WayBack, connection: Connection[Any], schema: str, name: str, table: Table
) -> None:
    """Set the replica identity, so that the WAL contains the key values that identify a row in
    Oracle.
    """
    found = connection.execute(_IDENTITY, (schema, name)).fetchone()
    if found is None:
        raise OlrPgError(
            Code.FALLBACK_TABLE_UNFIT,
            f"PostgreSQL has no table {schema}.{name}",
            action="create the table in PostgreSQL, correct the table mapping, or do not"
            " replicate the table (`apply.tables`, `filter.tables`)",
            table=table.full_name,
        )
    names = target_columns(way.settings, table)
    _check_columns_are_sent(connection, schema, name, table, names)
    identity, columns = found
    if identity == _FULL or {names[one] for one in key_names(table)} <= set(columns):
        return
    place = sql.Identifier(schema, name)
    whole = (place.as_string(connection),)
    for leaf in [*connection.execute(_LEAVES, whole).fetchall()] or [(schema, name)]:
        statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(sql.Identifier(*leaf))
        with _refusals(statement.as_string(connection)):
            connection.execute(statement)


def _check_columns_are_sent(
    connection: Connection[Any], schema: str, name: str, table: Table, names: Mapping[str, str]
) -> None:
    """Check that PostgreSQL sends the values of all columns that Oracle stores.

    Raises:
        OlrPgError: 7310, a column is generated.
    """
    target = read_table(connection, schema, name)
    generated = {one.name for one in (target.columns if target else ()) if one.generated}
    for column, there in names.items():
        if there in generated:
            raise OlrPgError(
                Code.FALLBACK_TABLE_UNFIT,
                NOT_SENT,
                action=GENERATED_ACTION,
                table=table.full_name,
                column=column,
            )


def log_whole_rows_of_partitions(way: WayBack, connection: Connection[Any]) -> None:
    """Set REPLICA IDENTITY FULL for new partitions of tables that have it.

    A partition does not inherit the replica identity of its table. Without a replica identity,
    PostgreSQL rejects updates and deletes of the applications in the partition, or does not send
    the old rows.

    Raises:
        psycopg.Error: the catalogue cannot be read.
    """
    tables = list(target_tables(way))
    schemas, names = ([one[place] for one in tables] for place in (0, 1))
    for schema, name in connection.execute(_LACKING, (schemas, names)).fetchall():
        statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(
            sql.Identifier(schema, name)
        )
        try:
            with connection.transaction():
                connection.execute(_LOCK_TIMEOUT)
                connection.execute(statement)
        except psycopg.Error as error:
            if not (is_locked(error) or is_forbidden(error)):
                raise
            _log.warning(
                "a new partition has no REPLICA IDENTITY FULL, so PostgreSQL rejects updates and"
                " deletes of its rows, or does not send the old rows",
                statement=statement.as_string(connection), reason=str(error.diag.message_primary),
            )  # fmt: skip


@contextmanager
def _refusals(statement: str) -> Iterator[None]:
    """While the context is active, convert the error of a missing privilege to an error that
    contains `statement`, so that an administrator can run it.
    """
    try:
        yield
    except psycopg.Error as error:
        if not is_forbidden(error):
            raise
        raise OlrPgError(
            Code.TARGET_PRIVILEGE,
            "this role is not allowed to prepare the way back",
            action=f"ask the owner of the tables to run: {statement}; then start the command"
            " again. The role also needs the attribute REPLICATION",
        ) from error
