"""Assembly: any partition of an event stream gives the transactions that the model knows."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.redo.batch import EventKind, Role, empty_batch, empty_entries, empty_pieces
from olr_pg.scalars import MAX_SCN, pack_xid
from olr_pg.transactions.assembler import Assembler
from tests.redo.chain import Transaction, assemble, clear, subscribe, transactions_of
from tests.transactions.event_model import CON_ID, OBJ, Committed, Event, Workload, batch_of

WANTED = subscribe([OBJ], CON_ID)
XID = pack_xid(1, 2, 3)


def delivered(found: list[Transaction]) -> list[Committed]:
    """What came out, in the model's terms."""
    return [
        Committed(
            one.facts[1],
            one.facts[2],
            one.commit_scn,
            (one.facts[6], one.facts[7]),
            tuple(int.from_bytes(dml.images[0][2] or b"", "big") for dml in one.dml),
        )
        for one in found
    ]


def run(events: list[Event], *, is_split: bool = False) -> tuple[list[Committed], Assembler]:
    assembler = Assembler(WANTED.plan, WANTED.tables, is_split=is_split)
    return delivered(transactions_of(assembler.feed(batch_of(events)), WANTED.plan)), assembler


def cut(events: list[Event], cuts: list[int]) -> list[list[Event]]:
    bounds = [0, *sorted(cuts), len(events)]
    return [events[low:high] for low, high in itertools.pairwise(bounds)]


streams = st.builds(Workload, st.integers(0, 1 << 32), st.integers(1, 120))


@settings(max_examples=40)
@given(streams)
def test_one_batch_gives_the_model_s_transactions(work: Workload) -> None:
    found, assembler = run(work.events)
    assert found == work.committed
    assert assembler.account.unmatched == 0
    assert assembler.account.rolled_back == work.rolled_back
    assert assembler.account.unbegun == work.unbegun


@settings(max_examples=40)
@given(streams, st.data())
def test_any_batches_give_the_same(work: Workload, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(work.events)), max_size=8))
    assembler = Assembler(WANTED.plan, WANTED.tables, is_split=False)
    found: list[Transaction] = []
    for part in cut(work.events, cuts):
        found += transactions_of(assembler.feed(batch_of(part)), WANTED.plan)
    assert delivered(sorted(found)) == work.committed
    assert assembler.account.unmatched == 0


@settings(max_examples=40)
@given(streams, st.data())
def test_any_splits_and_batches_give_the_same(work: Workload, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(work.events)), max_size=6))
    rng = random.Random(data.draw(st.integers(0, 1 << 32)))
    splits = []
    for part in cut(work.events, cuts):
        inner = [rng.randrange(len(part) + 1) for _ in range(rng.randrange(3))]
        splits.append([batch_of(piece) for piece in cut(part, inner)])
    found, account = assemble(splits, WANTED)
    assert delivered(found) == work.committed
    assert account.unmatched == 0
    assert account.rows == sum(len(one.values) for one in work.committed)


def test_every_event_its_own_split() -> None:
    for seed in range(5):
        work = Workload(seed, 80)
        found, _ = assemble([[batch_of([event])] for event in work.events], WANTED)
        assert delivered(found) == work.committed


def begin(scn: int, number: int, xid: int = XID) -> Event:
    return Event(EventKind.BEGIN, xid, scn, number)


def change(value: int, number: int, xid: int = XID, rci: int = 1) -> Event:
    return Event(EventKind.CHANGE, xid, 10, number, value, undo_dba=50, rci=rci, wrp=3)


def commit(scn: int, number: int, xid: int = XID, thread: int = 1) -> Event:
    return Event(EventKind.COMMIT, xid, scn, number, thread=thread)


def undo(number: int, rci: int, xid: int = XID) -> Event:
    slot = xid & ~0xFFFFFFFF
    return Event(EventKind.UNDONE, slot, 10, number, undo_dba=50, rci=rci, wrp=3)


def test_nested_savepoints() -> None:
    events = [
        begin(1, 0),
        change(1, 1, rci=1),
        change(2, 2, rci=2),
        change(3, 3, rci=3),
        undo(4, 3),
        change(4, 5, rci=3),
        undo(6, 3),
        undo(7, 2),
        change(5, 8, rci=2),
        commit(20, 9),
    ]
    found, assembler = run(events)
    assert [one.values for one in found] == [(1, 5)]
    assert (assembler.account.undone, assembler.account.unmatched) == (3, 0)


def test_a_reused_slot_keeps_transactions_apart() -> None:
    later = pack_xid(1, 2, 4)
    events = [begin(1, 0), change(1, 1), commit(5, 2), begin(6, 3, later), change(2, 4, later),
              commit(8, 5, later)]  # fmt: skip
    found, _ = run(events)
    assert [(one.xid, one.values) for one in found] == [(XID, (1,)), (later, (2,))]


