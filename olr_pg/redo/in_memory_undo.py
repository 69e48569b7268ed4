"""Reorders the vectors in records of private redo. In other records, each undo record is directly
before the change that it undoes; in private redo it is not.

Without supplemental logging, Oracle can keep the undo of a small transaction in memory and write
all its redo as one record, in which the row vectors come first. In such a record, a row vector
refers to its undo record by the UBA (undo block address). Facts: redo-format §4.8, §5.1; checked on
a real record of 11.2.

In a record, the end of a transaction can also be before its last change. Then this module moves the
end of the transaction after this change.
"""

from __future__ import annotations

from typing import Any

from olr_pg.kernels.compile import inlined
from olr_pg.redo.format.opcodes import (
    LAYER_INDEX,
    LAYER_ROW,
    OP_BEGIN,
    OP_END,
    OP_LOB_REDO,
    OP_UNDO,
    UNDONE,
)
from olr_pg.redo.format.row_fields import (
    KTB_C,
    KTB_C_UBA,
    KTB_DATA,
    KTB_DATA_LONG,
    KTB_F,
    KTB_F_UBA,
    KTB_LEAST,
    KTB_LONG,
    KTB_OPERATION,
    KTB_VER,
)
from olr_pg.redo.format.undo_fields import (
    KTUB_SIZE,
    KTUB_SLT,
    KTUCM_LEAST,
    KTUCM_SLT,
    KTUCM_SQN,
    KTUDB_REC,
    KTUDB_SEQ,
    KTUDB_SIZE,
    KTUDB_XID,
    UBA_REC,
    UBA_SEQ,
    UBA_SIZE,
)
from olr_pg.redo.integers import read_xid, u16, u32
from olr_pg.redo.vectors import dba_of, field_at, is_encrypted, undo_segment_of
from olr_pg.redo.walk import Walk


@inlined
def _has_undo(op: int) -> bool:
    """Return whether a vector with this opcode normally follows its undo record."""
    return op >> 8 == LAYER_ROW or op >> 8 == LAYER_INDEX or op == OP_LOB_REDO


@inlined
def _uba_in(walk: Walk, at: int) -> int:
    """Return the position of the UBA in a vector that changes a block (KTB redo F and C), −1 if it
    has none. The UBA is the address of the vector's undo record.
    """
    ktb, size = field_at(walk.payload, at, walk.header, 1, walk.big)
    if size < KTB_LEAST:
        return -1
    op = walk.payload[ktb] & KTB_OPERATION
    if op != KTB_F and op != KTB_C:
        return -1
    data = ktb + (KTB_DATA_LONG if walk.payload[ktb + KTB_VER] & KTB_LONG else KTB_DATA)
    uba = data + (KTB_F_UBA if op == KTB_F else KTB_C_UBA)
    return uba if uba + UBA_SIZE <= ktb + size else -1


@inlined
def _is_undo_at(walk: Walk, vector: int, uba: int) -> bool:
    """Return whether a vector is the undo record that the UBA at payload position `uba` names."""
    if walk.vectors.opcode[vector] != OP_UNDO:
        return False
    at = walk.vectors.position[vector]
    ktudb, size = field_at(walk.payload, at, walk.header, 1, walk.big)
    payload, big = walk.payload, walk.big
    return bool(
        size >= KTUDB_SIZE
        and dba_of(payload, at, big) == u32(payload, uba, big)
        and u16(payload, ktudb + KTUDB_SEQ, big) == u16(payload, uba + UBA_SEQ, big)
        and payload[ktudb + KTUDB_REC] == payload[uba + UBA_REC]
    )


@inlined
def _move(vectors: Any, at: int, to: int) -> None:
    """Move a vector from index `at` to index `to`; the vectors in between move by one place."""
    position, end, opcode = vectors.position[at], vectors.end[at], vectors.opcode[at]
    step = 1 if to > at else -1
    while at != to:
        vectors.position[at] = vectors.position[at + step]
        vectors.end[at] = vectors.end[at + step]
        vectors.opcode[at] = vectors.opcode[at + step]
        at += step
    vectors.position[at], vectors.end[at], vectors.opcode[at] = position, end, opcode


@inlined
def _is_alone(walk: Walk, vector: int, count: int) -> bool:
    """Return whether a vector normally has an undo record, but no undo record is directly before it
    and no 5.6 or 5.11 directly after it.
    """
    opcode = walk.vectors.opcode
    if not _has_undo(opcode[vector]) or (vector > 0 and opcode[vector - 1] == OP_UNDO):
        return False
    return vector + 1 == count or opcode[vector + 1] not in UNDONE


