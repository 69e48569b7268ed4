"""Kernels for values that consist of several parts, which are apart in the data.

A part is an entry of the values: its bytes (`offset`, `length`), and `next`, the entry of the next
part, which is negative at the last one.
"""

from __future__ import annotations

from typing import Any

from olr_pg.kernels.bytes import copy_bytes
from olr_pg.kernels.compile import part


@part
def measure_value(dml: Any, entry: int) -> int:
    """Return the size in bytes of a value over all its parts: 0 for NULL, −1 if a part is out of
    bounds.
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
    """Write the parts of a value from `entry` on and return where they end."""
    while entry >= 0:
        offset, length = dml.values.offset[entry], dml.values.length[entry]
        if length > 0:
            at = copy_bytes(out, at, dml.data, offset, offset + length)
        entry = dml.values.next[entry]
    return at
