"""Decodes fields of LOB storage into pieces: pages, block lists, the LOB index, logical LOB
operations.

An event of kind LOB has one piece per logged item. The piece contains the `LobOp` in `op` and the
block in `bdba`. It has two entries: the LOB id (length −1 if the vector has none), and the bytes.
`LobOp` says which numbers are in `head_bdba` and `slot`. Numbers inside the bytes keep the byte
order of the log; `row_flags` contains this byte order.

Facts: values-and-lobs §18, §19, §23, redo-format §6; the layout of 26.6 was checked on 230 real
vectors, the layout of 11.17 on real records of both byte orders. The rest is from publications.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EntryColumns, PieceColumns
from olr_pg.redo.format.lob_fields import (
    BLOCK_DATA,
    KDLI_ALMAP,
    KDLI_ALMAPX,
    KDLI_DBA,
    KDLI_ENTRY,
    KDLI_ENTRY_WIDE,
    KDLI_FILL,
    KDLI_FILL_BYTES,
    KDLI_FILL_COUNT,
    KDLI_FILL_OFFSET,
    KDLI_FPLOAD,
    KDLI_INFO,
    KDLI_INFO_LOB,
    KDLI_INFO_LOB_END,
    KDLI_ITREE,
    KDLI_LHB,
    KDLI_LHB_BYTES,
    KDLI_LHB_LIST,
    KDLI_LHB_SIZE,
    KDLI_LIST_COUNT,
    KDLI_LIST_ENTRIES,
    KDLI_LMAP,
    KDLI_LMAPX,
    KDLI_LOAD,
    KDLI_LOAD_HWM,
    KDLI_LOAD_LEAST,
    KDLI_LOAD_LOB,
    KDLI_LOAD_LOB_END,
    KDLI_LOAD_SPR,
    KDLI_PART_ENTRIES,
    KDLI_PART_FIRST,
    KDLI_SIZE,
    KDLI_SUPLOG,
    KDLI_SUPLOG_SIZE,
    KDLI_ZERO,
    KDLI_ZERO_COUNT,
    KDLI_ZERO_OFFSET,
    KDLI_ZERO_SIZE,
    LLB_BEGIN,
    LLB_BEGIN_BYTES,
    LLB_BEGIN_COL,
    LLB_BEGIN_LOB,
    LLB_BEGIN_SIZE,
    LLB_END,
    LLB_END_BYTES,
    LLB_END_COL,
    LLB_END_SIZE,
    LOB_ID_BEGIN,
    LOB_ID_SIZE,
    LOB_IMAGE_BYTES,
    LOB_IMAGE_ID,
    LOB_IMAGE_PAGE,
    LOB_KEY_ID,
    LOB_KEY_PAGE,
    LOB_KEY_PAGE_BYTES,
    LOB_KEY_PAGE_LENGTH,
    LOB_KEY_SIZE,
    LOB_LEAF_DATA,
    LOB_LEAF_KEY,
    LOB_LEAF_SIZE,
    LOB_ROW_SIZE,
)
from olr_pg.redo.format.opcodes import (
    LEAF_INITIALIZE,
    LEAF_INSERT,
)
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.row_vectors import ENTRIES, FULL, PIECES, UNKNOWN_ITEM

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class LobOp(IntEnum):
    """The kinds of LOB pieces.

    - PAGE: the whole payload of a block. If the vector is a 19.1, `head_bdba` is the page
      number of the block in the LOB; other vectors do not contain it.
    - FILL: bytes that are written at offset `slot` of the block's payload.
    - ZERO: zeros that are written at offset `slot`; `head_bdba` is their number. The piece has no
      bytes.
    - LIST: the list of extents in a map block.
    - LIST_AT: a part of the list of extents in a map block, from entry `head_bdba` on.
    - HEADER: the addresses of the four list blocks, from a LOB header block.
    - INDEX: a row of a LOB index; `head_bdba` is its page number.
    - OPERATION: an 11.17. `sup_type` is the kind of the 11.17, `sup_flags` its operation, `slot`
      the column, `head_bdba` the size. The piece has no bytes.
    """

    PAGE = 1
    FILL = 2
    ZERO = 3
    LIST = 4
    LIST_AT = 5
    HEADER = 6
    INDEX = 7
    OPERATION = 8


class ListForm(IntFlag):
    """Bits of `row_flags`, which describe the format of the entries of a list."""

    BIG_ENDIAN = 1
    WIDE = 2


_PAGE = int(LobOp.PAGE)
_FILL = int(LobOp.FILL)
_ZERO = int(LobOp.ZERO)
_LIST = int(LobOp.LIST)
_LIST_AT = int(LobOp.LIST_AT)
_HEADER = int(LobOp.HEADER)
_INDEX = int(LobOp.INDEX)
_OPERATION = int(LobOp.OPERATION)
_BIG_ENDIAN = int(ListForm.BIG_ENDIAN)
_WIDE = int(ListForm.WIDE)

MALFORMED: Final = -2
"""A result instead of the number of pushed pieces: the vector's fields are invalid."""


