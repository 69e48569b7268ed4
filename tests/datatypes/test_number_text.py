"""Columns of NUMBER as decimal text: what one value is, and the room that it is written into."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.columns import ValueColumn, column_of
from olr_pg.datatypes.number import (
    AS_ERROR,
    AS_NULL,
    KEEP,
    decode_number,
    number_to_text,
    text_kernel,
    text_size_kernel,
)
from olr_pg.datatypes.outcomes import INFINITY, MALFORMED, OK
from olr_pg.errors import OlrPgError
from tests.datatypes.number_examples import EXAMPLES, NON_CANONICAL, column, loose_numbers


def written(
    values: ValueColumn, infinity: int = KEEP
) -> tuple[tuple[int, ...], list[bytes | None]]:
    """What the kernel returns, and the texts; nothing is written behind the room it asked for."""
    room = text_size_kernel(*values)
    out = np.full(room + 8, 0xEE, np.uint8)
    offset, length = np.zeros(len(values.length), np.int64), np.zeros(len(values.length), np.int64)
    end = text_kernel(*values, infinity, out, offset, length)
    assert end[3] <= room
    assert out[room:].tolist() == [0xEE] * 8
    return end, ValueColumn(out, offset, length).values()


def test_the_columns_of_the_examples_are_the_same_text() -> None:
    values, counters = number_to_text(column(*(raw for raw, _ in EXAMPLES), None))
    assert values.values() == [*(text.encode() for _, text in EXAMPLES), None]
    assert counters.infinity == 2


@pytest.mark.parametrize(("raw", "text"), NON_CANONICAL)
def test_non_canonical_forms_are_tolerated(raw: str, text: str) -> None:
    assert number_to_text(column(raw))[0].value(0) == text.encode()


@given(st.lists(loose_numbers, max_size=8))
def test_any_number_is_the_text_of_the_scalar_decoder_and_fits_its_room(raws: list[bytes]) -> None:
    expected: list[bytes | None] = []
    kept: list[bytes] = []
    for raw in raws:
        try:
            expected.append(decode_number(raw).encode())
        except OlrPgError:
            continue
        kept.append(raw)
    end, texts = written(column_of(kept))
    assert texts == expected
    assert end[:2] == (-1, OK)


@pytest.mark.parametrize("head", [0x00, 0x01, 0x3E, 0x7F, 0x80, 0x81, 0xC1, 0xFF])
def test_the_longest_texts_of_an_exponent_fit(head: int) -> None:
    """Twenty digits behind every head: zeros before the point, behind it, or all over."""
    digit = 2 if head < 0x80 else 100
    raw = bytes([head, *[digit] * 20])
    if head == 0x80:
        raw = b"\x80" + bytes([100] * 20)
    _, texts = written(column_of([raw, None, raw]))
    assert texts == [decode_number(raw).encode(), None, decode_number(raw).encode()]


def test_the_rules_of_infinity() -> None:
    values = column("ff65", "c102", "00")
    assert written(values, KEEP)[1] == [b"Infinity", b"1", b"-Infinity"]
    end, texts = written(values, AS_NULL)
    assert texts == [None, b"1", None]
    assert end[2] == 2
    assert written(column("c102", "00"), AS_ERROR)[0][:2] == (1, INFINITY)


def test_the_first_malformed_value_stops_at_its_row() -> None:
    assert written(column("c102", None, "c1", "3e66"))[0][:2] == (2, MALFORMED)


def test_no_values_need_no_room() -> None:
    assert text_size_kernel(*column_of([])) == 0
    assert text_size_kernel(*column_of([None, b""])) == 0
    assert written(column_of([None, b""])) == ((-1, OK, 0, 0), [None, None])


def test_each_value_alone_has_the_room_that_it_needs() -> None:
    raws = [raw for raw, _ in EXAMPLES + NON_CANONICAL]
    for raw in raws:
        written(column(raw))
    out, offset, length = np.zeros(99, np.uint8), np.zeros(2, np.int64), np.zeros(2, np.int64)
    text_kernel(*column(None, "ff65"), AS_NULL, out, offset, length)
    assert length.tolist() == [-1, -1]
