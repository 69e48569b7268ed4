"""Reads single records and vectors as Python values, for dump and incidents.

Decoding does not use this module: its kernels read whole windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from olr_pg.errors import OlrPgError
from olr_pg.redo.format.file_fields import (
    NO_OBJECT,
    UNDO_HEADER_CLS,
    VECTOR_AFN,
    VECTOR_CLS,
    VECTOR_CODE,
    VECTOR_CON_ID,
    VECTOR_DBA,
    VECTOR_FLG,
    VECTOR_KIND,
    VECTOR_LONG_HEADER,
    VECTOR_NO_BLOCK,
    VECTOR_OBJ_HIGH,
    VECTOR_OBJ_LOW,
    VECTOR_SCN,
    VECTOR_SEQ,
    VECTOR_TYP,
)
from olr_pg.redo.format.lob_fields import (
    KDLI_FPLOAD,
    KDLI_FPLOAD_XID,
    KDLI_SUPLOG,
    KDLI_SUPLOG_SIZE,
    KDLI_SUPLOG_XID,
    LLB,
)
from olr_pg.redo.format.opcodes import (
    LAYER_INDEX,
    LAYER_ROW,
    OP_BEGIN,
    OP_DDL,
    OP_END,
    OP_LOB_OPERATION,
    OP_UNDO,
    UNDONE,
    Layer,
    Opcode,
)
from olr_pg.redo.format.row_fields import (
    KTB_DATA,
    KTB_DATA_LONG,
    KTB_F,
    KTB_F_XID,
    KTB_LEAST,
    KTB_LONG,
    KTB_OPERATION,
    KTB_VER,
)
from olr_pg.redo.format.undo_fields import (
    DDL_OBJN,
    DDL_XID,
    DIRECT_XID_AT,
    KTUB,
    KTUB_OBJD,
    KTUB_OBJN,
    KTUB_OPC,
    KTUB_SIZE,
    KTUB_SLT,
    KTUDB_XID,
    KTUDH_LEAST,
    KTUDH_SLT,
    KTUDH_SQN,
    MARKER,
    NOTE_XID,
    XID_SIZE,
    XID_SLOT,
    XID_SQN,
    XML_XID,
)
from olr_pg.redo.header import read_scn
from olr_pg.redo.vectors import vectors_of
from olr_pg.scalars import SCN_NONE, pack_xid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.redo.vectors import VectorColumns
    from olr_pg.redo.window import Window


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a vector, numbered from 1.

    Attributes:
        data: bytes of the record.
        offset, length: position and length of field k, at index k − 1.
        big: True if the log is big-endian.
    """

    data: bytes
    offset: tuple[int, ...]
    length: tuple[int, ...]
    big: bool

    @property
    def count(self) -> int:
        """Return the number of fields."""
        return len(self.length)

    def size(self, number: int) -> int:
        """Return the size of a field in bytes, or 0 if the vector lacks it."""
        return self.length[number - 1] if 1 <= number <= len(self.length) else 0

    def bytes(self, number: int) -> bytes:
        """Return a field; empty if the vector lacks it."""
        size = self.size(number)
        if size == 0:
            return b""
        start = self.offset[number - 1]
        return self.data[start : start + size]

    def number(self, field: int, at: int, width: int) -> int:
        """Return the unsigned integer of `width` bytes at offset `at` of a field; 0 if the field is
        too short.
        """
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
        start, end: the bytes [start, end) of the record.
        opcode: ``layer << 8 | code``.
        scn: SCN of the block before the change, `SCN_NONE` if there is none.
        con_id: container; 0 before 12.1.
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
        return f"{self.opcode >> 8}.{self.opcode & 255}"

    @property
    def undo_segment(self) -> int:
        """The number of the undo segment whose header or block the vector changes (redo-format
        §3.1).
        """
        return max(0, self.cls - UNDO_HEADER_CLS) >> 1


