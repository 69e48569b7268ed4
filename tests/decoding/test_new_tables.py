"""Tables that come later: reported once, if the subscription would name them."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from olr_pg.decoding.new_tables import CREATE_TABLE, NewTables
from olr_pg.dictionary.committed_changes import Statement
from olr_pg.dictionary.model import Column, Table

COLUMNS = (Column("ID", 1, 1, 1, 2, 22),)


def table(name: str) -> Table:
    return Table("APP", name, 7, 7, COLUMNS)


def reported(tables: NewTables, *changes: tuple[Table | None, Table | None]) -> list[str]:
    with capture_logs() as logs:
        for scn, (before, after) in enumerate(changes, 100):
            tables.see(7, before, after, scn)
    return [entry["table"] for entry in logs]


@pytest.fixture
def watching() -> NewTables:
    tables = NewTables()
    tables.watch_for(lambda owner, _: owner == "APP")
    return tables


def test_a_new_or_renamed_table_is_reported_once(watching: NewTables) -> None:
    one, other = table("T"), table("U")
    assert reported(watching, (None, one), (one, one), (one, other)) == ["APP.T", "APP.U"]


def test_the_recycle_bin_and_other_owners_are_not(watching: NewTables) -> None:
    assert reported(watching, (None, table("BIN$x"))) == []
    assert reported(watching, (None, Table("HR", "T", 7, 7, COLUMNS))) == []


def test_what_came_before_the_subscription_is_reported_with_it() -> None:
    tables = NewTables()
    assert reported(tables, (None, table("T"))) == []
    with capture_logs() as logs:
        tables.watch_for(lambda _owner, _name: True)
    assert [entry["scn"] for entry in logs] == [100]


def test_a_dropped_table_is_forgotten() -> None:
    tables = NewTables()
    reported(tables, (None, table("T")), (table("T"), None))
    with capture_logs() as logs:
        tables.watch_for(lambda _owner, _name: True)
    assert logs == []


def test_a_statement_alone_tells_of_a_created_table(watching: NewTables) -> None:
    with capture_logs() as logs:
        watching.see_statement(Statement(CREATE_TABLE, 0, "APP", "T", "", 5), 6)
        watching.see_statement(Statement(15, 0, "APP", "U", "", 5), 6)
    assert [entry["table"] for entry in logs] == ["APP.T"]
