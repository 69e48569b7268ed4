"""The compiled encoder: it writes finished transactions, given as columns, as framed Data messages.

One pass over the columns writes every message and checks every index. The encoder writes into
*rooms*: buffers that an output provides one after the other, because the size of a transaction is
not known before it is written. The messages of a transaction are contiguous: the Begin, the row
changes, each followed by its Chunks, and the Commit. The Python codec in `olr_pg.wire.elements`
gives the same bytes, one element at a time (tests compare them).

A chunked value has ColumnValueSize 0 and IsChunked 1 in its row change. Its bytes follow in Chunk
elements of at most the chunk size, column after column. An empty value has one Chunk without bytes.
Facts: protocol, “Elements”.

The parts of the encoder also write other forms into rooms (`packed_changes`): they keep the
position, write values and ROWIDs, and raise the error for a refused change.

A value can consist of several parts at different places in the data. A part is an entry of
`dml.values`. `offset` and `length` give its bytes, and `next` is the entry of the next part,
negative for the last part.

The text of a ROWID has four parts:

    object number   relative file   block           slot
    6 digits        3 digits        6 digits        3 digits        base 64, most significant first

The first three parts identify the block. If the previous ROWID is in the same block, these three
parts are copied from the text of the previous ROWID.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.bytes import FORWARD, SHORT, copy_bytes, copy_forward, store
from olr_pg.kernels.compile import inlined, inlined_for, kernel, part
from olr_pg.transactions.finished_columns import DmlKind, Image
from olr_pg.transactions.waiting_storage import IN_MEMORY
from olr_pg.wire.element_plan import ROWID_BYTES
from olr_pg.wire.elements import ChunkFlags, ElementCode
from olr_pg.wire.messages import AnswerCode
from olr_pg.wire.output import Unkept, Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.transactions.finished_columns import DmlColumns, TransactionColumns
    from olr_pg.transactions.waiting_storage import Allocate
    from olr_pg.wire.element_plan import ElementPlan
    from olr_pg.wire.output import MessageOutput


DONE: Final = 0
BAD_KIND: Final = 1
BAD_TABLE: Final = 2
BAD_IMAGE: Final = 3
BAD_COLUMN: Final = 4
BAD_VALUE: Final = 5
TOO_LARGE: Final = 6
TOO_MANY: Final = 7
FULL: Final = 8

NUMBER: Final = 0
ROW: Final = 1
BEFORE_ROOM: Final = 2
FILLED: Final = 3
NEEDED: Final = 4
BDBA: Final = 5
OBJD: Final = 6
ROWID: Final = 7
PLACE_SIZE: Final = 8
"""The elements of the array `place`, in which an encoder keeps its position between two calls of
the kernel that fills a room. The last three are the block and the object of the last ROWID, and the
offset of its text plus 1 (0 if there is none).
"""

_ROWID_ALPHABET: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_ROWID_BLOCK: Final = 15
"""The number of characters of a ROWID before its slot."""

_REASON: Final = {
    BAD_KIND: (
        Code.CHANGE_NOT_ENCODABLE,
        "the kind of the change is not insert, update or delete",
    ),
    BAD_TABLE: (Code.CHANGE_NOT_ENCODABLE, "the table is not in the element plan"),
    BAD_IMAGE: (
        Code.CHANGE_NOT_ENCODABLE,
        "its values are in the wrong order, or belong to the wrong image",
    ),
    BAD_COLUMN: (Code.CHANGE_NOT_ENCODABLE, "a column is not in the element plan"),
    BAD_VALUE: (
        Code.CHANGE_NOT_ENCODABLE,
        "a value is outside the data, or its parts form a circle",
    ),
    TOO_LARGE: (Code.FIELD_OVERFLOW, "the message is longer than 4 GiB"),
    TOO_MANY: (Code.FIELD_OVERFLOW, "an image has more than 65,535 columns"),
}


class Form(IntEnum):
    """The form in which finished transactions are written."""

    MESSAGES = 0
    """Framed Data messages of the protocol."""
    PACKED = 1
    """Packed transactions (`wire.packed_changes`)."""
    LINES = 2
    """JSON Lines."""


class EncodedTransactions(NamedTuple):
    """The encoded bytes of n transactions.

    Attributes:
        blob: the bytes of all transactions, contiguous.
        first: shape (n + 1); the offset of each transaction in `blob`, and the end of the last one.
        messages: shape (n); the number of messages or elements of each transaction, including Begin
            and Commit.
        form: the form of the bytes.
    """

    blob: npt.NDArray[np.uint8]
    first: npt.NDArray[np.int64]
    messages: npt.NDArray[np.int64]
    form: Form = Form.MESSAGES


def filled(
    fill: Callable[[Any, Any, Any, Any], int], count: int, dml: DmlColumns, output: MessageOutput
) -> EncodedTransactions:
    """Write transactions into the rooms of an output, until all are written.

    Args:
        fill: the kernel that fills a room, such as `encoder.fill_room`. The kernel's arguments are
            `place`, `first`, `messages` and the room.
        count: the number of transactions.

    Raises:
        OlrPgError: 4014 the columns are inconsistent, 4006 something is too large for its field;
            both errors contain the row change's position.
    """
    first = np.zeros(count + 1, np.int64)
    messages = np.zeros(count, np.int64)
    place = np.zeros(PLACE_SIZE, np.int64)
    least = 0
    while True:
        room = output.room(least)
        status = fill(place, first, messages, room)
        output.take(int(place[FILLED]))
        if status == DONE:
            return EncodedTransactions(output.taken(), first, messages)
        if status != FULL:
            raise _refused(status, int(place[ROW]), dml)
        least = int(place[NEEDED])


def just_sized(
    write: Callable[[MessageOutput], EncodedTransactions], allocate: Allocate
) -> EncodedTransactions:
    """Write transactions twice: first to find their size, then into a buffer of exactly that
    size.
    """
    sized = write(Unkept(allocate))
    return write(Whole(allocate(int(sized.first[-1]))))


@inlined
def stopped(place: Any, at: int, needed: int) -> int:
    """Record the end of the room's messages and the number of bytes that the next message needs;
    return `FULL`.
    """
    place[FILLED] = at
    place[BEFORE_ROOM] += at
    place[NEEDED] = needed
    return FULL


@part
def measure_value(dml: Any, entry: int) -> int:
    """Return the total size in bytes of a value's parts: 0 for NULL, −1 if a part is outside of the
    data.
    """
    size, parts = 0, 0
    while entry >= 0:
        parts += 1
        if entry >= dml.values.length.size or parts > dml.values.length.size:
            return -1
        length, offset = dml.values.length[entry], dml.values.offset[entry]
        if length > 0:
            if offset < 0 or offset > dml.data.size - length:
                return -1
            size += length
        entry = dml.values.next[entry]
    return size


@part
def write_parts(dml: Any, entry: int, out: Any, at: int) -> int:
    """Write the parts of a value from `entry` on, and return their end."""
    while entry >= 0:
        offset, length = dml.values.offset[entry], dml.values.length[entry]
        if length > 0:
            at = copy_bytes(out, at, dml.data, offset, offset + length)
        entry = dml.values.next[entry]
    return at


@inlined
def put_rowid(out: Any, at: int, dataobj: Any, dba: Any, slot: Any, place: Any) -> None:
    """Write the 18 characters that `olr_pg.scalars.format_rowid` returns.

    Consecutive rows are often in the same block. For a row in the same block as the previous row,
    the first 15 characters are copied from the last ROWID.
    """
    last = place[ROWID] - 1
    if last >= 0 and place[BDBA] == dba and place[OBJD] == dataobj:
        copy_bytes(out, at, out, last, last + _ROWID_BLOCK)
    else:
        put_digits(out, at, np.int64(dataobj), 6)
        put_digits(out, at + 6, np.int64(dba) >> 22, 3)
        put_digits(out, at + 9, np.int64(dba) & 0x3FFFFF, 6)
        place[BDBA], place[OBJD], place[ROWID] = dba, dataobj, at + 1
    put_digits(out, at + _ROWID_BLOCK, np.int64(slot), 3)


@inlined
def put_digits(out: Any, at: int, value: Any, count: int) -> None:
    """Write `value` in `count` base-64 digits of the ROWID alphabet."""
    for i in range(count):
        out[at + i] = _ROWID_ALPHABET[value >> 6 * (count - 1 - i) & 63]


def _refused(status: int, row: int, dml: DmlColumns) -> OlrPgError:
    code, reason = _REASON[status]
    return OlrPgError(
        code,
        reason,
        change=int(row),
        sequence=int(dml.sequence[row]),
        block=int(dml.block[row]),
        offset=int(dml.offset[row]),
    )


CHUNK_BYTES: Final = 1 << 20
"""The default for the maximum bytes of a value in one Chunk element."""

_FRAME: Final = 6
_ROWID_SIZE: Final = 6
_IS_CHUNKED: Final = 36
_HEAD: Final = 29
BEGIN_FRAME: Final = _FRAME + _HEAD + 6
COMMIT_FRAME: Final = _FRAME + _HEAD
"""The sizes in bytes of a framed Begin and of a framed Commit."""

_CHUNK_FIXED: Final = _FRAME + _HEAD + 13
_NAME: Final = 37
_SIZE_MAX: Final = (1 << 32) - 1
_COUNT_MAX: Final = 0xFFFF

_BEGIN: Final = int(ElementCode.BEGIN)
_COMMIT: Final = int(ElementCode.COMMIT)
_CHUNK: Final = int(ElementCode.CHUNK)
_LAST_OF_COLUMN: Final = int(ChunkFlags.LAST_OF_COLUMN)
_LAST_OF_ROW: Final = int(ChunkFlags.LAST_OF_ROW)
_INSERT: Final = int(DmlKind.INSERT)
_DELETE: Final = int(DmlKind.DELETE)
_UPDATE: Final = int(DmlKind.UPDATE)
_BEFORE: Final = int(Image.BEFORE)
_AFTER: Final = int(Image.AFTER)
_DATA: Final = int(AnswerCode.DATA)

_OUT: Final = numba.types.Array(numba.uint8, 1, "C")
_AT, _BIG = numba.int64, numba.boolean
_LONG: Final = numba.void(_OUT, _AT, numba.int64, _BIG)
_LONG_BITS: Final = numba.void(_OUT, _AT, numba.uint64, _BIG)
_HEAD_FORM: Final = numba.void(
    _OUT, _AT, numba.int64, numba.int64, *(numba.uint64,) * 3, numba.int64, _BIG
)


def encode_transactions(
    transactions: TransactionColumns,
    dml: DmlColumns,
    plan: ElementPlan,
    big_endian: bool,
    chunk_bytes: int = CHUNK_BYTES,
    allocate: Allocate = IN_MEMORY.allocate,
) -> EncodedTransactions:
    """Encode `transactions` as framed Data messages.

    The messages are written twice: first into a scratch buffer to find their size, then into a
    buffer of exactly that size.
    """

    def write(output: MessageOutput) -> EncodedTransactions:
        return write_messages(transactions, dml, plan, big_endian, output, chunk_bytes)

    return just_sized(write, allocate)


def write_messages(
    transactions: TransactionColumns,
    dml: DmlColumns,
    plan: ElementPlan,
    big_endian: bool,
    output: MessageOutput,
    chunk_bytes: int = CHUNK_BYTES,
) -> EncodedTransactions:
    """Write the same messages as `encode_transactions` into an output. The result's `blob` comes
    from the output, and is empty if the output keeps no messages in memory.
    """
    tables = plan.table_big if big_endian else plan.table_little
    columns = plan.column_big if big_endian else plan.column_little
    forms = ElementForms(
        table_first=plan.table_first,
        table_data=tables,
        table_column=plan.table_column,
        column_size=plan.column_size,
        column_data=columns,
        column_chunked=plan.column_chunked,
        chunked=bool(plan.column_chunked.any()),
        chunk_bytes=chunk_bytes,
        big=big_endian,
    )
    fill = partial(fill_room, transactions, dml, forms)
    return filled(fill, transactions.xid.size, dml, output)


class ElementForms(NamedTuple):
    """The parameters for writing elements: prebuilt bytes, chunk size and byte order.

    Attributes:
        table_first, table_data, table_column, column_size, column_data, column_chunked: the arrays
            of the `ElementPlan`, in the byte order of the output.
        chunked: whether any column is chunked.
        chunk_bytes: maximum bytes of a LOB value in one Chunk element.
        big: whether the byte order is big-endian.
    """

    table_first: Any
    table_data: Any
    table_column: Any
    column_size: Any
    column_data: Any
    column_chunked: Any
    chunked: bool
    chunk_bytes: int
    big: bool


@kernel
def fill_room(
    transactions: Any, dml: Any, forms: ElementForms, place: Any, first: Any, messages: Any,
    out: Any,
) -> int:  # fmt: skip
    """Write messages from `place` on, until `out` is full. Returns a status: `DONE`, `FULL`, or the
    reason why a change is refused.

    The order of the messages, and the content of a row change:

        Begin | row change | its Chunks | row change | its Chunks | ... | Commit

        row change:   head | names of the table | ROWID | before image | after image
        image:        number of values 2 | header of a column | value | header | value | ...

    Names and headers are copied from the element plan. If a message and its Chunks do not both fit
    into the rest of a room, both are written into the next room, so `out` always ends after a
    complete message.

    Args:
        place: the position, an array of numbers that is updated. By index: `NUMBER`, the
            transaction; `ROW`, the row change plus 1, or 0 before the Begin; `BEFORE_ROOM`, the
            bytes in earlier rooms; `FILLED`, the bytes in this room; `NEEDED`, the bytes that the
            next message and its Chunks need. the text of a ROWID uses the other numbers.
        first, messages: the arrays of `EncodedTransactions`, which are filled.
    """
    table_first, table_data, table_column = forms.table_first, forms.table_data, forms.table_column
    column_size, column_data = forms.column_size, forms.column_data
    column_chunked, chunk_bytes, big = forms.column_chunked, forms.chunk_bytes, forms.big
    at = 0
    place[ROWID] = 0
    while place[NUMBER] < transactions.xid.size:
        number = place[NUMBER]
        commit_scn, xid = transactions.commit_scn[number], transactions.xid[number]
        if place[ROW] == 0:
            if at + BEGIN_FRAME > out.size:
                return stopped(place, at, BEGIN_FRAME)
            first[number] = place[BEFORE_ROOM] + at
            messages[number] = 2 + transactions.dml_first[number + 1]
            messages[number] -= transactions.dml_first[number]
            at = _put_begin(transactions, number, big, out, at)
            place[ROW] = transactions.dml_first[number] + 1
        for row in range(place[ROW] - 1, transactions.dml_first[number + 1]):
            place[ROW] = row + 1
            status, end = _write_change(
                dml, row, commit_scn, xid, table_first, table_data, table_column, column_size,
                column_data, column_chunked, big, place, out, at,
            )  # fmt: skip
            if status != DONE:
                place[ROW] = row
                return status
            chunks = 0
            if forms.chunked:
                base = table_column[dml.table[row]]
                size, chunks = measure_chunks(dml, row, base, column_size, column_chunked,
                                              chunk_bytes)  # fmt: skip
                if size > 0 and end + size <= out.size:
                    write_chunks(dml, row, commit_scn, xid, base, column_size, column_data,
                                 column_chunked, chunk_bytes, big, out, end)  # fmt: skip
                end += size
            if end > out.size:
                place[ROWID] = 0
                return stopped(place, at, end - at)
            messages[number] += chunks
            at = end
        place[ROW] = transactions.dml_first[number + 1] + 1
        if at + COMMIT_FRAME > out.size:
            return stopped(place, at, COMMIT_FRAME)
        put_head(out, at, COMMIT_FRAME, _COMMIT, commit_scn, commit_scn, xid,
                 transactions.commit_time[number], big)  # fmt: skip
        at += COMMIT_FRAME
        place[NUMBER] = number + 1
        place[ROW] = 0
    first[place[NUMBER]] = place[BEFORE_ROOM] + at
    stopped(place, at, 0)
    return DONE


@inlined
def _put_begin(transactions: Any, number: int, big: bool, out: Any, at: int) -> int:
    put_head(out, at, BEGIN_FRAME, _BEGIN, transactions.begin_scn[number],
             transactions.commit_scn[number], transactions.xid[number],
             transactions.begin_time[number], big)  # fmt: skip
    put16(out, at + _FRAME + _HEAD, transactions.serial[number], big)
    put32(out, at + _FRAME + _HEAD + 2, transactions.session[number], big)
    return at + BEGIN_FRAME


@inlined
def _write_change(
    dml: Any, row: int, commit_scn: int, xid: int, table_first: Any, table_data: Any,
    table_column: Any, column_size: Any, column_data: Any, column_chunked: Any, big: bool,
    place: Any, out: Any, at: int,
) -> tuple[int, int]:  # fmt: skip
    """Write a row change at `at`. Returns (status, end). If the end is beyond `out`, the change is
    not completely written.

    The end is correct even if the change does not fit, so that the caller can provide a room of the
    needed size. A change of more than 4 GiB is refused.
    """
    kind, table = int(dml.kind[row]), int(dml.table[row])
    if kind != _INSERT and kind != _DELETE and kind != _UPDATE:
        return BAD_KIND, at
    if table < 0 or table >= table_first.size - 1:
        return BAD_TABLE, at
    begin, end = dml.entry_first[row], dml.entry_first[row + 1]
    if begin < 0 or end < begin or end > dml.values.size:
        return BAD_VALUE, at
    names = at + _FRAME + _HEAD
    start = names + table_first[table + 1] - table_first[table]
    has_rowid = dml.dataobj[row] != 0
    rowid = start
    start += ROWID_BYTES if has_rowid else 0
    if start <= out.size:
        put_head(out, at, 4, kind, dml.scn[row], commit_scn, xid, dml.time[row], big)
        copy_forward(out, names, table_data, table_first[table], table_first[table + 1])
        if has_rowid:
            put_rowid(out, rowid, dml.dataobj[row], dml.bdba[row], dml.slot[row], place)
        else:
            out[names + _ROWID_SIZE] = 0
    base, width = table_column[table], table_column[table + 1] - table_column[table]
    if dml.stored_first[row] < 0:
        status, start = _write_images(
            dml, kind, begin, end, base, width, column_size, column_data, column_chunked, big, out,
            start,
        )  # fmt: skip
    elif kind == _INSERT and begin == end:
        status, start = _write_stored(
            dml, row, base, width, column_size, column_data, big, out, start
        )
    else:
        status = BAD_IMAGE
    if status != DONE:
        return status, at
    if start - at - 4 > _SIZE_MAX:
        return TOO_LARGE, at
    if start <= out.size:
        put32(out, at, start - at - 4, big)
    return DONE, start


@inlined
def _write_images(
    dml: Any, kind: int, begin: int, end: int, base: int, width: int, column_size: Any,
    column_data: Any, column_chunked: Any, big: bool, out: Any, at: int,
) -> tuple[int, int]:  # fmt: skip
    """Write BeforeData (not for an Insert) and AfterData (not for a Delete), as far as they fit
    into `out`. Returns (status, end).
    """
    entry = begin
    for image in range(_AFTER if kind == _INSERT else _BEFORE, _AFTER + (kind != _DELETE)):
        status, count, at = _write_image(
            dml, image, entry, end, base, width, column_size, column_data, column_chunked, big,
            out, at,
        )  # fmt: skip
        if status != DONE:
            return status, at
        entry += count
    return DONE if entry == end else BAD_IMAGE, at


@inlined
def _write_stored(
    dml: Any, row: int, base: int, width: int, column_size: Any, column_data: Any, big: bool,
    out: Any, at: int,
) -> tuple[int, int]:  # fmt: skip
    """Write AfterData from the values of an inserted row piece, as far as they fit into `out`.
    Returns (status, end).

    None of these values is chunked: see `RowPlan.as_stored`.
    """
    first, count = dml.stored_first[row], int(dml.stored_count[row])
    if count < 0 or first > dml.stored.size - count:
        return BAD_VALUE, at
    if count > width:
        return BAD_COLUMN, at
    if width > _COUNT_MAX:
        return TOO_MANY, at
    if at + 2 <= out.size:
        put16(out, at, width, big)
    at += 2
    data_end = dml.data.size - FORWARD
    room_end = out.size - column_data.shape[1] - FORWARD
    for k in range(width):
        column = np.uint64(base + k)
        offset, length = 0, 0
        if k < count:
            stored = dml.stored[np.uint64(first + k)]
            offset, length = stored.offset, max(int(stored.length), 0)
        size = column_size[column]
        if length <= FORWARD and 0 <= offset <= data_end and at <= room_end:
            at = _put_column(out, at, column_data[column], size, dml.data, offset, length, big)
            continue
        if length > 0 and (offset < 0 or offset > dml.data.size - length):
            return BAD_VALUE, at
        end = at + size + length
        if end <= out.size:
            copy_bytes(out, at, column_data[column], 0, size)
            copy_bytes(out, at + size, dml.data, offset, offset + length)
            put64(out, at + 1, length, big)
        at = end
    return DONE, at


@inlined
def _put_column(
    out: Any, at: int, header: Any, size: int, data: Any, offset: int, length: int, big: bool
) -> int:
    """Write one ColumnValue: its `header` of `size` bytes, then the value. The caller must have
    checked that everything fits.
    """
    value = at + size
    copy_bytes(out, at, header, 0, FORWARD)
    if size > FORWARD:
        copy_bytes(out, at + FORWARD, header, FORWARD, size)
    if length <= SHORT:
        copy_bytes(out, value, data, offset, offset + SHORT)
    elif length <= FORWARD:
        copy_bytes(out, value, data, offset, offset + FORWARD)
    else:
        copy_bytes(out, value, data, offset, offset + length)
    put64(out, at + 1, length, big)
    return value + length


@inlined
def _write_image(
    dml: Any, image: int, begin: int, end: int, base: int, width: int, column_size: Any,
    column_data: Any, column_chunked: Any, big: bool, out: Any, at: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Write BeforeData or AfterData, as far as it fits into `out`. Returns (status, number of
    values, end).
    """
    count_at = at
    at += 2
    entry = np.uint64(begin)
    while entry < np.uint64(end):
        value = dml.values[entry]
        if value.image != image:
            break
        if value.column >= width:
            return BAD_COLUMN, 0, at
        column = np.uint64(base + value.column)
        size, offset, length = column_size[column], value.offset, max(value.length, 0)
        if length > 0 and (offset < 0 or offset > dml.data.size - length):
            return BAD_VALUE, 0, at
        is_plain = (
            value.next < 0
            and column_chunked[column] == 0
            and 0 <= offset <= dml.data.size - FORWARD
            and at <= out.size - FORWARD - size - length
        )
        if is_plain:
            at = _put_column(out, at, column_data[column], size, dml.data, offset, length, big)
        else:
            at = _write_column(dml, int(entry), size, column_data[column], column_chunked[column],
                               big, out, at)  # fmt: skip
            if at < 0:
                return BAD_VALUE, 0, at
        entry += np.uint64(1)
    count = int(np.int64(entry)) - begin
    if count > _COUNT_MAX:
        return TOO_MANY, 0, at
    if at <= out.size:
        put16(out, count_at, count, big)
    return DONE, count, at


