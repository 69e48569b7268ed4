"""Finished transactions as columns: the input of the encoder of protocol elements."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, cast

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
