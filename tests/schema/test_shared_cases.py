"""Expressions and queries that somebody wrote from Oracle's documentation, without our cases.

They are not in the repository: ``cases/schema.json`` of the folder that OLR_PG_SHARED names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_expression, translate_query
from tests.schema.shop_relations import MAKE, RELATION, relations
from tests.schema.test_translation import _same

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
AN_ERROR_IN_ORACLE = "CASE WHEN a > 7 THEN 1 ELSE 0 END"
"""``a`` is no number: ORA-01722."""
CUT = {"CAST(ts AS DATE)": "2026-03-07 01:44:39"}
"""The file has it rounded; `Translator.day` names those who ran it in Oracle."""
OF_THIS_MONTH = "TO_DATE('2026','YYYY')"
"""The file has the month in which it was written."""


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    path = Path(os.environ.get("OLR_PG_SHARED", ROOT.parent / "shared")) / "cases" / "schema.json"
    if not path.exists():
        pytest.skip(f"no cases of others here: {path} (set OLR_PG_SHARED to their folder)")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


@pytest.fixture
def sample(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres) as connection:
        connection.execute(MAKE)
        yield connection
        connection.rollback()


def _value(sample: psycopg.Connection[Any], text: str) -> Any:
    with sample.transaction(force_rollback=True):
        query = f"SELECT ({text})::text FROM shop.t WHERE i = 7"
        row = sample.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def test_expressions_are_right_or_refused(
    cases: dict[str, Any], sample: psycopg.Connection[Any]
) -> None:
    refused, wrong = list[str](), list[tuple[str, Any, Any]]()
    for case in cases["expressions"]:
        oracle, expected = case["oracle"], CUT.get(case["oracle"], case["expected"])
        try:
            text, _ = translate_expression(oracle, relations(), "SHOP", RELATION)
        except UntranslatableError:
            refused.append(oracle)
            continue
        if oracle == AN_ERROR_IN_ORACLE:
            with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                _value(sample, text)
            continue
        found = _value(sample, text)
        if oracle == OF_THIS_MONTH:
            expected = _value(sample, "to_char(now(), '\"2026\"-MM-01 00:00:00')")
        if expected != "?" and not _same(found, expected):
            wrong.append((oracle, found, expected))
    assert wrong == []
    open_ones = {case["oracle"] for case in cases["expressions"] if case["expected"] == "?"}
    told = [oracle for oracle in refused if oracle not in open_ones]
    assert len(told) / (len(cases["expressions"]) - len(open_ones)) <= 0.05, told


def test_queries_run_or_are_refused(cases: dict[str, Any], sample: psycopg.Connection[Any]) -> None:
    refused = list[str]()
    for oracle in cases["queries"]:
        try:
            text, _ = translate_query(oracle, relations(), "SHOP")
        except UntranslatableError:
            refused.append(oracle)
            continue
        with sample.transaction(force_rollback=True):
            try:
                sample.execute(text.encode())
            except psycopg.errors.FeatureNotSupported:
                assert "XML" in text  # of a server that is built without libxml
    assert len(refused) / len(cases["queries"]) <= 0.06, refused
