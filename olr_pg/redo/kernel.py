"""How redo kernels read integers.

All readers take the byte order of the file; the caller has checked the bounds.
"""

from __future__ import annotations

from typing import Any, Final

import numba

from olr_pg.kernels import inlined_for

BYTES: Final = (
    numba.types.Array(numba.uint8, 1, "C"),
    numba.types.Array(numba.uint8, 1, "C", readonly=True),
)
"""The payload of a window, and the bytes of a mapped log."""


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def u16(data: Any, at: int, big: bool) -> int:
    """The unsigned 16-bit integer at `at`."""
    if big:
        return int(data[at]) << 8 | int(data[at + 1])
    return int(data[at]) | int(data[at + 1]) << 8


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def u32(data: Any, at: int, big: bool) -> int:
    """The unsigned 32-bit integer at `at`."""
    if big:
        return (
            int(data[at]) << 24 | int(data[at + 1]) << 16 | int(data[at + 2]) << 8
            | int(data[at + 3])
        )  # fmt: skip
    return (
        int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16
        | int(data[at + 3]) << 24
    )  # fmt: skip


@inlined_for(*(numba.int64(data, numba.int64, numba.boolean) for data in BYTES))
def scn8(data: Any, at: int, big: bool) -> int:
    """The SCN slot of 8 bytes at `at`, either form (redo-format §0.3); −1 for none."""
    base = u32(data, at, big)
    wrap = u16(data, at + 4, big)
    if base == 0xFFFFFFFF and wrap == 0xFFFF:
        return -1
    if wrap & 0x8000:
        return base | u16(data, at + 6, big) << 32 | (wrap & 0x7FFF) << 48
    return base | wrap << 32
