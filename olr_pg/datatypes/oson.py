"""OSON, the binary form of JSON columns: decoding and encoding of images (values-and-lobs §12).

Decoding does not recurse, and its work is limited. An image is refused if its offsets form a cycle,
point outside of the image, or require more work than a fixed multiple of its size.
`olr_pg.datatypes.json_text` writes the decoded values as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, Union

from olr_pg.datatypes.binary_float import decode_binary_float
from olr_pg.datatypes.charsets import AL32UTF8, charset
from olr_pg.datatypes.interval import (
    DaySecond,
    YearMonth,
    decode_day_second,
    decode_year_month,
)
from olr_pg.datatypes.number import decode_number
from olr_pg.datatypes.outcomes import malformed
from olr_pg.datatypes.policies import DEFAULT_POLICIES, Policies
from olr_pg.datatypes.temporal import (
    DateTime,
    ZonedDateTime,
    decode_date,
    decode_timestamp,
    decode_timestamp_tz,
)
from olr_pg.datatypes.text import decode_text_by_policy
from olr_pg.datatypes.vector import VectorValue, decode_vector

if TYPE_CHECKING:
    from collections.abc import Callable


class Single(float):
    """A BINARY_FLOAT value. Its shortest text can have fewer digits than the shortest text of the
    same value as a double.
    """


Leaf: TypeAlias = (
    str
    | bool
    | Decimal
    | float
    | bytes
    | DateTime
    | ZonedDateTime
    | YearMonth
    | DaySecond
    | VectorValue
    | None
)
Json: TypeAlias = Union[Leaf, "dict[str, Json]", "list[Json]"]
"""A JSON value. A number is a `Decimal`, a BINARY_FLOAT is a `Single`, a BINARY_DOUBLE is a
`float`.
"""

DEPTH_MAX: Final = 1024
"""The maximum nesting depth: Oracle's own limit."""

_MAGIC: Final = b"\xffJZ"
_RELATIVE: Final = 0x0001
_COUNT_U32: Final = 0x0008
_SCALAR: Final = 0x0010
_COUNT_U16: Final = 0x0400
_NAMES_U32: Final = 0x0800
_TREE_U32: Final = 0x1000
_LONG_NAMES_U16: Final = 0x0100
_REPEATS_MAX: Final = 64
_TYPE: Final = "JSON (OSON)"


@dataclass(slots=True)
class _Frame:
    """A container that is being read, with the keys and offsets of its children."""

    value: dict[str, Json] | list[Json]
    keys: list[str]
    offsets: list[int]
    done: int = 0


