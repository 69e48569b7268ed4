"""Columns of NUMBER as PostgreSQL's types; PostgreSQL prints what was made."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.columns import ValueColumn, column_of
from olr_pg.datatypes.number import (
    decode_number,
    encode_number,
    number_to_boolean,
    number_to_floats,
    number_to_integers,
    number_to_numeric,
    number_to_text,
)
from olr_pg.datatypes.policies import Policies
from olr_pg.errors import OlrPgError
from tests.datatypes.number_examples import (
    EXAMPLES,
    MALFORMED,
    NON_CANONICAL,
    column,
    oracle_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# type-mapping §3.2
PG_NUMERIC = [
    ("80", "0000000000000000"),
    ("c102", "0001 0000 0000 0000 0001"),
    ("c2021744", "0002 0000 0000 0002 007a 1a2c"),
    ("3c5c020266", "0002 0001 4000 0000 0009 270f"),
    ("c30b", "0001 0001 0000 0000 000a"),
    ("3f5a4d66", "0001 ffff 4000 0004 0464"),
    ("ff65", "0000 0000 d000 0000"),
    ("00", "0000 0000 f000 0000"),
]


def nulls_or_code(
    convert: Callable[[ValueColumn], tuple[ValueColumn, Any]], values: ValueColumn
) -> list[bool] | int:
    """Which results are NULL, or the code of the error."""
    try:
        return [raw is None for raw in convert(values)[0].values()]
    except OlrPgError as error:
        return error.code


@pytest.mark.parametrize(("raw", "text"), NON_CANONICAL)
def test_non_canonical_forms_are_tolerated(raw: str, text: str) -> None:
    canonical = column_of([encode_number(text)])
    assert number_to_numeric(column(raw))[0].value(0) == number_to_numeric(canonical)[0].value(0)


@pytest.mark.parametrize("raw", MALFORMED)
def test_malformed_bytes_are_refused(raw: str) -> None:
    for convert in (
        number_to_text,
        number_to_numeric,
        lambda values: number_to_integers(values, 8),
        lambda values: number_to_floats(values, 8),
    ):
        with pytest.raises(OlrPgError, match="OLR-02050") as caught:
            convert(column("80", None, raw))
        assert caught.value.where["row"] == 2
        assert raw[:20] in str(caught.value)


@pytest.mark.parametrize(("raw", "expected"), PG_NUMERIC)
def test_numeric_bytes(raw: str, expected: str) -> None:
    values, _ = number_to_numeric(column(raw))
    assert values.value(0) == bytes.fromhex(expected)


def test_postgresql_prints_the_examples(judge: Callable[..., list[str | None]]) -> None:
    examples = [*EXAMPLES, *NON_CANONICAL]
    values, _ = number_to_numeric(column(*(raw for raw, _ in examples), None))
    assert judge("numeric", values) == [*(text for _, text in examples), None]


def test_postgresql_prints_random_numbers(judge: Callable[..., list[str | None]]) -> None:
    random = np.random.default_rng(7)
    numbers = [
        Decimal(int(random.integers(-(10**15), 10**15))).scaleb(int(random.integers(-20, 20)))
        for _ in range(20_000)
    ]
    encoded = [encode_number(value) for value in numbers]
    printed = judge("numeric", number_to_numeric(column_of(encoded))[0])
    assert printed == [decode_number(raw) for raw in encoded]
    assert [Decimal(text or "") for text in printed] == numbers


def test_postgresql_applies_the_declared_scale(judge: Callable[..., list[str | None]]) -> None:
    values, _ = number_to_numeric(column("c2021744", "c10b", "3f5a4d66"))
    assert judge("numeric(15,4)", values) == ["122.6700", "10.0000", "-0.1124"]


@given(st.lists(st.none() | oracle_numbers))
def test_every_form_has_the_same_value(numbers: list[Decimal | None]) -> None:
    encoded = [None if value is None else encode_number(value) for value in numbers]
    texts = [None if raw is None else decode_number(raw) for raw in encoded]
    assert [None if text is None else Decimal(text) for text in texts] == numbers
    values = column_of(encoded)
    assert number_to_text(values)[0].values() == [
        None if text is None else text.encode() for text in texts
    ]
    floats = number_to_floats(values, 8)[0].values()
    for raw, text in zip(floats, texts, strict=True):
        assert (raw is None) == (text is None)
        if raw is not None and text is not None:
            assert np.frombuffer(raw, ">f8")[0] == float(text)


@given(st.lists(st.binary(max_size=24)))
def test_any_bytes_give_a_value_or_a_documented_error(raws: list[bytes]) -> None:
    nulls = [not raw for raw in raws]
    for convert in (number_to_text, number_to_numeric):
        assert nulls_or_code(convert, column_of(raws)) in (2050, nulls)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_integers(numbers: list[int | None]) -> None:
    values = column_of([None if value is None else encode_number(value) for value in numbers])
    result, _ = number_to_integers(values, 8)
    assert [
        None if raw is None else int.from_bytes(raw, "big", signed=True) for raw in result.values()
    ] == numbers


@pytest.mark.parametrize("width", [2, 4, 8])
def test_the_limits_of_integers(width: int) -> None:
    low, high = -(1 << 8 * width - 1), (1 << 8 * width - 1) - 1
    result, _ = number_to_integers(column_of([encode_number(low), encode_number(high)]), width)
    expected = [low.to_bytes(width, "big", signed=True), high.to_bytes(width, "big")]
    assert result.values() == expected
    for value, code in (
        (low - 1, 2053),
        (high + 1, 2053),
        (10**30, 2053),
        (Decimal("0.5"), 2057),
        (Decimal("Infinity"), 2053),
    ):
        with pytest.raises(OlrPgError) as caught:
            number_to_integers(column_of([None, encode_number(value)]), width)
        assert (caught.value.code, caught.value.where["row"]) == (code, 1)


@pytest.mark.parametrize("convert", [number_to_numeric, number_to_text])
def test_the_policies_of_infinity(convert: Callable[..., Any]) -> None:
    values = column("ff65", "c102")
    assert convert(values, Policies(infinity="keep"))[0].value(0) is not None
    result, counters = convert(values, Policies(infinity="null"))
    assert result.value(0) is None
    assert result.value(1) is not None
    assert counters.infinity == 1
    with pytest.raises(OlrPgError, match="OLR-02053"):
        convert(values, Policies(infinity="error"))
    assert number_to_integers(values, 8, Policies(infinity="null"))[0].value(0) is None


def test_boolean_takes_0_and_1_only() -> None:
    assert number_to_boolean(column("80", "c102", None))[0].values() == [b"\0", b"\1", None]
    with pytest.raises(OlrPgError, match="OLR-02053"):
        number_to_boolean(column("c103"))


@given(st.lists(oracle_numbers))
def test_float4_is_the_nearest(numbers: list[Decimal]) -> None:
    numbers = [value for value in numbers if abs(value) < Decimal("3e38")]
    values = column_of([encode_number(value) for value in numbers])
    result, _ = number_to_floats(values, 4)
    for raw, value in zip(result.values(), numbers, strict=True):
        assert raw is not None
        single = np.frombuffer(raw, ">f4")[0]
        error = abs(Decimal(float(single)) - value)
        for neighbour in (np.nextafter(single, np.float32(side)) for side in ("-inf", "inf")):
            if np.isfinite(neighbour):
                assert error <= abs(Decimal(float(neighbour)) - value)


def test_float4_does_not_round_twice() -> None:
    # Just above the middle of 1 and its successor, by less than a double can tell.
    value = Decimal("1.00000005960464477539062500000000001")
    result, counters = number_to_floats(column_of([encode_number(value)]), 4)
    assert result.value(0) == np.array(np.nextafter(np.float32(1), np.float32(2)), ">f4").tobytes()
    assert counters.inexact == 1
    with pytest.raises(OlrPgError, match="OLR-02053"):
        number_to_floats(column_of([encode_number(Decimal("1e60"))]), 4)
