"""JSON text of values: exact numbers, and strings for what JSON has no type for."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.json_text import json_text
from olr_pg.datatypes.policies import Policies
from olr_pg.errors import Code, OlrPgError

VALUES = st.recursive(
    st.none() | st.booleans() | st.text(st.characters(exclude_characters="\0", codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=12,
)


@given(VALUES)
def test_documents_are_read_back_by_any_parser(value: Any) -> None:
    text, nuls = json_text(value)
    assert (json.loads(text), nuls) == (value, 0)


def test_numbers_are_exact_and_what_is_no_number_is_named() -> None:
    exact = Decimal("12345678901234567890.12345678901234567890")
    assert json.loads(json_text(exact)[0], parse_float=Decimal) == exact
    assert [json.loads(json_text(value)[0]) for value in (math.inf, math.nan, b"\x0a\xff")] == [
        "Infinity", "NaN", "0aff",
    ]  # fmt: skip


def test_depth_is_no_obstacle() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    assert json_text(value)[0] == b"[" * 5000 + b"1" + b"]" * 5000


def test_nul_goes_the_way_of_the_policy() -> None:
    assert json_text(["a\0b"], Policies(nul="remove")) == (b'["ab"]', 1)
    assert json.loads(json_text(["a\0b"], None)[0]) == ["a\0b"]
    with pytest.raises(OlrPgError) as caught:
        json_text(["a\0b"], Policies(nul="error"))
    assert caught.value.code == 2052


def test_what_is_no_json_value_is_refused() -> None:
    with pytest.raises(OlrPgError) as caught:
        json_text([object()])
    assert caught.value.code == 2058
    assert caught.value.code in {code.value for code in Code}
