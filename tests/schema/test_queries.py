"""Queries that strangers write: the same rows in PostgreSQL, whatever the case and order of names.

The rows that are expected follow from Oracle's documentation (SQL Language Reference), for tables
that are made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.dictionary.inventory import (
    Inventory,
    InventoryColumn,
    InventoryTable,
    InventoryView,
    UnitSource,
)
from olr_pg.schema.conversion import convert
from olr_pg.schema.relations import Relations
from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_query
from olr_pg.schema.trial import FAILED, run_statements
from tests.schema.shop_relations import SETTINGS, column

if TYPE_CHECKING:
    from collections.abc import Iterator


def _text(name: str, length: int = 20, **others: Any) -> InventoryColumn:
    return column(name, "VARCHAR2", length=length, char_length=length, **others)


def _number(name: str, **others: Any) -> InventoryColumn:
    return column(name, "NUMBER", precision=6, scale=0, **others)


def _table(name: str, *columns: InventoryColumn) -> InventoryTable:
    return InventoryTable(owner="LAW", name=name, columns=columns)


TABLES = (
    _table("P", _number("ID"), _number("X"), _text("F", 1)),
    _table("Q", _number("ID"), _number("Y"), _text("F", 1)),
    _table("R", _number("ID"), _number("Z")),
    _table("TREE", _number("ID"), _number("UP"), _text("NAME")),
    _table(
        "STAFF", _number("ID", nullable=False), _text("NAME"),
        column("CODE", "CHAR", length=5, char_length=5), _number("TEAM"),
        column("BEGUN", "DATE"), column("N", "NUMBER"),
        column("SEEN", "TIMESTAMP(6) WITH TIME ZONE", scale=6),
    ),
    _table("TEAMS", _number("ID", nullable=False), _text("NAME", nullable=False), _text("CITY")),
)  # fmt: skip
CODE = UnitSource(owner="LAW", name="TODAY_AT_BANK", kind="FUNCTION", text="FUNCTION …")
INVENTORY = Inventory(owners=("LAW",), tables=TABLES, sources=(CODE,))
RELATIONS = Relations(INVENTORY, SETTINGS)
ROWS = """
INSERT INTO law.p VALUES (1, 1, 'Y'), (2, 2, 'N'), (3, NULL, NULL);
INSERT INTO law.q VALUES (1, 10, 'Y'), (2, 20, 'N'), (4, 40, 'Y');
INSERT INTO law.r VALUES (10, 100), (20, 200), (40, 400);
INSERT INTO law.staff VALUES
    (1, 'Ann', 'AB', 10, '2020-01-31', 0.5, '2020-06-01 10:00+02'),
    (2, 'Bob', 'C', NULL, '2021-05-05', -0.25, NULL);
INSERT INTO law.tree VALUES (1, NULL, 'root'), (2, 1, 'left'), (3, 1, 'right'), (4, 2, 'leaf'),
    (8, 9, 'egg'), (9, 8, 'hen');
