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

from olr_pg.errors import OlrPgError
from olr_pg.kernel_bytes import copy_bytes, copy_forward
from olr_pg.kernels import inlined, kernel, part
from olr_pg.transactions.batch import DmlKind, Image
from olr_pg.transactions.storage import IN_MEMORY
from olr_pg.wire.chunks import CHUNK_BYTES, measure_chunks, write_chunks
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.plan import ROWID_BYTES
from olr_pg.wire.put import put16, put32, put64, put_head

if TYPE_CHECKING:
    from olr_pg.transactions.batch import DmlColumns, TransactionColumns
    from olr_pg.transactions.storage import Allocate
    from olr_pg.wire.plan import ElementPlan

_FRAME: Final = 6
_ROWID_SIZE: Final = 6
_IS_CHUNKED: Final = 36
_HEAD: Final = 29
_BEGIN_FRAME: Final = _FRAME + _HEAD + 6
_COMMIT_FRAME: Final = _FRAME + _HEAD
_SIZE_MAX: Final = (1 << 32) - 1
_COUNT_MAX: Final = 0xFFFF

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
    transactions: TransactionColumns,
    dml: DmlColumns,
    plan: ElementPlan,
    big_endian: bool,
    chunk_bytes: int = CHUNK_BYTES,
    allocate: Allocate = IN_MEMORY.allocate,
) -> EncodedTransactions:
    """The framed Data messages of `transactions`, with the commit SCN filled in.

    Args:
        transactions: n transactions in commit order.
        dml: their row changes; `dml.table` and `dml.values.column` number as `plan` does.
        plan: of the same tables as the row plan that `dml` was made with.
        big_endian: byte order of the output.
        chunk_bytes: bytes of a LOB value in one Chunk element, 1 or more.
        allocate: gives the room for the messages.

    Raises:
        OlrPgError: 4014 the columns contradict themselves; 4006 a message over 4 GiB or an image
            of more than 65,535 columns. Both with the row change's position.
    """
    sizes = np.empty(dml.kind.size, np.int64)
    before = np.empty(dml.kind.size, np.int64)
    status, row = measure_changes(dml, plan.table_first, plan.table_column, plan.column_first,
                                  plan.column_chunked, sizes, before)  # fmt: skip
    if status != _DONE:
        raise _refused(status, row, dml)
    chunk_sizes, chunk_counts = np.zeros((2, dml.kind.size), np.int64)
    if plan.column_chunked.any():
        measure_chunks(dml, plan.table_column, plan.column_first, plan.column_chunked, chunk_bytes,
                       chunk_sizes, chunk_counts)  # fmt: skip
    count = transactions.xid.size
    first = np.empty(count + 1, np.int64)
    lay_out(transactions.dml_first, sizes + chunk_sizes, first)
    blob = allocate(int(first[-1]))
    tables = plan.table_big if big_endian else plan.table_little
    columns = plan.column_big if big_endian else plan.column_little
    write_transactions(transactions, dml, plan.table_first, tables, plan.table_column,
                       plan.column_first, columns, plan.column_chunked, sizes, before,
                       chunk_sizes, chunk_bytes, first, big_endian, blob)  # fmt: skip
    running = np.concatenate([[0], np.cumsum(chunk_counts)])
    chunks = np.diff(running[transactions.dml_first])
    return EncodedTransactions(blob, first, np.diff(transactions.dml_first) + 2 + chunks)


@kernel
def measure_changes(
    dml: Any, table_first: Any, table_column: Any, column_first: Any, column_chunked: Any,
    sizes: Any, before: Any,
) -> tuple[int, int]:  # fmt: skip
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
        if begin < 0 or end < begin or end > dml.values.column.size:
            return _BAD_VALUE, row
        base, width = table_column[table], table_column[table + 1] - table_column[table]
        old = _count_before(dml, begin, end)
        status, size = _measure_columns(
            dml, begin, end, begin + old, base, width, column_first, column_chunked
        )
        if status != _DONE:
            return status, row
        if (kind == _INSERT and old > 0) or (kind == _DELETE and old < end - begin):
            return _BAD_IMAGE, row
        if old > _COUNT_MAX or end - begin - old > _COUNT_MAX:
            return _TOO_MANY, row
        size += _FRAME + _HEAD + table_first[table + 1] - table_first[table] + 2
        size += ROWID_BYTES if dml.dataobj[row] != 0 else 0
        if kind == _UPDATE:
            size += 2
        if size - 4 > _SIZE_MAX:
            return _TOO_LARGE, row
        sizes[row] = size
        before[row] = old
    return _DONE, dml.kind.size


@inlined
def _count_before(dml: Any, begin: int, end: int) -> int:
    old = 0
    while begin + old < end and dml.values.image[begin + old] == _BEFORE:
        old += 1
    return old


