"""Elements: sizes of the protocol's table, exact bytes, round trips, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.wire.elements import (
    Begin,
    Chunk,
    ChunkFlags,
    ColumnValue,
    Commit,
    Delete,
    Element,
    Insert,
    Update,
    decode_element,
    encode_element,
)
from olr_pg.wire.frames import ByteOrder

U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
I64 = st.integers(-(2**63) + 1, 2**63 - 1)
NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
COLUMN = st.builds(
    ColumnValue, NAME, U16, st.none() | I64, st.none() | I64,
    st.none() | st.integers(0, 2**64 - 2), st.none() | st.integers(0, 254),
    st.just(False), st.none() | st.binary(min_size=1, max_size=20),
)  # fmt: skip
CHUNKED = st.builds(ColumnValue, NAME, U16, chunked=st.just(True))
COLUMNS = st.lists(COLUMN | CHUNKED, max_size=4).map(tuple)
HEADER = {
    "scn": U64, "commit_scn": U64, "xid": U64, "timestamp": U32, "object_id": U32,
    "schema": NAME, "table": NAME, "rowid": NAME,
}  # fmt: skip
ELEMENTS: st.SearchStrategy[Element] = st.one_of(
    st.builds(Begin, U64, U64, U64, U32, U16, U32),
    st.builds(Commit, U64, U64, U64, U32),
    st.builds(Insert, **HEADER, after=COLUMNS),
    st.builds(Delete, **HEADER, before=COLUMNS),
    st.builds(Update, **HEADER, before=COLUMNS, after=COLUMNS),
    st.builds(
        Chunk, U64, U64, U64, U32, NAME, st.sampled_from([112, 113]), st.sampled_from(
            [ChunkFlags(n) for n in range(4)]), st.binary(max_size=40),
    ),
)  # fmt: skip


def test_begin_bytes() -> None:
    begin = Begin(1, 2, 0x000A000C0000023C, 5, 6, 7)
    expected = "01 0100000000000000 0200000000000000 3c0200000c000a00 05000000 0600 07000000"
    assert encode_element(begin, ByteOrder.LITTLE) == bytes.fromhex(expected)
    expected = "01 0000000000000001 0000000000000002 000a000c0000023c 00000005 0006 00000007"
    assert encode_element(begin, ByteOrder.BIG) == bytes.fromhex(expected)


def test_update_bytes() -> None:
    update = Update(
        scn=1, commit_scn=2, xid=3, timestamp=4, object_id=5, schema="S", table="TB",
        rowid="A" * 18,
        before=(ColumnValue("ID", 2, 10, 0, value=b"\xc1\x02"),),
        after=(ColumnValue("N", 1, charset_id=873, charset_form=1),),
    )  # fmt: skip
    expected = (
        "06 0100000000000000 0200000000000000 0300000000000000 04000000"
        "05000000 01 02 12 53 5442" + "41" * 18 + "0100"
        "02 0200000000000000 0200 0a00000000000000 0000000000000000 ffffffffffffffff ff 00"
        "4944 c102"
        "0100"
        "01 0000000000000000 0100 0000000000000080 0000000000000080 6903000000000000 01 00"
        "4e"
    )
    assert encode_element(update, ByteOrder.LITTLE) == bytes.fromhex(expected)
    assert decode_element(bytes.fromhex(expected), ByteOrder.LITTLE) == update


@given(ELEMENTS, st.sampled_from(ByteOrder))
def test_round_trip(element: Element, order: ByteOrder) -> None:
    assert decode_element(encode_element(element, order), order) == element


def columns_size(columns: tuple[ColumnValue, ...]) -> int:
    return sum(37 + len(c.name.encode()) + len(c.value or b"") for c in columns)


@given(ELEMENTS)
def test_sizes_are_those_of_the_protocol(element: Element) -> None:
    size = len(encode_element(element, ByteOrder.LITTLE))
    match element:
        case Begin():
            assert size == 35
        case Commit():
            assert size == 29
        case Chunk():
            assert size == 42 + len(element.column.encode()) + len(element.data)
        case _:
            names = len((element.schema + element.table + element.rowid).encode())
            counts = 4 if isinstance(element, Update) else 2
            columns = columns_size(element.before) + columns_size(element.after)
            assert size == 36 + names + counts + columns


@given(ELEMENTS, st.data())
def test_a_short_or_long_element_is_refused(element: Element, data: st.DataObject) -> None:
    encoded = encode_element(element, ByteOrder.LITTLE)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    for wrong in (encoded[:cut], encoded + b"\0"):
        with pytest.raises(OlrPgError, match="OLR-04005"):
            decode_element(wrong, ByteOrder.LITTLE)


@given(st.binary(max_size=120), st.sampled_from([b"", b"\1", b"\4", b"\5", b"\6", b"\7"]))
def test_any_bytes_give_an_element_or_4005(tail: bytes, code: bytes) -> None:
    try:
        decode_element(code + tail, ByteOrder.LITTLE)
    except OlrPgError as error:
        assert error.code == 4005  # noqa: PT017 - one of two outcomes


def test_a_chunked_column_with_a_value_is_refused() -> None:
    insert = Insert(
        scn=0, commit_scn=0, xid=0, timestamp=0, object_id=0, schema="", table="", rowid="",
        after=(ColumnValue("C", 112, chunked=True, value=b"x"),),
    )  # fmt: skip
    with pytest.raises(OlrPgError, match="chunked"):
        decode_element(encode_element(insert, ByteOrder.LITTLE), ByteOrder.LITTLE)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(OlrPgError, match="OLR-04006"):
        encode_element(Commit(2**64, 0, 0, 0), ByteOrder.LITTLE)
    chunk = Chunk(0, 0, 0, 0, "é" * 128, 112, ChunkFlags.NONE, b"")
    with pytest.raises(OlrPgError, match="256 bytes in UTF-8"):
        encode_element(chunk, ByteOrder.LITTLE)
