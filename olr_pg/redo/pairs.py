"""Decodes a pair into row pieces: an undo record and its row or leaf vector (redo-format §5,
§6.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import Role
from olr_pg.redo.format.opcodes import (
    CFA,
    CLUSTER_STRUCTURE,
    CMP,
    DRP,
    IRP,
    LAYER_INDEX,
    LKR,
    LMN,
    ORP,
    QMD,
    QMI,
    UNEXPLAINED,
    URP,
)
from olr_pg.redo.format.row_fields import (
    KDO_MULTI_NROW,
    KDO_MULTI_SLOTS,
    KDO_OP,
    KDO_SIZE,
)
from olr_pg.redo.iot import index_piece
from olr_pg.redo.pieces import (
    NO_ROW,
    ChangeStatus,
    has_known_form,
    is_same_block,
    multi_row_pieces,
    single_piece,
    undoes,
)

if TYPE_CHECKING:
    from olr_pg.redo.iot import Pair

_SINGLE = (IRP, DRP, LKR, URP, ORP, CFA, LMN, CMP)

_BEFORE = int(Role.BEFORE)
_AFTER = int(Role.AFTER)
_OPERATION = int(ChangeStatus.OPERATION)
_CONTRADICTION = int(ChangeStatus.CONTRADICTION)


@inlined
def pair_pieces(pair: Pair, layer: int, code: int, row_scn: int, clustered: int) -> int:
    """Push the row pieces of a pair; return a `ChangeStatus`, or NO_ROW.

    Args:
        pair: the fields of both vectors, and the tables for pieces and values.
        layer, code: opcode of the row or leaf vector.
        row_scn: number of bytes of the row SCN in multi-row vectors.
        clustered: CLUCOLS of the table.
    """
    if layer == LAYER_INDEX:
        return index_piece(pair, code)
    if code in (QMI, QMD) and not _same_rows(pair, code):
        return _CONTRADICTION
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
    if code not in CLUSTER_STRUCTURE and code not in UNEXPLAINED:
        return _OPERATION
    if code in CLUSTER_STRUCTURE and clustered == 0:
        return _CONTRADICTION
    return NO_ROW if _is_structure(pair, code) else _CONTRADICTION


@inlined
def _is_structure(pair: Pair, code: int) -> bool:
    """Return whether the operation of a pair changes no row, according to both vectors."""
    if pair.redo_fields < 2 or pair.redo_length[2] < KDO_SIZE:
        return False
    if pair.undo_fields < 4 or pair.undo_length[4] < KDO_SIZE:
        return False
    redo, undo = pair.redo_offset[2] + KDO_OP, pair.undo_offset[4] + KDO_OP
    return undoes(int(pair.payload[undo]), int(pair.payload[redo]), code)


@inlined
def _same_rows(pair: Pair, code: int) -> bool:
    """Return whether both vectors of a QMI or QMD have this operation and contain the same rows."""
    if pair.redo_fields < 2 or pair.redo_length[2] < KDO_MULTI_SLOTS:
        return False
    if pair.undo_fields < 4 or pair.undo_length[4] < KDO_MULTI_SLOTS:
        return False
    redo, undo = pair.redo_offset[2], pair.undo_offset[4]
    if not undoes(int(pair.payload[undo + KDO_OP]), int(pair.payload[redo + KDO_OP]), code):
        return False
    rows = int(pair.payload[redo + KDO_MULTI_NROW])
    if rows != pair.payload[undo + KDO_MULTI_NROW]:
        return False
    if not has_known_form(pair.payload, redo) or not has_known_form(pair.payload, undo):
        return False
    if not is_same_block(pair.payload, undo, redo, pair.big):
        return False
    end = KDO_MULTI_SLOTS + 2 * rows
    if pair.redo_length[2] < end or pair.undo_length[4] < end:
        return True  # `multi_row_pieces` reports this fault for the vector whose rows it reads
    for at in range(KDO_MULTI_SLOTS, end):
        if pair.payload[redo + at] != pair.payload[undo + at]:
            return False
    return True
