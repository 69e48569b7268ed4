"""Transactions that change nothing leave a batch; everything else stays, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from olr_pg.redo.batch import EventKind
from olr_pg.scalars import pack_xid
from olr_pg.transactions.delimit import slot_keys
from olr_pg.transactions.empty_transactions import without_unconcerned
from tests.transactions.event_model import Event, batch_of

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
