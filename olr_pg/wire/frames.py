"""Frames: ``MessageSize u32``, then that many bytes (operation code and body); protocol "framing".

Nothing here knows what a message means. `FrameBuffer` takes bytes as they come and gives whole
messages back: any split of the input gives the same output.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final

from olr_pg.errors import OlrPgError

Buffer = bytes | bytearray | memoryview

SIZE_BYTES: Final = 4
"""Bytes of MessageSize, which does not count itself."""

CODE_BYTES: Final = 2
"""Bytes of OperationCode, the least that a message holds."""

MESSAGE_BYTES_MAX: Final = (1 << 32) - 1
"""The largest MessageSize that the field can hold."""

REQUEST_BYTES_MAX: Final = 1 << 20
"""The largest request taken by default: only TableList's query has a length of its own."""

_COMPACT_BYTES: Final = 1 << 16


class ByteOrder(Enum):
    """The byte order of every integer on the wire (`target.byte-order`)."""

    LITTLE = "little"
    BIG = "big"

    @property
    def prefix(self) -> str:
        """The same, as `struct` spells it (packed, standard sizes)."""
        return "<" if self is ByteOrder.LITTLE else ">"

    @property
    def is_big(self) -> bool:
        """As the kernels take it."""
        return self is ByteOrder.BIG


_SIZE: Final = {order: struct.Struct(order.prefix + "I") for order in ByteOrder}


def encode_frame(message: Buffer, order: ByteOrder) -> bytes:
    """The frame of one message (operation code and body).

    Raises:
        OlrPgError: 4006, the message is longer than 4 GiB − 1.
    """
    if len(message) > MESSAGE_BYTES_MAX:
        raise OlrPgError(4006, f"a message of {len(message)} bytes", limit=MESSAGE_BYTES_MAX)
    return _SIZE[order].pack(len(message)) + message


class FrameBuffer:
    """Received bytes, cut into messages.

    A size out of bounds leaves no way to find the next message: `failure` is set, and no message
    comes out any more. Those before it do. The check is made as soon as the size is there, so at
    most `limit` bytes and one read wait in memory.

    Args:
        order: byte order of the sizes.
        limit: the largest MessageSize accepted, in bytes.
    """

    def __init__(self, order: ByteOrder, limit: int = REQUEST_BYTES_MAX) -> None:
        self._size = _SIZE[order]
        self._limit = limit
        self._data = bytearray()
        self._position = 0
        self.failure: OlrPgError | None = None

    def receive(self, data: Buffer) -> None:
        """Append what the peer sent."""
        if self._position == len(self._data):
            self._data.clear()
            self._position = 0
        elif self._position > _COMPACT_BYTES:
            del self._data[: self._position]
            self._position = 0
        self._data += data

    @property
    def waiting(self) -> int:
        """Bytes received that no message has taken yet."""
        return len(self._data) - self._position

    def peek(self, count: int) -> bytearray:
        """A copy of the next `count` bytes, or of what there is."""
        return self._data[self._position : self._position + count]

    def view(self) -> memoryview:
        """The bytes that wait; to be released before the next call of `receive`."""
        return memoryview(self._data)[self._position :]

    def skip(self, count: int) -> None:
        """Drop `count` bytes that the caller has read from `peek`: whole frames only."""
        self._position += count

    def skip_repeated(self, frame: bytes, most: int) -> int:
        """Drop frames equal to `frame` at the head, up to `most` of them; how many."""
        start = self._position
        while most and self._data.startswith(frame, self._position):
            self._position += len(frame)
            most -= 1
        return (self._position - start) // len(frame)

    def next_message(self) -> bytes | None:
        """The next whole message without its size, or None until more is received."""
        if self.failure is not None or self.waiting < SIZE_BYTES:
            return None
        size: int = self._size.unpack_from(self._data, self._position)[0]
        if not CODE_BYTES <= size <= self._limit:
            self.failure = OlrPgError(
                4001, f"MessageSize {size} is not in {CODE_BYTES}..{self._limit}", size=size
            )
            return None
        start = self._position + SIZE_BYTES
        if len(self._data) < start + size:
            return None
        self._position = start + size
        return bytes(self._data[start : self._position])
