"""Column values of the model: each with its stored bytes and its printed form.

The bytes and the printed form are made from the same Python value, without the decoder's code. The
encodings are described in values-and-lobs Part A; the printed form is that of ``olr-pg decode``.

This module also has the bytes of LOB locators and LOB index rows (values-and-lobs §16, §19, §26),
and the fields of the change vectors that write LOB pages and lists (values-and-lobs §18–§23).

The vectors 26.6 and 11.17 have the layout of real ones; the other vectors have the layout that
values-and-lobs describes.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import orjson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.fields.redo_format import RedoFormat


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


SECURE_OVERHEAD: Final = 132
BASIC_OVERHEAD: Final = 60
"""Bytes of a block that are not payload (values-and-lobs §18.4)."""

PAGE: Final = 8192 - SECURE_OVERHEAD
BASIC_PAGE: Final = 8192 - BASIC_OVERHEAD
POINTERS_MAX: Final = 12
"""Maximum number of page addresses in a BASICFILE locator."""

BLOB, CLOB, NCLOB = 1, 2, 4


def lob_id(number: int) -> bytes:
    """Encode a LOB id."""
    return b"\0\0\0\1" + number.to_bytes(6)


def locator_head(
    kind: int, number: int, *, secure: bool, inode: bool = True, wide: bool = True
) -> bytes:
    """Encode the first 20 bytes of a locator; `wide` for a CLOB of a multi-byte database."""
    character = 2 if kind != BLOB and wide else 1
    flags = 0x80 if kind != BLOB and wide else 0
    return (
        struct.pack(">HHBBBBH", 0x70, 1, kind, 0x0C if inode else 0x08, flags,
                    0x80 if secure else 0, character) + lob_id(number)
    )  # fmt: skip


def width_of(number: int) -> int:
    """Return the number of bytes that a number needs, at least 1."""
    return max(1, (number.bit_length() + 7) // 8)


def _secure_inode(inode: bytes, flags: int) -> bytes:
    return struct.pack(">HBBH", len(inode) + 6, flags, 0x90, len(inode)) + inode


def secure_in_row(
    kind: int, number: int, content: bytes, version: int = 1, *, wide: bool = True
) -> bytes:
    """Encode a SECUREFILE locator that contains the value (values-and-lobs §26)."""
    size = width_of(len(content))
    inode = bytes((size - 1, 0)) + len(content).to_bytes(size) + bytes((version,)) + content
    return locator_head(kind, number, secure=True, wide=wide) + _secure_inode(inode, 0x48)


def secure_extents(
    kind: int,
    number: int,
    length: int,
    extents: Sequence[tuple[int, int]],
    version: int = 1,
    *,
    page: int = PAGE,
    wide: bool = True,
) -> bytes:
    """Encode a SECUREFILE locator with extents of (first block, number of blocks)."""
    size = width_of(length)
    left, listed = length, b""
    for first, blocks in extents:
        own = min(left, blocks * page)
        left -= own
        listed += bytes((width_of(own) - 1,)) + first.to_bytes(4) + bytes((blocks,))
    inode = bytes((0x20 | size - 1, 0)) + length.to_bytes(size) + bytes((version,))
    inode += bytes((len(extents) - 1,)) + listed
    return locator_head(kind, number, secure=True, wide=wide) + _secure_inode(inode, 0x40)


def secure_header(
    kind: int, number: int, length: int, dba: int, version: int = 1, *, wide: bool = True
) -> bytes:
    """Encode a SECUREFILE locator with the address of a header block."""
    size = width_of(length)
    inode = bytes((0x40 | size - 1, 0)) + length.to_bytes(size)
    inode += bytes((version,)) + dba.to_bytes(4)
    return locator_head(kind, number, secure=True, wide=wide) + _secure_inode(inode, 0x40)


def basic_in_row(kind: int, number: int, content: bytes, *, wide: bool = True) -> bytes:
    """Encode a BASICFILE locator that contains the value."""
    return (
        locator_head(kind, number, secure=False, wide=wide)
        + struct.pack(">HBBIH6s", len(content) + 16, 9, 0, 0, len(content), b"\0\0\0\0\0\1")
        + content
    )


def basic_pointers(
    kind: int,
    number: int,
    length: int,
    pages: Sequence[int],
    *,
    page: int = BASIC_PAGE,
    wide: bool = True,
) -> bytes:
    """Encode a BASICFILE locator with the addresses of the value's first pages."""
    listed = b"".join(dba.to_bytes(4) for dba in pages)
    full, rest = divmod(length, page)
    return (
        locator_head(kind, number, secure=False, wide=wide)
        + struct.pack(">HBBIH6s", len(listed) + 16, 4, 0, full, rest, b"\0\0\0\0\0\1")
        + listed
    )


def basic_outside(kind: int, number: int, *, wide: bool = True) -> bytes:
    """Encode the 20-byte locator of a BASICFILE LOB that is never stored in the row."""
    return locator_head(kind, number, secure=False, inode=False, wide=wide)


