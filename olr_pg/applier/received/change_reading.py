"""Parses messages into columns: one kernel reads all framed elements, without Python code per
element.

Facts: protocol, “Frames”, “Elements”. `olr_pg.wire.elements` parses single elements of the same
format (tests compare both).

The value of a LOB arrives in Chunk elements after its row change. After parsing, the value is one
slice of the data. If the value arrived in a single chunk, the slice is in the received bytes;
otherwise the chunks are copied to the space after the received bytes. If a row's chunks are not
complete yet, the row waits for the next bytes. If a row's LOB values exceed the size limit, its
chunks are dropped and the values are marked `TOO_LARGE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.applier.received.column_numbers import (
    ColumnNumbers,
    Known,
    known_column,
    known_table,
)
from olr_pg.applier.received.integers import read_u16, read_u32, read_u64
from olr_pg.datatypes.columns import read_only
from olr_pg.datatypes.outcomes import byte_at
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.mapped import release_pages
from olr_pg.kernels.bytes import copy_bytes
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.transactions.finished_columns import (
    TOO_LARGE,
    ChangeColumns,
    filled_changes,
    room_for_changes,
)
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.messages import AnswerCode

if TYPE_CHECKING:
    from olr_pg.wire.column_directory import ColumnDirectory
    from olr_pg.wire.frames import ByteOrder

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

ROW_BYTES_MAX: Final = (1 << 30) - (1 << 20)
"""Maximum bytes of one row's LOB values; PostgreSQL accepts less than 1 GiB in one parameter."""

_WHOLE: Final = 0
_INCOMPLETE: Final = 1
_UNKNOWN: Final = 2
_BAD_FRAME: Final = 3
_BAD_ELEMENT: Final = 4
_BAD_CHUNK: Final = 5
_WRONG: Final = {
    _INCOMPLETE: "an incomplete row change",
    _BAD_FRAME: "a malformed frame",
    _BAD_ELEMENT: "a malformed element",
    _BAD_CHUNK: "a Chunk that does not belong to its row change",
}

_CHUNKED: Final = -3
"""Length of a value that arrives in chunks, before its chunks are read."""

_TOO_LARGE = TOO_LARGE

_ROW: Final = 0
_VALUE: Final = 1
_VALUES_END: Final = 2
_IS_JOINED: Final = 3
_OPENED: Final = 4
"""Number of integers that describe the row that waits for chunks: the index of its element (−1 if
none waits); the value to which the last chunk belongs; the end of the row's values; whether more
chunks of that value follow.
"""

_FRAME: Final = 6
_HEAD: Final = 29
_BEGIN_BYTES: Final = 35
_CHUNK_LEAST: Final = 42
"""Sizes in bytes: of the frame before an element, of the head that all elements have, of a Begin,
and of a Chunk without its name and data.
"""

_COLUMN: Final = 37
"""Size in bytes of a ColumnValue without its name and value."""

_SIZE_OF: Final = (0, _BEGIN_BYTES, _HEAD)
"""Sizes in bytes of a Begin and a Commit; the index is the code of the element."""

_DATA = int(AnswerCode.DATA)
_BEGIN = int(ElementCode.BEGIN)
_COMMIT = int(ElementCode.COMMIT)
_INSERT = int(ElementCode.INSERT)
_DELETE = int(ElementCode.DELETE)
_UPDATE = int(ElementCode.UPDATE)
_CHUNK = int(ElementCode.CHUNK)


class ReceivedChanges(NamedTuple):
    """Elements that were received together, with complete rows.

    Attributes:
        directory: the tables and columns that the numbers in `changes` refer to.
        message_first: shape (n + 1); the offset at which the messages of each element and its
            chunks begin, and the end of the last.
        chunk_bytes: shape (n); the size of the messages that contain each element's chunks.
    """

    changes: ChangeColumns
    directory: ColumnDirectory
    message_first: I64
    chunk_bytes: I64


class _Place(NamedTuple):
    """How far a kernel has come: the offset in the data, the numbers of elements, values and copied
    bytes so far, and the table of the last row change.
    """

    at: int
    elements: int
    values: int
    used: int
    table: int


@inlined
def _chunk_fields(data: U8, first: int, size: int, big: bool) -> tuple[int, int, int, int]:
    """Return (size of the name, flags, offset of the data, size of the data) of a Chunk element.
    The last is −1 if the element is malformed.
    """
    name = byte_at(data, first + _HEAD) if size > _HEAD else 0
    if size < _CHUNK_LEAST + name:
        return name, 0, 0, -1
    flags = int(np.int64(read_u16(data, first + 32 + name, big)))
    length = read_u64(data, first + 34 + name, big)
    if length != np.uint64(size - _CHUNK_LEAST - name) or flags > 3:
        return name, 0, 0, -1
    return name, flags, first + _CHUNK_LEAST + name, size - _CHUNK_LEAST - name


