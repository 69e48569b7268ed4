from __future__ import annotations

from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.model.storage import (
    UNDO_BLOCKS_PER_SEGMENT,
    UNDO_RECORDS_MAX,
    UNDO_SPACE,
    BlockState,
    TransactionalBlock,
    UndoSegment,
)
from olr_pg.simulator.model.transactions import Transaction


def transaction(segment: UndoSegment, slot: int = 0) -> Transaction:
    return Transaction(segment, slot, 1, bytes([slot]) * 8, 1, 0)


def segment() -> UndoSegment:
    return UndoSegment(3, 5, 1_000, 100)


def test_a_change_gives_the_state_before_and_counts_within_an_scn() -> None:
    block = BlockState(4, 9, 100)
    first = block.change(200, cls=1, obj=7)
    second = block.change(200, cls=1, obj=7)
    third = block.change(201, cls=1, obj=7)
    assert [(one.scn, one.seq) for one in (first, second, third)] == [(100, 1), (200, 1), (200, 2)]
    assert (block.scn, block.seq) == (201, 1)


def test_a_transaction_keeps_its_entry_and_another_gets_its_own() -> None:
    block, undo = TransactionalBlock(4, 9, 100), segment()
    one, other = transaction(undo), transaction(undo, 1)
    claim = block.claim(one)
    assert claim.fresh
    block.take(claim, one, b"u" * 8)
    again = block.claim(one)
    assert (again.itli, again.fresh) == (claim.itli, False)
    assert block.claim(other).itli != claim.itli


def test_ended_transactions_are_cleaned_out_once() -> None:
    block, undo = TransactionalBlock(4, 9, 100), segment()
    ended = transaction(undo)
    block.take(block.claim(ended), ended, b"u" * 8)
    assert block.clean_out() == ()
    ended.active, ended.commit_scn = False, 555
    assert [(one.itli, one.commit_scn) for one in block.clean_out()] == [(1, 555)]
    assert block.clean_out() == ()


def test_the_undo_of_a_change_names_the_former_owner_of_the_entry() -> None:
    redo, undo = RedoFormat(), segment()
    block = TransactionalBlock(4, 9, 100)
    ended, later = transaction(undo, 1), transaction(undo, 2)
    block.itl = block.itl[:1]
    block.take(block.claim(ended), ended, b"u" * 8)
    ended.active, ended.commit_scn = False, 555
    claim = block.claim(later)
    assert ended.xid_bytes in claim.undo_ktb(redo)
    block.take(claim, later, b"v" * 8)
    assert later.xid_bytes not in block.claim(later).undo_ktb(redo)


def test_undo_goes_on_in_its_block_until_that_is_full() -> None:
    undo = segment()
    own = transaction(undo)
    first = undo.place(own, 100)
    own.undo_block = first.block
    assert (first.rec, first.new_block) == (1, True)
    second = undo.place(own, 100)
    assert (second.block, second.rec, second.new_block) == (first.block, 2, False)
    assert undo.room(own) == UNDO_SPACE - 2 * 102 - 2
    first.block.count = UNDO_RECORDS_MAX
    third = undo.place(own, 100)
    assert third.new_block
    assert third.block is not first.block


def test_the_block_of_an_ended_transaction_serves_the_next_one() -> None:
    undo = segment()
    ended, later = transaction(undo), transaction(undo, 1)
    place = undo.place(ended, 100)
    ended.undo_block = place.block
    undo.retire(ended)
    taken = undo.place(later, 100)
    assert (taken.block, taken.rec, taken.block.holder) == (place.block, 2, later)


def test_a_segment_that_outgrows_its_blocks_takes_none_of_another() -> None:
    first = UndoSegment(1, 5, (5 << 22) + 128, 100)
    holder = transaction(first)
    others = {first.header.dba + number * UNDO_BLOCKS_PER_SEGMENT for number in range(1, 24)}
    places = set[int]()
    for _ in range(UNDO_BLOCKS_PER_SEGMENT + 100):
        place = first.place(holder, UNDO_SPACE - 2)
        holder.undo_block = place.block
        places.add(place.block.dba)
    assert len(places) == UNDO_BLOCKS_PER_SEGMENT + 100
    taken = {start + n for start in others for n in range(UNDO_BLOCKS_PER_SEGMENT)}
    assert not places & taken
    assert {dba >> 22 for dba in places} == {5}
