"""At the start, before any change is written, stops the tables whose target tables are unfit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from olr_pg.applier.statements.target_plan import named_target
from olr_pg.applier.stopped.ddl import event_ledger
from olr_pg.applier.stopped.held_events import source_document
from olr_pg.applier.stopped.left_out import left_out_reason
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.crash_watch import lost_rows, lost_tables
from olr_pg.applier.target.table_kinds import check_firing, refuse_kind, suspicious
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Table

_log = structlog.get_logger(__name__)


def unfit_reason(
    connection: Connection[Any], settings: ApplierSettings, table: str
) -> OlrPgError | None:
    """Return an error that says why changes of ``OWNER.NAME`` cannot be applied to its target
    table. Return None if they can, or if the target table is missing.

    Returns:
        5030, changes of the table may be missing; 5040, the target table is UNLOGGED; 5041, a crash
        has emptied it; 5042, a policy may hide its rows; 5043, its rows may be written elsewhere.
    """
    if table in lost_tables(connection, settings.subscription):
        return lost_rows(table)
    gap = left_out_reason(connection, settings.subscription, table)
    if gap is not None:
        return gap
    target = read_table(connection, *named_target(settings, table))
    if target is None:
        return None
    try:
        refuse_kind(connection, settings, target, table)
    except OlrPgError as reason:
        return reason
    return None


def stop_unfit(
    connection: Connection[Any], settings: ApplierSettings, tables: Mapping[str, Table]
) -> None:
    """Stop the tables whose target tables are unfit. Tables that are already stopped stay as they
    are.

    A table without new changes is stopped too, because its rows may have been lost.
    """
    targets = {name: named_target(settings, name) for name in tables}
    looked_at = suspicious(connection, targets.values())
    lost = lost_tables(connection, settings.subscription)
    for name, source in tables.items():
        if name not in lost and targets[name] not in looked_at:
            continue
        reason = unfit_reason(connection, settings, name)
        if reason is None:
            _warn_of_firing(connection, settings, name)
            continue
        ledger = event_ledger(settings, name)
        document = partial(source_document, source, settings.facts)
        if ledger.stop_in_place(connection, document, reason):
            _log.error("table stopped: its changes are held", table=name, error=str(reason))


def _warn_of_firing(connection: Connection[Any], settings: ApplierSettings, table: str) -> None:
    target = read_table(connection, *named_target(settings, table))
    if target is None:
        return
    for one in check_firing(connection, settings, target):
        _log.warning(
            "a trigger or rule of the target fires on replicated changes",
            table=table,
            what=one.finding.what,
        )
