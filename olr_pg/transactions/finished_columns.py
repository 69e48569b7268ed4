"""Columns of arrays: finished transactions, which are the input of the encoder of protocol
elements; and row changes (`ChangeColumns`), the form that rendering and applying read.

In row changes, the column of a value is given as a number. This number is the number of the
described column in the column directory of the stream (`wire.column_directory`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from olr_pg.redo.column_tables import ColumnTable, row_type
from olr_pg.redo.commit_position import CommitPosition


class DmlKind(IntEnum):
    """The kind of a row change. The numbers are the codes of elements in the protocol."""

    INSERT = 4
    DELETE = 5
    UPDATE = 6


class Image(IntEnum):
    """Whether a value is of the row before or after the change."""

    BEFORE = 0
    AFTER = 1


class TransactionColumns(NamedTuple):
    """Finished transactions with at least one change, one row each, in commit order.

    Attributes:
        con_id: container of the transaction's changes.
        xid: packed as `scalars.pack_xid`.
        begin_scn: SCN of the record with the transaction's begin.
        begin_time, commit_time: redo time of the records with the begin and the commit (32 bits).
        commit_scn: SCN of the record with the 5.4 vector; for a child of parallel DML, the commit
            SCN of the parent.
        serial, session: serial and session number from 5.19 or 5.20; 0 if there was none.
        commit_delay, commit_thread, commit_sequence, commit_block, commit_offset: as in
            `redo.commit_position`.
        dml_first: shape (n + 1); the index in `DmlColumns` of each transaction's first row change.
    """

    con_id: npt.NDArray[np.uint32]
    xid: npt.NDArray[np.uint64]
    begin_scn: npt.NDArray[np.uint64]
    begin_time: npt.NDArray[np.uint32]
    commit_scn: npt.NDArray[np.uint64]
    commit_time: npt.NDArray[np.uint32]
    serial: npt.NDArray[np.uint16]
    session: npt.NDArray[np.uint32]
    commit_delay: npt.NDArray[np.uint32]
    commit_thread: npt.NDArray[np.uint16]
    commit_sequence: npt.NDArray[np.uint32]
    commit_block: npt.NDArray[np.uint32]
    commit_offset: npt.NDArray[np.uint16]
    dml_first: npt.NDArray[np.int64]

    def position(self, row: int) -> CommitPosition:
        """Return the commit position of one transaction."""
        columns = (getattr(self, f"commit_{name}") for name in CommitPosition._fields)
        return CommitPosition(*(int(column[row]) for column in columns))


VALUE: Final = row_type(
    [("offset", "i8"), ("length", "i8"), ("next", "i4"), ("column", "u2"), ("image", "u1")],
)
"""A value of a row change, or a further part of one.

