"""Converts JSON values to text: values decoded from OSON images, and values returned by
python-oracledb.

A value of a type that JSON does not have becomes a string: dates and intervals in ISO 8601, binary
values in lower-case hex, infinities and NaN by name. Numbers are exact.
"""

from __future__ import annotations

import array
import datetime
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import orjson

from olr_pg.datatypes.binary_float import shortest
from olr_pg.datatypes.columns import per_distinct
from olr_pg.datatypes.interval import DaySecond, YearMonth
from olr_pg.datatypes.oson import Single, decode_oson
from olr_pg.datatypes.policies import DEFAULT_POLICIES, Counters, Policies
from olr_pg.datatypes.temporal import DateTime, ZonedDateTime
from olr_pg.datatypes.vector import VectorValue
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.datatypes.columns import ValueColumn

_NUL: Final = "\0"


def oson_to_json(
    values: ValueColumn, policies: Policies, prefix: bytes = b""
) -> tuple[ValueColumn, Counters]:
    """Convert OSON images to JSON text in UTF-8, with `prefix` before each.

    Raises:
        OlrPgError: 2050 the bytes are not an OSON image; 2051, 2052 the policies refuse a text.
    """
    undecodable = nul = 0

    def convert(raw: bytes) -> bytes:
        nonlocal undecodable, nul
        document, bad = decode_oson(raw, policies)
        text, nuls = json_text(document, policies)
        undecodable += bool(bad)
        nul += bool(nuls)
        return prefix + text

    column = per_distinct(values, convert)
    return column, Counters(undecodable=undecodable, nul=nul)


def json_text(value: Any, policies: Policies | None = DEFAULT_POLICIES) -> tuple[bytes, int]:
    """Return (JSON text in UTF-8, number of strings that contained U+0000).

    Args:
        value: a result of `decode_oson`, or a JSON column's value from python-oracledb.
        policies: only `nul` applies; None to keep U+0000.

    Raises:
        OlrPgError: 2052 U+0000 is found and the policy makes it an error; 2058 `value` is not a
            JSON value.
    """
    writer = _Writer(policies)
    parts = list(writer.parts(value))
    return b"".join(parts), writer.nuls


class _Writer:
    def __init__(self, policies: Policies | None) -> None:
        self._policies = policies
        self.nuls = 0

    def parts(self, root: Any) -> Iterator[bytes]:
        """Yield the text in pieces, depth first. The generator does not recurse, because documents
        may be nested deeply.
        """
        waiting: list[Any] = [root]
        while waiting:
            value = waiting.pop()
            if isinstance(value, _Written):
                yield value.text
            elif isinstance(value, dict):
                yield b"{"
                waiting.append(_Written(b"}"))
                for i, (name, child) in enumerate(reversed(value.items())):
                    comma = b"" if i == len(value) - 1 else b","
                    waiting += [child, _Written(comma + self._string(name) + b":")]
            elif isinstance(value, list):
                yield b"["
                waiting.append(_Written(b"]"))
                for i, child in enumerate(reversed(value)):
                    waiting += [child] if i == len(value) - 1 else [child, _Written(b",")]
            else:
                yield self._scalar(value)

    def _scalar(self, value: Any) -> bytes:
        match value:
            case str():
                return self._string(value)
            case None | bool():
                return orjson.dumps(value)
            case int():
                return b"%d" % value
            case Decimal():
                return _decimal(value)
            case Single():
                return _finite(value, shortest(value, 4))
            case float():
                return _finite(value, shortest(value, 8))
            case bytes():
                return self._string(value.hex())
            case VectorValue():
                return _elements(value)
            case array.array():
                return orjson.dumps(value.tolist())
            case datetime.timedelta():
                return self._string(_day_second(value).isoformat())
            case DateTime() | ZonedDateTime() | YearMonth() | DaySecond():
                return self._string(value.isoformat())
            case datetime.datetime():
                return self._string(_date_time(value).isoformat())
        if hasattr(value, "years") and hasattr(value, "months"):
            return self._string(YearMonth(12 * value.years + value.months).isoformat())
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"no JSON value: {type(value).__name__}"
        )

    def _string(self, text: str) -> bytes:
        if self._policies is not None and _NUL in text:
            if self._policies.nul == "error":
                raise OlrPgError(Code.TEXT_HAS_NUL, "in a JSON document")
            self.nuls += 1
            text = text.replace(_NUL, "" if self._policies.nul == "remove" else "\ufffd")
        return orjson.dumps(text)


class _Written:
    """Text that is already JSON."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


def _finite(value: float, text: str) -> bytes:
    return text.encode() if math.isfinite(value) else orjson.dumps(text)


def _elements(vector: VectorValue) -> bytes:
    elements = vector.dense()
    if elements.dtype.kind != "f":
        return orjson.dumps(elements.tolist())
    width = elements.itemsize
    return b"[" + b",".join(_finite(v, shortest(v, width)) for v in elements.tolist()) + b"]"


def _decimal(value: Decimal) -> bytes:
    if not value.is_finite():
        return b'"NaN"' if value.is_nan() else b'"Infinity"' if value > 0 else b'"-Infinity"'
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return b"0" if text in ("-0", "") else text.encode()


def _date_time(value: datetime.datetime) -> DateTime:
    return DateTime(
        value.year, value.month, value.day, value.hour, value.minute, value.second,
        value.microsecond * 1000,
    )  # fmt: skip


def _day_second(value: datetime.timedelta) -> DaySecond:
    seconds = value.days * 86_400 + value.seconds
    return DaySecond((seconds * 1_000_000 + value.microseconds) * 1000)
