"""OSON images: the documented examples, python-oracledb as the judge, properties, hostile bytes."""

from __future__ import annotations

import datetime
import json
from array import array
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import oracledb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import encoder_for
from olr_pg.datatypes.json_text import json_text, oson_to_json
from olr_pg.datatypes.oson import DEPTH_MAX, Json, Single, decode_oson
from olr_pg.datatypes.policies import Policies
from olr_pg.datatypes.vector import VectorValue
from olr_pg.errors import OlrPgError
from tests.datatypes.json_documents import (
    DOCUMENTS,
    LEAVES_OF_SQL,
    documents,
    plain,
    python_oracledb,
    refused_with,
    vectors,
)
from tests.datatypes.oson_images import encode_oson

if TYPE_CHECKING:
    from collections.abc import Callable

# values-and-lobs §12.3
EXAMPLES: list[tuple[str, Json]] = [
    ("ff4a5a01 0016 0005 33 03 616263", "abc"),
    ("ff4a5a01 0016 0006 34 04 3e593366", Decimal("-12.5")),
    (
        "ff4a5a01 2106 01 0002 000b 0000 2c 0000 01 61 a4 01 01 00000007 34 02 c102",
        {"a": Decimal(1)},
    ),
    (
        """ff4a5a01 2106 02 000f 0015 0000 91d8 0000 0006 05 6672756974 08 7175616e74697479
        84 02 01 02 0008 0012 09 70696e656170706c65 21 c115""",
        {"fruit": "pineapple", "quantity": Decimal(20)},
    ),
]


@pytest.mark.parametrize(("raw", "document"), EXAMPLES)
def test_the_documented_examples(raw: str, document: Json) -> None:
    assert decode_oson(bytes.fromhex(raw)) == (document, 0)


def scalar(code: str) -> bytes:
    raw = bytes.fromhex(code)
    return bytes.fromhex("ff4a5a010016") + len(raw).to_bytes(2) + raw


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("30", "null"),
        ("31", "true"),
        ("32", "false"),
        ("00", '""'),
        ("03616263", '"abc"'),
        ("370001 e9", '"\ufffd"'),
        ("3800000002c3a9", '"é"'),
        ("22c20202", "101"),
        ("61c102", "1"),
        ("60 80", "0"),
        ("42c105", "4"),
        ("3402c033", "0.5"),
        ("36bffbb67ae8584caa", "1.7320508075688772"),
        ("7fbfddb3d7", "1.7320508"),
        ("7fff800000", '"Infinity"'),
        ("3402ff65", '"Infinity"'),
        ("340100", '"-Infinity"'),
        ("39787e010814142f38acc618", '"2026-01-08T19:19:46.950847"'),
        ("7d787e010814142f", '"2026-01-08T19:19:46"'),
        ("3c787e0307022d28", '"2026-03-07T01:44:39"'),
        ("7c787e010814142f38acc618195a", '"2026-01-09T00:49:46.950847+05:30"'),
        ("3d8000000343", '"P3Y7M"'),
        ("3e800000044148468d3b7380", '"P4DT5H12M10.222S"'),
        ("3a0003cafe00", '"cafe00"'),
        ("3b00000001ff", '"ff"'),
        ("7e02beef", '"beef"'),
        ("7b010000000bdb00000004000000020aff", "[10,-1]"),
    ],
)
def test_every_scalar(code: str, text: str) -> None:
    assert json_text(decode_oson(scalar(code))[0])[0].decode() == text


@given(documents(LEAVES_OF_SQL))
def test_what_python_oracledb_writes_is_read(document: Any) -> None:
    raw = python_oracledb().encode_oson(plain(document))
    ours = json_text(decode_oson(raw)[0], None)[0]
    theirs = json_text(plain(document), None)[0]
    assert exact(ours) == exact(theirs)


@given(DOCUMENTS)
def test_python_oracledb_reads_what_is_written(document: Any) -> None:
    read = python_oracledb().decode_oson(encode_oson(document))
    assert exact(json_text(read, None)[0]) == exact(json_text(plain(document), None)[0])


@given(DOCUMENTS)
@example({f"name{i}": Decimal(i) for i in range(300)})
@example({"x" * 255: "y" * 70_000})
def test_round_trip(document: Any) -> None:
    assert decode_oson(encode_oson(document)) == (document, 0)


