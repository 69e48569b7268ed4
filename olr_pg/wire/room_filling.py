"""Writes finished transactions into rooms (buffers), in any form: keeps the position, writes values
and ROWIDs, and raises the error for a refused change.

A value can consist of several parts at different places in the data. A part is an entry of
`dml.values`. `offset` and `length` give its bytes, and `next` is the entry of the next part,
negative for the last part.

The text of a ROWID has four parts:

    object number   relative file   block           slot
    6 digits        3 digits        6 digits        3 digits        base 64, most significant first

The first three parts identify the block. If the previous ROWID is in the same block, these three
parts are copied from the text of the previous ROWID.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.bytes import copy_bytes
from olr_pg.kernels.compile import inlined, part
from olr_pg.wire.output import Unkept, Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.transactions.finished_columns import DmlColumns
    from olr_pg.transactions.waiting_storage import Allocate
    from olr_pg.wire.output import MessageOutput


DONE: Final = 0
BAD_KIND: Final = 1
BAD_TABLE: Final = 2
BAD_IMAGE: Final = 3
BAD_COLUMN: Final = 4
BAD_VALUE: Final = 5
TOO_LARGE: Final = 6
TOO_MANY: Final = 7
FULL: Final = 8

NUMBER: Final = 0
ROW: Final = 1
BEFORE_ROOM: Final = 2
FILLED: Final = 3
NEEDED: Final = 4
BDBA: Final = 5
OBJD: Final = 6
ROWID: Final = 7
PLACE_SIZE: Final = 8
"""The elements of the array `place`, in which an encoder keeps its position between two calls of
the kernel that fills a room. The last three are the block and the object of the last ROWID, and the
offset of its text plus 1 (0 if there is none).
"""

_ROWID_ALPHABET: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_ROWID_BLOCK: Final = 15
"""The number of characters of a ROWID before its slot."""

_REASON: Final = {
    BAD_KIND: (
        Code.CHANGE_NOT_ENCODABLE,
        "the kind of the change is not insert, update or delete",
    ),
    BAD_TABLE: (Code.CHANGE_NOT_ENCODABLE, "the table is not in the element plan"),
    BAD_IMAGE: (
        Code.CHANGE_NOT_ENCODABLE,
        "its values are in the wrong order, or belong to the wrong image",
    ),
    BAD_COLUMN: (Code.CHANGE_NOT_ENCODABLE, "a column is not in the element plan"),
    BAD_VALUE: (
        Code.CHANGE_NOT_ENCODABLE,
        "a value is outside the data, or its parts form a circle",
    ),
    TOO_LARGE: (Code.FIELD_OVERFLOW, "the message is longer than 4 GiB"),
    TOO_MANY: (Code.FIELD_OVERFLOW, "an image has more than 65,535 columns"),
}


class Form(IntEnum):
    """The form in which finished transactions are written."""

    MESSAGES = 0
    """Framed Data messages (`wire.encoder`)."""
    PACKED = 1
    """Packed transactions (`wire.packed_changes`)."""
    LINES = 2
    """JSON Lines."""


class EncodedTransactions(NamedTuple):
    """The encoded bytes of n transactions.

    Attributes:
        blob: the bytes of all transactions, contiguous.
        first: shape (n + 1); the offset of each transaction in `blob`, and the end of the last one.
        messages: shape (n); the number of messages or elements of each transaction, including Begin
            and Commit.
        form: the form of the bytes.
    """

    blob: npt.NDArray[np.uint8]
    first: npt.NDArray[np.int64]
    messages: npt.NDArray[np.int64]
    form: Form = Form.MESSAGES


def filled(
    fill: Callable[[Any, Any, Any, Any], int], count: int, dml: DmlColumns, output: MessageOutput
) -> EncodedTransactions:
    """Write transactions into the rooms of an output, until all are written.

    Args:
        fill: the kernel that fills a room, such as `encoder.fill_room`. The kernel's arguments are
            `place`, `first`, `messages` and the room.
        count: the number of transactions.

    Raises:
        OlrPgError: 4014 the columns are inconsistent, 4006 something is too large for its field;
            both errors contain the row change's position.
    """
    first = np.zeros(count + 1, np.int64)
    messages = np.zeros(count, np.int64)
    place = np.zeros(PLACE_SIZE, np.int64)
    least = 0
    while True:
        room = output.room(least)
        status = fill(place, first, messages, room)
        output.take(int(place[FILLED]))
        if status == DONE:
            return EncodedTransactions(output.taken(), first, messages)
        if status != FULL:
            raise _refused(status, int(place[ROW]), dml)
        least = int(place[NEEDED])


def just_sized(
    write: Callable[[MessageOutput], EncodedTransactions], allocate: Allocate
) -> EncodedTransactions:
    """Write transactions twice: first to find their size, then into a buffer of exactly that
    size.
    """
    sized = write(Unkept(allocate))
    return write(Whole(allocate(int(sized.first[-1]))))


@inlined
def stopped(place: Any, at: int, needed: int) -> int:
    """Record the end of the room's messages and the number of bytes that the next message needs;
    return `FULL`.
    """
    place[FILLED] = at
    place[BEFORE_ROOM] += at
    place[NEEDED] = needed
    return FULL


@part
def measure_value(dml: Any, entry: int) -> int:
    """Return the total size in bytes of a value's parts: 0 for NULL, −1 if a part is outside of the
    data.
    """
    size, parts = 0, 0
    while entry >= 0:
        parts += 1
        if entry >= dml.values.length.size or parts > dml.values.length.size:
            return -1
        length, offset = dml.values.length[entry], dml.values.offset[entry]
        if length > 0:
            if offset < 0 or offset > dml.data.size - length:
                return -1
            size += length
        entry = dml.values.next[entry]
    return size


@part
def write_parts(dml: Any, entry: int, out: Any, at: int) -> int:
    """Write the parts of a value from `entry` on, and return their end."""
    while entry >= 0:
        offset, length = dml.values.offset[entry], dml.values.length[entry]
        if length > 0:
            at = copy_bytes(out, at, dml.data, offset, offset + length)
        entry = dml.values.next[entry]
    return at


@inlined
def put_rowid(out: Any, at: int, dataobj: Any, dba: Any, slot: Any, place: Any) -> None:
    """Write the 18 characters that `olr_pg.scalars.format_rowid` returns.

    Consecutive rows are often in the same block. For a row in the same block as the previous row,
    the first 15 characters are copied from the last ROWID.
    """
    last = place[ROWID] - 1
    if last >= 0 and place[BDBA] == dba and place[OBJD] == dataobj:
        copy_bytes(out, at, out, last, last + _ROWID_BLOCK)
    else:
        put_digits(out, at, np.int64(dataobj), 6)
        put_digits(out, at + 6, np.int64(dba) >> 22, 3)
        put_digits(out, at + 9, np.int64(dba) & 0x3FFFFF, 6)
        place[BDBA], place[OBJD], place[ROWID] = dba, dataobj, at + 1
    put_digits(out, at + _ROWID_BLOCK, np.int64(slot), 3)


@inlined
def put_digits(out: Any, at: int, value: Any, count: int) -> None:
    """Write `value` in `count` base-64 digits of the ROWID alphabet."""
    for i in range(count):
        out[at + i] = _ROWID_ALPHABET[value >> 6 * (count - 1 - i) & 63]


def _refused(status: int, row: int, dml: DmlColumns) -> OlrPgError:
    code, reason = _REASON[status]
    return OlrPgError(
        code,
        reason,
        change=int(row),
        sequence=int(dml.sequence[row]),
        block=int(dml.block[row]),
        offset=int(dml.offset[row]),
    )
