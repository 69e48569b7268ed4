"""BINARY_FLOAT and BINARY_DOUBLE in both directions.

BOOLEAN.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes import binary_float
from olr_pg.datatypes.binary_float import (
    binary_float_to_float,
    boolean_to_bool,
    decode_binary_float,
    decode_boolean,
    encode_binary_float,
    flag_numbers,
    flag_texts,
    no_flag,
    shortest,
)
from olr_pg.datatypes.columns import column_of
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable


# values-and-lobs §8
FLOATS = [
    ("bfddb3d7", "1.7320508"),
    ("80000000", "0.0"),
    ("bf800000", "1.0"),
    ("407fffff", "-1.0"),
    ("3fdfffff", "-2.5"),
    ("ff7fffff", "3.4028235e+38"),
    ("80000001", "1e-45"),
    ("ff800000", "Infinity"),
    ("007fffff", "-Infinity"),
    ("ffc00000", "NaN"),
]
DOUBLES = [
    ("bffbb67ae8584caa", "1.7320508075688772"),
    ("8000000000000000", "0.0"),
    ("bff8000000000000", "1.5"),
    ("3fffffffffffffff", "-2.0"),
    ("0010000000000000", "-1.7976931348623157e+308"),
    ("ffefffffffffffff", "1.7976931348623157e+308"),
    ("fff0000000000000", "Infinity"),
    ("000fffffffffffff", "-Infinity"),
    ("fff8000000000000", "NaN"),
]


@pytest.mark.parametrize(("raw", "text"), [*FLOATS, *DOUBLES])
def test_examples(raw: str, text: str) -> None:
    width = len(raw) // 2
    value = decode_binary_float(bytes.fromhex(raw), width)
    assert shortest(value, width) == text
    assert encode_binary_float(value, width).hex() == raw


def test_postgresql_prints_the_examples(judge: Callable[..., list[str | None]]) -> None:
    floats, _ = binary_float_to_float(
        column_of([*(bytes.fromhex(raw) for raw, _ in FLOATS), None]), 4, 4
    )
    printed = judge("real", floats)
    assert printed[-1] is None
    for text, (_, expected) in zip(printed, FLOATS, strict=False):
        assert np.float32(text) == np.float32(expected) or (text, expected) == ("NaN", "NaN")
    doubles, _ = binary_float_to_float(column_of([bytes.fromhex(raw) for raw, _ in DOUBLES]), 8, 8)
    for text, (_, expected) in zip(judge("double precision", doubles), DOUBLES, strict=True):
        assert float(text or "") == float(expected) or (text, expected) == ("NaN", "NaN")


@given(st.lists(st.floats(width=64)))
def test_doubles_round_trip_and_become_float8(numbers: list[float]) -> None:
    raws = [encode_binary_float(number, 8) for number in numbers]
    values, counters = binary_float_to_float(column_of(raws), 8, 8)
    for number, raw, value in zip(numbers, raws, values.values(), strict=True):
        plain = decode_binary_float(raw, 8)
        assert plain == number or (math.isnan(plain) and math.isnan(number))
        assert value == struct.pack(">d", number or 0.0) or math.isnan(number)
    assert counters.inexact == 0


@given(st.lists(st.floats(width=32)))
def test_floats_widen_exactly(numbers: list[float]) -> None:
    raws = [encode_binary_float(number, 4) for number in numbers]
    values, counters = binary_float_to_float(column_of(raws), 4, 8)
    for number, value in zip(numbers, values.values(), strict=True):
        wide = struct.unpack(">d", value or b"")[0]
        assert wide == number or (math.isnan(wide) and math.isnan(number))
    assert counters.inexact == 0


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_bytes_order_as_numbers(left: float, right: float) -> None:
    if left != right:
        assert (left < right) == (encode_binary_float(left, 8) < encode_binary_float(right, 8))


def test_narrowing_counts_and_has_a_limit() -> None:
    values = column_of([encode_binary_float(number, 8) for number in (0.1, 0.5, math.inf)])
    result, counters = binary_float_to_float(values, 8, 4)
    assert np.frombuffer(result.data, ">f4").tolist()[1:] == [0.5, math.inf]
    assert counters.inexact == 1
    with pytest.raises(OlrPgError, match="OLR-02053") as caught:
        binary_float_to_float(column_of([None, encode_binary_float(1e300, 8)]), 8, 4)
    assert caught.value.where["row"] == 1
    with pytest.raises(OlrPgError, match="OLR-02058"):
        encode_binary_float(1e300, 4)


def test_one_zero_and_one_nan() -> None:
    assert encode_binary_float(-0.0, 8) == encode_binary_float(0.0, 8)
    odd_nan = struct.unpack(">d", bytes.fromhex("fff8000000000123"))[0]
    assert encode_binary_float(odd_nan, 8).hex() == "fff8000000000000"
    values, _ = binary_float_to_float(column_of([bytes.fromhex("fff8000000000123")]), 8, 8)
    assert values.data.tobytes().hex() == "7ff8000000000000"


def test_other_lengths_are_refused() -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_binary_float(b"abc", 4)
    with pytest.raises(OlrPgError, match="OLR-02050"):
        binary_float_to_float(column_of([b"abcd", b"abcde"]), 4, 4)


def test_the_kernel_agrees_with_its_interpreted_form() -> None:
    values = column_of([bytes.fromhex(raw) for raw, _ in DOUBLES])
    results = []
    for kernel in (binary_float.bits_kernel, binary_float.bits_kernel.py_func):  # type: ignore[attr-defined]
        out = np.zeros(len(DOUBLES), np.uint64)
        results.append((kernel(*values, 8, out), out.tolist()))
    assert results[0] == results[1]


def test_values_and_columns(judge: Callable[..., list[str | None]]) -> None:
    assert [decode_boolean(raw) for raw in (b"\x01", b"\x00")] == [True, False]
    values = boolean_to_bool(column_of([b"\x01", None, b"\x00"]))
    assert values.values() == [b"\x01", None, b"\x00"]
    assert judge("boolean", values) == ["true", None, "false"]


@pytest.mark.parametrize("raw", [b"\x02", b"\x01\x01"])
def test_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_boolean(raw)
    with pytest.raises(OlrPgError, match="OLR-02050") as caught:
        boolean_to_bool(column_of([b"\x01", raw]))
    assert caught.value.where["row"] == 1


def test_flags_stand_for_true_and_false() -> None:
    pairs = (("Y", "N"), ("-1", "0"))
    assert flag_texts(pairs) == {"Y": True, "N": False, "-1": True, "0": False}
    assert flag_numbers(pairs) == {-1: True, 0: False}
    assert flag_numbers((("Y", "N"),)) == {1: True, 0: False}
    assert "Y/N, -1/0" in no_flag(pairs, row=3).detail
    assert no_flag(pairs, row=3).where == {"row": 3}
