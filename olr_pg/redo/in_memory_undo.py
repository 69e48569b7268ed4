"""Records of private redo: where the undo records do not stand before what they undo.

Without supplemental logging Oracle may keep the undo of a small transaction in memory and write all
of it as one record, in which the row vectors come first. Undo record and row vector name each other
by the UBA then. Facts: redo-format §4.8, §5.1; by the document alone, no real record of it was at
hand.
"""

from __future__ import annotations

from typing import Any, Final

from olr_pg.kernels.compile import inlined
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.vectors import dba_of, field_at
from olr_pg.redo.walk import Walk

_UNDO: Final = 0x0501
_BEGIN: Final = 0x0502
_END: Final = 0x0504
_APPLIED: Final = (0x0506, 0x050B)
_LOB_PAGE: Final = 0x1A02

_KTB_FIRST: Final = 1
_KTB_CONTINUE: Final = 2


@inlined
def _has_undo(op: int) -> bool:
    """Tell whether vectors of an opcode stand behind their undo record otherwise."""
    return op >> 8 == 11 or op >> 8 == 10 or op == _LOB_PAGE


@inlined
def _uba_in(walk: Walk, at: int) -> int:
    """Read the undo record's UBA in a block change (KTB redo F and C), −1 where there is none."""
    ktb, size = field_at(walk.payload, at, walk.header, 1, walk.big)
    if size < 2:
        return -1
    op = walk.payload[ktb] & 0x0F
    if op != _KTB_FIRST and op != _KTB_CONTINUE:
        return -1
    uba = ktb + (8 if walk.payload[ktb + 1] & 0x08 else 4) + (8 if op == _KTB_FIRST else 0)
    return uba if uba + 8 <= ktb + size else -1


@inlined
def _is_undo_at(walk: Walk, vector: int, uba: int) -> bool:
    """Tell whether a vector is the undo record with that UBA."""
    if walk.vectors.opcode[vector] != _UNDO:
        return False
    at = walk.vectors.position[vector]
    ktudb, size = field_at(walk.payload, at, walk.header, 1, walk.big)
    payload, big = walk.payload, walk.big
    return bool(
        size >= 20
        and dba_of(payload, at, big) == u32(payload, uba, big)
        and u16(payload, ktudb + 16, big) == u16(payload, uba + 4, big)
        and payload[ktudb + 18] == payload[uba + 6]
    )


@inlined
def _move(vectors: Any, at: int, to: int) -> None:
    """Put a vector in another place; those between move up by one."""
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
    """Tell whether a vector that has undo stands neither behind it nor before its application."""
    opcode = walk.vectors.opcode
    if not _has_undo(opcode[vector]) or (vector > 0 and opcode[vector - 1] == _UNDO):
        return False
    return vector + 1 == count or opcode[vector + 1] not in _APPLIED


@inlined
def _is_before(walk: Walk, undo: int, vector: int) -> bool:
    """Tell whether an undo record stands right before a vector that names it."""
    if undo < 0 or undo + 1 != vector or not _has_undo(walk.vectors.opcode[vector]):
        return False
    uba = _uba_in(walk, walk.vectors.position[vector])
    return uba >= 0 and _is_undo_at(walk, undo, uba)


@inlined
def _undo_apart(walk: Walk, vector: int, count: int) -> int:
    """Find the undo record that a vector names and that stands apart, −1 where there is none.

    One that stands before another vector that names it is that one's.
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
    """Tell whether a change of a record stands apart from its undo record."""
    for vector in range(count):
        if _is_alone(walk, vector, count) and _undo_apart(walk, vector, count) >= 0:
            return True
    return False


@inlined
def order_private_redo(walk: Walk, count: int) -> None:
    """Put the first `count` vectors in the order in which records have them otherwise.

    That is: the transaction's begin, each undo record before the change that it undoes, its end.
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
        if vectors.opcode[vector] == _BEGIN:
            _move(vectors, vector, 0)
    for vector in range(count - 1, -1, -1):
        if vectors.opcode[vector] == _END:
            _move(vectors, vector, count - 1)
