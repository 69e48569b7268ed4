"""The order of texts is the order of their bytes, as in Oracle, whatever the target's collation is.

Oracle compares texts by their bytes (NLS_COMP=BINARY) and sorts them so (NLS_SORT=BINARY, which is
the default of NLS_LANGUAGE=AMERICAN). Here the values come from two columns of different
collations: PostgreSQL refuses every order of them for which the translation names no collation.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from olr_pg.dictionary.inventory import (
    Constraint,
    Inventory,
    InventoryTable,
    Partition,
    Partitioning,
)
from olr_pg.schema.conversion import convert
from olr_pg.schema.translation import translate_query
from olr_pg.schema.trial import CREATED, run_statements
from tests.schema.shop_relations import SETTINGS, column, relations

X = "NVL(a, b)"
ROWS = """
CREATE COLLATION shop.one (provider = libc, locale = 'C');
CREATE COLLATION shop.two (provider = libc, locale = 'POSIX');
ALTER TABLE shop.t ALTER a TYPE varchar(20) COLLATE shop.one;
ALTER TABLE shop.t ALTER b TYPE varchar(20) COLLATE shop.two;
TRUNCATE shop.t;
INSERT INTO shop.t (a, i, n) VALUES ('b', 1, 0), ('A', 2, 0), ('C', 3, 1);
"""

ORDERS: list[tuple[str, list[Any]]] = [
    # conditions
    (f"SELECT i FROM t WHERE {X} < 'a' ORDER BY i", [2, 3]),
    (f"SELECT i FROM t WHERE 'a' <= {X}", [1]),
    (f"SELECT i FROM t WHERE {X} > 'C'", [1]),
    (f"SELECT i FROM t WHERE {X} BETWEEN 'A' AND 'Z' ORDER BY i", [2, 3]),
    (f"SELECT i FROM t WHERE {X} NOT BETWEEN 'A' AND 'Z'", [1]),
    (f"SELECT i FROM t WHERE {X} >= ALL ('A', 'D')", [1]),
    (f"SELECT i FROM t WHERE {X} < ANY ('B', 'A')", [2]),
    (f"SELECT i FROM t WHERE {X} >= ALL (SELECT NVL(b, a) FROM t)", [1]),
    (f"SELECT CASE WHEN {X} > 'a' THEN 1 ELSE 0 END x FROM t ORDER BY i", [1, 0, 0]),
    # functions
    (f"SELECT GREATEST({X}, 'a') x FROM t ORDER BY i", ["b", "a", "a"]),
    (f"SELECT LEAST('B', {X}) x FROM t ORDER BY i", ["B", "A", "B"]),
    (f"SELECT GREATEST(LEAST({X}, 'C'), 'B') || 'ä' x FROM t ORDER BY i", ["Cä", "Bä", "Cä"]),
    (f"SELECT UPPER(MAX({X}) || 'ä') x FROM t", ["BÄ"]),
    (f"SELECT MIN({X}) x FROM t", ["A"]),
    (f"SELECT MAX({X}) OVER (PARTITION BY n) x FROM t ORDER BY i", ["b", "b", "C"]),
    (f"SELECT MAX({X}) KEEP (DENSE_RANK FIRST ORDER BY n) x FROM t", ["b"]),
    (f"SELECT MIN(i) KEEP (DENSE_RANK LAST ORDER BY {X}) x FROM t", [1]),
    (f"SELECT SUM(i) KEEP (DENSE_RANK LAST ORDER BY {X}) x FROM t", [1]),
    (f"SELECT LISTAGG(a) WITHIN GROUP (ORDER BY {X} DESC) x FROM t", ["bCA"]),
    ("SELECT LISTAGG(DISTINCT a, ',') WITHIN GROUP (ORDER BY a) x FROM t", ["A,C,b"]),
    (f"SELECT LISTAGG(i) WITHIN GROUP (ORDER BY {X}) OVER () x FROM t", ["231"] * 3),
    (f"SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY {X}) x FROM t", ["C"]),
    (f"SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY {X}) OVER () x FROM t", ["C"] * 3),
    (f"SELECT RANK('B') WITHIN GROUP (ORDER BY {X}) x FROM t", [2]),
    (f"SELECT JSON_ARRAYAGG(i ORDER BY {X}) x FROM t GROUP BY c", ["[2,3,1]"]),
    (f"SELECT ROW_NUMBER() OVER (ORDER BY {X}) x FROM t ORDER BY i", [3, 1, 2]),
    (f"SELECT LAG(i) OVER (ORDER BY {X}) x FROM t ORDER BY i", [3, None, 2]),
    (f"SELECT FIRST_VALUE(i) IGNORE NULLS OVER (ORDER BY {X}) x FROM t", [2, 2, 2]),
    # queries
    (f"SELECT {X} x FROM t ORDER BY x", ["A", "C", "b"]),
    (f"SELECT {X} x FROM t ORDER BY 1 DESC", ["b", "C", "A"]),
    (f"SELECT i FROM t ORDER BY {X} || 'x' DESC", [1, 3, 2]),
    (f"SELECT x FROM (SELECT {X} x FROM t) ORDER BY x FETCH FIRST 2 ROWS ONLY", ["A", "C"]),
    (f"SELECT i FROM (SELECT i, {X} x FROM t ORDER BY x) WHERE ROWNUM = 1", [2]),
    (f"SELECT * FROM (SELECT {X} x FROM t) ORDER BY x", ["A", "C", "b"]),
    (f"SELECT x.i, x.*, {X} y FROM t x ORDER BY y DESC", [1, 3, 2]),
    ("SELECT a x, COUNT(*) c FROM t GROUP BY a ORDER BY c, x", ["A", "C", "b"]),
    (("SELECT i FROM t START WITH n = 0 CONNECT BY PRIOR i = n AND i > 3"
     f" ORDER SIBLINGS BY {X}"), [2, 1]),
    (("WITH q (x, l) AS (SELECT a, 0 FROM t UNION ALL SELECT x, 1 FROM q WHERE l < 0)"
     " SEARCH DEPTH FIRST BY x SET o SELECT x FROM q ORDER BY o"), ["A", "C", "b"]),
]  # fmt: skip

OUTSIDE = [
    "SELECT DISTINCT a FROM t ORDER BY a",
    "SELECT DISTINCT a FROM t ORDER BY 1",
    "SELECT DISTINCT t.a FROM t ORDER BY t.a",
    "SELECT DISTINCT NVL(a, 'x') a, i FROM t ORDER BY NVL(a, 'x'), i DESC",
    "SELECT a FROM t UNION SELECT UPPER(a) FROM t WHERE i < 0 ORDER BY a",
    "SELECT a FROM t MINUS SELECT a || 'x' FROM t ORDER BY 1 FETCH FIRST 3 ROWS ONLY",
    "SELECT a FROM (SELECT a FROM t UNION ALL SELECT a FROM t ORDER BY 1) WHERE ROWNUM <= 9",
]
"""PostgreSQL sorts these only by whole columns, so the sort is in a query outside."""


@pytest.fixture(scope="module")
def target(sample: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    sample.execute(ROWS.encode())
    return sample


def _found(target: psycopg.Connection[Any], text: str) -> list[Any]:
    query, _ = translate_query(text, relations(), "SHOP")
    with target.transaction(force_rollback=True):
        return [row[0] for row in target.execute(query.encode()).fetchall()]


def test_postgresql_refuses_an_order_without_a_collation(target: psycopg.Connection[Any]) -> None:
    query = "SELECT 1 FROM shop.t ORDER BY COALESCE(a, b)"
    with pytest.raises(psycopg.errors.CollationMismatch), target.transaction():
        target.execute(query)


@pytest.mark.parametrize(("text", "expected"), ORDERS, ids=[text for text, _ in ORDERS])
def test_texts_are_ordered_by_their_bytes(
    target: psycopg.Connection[Any], text: str, expected: list[Any]
) -> None:
    # A database with LC_CTYPE C knows only the letters of ASCII (docs/schema.md).
    (letter,) = target.execute("SELECT upper('ä')").fetchone() or ("Ä",)
    assert _found(target, text) == [
        one.replace("Ä", letter) if isinstance(one, str) else one for one in expected
    ]


@pytest.mark.parametrize("text", OUTSIDE)
def test_whole_columns_are_sorted_outside(target: psycopg.Connection[Any], text: str) -> None:
    query, _ = translate_query(text, relations(), "SHOP")
    assert 'AS "rows" ORDER BY ("a" COLLATE "C")' in query
    assert [*dict.fromkeys(_found(target, text))] == ["A", "C", "b"]


def test_ranges_of_partitions_are_ranges_of_bytes(postgres_database: str) -> None:
    name = column("NAME", "VARCHAR2", length=9, char_length=9, nullable=False)
    parts = (Partition(name="M", high_value="'M'"), Partition(name="Z", high_value="MAXVALUE"))
    found = Inventory(
        owners=("K",),
        tables=(
            InventoryTable(
                owner="K", name="T", columns=(name,),
                partitioning=Partitioning(method="RANGE", columns=("NAME",), partitions=parts),
            ),
        ),
        constraints=(
            Constraint(owner="K", name="PK", table="T", kind="primary key", columns=("NAME",)),
        ),
    )  # fmt: skip
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        outcomes = run_statements(connection, convert(found, SETTINGS))
        assert {one.state for one in outcomes} == {CREATED}, [
            (one.statement.sql, one.reason) for one in outcomes
        ]
        rows = connection.execute(
            "SELECT partcollation[0]::regcollation::text FROM pg_partitioned_table"
        ).fetchall()
    assert rows == [('"C"',)]
