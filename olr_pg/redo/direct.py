"""Decodes direct-path inserts: whole formatted table blocks (19.1) into events and row pieces, and
the root blocks of directly loaded indexes (10.31).

Each row of the block becomes one piece, as in a multi-row insert. If the block cannot be read, and
the block or the vector's header names a subscribed table, the vector becomes an UNDECODED event
(`events`). Facts: redo-format §6.2; the block layout was checked on a real vector of 23ai.
"""

from __future__ import annotations

from typing import Any

from olr_pg.kernels.compile import inlined, part
from olr_pg.redo.batch import EntryColumns, EventKind, PieceColumns, Role
from olr_pg.redo.events import (
    direct_load_container,
    direct_load_xid,
    field_of,
    find,
    find_named,
    push_contradiction,
    push_event,
    push_unknown,
)
from olr_pg.redo.format.lob_fields import (
    BLOCK_ASSM,
    BLOCK_ASSM_BYTES,
    BLOCK_FLG,
    BLOCK_IMAGE_SIZE,
    BLOCK_INDEX,
    BLOCK_ITC,
    BLOCK_ITL,
    BLOCK_ITL_ENTRY,
    BLOCK_OBJD,
    BLOCK_TABLE,
    KDBH_COMPRESSED,
    KDBH_FSBO,
    KDBH_NROW,
    KDBH_NTAB,
    KDBH_ROWS,
)
from olr_pg.redo.format.opcodes import QMI
from olr_pg.redo.format.row_fields import (
    FB_DELETED,
    FB_WHOLE,
    KDXLE_LEAST,
    KDXLE_LEVEL,
    KDXLE_ROWS,
    LENGTH_LONG,
    LENGTH_NULL,
    ROW_CC,
    ROW_SIZE,
)
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.pieces import ChangeStatus, open_piece
from olr_pg.redo.row_vectors import ENTRIES, FULL, PIECES, push_row
from olr_pg.redo.vectors import container_of, dba_of, is_encrypted, object_of
from olr_pg.redo.walk import (
    RECORD_AT_HAND,
    TALLY_CHANGES,
    TALLY_NAMED,
    TALLY_ROW_VECTORS,
    TALLY_TOLD,
    RowScn,
    Walk,
)

_AFTER = int(Role.AFTER)
_CHANGE = int(EventKind.CHANGE)
_OK = int(ChangeStatus.OK)
_ENCRYPTED = int(ChangeStatus.ENCRYPTED)
_LEAF_BLOCK = int(ChangeStatus.LEAF_BLOCK)
_NO_TRANSACTION = int(ChangeStatus.NO_TRANSACTION)
_CONTRADICTION = int(ChangeStatus.CONTRADICTION)
_ROWS = int(ChangeStatus.ROWS)
_OPERATION = int(ChangeStatus.OPERATION)
_UNKNOWN = int(RowScn.UNKNOWN)
_PRESENT = int(RowScn.PRESENT)


@inlined
def block_object(payload: Any, at: int, size: int, big: bool) -> int:
    """Return the data object number if the image is a table block, otherwise −1."""
    if size < BLOCK_IMAGE_SIZE or payload[at] != BLOCK_TABLE:
        return -1
    return u32(payload, at + BLOCK_OBJD, big)


@inlined
def _data_header(payload: Any, at: int, size: int, big: bool) -> int:
    """Return the position of the data header; −1 if it is invalid or the block is compressed."""
    header = at + BLOCK_ITL + BLOCK_ITL_ENTRY * (u16(payload, at + BLOCK_ITC, big) & 0xFF)
    if payload[at + BLOCK_FLG] & BLOCK_ASSM:
        header += BLOCK_ASSM_BYTES
    if header + KDBH_ROWS > at + size or payload[header + KDBH_NTAB] != 1:
        return -1
    if payload[header] & KDBH_COMPRESSED:
        return -1
    # In all real blocks, fsbo is the end of the row directory; if it is not, this is not a data
    # header.
    rows = u16(payload, header + KDBH_NROW, big)
    return header if u16(payload, header + KDBH_FSBO, big) == KDBH_ROWS + 2 * rows else -1


