"""Reads packed transactions (`wire.packed_changes`) as columns. One kernel reads all elements; no
Python code runs per change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.columns import read_only
from olr_pg.datatypes.outcomes import byte_at
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.transactions.change_columns import ChangeColumns, room_for_changes
from olr_pg.wire.column_directory import ColumnDirectory
from olr_pg.wire.element_plan import described_column
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.packed_changes import (
    LARGE,
    NULL,
    PACKED_BEGIN,
    PACKED_CHANGE,
    PACKED_COMMIT,
    PACKED_VALUE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.wire.frames import Buffer

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_BEGIN: Final = int(ElementCode.BEGIN)
_COMMIT: Final = int(ElementCode.COMMIT)

_COMMIT_SCN: Final = 0
_XID: Final = 1
_COMMIT_TIME: Final = 2
_POSITION: Final = 3
_SESSION: Final = 4
_STATE_SIZE: Final = 5
"""The size of the state of an open transaction: the values from its Begin, and the number of row
changes read so far.
"""


class ReadChanges(NamedTuple):
    """A piece of the elements that were read. Each array has one item per element of `changes`.

    Attributes:
        session: the Oracle session of the element's transaction, ``serial << 32 | session``.
        commit_time: the commit time of its transaction, in redo's form.
        transaction: the number of its transaction among those in this piece, from 0.
        position: for a row change, its number among those of its transaction, from 0.
    """

    changes: ChangeColumns
    session: I64
    commit_time: U32
    transaction: I32
    position: I32


class PlanNumbers(NamedTuple):
    """Maps the subscription's numbers of tables and columns to the directory's numbers.

    Attributes:
        table: shape (tables); the directory's number of each table.
        column_first: shape (tables + 1); the index in `column` of each table's first column.
        column: the directory's number of each delivered column.
    """

    table: I32
    column_first: I64
    column: I32


@inlined
def _get2(data: U8, at: int) -> int:
    return byte_at(data, at) | byte_at(data, at + 1) << 8


@inlined
def _get4(data: U8, at: int) -> int:
    return _get2(data, at) | _get2(data, at + 2) << 16


@inlined
def _get8(data: U8, at: int) -> np.uint64:
    place, word = np.uint64(at), np.uint64(0)
    for i in range(8):
        word |= np.uint64(data[place + np.uint64(i)]) << np.uint64(8 * i)
    return word


@kernel
def read_kernel(
    data: U8, at: int, limit: int, state: U64, numbers: PlanNumbers, room: ChangeColumns,
    session: I64, commit_time: U32, transaction: I32, position: I32,
) -> tuple[int, int, int]:  # fmt: skip
    """Read elements from `at` on, until the arrays are full or `limit` is reached.

    Args:
        limit: the position in `data` at which to stop. If a Commit was read, the result ends after
            the last one; otherwise it can end within a transaction.
        state: the state of the transaction that is open at `at`; updated.
        room: all arrays except `data` are filled.
        session, commit_time, transaction, position: the arrays of `ReadChanges`, which are filled.

    Returns:
        (end, number of elements, number of values); 0 elements if the arrays are too small for the
        first element.
    """
    n = m = number = 0
    last_end, last_n, last_m = at, 0, 0
    while at < data.size and (at < limit or n == 0):
        if n >= room.kind.size:
            break
        kind = byte_at(data, at)
        room.kind[n], room.table[n] = kind, -1
        room.row_id_offset[n], room.row_id_length[n] = 0, 0
        if kind == _BEGIN:
            state[_COMMIT_SCN], state[_XID] = _get8(data, at + 9), _get8(data, at + 17)
            state[_COMMIT_TIME] = np.uint64(_get4(data, at + 29))
            state[_POSITION] = np.uint64(0)
            room.scn[n], room.time[n] = _get8(data, at + 1), _get4(data, at + 25)
            state[_SESSION] = np.uint64(_get2(data, at + 33) << 32 | _get4(data, at + 35))
            at += PACKED_BEGIN
        elif kind == _COMMIT:
            room.scn[n], room.time[n] = state[_COMMIT_SCN], _get4(data, at + 1)
            at += PACKED_COMMIT
        else:
            before, after = _get2(data, at + 2), _get2(data, at + 4)
            if m + before + after > room.value_column.size:
                break
            room.scn[n], room.time[n] = _get8(data, at + 10), _get4(data, at + 18)
            table = _get4(data, at + 6)
            room.table[n] = numbers.table[table]
            room.row_id_offset[n], room.row_id_length[n] = at + PACKED_CHANGE, data[at + 1]
            room.entry_after[n] = m + before
            first = numbers.column_first[table]
            at += PACKED_CHANGE + byte_at(data, at + 1)
            for entry in range(np.uint64(m), np.uint64(m + before + after)):
                size = _get4(data, at + 2)
                room.value_column[entry] = numbers.column[np.uint64(first + _get2(data, at))]
                at += PACKED_VALUE
                if size == NULL:
                    room.value_offset[entry], room.value_length[entry] = 0, -1
                    continue
                if size == LARGE:
                    size = int(np.int64(_get8(data, at)))
                    at += 8
                room.value_offset[entry], room.value_length[entry] = at, size
                at += size
            m += before + after
        room.commit_scn[n], room.xid[n] = state[_COMMIT_SCN], state[_XID]
        commit_time[n], transaction[n] = state[_COMMIT_TIME], number
        position[n], session[n] = np.int64(state[_POSITION]), np.int64(state[_SESSION])
        if kind == _COMMIT:
            number += 1
        elif kind != _BEGIN:
            state[_POSITION] += np.uint64(1)
        n += 1
        room.entry_first[n] = m
        if kind == _COMMIT:
            last_end, last_n, last_m = at, n, m
    if at < data.size and last_n > 0:
        return last_end, last_n, last_m
    return at, n, m


class PackedReader:
    """Reads the packed transactions of one subscription. Tables may be added to the subscription.

    Attributes:
        directory: the tables of the subscription, and the delivered columns of all their versions.
    """

    def __init__(self) -> None:
        self.directory = ColumnDirectory()
        none = np.empty(0, np.int32)
        self._numbers = PlanNumbers(none, np.zeros(1, np.int64), none)
        self._room = room_for_changes(np.empty(0, np.uint8), 0, 0)

    def know(self, tables: Sequence[Table]) -> None:
        """Add new tables of the subscription. `tables` must begin with the tables that are already
        known.
        """
        directory, (number, first, columns) = self.directory, self._numbers
        for table in tables[len(number) :]:
            new = directory.table(table.owner, table.name)
            described = map(described_column, table.delivered)
            number = np.append(number, np.int32(new))
            numbers = [directory.column(new, column) for column in described]
            columns = np.append(columns, np.array(numbers, np.int32))
            first = np.append(first, len(columns))
        self._numbers = PlanNumbers(number, first, columns)

    def read(self, packed: Buffer, piece_bytes: int) -> Iterator[ReadChanges]:
        """Yield the elements of complete transactions in pieces. A piece is valid only until the
        next one is yielded.

        A transaction is split only if it is larger than a piece.
        """
        data = read_only(np.frombuffer(packed, np.uint8))
        state = np.zeros(_STATE_SIZE, np.uint64)
        at = 0
        if not self._room.kind.size:
            self._new_room(piece_bytes // 32, piece_bytes // 8)
        while at < data.size:
            room = self._room
            before, position = state.copy(), at
            at, elements, entries = read_kernel(
                data, at, at + piece_bytes, state, self._numbers, room, *self._further
            )
            if elements == 0:
                state, at = before, position
                self._new_room(2 * room.kind.size + 64, 2 * room.value_column.size + 64)
                continue
            yield ReadChanges(
                _first(room, data, elements, entries),
                *(array[:elements] for array in self._further),
            )

    def _new_room(self, elements: int, entries: int) -> None:
        self._room = room_for_changes(np.empty(0, np.uint8), elements, entries)
        self._further: tuple[Any, ...] = (
            np.empty(elements, np.int64),
            np.empty(elements, np.uint32),
            *np.empty((2, elements), np.int32),
        )


def _first(room: ChangeColumns, data: U8, elements: int, values: int) -> ChangeColumns:
    """Return the filled part of a room, sharing its memory."""
    room = ChangeColumns(
        *(
            array[: values if name.startswith("value_") else elements + (name == "entry_first")]
            for name, array in room._asdict().items()
        )
    )
    return room._replace(data=data)
