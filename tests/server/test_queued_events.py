"""Events of tables between the transactions of a ready queue."""

from __future__ import annotations

import threading
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from olr_pg.dictionary.evolution import Evolution
from olr_pg.ordering.ready_transactions import ReadyRun
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.server.backlog import Backlog
from olr_pg.server.queue import ReadyQueue
from olr_pg.server.queued_events import EVENT_BYTES
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from olr_pg.transactions.schema_event import SchemaEvent
from tests.server.ready_one import ready_one
from tests.server.test_queue import messages_of

if TYPE_CHECKING:
    from pathlib import Path

LOST = LostLob("V", 2120, "A" * 18, DmlKind.INSERT, False, (0, 0, 0), ())


def transaction(xid: int, commit_scn: int, age: int = 5) -> ReadyRun:
    blob = b"".join(messages_of(xid, commit_scn - age, commit_scn, 3))
    return ready_one(xid, commit_scn - age, commit_scn, CommitPosition(0, 1, 1, xid, 16), blob, 3)


def ddl(scn: int, *, past: bool = False, begin_scn: int | None = None) -> SchemaEvent:
    begin = scn - 5 if begin_scn is None else begin_scn
    return SchemaEvent("S.T", scn, scn, begin, Evolution(), None, past=past)


def fault(scn: int) -> SchemaEvent:
    return ddl(scn)._replace(is_fault=True)


def lost(scn: int, xid: int = 0) -> SchemaEvent:
    return ddl(scn)._replace(xid=xid or scn, lobs=(LOST,))


def drained(queue: ReadyQueue, confirmed: int = -1) -> list[SchemaEvent | int]:
    """Everything that may be taken: events, and transactions by their commit SCN."""
    found: list[SchemaEvent | int] = []
    while True:
        batch = queue.take(3, stop_scn=confirmed)
        if batch.event is not None:
            assert batch.messages == 0
            assert isinstance(batch.event, SchemaEvent)
            found.append(batch.event)
        elif batch.messages:
            scn = queue.sent_scn
            assert scn is not None
            found.append(scn)
        else:
            return found


