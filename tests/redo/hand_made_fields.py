"""Fields of row vectors and of their undo records, laid out by hand as redo-format §4.3 and §5 say.

`order` is that of `struct`. What Oracle leaves undefined is 0xEE.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tests.lobs.lob_redo import BLOCK


def laid_out(size: int, *parts: tuple[int, bytes]) -> bytes:
    """Bytes of no meaning, and those that have one at their places."""
    raw = bytearray(b"\xee" * size)
    for at, part in parts:
        raw[at : at + len(part)] = part
    return bytes(raw)


def laid(data: bytearray, fields: list[bytes]) -> tuple[Any, Any]:
    """Append fields to a payload; their offsets and lengths, from 1 on."""
    places = [0]
    for field in fields:
        places.append(len(data))
        data += field + b"\xee" * (-len(field) % 4)
    return np.array(places), np.array([0, *map(len, fields)])


def kdo(order: str, op: int, rest: bytes) -> bytes:
    """KDO of a block (redo-format §5.2) with what its operation has from 16 on."""
    return struct.pack(order + "IIHBBBBH", BLOCK, 0xEEEEEEEE, 4858, op, 1, 0xEE, 0, 0) + rest


def image(order: str, op: int, fb: int, cc: int, slot: int, tl: int = 999, tabn: int = 0) -> bytes:
    """KDO of an IRP or ORP (redo-format §5.4), without NULL columns."""
    links = struct.pack(order + "IHHIHH4x", 0x51, 0x52, 0xEEEE, 0x53, 0x54, 0xEEEE)
    return kdo(order, op, bytes([fb, 0xEE, cc, 0xEE]) + links
               + struct.pack(order + "HHB", tl, slot, tabn) + bytes((cc + 7) // 8 + 3))  # fmt: skip


def at_slot(order: str, op: int, slot: int) -> bytes:
    """KDO of a DRP or LKR (redo-format §5.5, §5.6)."""
    return kdo(order, op, struct.pack(order + "HBB", slot, 0, 0xEE))


def forward(order: str, op: int, slot: int, nrid: int) -> bytes:
    """KDO of a CFA (redo-format §5.8)."""
    return kdo(order, op, struct.pack(order + "IHHHBBB3x", nrid, nrid + 1, 0xEEEE, slot, 0, 0, 0))


def changed(order: str, op: int, fb: int, slot: int, nnew: int = 1, ncol: int = 9) -> bytes:
    """KDO of a URP (redo-format §5.7)."""
    return kdo(order, op, struct.pack(order + "BBBBHBBhH", fb, 0, 0, 0, slot, ncol, nnew, 0, 0))


def header_of(
    order: str, kind: int, fb: int, cc: int = 0, before: int = 0, after: int = 0, size: int = 26,
    opt: int = 0,
) -> bytes:  # fmt: skip
    """A supplemental header (redo-format §4.3)."""
    text = order + "BBHHHH4xHBBHIHH"
    whole = struct.pack(text, kind, fb, cc, 9, before, after, 0xEEEE, 0, opt, 0, 0x77, 8, 0)
    return whole[:size]


def many(order: str, op: int, slots: tuple[int, ...], nrow: int | None = None) -> bytes:
    """KDO of a QMI (redo-format §5.9)."""
    nrow = len(slots) if nrow is None else nrow
    return kdo(order, op, bytes([0, 0xEE, nrow, 0xEE])) + struct.pack(
        f"{order}{len(slots)}H", *slots
    )
