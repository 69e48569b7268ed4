"""Decodes vectors for ranges of blocks that were written without redo: 19.2, and 19.4 if logging is
enabled again.

The contents of the blocks are not in the redo. So if the object is subscribed, such a vector is a
change that cannot be decoded. The header of the vector contains the first block and the data
object. No real vector was available that shows where the number of blocks is. So class and file
from the header, and the fields, are stored as they are, for the error message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from olr_pg.kernels.compile import part
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.events import direct_load_xid, find, push_unknown
from olr_pg.redo.format.file_fields import VECTOR_AFN, VECTOR_CLS, VECTOR_CODE, VECTOR_TYP
from olr_pg.redo.integers import u16
from olr_pg.redo.lobs import is_lob_object, table_of_lob
from olr_pg.redo.pieces import ChangeStatus, open_piece
from olr_pg.redo.row_vectors import ENTRIES, PIECES, push
from olr_pg.redo.vectors import container_of, dba_of, object_of, read_fields
from olr_pg.redo.walk import RECORD_AT_HAND, TALLY_CHANGES, TALLY_ROW_VECTORS, Walk

if TYPE_CHECKING:
    import numpy.typing as npt

_RELATIVE_BLOCK: Final = 0x3FFFFF
_SHOWN: Final = 64
"""Maximum number of bytes of each field in an error message."""

_UNLOGGED = int(ChangeStatus.UNLOGGED)
_UNLOGGED_LOB = int(ChangeStatus.UNLOGGED_LOB)


@part
def _push_range(walk: Walk, at: int) -> None:
    """Push a range as a piece: with block, class, file and type from the vector's header, and the
    fields as values.
    """
    payload, big = walk.payload, walk.big
    piece = walk.state[PIECES]
    first = walk.state[ENTRIES]
    open_piece(walk.pieces, piece, payload[at + VECTOR_CODE])
    walk.pieces.bdba[piece] = dba_of(payload, at, big)
    walk.pieces.slot[piece] = u16(payload, at + VECTOR_CLS, big)
    walk.pieces.head_slot[piece] = u16(payload, at + VECTOR_AFN, big)
    walk.pieces.sup_type[piece] = payload[at + VECTOR_TYP]
    offset, length = walk.scratch[0], walk.scratch[1]
    fields = read_fields(payload, at, walk.header, big, offset, length)
    for field in range(1, fields + 1):
        push(walk.entries, walk.state, 0, 0, field, offset[field], length[field])
    walk.pieces.entry_count[piece] = walk.state[ENTRIES] - first
    walk.state[PIECES] = piece + 1


@part
def unlogged_range(walk: Walk, vector: int, at: int) -> int:
    """Push the UNDECODED event of a 19.2 or 19.4 if its object is subscribed; return a
    `ChangeStatus`.

    Like a 19.1, the vector belongs to the transaction that the 24.6 in the same record names. If
    the record has no 24.6, the vector becomes a transaction of its own, which commits at the
    vector's position, although the loading transaction may commit later or never. A range of a LOB
    segment always becomes a transaction of its own, because LOB pages name no transaction.
    """
    con_id = container_of(walk.payload, at, walk.header, walk.big)
    dataobj = object_of(walk.payload, at, walk.big)
    status = _UNLOGGED
    table = find(walk.objects.data, con_id, dataobj, walk.records.scn[walk.current[RECORD_AT_HAND]])
    if table < 0:
        if not is_lob_object(walk.objects.lob_data, con_id, dataobj):
            return 0
        status = _UNLOGGED_LOB
        table = table_of_lob(walk.objects.lob_data, con_id, dataobj)
    xid = direct_load_xid(walk) if status == _UNLOGGED else 0
    event = push_unknown(walk, vector, status, con_id, xid, table, dataobj)
    walk.events.piece_count[event] = 1
    _push_range(walk, at)
    walk.tally[TALLY_ROW_VECTORS] += 1
    walk.tally[TALLY_CHANGES] += 1
    return 0


def range_texts(batch: ChangeBatch, events: npt.NDArray[np.int64]) -> dict[int, str]:
    """Return texts that describe the ranges of blocks among some events, by event.

    Args:
        events: the rows of the events in the batch; other kinds of events are ignored.
    """
    kinds: Any = batch.events.kind[events]
    status: Any = batch.events.session[events]
    wanted = (kinds == EventKind.UNDECODED) & np.isin(status, (_UNLOGGED, _UNLOGGED_LOB))
    if not wanted.any():
        return {}
    piece_first = np.cumsum(batch.events.piece_count) - batch.events.piece_count
    entry_first = np.cumsum(batch.pieces.entry_count) - batch.pieces.entry_count
    return {
        event: _range_text(
            batch, event, int(piece_first[event]), int(entry_first[piece_first[event]])
        )
        for event in events[wanted].tolist()
    }


def _range_text(batch: ChangeBatch, event: int, piece: int, entry: int) -> str:
    pieces, entries = batch.pieces, batch.entries
    dba, fields = int(pieces.bdba[piece]), []
    for at in range(entry, entry + int(pieces.entry_count[piece])):
        start, size = int(entries.offset[at]), int(entries.length[at])
        shown = batch.data[start : start + min(size, _SHOWN)].tobytes().hex()
        fields.append(shown + "…" * (size > _SHOWN))
    return (
        f"a 19.{pieces.op[piece]} of data object {batch.events.dataobj[event]} invalidates blocks"
        f" from DBA 0x{dba:08X} on (file {dba >> 22}, block {dba & _RELATIVE_BLOCK}; how many is"
        f" not known; class {pieces.slot[piece]}, AFN {pieces.head_slot[piece]},"
        f" type {pieces.sup_type[piece]}, fields: {' '.join(fields) or 'none'})"
    )
