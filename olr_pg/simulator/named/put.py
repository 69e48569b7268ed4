"""Integers, SCNs, addresses and copies into the byte memory; random draws.

Facts: redo-format §0.3. `big` is the byte order of the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.kernels.compile import part
from olr_pg.simulator.named.instance_memory import BIG_ENDIAN, LONG_SCN, RANDOM

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

WRAP: Final = 0x8000


@part
def put16(m: Ints, d: Bytes, at: int, value: int) -> None:
    """Write a u16."""
    swap = m[BIG_ENDIAN]
    d[at + swap] = value & 0xFF
    d[at + 1 - swap] = value >> 8 & 0xFF


@part
def put32(m: Ints, d: Bytes, at: int, value: int) -> None:
    """Write a u32."""
    swap = 3 * m[BIG_ENDIAN]
    for i in range(4):
        d[at + (i ^ swap)] = value >> 8 * i & 0xFF


@part
def put_be32(d: Bytes, at: int, value: int) -> None:
    """Write a u32, most significant byte first."""
    d[at] = value >> 24 & 0xFF
    d[at + 1] = value >> 16 & 0xFF
    d[at + 2] = value >> 8 & 0xFF
    d[at + 3] = value & 0xFF


@part
def put_scn8(m: Ints, d: Bytes, at: int, scn: int, long: int) -> None:
    """Write an 8-byte SCN slot; `long` asks for the 63-bit form where the version has it."""
    put32(m, d, at, scn & 0xFFFFFFFF)
    if (long and m[LONG_SCN]) or scn >> 47:
        put16(m, d, at + 4, WRAP | (scn >> 48 & 0x7FFF))
        put16(m, d, at + 6, scn >> 32 & 0xFFFF)
    else:
        put16(m, d, at + 4, scn >> 32)
        put16(m, d, at + 6, 0)


@part
def put_scn6r(m: Ints, d: Bytes, at: int, scn: int) -> None:
    """Write a 6-byte SCN, wrap first."""
    if m[LONG_SCN] and not scn >> 32 & 0xFFFF:
        put16(m, d, at, WRAP | scn >> 48)
    else:
        put16(m, d, at, scn >> 32 & 0x7FFF)
    put32(m, d, at + 2, scn & 0xFFFFFFFF)


@part
def put_xid(m: Ints, d: Bytes, at: int, xid: int) -> None:
    """Write a transaction id (packed as `scalars.pack_xid` does)."""
    put16(m, d, at, xid >> 48 & 0xFFFF)
    put16(m, d, at + 2, xid >> 32 & 0xFFFF)
    put32(m, d, at + 4, xid & 0xFFFFFFFF)


@part
def pack_uba(dba: int, seq: int, rec: int) -> int:
    """Pack an undo byte address into one integer."""
    return dba << 24 | seq << 8 | rec


@part
def put_uba(m: Ints, d: Bytes, at: int, uba: int) -> None:
    """Write a packed undo byte address, 8 bytes."""
    put32(m, d, at, uba >> 24 & 0xFFFFFFFF)
    put16(m, d, at + 4, uba >> 8 & 0xFFFF)
    d[at + 6] = uba & 0xFF
    d[at + 7] = 0


@part
def copy(d: Bytes, to: int, start: int, size: int) -> None:
    """Copy `size` bytes within the memory."""
    for i in range(size):
        d[to + i] = d[start + i]


@part
def clear(d: Bytes, at: int, size: int) -> None:
    """Zero `size` bytes."""
    for i in range(size):
        d[at + i] = 0


@part
def draw(m: Ints) -> int:
    """Draw the next 52 random bits (xorshift: shifts alone, the same on every machine)."""
    x = m[RANDOM]
    x ^= x << 13
    x ^= x >> 7 & 0x01FFFFFFFFFFFFFF
    x ^= x << 17
    m[RANDOM] = x
    return int(x >> 12 & 0xFFFFFFFFFFFFF)


@part
def below(m: Ints, limit: int) -> int:
    """Draw a random integer from 0 to `limit` − 1."""
    return draw(m) % limit


@part
def chance(m: Ints, per_mille: int) -> bool:
    """Draw True so many times in a thousand."""
    return below(m, 1000) < per_mille


def copy_slice(d: Bytes, to: int, start: int, size: int) -> None:
    """`copy` for interpreted kernels."""
    d[to : to + size] = d[start : start + size]


def clear_slice(d: Bytes, at: int, size: int) -> None:
    """`clear` for interpreted kernels."""
    d[at : at + size] = 0
