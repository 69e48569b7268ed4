"""Vectors of LOB storage to pieces: pages, block lists, the LOB index, logical LOB operations.

An event of kind LOB has one piece per thing logged: `LobOp` in `op`, the block in `bdba`, and two
entries, the LOB id (length −1 where the vector names none) and the bytes. Numbers that a piece has
besides stand in `head_bdba` and `slot`, as `LobOp` says. Numbers inside the bytes keep the
platform's order (`row_flags`).

Facts: values-and-lobs §18, §19, §23, redo-format §6; the layout of 26.6 is that of 230 real
vectors, that of 11.17 of real records of both byte orders, the rest is published knowledge.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined
from olr_pg.redo.batch import EntryColumns, PieceColumns
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.row_vectors import ENTRIES, FULL, PIECES

if TYPE_CHECKING:
    from olr_pg.redo.column_tables import Table
    from olr_pg.redo.walk import ObjectTables


class LobOp(IntEnum):
    """The kinds of LOB piece.

    PAGE is a block's whole payload (`head_bdba`: its page number, 19.1 only). FILL and ZERO write
    at offset `slot` of the block's payload; ZERO has no bytes, `head_bdba` is its size. LIST is
    the list of extents of a map block, LIST_AT a part of it from entry `head_bdba` on; HEADER the
    addresses of a LOB header block's four list blocks. INDEX is a LOB index row: `head_bdba` is
    its page number. OPERATION is an 11.17: `sup_type` its kind, `sup_flags` its operation, `slot`
    the column, `head_bdba` the size, and no bytes.
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
    """Bits of `row_flags`: how the entries of a list are written."""

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
"""Instead of how many pieces were pushed: the vector's fields do not fit."""


class LobFields(NamedTuple):
    """A vector of the window and its fields, read by `vectors.read_fields`.

    Attributes:
        dba: block address of the vector header.
        con_id: container of the vector header.
    """

    payload: npt.NDArray[np.uint8]
    big: bool
    dba: int
    con_id: int
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    fields: int


class LobSink(NamedTuple):
    """The place where pieces and entries go; `state` as in `row_vectors`."""

    pieces: PieceColumns
    entries: EntryColumns
    state: npt.NDArray[np.int64]


@inlined
def find_lob(objects: Table, con_id: int, number: int, wanted: int) -> int:
    """Find the table of a LOB segment (`wanted` 0) or index (1), −1 for other objects."""
    key = np.uint64(con_id) << np.uint64(32) | np.uint64(number)
    at = np.searchsorted(objects.key, key)
    if at < objects.key.size and objects.key[at] == key and objects.is_index[at] == wanted:
        return int(objects.table[at])
    return -1


@inlined
def is_lob_object(objects: Table, con_id: int, number: int) -> bool:
    """Tell whether the object is a LOB segment or index of the subscription."""
    key = np.uint64(con_id) << np.uint64(32) | np.uint64(number)
    at = np.searchsorted(objects.key, key)
    return bool(at < objects.key.size and objects.key[at] == key)


@inlined
def table_of_lob(objects: Table, con_id: int, number: int) -> int:
    """Find the table of a LOB segment or index of the subscription (`is_lob_object`)."""
    key = np.uint64(con_id) << np.uint64(32) | np.uint64(number)
    return int(objects.table[np.searchsorted(objects.key, key)])


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
    """Push a piece; its row. `lob`: place of the LOB id, −1 = nowhere. No room sets state[FULL]."""
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
    _push_entry(sink, max(lob, 0), 10 if lob >= 0 else -1)
    _push_entry(sink, offset, length)
    state[PIECES] = at + 1
    return int(at)


@inlined
def _item_lob(payload: Any, at: int, size: int) -> int:
    """Find the LOB id of a KDLI item, −1 = nowhere."""
    if size < 1:
        return -1
    code = payload[at]
    if code == 0x01 and size >= 11:
        return at + 1
    if (code == 0x04 or code == 0x0C or code == 0x0F) and size >= 22:
        return at + 12
    return -1


@inlined
def kdli_lob(payload: Any, offset: Any, length: Any, fields: int, first: int) -> int:
    """Find the LOB id of a 26.x vector, −1 = nowhere; items begin at field `first`."""
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
    """Find the item of that code and least size, −1 = there is none."""
    field = first
    while field <= fields:
        if length[field] >= size and payload[offset[field]] == code:
            return int(offset[field])
        if length[field] >= 54 and payload[offset[field]] == 0x04:
            field += 1  # what follows is a page, not an item
        field += 1
    return -1


