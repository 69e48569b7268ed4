"""Conditions have three values; LIKE has its own patterns."""

from __future__ import annotations

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.expressions import all_of, any_of, like_pattern, rows_equal, single_row


@pytest.mark.parametrize(
    ("parts", "both", "either"),
    [
        ((True, None), None, True),
        ((False, None), False, None),
        ((True, True), True, True),
        ((None, None), None, None),
        ((False, True), False, True),
        ((), True, False),
    ],
)
def test_three_values(
    parts: tuple[bool | None, ...], both: bool | None, either: bool | None
) -> None:
    assert all_of(parts) is both
    assert any_of(parts) is either


def test_rows() -> None:
    assert rows_equal((1.0, "a"), (1.0, "a")) is True
    assert rows_equal((1.0, None), (2.0, "a")) is False
    assert rows_equal((1.0, None), (1.0, "a")) is None
    with pytest.raises(OraError, match="ORA-00913"):
        rows_equal((1.0,), (1.0, 2.0))
    assert (single_row([]), single_row([(1,)])) == (None, (1,))
    with pytest.raises(OraError, match="ORA-01427"):
        single_row([(1,), (2,)])


@pytest.mark.parametrize(
    ("form", "escape", "text", "fits"),
    [
        ("a%", "", "a\nb", True),
        ("a_c", "", "abc", True),
        ("a_c", "", "ac", False),
        ("50!%", "!", "50%", True),
        ("50!%", "!", "500", False),
        ("a.c", "", "abc", False),
    ],
)
def test_patterns(form: str, escape: str, text: str, *, fits: bool) -> None:
    assert (like_pattern(form, escape).fullmatch(text) is not None) is fits


def test_an_escape_character_must_escape_something() -> None:
    with pytest.raises(OraError, match="ORA-01424"):
        like_pattern("a!b", "!")
