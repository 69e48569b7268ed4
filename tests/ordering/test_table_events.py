"""Events of tables from two streams: which comes next, and which transactions wait for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from olr_pg.dictionary.evolution import Evolution
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.table_events import EventFeed, FaultReporter
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from olr_pg.transactions.row_fault import RowFault
from olr_pg.transactions.schema_event import SchemaEvent

LOST = LostLob("V", 2120, "A" * 18, DmlKind.INSERT, False, (0, 0, 0), ())


def ddl(scn: int, table: str = "S.T") -> SchemaEvent:
    return SchemaEvent(table, scn, scn, scn - 5, Evolution(), None)


def fault(scn: int, table: str = "S.T", lobs: tuple[LostLob, ...] = ()) -> RowFault:
    return RowFault(
        con_id=3, xid=scn, begin_scn=scn - 7, commit_scn=scn, serial=0,
        position=CommitPosition(0, 1, 7, 2, 16), session=0, table=0,
        error=OlrPgError(Code.CHANGE_UNDECODABLE, "test", table=table),
        lobs=lobs,
    )  # fmt: skip


class Published:
    """A feed, and what it published; it gives up once it has `room` for no more."""

    def __init__(self, *events: SchemaEvent, room: int = 99) -> None:
        # A follower reads redo of its own: of it only what it found is wanted here.
        follower: Any = SimpleNamespace(events=list(events), names={"S.T"})
        self.follower = follower
        self.events: list[SchemaEvent] = []
        self.room = room
        self.feed = EventFeed(follower, self._publish, FaultReporter(lambda error: error))

    def _publish(self, event: SchemaEvent) -> bool:
        if len(self.events) == self.room:
            return False
        self.events.append(event)
        return True

    def told(self) -> list[tuple[int, bool]]:
        return [(event.commit_scn, event.is_of_rows) for event in self.events]


def test_a_ddl_waits_for_the_transactions_of_its_scn_and_a_fault_does_not() -> None:
    one = Published(ddl(100))
    one.feed.add([fault(100)])
    assert one.feed.barrier == 100
    assert one.feed.publish_before(99)
    assert one.told() == []
    assert one.feed.publish_before(100)
    assert one.told() == [(100, True)]
    assert one.feed.barrier == 101
    assert one.feed.publish_before(101)
    assert one.told() == [(100, True), (100, False)]
    assert one.feed.barrier is None


@given(
    st.lists(st.integers(100, 104), unique=True),
    st.lists(st.tuples(st.integers(100, 104), st.booleans()), unique=True),
)
@example([100], [(101, False)])
def test_events_come_in_commit_order_and_those_of_rows_first(
    ddl_scns: list[int], faults: list[tuple[int, bool]]
) -> None:
    """A DDL behind a fault of a later commit would be taken for one that the target has."""
    one = Published(*map(ddl, sorted(ddl_scns)))
    one.feed.add(fault(scn, lobs=(LOST,) if is_lob else ()) for scn, is_lob in sorted(faults))
    for scn in range(100, 106):
        assert one.feed.publish_before(scn)
        assert all(event.barrier <= scn for event in one.events)
    expected = [(scn, True) for scn, _ in faults] + [(scn, False) for scn in ddl_scns]
    assert one.told() == sorted(expected, key=lambda told: (told[0], not told[1]))


def test_what_was_before_the_start_tells_definitions_only() -> None:
    one = Published(ddl(90), ddl(100))
    one.feed.publish_past(100)
    assert [(event.commit_scn, event.past) for event in one.events] == [(90, True)]
    assert one.feed.begins() == [95]
    assert one.feed.publish_before(101)
    assert [event.past for event in one.events] == [True, False]


def test_tables_that_nobody_subscribed_to_are_passed_over() -> None:
    one = Published(ddl(100, "S.OTHER"), ddl(101))
    assert one.feed.publish_before(200)
    assert one.told() == [(101, False)]
    assert one.feed.begins() == []


def test_what_was_given_up_is_published_the_next_time() -> None:
    one = Published(ddl(100), room=1)
    one.feed.add([fault(100), fault(102)])
    assert not one.feed.publish_before(200)
    assert one.told() == [(100, True)]
    assert sorted(one.feed.begins()) == [95, 95]
    one.room = 99
    assert one.feed.publish_before(200)
    assert one.told() == [(100, True), (100, False), (102, True)]


def test_a_fault_stops_its_table_and_a_lob_value_that_is_left_out_does_not() -> None:
    one = Published()
    one.feed.add([fault(100), fault(101, lobs=(LOST,))])
    assert one.feed.publish_before(200)
    stops, lacks = one.events
    assert (stops.is_fault, stops.evolution.stops, stops.lobs) == (True, True, ())
    assert (lacks.is_fault, lacks.evolution.stops, lacks.lobs) == (False, False, (LOST,))
    assert stops.begin_scn == 93


def test_the_first_fault_of_a_table_is_explained_and_few_of_the_others_are_told() -> None:
    reporter = FaultReporter(
        lambda error: OlrPgError(error.code, "explained", table=str(error.where["table"]))
    )
    with capture_logs() as logs:
        details = [reporter.report(fault(scn)).error.detail for scn in range(100, 109)]
        other = reporter.report(fault(100, "S.OTHER"))
    assert details == ["explained"] + ["test"] * 8
    assert other.error.detail == "explained"
    assert [line.get("transactions") for line in logs] == [None, 2, 4, 8, None]
    assert set(reporter.first) == {"S.T", "S.OTHER"}
