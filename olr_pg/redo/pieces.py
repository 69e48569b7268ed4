"""Decodes vector pairs into row pieces with their column values.

Facts: redo-format §4.3, §5; checked on real records of 11.2, 19c and 23ai.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np

from olr_pg.errors import Code
from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EntryColumns, Packed, PieceColumns, Role
from olr_pg.redo.format.opcodes import CFA, CMP, DRP, IRP, LKR, LMN, ORP, QMD, QMI, URP
from olr_pg.redo.format.row_fields import (
    FB_CLUSTER_KEY,
    FB_CLUSTERED,
    FB_DELETED,
    FB_FIRST,
    FB_HEAD,
    FB_LAST,
    FB_NEXT,
    FB_PREVIOUS,
    FB_WHOLE,
    KDO_BDBA,
    KDO_COLUMN_VECTOR,
    KDO_DELETE_LEAST,
    KDO_DELETE_SLOT,
    KDO_FORWARD_LEAST,
    KDO_FORWARD_NRID,
    KDO_FORWARD_SLOT,
    KDO_MULTI_NROW,
    KDO_MULTI_SLOTS,
    KDO_MULTI_TABN,
    KDO_OP,
    KDO_OP_UNKNOWN,
    KDO_OPERATION,
    KDO_PACKED,
    KDO_PIECE_CC,
    KDO_PIECE_FB,
    KDO_PIECE_HRID,
    KDO_PIECE_NRID,
    KDO_PIECE_NULLS,
    KDO_PIECE_SLOT,
    KDO_PIECE_TABN,
    KDO_ROW_SCN,
    KDO_SIZE,
    KDO_TYPE,
    KDO_TYPE_UNKNOWN,
    KDO_UPDATE_FB,
    KDO_UPDATE_NCOL,
    KDO_UPDATE_NULLS,
    KDO_UPDATE_SLOT,
    KDO_UPDATE_TABN,
    RID_SLOT,
    ROW_CC,
    ROW_SIZE,
    SUPPLEMENTAL_AFTER,
    SUPPLEMENTAL_BDBA,
    SUPPLEMENTAL_BEFORE,
    SUPPLEMENTAL_CHANGED,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_FB,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_INTERNAL,
    SUPPLEMENTAL_LOCK,
    SUPPLEMENTAL_LONG,
    SUPPLEMENTAL_MOVES,
    SUPPLEMENTAL_OPT,
    SUPPLEMENTAL_OPT_HIGH,
    SUPPLEMENTAL_SIZES,
    SUPPLEMENTAL_SLOT,
    SUPPLEMENTAL_TYPES,
    SUPPLEMENTAL_UPDATE,
)
from olr_pg.redo.integers import low_int16, u16, u32
from olr_pg.redo.row_vectors import (
    ENTRIES,
    FULL,
    PACKED,
    PIECES,
    SHIFT,
    next_value,
    push_redo_columns,
    push_row,
    push_supplemental,
    push_undo_columns,
    supplemental_header,
)


class ChangeStatus(IntEnum):
    """The results of extracting the changes of a vector."""

    OK = 0
    CAPACITY = 1
    SHORT_FIELD = 2
    COLUMNS = 3
    ROWS = 4
    ENCRYPTED = 5
    SPLIT_UNDO = 6
    SUPPLEMENTAL = 7
    OPERATION = 8
    NO_TRANSACTION = 9
    OVERFLOW = 10
    UNLOGGED = 11
    UNLOGGED_LOB = 12
    CONTRADICTION = 13
    NO_UNDO = 14
    LEAF_BLOCK = 15
    NO_END = 16
    NOT_TAKEN_BACK = 17
    STRAY = 18
    OVERLONG = 19


REASONS: Final = {
    ChangeStatus.SHORT_FIELD: "a field does not have the size of its layout",
    ChangeStatus.OVERLONG: "the change vector of a begin or end of a transaction is too long",
    ChangeStatus.COLUMNS: "the column values do not fit the fields of the vector",
    ChangeStatus.ROWS: "the rows of a multi-row vector do not fit it",
    ChangeStatus.ENCRYPTED: "the tablespace is encrypted",
    ChangeStatus.SPLIT_UNDO: "the other parts of its undo were not read before it",
    ChangeStatus.SUPPLEMENTAL: "the supplemental data do not fit the fields of the vector",
    ChangeStatus.OPERATION: "the row operation is not supported",
    ChangeStatus.NO_TRANSACTION: "a direct-path block names no transaction",
    ChangeStatus.OVERFLOW: "the row continues in an overflow segment",
    ChangeStatus.UNLOGGED: "blocks of the table were written without redo",
    ChangeStatus.UNLOGGED_LOB: "LOB pages of the table were written without redo",
    ChangeStatus.CONTRADICTION: "its change vectors contradict each other",
    ChangeStatus.LEAF_BLOCK: "rows of an index-organised table were written as a whole block",
    ChangeStatus.NO_UNDO: "a change has no undo record and belongs to no transaction",
    ChangeStatus.NO_END: "the end of its transaction was not read, and another one uses its slot",
    ChangeStatus.NOT_TAKEN_BACK: "its transaction was rolled back, but no redo undoes it",
    ChangeStatus.STRAY: "its change vector names another container than its transaction",
}

_CODES: Final = {
    ChangeStatus.SPLIT_UNDO: Code.UNDO_NOT_WHOLE,
    ChangeStatus.OVERFLOW: Code.OVERFLOW_PIECE,
    ChangeStatus.UNLOGGED: Code.ROWS_WITHOUT_REDO,
    ChangeStatus.UNLOGGED_LOB: Code.LOB_PAGES_WITHOUT_REDO,
    ChangeStatus.ENCRYPTED: Code.TABLESPACE_ENCRYPTED,
    ChangeStatus.NO_UNDO: Code.ROWS_WITHOUT_UNDO,
}


def error_code(status: ChangeStatus) -> int:
    """Return the catalogue's error number for the status of an UNDECODED event."""
    return _CODES.get(status, Code.CHANGE_UNDECODABLE)


