"""OSON images of documents in the smallest valid form (values-and-lobs §26)."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from olr_pg.datatypes.binary_float import encode_binary_float
from olr_pg.datatypes.interval import DaySecond, YearMonth, encode_day_second, encode_year_month
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.oson import Single
from olr_pg.datatypes.temporal import DateTime, ZonedDateTime, encode_timestamp
from olr_pg.datatypes.vector import VectorValue, encode_vector
from tests.datatypes.zoned_timestamps import encode_timestamp_tz

if TYPE_CHECKING:
    from olr_pg.datatypes.oson import Json

_MAGIC: Final = b"\xffJZ"
_COUNT_U32: Final = 0x0008
_SCALAR: Final = 0x0010
_COUNT_U16: Final = 0x0400
_NAMES_U32: Final = 0x0800
_TREE_U32: Final = 0x1000
_STRINGS: Final = {0x33: 1, 0x37: 2, 0x38: 4}


def encode_oson(value: Json) -> bytes:
    """Encode a document as an image; names of fields have up to 255 bytes."""
    if not isinstance(value, dict | list):
        leaf = _leaf_bytes(value)
        return _MAGIC + b"\x01" + (_SCALAR | 0x1006).to_bytes(2) + len(leaf).to_bytes(4) + leaf
    names = sorted(_field_names(value), key=lambda name: (_hash(name) & 0xFF, len(name), name))
    segment, offsets = bytearray(), []
    for name in names:
        offsets.append(len(segment))
        segment += bytes([len(name)]) + name
    width = 1 if len(names) < 1 << 8 else 2 if len(names) < 1 << 16 else 4
    tree = _Tree({name.decode(): i + 1 for i, name in enumerate(names)}, width)
    tree.write(value)
    counts = {1: 0, 2: _COUNT_U16, 4: _COUNT_U32}
    flags = 0x2106 | counts[width] | _NAMES_U32 | _TREE_U32
    return b"".join(
        (
            _MAGIC, b"\x01", flags.to_bytes(2), len(names).to_bytes(width),
            len(segment).to_bytes(4), len(tree.out).to_bytes(4), bytes(2),
            bytes(_hash(name) & 0xFF for name in names),
            b"".join(offset.to_bytes(4) for offset in offsets), segment, tree.out,
        )
    )  # fmt: skip


class _Tree:
    """The tree segment in the making: containers first, then what is in them."""

    def __init__(self, ids: dict[str, int], width: int) -> None:
        self.out = bytearray()
        self._ids = ids
        self._width = width

    def write(self, root: Json) -> None:
        waiting: list[tuple[Json, int]] = [(root, -1)]
        while waiting:
            value, place = waiting.pop()
            if place >= 0:
                self.out[place : place + 4] = len(self.out).to_bytes(4)
            if not isinstance(value, dict | list):
                self.out += _leaf_bytes(value)
                continue
            children = list(value.values()) if isinstance(value, dict) else value
            self.out += bytes([0xB4 if isinstance(value, dict) else 0xF0])
            self.out += len(children).to_bytes(4)
            for name in value if isinstance(value, dict) else ():
                self.out += self._ids[name].to_bytes(self._width)
            first = len(self.out)
            self.out += bytes(4 * len(children))
            waiting.extend((child, first + 4 * i) for i, child in enumerate(children))


def _field_names(root: Json) -> set[bytes]:
    names: set[bytes] = set()
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            names.update(name.encode() for name in value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return names


def _hash(name: bytes) -> int:
    digest = 0x811C9DC5
    for byte in name:
        digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
    return digest


def _sized(raw: bytes, codes: dict[int, int]) -> bytes:
    for code, width in codes.items():
        if len(raw) < 1 << 8 * width:
            return bytes([code]) + len(raw).to_bytes(width) + raw
    raise ValueError(len(raw))


def _leaf_bytes(value: Any) -> bytes:
    match value:
        case None:
            return b"\x30"
        case bool():
            return b"\x31" if value else b"\x32"
        case str():
            return _sized(value.encode(), _STRINGS)
        case bytes():
            return _sized(value, {0x3A: 2, 0x3B: 4})
        case Decimal() | int():
            raw = encode_number(value)
            return bytes([0x34, len(raw)]) + raw
        case Single():
            return b"\x7f" + encode_binary_float(value, 4)
        case float():
            return b"\x36" + encode_binary_float(value, 8)
        case DateTime():
            raw = encode_timestamp(value)
            return (b"\x7d" if len(raw) == 7 else b"\x39") + raw
        case ZonedDateTime():
            return b"\x7c" + encode_timestamp_tz(value)
        case YearMonth():
            return b"\x3d" + encode_year_month(value)
        case DaySecond():
            return b"\x3e" + encode_day_second(value)
        case VectorValue():
            raw = encode_vector(value)
            return b"\x7b\x01" + len(raw).to_bytes(4) + raw
    raise TypeError(type(value).__name__)
