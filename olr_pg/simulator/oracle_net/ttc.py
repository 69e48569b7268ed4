"""The primitives of Oracle's two-task protocol (TTC): integers, byte strings, addresses.

Integers are written with their length in front, big-endian and without leading zero bytes; byte
strings with one length byte, or in chunks if they are long. Source of the facts: what
python-oracledb's thin mode sends and accepts (its ``impl/base/buffer.pyx``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LONG_LENGTH: Final = 254
"""Stands for the length of a byte string that follows in chunks."""

NULL_LENGTH: Final = 255
SHORT_LENGTH_MAX: Final = 252
CHUNK: Final = 32_767

_NEGATIVE: Final = 0x80


class MalformedMessageError(Exception):
    """The client sent something that cannot be read."""


class TtcReader:
    """Reads the fields of one message.

    Args:
        data: of the message's first packet.
        more: gives the data of the next one. Nothing in a packet says whether it is the last: only
            reading the fields shows that another one must follow.
    """

    def __init__(self, data: bytes, more: Callable[[], bytes] | None = None) -> None:
        self._data = data
        self._at = 0
        self._more = more

    @property
    def done(self) -> bool:
        """Return whether everything that has come has been read."""
        return self._at >= len(self._data)

    def raw(self, size: int) -> bytes:
        """Read the next `size` bytes."""
        end = self._at + size
        while end > len(self._data):
            if self._more is None:
                raise MalformedMessageError(f"{size} bytes at {self._at} of {len(self._data)}")
            self._data += self._more()
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def byte(self) -> int:
        """Read one byte."""
        return self.raw(1)[0]

    def skip(self, layout: str) -> None:
        """Skip fields: a letter each, ``b`` a byte, ``i`` an integer."""
        for field in layout:
            if field == "i":
                self.integer()
            else:
                self.byte()

    def u16(self) -> int:
        """Two bytes, big-endian."""
        return int.from_bytes(self.raw(2), "big")

    def integer(self) -> int:
        """Read an integer with its length in front."""
        size = self.byte()
        value = int.from_bytes(self.raw(size & ~_NEGATIVE), "big")
        return -value if size & _NEGATIVE else value

    def bytes_(self) -> bytes | None:
        """Read a byte string; None for NULL."""
        size = self.byte()
        if size in (0, NULL_LENGTH):
            return None
        if size != LONG_LENGTH:
            return self.raw(size)
        chunks = bytearray()
        while chunk := self.integer():
            chunks += self.raw(chunk)
        return bytes(chunks)

    def sized_bytes(self) -> bytes:
        """Read a byte string with its whole length in front."""
        return (self.bytes_() or b"") if self.integer() else b""


class TtcWriter:
    """Collects the fields of one message."""

    def __init__(self) -> None:
        self.data = bytearray()

    def raw(self, data: bytes) -> TtcWriter:
        """Bytes as they are."""
        self.data += data
        return self

    def byte(self, *values: int) -> TtcWriter:
        """Single bytes."""
        self.data += bytes(values)
        return self

    def u16(self, value: int) -> TtcWriter:
        """Two bytes, big-endian."""
        self.data += value.to_bytes(2, "big")
        return self

    def integer(self, *values: int) -> TtcWriter:
        """Write integers with their lengths in front."""
        for value in values:
            size = (abs(value).bit_length() + 7) // 8
            # Lengths of 3, 5, 6 and 7 never occur.
            size = next(fit for fit in (0, 1, 2, 4, 8) if fit >= size)
            self.data.append(size | (_NEGATIVE if value < 0 else 0))
            self.data += abs(value).to_bytes(size, "big")
        return self

    def bytes_(self, value: bytes | None) -> TtcWriter:
        """Write a byte string; None for NULL."""
        if not value:
            self.data.append(0)
        elif len(value) <= SHORT_LENGTH_MAX:
            self.data.append(len(value))
            self.data += value
        else:
            self.data.append(LONG_LENGTH)
            for at in range(0, len(value), CHUNK):
                chunk = value[at : at + CHUNK]
                self.integer(len(chunk))
                self.data += chunk
            self.integer(0)
        return self

    def sized_bytes(self, value: bytes) -> TtcWriter:
        """Write a byte string with its whole length in front."""
        self.integer(len(value))
        return self.bytes_(value) if value else self

    def sized_text(self, text: str) -> TtcWriter:
        """Text as `sized_bytes`, in UTF-8."""
        return self.sized_bytes(text.encode())
