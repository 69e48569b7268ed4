"""VECTOR images: the documented examples, properties, PostgreSQL's arrays, hostile bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import encoder_for
from olr_pg.datatypes.vector import (
    VectorFormat,
    VectorValue,
    decode_vector,
    encode_vector,
    vector_text,
    vector_to_array,
)
from olr_pg.errors import OlrPgError
from tests.datatypes.json_documents import refused_with, vectors

if TYPE_CHECKING:
    from collections.abc import Callable

# values-and-lobs §13, captured rows; the last one is built by its layout
FLOAT32 = (
    "db000012020000 0007c01d8d0d8958b5f2c0066666c0333333ba83126fbb03126fc0600000c083d70ac067ae14"
)
INT8 = "db0000120400000005c0528a5df5cacd270a141e2832"
BINARY = "db01001005000000388000000000000000070 30b0d020113"
SPARSE = "db020020020000000a0002 00000001 00000007 bfc00000 3fffffff"
EXAMPLES = [
    (FLOAT32, "[2.1,2.8,0.001,0.002,3.5,4.12,3.62]"),
    (INT8, "[10,20,30,40,50]"),
    (BINARY, "[7,3,11,13,2,1,19]"),
    (SPARSE, "[0,1.5,0,0,0,0,0,-2,0,0]"),
]


def raw_of(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


@pytest.mark.parametrize(("raw", "text"), EXAMPLES)
def test_the_documented_examples(raw: str, text: str) -> None:
    assert vector_text(raw_of(raw)) == text


@given(vectors())
def test_round_trip(vector: VectorValue) -> None:
    read = decode_vector(encode_vector(vector))
    assert (read.format, read.dimensions) == (vector.format, vector.dimensions)
    assert np.array_equal(read.values, vector.values)
    assert (read.indexes is None) == (vector.indexes is None)
    assert np.array_equal(read.dense(), vector.dense())


def test_nan_and_infinity() -> None:
    values = np.array([np.nan, np.inf, -np.inf, -0.0])
    for form, dtype in ((VectorFormat.FLOAT32, "f4"), (VectorFormat.FLOAT64, "f8")):
        raw = encode_vector(VectorValue(form, 4, values.astype(dtype)))
        assert vector_text(raw) == "[NaN,Infinity,-Infinity,0]"


@given(vectors(), st.data())
def test_damaged_images_are_refused_or_read(vector: VectorValue, data: st.DataObject) -> None:
    raw = bytearray(encode_vector(vector))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    for damaged in (raw, raw[: data.draw(st.integers(0, len(raw)))]):
        assert refused_with(vector_text, bytes(damaged)) in (None, 2050)
        found = refused_with(partial(vector_to_array, element="f8"), bytes(damaged))
        assert found in (None, 2050)


@pytest.mark.parametrize(
    "raw",
    [
        "db03000104 00000002 0000000000000000 0a14",  # a later version
        "db01001005 0000000c 0000000000000000 07",  # dimensions that fill no whole byte
        "db01003005 00000008 0000000000000000 0001 00000000 07",  # sparse bits
    ],
)
def test_a_form_that_is_not_known_is_refused(raw: str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        vector_text(raw_of(raw))


@given(st.binary(max_size=80))
def test_any_bytes_give_a_coded_error_or_a_vector(tail: bytes) -> None:
    for head in (b"", b"\xdb\x00\x00\x12\x02\x00\x00\x00", b"\xdb\x02\x00\x20\x03\x00\x00"):
        assert refused_with(vector_text, head + tail) in (None, 2050)


@pytest.mark.parametrize(
    "vector",
    [
        VectorValue(VectorFormat.INT8, 3, np.array([1, 2], np.int8)),
        VectorValue(VectorFormat.INT8, 0, np.array([], np.int8)),
        VectorValue(VectorFormat.BINARY, 4, np.array([1], np.uint8)),
    ],
)
def test_what_is_no_vector(vector: VectorValue) -> None:
    with pytest.raises(OlrPgError, match="OLR-02058"):
        encode_vector(vector)


def test_postgresql_reads_vectors(judge: Callable[..., list[str | None]], column_type: Any) -> None:
    column = column_of([*(raw_of(raw) for raw, _ in EXAMPLES), None])
    source = column_type(127)

    def printed(target: str, values: Any = column) -> list[str | None]:
        return judge(target, encoder_for(source, target)(values)[0])

    assert printed("double precision[]")[1:] == [
        "{10,20,30,40,50}", "{7,3,11,13,2,1,19}", "{0,1.5,0,0,0,0,0,-2,0,0}", None,
    ]  # fmt: skip
    assert printed("real[]")[0] == "{2.1,2.8,0.001,0.002,3.5,4.12,3.62}"
    assert printed("text") == [*(text for _, text in EXAMPLES), None]
    bits = column_of([raw_of(BINARY)])
    assert printed("bit(56)", bits) == ["".join(f"{b:08b}" for b in (7, 3, 11, 13, 2, 1, 19))]
    assert printed("varbit", bits) == printed("bit(56)", bits)
    assert printed("smallint[]", column_of([raw_of(INT8)])) == ["{10,20,30,40,50}"]
    assert printed("bytea", column_of([raw_of(INT8)])) == ["\\x" + INT8]


@pytest.mark.parametrize(
    ("target", "raw", "code"),
    [("smallint[]", FLOAT32, 2057), ("bit(8)", INT8, 2053), ("integer", INT8, 2054)],
)
def test_targets_that_do_not_fit(target: str, raw: str, code: int, column_type: Any) -> None:
    with pytest.raises(OlrPgError) as caught:
        encoder_for(column_type(127), target)(column_of([raw_of(raw)]))
    assert caught.value.code == code


def test_a_signalling_nan_is_a_nan(judge: Callable[..., list[str | None]]) -> None:
    raw = raw_of("db000000020000000 1ff800001".replace(" ", ""))
    array = vector_to_array(raw, "f8")
    assert judge("double precision[]", column_of([array])) == ["{NaN}"]


@pytest.mark.parametrize(
    ("raw", "target", "image"),
    [
        (INT8, "vector(5)", "0005 0000 41200000 41a00000 41f00000 42200000 42480000"),
        (INT8, "halfvec", "0005 0000 4900 4d00 4f80 5100 5240"),
        (SPARSE, "sparsevec(10)", "0000000a 00000002 00000000 00000001 00000007 3fc00000 c0000000"),
    ],
)
def test_images_of_pgvector(raw: str, target: str, image: str, column_type: Any) -> None:
    encode = encoder_for(column_type(127), target)
    assert encode(column_of([raw_of(raw)]))[0].value(0) == raw_of(image)


@pytest.mark.parametrize("target", ["vector", "halfvec", "sparsevec"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e39])
def test_pgvector_has_finite_elements_only(target: str, value: float, column_type: Any) -> None:
    encode = encoder_for(column_type(127), target)
    double = encode_vector(VectorValue(VectorFormat.FLOAT64, 1, np.array([value])))
    for raw in (double, raw_of(BINARY)):
        assert refused_with(lambda one: encode(column_of([one])), raw) == 2053


def test_doubles_beyond_real_are_refused() -> None:
    raw = encode_vector(VectorValue(VectorFormat.FLOAT64, 1, np.array([1e300])))
    with pytest.raises(OlrPgError, match="OLR-02053"):
        vector_to_array(raw, "f4")
