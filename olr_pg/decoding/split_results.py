"""Writes the result of a split as a stream of bytes, which a task sends to the driver.

The stream begins with the messages. Messages are written as they are made, so that a task never has
all messages in memory. Other large arrays follow; then everything else, pickled, with references to
the arrays; and finally the length of the pickle. The reader does not copy the messages.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np

from olr_pg.decoding.split import SplitResult, decode_whole
from olr_pg.redo.batch import ChangeBatch
from olr_pg.redo.column_tables import joined_rows
from olr_pg.wire.output import Scratch

if TYPE_CHECKING:
    import numpy.typing as npt

    from olr_pg.decoding.split import Split, Subscription

Write: TypeAlias = Callable[[memoryview], object]

_ALIGNED: Final = 64

_LARGE: Final = 1 << 20
"""An array of at least this size is written separately. Smaller arrays are pickled together: a
split has hundreds of them, and writing each separately takes longer than copying it.
"""

_END: Final = struct.Struct("<Q")


class WrittenMessages(Scratch):
    """An output that writes messages to the stream as they are made.

    Attributes:
        written: number of bytes written so far.
    """

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write
        self.written = 0

    def take(self, size: int) -> None:
        """Write the first `size` bytes of the buffer."""
        self._write(self._room[:size].data)
        self.written += size

    def taken(self) -> npt.NDArray[np.uint8]:
        """Return an empty array: `take` has already written the messages to the stream."""
        return self._room[:0]

    def finish(self, result: SplitResult) -> None:
        """Write the rest of a result, whose messages were already written."""
        large: list[memoryview] = []

        def goes_into_pickle(buffer: pickle.PickleBuffer) -> bool:
            data = buffer.raw()
            if data.nbytes >= _LARGE:
                large.append(data)
            return data.nbytes < _LARGE

        plain = result._replace(remainder=_as_plain(result.remainder))
        packed = pickle.dumps(plain, protocol=5, buffer_callback=goes_into_pickle)
        places = []
        at = self.written
        for data in large:
            self._write(memoryview(bytes(-at % _ALIGNED)))
            at += -at % _ALIGNED
            self._write(data)
            places.append((at, data.nbytes))
            at += data.nbytes
        index = pickle.dumps((places, packed))
        self._write(memoryview(index + _END.pack(len(index))))


def write_split(
    subscription: Subscription, split: Split, write: Write, *, mapped: bool = True
) -> None:
    """Decode a split (`decode_whole`) and write its result.

    Args:
        write: receives the bytes, piece by piece.
        mapped: as for `decode_whole`.
    """
    messages = WrittenMessages(write)
    messages.finish(decode_whole(subscription, split, messages, mapped=mapped))


def read_result(data: bytes | memoryview) -> SplitResult:
    """Return the result that was written as `data`. The arrays of the result share the memory of
    `data`, except the arrays of the remainder.
    """
    view = memoryview(data)
    (size,) = _END.unpack(view[-_END.size :])
    places, packed = pickle.loads(view[-_END.size - size : -_END.size])  # noqa: S301 - ours
    buffers = [view[at : at + length] for at, length in places]
    result: SplitResult = pickle.loads(packed, buffers=buffers)  # noqa: S301 - ours
    encoded, at = [], 0
    for one in result.encoded:
        end = at + int(one.messages.first[-1])
        blob = np.frombuffer(view[at:end], np.uint8)
        encoded.append(one._replace(messages=one.messages._replace(blob=blob)))
        at = end
    return result._replace(encoded=tuple(encoded), remainder=_as_tables(result.remainder))


def _as_plain(batch: ChangeBatch) -> ChangeBatch:
    """Return the batch with its tables as ordinary arrays. `pickle` writes ordinary arrays without
    copying them, but it copies record arrays.
    """
    return ChangeBatch(*(cast("Any", column.view(np.ndarray)) for column in batch))


def _as_tables(batch: ChangeBatch) -> ChangeBatch:
    # The kernels and `joined_rows` require arrays that own their memory.
    return ChangeBatch(
        joined_rows([batch.events]),
        joined_rows([batch.pieces]),
        joined_rows([batch.entries]),
        batch.data.copy(),
    )