INSERT INTO law.teams VALUES (10, 'Sales', 'Rome'), (20, 'IT', NULL);
"""


@pytest.fixture(scope="module")
def target(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        outcomes = run_statements(connection, convert(INVENTORY, SETTINGS))
        assert not [one for one in outcomes if one.state == FAILED]
        connection.execute(ROWS)
        yield connection
        connection.execute("DROP SCHEMA law CASCADE")


def _rows(target: psycopg.Connection[Any], oracle: str) -> list[tuple[Any, ...]]:
    text, _ = translate_query(oracle, RELATIONS, "LAW")
    found = target.execute(text.encode()).fetchall()
    shown = [tuple(None if value is None else str(value) for value in row) for row in found]
    return sorted(shown, key=str)


def _expected(*rows: Any) -> list[tuple[Any, ...]]:
    as_tuples = [row if isinstance(row, tuple) else (row,) for row in rows]
    shown = [tuple(None if value is None else str(value) for value in row) for row in as_tuples]
    return sorted(shown, key=str)


CASES: dict[str, list[Any]] = {
    # Outer joins of the old form.
    "SELECT t.id, v.y FROM p T, q V WHERE t.id = v.id(+)": [(1, 10), (2, 20), (3, None)],
    "SELECT P.id, Q.y FROM p, q WHERE P.id = Q.id(+)": [(1, 10), (2, 20), (3, None)],
    "SELECT P.id FROM p, q WHERE P.id = Q.id(+) AND q.y IS NULL": [3],
    "SELECT p.id, q.y, r.z FROM q, p, r WHERE q.id(+) = p.id AND r.id = p.id * 10": [
        (1, 10, 100), (2, 20, 200),
    ],
    "SELECT p.id, r.z FROM r, q, p WHERE r.id(+) = q.y AND q.id(+) = p.id": [
        (1, 100), (2, 200), (3, None),
    ],
    "SELECT id FROM p WHERE EXISTS"
    " (SELECT 1 FROM q, r WHERE q.y = r.id(+) AND q.id = p.id)": [1, 2],
    "SELECT p.id, q.y FROM p, q WHERE p.id = q.id(+) AND q.f(+) = 'Y'": [
        (1, 10), (2, None), (3, None),
    ],
    "SELECT * FROM q, p WHERE p.id = q.id(+) AND p.id = 3": [(None, None, None, 3, None, None)],
    # What may be NULL behind an outer join.
    "SELECT s.name || ' ' || t.name FROM staff s LEFT JOIN teams t ON s.team = t.id": [
        "Ann Sales", "Bob ",
    ],
    "SELECT s.name || t.name FROM teams t RIGHT JOIN staff s ON s.team = t.id": ["AnnSales", "Bob"],
    "SELECT s.name || t.name FROM staff s FULL JOIN teams t ON s.team = t.id": [
        "AnnSales", "Bob", "IT",
    ],
    "SELECT s.name || t.name FROM staff s, teams t WHERE s.team = t.id(+)": ["AnnSales", "Bob"],
    "SELECT '<' || name || '>' FROM teams GROUP BY ROLLUP(name)": ["<IT>", "<Sales>", "<>"],
    # CHAR and VARCHAR2.
    "SELECT id FROM staff WHERE code = 'AB'": [1],
    "SELECT id FROM staff WHERE code = RPAD('AB', 5)": [1],
    "SELECT id FROM staff WHERE code = SUBSTR('ABX', 1, 2)": [],
    "SELECT id FROM staff WHERE UPPER(code) = 'AB'": [1],
    "SELECT id FROM staff WHERE code IN (SELECT 'AB' || '' FROM dual)": [],
    "SELECT id FROM staff WHERE code IN (SELECT code FROM staff WHERE id = 2)": [2],
    "SELECT NVL(code, 'z') || '|' FROM staff": ["AB   |", "C    |"],
    "SELECT CASE id WHEN 1 THEN code ELSE 'z' END || '|' FROM staff": ["AB   |", "z|"],
    "SELECT code FROM staff MINUS SELECT 'AB' || '   ' FROM dual": ["C    "],
    "SELECT code || 'x' FROM (SELECT TRIM(code) code FROM staff WHERE id = 1)": ["ABx"],
    # Types through subqueries.
    "SELECT q.code || 'x', LENGTH(q.code), q.n || '' FROM (SELECT * FROM staff) q WHERE id = 1": [
        ("AB   x", 5, ".5"),
    ],
    "SELECT ROUND(b - a, 1) FROM (SELECT begun a, begun + 1.5 b FROM staff WHERE id = 1)": ["1.5"],
    "WITH w(a, b) AS (SELECT code, begun FROM staff WHERE id = 1) SELECT a || '|', b - b FROM w": [
        ("AB   |", "0E-24"),
    ],
    # Names.
    "SELECT T.*, 1 k FROM r T WHERE T.ID = 10": [(10, 100, 1)],
    "SELECT ID FROM p JOIN q USING (ID)": [1, 2],
    "SELECT Id FROM P NATURAL JOIN Q": [1, 2],
    "SELECT y AS v FROM q ORDER BY NVL(v, 0)": [10, 20, 40],
    "WITH c(n) AS (SELECT 1 FROM dual UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT n FROM c": [
        1, 2, 3,
    ],
    "SELECT /*+ FULL(t) */ t.id FROM p t": [1, 2, 3],
    "SELECT COUNT(*) FROM p GROUP BY 1": [3],
    # ROWNUM acts before all else.
    "SELECT COUNT(*) OVER () FROM p WHERE ROWNUM <= 2": [2, 2],
    "SELECT COUNT(*) FROM p WHERE ROWNUM < 3": [2],
    "SELECT DISTINCT 1 FROM p WHERE 2 >= ROWNUM": [1],
    # Analytic functions.
    "SELECT id, LAST_VALUE(x IGNORE NULLS) OVER (ORDER BY id) FROM p": [(1, 1), (2, 2), (3, 2)],
    "SELECT id, FIRST_VALUE(x) IGNORE NULLS OVER (ORDER BY id DESC) FROM p": [
        (1, 2), (2, 2), (3, None),
    ],
    "SELECT id, LAG(x IGNORE NULLS) OVER (ORDER BY id) FROM p": [(1, None), (2, 1), (3, 2)],
    "SELECT MAX(id) KEEP (DENSE_RANK FIRST ORDER BY x DESC NULLS LAST) FROM p": [2],
    "SELECT MIN(id) KEEP (DENSE_RANK LAST ORDER BY x) FROM p": [3],
    "SELECT STDDEV(id), VARIANCE(id), STDDEV_SAMP(id) FROM p WHERE id = 1": [(0, 0, None)],
    # Set operators have no precedence in Oracle.
    "SELECT 1 FROM dual UNION SELECT 2 FROM dual INTERSECT SELECT 2 FROM dual": [2],
    "SELECT NULL FROM dual UNION ALL SELECT NULL FROM dual UNION ALL SELECT 1 FROM dual": [
        1, None, None,
    ],
    # Hierarchies.
    "SELECT LEVEL FROM dual CONNECT BY LEVEL <= 3": [1, 2, 3],
    "SELECT LEVEL * 2 AS n FROM dual CONNECT BY ROWNUM < 3": [2, 4],
    "SELECT LEVEL l, Id, PRIOR name FROM tree START WITH up IS NULL CONNECT BY PRIOR id = UP": [
        (1, 1, None), (2, 2, "root"), (2, 3, "root"), (3, 4, "left"),
    ],
    "SELECT id FROM tree T WHERE t.id > 1 START WITH T.id = 4 CONNECT BY T.id = PRIOR t.up": [4, 2],
    "SELECT SYS_CONNECT_BY_PATH(name, '/'), CONNECT_BY_ROOT id, CONNECT_BY_ISLEAF FROM tree"
    " START WITH id = 2 CONNECT BY up = PRIOR id": [("/left", 2, 0), ("/left/leaf", 2, 1)],
    "SELECT id FROM tree START WITH id = 8 CONNECT BY NOCYCLE up = PRIOR id": [8, 9],
    "SELECT MAX(LEVEL) FROM tree START WITH up IS NULL CONNECT BY up = PRIOR id AND LEVEL < 3": [2],
    # PIVOT and UNPIVOT.
    "SELECT * FROM p PIVOT (SUM(x) FOR f IN ('Y' AS y))": [(1, 1), (2, None), (3, None)],
    "SELECT v FROM (SELECT id, x FROM p WHERE id = 1) UNPIVOT (v FOR k IN (id, x))": [1, 1],
    "SELECT * FROM r UNPIVOT (v FOR k IN (z)) u WHERE u.id < 30": [(10, "Z", 100), (20, "Z", 200)],
    "SELECT k, SUM(v) FROM p UNPIVOT (v FOR k IN (id AS 'I', x AS 'X')) GROUP BY k": [
        ("I", 6), ("X", 3),
    ],
    "SELECT COUNT(*) FROM p UNPIVOT INCLUDE NULLS (v FOR k IN (id, x))": [6],
    # Conditions.
    "SELECT id FROM p WHERE f = ANY ('Y', 'Q')": [1],
    "SELECT id FROM p WHERE (id, x) IN ((1, 1), (2, 9))": [1],
    "SELECT id FROM p WHERE x = '2'": [2],
    "SELECT id FROM p WHERE f NOT LIKE '!Y' ESCAPE '!'": [2],
    "SELECT EXTRACT(HOUR FROM seen) FROM staff WHERE id = 1": [8],
}  # fmt: skip


@pytest.mark.parametrize("oracle", CASES)
def test_the_rows_are_oracles(oracle: str, target: psycopg.Connection[Any]) -> None:
    assert _rows(target, oracle) == _expected(*CASES[oracle])


REFUSED = {
    "SELECT p.id FROM p, q WHERE p.id = q.id CONNECT BY PRIOR p.id = p.x": "a join",
    "SELECT id FROM tree CONNECT BY LEVEL < 3": "without PRIOR",
    "SELECT TO_CHAR(seen, 'HH24') FROM staff": "does not keep the time zone",
    "SELECT CAST(seen AS DATE) FROM staff": "does not keep the time zone",
    "SELECT id FROM staff WHERE begun > '01/02/2020'": "depends on NLS",
    "SELECT today_at_bank FROM dual": "the SQL calls TODAY_AT_BANK, which is a PL/SQL routine",
    "SELECT id FROM p, q WHERE p.id = q.id(+) OR q.id(+) = 1": "which Oracle rejects",
    "SELECT p.id FROM p, q WHERE p.id(+) = q.id AND q.id(+) = p.id": "circle",
    "SELECT nothing FROM p": "is not a column of the tables and views that it reads",
    "SELECT p.nothing FROM p": "is not a column of the tables and views that it reads",
    "SELECT LISTAGG(f, ',' ON OVERFLOW TRUNCATE) WITHIN GROUP (ORDER BY f) FROM p": "on_overflow",
    "SELECT CHR(0) FROM dual": "CHR(0)",
    "SELECT id FROM p ORDER BY id FETCH FIRST 50 PERCENT ROWS WITH TIES": "PERCENT",
    "SELECT " + "(" * 3000 + "1" + ")" * 3000 + " FROM dual": "nested too deeply",
    "SELECT 'a": "cannot be parsed as SQL",
}


@pytest.mark.parametrize("oracle", REFUSED, ids=lambda text: text[:60])
def test_what_is_refused_has_its_reason(oracle: str) -> None:
    with pytest.raises(UntranslatableError) as caught:
        translate_query(oracle, RELATIONS, "LAW")
    assert REFUSED[oracle] in str(caught.value)


def test_a_circle_is_an_error_as_in_oracle(target: psycopg.Connection[Any]) -> None:
    """Of ORA-01436 there is a division by zero."""
    with pytest.raises(psycopg.errors.DivisionByZero):
        _rows(target, "SELECT id FROM tree START WITH id = 8 CONNECT BY up = PRIOR id")


def test_siblings_are_in_their_order_behind_their_parent(target: psycopg.Connection[Any]) -> None:
    oracle = (
        "SELECT id FROM tree START WITH up IS NULL CONNECT BY PRIOR id = up"
        " ORDER SIBLINGS BY name DESC"
    )
    text, _ = translate_query(oracle, RELATIONS, "LAW")
    assert [row[0] for row in target.execute(text.encode()).fetchall()] == [1, 3, 2, 4]


def test_the_order_of_tables_and_conditions_does_not_matter(
    target: psycopg.Connection[Any],
) -> None:
    tables = ("p A", "q B", "r C")
    conditions = ("a.ID = B.id(+)", "c.id(+) = b.Y", "b.F(+) = 'Y'")
    found = [
        _rows(target, f"SELECT a.id, b.y, c.z FROM {', '.join(one)} WHERE {' AND '.join(other)}")
        for one in (tables, tables[::-1], (tables[1], tables[0], tables[2]))
        for other in (conditions, conditions[::-1])
    ]
    assert found == [_expected((1, 10, 100), (2, None, None), (3, None, None))] * 6


def test_a_view_that_fails_in_the_translator_is_a_line_of_the_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("olr_pg.schema.translation.translate_frame", fail)
    view = InventoryView(owner="LAW", name="V", text="SELECT id FROM p")
    statements = convert(INVENTORY.model_copy(update={"views": (view,)}), SETTINGS)
    (made,) = (one for one in statements if one.kind == "view")
    assert made.name == "LAW.V"
    assert "olr_pg has a defect" in made.reason
    assert "ZeroDivisionError in test_queries.py" in made.reason
