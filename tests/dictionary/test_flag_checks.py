"""What check constraints tell of flags."""

from __future__ import annotations

import pytest

from olr_pg.datatypes.policies import BOOLEAN_PAIRS
from olr_pg.dictionary.flag_checks import check_conditions, non_flag_values
from olr_pg.dictionary.structure import LeftOut


@pytest.mark.parametrize(
    ("condition", "strays"),
    [
        ("flag IN ('Y', 'N')", ()),
        ("\"FLAG\" in ('Y','N','X')", ("X",)),
        ("(FLAG IN ('A', 'it''s'))", ("A", "it's")),
        ("FLAG = 'Y'", ()),
        ("OTHER IN ('A')", None),
        ("FLAG IN ('A') OR OTHER = 1", None),
        ("FLAG IN (SELECT 1)", None),
        ("FLAG IS NOT NULL", None),
    ],
)
def test_texts(condition: str, strays: tuple[str, ...] | None) -> None:
    assert non_flag_values([condition], "FLAG", BOOLEAN_PAIRS, is_number=False) == strays


@pytest.mark.parametrize(
    ("condition", "strays"),
    [
        ("FLAG IN (0, 1)", ()),
        ("FLAG BETWEEN 0 AND 3", ("2", "3")),
        ("FLAG between -1 and 1", ("-1",)),
        ("FLAG IN (01, 5)", ("5",)),
    ],
)
def test_numbers(condition: str, strays: tuple[str, ...]) -> None:
    assert non_flag_values([condition], "FLAG", BOOLEAN_PAIRS, is_number=True) == strays


def test_of_several_checks_the_narrowest_holds() -> None:
    both = ["FLAG IN ('A','B','Y')", "FLAG IN ('A','Y')"]
    assert non_flag_values(both, "FLAG", BOOLEAN_PAIRS, is_number=False) == ("A",)
    assert non_flag_values([], "FLAG", BOOLEAN_PAIRS, is_number=False) is None


def test_the_conditions_of_a_structure() -> None:
    text = 'ALTER TABLE "S"."T" ADD CONSTRAINT "C" CHECK (FLAG IN (\'Y\', \'N\'))'
    parts = [
        LeftOut(owner="S", table="T", name="C", reason="r", kind=kind, definition=text)
        for kind in ("check constraint", "default")
    ]
    assert check_conditions(parts) == ["FLAG IN ('Y', 'N')"]
