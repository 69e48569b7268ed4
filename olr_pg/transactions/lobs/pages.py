"""Assembles the values of LOB locators from the pages, lists and index rows of transactions.

A value is returned as a sequence of parts of the batch's data, which are not copied. Only pages
that were written in several pieces are joined in another buffer (`ValueRoom.extra`). If one byte of
a value is missing, the value is not returned. Facts: values-and-lobs §18–§21.
"""

from __future__ import annotations

from typing import Any, Final

from olr_pg.datatypes.lob_locator import (
    COMPRESSION,
    COUNT,
    FORM,
    LOB_ID,
    LOB_ID_OFFSET,
    LOCATOR_HEAD,
    REST,
    SIZE,
    START,
    STORED,
    LobForm,
    extent_at,
    lob_number,
    number_be,
    read_locator,
)
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.integers import u16, u32
from olr_pg.redo.lob_pieces import ListForm, LobOp
from olr_pg.transactions.lobs.logged_rows import (
    IN_INDEX,
    IN_LISTS,
    IN_OPERATIONS,
    IN_PAGES,
    is_lob,
    lower_bound,
)
from olr_pg.transactions.lobs.value_tables import (
    EXTRA,
    FULL,
    PAGE_BYTES_MAX,
    PARTS,
    WANTED,
    LobRows,
    ValueRoom,
    Values,
    ValueStatus,
)

NO_ROOM: Final = -2
"""A result instead of a status or a size: `ValueRoom` is too small."""
NOT_THERE: Final = -1
"""A result instead of a status or a size: bytes of the value are missing."""

_PAGE = int(LobOp.PAGE)
_ZERO = int(LobOp.ZERO)
_LIST = int(LobOp.LIST)
_LIST_AT = int(LobOp.LIST_AT)
_HEADER = int(LobOp.HEADER)
_BIG_ENDIAN = int(ListForm.BIG_ENDIAN)
_WIDE = int(ListForm.WIDE)

_WHOLE = int(ValueStatus.WHOLE)
_MISSING = int(ValueStatus.MISSING)
_MALFORMED = int(ValueStatus.MALFORMED)
_UNCHANGED = int(ValueStatus.UNCHANGED)
_NULL = int(ValueStatus.NULL)

_EMPTY = int(LobForm.EMPTY)
_INLINE = int(LobForm.INLINE)
_EXTENTS = int(LobForm.EXTENTS)
_BEHIND_HEADER = int(LobForm.HEADER)
_POINTERS = int(LobForm.POINTERS)
_INDEXED = int(LobForm.INDEXED)
_BFILE = int(LobForm.BFILE)


@inlined
def _push_part(room: ValueRoom, offset: int, length: int) -> bool:
    at = room.counts[PARTS]
    if at == room.parts.shape[1]:
        return False
    room.parts[0, at] = offset
    room.parts[1, at] = length
    room.counts[PARTS] = at + 1
    return True


@inlined
def _pieced_page(rows: LobRows, base: int, end: int, values: Values, room: ValueRoom) -> int:
    """Join the pieces of a page, rows [base, end), in `room.page`. Return the size of the page, or
    NOT_THERE if a byte is unknown.
    """
    size = 0
    if rows.op[base] == _PAGE:
        size = min(rows.length[base], room.page.shape[1])
        for i in range(size):
            room.page[0, i] = values.data[rows.offset[base] + i]
            room.page[1, i] = 1
    top = size
    for row in range(base, end):
        if rows.op[row] == _PAGE:
            continue
        start = rows.at[row]
        count = rows.span[row] if rows.op[row] == _ZERO else rows.length[row]
        if start + count > room.page.shape[1]:
            return NOT_THERE
        for i in range(top, start + count):
            room.page[1, i] = 0
        top = max(top, start + count)
        for i in range(count):
            room.page[0, start + i] = (
                0 if rows.op[row] == _ZERO else values.data[rows.offset[row] + i]
            )
            room.page[1, start + i] = 1
    for i in range(top):
        if room.page[1, i] == 0:
            return NOT_THERE
    return int(top)


