"""Changes of transactions that did not commit, as far as redo tells, do not disappear silently.

What stands of a large transaction, stretch by stretch: the same as looked at whole.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import open_for_decoding, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.errors import Code
from olr_pg.files.sealed import RowKey, sealing
from olr_pg.ordering.merger import Merger
from olr_pg.redo.batch import ChangeBatch, EventKind, empty_batch, empty_events
from olr_pg.redo.column_tables import head, joined_rows, take
from olr_pg.scalars import MAX_SCN, pack_xid
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.delimit import UNDO_SEARCH_DEPTH, live_changes
from olr_pg.transactions.unseen_ends import StandingChanges, left_of_large
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.lobs.lob_redo import TABLE_OBJ, LobRedo, snapshot
from tests.lobs.told import told
from tests.redo.chain import subscribe as subscribe_numbers
from tests.split_results import packed_split
from tests.transactions.event_model import CON_ID, OBJ, Event, batch_of

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.redo.batch import EventColumns
    from olr_pg.transactions.finished import Finished


ONE, TWO, THREE = Decimal(1), Decimal(2), Decimal(3)
SPLITS = pytest.mark.parametrize("split_blocks", [1, 2, 1 << 20])


@SPLITS
@pytest.mark.parametrize("has_changes", [True, False])
def test_a_slot_that_is_used_again_tells_that_its_transaction_has_ended(
    tmp_path: Path, split_blocks: int, has_changes: bool
) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.end()
    redo.begin()
    redo.insert(TWO, None, None)
    # Its 5.4 is missing.
    if not has_changes:
        redo.undo_insert(1, redo.undo)
    redo.begin()
    redo.insert(THREE, None, None)
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    if has_changes:
        assert (found.code, found.ids) == (Code.CHANGE_UNDECODABLE, [1])
        assert "another one uses its slot" in found.text
        assert "APP.DOCS" in found.text
    else:
        assert (found.code, found.ids) == (None, [1, 3])


@SPLITS
def test_a_begin_that_is_missing_too_changes_nothing_about_it(
    tmp_path: Path, split_blocks: int
) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.sequence += 1
    redo.insert(TWO, None, None)
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (Code.CHANGE_UNDECODABLE, [])


@SPLITS
def test_an_open_transaction_is_not_given_up_by_others(tmp_path: Path, split_blocks: int) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.segment, first = 2, redo.sequence
    redo.begin()
    redo.insert(TWO, None, None)
    redo.end()
    redo.segment, redo.sequence, redo.undo = 1, first, 1
    redo.insert(THREE, None, None)
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [2, 1, 3])


@SPLITS
@pytest.mark.parametrize("taken_back", [0, 1, 2])
def test_a_rollback_that_leaves_changes_stops_their_table(
    tmp_path: Path, split_blocks: int, taken_back: int
) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.insert(TWO, None, None)
    for number in range(2, 2 - taken_back, -1):
        redo.emit(redo.undone(TABLE_OBJ, (11, 1), number))
    redo.end(rollback=True)
    redo.begin()
    redo.insert(THREE, None, None)
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    if taken_back == 2:
        assert (found.code, found.ids) == (None, [3])
    else:
        assert found.code == Code.CHANGE_UNDECODABLE
        assert "no redo undoes it" in found.text


XID, LATER, OTHER = pack_xid(1, 2, 3), pack_xid(1, 2, 4), pack_xid(5, 2, 4)
WANTED = subscribe_numbers([OBJ], CON_ID)


def event(kind: EventKind, xid: int, scn: int, thread: int = 1) -> Event:
    return Event(kind, xid, scn, scn, undo_dba=50, rci=scn & 0xFF, wrp=3, thread=thread)


def driver() -> Assembler:
    assembler = Assembler(WANTED.plan, WANTED.tables, is_split=False)
    assembler.feed(batch_of([event(EventKind.BEGIN, XID, 10), event(EventKind.CHANGE, XID, 11)]))
    return assembler


def faults(finished: Finished | None) -> list[tuple[int, int]]:
    """(XID, commit SCN) of each fault."""
    return [] if finished is None else [(one.xid, one.commit_scn) for one in finished.faults]


@SPLITS
@pytest.mark.parametrize("wrong", ["slot", "segment", "part", None])
def test_an_undo_marker_that_is_misread_stops_its_table(
    tmp_path: Path, split_blocks: int, wrong: str | None
) -> None:
    """Else the change that it takes back would stay: of another slot, or as a part of an undo."""
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.insert(TWO, None, None)
    redo.undo_insert(1, redo.undo)
    body = bytearray(redo.records[-1].body)
    marker = body.index(b"\x05\x06")
    ktub = marker + 32 + 8
    assert body[ktub : ktub + 4] == TABLE_OBJ.to_bytes(4, "little")
    if wrong == "slot":
        body[ktub + 18] ^= 0x20
    elif wrong == "segment":
        body[marker + 2] += 2
    elif wrong == "part":
        body[ktub + 20] |= 0x02
    redo.records[-1] = replace(redo.records[-1], body=bytes(body))
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    if wrong is None:
        assert (found.code, found.ids) == (None, [1])
    else:
        assert (found.code, found.ids) == (Code.CHANGE_UNDECODABLE, [])
        assert "contradict" in found.text


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(
    ("prev_dba", "wrp", "rci", "is_told"),
    [(49, 3, 0, True), (48, 3, 0, False), (49, 4, 0, False), (49, 3, 1, False), (0, 3, 0, False)],
)
def test_a_marker_at_the_head_of_another_slot_than_its_change_is_told(
    prev_dba: int, wrp: int, rci: int, is_told: bool, apart: bool
) -> None:
    """A 5.11 names the undo block before that of its change, if there is one."""
    change = Event(EventKind.CHANGE, XID, 11, 11, undo_dba=50, prev_dba=49, wrp=3)
    none = Event(EventKind.CHANGE, XID, 11, 11, undo_dba=51, wrp=3)
    marker = Event(
        EventKind.UNDONE, OTHER & ~0xFFFFFFFF, 12, 12,
        undo_dba=9, prev_dba=prev_dba, rci=rci, wrp=wrp, slot_head=1,
    )  # fmt: skip
    before, behind = [event(EventKind.BEGIN, XID, 10), change, none], [marker]
    assembler = Assembler(WANTED.plan, WANTED.tables, is_split=False)
    found = None
    for part in [before, behind] if apart else [before + behind]:
        found = assembler.feed(batch_of(part))
    assert len(faults(found)) == is_told


@pytest.mark.parametrize("where", ["open", "ended", "behind"])
def test_an_undo_block_that_is_used_again_tells_nothing_of_a_marker(where: str) -> None:
    """What a marker takes back may be from before the batch, or a lock, which is no event."""
    change = Event(EventKind.CHANGE, XID, 11, 11, undo_dba=50, rci=4, wrp=3)
    marker = Event(EventKind.UNDONE, OTHER & ~0xFFFFFFFF, 12, 12, undo_dba=50, rci=4, wrp=3)
    begin = event(EventKind.BEGIN, XID, 10)
    later = [replace(one, scn=20, number=20) for one in (begin, change)]
    events = {
        "open": [begin, change, marker],
        "ended": [begin, change, event(EventKind.COMMIT, XID, 11), marker],
        "behind": [marker, *later],
    }[where]
    assembler = Assembler(WANTED.plan, WANTED.tables, is_split=False)
    assert len(faults(assembler.feed(batch_of(events)))) == (where == "open")


@SPLITS
def test_an_undo_marker_of_a_transaction_that_began_before_the_redo_is_nothing(
    tmp_path: Path, split_blocks: int
) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.records.clear()
    redo.undo_insert(0, redo.undo)
    redo.end(rollback=True)
    redo.begin()
    redo.insert(TWO, None, None)
    redo.end()
    found = told(redo, tmp_path, split_blocks=split_blocks)
    assert (found.code, found.ids) == (None, [2])


def test_what_has_no_undo_a_rollback_does_not_take_back() -> None:
    """The rows of a direct load stay in its blocks, which are never used."""
    assembler = driver()
    loaded = Event(EventKind.CHANGE, XID, 12, 12)
    taken_back = Event(EventKind.UNDONE, XID & ~0xFFFFFFFF, 13, 13, undo_dba=50, rci=11, wrp=3)
    end = event(EventKind.ROLLBACK, XID, 14)
    assert assembler.feed(batch_of([loaded, taken_back, end])) is None
    assert (assembler.account.rolled_back, assembler.account.events_rolled_back) == (1, 2)
    assembler = driver()
    assert faults(assembler.feed(batch_of([loaded, end]))) == [(XID, 14)]


@pytest.mark.parametrize("left_out", [None, 0, 4096, 5000])
@pytest.mark.parametrize("at_head", [False, True])
def test_undo_that_is_applied_in_parallel_may_come_in_any_order(
    left_out: int | None, at_head: bool
) -> None:
    """As that of a dead transaction: more apart than a rollback's markers are looked for."""
    count = UNDO_SEARCH_DEPTH + 1000
    change = Event(EventKind.CHANGE, XID, 11, 11, undo_dba=50, wrp=3)
    changes = [replace(change, undo_dba=n + 1, prev_dba=n, rci=n * (not at_head) & 0xFF)
               for n in range(count)]  # fmt: skip
    marker = Event(EventKind.UNDONE, XID & ~0xFFFFFFFF, 12, 12, wrp=3, slot_head=int(at_head))
    markers = [
        replace(marker, undo_dba=0 if at_head else one.undo_dba, prev_dba=one.prev_dba, rci=one.rci)
        for one in changes
    ]
    if left_out is not None:
        del markers[left_out]
    begin, end = event(EventKind.BEGIN, XID, 10), event(EventKind.ROLLBACK, XID, 13)
    assembler = Assembler(WANTED.plan, WANTED.tables, is_split=False)
    found = assembler.feed(batch_of([begin, *changes, *markers, end]))
    assert faults(found) == ([] if left_out is None else [(XID, 13)])
    told_of = assembler.account.events_committed
    assert told_of == (left_out is not None)
    assert assembler.account.events_rolled_back == count - told_of


