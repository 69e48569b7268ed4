"""Names with percent signs, which psycopg would take for a parameter's."""

from __future__ import annotations

from typing import Any

import pytest

Replication = Any  # tests/applier/conftest.py


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


@pytest.mark.parametrize("batch_changes", [1, 100])
@pytest.mark.parametrize("key", [("ID%",), ("ID%", "N%s"), ()])
def test_names_with_percent_signs(
    replication: Replication, key: tuple[str, ...], batch_changes: int
) -> None:
    """Of columns, types and the table: psycopg takes them for a parameter's."""
    r = replication
    r.execute('CREATE SCHEMA "s%s"; CREATE DOMAIN "s%s"."d%b" AS text')
    primary = ", PRIMARY KEY ({})".format(", ".join(f'"{one}"' for one in key)) if key else ""
    r.execute(f'CREATE TABLE "s%s"."t%t" ("ID%" int, "N%s" int, "v%b" "s%s"."d%b"{primary})')
    rows = [{"ID%": i, "N%s": i, "v%b": f"row {i}"} for i in range(6)]
    r.transaction(*(r.insert(row, "P") for row in rows))
    r.transaction(r.update(rows[1], {"v%b": "new"}, "P"), r.delete(rows[2], "P"))
    r.transaction(r.update({"ID%": 3, "N%s": 3, "v%b": "row 3"}, {"ID%": 9}, "P"))
    r.transaction(r.insert({"ID%": 6, "N%s": 6, "v%b": "z"}, "P"))
    r.apply(
        batch_changes=batch_changes,
        table_names={"S.P": "s%s.t%t"},
        copy_rows=5 if batch_changes == 100 else 1000,
    )
    assert _table(r, '"s%s"."t%t"') == [
        (0, 0, "row 0"), (1, 1, "new"), (4, 4, "row 4"), (5, 5, "row 5"), (6, 6, "z"),
        (9, 3, "row 3"),
    ]  # fmt: skip
    assert r.rows("SELECT count(*) FROM olr_pg.error") == [(0,)]
