"""The kernels of NUMBER beside their interpreted form, and beside the reader of single values."""

from __future__ import annotations

import struct
from decimal import Context, Decimal, localcontext

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes import number_kernels
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.number import decode_number, encode_number
from olr_pg.datatypes.number_columns import number_to_numeric
from olr_pg.errors import OlrPgError
from tests.datatypes.number_examples import loose_numbers, oracle_numbers


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


@given(st.lists(loose_numbers, max_size=8))
def test_the_numeric_kernel_reads_bytes_as_the_scalar_decoder_does(raws: list[bytes]) -> None:
    for raw in raws:
        try:
            expected = decode_number(raw).encode()
        except OlrPgError:
            continue
        assert numeric_text(number_to_numeric(column_of([raw]))[0].value(0)) == expected