def test_what_is_superseded_waits_for_all_redo_up_to_there() -> None:
    assembler = driver()
    assert assembler.feed(batch_of([event(EventKind.BEGIN, LATER, 20)])) is None
    assert len(assembler.open_transactions) == 2
    assert faults(assembler.saved().tell_unseen_ends(MAX_SCN)) == [(XID, 20)]
    assert assembler.tell_unseen_ends(20) is None
    assert faults(assembler.tell_unseen_ends(21)) == [(XID, 20)]
    assert assembler.tell_unseen_ends(MAX_SCN) is None
    account = assembler.account
    assert (account.lost, account.empty, account.undecoded) == (1, 0, 1)
    assert (account.events_committed, account.events_dropped) == (1, 0)


def test_a_surviving_instance_may_have_rolled_it_back() -> None:
    assembler = driver()
    assembler.feed(batch_of([event(EventKind.BEGIN, LATER, 20)]))
    assembler.feed(batch_of([event(EventKind.ROLLBACK, XID, 15, thread=2)]))
    assert assembler.tell_unseen_ends(MAX_SCN) is None
    account = assembler.account
    assert (account.lost, account.rolled_back, account.events_rolled_back) == (0, 1, 1)


@pytest.mark.parametrize(
    ("changed", "is_successor"),
    [
        ({}, True),
        ({"xid": OTHER}, False),
        ({"xid": pack_xid(1, 2, 2)}, False),
        ({"con_id": 4}, False),
        ({"commit_thread": 2}, False),
        ({"begin_scn": 9}, False),
    ],
)
def test_whole_transactions_of_a_split_take_others_off_their_slot(
    changed: dict[str, int], is_successor: bool
) -> None:
    facts: dict[str, Any] = {"xid": LATER, "con_id": CON_ID, "commit_thread": 1, "begin_scn": 20}
    columns: dict[str, Any] = {
        name: np.array([value], np.uint64) for name, value in (facts | changed).items()
    }
    begin, change, commit = EventKind.BEGIN, EventKind.CHANGE, EventKind.COMMIT
    other = driver()
    finished = other.feed(batch_of([event(begin, OTHER, 20), event(change, OTHER, 21),
                                    event(commit, OTHER, 22)]))  # fmt: skip
    assert finished is not None
    assembler = driver()
    assembler.note_whole(finished.transactions._replace(**columns))
    expected = [(XID, 20)] if is_successor else []
    assert faults(assembler.tell_unseen_ends(MAX_SCN)) == expected


