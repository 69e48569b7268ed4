"""Makes the SQL that applies changes to one target table.

Normally a changed key is applied as a delete of the old row and an insert of the new row
(`net_change`). If the target table has columns that the source lacks, the delete and the insert
would reset these columns to their defaults. So in a table with such columns, an UPDATE changes the
key. But a row may get the key of another row whose key is changed only later. PostgreSQL would
refuse this UPDATE as a duplicate, so the delete and the insert are used nevertheless.

Facts: architecture, “How a batch becomes statements”, “What PostgreSQL does and refuses”.

`rewritten` applies updates as deletes and inserts, for transactions whose rows exchange their keys.
Oracle checks unique keys at the end of a statement, but PostgreSQL checks them for each row. So if
rows exchange values of a unique key (``SET position = position + 1``), PostgreSQL reports a
duplicate. PostgreSQL also reports a duplicate if rows exchange primary keys and their other values
are unknown, because `net_change` cannot insert them again. `rewritten` makes one statement that
deletes the rows from the target and inserts them again: old values come from the deleted rows, new
values from the transaction's changes.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from psycopg import sql

from olr_pg.applier.statements.bound_statement import (
    BoundStatement,
    KeyMissingError,
    leave_identities,
    name_of,
    table_of,
    type_of,
)
from olr_pg.applier.statements.images import (
    bytea_array,
    column_array,
    column_masks,
    composite_array,
    copy_buffer,
    row_masks,
)
from olr_pg.applier.statements.net_change import ABSENT, NO_KEY, SINGLE, Cells, net_change
from olr_pg.applier.statements.one_change import one_change_step
from olr_pg.applier.statements.shared_keys import Key, images
from olr_pg.applier.target.connection import Binary
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.applier.statements.table_changes import TargetChanges
    from olr_pg.applier.statements.target_plan import TablePlan

I64 = npt.NDArray[np.int64]


def steps(plan: TablePlan, changes: TargetChanges, copy_rows: int) -> Iterator[BoundStatement]:
    """Yield the statements that apply these changes, in order.

    Args:
        copy_rows: COPY is used for at least this many inserts.

    Raises:
        UnwritableError: a change cannot be applied by any statement.
    """
    leave_identities(plan, changes)
    writer = SetWriter(plan, copy_rows)
    if len(plan.key) == 0:
        yield from _without_key(writer, changes)
        return
    start, end = 0, len(changes.kind)
    whole = whole_row(plan, changes)
    while start < end:
        net = net_change(changes.kind, changes.row, changes.cells, plan.key, whole, start)
        yield from writer.deletes(changes.cells, net.delete)
        yield from writer.updates(changes.cells, net.update)
        yield from writer.inserts(changes.cells, net.insert)
        start = net.end
        if net.reason == SINGLE:
            yield one_change_step(plan, changes, start)
            start += 1
        elif net.reason == NO_KEY:
            raise KeyMissingError(start)


def _without_key(writer: SetWriter, changes: TargetChanges) -> Iterator[BoundStatement]:
    inserts = changes.kind == DmlKind.INSERT
    bounds = [0, *(np.flatnonzero(np.diff(inserts)) + 1).tolist(), len(inserts)]
    for start, end in zip(bounds[:-1], bounds[1:], strict=True):  # noqa: RUF007 - same length
        if start < end and inserts[start]:
            yield from writer.inserts(changes.after, np.arange(start, end))
        else:
            for number in range(start, end):
                yield one_change_step(writer.plan, changes, number)


class _New(IntEnum):
    """When an UPDATE sets a column to the new value.

    Attributes:
        ALWAYS: in each row, because each row sets the column.
        UNLESS_NULL: where there is a new value, because no row sets the column to NULL. For a table
            of 200 columns of which each row sets one, an update takes PostgreSQL 24 % less CPU than
            with masks.
        BY_MASK: in the rows whose mask contains the column.
    """

    ALWAYS = 0
    UNLESS_NULL = 1
    BY_MASK = 2


class SetWriter:
    """Makes statements that each delete, update or insert a set of rows."""

    def __init__(self, plan: TablePlan, copy_rows: int) -> None:
        self.plan = plan
        self._copy_rows = copy_rows
        self._columns = plan.target.columns
        self._table = table_of(plan)

    def _composites(self, cells: Cells, rows: I64) -> tuple[Binary]:
        target = self.plan.target
        return (Binary(composite_array(cells, rows, target.row_type_oid, self.plan.types)),)

    def deletes(self, cells: Cells, rows: I64) -> Iterator[BoundStatement]:
        """Yield a DELETE that finds the rows by their keys; nothing if there are no rows."""
        if len(rows) == 0:
            return
        keys = [self._columns[i] for i in self.plan.key]
        query = self.plan.statement(DmlKind.DELETE, self._delete)
        if len(keys) == 1:
            array = column_array(cells, rows, int(self.plan.key[0]), keys[0].base_oid)
            yield BoundStatement(DmlKind.DELETE, query, (Binary(array),), None, len(rows))
            return
        only_key = cells._replace(length=np.full_like(cells.length, ABSENT))
        only_key.length[:, self.plan.key] = cells.length[:, self.plan.key]
        yield BoundStatement(
            DmlKind.DELETE, query, self._composites(only_key, rows), None, len(rows)
        )

    def _delete(self) -> sql.Composed:
        keys = [self._columns[i] for i in self.plan.key]
        if len(keys) == 1:
            return sql.SQL("DELETE FROM {} WHERE {} = ANY(%b::{}[])").format(
                self._table, name_of(keys[0].name), type_of(keys[0])
            )
        return sql.SQL("DELETE FROM {0} AS t USING unnest(%b::{0}[]) AS s WHERE {1}").format(
            self._table, self._same_key()
        )

    def updates(self, cells: Cells, rows: I64) -> Iterator[BoundStatement]:
        """Yield an UPDATE that finds the rows by their keys; nothing if no row sets a column.

        Rows can set different columns. If only some rows set a column, the statement sets it to its
        old value in the other rows. Such a statement costs little: to decide about index updates
        (HOT), key checks, and TOAST storage, PostgreSQL compares the values, not the list of
        columns that are set.
        """
        masks, counts, nulls = column_masks(self.plan, cells, rows)
        if counts.max(initial=0) < len(rows):
            sets_any = masks.any(axis=1)
            rows, masks = rows[sets_any], masks[sets_any]
        if len(rows) == 0:
            return
        columns = np.flatnonzero(counts)
        by_mask = (counts < len(rows)) & (nulls > 0)
        chosen = np.where(counts == len(rows), _New.ALWAYS, _New.UNLESS_NULL)
        chosen[by_mask] = _New.BY_MASK
        masked = bool(by_mask.any())
        parameters: tuple[Binary, ...] = self._composites(cells, rows)
        if masked:
            parameters += (Binary(bytea_array(masks)),)
        statement = self.plan.statement
        setting = (
            statement(("set", i, new), partial(self._setting, i, _New(new)))
            for i, new in zip(columns.tolist(), chosen[columns].tolist(), strict=True)
        )
        query = b"".join((
            statement("update", lambda: sql.SQL("UPDATE {} AS t SET ").format(self._table)),
            b", ".join(setting),
            statement(("from", masked), partial(self._from, masked=masked)),
        ))  # fmt: skip
        yield BoundStatement(DmlKind.UPDATE, query, parameters, None, len(rows))

    def _setting(self, column: int, new: _New) -> sql.Composed:
        name = name_of(self._columns[column].name)
        if new is _New.ALWAYS:
            return sql.SQL("{0} = s.{0}").format(name)
        if new is _New.UNLESS_NULL:
            return sql.SQL("{0} = COALESCE(s.{0}, t.{0})").format(name)
        return sql.SQL("{0} = CASE WHEN get_bit(s.{1}, {2}) = 1 THEN s.{0} ELSE t.{0} END").format(
            name, self._mask_name(), sql.Literal(column)
        )

    def _from(self, *, masked: bool) -> sql.Composed:
        if not masked:
            return sql.SQL(" FROM unnest(%b::{}[]) AS s WHERE {}").format(
                self._table, self._same_key()
            )
        names = [*(name_of(column.name) for column in self._columns), self._mask_name()]
        return sql.SQL(
            " FROM ROWS FROM (unnest(%b::{}[]), unnest(%b::bytea[])) AS s ({}) WHERE {}"
        ).format(self._table, sql.SQL(", ").join(names), self._same_key())

    def _mask_name(self) -> sql.SQL:
        """Return a name that no column of the table has."""
        names = {column.name for column in self._columns}
        return name_of(next(name for n in count() if (name := f"mask{n}") not in names))

    def inserts(self, cells: Cells, rows: I64) -> Iterator[BoundStatement]:
        """Yield an INSERT or a COPY of whole rows; nothing if there are no rows."""
        if len(rows) == 0:
            return
        columns = self.plan.inserted
        names = tuple(self._columns[i].name for i in columns)
        if len(rows) >= self._copy_rows:
            yield copying(self.plan, copy_buffer(cells, rows, columns), len(rows))
            return
        query = self.plan.statement((DmlKind.INSERT, names), partial(self._insert, names))
        yield BoundStatement(DmlKind.INSERT, query, self._composites(cells, rows), None, len(rows))

    def _insert(self, names: Sequence[str]) -> sql.Composed:
        return sql.SQL(
            "INSERT INTO {0} ({1}) OVERRIDING SYSTEM VALUE SELECT {2} FROM unnest(%b::{0}[]) AS s"
        ).format(
            self._table,
            sql.SQL(", ").join(map(name_of, names)),
            sql.SQL(", ").join(sql.SQL("s.{}").format(name_of(name)) for name in names),
        )

    def _same_key(self) -> sql.Composed:
        names = [name_of(self._columns[i].name) for i in self.plan.key]
        return sql.SQL(" AND ").join(sql.SQL("t.{0} = s.{0}").format(name) for name in names)


def copying(plan: TablePlan, stream: memoryview, rows: int) -> BoundStatement:
    """Return a COPY of `rows` rows into the columns `plan.inserted`."""
    names = tuple(plan.target.columns[i].name for i in plan.inserted)

    def compose() -> sql.Composed:
        return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            plan.target.identifier, sql.SQL(", ").join(map(sql.Identifier, names))
        )

    return BoundStatement(
        DmlKind.INSERT, plan.statement(("copy", names), compose), (), stream, rows
    )


def overwriting(
    plan: TablePlan, changes: TargetChanges, number: int, *, displaced: bool
) -> list[BoundStatement]:
    """Return the statements that write the row of a conflicting change; empty if that is
    impossible.

    The statements delete the rows with the old and the new key, and insert the whole row. So an
    update must contain all columns of the row.

    Args:
        displaced: whether another row is known to have the old key now. If so, the row with the old
            key is not deleted.
    """
    kind = DmlKind(int(changes.kind[number]))
    if kind is DmlKind.DELETE or len(plan.key) == 0:
        return []
    before, after = changes.before, changes.after
    offset, length = before.offset[number].copy(), before.length[number].copy()
    if kind is DmlKind.INSERT:
        length[:] = ABSENT
    present = after.length[number] != ABSENT
    offset[present] = after.offset[number][present]
    length[present] = after.length[number][present]
    if kind is DmlKind.UPDATE and (length[plan.whole] == ABSENT).any():
        return []
    row = Cells(before.data, offset.reshape(1, -1), length.reshape(1, -1))
    writer, rows = SetWriter(plan, 2), np.array([0])
    gone = list(writer.deletes(row, rows))
    if kind is DmlKind.UPDATE and not displaced:
        gone += writer.deletes(before, np.array([number]))
    return [
        *(step._replace(expected=-1) for step in gone),
        *writer.inserts(row, rows),
    ]


def whole_row(plan: TablePlan, changes: TargetChanges) -> I64:
    """Return the indexes of the columns whose values must be known to delete a row and insert it
    with a new key.
    """
    if len(plan.movable) == len(plan.whole) or _overlap(plan, changes):
        return plan.whole
    return plan.movable


def _overlap(plan: TablePlan, changes: TargetChanges) -> bool:
    """Return whether a row gets the key of another row whose key is changed only later."""
    length = changes.after.length[:, plan.key]
    sets_key = (changes.kind == DmlKind.UPDATE) & (length != ABSENT).any(axis=1)
    taken: set[Key | None] = set()
    for number in np.flatnonzero(sets_key).tolist():
        old, new = images(changes, number, plan.key)
        if old == new:
            continue
        if old in taken:
            return True
        taken.add(new)
    return False


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
    masks, counts, _ = row_masks(rows.cells, old, np.arange(len(target.columns)))
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
