"""Stopped tables: what they get is held, in order, and applied when they go on.

Held events as documents: what is read is what was written.
"""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.stopped.hold import event_document, read_event, read_source, source_document
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import VERSION, ensure_ledger
from olr_pg.datatypes.convert import DEFAULT_FACTS, DatabaseFacts
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.dictionary.model import AddedColumn, Column, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from olr_pg.transactions.schema_event import LaterFaults, SchemaEvent
from tests.advice import followed
from tests.applier.seen import retry, rows, stops

Replication = Any  # tests/applier/conftest.py
KEY = ("olr_pg", "S.T")


def test_the_bookkeeping_of_version_1_is_brought_up_to_date(replication: Replication) -> None:
    r = replication
    r.execute("""
        CREATE SCHEMA olr_pg;
        CREATE TABLE olr_pg.ledger (subscription text, source_table text, target_table text,
            commit_scn bigint, xids text[] NOT NULL DEFAULT '{}', applied_at timestamptz,
            transactions bigint NOT NULL DEFAULT 0, inserted bigint NOT NULL DEFAULT 0,
            updated bigint NOT NULL DEFAULT 0, deleted bigint NOT NULL DEFAULT 0,
            conflicts bigint NOT NULL DEFAULT 0, stopped boolean NOT NULL DEFAULT false,
            PRIMARY KEY (subscription, source_table));
        INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, xids,
            stopped) VALUES ('olr_pg', 'S.T', 's.t', 10, '{0.0.1}', true)""")
    r.transaction(r.insert({"ID": 1}))
    last = r.transaction(r.insert({"ID": 2}))
    r.apply()
    assert rows(r) == [(2, None, None)]
    assert r.rows("SELECT commit_scn, stopped FROM olr_pg.ledger") == [(last, False)]
    r.execute("UPDATE olr_pg.version SET version = version + 1")
    with pytest.raises(OlrPgError) as caught:
        r.apply()
    assert caught.value.code == 5140
    assert str(VERSION + 1) in caught.value.detail


def test_a_hold_of_another_release_is_refused(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    r.transaction(r.insert({"ID": 1, "N": 100}))
    stops(r)
    again = Applier(r.settings())
    again._target.use(again._prepare)
    again._target.close()
    (table,) = again.tables
    assert table.error is not None, "what stopped in an earlier run is still said to be"
    assert (table.name, table.error.code) == ("S.T", 5008)
    r.execute("UPDATE olr_pg.held SET data = substr(data, 1, 50)")
    with pytest.raises(OlrPgError) as caught:
        retry(r)
    assert caught.value.code == 5141
    assert read_source(source_document(None, DEFAULT_FACTS, 5)) == (None, DEFAULT_FACTS)


_NOTHING = """
CREATE FUNCTION s.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER g BEFORE INSERT ON olr_pg.held FOR EACH ROW EXECUTE FUNCTION s.nothing();
ALTER TABLE olr_pg.held ENABLE ALWAYS TRIGGER g;
"""


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ("", "TRUNCATE olr_pg.held", 0),
        ("", "DELETE FROM olr_pg.held WHERE id = (SELECT min(id) FROM olr_pg.held)", 2),
        (_NOTHING, "DROP TRIGGER g ON olr_pg.held", 0),
    ],
    ids=["TRUNCATE", "DELETE", "a trigger"],
)
def test_a_table_whose_held_changes_somebody_deleted_does_not_go_on(
    replication: Replication, before: str, after: str, left: int
) -> None:
    """Until somebody decides to go on without them."""
    r = replication
    with connect(r.target) as connection:
        ensure_ledger(connection)
    r.execute(before + "ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    for number in range(1, 4):
        r.transaction(r.insert({"ID": number, "N": 99 + number}))
    stops(r)
    r.execute(after)
    r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
    for _ in range(2):
        assert stops(r).detail.endswith(
            "held changes of a stopped table are missing, or were applied before"
        )
        error = retry(r).error
        assert error is not None
        followed(error, Code.HOLD_LOST, "run `olr-pg errors skip`")
        assert f"has {left} rows of the table, and should have 3" in error.detail
    assert rows(r) == []
    r.transaction(r.insert({"ID": 9}))
    stops(r)
    with connect(r.target) as connection:
        lines = read_errors(connection, r.settings().subscription, resolved=False)
        (line,) = (one for one in lines if one.code == Code.HOLD_LOST)
        skip_error(connection, r.settings().subscription, line.id)
    assert retry(r).error is None
    assert [number for number, *_ in rows(r)] == [*range(4 - left, 4), 9]
    assert r.rows("SELECT held_rows FROM olr_pg.ledger") == [(0,)]


def test_held_changes_that_were_restored_are_not_applied_again(replication: Replication) -> None:
    """A hold of a backup, without the ledger and the table of that time."""
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    r.transaction(r.insert({"ID": 1, "N": 100}))
    stops(r)
    r.execute("CREATE TABLE public.kept AS TABLE olr_pg.held")
    r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
    assert retry(r).error is None
    r.execute("INSERT INTO olr_pg.held OVERRIDING SYSTEM VALUE SELECT * FROM public.kept")
    r.execute("ALTER TABLE s.t DROP CONSTRAINT t_pkey, ADD CONSTRAINT small CHECK (n < 101)")
    r.transaction(r.insert({"ID": 2, "N": 200}))
    stops(r)
    r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
    error = retry(r).error
    assert error is not None
    assert error.code == Code.HOLD_LOST
    assert "has 2 rows of the table, and should have 1" in error.detail
    assert [number for number, *_ in rows(r)] == [1]


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
