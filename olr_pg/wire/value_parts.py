"""Kernels for values that consist of several parts at different places in the data.

A part is an entry of `dml.values`. `offset` and `length` give its bytes, and `next` is the entry of
the next part, negative for the last part.
"""

from __future__ import annotations

from typing import Any

from olr_pg.kernels.bytes import copy_bytes
from olr_pg.kernels.compile import part


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
