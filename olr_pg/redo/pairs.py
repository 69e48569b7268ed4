"""An undo record and its row or leaf vector to row pieces, by operation (redo-format §5, §6.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import Role
from olr_pg.redo.format.opcodes import (
    CFA,
    CMP,
    DRP,
    IRP,
    LAYER_INDEX,
    LKR,
    LMN,
    ORP,
    QMD,
    QMI,
    ROW_STRUCTURE,
    URP,
)
from olr_pg.redo.iot import index_piece
from olr_pg.redo.pieces import NO_ROW, ChangeStatus, multi_row_pieces, single_piece

if TYPE_CHECKING:
    from olr_pg.redo.iot import Pair

_SINGLE = (IRP, DRP, LKR, URP, ORP, CFA, LMN, CMP)

_BEFORE = int(Role.BEFORE)
_AFTER = int(Role.AFTER)
_OPERATION = int(ChangeStatus.OPERATION)


@inlined
def pair_pieces(pair: Pair, layer: int, code: int, row_scn: int, clustered: int) -> int:
    """Push the row pieces of a pair; a `ChangeStatus`, or NO_ROW.

    Args:
        pair: the fields of both vectors, and where pieces and values go.
        layer, code: opcode of the row or leaf vector.
        row_scn: bytes of the row SCN inside multi-row vectors.
        clustered: CLUCOLS of the table.
    """
    if layer == LAYER_INDEX:
        return index_piece(pair, code)
    if code == QMI:
        return multi_row_pieces(
            pair.payload, pair.big, code, row_scn, pair.redo_offset, pair.redo_length,
            pair.redo_fields, 2, _AFTER, pair.pieces, pair.entries, pair.state,
        )  # fmt: skip
    if code == QMD:
        return multi_row_pieces(
            pair.payload, pair.big, code, row_scn, pair.undo_offset, pair.undo_length,
            pair.undo_fields, 4, _BEFORE, pair.pieces, pair.entries, pair.state,
        )  # fmt: skip
    if code in _SINGLE:
        return single_piece(
            pair.payload, pair.big, code, clustered, pair.undo_offset, pair.undo_length,
            pair.undo_fields, pair.redo_offset, pair.redo_length, pair.redo_fields, pair.pieces,
            pair.entries, pair.state,
        )  # fmt: skip
    return NO_ROW if code in ROW_STRUCTURE else _OPERATION