class Model(RuleBasedStateMachine):
    """One list of transactions and events, in one order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ReadyQueue()
        self.scn = 100
        self.sent: list[SchemaEvent | int] = []
        self.ready: list[SchemaEvent | int] = []

    @rule(step=st.integers(0, 3))
    def put(self, step: int) -> None:
        self.scn += step
        assert self.queue.put(transaction(len(self.sent) + len(self.ready), self.scn))
        self.ready.append(self.scn)

    @rule(step=st.integers(1, 3), is_fault=st.booleans())
    def put_event(self, step: int, is_fault: bool) -> None:
        self.scn += step
        event = fault(self.scn) if is_fault else ddl(self.scn)
        self.queue.put_event(event)
        self.ready.append(event)

    @rule(count=st.integers(1, 6))
    def take(self, count: int) -> None:
        """So many transactions, as far as no event comes before them; or the event."""
        batch = self.queue.take(3 * count)
        if self.ready and isinstance(self.ready[0], SchemaEvent):
            assert (batch.messages, batch.event) == (0, self.ready[0])
            self.sent.append(self.ready.pop(0))
            return
        ahead = takewhile(lambda one: not isinstance(one, SchemaEvent), self.ready)
        taken = len(list(islice(ahead, count)))
        assert (batch.messages, batch.event) == (3 * taken, None)
        self.sent += self.ready[:taken]
        del self.ready[:taken]

    @rule(back=st.integers(-2, 12))
    def confirm(self, back: int) -> None:
        scn = self.scn - back
        dropped = [one for one in self.sent if scn_of(one) <= scn]
        self.sent = [one for one in self.sent if scn_of(one) > scn]
        assert self.queue.confirms(scn) == bool(dropped)
        left = [scn_of(one) for one in self.sent + self.ready]
        assert self.queue.lowest_commit_scn(confirming=scn) == min(left, default=None)
        assert self.queue.confirm(scn) == len(dropped)

    @rule(back=st.integers(-2, 12))
    def rewind(self, back: int) -> None:
        scn = self.scn - back
        again = [one for one in self.sent if scn_of(one) > scn]
        self.sent = [one for one in self.sent if scn_of(one) <= scn]
        self.ready = again + self.ready
        self.queue.rewind(scn)

    @invariant()
    def same(self) -> None:
        held = self.sent + self.ready
        assert self.queue.is_empty() == (not held)
        begins = [scn_of(one) - 5 for one in held]
        assert self.queue.lowest_begin_scn() == min(begins, default=None)
        status = self.queue.status()
        assert status.ready == sum(not isinstance(one, SchemaEvent) for one in self.ready)
        assert status.events == sum(isinstance(one, SchemaEvent) for one in self.ready)


def scn_of(one: SchemaEvent | int) -> int:
    return one.commit_scn if isinstance(one, SchemaEvent) else one


Model.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestModel = Model.TestCase


def test_an_event_comes_alone_between_the_transactions_and_moves_what_was_sent() -> None:
    queue = ReadyQueue()
    queue.put(transaction(1, 100))
    queue.put_event(ddl(110))
    queue.put(transaction(2, 120))
    assert queue.take(100).messages == 3
    assert queue.sent_scn == 100
    assert queue.take(100).event == ddl(110)
    assert queue.sent_scn == 110
    assert queue.take(100).messages == 3


def test_what_is_half_taken_ends_before_the_event() -> None:
    queue = ReadyQueue()
    queue.put(transaction(1, 100))
    queue.put_event(ddl(110))
    assert queue.take(2).messages == 2
    assert queue.take(2).messages == 1
    assert queue.take(2).event == ddl(110)


def test_definitions_from_before_the_start_hold_nothing() -> None:
    queue = ReadyQueue()
    queue.put_event(ddl(50, past=True))
    assert queue.is_empty()
    assert queue.lowest_begin_scn() is None
    assert drained(queue) == [ddl(50, past=True)]
    assert queue.sent_scn is None
    assert not queue.confirms(50)
    queue.rewind(49)
    assert drained(queue) == [ddl(50, past=True)]


def test_an_event_holds_the_checkpoint_until_it_is_confirmed() -> None:
    queue = ReadyQueue()
    queue.put_event(ddl(110, begin_scn=20))
    queue.put(transaction(2, 120))
    drained(queue)
    assert queue.lowest_begin_scn() == 20
    assert queue.lowest_begin_scn(confirming=110) == 115
    assert queue.confirm(110) == 1
    assert queue.lowest_begin_scn() == 115


def test_left_out_values_wait_for_all_of_their_commit_scn() -> None:
    """Who has them and then finds nothing ready takes it that no transaction goes with them."""
    queue = ReadyQueue()
    queue.put_event(lost(100, xid=2))
    assert drained(queue) == []
    queue.put(transaction(1, 100))
    assert drained(queue) == []
    queue.put(transaction(2, 100))
    queue.put(transaction(3, 101))
    assert drained(queue) == [lost(100, xid=2), 100, 100, 101]
    queue.put_event(lost(105))
    assert drained(queue) == []
    queue.pass_scn(105)
    assert drained(queue) == [lost(105)]


def test_after_a_resetlogs_left_out_values_wait_again() -> None:
    queue = ReadyQueue()
    queue.pass_scn(200)
    queue.abandon(100)
    queue.put_event(lost(150))
    assert drained(queue) == []
    queue.put_event(ddl(160))
    queue.pass_scn(160)
    assert drained(queue) == [lost(150), ddl(160)]


@pytest.mark.parametrize("bytes_max", [1, 1 << 30])
def test_a_full_queue_does_not_wait_for_itself(bytes_max: int) -> None:
    """An event in front waits for transactions that find the queue full."""
    queue = ReadyQueue(1, bytes_max)
    queue.put_event(lost(100, xid=9))
    ones = [transaction(xid, 100) for xid in range(5)] + [transaction(9, 101)]
    putting = threading.Thread(target=lambda: [queue.put(one) for one in ones])
    putting.start()
    found: list[SchemaEvent | int] = []
    while len(found) < 7:
        found += drained(queue)
    putting.join()
    assert found == [lost(100, xid=9), *[100] * 5, 101]


def test_so_many_events_of_rows_wait_until_some_are_confirmed() -> None:
    queue = ReadyQueue(bytes_max=2 * EVENT_BYTES)
    for scn in (100, 110):
        assert queue.await_event_room(fault(scn), 0)
        queue.put_event(fault(scn))
    assert not queue.await_event_room(fault(120), 0)
    assert queue.await_event_room(ddl(120), 0)
    drained(queue)
    assert not queue.await_event_room(fault(120), 0)
    queue.confirm(100)
    assert queue.await_event_room(fault(120), 0)
    queue.put_event(fault(120))
    assert not queue.await_event_room(fault(130), 0)
    queue.close()
    assert queue.await_event_room(fault(130), 0)


def test_events_keep_their_place_over_the_backlog(tmp_path: Path) -> None:
    queue = ReadyQueue(2, backlog=Backlog(tmp_path / "ready", 1 << 20))
    expected: list[SchemaEvent | int] = []
    for scn in range(100, 200, 10):
        queue.put(transaction(scn, scn))
        queue.put_event(ddl(scn + 1))
        expected += [scn, ddl(scn + 1)]
    assert queue.status().spilled == 8
    assert drained(queue) == expected