class LobSink(NamedTuple):
    """The tables of pieces and entries to fill; `row_vectors` describes `state`."""

    pieces: PieceColumns
    entries: EntryColumns
    state: npt.NDArray[np.int64]


@inlined
def _push_entry(sink: LobSink, offset: int, length: int) -> None:
    entries, state = sink.entries, sink.state
    at = state[ENTRIES]
    if at == entries.role.size:
        state[FULL] = 1
        return
    entries.role[at] = 0
    entries.part[at] = 0
    entries.segcol[at] = 0
    entries.offset[at] = offset
    entries.length[at] = length
    state[ENTRIES] = at + 1


@inlined
def _push_piece(
    sink: LobSink, op: int, dba: int, slot: int, number: int, lob: int, offset: int, length: int
) -> int:
    """Push a piece and return its row; if there is no space, only set ``state[FULL]``.

    Args:
        lob: position of the LOB id, −1 if the vector has none.
    """
    pieces, state = sink.pieces, sink.state
    at = state[PIECES]
    if at >= pieces.op.size:
        state[FULL] = 1
        return 0
    pieces.op[at] = op
    pieces.supplemental[at] = 0
    pieces.sup_type[at] = 0
    pieces.sup_flags[at] = 0
    pieces.row_flags[at] = 0
    pieces.bdba[at] = dba
    pieces.slot[at] = slot
    pieces.head_bdba[at] = number
    pieces.head_slot[at] = 0
    pieces.changed_offset[at] = 0
    pieces.changed_length[at] = 0
    pieces.packed[at] = 0
    pieces.entry_count[at] = 2
    _push_entry(sink, max(lob, 0), LOB_ID_SIZE if lob >= 0 else -1)
    _push_entry(sink, offset, length)
    state[PIECES] = at + 1
    return int(at)


@inlined
def _item_lob(payload: Any, at: int, size: int) -> int:
    """Return the position of the LOB id in a KDLI item, −1 if it has none."""
    if size < 1:
        return -1
    code = payload[at]
    if code == KDLI_INFO and size >= KDLI_INFO_LOB_END:
        return at + KDLI_INFO_LOB
    is_load = code in (KDLI_LOAD, KDLI_LHB, KDLI_ITREE)
    if is_load and size >= KDLI_LOAD_LOB_END:
        return at + KDLI_LOAD_LOB
    return -1


@inlined
def kdli_lob(payload: Any, offset: Any, length: Any, fields: int, first: int) -> int:
    """Return the position of the LOB id in a 26.x vector, −1 if it has none. The items of the
    vector begin at field `first`.
    """
    field = first
    while field <= fields:
        found = _item_lob(payload, offset[field], length[field])
        if found >= 0:
            return int(found)
        field += 1
    return -1


@inlined
def kdli_item(
    payload: Any, offset: Any, length: Any, fields: int, first: int, code: int, size: int
) -> int:
    """Return the position of the first item with this code and at least this size, −1 if there is
    none.
    """
    field = first
    while field <= fields:
        if length[field] >= size and payload[offset[field]] == code:
            return int(offset[field])
        if length[field] >= KDLI_LOAD_LEAST and payload[offset[field]] == KDLI_LOAD:
            field += 1  # the next field is a page, not an item
        field += 1
    return -1