@inlined
def push_kdli(
    payload: Any, big: bool, offset: Any, length: Any, fields: int, common: int, sink: LobSink
) -> int:
    """Push the pieces of a 26.2 or 26.6 whose KDLI common is field `common`; count or MALFORMED."""
    if fields < common or length[common] < 12:
        return MALFORMED
    dba = u32(payload, offset[common] + 8, big)
    lob = kdli_lob(payload, offset, length, fields, common + 1)
    before = sink.state[PIECES]
    field = common + 1
    while field <= fields:
        at, size = offset[field], length[field]
        code = payload[at] if size > 0 else 0
        if code == 0x04 and size >= 54:
            filled = u16(payload, at + 52, big) | u16(payload, at + 54, big)
            has_page = field < fields
            if has_page and length[field + 1] == 24 and payload[offset[field + 1]] == 0x09:
                has_page = filled == 24
            if has_page:
                field += 1
                _push_piece(sink, _PAGE, dba, 0, 0, lob, offset[field], length[field])
            elif filled == 0:
                _push_piece(sink, _PAGE, dba, 0, 0, lob, at, 0)
        elif code == 0x05 and size >= 6:
            start, count = u16(payload, at + 2, big), u16(payload, at + 4, big)
            _push_piece(sink, _ZERO, dba, start, count, lob, at, 0)
        elif code == 0x06 and size >= 8:
            count = u16(payload, at + 6, big)
            if 8 + count > size:
                return MALFORMED
            _push_piece(sink, _FILL, dba, u16(payload, at + 2, big), 0, lob, at + 8, count)
        elif code == 0x07 or code == 0x08 or code == 0x0D or code == 0x0E:
            if _push_list(payload, big, at, size, code, dba, lob, sink) == MALFORMED:
                return MALFORMED
        elif code == 0x0C and size >= 112:
            piece = _push_piece(sink, _HEADER, dba, 0, 0, lob, at + 64, 20)
            sink.pieces.row_flags[piece] = _BIG_ENDIAN if big else 0
        field += 1
    return int(sink.state[PIECES] - before)


@inlined
def _push_list(
    payload: Any, big: bool, at: int, size: int, code: int, dba: int, lob: int, sink: LobSink
) -> int:
    partial = code >= 0x0D
    head = 12 if partial else 8
    wide = code == 0x08 or code == 0x0E
    if size < head:
        return MALFORMED
    count = u32(payload, at + 4, big)
    width = 16 if wide else 8
    if head + count * width > size:
        return MALFORMED
    start = u32(payload, at + 8, big) if partial else 0
    piece = _push_piece(
        sink, _LIST_AT if partial else _LIST, dba, 0, start, lob, at + head, count * width
    )
    sink.pieces.row_flags[piece] = (_BIG_ENDIAN if big else 0) | (_WIDE if wide else 0)
    return 0


@inlined
def push_long_field(
    payload: Any, big: bool, offset: Any, length: Any, fields: int, dba: int, sink: LobSink
) -> int:
    """Push the page of a 19.1 in its LOB form; 1, or 0 for other forms."""
    if fields < 1 or length[1] < 36:
        return 0
    if fields >= 2 and length[2] > 0 and payload[offset[2]] == 6:
        return 0
    at = offset[1]
    if u32(payload, at + 4, True) != 1:
        return 0
    _push_piece(sink, _PAGE, dba, 0, u32(payload, at + 24, big), at + 4, at + 36, length[1] - 36)
    return 1


@inlined
def _push_index_row(payload: Any, key: int, data: int, sink: LobSink) -> int:
    """Push the LOB index row of a 16-byte key and 32 bytes of data; 1, or 0 where it is none."""
    if payload[key] != 0x0A or payload[key + 11] != 0x04 or u32(payload, key + 1, True) != 1:
        return 0
    _push_piece(sink, _INDEX, 0, 0, u32(payload, key + 12, True), key + 1, data, 32)
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
    """Push the LOB index row of a 10.2, 10.8 or 10.18 and its undo; 1, or 0 where there is none."""
    if code == 2:
        if fields < 4 or length[3] != 16 or length[4] != 32:
            return 0
        return _push_index_row(payload, offset[3], offset[4], sink)
    if code == 8:
        if fields < 4 or length[4] < 50:
            return 0
        return _push_index_row(payload, offset[4] + 34, offset[4] + 2, sink)
    if fields < 3 or length[3] != 32 or undo_fields < 5 or undo_length[5] != 16:
        return 0
    return _push_index_row(payload, undo_offset[5], offset[3], sink)


