"""Ranges of blocks that were written without redo: 19.2, and 19.4 if logging is enabled again.

The contents of the blocks are not in the redo. So such a vector of a subscribed object is a change
that cannot be decoded. Its header contains the first block and the data object, like every
vector's. The position of the number of blocks is not known from real bytes, so the header's class
and file, and the fields, are kept unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from olr_pg.kernels.compile import part
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.events import direct_load_xid, find
from olr_pg.redo.format.file_fields import VECTOR_AFN, VECTOR_CLS, VECTOR_CODE, VECTOR_TYP
from olr_pg.redo.integers import u16
from olr_pg.redo.lobs import is_lob_object, table_of_lob
from olr_pg.redo.pieces import ChangeStatus, open_piece
from olr_pg.redo.row_vectors import ENTRIES, PIECES, push
from olr_pg.redo.undecoded import push_unknown
from olr_pg.redo.vectors import container_of, dba_of, object_of, read_fields
from olr_pg.redo.walk import RECORD_AT_HAND, TALLY_CHANGES, TALLY_ROW_VECTORS, Walk

if TYPE_CHECKING:
    import numpy.typing as npt

_RELATIVE_BLOCK: Final = 0x3FFFFF
_SHOWN: Final = 64
"""Number of bytes of a vector's fields in a message."""

_UNLOGGED = int(ChangeStatus.UNLOGGED)
_UNLOGGED_LOB = int(ChangeStatus.UNLOGGED_LOB)


@part
def _push_range(walk: Walk, at: int) -> None:
    """Push a range as a piece: block, class, file and type of the header, and the raw fields."""
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

    Like a 19.1, it belongs to the transaction in its record's 24.6. Without a 24.6 it becomes its
    own transaction, which commits at its position; the loading transaction may commit later, or
    never, which cannot be known. The same applies to ranges of LOB segments, whose pages do not
    contain a transaction either.
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
    """Describe what is known of the ranges among some events, by event.

    Args:
        events: rows of it.
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