@inlined
def _is_before(walk: Walk, undo: int, vector: int) -> bool:
    """Return whether vector `undo` is the undo record of `vector` and is directly before it."""
    if undo < 0 or undo + 1 != vector or not _has_undo(walk.vectors.opcode[vector]):
        return False
    uba = _uba_in(walk, walk.vectors.position[vector])
    return uba >= 0 and _is_undo_at(walk, undo, uba)


@inlined
def _undo_apart(walk: Walk, vector: int, count: int) -> int:
    """Return the undo record of a vector if it is not directly before the vector, −1 otherwise.

    If the undo record is directly before another vector that refers to it, it belongs to that other
    vector.
    """
    if not _has_undo(walk.vectors.opcode[vector]) or _is_before(walk, vector - 1, vector):
        return -1
    uba = _uba_in(walk, walk.vectors.position[vector])
    if uba < 0:
        return -1
    for other in range(count):
        if _is_undo_at(walk, other, uba):
            has_own = other + 1 < count and _is_before(walk, other, other + 1)
            return -1 if has_own else other
    return -1


@inlined
def _is_private(walk: Walk, count: int) -> bool:
    """Return whether the record contains a change whose undo record is in another place than
    directly before it.
    """
    for vector in range(count):
        if _is_alone(walk, vector, count) and _undo_apart(walk, vector, count) >= 0:
            return True
    return False


@inlined
def order_private_redo(walk: Walk, count: int) -> None:
    """Give the first `count` vectors the usual order, if the record is private redo.

    The usual order is: the transaction's begin, then each undo record directly before the change
    that it undoes, then the transaction's end.
    """
    if not _is_private(walk, count):
        return
    vectors = walk.vectors
    vector = 0
    while vector < count:
        undo = _undo_apart(walk, vector, count)
        if undo > vector:
            _move(vectors, undo, vector)
            vector += 1
        elif undo >= 0:
            _move(vectors, undo, vector - 1)
        vector += 1
    for vector in range(count):
        if vectors.opcode[vector] == OP_BEGIN:
            _move(vectors, vector, 0)
    for vector in range(count - 1, -1, -1):
        if vectors.opcode[vector] == OP_END:
            _move(vectors, vector, count - 1)


@inlined
def _xid_in_undo(walk: Walk, vector: int) -> int:
    """Return the XID in a 5.1, −1 if it cannot be read."""
    at = walk.vectors.position[vector]
    f1, size = field_at(walk.payload, at, walk.header, 1, walk.big)
    if size < KTUDB_SIZE or is_encrypted(walk.payload, at):
        return -1
    return read_xid(walk.payload, f1 + KTUDB_XID, walk.big)


@inlined
def _is_of(walk: Walk, vector: int, xid: int) -> bool:
    """Return whether a vector is an undo record of a transaction (5.1), or shows that such an undo
    record was applied (5.6, 5.11).

    A 5.6 or 5.11 contains only the slot of the XID, so only undo segment and slot are compared.
    """
    if walk.vectors.opcode[vector] == OP_UNDO:
        return bool(_xid_in_undo(walk, vector) == xid)
    if walk.vectors.opcode[vector] not in UNDONE:
        return False
    at = walk.vectors.position[vector]
    ktub, size = field_at(walk.payload, at, walk.header, 1, walk.big)
    if size < KTUB_SIZE or is_encrypted(walk.payload, at):
        return False
    slot = int(walk.payload[ktub + KTUB_SLT])
    return bool(
        undo_segment_of(walk.payload, at, walk.big) == xid >> 48 and slot == xid >> 32 & 0xFF
    )


@inlined
def move_end_behind_changes(walk: Walk, count: int) -> None:
    """Move a 5.4 to the place after the last change, or undone change, of its transaction in the
    record.
    """
    vectors = walk.vectors
    for end in range(count - 1):
        if vectors.opcode[end] != OP_END:
            continue
        at = vectors.position[end]
        f1, size = field_at(walk.payload, at, walk.header, 1, walk.big)
        if size < KTUCM_LEAST:
            return
        xid = (
            undo_segment_of(walk.payload, at, walk.big) << 48
            | u16(walk.payload, f1 + KTUCM_SLT, walk.big) << 32
            | u32(walk.payload, f1 + KTUCM_SQN, walk.big)
        )
        last = end
        for vector in range(end + 1, count):
            if _is_of(walk, vector, xid):
                # The change that an undo record undoes follows it.
                more = 1 if vectors.opcode[vector] == OP_UNDO else 0
                last = min(vector + more, count - 1)
        if last > end:
            _move(vectors, end, last)
        return