@inlined
def push_operation(
    payload: Any, big: bool, offset: Any, length: Any, fields: int, sink: LobSink
) -> int:
    """Push an 11.17 of kind 1 or 3; 1, or 0 for other kinds."""
    if fields < 3 or length[2] < 1:
        return 0
    kind = int(payload[offset[2]])
    at = offset[3]
    if kind == 1 and length[3] >= 40:
        piece = _push_piece(
            sink,
            _OPERATION,
            0,
            u16(payload, at + 22, big),
            u32(payload, at + 32, big),
            at + 12,
            at,
            0,
        )
        sink.pieces.sup_flags[piece] = payload[at]
    elif kind == 3 and length[3] >= 36:
        piece = _push_piece(
            sink, _OPERATION, 0, u16(payload, at + 34, big), u32(payload, at + 12, big), -1, at, 0
        )
    else:
        return 0
    sink.pieces.sup_type[piece] = kind
    return 1


@inlined
def find_table(objects: ObjectTables, con_id: int, number: int) -> int:
    """Find the table with LOB columns that an OBJ# belongs to, −1 = none."""
    key = np.uint64(con_id) << np.uint64(32) | np.uint64(number)
    at = np.searchsorted(objects.tables.key, key)
    if at < objects.tables.key.size and objects.tables.key[at] == key:
        table = int(objects.tables.table[at])
        return table if objects.lob_tables[table] else -1
    return -1


@inlined
def _read_xid(payload: Any, at: int, big: bool) -> int:
    return u16(payload, at, big) << 48 | u16(payload, at + 2, big) << 32 | u32(payload, at + 4, big)


@inlined
def lob_alone(
    op: int, vector: LobFields, objects: ObjectTables, sink: LobSink
) -> tuple[int, int, int]:
    """Push an 11.17, 19.1 or 26.6; (pieces or MALFORMED, XID or 0, table).

    A page of 19.1 names no transaction: whoever maps its LOB id owns it.
    """
    payload, big, offset, length = vector.payload, vector.big, vector.offset, vector.length
    count = vector.fields
    if op == 0x1301:
        if count < 1 or length[1] < 36:
            return 0, 0, -1
        table = find_lob(objects.lob_data, vector.con_id, u32(payload, offset[1], big), 0)
        if table < 0:
            return 0, 0, -1
        return push_long_field(payload, big, offset, length, count, vector.dba, sink), 0, table
    if op == 0x0B11:
        if count < 3 or length[2] < 1 or length[3] < 36:
            return 0, 0, -1
        at = offset[3]
        first = payload[offset[2]] == 1
        if first and length[3] < 40:
            return 0, 0, -1
        table = find_table(objects, vector.con_id, u32(payload, at + (36 if first else 8), big))
        if table < 0:
            return 0, 0, -1
        pushed = push_operation(payload, big, offset, length, count, sink)
        return pushed, _read_xid(payload, at + (4 if first else 0), big), table
    xid, table = _direct_load_owner(vector, objects)
    if table < 0 or xid == 0:
        return 0, 0, -1
    return push_kdli(payload, big, offset, length, count, 1, sink), xid, table


@inlined
def _direct_load_owner(vector: LobFields, objects: ObjectTables) -> tuple[int, int]:
    """(XID or 0, table or −1) of a 26.6, from its fpload and suplog items."""
    payload, big, offset, length = vector.payload, vector.big, vector.offset, vector.length
    xid, table = 0, -1
    load = kdli_item(payload, offset, length, vector.fields, 2, 0x0B, 28)
    if load >= 0:
        xid = _read_xid(payload, load + 16, big)
        table = find_lob(objects.lob_data, vector.con_id, u32(payload, load + 24, big), 0)
    logged = kdli_item(payload, offset, length, vector.fields, 2, 0x09, 24)
    if logged >= 0:
        xid = _read_xid(payload, logged + 4, big)
        if table < 0:
            table = find_table(objects, vector.con_id, u32(payload, logged + 12, big))
    return xid, table


@inlined
def lob_pair(
    op: int, vector: LobFields, undo: LobFields, objects: ObjectTables, sink: LobSink
) -> tuple[int, int]:
    """Push a 26.2, 10.2, 10.8 or 10.18 behind its undo; (pieces or MALFORMED, table)."""
    if undo.fields < 2 or undo.length[2] < 24:
        return MALFORMED, -1
    ktub = undo.offset[2]
    obj = u32(undo.payload, ktub, undo.big)
    dataobj = u32(undo.payload, ktub + 4, undo.big)
    is_index = 0 if op == 0x1A02 else 1
    table = find_lob(objects.lob_objects, vector.con_id, obj, is_index)
    if table < 0:
        table = find_lob(objects.lob_data, vector.con_id, dataobj, is_index)
    if is_index == 0 and table < 0:
        table = find_table(objects, vector.con_id, obj)
    if table < 0:
        return 0, -1
    if is_index:
        return push_index(
            vector.payload, op & 0xFF, undo.offset, undo.length, undo.fields,
            vector.offset, vector.length, vector.fields, sink,
        ), table  # fmt: skip
    return push_kdli(
        vector.payload, vector.big, vector.offset, vector.length, vector.fields, 2, sink
    ), table
