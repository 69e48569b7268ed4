"""Oracle's SQL has the same results in PostgreSQL, or is refused with the reason.

The cases are data (`cases/`): what Oracle's documentation says that an expression gives on three
sample rows, and the PostgreSQL that is behind it. The real PostgreSQL is the judge.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import psycopg
import pytest

from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_expression, translate_query
from tests.schema.shop_relations import RELATION, relations

FOLDER = Path(__file__).parent / "cases"
EXPRESSIONS = json.loads((FOLDER / "expressions.json").read_text("utf-8"))
QUERIES = json.loads((FOLDER / "queries.json").read_text("utf-8"))


def _same(found: Any, expected: str | None) -> bool:
    """Numbers are compared as numbers, to the digits that the case gives."""
    if found is None or expected is None:
        return found is expected
    if str(found) == expected:
        return True
    try:
        wanted = Decimal(expected)
        return bool(abs(Decimal(found) - wanted) < Decimal("1e-15"))
    except InvalidOperation:
        return False


@pytest.mark.parametrize("case", EXPRESSIONS, ids=lambda case: case["oracle"])
def test_an_expression(case: dict[str, Any], sample: psycopg.Connection[Any]) -> None:
    if "refused" in case:
        with pytest.raises(UntranslatableError) as caught:
            translate_expression(case["oracle"], relations(), "SHOP", RELATION)
        assert str(caught.value) == case["refused"]
        return
    text, _ = translate_expression(case["oracle"], relations(), "SHOP", RELATION)
    assert text == case["postgres"]
    with sample.transaction(force_rollback=True):
        query = f"SELECT ({text})::text FROM shop.t ORDER BY i = 7 DESC, i = 0 DESC"
        rows = [row[0] for row in sample.execute(query.encode()).fetchall()]
    if "results" in case:
        pairs = list(zip(rows, case["results"], strict=True))
        assert all(_same(*pair) for pair in pairs), pairs


@pytest.mark.parametrize("case", QUERIES, ids=lambda case: case["oracle"])
def test_a_query(case: dict[str, Any], sample: psycopg.Connection[Any]) -> None:
    if "refused" in case:
        with pytest.raises(UntranslatableError) as caught:
            translate_query(case["oracle"], relations(), "SHOP")
        assert str(caught.value) == case["refused"]
        return
    text, _ = translate_query(case["oracle"], relations(), "SHOP")
    assert text == case["postgres"]
    with sample.transaction(force_rollback=True):
        rows = sample.execute(text.encode()).fetchall()
    found = [[None if value is None else str(value) for value in row] for row in rows]
    assert sorted(found, key=str) == sorted(case["results"], key=str)


def test_nearly_all_of_the_cases_are_translated() -> None:
    """The others are named with their reasons."""
    cases = [*EXPRESSIONS, *QUERIES]
    assert sum("refused" not in case for case in cases) / len(cases) >= 0.9


@pytest.mark.parametrize("text", ["1; DROP TABLE t", "SELECT 1", "", "1 FROM t", "((", "a b c d"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(UntranslatableError):
        translate_expression(text, relations(), "SHOP", RELATION)
