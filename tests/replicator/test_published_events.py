"""Which events a feed's queue was given already."""

from __future__ import annotations

from olr_pg.dictionary.evolution import Evolution
from olr_pg.replicator.published_events import PublishedEvents
from olr_pg.transactions.schema_event import SchemaEvent


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
