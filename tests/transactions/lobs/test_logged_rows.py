"""The LOB pieces of transactions as one table, and what kernels find in it."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Final

import numpy as np
import pytest

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import (
    ChangeBatch,
    EventKind,
    columns_of,
    empty_entries,
    empty_events,
    empty_pieces,
)
from olr_pg.redo.lob_pieces import ListForm, LobOp
from olr_pg.transactions.finished_columns import VALUE
from olr_pg.transactions.lobs.logged_rows import (
    OwnedEvents,
    collect_rows,
    is_lob,
    listed_blocks,
    lob_numbers,
    lob_rows,
    lower_bound,
)
from olr_pg.transactions.lobs.value_tables import Space, empty_rows, sort_rows
from olr_pg.transactions.select import first_rows
from tests.redo.chain import clear
from tests.transactions.lobs.hand_made_lobs import HUNDRED, LOB
from tests.transactions.lobs.test_value_tables import rows_of

find, is_of = interpreted(lower_bound), interpreted(is_lob)

LOB_ID: Final = bytes.fromhex("00000001 0000001060ff")
"""Of the examples of values-and-lobs §16.6."""


def test_a_key_is_found_where_its_rows_begin() -> None:
    rows = sort_rows(rows_of([(0, Space.PAGE, 7, 3, 5), (0, Space.PAGE, 7, 9, 5),
                              (0, Space.LIST, 0, 3, 5)]))  # fmt: skip
    at = find(rows, 0, int(Space.PAGE), 7, 4)
    assert rows.number[at] == 9
    assert is_of(rows, at, 0, int(Space.PAGE), 7)
    end = find(rows, 0, int(Space.PAGE), 7, 10)
    assert not is_of(rows, end, 0, int(Space.PAGE), 7)


def test_every_key_is_found_and_what_lies_between() -> None:
    keys = [(owner, space, lob, number) for owner in (1, 3) for space in (0, 2) for lob in (5, 7)
            for number in (2, 4)]  # fmt: skip
    rows = sort_rows(rows_of([(*key, scn) for key in keys for scn in (1, 2)]))
    for at, key in enumerate(keys):
        assert find(rows, *key) == 2 * at
        assert is_of(rows, 2 * at, *key[:3])
    for at, (before, behind) in enumerate(pairwise(keys), 1):
        assert before < behind
        assert find(rows, *before[:3], before[3] + 1) == 2 * at
    for owner, space, lob in [(0, 9, 9), (1, 1, 9), (1, 0, 6), (2, 0, 0), (1, 3, 0), (3, 2, 8)]:
        wanted = sum((owner, space, lob, 3) > key for key in keys)
        assert find(rows, owner, space, lob, 3) == 2 * wanted
    assert not is_of(rows, -1, 3, 2, 7)
    assert not is_of(rows, len(rows), 3, 2, 7)
    for other in [(1, 0, 7), (1, 2, 5), (3, 0, 5)]:
        assert not is_of(rows, 0, *other)


def batch_of(*events: tuple[EventKind, int, list[LobOp]]) -> ChangeBatch:
    """Events (kind, undo record, pieces); each number in a piece is another one.

    Piece k is of block 100 + k, has 200 + k in `head_bdba`, 10 + k in `slot`, and k bytes.
    """
    ops = [op for *_, pieces in events for op in pieces]
    rows, pieces = empty_events(len(events)), empty_pieces(len(ops))
    entries, data = empty_entries(2 * len(ops)), bytearray()
    for table in (rows, pieces, entries):
        clear(table)
    for at, (kind, record, own) in enumerate(events):
        rows.kind[at], rows.rci[at], rows.piece_count[at] = kind, record, len(own)
        rows.undo_dba[at], rows.scn[at], rows.table[at] = 0xC0, 1000 + at, 70 + at
    for at, op in enumerate(ops):
        pieces.op[at], pieces.entry_count[at] = op, 2
        pieces.bdba[at], pieces.head_bdba[at], pieces.slot[at] = 100 + at, 200 + at, 10 + at
        pieces.row_flags[at] = at % 4
        has_id = op not in (LobOp.LIST, LobOp.LIST_AT)
        entries.offset[2 * at], entries.length[2 * at] = len(data), 10 if has_id else -1
        data += LOB_ID[:9] + bytes([at]) if has_id else b""
        entries.offset[2 * at + 1], entries.length[2 * at + 1] = len(data), at or -1
        data += bytes([at] * at)
    return ChangeBatch(rows, pieces, entries, np.frombuffer(bytes(data), np.uint8).copy())


def test_a_piece_has_its_space_its_lob_and_its_number() -> None:
    """As `LobOp` and `LobRows` say; the id's last six bytes differ (values-and-lobs §16.1)."""
    batch = batch_of((EventKind.LOB, 0, [*LobOp][:3]), (EventKind.CHANGE, 0, [LobOp.PAGE]),
                     (EventKind.LOB, 0, [*LobOp][3:]))  # fmt: skip
    rows, event_of = lob_rows(batch, np.array([0, 2]))
    numbers = [0, 1, 2, *range(4, 9)]
    assert event_of.tolist() == [0] * 3 + [2] * 5
    assert rows.op.tolist() == [*LobOp]
    spaces = [Space.PAGE] * 3 + [Space.LIST] * 3 + [Space.INDEX, Space.OPERATION]
    assert rows.space.tolist() == spaces
    assert rows.lob.tolist() == [
        0 if space is Space.LIST else (LOB & ~0xFF) + at
        for at, space in zip(numbers, spaces, strict=True)
    ]
    assert rows.number.tolist() == [
        (200 if space is Space.INDEX else 100) + at
        for at, space in zip(numbers, spaces, strict=True)
    ]
    assert rows.at.tolist() == [10 + at for at in numbers]
    assert rows.span.tolist() == [200 + at for at in numbers]
    assert rows.form.tolist() == [at % 4 for at in numbers]
    assert rows.length.tolist() == numbers
    for offset, length, at in zip(rows.offset, rows.length, numbers, strict=True):
        assert batch.data[offset : offset + length].tolist() == [at] * at
    assert rows.scn.tolist() == [1000] * 3 + [1002] * 5
    assert rows.table.tolist() == [70] * 3 + [72] * 5
    assert not rows.owner.any()


