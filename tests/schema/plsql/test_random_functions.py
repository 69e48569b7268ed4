"""Random expressions within PL/SQL functions have the values of the independent evaluator."""

from __future__ import annotations

import os
from decimal import Decimal, localcontext
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.dictionary.inventory import UnitSource
from olr_pg.schema.plsql.routines import routine_statement
from tests.schema.oracle_evaluator import ROWS, Expressions
from tests.schema.shop_relations import MAKE, relations
from tests.schema.test_random_expressions import differs

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = 120 * int(os.environ.get("OLR_PG_SEEDS", "1"))
HEAD = (
    "FUNCTION f(a VARCHAR2, b VARCHAR2, c_in VARCHAR2, d DATE, e DATE, n NUMBER, i NUMBER,"
    " price NUMBER) RETURN {} IS c CHAR(3) := c_in; v {}; BEGIN"
)
BODIES = (
    " RETURN {0}; END;",
    " v := {0}; IF v IS NULL THEN RETURN NULL; END IF; RETURN v; END;",
    " SELECT {0} INTO v FROM dual; RETURN v; END;",
    " FOR r IN (SELECT {0} AS x FROM dual) LOOP v := r.x; END LOOP; RETURN v; END;",
)


@pytest.fixture
def sample(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres) as connection:
        connection.execute(MAKE)
        yield connection
        connection.rollback()


def test_values_are_those_of_the_evaluator(sample: psycopg.Connection[Any]) -> None:
    wrong, refused = list[tuple[int, str, Any, Any]](), 0
    for seed in range(COUNT):
        draw = Expressions(Random(seed))
        made, typed, sized = (
            (draw.text(), "VARCHAR2", "VARCHAR2(4000)"),
            (draw.number(), "NUMBER", "NUMBER"),
            (draw.date(), "DATE", "DATE"),
        )[seed % 3]
        with localcontext() as context:
            context.prec = 45
            expected = [made.value(row) for row in ROWS]
        text = HEAD.format(typed, sized) + BODIES[seed % 4].format(made.text)
        unit = UnitSource(owner="SHOP", name="F", kind="FUNCTION", text=text)
        statement = routine_statement(unit, relations())
        if not statement.runs:
            refused += 1
            continue
        query = (
            "SELECT shop.f(a, b, c::text, d, e, n, i, price) FROM shop.t"
            " ORDER BY i = 7 DESC, i = 0 DESC"
        )
        try:
            with sample.transaction(force_rollback=True):
                sample.execute(statement.sql.encode())
                found = [row[0] for row in sample.execute(query.encode()).fetchall()]
        except psycopg.Error as error:
            wrong.append((seed, text, str(error), expected))
            continue
        if any(map(differs, found, expected)):
            wrong.append((seed, text, found, expected))
    assert wrong == []
    assert refused <= COUNT / 10


def test_a_decimal_is_compared_to_its_digits() -> None:
    assert differs(Decimal("1.5"), Decimal("1.6"))
    assert not differs(None, None)
