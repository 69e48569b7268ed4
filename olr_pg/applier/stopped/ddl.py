"""Applies the source's DDL to the target. `dictionary.evolution` has divided it into steps.

Changes that cannot be decoded (faults) also arrive as events, and stop their table.

An event is applied in one target transaction, which also advances the table's position in the
ledger to the commit of the DDL. So an event that is delivered again is skipped. An event that
cannot be applied stops its table, like a change that fails (`table_applier`).

Some DDL concerns two tables: an exchange of names, or the exchange of a partition with a table. A
rename concerns two names. DDL with two tables or names is an event in the history of each of the
two. The first event changes the target. The second event only waits until the first event was
applied. So each table or name has its own position in the ledger, and each event is applied once.

Before each of these events, the workers apply all changes that they have received
(`session.reception`). So when the second event is attempted, the first event was applied, or is
held because its table has stopped. The first event also checks that the other table's changes from
before the statement are applied.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import psycopg
import structlog
from psycopg import sql

from olr_pg.applier.statements.target_plan import TablePlan, named_target, plan_table, table_ledger
from olr_pg.applier.stopped.ddl_steps import StepWriter, wanted_steps
from olr_pg.applier.stopped.hold import hold_event, source_document
from olr_pg.applier.stopped.incomplete_values import Incomplete, stop_error, stops
from olr_pg.applier.stopped.partition_rows import PartitionRows
from olr_pg.applier.stopped.renaming import MEANWHILE, Renaming, bring_rows, moved, take_name
from olr_pg.applier.stopped.structure import interrupt
from olr_pg.applier.target.catalogue import missing_table, read_table
from olr_pg.applier.target.ledger import LOCK, ChangeCounts, ErrorRow, TablePosition
from olr_pg.applier.target.table_identity import forget_tables, record_emptied
from olr_pg.dictionary.evolution import SWAPPED, DdlKind
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted
from olr_pg.postgres.sqlstates import is_transient, target_error
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.catalogue import TargetTable
    from olr_pg.dictionary.evolution import Step
    from olr_pg.dictionary.model import Table
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
            f" {shlex.quote(event.table)} --table {shlex.quote(step.table)}`",
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
    forget_tables(connection, settings.subscription, [step.table])
    for one, other in ((event.table, step.table), (step.table, event.table)):
        bring_rows(connection, settings.subscription, one, other)
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


_OBSTACLE: Final = (
    "in the target, drop the object that prevents the change. Then run `olr-pg errors retry`, and"
    " create the object again so that it fits the new table. Or alter the target table yourself,"
    " then run `olr-pg errors skip`"
)
"""The action to report if PostgreSQL refuses a step, usually because other objects depend on the
table.
"""
_PLACE: Final = ("thread", "sequence", "block", "offset", "incident")
"""Keys of an error's `where` that contain the position of the undecodable change in the redo."""


def apply_event(
    connection: Connection[Any],
    settings: ApplierSettings,
    event: SchemaEvent,
    source: Table | None = None,
) -> OlrPgError | None:
    """Apply an event to the target, or add it to the hold, and commit. Do nothing if the event was
    already applied or is already in the hold.

    Args:
        source: the table's definition before the event, if known.

    Returns:
        The error because of which the event stops the table, or None.

    Raises:
        psycopg.Error: a transient error.
    """
    ledger = table_ledger(settings, event.table)
    with connection.transaction():
        state = ledger.lock(connection)
        if state.position.has(event.commit_scn, event.xid):
            return None
        position = state.position.after(event.commit_scn, event.xid)
        error = None if state.stopped else carry_out(connection, settings, event, source)
        if error is None and not state.stopped:
            ledger.advance(connection, position, ChangeCounts())
            return None
        document = source_document(source, settings.facts, event.commit_scn)
        if error is not None:
            ledger.stop(connection, document)
            ledger.record(connection, event_error_row(event, error))
        else:
            ledger.keep_source(connection, document)
        held = hold_event(connection, ledger.key, event, settings.facts)
        if held.later is not None and held.evolution.error is not None:
            ledger.update_message(connection, event_error_row(held, held.evolution.error))
        ledger.move(connection, position)
    return error


