"""The arguments of the walk over change vectors: the tables that it fills, and its counters."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.redo.batch import EntryColumns, EventColumns, PieceColumns
from olr_pg.redo.column_tables import ColumnTable
from olr_pg.redo.lob_objects import NO_LOB_OBJECTS, LobObjects

_FROM_THE_BEGINNING: Final = np.empty(0, np.int64)


class RowScn(IntEnum):
    """Whether the rows of a table contain their SCN (ROWDEPENDENCIES) in loaded blocks."""

    UNKNOWN = 0
    NONE = 1
    PRESENT = 2

    @classmethod
    def of(cls, row_dependencies: bool | None) -> RowScn:
        """Return the value for the dictionary's information, which can be None for unknown."""
        if row_dependencies is None:
            return cls.UNKNOWN
        return cls.PRESENT if row_dependencies else cls.NONE


class Objects(NamedTuple):
    """The subscribed objects, from `dictionary.decoding_plan.RowPlan`.

    Attributes:
        key: ascending ``con_id << 32 | obj#``.
        table: the table of each key.
        cluster_columns: CLUCOLS of each table.
        lob_tables: 1 for each table with delivered LOB columns; empty if no table has any.
        lob_objects, lob_data: LOB segments and indexes by OBJ# and by DATAOBJ#.
        data_key: ascending ``con_id << 32 | dataobj#``, with
        data_table: the table of each.
        since: the SCN from which each object belongs to its table, ascending for the same key;
            table −1 means that it belongs to none from there on. Empty if all belong to their
            tables from the beginning.
        data_since: the same for `data_key`.
        row_scns: `RowScn` of each table; empty: unknown.
    """

    key: npt.NDArray[np.uint64]
    table: npt.NDArray[np.int32]
    cluster_columns: npt.NDArray[np.int32]
    lob_tables: npt.NDArray[np.uint8] = NO_LOB_OBJECTS.is_index
    lob_objects: LobObjects = NO_LOB_OBJECTS
    lob_data: LobObjects = NO_LOB_OBJECTS
    data_key: npt.NDArray[np.uint64] = NO_LOB_OBJECTS.key
    data_table: npt.NDArray[np.int32] = NO_LOB_OBJECTS.table
    since: npt.NDArray[np.int64] = _FROM_THE_BEGINNING
    data_since: npt.NDArray[np.int64] = _FROM_THE_BEGINNING
    row_scns: npt.NDArray[np.uint8] = NO_LOB_OBJECTS.is_index


class Tally(NamedTuple):
    """Counts of row-change vectors in a section of redo (architecture, “Accounting”).

    Attributes:
        vectors: change vectors parsed.
        row_vectors: 11.x vectors among them, and of subscribed tables 10.x (index-organised), 19.1
            (direct path), 19.2 and 19.4 (unlogged blocks, LOB pages too).
        changes: row vectors that became CHANGE or UNDECODED events.
        filtered: row vectors of objects that are not subscribed, with or without undo.
        undoing: row vectors that undo a change (before 5.6/5.11).
        without_row: row vectors of subscribed objects without a row (locks, cluster keys …).
        unpaired: row vectors of subscribed objects with neither undo before nor an undo marker
            after them: changes of an unknown transaction.
        named: 11.x vectors, and 19.1, whose own header names the segment of a subscribed table;
            this does not depend on the undo record or on the fields. Tables of clusters, which
            share their segment, do not count.
        told: those of the named ones that became changes, undo a change, contain no row or are
            unpaired.
    """

    vectors: int = 0
    row_vectors: int = 0
    changes: int = 0
    filtered: int = 0
    undoing: int = 0
    without_row: int = 0
    unpaired: int = 0
    named: int = 0
    told: int = 0

    def plus(self, other: Tally) -> Tally:
        """Return the sum of both."""
        return Tally(*(a + b for a, b in zip(self, other, strict=True)))


TALLY_VECTORS: Final = Tally._fields.index("vectors")
TALLY_ROW_VECTORS: Final = Tally._fields.index("row_vectors")
TALLY_CHANGES: Final = Tally._fields.index("changes")
TALLY_FILTERED: Final = Tally._fields.index("filtered")
TALLY_UNDOING: Final = Tally._fields.index("undoing")
TALLY_WITHOUT_ROW: Final = Tally._fields.index("without_row")
TALLY_UNPAIRED: Final = Tally._fields.index("unpaired")
TALLY_NAMED: Final = Tally._fields.index("named")
TALLY_TOLD: Final = Tally._fields.index("told")
"""Index in `Walk.tally`."""

RECORD_AT_HAND: Final = 0
PENDING: Final = 1
XID: Final = 2
CONTAINER: Final = 3
VECTORS: Final = 4
NAMED: Final = 5
BEGUN: Final = 6
CURRENT_SIZE: Final = 7
"""Indexes in `Walk.current`, and its size."""


class ObjectTables(NamedTuple):
    """`Objects` with one table for each group of its columns, in the form for the kernels."""

    tables: ColumnTable
    cluster_columns: npt.NDArray[np.int32]
    lob_tables: npt.NDArray[np.uint8]
    lob_objects: ColumnTable
    lob_data: ColumnTable
    data: ColumnTable
    row_scns: npt.NDArray[np.uint8]


class Walk(NamedTuple):
    """The tables that the walk over a window's vectors needs, shared by all its kernels.

    Attributes:
        payload: shape (bytes), the window.
        first_block, width: its first block, and the payload bytes of a block.
        header, row_scn, long_session, big: the layout.
        lwns, records: `LwnColumns` and `RecordColumns` as tables; at least the current group.
        vectors: `VectorColumns` as a table; those of the current record.
        events, pieces, entries: to be filled; CAPACITY requires more space.
        scratch: shape (4, MAX_FIELDS + 1); field offsets and lengths of undo and redo.
        state: shape (STATE_SIZE); the counts of rows and more (`row_vectors`).
        place: [thread, sequence].
        current: by RECORD_AT_HAND …: the record, the vector that waits for the next one or −1, the
            transaction and its container, vectors of the record, the subscribed table that the
            header of the vector at hand names or −1, the record's BEGIN event or −1.
        tally: shape (len(Tally)), the counts of `Tally`, by TALLY_VECTORS ….
        passed: operation codes of the vectors that nothing interprets; room for all of the window.
        notes: `passed.NOTE` rows to be filled; CAPACITY requires more space.
    """

    payload: npt.NDArray[np.uint8]
    first_block: int
    width: int
    header: int
    row_scn: int
    long_session: bool
    big: bool
    lwns: ColumnTable
    records: ColumnTable
    vectors: ColumnTable
    objects: ObjectTables
    events: EventColumns
    pieces: PieceColumns
    entries: EntryColumns
    scratch: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    current: npt.NDArray[np.int64]
    tally: npt.NDArray[np.int64]
    passed: npt.NDArray[np.uint16]
    notes: ColumnTable