@inlined
def _take_page(
    rows: LobRows, owner: int, lob: int, dba: int, most: int, values: Values, room: ValueRoom
) -> int:
    """Push up to `most` bytes of a page; return the size of the page, NOT_THERE, or NO_ROOM."""
    base = lower_bound(rows, owner, IN_PAGES, lob, dba)
    end = base
    last_page = -1
    while is_lob(rows, end, owner, IN_PAGES, lob) and rows.number[end] == dba:
        if rows.op[end] == _PAGE:
            last_page = end
        end += 1
    if end == base:
        return NOT_THERE
    if last_page >= 0:
        base = last_page
    if last_page >= 0 and last_page == end - 1:
        have = int(rows.length[base])
        return have if _push_part(room, rows.offset[base], min(have, most)) else NO_ROOM
    have = _pieced_page(rows, base, end, values, room)
    if have < 0:
        return NOT_THERE
    count = min(have, most)
    at = room.counts[EXTRA]
    if at + count > room.extra.size:
        return NO_ROOM
    for i in range(count):
        room.extra[at + i] = room.page[0, i]
    room.counts[EXTRA] = at + count
    return have if _push_part(room, values.data.size + at, count) else NO_ROOM


@inlined
def _take_run(
    rows: LobRows, owner: int, lob: int, first: int, blocks: int, progress: Any, values: Values,
    room: ValueRoom,
) -> int:  # fmt: skip
    """Push the pages in consecutive blocks; return 0, NOT_THERE, or NO_ROOM."""
    for k in range(blocks):
        if progress[WANTED] <= 0:
            return 0
        have = _take_page(rows, owner, lob, first + k, progress[WANTED], values, room)
        if have < 0:
            return have
        if progress[FULL] < 0:
            progress[FULL] = have
        if have == 0 or (have != progress[FULL] and have < progress[WANTED]):
            return NOT_THERE
        progress[WANTED] -= min(have, progress[WANTED])
    return 0


@inlined
def _take_extents(
    facts: Any, source: Any, rows: LobRows, owner: int, progress: Any, values: Values,
    room: ValueRoom,
) -> int:  # fmt: skip
    at, end = facts[START], facts[START] + facts[SIZE]
    for _ in range(facts[COUNT]):
        first, blocks, at = extent_at(source, at, end, facts[COMPRESSION] != 0)
        status = _take_run(rows, owner, facts[LOB_ID], first, blocks, progress, values, room)
        if status < 0:
            return status
    return 0 if progress[WANTED] == 0 else NOT_THERE


@inlined
def _read_list(rows: LobRows, owner: int, dba: int, data: Any, room: ValueRoom) -> int:
    """Write the extents of a map block, as (first block, number of blocks), to `room.blocks`.
    Return the number of extents, or −1 if the list is unknown.
    """
    row = lower_bound(rows, owner, IN_LISTS, 0, dba)
    count = -1
    while is_lob(rows, row, owner, IN_LISTS, 0) and rows.number[row] == dba:
        if rows.op[row] in (_LIST, _LIST_AT):
            big = rows.form[row] & _BIG_ENDIAN != 0
            width = 16 if rows.form[row] & _WIDE else 8
            start = rows.span[row] if rows.op[row] == _LIST_AT else 0
            entries = rows.length[row] // width
            if rows.op[row] == _LIST:
                count = 0
            # This is a part of a list whose beginning is not in the redo. A complete list may
            # follow.
            if count < 0 or start > count or start + entries > room.blocks.shape[1]:
                count = -1
                row += 1
                continue
            for i in range(entries):
                at = rows.offset[row] + i * width
                room.blocks[0, start + i] = u32(data, at + 4, big)
                room.blocks[1, start + i] = u16(data, at + 2, big)
            count = max(count, start + entries)
        row += 1
    return count


@inlined
def _take_list(
    rows: LobRows, owner: int, lob: int, dba: int, progress: Any, values: Values, room: ValueRoom
) -> int:
    count = _read_list(rows, owner, dba, values.data, room)
    for i in range(count):
        status = _take_run(
            rows, owner, lob, room.blocks[0, i], room.blocks[1, i], progress, values, room
        )
        if status < 0:
            return status
    return 0 if count >= 0 else NOT_THERE


