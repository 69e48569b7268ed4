"""Rows as bytes, built from columns by kernels: tuples of a binary COPY, composite values; hashes.

Facts: type-mapping §3.2 (COPY); the composite form is that of PostgreSQL's ``record_send``. The
hash is Bob Jenkins' lookup3 as PostgreSQL's ``hashtextextended`` computes it with seed 0, which
hash partitioning keeps from version to version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from olr_pg.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from olr_pg.datatypes.columns import ValueColumn

    U8 = npt.NDArray[np.uint8]
    U32 = npt.NDArray[np.uint32]
    U64 = npt.NDArray[np.uint64]
    I64 = npt.NDArray[np.int64]

COPY_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER: Final = b"\xff\xff"

_NO_TYPE: Final = -1
_MASK: Final = np.uint64(0xFFFFFFFF)
_START: Final = np.uint64(0x9E3779B9 + 3_923_095)


class RowImages(NamedTuple):
    """Images of n rows, one behind the other.

    Attributes:
        data: the bytes.
        start: shape (n + 1); image i is ``data[start[i] : start[i + 1]]``.
    """

    data: npt.NDArray[np.uint8]
    start: npt.NDArray[np.int64]

    def image(self, row: int) -> bytes:
        """Return one row's image."""
        return self.data[self.start[row] : self.start[row + 1]].tobytes()


def copy_head(fields: int) -> bytes:
    """Make the bytes that a tuple of a binary COPY begins with."""
    return fields.to_bytes(2, "big")


def composite_head(fields: int) -> bytes:
    """Make the bytes that a composite value begins with."""
    return fields.to_bytes(4, "big")


def copy_tuples(columns: Sequence[ValueColumn], rows: int) -> RowImages:
    """Encode the rows as tuples of a binary COPY, without its header and trailer."""
    return _build(columns, rows, copy_head(len(columns)), [_NO_TYPE] * len(columns))


def composites(columns: Sequence[ValueColumn], rows: int, types: Sequence[int]) -> RowImages:
    """Encode the rows as composite values; `types` has the OID of each field."""
    return _build(columns, rows, composite_head(len(columns)), types)


def _build(
    columns: Sequence[ValueColumn], rows: int, head: bytes, types: Sequence[int]
) -> RowImages:
    fixed = len(head) + sum(4 if kind == _NO_TYPE else 8 for kind in types)
    size = np.full(rows, fixed, np.int64)
    for column in columns:
        size += np.maximum(column.length, 0)
    start = np.zeros(rows + 1, np.int64)
    np.cumsum(size, out=start[1:])
    out = np.empty(int(start[-1]), np.uint8)
    cursor = start[:-1].copy()
    head_kernel(np.frombuffer(bytearray(head), np.uint8), cursor, out)
    for column, kind in zip(columns, types, strict=True):
        data = column.data if column.data.flags.writeable else column.data.copy()
        cells_kernel(data, column.offset, column.length, kind, cursor, out)
    assert (cursor == start[1:]).all()
    return RowImages(out, start)


@inlined
def _put32(out: U8, at: int, value: int) -> int:
    out[at] = (value >> 24) & 0xFF
    out[at + 1] = (value >> 16) & 0xFF
    out[at + 2] = (value >> 8) & 0xFF
    out[at + 3] = value & 0xFF
    return at + 4


@kernel
def head_kernel(head: U8, cursor: I64, out: U8) -> None:
    """Begin every image with `head`."""
    for row in range(len(cursor)):
        at = cursor[row]
        for i in range(len(head)):
            out[at + i] = head[i]
        cursor[row] = at + len(head)


@kernel
def cells_kernel(data: U8, offset: I64, length: I64, kind: int, cursor: I64, out: U8) -> None:
    """Write one column's values at the rows' cursors; `kind` is a type OID, −1 leaves it out."""
    for row in range(len(length)):
        at = cursor[row]
        if kind >= 0:
            at = _put32(out, at, kind)
        size = length[row]
        at = _put32(out, at, size)
        if size > 0:
            # Unsigned: Numba leaves out the test for negative indices, and the loop vectorises.
            source, target = np.uint64(offset[row]), np.uint64(at)
            for i in range(np.uint64(size)):
                out[target + i] = data[source + i]
            at += size
        cursor[row] = at


def hashes(images: RowImages) -> npt.NDArray[np.int64]:
    """Return ``hashtextextended(encode(image, 'hex'), 0)`` of each image."""
    out = np.empty(len(images.start) - 1, np.uint64)
    hash_kernel(images.data, images.start, _HEX, out)
    return out.view(np.int64)


def _hex_pairs() -> npt.NDArray[np.uint64]:
    """Make a table of the two hex digits of each byte, the low 16 bits of a little-endian word."""
    digits = [f"{byte:02x}".encode() for byte in range(256)]
    return np.array([pair[0] | pair[1] << 8 for pair in digits], np.uint64)


_HEX: Final = _hex_pairs()


@inlined
def _rotated(value: Any, bits: int) -> Any:
    left = np.uint64(bits)
    return (value << left | value >> (np.uint64(32) - left)) & _MASK


@kernel
def hash_kernel(data: U8, start: I64, pairs: U64, out: U64) -> None:
    """Hash the hex digits of each image: a 32-bit word is two bytes of it."""
    half = np.uint64(16)
    for row in range(len(out)):
        at, end = start[row], start[row + 1]
        a = (np.uint64(2 * (end - at)) + _START) & _MASK
        b, c = a, a
        while end - at >= 6:
            a = (a + (pairs[data[at]] | pairs[data[at + 1]] << half)) & _MASK
            b = (b + (pairs[data[at + 2]] | pairs[data[at + 3]] << half)) & _MASK
            c = (c + (pairs[data[at + 4]] | pairs[data[at + 5]] << half)) & _MASK
            at += 6
            a = ((a - c) & _MASK) ^ _rotated(c, 4)
            c = (c + b) & _MASK
            b = ((b - a) & _MASK) ^ _rotated(a, 6)
            a = (a + c) & _MASK
            c = ((c - b) & _MASK) ^ _rotated(b, 8)
            b = (b + a) & _MASK
            a = ((a - c) & _MASK) ^ _rotated(c, 16)
            c = (c + b) & _MASK
            b = ((b - a) & _MASK) ^ _rotated(a, 19)
            a = (a + c) & _MASK
            c = ((c - b) & _MASK) ^ _rotated(b, 4)
            b = (b + a) & _MASK
        left = end - at
        # The lowest byte of c is the length's: the ninth digit goes into its second.
        if left == 5:
            c = (c + (pairs[data[at + 4]] << np.uint64(8))) & _MASK
        if left >= 4:
            b = (b + (pairs[data[at + 3]] << half)) & _MASK
        if left >= 3:
            b = (b + pairs[data[at + 2]]) & _MASK
        if left >= 2:
            a = (a + (pairs[data[at + 1]] << half)) & _MASK
        if left >= 1:
            a = (a + pairs[data[at]]) & _MASK
        c = ((c ^ b) - _rotated(b, 14)) & _MASK
        a = ((a ^ c) - _rotated(c, 11)) & _MASK
        b = ((b ^ a) - _rotated(a, 25)) & _MASK
        c = ((c ^ b) - _rotated(b, 16)) & _MASK
        a = ((a ^ c) - _rotated(c, 4)) & _MASK
        b = ((b ^ a) - _rotated(a, 14)) & _MASK
        c = ((c ^ b) - _rotated(b, 24)) & _MASK
        out[row] = b << np.uint64(32) | c
