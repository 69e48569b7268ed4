"""LOB pages, lists and index rows of transactions, and the values that locators make of them.

What a transaction logged of its LOBs becomes one sorted table, in which kernels look up a page by
LOB id and block. A value comes out as parts of the batch's data, in order, without a copy; only
pages that were written in pieces are put together in an extra buffer. A value of which a byte is
missing does not come out at all. Facts: values-and-lobs §18–§21.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from olr_pg.datatypes.lob_locator import (
    extent_at,
    lob_number,
    number_be,
    read_locator,
)
from olr_pg.kernels import inlined, kernel
from olr_pg.redo.batch import ChangeBatch
from olr_pg.redo.kernel import u16, u32
from olr_pg.transactions.delimit import live_changes
from olr_pg.transactions.lob_values import (
    PAGE_BYTES_MAX,
    LobRows,
    ValueRoom,
    Values,
)


@inlined
def put_row(
    batch: ChangeBatch, event: int, piece: int, entry: int, owner: int, rows: LobRows, at: int
) -> None:
    """Row `at` from a piece of a LOB event, whose first entry is `entry`."""
    pieces, entries = batch.pieces, batch.entries
    op = int(pieces.op[piece])
    space = 0
    if op == 8:
        space = 3
    elif op == 7:
        space = 2
    elif op >= 4:
        space = 1
    rows.owner[at] = owner
    rows.space[at] = space
    rows.lob[at] = 0
    if space != 1 and entries.length[entry] > 0:
        rows.lob[at] = lob_number(batch.data, entries.offset[entry])
    rows.number[at] = pieces.head_bdba[piece] if space == 2 else pieces.bdba[piece]
    rows.scn[at] = batch.events.scn[event]
    rows.op[at] = op
    rows.at[at] = pieces.slot[piece]
    rows.span[at] = pieces.head_bdba[piece]
    rows.form[at] = pieces.row_flags[piece]
    rows.offset[at] = entries.offset[entry + 1]
    rows.length[at] = max(0, entries.length[entry + 1])
    rows.table[at] = batch.events.table[event]


@kernel
def collect_rows(
    batch: ChangeBatch,
    piece_first: Any,
    entry_first: Any,
    order: Any,
    first: Any,
    end: Any,
    depth: int,
    live: Any,
    undid: Any,
    rows: LobRows,
) -> int:
    """Fill `rows` with the live LOB pieces of the transactions; how many.

    Args:
        order, first, end: as of `rows.assemble_rows`.
        depth: `UNDO_SEARCH_DEPTH`.
        live: room for events.
        undid: shape (transactions); set where something was undone.
    """
    count = 0
    for owner in range(first.size):
        undid[owner] = 0
        found = False
        for i in range(first[owner], end[owner]):
            kind = batch.events.kind[order[i]]
            if kind == 7:
                found = True
            elif kind == 5:
                undid[owner] = 1
        if not found:
            continue
        alive, _, _ = live_changes(batch.events, order, first[owner], end[owner], depth, live)
        for k in range(alive):
            event = live[k]
            if batch.events.kind[event] != 7:
                continue
            for piece in range(piece_first[event], piece_first[event + 1]):
                put_row(batch, event, piece, entry_first[piece], owner, rows, count)
                count += 1
    return count


@kernel
def rows_of_events(
    batch: ChangeBatch,
    piece_first: Any,
    entry_first: Any,
    events: Any,
    event_of: Any,
    rows: LobRows,
) -> None:
    """Fill `rows` with every piece of LOB events, owner 0, and `event_of` with their numbers.

    Args:
        events: the numbers of the LOB events.
    """
    count = 0
    for i in range(events.size):
        event = events[i]
        for piece in range(piece_first[event], piece_first[event + 1]):
            put_row(batch, event, piece, entry_first[piece], 0, rows, count)
            event_of[count] = event
            count += 1


@kernel
def listed_blocks(rows: LobRows, data: Any, blocks: Any) -> int:
    """Fill `blocks`, shape (4 · rows), with the list blocks that header rows name; how many."""
    count = 0
    for row in range(rows.op.size):
        if rows.op[row] != 6:
            continue
        for k in range(4):
            dba = u32(data, rows.offset[row] + 4 * k, rows.form[row] & 1 != 0)
            if dba == 0:
                break
            blocks[count] = dba
            count += 1
    return count


@kernel
def lob_numbers(entries: Any, data: Any, chosen: Any, numbers: Any) -> None:
    """Fill `numbers` with the LOB number in the locator of each of `chosen`, −1 for none."""
    for i in range(chosen.size):
        entry, place, number = chosen[i], 0, 0
        while entry >= 0 and place < 20:
            for k in range(max(0, entries.length[entry])):
                if 14 <= place < 20:
                    number = number << 8 | int(np.int64(data[entries.offset[entry] + k]))
                place += 1
                if place == 20:
                    break
            entry = entries.next[entry]
        numbers[i] = number if place == 20 else -1


@inlined
def _is_before(rows: LobRows, row: int, owner: int, space: int, lob: int, number: int) -> bool:
    if rows.owner[row] != owner:
        return bool(rows.owner[row] < owner)
    if rows.space[row] != space:
        return bool(rows.space[row] < space)
    if rows.lob[row] != lob:
        return bool(rows.lob[row] < lob)
    return bool(rows.number[row] < number)


@inlined
def lower_bound(rows: LobRows, owner: int, space: int, lob: int, number: int) -> int:
    """The first row that is not before that key."""
    low, high = 0, rows.owner.size
    while low < high:
        middle = (low + high) >> 1
        if _is_before(rows, middle, owner, space, lob, number):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _is_lob(rows: LobRows, row: int, owner: int, space: int, lob: int) -> bool:
    return bool(
        row >= 0
        and row < rows.owner.size
        and rows.owner[row] == owner
        and rows.space[row] == space
        and rows.lob[row] == lob
    )


@inlined
def _push_part(room: ValueRoom, offset: int, length: int) -> bool:
    at = room.counts[0]
    if at == room.parts.shape[1]:
        return False
    room.parts[0, at] = offset
    room.parts[1, at] = length
    room.counts[0] = at + 1
    return True


@inlined
def _pieced_page(rows: LobRows, base: int, end: int, values: Values, room: ValueRoom) -> int:
    """Put a page together in `room.page`; how many bytes from its start are known, −1 a gap."""
    size = 0
    if rows.op[base] == 1:
        size = min(rows.length[base], room.page.shape[1])
        for i in range(size):
            room.page[0, i] = values.data[rows.offset[base] + i]
            room.page[1, i] = 1
    top = size
    for row in range(base, end):
        if rows.op[row] == 1:
            continue
        start = rows.at[row]
        count = rows.span[row] if rows.op[row] == 3 else rows.length[row]
        if start + count > room.page.shape[1]:
            return -1
        for i in range(top, start + count):
            room.page[1, i] = 0
        top = max(top, start + count)
        for i in range(count):
            room.page[0, start + i] = 0 if rows.op[row] == 3 else values.data[rows.offset[row] + i]
            room.page[1, start + i] = 1
    for i in range(top):
        if room.page[1, i] == 0:
            return -1
    return int(top)


@inlined
def _take_page(
    rows: LobRows, owner: int, lob: int, dba: int, most: int, values: Values, room: ValueRoom
) -> int:
    """Push up to `most` bytes of a page; the bytes that it has, −1 not there, −2 no room."""
    base = lower_bound(rows, owner, 0, lob, dba)
    end = base
    last_page = -1
    while _is_lob(rows, end, owner, 0, lob) and rows.number[end] == dba:
        if rows.op[end] == 1:
            last_page = end
        end += 1
    if end == base:
        return -1
    if last_page >= 0:
        base = last_page
    if last_page >= 0 and last_page == end - 1:
        have = int(rows.length[base])
        return have if _push_part(room, rows.offset[base], min(have, most)) else -2
    have = _pieced_page(rows, base, end, values, room)
    if have < 0:
        return -1
    count = min(have, most)
    at = room.counts[1]
    if at + count > room.extra.size:
        return -2
    for i in range(count):
        room.extra[at + i] = room.page[0, i]
    room.counts[1] = at + count
    return have if _push_part(room, values.data.size + at, count) else -2


@inlined
def _take_run(
    rows: LobRows, owner: int, lob: int, first: int, blocks: int, progress: Any, values: Values,
    room: ValueRoom,
) -> int:  # fmt: skip
    """Push pages of consecutive blocks; 0, −1 a page is not there, −2 no room.

    `progress` is [bytes wanted, bytes of a full page or −1]: every page but a value's last is as
    long as its first, or else bytes are missing.
    """
    for k in range(blocks):
        if progress[0] <= 0:
            return 0
        have = _take_page(rows, owner, lob, first + k, progress[0], values, room)
        if have < 0:
            return have
        if progress[1] < 0:
            progress[1] = have
        if have == 0 or (have != progress[1] and have < progress[0]):
            return -1
        progress[0] -= min(have, progress[0])
    return 0


@inlined
def _take_extents(
    facts: Any, source: Any, rows: LobRows, owner: int, progress: Any, values: Values,
    room: ValueRoom,
) -> int:  # fmt: skip
    at, end = facts[6], facts[6] + facts[7]
    for _ in range(facts[8]):
        first, blocks, at = extent_at(source, at, end, facts[5] != 0)
        status = _take_run(rows, owner, facts[10], first, blocks, progress, values, room)
        if status < 0:
            return status
    return 0 if progress[0] == 0 else -1


@inlined
def _read_list(rows: LobRows, owner: int, dba: int, data: Any, room: ValueRoom) -> int:
    """Fill `room.blocks` with the (first, blocks) of a map block; how many, −1 where not known."""
    row = lower_bound(rows, owner, 1, 0, dba)
    count = -1
    while _is_lob(rows, row, owner, 1, 0) and rows.number[row] == dba:
        if rows.op[row] == 4 or rows.op[row] == 5:
            big = rows.form[row] & 1 != 0
            width = 16 if rows.form[row] & 2 else 8
            start = rows.span[row] if rows.op[row] == 5 else 0
            entries = rows.length[row] // width
            if rows.op[row] == 4:
                count = 0
            # A part of a list whose beginning is not in the redo: a whole one may follow.
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
    return 0 if count >= 0 else -1


@inlined
def _take_header(
    facts: Any, rows: LobRows, owner: int, progress: Any, values: Values, room: ValueRoom
) -> int:
    """The pages that a LOB header block and its list blocks name."""
    row = lower_bound(rows, owner, 1, 0, facts[8])
    header = -1
    own_list = False
    while _is_lob(rows, row, owner, 1, 0) and rows.number[row] == facts[8]:
        if rows.op[row] == 6:
            header = row
        else:
            own_list = True
        row += 1
    if header < 0:
        return -1
    if own_list:
        status = _take_list(rows, owner, facts[10], facts[8], progress, values, room)
        if status < 0:
            return status
    big = rows.form[header] & 1 != 0
    for k in range(4):
        dba = u32(values.data, rows.offset[header] + 4 * k, big)
        if dba == 0 or progress[0] == 0:
            break
        status = _take_list(rows, owner, facts[10], dba, progress, values, room)
        if status < 0:
            return status
    return 0 if progress[0] == 0 else -1


@inlined
def _indexed_page(rows: LobRows, owner: int, lob: int, page: int, data: Any) -> int:
    """The block of a page by the LOB index, −1 where it does not tell."""
    row = lower_bound(rows, owner, 2, lob, page + 1) - 1
    if not _is_lob(rows, row, owner, 2, lob):
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
    """Full pages and a partial one, by pointers in the locator, then in the index."""
    listed = facts[7] >> 2
    full = -1
    for page in range(pages + (1 if rest > 0 else 0)):
        if page < listed:
            dba = number_be(source, facts[6] + 4 * page, 4)
        else:
            dba = _indexed_page(rows, owner, facts[10], page, values.data)
        if dba <= 0:
            return -1
        most = PAGE_BYTES_MAX if page < pages else rest
        have = _take_page(rows, owner, facts[10], dba, most, values, room)
        if have < 0:
            return have
        if page < pages:
            if have == 0 or (full >= 0 and have != full):
                return -1
            full = have
        elif have < rest:
            return -1
    return 0


@inlined
def _take_indexed(
    facts: Any, is_new: bool, rows: LobRows, owner: int, values: Values, room: ValueRoom
) -> int:
    """A value of which only the LOB index tells; without one a new LOB is empty."""
    row = lower_bound(rows, owner, 2, facts[10], 1) - 1
    if not _is_lob(rows, row, owner, 2, facts[10]) or rows.number[row] != 0:
        has_pages = _is_lob(rows, lower_bound(rows, owner, 0, facts[10], 0), owner, 0, facts[10])
        return 0 if is_new and not has_pages else -1
    at = rows.offset[row]
    pages = number_be(values.data, at + 4, 4)
    rest = number_be(values.data, at + 8, 2)
    return _take_pointers(pages, rest, facts, values.data, rows, owner, values, room)


@inlined
def _same_bytes(values: Values, one: int, other: int) -> bool:
    """Whether two values of one part each are equal."""
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
    """Whether the transaction logged anything of a LOB beside its row."""
    for space in (0, 2, 3):
        if _is_lob(rows, lower_bound(rows, owner, space, lob, 0), owner, space, lob):
            return True
    return False


@inlined
def _is_other_lob(values: Values, i: int, lob: int) -> bool:
    """Whether value i has another LOB id than the old value of its column."""
    before = values.before[i]
    if before < 0:
        return False
    if values.entries.length[before] < 20:
        return True
    return lob_number(values.data, values.entries.offset[before] + 10) != lob


@inlined
def _flatten(values: Values, entry: int, room: ValueRoom) -> int:
    """Copy a value of several parts into `room.extra`; its length, −2 no room."""
    at = room.counts[1]
    while entry >= 0:
        count = values.entries.length[entry]
        if count > 0:
            if at + count > room.extra.size:
                return -2
            for i in range(count):
                room.extra[at + i] = values.data[values.entries.offset[entry] + i]
            at += count
        entry = values.entries.next[entry]
    size = at - room.counts[1]
    room.counts[1] = at
    return int(size)


@inlined
def _read_value(values: Values, i: int, room: ValueRoom) -> tuple[int, int]:
    """(a `ValueStatus` or −2 for no room, where `room.extra` begins if the locator is in it)

    Fills the value's `room.facts` where the status is 0.
    """
    entry = values.entry[i]
    if values.entries.length[entry] < 0:
        return 4, 0
    source, at, base = values.data, values.entries.offset[entry], 0
    size = values.entries.length[entry]
    if values.entries.next[entry] >= 0:
        size = _flatten(values, entry, room)
        if size < 0:
            return -2, 0
        source, at, base = room.extra, room.counts[1] - size, values.data.size
    if read_locator(source, at, size, room.facts[i]) != 0 or room.facts[i, 0] == 6:
        return 2, base
    return 0, base


@kernel
def read_values(values: Values, room: ValueRoom) -> bool:
    """Fill `room` with the status and the facts of every value's locator; False asks for more."""
    for i in range(values.entry.size):
        room.counts[1] = 0
        status, _ = _read_value(values, i, room)
        if status == -2:
            return False
        room.status[i] = status
    return True