@kernel
def row_end_kernel(data: U8, big: bool) -> int:
    """Return the offset after the last chunk of the row that waits for chunks. Return −1 if the
    last chunk is not in `data`, and −2 if another element comes before it.
    """
    at = 0
    while at < data.size:
        size = int(np.int64(read_u32(data, at, big)))
        if size < _CHUNK_LEAST + 2 or data[at + _FRAME] != _CHUNK:
            return -2
        _, flags, _, length = _chunk_fields(data, at + _FRAME, size - 2, big)
        if length < 0:
            return -2
        at += 4 + size
        if flags & 2:
            return at
    return -1


@inlined
def _frame_end(data: U8, at: int, big: bool) -> int:
    """Return the offset of the end of the Data message at `at`; −1 if it is malformed."""
    if data.size - at < _FRAME:
        return -1
    size = int(np.int64(read_u32(data, at, big)))
    code = int(np.int64(read_u16(data, at + 4, big)))
    return -1 if size < 2 or size > data.size - at - 4 or code != _DATA else at + 4 + size


@inlined
def _next_chunked(value: int, end: int, value_length: I64) -> int:
    while value < end and value_length[value] != _CHUNKED:
        value += 1
    return value


@inlined
def _same_name(data: U8, chunk: int, name: int, value: int) -> bool:
    """Return whether the column name in a chunk equals the column name of a value."""
    if byte_at(data, value - name - _COLUMN) != name:
        return False
    for i in range(name):  # noqa: SIM110 - compiled as a loop
        if data[chunk + 30 + i] != data[value - name + i]:
            return False
    return True


