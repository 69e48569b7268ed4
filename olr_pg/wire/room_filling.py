"""Writes finished transactions into rooms (buffers): keeps the position, and raises the error for a
refused change.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import inlined
from olr_pg.wire.output import Unkept, Whole
from olr_pg.wire.value_parts import PLACE_SIZE

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
    """The bytes of n transactions.

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
        fill: the kernel that fills a room, such as `encoder.fill_room`. Its arguments are `place`,
            `first`, `messages` and the room.
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
