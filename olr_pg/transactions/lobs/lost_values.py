"""LOB values that were left out of row changes: which rows they belong to, and their position.

The protocol cannot express a missing value, so it is reported separately. Its position is the
number of delivered changes of the same transaction and table before it; a change that sets nothing
else is not delivered itself.
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
    from olr_pg.transactions.finished_columns import DmlColumns
    from olr_pg.transactions.lobs.value_tables import ValueRoom, Values

I64 = npt.NDArray[np.int64]

CODES: Final = {
    ValueStatus.MISSING: Code.LOB_NOT_WHOLE,
    ValueStatus.MALFORMED: Code.LOB_LOCATOR_MALFORMED,
    ValueStatus.UNDECODED: Code.LOB_CONTENT_UNDECODABLE,
}
"""Why a value is left out, as a code of the error catalogue."""

KINDS: Final = (DmlKind.INSERT, DmlKind.DELETE, DmlKind.UPDATE)
"""The order of `Counts`."""

Counts = tuple[int, int, int]
"""Numbers of inserts, deletes, updates."""


class LostLob(NamedTuple):
    """A value that was left out of a row change.

    Attributes:
        column: its name.
        code: of `CODES`.
        row_id: of the row, 18 characters; empty without one.
        delivered: whether the change is delivered without the value.
        before: numbers of delivered changes of the same transaction and table before it.
        key: names and values, as in the redo, of the key columns that the change contains; for a
            table without a key, of every column that is not a LOB.
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
        """The number of delivered changes of its transaction and table up to and including its
        own.
        """
        return sum(self.before) + self.delivered

    def without(self, dropped: npt.NDArray[np.bool_]) -> LostLob | None:
        """Return the value adjusted for left-out kinds of changes; None if its own change is left
        out.

        Args:
            dropped: shape (3); in the order of `KINDS`.
        """
        if dropped[KINDS.index(self.kind)]:
            return None
        inserts, deletes, updates = np.where(dropped, 0, self.before).tolist()
        return self._replace(before=(inserts, deletes, updates))


class LostOf(NamedTuple):
    """The values that were left out of one transaction's changes of one table.

    Attributes:
        owner: number of the transaction.
        table: index into the row plan.
    """

    owner: int
    table: int
    lobs: tuple[LostLob, ...]


def lost_lobs(
    dml: DmlColumns,
    dml_first: I64,
    stays: npt.NDArray[np.bool_],
    values: Values,
    room: ValueRoom,
    tables: Sequence[Table],
    base: I64 | None = None,
) -> tuple[LostOf, ...]:
    """Return what was left out, by transaction and table.

    Args:
        dml, dml_first: the row changes, with locators.
        stays: shape (changes); which of them are delivered.
        values, room: the LOB values and their results.
        tables: of the row plan.
        base: shape (tables, 3); numbers of changes of the (only) transaction that were delivered
            before these.
    """
    found: dict[tuple[int, int], list[LostLob]] = {}
    places: dict[tuple[int, int], _Places] = {}
    for i in np.flatnonzero(np.isin(room.status, tuple(CODES))).tolist():
        entry, owner = int(values.entry[i]), int(values.owner[i])
        change = int(np.searchsorted(dml.entry_first, entry, "right")) - 1
        table = int(dml.table[change])
        if (owner, table) not in places:
            rows = slice(int(dml_first[owner]), int(dml_first[owner + 1]))
            start = np.zeros(3, np.int64) if base is None else base[table]
            places[owner, table] = _Places(dml, rows, table, stays, start)
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
    """Counts, for one transaction and table, the inserts, deletes and updates that are delivered
    before each change.
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
        """Return the numbers before a change."""
        at = int(np.searchsorted(self._rows, change))
        inserts, deletes, updates = self._counts[at].tolist()
        return inserts, deletes, updates


def _row_id(dml: DmlColumns, change: int) -> str:
    if dml.dataobj[change] == 0:
        return ""
    return format_rowid(*(int(part[change]) for part in (dml.dataobj, dml.bdba, dml.slot)))


def _key(dml: DmlColumns, change: int, table: Table) -> tuple[tuple[str, bytes | None], ...]:
    """Return the values of the row's key after a change, if the change contains them."""
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
    """Return a value with its further parts."""
    if dml.values.length[entry] < 0:
        return None
    parts = []
    while entry >= 0:
        start, size = int(dml.values.offset[entry]), int(dml.values.length[entry])
        parts.append(dml.data[start : start + size].tobytes())
        entry = int(dml.values.next[entry])
    return b"".join(parts)