@part
def _write_column(
    dml: Any, entry: int, size: int, header: Any, is_chunked: int, big: bool, out: Any, at: int
) -> int:
    """Write one ColumnValue, if it fits into `out`: its `header` of `size` bytes, then the value.
    Returns its end, or −1 if the value is out of bounds.
    """
    value = dml.values[entry]
    further = 0
    if value.next >= 0:
        further = measure_value(dml, value.next)
        if further < 0:
            return -1
    start = int(at + size)
    if start <= out.size:
        copy_bytes(out, at, header, 0, size)
    if is_chunked != 0:
        if start <= out.size:
            out[at + _IS_CHUNKED] = 1 if value.length >= 0 else 0
        return start
    length = max(value.length, 0)
    end = int(start + length + further)
    if end <= out.size:
        copy_bytes(out, start, dml.data, value.offset, value.offset + length)
        write_parts(dml, value.next, out, start + length)
        put64(out, at + 1, length + further, big)
    return end


@inlined
def value_size(dml: Any, entry: int) -> int:
    """Return the total size in bytes of a value's parts. The caller must have checked that the
    parts are within the data.
    """
    size = 0
    while entry >= 0:
        size += max(0, dml.values.length[entry])
        entry = dml.values.next[entry]
    return size


@inlined
def measure_chunks(
    dml: Any, row: int, base: int, column_size: Any, column_chunked: Any, chunk_bytes: int
) -> tuple[int, int]:
    """Return (total size in bytes, number) of the Chunk frames of a row change. The caller must
    have checked that its values are within the data.
    """
    total, frames = 0, 0
    for entry in range(dml.entry_first[row], dml.entry_first[row + 1]):
        column = base + dml.values.column[entry]
        if column_chunked[column] == 0 or dml.values.length[entry] < 0:
            continue
        size = value_size(dml, entry)
        chunks = max(1, (size + chunk_bytes - 1) // chunk_bytes)
        name = column_size[column] - _NAME
        total += size + chunks * (_CHUNK_FIXED + name)
        frames += chunks
    return total, frames


@inlined
def write_chunks(
    dml: Any, row: int, commit_scn: int, xid: int, base: int, column_size: Any, column_data: Any,
    column_chunked: Any, chunk_bytes: int, big: bool, out: Any, at: int,
) -> int:  # fmt: skip
    """Write the Chunk frames of a row change at `at`, and return their end."""
    last = -1
    for entry in range(dml.entry_first[row], dml.entry_first[row + 1]):
        if column_chunked[base + dml.values.column[entry]] and dml.values.length[entry] >= 0:
            last = entry
    for entry in range(dml.entry_first[row], last + 1):
        column = base + dml.values.column[entry]
        if column_chunked[column] == 0 or dml.values.length[entry] < 0:
            continue
        name = column_size[column] - _NAME
        left = value_size(dml, entry)
        part, within, more = entry, 0, True
        while more:
            size = min(left, chunk_bytes)
            left -= size
            more = left > 0
            flags = 0 if more else _LAST_OF_COLUMN
            if entry == last and not more:
                flags |= _LAST_OF_ROW
            put_head(out, at, _CHUNK_FIXED + name + size, _CHUNK, dml.scn[row], commit_scn, xid,
                     dml.time[row], big)  # fmt: skip
            at += _FRAME + _HEAD
            out[at] = name
            at = copy_bytes(out, at + 1, column_data[column], _NAME, _NAME + name)
            put16(out, at, int(column_chunked[column]), big)
            put16(out, at + 2, flags, big)
            put64(out, at + 4, size, big)
            at += 12
            while size > 0:
                count = min(dml.values.length[part] - within, size)
                if count <= 0:
                    part, within = dml.values.next[part], 0
                    continue
                start = dml.values.offset[part] + within
                at = copy_bytes(out, at, dml.data, start, start + count)
                within += count
                size -= count
    return at


@inlined_for(_LONG)
def put16(out: Any, at: int, value: Any, big: bool) -> None:
    """Write 16 bits."""
    store(out, at, np.uint16(value), big)


@inlined_for(_LONG)
def put32(out: Any, at: int, value: Any, big: bool) -> None:
    """Write 32 bits."""
    store(out, at, np.uint32(value), big)


@inlined_for(_LONG_BITS)
def put64(out: Any, at: int, value: Any, big: bool) -> None:
    """Write 64 bits. A uint64 of 2⁶³ or more keeps its bits."""
    store(out, at, np.uint64(value), big)


@inlined_for(_HEAD_FORM)
def put_head(
    out: Any, at: int, frame: int, code: int, scn: int, commit_scn: int, xid: int, time: int,
    big: bool,
) -> None:  # fmt: skip
    """Write MessageSize, OperationCode and the 29 bytes that every element begins with."""
    put32(out, at, frame - 4, big)
    put16(out, at + 4, _DATA, big)
    out[at + _FRAME] = code
    put64(out, at + _FRAME + 1, scn, big)
    put64(out, at + _FRAME + 9, commit_scn, big)
    put64(out, at + _FRAME + 17, xid, big)
    put32(out, at + _FRAME + 25, time, big)