NO_ROW: Final = -1
"""A result instead of a `ChangeStatus`: the vector changes no row."""

_BEFORE = int(Role.BEFORE)
_AFTER = int(Role.AFTER)

_OK = int(ChangeStatus.OK)
_SHORT_FIELD = int(ChangeStatus.SHORT_FIELD)
_COLUMNS = int(ChangeStatus.COLUMNS)
_ROWS = int(ChangeStatus.ROWS)
_SUPPLEMENTAL = int(ChangeStatus.SUPPLEMENTAL)
_OPERATION = int(ChangeStatus.OPERATION)
_CONTRADICTION = int(ChangeStatus.CONTRADICTION)

_HEAD_OR_FIRST = FB_HEAD | FB_FIRST
_OLD_PACKED = int(Packed.OLD)
_NEW_PACKED = int(Packed.NEW)


@inlined
def open_piece(pieces: PieceColumns, at: int, op: int) -> None:
    """Initialise a piece with operation `op` and all other columns zero."""
    piece = pieces[np.uint64(at)]
    piece.op = op
    piece.supplemental = 0
    piece.sup_type = 0
    piece.sup_flags = 0
    piece.row_flags = 0
    piece.old_flags = 0
    piece.width = 0
    piece.old_width = 0
    piece.bdba = 0
    piece.slot = 0
    piece.head_bdba = 0
    piece.head_slot = 0
    piece.next_bdba = 0
    piece.next_slot = 0
    piece.old_next_bdba = 0
    piece.old_next_slot = 0
    piece.changed_offset = 0
    piece.changed_length = 0
    piece.packed = 0
    piece.entry_count = 0


