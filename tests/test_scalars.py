"""Identities in their printed forms, both ways."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.scalars import (
    Rba,
    decode_redo_time,
    encode_redo_time,
    format_rowid,
    format_xid,
    pack_xid,
    parse_rba,
    parse_rowid,
    parse_xid,
    unpack_xid,
)

U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFFFFFF)


def test_the_examples_of_the_format() -> None:
    assert parse_rba("0x00000f.00000244.0168") == parse_rba("15.580.360") == Rba(15, 580, 360)
    assert str(Rba(15, 580, 360)) == "0x00000f.00000244.0168"
    assert parse_xid("0x000A.00C.0000023C") == parse_xid("10.12.572") == pack_xid(10, 12, 572)
    assert format_xid(pack_xid(10, 12, 572)) == "10.12.572"
    assert format_rowid(1, 4 << 22 | 2, 3) == "AAAAABAAEAAAAACAAD"


@given(U16, U16, U32)
def test_an_xid_comes_back(usn: int, slot: int, sequence: int) -> None:
    assert unpack_xid(pack_xid(usn, slot, sequence)) == (usn, slot, sequence)


@given(U32, U32, U16)
def test_a_rowid_comes_back(obj: int, dba: int, slot: int) -> None:
    text = format_rowid(obj, dba, slot)
    assert len(text) == 18
    assert parse_rowid(text) == (obj, dba, slot)


@given(st.datetimes(datetime(1988, 1, 1), datetime(2120, 1, 1)))  # noqa: DTZ001 - no zone is stored
def test_a_redo_time_comes_back(when: datetime) -> None:
    assert decode_redo_time(encode_redo_time(when)) == when.replace(microsecond=0)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_rba, "1.2"),
        (parse_rba, "a.b.c"),
        (parse_xid, "1"),
        (parse_rowid, "AAA"),
        (parse_rowid, "*" * 18),
    ],
)
def test_other_texts_are_refused(parse: object, text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(text)  # type: ignore[operator]
