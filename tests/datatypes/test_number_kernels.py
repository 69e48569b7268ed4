"""The kernels of NUMBER beside their interpreted form, and beside the reader of single values."""

from __future__ import annotations

import struct
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes import number
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.number import (
    KEEP,
    decode_number,
    encode_number,
    floats_kernel,
    number_to_floats,
    number_to_integers,
    number_to_numeric,
)
from olr_pg.datatypes.policies import Policies
from olr_pg.errors import OlrPgError
from tests.datatypes.number_examples import (
    EXAMPLES,
    MALFORMED,
    NON_CANONICAL,
    column,
    loose_numbers,
    oracle_numbers,
)


@given(st.lists(oracle_numbers, max_size=4))
def test_kernels_agree_with_their_interpreted_form(numbers: list[Decimal]) -> None:
    values = column_of([*(encode_number(value) for value in numbers), None])
    count = len(values.length)
    results = []
    for kernel in (number.numeric_kernel, number.numeric_kernel.py_func):  # type: ignore[attr-defined]
        out = np.zeros(15 * count, np.uint16)
        offset, length = np.zeros(count, np.int64), np.zeros(count, np.int64)
        end = kernel(*values, 0, out, offset, length)
        results.append((end, out.tobytes(), offset.tolist(), length.tolist()))
    assert results[0] == results[1]


@given(st.lists(st.binary(max_size=23), max_size=4))
def test_integer_kernel_agrees_with_its_interpreted_form(raws: list[bytes]) -> None:
    values = column_of(raws)
    results = []
    for kernel in (number.integers_kernel, number.integers_kernel.py_func):  # type: ignore[attr-defined]
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


@given(st.lists(loose_numbers, max_size=8))
def test_the_numeric_kernel_reads_bytes_as_the_scalar_decoder_does(raws: list[bytes]) -> None:
    for raw in raws:
        try:
            expected = decode_number(raw).encode()
        except OlrPgError:
            continue
        assert numeric_text(number_to_numeric(column_of([raw]))[0].value(0)) == expected


# --- values by hand: bytes, and what values-and-lobs §3 says that they are ---

BOTH_FORMS = [*EXAMPLES, *NON_CANONICAL]
FINITE = [(raw, text) for raw, text in BOTH_FORMS if "Inf" not in text]


def test_the_numeric_of_each_form() -> None:
    values, counters = number_to_numeric(column(*(raw for raw, _ in BOTH_FORMS), None, ""))
    given = values.values()
    assert [numeric_text(raw).decode() for raw in given[:-2]] == [text for _, text in BOTH_FORMS]
    assert given[-2:] == [None, None]
    assert counters.infinity == 2


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("80", "0000 0000 0000 0000"),
        ("c102", "0001 0000 0000 0000 0001"),
        ("c2021744", "0002 0000 0000 0002 007a 1a2c"),
        ("3c5c020266", "0002 0001 4000 0000 0009 270f"),
        ("c30b", "0001 0001 0000 0000 000a"),
        ("3f5a4d66", "0001 ffff 4000 0004 0464"),
        ("c10533", "0002 0000 0000 0001 0004 1388"),
        ("c30203", "0002 0001 0000 0000 0001 00c8"),
        ("c4020304", "0002 0001 0000 0000 0066 012c"),
        ("c101", "0000 0000 0000 0000"),
        ("ff65", "0000 0000 d000 0000"),
        ("00", "0000 0000 f000 0000"),
    ],
)
def test_the_groups_of_a_numeric(raw: str, expected: str) -> None:
    """Groups of four digits, the weight of the first, sign, scale (type-mapping §3.2)."""
    assert number_to_numeric(column(raw))[0].value(0) == bytes.fromhex(expected)


