"""Detects tables that return to the list of replicated tables after the appliance has run without
them.

While the list of tables (`apply.tables`, filters, `olr-pg tables`) lacks a table, its changes are
not delivered, but the checkpoint advances because the other tables confirm. When the table is back
in the list, its next changes follow a gap. Most of the next changes would still find their rows, so
nobody would notice the missing changes. The ledger's row alone does not show the gap, because a
table without changes has the same old position, or no row. So each start records all tables of the
list in `olr_pg.listed`. It records in `left_scn` of the ledger which tables have left the list,
and stops a table that has a `left_scn` and is in the list again. A new load, or an operator who
skips the error, deletes the `left_scn`.

A table whose name was taken by a new table lacks nothing: its history begins with CREATE or RENAME.

At the start of a run, before any change is written, this module also stops the tables whose target
tables are unfit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from olr_pg.applier.statements.target_plan import named_target, table_ledger
from olr_pg.applier.stopped.hold import ending_scn, lost_changes, source_document
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import hash_joins
from olr_pg.applier.target.crash_watch import lost_rows, lost_tables
from olr_pg.applier.target.table_identity import accept_file, moved_tables, replaced_reasons
from olr_pg.applier.target.table_kinds import check_firing, refuse_kind, suspicious
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Table

_SEED_LEFT: Final = """
INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, resetlogs_id,
    empty_at)
SELECT subscription, source_table, target_table, 0, i.resetlogs_id, NULL
FROM olr_pg.listed JOIN olr_pg.subscription AS s USING (subscription)
    LEFT JOIN olr_pg.incarnation AS i USING (subscription)
WHERE subscription = %(subscription)s AND s.complete_scn > 0 AND source_table <> ALL(%(tables)s)
FOR KEY SHARE OF listed
ON CONFLICT DO NOTHING
"""
"""Creates the rows of tables that have left the list before their first change. If `tables remove`
has deleted the table from `olr_pg.listed` meanwhile, the lock notices this, and no row is created.
"""

_RECORD: Final = """
UPDATE olr_pg.ledger AS l SET left_scn = greatest(l.commit_scn, coalesce(
    (SELECT complete_scn FROM olr_pg.subscription AS s WHERE s.subscription = l.subscription), 0))
WHERE subscription = %(subscription)s AND left_scn IS NULL AND source_table <> ALL(%(tables)s)
    AND NOT EXISTS (SELECT FROM olr_pg.load AS o WHERE o.subscription = l.subscription
        AND o.source_table = l.source_table
        AND o.source <> 'renamed' AND o.finished_at IS NOT NULL AND NOT o.handed_over)
"""
"""A table whose load is complete but not handed over (`session.handover`) is not recorded. When
such a table is in the list, replication starts at the load again, so nothing is missing. `tables
add` can fail after it has loaded a table. No rows belong to the old name of a renamed table, but
another table can get this name while the list lacks it.
"""

_LIST: Final = """
WITH new AS (
    INSERT INTO olr_pg.listed (subscription, source_table, target_table)
    SELECT %(subscription)s, * FROM unnest(%(tables)s::text[], %(targets)s::text[])
    ON CONFLICT DO NOTHING RETURNING subscription, source_table
)
SELECT source_table FROM new JOIN olr_pg.subscription AS s USING (subscription)
WHERE s.complete_scn > 0
    AND EXISTS (SELECT FROM olr_pg.listed AS o WHERE o.subscription = new.subscription)
    AND NOT EXISTS (SELECT FROM olr_pg.ledger AS o
        WHERE (o.subscription, o.source_table) = (new.subscription, new.source_table))
    AND NOT EXISTS (SELECT FROM olr_pg.load AS o
        WHERE (o.subscription, o.source_table) = (new.subscription, new.source_table))
