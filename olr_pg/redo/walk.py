"""The arguments of the kernels that walk over change vectors: the subscribed objects, the tables
that they fill, and their counters.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.redo.batch import EntryColumns, EventColumns, PieceColumns
from olr_pg.redo.column_tables import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Iterable


class LobObjects(NamedTuple):
    """Segments and indexes of subscribed LOB columns.

    Attributes:
        key: ``con_id << 32 | number``, in ascending order.
        is_index: 1 for a LOB index, 0 for a LOB segment.
        table: index, in the row plan, of the table with the LOB column.
    """

    key: npt.NDArray[np.uint64]
    is_index: npt.NDArray[np.uint8]
    table: npt.NDArray[np.int32]


def lob_objects(rows: Iterable[tuple[int, bool, int]]) -> LobObjects:
    """Build the table from rows of (key, is_index, table). If several rows have the same key, the
    first is used.
    """
    found: dict[int, tuple[bool, int]] = {}
    for key, is_index, table in rows:
        found.setdefault(key, (is_index, table))
    keys = sorted(found)
    return LobObjects(
        np.array(keys, np.uint64),
        np.array([found[key][0] for key in keys], np.uint8),
        np.array([found[key][1] for key in keys], np.int32),
    )


NO_LOB_OBJECTS: Final = lob_objects([])


_FROM_THE_BEGINNING: Final = np.empty(0, np.int64)


class RowScn(IntEnum):
    """Whether each row of a table contains an SCN (ROWDEPENDENCIES) in blocks of direct loads."""

    UNKNOWN = 0
    NONE = 1
    PRESENT = 2

    @classmethod
    def of(cls, row_dependencies: bool | None) -> RowScn:
        """Return the value for a table, from the dictionary; `row_dependencies` is None if it is
        unknown.
        """
        if row_dependencies is None:
            return cls.UNKNOWN
        return cls.PRESENT if row_dependencies else cls.NONE


class Objects(NamedTuple):
    """The subscribed objects, from `dictionary.decoding_plan.RowPlan`.

    Attributes:
        key: ``con_id << 32 | obj#``, in ascending order.
        table: the table of each key.
        cluster_columns: CLUCOLS of each table, the number of its cluster key columns; 0 outside a
            cluster.
        lob_tables: 1 for each table with delivered LOB columns; empty if no table has any.
        lob_objects, lob_data: LOB segments and LOB indexes, by OBJ# and by DATAOBJ#.
        data_key: ``con_id << 32 | dataobj#``, in ascending order.
        data_table: the table of each `data_key`.
        since: for each `key`, the SCN from which the object belongs to its table; ascending for the
            same key. Table −1 means that from this SCN on it belongs to no table. Empty if all
            objects always belong to their tables.
        data_since: as `since`, for `data_key`.
        row_scns: `RowScn` of each table; empty if it is unknown for all.
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
        vectors: number of change vectors.
        row_vectors: number of 11.x vectors, plus those vectors of subscribed tables that are 10.x
            (index-organised tables), 19.1 (direct path), or 19.2 and 19.4 (unlogged blocks, also of
            LOBs).
        changes: number of row vectors that became CHANGE, SPLIT_CHANGE or UNDECODED events.
        filtered: row vectors of objects that are not subscribed, with or without undo.
        undoing: row vectors that undo a change, because a 5.6 or 5.11 follows them.
        without_row: row vectors of subscribed objects that contain no row (locks, cluster keys …).
        unpaired: row vectors of subscribed objects with neither an undo record before them nor a
            5.6 or 5.11 after them: changes of an unknown transaction.
        named: 11.x vectors and 19.1 whose own header names the segment of a subscribed table,
            whatever the undo record and the fields contain. Clustered tables are not counted,
            because they share a segment.
        told: the vectors counted in `named` that are also counted in `changes`, `undoing`,
            `without_row` or `unpaired`. If `told` is less than `named`, changes were lost.
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
"""Indexes of `Walk.tally`."""

RECORD_AT_HAND: Final = 0
PENDING: Final = 1
XID: Final = 2
CONTAINER: Final = 3
VECTORS: Final = 4
NAMED: Final = 5
BEGUN: Final = 6
CURRENT_SIZE: Final = 7
"""Indexes of `Walk.current`, and the size of this array."""


class ObjectTables(NamedTuple):
    """`Objects` in the form for kernels: columns that belong together are one table."""

    tables: ColumnTable
    cluster_columns: npt.NDArray[np.int32]
    lob_tables: npt.NDArray[np.uint8]
    lob_objects: ColumnTable
    lob_data: ColumnTable
    data: ColumnTable
    row_scns: npt.NDArray[np.uint8]


class Walk(NamedTuple):
    """The tables and counters that all kernels share when they walk over the vectors of a window.

    Attributes:
        payload: shape (bytes); the payload of the window.
        first_block, width: the window's first block, and the payload bytes of a block.
        header, row_scn, long_session, big: the layout of the log (`RedoLayout`).
        lwns, records: `LwnColumns` and `RecordColumns` as tables; they contain at least the current
            group.
        vectors: `VectorColumns` as a table, with the vectors of the current record.
        events, pieces, entries: the tables to fill. If the status is CAPACITY, they are too short.
        scratch: shape (4, MAX_FIELDS + 1); offsets and lengths of the fields of an undo record,
            then of a row vector.
        state: shape (STATE_SIZE); numbers of used rows in the tables, and flags (`row_vectors`).
        place: array with the redo thread and the sequence of the log.
        current: the current state, by the indexes RECORD_AT_HAND and following: the record; the
            pending vector, which may form a pair with the next one, or −1; the transaction and its
            container; the number of vectors in the record; the subscribed table that the header of
            the pending row vector names, or −1; the BEGIN event of the record, or −1.
        tally: shape (len(Tally)), the counts of `Tally`, by the indexes TALLY_VECTORS and
            following.
        passed: operation codes of the vectors that are not interpreted; there is space for all
            vectors of the window.
        notes: the table of `uninterpreted.NOTE` rows to fill. If the status is CAPACITY, it is too
            short.
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
