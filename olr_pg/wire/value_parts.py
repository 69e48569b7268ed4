"""Kernels for values in messages: values that consist of several parts at different places in the
data, and ROWIDs as text.

A part is an entry of `dml.values`. `offset` and `length` give its bytes, and `next` is the entry of
the next part, negative for the last part.

The text of a ROWID has four parts:

    object number   relative file   block           slot
    6 digits        3 digits        6 digits        3 digits        base 64, most significant first

The first three parts identify the block. If the previous ROWID is in the same block, they are
copied from its text.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from olr_pg.kernels.bytes import copy_bytes
from olr_pg.kernels.compile import inlined, part


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


BDBA: Final = 5
OBJD: Final = 6
ROWID: Final = 7
PLACE_SIZE: Final = 8
"""The number of elements of the array `place`, in which the encoder keeps its position between two
calls of `encoder.fill_room`.

This module uses the last three elements: the block and the object of the last ROWID, and the offset
of its text plus 1 (0 if there is none). The encoder uses the other elements.
"""

_ROWID_ALPHABET: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_ROWID_BLOCK: Final = 15
"""The number of characters of a ROWID before its slot."""


@inlined
def put_rowid(out: Any, at: int, dataobj: Any, dba: Any, slot: Any, place: Any) -> None:
    """Write the 18 characters that `olr_pg.scalars.format_rowid` returns.

    Consecutive rows are often in the same block. Then the first 15 characters are copied from the
    last ROWID.
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
