"""Statements are cut where sqlglot does not read Oracle's syntax."""

from __future__ import annotations

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.parsing import (
    Delete,
    Insert,
    InsertAll,
    Locking,
    Merge,
    Query,
    Update,
    parse,
    tokens_of,
    tree_of,
    word,
)


def test_binds_are_known_by_their_place() -> None:
    found = parse("INSERT INTO t (a, b) VALUES (:1, :name || :1) RETURNING a, b INTO :x, :y")
    assert isinstance(found, Insert)
    assert (found.binds, found.into, len(found.returning)) == (5, (3, 4), 2)
    assert found.columns == ("A", "B")


@pytest.mark.parametrize(
    ("clause", "locking"),
    [
        ("FOR UPDATE", Locking()),
        ("FOR UPDATE OF a NOWAIT", Locking(0.0)),
        ("FOR UPDATE WAIT 5", Locking(5.0)),
        ("FOR UPDATE SKIP LOCKED", Locking(0.0, skips=True)),
        ("", None),
    ],
)
def test_locking(clause: str, locking: Locking | None) -> None:
    found = parse(f"SELECT a FROM t WHERE b IN (SELECT 1 FROM dual) {clause}")
    assert isinstance(found, Query)
    if locking is None or found.locking is None:
        assert found.locking is locking
    else:
        wanted = locking.seconds, locking.skips
        assert (found.locking.seconds, found.locking.skips) == wanted


def test_the_parts_of_a_merge() -> None:
    found = parse(
        "MERGE INTO t USING (SELECT 1 a FROM dual) s ON (t.a = s.a) WHEN NOT MATCHED THEN INSERT"
        " (a, b) VALUES (s.a, 2) WHERE s.a > 0 WHEN MATCHED THEN UPDATE SET t.b = 1, c = 2"
        " WHERE t.b < 9 DELETE WHERE t.c = 2"
    )
    assert isinstance(found, Merge)
    assert [names for names, _ in found.assignments] == [("B",), ("C",)]
    assert found.columns == ("A", "B")
    conditions = (found.update_where, found.delete_where, found.insert_where)
    assert [one.sql() for one in conditions] == ["t.b < 9", "t.c = 2", "s.a > 0"]


def test_the_other_statements() -> None:
    update = parse("UPDATE t SET (a, b) = (SELECT 1, 2 FROM dual), c = 3")
    assert isinstance(update, Update)
    assert [names for names, _ in update.assignments] == [("A", "B"), ("C",)]
    assert isinstance(parse("DELETE t WHERE a = 1"), Delete)
    branches = parse(
        "INSERT FIRST WHEN x > 1 THEN INTO a VALUES (x) INTO b VALUES (x)"
        " ELSE INTO c VALUES (x) SELECT 1 x FROM dual"
    )
    assert isinstance(branches, InsertAll)
    assert branches.only_first
    assert [one.is_else for one in branches.branches] == [False, False, True]


def test_words_that_the_library_joins_are_parted() -> None:
    assert [word(one) for one in tokens_of("PRIMARY KEY 'PRIMARY KEY'")] == ["PRIMARY", "KEY", ""]


@pytest.mark.parametrize("text", ["", "BEGIN NULL; END;", "SELECT 1 FROM dual WHERE ("])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(OraError, match="ORA-00900"):
        parse(text)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1.5D", "TO_BINARY_DOUBLE('1.5')"),
        ("3.4E+38F", "TO_BINARY_FLOAT('3.4E+38')"),
        ("-2e-3d * 2F", "-TO_BINARY_DOUBLE('2e-3') * TO_BINARY_FLOAT('2')"),
        (".5f", "TO_BINARY_FLOAT('.5')"),
        ("1.5 d", "1.5 d"),  # an alias
        ("'1.5D' || \"2F\"", "'1.5D' || \"2F\""),
    ],
)
def test_a_suffix_makes_a_binary_float(written: str, read: str) -> None:
    assert tree_of(f"SELECT {written} FROM dual") == tree_of(f"SELECT {read} FROM dual")
