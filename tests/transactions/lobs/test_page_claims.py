"""Whose a BASICFILE page is: it names no transaction, and several of them may refer to its LOB."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.decoding.split import open_for_decoding, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.ordering.merger import Merger
from olr_pg.redo.batch import EventKind, Role
from olr_pg.redo.column_tables import head
from olr_pg.redo.log_extraction import read_changes
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.cells import BASIC_PAGE, BLOB, basic_pointers
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.lobs.page_claims import STRANGER, claims_of_stranger, lob_numbers_of
from tests.lobs.lob_decoding import Decoded, decode
from tests.lobs.lob_redo import LobRedo, snapshot, table
from tests.redo.log_builder import LogBuilder, open_log
from tests.split_results import packed_split
from tests.transactions.hand_made_pieces import Entry, Piece, batch_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.decoding.split import SplitResult, Subscription

ONE, TWO = Decimal(1), Decimal(2)
KEY = cells.number(ONE).raw
OLD = bytes(range(256)) * 20
NEW = OLD[::-1]
LONG = bytes(range(255)) * 40
SPLITS = (1 << 20, 60, 45, 30, 20, 5)


def pointers(content: bytes, *blocks: int) -> bytes:
    """The locator of LOB 7."""
    return basic_pointers(BLOB, 7, len(content), blocks)


@contextmanager
def other(redo: LobRedo, segment: int = 2) -> Iterator[None]:
    """What is written is of another transaction, of that undo segment."""
    first = redo.segment, redo.sequence, redo.undo
    redo.segment, redo.sequence = segment, 100 * segment
    redo.begin()
    yield
    redo.end()
    redo.segment, redo.sequence, redo.undo = first


@contextmanager
def at_one_scn(redo: LobRedo) -> Iterator[None]:
    """All records have the SCN of the first one, and stand in one strand."""
    first = len(redo.records)
    yield
    scn = redo.records[first].scn
    redo.records[first:] = [
        replace(record, scn=scn, subscn=1 + at) for at, record in enumerate(redo.records[first:])
    ]


def images(decoded: Decoded) -> list[str | None]:
    return [change["after"].get("IMAGE") for change in decoded.changes]


def bodies(redo: LobRedo) -> list[bytes]:
    """The records since the last call."""
    found = [one.body for one in redo.records]
    redo.records.clear()
    return found


def in_splits(subscription: Subscription, path: Path) -> list[SplitResult]:
    """What the splits of a log hold, of 10 blocks each."""
    log = open_for_decoding(str(path))
    end = log.header.nab or 0
    return [
        read_result(packed_split(subscription, log, start, min(start + 10, end)))
        for start in range(2, end, 10)
    ]


@pytest.mark.parametrize("split_blocks", SPLITS)
def test_a_page_at_the_scn_of_the_commit_before_it_is_of_the_next_transaction(
    tmp_path: Path, split_blocks: int
) -> None:
    redo = LobRedo()
    redo.begin()
    redo.long_fields(3, 7, OLD, [0x300])
    slot = redo.insert(ONE, None, pointers(OLD, 0x300))
    with at_one_scn(redo):
        redo.end()
        redo.begin()
        redo.long_fields(3, 7, NEW, [0x301])
    redo.update(slot, ONE, {3: pointers(OLD, 0x300)}, {3: pointers(NEW, 0x301)})
    for _ in range(20):
        redo.insert(TWO, None, None)
    redo.end()
    dictionary = snapshot(table(securefile=False))
    decoded = decode(redo, tmp_path, dictionary, split_blocks=split_blocks)
    assert images(decoded)[:2] == [OLD.hex(), NEW.hex()]


@pytest.mark.parametrize("split_blocks", SPLITS)
def test_a_page_is_of_the_first_transaction_that_commits_with_its_lob(
    tmp_path: Path, split_blocks: int
) -> None:
    # The second one has begun before the first page, and appends: the value is not whole in it.
    redo = LobRedo()
    redo.begin()
    redo.insert(TWO, None, None)
    first = LONG[:BASIC_PAGE]
    with other(redo):
        redo.long_fields(3, 7, first, [0x300])
        slot = redo.insert(ONE, None, pointers(first, 0x300))
    redo.long_field(3, 7, 1, 0x301, LONG[BASIC_PAGE:])
    redo.update(slot, ONE, {3: pointers(first, 0x300)}, {3: pointers(LONG, 0x300, 0x301)})
    redo.end()
    dictionary = snapshot(table(securefile=False))
    decoded = decode(redo, tmp_path, dictionary, split_blocks=split_blocks)
    assert images(decoded) == [first.hex(), None]
    assert decoded.account.lob_unavailable == 1


@pytest.mark.parametrize("skipped", [0, 1])
@pytest.mark.parametrize("split_blocks", SPLITS)
def test_a_page_of_a_transaction_whose_begin_was_not_read_is_nobody_elses(
    tmp_path: Path, split_blocks: int, skipped: int
) -> None:
    redo, second = LobRedo(), LobRedo(segment=2)
    first = LONG[:BASIC_PAGE]
    redo.begin()
    second.records = redo.records
    second.begin()
    redo.long_fields(3, 7, first, [0x300])
    slot = redo.insert(ONE, None, pointers(first, 0x300))
    redo.end()
    second.long_field(3, 7, 1, 0x301, LONG[BASIC_PAGE:])
    second.update(slot, ONE, {3: pointers(first, 0x300)}, {3: pointers(LONG, 0x300, 0x301)})
    second.end()
    redo.records[:] = [
        replace(record, scn=2000 + at) for at, record in enumerate(redo.records[skipped:])
    ]
    redo.scn = 3000
    dictionary = snapshot(table(securefile=False))
    decoded = decode(redo, tmp_path, dictionary, split_blocks=split_blocks)
    assert images(decoded) == [first.hex()][skipped:]
    assert decoded.account.lob_unavailable == 1


def test_a_page_stays_for_its_transaction_whichever_window_that_began_in(tmp_path: Path) -> None:
    # The first transaction begins in the window before, the second one is whole in its window.
    redo = LobRedo()
    redo.begin()
    for _ in range(20):
        redo.insert(TWO, None, None)
    redo.long_fields(3, 7, OLD, [0x300])
    slot = redo.insert(ONE, None, pointers(OLD, 0x300))
    redo.end()
    redo.begin()
    redo.delete(slot, ONE, None, pointers(OLD, 0x300))
    redo.end()
    log = open_for_decoding(str(redo.write(tmp_path, group=1)))
    subscription = subscribe([table(securefile=False)], 0)
    for window_bytes in range(500, 12_000, 500):
        assembler = Assembler(subscription.row_plan, subscription.tables, is_split=True)
        for extract in read_changes(log, subscription.objects, window_bytes=window_bytes):
            assembler.feed_window(extract.batch)
        assert (assembler.account.lob_values, assembler.account.committed) == (1, 2), window_bytes


def test_another_thread_claims_no_pages(tmp_path: Path) -> None:
    # The row is deleted in the other thread, whose redo is read first.
    writing, deleting = LobRedo(), LobRedo(segment=2, scn=2000)
    writing.begin()
    writing.long_fields(3, 7, OLD, [0x300])
    slot = writing.insert(ONE, None, pointers(OLD, 0x300))
    for _ in range(20):
        writing.insert(TWO, None, None)
    writing.end()
    deleting.begin()
    for _ in range(20):
        deleting.insert(TWO, None, None)
    deleting.delete(slot, ONE, None, pointers(OLD, 0x300))
    deleting.end()
    dictionary = snapshot(table(securefile=False))
    subscription = subscribe(dictionary.tables, 0)
    merger = Merger(subscription, 0, {1: 0, 2: 0})
    results = {
        number: in_splits(subscription, one.write(tmp_path, thread=number))
        for number, one in enumerate((writing, deleting), 1)
    }
    assert len(results[1]) > 1 < len(results[2])
    order = [(1, results[1][0]), *((2, one) for one in results[2]),
             *((1, one) for one in results[1][1:])]  # fmt: skip
    runs = [run for thread, result in order for run in merger.feed(thread, result)]
    decoded = Decoded(runs, merger.account, dictionary)
    assert decoded.changes[0]["after"]["IMAGE"] == OLD.hex()


@pytest.mark.parametrize("strands", [(0, 1), (1, 0)])
def test_a_page_in_a_strand_before_that_of_the_commit_is_behind_it(strands: Sequence[int]) -> None:
    redo = LobRedo()
    redo.begin()
    redo.long_fields(3, 7, OLD, [0x300])
    slot = redo.insert(ONE, None, pointers(OLD, 0x300))
    before = bodies(redo)
    redo.end()
    ending = bodies(redo)
    redo.begin()
    redo.long_fields(3, 7, NEW, [0x301])
    beginning = bodies(redo)
    redo.update(slot, ONE, {3: pointers(OLD, 0x300)}, {3: pointers(NEW, 0x301)})
    redo.end()
    after = bodies(redo)
    log = LogBuilder(compat=0x13000000, first_scn=1000)
    log.add_group([[record(1100, 1 + at, body) for at, body in enumerate(before)]], 1100)
    tie = [[record(1200, 1 + at, body) for at, body in enumerate(ending)],
           [record(1200, 10 + at, body) for at, body in enumerate(beginning)]]  # fmt: skip
    log.add_group([tie[at] for at in strands], 1200)
    end = log.blocks
    log.add_group([[record(1300, 1 + at, body) for at, body in enumerate(after)]], 1300)
    built = open_log(log.build())
    dictionary = snapshot(table(securefile=False))
    subscription = subscribe(dictionary.tables, 0)
    merger = Merger(subscription, 0, {1: 0})
    runs = [
        run
        for first, last in ((2, end), (end, built.header.nab or 0))
        for run in merger.feed(1, read_result(packed_split(subscription, built, first, last)))
    ]
    assert images(Decoded(runs, merger.account, dictionary)) == [OLD.hex(), NEW.hex()]


def record(scn: int, subscn: int, body: bytes) -> bytes:
    """A record of redo-format §2.2."""
    head = struct.pack("<IBBHIH10x", 24 + len(body), 1, 0, scn >> 32, scn & 0xFFFFFFFF, subscn)
    return head + body


# --- what a row refers to: the locators of values-and-lobs §16.1 ---


def locator_of(number: int, prefix: int = 1, size: int = 20) -> bytes:
    """One without an inode: the LOB id from 10 on is 00 00 00 01 and six bytes."""
    first = bytes.fromhex("0070 0001 01 08 00 80 0001")
    return (first + struct.pack(">IHI", prefix, number >> 32, number & 0xFFFFFFFF))[:size]


def test_every_locator_in_the_rows_of_a_stranger_is_a_claim() -> None:
    wide = 0xBC_9BCC_0102
    with_inode = locator_of(5) + bytes(40)
    rows = batch_of(
        Piece([Entry(1, b"\xee" * 30), Entry(2, locator_of(wide)), Entry(3, None)]),
        Piece([Entry(1, with_inode, Role.BEFORE), Entry(2, locator_of(4))]),
        Piece([Entry(1, locator_of(4)), Entry(2, locator_of(9, prefix=2))]),
        Piece([Entry(1, locator_of(7, size=19)), Entry(2, locator_of(3))]),
    )
    events = head(rows.events, 3)
    events.piece_count[:] = 2, 1, 1
    claims = claims_of_stranger([rows._replace(events=events)], np.ones(1, np.uint8))
    assert lob_numbers_of(claims.key).tolist() == [3, 4, 5, wide]
    assert set(claims.owner.tolist()) == {STRANGER}
    # The rows of a table without LOBs, or what is no row, refer to none.
    assert claims_of_stranger([rows], np.zeros(1, np.uint8)).key.size == 0
    events.kind[:2] = EventKind.LOB, EventKind.UNDONE
    claims = claims_of_stranger([rows._replace(events=events)], np.ones(1, np.uint8))
    assert lob_numbers_of(claims.key).tolist() == [3]
