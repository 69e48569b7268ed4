"""Reading of packed transactions (`wire.packed_changes`) as columns. One kernel reads them; no
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
"""The size of the state of an open transaction: the values from its Begin, and how many row changes
came so far.
"""


class ReadChanges(NamedTuple):
    """A piece of the elements that were read. Each array has one item per element.

    Attributes:
        session: of its transaction, ``serial << 32 | session``.
        commit_time: when its transaction committed, as redo has it.
        transaction: number of its transaction among those that are met in `changes`.
        position: of a row change among those of its transaction, from 0.
    """

    changes: ChangeColumns
    session: I64
    commit_time: U32
    transaction: I32
    position: I32


class PlanNumbers(NamedTuple):
    """The directory's numbers of the tables and columns that the subscription numbers.

    Attributes:
        table: shape (tables).
        column_first: shape (tables + 1); where each table's columns begin.
        column: of the delivered columns by their running number.
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
    """Read elements from `at` on, until the rooms are full or `limit` is passed.

    Args:
        limit: limit of the end, which is after a Commit if there is one before it.
        state: of the transaction that is open at `at`; moved on.
        room: filled, but for its data.
        session, commit_time, transaction, position: of `ReadChanges`, filled.

    Returns:
        (end, elements, values); no elements where a room has none for the first one.
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
        directory: its tables, and the delivered columns of all their versions.
    """

    def __init__(self) -> None:
        self.directory = ColumnDirectory()
        none = np.empty(0, np.int32)
        self._numbers = PlanNumbers(none, np.zeros(1, np.int64), none)
        self._room = room_for_changes(np.empty(0, np.uint8), 0, 0)

    def know(self, tables: Sequence[Table]) -> None:
        """Take the tables of the subscription, both those known already and new ones."""
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
        """Yield the elements of whole transactions in pieces. Each piece is valid until the next
        one is asked for.

        A transaction is not split over pieces unless it is larger than a piece.
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