@inlined
def _shift(entries: EntryColumns, first: int, end: int, by: int) -> None:
    for i in range(first, end):
        entries.segcol[i] = low_int16(int(entries.segcol[i]) + by)


@inlined
def row_flags_and_slot(payload: Any, at: int, size: int, big: bool) -> tuple[int, int]:
    """Return (row flags, slot) of a KDO field. The slot is −1 if the field is too short or its
    operation is unknown.
    """
    op = payload[at + KDO_OP] & KDO_OPERATION
    if op in (IRP, ORP) and size >= KDO_PIECE_NULLS:
        return int(payload[at + KDO_PIECE_FB]), u16(payload, at + KDO_PIECE_SLOT, big)
    if op in (DRP, LKR) and size >= KDO_DELETE_LEAST:
        return 0, u16(payload, at + KDO_DELETE_SLOT, big)
    if op == URP and size >= KDO_UPDATE_NULLS:
        return int(payload[at + KDO_UPDATE_FB]), u16(payload, at + KDO_UPDATE_SLOT, big)
    if op == CFA and size >= KDO_FORWARD_LEAST:
        return 0, u16(payload, at + KDO_FORWARD_SLOT, big)
    if op in (LMN, CMP):
        return 0, 0
    return 0, -1


@inlined
def row_slot(payload: Any, at: int, size: int, big: bool) -> int:
    """Return the slot of the row in a KDO field, or of the first row if there are several; −1 if it
    has none.
    """
    if size < KDO_SIZE:
        return -1
    op = payload[at + KDO_OP] & KDO_OPERATION
    if op in (LMN, CMP):
        return -1
    if op in (QMI, QMD):
        first = at + KDO_MULTI_SLOTS
        return u16(payload, first, big) if size >= KDO_MULTI_SLOTS + 2 else -1
    return int(row_flags_and_slot(payload, at, size, big)[1])


@inlined
def _next_piece(payload: Any, at: int, size: int, big: bool) -> tuple[int, int, int]:
    """Return (number of columns, block of nrid, slot of nrid) of a KDO field. A missing number is
    0.
    """
    op = payload[at + KDO_OP] & KDO_OPERATION
    if op == URP and size >= KDO_UPDATE_NULLS:
        return int(payload[at + KDO_UPDATE_NCOL]), 0, 0
    if op == CFA and size >= KDO_FORWARD_LEAST:
        nrid = at + KDO_FORWARD_NRID
        return 0, u32(payload, nrid, big), u16(payload, nrid + RID_SLOT, big)
    if op not in (IRP, ORP) or size < KDO_PIECE_NULLS:
        return 0, 0, 0
    columns = int(payload[at + KDO_PIECE_CC])
    if payload[at + KDO_PIECE_FB] & FB_LAST:
        return columns, 0, 0
    nrid = at + KDO_PIECE_NRID
    return columns, u32(payload, nrid, big), u16(payload, nrid + RID_SLOT, big)


@inlined
def _links(payload: Any, kdo: int, size: int, undo: int, undo_size: int, big: bool,
           pieces: PieceColumns, piece: int) -> None:  # fmt: skip
    """Set the columns that link the piece to the other pieces of its row, before and after the
    change.
    """
    columns, bdba, slot = _next_piece(payload, kdo, size, big)
    pieces.width[piece] = columns
    pieces.next_bdba[piece] = bdba
    pieces.next_slot[piece] = slot
    columns, bdba, slot = _next_piece(payload, undo, undo_size, big)
    pieces.old_width[piece] = columns
    pieces.old_next_bdba[piece] = bdba
    pieces.old_next_slot[piece] = slot
    op = pieces.op[piece]
    if op in (IRP, DRP) and pieces.row_flags[piece] & _HEAD_OR_FIRST == FB_FIRST:
        # If a row has moved, its first piece with data names the row's head (hrid).
        image = kdo if op == IRP else undo
        if payload[image + KDO_OP] & KDO_OPERATION == IRP:
            hrid = image + KDO_PIECE_HRID
            pieces.head_bdba[piece] = u32(payload, hrid, big)
            pieces.head_slot[piece] = u16(payload, hrid + RID_SLOT, big)


