"""Direct-path inserts: whole formatted table blocks (19.1) to row pieces.

The block's rows come as one piece each, as those of a multi-row insert do. Facts: redo-format
§6.2; the block layout checked on a real vector of 23ai.
"""

from __future__ import annotations

from typing import Any

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EntryColumns, PieceColumns, Role
from olr_pg.redo.format.lob_fields import (
    BLOCK_ASSM,
    BLOCK_ASSM_BYTES,
    BLOCK_FLG,
    BLOCK_IMAGE_SIZE,
    BLOCK_ITC,
    BLOCK_ITL,
    BLOCK_ITL_ENTRY,
    BLOCK_OBJD,
    BLOCK_TABLE,
    KDBH_NROW,
    KDBH_NTAB,
    KDBH_ROWS,
)
from olr_pg.redo.format.opcodes import QMI
from olr_pg.redo.format.row_fields import FB_DELETED, FB_WHOLE, ROW_CC, ROW_SIZE
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.pieces import ChangeStatus, open_piece
from olr_pg.redo.row_vectors import ENTRIES, FULL, PIECES, push_row

_AFTER = int(Role.AFTER)
_OK = int(ChangeStatus.OK)
_ROWS = int(ChangeStatus.ROWS)
_OPERATION = int(ChangeStatus.OPERATION)


@inlined
def block_object(payload: Any, at: int, size: int, big: bool) -> int:
    """Return the data object number of a table block image, −1 for another image."""
    if size < BLOCK_IMAGE_SIZE or payload[at] != BLOCK_TABLE:
        return -1
    return u32(payload, at + BLOCK_OBJD, big)


@inlined
def _data_header(payload: Any, at: int, size: int, big: bool) -> int:
    """Find the data header; −1 where it does not fit or the block is compressed."""
    header = at + BLOCK_ITL + BLOCK_ITL_ENTRY * (u16(payload, at + BLOCK_ITC, big) & 0xFF)
    if payload[at + BLOCK_FLG] & BLOCK_ASSM:
        header += BLOCK_ASSM_BYTES
    if header + KDBH_ROWS > at + size or payload[header + KDBH_NTAB] != 1:
        return -1
    return header


@inlined
def block_rows(
    payload: Any,
    at: int,
    size: int,
    dba: int,
    big: bool,
    pieces: PieceColumns,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push one piece per row of the block image at `at`; a `ChangeStatus`."""
    header = _data_header(payload, at, size, big)
    if header < 0:
        return _ROWS
    end = at + size
    rows = u16(payload, header + KDBH_NROW, big)
    if header + KDBH_ROWS + 2 * rows > end:
        return _ROWS
    for slot in range(rows):
        row = header + u16(payload, header + KDBH_ROWS + 2 * slot, big)
        if row + ROW_SIZE > end:
            return _ROWS
        flags = payload[row]
        if flags & FB_DELETED:
            continue
        if flags & FB_WHOLE != FB_WHOLE:
            return _OPERATION
        piece = state[PIECES]
        if piece == pieces.op.size:
            state[FULL] = 1
            return _OK
        first = state[ENTRIES]
        open_piece(pieces, piece, QMI)
        pieces.row_flags[piece] = flags
        pieces.bdba[piece] = dba
        pieces.slot[piece] = slot
        pieces.head_bdba[piece] = dba
        pieces.head_slot[piece] = slot
        count = int(payload[row + ROW_CC])
        if push_row(payload, row + ROW_SIZE, end, count, big, _AFTER, 1, entries, state) < 0:
            return _ROWS
        pieces.entry_count[piece] = state[ENTRIES] - first
        state[PIECES] = piece + 1
    return _OK
