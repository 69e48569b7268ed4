"""Conditions as they are written: what is read, what is refused, and with which code."""

from __future__ import annotations

import pytest

from olr_pg.conditions.parse import CHARACTERS_MAX, parse_condition
from olr_pg.conditions.tree import (
    Any,
    Compared,
    Comparison,
    Every,
    IsNull,
    Literal,
    LiteralKind,
    Matched,
    Negated,
)
from olr_pg.errors import OlrPgError


def number(text: str) -> Literal:
    return Literal(LiteralKind.NUMBER, text)


def text(content: str) -> Literal:
    return Literal(LiteralKind.TEXT, content)


def test_every_form_is_read() -> None:
    found = parse_condition(
        "a = 1 AND \"b\" <> n'x''y' AND 2 < c AND NOT (d IN (-1, .5) OR e IS NOT NULL)"
        " AND f BETWEEN DATE '2026-01-31' AND TIMESTAMP '2026-01-31 23:59:59.5 +01:00'"
        " AND g NOT LIKE 'x!%_%' ESCAPE '!'"
    )
    assert found.columns == ("A", "b", "C", "D", "E", "F", "G")
    date = Literal(LiteralKind.DATE, "2026-01-31")
    moment = Literal(LiteralKind.TIMESTAMP, "2026-01-31 23:59:59.5 +01:00")
    assert found.tree == Every(
        (
            Compared("A", Comparison.EQUAL, number("1")),
            Compared("b", Comparison.NOT_EQUAL, text("x'y")),
            Compared("C", Comparison.GREATER, number("2")),
            Negated(
                Any(
                    (
                        Any(
                            (
                                Compared("D", Comparison.EQUAL, number("-1")),
                                Compared("D", Comparison.EQUAL, number("0.5")),
                            )
                        ),
                        Negated(IsNull("E")),
                    )
                )
            ),
            Every(
                (
                    Compared("F", Comparison.GREATER_OR_EQUAL, date),
                    Compared("F", Comparison.LESS_OR_EQUAL, moment),
                )
            ),
            Negated(Matched("G", "x!%_%", "!")),
        )
    )


def test_and_binds_stronger_than_or() -> None:
    both = Every((Compared("B", Comparison.EQUAL, number("2")), IsNull("C")))
    found = parse_condition("a = 1 OR b = 2 AND c IS NULL").tree
    assert found == Any((Compared("A", Comparison.EQUAL, number("1")), both))


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("", 1130),
        ("a = ", 1130),
        ("a = 1 AND", 1130),
        ("a LIKE 'a!b' ESCAPE '!'", 1130),
        ("a LIKE 'ab!' ESCAPE '!'", 1130),
        ("(" * 900 + "a = 1" + ")" * 900, 1130),
        ("a = 1" + " " * CHARACTERS_MAX, 1130),
        ("a", 1131),
        ("1 = 1", 1131),
        ("a = b", 1131),
        ("a = 1; DROP TABLE x", 1131),
        ("a = NULL", 1131),
        ("a = ''", 1131),
        ("a IN (SELECT 1 FROM dual)", 1131),
        ("EXISTS (SELECT 1 FROM dual)", 1131),
        ("t.a = 1", 1131),
        ("a = :x", 1131),
        ("UPPER(a) = 'X'", 1131),
        ("a = TO_DATE('2026-01-31', 'YYYY-MM-DD')", 1131),
        ("a = TO_TIMESTAMP('2026-01-31')", 1131),
        ("a > SYSDATE", 1131),
        ("a = 1 + 1", 1131),
        ("a = DATE '31.1.2026'", 1131),
        ("a = -'1'", 1131),
        ("a LIKE 1", 1131),
        ("SELECT 1 FROM dual", 1131),
    ],
)
def test_what_is_not_a_condition_is_refused(written: str, code: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        parse_condition(written)
    assert (caught.value.code, caught.value.exit_code) == (code, 2)
