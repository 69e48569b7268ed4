"""Every value of the shared vectors' values.json, both ways."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest

from olr_pg.datatypes.binary_float import decode_binary_float, encode_binary_float
from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.interval import YearMonth, decode_year_month, encode_year_month
from olr_pg.datatypes.json_text import json_text
from olr_pg.datatypes.lob_locator import LobForm, decode_locator
from olr_pg.datatypes.number import decode_number, encode_number
from olr_pg.datatypes.oson import decode_oson
from olr_pg.datatypes.raw import decode_rowid
from olr_pg.datatypes.temporal import DateTime, decode_timestamp, encode_date, encode_timestamp
from olr_pg.datatypes.text import encode_text
from olr_pg.datatypes.vector import VectorFormat, decode_vector, encode_vector
from olr_pg.scalars import decode_redo_time, encode_redo_time, format_rowid
from tests.datatypes.oson_images import encode_oson
from tests.datatypes.strict_text import decode_text
from tests.datatypes.urowids import encode_rowid
from tests.vectors.redo_cases import vectors_dir

if TYPE_CHECKING:
    from collections.abc import Callable

Entry = dict[str, Any]


def entries() -> list[Entry]:
    path = vectors_dir() / "values.json"
    values: list[Entry] = json.loads(path.read_text("utf-8"))["values"] if path.is_file() else []
    return values


def _number(entry: Entry, raw: bytes) -> None:
    assert decode_number(raw) == entry["expected"]
    assert encode_number(Decimal(entry["expected"])) == raw


def _binary_float(entry: Entry, raw: bytes) -> None:
    assert decode_binary_float(raw, 4) == entry["expected"]
    assert encode_binary_float(entry["expected"], 4) == raw


def _text(entry: Entry, raw: bytes) -> None:
    assert decode_text(raw, charset("AL32UTF8")) == entry["expected"]
    assert encode_text(entry["expected"], charset("AL32UTF8")) == raw


def _year_month(entry: Entry, raw: bytes) -> None:
    expected = entry["expected"]
    assert decode_year_month(raw).isoformat() == expected["iso8601"]
    assert encode_year_month(YearMonth(12 * expected["years"] + expected["months"])) == raw


def _when(text: str) -> DateTime:
    whole, _, fraction = text.partition(".")
    at = datetime.fromisoformat(whole)
    return DateTime(
        at.year, at.month, at.day, at.hour, at.minute, at.second, int(fraction.ljust(9, "0") or 0)
    )


def _date(entry: Entry, raw: bytes) -> None:
    assert decode_timestamp(raw) == _when(entry["expected"])
    assert encode_date(_when(entry["expected"])) == raw


def _timestamp(entry: Entry, raw: bytes) -> None:
    assert decode_timestamp(raw) == _when(entry["expected"])
    assert encode_timestamp(_when(entry["expected"])) == raw


def _redo_time(entry: Entry, raw: bytes) -> None:
    stored = int.from_bytes(raw, "little")
    assert decode_redo_time(stored) == datetime.fromisoformat(entry["expected"])
    assert encode_redo_time(datetime.fromisoformat(entry["expected"])) == stored


def _rowid(entry: Entry, _: bytes) -> None:
    parts = entry["data_object_id"], entry["dba"], entry["row"]
    assert entry["dba"] == entry["relative_file"] << 22 | entry["block"]
    raw = b"".join(part.to_bytes(size) for part, size in zip(parts, (4, 4, 2), strict=True))
    assert decode_rowid(raw) == entry["expected"]
    assert encode_rowid(entry["expected"]) == raw
    assert format_rowid(*parts) == entry["expected"]


def _content(raw: bytes) -> bytes:
    locator = decode_locator(raw)
    assert locator.form is LobForm.INLINE
    return raw[locator.start : locator.start + locator.size]


def _oson(entry: Entry, raw: bytes) -> None:
    document, undecodable = decode_oson(_content(raw))
    assert document == entry["expected"]
    assert undecodable == 0
    assert orjson.loads(json_text(document)[0]) == orjson.loads(entry["expected_text"])
    assert decode_oson(encode_oson(document)) == (document, 0)


def _vector(entry: Entry, raw: bytes) -> None:
    vector = decode_vector(_content(raw))
    expected = entry["expected"]
    assert vector.format is VectorFormat[expected["element_type"]]
    assert vector.dimensions == expected["element_count"]
    values = np.array(entry["derived"]["values"]).astype(vector.values.dtype)
    assert np.array_equal(vector.values, values)
    assert np.array_equal(decode_vector(encode_vector(vector)).values, values)


CHECKS: dict[str, Callable[[Entry, bytes], None]] = {
    "NUMBER": _number,
    "BINARY_FLOAT": _binary_float,
    "VARCHAR2 (AL32UTF8)": _text,
    "INTERVAL YEAR TO MONTH": _year_month,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
    "REDO_TIMESTAMP (u32 at offset 64 of a 68-byte record header)": _redo_time,
    "ROWID": _rowid,
    "JSON (OSON in an inline SecureFile LOB)": _oson,
    "VECTOR(FLOAT32) in an inline SecureFile LOB": _vector,
    "VECTOR(INT8) in an inline SecureFile LOB": _vector,
}

VALUES = entries()


@pytest.mark.skipif(not VALUES, reason="no value vectors here (set OLR_PG_VECTORS)")
@pytest.mark.parametrize("entry", VALUES, ids=[entry["id"] for entry in VALUES])
def test_every_value_both_ways(entry: Entry) -> None:
    CHECKS[entry["type"]](entry, bytes.fromhex(entry["hex"] or ""))
