"""Values come in the types that are asked for."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from olr_pg.datatypes.columns import ValueColumn
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, Database
from olr_pg.errors import Code, OlrPgError
from olr_pg.rendering.arrow_kernels import ImageForm
from olr_pg.rendering.arrow_values import converter_into, image_form

NUMBER = Column("N", 1, 1, 1, OracleType.NUMBER, 22, precision=10, scale=2)
DATE = Column("D", 1, 1, 1, OracleType.DATE, 7)
RAW = Column("R", 1, 1, 1, OracleType.RAW, 10)
ONE_AND_A_HALF = b"\xc1\x02\x33"
SEVEN = b"\xc1\x08"
NOON = bytes([120, 126, 3, 1, 13, 1, 1])


def converted(column: Column, kind: pa.DataType, *values: bytes | None) -> list[Any]:
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    length = np.array([-1 if value is None else len(value) for value in values])
    offset = np.cumsum(np.maximum(length, 0)) - np.maximum(length, 0)
    array = converter_into(column, kind, Database("D"))(ValueColumn(data, offset, length))
    assert array.type == kind
    found: list[Any] = array.to_pylist()
    return found


@pytest.mark.parametrize(
    ("column", "kind", "value", "expected"),
    [
        (NUMBER, pa.decimal128(12, 4), ONE_AND_A_HALF, Decimal("1.5000")),
        (NUMBER, pa.string(), ONE_AND_A_HALF, "1.5"),
        (NUMBER, pa.float64(), ONE_AND_A_HALF, 1.5),
        (NUMBER, pa.int64(), SEVEN, 7),
        (DATE, pa.string(), NOON, "2026-03-01T12:00:00"),
        (RAW, pa.string(), b"\x01\xff", "01ff"),
        (RAW, pa.binary(), b"\x01\xff", b"\x01\xff"),
    ],
)
def test_values_come_as_they_are_asked_for(
    column: Column, kind: pa.DataType, value: bytes, expected: Any
) -> None:
    assert converted(column, kind, value, None) == [expected, None]


def test_a_fraction_is_no_integer() -> None:
    with pytest.raises(OlrPgError):
        converted(NUMBER, pa.int64(), ONE_AND_A_HALF)


TEXT = Column("S", 1, 1, 1, OracleType.VARCHAR2, 60, charset_form=1, charset_id=873)
NANOS = Column("T", 1, 1, 1, OracleType.TIMESTAMP, 11, scale=9)


@pytest.mark.parametrize("text", [b"9" * 41, b"-3.4e38", b"1e28", b"0.00000000001", b"7e"])
def test_text_that_is_no_such_decimal_is_refused(text: bytes) -> None:
    """Arrow's cast alone gives other numbers instead of some that are too large."""
    with pytest.raises((OlrPgError, pa.ArrowException)):
        converted(TEXT, pa.decimal128(38, 10), text)
    assert converted(TEXT, pa.decimal128(38, 10), b"-3.4e2", None) == [Decimal(-340), None]


@pytest.mark.parametrize(
    ("kind", "text"),
    [(pa.float32(), b"1e39"), (pa.float32(), b"-3.5e38"), (pa.float64(), b"1e309")],
)
def test_numbers_that_are_too_large_do_not_become_infinite(kind: pa.DataType, text: bytes) -> None:
    with pytest.raises(OlrPgError) as caught:
        converted(TEXT, kind, None, text)
    assert (caught.value.code, caught.value.where["row"]) == (Code.VALUE_OUT_OF_RANGE, 1)
    assert converted(TEXT, kind, b"3e38", b"-Inf", None)[1:] == [-math.inf, None]


DOUBLE = Column("F", 1, 1, 1, OracleType.BINARY_DOUBLE, 8)


def test_infinite_numbers_stay_infinite() -> None:
    infinite, large = bytes.fromhex("fff0000000000000"), bytes.fromhex("fe37e43c8800759c")
    assert converted(DOUBLE, pa.float64(), infinite, large) == [math.inf, 1e300]
    assert converted(DOUBLE, pa.float32(), infinite, None) == [math.inf, None]
    with pytest.raises(OlrPgError):
        converted(DOUBLE, pa.float32(), large)


@pytest.mark.parametrize("nanos", [1, 999])
def test_nanoseconds_do_not_fit_into_microseconds(nanos: int) -> None:
    kind = pa.timestamp("us")
    assert image_form(NANOS, kind, Database("D")) == ImageForm.LEFT
    assert converted(NANOS, kind, NOON + (5_000).to_bytes(4, "big"), None) == [
        datetime(2026, 3, 1, 12, 0, 0, 5),  # noqa: DTZ001 - Oracle's has no zone
        None,
    ]
    with pytest.raises(OlrPgError) as caught:
        converted(NANOS, kind, NOON + (5_000 + nanos).to_bytes(4, "big"))
    assert caught.value.code == Code.VALUE_WOULD_LOSE
