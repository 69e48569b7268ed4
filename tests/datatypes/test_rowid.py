"""ROWID and UROWID."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.raw import decode_rowid, decode_urowid, rowid_to_text, urowid_to_text
from olr_pg.errors import OlrPgError
from tests.datatypes.urowids import encode_rowid, encode_urowid

# values-and-lobs §11
ROWIDS = [
    ("000129ee030002ad0000", "AAASnuAAMAAAAKtAAA"),
    ("000132e7014000fd0000", "AAATLnAAFAAAAD9AAA"),
    ("0000008f004004a10000", "AAAACPAABAAAAShAAA"),
    ("000000020000543e0007", "AAAAACAAAAAAFQ+AAH"),
]
UROWIDS = [
    ("01000129ee000c000002ad0000", "AAASnuAAMAAAAKtAAA"),
    ("01000132e70005000000fd0000", "AAATLnAAFAAAAD9AAA"),
]


@pytest.mark.parametrize(("raw", "text"), ROWIDS)
def test_rowids(raw: str, text: str) -> None:
    assert decode_rowid(bytes.fromhex(raw)) == text
    assert encode_rowid(text).hex() == raw


@pytest.mark.parametrize(("raw", "text"), UROWIDS)
def test_physical_urowids(raw: str, text: str) -> None:
    assert decode_urowid(bytes.fromhex(raw)) == text
    assert encode_urowid(text).hex() == raw


@given(st.lists(st.none() | st.binary(min_size=10, max_size=10)))
def test_round_trip_and_columns(raws: list[bytes | None]) -> None:
    texts = [None if raw is None else decode_rowid(raw) for raw in raws]
    assert [None if text is None else encode_rowid(text) for text in texts] == raws
    assert rowid_to_text(column_of(raws)).values() == [
        None if text is None else text.encode() for text in texts
    ]


@given(st.binary(min_size=1, max_size=40))
def test_logical_urowids_come_back(key: bytes) -> None:
    raw = b"\x02" + key
    text = decode_urowid(raw)
    assert text.startswith("*")
    assert encode_urowid(text) == raw
    assert urowid_to_text(column_of([raw, None])).values() == [text.encode(), None]


def test_restricted_rowids() -> None:
    raw = bytes.fromhex("0000096b0007")
    assert decode_rowid(raw) == "0000096B.0007.0000"
    extended = bytes.fromhex(ROWIDS[0][0])
    assert rowid_to_text(column_of([raw, extended])).values() == [
        b"0000096B.0007.0000",
        ROWIDS[0][1].encode(),
    ]


@pytest.mark.parametrize("raw", ["01", "0102030405060708090a0b", "01" * 9])
def test_malformed_bytes_are_refused(raw: str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_rowid(bytes.fromhex(raw))
    with pytest.raises(OlrPgError, match="OLR-02050") as caught:
        rowid_to_text(column_of([None, bytes.fromhex(raw)]))
    assert caught.value.where["row"] == 1
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_urowid(bytes.fromhex(raw))
