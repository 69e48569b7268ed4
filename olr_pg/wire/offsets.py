"""Kernels for server and client that find the messages in contiguous frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import inlined_kernel, kernel
from olr_pg.wire.messages import AnswerCode

if TYPE_CHECKING:
    import numpy.typing as npt

_FRAME: Final = 6
_DATA: Final = int(AnswerCode.DATA)


def message_offsets(blob: npt.NDArray[np.uint8], big_endian: bool) -> npt.NDArray[np.int64]:
    """Return the offset of each of the n framed messages in `blob`, and the end of the last one;
    shape (n + 1).

    Raises:
        OlrPgError: 4001, `blob` is not a sequence of whole messages.
    """
    count, end = message_run(blob, 0, big_endian, blob.size, blob.size)
    if end != blob.size:
        raise OlrPgError(Code.MESSAGE_SIZE, "the sizes do not add up to the whole", offset=int(end))
    offsets = np.empty(count + 1, np.int64)
    fill_offsets(blob, big_endian, offsets)
    return offsets


@kernel
def message_run(
    blob: Any, start: int, big: bool, messages_max: int, bytes_max: int
) -> tuple[int, int]:
    """Find the complete messages from `start` on. Returns (number of messages, end of the last
    one).

    It stops after `messages_max` messages, before a message that would exceed `bytes_max` in total,
    and before an incomplete or malformed message.
    """
    count, at = 0, start
    while count < messages_max and at + _FRAME <= blob.size:
        size = get32(blob, at, big)
        end = at + 4 + size
        if size < 2 or end > blob.size or end - start > bytes_max:
            break
        at = end
        count += 1
    return count, at


@kernel
def fill_offsets(blob: Any, big: bool, offsets: Any) -> None:
    """Fill `offsets`, of shape (n + 1), with the offsets of the first n messages and the end of the
    last one.
    """
    at = 0
    for number in range(offsets.size):
        offsets[number] = at
        if number < offsets.size - 1:
            at += 4 + get32(blob, at, big)


@kernel
def data_run(data: Any, big: bool, messages_max: int, size_max: int) -> tuple[int, int]:
    """Find the complete Data messages at the beginning of `data`. Returns (number of messages, end
    of the last one).

    It stops after `messages_max` messages, before an incomplete message, before a message of
    another kind, and before a MessageSize that is not in 3..`size_max`.
    """
    count, at = 0, 0
    while count < messages_max and at + _FRAME <= data.size:
        size = get32(data, at, big)
        code = int(data[at + 5 if big else at + 4]) | int(data[at + 4 if big else at + 5]) << 8
        if code != _DATA or size <= 2 or size > size_max or at + 4 + size > data.size:
            break
        at += 4 + size
        count += 1
    return count, at


@inlined_kernel
def get32(data: Any, at: int, big: bool) -> int:
    """Read an integer of 32 bits."""
    # With unsigned indices, Numba omits the check for negative indices, and the four loads become
    # one.
    place, number = np.uint64(at), 0
    if big:
        for i in range(4):
            number |= int(data[place + np.uint64(i)]) << (24 - 8 * i)
    else:
        for i in range(4):
            number |= int(data[place + np.uint64(i)]) << 8 * i
    return number
