"""Where an event of a table stands between its transactions."""

from __future__ import annotations

from olr_pg.dictionary.evolution import Evolution
from olr_pg.transactions.schema_event import SchemaEvent

DDL = SchemaEvent("A.T", 100, 7, 90, Evolution(), None)


def test_a_ddl_comes_behind_the_transactions_of_its_scn() -> None:
    assert (DDL.barrier, DDL.is_of_rows) == (101, False)


def test_a_fault_comes_before_the_transactions_of_its_scn() -> None:
    fault = DDL._replace(is_fault=True)
    assert (fault.barrier, fault.is_of_rows) == (100, True)


def test_an_event_that_is_published_again_is_known() -> None:
    assert DDL.identity == DDL._replace(past=True, statement="ALTER").identity
    assert DDL.identity != DDL._replace(xid=8).identity
