"""Applies updates as deletes and inserts, for transactions whose rows exchange their keys.

Oracle checks unique keys at the end of a statement, but PostgreSQL checks them for each row. So if
rows exchange values of a unique key (``SET position = position + 1``), PostgreSQL reports a
duplicate. The same happens if rows exchange primary keys and their other values are unknown,
because `net_change` cannot insert them again. This module makes one statement that deletes the rows
from the target and inserts them again: old values come from the deleted rows, new values from the
transaction's changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from psycopg import sql

from olr_pg.applier.statements.bound_statement import BoundStatement, name_of, table_of
from olr_pg.applier.statements.images import bytea_array, composite_array, row_masks
from olr_pg.applier.statements.net_change import ABSENT, Cells
from olr_pg.applier.statements.table_statements import SetWriter
from olr_pg.applier.target.connection import Binary
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from olr_pg.applier.statements.table_changes import TargetChanges
    from olr_pg.applier.statements.target_plan import TablePlan

I64 = npt.NDArray[np.int64]


class _Rows(NamedTuple):
    """The rows that a transaction changes. The number of a row is the index of its first change.

    Attributes:
        deleted, old, new: the numbers of the rows to delete, to update, and to insert.
        cells: the values that the transaction sets, by the number of the row.
    """

    deleted: I64
    old: I64
    new: I64
    cells: Cells


def rewritten(plan: TablePlan, changes: TargetChanges, copy_rows: int) -> list[BoundStatement]:
    """Return the statements that apply the changes of one transaction.

    The list is empty if the transaction's rows cannot be identified, or if it has no updates that
    could exchange keys.

    Args:
        changes: the changes, with whole before images.
    """
    is_moving = len(plan.key) > 0 and (changes.kind == DmlKind.UPDATE).any()
    rows = _rows(plan, changes) if is_moving else None
    if rows is None:
        return []
    writer = SetWriter(plan, copy_rows)
    return [
        *writer.deletes(changes.before, rows.deleted),
        *([_rewriting(plan, changes, rows)] if len(rows.old) else []),
        *writer.inserts(rows.cells, rows.new),
    ]


def _rows(plan: TablePlan, changes: TargetChanges) -> _Rows | None:
    """Return the changed rows, which are identified by their ROWIDs; None if ROWIDs do not identify
    them.
    """
    if (changes.row == 0).any():
        return None
    before, after, kinds = changes.before, changes.after, changes.kind.tolist()
    cells = Cells(
        changes.cells.data, np.zeros_like(before.offset), np.full_like(before.length, ABSENT)
    )
    deleted: list[int] = []
    first: dict[int, int] = {}
    for number, name in enumerate(changes.row.tolist()):
        at = first.pop(name, None)
        if at is None:
            at = number
            if kinds[at] != DmlKind.INSERT and (before.length[at, plan.key] < 0).any():
                return None
        elif kinds[number] == DmlKind.INSERT:
            return None
        if kinds[number] == DmlKind.DELETE:
            deleted += [at] if kinds[at] != DmlKind.INSERT else []
            continue
        present = after.length[number] != ABSENT
        cells.offset[at, present] = after.offset[number, present]
        cells.length[at, present] = after.length[number, present]
        first[name] = at
    kept = np.array(list(first.values()), np.int64)
    is_new = changes.kind[kept] == DmlKind.INSERT
    return _Rows(np.array(deleted, np.int64), kept[~is_new], kept[is_new], cells)


def _rewriting(plan: TablePlan, changes: TargetChanges, rows: _Rows) -> BoundStatement:
    """Return the statement that deletes the rows to update and inserts them again with their new
    values.
    """
    old, target, before = rows.old, plan.target, changes.before
    keys = before._replace(length=np.full_like(before.length, ABSENT))
    keys.length[:, plan.key] = before.length[:, plan.key]
    masks, counts = row_masks(rows.cells, old, np.arange(len(target.columns)))
    parameters = (
        Binary(composite_array(keys, old, target.row_type_oid, plan.types)),
        Binary(composite_array(rows.cells, old, target.row_type_oid, plan.types)),
        Binary(bytea_array(masks)),
    )
    return BoundStatement(
        DmlKind.UPDATE, _statement(plan, counts > 0).as_bytes(), parameters, None, len(old)
    )


def _statement(plan: TablePlan, is_set: npt.NDArray[np.bool_]) -> sql.Composed:
    """Return the SQL of the statement, for changes that set the columns `is_set`.

    It sorts the rows before it inserts them, so that PostgreSQL completes all deletes before the
    first insert.
    """
    columns = plan.target.columns
    kept = [place for place, column in enumerate(columns) if not column.generated]
    names = sql.SQL(", ").join(name_of(columns[place].name) for place in kept)
    found = [sql.SQL(f"{{0}} AS c{place}").format(_value(plan, is_set, place)) for place in kept]
    aliases = [f"{kind}{place}" for kind in "on" for place in range(len(columns))]
    return sql.SQL(
        "WITH gone AS (DELETE FROM {table} AS t USING ROWS FROM (unnest(%b::{table}[]),"
        " unnest(%b::{table}[]), unnest(%b::bytea[])) AS s ({aliases}, mask) WHERE {same}"
        " RETURNING {found})"
        " INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE SELECT * FROM gone ORDER BY {order}"
    ).format(
        table=table_of(plan),
        aliases=sql.SQL(", ").join(map(sql.SQL, aliases)),
        same=sql.SQL(" AND ").join(
            sql.SQL(f"t.{{0}} = s.o{place}").format(name_of(columns[place].name))
            for place in plan.key.tolist()
        ),
        found=sql.SQL(", ").join(found),
        names=names,
        order=sql.SQL(f"c{plan.key[0]}"),
    )


def _value(plan: TablePlan, is_set: npt.NDArray[np.bool_], place: int) -> sql.Composed:
    """Return the expression for the value of a column in an inserted row."""
    name = name_of(plan.target.columns[place].name)
    if not is_set[place]:
        return sql.SQL("t.{}").format(name)
    return sql.SQL(
        f"CASE WHEN get_bit(s.mask, {place}) = 1 THEN s.n{place} ELSE t.{{}} END"
    ).format(name)