@inlined
def _row_end(payload: Any, row: int, end: int, skip: int, big: bool) -> int:
    """Return the end of a row, or −1 if its columns do not fit. The columns begin `skip` bytes
    after the column count.

    Column lengths are encoded as in `row_vectors.push_row`.
    """
    at = row + ROW_SIZE + skip
    for _ in range(int(payload[row + ROW_CC])):
        if at >= end:
            return -1
        size = int(payload[at])
        at += 1
        if size == 0:
            return -1
        if size == LENGTH_NULL:
            continue
        if size == LENGTH_LONG:
            if at + 2 > end:
                return -1
            size = u16(payload, at, big)
            at += 2
        at += size
    return at if at <= end else -1


@inlined
def _next_row(payload: Any, header: int, rows: int, place: int, end: int, big: bool) -> int:
    """Return the position of the row that follows the row at `place`; for the last row, the block's
    end.

    Args:
        rows: number of the block's rows.
        place: offset of the row from the data header.
    """
    following = end - header
    for slot in range(rows):
        other = u16(payload, header + KDBH_ROWS + 2 * slot, big)
        if place < other < following:
            following = other
    return header + following


@part
def _columns_behind(payload: Any, header: int, rows: int, end: int, row_scn: int, big: bool) -> int:
    """Return the number of bytes between the column count of a row and its columns: 0 or `row_scn`.
    Return −1 if neither number fits the row, or if it is unclear which number is right.

    In a ROWDEPENDENCIES table, each row has an SCN in this place, but the vector of a direct load
    does not show whether its table is one. If the dictionary does not show this either, the rows
    decide: their columns must end where the next row begins. If this is true both with and without
    an SCN, the block is refused.
    """
    fits, fits_behind_scn = True, True
    ends, ends_behind_scn = True, True
    for slot in range(rows):
        place = u16(payload, header + KDBH_ROWS + 2 * slot, big)
        row = header + place
        if row + ROW_SIZE > end:
            return -1
        if payload[row] != FB_WHOLE:
            continue
        following = -1
        without = _row_end(payload, row, end, 0, big)
        behind = _row_end(payload, row, end, row_scn, big)
        if without >= 0 and behind >= 0:
            following = _next_row(payload, header, rows, place, end, big)
            ends = ends and without == following
            ends_behind_scn = ends_behind_scn and behind == following
        fits = fits and without >= 0
        fits_behind_scn = fits_behind_scn and behind >= 0
        if not fits and not fits_behind_scn:
            return -1
    if fits and fits_behind_scn and ends == ends_behind_scn and rows > 0:
        # Both are possible if no row has columns, or if there are gaps between the rows.
        return 0 if not ends else -1
    if fits and (ends or not fits_behind_scn):
        return 0
    return row_scn


@inlined
def block_rows(
    payload: Any,
    at: int,
    size: int,
    dba: int,
    big: bool,
    row_scn: int,
    has_scn: int,
    pieces: PieceColumns,
    entries: EntryColumns,
    state: Any,
) -> int:
    """Push one piece per row of the block image at `at`; return a `ChangeStatus`.

    Args:
        row_scn: number of bytes of a row's SCN in tables with ROWDEPENDENCIES.
        has_scn: whether rows of the table have an SCN, as a `RowScn`.
    """
    header = _data_header(payload, at, size, big)
    if header < 0:
        return _ROWS
    end = at + size
    rows = u16(payload, header + KDBH_NROW, big)
    if header + KDBH_ROWS + 2 * rows > end:
        return _ROWS
    skip = row_scn if has_scn == _PRESENT else 0
    if has_scn == _UNKNOWN:
        skip = _columns_behind(payload, header, rows, end, row_scn, big)
    if skip < 0:
        return _ROWS
    for slot in range(rows):
        row = header + u16(payload, header + KDBH_ROWS + 2 * slot, big)
        if row + ROW_SIZE + skip > end:
            return _ROWS
        flags = payload[row]
        if flags & FB_DELETED:
            continue
        if flags != FB_WHOLE:
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
        begin = row + ROW_SIZE + skip
        if push_row(payload, begin, end, count, big, _AFTER, 1, entries, state) < 0:
            return _ROWS
        pieces.entry_count[piece] = state[ENTRIES] - first
        state[PIECES] = piece + 1
    return _OK