def test_a_lost_end_loses_only_its_own_transaction() -> None:
    later = pack_xid(1, 2, 4)
    events = [begin(1, 0), change(1, 1), begin(6, 2, later), change(2, 3, later),
              commit(8, 4, later)]  # fmt: skip
    for parts in ([events], [events[:2], events[2:]], [[event] for event in events]):
        assembler = Assembler(WANTED.plan, WANTED.tables, is_split=False)
        found = [
            one
            for part in parts
            for one in transactions_of(assembler.feed(batch_of(part)), WANTED.plan)
        ]
        assert [one.values for one in delivered(found)] == [(2,)]
        lost = assembler.tell_unseen_ends(MAX_SCN)
        assert lost is not None
        assert [fault.xid for fault in lost.faults] == [XID]
        assert assembler.open_transactions == []


def test_without_its_begin_a_transaction_is_dropped_and_counted() -> None:
    found, assembler = run([change(1, 0), commit(5, 1)])
    assert found == []
    assert assembler.account.unbegun == 1


def test_in_a_split_it_waits_for_its_begin() -> None:
    found, assembler = run([change(2, 1), commit(5, 2)], is_split=True)
    assert found == []
    rest = assembler.remainder()
    assert rest.events.kind.tolist() == [EventKind.CHANGE, EventKind.COMMIT]
    assert assembler.remainder().events.kind.size == 0
    driver = Assembler(WANTED.plan, WANTED.tables, is_split=False)
    assert driver.feed(batch_of([begin(1, 0), change(1, 0, rci=0)])) is None
    assert [one.begin_scn for one in driver.open_transactions] == [1]
    assert [one.values for one in delivered(transactions_of(driver.feed(rest), WANTED.plan))] == [
        (1, 2)
    ]


def test_ties_are_delivered_in_the_order_of_their_commit_records() -> None:
    slots = [pack_xid(usn, 1, 1) for usn in (3, 1, 2)]
    events = [begin(1, k, xid) for k, xid in enumerate(slots)]
    events += [change(k, 10 + k, xid) for k, xid in enumerate(slots)]
    events += [commit(20, 20 + k, xid) for k, xid in enumerate(slots)]
    assert [one.xid for one in run(events)[0]] == slots
    other_thread = [*events[:-1], commit(20, 5, slots[2], thread=2)]
    assert [one.xid for one in run(other_thread)[0]] == slots


def test_a_rolled_back_transaction_never_comes_out() -> None:
    events = [begin(1, 0), change(1, 1), Event(EventKind.ROLLBACK, XID, 9, 2)]
    found, assembler = run(events)
    assert found == []
    assert assembler.account.rolled_back == 1


def test_a_rollback_that_is_read_before_its_begin_ends_it_after_a_restart_too() -> None:
    """Otherwise the transaction would stay open, and no checkpoint would pass its begin."""
    _, assembler = run([Event(EventKind.ROLLBACK, XID, 9, 2)])
    assembler.forget_rollbacks(8)
    for one in (assembler.saved(), assembler):
        one.feed(batch_of([begin(1, 0), change(1, 1)]))
        assert one.open_transactions == []
        assert one.account.rolled_back == 1
    _, assembler = run([Event(EventKind.ROLLBACK, XID, 9, 2)])
    assembler.forget_rollbacks(9)  # its begin cannot follow any more
    assert assembler.unbegun_rollbacks == {}


@pytest.mark.parametrize("is_split", [True, False])
def test_an_empty_batch_changes_nothing(is_split: bool) -> None:
    assembler = Assembler(WANTED.plan, WANTED.tables, is_split=is_split)
    assert assembler.feed(empty_batch()) is None
    assert assembler.remainder().events.kind.size == 0


def test_parts_of_before_and_after_values_do_not_mix() -> None:
    """Supplemental values that are both before and after the change are chained by role."""
    events = [begin(1, 0), change(9, 1), commit(5, 2)]
    batch = batch_of(events)
    roles = [Role.BEFORE_SUPPLEMENTAL, Role.AFTER_SUPPLEMENTAL]
    both = roles[0] | roles[1]
    given_entries = [(roles[0], 3), (roles[1], 2), (both, 3), (both, 3), (Role.AFTER, 0)]
    pieces, entries = empty_pieces(4), empty_entries(5)
    for columns in (pieces, entries):
        clear(columns)
    pieces.op[:] = 16
    pieces.supplemental[:] = 1
    pieces.sup_type[:] = 1
    pieces.sup_flags[:] = [8, 0, 0, 4]
    pieces.entry_count[:] = [1, 1, 1, 2]
    entries.role[:] = [int(role) for role, _ in given_entries]
    entries.part[:] = [part for _, part in given_entries]
    entries.segcol[:] = 1
    entries.offset[:] = range(5)
    entries.length[:] = 1
    batch.events.piece_count[:] = [0, 4, 0]
    data = np.frombuffer(bytearray(b"abexn"), np.uint8)
    assembler = Assembler(WANTED.plan, WANTED.tables, is_split=False)
    fed = batch._replace(pieces=pieces, entries=entries, data=data)
    (one,) = transactions_of(assembler.feed(fed), WANTED.plan)
    assert [(dml.kind, dml.images) for dml in one.dml] == [
        ("UPDATE", ((0, 0, b"aex"), (1, 0, b"n")))
    ]
