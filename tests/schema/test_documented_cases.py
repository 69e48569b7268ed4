"""Examples of Oracle's SQL Language Reference, functions A to Z, written without the translator.

Whoever wrote these cases had not read it: each is an example of the documentation, with the result
that stands there or follows from what is said there. They are data (`cases/documented_*.json`). An
expression is evaluated on the shop's first row; queries read some rows of the sample schema HR.
``?`` stands where the result depends on the database: such a case is refused, or at least runs.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_expression, translate_query
from tests.schema.hr_relations import MAKE, hr_relations
from tests.schema.shop_relations import MAKE as MAKE_SHOP
from tests.schema.shop_relations import RELATION, relations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).parent / "cases"
EXPRESSIONS = json.loads((FOLDER / "documented_expressions.json").read_text("utf-8"))
QUERIES = json.loads((FOLDER / "documented_queries.json").read_text("utf-8"))
OPEN = "?"


@pytest.fixture(scope="module")
def target(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres) as connection:
        connection.execute(MAKE_SHOP)
        connection.execute(MAKE.encode())
        yield connection
        connection.rollback()


def _same(found: Any, expected: str | None) -> bool:
    """Numbers are compared as numbers, to the digits that the documentation shows."""
    if found is None or expected is None:
        return found is expected
    if str(found) == expected:
        return True
    try:
        wanted, value = Decimal(expected), Decimal(str(found))
        if not (wanted.is_finite() and value.is_finite()):
            return str(wanted) == str(value)
        digits = -int(wanted.as_tuple().exponent) if "." in expected else 0
        tolerance = Decimal(10) ** -(digits if digits >= 4 else 15)
        return abs(value - wanted) < tolerance
    except InvalidOperation:
        return False


def _judged(
    cases: list[dict[str, Any]],
    name: str,
    translated: Callable[[str], str],
    is_right: Callable[[dict[str, Any], str], Any],
    connection: psycopg.Connection[Any],
) -> tuple[list[tuple[str, str]], list[tuple[str, Any]]]:
    """Return the refused cases with their reasons, and the wrong ones with what they gave."""
    refused, wrong = list[tuple[str, str]](), list[tuple[str, Any]]()
    for case in cases:
        oracle = case["oracle"]
        try:
            text = translated(oracle)
        except UntranslatableError as error:
            refused.append((oracle, str(error)))
            continue
        try:
            with connection.transaction(force_rollback=True):
                found = is_right(case, text)
        except psycopg.errors.FeatureNotSupported as error:
            if "XML" not in text.upper():
                wrong.append((oracle, str(error)))
            continue  # a server that is built without libxml
        except psycopg.Error as error:
            wrong.append((oracle, f"{type(error).__name__}: {error}"))
            continue
        if found is not True and case[name] != OPEN:
            wrong.append((oracle, found))
    return refused, wrong


def _share(refused: list[tuple[str, str]], cases: list[dict[str, Any]], name: str) -> float:
    """Return the share of refused cases among those with a known result."""
    known = {case["oracle"] for case in cases if case[name] != OPEN}
    return sum(oracle in known for oracle, _ in refused) / len(known)


def _expression(text: str) -> str:
    return translate_expression(text, relations(), "SHOP", RELATION)[0]


def _query(text: str) -> str:
    return translate_query(text, hr_relations(), "HR")[0]


def test_expressions(target: psycopg.Connection[Any]) -> None:
    def is_right(case: dict[str, Any], text: str) -> Any:
        query = f"SELECT ({text})::text FROM shop.t WHERE i = 7"
        row = target.execute(query.encode()).fetchone()
        assert row is not None
        return _same(row[0], case["result"]) or row[0]

    refused, wrong = _judged(EXPRESSIONS, "result", _expression, is_right, target)
    assert wrong == []
    assert _share(refused, EXPRESSIONS, "result") <= 0.05, refused


def test_queries(target: psycopg.Connection[Any]) -> None:
    def is_right(case: dict[str, Any], text: str) -> Any:
        rows = target.execute(text.encode()).fetchall()
        found = [[None if value is None else str(value) for value in row] for row in rows]
        if case["results"] == OPEN:
            return found
        expected = case["results"]
        if not re.search(r"ORDER (SIBLINGS )?BY [^()]*( FETCH .*)?$", case["oracle"]):
            found, expected = sorted(found, key=str), sorted(expected, key=str)
        is_same = len(found) == len(expected) and all(
            len(row) == len(wanted) and all(map(_same, row, wanted))
            for row, wanted in zip(found, expected, strict=True)
        )
        return is_same or found

    refused, wrong = _judged(QUERIES, "results", _query, is_right, target)
    assert wrong == []
    assert _share(refused, QUERIES, "results") <= 0.1, refused
