"""Single records and vectors as Python values, for reading them one by one: dump and incidents.

Decoding never goes through here; it reads windows by kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from olr_pg.errors import OlrPgError
from olr_pg.redo.header import read_scn
from olr_pg.redo.vectors import vectors_of
from olr_pg.scalars import SCN_NONE, pack_xid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.redo.vectors import VectorColumns
    from olr_pg.redo.window import Window

UNDO: Final = 0x0501
BEGIN: Final = 0x0502
END: Final = 0x0504
UNDONE: Final = (0x0506, 0x050B)
SESSION: Final = (0x0513, 0x0514)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a vector; numbers count from 1.

    Attributes:
        data: bytes of the record.
        offset, length: of field k at index k − 1.
        big: byte order of the file.
    """

    data: bytes
    offset: tuple[int, ...]
    length: tuple[int, ...]
    big: bool

    @property
    def count(self) -> int:
        """Count the fields."""
        return len(self.length)

    def size(self, number: int) -> int:
        """Bytes of a field; 0 where the vector has no such field."""
        return self.length[number - 1] if 1 <= number <= len(self.length) else 0

    def bytes(self, number: int) -> bytes:
        """Return a field; empty where the vector has no such field."""
        size = self.size(number)
        if size == 0:
            return b""
        start = self.offset[number - 1]
        return self.data[start : start + size]

    def number(self, field: int, at: int, width: int) -> int:
        """Read an unsigned integer of `width` bytes at `at` of a field; 0 where it does not fit."""
        data = self.bytes(field)[at : at + width]
        if len(data) < width:
            return 0
        return int.from_bytes(data, "big" if self.big else "little")

    def numbers(self, field: int) -> list[int]:
        """Read a field as unsigned 16-bit integers."""
        return u16_list(self.bytes(field), big=self.big)


class Vector(NamedTuple):
    """A change vector (redo-format §3.1).

    Attributes:
        start, end: where it stands in the record.
        opcode: ``layer << 8 | code``.
        scn: of the block before the change, `SCN_NONE` for none.
        con_id: 0 before 12.1.
    """

    start: int
    end: int
    opcode: int
    cls: int
    afn: int
    obj: int
    dba: int
    scn: int
    seq: int
    typ: int
    con_id: int
    flg: int
    fields: Fields

    @property
    def name(self) -> str:
        """The opcode as ``layer.code``."""
        return opcode_name(self.opcode)

    @property
    def undo_segment(self) -> int:
        """The undo segment of a vector on an undo header or block (redo-format §3.1)."""
        return max(0, self.cls - 15) >> 1


class Record(NamedTuple):
    """A redo record with its vectors.

    Attributes:
        block, offset: where it begins in its log.
        scn, subscn, vld: of its header.
        time: redo time of its LWN.
        data: the bytes of the record, header included.
        vectors: none for void records and malformed ones.
        fault: why its vectors cannot be read.
    """

    block: int
    offset: int
    scn: int
    subscn: int
    vld: int
    time: int
    data: bytes
    vectors: tuple[Vector, ...]
    fault: OlrPgError | None = None


def u16_list(data: bytes, *, big: bool) -> list[int]:
    """Bytes as unsigned 16-bit integers; an odd last byte is left out."""
    order: Literal["big", "little"] = "big" if big else "little"
    return [int.from_bytes(data[k : k + 2], order) for k in range(0, len(data) - 1, 2)]


def opcode_name(opcode: int) -> str:
    """``11.2`` for 0x0B02."""
    return f"{opcode >> 8}.{opcode & 255}"


def records_of(window: Window) -> Iterator[Record]:
    """Every record of a window, void ones too, by LWN group, SCN, SUBSCN and position."""
    columns = window.records
    group = window.lwns.group[columns.lwn]
    order = np.lexsort((columns.position, columns.subscn, columns.scn, group))
    try:
        vectors = vectors_of(window)
    except OlrPgError:
        # Some record is malformed: read them one by one, so that all the others are shown.
        valid = set(window.order.tolist())
        for row in order.tolist():
            yield _alone(window, row, valid=row in valid)
        return
    spans = _spans(vectors)
    for row in order.tolist():
        low, high = spans.get(row, (0, 0))
        yield _record(window, row, vectors, low, high)


def _spans(vectors: VectorColumns) -> dict[int, tuple[int, int]]:
    """Find where each record's vectors stand: a record's vectors follow each other."""
    record = vectors.record
    if record.size == 0:
        return {}
    first = np.flatnonzero(np.concatenate([[True], np.diff(record) != 0]))
    last = np.append(first[1:], record.size)
    return {
        row: (low, high)
        for row, low, high in zip(
            record[first].tolist(), first.tolist(), last.tolist(), strict=True
        )
    }


def _alone(window: Window, row: int, *, valid: bool) -> Record:
    order = np.array([row] if valid else [], np.int64)
    try:
        vectors = vectors_of(window._replace(order=order))
    except OlrPgError as error:
        nothing = vectors_of(window._replace(order=order[:0]))
        return _record(window, row, nothing, 0, 0)._replace(fault=error)
    return _record(window, row, vectors, 0, vectors.position.size)


