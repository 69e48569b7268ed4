"""What a target lacks of the runs that feed it, and what it is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from olr_pg.capture.capture_state import CaptureMonitor, CapturePhase
from olr_pg.decoding.filters import TargetView
from olr_pg.dictionary.evolution import OF_TWO, DdlKind, Evolution, Step
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.ready_transactions import joined
from olr_pg.replicator.feed import Chosen, Feed, PublishedEvents
from olr_pg.server.queue import ReadyQueue
from olr_pg.transactions.schema_event import SchemaEvent
from tests.server.test_queue import transaction

COLUMNS = (Column("ID", 1, 1, 1, 2, 22),)
TABLES = tuple(Table("S", name, obj, obj, COLUMNS) for obj, name in enumerate("TUV", 100))


def feed(*, is_told: bool = True, ends: bool = False, transactions: int = 100) -> Any:
    """A feed of ``S.T`` and ``S.U`` from SCN 50 on."""
    delivery = SimpleNamespace(
        name="one", view=TargetView(), is_told=is_told, ends_with_table=ends, failure=None,
        monitor=CaptureMonitor(lambda: 0.0), is_renewed=lambda: False,
    )  # fmt: skip
    chosen = Chosen(None, TABLES[:2], lambda _owner, _name: True)  # type: ignore[arg-type]
    return Feed(delivery, chosen, ReadyQueue(transactions), 50, 50)


def begins(run: Any) -> list[int]:
    return [int(scn) for scn in run.begin_scn]


def test_what_began_before_the_start_is_not_wanted() -> None:
    run = joined([transaction(1, 49, 60), transaction(2, 50, 61), transaction(3, 20, 62)])
    assert begins(feed().wanted(run)) == [50]


def test_a_second_run_gives_what_the_first_did_not() -> None:
    one = feed(transactions=2)
    run = joined([transaction(n, 50 + n, 60 + n) for n in range(1, 5)])
    assert one.offer(one.wanted(run)) == 2
    assert begins(one.wanted(run)) == [53, 54]
    assert one.offer(one.wanted(run)) == 0


def test_it_needs_what_began_and_commits_behind_its_positions() -> None:
    one = feed()
    one.note_open(70)
    one.note_open(60)
    one.note_passed(80)
    assert one.need == (70, 80, frozenset({100, 101}))
    one.abandon(75)
    assert one.need[:2] == (70, 74)


def test_after_a_resetlogs_it_takes_what_another_incarnation_has_below_the_last_commit() -> None:
    one = feed()
    orphaned = joined([transaction(1, 50, 60), transaction(2, 70, 80)])
    assert one.offer(one.wanted(orphaned)) == 2
    assert one.told.is_new(fault(80))
    one.abandon(75)
    assert begins(one.wanted(joined([transaction(1, 50, 60), transaction(3, 76, 78)]))) == [76]
    assert one.told.is_new(fault(79))


def test_its_view_is_everything_only_where_nobody_wants_more() -> None:
    one = feed()
    assert one.view(TABLES[:2]).objects is None
    assert one.view(TABLES).objects == {100, 101}


def event(scn: int, table: str = "S.T", *, begin: int = 55, **options: Any) -> SchemaEvent:
    evolution = options.pop("evolution", Evolution())
    return SchemaEvent(table, scn, 1, begin, evolution, TABLES[0], **options)


def test_events_of_its_tables_are_told_once() -> None:
    one = feed()
    assert one.publish(event(60)) is None
    assert one.publish(event(60)) is None
    assert one.publish(event(61, "S.V")) is None
    assert one.queue.status().events == 1
    other = feed(is_told=False)
    other.publish(event(60))
    assert other.queue.status().events == 0


def test_faults_of_what_is_not_delivered_are_not_told() -> None:
    one = feed()
    one.publish(event(60, begin=49, is_fault=True))
    assert one.queue.status().events == 0
    one.publish(event(60, begin=50, is_fault=True))
    assert one.queue.status().events == 1


@pytest.mark.parametrize(("ends", "ended"), [(True, True), (False, False)])
def test_a_fault_ends_the_delivery_where_nobody_can_be_told(*, ends: bool, ended: bool) -> None:
    error = OlrPgError(Code.INTERNAL, "x")
    fault = event(60, is_fault=True, evolution=Evolution((), error))
    found = feed(is_told=False, ends=ends).publish(fault)
    assert (found is error) is ended


def test_a_failure_is_the_target_s_and_its_queue_s() -> None:
    one = feed()
    error = one.too_far_behind()
    assert (error.code, error.where["target"]) == (4040, "one")
    one.fail(error)
    assert one.delivery.failure is error
    assert one.delivery.monitor.state.phase is CapturePhase.STOPPED


@pytest.mark.parametrize("is_told", [False, True])
def test_the_log_says_why_decoding_for_an_external_client_has_ended(*, is_told: bool) -> None:
    error = OlrPgError(Code.BLOCK_CORRUPT, "its checksum is wrong")
    with capture_logs() as logs:
        feed(is_told=is_told).fail(error)
    assert [(one["log_level"], one["target"], one["code"]) for one in logs] == (
        [] if is_told else [("error", "one", error.label)]
    )


@pytest.mark.parametrize("kind", sorted(OF_TWO, key=str))
def test_what_concerns_two_names_waits_for_an_applier_that_is_ending(kind: DdlKind) -> None:
    """The next one has other tables, one of which may have had the name before."""
    one = feed()
    step = Step(kind, table="S.U")
    event = SchemaEvent("S.T", 70, 1, 60, Evolution((step,)), None)
    assert one.await_event_room(event, 0)
    one.delivery.is_renewed = lambda: True
    assert not one.await_event_room(event, 0)
    assert one.await_event_room(event._replace(commit_scn=40), 0)
    own = Evolution((Step(DdlKind.TRUNCATE),))
    assert one.await_event_room(event._replace(evolution=own), 0)


def ddl(scn: int, table: str = "S.T", xid: int = 1) -> SchemaEvent:
    return SchemaEvent(table, scn, xid, scn - 5, Evolution(), None)


def fault(scn: int, table: str = "S.T", xid: int = 1) -> SchemaEvent:
    return ddl(scn, table, xid)._replace(is_fault=True)


def test_a_second_run_tells_only_what_is_new() -> None:
    told = PublishedEvents()
    first = [ddl(10), fault(20), fault(20, "S.U"), fault(30), ddl(40)]
    assert all(told.is_new(event) for event in first)
    assert not any(told.is_new(event) for event in first)
    assert told.is_new(fault(30, "S.U"))  # the first run ended between the two
    assert told.is_new(fault(50))
    assert told.is_new(ddl(35, "S.U"))


def test_a_fault_and_left_out_values_of_one_transaction_are_two_events() -> None:
    told = PublishedEvents()
    assert told.is_new(fault(20))
    assert told.is_new(ddl(20)._replace(lobs=(None,)))  # type: ignore[arg-type]


def test_other_redo_tells_anew() -> None:
    told = PublishedEvents()
    for event in (ddl(10), fault(20), ddl(30)):
        told.is_new(event)
    told.abandon(20)
    assert not told.is_new(ddl(10))
    assert told.is_new(fault(20))
    assert told.is_new(ddl(30))