@inlined
def _describe(
    payload: Any, at: int, size: int, big: bool, pieces: PieceColumns, piece: int
) -> tuple[int, int]:
    """Store the contents of a supplemental header in the piece. Return the SEGCOL# of the first
    column in the undo record and in the row vector, 0 for none.

    Facts: redo-format §5.7.
    """
    pieces.supplemental[piece] = 1
    pieces.sup_type[piece] = payload[at]
    pieces.sup_flags[piece] = payload[at + SUPPLEMENTAL_FB]
    if size >= SUPPLEMENTAL_LONG:
        pieces.head_bdba[piece] = u32(payload, at + SUPPLEMENTAL_BDBA, big)
        pieces.head_slot[piece] = u16(payload, at + SUPPLEMENTAL_SLOT, big)
    return u16(payload, at + SUPPLEMENTAL_BEFORE, big), u16(payload, at + SUPPLEMENTAL_AFTER, big)


@inlined
def _changed_columns(payload: Any, header: int, offset: Any, length: Any, field: int, big: bool,
                     pieces: PieceColumns, piece: int) -> None:  # fmt: skip
    """Store the position of the bitmap of the columns that really changed, if the supplemental
    header announces one.
    """
    opt = payload[header + SUPPLEMENTAL_OPT]
    both = u16(payload, header + SUPPLEMENTAL_OPT_HIGH, big)
    if not opt & SUPPLEMENTAL_CHANGED and not both & SUPPLEMENTAL_CHANGED << 8:
        return
    if length[field + 1] == (u16(payload, offset[field], big) + 7) >> 3:
        pieces.changed_offset[piece] = offset[field + 1]
        pieces.changed_length[piece] = length[field + 1]


@inlined
def undoes(undo: int, redo: int, op: int) -> bool:
    """Return whether the KDO operations of an undo record and its row vector match the opcode.

    In all real pairs these operations match the opcode, and no other bits are set than those that
    are known (redo-format §5.2).
    """
    if (undo | redo) & KDO_OP_UNKNOWN:
        return False
    undone, done = undo & KDO_OPERATION, redo & KDO_OPERATION
    if op in (IRP, DRP):
        return bool(done == op and undone == IRP + DRP - op)
    if op in (QMI, QMD):
        return bool(done == op and undone == QMI + QMD - op)
    return bool(done == op and undone == op)


@inlined
def has_known_form(payload: Any, kdo: int) -> bool:
    """Return whether the xtype of a KDO field has only bits whose effect on the values of this
    operation is known.

    One field with all values (KDOM2) is known only of a URP. How compressed values of a URP look is
    unknown (redo-format §5.2, §5.4, §5.7).
    """
    op, form = payload[kdo + KDO_OP] & KDO_OPERATION, payload[kdo + KDO_TYPE]
    unknown = KDO_TYPE_UNKNOWN
    if op in (IRP, ORP, QMI, QMD):
        unknown |= KDO_COLUMN_VECTOR
    elif op == URP:
        unknown |= KDO_PACKED
    return bool(form & unknown == 0)


@inlined
def _says_packed(payload: Any, kdo: int) -> bool:
    """Return whether the KDO field of an IRP or ORP says that its columns are compressed."""
    is_image = payload[kdo + KDO_OP] & KDO_OPERATION in (IRP, ORP)
    packed = payload[kdo + KDO_TYPE] & KDO_PACKED != 0
    return bool(is_image and packed and payload[kdo + KDO_PIECE_CC] > 0)


