"""Locators of compressed SECUREFILE LOBs, which the simulator has not (values-and-lobs §26)."""

from __future__ import annotations

import struct

from olr_pg.simulator.fields.cells import PAGE, locator_head, width_of


def secure_packed(kind: int, number: int, length: int, packed: bytes) -> bytes:
    """Encode a compressed SECUREFILE locator with its zlib stream in the row."""
    size, width = width_of(length), width_of(len(packed))
    extra = bytes((0x21, 0x80, 0x04 | width - 1)) + len(packed).to_bytes(width)
    body = bytes((0x10 | size - 1, 0)) + length.to_bytes(size) + b"\1"
    body += len(packed).to_bytes(2) + packed
    rest = struct.pack(">BHH", 0x80, len(extra), len(body)) + extra + body
    return (
        locator_head(kind, number, secure=True)
        + struct.pack(">HBB", len(rest) + 4, 0x40, 0xD2)
        + rest
    )


def secure_packed_extents(
    kind: int, number: int, length: int, packed: int, first: int, *, chunked: bool
) -> bytes:
    """Encode a compressed SECUREFILE locator with one extent of stored bytes."""
    size, width = width_of(length), width_of(packed)
    extra = bytes((0x31, 0x02 if chunked else 0x81, 0x04 | width - 1)) + packed.to_bytes(width)
    blocks = -(-packed // PAGE)
    body = bytes((0x30 | size - 1, 0)) + length.to_bytes(size) + b"\1\0"
    body += bytes((size - 1,)) + first.to_bytes(4) + bytes((blocks,)) + length.to_bytes(size)
    rest = struct.pack(">HH", len(extra), len(body)) + extra + body
    return (
        locator_head(kind, number, secure=True)
        + struct.pack(">HBB", len(rest) + 4, 0x40, 0x92)
        + rest
    )
