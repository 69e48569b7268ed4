"""Fills in the defaults of columns that were added to a table later, for rows that do not store
them.

After ALTER TABLE … ADD with a default, Oracle does not write the default to the existing rows. If a
column that was added with a default is NULL in an image, its value is the default. Rows in which
the column was really set to NULL are an exception: Oracle marks them in a hidden column of the
table, the guard column, which has one bit per added column.

An UPDATE logs the columns that it sets, and the guard column only if one of its bits changes. So if
an UPDATE sets a column to NULL and the guard column is not logged, the bit was already set, and the
NULL is real. If a column is only in the supplemental data, without the guard column, its value is
unknown, and the column is left out of the image.

Facts: values-and-lobs §14.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from olr_pg.dictionary.decoding_plan import RowPlan, UnstoredColumn
from olr_pg.transactions.finished_columns import DmlColumns, DmlKind, Image, OwnedChanges
from olr_pg.transactions.left_out import keep_entries
from olr_pg.transactions.waiting_storage import Allocate, joined

I64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def fill_defaults(
    changes: OwnedChanges, plan: RowPlan, allocate: Allocate
) -> tuple[OwnedChanges, int]:
    """Return (changes, number of updates left out). The changes contain the defaults and no guard
    columns.

    Args:
        changes: the row changes, as `rows.assemble` returns them.
        allocate: returns a buffer for a large number of bytes.
    """
    dml, defaults = changes.dml, plan.defaults
    if defaults.missing.size == 0 or dml.kind.size == 0:
        return changes, 0
    change = dml.change_of
    column = plan.column_first[dml.table[change]] + dml.entries.column
    missing = defaults.missing[column]
    is_guard = missing == UnstoredColumn.GUARD
    asked = ((missing == UnstoredColumn.DEFAULT) | (missing == UnstoredColumn.UNKNOWN)) & (
        dml.entries.length < 0
    )
    rows = np.flatnonzero(asked)
    means, unclear = _meaning(dml, rows, change, column, np.flatnonzero(is_guard), plan)
    keep = ~is_guard
    keep[rows[unclear]] = False
    keep[rows[means & (missing[rows] == UnstoredColumn.UNKNOWN)]] = False
    filled = rows[means & (missing[rows] == UnstoredColumn.DEFAULT)]
    if filled.size:
        dml = _filled(dml, filled, column[filled], plan, allocate)
    return keep_entries(OwnedChanges(dml, changes.first), keep)


def _filled(
    dml: DmlColumns, entries: I64, columns: I64, plan: RowPlan, allocate: Allocate
) -> DmlColumns:
    values = dml.values.copy()
    values.offset[entries] = dml.data.size + plan.defaults.offset[columns]
    values.length[entries] = plan.defaults.length[columns]
    data = joined([dml.data, plan.defaults.data], allocate)
    return dml._replace(values=values, data=data)


def _meaning(
    dml: DmlColumns, rows: I64, change: I64, column: I64, guards: I64, plan: RowPlan
) -> tuple[Flags, Flags]:
    """Return for each of the entries `rows`, which are NULL, whether the value is the default, and
    whether the value is unknown.
    """
    guard_id = plan.defaults.guard_id[column[rows]]
    is_guarded = guard_id >= 0
    guard = _entry_of(2 * change + dml.entries.image, guards, rows)
    is_logged = guard >= 0
    stored = np.zeros(rows.size, np.bool_)
    known = is_guarded & is_logged
    stored[known] = _bits(dml, guard[known], guard_id[known])
    means = ~is_guarded | (is_logged & ~stored)
    # The image of a whole row always contains the guard column. The image of an UPDATE contains it
    # only if the guard column was changed.
    whole = dml.kind[change[rows]] != DmlKind.UPDATE
    absent = is_guarded & ~is_logged & ~whole
    after = np.flatnonzero(dml.entries.image == Image.AFTER)
    width = int(dml.entries.column.max(initial=0)) + 1
    is_set = _entry_of(change * width + dml.entries.column, after, rows) >= 0
    return means, absent & ~is_set


def _entry_of(keys: I64, among: I64, rows: I64) -> I64:
    """For each of the entries `rows`, return the entry of `among` with the same key, −1 if there is
    none.
    """
    if among.size == 0:
        return np.full(rows.size, -1, np.int64)
    order = among[np.argsort(keys[among], kind="stable")]
    at = np.minimum(np.searchsorted(keys[order], keys[rows]), order.size - 1)
    return np.where(keys[order[at]] == keys[rows], order[at], -1)


def _bits(dml: DmlColumns, guard: I64, guard_id: npt.NDArray[np.int32]) -> Flags:
    """Return whether the bits are set in the values of guard columns. A value can continue in
    further parts.
    """
    part, byte = guard.copy(), (guard_id >> 3).astype(np.int64)
    while True:
        length = np.maximum(dml.values.length[part], 0)
        goes_on = (byte >= length) & (dml.values.next[part] >= 0)
        if not goes_on.any():
            break
        byte[goes_on] -= length[goes_on]
        part[goes_on] = dml.values.next[part[goes_on]]
    within = byte < length
    found = np.zeros(guard.size, np.bool_)
    at = dml.values.offset[part[within]] + byte[within]
    found[within] = dml.data[at] >> (guard_id[within] & 7) & 1 != 0
    return found