@inlined
def _loaded_table(walk: Walk, at: int) -> tuple[int, int, int, int]:
    """Find the subscribed table of a 19.1.

    The vector's header and the block both contain a data object number. If both numbers are of
    subscribed tables and differ, nobody can know which is right.

    Returns:
        (table or −1, named, data object number, status). `named` is the subscribed table that the
        vector's header names, or −1. The status is a `ChangeStatus`: OK, or the reason why the
        block cannot be read.
    """
    payload, big = walk.payload, walk.big
    con_id, dataobj = container_of(payload, at, walk.header, big), object_of(payload, at, big)
    scn = walk.records.scn[walk.current[RECORD_AT_HAND]]
    # Not by `find_named`: the vector has a block, whatever its TYP contains.
    named = find(walk.objects.data, con_id, dataobj, scn)
    if is_encrypted(payload, at):
        return named, named, dataobj, _ENCRYPTED
    f1, size = field_of(walk, at, 1)
    in_block = block_object(payload, f1, size, big)
    if in_block >= 0:
        table = find(walk.objects.data, con_id, in_block, scn)
        if table >= 0:
            agree = dataobj in (0, in_block)
            return table, named, in_block, _OK if agree else _CONTRADICTION
        marked = direct_load_container(walk)
        if named < 0 and marked not in (-1, con_id):
            return find(walk.objects.data, marked, in_block, scn), -1, in_block, _CONTRADICTION
    # Either the block is not a table block (an index block contains rows of an index-organised
    # table), or its data object number contradicts the vector's header.
    is_index = size > 0 and payload[f1] == BLOCK_INDEX
    return named, named, dataobj, _LEAF_BLOCK if is_index else _CONTRADICTION


@inlined
def direct_load(walk: Walk, vector: int, at: int) -> int:
    """Push the event of a 19.1 with a block of a table, if the table is subscribed."""
    payload, big = walk.payload, walk.big
    table, named, dataobj, status = _loaded_table(walk, at)
    if table < 0:
        return 0
    walk.tally[TALLY_NAMED] += named >= 0
    walk.tally[TALLY_TOLD] += named >= 0
    walk.tally[TALLY_ROW_VECTORS] += 1
    con_id = container_of(payload, at, walk.header, big)
    if status == _CONTRADICTION and named >= 0 and named != table:
        push_contradiction(walk, vector, con_id, table, named, dataobj)
        return 0
    walk.tally[TALLY_CHANGES] += 1
    xid = direct_load_xid(walk)
    if xid == 0 and status == _OK:
        status = _NO_TRANSACTION
    if status == _CONTRADICTION and direct_load_container(walk) != con_id:
        xid = 0  # the two containers differ: the transaction's is unknown
    first_piece = walk.state[PIECES]
    first_entry = walk.state[ENTRIES]
    if status == _OK:
        f1, size = field_of(walk, at, 1)
        status = block_rows(
            payload, f1, size, dba_of(payload, at, big), big, walk.row_scn,
            walk.objects.row_scns[table] if walk.objects.row_scns.size > 0 else _UNKNOWN,
            walk.pieces, walk.entries, walk.state,
        )  # fmt: skip
    if status != _OK:
        walk.state[PIECES] = first_piece
        walk.state[ENTRIES] = first_entry
        push_unknown(walk, vector, status, con_id, xid, table, dataobj)
        return 0
    event = push_event(walk, _CHANGE, con_id, xid)
    walk.events.table[event] = table
    walk.events.dataobj[event] = dataobj
    walk.events.piece_count[event] = walk.state[PIECES] - first_piece
    return 0


@part
def leaf_root(walk: Walk, vector: int, at: int) -> int:
    """Push the UNDECODED event of a 10.31 with rows of a subscribed index-organised table.

    A 10.31 formats the root block of an index. If all rows of a direct load fit into one block,
    this block is the root. The root of an empty index has no rows, and the rows of a root with a
    higher level are in leaves, which are logged as 19.1 (redo-format §6.1).
    """
    table = find_named(walk, at)
    if table < 0:
        return 0
    payload, big = walk.payload, walk.big
    header, size = field_of(walk, at, 3)
    is_branch = size >= KDXLE_LEAST and payload[header + KDXLE_LEVEL] > 0
    is_empty = size >= KDXLE_LEAST and u16(payload, header + KDXLE_ROWS, big) == 0
    if (is_branch or is_empty) and not is_encrypted(payload, at):
        return 0
    walk.tally[TALLY_ROW_VECTORS] += 1
    walk.tally[TALLY_CHANGES] += 1
    con_id = container_of(payload, at, walk.header, big)
    status = _ENCRYPTED if is_encrypted(payload, at) else _LEAF_BLOCK
    dataobj = object_of(payload, at, big)
    push_unknown(walk, vector, status, con_id, direct_load_xid(walk), table, dataobj)
    return 0
