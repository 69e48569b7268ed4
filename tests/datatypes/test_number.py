"""NUMBER in both directions; numeric is judged by PostgreSQL itself."""

from __future__ import annotations

import struct
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes import number_kernels
from olr_pg.datatypes.columns import ValueColumn, column_of
from olr_pg.datatypes.number import decode_number, encode_number
from olr_pg.datatypes.number_columns import (
    number_to_boolean,
    number_to_floats,
    number_to_integers,
    number_to_numeric,
    number_to_text,
)
from olr_pg.datatypes.policies import Policies
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

NINES = "9" * 38
# values-and-lobs §3.5
EXAMPLES = [
    ("80", "0"),
    ("c102", "1"),
    ("c10b", "10"),
    ("c202", "100"),
    ("c20202", "101"),
    ("c210", "1500"),
    ("c30b", "100000"),
    ("c002", "0.01"),
    ("c00b", "0.1"),
    ("c033", "0.5"),
    ("c10533", "4.5"),
    ("c2021744", "122.67"),
    ("c1024a153351", "1.7320508"),
    ("c302182e4451", "12345.678"),
    ("c3030d1455", "21219.84"),
    ("c51630312530", "2147483647"),
    ("ca0a1722490445374e3b08", "9223372036854775807"),
    ("d3" + "64" * 19, NINES),
    ("2c" + "02" * 19 + "66", "-" + NINES),
    (
        "2b59432d170b59432d170b59432d170b59432d170b",
        "-1234567890123456789012345678901234567890",
    ),
    ("ff" + "64" * 20, "9" * 40 + "0" * 86),
    ("00" + "02" * 20, "-" + "9" * 40 + "0" * 86),
    ("3e6466", "-1"),
    ("3e6266", "-3"),
    ("3d6366", "-200"),
    ("3c5c020266", "-99999"),
    ("3f5a4d66", "-0.1124"),
    ("3f3366", "-0.5"),
    ("3c644e38221566", "-12345.678"),
    ("3a503635413566", "-2147483648"),
    ("355c4f441d62212f182b5d66", "-9223372036854775808"),
    ("7f6466", "-0." + "0" * 129 + "1"),
    ("ff65", "Infinity"),
    ("00", "-Infinity"),
    ("8002", "0." + "0" * 129 + "1"),
    ("bb5b2007", "0.0000000000903106"),
    ("c60a646462585011", "99999978779.16"),
    ("ff0b", "1" + "0" * 125),
]

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

# Forms that some clients wrote: no terminator, zero digits at either end.
NON_CANONICAL = [
    ("3e64", "-1"),
    ("c10201", "1"),
    ("c20102", "1"),
    ("3d656466", "-1"),
    ("3e646566", "-1"),
    ("c101", "0"),
    ("3e6566", "0"),
    ("2b" + "02" * 20 + "66", "-" + "9" * 40),
]

MALFORMED = ["c1", "3e66", "c166", "c100", "3e0166", "c102ff", "ff66", "7f", "c1" + "02" * 22]

oracle_numbers = st.builds(
    lambda coefficient, exponent: Decimal(coefficient).scaleb(exponent),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-90, 80),
)


def column(*hexes: str | None) -> ValueColumn:
    return column_of([None if text is None else bytes.fromhex(text) for text in hexes])


def nulls_or_code(
    convert: Callable[[ValueColumn], tuple[ValueColumn, Any]], values: ValueColumn
) -> list[bool] | int:
    """Which results are NULL, or the code of the error."""
    try:
        return [raw is None for raw in convert(values)[0].values()]
    except OlrPgError as error:
        return error.code


@pytest.mark.parametrize(("raw", "text"), EXAMPLES)
def test_examples_decode_and_encode(raw: str, text: str) -> None:
    assert decode_number(bytes.fromhex(raw)) == text
    assert encode_number(text).hex() == raw


def test_the_columns_of_the_examples_are_the_same_text() -> None:
    values, counters = number_to_text(column(*(raw for raw, _ in EXAMPLES), None))
    assert values.values() == [*(text.encode() for _, text in EXAMPLES), None]
    assert counters.infinity == 2


