"""The LOB pieces that transactions logged, as a table. After the table was sorted, kernels search
it.

Facts: values-and-lobs §18–§21.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.lob_locator import LOB_ID_OFFSET, LOCATOR_HEAD, lob_number
from olr_pg.kernels.compile import inlined, kernel
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.integers import u32
from olr_pg.redo.lob_pieces import ListForm, LobOp
from olr_pg.transactions.delimit import live_changes
from olr_pg.transactions.lobs.value_tables import LobRows, Space, empty_rows
from olr_pg.transactions.select import first_rows

I64 = npt.NDArray[np.int64]

IN_PAGES: Final = int(Space.PAGE)
IN_LISTS: Final = int(Space.LIST)
IN_INDEX: Final = int(Space.INDEX)
IN_OPERATIONS: Final = int(Space.OPERATION)

_NUMBER = LOB_ID_OFFSET + 4
"""Offset of the LOB number in a locator. It is the part of the LOB id that differs between LOBs
(`lob_number`).
"""

_LOB = int(EventKind.LOB)
_UNDONE = int(EventKind.UNDONE)
_LIST = int(LobOp.LIST)
_HEADER = int(LobOp.HEADER)
_INDEX = int(LobOp.INDEX)
_OPERATION = int(LobOp.OPERATION)
_BIG_ENDIAN = int(ListForm.BIG_ENDIAN)


@inlined
def put_row(
    batch: ChangeBatch, event: int, piece: int, entry: int, owner: int, rows: LobRows, at: int
) -> None:
    """Fill row `at` from a piece of a LOB event. The first value of the piece is `entry`."""
    pieces, entries = batch.pieces, batch.entries
    op = int(pieces.op[piece])
    space = IN_PAGES
    if op == _OPERATION:
        space = IN_OPERATIONS
    elif op == _INDEX:
        space = IN_INDEX
    elif op >= _LIST:
        space = IN_LISTS
    rows.owner[at] = owner
    rows.space[at] = space
    rows.lob[at] = 0
    if space != IN_LISTS and entries.length[entry] > 0:
        rows.lob[at] = lob_number(batch.data, entries.offset[entry])
    rows.number[at] = pieces.head_bdba[piece] if space == IN_INDEX else pieces.bdba[piece]
    rows.scn[at] = batch.events.scn[event]
    rows.op[at] = op
    rows.at[at] = pieces.slot[piece]
    rows.span[at] = pieces.head_bdba[piece]
    rows.form[at] = pieces.row_flags[piece]
    rows.offset[at] = entries.offset[entry + 1]
    rows.length[at] = max(0, entries.length[entry + 1])
    rows.table[at] = batch.events.table[event]


class OwnedEvents(NamedTuple):
    """The events of several transactions. The events of transaction i are ``order[first[i] :
    end[i]]``.
    """

    order: Any
    first: Any
    end: Any


@kernel
def collect_rows(
    batch: ChangeBatch,
    piece_first: Any,
    entry_first: Any,
    owners: OwnedEvents,
    live: Any,
    undoable: Any,
    undid: Any,
    rows: LobRows,
) -> int:
    """Write the LOB pieces of the transactions that were not undone to `rows`; return their number.

    Args:
        live, undoable: shape (events); work space.
        undid: shape (transactions); set to 1 if the transaction undid any change, otherwise to 0.
    """
    count = 0
    order, first, end = owners.order, owners.first, owners.end
    for owner in range(first.size):
        undid[owner] = 0
        found = False
        for i in range(first[owner], end[owner]):
            kind = batch.events.kind[order[i]]
            if kind == _LOB:
                found = True
            elif kind == _UNDONE:
                undid[owner] = 1
        if not found:
            continue
        alive, _, _ = live_changes(batch.events, order, first[owner], end[owner], live, undoable)
        for k in range(alive):
            event = live[k]
            if batch.events.kind[event] != _LOB:
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
    """Write every piece of LOB events to `rows`, with owner 0, and the event number of each piece
    to `event_of`.

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
    """Write the addresses of the list blocks in HEADER pieces to `blocks`, shape (4 · rows); return
    their number.
    """
    count = 0
    for row in range(rows.op.size):
        if rows.op[row] != _HEADER:
            continue
        for k in range(4):
            dba = u32(data, rows.offset[row] + 4 * k, rows.form[row] & _BIG_ENDIAN != 0)
            if dba == 0:
                break
            blocks[count] = dba
            count += 1
    return count


@kernel
def lob_numbers(entries: Any, data: Any, chosen: Any, numbers: Any) -> None:
    """Write the LOB number in the locator of each of the entries `chosen` to `numbers`, −1 if it
    has none.
    """
    for i in range(chosen.size):
        entry, place, number = chosen[i], 0, 0
        while entry >= 0 and place < LOCATOR_HEAD:
            for k in range(max(0, entries.length[entry])):
                if _NUMBER <= place < LOCATOR_HEAD:
                    number = number << 8 | int(np.int64(data[entries.offset[entry] + k]))
                place += 1
                if place == LOCATOR_HEAD:
                    break
            entry = entries.next[entry]
        numbers[i] = number if place == LOCATOR_HEAD else -1


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
    """Return the first row whose key is not less than (owner, space, lob, number)."""
    low, high = 0, rows.owner.size
    while low < high:
        middle = (low + high) >> 1
        if _is_before(rows, middle, owner, space, lob, number):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def is_lob(rows: LobRows, row: int, owner: int, space: int, lob: int) -> bool:
    """Return whether the row exists and belongs to this owner, space and LOB."""
    return bool(
        row >= 0
        and row < rows.owner.size
        and rows.owner[row] == owner
        and rows.space[row] == space
        and rows.lob[row] == lob
    )


def lob_rows(batch: ChangeBatch, events: I64) -> tuple[LobRows, I64]:
    """Return (the pieces of these LOB events, the event of each piece). The pieces are unsorted and
    have owner 0.
    """
    count = int(batch.events.piece_count[events].sum())
    rows, event_of = empty_rows(count), np.empty(count, np.int64)
    rows_of_events(
        batch,
        first_rows(batch.events.piece_count),
        first_rows(batch.pieces.entry_count),
        events,
        event_of,
        rows,
    )
    return rows, event_of