def test_nothing_is_kept_for_a_restart_while_an_end_is_missed(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(ONE, None, None)
    redo.begin()
    log = open_for_decoding(str(redo.write(tmp_path)))
    subscription = subscribe(snapshot().tables, 0)
    merger = Merger(subscription, 0, {1: 0, 2: 0})
    merger.feed(1, read_result(packed_split(subscription, log, 2, log.header.nab or 0)))
    before = merger.has_unsaved
    assert merger.oldest_open_scn() == 1001
    merger.close_thread(2)
    merger.pass_scn(MAX_SCN)
    assert (before, merger.has_unsaved) == (True, False)
    assert merger.failure is not None
    assert merger.accounting().closes


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(
    ("between", "place", "is_told"),
    [
        ([], {}, True),
        ([], {"serial": 5}, False),
        ([], {"session": 8}, False),
        ([], {"session": 0}, False),
        ([], {"thread": 2}, False),
        # The row is free again: its change was taken back, its transaction has ended.
        ([Event(EventKind.UNDONE, XID & ~0xFFFFFFFF, 11, 2, slot_head=1, session=7, serial=4)],
         {}, False),
        ([event(EventKind.COMMIT, XID, 11)], {}, False),
    ],
)  # fmt: skip
def test_a_marker_of_a_first_change_is_told_where_another_transaction_has_its_row(
    between: list[Event], place: dict[str, int], is_told: bool, apart: bool
) -> None:
    """It names no undo block; but Oracle locks the row."""
    change = Event(EventKind.CHANGE, XID, 10, 10, undo_dba=50, session=7, serial=4)
    marker = replace(
        Event(EventKind.UNDONE, OTHER & ~0xFFFFFFFF, 12, 12, slot_head=1, session=7, serial=4),
        **place,  # type: ignore[arg-type]
    )
    assembler = Assembler(WANTED.plan, WANTED.tables, is_split=False)
    before, behind = [event(EventKind.BEGIN, XID, 9), change], [*between, marker]
    told_of = []
    for part in [before, behind] if apart else [before + behind]:
        finished = assembler.feed(batch_of(part))
        told_of += faults(finished)
    assert len(told_of) == is_told


STRETCH: Final = 1 << 9
EVENTS: Final = 5 * UNDO_SEARCH_DEPTH
BATCH: Final = 1500
KEYS: Final = {"plain": None, "encrypted": RowKey(bytes(range(32)))}

Fields = tuple[int, int, int, int, int]


def history(seed: int) -> EventColumns:
    """Changes and rollbacks to savepoints: some markers are out of order, or of no change."""
    rng = random.Random(seed)
    made: list[tuple[int, Fields]] = []
    standing: list[Fields] = []
    while len(made) < EVENTS:
        for _ in range(rng.choice((1, 300, 3000))):
            number = len(made)
            # What is logged without undo nothing takes back; few rows, changed again and again.
            undo = 0 if rng.random() < 0.1 else 50 + number // 5
            fields = (undo, number % 5, rng.choice((0, 7)), rng.randrange(50), number)
            made.append((EventKind.CHANGE, fields))
            if undo:
                standing.append(fields)
        for _ in range(min(rng.choice((0, 2, 200, 4000)), len(standing))):
            fields = standing.pop(-1 if rng.random() < 0.97 else rng.randrange(len(standing)))
            undo = fields[0] if rng.random() < 0.98 else 10
            made.append((EventKind.UNDONE, (undo, *fields[1:])))
    events = empty_events(len(made))
    events.view(np.uint8)[:] = 0
    events.kind[:] = [kind for kind, _ in made]
    for at, name in enumerate(("undo_dba", "rci", "session", "serial", "offset")):
        events[name] = np.array([fields[at] for _, fields in made]).astype(events[name].dtype)
    return events


@pytest.mark.parametrize("key", [*KEYS, "in memory"])
@pytest.mark.parametrize("seed", range(2))
def test_the_same_is_taken_back_as_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, key: str
) -> None:
    events = history(seed)
    live, undoable = np.empty((2, events.size), np.int64)
    count, undone, unmatched = live_changes(
        events, np.arange(events.size), 0, events.size, live, undoable
    )
    assert undone > UNDO_SEARCH_DEPTH
    assert unmatched > 0
    monkeypatch.setattr("olr_pg.transactions.unseen_ends.STRETCH", STRETCH)
    standing = StandingChanges(SpillFiles(tmp_path, 0) if key in KEYS else IN_MEMORY)
    gone = [np.zeros(0, np.int64)]
    with sealing(KEYS.get(key)):
        for start in range(0, events.size, BATCH):
            gone += standing.feed(take(events, slice(start, start + BATCH)))
        left = joined_rows(list(standing.stretches()))
    whole = take(events, live[:count])
    assert (standing.undone, standing.unmatched) == (undone, unmatched)
    expected = np.setdiff1d(np.flatnonzero(events.kind == EventKind.CHANGE), live[:count])
    assert np.sort(np.concatenate(gone)).tolist() == expected.tolist()
    assert left.offset.tolist() == whole.offset[whole.undo_dba != 0].tolist()