@inlined
def _are_packed(payload: Any, undo_kdo: int, kdo: int, packed: int) -> bool:
    """Return whether a pair has a compressed row where its KDO fields say so.

    Args:
        packed: `PieceColumns.packed`, from the fields of both vectors.
    """
    old = _says_packed(payload, undo_kdo) and not packed & _OLD_PACKED
    new = _says_packed(payload, kdo) and not packed & _NEW_PACKED
    return not old and not new


@inlined
def is_same_block(payload: Any, undo_kdo: int, kdo: int, big: bool) -> bool:
    """Return whether the KDO fields of both vectors of a pair name the same block. In all real
    pairs, both fields name the same block (redo-format §4.8).
    """
    return bool(u32(payload, undo_kdo + KDO_BDBA, big) == u32(payload, kdo + KDO_BDBA, big))


@inlined
def is_by(op: int, kind: int) -> bool:
    """Return whether a statement of type `kind`, from a supplemental header, can cause a row vector
    with code `op`.
    """
    if op == IRP:
        return bool(kind == SUPPLEMENTAL_INSERT)
    if op == DRP:
        return bool(kind == SUPPLEMENTAL_DELETE)
    if op in (URP, ORP):
        return bool(kind == SUPPLEMENTAL_UPDATE)
    return bool(kind not in (SUPPLEMENTAL_INSERT, SUPPLEMENTAL_DELETE))


@inlined
def fits_operation(payload: Any, header: int, op: int, row_flags: int) -> bool:
    """Return whether the statement in a supplemental header can cause a row vector with this code
    and these row flags.

    If the header shows that the vector is the whole insert of a row, the piece must be the whole
    row: otherwise the columns of its other pieces would become NULL. In all real records both are
    true (redo-format §4.3, §7.5).
    """
    kind, flags = payload[header], payload[header + SUPPLEMENTAL_FB]
    if kind not in SUPPLEMENTAL_TYPES:
        return False
    if kind in (SUPPLEMENTAL_INTERNAL, SUPPLEMENTAL_LOCK) or flags & SUPPLEMENTAL_MOVES:
        return True
    if (op == IRP and kind == SUPPLEMENTAL_DELETE) or (op == DRP and kind == SUPPLEMENTAL_INSERT):
        return False
    if flags & (FB_FIRST | FB_LAST) != FB_FIRST | FB_LAST:
        return True
    if op == IRP and row_flags & (FB_WHOLE | FB_PREVIOUS | FB_NEXT) != FB_WHOLE:
        return False
    return is_by(op, kind)


@inlined
def ends(length: Any, field: int, fields: int, op: int) -> bool:
    """Return whether a row vector ends after its columns. A vector that does not end there contains
    more data than it declares.

    The result is always True for operations without columns, because a copy of the supplemental
    header may follow (redo-format §4.3).
    """
    return op not in (IRP, ORP, URP) or bool(next_value(length, field, fields) > fields)


@inlined
def ends_or_describes(length: Any, field: int, fields: int) -> bool:
    """Return whether an undo record has nothing, or only supplemental data, after its columns."""
    field = next_value(length, field, fields)
    return bool(field > fields or length[field] in SUPPLEMENTAL_SIZES)


@inlined
def says_no_row(payload: Any, header: int, op: int) -> bool:
    """Return whether a supplemental header shows that this vector belongs to no row change of an
    SQL statement.

    If a row moves (flag K), one DRP deletes the whole row, and one IRP inserts it in another place;
    only these two are row changes.
    """
    if payload[header] in (SUPPLEMENTAL_INTERNAL, SUPPLEMENTAL_LOCK):
        return True
    moved = payload[header + SUPPLEMENTAL_FB] & SUPPLEMENTAL_MOVES != 0
    return bool(moved and op != IRP and op != DRP)


@inlined
def is_of_no_row(op: int, kind: int, clustered: int, values: int) -> bool:
    """Return whether a vector agrees with its supplemental header, which shows that the vector
    changes no row (`says_no_row`).

    Vectors of a cluster's key occur only in clustered tables. Vectors of a lock, and all vectors of
    a moving row except IRP and DRP, have no values.
    """
    if kind == SUPPLEMENTAL_INTERNAL:
        return clustered > 0
    return op in (LKR, LMN, CFA, CMP) or values == 0


