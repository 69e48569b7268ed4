"""Applies DDL that concerns two tables: a rename, an exchange of names, or the exchange of a
partition with a table.

Such a statement is an event in the history of each of the two tables (for a rename, of the two
names). The first event changes the target. The second event only waits until the first one was
applied. So each table or name has its own position in the ledger, and each event is applied once.

Before each of these events, the workers apply all changes that they have received
(`session.distribution`). So when the second event is attempted, the first one was applied, or it is
held because its table has stopped. The first event also checks that the other table's changes from
before the statement are applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog
from psycopg import sql

from olr_pg.applier.statements.target_plan import named_target
from olr_pg.applier.stopped.partition_rows import PartitionRows
from olr_pg.applier.stopped.renaming import MEANWHILE, Renaming, moved, take_name
from olr_pg.applier.target.catalogue import missing_table, read_table
from olr_pg.applier.target.ledger import LOCK, TablePosition
from olr_pg.dictionary.evolution import SWAPPED, DdlKind
from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.evolution import Step
    from olr_pg.transactions.schema_event import SchemaEvent

_FIRST_HELD: Final = """
SELECT commit_scn, xid, kind FROM olr_pg.held
WHERE subscription = %s AND source_table = %s ORDER BY id LIMIT 1
"""
_IS_HELD: Final = """
SELECT FROM olr_pg.held WHERE subscription = %s AND source_table = %s AND commit_scn = %s
    AND xid = %s AND kind = 'ddl'
"""
_PARTITION: Final = """
SELECT pn.nspname, p.relname, pg_get_expr(c.relpartbound, c.oid), cn.nspname, c.relname
FROM pg_class c JOIN pg_namespace cn ON cn.oid = c.relnamespace
    JOIN pg_inherits i ON i.inhrelid = c.oid
    JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE c.oid = %s::regclass
"""
_SWAP_SET_ASIDE: Final = """
UPDATE olr_pg.set_aside SET
    schema_name = CASE WHEN (schema_name, table_name) = (%(s)s, %(t)s) THEN %(os)s ELSE %(s)s END,
    table_name = CASE WHEN (schema_name, table_name) = (%(s)s, %(t)s) THEN %(ot)s ELSE %(t)s END
WHERE subscription = %(subscription)s
    AND (schema_name, table_name) IN ((%(s)s, %(t)s), (%(os)s, %(ot)s))
"""
_RETRY: Final = "(`olr-pg errors list`, `olr-pg tables resume`), then `olr-pg errors retry`"

_log = structlog.get_logger(__name__)


def carry_out_half(
    connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent, step: Step
) -> None:
    """Apply one of the two events of a statement that concerns two tables.

    Raises:
        OlrPgError: 3071, 3073, the other table is behind, or the target lacks the partition; 5005,
            a target table is missing; 5147, another table has the new name.
        psycopg.Error: PostgreSQL refuses.
    """
    match step.kind:
        case DdlKind.RENAME_TABLE if step.verb == SWAPPED:
            _check_ready(connection, settings, event, step)
            Renaming(connection, settings, event).exchange(step.table)
        case DdlKind.RENAME_TABLE:
            Renaming(connection, settings, event).carry_out(step.table)
        case DdlKind.EXCHANGE_PARTITION:
            _exchange(connection, settings, event, step)
        case _:
            _see_first_half(connection, settings, event, step)
            take_name(connection, (settings.subscription, event.table))


def _see_first_half(
    connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent, step: Step
) -> None:
    """Check that the event of the other table was applied.

    Raises:
        OlrPgError: 3071, 3073, it was not applied, because the other table is stopped or paused.
    """
    other, identity = step.table, (event.commit_scn, format_xid(event.xid))
    key = settings.subscription, other
    held = connection.execute(_IS_HELD, (*key, *identity)).fetchone()
    if held is None and _position(connection, key).has(event.commit_scn, event.xid):
        return
    is_rename = step.kind is DdlKind.TAKE_NAME
    raise OlrPgError(
        Code.TABLE_GONE if is_rename else Code.ROWS_CHANGED_BY_DDL,
        f"{step}, and {other} is stopped or paused at an earlier SCN",
        action=f"resume {other} first {_RETRY}",
        table=event.table,
    )


def _position(connection: Connection[Any], key: tuple[str, str]) -> TablePosition:
    row = connection.execute(LOCK, key).fetchone()
    return TablePosition(0, ("",)) if row is None else TablePosition(row[0], tuple(row[1]))


def _exchange(
    connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent, step: Step
) -> None:
    """Exchange a partition of the target with a table: detach the partition, let the two tables
    exchange their names, and attach the other table.
    """
    _check_ready(connection, settings, event, step)
    target = read_table(connection, *named_target(settings, event.table))
    if target is None:
        raise missing_table(connection, *named_target(settings, event.table), event.table)
    key = settings.subscription, event.table
    rows = PartitionRows(connection, key, target, settings.choices)
    found = rows.only_of([step.partition], step.others)
    if isinstance(found, str) or len(found) != 1:
        raise OlrPgError(
            Code.ROWS_CHANGED_BY_DDL,
            f"{step}, and {target.full_name} has no partition for exactly these rows",
            action="stop the appliance and load both again: `olr-pg initial-load --anew --table"
            f" {event.table} --table {step.table}`",
            table=event.table,
        )
    (part,) = found
    there = named_target(settings, step.table)
    if read_table(connection, *there) is None:
        raise missing_table(connection, *there, step.table)
    row = connection.execute(_PARTITION, (part.as_string(connection),)).fetchone()
    assert row is not None
    parent, bound, own = sql.Identifier(*row[:2]), sql.SQL(row[2]), row[3:]
    for statement in (
        sql.SQL("ALTER TABLE {} DETACH PARTITION {}").format(parent, part),
        *moved(own, (own[0], MEANWHILE)),
        *moved(there, own),
        *moved((own[0], MEANWHILE), there),
        sql.SQL("ALTER TABLE {} ATTACH PARTITION {} {}").format(parent, part, bound),
    ):
        connection.execute(statement)
    names = {"s": own[0], "t": own[1], "os": there[0], "ot": there[1]}
    connection.execute(_SWAP_SET_ASIDE, {**names, "subscription": settings.subscription})
    _log.info("DDL was applied to the target", table=event.table, what=str(step))


def _check_ready(
    connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent, step: Step
) -> None:
    """Check that all changes of both tables from before the exchange are applied, and that no row
    of them lacks a LOB value.

    Raises:
        OlrPgError: 3073, a change is not applied, or a row lacks a LOB value.
    """
    key = settings.subscription, step.table
    first = connection.execute(_FIRST_HELD, key).fetchone()
    is_before = first is not None and first != (event.commit_scn, format_xid(event.xid), "ddl")
    if is_before:
        raise OlrPgError(
            Code.ROWS_CHANGED_BY_DDL,
            f"{step}, which is stopped or paused at an earlier SCN",
            action=f"resume {step.table} first, and wait until its changes up to that SCN are"
            f" applied {_RETRY}",
            table=event.table,
        )
    names = [event.table, step.table]
    found = connection.execute(
        "SELECT FROM olr_pg.incomplete WHERE subscription = %s AND source_table = ANY(%s) LIMIT 1",
        (settings.subscription, names),
    ).fetchone()
    if found is not None:
        raise OlrPgError(
            Code.ROWS_CHANGED_BY_DDL,
            f"{step}, and rows of {' or '.join(names)} lack LOB values, which olr_pg"
            " records under the table's name",
            action="complete the rows first (`olr-pg fetch-lobs`), then `olr-pg errors retry`",
            table=event.table,
        )