@inlined
def _take_header(
    facts: Any, rows: LobRows, owner: int, progress: Any, values: Values, room: ValueRoom
) -> int:
    """Push the pages that are listed in a LOB header block and in its list blocks; return 0,
    NOT_THERE, or NO_ROOM.
    """
    row = lower_bound(rows, owner, IN_LISTS, 0, facts[COUNT])
    header = -1
    own_list = False
    while is_lob(rows, row, owner, IN_LISTS, 0) and rows.number[row] == facts[COUNT]:
        if rows.op[row] == _HEADER:
            header = row
        else:
            own_list = True
        row += 1
    if header < 0:
        return NOT_THERE
    if own_list:
        status = _take_list(rows, owner, facts[LOB_ID], facts[COUNT], progress, values, room)
        if status < 0:
            return status
    big = rows.form[header] & _BIG_ENDIAN != 0
    for k in range(4):
        dba = u32(values.data, rows.offset[header] + 4 * k, big)
        if dba == 0 or progress[WANTED] == 0:
            break
        status = _take_list(rows, owner, facts[LOB_ID], dba, progress, values, room)
        if status < 0:
            return status
    return 0 if progress[WANTED] == 0 else NOT_THERE


@inlined
def _indexed_page(rows: LobRows, owner: int, lob: int, page: int, data: Any) -> int:
    """Return the block that contains a page, from the LOB index; −1 if the index rows in the redo
    do not contain the page.
    """
    row = lower_bound(rows, owner, IN_INDEX, lob, page + 1) - 1
    if not is_lob(rows, row, owner, IN_INDEX, lob):
        return -1
    number = rows.number[row]
    first, most = (16, 4) if number == 0 else (0, 8)
    if page - number >= most:
        return -1
    dba = number_be(data, rows.offset[row] + first + 4 * (page - number), 4)
    return dba if dba > 0 else -1


@inlined
def _take_pointers(
    pages: int, rest: int, facts: Any, source: Any, rows: LobRows, owner: int, values: Values,
    room: ValueRoom,
) -> int:  # fmt: skip
    """Push `pages` full pages and the `rest` bytes of the last page. The addresses of the first
    pages are in the locator, the others in the LOB index.
    """
    listed = facts[SIZE] >> 2
    full = -1
    for page in range(pages + (1 if rest > 0 else 0)):
        if page < listed:
            dba = number_be(source, facts[START] + 4 * page, 4)
        else:
            dba = _indexed_page(rows, owner, facts[LOB_ID], page, values.data)
        if dba <= 0:
            return NOT_THERE
        most = PAGE_BYTES_MAX if page < pages else rest
        have = _take_page(rows, owner, facts[LOB_ID], dba, most, values, room)
        if have < 0:
            return have
        if page < pages:
            if have == 0 or (full >= 0 and have != full):
                return NOT_THERE
            full = have
        elif have < rest:
            return NOT_THERE
    return 0


@inlined
def _take_indexed(
    facts: Any, is_new: bool, rows: LobRows, owner: int, values: Values, room: ValueRoom
) -> int:
    """Push a value whose page addresses are only in the LOB index. If the redo contains neither
    index rows nor pages of a new LOB, the LOB is empty.
    """
    row = lower_bound(rows, owner, IN_INDEX, facts[LOB_ID], 1) - 1
    if not is_lob(rows, row, owner, IN_INDEX, facts[LOB_ID]) or rows.number[row] != 0:
        has_pages = is_lob(
            rows,
            lower_bound(rows, owner, IN_PAGES, facts[LOB_ID], 0),
            owner,
            IN_PAGES,
            facts[LOB_ID],
        )
        return 0 if is_new and not has_pages else NOT_THERE
    at = rows.offset[row]
    pages = number_be(values.data, at + 4, 4)
    rest = number_be(values.data, at + 8, 2)
    return _take_pointers(pages, rest, facts, values.data, rows, owner, values, room)


@inlined
def _same_bytes(values: Values, one: int, other: int) -> bool:
    """Return whether two values are equal; False if one of them has several parts."""
    if values.entries.next[one] >= 0 or values.entries.next[other] >= 0:
        return False
    if values.entries.length[one] != values.entries.length[other]:
        return False
    first, second = values.entries.offset[one], values.entries.offset[other]
    for i in range(values.entries.length[one]):
        if values.data[first + i] != values.data[second + i]:
            return False
    return True


@inlined
def _is_touched(rows: LobRows, owner: int, lob: int) -> bool:
    """Return whether the transaction logged any piece of a LOB."""
    for space in (IN_PAGES, IN_INDEX, IN_OPERATIONS):
        if is_lob(rows, lower_bound(rows, owner, space, lob, 0), owner, space, lob):
            return True
    return False


@inlined
def _is_other_lob(values: Values, i: int, lob: int) -> bool:
    """Return whether value i has another LOB id than the old value of its column."""
    before = values.before[i]
    if before < 0:
        return False
    if values.entries.length[before] < LOCATOR_HEAD:
        return True
    return lob_number(values.data, values.entries.offset[before] + LOB_ID_OFFSET) != lob


