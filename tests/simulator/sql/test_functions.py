"""Functions of groups leave NULLs out; of no rows only COUNT is not NULL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from olr_pg.simulator.sql.functions import AGGREGATES, distinct_rows

ROWS = [(Decimal(3),), (None,), (Decimal(1),), (Decimal(3),)]


@pytest.mark.parametrize(
    ("name", "of_rows", "of_none"),
    [
        ("COUNT", 3, 0),
        ("SUM", 7, None),
        ("MIN", 1, None),
        ("MAX", 3, None),
        ("AVG", Decimal(7) / 3, None),
    ],
)
def test_functions(name: str, of_rows: Any, of_none: Any) -> None:
    found = AGGREGATES[name](ROWS)
    assert round(found, 20) == round(Decimal(of_rows), 20)
    assert AGGREGATES[name]([]) == of_none
    assert AGGREGATES[name]([(None,)]) == of_none


def test_rows_are_counted_and_texts_joined() -> None:
    assert AGGREGATES["COUNT"]([(), (), ()]) == 3
    assert AGGREGATES["LISTAGG"]([("a", "-"), (None, "-"), ("b", "-")]) == "a-b"
    assert distinct_rows(ROWS) == ROWS[:3]
