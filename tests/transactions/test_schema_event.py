"""Where an event of a table stands between its transactions.

Which SCNs of an incarnation belong to the current one.
"""

from __future__ import annotations

from olr_pg.dictionary.evolution import Evolution
from olr_pg.transactions.schema_event import Ancestry, Incarnation, SchemaEvent

DDL = SchemaEvent("A.T", 100, 7, 90, Evolution(), None)


def test_a_ddl_comes_behind_the_transactions_of_its_scn() -> None:
    assert (DDL.barrier, DDL.is_of_rows) == (101, False)


def test_a_fault_comes_before_the_transactions_of_its_scn() -> None:
    fault = DDL._replace(is_fault=True)
    assert (fault.barrier, fault.is_of_rows) == (100, True)


def test_an_event_that_is_published_again_is_known() -> None:
    assert DDL.identity == DDL._replace(past=True, statement="ALTER").identity
    assert DDL.identity != DDL._replace(xid=8).identity


LINE = (Incarnation(300, 9_000), Incarnation(200, 5_000), Incarnation(100, 1))


def test_an_ancestor_ends_where_its_child_begins() -> None:
    for is_whole in (True, False):
        known = Ancestry(LINE, is_whole)
        assert known.current == (300, 9_000)
        assert [known.end_of(one) for one in (100, 200, 300)] == [5_000, 9_000, None]
        # A later incarnation was given up, or its logs are not here.
        assert known.end_of(400) == 0


def test_an_unknown_incarnation_may_only_lack_its_logs() -> None:
    assert Ancestry(LINE, is_whole=True).end_of(150) == 0
    assert Ancestry(LINE, is_whole=False).end_of(150) == 5_000
    assert Ancestry(LINE[:1], is_whole=False).end_of(100) == 9_000
