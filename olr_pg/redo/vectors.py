"""Finds the change vectors of records, and reads their headers and field lists.

Facts: redo-format §3; checked on real logs of 19c and 23ai and real records of 11.2.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.errors import Code
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.blocks import RecordColumns
from olr_pg.redo.column_tables import ColumnTable, head, row_type
from olr_pg.redo.format.file_fields import (
    LWN_RECORD_HEADER,
    RECORD_HEADER,
    UNDO_HEADER_CLS,
    VECTOR_CLS,
    VECTOR_CODE,
    VECTOR_CON_ID,
    VECTOR_DBA,
    VECTOR_ENCRYPTED,
    VECTOR_LONG_HEADER,
    VECTOR_OBJ_HIGH,
    VECTOR_OBJ_LOW,
    VECTOR_TYP,
    VLD_LWN,
)
from olr_pg.redo.integers import u16, u32

if TYPE_CHECKING:
    from olr_pg.redo.window import Window

MAX_FIELDS: Final = 32_767
"""Maximum number of fields of a vector. The 16-bit size of the field list allows no more."""


class VectorStatus(IntEnum):
    """The results of a kernel that finds vectors."""

    OK = 0
    HEADER = 1
    FIELD_LIST = 2
    FIELDS = 3
    CAPACITY = 4


VECTOR_FAULTS: Final = {
    VectorStatus.HEADER: "a change vector's header does not fit its record",
    VectorStatus.FIELD_LIST: "a change vector's field list does not fit its record",
    VectorStatus.FIELDS: "a change vector's fields do not fit its record",
}


class VectorColumns(NamedTuple):
    """The change vectors of a window in processing order, one per row.

    Attributes:
        position: position of the vector header in the window's payload.
        end: the position of the next vector.
        record: row of its record in `RecordColumns`.
        opcode: ``layer << 8 | code``.
    """

    position: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    record: npt.NDArray[np.int64]
    opcode: npt.NDArray[np.uint16]


VECTOR: Final = row_type(
    [(name, "u2" if name == "opcode" else "i8") for name in VectorColumns._fields]
)
"""`VectorColumns` as one table."""


@inlined
def vector_end(payload: Any, at: int, header: int, big: bool) -> int:
    """Return the position after the last field of the vector at `at`. The field list of the vector
    must be complete.
    """
    listed = u16(payload, at + header, big)
    end = at + header + ((listed + 2) & ~3)
    for field in range(at + header + 2, at + header + listed, 2):
        end += (u16(payload, field, big) + 3) & ~3
    return end


@inlined
def scan_record(
    payload: Any, records: RecordColumns | ColumnTable, record: int, layout: tuple[int, bool],
    count: int, vectors: VectorColumns | ColumnTable,
) -> tuple[int, int, int]:  # fmt: skip
    """Find the vectors of one record; return (status, payload position, end of the filled rows of
    `vectors`).

    Args:
        record: row of the record in `records`.
        layout: (number of bytes of a vector header, True if the log is big-endian).
        count: the first row of `vectors` to fill. If the status is CAPACITY, `vectors` is too
            short.
        vectors: the table to fill.
    """
    header, big = layout
    start = records.position[record]
    stop = start + records.length[record]
    at = start + (LWN_RECORD_HEADER if records.vld[record] & VLD_LWN else RECORD_HEADER)
    while at < stop:
        if stop - at < header + 4:
            return 1, at, count
        listed = u16(payload, at + header, big)
        if listed < 2 or listed & 1 or at + header + ((listed + 2) & ~3) > stop:
            return 2, at, count
        end = vector_end(payload, at, header, big)
        if end > stop:
            return 3, at, count
        if count == vectors.position.size:
            return 4, at, count
        vectors.position[count] = at
        vectors.end[count] = end
        vectors.record[count] = record
        vectors.opcode[count] = int(payload[at]) << 8 | int(payload[at + VECTOR_CODE])
        count += 1
        at = end
    return 0, at, count


@kernel
def scan_vectors(
    payload: Any,
    records: RecordColumns,
    order: Any,
    header: int,
    big: bool,
    vectors: VectorColumns,
) -> tuple[int, int, int]:
    """Find the vectors of the records in `order`; return (status, payload position, number of
    vectors).

    The function fills `vectors`. If the status is CAPACITY, `vectors` is too short.
    """
    count = 0
    for i in range(order.size):
        status, at, count = scan_record(payload, records, order[i], (header, big), count, vectors)
        if status != 0:
            return status, at, count
    return 0, 0, count


@inlined
def read_fields(
    payload: Any, position: int, header: int, big: bool, offset: Any, length: Any
) -> int:
    """Store position and length of each field k (from 1) in `offset[k]` and `length[k]`; return the
    number of fields.
    """
    listed = u16(payload, position + header, big)
    data = position + header + ((listed + 2) & ~3)
    fields = (listed - 2) >> 1
    for k in range(1, fields + 1):
        size = u16(payload, position + header + 2 * k, big)
        offset[k] = data
        length[k] = size
        data += (size + 3) & ~3
    return fields


@inlined
def object_of(payload: Any, position: int, big: bool) -> int:
    """Return the data object id of the changed segment, which is OBJ in a vector header."""
    return u16(payload, position + VECTOR_OBJ_HIGH, big) << 16 | u16(
        payload, position + VECTOR_OBJ_LOW, big
    )


@inlined
def container_of(payload: Any, position: int, header: int, big: bool) -> int:
    """Return the container id in a vector header, 0 before 12.1."""
    return u16(payload, position + VECTOR_CON_ID, big) if header == VECTOR_LONG_HEADER else 0


@inlined
def undo_segment_of(payload: Any, position: int, big: bool) -> int:
    """Return the number of the undo segment whose header or block a vector changes, from the
    block's class (redo-format §3.1).
    """
    return (u16(payload, position + VECTOR_CLS, big) - UNDO_HEADER_CLS) >> 1


@inlined
def is_encrypted(payload: Any, position: int) -> bool:
    """Return whether the fields of a vector are encrypted."""
    return bool(payload[position + VECTOR_TYP] & VECTOR_ENCRYPTED)


@inlined
def dba_of(payload: Any, position: int, big: bool) -> int:
    """Return the data block address in a vector header."""
    return u32(payload, position + VECTOR_DBA, big)


@inlined
def field_at(payload: Any, at: int, header: int, number: int, big: bool) -> tuple[int, int]:
    """Return (position, length) of a field of the vector at `at`; the length is −1 if it lacks the
    field.

    Args:
        header: number of bytes of a vector header.
        number: number of the field, from 1.
    """
    listed = u16(payload, at + header, big)
    data = at + header + ((listed + 2) & ~3)
    if number > (listed - 2) >> 1:
        return data, -1
    for k in range(1, number):
        data += (u16(payload, at + header + 2 * k, big) + 3) & ~3
    return data, u16(payload, at + header + 2 * number, big)


def vectors_of(window: Window) -> VectorColumns:
    """Return the change vectors of a window's valid records.

    Raises:
        OlrPgError: 2006 with the position.
    """
    layout = window.log.header.layout
    capacity = 64 + window.order.size * 3
    while True:
        vectors = VectorColumns(
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.uint16),
        )
        status, position, count = scan_vectors(
            window.payload,
            window.records,
            window.order,
            layout.vector_header,
            layout.big_endian,
            vectors,
        )
        if status == VectorStatus.OK:
            return head(vectors, count)
        if status != VectorStatus.CAPACITY:
            raise window.error(Code.RECORD_MALFORMED, VECTOR_FAULTS[VectorStatus(status)], position)
        capacity *= 3