@inlined
def _push_logged(
    payload: Any, offset: Any, length: Any, fields: int, header: int, op: int, big: bool,
    pieces: PieceColumns, piece: int, entries: EntryColumns, state: Any,
) -> int:  # fmt: skip
    """Push the supplemental values of an undo record, and the bitmap of the columns that really
    changed; return a `ChangeStatus`.
    """
    end = push_supplemental(payload, offset, length, fields, header, op, big, entries, state)
    if end < 0:
        return _SUPPLEMENTAL
    if end + 1 <= fields and length[end] == 2:
        _changed_columns(payload, offset[header], offset, length, end, big, pieces, piece)
    return _OK


@inlined
def _table_in_block(payload: Any, kdo: int) -> int:
    """Return the number of the table in the block that the KDO field of a piece with columns names;
    0 for other operations.
    """
    op = payload[kdo + KDO_OP] & KDO_OPERATION
    if op in (IRP, ORP):
        return int(payload[kdo + KDO_PIECE_TABN])
    return int(payload[kdo + KDO_UPDATE_TABN]) if op == URP else 0


@inlined
def _is_in_other_table(payload: Any, kdo: int, undo_kdo: int) -> bool:
    """Return whether a pair changes a row of another table than table 0 of its block. Outside a
    cluster, such a block has compressed rows.
    """
    return _table_in_block(payload, kdo) != 0 or _table_in_block(payload, undo_kdo) != 0


@inlined
def _log_status(
    payload: Any, entries: EntryColumns, first: int, logged: int, end: int, op: int
) -> int:
    """Return a `ChangeStatus`: CONTRADICTION if a supplemental value is not the value of the same
    column in the piece.

    A block with compressed rows can store columns in another order than the table. Only the
    supplemental values, which have the numbers of their columns, can then show that the columns of
    the piece were numbered wrongly.

    Args:
        first, logged, end: the values of the piece are entries `first` to `logged`, its
            supplemental values entries `logged` to `end`.
    """
    role = _AFTER if op == IRP else _BEFORE
    if end > entries.size:
        return _OK  # there is no space for all entries: the caller repeats the vector with more
    entry = first
    for logged_entry in range(logged, end):
        entry = value_of_column(
            entries, first, logged, entry, role, int(entries.segcol[logged_entry])
        )
        if (
            entry >= 0
            and entries.part[entry] == 0
            and entries.part[logged_entry] == 0
            and entries.length[entry] >= 0
            and not same_bytes(payload, entries, entry, logged_entry)
        ):
            return _CONTRADICTION
    return _OK


@inlined
def value_of_column(
    entries: EntryColumns, first: int, end: int, start: int, role: int, segcol: int
) -> int:
    """Return the entry of a column; -1 if there is none.

    Args:
        first, end: the entries to search are `first` to `end`, without `end`.
        start: the entry to begin with, for example the one that was found last, so that columns
            in the same order on both sides are found at once; -1 to begin with `first`.
        role: the role of the entry.
        segcol: the number of the column.
    """
    entry = max(start, first)
    for _ in range(first, end):
        if entries.role[entry] == role and entries.segcol[entry] == segcol:
            return entry
        entry = entry + 1 if entry + 1 < end else first
    return -1


@inlined
def same_bytes(payload: Any, entries: EntryColumns, one: int, other: int) -> bool:
    """Return whether two values are equal."""
    size = entries.length[one]
    if entries.length[other] != size:
        return False
    first, second = entries.offset[one], entries.offset[other]
    at = 0
    while at < size and payload[first + at] == payload[second + at]:
        at += 1
    return bool(at >= size)


