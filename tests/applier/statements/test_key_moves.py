"""A key that changes in a target table with columns of its own."""

from __future__ import annotations

from typing import Any

from olr_pg.dictionary.model import Column, KeyKind, Table

Replication = Any  # tests/applier/conftest.py


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


def test_a_key_change_keeps_what_the_source_does_not_have(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.e (id int PRIMARY KEY, v varchar(30), note text DEFAULT 'none',"
        " twice int GENERATED ALWAYS AS (id * 2) STORED);"
        "INSERT INTO s.e VALUES (1, 'one', 'own one'), (2, 'two', 'own two'), (7, 'seven', 'own')"
    )
    columns = (
        Column("ID", 1, 1, 1, 2, 22, 9, 0, nullable=False),
        Column("V", 2, 2, 2, 1, 30, charset_id=873, charset_form=1),
    )
    known = Table("S", "E", 1, 1, columns, key_kind=KeyKind.PRIMARY, key=(1,))
    r.transaction(
        r.update({"ID": 1, "V": "one"}, {"ID": 11}, "E"),
        r.update({"ID": 2, "V": "two"}, {"ID": 1, "V": "zwei"}, "E"),
        r.insert({"ID": 2, "V": "new"}, "E"),
        r.update({"ID": 2, "V": "new"}, {"ID": 3, "V": "new"}, "E"),
    )
    r.apply([known])
    assert _table(r, "s.e") == [
        (1, "zwei", "own two", 2),
        (3, "new", "none", 6),
        (7, "seven", "own", 14),
        (11, "one", "own one", 22),
    ]
    # Keys that move over each other go in at least.
    r.execute("DELETE FROM s.e WHERE id > 3; INSERT INTO s.e VALUES (2, 'two')")
    r.transaction(
        *(
            r.update({"ID": i, "V": "x"}, {"ID": i + 1, "V": "x"}, "E", rowid=f"row{i}")
            for i in (1, 2, 3)
        )
    )
    r.serve()
    r.apply([known])
    assert [row[:2] for row in _table(r, "s.e")] == [(2, "x"), (3, "x"), (4, "x")]