def exact(text: bytes) -> Any:
    """A document by its values: 1 is 1.0."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def test_names_of_version_3() -> None:
    name = "n" * 300
    raw = (
        bytes.fromhex("ff4a5a03 2106 00 0000 0100 00000001 0000012e 0006 0000 abcd 0000")
        + len(name).to_bytes(2) + name.encode() + bytes.fromhex("84 01 01 0005 31")
    )  # fmt: skip
    assert decode_oson(raw)[0] == {name: True}


def test_shared_fields_and_relative_offsets() -> None:
    # An array of two objects, the second with the fields of the first (values-and-lobs §12.2).
    raw = bytes.fromhex(
        """ff4a5a01 2107 01 0002 0012 0000  2c 0000 0161
        c0 02 0006 000c
        84 01 01 0005 31
        9c 0006 0005 32"""
    )
    assert decode_oson(raw)[0] == [{"a": True}, {"a": False}]


def test_a_circle_ends() -> None:
    raw = bytes.fromhex("ff4a5a01 2106 00 0000 0004 0000 c0 01 0000".replace(" ", ""))
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_oson(raw)


def test_a_document_that_repeats_itself_is_bounded() -> None:
    levels = [b"\xc0\x02" + 2 * (6 * (i + 1)).to_bytes(2) for i in range(60)]
    tree = b"".join(levels) + b"\x30"
    raw = bytes.fromhex("ff4a5a012106000000") + len(tree).to_bytes(2) + bytes(2) + tree
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_oson(raw)


def test_depth() -> None:
    deep: Any = None
    for _ in range(DEPTH_MAX):
        deep = [deep]
    assert json_text(decode_oson(encode_oson(deep))[0])[0] == b"[" * 1024 + b"null" + b"]" * 1024
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_oson(encode_oson([deep]))


@given(DOCUMENTS, st.data())
def test_damaged_images_are_refused_or_read(document: Any, data: st.DataObject) -> None:
    raw = bytearray(encode_oson(document))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = raw[: data.draw(st.integers(0, len(raw)))]
    for damaged in (raw, cut):
        assert refused_with(read, bytes(damaged)) in (None, 2050)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_coded_error_or_a_document(tail: bytes) -> None:
    for head in (b"", b"\xffJZ\x01\x21\x06", b"\xffJZ\x03\x3d\x0f"):
        assert refused_with(read, head + tail) in (None, 2050)


def read(raw: bytes) -> Any:
    return json.loads(json_text(decode_oson(raw)[0])[0])


def containers(tree: str, segment: str = "0161", size: int = 2) -> bytes:
    """An image with one name, a."""
    head = f"ff4a5a01 2106 01 {size:04x} {len(bytes.fromhex(tree)):04x} 0000 00 0000 {segment}"
    return bytes.fromhex(head + tree)


def test_an_image_made_by_hand_is_read() -> None:
    assert read(containers("80 01 01 0005 30")) == {"a": None}
    assert read(scalar("7b01 00000016 db0000120400000005c0528a5df5cacd270a141e2832"))[0] == 10


@pytest.mark.parametrize(
    "raw",
    [
        containers("80 01 00 0005 30"),  # the name before the first one
        containers("80 01 02 0005 30"),  # the name after the last one
        containers("d8 0005 0009 80 01 01 00 30"),  # an array with the names of an object
        containers("98 0005 0009 c0 01 01 00 30"),  # an object with the names of an array
        containers("30", segment="01", size=1),  # the name ends after its segment
        bytes.fromhex("ff4a5a01 0010 0002 30"),  # the document ends before its tree
        bytes.fromhex("ff4a5a02 0010 0001 30"),  # version 2
        scalar(
            "7b02 00000016 db0000120400000005c0528a5df5cacd270a141e2832"
        ),  # version 2 of a vector
    ],
)
def test_an_image_that_contradicts_itself_is_refused(raw: bytes) -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        read(raw)


def test_policies_for_text() -> None:
    bad = column_of([scalar("02e941"), scalar("024100")])
    with pytest.raises(OlrPgError, match="OLR-02051") as caught:
        oson_to_json(bad, Policies(undecodable="error"))
    assert caught.value.where["row"] == 0
    with pytest.raises(OlrPgError, match="OLR-02052"):
        oson_to_json(bad, Policies(nul="error"))
    values, counters = oson_to_json(bad, Policies(undecodable="hex", nul="replace"))
    assert values.values() == [b'"\\\\xe9A"', '"A\ufffd"'.encode()]
    assert (counters.undecodable, counters.nul) == (1, 1)


def test_values_of_python_oracledb_become_the_same_text() -> None:
    zoned = [
        datetime.datetime(2026, 1, 8, 19, 19, 46, 950_847),  # noqa: DTZ001 - as Oracle's DATE comes
        datetime.timedelta(days=-1, hours=2),
        oracledb.IntervalYM(-3, -7),
        array("f", [1.5, -2.0]),
        b"\xca\xfe",
        7,
        1.5,
        Decimal("1E+3"),
        Decimal("-0.10"),
        Decimal("NaN"),
    ]
    assert json_text(zoned)[0].decode() == (
        '["2026-01-08T19:19:46.950847","PT-22H","P-3Y-7M",[1.5,-2.0],"cafe",7,1.5,1000,-0.1,"NaN"]'
    )
    with pytest.raises(OlrPgError, match="OLR-02058"):
        json_text({"a": object()})


@given(vectors())
def test_vectors_in_documents(vector: VectorValue) -> None:
    found = decode_oson(encode_oson({"v": vector}))[0]
    assert isinstance(found, dict)
    read = found["v"]
    assert isinstance(read, VectorValue)
    assert np.array_equal(read.dense(), vector.dense())


def test_postgresql_reads_documents(
    judge: Callable[..., list[str | None]], column_type: Any
) -> None:
    documents: list[Json] = [
        {"b": [Decimal("1.50"), None, True], "a": "x\0y", "": {}},
        "just text",
        Decimal("9" * 38),
        [],
        Single(1.1),
    ]
    column = column_of([*(encode_oson(one) for one in documents), None])
    found = column_type(119)
    jsonb, counters = encoder_for(found, "jsonb")(column)
    assert judge("jsonb", jsonb) == [
        '{"": {}, "a": "xy", "b": [1.5, null, true]}', '"just text"', "9" * 38, "[]", "1.1", None,
    ]  # fmt: skip
    assert counters.nul == 1
    assert judge("json", encoder_for(found, "json")(column)[0])[1] == '"just text"'
    assert judge("text", encoder_for(found, "text")(column)[0])[3] == "[]"
    assert (
        judge("bytea", encoder_for(found, "bytea")(column)[0])[3] == "\\x" + encode_oson([]).hex()
    )
    with pytest.raises(OlrPgError, match="OLR-02054"):
        encoder_for(found, "integer")(column)
