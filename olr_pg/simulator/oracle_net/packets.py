"""Packets of Oracle Net (TNS), which frame all messages on the socket.

A packet is an 8-byte header (length, type, flags) and a body; the body of a data packet begins
with two bytes of flags. The length has two bytes until the connection is accepted, and four bytes
after that. Source of the facts: python-oracledb's thin mode (``impl/thin/packet.pyx``,
``transport.pyx``).
"""

from __future__ import annotations

import select
import socket
from enum import IntEnum
from typing import Final, NamedTuple

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
