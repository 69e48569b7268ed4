"""Direct-path inserts: whole formatted table blocks (19.1) to row pieces.

The block's rows come as one piece each, as those of a multi-row insert do. Facts: redo-format
§6.2; the block layout checked on a real vector of 23ai.
"""

from __future__ import annotations

from typing import Any, Final

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EntryColumns, PieceColumns, Role
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.pieces import ChangeStatus, open_piece
from olr_pg.redo.row_vectors import ENTRIES, FB_DELETED, FB_WHOLE, FULL, PIECES, QMI, push_row

TABLE_DATA: Final = 1
_ITL_ENTRY: Final = 24
_ASSM: Final = 0x20

_AFTER = int(Role.AFTER)
_OK = int(ChangeStatus.OK)
_ROWS = int(ChangeStatus.ROWS)
_OPERATION = int(ChangeStatus.OPERATION)


@inlined
def block_object(payload: Any, at: int, size: int, big: bool) -> int:
    """Return the data object number of a table block image, −1 for another image."""
    if size < 24 or payload[at] != TABLE_DATA:
        return -1
    return u32(payload, at + 4, big)


@inlined
def _data_header(payload: Any, at: int, size: int, big: bool) -> int:
    """Find the data header; −1 where it does not fit or the block is compressed."""
    header = at + 24 + _ITL_ENTRY * (u16(payload, at + 16, big) & 0xFF)
    if payload[at + 18] & _ASSM:
        header += 8
    if header + 18 > at + size or payload[header + 1] != 1:
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
    rows = u16(payload, header + 2, big)
    if header + 18 + 2 * rows > end:
        return _ROWS
    for slot in range(rows):
        row = header + u16(payload, header + 18 + 2 * slot, big)
        if row + 3 > end:
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
        count = int(payload[row + 2])
        if push_row(payload, row + 3, end, count, big, _AFTER, 1, entries, state) < 0:
            return _ROWS
        pieces.entry_count[piece] = state[ENTRIES] - first
        state[PIECES] = piece + 1
    return _OK