@inlined
def _measure_columns(
    dml: Any, begin: int, end: int, middle: int, base: int, width: int, column_first: Any,
    column_chunked: Any,
) -> tuple[int, int]:  # fmt: skip
    """(status, bytes) of entries [begin, end), from `middle` on of the after image."""
    size = 0
    # Unsigned indices: Numba leaves out the test for negative ones.
    for entry in range(np.uint64(begin), np.uint64(end)):
        value = dml.values[entry]
        if value.column >= width:
            return _BAD_COLUMN, 0
        if value.image != (_BEFORE if entry < np.uint64(middle) else _AFTER):
            return _BAD_IMAGE, 0
        length = max(value.length, 0)
        if length > 0 and (value.offset < 0 or value.offset > dml.data.size - length):
            return _BAD_VALUE, 0
        if value.next >= 0:
            further = measure_value(dml, value.next)
            if further < 0:
                return _BAD_VALUE, 0
            length += further
        column = np.uint64(base + value.column)
        size += column_first[column + np.uint64(1)] - column_first[column]
        size += 0 if column_chunked[column] else length
    return _DONE, size


@part
def measure_value(dml: Any, entry: int) -> int:
    """Bytes of a value over all its parts (NULL: 0); −1 where a part is out of bounds."""
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


@kernel
def lay_out(dml_first: Any, sizes: Any, first: Any) -> None:
    """Fill `first` with the byte offset of each transaction, and the end."""
    at = 0
    for number in range(first.size - 1):
        first[number] = at
        at += _BEGIN_FRAME + _COMMIT_FRAME
        for row in range(dml_first[number], dml_first[number + 1]):
            at += sizes[row]
    first[first.size - 1] = at


@kernel
def write_transactions(
    transactions: Any, dml: Any, table_first: Any, table_data: Any, table_column: Any,
    column_first: Any, column_data: Any, column_chunked: Any, sizes: Any, before: Any,
    chunk_sizes: Any, chunk_bytes: int, first: Any, big: bool, out: Any,
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
            names = at + _FRAME + _HEAD
            start = copy_forward(out, names, table_data, table_first[table], table_first[table + 1])
            if dml.dataobj[row] == 0:
                out[names + _ROWID_SIZE] = 0
            else:
                put_rowid(out, start, dml.dataobj[row], dml.bdba[row], dml.slot[row])
                start += ROWID_BYTES
            write_images(dml, row, before[row], table_column[table], column_first, column_data,
                         column_chunked, big, out, start)  # fmt: skip
            at += sizes[row]
            if chunk_sizes[row] > 0:
                at = write_chunks(dml, row, commit_scn, xid, table_column[table], column_first,
                                  column_data, column_chunked, chunk_bytes, big, out,
                                  at)  # fmt: skip
        put_head(out, at, _COMMIT_FRAME, _COMMIT, commit_scn, commit_scn, xid,
                 transactions.commit_time[number], big)  # fmt: skip


@inlined
def write_images(
    dml: Any, row: int, old: int, base: int, column_first: Any, column_data: Any,
    column_chunked: Any, big: bool, out: Any, at: int,
) -> int:  # fmt: skip
    """Write BeforeData and AfterData of a change; returns the end."""
    begin, end = dml.entry_first[row], dml.entry_first[row + 1]
    if dml.kind[row] != _INSERT:
        put16(out, at, old, big)
        at = write_columns(dml, begin, begin + old, base, column_first, column_data,
                           column_chunked, big, out, at + 2)  # fmt: skip
    if dml.kind[row] != _DELETE:
        put16(out, at, end - begin - old, big)
        at = write_columns(dml, begin + old, end, base, column_first, column_data,
                           column_chunked, big, out, at + 2)  # fmt: skip
    return at


@inlined
def write_columns(
    dml: Any, begin: int, end: int, base: int, column_first: Any, column_data: Any,
    column_chunked: Any, big: bool, out: Any, at: int,
) -> int:  # fmt: skip
    """Write the ColumnValues of entries [begin, end); returns the end."""
    for entry in range(np.uint64(begin), np.uint64(end)):
        value = dml.values[entry]
        column = np.uint64(base + value.column)
        header = at
        at = copy_forward(
            out, at, column_data, column_first[column], column_first[column + np.uint64(1)]
        )
        if column_chunked[column]:
            out[header + _IS_CHUNKED] = 1 if value.length >= 0 else 0
            continue
        start = at
        if value.length > 0:
            at = copy_forward(out, at, dml.data, value.offset, value.offset + value.length)
        if value.next >= 0:
            at = write_parts(dml, value.next, out, at)
        put64(out, header + 1, at - start, big)
    return at


@part
def write_parts(dml: Any, entry: int, out: Any, at: int) -> int:
    """Write the further parts of a value from `entry` on; returns the end."""
    while entry >= 0:
        offset, length = dml.values.offset[entry], dml.values.length[entry]
        if length > 0:
            at = copy_bytes(out, at, dml.data, offset, offset + length)
        entry = dml.values.next[entry]
    return at


@inlined
def put_rowid(out: Any, at: int, dataobj: Any, dba: Any, slot: Any) -> None:
    """Write the 18 characters of `olr_pg.scalars.format_rowid`."""
    put_digits(out, at, np.int64(dataobj), 6)
    put_digits(out, at + 6, np.int64(dba) >> 22, 3)
    put_digits(out, at + 9, np.int64(dba) & 0x3FFFFF, 6)
    put_digits(out, at + 15, np.int64(slot), 3)


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
