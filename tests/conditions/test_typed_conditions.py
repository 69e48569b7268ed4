"""Conditions typed for a table: literals become bytes as Oracle stores them, or are refused."""

from __future__ import annotations

import pytest

from olr_pg.conditions.parse import parse_condition
from olr_pg.conditions.typed_conditions import (
    ANY_CHARACTER,
    ANY_TEXT,
    Bytewise,
    Inverted,
    Joined,
    Missing,
    Pattern,
    compile_condition,
)
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError

TABLE = Table(
    "SHOP", "A", 1, 1,
    (
        Column("N", 1, 1, 1, 2, 22),
        Column("V", 2, 2, 2, 1, 100, charset_id=873, charset_form=1),
        Column("B", 3, 3, 3, 113, 4000),
    ),
)  # fmt: skip


def step_of(*texts: str) -> object:
    return compile_condition(tuple(map(parse_condition, texts)), TABLE).step


def test_a_number_is_compared_as_it_is_stored() -> None:
    step = step_of("N = 42")
    assert isinstance(step, Bytewise)
    assert step.literal.tobytes() == encode_number(42)


def test_a_pattern_has_places_for_its_wildcards() -> None:
    step = step_of("V LIKE 'a%b_'")
    assert isinstance(step, Pattern)
    assert step.items.tolist() == [ord("a"), ANY_TEXT, ord("b"), ANY_CHARACTER]


def test_conditions_of_one_table_must_all_be_fulfilled() -> None:
    compiled = compile_condition(
        (parse_condition("V IS NULL"), parse_condition("NOT (N IS NULL)")), TABLE
    )
    assert compiled.step == Joined((Missing(0), Inverted(Missing(1))), every=True)
    assert compiled.names == ("V", "N")
    assert compiled.ordinals == (1, 0)


@pytest.mark.parametrize(
    ("text", "code"), [("GONE = 1", 1132), ("B IS NULL", 1133), ("V = 1", 1134), ("N = 'x'", 1134)]
)
def test_what_a_table_cannot_be_asked(text: str, code: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        step_of(text)
    assert caught.value.code == code
