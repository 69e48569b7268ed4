"""Events between decoder and applier: what waits, what holds the checkpoint, what is done."""

from __future__ import annotations

from olr_pg.dictionary.evolution import Evolution, Verdict
from olr_pg.ordering.schema_events import SchemaEvents
from olr_pg.transactions.schema_event import SchemaEvent


def event(scn: int, *, is_fault: bool = False, past: bool = False) -> SchemaEvent:
    return SchemaEvent(
        "A.T", scn, scn, scn - 10, Evolution(Verdict.FOLLOW), None, past=past, is_fault=is_fault
    )  # fmt: skip


def consumed() -> SchemaEvents:
    events = SchemaEvents()
    events.consumed = True
    return events


def test_events_hold_the_checkpoint_until_they_are_done() -> None:
    events = consumed()
    for one in (event(200), event(100), event(50, past=True)):
        events.publish(one)
    assert (events.open_scn(), events.unconfirmed_scn()) == (90, 100)
    events.done(event(100))
    assert events.is_done(event(100))
    assert (events.open_scn(), events.unconfirmed_scn()) == (190, 200)


def test_nothing_waits_for_an_applier_that_is_not_there() -> None:
    events = SchemaEvents()
    events.publish(event(100, is_fault=True))
    assert events.open_scn() is None
    assert events.await_room(1, 0.0)


def test_faults_fill_the_room_and_leave_it() -> None:
    events = consumed()
    events.publish(event(100, is_fault=True))
    events.publish(event(100, is_fault=True))
    assert events.await_room(2, 0.0)
    assert not events.await_room(1, 0.0)
    events.done(event(100, is_fault=True))
    assert events.await_room(1, 0.0)
    assert events.published() == []


def test_a_new_run_publishes_again_what_is_done_or_not() -> None:
    events = consumed()
    events.publish(event(100))
    events.done(event(100))
    events.restart()
    events.publish(event(100))
    assert events.published() == [event(100)]
    assert events.open_scn() is None
