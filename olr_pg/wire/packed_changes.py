"""The packed form of finished transactions, which the decoder passes to the code that renders them.

The bytes of a transaction are contiguous, as in the form of framed messages (`wire.encoder`). So
the merger can order, join and spill transactions without reading their content. Tables and columns
have their numbers in the subscription instead of their names. `PackedReader` converts the bytes to
`ChangeColumns`: one kernel reads all elements, and no Python code runs per change. Integers are
little-endian:

    Begin    kind 1 | SCN 8 | commit SCN 8 | XID 8 | time 4 | commit time 4 | serial 2 | session 4
    change   kind 1 | size of ROWID 1 | values before 2 | values after 2 | table 4 | SCN 8 | time 4
             | ROWID | value | value | …
    value    column of the table 2 | size 4 | if size is `LARGE`: real size 8 | bytes
    Commit   kind 1 | time 4

The size of a NULL value is `NULL`. If a value consists of several parts in the redo, the parts are
joined.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.columns import read_only
from olr_pg.datatypes.outcomes import byte_at
from olr_pg.kernels.bytes import copy_forward, store
from olr_pg.kernels.compile import inlined, inlined_for, kernel
from olr_pg.transactions.finished_columns import ChangeColumns, DmlKind, Image, room_for_changes
from olr_pg.wire.column_directory import ColumnDirectory
from olr_pg.wire.element_plan import ROWID_BYTES, described_column
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.encoder import (
    BAD_COLUMN,
    BAD_IMAGE,
    BAD_KIND,
    BAD_TABLE,
    BAD_VALUE,
    BEFORE_ROOM,
    DONE,
    NUMBER,
    ROW,
    ROWID,
    TOO_MANY,
    EncodedTransactions,
    Form,
    filled,
    measure_value,
    put_rowid,
    stopped,
    write_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.finished_columns import DmlColumns, TransactionColumns
    from olr_pg.wire.element_plan import ElementPlan
    from olr_pg.wire.frames import Buffer
    from olr_pg.wire.output import MessageOutput

PACKED_BEGIN: Final = 39
PACKED_CHANGE: Final = 22
PACKED_VALUE: Final = 6
PACKED_COMMIT: Final = 5
"""The sizes in bytes of a Begin, of a change without its ROWID and values, of a value without its
bytes, and of a Commit.
"""

NULL: Final = 0xFFFFFFFF
LARGE: Final = 0xFFFFFFFE

_COUNT_MAX: Final = 0xFFFF
_BEGIN: Final = int(ElementCode.BEGIN)
_COMMIT: Final = int(ElementCode.COMMIT)
_INSERT: Final = int(DmlKind.INSERT)
_DELETE: Final = int(DmlKind.DELETE)
_UPDATE: Final = int(DmlKind.UPDATE)
_BEFORE: Final = int(Image.BEFORE)

_OUT: Final = numba.types.Array(numba.uint8, 1, "C")
_SIGNED: Final = numba.void(_OUT, numba.int64, numba.int64)
_UNSIGNED: Final = numba.void(_OUT, numba.int64, numba.uint64)


@inlined_for(_SIGNED)
def _put2(out: Any, at: int, value: Any) -> None:
    store(out, at, np.uint16(value), False)


@inlined_for(_SIGNED)
def _put4(out: Any, at: int, value: Any) -> None:
    store(out, at, np.uint32(value), False)


@inlined_for(_UNSIGNED)
def _put8(out: Any, at: int, value: Any) -> None:
    store(out, at, np.uint64(value), False)


def write_packed(
    transactions: TransactionColumns, dml: DmlColumns, plan: ElementPlan, output: MessageOutput
) -> EncodedTransactions:
    """Write finished transactions in packed form into an output.

    Raises:
        OlrPgError: 4014 the columns are inconsistent, 4006 an image has more than 65,535 columns;
            both errors contain the row change's position.
    """
    fill = partial(pack_room, transactions, dml, plan.table_column, plan.column_chunked)
    return filled(fill, transactions.xid.size, dml, output)._replace(form=Form.PACKED)


@kernel
def pack_room(
    transactions: Any, dml: Any, table_column: Any, column_chunked: Any, place: Any, first: Any,
    elements: Any, out: Any,
) -> int:  # fmt: skip
    """Write transactions from `place` on, until `out` is full. Returns a status: `DONE`, `FULL`, or
    the reason why a change is refused.

    Args:
        table_column, column_chunked: the arrays of the `ElementPlan`.
        place, first: as for `encoder.fill_room`.
        elements: filled with the number of elements of each transaction.
    """
    at = 0
    place[ROWID] = 0
    while place[NUMBER] < transactions.xid.size:
        number = place[NUMBER]
        rows_end = transactions.dml_first[number + 1]
        if place[ROW] == 0:
            if at + PACKED_BEGIN > out.size:
                return stopped(place, at, PACKED_BEGIN)
            first[number] = place[BEFORE_ROOM] + at
            elements[number] = 2 + rows_end - transactions.dml_first[number]
            at = _put_begin(transactions, number, out, at)
            place[ROW] = transactions.dml_first[number] + 1
        for row in range(place[ROW] - 1, rows_end):
            status, end = _put_change(dml, row, table_column, column_chunked, place, out, at)
            if status != DONE or end > out.size:
                place[ROW] = row if status != DONE else row + 1
                place[ROWID] = 0
                return status if status != DONE else stopped(place, at, end - at)
            at = end
        place[ROW] = rows_end + 1
        if at + PACKED_COMMIT > out.size:
            return stopped(place, at, PACKED_COMMIT)
        out[at] = _COMMIT
        _put4(out, at + 1, transactions.commit_time[number])
        at += PACKED_COMMIT
        place[NUMBER] = number + 1
        place[ROW] = 0
    first[place[NUMBER]] = place[BEFORE_ROOM] + at
    stopped(place, at, 0)
    return DONE


@inlined
def _put_begin(transactions: Any, number: int, out: Any, at: int) -> int:
    out[at] = _BEGIN
    _put8(out, at + 1, transactions.begin_scn[number])
    _put8(out, at + 9, transactions.commit_scn[number])
    _put8(out, at + 17, transactions.xid[number])
    _put4(out, at + 25, transactions.begin_time[number])
    _put4(out, at + 29, transactions.commit_time[number])
    _put2(out, at + 33, transactions.serial[number])
    _put4(out, at + 35, transactions.session[number])
    return at + PACKED_BEGIN


@inlined
def _put_change(
    dml: Any, row: int, table_column: Any, column_chunked: Any, place: Any, out: Any, at: int
) -> tuple[int, int]:
    """Write a row change at `at`. Returns (status, end). If the end is beyond `out`, the change is
    not completely written.
    """
    kind, table = int(dml.kind[row]), int(dml.table[row])
    if kind != _INSERT and kind != _DELETE and kind != _UPDATE:
        return BAD_KIND, at
    if table < 0 or table >= table_column.size - 1:
        return BAD_TABLE, at
    begin, end = dml.entry_first[row], dml.entry_first[row + 1]
    if begin < 0 or end < begin or end > dml.values.size:
        return BAD_VALUE, at
    row_id = ROWID_BYTES if dml.dataobj[row] != 0 else 0
    start = at + PACKED_CHANGE + row_id
    if start <= out.size:
        out[at], out[at + 1] = kind, row_id
        _put4(out, at + 6, table)
        _put8(out, at + 10, dml.scn[row])
        _put4(out, at + 18, dml.time[row])
        if row_id:
            put_rowid(out, at + PACKED_CHANGE, dml.dataobj[row], dml.bdba[row], dml.slot[row],
                      place)  # fmt: skip
    base, width = table_column[table], table_column[table + 1] - table_column[table]
    before = 0
    if dml.stored_first[row] < 0:
        status, before, start = _put_values(
            dml, begin, end, base, width, column_chunked, out, start
        )
        count = end - begin
    elif kind == _INSERT and begin == end:
        status, start = _put_stored(dml, row, width, out, start)
        count = width
    else:
        return BAD_IMAGE, at
    if status != DONE:
        return status, at
    if (kind == _INSERT and before > 0) or (kind == _DELETE and count > before):
        return BAD_IMAGE, at
    if before > _COUNT_MAX or count - before > _COUNT_MAX:
        return TOO_MANY, at
    if start <= out.size:
        _put2(out, at + 2, before)
        _put2(out, at + 4, count - before)
    return DONE, start


@inlined
def _put_values(
    dml: Any, begin: int, end: int, base: int, width: int, column_chunked: Any, out: Any, at: int
) -> tuple[int, int, int]:
    """Write the values of a change, as far as they fit into `out`. Returns (status, number of
    values in the before image, end).
    """
    before = 0
    for entry in range(np.uint64(begin), np.uint64(end)):
        value = dml.values[entry]
        if value.column >= width:
            return BAD_COLUMN, before, at
        if value.image == _BEFORE:
            if before < np.int64(entry) - begin:
                return BAD_IMAGE, before, at
            before += 1
        offset, length, further = value.offset, max(value.length, 0), 0
        if length > 0 and (offset < 0 or offset > dml.data.size - length):
            return BAD_VALUE, before, at
        if value.next >= 0:
            further = measure_value(dml, value.next)
            if further < 0:
                return BAD_VALUE, before, at
        size = length + further
        is_null = size == 0
        if is_null and column_chunked[base + value.column] != 0:
            is_null = value.length < 0
        start = _put_value_head(out, at, value.column, size, is_null)
        at = start + size
        if at <= out.size and size > 0:
            copy_forward(out, start, dml.data, offset, offset + length)
            if further > 0:
                write_parts(dml, value.next, out, start + length)
    return DONE, before, at


@inlined
def _put_stored(dml: Any, row: int, width: int, out: Any, at: int) -> tuple[int, int]:
    """Write the values of an inserted row piece, as far as they fit into `out`. Returns (status,
    end).
    """
    first, count = dml.stored_first[row], int(dml.stored_count[row])
    if count < 0 or first > dml.stored.size - count:
        return BAD_VALUE, at
    if count > width:
        return BAD_COLUMN, at
    for column in range(width):
        offset, length = 0, 0
        if column < count:
            stored = dml.stored[np.uint64(first + column)]
            offset, length = stored.offset, max(int(stored.length), 0)
        if length > 0 and (offset < 0 or offset > dml.data.size - length):
            return BAD_VALUE, at
        start = _put_value_head(out, at, column, length, length == 0)
        at = start + length
        if at <= out.size and length > 0:
            copy_forward(out, start, dml.data, offset, offset + length)
    return DONE, at


@inlined
def _put_value_head(out: Any, at: int, column: int, size: int, is_null: bool) -> int:
    """Write the bytes that precede a value, if they fit into `out`. Returns the position of the
    value.
    """
    is_large = size >= LARGE
    start = at + PACKED_VALUE + (8 if is_large else 0)
    if start <= out.size:
        _put2(out, at, column)
        _put4(out, at + 2, LARGE if is_large else (NULL if is_null else size))
        if is_large:
            _put8(out, at + PACKED_VALUE, np.uint64(size))
    return start


U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


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
        position: for a row change, its number among the row changes of its transaction, from 0.
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
        next piece is yielded.

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