class Record(NamedTuple):
    """A redo record with its vectors.

    Attributes:
        block, offset: its position in its log.
        scn, subscn, vld: SCN, SUBSCN and flags from its header.
        time: redo time of its LWN.
        data: the bytes of the record, including its header.
        vectors: empty for void and malformed records.
        fault: the error that prevents reading its vectors, or None.
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


def undo_of(fields: Fields) -> int:
    """Return the kind of change that an undo record undoes: `UndoOf` or another opcode; 0 if the
    record is too short.
    """
    opc = fields.bytes(2)[KTUB_OPC : KTUB.end("opc")]
    return opc[0] << 8 | opc[1] if len(opc) == 2 else 0


def u16_list(data: bytes, *, big: bool) -> list[int]:
    """Return bytes as a list of unsigned 16-bit integers. If the number of bytes is odd, the last
    byte is ignored.
    """
    order: Literal["big", "little"] = "big" if big else "little"
    return [int.from_bytes(data[k : k + 2], order) for k in range(0, len(data) - 1, 2)]


def records_of(window: Window) -> Iterator[Record]:
    """Yield every record of a window, including void records, in the order of LWN group, SCN,
    SUBSCN and position.
    """
    columns = window.records
    group = window.lwns.group[columns.lwn]
    order = np.lexsort((columns.position, columns.subscn, columns.scn, group))
    try:
        vectors = vectors_of(window)
    except OlrPgError:
        # One of the records is malformed. Read each record separately, so that the others can be
        # shown.
        valid = set(window.order.tolist())
        for row in order.tolist():
            yield _alone(window, row, valid=row in valid)
        return
    spans = _spans(vectors)
    for row in order.tolist():
        low, high = spans.get(row, (0, 0))
        yield _record(window, row, vectors, low, high)


def _spans(vectors: VectorColumns) -> dict[int, tuple[int, int]]:
    """Return, by record, the range of rows of its vectors."""
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
    """Return the vector in the bytes [start, end) of a record. The vector's list of fields must be
    valid (`vectors_of`).
    """

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
    long = header == VECTOR_LONG_HEADER
    return Vector(
        start,
        end,
        data[start] << 8 | data[start + VECTOR_CODE],
        number(VECTOR_CLS, 2),
        number(VECTOR_AFN, 2),
        number(VECTOR_OBJ_HIGH, 2) << 16 | number(VECTOR_OBJ_LOW, 2),
        number(VECTOR_DBA, 4),
        read_scn(data, start + VECTOR_SCN, big_endian=big),
        data[start + VECTOR_SEQ],
        data[start + VECTOR_TYP],
        number(VECTOR_CON_ID, 2) if long else 0,
        number(VECTOR_FLG, 2) if long else 0,
        Fields(data, tuple(offsets), tuple(lengths), big),
    )


_XID_AT: Final = {
    Opcode.UNDO: (1, KTUDB_XID),
    Opcode.TRANSACTION_NOTE: (1, NOTE_XID.at("xid")),
    Opcode.DDL: (1, DDL_XID),
    Opcode.TRANSACTION_MARKER: (1, MARKER.at("xid")),
    Opcode.DIRECT_LOAD: (1, DIRECT_XID_AT),
    Opcode.XML: (3, XML_XID.at("xid")),
}
"""The place of the XID as (field, offset), for vectors that contain the complete XID (redo-format
§4.2, §4.7, §8).
"""

_HAS_KTB: Final = (LAYER_INDEX, LAYER_ROW)


_LOB_XID_AT: Final = {KDLI_SUPLOG: KDLI_SUPLOG_XID, KDLI_FPLOAD: KDLI_FPLOAD_XID}
"""The offset of the XID in items of LOB redo."""


def vector_xids(vector: Vector) -> set[int]:
    """Return the XIDs that a vector names. If the vector contains only the slot (5.6, 5.11), the
    sequence in the XID is 0.
    """
    fields, opcode = vector.fields, vector.opcode
    if opcode in _XID_AT:
        return _xid_at(fields, *_XID_AT[Opcode(opcode)])
    if opcode in (OP_BEGIN, OP_END):
        if fields.size(1) < KTUDH_LEAST:
            return set()
        slot, sequence = fields.number(1, KTUDH_SLT, 2), fields.number(1, KTUDH_SQN, 4)
        return {pack_xid(vector.undo_segment, slot, sequence)}
    if opcode in UNDONE:
        if fields.size(1) < KTUB_SIZE:
            return set()
        return {pack_xid(vector.undo_segment, fields.bytes(1)[KTUB_SLT], 0)}
    if opcode == OP_LOB_OPERATION:
        operation = LLB.get(fields.number(2, 0, 1))
        return set() if operation is None else _xid_at(fields, 3, operation.at("xid"))
    if opcode >> 8 == Layer.LOB:
        return _lob_xids(fields)
    ktb = fields.bytes(1)
    if opcode >> 8 in _HAS_KTB and len(ktb) >= KTB_LEAST and ktb[0] & KTB_OPERATION == KTB_F:
        data = KTB_DATA_LONG if ktb[KTB_VER] & KTB_LONG else KTB_DATA
        return _xid_at(fields, 1, data + KTB_F_XID)
    return set()


def vector_objects(vector: Vector) -> set[int]:
    """Return the object numbers and data object ids that a vector names."""
    found = set()
    if vector.typ & VECTOR_KIND != VECTOR_NO_BLOCK and vector.obj != NO_OBJECT:
        found.add(vector.obj)
    fields = vector.fields
    field = 2 if vector.opcode == OP_UNDO else 1 if vector.opcode in UNDONE else 0
    if field and fields.size(field) >= KTUB.end("objd"):
        found |= {fields.number(field, KTUB_OBJN, 4), fields.number(field, KTUB_OBJD, 4)}
    if vector.opcode == OP_DDL and fields.size(DDL_OBJN) >= 4:
        found.add(fields.number(DDL_OBJN, 0, 4))
    if vector.opcode == OP_LOB_OPERATION:
        operation = LLB.get(fields.number(2, 0, 1))
        if operation is not None and fields.size(3) >= operation.end("objn"):
            found.add(fields.number(3, operation.at("objn"), 4))
    return found


def same_transaction(one: int, other: int) -> bool:
    """Return whether two XIDs can be the same transaction. The sequence and the high byte of the
    slot are 0 if they are unknown.
    """
    if one & 0xFFFFFFFF and other & 0xFFFFFFFF:
        return one == other
    return one >> 48 == other >> 48 and (one ^ other) >> 32 & 0xFF == 0


def _xid_at(fields: Fields, field: int, at: int) -> set[int]:
    if fields.size(field) < at + XID_SIZE:
        return set()
    return {
        pack_xid(
            fields.number(field, at, 2),
            fields.number(field, at + XID_SLOT, 2),
            fields.number(field, at + XID_SQN, 4),
        )
    }


def _lob_xids(fields: Fields) -> set[int]:
    found: set[int] = set()
    for field in range(2, fields.count + 1):
        at = _LOB_XID_AT.get(fields.number(field, 0, 1))
        if at is not None and fields.size(field) >= KDLI_SUPLOG_SIZE:
            found |= _xid_at(fields, field, at)
    return found


def scn_text(scn: int) -> str:
    """Return an SCN in hexadecimal, or ``none`` if it is `SCN_NONE`."""
    return "none" if scn == SCN_NONE else f"0x{scn:016x}"
