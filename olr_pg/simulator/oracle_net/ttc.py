"""The primitives of Oracle's two-task protocol (TTC): integers, byte strings, addresses.

An integer has its length before it; it is big-endian, without leading zero bytes. A byte string has
one length byte before it, or is sent in chunks if it is long. Source of the facts: what
python-oracledb's thin mode sends and accepts (its ``impl/base/buffer.pyx``).

It also contains packets of Oracle Net (TNS), which frame all messages on the socket.

A packet is an 8-byte header (length, type, flags) and a body; the body of a data packet begins
with two bytes of flags. The length has two bytes until the connection is accepted, and four bytes
after that. Source of the facts: python-oracledb's thin mode (``impl/thin/packet.pyx``,
``transport.pyx``).
"""

from __future__ import annotations

import select
import socket
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

LONG_LENGTH: Final = 254
"""Length byte of a byte string that follows in chunks."""

NULL_LENGTH: Final = 255
SHORT_LENGTH_MAX: Final = 252
CHUNK: Final = 32_767

_NEGATIVE: Final = 0x80
_SIZES: Final = (0, 1, 2, 4, 4, 8, 8, 8, 8)
"""The length of an integer with so many bytes: lengths of 3, 5, 6 and 7 never occur."""


class MalformedMessageError(Exception):
    """The client sent something that cannot be read."""


class TtcReader:
    """Reads the fields of one message.

    Args:
        data: the data of the message's first packet.
        more: returns the data of the next packet. A packet does not say whether it is the last one;
            only while reading fields does the reader notice that another packet must follow.
    """

    def __init__(self, data: bytes, more: Callable[[], bytes] | None = None) -> None:
        self._data = data
        self._at = 0
        self._more = more

    @property
    def done(self) -> bool:
        """Return whether all received data was read."""
        return self._at >= len(self._data)

    def raw(self, size: int) -> bytes:
        """Read the next `size` bytes."""
        end = self._at + size
        if end > len(self._data):
            self._receive(size)
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def byte(self) -> int:
        """Read one byte."""
        at = self._at
        if at >= len(self._data):
            self._receive(1)
        self._at = at + 1
        return self._data[at]

    def _receive(self, size: int) -> None:
        """Receive packets until the next `size` bytes are here."""
        while self._at + size > len(self._data):
            if self._more is None:
                raise MalformedMessageError(f"{size} bytes at {self._at} of {len(self._data)}")
            self._data += self._more()

    def skip(self, layout: str) -> None:
        """Skip fields; each letter of `layout` is one field: ``b`` a byte, ``i`` an integer."""
        for field in layout:
            first = self.byte()
            if first and field == "i":
                self.raw(first & ~_NEGATIVE)

    def u16(self) -> int:
        """Read two bytes, big-endian."""
        return int.from_bytes(self.raw(2), "big")

    def integer(self) -> int:
        """Read an integer with its length before it."""
        size = self.byte()
        if not size:
            return 0
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
        """Read a byte string with its whole length before it."""
        return (self.bytes_() or b"") if self.integer() else b""


class TtcWriter:
    """Collects the fields of one message."""

    def __init__(self) -> None:
        self.data = bytearray()

    def raw(self, data: bytes) -> TtcWriter:
        """Write bytes unchanged."""
        self.data += data
        return self

    def byte(self, *values: int) -> TtcWriter:
        """Write single bytes."""
        self.data += bytes(values)
        return self

    def u16(self, value: int) -> TtcWriter:
        """Write two bytes, big-endian."""
        self.data += value.to_bytes(2, "big")
        return self

    def integer(self, *values: int) -> TtcWriter:
        """Write integers, each with its length before it."""
        for value in values:
            if not value:  # more than half of all
                self.data.append(0)
                continue
            size = _SIZES[(abs(value).bit_length() + 7) // 8]
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
        """Write a byte string with its whole length before it."""
        self.integer(len(value))
        return self.bytes_(value) if value else self

    def sized_text(self, text: str) -> TtcWriter:
        """Write a text in UTF-8, as `sized_bytes` does."""
        return self.sized_bytes(text.encode())


HEADER_BYTES: Final = 8
DATA_FLAGS_BYTES: Final = 2
DEFAULT_SDU: Final = 8192
"""Maximum size of a packet until both sides have agreed on one."""


class PacketType(IntEnum):
    """The types of packets that the stand-in uses."""

    CONNECT = 1
    ACCEPT = 2
    REFUSE = 4
    DATA = 6
    MARKER = 12


class Marker(IntEnum):
    """The meaning of a marker packet."""

    BREAK = 1
    RESET = 2
    INTERRUPT = 3


class Packet(NamedTuple):
    """A packet without its header."""

    type: int
    body: bytes

    @property
    def marker(self) -> int:
        """The `Marker` of a marker packet."""
        return self.body[2]


class PeerGoneError(Exception):
    """The client closed the connection."""


class PacketStream:
    """Packets over a connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.sdu = DEFAULT_SDU
        self.accepted = False

    def receive(self) -> Packet:
        """Receive the next packet.

        Raises:
            PeerGoneError: the client has closed the connection.
        """
        header = self._exactly(HEADER_BYTES)
        size = int.from_bytes(header[: 4 if self.accepted else 2], "big")
        return Packet(header[4], self._exactly(size - HEADER_BYTES))

    def readable(self, seconds: float) -> bool:
        """Return whether the client sends something within `seconds`."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def send(self, packet_type: PacketType, body: bytes) -> None:
        """Send one packet."""
        size = HEADER_BYTES + len(body)
        length = size.to_bytes(4, "big") if self.accepted else size.to_bytes(2, "big") + b"\0\0"
        try:
            self._socket.sendall(length + bytes((packet_type, 0, 0, 0)) + body)
        except OSError as error:
            raise PeerGoneError from error

    def send_message(self, message: bytes) -> None:
        """Send a message in one or more data packets."""
        room = self.sdu - HEADER_BYTES - DATA_FLAGS_BYTES
        for at in range(0, len(message), room):
            self.send(PacketType.DATA, bytes(DATA_FLAGS_BYTES) + message[at : at + room])

    def send_marker(self, marker: Marker) -> None:
        """Send a marker packet."""
        self.send(PacketType.MARKER, bytes((1, 0, marker)))

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self._socket.recv(size - len(data))
            except OSError as error:
                raise PeerGoneError from error
            if not piece:
                raise PeerGoneError
            data += piece
        return bytes(data)
