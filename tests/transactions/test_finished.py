"""The order of delivery, and the counts of what became of transactions.

Transactions that change nothing leave a batch; everything else stays, in order.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.kernels.compile import interpreted
from olr_pg.redo.batch import EventKind
from olr_pg.scalars import pack_xid
from olr_pg.transactions import finished
from olr_pg.transactions.delimit import slot_keys
from olr_pg.transactions.finished import Account, commit_order, count_rows, without_unconcerned
from olr_pg.transactions.finished_columns import DmlKind
from tests.transactions.event_model import Event, batch_of


def test_commits_of_one_scn_leave_by_delay_thread_and_place() -> None:
    keys = [
        (scn, delay, thread, sequence, block, offset)
        for scn in (5, 6) for delay in (0, 3) for thread in (1, 2) for sequence in (7, 8)
        for block in (2, 900) for offset in (16, 200)
    ]  # fmt: skip
    random.Random(1).shuffle(keys)
    columns = np.array(keys, np.uint64).T
    assert [keys[i] for i in commit_order(*columns)] == sorted(keys)


def test_rows_are_counted_by_table_and_kind() -> None:
    rows = np.zeros((2, 3), np.int64)
    kinds = [DmlKind.INSERT, DmlKind.UPDATE, DmlKind.UPDATE, DmlKind.DELETE]
    count_rows(np.array([0, 1, 1, 0], np.int32), np.array(kinds, np.uint8), rows)
    assert rows.tolist() == [[1, 1, 0], [0, 0, 2]]


def test_accounts_add_up_in_every_count() -> None:
    names = list(Account.__slots__)
    one = Account(**{name: number for number, name in enumerate(names)})
    one.add(Account(**dict.fromkeys(names, 100)))
    assert [getattr(one, name) for name in names] == [100 + i for i in range(len(names))]


ENDS = (EventKind.COMMIT, EventKind.ROLLBACK)


def stays(events: list[Event], waiting: set[int]) -> list[bool]:
    """By definition: runs BEGIN, at most one SESSION, end of a slot without anything waiting."""
    kept = [True] * len(events)
    for slot in {event.xid >> 32 for event in events}:
        own = [i for i, event in enumerate(events) if event.xid >> 32 == slot]
        is_free = slot not in waiting
        at = 0
        while at < len(own):
            kinds = [events[i].kind for i in own[at : at + 3]]
            size = 3 if kinds[1:2] == [EventKind.SESSION] else 2
            whole = kinds[0] == EventKind.BEGIN and len(kinds) >= size and kinds[size - 1] in ENDS
            if whole and is_free and events[own[at]].xid == events[own[at + size - 1]].xid:
                for i in own[at : at + size]:
                    kept[i] = False
                at += size
                continue
            if kinds[0] in ENDS:
                is_free = True
            elif kinds[0] != EventKind.SESSION:
                is_free = False
            at += 1
    return kept


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [EventKind.BEGIN, EventKind.BEGIN, EventKind.SESSION, EventKind.CHANGE, *ENDS]
            ),
            st.integers(1, 2),
            st.integers(7, 8),
        ),
        max_size=40,
    ),
    st.sets(st.integers(1, 2)),
)
def test_only_whole_transactions_without_changes_leave(
    drawn: list[tuple[EventKind, int, int]], open_slots: set[int]
) -> None:
    events = [
        Event(kind, pack_xid(3, slot, sequence), 100 + number, number)
        for number, (kind, slot, sequence) in enumerate(drawn)
    ]
    batch = batch_of(events)
    waiting = [
        int(slot_keys(batch_of([Event(EventKind.BEGIN, pack_xid(3, slot, 1), 1, 1)]).events)[0])
        for slot in open_slots
    ]
    left = without_unconcerned(batch, waiting)

    kept = stays(events, {pack_xid(3, slot, 0) >> 32 for slot in open_slots})
    assert left.batch.events.scn.tolist() == [
        event.scn for event, stay in zip(events, kept, strict=True) if stay
    ]
    gone = [event.kind for event, stay in zip(events, kept, strict=True) if not stay]
    assert left.committed == gone.count(EventKind.COMMIT)
    assert left.rolled_back == gone.count(EventKind.ROLLBACK)


def test_a_waiting_transaction_keeps_its_successor() -> None:
    events = [
        Event(kind, pack_xid(3, 1, 7), 100 + number, number)
        for number, kind in enumerate((EventKind.BEGIN, EventKind.COMMIT))
    ]
    batch = batch_of(events)
    keys = slot_keys(batch.events)
    assert without_unconcerned(batch, [int(keys[0])]).batch is batch
    assert without_unconcerned(batch, []).batch.events.size == 0


KINDS = {
    "B": EventKind.BEGIN,
    "S": EventKind.SESSION,
    "C": EventKind.COMMIT,
    "R": EventKind.ROLLBACK,
    "X": EventKind.CHANGE,
    "U": EventKind.UNDONE,
}


def left(text: str, waiting: str = "") -> tuple[str, int, int]:
    """What is left of such events, and how many transactions were committed and rolled back.

    An event is a letter of `KINDS`, a slot, and + for the next transaction of the slot.
    """
    words = text.split()
    events = [
        Event(KINDS[word[0]], pack_xid(0, int(word[1]), 7 + word.count("+")), at, at)
        for at, word in enumerate(words)
    ]
    batch = batch_of(events)
    batch.events.con_id[:] = 0  # so that the key of slot 0 is 0
    found = without_unconcerned(batch, [int(slot) for slot in waiting])
    stayed = [words[scn] for scn in found.batch.events.scn.tolist()]
    return " ".join(stayed), found.committed, found.rolled_back


def test_what_leaves_a_batch() -> None:
    for slots in ("01", "10", "12"):
        for text, expected in (
            ("B0 C0", ("", 1, 0)),
            ("B0 R0", ("", 0, 1)),
            ("B0 S0 C0", ("", 1, 0)),
            ("X1 B0 S0 R0 X1", ("X1 X1", 0, 1)),
            ("X1 B0 B1 S0 S1 C0 C1 X1", ("X1 B1 S1 C1 X1", 1, 0)),
            # One session, or more.
            ("B0 S0 S0 C0 X1", ("B0 S0 S0 C0 X1", 0, 0)),
            ("S0 B0 S0 C0 X1", ("S0 X1", 1, 0)),
            ("S0 S0 B0 C0 X1", ("S0 S0 X1", 1, 0)),
            ("B0 S0 C0 B0+ C0+ X1", ("X1", 2, 0)),
            ("B0 S0 S0 C0 B0+ S0+ R0+ X1", ("B0 S0 S0 C0 X1", 0, 1)),
            # Something happens in them.
            ("B0 X0 C0 X1", ("B0 X0 C0 X1", 0, 0)),
            ("B0 U0 C0 X1", ("B0 U0 C0 X1", 0, 0)),
            ("B0 S0 X0 C0 X1", ("B0 S0 X0 C0 X1", 0, 0)),
            ("B0 X0 C0 B0+ C0+ X1", ("B0 X0 C0 X1", 1, 0)),
            ("X0 B0 C0", ("X0 B0 C0", 0, 0)),
            # Not whole, or its end belongs to another.
            ("C0 X1", ("C0 X1", 0, 0)),
            ("R0 B0 R0", ("R0", 0, 1)),
            ("B0 C0 C0 X1", ("C0 X1", 1, 0)),
            ("B0 C0+ X1", ("B0 C0+ X1", 0, 0)),
            ("B0 B0+ C0+ B0+ C0+", ("B0 B0+ C0+", 1, 0)),
            ("B0 S0", ("B0 S0", 0, 0)),
        ):
            renamed = text.translate(str.maketrans("01", slots))
            stayed, *counts = expected
            assert left(renamed) == (stayed.translate(str.maketrans("01", slots)), *counts)
    assert left("B0 C0 B0+ C0+ B1 C1", waiting="0") == ("B0 C0", 2, 0)
    assert left("C0 B0 C0 B1 C1", waiting="01") == ("C0 B1 C1", 1, 0)


def test_slots_are_told_apart_in_a_table_that_is_half_full_and_what_has_no_room_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(finished, "_SLOTS", 16)
    small = interpreted(finished._find_unconcerned)
    monkeypatch.setattr(finished, "_find_unconcerned", small)
    with np.errstate(over="ignore"):  # the hash wraps
        assert left("B0 C0 " * 20) == ("", 20, 0)
        for slots in ("01234567", "98765432", "02468135"):
            begins, changes, ends = (" ".join(f"{kind}{slot}" for slot in slots) for kind in "BXC")
            assert left(f"{begins} {ends}") == ("", 8, 0)
            some = [f"{kind}{slot}" for kind in "BXC" for slot in slots[::2]]
            assert left(f"{begins} {' '.join(changes.split()[::2])} {ends}") == (
                " ".join(some),
                4,
                0,
            )
            others = " ".join(f"{kind}{slot}" for slot in "0123456789" if slot not in slots
                              for kind in "BC")  # fmt: skip
            assert left(f"{begins} {ends} {others} C0") == (f"{others} C0", 8, 0)