def test_what_a_savepoint_took_back_is_not_collected() -> None:
    page = [LobOp.PAGE]
    batch = batch_of(
        (EventKind.LOB, 1, page),
        (EventKind.CHANGE, 1, page),  # of another transaction, without LOBs
        (EventKind.LOB, 2, [LobOp.FILL, LobOp.ZERO]),
        (EventKind.CHANGE, 3, page),
        (EventKind.LOB, 4, page),
        (EventKind.UNDONE, 4, []),
        (EventKind.LOB, 1, page),
        (EventKind.UNDONE, 1, []),
    )
    order = np.array([1, 7, 0, 2, 4, 5, 3, 6])
    owners = OwnedEvents(order, np.array([0, 2, 6]), np.array([2, 6, 8]))
    rows, undid = empty_rows(9), np.full(3, 7)
    live, undoable = np.empty((2, 8), np.int64)
    count = interpreted(collect_rows)(
        batch, first_rows(batch.events.piece_count), first_rows(batch.pieces.entry_count),
        owners, live, undoable, undid, rows,
    )  # fmt: skip
    assert rows.owner[:count].tolist() == [1, 1, 1, 2]
    assert rows.number[:count].tolist() == [100, 102, 103, 106]
    assert undid.tolist() == [1, 1, 0]


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_list_blocks_of_header_blocks(order: str) -> None:
    """values-and-lobs §18.5: dba0 … dba3 of a header item, up to a zero, in the platform's
    order.
    """
    data = struct.pack(order + "12I", 9, 9, 0x51, 0x52, 0x53, 0x54, 0x61, 0, 0x63, 0x64, 9, 9)
    rows = rows_of([(0, Space.LIST, 0, 1, 1)] * 3)
    rows.op[:] = [LobOp.HEADER, LobOp.LIST, LobOp.HEADER]
    rows.form[:] = ListForm.BIG_ENDIAN if order == ">" else ListForm.WIDE
    rows.offset[:] = [8, 0, 24]
    blocks = np.zeros(12, np.int64)
    assert interpreted(listed_blocks)(rows, np.frombuffer(data, np.uint8), blocks) == 5
    assert blocks[:5].tolist() == [0x51, 0x52, 0x53, 0x54, 0x61]


def test_the_lob_number_of_a_locator_that_may_be_cut() -> None:
    """The locator of values-and-lobs §16.6, whose id is 00000001 0000001060ff."""
    cuts: list[tuple[bytes, ...]] = [
        (HUNDRED,), (HUNDRED[:12], b"", HUNDRED[12:16], HUNDRED[16:]), (HUNDRED[:20],),
        (HUNDRED[:19],), (b"",), (HUNDRED[:10], HUNDRED[10:20]),
    ]  # fmt: skip
    parts = [part for one in cuts for part in one]
    entries = columns_of(VALUE, len(parts))
    entries.next[:], entries.length[:] = -1, [len(part) or -1 for part in parts]
    entries.offset[:] = 3 + np.cumsum([0, *map(len, parts[:-1])])
    chosen: list[int] = []
    for one in cuts:
        at = chosen[-1] + len(cuts[len(chosen) - 1]) if chosen else 0
        entries.next[at : at + len(one) - 1] = np.arange(at + 1, at + len(one))
        chosen.append(at)
    data = np.frombuffer(b"\xee" * 3 + b"".join(parts), np.uint8)
    numbers = np.zeros(len(cuts), np.int64)
    interpreted(lob_numbers)(entries, data, np.array(chosen), numbers)
    assert numbers.tolist() == [LOB, LOB, LOB, -1, -1, LOB]