class _Image:
    """An OSON image. Every read is checked against the bounds of the image."""

    def __init__(self, raw: bytes, policies: Policies) -> None:
        self.raw = raw
        self.at = 0
        self.policies = policies
        self.undecodable = 0
        self._names: list[str] = []
        self._id_width = 1
        self._tree = self._end = 0
        self._flags = 0
        self._budget = 0

    def fail(self) -> NoReturn:
        raise malformed(_TYPE, self.raw)

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.raw):
            self.fail()
        self.at += size
        return self.raw[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def text(self, size: int) -> str:
        text, bad = decode_text_by_policy(self.take(size), charset(AL32UTF8), self.policies)
        self.undecodable += bad
        return text

    def read(self) -> Json:
        if self.take(3) != _MAGIC:
            self.fail()
        version = self.number(1)
        self._flags = self.number(2)
        if version not in (1, 3):
            self.fail()
        tree_width = 4 if self._flags & _TREE_U32 else 2
        if self._flags & _SCALAR:
            size = self.number(tree_width)
        else:
            size = self._read_names(version, tree_width)
        self._tree = self.at
        self._end = self._tree + size
        if self._end > len(self.raw):
            self.fail()
        self._budget = _REPEATS_MAX * (size + 1)
        return self._read_tree()

    def _read_names(self, version: int, tree_width: int) -> int:
        count_width = 4 if self._flags & _COUNT_U32 else 2 if self._flags & _COUNT_U16 else 1
        offset_width = 4 if self._flags & _NAMES_U32 else 2
        count, size = self.number(count_width), self.number(offset_width)
        long_width, long_count, long_size = 4, 0, 0
        if version == 3:
            long_width = 2 if self.number(2) & _LONG_NAMES_U16 else 4
            long_count, long_size = self.number(4), self.number(4)
        tree_size = self.number(tree_width)
        self.take(2)
        self._segment(count, 1, offset_width, size, 1)
        if long_count:
            self._segment(long_count, 2, long_width, long_size, 2)
        total = count + long_count
        self._id_width = 1 if total < 1 << 8 else 2 if total < 1 << 16 else 4
        return tree_size

    def _segment(self, count: int, hash_width: int, width: int, size: int, length: int) -> None:
        """Read a segment of field names. It contains the hashes, then the offsets, then the names;
        each name follows its length.
        """
        self.take(count * hash_width)
        offsets = self.take(count * width)
        start = self.at
        end = start + size
        for i in range(0, len(offsets), width):
            self.at = start + int.from_bytes(offsets[i : i + width])
            self._names.append(self.text(self.number(length)))
            if self.at > end:
                self.fail()
        self.at = start
        self.take(size)

    def _read_tree(self) -> Json:
        root = self._node(0)
        if not isinstance(root, _Frame):
            return root
        stack = [root]
        while stack:
            frame = stack[-1]
            if frame.done == len(frame.offsets):
                stack.pop()
                continue
            child = self._node(frame.offsets[frame.done])
            value = child.value if isinstance(child, _Frame) else child
            if isinstance(frame.value, dict):
                frame.value[frame.keys[frame.done]] = value
            else:
                frame.value.append(value)
            frame.done += 1
            if isinstance(child, _Frame):
                if len(stack) == DEPTH_MAX:
                    self.fail()
                stack.append(child)
        return root.value

    def _node(self, offset: int) -> Leaf | _Frame:
        self.at = self._tree + offset
        start = self.at
        code = self.number(1)
        node = self._container(code, offset) if code & 0x80 else self._leaf(code)
        self._budget -= self.at - start
        if self.at > self._end or self._budget < 0:
            self.fail()
        return node

    def _container(self, code: int, offset: int) -> _Frame:
        width = 4 if code & 0x20 else 2
        is_object = not code & 0x40
        ids_at = -1
        shape = code & 0x18
        if shape == 0x18:
            if not is_object:
                self.fail()
            shared = self._tree + self.number(width)
            after, self.at = self.at, shared
            other = self.number(1)
            if other & 0xC0 != 0x80 or other & 0x18 == 0x18:
                self.fail()
            count = self.number(1 << (other >> 3 & 3))
            ids_at, self.at = self.at, after
        else:
            count = self.number(1 << (shape >> 3))
        if count * width > len(self.raw):
            self.fail()
        keys = self._keys(count, ids_at) if is_object else []
        places = self.take(count * width)
        base = offset if self._flags & _RELATIVE else 0
        offsets = [
            base + int.from_bytes(places[i : i + width]) for i in range(0, len(places), width)
        ]
        return _Frame({} if is_object else [], keys, offsets)

    def _keys(self, count: int, ids_at: int) -> list[str]:
        after = self.at
        if ids_at >= 0:
            self.at = ids_at
        width = self._id_width
        ids = self.take(count * width)
        if ids_at >= 0:
            self.at = after
        numbers = [int.from_bytes(ids[i : i + width]) for i in range(0, len(ids), width)]
        if any(not 1 <= number <= len(self._names) for number in numbers):
            self.fail()
        return [self._names[number - 1] for number in numbers]

    def _leaf(self, code: int) -> Leaf:
        if code < 0x20:
            return self.text(code)
        if code & 0xF0 in (0x20, 0x60):
            return self._decimal(code - (code & 0xF0) + 1)
        if code & 0xE0 == 0x40:
            return self._decimal(code & 0x0F)
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _FIXED:
            size, decode = _FIXED[code]
            return decode(self.take(size))
        if code in _STRINGS:
            return self.text(self.number(_STRINGS[code]))
        if code in _BINARIES:
            return self.take(self.number(_BINARIES[code]))
        if code == 0x34:
            return self._decimal(self.number(1))
        if code != 0x7B or self.number(1) != 1:
            self.fail()
        return decode_vector(self.take(self.number(4)))

    def _decimal(self, size: int) -> Decimal:
        return Decimal(decode_number(self.take(size)))


def _float(raw: bytes) -> Leaf:
    return Single(decode_binary_float(raw, 4))


_CONSTANTS: Final[dict[int, Leaf]] = {0x30: None, 0x31: True, 0x32: False}
_STRINGS: Final = {0x33: 1, 0x37: 2, 0x38: 4}
_BINARIES: Final = {0x3A: 2, 0x3B: 4, 0x7E: 1}
_FIXED: Final[dict[int, tuple[int, Callable[[bytes], Leaf]]]] = {
    0x36: (8, lambda raw: decode_binary_float(raw, 8)),
    0x7F: (4, _float),
    0x39: (11, decode_timestamp),
    0x7D: (7, decode_timestamp),
    0x3C: (7, decode_date),
    0x7C: (13, decode_timestamp_tz),
    0x3D: (5, decode_year_month),
    0x3E: (11, decode_day_second),
}


def decode_oson(raw: bytes, policies: Policies = DEFAULT_POLICIES) -> tuple[Json, int]:
    """Decode an image. Returns (the document, the number of its texts that were undecodable).

    Args:
        policies: only `undecodable` applies.

    Raises:
        OlrPgError: 2050 the bytes are not an OSON image; 2051 a text is undecodable, and the policy
            makes this an error.
    """
    image = _Image(raw, policies)
    return image.read(), image.undecodable