def _record(window: Window, row: int, vectors: VectorColumns, low: int, high: int) -> Record:
    columns = window.records
    start = int(columns.position[row])
    data = window.payload[start : start + int(columns.length[row])].tobytes()
    block, offset = window.address(start)
    layout = window.log.header.layout
    return Record(
        block,
        offset,
        int(columns.scn[row]),
        int(columns.subscn[row]),
        int(columns.vld[row]),
        int(window.lwns.time[columns.lwn[row]]),
        data,
        tuple(
            read_vector(
                data,
                int(vectors.position[k]) - start,
                int(vectors.end[k]) - start,
                layout.vector_header,
                big=layout.big_endian,
            )
            for k in range(low, high)
        ),
    )


def read_vector(data: bytes, start: int, end: int, header: int, *, big: bool) -> Vector:
    """Read the vector at [start, end) of a record; `vectors_of` has checked its list of fields."""

    def number(at: int, width: int) -> int:
        return int.from_bytes(data[start + at : start + at + width], "big" if big else "little")

    listed = number(header, 2)
    at = start + header + ((listed + 2) & ~3)
    offsets, lengths = [], []
    for k in range(1, ((listed - 2) >> 1) + 1):
        size = number(header + 2 * k, 2)
        offsets.append(at)
        lengths.append(size)
        at += (size + 3) & ~3
    long = header == 32
    return Vector(
        start,
        end,
        data[start] << 8 | data[start + 1],
        number(2, 2),
        number(4, 2),
        number(6, 2) << 16 | number(22, 2),
        number(8, 4),
        read_scn(data, start + 12, big_endian=big),
        data[start + 20],
        data[start + 21],
        number(24, 2) if long else 0,
        number(28, 2) if long else 0,
        Fields(data, tuple(offsets), tuple(lengths), big),
    )


_XID_AT: Final = {
    0x0517: (1, 0),
    0x1801: (1, 4),
    0x1804: (1, 4),
    0x1806: (1, 8),
    0x1808: (3, 0),
}
"""(field, offset) of the XID in vectors that bear it whole (redo-format §4.7, §8)."""

_ROW_REDO: Final = (10, 11)


def vector_xids(vector: Vector) -> set[int]:
    """List the transactions a vector names; sequence 0 where only the slot is told (5.6/5.11)."""
    fields, opcode = vector.fields, vector.opcode
    if opcode == UNDO:
        return _xid_at(fields, 1, 8)
    if opcode in (BEGIN, END):
        if fields.size(1) < 8:
            return set()
        return {pack_xid(vector.undo_segment, fields.number(1, 0, 2), fields.number(1, 4, 4))}
    if opcode in UNDONE:
        if fields.size(1) < 24:
            return set()
        return {pack_xid(vector.undo_segment, fields.bytes(1)[18], 0)}
    if opcode in _XID_AT:
        return _xid_at(fields, *_XID_AT[opcode])
    if opcode == 0x0B11:
        return _xid_at(fields, 3, {1: 4, 3: 0, 4: 8}.get(fields.number(2, 0, 1), 1 << 16))
    if opcode >> 8 == 26:
        return _lob_xids(fields)
    ktb = fields.bytes(1)
    if opcode >> 8 in _ROW_REDO and len(ktb) >= 2 and ktb[0] & 15 == 1:
        return _xid_at(fields, 1, 8 if ktb[1] & 8 else 4)
    return set()


def vector_objects(vector: Vector) -> set[int]:
    """Object numbers and data object ids that a vector names."""
    found = set()
    if vector.typ & 0x7F != 6 and vector.obj != 0xFFFFFFFF:
        found.add(vector.obj)
    field = 2 if vector.opcode == UNDO else 1 if vector.opcode in UNDONE else 0
    if field and vector.fields.size(field) >= 8:
        found |= {vector.fields.number(field, 0, 4), vector.fields.number(field, 4, 4)}
    if vector.opcode == 0x1801 and vector.fields.size(12) >= 4:
        found.add(vector.fields.number(12, 0, 4))
    if vector.opcode == 0x0B11:
        at = {1: 36, 3: 8, 4: 0}.get(vector.fields.number(2, 0, 1))
        if at is not None and vector.fields.size(3) >= at + 4:
            found.add(vector.fields.number(3, at, 4))
    return found


def same_transaction(one: int, other: int) -> bool:
    """Tell whether two XIDs may be one: sequence and high byte of the slot are not always told."""
    if one & 0xFFFFFFFF and other & 0xFFFFFFFF:
        return one == other
    return one >> 48 == other >> 48 and (one ^ other) >> 32 & 0xFF == 0


def _xid_at(fields: Fields, field: int, at: int) -> set[int]:
    if fields.size(field) < at + 8:
        return set()
    return {
        pack_xid(
            fields.number(field, at, 2),
            fields.number(field, at + 2, 2),
            fields.number(field, at + 4, 4),
        )
    }


def _lob_xids(fields: Fields) -> set[int]:
    found: set[int] = set()
    for field in range(2, fields.count + 1):
        at = {0x09: 4, 0x0B: 16}.get(fields.number(field, 0, 1))
        if at is not None and fields.size(field) >= 24:
            found |= _xid_at(fields, field, at)
    return found


def scn_text(scn: int) -> str:
    """Write an SCN in hexadecimal, ``none`` where there is none."""
    return "none" if scn == SCN_NONE else f"0x{scn:016x}"
