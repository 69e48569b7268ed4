"""Carrying out in the target what a DDL of the source means (`dictionary.evolution`).

Everything of one event happens in one target transaction with the ledger's row, which then stands
at the commit of the DDL: doing the event again finds it done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import structlog
from psycopg import sql

from olr_pg.applier.ledger import Counters, ErrorRow, TableLedger
from olr_pg.applier.plan import plan_table, target_columns, target_name
from olr_pg.applier.settings import TruncatePolicy
from olr_pg.applier.table import TableStoppedError
from olr_pg.applier.target import empty_table, read_table
from olr_pg.datatypes.mapping import pg_type
from olr_pg.dictionary.evolution import Verdict
from olr_pg.errors import OlrPgError
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.schema_events import SchemaEvent
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target import TargetTable

_log = structlog.get_logger(__name__)

_SKIPPED = """
SELECT resolution = 'skipped' FROM olr_pg.error
WHERE subscription = %s AND source_table = %s AND commit_scn = %s AND xid = %s AND operation = 'ddl'
"""


def apply_event(connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent) -> None:
    """Bring an event into the target, durably; nothing where it is there already.

    Raises:
        TableStoppedError: the table cannot follow.
        psycopg.Error: an error that may pass.
    """
    owner, _, table = event.table.partition(".")
    schema, name = target_name(settings, owner, table)
    ledger = TableLedger(settings.subscription, event.table, f"{schema}.{name}")
    error: OlrPgError | None = None
    with connection.transaction():
        position = ledger.lock(connection)
        if position.has(event.commit_scn, event.xid):
            return
        if not _is_skipped(connection, settings, event):
            try:
                with connection.transaction():
                    _carry_out(connection, settings, event)
            except OlrPgError as refused:
                error = refused
            except psycopg.errors.InsufficientPrivilege as refused:
                error = OlrPgError(5004, str(refused.diag.message_primary), table=event.table)
        if error is None:
            ledger.advance(connection, position.after(event.commit_scn, event.xid), Counters())
        else:
            ledger.stop(connection)
            ledger.record(connection, _error_row(event, error))
    if error is not None:
        raise TableStoppedError(error, event.commit_scn)


def _is_skipped(connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent) -> bool:
    """Whether somebody has decided that the table goes on as it is."""
    key = (settings.subscription, event.table, event.commit_scn, format_xid(event.xid))
    row = connection.execute(_SKIPPED, key).fetchone()
    return row is not None and bool(row[0])


def _carry_out(connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent) -> None:
    evolution = event.evolution
    if evolution.verdict is Verdict.STOP:
        assert evolution.error is not None
        raise evolution.error
    if evolution.verdict is Verdict.FOLLOW:
        return
    target = _target(connection, settings, event)
    if evolution.columns:
        _add_columns(connection, target, event)
    if evolution.verdict is Verdict.TRUNCATE:
        _truncate(connection, settings, target, event)


def _target(
    connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent
) -> TargetTable:
    owner, _, table = event.table.partition(".")
    schema, name = target_name(settings, owner, table)
    target = read_table(connection, schema, name)
    if target is None and settings.create_tables and event.definition is not None:
        target = plan_table(connection, settings, event.definition, event.definition).target
    if target is None:
        raise OlrPgError(5005, f"{schema}.{name} does not exist", table=event.table)
    return target


def _add_columns(connection: Connection[Any], target: TargetTable, event: SchemaEvent) -> None:
    names = target_columns(event.definition)
    for column in event.evolution.columns:
        kind = pg_type(column).name
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS {} {}").format(
                target.identifier, sql.Identifier(names[column.name]), sql.SQL(kind)
            )
        )
        _log.info("column added", table=target.full_name, column=names[column.name], type=kind)


def _truncate(
    connection: Connection[Any],
    settings: ApplierSettings,
    target: TargetTable,
    event: SchemaEvent,
) -> None:
    if settings.truncate is TruncatePolicy.STOP:
        raise OlrPgError(5070, "TRUNCATE TABLE", table=event.table)
    if settings.truncate is TruncatePolicy.IGNORE:
        _log.warning("TRUNCATE is ignored", table=event.table, scn=event.commit_scn)
        return
    empty_table(connection, target)
    _log.info("table truncated", table=target.full_name, scn=event.commit_scn)


def _error_row(event: SchemaEvent, error: OlrPgError) -> ErrorRow:
    return ErrorRow(
        commit_scn=event.commit_scn,
        xid=format_xid(event.xid),
        position=0,
        scn=event.commit_scn,
        row_id=None,
        operation="ddl",
        code=error.code,
        sqlstate=None,
        message=error.detail,
        statement=event.statement or None,
        before=None,
        after=None,
        resolution="stopped",
    )
