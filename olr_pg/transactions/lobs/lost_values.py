"""LOB values that were left out of row changes: finds their rows, and their positions in the
transaction.

The protocol cannot express that a value is missing, so missing values are reported separately. The
position of a value is the number of delivered changes of the same transaction and table before its
change. The change itself is not delivered if it sets no other column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.mapping import LOB_TYPES
from olr_pg.errors import Code
from olr_pg.scalars import format_rowid
from olr_pg.transactions.finished_columns import DmlKind, Image
from olr_pg.transactions.lobs.value_tables import ValueStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.finished_columns import DmlColumns, OwnedChanges
    from olr_pg.transactions.lobs.value_tables import ValueRoom, Values

I64 = npt.NDArray[np.int64]

CODES: Final = {
    ValueStatus.MISSING: Code.LOB_NOT_WHOLE,
    ValueStatus.MALFORMED: Code.LOB_LOCATOR_MALFORMED,
    ValueStatus.UNDECODED: Code.LOB_CONTENT_UNDECODABLE,
}
"""The reason why a value is left out, as a code of the error catalogue, by status."""

KINDS: Final = (DmlKind.INSERT, DmlKind.DELETE, DmlKind.UPDATE)
"""The kinds of changes in the order of `Counts`."""

Counts = tuple[int, int, int]
"""Numbers of inserts, deletes, updates."""


class LostLob(NamedTuple):
    """A value that was left out of a row change.

    Attributes:
        column: name of the column.
        code: the reason, one of `CODES`.
        row_id: ROWID of the row, 18 characters; empty if the row has none.
        delivered: whether the other values of the change are delivered.
        before: numbers of delivered changes, of the same transaction and table, before this change.
        key: names and values (in the redo's format) of those key columns that the change contains.
            If the table has no key: of every column that is not a LOB.
    """

    column: str
    code: int
    row_id: str
    kind: DmlKind
    delivered: bool
    before: Counts
    key: tuple[tuple[str, bytes | None], ...]

    @property
    def place(self) -> int:
        """The number of delivered changes of the same transaction and table, up to and including
        the change of this value.
        """
        return sum(self.before) + self.delivered

    def without(self, dropped: npt.NDArray[np.bool_]) -> LostLob | None:
        """Return the value with counts that do not include the dropped kinds of changes. Return
        None if the change of this value is of a dropped kind.

        Args:
            dropped: shape (3); True for dropped kinds, in the order of `KINDS`.
        """
        if dropped[KINDS.index(self.kind)]:
            return None
        inserts, deletes, updates = np.where(dropped, 0, self.before).tolist()
        return self._replace(before=(inserts, deletes, updates))


class LostOf(NamedTuple):
    """The LOB values that were left out of all changes of one table in one transaction.

    Attributes:
        owner: number of the transaction.
        table: index of the table in the row plan.
    """

    owner: int
    table: int
    lobs: tuple[LostLob, ...]


class Counted(NamedTuple):
    """The tables of the row plan, and how many of their changes were already delivered.

    Attributes:
        rows: shape (tables, 3); numbers of inserts, deletes and updates that were delivered before
            the current part of the transaction. None unless a single transaction is delivered in
            parts.
    """

    tables: Sequence[Table]
    rows: I64 | None = None


def lost_lobs(
    changes: OwnedChanges,
    stays: npt.NDArray[np.bool_],
    values: Values,
    room: ValueRoom,
    counted: Counted,
) -> tuple[LostOf, ...]:
    """Return the LOB values that were left out, by transaction and table.

    Args:
        changes: the row changes, with locators.
        stays: shape (changes); True for changes that are delivered.
        values, room: the LOB values and their results.
        counted: the tables, and how many of their changes were already delivered.
    """
    dml, (tables, base) = changes.dml, counted
    found: dict[tuple[int, int], list[LostLob]] = {}
    places: dict[tuple[int, int], _Places] = {}
    for i in np.flatnonzero(np.isin(room.status, tuple(CODES))).tolist():
        entry, owner = int(values.entry[i]), int(values.owner[i])
        change = int(np.searchsorted(dml.entry_first, entry, "right")) - 1
        table = int(dml.table[change])
        if (owner, table) not in places:
            start = np.zeros(3, np.int64) if base is None else base[table]
            places[owner, table] = _Places(dml, changes.rows(owner), table, stays, start)
        lob = LostLob(
            tables[table].delivered[int(dml.values.column[entry])].name,
            CODES[ValueStatus(int(room.status[i]))],
            _row_id(dml, change),
            DmlKind(int(dml.kind[change])),
            bool(stays[change]),
            places[owner, table].before(change),
            _key(dml, change, tables[table]),
        )
        found.setdefault((owner, table), []).append(lob)
    return tuple(LostOf(*of, tuple(lobs)) for of, lobs in found.items())


class _Places:
    """Counts the delivered inserts, deletes and updates of one transaction and table before each
    change.
    """

    def __init__(
        self,
        dml: DmlColumns,
        rows: slice,
        table: int,
        stays: npt.NDArray[np.bool_],
        start: I64,
    ) -> None:
        mine = (dml.table[rows] == table) & stays[rows]
        self._rows = rows.start + np.flatnonzero(mine)
        kinds = dml.kind[self._rows][:, None] == np.array(KINDS)
        self._counts = np.vstack([start, start + np.cumsum(kinds, axis=0)])

    def before(self, change: int) -> Counts:
        """Return the numbers of delivered changes before a change."""
        at = int(np.searchsorted(self._rows, change))
        inserts, deletes, updates = self._counts[at].tolist()
        return inserts, deletes, updates


def _row_id(dml: DmlColumns, change: int) -> str:
    if dml.dataobj[change] == 0:
        return ""
    return format_rowid(*(int(part[change]) for part in (dml.dataobj, dml.bdba, dml.slot)))


def _key(dml: DmlColumns, change: int, table: Table) -> tuple[tuple[str, bytes | None], ...]:
    """Return the key columns of a change's row, as in `LostLob.key`. A value after the change is
    preferred to a value before it.
    """
    keys = set(table.key)
    wanted = {
        number: column.name
        for number, column in enumerate(table.delivered)
        if (column.intcol in keys if keys else not _is_lob(column.type_code, column.stored_as_lob))
    }
    images: dict[int, dict[int, int]] = {Image.BEFORE: {}, Image.AFTER: {}}
    for entry in range(int(dml.entry_first[change]), int(dml.entry_first[change + 1])):
        images[int(dml.values.image[entry])][int(dml.values.column[entry])] = entry
    places = {**images[Image.BEFORE], **images[Image.AFTER]}
    return tuple(
        (name, _value(dml, places[number])) for number, name in wanted.items() if number in places
    )


def _is_lob(type_code: int, stored_as_lob: bool) -> bool:
    return stored_as_lob or type_code in LOB_TYPES


def _value(dml: DmlColumns, entry: int) -> bytes | None:
    """Return a value, joined from its parts."""
    if dml.values.length[entry] < 0:
        return None
    parts = []
    while entry >= 0:
        start, size = int(dml.values.offset[entry]), int(dml.values.length[entry])
        parts.append(dml.data[start : start + size].tobytes())
        entry = int(dml.values.next[entry])
    return b"".join(parts)