ORDER BY source_table
"""
"""Returns the tables that were added to the list without a load. At the first start, and at the
first one after an upgrade of the ledger, no list is recorded yet, so no table is returned.
"""

_BACK: Final = """
SELECT source_table, left_scn FROM olr_pg.ledger
WHERE subscription = %s AND left_scn IS NOT NULL AND source_table = ANY(%s) ORDER BY source_table
"""
_LEFT: Final = "SELECT left_scn FROM olr_pg.ledger WHERE subscription = %s AND source_table = %s"
_FORGET: Final = """
UPDATE olr_pg.ledger SET left_scn = NULL WHERE subscription = %s AND source_table = %s
"""

_NAMED_MAX: Final = 20
"""Maximum number of tables that one warning names."""

_log = structlog.get_logger(__name__)


def stop_left_out(
    connection: Connection[Any],
    settings: ApplierSettings,
    tables: Mapping[str, Table],
    created: Mapping[str, int],
) -> None:
    """Record the tables of the list and those that have left it. Stop those that are in the list
    again, and log a warning about tables that were added to the list without a load.

    Args:
        tables: the list: the source's tables by ``OWNER.NAME``; empty if unknown, so that nothing
            is done.
        created: for tables that were created or renamed while their redo was read, the SCN from
            which their changes are complete.
    """
    if not tables:
        return
    subscription = settings.subscription
    names = list(tables)
    listed = {
        "subscription": subscription,
        "tables": names,
        "targets": [".".join(named_target(settings, name)) for name in names],
    }
    with hash_joins(connection):
        connection.execute(_SEED_LEFT, listed)
        connection.execute(_RECORD, listed)
        added = [name for (name,) in connection.execute(_LIST, listed) if name not in created]
    if added:
        _log.warning(
            "tables were added without a load: only their later changes are replicated",
            tables=added[:_NAMED_MAX],
            number=len(added),
            action="if Oracle already has rows of them, stop the appliance and load them: `olr-pg"
            " initial-load --anew --table OWNER.NAME`",
        )
    for name, left_scn in left_out(connection, subscription, names).items():
        if created.get(name, -1) >= left_scn:
            forget_left_out(connection, subscription, name)
            continue
        reason = _gap(name, left_scn)
        document = source_document(tables[name], settings.facts, left_scn)
        ledger = table_ledger(settings, name)
        if ledger.stop_before(connection, document, reason, left_scn):
            _log.error(
                "table stopped: its changes are held",
                table=name,
                error=str(reason),
                action=reason.action,
            )


def left_out(
    connection: Connection[Any], subscription: str, names: Collection[str]
) -> dict[str, int]:
    """Return those of the named tables without which the appliance has run, each with the SCN up to
    which it has its changes.
    """
    return dict(connection.execute(_BACK, (subscription, list(names))).fetchall())


def left_out_reason(
    connection: Connection[Any], subscription: str, table: str
) -> OlrPgError | None:
    """Return the error of a table whose changes may be missing because the appliance ran without
    this table. None if no held change follows the missing changes, because the source had dropped
    or renamed the table before it left the list: the held changes can be applied up to this DDL.
    """
    row = connection.execute(_LEFT, (subscription, table)).fetchone()
    if row is None or row[0] is None:
        return None
    end = ending_scn(connection, (subscription, table))
    return None if end is not None and end <= row[0] else _gap(table, row[0])


def forget_left_out(connection: Connection[Any], subscription: str, table: str) -> None:
    """Delete the record that the appliance ran without a table."""
    connection.execute(_FORGET, (subscription, table))


def _gap(table: str, left_scn: int) -> OlrPgError:
    return OlrPgError(
        Code.TABLE_WAS_LEFT_OUT,
        f"changes of the table after SCN {left_scn} were not delivered while the list of tables"
        " or a filter excluded it",
        table=table,
    )


def unfit_reason(
    connection: Connection[Any], settings: ApplierSettings, table: str
) -> OlrPgError | None:
    """Return an error that says why changes of ``OWNER.NAME`` cannot be applied to its target
    table. Return None if the changes can be applied, or if the target table is missing.

    Returns:
        5030, changes of the table may be missing; 5040, the target table is UNLOGGED; 5041, a crash
        has emptied it; 5042, a policy may hide its rows; 5043, its rows may be written elsewhere;
        5046, it was restored without the ledger; 5148, held changes are missing.
    """
    if table in lost_tables(connection, settings.subscription):
        return lost_rows(table)
    gap = left_out_reason(connection, settings.subscription, table)
    lost = gap or lost_changes(connection, settings.subscription, table)
    if lost is not None:
        return lost
    target = read_table(connection, *named_target(settings, table))
    if target is None:
        return None
    replaced = replaced_reasons(connection, settings.subscription, {table: target.oid})
    if replaced:
        return replaced[table]
    try:
        refuse_kind(connection, settings, target, table)
    except OlrPgError as reason:
        return reason
    return None


def stop_unfit(
    connection: Connection[Any], settings: ApplierSettings, tables: Mapping[str, Table]
) -> None:
    """Stop the tables whose target tables are unfit. Tables that are already stopped do not change.

    A table without new changes is stopped too, because its rows may have been lost.
    """
    targets = {name: named_target(settings, name) for name in tables}
    looked_at = suspicious(connection, targets.values())
    lost = {
        *lost_tables(connection, settings.subscription),
        *moved_tables(connection, settings.subscription),
    }
    for name, source in tables.items():
        if name not in lost and targets[name] not in looked_at:
            continue
        reason = unfit_reason(connection, settings, name)
        if reason is None:
            if name in lost:
                accept_file(connection, settings.subscription, name)
            _warn_of_firing(connection, settings, name)
            continue
        ledger = table_ledger(settings, name)
        document = partial(source_document, source, settings.facts)
        if ledger.stop_in_place(connection, document, reason):
            _log.error(
                "table stopped: its changes are held",
                table=name,
                error=str(reason),
                action=reason.action,
            )


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