@pytest.mark.parametrize(("raw", "text"), NON_CANONICAL)
def test_non_canonical_forms_are_tolerated(raw: str, text: str) -> None:
    canonical = column_of([encode_number(text)])
    assert decode_number(bytes.fromhex(raw)) == text
    assert number_to_text(column(raw))[0].value(0) == text.encode()
    assert number_to_numeric(column(raw))[0].value(0) == number_to_numeric(canonical)[0].value(0)


@pytest.mark.parametrize("raw", MALFORMED)
def test_malformed_bytes_are_refused(raw: str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_number(bytes.fromhex(raw))
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


@given(oracle_numbers)
def test_encoding_of_decoding_is_the_same(value: Decimal) -> None:
    raw = encode_number(value)
    assert encode_number(decode_number(raw)) == raw


@given(st.lists(oracle_numbers, min_size=2))
def test_bytes_order_as_numbers(numbers: list[Decimal]) -> None:
    assert sorted(numbers) == [
        Decimal(decode_number(raw)) for raw in sorted(map(encode_number, numbers))
    ]


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


def test_rounding_is_half_up_at_twenty_digits() -> None:
    assert decode_number(encode_number("1" * 40 + ".5")) == "1" * 39 + "2"
    assert decode_number(encode_number("9" * 40 + ".5")) == "1" + "0" * 40
    assert decode_number(encode_number("1E-140")) == "0"


@pytest.mark.parametrize("value", ["1E126", "-1E126", "NaN", "abc"])
def test_what_number_cannot_hold(value: str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02058"):
        encode_number(value)


@given(st.lists(oracle_numbers, max_size=4))
def test_kernels_agree_with_their_interpreted_form(numbers: list[Decimal]) -> None:
    values = column_of([*(encode_number(value) for value in numbers), None])
    count = len(values.length)
    results = []
    for kernel in (number_kernels.numeric_kernel, number_kernels.numeric_kernel.py_func):  # type: ignore[attr-defined]
        out = np.zeros(15 * count, np.uint16)
        offset, length = np.zeros(count, np.int64), np.zeros(count, np.int64)
        end = kernel(*values, 0, out, offset, length)
        results.append((end, out.tobytes(), offset.tolist(), length.tolist()))
    assert results[0] == results[1]


@given(st.lists(st.binary(max_size=23), max_size=4))
def test_integer_kernel_agrees_with_its_interpreted_form(raws: list[bytes]) -> None:
    values = column_of(raws)
    results = []
    for kernel in (number_kernels.integers_kernel, number_kernels.integers_kernel.py_func):  # type: ignore[attr-defined]
        out, null = np.zeros(len(raws), np.int64), np.zeros(len(raws), np.bool_)
        end = kernel(*values, 2**31 - 1, 1, out, null)
        results.append((end, out.tolist(), null.tolist()))
    assert results[0] == results[1]


def numeric_text(raw: bytes | None) -> bytes:
    """What PostgreSQL's binary numeric says, with its display scale."""
    count, weight, sign, scale, *groups = struct.unpack(
        f">HhHH{len(raw or b'') // 2 - 4}H", raw or b""
    )
    assert count == len(groups)
    if sign & 0xC000 == 0xC000:
        return b"Infinity" if sign == 0xD000 else b"-Infinity"
    with localcontext(Context(prec=400)):
        total = sum(
            (Decimal(group).scaleb(4 * (weight - i)) for i, group in enumerate(groups)), Decimal(0)
        )
        return f"{'-' if sign else ''}{total:.{scale}f}".encode()


digit_bytes = st.lists(st.integers(1, 100) | st.sampled_from([1, 101]), min_size=1, max_size=20)
loose_numbers = st.builds(
    lambda head, digits: bytes([head, *digits]), st.integers(0, 255), digit_bytes
)


@given(st.lists(loose_numbers, max_size=8))
def test_kernels_read_bytes_as_the_scalar_decoder_does(raws: list[bytes]) -> None:
    for raw in raws:
        try:
            expected: list[bytes | None] = [decode_number(raw).encode()]
        except OlrPgError:
            continue
        assert number_to_text(column_of([raw]))[0].values() == expected
        assert numeric_text(number_to_numeric(column_of([raw]))[0].value(0)) == expected[0]
