"""PIVOT, collections, KEEP and AT TIME ZONE: the rows that Oracle's documentation tells."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_query
from tests.schema.shop_relations import relations

CASES = [
    ("SELECT * FROM (SELECT b, i FROM t) PIVOT (SUM(i) FOR b IN ('x' AS x, 'a-b' AS ab))",
     [("7", "-5")]),
    (("SELECT * FROM (SELECT c, b, i FROM t) PIVOT (SUM(i) AS s, COUNT(*) AS k FOR b IN"
     " ('x' AS x, 'a-b' AS ab)) p WHERE p.ab_k = 1"), [("xyz", None, "0", "-5", "1")]),
    ("SELECT \"'x'\" FROM (SELECT b, i FROM t) PIVOT (MAX(i) FOR b IN ('x', 'q'))", [("7",)]),
    ("SELECT y.COLUMN_VALUE FROM t x, TABLE(sys.odcinumberlist(1, 2)) y WHERE x.i = 7",
     [("1",), ("2",)]),
    ("SELECT COLUMN_VALUE || '!' v FROM TABLE(sys.odcivarchar2list('a', NULL))", [("a!",), ("!",)]),
    (("SELECT SUM(i) KEEP (DENSE_RANK FIRST ORDER BY b) s,"
     " COUNT(*) KEEP (DENSE_RANK LAST ORDER BY d NULLS FIRST) c FROM t"), [("-5", "1")]),
    ("SELECT COUNT(*) KEEP (DENSE_RANK FIRST ORDER BY SIGN(i)) c FROM t", [("1",)]),
    ("SELECT SUM(i) KEEP (DENSE_RANK LAST ORDER BY SIGN(i) DESC) s FROM t",
     [("-5",)]),
    (("SELECT TO_CHAR(FROM_TZ(ts, 'UTC') AT TIME ZONE 'Europe/Berlin', 'YYYY-MM-DD HH24:MI:SS') y"
     " FROM t WHERE i = 7"), [("2026-03-07 02:44:39",)]),
    ("SELECT CAST(FROM_TZ(ts, '+02:00') AT TIME ZONE 'UTC' AS DATE) y FROM t WHERE i = 7",
     [("2026-03-06 23:44:39",)]),
    ("SELECT EXTRACT(HOUR FROM FROM_TZ(ts, '-05:00')) h FROM t WHERE i = 7", [("6",)]),
]  # fmt: skip
REFUSED = [
    "SELECT * FROM t PIVOT (SUM(i) FOR (a, b) IN (('x', 'y') AS xy))",
    "SELECT * FROM t PIVOT (MEDIAN(i) FOR b IN ('x'))",
    "SELECT * FROM t PIVOT (SUM(i), COUNT(i) FOR b IN ('x'))",
    "SELECT * FROM TABLE(own_list(1, 2))",
    "SELECT * FROM t UNPIVOT ((v, w) FOR k IN ((n, price) AS 'A'))",
    "SELECT STDDEV(i) KEEP (DENSE_RANK FIRST ORDER BY b) s FROM t",
    "SELECT COALESCE(FROM_TZ(ts, 'UTC'), SYSTIMESTAMP) || 'x' v FROM t",
    "SELECT TO_CHAR(FROM_TZ(ts, 'UTC'), 'HH24 TZH') v FROM t",
]


@pytest.mark.parametrize(("query", "rows"), CASES)
def test_the_rows_are_oracles(
    sample: psycopg.Connection[Any], query: str, rows: list[tuple[str | None, ...]]
) -> None:
    text, _ = translate_query(query, relations(), "SHOP")
    with sample.transaction(force_rollback=True):
        found = sample.execute(text.encode()).fetchall()
    assert [tuple(None if one is None else str(one) for one in row) for row in found] == rows


@pytest.mark.parametrize("query", REFUSED)
def test_other_forms_are_refused(query: str) -> None:
    with pytest.raises(UntranslatableError):
        translate_query(query, relations(), "SHOP")
