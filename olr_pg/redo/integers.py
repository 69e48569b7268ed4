"""Functions with which kernels read integers from redo.

All functions have the byte order of the file as an argument. The functions do not check bounds; the
caller must check them.
"""

from __future__ import annotations

from typing import Any, Final

import numba
import numpy as np

from olr_pg.kernels.compile import inlined_for
from olr_pg.redo.format.undo_fields import XID_SLOT, XID_SQN

BYTES: Final = (
    numba.types.Array(numba.uint8, 1, "C"),
    numba.types.Array(numba.uint8, 1, "C", readonly=True),
)
"""The types of the arrays that kernels read: the payload of a window, and the read-only bytes of a
mapped log.
"""


# With unsigned indices, Numba omits the check for negative indices. The compiler can then load the
# bytes of an integer at once.
_1 = np.uint64(1)
_2 = np.uint64(2)
_3 = np.uint64(3)
_8 = np.uint32(8)
_16 = np.uint32(16)
_24 = np.uint32(24)


@inlined_for(numba.int64(numba.int64))
def low_int16(value: int) -> int:
    """Return the low 16 bits of an integer as a signed integer. A kernel stores exactly this in a
    field of 16 bits. An interpreted kernel would raise an OverflowError, for example if damaged
    redo contains a column number of 65,533.
    """
    return ((value + 0x8000) & 0xFFFF) - 0x8000


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def u16(data: Any, at: int, big: bool) -> int:
    """Read the unsigned 16-bit integer at `at`."""
    i = np.uint64(at)
    low = np.uint32(data[i])
    high = np.uint32(data[i + _1])
    if big:
        return int(low << _8 | high)
    return int(low | high << _8)


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def u32(data: Any, at: int, big: bool) -> int:
    """Read the unsigned 32-bit integer at `at`."""
    i = np.uint64(at)
    a = np.uint32(data[i])
    b = np.uint32(data[i + _1])
    c = np.uint32(data[i + _2])
    d = np.uint32(data[i + _3])
    if big:
        return int(a << _24 | b << _16 | c << _8 | d)
    return int(a | b << _8 | c << _16 | d << _24)


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def read_xid(data: Any, at: int, big: bool) -> int:
    """Read the XID at `at`; return it packed as in `batch.EVENT`."""
    slot, sequence = u16(data, at + XID_SLOT, big), u32(data, at + XID_SQN, big)
    return u16(data, at, big) << 48 | slot << 32 | sequence


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def scn8(data: Any, at: int, big: bool) -> int:
    """Read the 8-byte SCN at `at`, which has one of two forms (redo-format §0.3); return −1 if the
    bytes contain no SCN.
    """
    base = u32(data, at, big)
    wrap = u16(data, at + 4, big)
    if base == 0xFFFFFFFF and wrap == 0xFFFF:
        return -1
    if wrap & 0x8000:
        return base | u16(data, at + 6, big) << 32 | (wrap & 0x7FFF) << 48
    return base | wrap << 32
