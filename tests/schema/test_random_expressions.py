"""Random expressions have the values that an independent evaluator gives them, or are refused."""

from __future__ import annotations

import os
from decimal import Decimal, localcontext
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_expression, translate_query
from tests.schema.oracle_evaluator import ROWS, Expressions, Made
from tests.schema.shop_relations import MAKE, RELATION, relations

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = 500 * int(os.environ.get("OLR_PG_SEEDS", "1"))


@pytest.fixture
def sample(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres) as connection:
        connection.execute(MAKE)
        yield connection
        connection.rollback()


def _drawn(seed: int) -> Made:
    draw = Expressions(Random(seed))
    return (draw.text, draw.number, draw.date, draw.condition)[seed % 4]()


def differs(found: Any, wanted: Any) -> bool:
    if isinstance(found, Decimal | int) and isinstance(wanted, Decimal):
        # PostgreSQL's quotients have fewer digits than Oracle's.
        return abs(Decimal(found) - wanted) > Decimal("1e-12") * max(Decimal(1), abs(wanted))
    return bool(found != wanted)


def test_values_are_those_of_the_evaluator(sample: psycopg.Connection[Any]) -> None:
    wrong, refused = list[tuple[int, str, Any, Any]](), 0
    for seed in range(COUNT):
        made = _drawn(seed)
        with localcontext() as context:
            context.prec = 45
            expected = [made.value(row) for row in ROWS]
        try:
            text, _ = translate_expression(made.text, relations(), "SHOP", RELATION)
        except UntranslatableError:
            refused += 1
            continue
        query = f"SELECT {text} FROM shop.t ORDER BY i = 7 DESC, i = 0 DESC"
        try:
            with sample.transaction(force_rollback=True):
                found = [row[0] for row in sample.execute(query.encode()).fetchall()]
        except psycopg.Error as error:
            wrong.append((seed, made.text, str(error), expected))
            continue
        if any(map(differs, found, expected)):
            wrong.append((seed, made.text, found, expected))
    assert wrong == []
    assert refused <= COUNT / 20


def test_aggregates_are_those_of_the_evaluator(sample: psycopg.Connection[Any]) -> None:
    wrong, refused = list[tuple[int, str, Any, Any]](), 0
    for seed in range(COUNT // 5):
        oracle, value = Expressions(Random(seed)).aggregate()
        has_no_rows = seed % 10 == 0
        with localcontext() as context:
            context.prec = 45
            expected = value([] if has_no_rows else list(ROWS))
        query = f"SELECT {oracle} x FROM t WHERE i {'>' if has_no_rows else '<'} 99"
        try:
            text, _ = translate_query(query, relations(), "SHOP")
        except UntranslatableError:
            refused += 1
            continue
        with sample.transaction(force_rollback=True):
            row = sample.execute(text.encode()).fetchone()
        if row is None or differs(row[0], expected):
            wrong.append((seed, oracle, row, expected))
    assert wrong == []
    assert refused <= COUNT / 100
