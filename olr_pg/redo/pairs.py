"""An undo record and its row or leaf vector to row pieces, by operation (redo-format §5, §6.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.kernels import inlined
from olr_pg.redo.iot import index_piece
from olr_pg.redo.pieces import multi_row_pieces, single_piece

if TYPE_CHECKING:
    from olr_pg.redo.iot import Pair


@inlined
def pair_pieces(pair: Pair, layer: int, code: int, row_scn: int, clustered: int) -> int:
    """The row pieces of a pair; 0 kept, −1 carries no row, else a `ChangeStatus`.

    Args:
        pair: the fields of both vectors, and where pieces and values go.
        layer, code: opcode of the row or leaf vector.
        row_scn: bytes of the row SCN inside multi-row vectors.
        clustered: CLUCOLS of the table.
    """
    if layer == 10:
        return index_piece(pair, code)
    if code == 11:
        return multi_row_pieces(
            pair.payload, pair.big, code, row_scn, pair.redo_offset, pair.redo_length,
            pair.redo_fields, 2, 2, pair.pieces, pair.entries, pair.state,
        )  # fmt: skip
    if code == 12:
        return multi_row_pieces(
            pair.payload, pair.big, code, row_scn, pair.undo_offset, pair.undo_length,
            pair.undo_fields, 4, 1, pair.pieces, pair.entries, pair.state,
        )  # fmt: skip
    if code in (2, 3, 4, 5, 6, 8, 16, 22):
        return single_piece(
            pair.payload, pair.big, code, clustered, pair.undo_offset, pair.undo_length,
            pair.undo_fields, pair.redo_offset, pair.redo_length, pair.redo_fields, pair.pieces,
            pair.entries, pair.state,
        )  # fmt: skip
    return -1 if code in (7, 9, 10, 14, 20, 23, 24) else 8
