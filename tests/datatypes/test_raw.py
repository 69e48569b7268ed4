"""RAW and LONG RAW."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.raw import decode_raw, raw_to_bytea, raw_to_text, raw_to_uuid
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable


@given(st.lists(st.none() | st.binary(min_size=1)))
def test_round_trip_and_columns(raws: list[bytes | None]) -> None:
    values = column_of(raws)
    assert raw_to_bytea(values).values() == raws
    texts = [None if raw is None else decode_raw(raw) for raw in raws]
    assert raw_to_text(values).values() == [
        text if text is None else text.encode() for text in texts
    ]
    assert [None if text is None else bytes.fromhex(text) for text in texts] == raws


def test_postgresql_prints_the_bytes(judge: Callable[..., list[str | None]]) -> None:
    values = column_of([b"\xca\xfe\xba\xbe", b"\x00\x01\xff", None, b""])
    assert judge("bytea", raw_to_bytea(values)) == ["\\xcafebabe", "\\x0001ff", None, None]
    uuids = raw_to_uuid(column_of([bytes(range(16)), None]))
    assert judge("uuid", uuids) == ["00010203-0405-0607-0809-0a0b0c0d0e0f", None]


def test_uuid_takes_16_bytes_only() -> None:
    with pytest.raises(OlrPgError, match="OLR-02053") as caught:
        raw_to_uuid(column_of([bytes(16), b"short"]))
    assert caught.value.where["row"] == 1