@inlined
def push_kdli(
    payload: Any, big: bool, offset: Any, length: Any, fields: int, common: int, sink: LobSink
) -> int:
    """Push the pieces of a 26.2 or 26.6; return their number or MALFORMED. Field `common` is the
    part that all KDLI vectors have.

    ``state[UNKNOWN_ITEM]`` becomes 1 if the vector has an item whose bytes are not known, and else
    0.
    """
    sink.state[UNKNOWN_ITEM] = 0
    if fields < common or length[common] < KDLI_SIZE:
        return MALFORMED
    dba = u32(payload, offset[common] + KDLI_DBA, big)
    lob = kdli_lob(payload, offset, length, fields, common + 1)
    before = sink.state[PIECES]
    field = common + 1
    while field <= fields:
        at, size = offset[field], length[field]
        code = payload[at] if size > 0 else 0
        if code == KDLI_LOAD and size >= KDLI_LOAD_LEAST:
            filled = u16(payload, at + KDLI_LOAD_HWM, big) | u16(payload, at + KDLI_LOAD_SPR, big)
            has_page = field < fields
            next_size = length[field + 1] if has_page else 0
            if next_size == KDLI_SUPLOG_SIZE and payload[offset[field + 1]] == KDLI_SUPLOG:
                has_page = filled == KDLI_SUPLOG_SIZE
            if has_page:
                field += 1
                _push_piece(sink, _PAGE, dba, 0, 0, lob, offset[field], length[field])
            elif filled == 0:
                _push_piece(sink, _PAGE, dba, 0, 0, lob, at, 0)
        elif code == KDLI_ZERO and size >= KDLI_ZERO_SIZE:
            start = u16(payload, at + KDLI_ZERO_OFFSET, big)
            count = u16(payload, at + KDLI_ZERO_COUNT, big)
            _push_piece(sink, _ZERO, dba, start, count, lob, at, 0)
        elif code == KDLI_FILL and size >= KDLI_FILL_BYTES:
            start = u16(payload, at + KDLI_FILL_OFFSET, big)
            count = u16(payload, at + KDLI_FILL_COUNT, big)
            if KDLI_FILL_BYTES + count > size:
                return MALFORMED
            _push_piece(sink, _FILL, dba, start, 0, lob, at + KDLI_FILL_BYTES, count)
        elif code in (KDLI_LMAP, KDLI_LMAPX, KDLI_ALMAP, KDLI_ALMAPX):
            if _push_list(payload, big, at, size, code, dba, lob, sink) == MALFORMED:
                return MALFORMED
        elif code == KDLI_LHB and size >= KDLI_LHB_SIZE:
            lists = at + KDLI_LHB_LIST
            piece = _push_piece(sink, _HEADER, dba, 0, 0, lob, lists, KDLI_LHB_BYTES)
            sink.pieces.row_flags[piece] = _BIG_ENDIAN if big else 0
        elif code not in (KDLI_INFO, KDLI_SUPLOG, KDLI_FPLOAD) and size > 0:
            sink.state[UNKNOWN_ITEM] = 1
        field += 1
    return int(sink.state[PIECES] - before)


@inlined
def _push_list(
    payload: Any, big: bool, at: int, size: int, code: int, dba: int, lob: int, sink: LobSink
) -> int:
    partial = code >= KDLI_ALMAP
    head = KDLI_PART_ENTRIES if partial else KDLI_LIST_ENTRIES
    wide = code in (KDLI_LMAPX, KDLI_ALMAPX)
    if size < head:
        return MALFORMED
    count = u32(payload, at + KDLI_LIST_COUNT, big)
    width = KDLI_ENTRY_WIDE if wide else KDLI_ENTRY
    if head + count * width > size:
        return MALFORMED
    start = u32(payload, at + KDLI_PART_FIRST, big) if partial else 0
    piece = _push_piece(
        sink, _LIST_AT if partial else _LIST, dba, 0, start, lob, at + head, count * width
    )
    sink.pieces.row_flags[piece] = (_BIG_ENDIAN if big else 0) | (_WIDE if wide else 0)
    return 0