@inlined
def _flatten(values: Values, entry: int, room: ValueRoom) -> int:
    """Copy a value that has several parts to `room.extra`; return its length, or NO_ROOM."""
    at = room.counts[EXTRA]
    while entry >= 0:
        count = values.entries.length[entry]
        if count > 0:
            if at + count > room.extra.size:
                return NO_ROOM
            for i in range(count):
                room.extra[at + i] = values.data[values.entries.offset[entry] + i]
            at += count
        entry = values.entries.next[entry]
    size = at - room.counts[EXTRA]
    room.counts[EXTRA] = at
    return int(size)


@inlined
def _read_value(values: Values, i: int, room: ValueRoom) -> tuple[int, int]:
    """Read the locator of a value, and write its contents to `room.facts`.

    Returns:
        (status, base). The status is WHOLE (the locator was read), NULL, MALFORMED or NO_ROOM.
        `base` is 0 if the locator is in the data of the values; if it is in `room.extra`, `base` is
        the offset at which positions in `room.extra` begin.
    """
    entry = values.entry[i]
    if values.entries.length[entry] < 0:
        return _NULL, 0
    source, at, base = values.data, values.entries.offset[entry], 0
    size = values.entries.length[entry]
    if values.entries.next[entry] >= 0:
        size = _flatten(values, entry, room)
        if size < 0:
            return NO_ROOM, 0
        source, at, base = room.extra, room.counts[EXTRA] - size, values.data.size
    if read_locator(source, at, size, room.facts[i]) != 0 or room.facts[i, FORM] == _BFILE:
        return _MALFORMED, base
    return _WHOLE, base


@kernel
def read_values(values: Values, room: ValueRoom) -> bool:
    """Read the locators of all values, and write status and facts to `room`; return False if `room`
    is too small.
    """
    for i in range(values.entry.size):
        room.counts[EXTRA] = 0
        status, _ = _read_value(values, i, room)
        if status == NO_ROOM:
            return False
        room.status[i] = status
    return True


@inlined
def _resolve(values: Values, i: int, rows: LobRows, room: ValueRoom, progress: Any) -> int:
    """Push the parts of one value; return a `ValueStatus`, or NO_ROOM."""
    entry, owner = values.entry[i], values.owner[i]
    status, base = _read_value(values, i, room)
    if status != _WHOLE:
        return int(status)
    facts = room.facts[i]
    source = room.extra if base > 0 else values.data
    form = facts[FORM]
    if form == _INLINE:
        status = 0 if _push_part(room, facts[START] + base, facts[SIZE]) else NO_ROOM
    elif form in (_EXTENTS, _BEHIND_HEADER):
        progress[WANTED] = facts[STORED]
        progress[FULL] = -1
        if form == _EXTENTS:
            status = _take_extents(facts, source, rows, owner, progress, values, room)
        else:
            status = _take_header(facts, rows, owner, progress, values, room)
    elif form != _EMPTY:
        status = NOT_THERE
        if form == _POINTERS and values.has_pages[i]:
            status = _take_pointers(
                facts[COUNT], facts[REST], facts, source, rows, owner, values, room
            )
        elif form == _INDEXED and values.has_pages[i]:
            is_new = values.is_insert[i] or _is_other_lob(values, i, facts[LOB_ID])
            status = _take_indexed(facts, is_new, rows, owner, values, room)
    if status == NO_ROOM:
        return NO_ROOM
    if status == _WHOLE:
        return _WHOLE
    before = values.before[i]
    if before < 0 or _is_touched(rows, owner, facts[LOB_ID]):
        return _MISSING
    return _UNCHANGED if _same_bytes(values, entry, before) else _MISSING


@kernel
def resolve_values(values: Values, rows: LobRows, room: ValueRoom) -> bool:
    """Write the status and the parts of every value to `room`; return False if `room` is too
    small.
    """
    room.counts[PARTS] = 0
    room.counts[EXTRA] = 0
    for i in range(values.entry.size):
        first = room.counts[PARTS]
        room.part_first[i] = first
        status = _resolve(values, i, rows, room, room.progress)
        if status == NO_ROOM:
            return False
        room.status[i] = status
        if status != _WHOLE:
            room.counts[PARTS] = first
    room.part_first[values.entry.size] = room.counts[PARTS]
    return True