class Chunks(Sequence[ChangeBatch]):
    """So many chunks of changes, and behind them what takes them back; each is made when read."""

    def __init__(self, count: int, *, is_taken_back: bool) -> None:
        self._changes, self._is_taken_back = count, is_taken_back

    def __len__(self) -> int:
        return self._changes * (2 if self._is_taken_back else 1)

    def __getitem__(self, place: int) -> ChangeBatch:  # type: ignore[override]
        if place >= len(self):
            raise IndexError
        is_change = place < self._changes
        block = place if is_change else 2 * self._changes - 1 - place
        events = empty_events(STRETCH)
        events.view(np.uint8)[:] = 0
        events.kind[:] = EventKind.CHANGE if is_change else EventKind.UNDONE
        events.undo_dba[:] = 1 + block
        events.rci[:] = np.arange(STRETCH)[:: 1 if is_change else -1] % 256
        events.wrp[:] = np.arange(STRETCH)[:: 1 if is_change else -1] // 256
        return empty_batch()._replace(events=events)


@pytest.mark.parametrize("is_taken_back", [True, False])
def test_memory_does_not_grow_with_the_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken_back: bool
) -> None:
    """With a key; kept in memory, a change takes over 100 bytes."""
    monkeypatch.setattr("olr_pg.transactions.unseen_ends.STRETCH", STRETCH)

    def peak_of(count: int) -> int:
        chunks = Chunks(count, is_taken_back=is_taken_back)
        tracemalloc.start()
        try:
            told = left_of_large(chunks, head(chunks[0].events, 1), SpillFiles(tmp_path, 0))
            assert len(told) == (not is_taken_back)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with sealing(KEYS["encrypted"]):
        peak_of(20)
        small, large = peak_of(20), peak_of(60)
    assert large - small < 10 * 40 * STRETCH