def index_data(number: int, length: int, blocks: Sequence[int], *, page: int = BASIC_PAGE) -> bytes:
    """Encode the 32 bytes of the LOB index row of page `number`."""
    listed = b"".join(block.to_bytes(4) for block in blocks)
    if number:
        return listed.ljust(32, b"\0")
    full, rest = divmod(length, page)
    return (struct.pack(">IIH6s", 0, full, rest, b"\0\0\0\0\0\1") + listed).ljust(32, b"\0")


def index_key(number: int, page: int) -> bytes:
    """Encode the 16 bytes of a LOB index key."""
    return b"\x0a" + lob_id(number) + b"\x04" + page.to_bytes(4)


COMMON_REDO: Final = 0
COMMON_UNDO: Final = 1
COMMON_IMAGE: Final = 6
TYPE_HEADER: Final = 0x10
TYPE_DATA: Final = 0x20

LOB_BLOCK: Final = b"\x28"
"""Type of a BASICFILE LOB's block in a tablespace with automatic segment space management."""

OPERATION_WRITE: Final = 0x02
OPERATION_TRIM: Final = 0x66
OPERATION_ERASE: Final = 0x68


def kdli_common(redo: RedoFormat, op: int, kind: int, dba: int, *, page: int = PAGE) -> bytes:
    """Encode the KDLI common field of 12 bytes; `page` is the payload of a block in bytes."""
    return redo.pack("BBBBHHI", op, kind, 2, 0, page, 128, dba)


def load_data_item(redo: RedoFormat, number: int, size: int) -> bytes:
    """Encode the load data item of 56 bytes; the next field has `size` bytes of payload."""
    return b"\x04\0" + bytes(10) + lob_id(number) + bytes(30) + redo.pack("I", size)


def direct_load_item(
    redo: RedoFormat, scn: int, xid: bytes, dataobj: int, *, block: int = PAGE + SECURE_OVERHEAD
) -> bytes:
    """Encode the fpload item of 32 bytes."""
    head = redo.pack("BBHI", 0x0B, 0, 0, block)
    return head + redo.scn8(scn) + xid + redo.pack("II", dataobj, 0)


def logged_item(redo: RedoFormat, xid: bytes, table: int, column: int) -> bytes:
    """Encode the suplog item of 24 bytes; `column` counts from 1."""
    return b"\x09\0\0\0" + xid + redo.pack("IHHI", table, 1, column, 0)


def info_item(number: int) -> bytes:
    """Encode the info item, which names the LOB."""
    return b"\x01" + lob_id(number) + bytes(6)


def fill_item(redo: RedoFormat, offset: int, content: bytes, *, page: int = PAGE) -> bytes:
    """Encode the fill item: bytes at an offset of the page."""
    return redo.pack("BBHHH", 6, 0, offset, page, len(content)) + content


def zero_item(redo: RedoFormat, offset: int, size: int) -> bytes:
    """Encode the zero item: `size` zeros at an offset of the page."""
    return redo.pack("BBHHH", 5, 0, offset, size, 0)


def _runs(redo: RedoFormat, runs: Sequence[tuple[int, int]]) -> bytes:
    return b"".join(redo.pack("BBHI", 0, 0, count, first) for first, count in runs)


def list_item(redo: RedoFormat, runs: Sequence[tuple[int, int]]) -> bytes:
    """Encode the lmap item: the whole list of a block, with entries of (first block, blocks)."""
    return redo.pack("BBHI", 7, 0, 0, len(runs)) + _runs(redo, runs)


def list_part_item(redo: RedoFormat, start: int, runs: Sequence[tuple[int, int]]) -> bytes:
    """Encode the almap item: entries of a list from `start` on."""
    return redo.pack("BBHII", 0x0D, 0, 0, len(runs), start) + _runs(redo, runs)


def header_item(redo: RedoFormat, number: int, length: int, lists: Sequence[int]) -> bytes:
    """Encode the load LHB item: a LOB header block with up to four list blocks."""
    item = bytearray(112)
    item[0] = 0x0C
    item[12:22] = lob_id(number)
    item[32:36] = redo.pack("I", length)
    item[64:80] = redo.pack("IIII", *(list(lists) + [0] * 4)[:4])
    return bytes(item)


def long_field(redo: RedoFormat, dataobj: int, number: int, page: int, payload: bytes) -> bytes:
    """Encode the first field of a 19.1 with page number `page` of a BASICFILE LOB, without padding.

    The second field of the 19.1 is the type of the block, here `LOB_BLOCK`.
    """
    head = redo.pack("I", dataobj) + lob_id(number) + bytes(2)
    return head + redo.pack("IHHIII", 1, 0, 0, page, 0, 0) + payload


def operation_fields(
    redo: RedoFormat,
    code: int,
    xid: bytes,
    number: int,
    *,
    column: int,
    table: int,
    size: int,
    offset: int = 1,
    page: int = PAGE,
) -> list[bytes]:
    """Encode the fields of an 11.17 of kind 1; `column` and `offset` count from 1."""
    third = bytes((code, 0, 0, 0)) + xid + lob_id(number)
    third += redo.pack("HIIII", column, offset, page, size, table) + bytes(40)
    return [bytes(16), b"\1", third, bytes(8)]
