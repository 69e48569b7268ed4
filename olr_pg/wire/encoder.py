"""Finished transactions as columns → their framed Data messages, compiled.

Two passes over the columns: the first measures every message and checks every index, the second
writes into an output of exactly that size. A transaction's messages are contiguous: Begin, its row
changes, Commit. The pure-Python codec of `olr_pg.wire.elements` gives the same bytes, one element
at a time (tests compare them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from olr_pg.errors import OlrPgError
from olr_pg.transactions.batch import DmlKind, Image
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.messages import AnswerCode
from olr_pg.wire.plan import ROWID_BYTES

if TYPE_CHECKING:
    from olr_pg.transactions.batch import DmlColumns, TransactionColumns
    from olr_pg.wire.plan import ElementPlan

_FRAME: Final = 6
_HEAD: Final = 29
_BEGIN_FRAME: Final = _FRAME + _HEAD + 6
_COMMIT_FRAME: Final = _FRAME + _HEAD
_SIZE_MAX: Final = (1 << 32) - 1
_COUNT_MAX: Final = 0xFFFF

_DATA: Final = int(AnswerCode.DATA)
_BEGIN: Final = int(ElementCode.BEGIN)
_COMMIT: Final = int(ElementCode.COMMIT)
_INSERT: Final = int(DmlKind.INSERT)
_DELETE: Final = int(DmlKind.DELETE)
_UPDATE: Final = int(DmlKind.UPDATE)
_BEFORE: Final = int(Image.BEFORE)
_AFTER: Final = int(Image.AFTER)

_ROWID_ALPHABET: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)

_DONE: Final = 0
_BAD_KIND: Final = 1
_BAD_TABLE: Final = 2
_BAD_IMAGE: Final = 3
_BAD_COLUMN: Final = 4
_BAD_VALUE: Final = 5
_TOO_LARGE: Final = 6
_TOO_MANY: Final = 7

_REASON: Final = {
    _BAD_KIND: (4014, "the kind of the change is not insert, update or delete"),
    _BAD_TABLE: (4014, "the table is not in the element plan"),
    _BAD_IMAGE: (4014, "its values are not before, then after image, or of the wrong image"),
    _BAD_COLUMN: (4014, "a column is not in the element plan"),
    _BAD_VALUE: (4014, "a value lies outside the data, or its parts run in a circle"),
    _TOO_LARGE: (4006, "the message is longer than 4 GiB"),
    _TOO_MANY: (4006, "an image has more than 65,535 columns"),
}


class EncodedTransactions(NamedTuple):
    """The framed messages of n transactions.

    Attributes:
        blob: every message of every transaction, contiguous.
        first: shape (n + 1); byte offset of each transaction's messages.
        messages: shape (n); number of messages of each, Begin and Commit included.
    """

    blob: npt.NDArray[np.uint8]
    first: npt.NDArray[np.int64]
    messages: npt.NDArray[np.int64]


def encode_transactions(
    transactions: TransactionColumns, dml: DmlColumns, plan: ElementPlan, big_endian: bool
) -> EncodedTransactions:
    """The framed Data messages of `transactions`, with the commit SCN filled in.

    Args:
        transactions: n transactions in commit order.
        dml: their row changes; `dml.table` and `dml.entry_column` number as `plan` does.
        plan: of the same tables as the row plan that `dml` was made with.
        big_endian: byte order of the output.

    Raises:
        OlrPgError: 4014 the columns contradict themselves; 4006 a message over 4 GiB or an image
            of more than 65,535 columns. Both with the row change's position.
    """
    sizes = np.empty(dml.kind.size, np.int64)
    before = np.empty(dml.kind.size, np.int64)
    status, row = measure_changes(dml, plan.table_first, plan.table_column, plan.column_first,
                                  sizes, before)  # fmt: skip
    if status != _DONE:
        raise _refused(status, row, dml)
    count = transactions.xid.size
    first = np.empty(count + 1, np.int64)
    lay_out(transactions.dml_first, sizes, first)
    blob = np.empty(int(first[-1]), np.uint8)
    tables = plan.table_big if big_endian else plan.table_little
    columns = plan.column_big if big_endian else plan.column_little
    write_transactions(transactions, dml, plan.table_first, tables, plan.table_column,
                       plan.column_first, columns, sizes, before, first, big_endian,
                       blob)  # fmt: skip
    return EncodedTransactions(blob, first, np.diff(transactions.dml_first) + 2)


@njit(cache=True, nogil=True)
def measure_changes(
    dml: Any, table_first: Any, table_column: Any, column_first: Any, sizes: Any, before: Any
) -> tuple[int, int]:
    """Fill the frame size and the number of before-image columns of every change.

    Returns:
        (status, row change): 0 and the number of changes, or the first one that is refused.
    """
    for row in range(dml.kind.size):
        kind, table = int(dml.kind[row]), int(dml.table[row])
        if kind != _INSERT and kind != _DELETE and kind != _UPDATE:
            return _BAD_KIND, row
        if table < 0 or table >= table_first.size - 1:
            return _BAD_TABLE, row
        begin, end = dml.entry_first[row], dml.entry_first[row + 1]
        if begin < 0 or end < begin or end > dml.entry_column.size:
            return _BAD_VALUE, row
        base, width = table_column[table], table_column[table + 1] - table_column[table]
        old = 0
        size = _FRAME + _HEAD + table_first[table + 1] - table_first[table] + ROWID_BYTES + 2
        for entry in range(begin, end):
            column = dml.entry_column[entry]
            if column < 0 or column >= width:
                return _BAD_COLUMN, row
            if dml.entry_image[entry] == _BEFORE:
                if old != entry - begin:
                    return _BAD_IMAGE, row
                old += 1
            elif dml.entry_image[entry] != _AFTER:
                return _BAD_IMAGE, row
            length = measure_value(dml, entry)
            if length < 0:
                return _BAD_VALUE, row
            size += column_first[base + column + 1] - column_first[base + column] + length
        if (kind == _INSERT and old > 0) or (kind == _DELETE and old < end - begin):
            return _BAD_IMAGE, row
        if old > _COUNT_MAX or end - begin - old > _COUNT_MAX:
            return _TOO_MANY, row
        if kind == _UPDATE:
            size += 2
        if size - 4 > _SIZE_MAX:
            return _TOO_LARGE, row
        sizes[row] = size
        before[row] = old
    return _DONE, dml.kind.size


@njit(cache=True, nogil=True)
def measure_value(dml: Any, entry: int) -> int:
    """Bytes of a value over all its parts (NULL: 0); −1 where a part is out of bounds."""
    size, parts = 0, 0
    while entry >= 0:
        parts += 1
        if entry >= dml.value_length.size or parts > dml.value_length.size:
            return -1
        length, offset = dml.value_length[entry], dml.value_offset[entry]
        if length > 0:
            if offset < 0 or offset > dml.data.size - length:
                return -1
            size += length
        entry = dml.value_next[entry]
    return size


@njit(cache=True, nogil=True)
def lay_out(dml_first: Any, sizes: Any, first: Any) -> None:
    """Fill `first` with the byte offset of each transaction, and the end."""
    at = 0
    for number in range(first.size - 1):
        first[number] = at
        at += _BEGIN_FRAME + _COMMIT_FRAME
        for row in range(dml_first[number], dml_first[number + 1]):
            at += sizes[row]
    first[first.size - 1] = at


@njit(cache=True, nogil=True)
def write_transactions(
    transactions: Any, dml: Any, table_first: Any, table_data: Any, table_column: Any,
    column_first: Any, column_data: Any, sizes: Any, before: Any, first: Any, big: bool, out: Any,
) -> None:  # fmt: skip
    """Write every transaction at its place in `out`; the measuring pass has checked all indexes."""
    for number in range(transactions.xid.size):
        xid, commit_scn = transactions.xid[number], transactions.commit_scn[number]
        at = first[number]
        put_head(out, at, _BEGIN_FRAME, _BEGIN, transactions.begin_scn[number], commit_scn, xid,
                 transactions.begin_time[number], big)  # fmt: skip
        put16(out, at + _FRAME + _HEAD, transactions.serial[number], big)
        put32(out, at + _FRAME + _HEAD + 2, transactions.session[number], big)
        at += _BEGIN_FRAME
        for row in range(transactions.dml_first[number], transactions.dml_first[number + 1]):
            put_head(out, at, sizes[row], dml.kind[row], dml.scn[row], commit_scn, xid,
                     dml.time[row], big)  # fmt: skip
            table = dml.table[row]
            start = at + _FRAME + _HEAD
            start = put_bytes(out, start, table_data, table_first[table], table_first[table + 1])
            put_rowid(out, start, dml.dataobj[row], dml.bdba[row], dml.slot[row])
            write_images(dml, row, before[row], table_column[table], column_first, column_data,
                         big, out, start + ROWID_BYTES)  # fmt: skip
            at += sizes[row]
        put_head(out, at, _COMMIT_FRAME, _COMMIT, commit_scn, commit_scn, xid,
                 transactions.commit_time[number], big)  # fmt: skip


@njit(cache=True, nogil=True)
def write_images(
    dml: Any, row: int, old: int, base: int, column_first: Any, column_data: Any, big: bool,
    out: Any, at: int,
) -> int:  # fmt: skip
    """Write BeforeData and AfterData of a change; returns the end."""
    begin, end = dml.entry_first[row], dml.entry_first[row + 1]
    if dml.kind[row] != _INSERT:
        put16(out, at, old, big)
        at = write_columns(dml, begin, begin + old, base, column_first, column_data, big, out,
                           at + 2)  # fmt: skip
    if dml.kind[row] != _DELETE:
        put16(out, at, end - begin - old, big)
        at = write_columns(dml, begin + old, end, base, column_first, column_data, big, out,
                           at + 2)  # fmt: skip
    return at


@njit(cache=True, nogil=True)
def write_columns(
    dml: Any, begin: int, end: int, base: int, column_first: Any, column_data: Any, big: bool,
    out: Any, at: int,
) -> int:  # fmt: skip
    """Write the ColumnValues of entries [begin, end); returns the end."""
    for entry in range(begin, end):
        column = base + dml.entry_column[entry]
        header = at
        at = put_bytes(out, at, column_data, column_first[column], column_first[column + 1])
        value = at
        part = entry
        while part >= 0:
            offset, length = dml.value_offset[part], dml.value_length[part]
            if length > 0:
                at = put_bytes(out, at, dml.data, offset, offset + length)
            part = dml.value_next[part]
        put64(out, header + 1, at - value, big)
    return at


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def put_rowid(out: Any, at: int, dataobj: Any, dba: Any, slot: Any) -> None:
    """Write the 18 characters of `olr_pg.scalars.format_rowid`."""
    put_digits(out, at, int(dataobj), 6)
    put_digits(out, at + 6, int(dba) >> 22, 3)
    put_digits(out, at + 9, int(dba) & 0x3FFFFF, 6)
    put_digits(out, at + 15, int(slot), 3)


@njit(cache=True, nogil=True)
def put_digits(out: Any, at: int, value: int, count: int) -> None:
    """Write `value` in `count` base-64 digits of the ROWID alphabet."""
    for i in range(count):
        out[at + i] = _ROWID_ALPHABET[value >> 6 * (count - 1 - i) & 63]


@njit(cache=True, nogil=True)
def put_bytes(out: Any, at: int, data: Any, begin: int, end: int) -> int:
    """Copy ``data[begin:end]`` to `at`; returns where it ends."""
    # unsigned indices: Numba leaves out the test for negative ones, and the loop vectorises
    target, source = np.uint64(at), np.uint64(begin)
    for i in range(np.uint64(end - begin)):
        out[target + i] = data[source + i]
    return at + end - begin


@njit(cache=True, nogil=True)
def put16(out: Any, at: int, value: Any, big: bool) -> None:
    """Write 16 bits."""
    number = int(value)
    if big:
        out[at], out[at + 1] = number >> 8 & 255, number & 255
    else:
        out[at], out[at + 1] = number & 255, number >> 8 & 255


@njit(cache=True, nogil=True)
def put32(out: Any, at: int, value: Any, big: bool) -> None:
    """Write 32 bits."""
    number = int(value)
    if big:
        for i in range(4):
            out[at + i] = number >> 8 * (3 - i) & 255
    else:
        for i in range(4):
            out[at + i] = number >> 8 * i & 255


@njit(cache=True, nogil=True)
def put64(out: Any, at: int, value: Any, big: bool) -> None:
    """Write 64 bits; a value of uint64 past 2⁶³ keeps its bits."""
    number = np.uint64(value)
    target = np.uint64(at)
    if big:
        for i in range(np.uint64(8)):
            out[target + i] = number >> np.uint64(56) - np.uint64(8) * i & np.uint64(255)
    else:
        for i in range(np.uint64(8)):
            out[target + i] = number >> np.uint64(8) * i & np.uint64(255)


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
