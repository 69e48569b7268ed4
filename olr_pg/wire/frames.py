"""Frames of the protocol: ``MessageSize u32``, then that many bytes (operation code and body);
protocol, “Frames”.

The module does not interpret messages. `FrameBuffer` receives bytes in pieces of any size, and
returns whole messages.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final

import numpy as np

from olr_pg.errors import Code, OlrPgError

Buffer = bytes | bytearray | memoryview

SIZE_BYTES: Final = 4
"""Size of the field MessageSize. MessageSize does not include these bytes."""

CODE_BYTES: Final = 2
"""Size of OperationCode, and of the smallest possible message."""

MESSAGE_BYTES_MAX: Final = (1 << 32) - 1
"""The largest MessageSize that the field can hold."""

REQUEST_BYTES_MAX: Final = 1 << 20
"""The default for the largest accepted request. Only TableList has no fixed size, because it
contains a query.
"""

_BUFFER_BYTES: Final = 1 << 12


class ByteOrder(Enum):
    """The byte order of all integers on the wire (`target.byte-order`)."""

    LITTLE = "little"
    BIG = "big"

    @property
    def prefix(self) -> str:
        """The byte order's prefix for formats of `struct` (packed, standard sizes)."""
        return "<" if self is ByteOrder.LITTLE else ">"

    @property
    def is_big(self) -> bool:
        """Whether the byte order is big-endian; kernels expect this form."""
        return self is ByteOrder.BIG


_SIZE: Final = {order: struct.Struct(order.prefix + "I") for order in ByteOrder}


def encode_frame(message: Buffer, order: ByteOrder) -> bytes:
    """Encode one message (operation code and body) as a frame.

    Raises:
        OlrPgError: 4006, the message is longer than 4 GiB − 1.
    """
    if len(message) > MESSAGE_BYTES_MAX:
        raise OlrPgError(
            Code.FIELD_OVERFLOW, f"a message of {len(message)} bytes", limit=MESSAGE_BYTES_MAX
        )
    return _SIZE[order].pack(len(message)) + message


class FrameBuffer:
    """A buffer of received bytes that returns them as messages.

    If a MessageSize is out of bounds, the next message cannot be found. In this case,
    `failure` is set, and no further message is returned; the messages before it are returned.
    MessageSize is checked as soon as it is received, so at most `limit` bytes and one read are kept
    in memory.

    Args:
        order: the byte order of MessageSize.
        limit: the largest accepted MessageSize, in bytes.
        buffer_bytes: the minimum size of an allocated buffer.
    """

    def __init__(
        self,
        order: ByteOrder,
        limit: int = REQUEST_BYTES_MAX,
        buffer_bytes: int = _BUFFER_BYTES,
    ) -> None:
        self._size = _SIZE[order]
        self._limit = limit
        self._buffer_bytes = buffer_bytes
        self._data = np.empty(0, np.uint8).data
        self._position = 0
        self._end = 0
        # True if a reader may still use bytes of the buffer, which must then not be overwritten.
        self._is_lent = False
        self.failure: OlrPgError | None = None

    def room(self, size: int) -> memoryview:
        """Return a buffer of at least `size` bytes for bytes from the peer. Call `filled` after
        writing into the buffer.
        """
        if len(self._data) - self._end < size:
            self._make_room(size)
        return self._data[self._end :]

    def _make_room(self, size: int) -> None:
        waiting = self.waiting
        data = self._data
        if self._is_lent or len(data) < waiting + size:
            # Allocate space for twice the waiting bytes, so that a long message is not copied for
            # each received piece.
            data = np.empty(max(self._buffer_bytes, size + 2 * waiting), np.uint8).data
        data[:waiting] = self._data[self._position : self._end]
        self._data, self._is_lent = data, False
        self._position, self._end = 0, waiting

    def filled(self, count: int) -> None:
        """Record that `count` bytes from the peer were written into the buffer from `room`."""
        self._end += count

    def receive(self, data: Buffer) -> None:
        """Append bytes that the peer sent."""
        self.room(len(data))[: len(data)] = data
        self.filled(len(data))

    def adopt(self, data: memoryview) -> None:
        """Append bytes that the peer sent. If no other bytes wait, `data` becomes the buffer and is
        not copied.

        The caller must not change `data` afterwards. Read-only memory is copied, because Numba
        would compile each kernel a second time for read-only arrays.
        """
        if self.waiting or data.readonly:
            self.receive(data)
            return
        self._data, self._is_lent = data, True
        self._position, self._end = 0, len(data)

    @property
    def waiting(self) -> int:
        """The number of received bytes that were not returned yet."""
        return self._end - self._position

    def peek(self, count: int) -> bytes:
        """Return a copy of the next `count` bytes, or of all bytes if there are fewer."""
        return bytes(self.view()[:count])

    def view(self) -> memoryview:
        """Return the waiting bytes, without removing them."""
        return self._data[self._position : self._end]

    def take(self, count: int) -> memoryview:
        """Remove and return the next `count` bytes, which must be whole frames. The buffer never
        overwrites the returned bytes later.
        """
        taken = self.view()[:count]
        self._position += count
        self._is_lent = True
        return taken

    def skip(self, count: int) -> None:
        """Drop `count` bytes that the caller has read with `peek`. The dropped bytes must be whole
        frames.
        """
        self._position += count

    def skip_repeated(self, frame: bytes, most: int) -> int:
        """Drop the leading frames that equal `frame`, at most `most` of them. Returns the number of
        dropped frames.
        """
        count = min(most, self.waiting // len(frame))
        alike = np.frombuffer(self.peek(count * len(frame)), np.uint8).reshape(count, len(frame))
        different = np.flatnonzero((alike != np.frombuffer(frame, np.uint8)).any(axis=1))
        count = int(different[0]) if len(different) else count
        self._position += count * len(frame)
        return count

    def next_message(self) -> bytes | None:
        """Remove and return the next message, without its MessageSize; None if it is not completely
        received yet.
        """
        if self.failure is not None or self.waiting < SIZE_BYTES:
            return None
        size: int = self._size.unpack_from(self._data, self._position)[0]
        if not CODE_BYTES <= size <= self._limit:
            self.failure = OlrPgError(
                Code.MESSAGE_SIZE,
                f"MessageSize {size} is not in {CODE_BYTES}..{self._limit}",
                size=size,
            )
            return None
        start = self._position + SIZE_BYTES
        if self._end < start + size:
            return None
        self._position = start + size
        return bytes(self._data[start : self._position])