@inlined
def _resolve(values: Values, i: int, rows: LobRows, room: ValueRoom, progress: Any) -> int:
    """One value: a `ValueStatus`, or −2 for no room."""
    entry, owner = values.entry[i], values.owner[i]
    status, base = _read_value(values, i, room)
    if status != 0:
        return int(status)
    facts = room.facts[i]
    source = room.extra if base > 0 else values.data
    form = facts[0]
    if form == 1:
        status = 0 if _push_part(room, facts[6] + base, facts[7]) else -2
    elif form == 2 or form == 3:
        progress[0] = facts[4]
        progress[1] = -1
        if form == 2:
            status = _take_extents(facts, source, rows, owner, progress, values, room)
        else:
            status = _take_header(facts, rows, owner, progress, values, room)
    elif form >= 4:
        status = -1
        if form == 4 and values.has_pages[i]:
            status = _take_pointers(facts[8], facts[9], facts, source, rows, owner, values, room)
        elif form == 5 and values.has_pages[i]:
            is_new = values.is_insert[i] or _is_other_lob(values, i, facts[10])
            status = _take_indexed(facts, is_new, rows, owner, values, room)
    if status == -2:
        return -2
    if status == 0:
        return 0
    before = values.before[i]
    if before < 0 or _is_touched(rows, owner, facts[10]):
        return 1
    return 3 if _same_bytes(values, entry, before) else 1


@kernel
def resolve_values(values: Values, rows: LobRows, room: ValueRoom) -> bool:
    """Fill `room` with the status and the parts of every value; False asks for more room."""
    room.counts[0] = 0
    room.counts[1] = 0
    for i in range(values.entry.size):
        first = room.counts[0]
        room.part_first[i] = first
        status = _resolve(values, i, rows, room, room.progress)
        if status == -2:
            return False
        room.status[i] = status
        if status != 0:
            room.counts[0] = first
    room.part_first[values.entry.size] = room.counts[0]
    return True