@inlined
def _read_row(
    room: ChangeColumns, known: Known, n: int, values: int, table: int, first: int, end: int,
    big: bool,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """Record table, ROWID and values of the row change ``data[first:end]``, which is element `n`.

    Args:
        table: the number of the previous row change's table; −1 for none.

    Returns:
        (status, values, table, chunked): the number of values including those of this row, the
        number of its table, and whether some of its values arrive in chunks.
    """
    data = room.data
    if end - first < 38:
        return _BAD_ELEMENT, values, table, False
    owner, names = byte_at(data, first + 33), first + 36
    size = owner + byte_at(data, first + 34)
    place = names + size
    room.row_id_offset[n] = place
    room.row_id_length[n] = data[first + 35]
    place += byte_at(data, first + 35)
    if place > end:
        return _BAD_ELEMENT, values, table, False
    table = known_table(data, first + 33, names, size, table, known)
    room.table[n] = table
    kind = byte_at(data, first)
    is_known, chunked = table >= 0, False
    for image in range(2):
        if image == 1:
            room.entry_after[n] = values
        if (kind == _INSERT and image == 0) or (kind == _DELETE and image == 1):
            continue
        if end - place < 2:
            return _BAD_ELEMENT, values, table, False
        count = int(np.int64(read_u16(data, place, big)))
        place += 2
        column = -1
        for _ in range(count):
            if end - place < _COLUMN:
                return _BAD_ELEMENT, values, table, False
            start = place + _COLUMN + byte_at(data, place)
            wide = read_u64(data, place + 1, big)
            in_chunks = data[place + 36]
            if start > end or wide > np.uint64(end - start) or in_chunks > 1:
                return _BAD_ELEMENT, values, table, False
            length = int(np.int64(wide))
            if in_chunks == 1:
                if length > 0:
                    return _BAD_ELEMENT, values, table, False
                chunked = True
            if is_known:
                column = known_column(data, place, table, column, known)
                is_known = column >= 0
            room.value_column[values] = column
            room.value_offset[values] = start
            if in_chunks == 1:
                room.value_length[values] = _CHUNKED
            else:
                room.value_length[values] = length if length > 0 else -1
            values += 1
            place = start + length
    if place != end:
        return _BAD_ELEMENT, values, table, False
    return (_WHOLE if is_known else _UNKNOWN), values, table, chunked


@inlined
def _put_together(
    room: ChangeColumns, opened: I64, first: int, end: int, extra: U8, used: int, big: bool
) -> int:
    """Process the Chunk element ``data[first:end]``. Return the number of used bytes of `extra`; −1
    if the element is malformed.

    Args:
        opened: the state of the row that waits for chunks (`_ROW` and the like).
        extra, used: the buffer for values that have several chunks, and the number of its bytes
            that are used.
    """
    data, value = room.data, opened[_VALUE]
    name, flags, start, length = _chunk_fields(data, first, end - first, big)
    if opened[_ROW] < 0 or length < 0:
        return -1
    if opened[_IS_JOINED]:
        room.value_length[value] += length
        copy_bytes(extra, used, data, start, start + length)
        used += length
    else:
        value = opened[_VALUE] = _next_chunked(value, opened[_VALUES_END], room.value_length)
        if value == opened[_VALUES_END] or not _same_name(
            data, first, name, room.value_offset[value]
        ):
            return -1
        room.value_offset[value] = start
        room.value_length[value] = length
        if flags & 1 == 0:
            room.value_offset[value] = data.size + used
            copy_bytes(extra, used, data, start, start + length)
            used += length
    opened[_IS_JOINED] = flags & 1 == 0
    if flags & 2:
        end_of_values = opened[_VALUES_END]
        if flags & 1 == 0 or _next_chunked(value, end_of_values, room.value_length) < end_of_values:
            return -1
        opened[_ROW] = -1
    return used


@inlined
def _read_head(room: ChangeColumns, n: int, values: int, first: int, big: bool) -> int:
    """Record the head of an element, as of an element without values. Return its kind."""
    data = room.data
    kind = byte_at(data, first)
    room.kind[n] = kind
    room.scn[n] = read_u64(data, first + 1, big)
    room.commit_scn[n] = read_u64(data, first + 9, big)
    room.xid[n] = read_u64(data, first + 17, big)
    room.time[n] = read_u32(data, first + 25, big)
    room.table[n] = -1
    room.row_id_offset[n] = first
    room.row_id_length[n] = 0
    room.entry_after[n] = values
    return kind


@inlined
def _drop_chunked(value: int, end: int, value_length: I64) -> None:
    while value < end:
        if value_length[value] == _CHUNKED:
            value_length[value] = _TOO_LARGE
        value += 1


@kernel
def read_changes_kernel(
    room: ChangeColumns, known: Known, message_first: I64, chunk_bytes: I64, extra: U8, opened: I64,
    big: bool, is_cut: bool, begin: _Place,
) -> tuple[int, int, int, int, int, int]:  # fmt: skip
    """Parse the messages from `begin` on into `room` and into the arrays of `ReceivedChanges`.

    The framed elements have this layout:

        at                first                                                      end
        | size 4 | code 2 | kind 1 | SCN 8 | commit SCN 8 | XID 8 | time 4 | content |

    Args:
        extra: the buffer for values that have several chunks.
        opened: an array of `_OPENED` integers, which the kernel uses.
        is_cut: whether the first element is a row change whose chunks were dropped because they
            were too large.

    Returns:
        The status and the fields of a `_Place`. Depending on the status, it is the end of the data,
        the beginning of the malformed message, the row change that is not complete, or the row
        change whose table or columns have no number yet.
    """
    data = room.data
    at, n, values, used, table = begin.at, begin.elements, begin.values, begin.used, begin.table
    opened[_ROW], opened[_IS_JOINED] = -1, 0
    row_at = row_used = 0
    while at < data.size:
        end = _frame_end(data, at, big)
        first = at + _FRAME
        if end < 0:
            return _BAD_FRAME, at, n, values, used, table
        if end - first < _HEAD:
            return _BAD_ELEMENT, at, n, values, used, table
        if byte_at(data, first) == _CHUNK:
            row = opened[_ROW]
            joined = _put_together(room, opened, first, end, extra, used, big)
            if joined < 0:
                return _BAD_CHUNK, at, n, values, used, table
            used = joined
            chunk_bytes[row] += end - at
            at = message_first[n] = end
            continue
        if opened[_ROW] >= 0:
            return _BAD_CHUNK, at, n, values, used, table
        kind = _read_head(room, n, values, first, big)
        message_first[n] = at
        chunk_bytes[n] = 0
        if kind in (_INSERT, _DELETE, _UPDATE):
            status, values_end, of_table, chunked = _read_row(
                room, known, n, values, table, first, end, big
            )
            if status != _WHOLE:
                return status, at, n, values, used, table
            table = of_table
            if chunked and is_cut and n == 0:
                _drop_chunked(values, values_end, room.value_length)
            elif chunked:
                opened[_ROW], opened[_VALUE], opened[_VALUES_END] = n, values, values_end
                row_at, row_used = at, used
            values = values_end
        elif kind not in (_BEGIN, _COMMIT) or end - first != _SIZE_OF[kind]:
            return _BAD_ELEMENT, at, n, values, used, table
        n += 1
        at = message_first[n] = end
        room.entry_first[n] = values
    if opened[_ROW] >= 0:
        row = opened[_ROW]
        return _INCOMPLETE, row_at, row, room.entry_first[row], row_used, table
    return _WHOLE, at, n, values, used, table


class MessageReader:
    """Parses received bytes into changes with complete rows. Used by one thread.

    Args:
        order: byte order of the protocol.
        row_bytes_max: the maximum bytes of one row's LOB values.
        numbers: the numbers of the stream's columns, to share them with another reader in the same
            thread.
    """

    def __init__(
        self,
        order: ByteOrder,
        row_bytes_max: int = ROW_BYTES_MAX,
        numbers: ColumnNumbers | None = None,
    ) -> None:
        self._order = order
        self._limit = row_bytes_max
        self._numbers = numbers or ColumnNumbers(order)
        self._held: list[U8] = []
        self._held_bytes = 0
        self._is_cut = False

    @property
    def is_open(self) -> bool:
        """Return whether a row waits for its chunks."""
        return bool(self._held)

    def forget(self) -> None:
        """Discard the row that waits for its chunks, because the server delivers it again."""
        self._held, self._held_bytes, self._is_cut = [], 0, False

    def feed(self, blob: U8) -> list[ReceivedChanges]:
        """Parse received bytes. Return the changes up to the last complete row, in order.

        Args:
            blob: whole frames of the server's Data answers.

        Raises:
            OlrPgError: 4005, 5013, the bytes violate the protocol.
        """
        blob, found = read_only(blob), list[ReceivedChanges]()
        if self._held:
            end = row_end_kernel(blob, self._order.is_big)
            if end == -2:
                raise OlrPgError(Code.ANSWER_MALFORMED, "a row change without its last Chunk")
            self._hold(blob if end < 0 else blob[:end])
            if end < 0:
                return found
            found.append(self.whole(np.concatenate(self._held), is_cut=self._is_cut))
            self.forget()
            blob = blob[end:]
        if blob.size:
            changes, at = self._read(blob, is_cut=False)
            if at < blob.size:
                self._hold(blob[at:])
            if at:
                found.append(changes)
        return found

    def whole(self, blob: U8, *, is_cut: bool) -> ReceivedChanges:
        """Parse bytes that contain only complete rows; return their changes.

        Args:
            blob: whole frames of the server's Data answers.
            is_cut: whether the first element is a row change whose chunks were dropped because they
                were too large.

        Raises:
            OlrPgError: 4005, 5013, the bytes violate the protocol.
        """
        changes, at = self._read(read_only(blob), is_cut=is_cut)
        if at < blob.size:
            raise OlrPgError(Code.ANSWER_MALFORMED, _WRONG[_INCOMPLETE], offset=at)
        return changes

    def _hold(self, part: U8) -> None:
        self._held_bytes += part.size
        if not self._is_cut:
            self._held.append(part)
        if self._held_bytes > self._limit and not self._is_cut:
            first = self._held[0]
            self._held = [first[: 4 + read_u32(first, 0, self._order.is_big)].copy()]
            self._is_cut = True

    def _read(self, data: U8, *, is_cut: bool) -> tuple[ReceivedChanges, int]:
        """Return the changes up to the last complete row, and the offset of their end."""
        most = data.size // (_FRAME + _HEAD) + 1
        room = room_for_changes(data, most, data.size // _COLUMN + 1)
        message_first, chunk_bytes = np.zeros(most + 1, np.int64), np.empty(most, np.int64)
        extra, opened = np.empty(data.size, np.uint8), np.empty(_OPENED, np.int64)
        place, numbers = _Place(0, 0, 0, 0, -1), self._numbers
        while True:
            status, *reached = read_changes_kernel(
                room, numbers.known, message_first, chunk_bytes, extra, opened,
                self._order.is_big, is_cut, place,
            )  # fmt: skip
            place = _Place(*map(int, reached))
            if status != _UNKNOWN:
                break
            first = place.at + _FRAME
            end = place.at + 4 + int(read_u32(data, place.at, self._order.is_big))
            numbers.describe(data[first:end].tobytes())
        if status > _UNKNOWN:
            raise OlrPgError(Code.ANSWER_MALFORMED, _WRONG[status], offset=place.at)
        n = place.elements
        changes = filled_changes(room, n, place.values)
        if place.used:
            received = data
            changes = changes._replace(data=read_only(np.concatenate([data, extra[: place.used]])))
            release_pages(received.data)
        return (
            ReceivedChanges(
                changes, numbers.directory, message_first[: n + 1].copy(), chunk_bytes[:n].copy()
            ),
            place.at,
        )
