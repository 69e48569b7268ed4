"""Column values of the model: each with its stored bytes and its printed form.

The bytes and the printed form are made from the same Python value, without the decoder's code. The
encodings are described in values-and-lobs Part A; the printed form is that of ``olr-pg decode``.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Final, NamedTuple

import numpy as np
import orjson

MAX_MANTISSA: Final = 20
"""Maximum number of base-100 digits of a NUMBER."""

_TWO_PAIRS: Final = [bytes((1 + at // 100, 1 + at % 100)) for at in range(10_000)]
_NEGATIVE: Final = bytes((102 - pair) % 256 for pair in range(256))

EXACT: Final = Context(prec=64)
"""Decimal arithmetic with enough digits that no NUMBER is rounded."""


class Cell(NamedTuple):
    """A value that is not NULL: its bytes in the row, and its JSON text."""

    raw: bytes
    json: str

    @property
    def content(self) -> bytes:
        """The bytes of the value. A LOB overrides this property, because its bytes may be outside
        the row.
        """
        return self.raw


def json_text(value: str) -> str:
    """Encode a JSON string. A byte that is not UTF-8 (`bytes_text`) is printed as an escaped
    surrogate.
    """
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value)


def text_bytes(value: str) -> bytes:
    """Return the bytes with which the simulated database stores a text, in UTF-8."""
    return value.encode("utf-8", "surrogateescape")


def bytes_text(raw: bytes) -> str:
    """Return the text for bytes of the database. Each byte that is not UTF-8 becomes a lone
    surrogate, so that `text_bytes` restores it.
    """
    return raw.decode("utf-8", "surrogateescape")


def number(value: Decimal) -> Cell:
    """Encode a NUMBER of at most 38 significant digits."""
    value = value.normalize(EXACT)
    if not value:
        return Cell(b"\x80", "0")
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    exponent -= exponent % 2
    return Cell(_number_bytes(int(value.scaleb(-exponent, EXACT)), exponent), f"{value:f}")


def scaled_number(units: int, scale: int) -> Cell:
    """Encode the NUMBER `units` × 10^−`scale`; `scale` is not negative."""
    if not units:
        return Cell(b"\x80", "0")
    sign, rest = "-" * (units < 0), abs(units)
    odd = scale % 2
    stored = _number_bytes(units * (10 if odd else 1), -(scale + odd))
    if not scale:
        return Cell(stored, f"{units}")
    whole, places = divmod(rest, 10**scale)
    decimals = f"{places:0{scale}}".rstrip("0")
    return Cell(stored, f"{sign}{whole}.{decimals}" if decimals else f"{sign}{whole}")


def _number_bytes(digits: int, exponent: int) -> bytes:
    """Encode `digits` times ten to the power of an even `exponent`; not 0."""
    left, parts = abs(digits), list[bytes]()
    while left:
        left, part = divmod(left, 10_000)
        parts.append(_TWO_PAIRS[part])
    parts.reverse()
    all_pairs = b"".join(parts).lstrip(b"\x01")
    pairs = all_pairs.rstrip(b"\x01")
    high = exponent // 2 + len(all_pairs) - 1
    assert -65 <= high <= 62
    assert len(pairs) <= MAX_MANTISSA
    if digits > 0:
        return bytes((193 + high,)) + pairs
    tail = b"\x66" if len(pairs) < MAX_MANTISSA else b""
    return bytes((62 - high,)) + pairs.translate(_NEGATIVE) + tail


def text(value: str, codec: str) -> Cell:
    """Encode a VARCHAR2, NVARCHAR2, CHAR or NCHAR; the caller pads a CHAR with blanks."""
    raw = text_bytes(value) if codec == "utf-8" else value.encode(codec)
    return Cell(raw, json_text(value))


def raw(value: bytes) -> Cell:
    """Encode a RAW."""
    return Cell(value, json_text(value.hex()))


@dataclass(frozen=True, slots=True)
class Moment:
    """Calendar fields without a zone; `year` from -4712 on, `nanosecond` below 10^9."""

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    nanosecond: int = 0

    @property
    def date_bytes(self) -> bytes:
        """The 7 bytes of a DATE."""
        century, year = divmod(abs(self.year), 100)
        if self.year < 0:
            century, year = -century, -year
        return bytes(
            (
                *(century + 100, year + 100, self.month, self.day),
                *(self.hour + 1, self.minute + 1, self.second + 1),
            )
        )

    @property
    def label(self) -> str:
        """The moment in ISO 8601, without a fraction of the second."""
        sign = "-" if self.year < 0 else ""
        date = f"{sign}{abs(self.year):04d}-{self.month:02d}-{self.day:02d}"
        return f"{date}T{self.hour:02d}:{self.minute:02d}:{self.second:02d}"


def _fraction(nanosecond: int) -> str:
    return f".{nanosecond:09d}".rstrip("0") if nanosecond else ""


def date(when: Moment) -> Cell:
    """Encode a DATE."""
    return Cell(when.date_bytes, json_text(when.label))


def timestamp(when: Moment) -> Cell:
    """Encode a TIMESTAMP: 7 bytes if the fraction is zero, else 11."""
    tail = struct.pack(">I", when.nanosecond) if when.nanosecond else b""
    return Cell(when.date_bytes + tail, json_text(when.label + _fraction(when.nanosecond)))


def timestamp_ltz(when: Moment) -> Cell:
    """Encode a TIMESTAMP WITH LOCAL TIME ZONE, of a database whose time zone is UTC."""
    stored = timestamp(when)
    return Cell(stored.raw, json_text(f"{when.label}{_fraction(when.nanosecond)}+00:00"))


def timestamp_tz(utc: Moment, local: Moment, offset_minutes: int) -> Cell:
    """Encode a TIMESTAMP WITH TIME ZONE with a fixed offset; `local` is the local time of `utc`."""
    sign = -1 if offset_minutes < 0 else 1
    hours, minutes = divmod(abs(offset_minutes), 60)
    zone = bytes((20 + sign * hours, 60 + sign * minutes))
    stored = utc.date_bytes + struct.pack(">I", utc.nanosecond) + zone
    label = local.label + _fraction(local.nanosecond)
    return Cell(stored, json_text(f"{label}{'-' if sign < 0 else '+'}{hours:02d}:{minutes:02d}"))


def _duration(parts: list[tuple[int | str, str]], sign: str) -> str:
    return "".join(f"{sign}{amount}{unit}" for amount, unit in parts if amount not in (0, "0"))


def interval_year_to_month(months: int) -> Cell:
    """Encode an INTERVAL YEAR TO MONTH of `months`; it is printed as an ISO 8601 duration."""
    sign = -1 if months < 0 else 1
    years, rest = divmod(abs(months), 12)
    stored = struct.pack(">I", (sign * years) + (1 << 31)) + bytes((60 + sign * rest,))
    label = _duration([(years, "Y"), (rest, "M")], "-" if sign < 0 else "")
    return Cell(stored, json_text("P" + (label or "0M")))


def interval_day_to_second(nanoseconds: int) -> Cell:
    """Encode an INTERVAL DAY TO SECOND of `nanoseconds`; it is printed as an ISO 8601 duration."""
    sign = -1 if nanoseconds < 0 else 1
    seconds, nano = divmod(abs(nanoseconds), 1_000_000_000)
    days, seconds = divmod(seconds, 86400)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    stored = (
        struct.pack(">I", sign * days + (1 << 31))
        + bytes((60 + sign * hours, 60 + sign * minutes, 60 + sign * seconds))
        + struct.pack(">I", sign * nano + (1 << 31))
    )
    mark = "-" if sign < 0 else ""
    clock: list[tuple[int | str, str]] = [
        (hours, "H"),
        (minutes, "M"),
        (f"{seconds}{_fraction(nano)}", "S"),
    ]
    tail = _duration(clock, mark)
    label = "P" + _duration([(days, "D")], mark) + (f"T{tail}" if tail else "")
    return Cell(stored, json_text(label if label != "P" else "PT0S"))


def _ordered_bits(stored: bytes) -> bytes:
    value = int.from_bytes(stored, "big")
    top = 1 << (8 * len(stored) - 1)
    value = value ^ (2 * top - 1) if value & top else value | top
    return value.to_bytes(len(stored), "big")


def binary_double(value: float) -> Cell:
    """Encode a BINARY_DOUBLE."""
    value = value or 0.0  # Oracle has no negative zero.
    return Cell(_ordered_bits(struct.pack(">d", value)), _float_text(value))


def binary_float(value: float) -> Cell:
    """Encode a BINARY_FLOAT; `value` must be exact in 32 bits."""
    value = value or 0.0
    stored = struct.pack(">f", value)
    assert struct.unpack(">f", stored)[0] == value or math.isnan(value)
    return Cell(_ordered_bits(stored), _float_text(np.float32(value)))


def _float_text(value: float | np.float32) -> str:
    if not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
