"""NUMBER: values-and-lobs §3, one value at a time, both ways."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.number import decode_number, encode_number
from olr_pg.errors import OlrPgError
from tests.datatypes.number_examples import EXAMPLES, MALFORMED, NON_CANONICAL, oracle_numbers


@pytest.mark.parametrize(("raw", "text"), EXAMPLES)
def test_examples_decode_and_encode(raw: str, text: str) -> None:
    assert decode_number(bytes.fromhex(raw)) == text
    assert encode_number(text).hex() == raw


@pytest.mark.parametrize(("raw", "text"), NON_CANONICAL)
def test_non_canonical_forms_are_tolerated(raw: str, text: str) -> None:
    assert decode_number(bytes.fromhex(raw)) == text


@pytest.mark.parametrize("raw", MALFORMED)
def test_malformed_bytes_are_refused(raw: str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_number(bytes.fromhex(raw))


@given(oracle_numbers)
def test_encoding_of_decoding_is_the_same(value: Decimal) -> None:
    raw = encode_number(value)
    assert encode_number(decode_number(raw)) == raw


@given(st.lists(oracle_numbers, min_size=2))
def test_bytes_order_as_numbers(numbers: list[Decimal]) -> None:
    assert sorted(numbers) == [
        Decimal(decode_number(raw)) for raw in sorted(map(encode_number, numbers))
    ]


def test_rounding_is_half_up_at_twenty_digits() -> None:
    assert decode_number(encode_number("1" * 40 + ".5")) == "1" * 39 + "2"
    assert decode_number(encode_number("9" * 40 + ".5")) == "1" + "0" * 40
    assert decode_number(encode_number("1E-140")) == "0"


@pytest.mark.parametrize("value", ["1E126", "-1E126", "NaN", "abc"])
def test_what_number_cannot_hold(value: str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02058"):
        encode_number(value)
