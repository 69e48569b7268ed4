"""Direct-path inserts: whole formatted table blocks (19.1) to row pieces.

The block's rows come as one piece each, as those of a multi-row insert do. Facts: redo-format
§6.2; the block layout checked on a real vector of 23ai.
"""

from __future__ import annotations

from typing import Any, Final

from olr_pg.kernels import inlined
from olr_pg.redo.batch import EntryColumns, PieceColumns
from olr_pg.redo.kernel import u16, u32
from olr_pg.redo.opcodes import push_row
from olr_pg.redo.pieces import open_piece

TABLE_DATA: Final = 1
_ITL_ENTRY: Final = 24
_ASSM: Final = 0x20
_WHOLE_ROW: Final = 0x2C
_DELETED: Final = 0x10
_INSERT: Final = 11


@inlined
def block_object(payload: Any, at: int, size: int, big: bool) -> int:
    """The data object number of a table block image, −1 for another image."""
    if size < 24 or payload[at] != TABLE_DATA:
        return -1
    return u32(payload, at + 4, big)


@inlined
def _data_header(payload: Any, at: int, size: int, big: bool) -> int:
    """Where the data header is, −1 where it does not fit or the block is compressed."""
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
    """One piece per row of the block image at `at`; a `ChangeStatus`."""
    header = _data_header(payload, at, size, big)
    if header < 0:
        return 4
    end = at + size
    rows = u16(payload, header + 2, big)
    if header + 18 + 2 * rows > end:
        return 4
    for slot in range(rows):
        row = header + u16(payload, header + 18 + 2 * slot, big)
        if row + 3 > end:
            return 4
        flags = payload[row]
        if flags & _DELETED:
            continue
        if flags & _WHOLE_ROW != _WHOLE_ROW:
            return 8
        piece = state[1]
        if piece == pieces.op.size:
            state[3] = 1
            return 0
        first = state[2]
        open_piece(pieces, piece, _INSERT)
        pieces.row_flags[piece] = flags
        pieces.bdba[piece] = dba
        pieces.slot[piece] = slot
        pieces.head_bdba[piece] = dba
        pieces.head_slot[piece] = slot
        count = int(payload[row + 2])
        if push_row(payload, row + 3, end, count, big, 2, 1, entries, state) < 0:
            return 4
        pieces.entry_count[piece] = state[2] - first
        state[1] = piece + 1
    return 0
