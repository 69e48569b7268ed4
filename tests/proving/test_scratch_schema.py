"""Objects of a scenario are known by name beforehand; a schema of somebody else's is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oracledb
import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.proving.scratch_schema import JOURNAL, SchemaObject, made_objects, open_scratch
from tests.proving.served import Served, served_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_source(tmp_path / "source") as made:
        yield made


@pytest.mark.parametrize(
    ("statement", "kind", "name"),
    [
        ("CREATE TABLE t (id NUMBER)", "TABLE", "T"),
        ('create global temporary table "Mixed Case" (id NUMBER)', "TABLE", "Mixed Case"),
        ("CREATE OR REPLACE TRIGGER g BEFORE INSERT ON t BEGIN NULL; END;", "TRIGGER", "G"),
        ("CREATE OR REPLACE EDITIONABLE PACKAGE BODY p AS END;", "PACKAGE", "P"),
        ("CREATE MATERIALIZED VIEW m AS SELECT 1 FROM dual", "MATERIALIZED VIEW", "M"),
        ("CREATE SEQUENCE s", "SEQUENCE", "S"),
        ("ALTER TABLE t RENAME TO u", "TABLE", "U"),
        ("RENAME t TO v", "TABLE", "V"),
    ],
)
def test_objects_are_known_before_they_are_made(statement: str, kind: str, name: str) -> None:
    assert made_objects([statement]) == (SchemaObject(kind, name),)


def test_what_makes_no_object() -> None:
    statements = ["CREATE INDEX i ON t (id)", "ALTER TABLE t ADD (n NUMBER)", "DELETE FROM t"]
    assert made_objects(statements) == ()


def test_what_a_run_left_is_removed_and_nothing_else(served: Served) -> None:
    database = OracleDatabase(served.source)
    try:
        with open_scratch(served.source, served.prove, database, served.folder / "note") as scratch:
            assert scratch.prepare() == 0
            scratch.note([SchemaObject("TABLE", "MINE"), SchemaObject("SEQUENCE", "NEVER_MADE")])
            served.execute("CREATE TABLE mine (id NUMBER(4))")
            # A run that was killed leaves it so.
            assert scratch.prepare() == 1
            assert scratch.objects() == {SchemaObject("TABLE", JOURNAL)}
            served.execute("CREATE TABLE theirs (id NUMBER(4))")
            with pytest.raises(OlrPgError, match="1 such object: table THEIRS") as caught:
                scratch.prepare()
            assert caught.value.code is Code.SCRATCH_SCHEMA_IN_USE
            scratch.end()
            assert scratch.objects() == {SchemaObject("TABLE", "THEIRS")}
    finally:
        database.close()


def test_without_a_section_a_schema_is_made_or_the_reason_told(served: Served) -> None:
    database = OracleDatabase(served.source)
    note = served.folder / "note"
    try:
        with (
            pytest.raises(OlrPgError) as caught,
            open_scratch(served.source, None, database, note),
        ):
            pass
    finally:
        database.close()
    assert caught.value.code is Code.NO_SCRATCH_SCHEMA
    assert "CREATE USER" in caught.value.detail
    assert not note.exists()


def test_the_stand_in_takes_sql_of_the_owner_alone(served: Served) -> None:
    with pytest.raises(oracledb.DatabaseError):
        oracledb.connect(user="else", password="olr", dsn=served.dsn)
