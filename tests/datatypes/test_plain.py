"""The quick conversions give the bytes of the encoders, or leave a value to them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import DatabaseFacts, encoder_for
from olr_pg.datatypes.mapping import PgKind
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.plain import PLAIN_BYTES_MAX, PlainForm, plain_form, write_plain
from olr_pg.kernels.compile import kernel
from tests.datatypes.conftest import FakeColumn

if TYPE_CHECKING:
    from decimal import Decimal

FACTS: Final = DatabaseFacts()
NULL, LEFT = -1, -2
NUMBER, VARCHAR2 = FakeColumn(2), FakeColumn(1, charset_id=873, charset_form=1)


@kernel
def write(data: Any, size: int, form: int, out: Any, shorts: Any) -> int:
    """Write the value behind the first byte."""
    return write_plain(data, 1, size, form, out, shorts, 0)


def written(raw: bytes, form: PlainForm) -> bytes | int:
    """The bytes that the kernel writes, or what it says instead."""
    out = np.zeros(len(raw) + PLAIN_BYTES_MAX, np.uint8)
    out = out[: out.size // 2 * 2]
    data = np.frombuffer(b"\xee" + raw + b"\xee", np.uint8)
    size = write(data, len(raw), int(form), out, out.view(np.uint16))
    return out[:size].tobytes() if size >= 0 else int(size)


def agrees(column: Any, target: str, raw: bytes) -> bool:
    """Whether the encoder gives the same bytes, where the value was not left to it."""
    encode = encoder_for(column, target)
    form = plain_form(column, encode.kind, FACTS)
    assert form is not PlainForm.NONE
    found = written(raw, form)
    if found == LEFT:
        return False
    assert found == encode(column_of([raw]))[0].value(0)
    return True


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**15),
                   max_value=10**15))  # fmt: skip
def test_numbers_as_numeric(value: Decimal) -> None:
    assert agrees(NUMBER, "numeric", encode_number(value))


@given(st.integers(-(2**15), 2**15 - 1))
def test_numbers_as_integers(value: int) -> None:
    for target in ("smallint", "integer", "bigint"):
        assert agrees(NUMBER, target, encode_number(value))


@pytest.mark.parametrize(
    ("value", "form"),
    [(1.5, PlainForm.INT8), (40_000, PlainForm.INT2), (2**31, PlainForm.INT4)],
)
def test_numbers_that_do_not_fit_are_left_to_the_encoder(value: Any, form: PlainForm) -> None:
    from decimal import Decimal

    assert written(encode_number(Decimal(str(value))), form) == LEFT


@given(st.text(min_size=1))
def test_text_that_is_utf_8(text: str) -> None:
    if "\0" not in text:
        assert agrees(VARCHAR2, "text", text.encode())


def test_text_that_somebody_must_look_at_is_left_to_the_encoder() -> None:
    assert written(b"a\xff", PlainForm.UTF8) == LEFT
    assert written(b"a\0b", PlainForm.UTF8) == LEFT
    assert written(b"caf\xe9", PlainForm.ASCII) == LEFT
    assert written(b"cafe", PlainForm.ASCII) == b"cafe"
    assert written(b"\xff\0", PlainForm.BYTES) == b"\xff\0"
    assert written(b"", PlainForm.UTF8) == NULL


def test_dates_and_timestamps() -> None:
    date = bytes([120, 126, 3, 7, 7, 45, 40])
    assert agrees(FakeColumn(12), "timestamp", date)
    assert agrees(FakeColumn(180), "timestamp", date + (123_456_000).to_bytes(4, "big"))
    assert agrees(FakeColumn(181), "timestamptz", date + (5_000).to_bytes(4, "big") + b"\x14\x3c")
    nanoseconds = date + (123_456_789).to_bytes(4, "big")
    assert written(nanoseconds, PlainForm.TIMESTAMP) == LEFT
    micros = written(date, PlainForm.TIMESTAMP)
    assert isinstance(micros, bytes)
    since = datetime(2026, 3, 7, 6, 44, 39) - datetime(2000, 1, 1)  # noqa: DTZ001
    assert int.from_bytes(micros, "big") == since.total_seconds() * 1_000_000


@pytest.mark.parametrize(
    ("column", "kind", "form"),
    [
        (NUMBER, PgKind.FLOAT8, PlainForm.NONE),
        (VARCHAR2, PgKind.JSON, PlainForm.NONE),
        (FakeColumn(96, charset_id=873, charset_form=1), PgKind.TEXT, PlainForm.NONE),
        (FakeColumn(96, charset_id=873, charset_form=1), PgKind.BPCHAR, PlainForm.UTF8),
        (FakeColumn(1, charset_id=2000, charset_form=2), PgKind.TEXT, PlainForm.NONE),
        (FakeColumn(23), PgKind.BYTEA, PlainForm.BYTES),
        (FakeColumn(23), PgKind.TEXT, PlainForm.NONE),
        (FakeColumn(181), PgKind.TIMESTAMP, PlainForm.NONE),
    ],
)
def test_which_columns_have_one(column: Any, kind: PgKind, form: PlainForm) -> None:
    assert plain_form(column, kind, FACTS) is form


def test_text_of_a_single_byte_database_is_plain_where_it_is_ascii() -> None:
    facts = DatabaseFacts(charset="WE8MSWIN1252")
    assert plain_form(FakeColumn(1, charset_form=1), PgKind.TEXT, facts) is PlainForm.ASCII


@pytest.mark.parametrize(
    ("raw", "form", "expected"),
    [
        ("80", PlainForm.INT2, "0000"), ("80", PlainForm.INT8, "0000000000000000"),
        ("80", PlainForm.NUMERIC, "0000000000000000"), ("8002", PlainForm.INT8, None),
        ("c3041c44", PlainForm.INT2, "7fff"), ("c3041c45", PlainForm.INT2, None),
        ("3c624a2166", PlainForm.INT2, "8000"), ("3c624a2066", PlainForm.INT2, None),
        ("c51630312530", PlainForm.INT4, "7fffffff"), ("c51630312531", PlainForm.INT4, None),
        ("3a503635413566", PlainForm.INT4, "80000000"), ("3a503635413466", PlainForm.INT4, None),
        ("c51630312531", PlainForm.INT8, "0000000080000000"),
        ("3a503635413466", PlainForm.INT8, "ffffffff7fffffff"),
        ("c033", PlainForm.INT8, None), ("c1", PlainForm.INT4, None),
        ("ff65", PlainForm.INT8, None),
        ("c2021744", PlainForm.NUMERIC, "00020000 0000 0002 007a 1a2c"),
        ("3c5c020266", PlainForm.NUMERIC, "0002 0001 4000 0000 0009 270f"),
        ("ff65", PlainForm.NUMERIC, None), ("00", PlainForm.NUMERIC, None),
    ],
)  # fmt: skip
def test_the_bytes_of_a_number(raw: str, form: PlainForm, expected: str | None) -> None:
    """Of values-and-lobs §3; what does not fit, or is no plain number, the encoder gets."""
    given = written(bytes.fromhex(raw), form)
    assert given == (LEFT if expected is None else bytes.fromhex(expected))


@pytest.mark.parametrize(
    ("raw", "form", "micros"),
    [
        ("78640102020202", PlainForm.TIMESTAMP, 86_400_000_000 + 3_661_000_000),
        ("786401010101010f424000", PlainForm.TIMESTAMP, 256_000),
        ("786401010101010f424000143c", PlainForm.TIMESTAMP_TZ, 256_000),
        ("78640101010102143c", PlainForm.TIMESTAMP_TZ, 1_000_000),
        ("7864010101010100000001", PlainForm.TIMESTAMP, None),
        ("7364021d010101", PlainForm.TIMESTAMP, None),
        ("78640d01010101", PlainForm.TIMESTAMP, None),
        ("78640101010101143c", PlainForm.TIMESTAMP, None),
        ("78640101010102", PlainForm.TIMESTAMP_TZ, None),
    ],
)
def test_the_microseconds_of_a_label(raw: str, form: PlainForm, micros: int | None) -> None:
    given = written(bytes.fromhex(raw), form)
    assert given == (LEFT if micros is None else micros.to_bytes(8))
