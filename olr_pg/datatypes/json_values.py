"""Converts column values to JSON, in the output format of ``olr-pg decode``
(docs/decode-output.md).

A NUMBER becomes an exact JSON number. orjson has no exact decimals, so it receives the number as
finished text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import orjson

from olr_pg.datatypes.binary_float import decode_binary_float, decode_boolean, shortest
from olr_pg.datatypes.charsets import column_charset, lob_charset
from olr_pg.datatypes.interval import decode_day_second, decode_year_month
from olr_pg.datatypes.json_text import json_text
from olr_pg.datatypes.mapping import CHARACTER_TYPES, LOB_TYPES, OracleType
from olr_pg.datatypes.number import decode_number
from olr_pg.datatypes.oson import decode_oson
from olr_pg.datatypes.policies import DEFAULT_POLICIES, Policies
from olr_pg.datatypes.raw import decode_raw, decode_rowid, decode_urowid
from olr_pg.datatypes.temporal import (
    decode_date,
    decode_timestamp,
    decode_timestamp_tz,
    local_isoformat,
)
from olr_pg.datatypes.text import decode_text_by_policy
from olr_pg.datatypes.vector import decode_vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.datatypes.charsets import Charset
    from olr_pg.datatypes.mapping import OracleColumn

    JsonValue = str | bool | None | orjson.Fragment
    JsonConverter = Callable[[bytes | None], JsonValue]


def _number(raw: bytes) -> JsonValue:
    text = decode_number(raw)
    return text if text.endswith("y") else orjson.Fragment(text)


def _binary(width: int) -> Callable[[bytes], JsonValue]:
    def convert(raw: bytes) -> JsonValue:
        value = decode_binary_float(raw, width)
        text = shortest(value, width)
        return orjson.Fragment(text) if math.isfinite(value) else text

    return convert


_CONVERTERS: Final[dict[int, Callable[[bytes], JsonValue]]] = {
    OracleType.NUMBER: _number,
    OracleType.DATE: lambda raw: decode_date(raw).isoformat(),
    OracleType.TIMESTAMP: lambda raw: decode_timestamp(raw).isoformat(),
    OracleType.TIMESTAMP_TZ: lambda raw: decode_timestamp_tz(raw).isoformat(),
    OracleType.INTERVAL_YM: lambda raw: decode_year_month(raw).isoformat(),
    OracleType.INTERVAL_DS: lambda raw: decode_day_second(raw).isoformat(),
    OracleType.BINARY_FLOAT: _binary(4),
    OracleType.BINARY_DOUBLE: _binary(8),
    OracleType.ROWID: decode_rowid,
    OracleType.UROWID: decode_urowid,
    OracleType.BOOLEAN: decode_boolean,
    OracleType.VECTOR: lambda raw: orjson.Fragment(json_text(decode_vector(raw))[0]),
}


def json_converter(
    column: OracleColumn,
    *,
    charset: str = "AL32UTF8",
    ncharset: str = "AL16UTF16",
    timezone: str = "+00:00",
    policies: Policies = DEFAULT_POLICIES,
) -> JsonConverter:
    """Return the function that converts a column's values to JSON. Call this function once per
    column.

    Args:
        charset, ncharset: NLS_CHARACTERSET and NLS_NCHAR_CHARACTERSET.
        timezone: DBTIMEZONE, for TIMESTAMP WITH LOCAL TIME ZONE.
        policies: only `undecodable` applies; U+0000 is kept.

    Returns:
        A function that converts Oracle's bytes, or None for NULL, to a value that orjson can write.
        The function raises OlrPgError 2050 or 2051 for bytes that are not a valid value of the
        type.

    Raises:
        OlrPgError: 2056, the column's character set has no decoder.
    """
    if column.type_code in CHARACTER_TYPES:
        found = column_charset(column.charset_form, column.charset_id, charset, ncharset)
        convert = _text(found, policies)
    elif column.type_code == OracleType.CLOB:
        convert = _text(lob_charset(column.charset_form, column.charset_id, charset), policies)
    elif column.type_code == OracleType.JSON:
        convert = _document(policies)
    elif column.type_code == OracleType.TIMESTAMP_LTZ:
        convert = _local(timezone)
    else:
        # Types without a converter (BLOBs, objects) are written in hex, like RAW.
        convert = _CONVERTERS.get(column.type_code, decode_raw)
    if column.type_code in LOB_TYPES:
        # An empty LOB is not NULL.
        return lambda raw: None if raw is None else convert(raw)

    def converter(raw: bytes | None) -> JsonValue:
        return convert(raw) if raw else None

    return converter


def _text(charset: Charset, policies: Policies) -> Callable[[bytes], JsonValue]:
    return lambda raw: decode_text_by_policy(raw, charset, policies)[0]


def _document(policies: Policies) -> Callable[[bytes], JsonValue]:
    return lambda raw: orjson.Fragment(json_text(decode_oson(raw, policies)[0], None)[0])


def _local(timezone: str) -> Callable[[bytes], JsonValue]:
    return lambda raw: local_isoformat(decode_timestamp(raw), timezone)