def carry_out(
    connection: Connection[Any],
    settings: ApplierSettings,
    event: SchemaEvent,
    source: Table | None = None,
    *,
    decided: bool = False,
) -> OlrPgError | None:
    """Apply an event to the target completely. If the target refuses the event, change nothing and
    return the error.

    Args:
        connection: in a transaction that has locked the ledger's row.
        source: the table's definition before the event, if known.
        decided: whether an operator has skipped the event, so that missing LOB values are only
            recorded, whatever the policy says.
    """
    try:
        with connection.transaction():
            if event.lobs:
                _note_lobs(connection, settings, event, source, decided=decided)
            else:
                _carry_out(connection, settings, event)
    except OlrPgError as refused:
        return refused
    except psycopg.Error as refused:
        if is_transient(refused):
            raise
        doing = (
            ""
            if event.is_of_rows
            else f"DDL of the source cannot be applied to the target: {event.evolution}"
        )
        error = target_error(refused, doing, Code.CHANGE_REFUSED, table=event.table)
        if event.is_of_rows or error.code != Code.CHANGE_REFUSED:
            return error
        return OlrPgError(error.code, error.detail, action=_OBSTACLE, **error.where)
    return None


def _carry_out(connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent) -> None:
    if event.evolution.error is not None:
        raise event.evolution.error
    steps = wanted_steps(settings, event)
    if not steps:
        return
    if event.evolution.concerns_two:
        for step in steps:
            carry_out_half(connection, settings, event, step)
        return
    target = _target(connection, settings, event)
    ledger = table_ledger(settings, event.table)
    interrupt(connection, settings, event.table)
    StepWriter(connection, settings, target, ledger, event).write(steps)


def note_partitions(
    connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent
) -> None:
    """Record how DDL that an operator has skipped has changed the partitions of the source."""
    steps = [step for step in event.evolution.steps if step.kind is DdlKind.REGROUP]
    target = read_table(connection, *named_target(settings, event.table)) if steps else None
    if target is not None:
        key = settings.subscription, event.table
        PartitionRows(connection, key, target, settings.choices).regroup(steps)


def _note_lobs(
    connection: Connection[Any],
    settings: ApplierSettings,
    event: SchemaEvent,
    source: Table | None,
    *,
    decided: bool,
) -> None:
    """Record missing LOB values whose changes are not delivered."""
    for lob in event.lobs:
        if not decided and stops(settings, event.table, lob):
            raise stop_error(event.table, lob)
    target = read_table(connection, *named_target(settings, event.table))
    if target is None:
        missing = ".".join(named_target(settings, event.table))
        raise OlrPgError(Code.TARGET_TABLE_MISSING, f"{missing} does not exist", table=event.table)
    plan = TablePlan(event.table, target, source, settings)
    ledger = table_ledger(settings, event.table)
    Incomplete(connection, ledger, plan).note(event.lobs, event.commit_scn, event.xid)


def _target(
    connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent
) -> TargetTable:
    schema, name = named_target(settings, event.table)
    target = read_table(connection, schema, name)
    # If another table had this name before, records about its rows do not concern the new table.
    begins = any(step.kind is DdlKind.CREATE_AGAIN for step in event.evolution.steps)
    if begins:
        forget_tables(connection, settings.subscription, [event.table])
    if target is None and settings.create_tables and event.definition is not None:
        definition = event.definition
        target = plan_table(connection, settings, definition, definition, begins=begins).target
        record_emptied(connection, settings.subscription, event.table)
    if target is None:
        raise missing_table(connection, schema, name, event.table)
    return target


def event_error_row(event: SchemaEvent, error: OlrPgError) -> ErrorRow:
    """Return the row of the error table for an event that stops its table."""
    scn, message = event.commit_scn, error.detail
    if event.is_fault:
        scn = int(error.where.get("scn", scn))
        place = ", ".join(f"{key} {error.where[key]}" for key in _PLACE if key in error.where)
        message = f"{message} [{place}]"
    if event.later is not None:
        count, last, xid = event.later
        message += (
            f"; and {counted(count, 'more transaction')}, the last one with commit SCN {last}, XID"
            f" {format_xid(xid)}"
        )
    first = event.lobs[0] if event.lobs else None
    operation = "undecoded" if event.is_fault else "ddl"
    return ErrorRow(
        commit_scn=event.commit_scn,
        xid=format_xid(event.xid),
        position=0,
        scn=scn,
        row_id=None if first is None else first.row_id,
        operation=operation if first is None else first.kind.name.lower(),
        code=error.code,
        sqlstate=None,
        message=message,
        statement=event.statement or None,
        before=None,
        after=None,
        resolution="stopped",
        action=error.own_action,
    )