The value is ``data[offset : offset + length]``, or NULL if the length is −1. If a value is divided
among row pieces, it continues in row `next`, which is a further part; `next` is −1 if the value
ends here. `column` is the ordinal among the table's delivered columns, `image` is an `Image`. Both
have no meaning in further parts.
"""


class DmlColumns(NamedTuple):
    """Row changes, one per row, and their column values.

    The values of a change are first the values of the image before the change, then the values of
    the image after it. Each image is in ascending order of the delivered columns. Further parts of
    values follow the values of the last change.

    BEFORE contains each column whose old value is known (for the WHERE of an UPDATE). In an UPDATE,
    AFTER contains only the columns that the statement sets.

    Attributes:
        kind: `DmlKind`.
        table: index of the table in the row plan.
        scn, time: SCN and redo time of the change's first record.
        sequence, block, offset: RBA of the change's first record.
        dataobj, bdba, slot: the parts of the ROWID; dataobj is 0 if the row has none.
        stored_first: the index, in `stored`, of the first value of an inserted row. Its values are
            there exactly as its row piece stores them. −1 if the values are in `values`, as for all
            other changes.
        stored_count: the number of these values. The stored values belong to the first delivered
            columns of the table; all other columns are NULL.
        entry_first: shape (n + 1); the index of each change's first value.
        values: `VALUE` rows.
        stored: `redo.batch.ENTRY` rows, to which `stored_first` refers.
        data: the bytes of `values` and `stored`.
    """

    kind: npt.NDArray[np.uint8]
    table: npt.NDArray[np.int32]
    scn: npt.NDArray[np.uint64]
    time: npt.NDArray[np.uint32]
    sequence: npt.NDArray[np.uint32]
    block: npt.NDArray[np.uint32]
    offset: npt.NDArray[np.uint16]
    dataobj: npt.NDArray[np.uint32]
    bdba: npt.NDArray[np.uint32]
    slot: npt.NDArray[np.uint16]
    stored_first: npt.NDArray[np.int64]
    stored_count: npt.NDArray[np.int32]
    entry_first: npt.NDArray[np.int64]
    values: ColumnTable
    stored: ColumnTable
    data: npt.NDArray[np.uint8]

    @property
    def entries(self) -> ColumnTable:
        """The values of all changes, without further parts of values."""
        return cast("ColumnTable", self.values[: int(self.entry_first[-1])])

    @property
    def change_of(self) -> npt.NDArray[np.int64]:
        """The change of each of the `entries`."""
        return np.repeat(np.arange(self.kind.size), np.diff(self.entry_first))


class OwnedChanges(NamedTuple):
    """Row changes of several transactions.

    Attributes:
        dml: the row changes, by transaction.
        first: shape (transactions + 1); the index of each transaction's first row change.
    """

    dml: DmlColumns
    first: npt.NDArray[np.int64]

    @property
    def owner(self) -> npt.NDArray[np.int64]:
        """The transaction of each row change."""
        return np.repeat(np.arange(self.first.size - 1), np.diff(self.first))

    def rows(self, owner: int) -> slice:
        """Return where the row changes of one transaction are."""
        return slice(int(self.first[owner]), int(self.first[owner + 1]))


NULL: Final = -1
"""Length of a NULL value."""

TOO_LARGE: Final = -4
"""Length of a value that was received in chunks and dropped because it is too large."""


class ChangeColumns(NamedTuple):
    """Elements of the protocol in delivery order (begin, row changes, commit), with the values of
    the row changes.

    Attributes:
        data: the bytes of values and ROWIDs.
        kind: shape (n); the element's code in the protocol. Chunks are not counted as elements
            here: they are part of the values.
        scn, commit_scn, xid, time: shape (n); from the head of the element.
        table: shape (n); number of the table in the directory, −1 for begin and commit.
        row_id_offset, row_id_length: shape (n); position of the ROWID in `data`; the length is 0 if
            there is none.
        entry_first: shape (n + 1); the index of each change's first value.
        entry_after: shape (n); the index of the first value of the image after the change. The
            values of the image before the change precede it.
        value_column: shape (m); number of the described column in the directory.
        value_offset, value_length: shape (m); position of the value in `data`. If the length is
            `NULL` or `TOO_LARGE`, there are no bytes.
    """

    data: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    scn: npt.NDArray[np.uint64]
    commit_scn: npt.NDArray[np.uint64]
    xid: npt.NDArray[np.uint64]
    time: npt.NDArray[np.uint32]
    table: npt.NDArray[np.int32]
    row_id_offset: npt.NDArray[np.int64]
    row_id_length: npt.NDArray[np.uint8]
    entry_first: npt.NDArray[np.int64]
    entry_after: npt.NDArray[np.int64]
    value_column: npt.NDArray[np.int32]
    value_offset: npt.NDArray[np.int64]
    value_length: npt.NDArray[np.int64]

    def row_id(self, element: int) -> str | None:
        """Return the ROWID of one element, None if it has none."""
        start = int(self.row_id_offset[element])
        raw = self.data[start : start + int(self.row_id_length[element])].tobytes()
        return raw.decode("ascii", "replace") or None


def room_for_changes(data: npt.NDArray[np.uint8], elements: int, values: int) -> ChangeColumns:
    """Return uninitialised space for this many elements and values."""
    return ChangeColumns(
        data=data,
        kind=np.empty(elements, np.uint8),
        scn=np.empty(elements, np.uint64),
        commit_scn=np.empty(elements, np.uint64),
        xid=np.empty(elements, np.uint64),
        time=np.empty(elements, np.uint32),
        table=np.empty(elements, np.int32),
        row_id_offset=np.empty(elements, np.int64),
        row_id_length=np.empty(elements, np.uint8),
        entry_first=np.zeros(elements + 1, np.int64),
        entry_after=np.empty(elements, np.int64),
        value_column=np.empty(values, np.int32),
        value_offset=np.empty(values, np.int64),
        value_length=np.empty(values, np.int64),
    )


def filled_changes(room: ChangeColumns, elements: int, values: int) -> ChangeColumns:
    """Return copies of the filled part of each array, because the reserved space can be much
    larger.
    """
    sizes = [values if name.startswith("value_") else elements for name in room._fields]
    sizes[room._fields.index("entry_first")] += 1
    arrays: list[npt.NDArray[Any]] = list(room)
    filled = [array[:size].copy() for array, size in zip(arrays[1:], sizes[1:], strict=True)]
    return ChangeColumns(room.data, *filled)