@inlined
def push_long_field(
    payload: Any, big: bool, offset: Any, length: Any, fields: int, dba: int, sink: LobSink
) -> int:
    """Push the LOB page of a 19.1; return 1, or 0 if the vector contains no LOB page."""
    if fields < 1 or length[1] < LOB_IMAGE_BYTES:
        return 0
    if fields >= 2 and length[2] > 0 and payload[offset[2]] == BLOCK_DATA:
        return 0
    at = offset[1]
    lob = at + LOB_IMAGE_ID
    if u32(payload, lob, True) != LOB_ID_BEGIN:
        return 0
    page, size = u32(payload, at + LOB_IMAGE_PAGE, big), length[1] - LOB_IMAGE_BYTES
    _push_piece(sink, _PAGE, dba, 0, page, lob, at + LOB_IMAGE_BYTES, size)
    return 1


@inlined
def _push_index_row(payload: Any, key: int, data: int, sink: LobSink) -> int:
    """Push the LOB index row with a 16-byte key and 32 bytes of data; return 1, or 0 if the bytes
    are not a LOB index row.
    """
    if payload[key] != LOB_ID_SIZE or payload[key + LOB_KEY_PAGE_LENGTH] != LOB_KEY_PAGE_BYTES:
        return 0
    lob = key + LOB_KEY_ID
    if u32(payload, lob, True) != LOB_ID_BEGIN:
        return 0
    page = u32(payload, key + LOB_KEY_PAGE, True)
    _push_piece(sink, _INDEX, 0, 0, page, lob, data, LOB_ROW_SIZE)
    return 1


@inlined
def push_index(
    payload: Any,
    code: int,
    undo_offset: Any,
    undo_length: Any,
    undo_fields: int,
    offset: Any,
    length: Any,
    fields: int,
    sink: LobSink,
) -> int:
    """Push the LOB index row of a 10.2, 10.8 or 10.18 and its undo record; return 1, or 0 if they
    contain none.
    """
    if code == LEAF_INSERT:
        if fields < 4 or length[3] != LOB_KEY_SIZE or length[4] != LOB_ROW_SIZE:
            return 0
        return _push_index_row(payload, offset[3], offset[4], sink)
    if code == LEAF_INITIALIZE:
        if fields < 4 or length[4] < LOB_LEAF_SIZE:
            return 0
        leaf = offset[4]
        return _push_index_row(payload, leaf + LOB_LEAF_KEY, leaf + LOB_LEAF_DATA, sink)
    if fields < 3 or length[3] != LOB_ROW_SIZE:
        return 0
    if undo_fields < 5 or undo_length[5] != LOB_KEY_SIZE:
        return 0
    return _push_index_row(payload, undo_offset[5], offset[3], sink)


@inlined
def push_operation(
    payload: Any, big: bool, offset: Any, length: Any, fields: int, sink: LobSink
) -> int:
    """Push the piece of an 11.17 of kind 1 or 3; return 1, or 0 for other kinds."""
    if fields < 3 or length[2] < 1:
        return 0
    kind = int(payload[offset[2]])
    at = offset[3]
    if kind == LLB_BEGIN and length[3] >= LLB_BEGIN_SIZE:
        piece = _push_piece(
            sink,
            _OPERATION,
            0,
            u16(payload, at + LLB_BEGIN_COL, big),
            u32(payload, at + LLB_BEGIN_BYTES, big),
            at + LLB_BEGIN_LOB,
            at,
            0,
        )
        sink.pieces.sup_flags[piece] = payload[at]
    elif kind == LLB_END and length[3] >= LLB_END_SIZE:
        column = u16(payload, at + LLB_END_COL, big)
        size = u32(payload, at + LLB_END_BYTES, big)
        piece = _push_piece(sink, _OPERATION, 0, column, size, -1, at, 0)
    else:
        return 0
    sink.pieces.sup_type[piece] = kind
    return 1