@inlined
def _pair_status(payload: Any, undo_kdo: int, kdo: int, op: int, big: bool) -> int:
    """Return the `ChangeStatus` of the operations and forms in the KDO fields of a pair."""
    is_of_it = undoes(payload[undo_kdo + KDO_OP], payload[kdo + KDO_OP], op)
    if not is_of_it or not is_same_block(payload, undo_kdo, kdo, big):
        return _CONTRADICTION
    known = has_known_form(payload, undo_kdo) and has_known_form(payload, kdo)
    return _OK if known else _OPERATION


@inlined
def _flags_status(flags: int, clustered: int) -> int:
    """Return the `ChangeStatus` of the flags of a row piece, before and after the change, or
    NO_ROW.

    Only clustered tables have keys of a cluster, and rows with an index into them. No statement
    writes a row that is deleted already.
    """
    if flags & FB_CLUSTER_KEY:
        return NO_ROW if clustered > 0 else _CONTRADICTION
    if flags & (FB_CLUSTERED | FB_DELETED) and clustered == 0:
        return _CONTRADICTION
    return _OK


@inlined
def single_piece(
    payload: Any,
    big: bool,
    op: int,
    clustered: int,
    undo_offset: Any,
    undo_length: Any,
    undo_fields: int,
    redo_offset: Any,
    redo_length: Any,
    redo_fields: int,
    pieces: PieceColumns,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push one row piece from an undo record and its row vector; return a `ChangeStatus`, or
    NO_ROW.
    """
    piece = state[PIECES]
    open_piece(pieces, piece, op)
    if redo_fields < 2 or redo_length[2] < KDO_SIZE or undo_fields < 4 or undo_length[4] < KDO_SIZE:
        return _SHORT_FIELD
    kdo = redo_offset[2]
    undo_kdo = undo_offset[4]
    status = _pair_status(payload, undo_kdo, kdo, op, big)
    if status != _OK:
        return status
    flags, slot = row_flags_and_slot(payload, kdo, redo_length[2], big)
    undo_flags, undo_slot = row_flags_and_slot(payload, undo_kdo, undo_length[4], big)
    if slot < 0 or slot != undo_slot:
        return _SHORT_FIELD if min(slot, undo_slot) < 0 else _CONTRADICTION
    flags = undo_flags if op == DRP else flags
    status = _flags_status(flags | undo_flags, clustered)
    if status != _OK:
        return status
    pieces.row_flags[piece] = flags
    pieces.old_flags[piece] = undo_flags
    pieces.bdba[piece] = u32(payload, kdo + KDO_BDBA, big)
    pieces.slot[piece] = slot
    pieces.head_bdba[piece] = pieces.bdba[piece]
    pieces.head_slot[piece] = slot
    _links(payload, kdo, redo_length[2], undo_kdo, undo_length[4], big, pieces, piece)

    first = state[ENTRIES]
    state[PACKED] = 0
    field = push_undo_columns(payload, undo_offset, undo_length, undo_fields, big, entries, state)
    if field < 0 or not ends_or_describes(undo_length, field, undo_fields):
        return _COLUMNS
    undo_shift = state[SHIFT]
    undo_end = state[ENTRIES]
    old_packed = state[PACKED]
    state[PACKED] = 0
    redo_end_field = push_redo_columns(
        payload, redo_offset, redo_length, redo_fields, op, big, entries, state
    )
    packed = old_packed * _OLD_PACKED + state[PACKED] * _NEW_PACKED
    pieces.packed[piece] = packed
    has_all = redo_end_field >= 0 and ends(redo_length, redo_end_field, redo_fields, op)
    if not has_all or not _are_packed(payload, undo_kdo, kdo, packed):
        return _COLUMNS
    redo_shift = state[SHIFT]
    redo_end = state[ENTRIES]

    header = supplemental_header(undo_length, field, undo_fields)
    before = 0
    after = 0
    if header == 0 and op == LKR:
        state[ENTRIES] = first
        return NO_ROW
    if header > 0:
        at = undo_offset[header]
        moved = payload[at + SUPPLEMENTAL_FB] & SUPPLEMENTAL_MOVES != 0
        if not fits_operation(payload, at, op, flags):
            return _CONTRADICTION
        if says_no_row(payload, at, op):
            state[ENTRIES] = first
            changes_none = is_of_no_row(op, payload[at], clustered, redo_end - first)
            return NO_ROW if changes_none else _CONTRADICTION
        if not moved:
            before, after = _describe(payload, at, undo_length[header], big, pieces, piece)
        if not moved or flags & FB_WHOLE == FB_WHOLE:
            status = _push_logged(
                payload, undo_offset, undo_length, undo_fields, header, op, big, pieces, piece,
                entries, state,
            )  # fmt: skip
    _shift(entries, first, undo_end, before if before > 0 else undo_shift + 1 + clustered)
    _shift(entries, undo_end, redo_end, after if after > 0 else redo_shift + 1 + clustered)
    if status == _OK and clustered == 0 and _is_in_other_table(payload, kdo, undo_kdo):
        status = _log_status(payload, entries, first, redo_end, state[ENTRIES], op)
    if status != _OK:
        return status
    pieces.entry_count[piece] = state[ENTRIES] - first
    state[PIECES] = piece + 1
    return _OK


@inlined
def multi_row_pieces(
    payload: Any,
    big: bool,
    op: int,
    row_scn: int,
    offset: Any,
    length: Any,
    fields: int,
    kdo: int,
    role: int,
    pieces: PieceColumns,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push one piece per row of a QMI or QMD; return a `ChangeStatus`. KDO is field `kdo`; the
    lengths and the rows follow.
    """
    if fields < kdo or length[kdo] < KDO_MULTI_SLOTS:
        return _SHORT_FIELD
    at = offset[kdo]
    if not has_known_form(payload, at):
        return _OPERATION
    rows = int(payload[at + KDO_MULTI_NROW])
    if rows == 0 or length[kdo] < KDO_MULTI_SLOTS + 2 * rows:
        return _ROWS
    if payload[at + KDO_MULTI_TABN] != 0 or payload[at + KDO_TYPE] & KDO_PACKED:
        return _ROWS  # rows of a compressed block: table 0 of such a block is its dictionary
    if fields < kdo + 2 or length[kdo + 1] < 2 * rows:
        return _ROWS
    skip = ROW_SIZE + (row_scn if payload[at + KDO_OP] & KDO_ROW_SCN else 0)
    row = offset[kdo + 2]
    stop = row + length[kdo + 2]
    for r in range(rows):
        size = u16(payload, offset[kdo + 1] + 2 * r, big)
        if size < skip or row + size > stop:
            return _ROWS
        if payload[row] != FB_WHOLE:
            return _OPERATION
        piece = state[PIECES]
        if piece == pieces.op.size:
            state[FULL] = 1
            return _OK
        open_piece(pieces, piece, op)
        pieces.row_flags[piece] = payload[row]
        pieces.bdba[piece] = u32(payload, at + KDO_BDBA, big)
        pieces.slot[piece] = u16(payload, at + KDO_MULTI_SLOTS + 2 * r, big)
        pieces.head_bdba[piece] = pieces.bdba[piece]
        pieces.head_slot[piece] = pieces.slot[piece]
        first = state[ENTRIES]
        end = push_row(
            payload,
            row + skip,
            row + size,
            int(payload[row + ROW_CC]),
            big,
            role,
            1,
            entries,
            state,
        )
        # If the lengths do not match, the rows may be compressed: they refer to the block's
        # dictionary.
        if end != row + size:
            return _ROWS
        pieces.entry_count[piece] = state[ENTRIES] - first
        state[PIECES] = piece + 1
        row += size
    return _OK if row == stop else _ROWS
