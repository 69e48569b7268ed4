"""Held events as documents: what is read is what was written."""

from __future__ import annotations

import pytest

from olr_pg.applier.stopped.held_events import (
    event_document,
    read_event,
    read_source,
    source_document,
)
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.dictionary.model import AddedColumn, Column, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from olr_pg.transactions.schema_event import LaterFaults, SchemaEvent

FACTS = DatabaseFacts("WE8ISO8859P1", "UTF8", "+02:00")
COLUMN = Column("NEW", 2, 2, 2, 2, 22)
TABLE = Table("S", "T", 7, 7, (Column("ID", 1, 1, 1, 2, 22), COLUMN))
LOB = LostLob("DOC", 2072, "A" * 18, DmlKind.UPDATE, True, (1, 2, 3), (("ID", b"\xc1\x02"),))


@pytest.mark.parametrize(
    "event",
    [
        SchemaEvent("S.T", 20, 3, 10, Evolution((Step(DdlKind.ADD_COLUMN, None, COLUMN),)), TABLE,
                    statement="alter table t add new number"),
        SchemaEvent("S.T", 20, 3, 10, Evolution((
            Step(DdlKind.DROP_COLUMN, Column("GONE", 3, 3, 3, 1, 9, charset_id=873)),
            Step(DdlKind.RENAME_COLUMN, Column("OLD", 2, 2, 2, 2, 22), COLUMN),
            Step(DdlKind.ADD_COLUMN, None, Column("X", 4, 4, 4, 2, 22, added=AddedColumn(b"1"))),
        )), TABLE),
        SchemaEvent("S.T", 20, 3, 10, Evolution((Step(DdlKind.TRUNCATE),)), TABLE, lobs=(LOB,)),
        SchemaEvent("S.T", 20, 3, 10, Evolution((
            Step(DdlKind.DROP_PARTITION, partition="P1", others=("P2", "")),
            Step(DdlKind.REGROUP, partition="P3", sources=("P1", "P2")),
        )), TABLE),
        SchemaEvent("S.T", 20, 3, 10, Evolution(), None, is_fault=True,
                    later=LaterFaults(2, 30, 4)),
    ],
)  # fmt: skip
def test_an_event_comes_back_as_it_was(event: SchemaEvent) -> None:
    assert read_event("S.T", 20, 3, event_document(event, FACTS)) == event


def test_its_error_comes_back_with_its_advice() -> None:
    error = OlrPgError(Code.LEDGER_UNUSABLE, "why", table="S.T")
    event = SchemaEvent("S.T", 20, 3, 10, Evolution((), error), TABLE)
    found = read_event("S.T", 20, 3, event_document(event, FACTS)).evolution.error
    assert found is not None
    assert (found.code, str(found), found.action) == (error.code, str(error), error.action)


@pytest.mark.parametrize("table", [None, TABLE])
def test_a_definition_comes_back_with_its_database(table: Table | None) -> None:
    assert read_source(source_document(table, FACTS, 5)) == (table, FACTS)
