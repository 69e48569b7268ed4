"""Applies row conditions (`filter.rows`) to row changes. The target contains only rows that meet
the condition of their table.

If an update makes a row meet the condition, it becomes an insert. If the row no longer meets the
condition after an update, the update becomes a delete. To decide this, the redo must contain the
columns of the condition, before and after the change. If the update becomes an insert, the redo
must contain the whole row. If the redo does not contain these columns, all changes of the table in
this transaction are left out and reported as a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.conditions.evaluate import Truth, evaluate
from olr_pg.conditions.typed_conditions import RowCondition, Unusable
from olr_pg.datatypes.columns import ValueColumn
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import kernel
from olr_pg.redo.batch import columns_of
from olr_pg.scalars import format_xid
from olr_pg.transactions.finished import count_rows
from olr_pg.transactions.finished_columns import VALUE, DmlKind, Image, OwnedChanges
from olr_pg.transactions.left_out import Remaining, kept_changes
from olr_pg.transactions.row_fault import RowFault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.finished_columns import DmlColumns, TransactionColumns

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

UNDECIDED: Final = Code.ROW_CONDITION_UNDECIDABLE
"""The error if the redo does not show whether a row meets the condition."""

NOT_WHOLE: Final = Code.ROW_MOVES_IN_INCOMPLETE
"""The error if a row meets the condition only after the change, and the redo does not contain the
whole row.
"""

_KEEP, _DROP, _TO_INSERT, _TO_DELETE, _FAULT = range(5)
_INSERT, _DELETE, _UPDATE = int(DmlKind.INSERT), int(DmlKind.DELETE), int(DmlKind.UPDATE)
_BEFORE, _AFTER = int(Image.BEFORE), int(Image.AFTER)


class Conditions(NamedTuple):
    """The row conditions of tables.

    Attributes:
        tables: the tables with a condition, by number in the row plan.
    """

    tables: Mapping[int, RowCondition | Unusable]


class Fulfilling(NamedTuple):
    """Finished transactions after applying the conditions.

    Attributes:
        transactions, dml, rows: as in `left_out.Remaining`, but `rows` contains the counts before
            applying the conditions minus the counts after it.
        left_out: number of removed row changes, whose rows do not meet the condition.
        faults: the tables whose changes are left out of a transaction because the result of the
            condition is unknown.
    """

    transactions: TransactionColumns
    dml: DmlColumns
    rows: I64
    left_out: int
    faults: tuple[RowFault, ...]

    @property
    def remaining(self) -> Remaining:
        """Return the remaining transactions and row changes."""
        return Remaining(self.transactions, self.dml, self.rows)


def fulfil(
    transactions: TransactionColumns,
    dml: DmlColumns,
    conditions: Conditions,
    tables: Sequence[Table],
    widths: I64,
) -> Fulfilling:
    """Return the transactions after applying the conditions.

    Args:
        tables: the tables of the row plan.
        widths: shape (tables); the number of delivered columns of each table.
    """
    actions = np.zeros(dml.kind.size, np.uint8)
    why = dict[int, str]()
    for number, condition in conditions.tables.items():
        changes = np.flatnonzero(dml.table == number)
        if changes.size:
            _decide(dml, changes, condition, actions, why)
    _complete(dml, actions, widths)
    if not actions.any():
        return Fulfilling(transactions, dml, np.zeros((len(tables), 3), np.int64), 0, ())
    faults = _faults(transactions, dml, actions, tables, conditions, why)
    faulty = _faulty(transactions, dml, actions)
    left_out = int(np.count_nonzero((actions == _DROP) & ~faulty))
    before, after = (np.zeros((len(tables), 3), np.int64) for _ in range(2))
    count_rows(dml.table, dml.kind, before)
    turned = _turned(dml, actions)
    kept = (actions != _DROP) & ~faulty
    transactions, turned = kept_changes(transactions, turned, kept)
    count_rows(turned.table, turned.kind, after)
    return Fulfilling(transactions, turned, before - after, left_out, faults)


def _decide(
    dml: DmlColumns,
    changes: I64,
    condition: RowCondition | Unusable,
    actions: U8,
    why: dict[int, str],
) -> None:
    """Set the actions for the changes of one table, and the reason if there is a fault."""
    if isinstance(condition, Unusable):
        actions[changes] = _FAULT
        why[int(changes[0])] = condition.why
        return
    kind = dml.kind[changes]
    before = np.full(changes.size, Truth.FALSE, np.uint8)
    after = before.copy()
    for truths, is_after, concerned in (
        (before, False, kind != _INSERT),
        (after, True, kind != _DELETE),
    ):
        rows = changes[concerned]
        columns = [_column(dml, rows, ordinal, is_after=is_after) for ordinal in condition.ordinals]
        truths[concerned] = evaluate(condition, columns)
    was, is_ = before == Truth.TRUE, after == Truth.TRUE
    chosen = np.select(
        [(before == Truth.UNDECIDED) | (after == Truth.UNDECIDED), ~was & ~is_, kind != _UPDATE,
         was & is_, is_],
        [_FAULT, _DROP, _KEEP, _KEEP, _TO_INSERT],
        _TO_DELETE,
    )  # fmt: skip
    actions[changes] = chosen
    for at in np.flatnonzero(chosen == _FAULT)[:1]:
        names = ", ".join(condition.names)
        why[int(changes[at])] = (
            f"the condition ({condition.text}) needs the values of {names}"
            " before and after the change"
        )


def _column(dml: DmlColumns, rows: I64, ordinal: int, *, is_after: bool) -> ValueColumn:
    """Return the values of one column, before or after each of the row changes."""
    offset, length, following = (np.empty(rows.size, np.int64) for _ in range(3))
    _find(dml, rows, ordinal, is_after, offset, length, following)
    if not (following >= 0).any():
        return ValueColumn(dml.data, offset, length)
    sizes = np.maximum(length, 0)
    _add_parts(dml, following, sizes)
    start = np.concatenate([[0], np.cumsum(sizes)])
    data = np.empty(int(start[-1]), np.uint8)
    _join_parts(dml, offset, length, following, start, data)
    return ValueColumn(data, start[:-1], np.where(length < 0, length, sizes))


@kernel
def _find(
    dml: Any, rows: Any, ordinal: int, is_after: bool, offset: Any, length: Any, following: Any
) -> None:
    """Find the values of a column. The value after an update is the old value if the update does
    not set the column.
    """
    for i in range(rows.size):
        row = rows[i]
        offset[i], length[i], following[i] = 0, -2, -1
        if dml.stored_first[row] >= 0:
            length[i] = -1
            if ordinal < dml.stored_count[row]:
                stored = dml.stored[dml.stored_first[row] + ordinal]
                offset[i], length[i] = stored.offset, max(stored.length, -1)
            continue
        for entry in range(dml.entry_first[row], dml.entry_first[row + 1]):
            value = dml.values[entry]
            if value.column != ordinal or (value.image == _AFTER and not is_after):
                continue
            offset[i], length[i] = value.offset, max(value.length, -1)
            following[i] = value.next


@kernel
def _add_parts(dml: Any, following: Any, sizes: Any) -> None:
    for i in range(following.size):
        entry = following[i]
        while entry >= 0:
            sizes[i] += max(dml.values[entry].length, 0)
            entry = dml.values[entry].next


@kernel
def _join_parts(dml: Any, offset: Any, length: Any, following: Any, start: Any, data: Any) -> None:
    for i in range(following.size):
        at = start[i]
        for k in range(max(length[i], 0)):
            data[at + k] = dml.data[offset[i] + k]
        at += max(length[i], 0)
        entry = following[i]
        while entry >= 0:
            value = dml.values[entry]
            for k in range(max(value.length, 0)):
                data[at + k] = dml.data[value.offset + k]
            at += max(value.length, 0)
            entry = value.next


def _complete(dml: DmlColumns, actions: U8, widths: I64) -> None:
    """Set the action to fault for updates that become inserts but lack a column."""
    moved = np.flatnonzero(actions == _TO_INSERT)
    if moved.size:
        known = np.empty(moved.size, np.int64)
        _count_columns(dml, moved, known)
        actions[moved[known < widths[dml.table[moved]]]] = _FAULT


@kernel
def _count_columns(dml: Any, rows: Any, known: Any) -> None:
    """Count for each update the columns that at least one of its images contains."""
    for i in range(rows.size):
        first, end = dml.entry_first[rows[i]], dml.entry_first[rows[i] + 1]
        middle = _first_after(dml, first, end)
        known[i] = _merge(dml, first, middle, end, dml.values, -1)


@kernel
def _first_after(dml: Any, first: int, end: int) -> int:
    while first < end and dml.values[first].image == _BEFORE:
        first += 1
    return first


@kernel
def _merge(dml: Any, first: int, middle: int, end: int, values: Any, at: int) -> int:
    """Build the row after an update, from the columns that it sets and the old values of the
    others. Return the number of columns.

    Args:
        first, middle, end: the image before the update is [first, middle), the image after it
            [middle, end).
        values: the table to fill, from row `at` on. If `at` is −1, the columns are only counted.
    """
    count, old, new = 0, first, middle
    while old < middle or new < end:
        takes_new = new < end and (
            old >= middle or dml.values[new].column <= dml.values[old].column
        )
        if takes_new and old < middle and dml.values[new].column == dml.values[old].column:
            old += 1
        chosen = new if takes_new else old
        if at >= 0:
            values[at + count] = dml.values[chosen]
            values[at + count].image = _AFTER
        count += 1
        if takes_new:
            new += 1
        else:
            old += 1
    return count


def _turned(dml: DmlColumns, actions: U8) -> DmlColumns:
    """Return the row changes, in which updates become inserts or deletes according to their
    action.
    """
    moves = (actions == _TO_INSERT) | (actions == _TO_DELETE)
    if not moves.any():
        return dml
    sizes = np.diff(dml.entry_first)
    _measure_moved(dml, actions, sizes)
    first = np.concatenate([[0], np.cumsum(sizes)])
    further = dml.values.size - int(dml.entry_first[-1])
    values = columns_of(VALUE, int(first[-1]) + further)
    _move_values(dml, actions, first, values)
    kind = np.where(actions == _TO_INSERT, _INSERT, dml.kind)
    kind = np.where(actions == _TO_DELETE, _DELETE, kind).astype(np.uint8)
    return dml._replace(kind=kind, entry_first=first, values=values)


@kernel
def _measure_moved(dml: Any, actions: Any, sizes: Any) -> None:
    for row in range(actions.size):
        first, end = dml.entry_first[row], dml.entry_first[row + 1]
        if actions[row] == _TO_INSERT:
            sizes[row] = _merge(dml, first, _first_after(dml, first, end), end, dml.values, -1)
        elif actions[row] == _TO_DELETE:
            sizes[row] = _first_after(dml, first, end) - first


@kernel
def _move_values(dml: Any, actions: Any, first: Any, values: Any) -> None:
    """Fill `values` with the values of all changes, followed by the further parts of values."""
    rows = actions.size
    moved = first[rows] - dml.entry_first[rows]
    for row in range(rows):
        begin, end = dml.entry_first[row], dml.entry_first[row + 1]
        if actions[row] == _TO_INSERT:
            _merge(dml, begin, _first_after(dml, begin, end), end, values, first[row])
        else:
            for k in range(first[row + 1] - first[row]):
                values[first[row] + k] = dml.values[begin + k]
    for entry in range(dml.entry_first[rows], dml.values.size):
        values[entry + moved] = dml.values[entry]
    for entry in range(values.size):
        if values[entry].next >= 0:
            values[entry].next += moved


def _faulty(
    transactions: TransactionColumns, dml: DmlColumns, actions: U8
) -> npt.NDArray[np.bool_]:
    """Return True for each change of a table and transaction in which a change has a fault."""
    at_fault: npt.NDArray[np.bool_] = actions == _FAULT
    if not at_fault.any():
        return at_fault
    tables = int(dml.table.max()) + 1
    part = OwnedChanges(dml, transactions.dml_first).owner * tables + dml.table
    found: npt.NDArray[np.bool_] = np.isin(part, np.unique(part[at_fault]))
    return found


def _faults(
    transactions: TransactionColumns,
    dml: DmlColumns,
    actions: U8,
    tables: Sequence[Table],
    conditions: Conditions,
    why: Mapping[int, str],
) -> tuple[RowFault, ...]:
    """Return one fault for each table and transaction with faults, from its first change with a
    fault.
    """
    changes = np.flatnonzero(actions == _FAULT)
    if not changes.size:
        return ()
    owner = OwnedChanges(dml, transactions.dml_first).owner[changes]
    part = np.stack([owner, dml.table[changes]])
    _, first = np.unique(part, axis=1, return_index=True)
    reasons = {int(dml.table[change]): reason for change, reason in why.items()}
    return tuple(
        _fault(transactions, dml, int(changes[at]), tables, conditions, reasons)
        for at in first.tolist()
    )


def _fault(
    transactions: TransactionColumns,
    dml: DmlColumns,
    change: int,
    tables: Sequence[Table],
    conditions: Conditions,
    reasons: Mapping[int, str],
) -> RowFault:
    number = int(dml.table[change])
    condition = conditions.tables[number]
    is_moved = isinstance(condition, RowCondition) and _is_decided(dml, change, condition)
    code = NOT_WHOLE if is_moved else UNDECIDED
    detail = _unknown_columns(dml, change, tables[number]) if is_moved else reasons[number]
    owner = int(np.searchsorted(transactions.dml_first, change, "right")) - 1
    position = transactions.position(owner)
    xid = int(transactions.xid[owner])
    error = OlrPgError(
        code,
        detail,
        thread=position.thread,
        sequence=int(dml.sequence[change]),
        block=int(dml.block[change]),
        offset=int(dml.offset[change]),
        scn=int(dml.scn[change]),
        xid=format_xid(xid),
        table=tables[number].full_name,
    )
    return RowFault(
        int(transactions.con_id[owner]), xid, int(transactions.begin_scn[owner]),
        int(transactions.commit_scn[owner]), position,
        int(transactions.serial[owner]), int(transactions.session[owner]), number, error,
    )  # fmt: skip


def _is_decided(dml: DmlColumns, change: int, condition: RowCondition) -> bool:
    """Return whether the result of the condition is known both before and after an update."""
    rows = np.array([change])
    return all(
        evaluate(condition, [_column(dml, rows, one, is_after=after) for one in condition.ordinals])
        != Truth.UNDECIDED
        for after in (False, True)
    )


def _unknown_columns(dml: DmlColumns, change: int, table: Table) -> str:
    entries = slice(int(dml.entry_first[change]), int(dml.entry_first[change + 1]))
    known = set(dml.values.column[entries].tolist())
    names = [c.name for at, c in enumerate(table.delivered) if at not in known]
    return (
        "the row begins to fulfil its condition, but the redo does not contain its"
        f" {', '.join(names)}"
    )
