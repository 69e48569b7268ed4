"""Frames: ``MessageSize u32``, then that many bytes (operation code and body); protocol, “Frames”.

Nothing here knows what a message means. `FrameBuffer` takes bytes as they come and gives whole
messages back: any split of the input gives the same output.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final

import numpy as np

from olr_pg.errors import Code, OlrPgError

Buffer = bytes | bytearray | memoryview

SIZE_BYTES: Final = 4
"""Bytes of MessageSize, which does not count itself."""

CODE_BYTES: Final = 2
"""Bytes of OperationCode, the least that a message holds."""

MESSAGE_BYTES_MAX: Final = (1 << 32) - 1
"""The largest MessageSize that the field can hold."""

REQUEST_BYTES_MAX: Final = 1 << 20
"""The largest request taken by default: only TableList's query has a length of its own."""

_BUFFER_BYTES: Final = 1 << 12


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
        """The same, as the kernels take it."""
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
    """Received bytes, cut into messages.

    A size out of bounds leaves no way to find the next message: `failure` is set, and no message
    comes out any more. Those before it do. The check is made as soon as the size is there, so at
    most `limit` bytes and one read wait in memory.

    Args:
        order: byte order of the sizes.
        limit: the largest MessageSize accepted, in bytes.
        buffer_bytes: what is allocated at once.
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
        self._is_lent = False  # somebody reads what was taken: nothing may be moved over it
        self.failure: OlrPgError | None = None

    def room(self, size: int) -> memoryview:
        """Return where `size` bytes or more from the peer may be written; then call `filled`."""
        if len(self._data) - self._end < size:
            self._make_room(size)
        return self._data[self._end :]

    def _make_room(self, size: int) -> None:
        waiting = self.waiting
        data = self._data
        if self._is_lent or len(data) < waiting + size:
            # Twice what waits: a long message is not copied at every piece of it.
            data = np.empty(max(self._buffer_bytes, size + 2 * waiting), np.uint8).data
        data[:waiting] = self._data[self._position : self._end]
        self._data, self._is_lent = data, False
        self._position, self._end = 0, waiting

    def filled(self, count: int) -> None:
        """Take the first `count` bytes of the `room`, which are what the peer sent."""
        self._end += count

    def receive(self, data: Buffer) -> None:
        """Append what the peer sent."""
        self.room(len(data))[: len(data)] = data
        self.filled(len(data))

    def adopt(self, data: memoryview) -> None:
        """Take what the peer sent as the buffer itself, where nothing else waits in it.

        Nobody may write into `data` any more. Read-only memory is copied: each kernel would have to
        be compiled for it a second time.
        """
        if self.waiting or data.readonly:
            self.receive(data)
            return
        self._data, self._is_lent = data, True
        self._position, self._end = 0, len(data)

    @property
    def waiting(self) -> int:
        """Bytes received that no message has taken yet."""
        return self._end - self._position

    def peek(self, count: int) -> bytes:
        """Return a copy of the next `count` bytes, or of what there is."""
        return bytes(self.view()[:count])

    def view(self) -> memoryview:
        """Return the bytes that wait."""
        return self._data[self._position : self._end]

    def take(self, count: int) -> memoryview:
        """Take the next `count` bytes, whole frames only; they stay as they are."""
        taken = self.view()[:count]
        self._position += count
        self._is_lent = True
        return taken

    def skip(self, count: int) -> None:
        """Drop `count` bytes that the caller has read from `peek`: whole frames only."""
        self._position += count

    def skip_repeated(self, frame: bytes, most: int) -> int:
        """Drop frames equal to `frame` at the head, up to `most` of them; return how many."""
        count = min(most, self.waiting // len(frame))
        alike = np.frombuffer(self.peek(count * len(frame)), np.uint8).reshape(count, len(frame))
        different = np.flatnonzero((alike != np.frombuffer(frame, np.uint8)).any(axis=1))
        count = int(different[0]) if len(different) else count
        self._position += count * len(frame)
        return count

    def next_message(self) -> bytes | None:
        """Take the next whole message without its size, or None until more is received."""
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