def test_the_integer_of_each_form() -> None:
    whole = [
        (raw, int(text))
        for raw, text in FINITE
        if "." not in text and -(2**63) <= int(text) < 2**63
    ]
    assert len(whole) > 20
    values, _ = number_to_integers(column(*(raw for raw, _ in whole), None, ""), 8)
    assert values.values() == [
        *(number.to_bytes(8, "big", signed=True) for _, number in whole), None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "first", "last", "below", "above"),
    [
        (2, "3c624a2166", "c3041c44", "3c624a2066", "c3041c45"),
        (4, "3a503635413566", "c51630312530", "3a503635413466", "c51630312531"),
        (8, "355c4f441d62212f182b5d66", "ca0a1722490445374e3b08",
         "355c4f441d62212f182b5c66", "ca0a1722490445374e3b09"),
    ],
)  # fmt: skip
def test_the_first_and_the_last_integer(
    width: int, first: str, last: str, below: str, above: str
) -> None:
    """−2^n and 2^n − 1: −32768, 32767; −2147483648, …; and one beyond each."""
    values, _ = number_to_integers(column(first, last), width)
    top = 1 << 8 * width - 1
    assert values.values() == [top.to_bytes(width), (top - 1).to_bytes(width)]
    for raw in (below, above, "cb02", "cb0a", "3464" + "66", "ff65", "00"):
        with pytest.raises(OlrPgError, match="OLR-02053"):
            number_to_integers(column("c102", raw), width)


@pytest.mark.parametrize("raw", ["c033", "c10533", "c0020202", "3f3366", "c2020202"])
def test_an_integer_has_no_fraction(raw: str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02057"):
        number_to_integers(column(raw), 8)


def test_the_double_of_each_form() -> None:
    """The nearest one, where a double holds the digits and where it does not."""
    texts = [
        *(text for _, text in BOTH_FORMS), "9007199254740993", "90071992547409.93",
        "9007199254740991e22", "1e22", "1e23", "1e24", "9e22", "1e-22", "1e-23", "7e-24",
        "1234567890123456", "12345678901234567", "0.1234567890123456", "4503599627370497.5",
        "-9007199254740993e-22", "179769313486231570000",
    ]  # fmt: skip
    raws = [
        *(bytes.fromhex(raw) for raw, _ in BOTH_FORMS),
        *(encode_number(text) for text in texts[len(BOTH_FORMS) :]),
    ]
    values, counters = number_to_floats(column_of([*raws, None, b""]), 8)
    assert values.values() == [*(struct.pack(">d", float(text)) for text in texts), None, None]
    assert counters.infinity == 2


def test_only_what_needs_it_is_left_to_the_decimal() -> None:
    """Digits up to 2^53 and powers of ten up to 22 are exact in a double."""
    quick = ["80", "c102", "c2021744", "cc02", "b602", "c85b08145d374b0a5d"]
    slow = ["cd02", "b502", "c85b08145d374b0a5e", "ca0a1722490445374e3b08"]
    for raws, expected in ((quick, False), (slow, True)):
        given = column(*raws)
        out, null, left = np.zeros(len(raws)), np.zeros(len(raws), np.bool_), np.zeros(9, np.bool_)
        floats_kernel(*given, KEEP, 8, out, null, left[: len(raws)])
        assert left[: len(raws)].tolist() == [expected] * len(raws)


@pytest.mark.parametrize("raw", [*MALFORMED, "3e02", "81", "c165", "3e67", "3e6601", "01"])
def test_bytes_that_are_no_number(raw: str) -> None:
    if raw == "3e02":
        assert number_to_integers(column(raw), 8)[0].value(0) == (-99).to_bytes(8, signed=True)
        return
    for convert in (
        number_to_numeric,
        lambda values: number_to_integers(values, 8),
        lambda values: number_to_floats(values, 8),
    ):
        with pytest.raises(OlrPgError, match="OLR-02050") as caught:
            convert(column("80", raw))
        assert caught.value.where["row"] == 1


def test_the_rules_of_infinity() -> None:
    given = column("ff65", "c102", "00")
    null = Policies(infinity="null")
    one = bytes.fromhex("00010000 0000 0000 0001")
    assert number_to_numeric(given, null)[0].values() == [None, one, None]
    assert number_to_floats(given, 8, null)[0].values() == [None, struct.pack(">d", 1), None]
    integers, counters = number_to_integers(given, 8, null)
    assert integers.values() == [None, (1).to_bytes(8), None]
    assert counters.infinity == 2
    floats, counters = number_to_floats(given, 8)
    assert floats.values() == [struct.pack(">d", float(text)) for text in ("inf", "1", "-inf")]
    for convert in (number_to_numeric, lambda values, rule: number_to_floats(values, 8, rule)):
        with pytest.raises(OlrPgError, match="OLR-02053") as caught:
            convert(column("c102", "00"), Policies(infinity="error"))
        assert caught.value.where["row"] == 1
