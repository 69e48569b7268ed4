"""Columns of values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.columns import (
    column_of,
    fixed_width,
    nulls,
    oracle_nulls,
    per_distinct,
    replace_rows,
)
from olr_pg.errors import OlrPgError

cells = st.lists(st.none() | st.binary(max_size=6))


@given(cells)
def test_a_column_gives_back_its_values(raws: list[bytes | None]) -> None:
    assert column_of(raws).values() == raws


def test_length_0_is_null_in_oracle() -> None:
    values = column_of([b"", b"a", None])
    assert nulls(values).tolist() == [True, False, True]
    assert oracle_nulls(values).values() == [None, b"a", None]


def test_fixed_width() -> None:
    values = fixed_width(np.array([1, 2], ">i4"), np.array([False, True]))
    assert values.values() == [b"\0\0\0\1", None]


@given(cells, st.data())
def test_replaced_rows(raws: list[bytes | None], data: st.DataObject) -> None:
    chosen = sorted(data.draw(st.sets(st.integers(0, len(raws) - 1))) if raws else set())
    values = column_of(raws)
    result = replace_rows(values, np.array(chosen, np.int64), values, lambda raw: raw * 2)
    expected = [
        (raw * 2 if raw else None) if row in chosen else raw for row, raw in enumerate(raws)
    ]
    assert result.values() == expected


def test_conversion_happens_once_per_distinct_value() -> None:
    calls: list[bytes] = []

    def convert(raw: bytes) -> bytes:
        calls.append(raw)
        return raw.upper()

    values = per_distinct(column_of([b"a", b"b", b"a", None, b""]), convert)
    assert values.values() == [b"A", b"B", b"A", None, None]
    assert calls == [b"a", b"b"]


def test_an_empty_value_may_be_one() -> None:
    values = per_distinct(column_of([None, b""]), lambda raw: raw + b"x", empty_is_null=False)
    assert values.values() == [None, b"x"]


def test_errors_name_the_row() -> None:
    def refuse(raw: bytes) -> bytes:
        raise OlrPgError(2050, "no", part="x")

    with pytest.raises(OlrPgError) as caught:
        per_distinct(column_of([None, b"a"]), refuse)
    assert caught.value.where == {"row": 1, "part": "x"}
