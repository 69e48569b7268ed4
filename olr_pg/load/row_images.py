"""Builds rows as composite values from columns, with the applier's kernel, and computes their
hashes.

The format is the same as the result of PostgreSQL's ``record_send``. The hash is Bob Jenkins'
lookup3 as in PostgreSQL's ``hashtextextended`` with seed 0. PostgreSQL does not change this
function between versions, because hash partitioning depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from olr_pg.applier.statements.images import rows_kernel
from olr_pg.applier.statements.net_change import Cells
from olr_pg.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from olr_pg.datatypes.columns import ValueColumn

    U8 = npt.NDArray[np.uint8]
    U32 = npt.NDArray[np.uint32]
    U64 = npt.NDArray[np.uint64]
    I64 = npt.NDArray[np.int64]

_MASK: Final = np.uint64(0xFFFFFFFF)
_START: Final = np.uint64(0x9E3779B9 + 3_923_095)


class RowImages(NamedTuple):
    """Images of n rows, one after the other.

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
    """Return the first bytes of a tuple of a binary COPY."""
    return fields.to_bytes(2, "big")


def composite_head(fields: int) -> bytes:
    """Return the first bytes of a composite value."""
    return fields.to_bytes(4, "big")


def composites(columns: Sequence[ValueColumn], rows: int, types: Sequence[int]) -> RowImages:
    """Encode rows as composite values; `types` contains the OID of each field."""
    head = np.array([len(columns)], ">u4").view(np.uint8)
    size = np.full(rows, len(head) + 8 * len(columns), np.int64)
    for column in columns:
        size += np.maximum(column.length, 0)
    start = np.append(0, np.cumsum(size))
    shift = np.cumsum([0, *(column.data.size for column in columns)])
    cells = Cells(
        np.concatenate([column.data for column in columns]),
        np.stack([c.offset + at for c, at in zip(columns, shift, strict=False)], 1),
        np.stack([column.length for column in columns], 1),
    )
    out = np.empty(int(start[-1]), np.uint8)
    every, fields = np.arange(rows), np.arange(len(columns))
    at = rows_kernel(cells, every, fields, np.array(types, np.int64), head, False, out, 0)
    assert at == len(out)
    return RowImages(out, start)


def hashes(images: RowImages) -> npt.NDArray[np.int64]:
    """Return ``hashtextextended(encode(image, 'hex'), 0)`` of each image."""
    out = np.empty(len(images.start) - 1, np.uint64)
    hash_kernel(images.data, images.start, _HEX, out)
    return out.view(np.int64)


def _hex_pairs() -> npt.NDArray[np.uint64]:
    """Return a lookup table: for each byte, its two hex digits in the low 16 bits of a
    little-endian word.
    """
    digits = [f"{byte:02x}".encode() for byte in range(256)]
    return np.array([pair[0] | pair[1] << 8 for pair in digits], np.uint64)


_HEX: Final = _hex_pairs()


@inlined
def _rotated(value: Any, bits: int) -> Any:
    left = np.uint64(bits)
    return (value << left | value >> (np.uint64(32) - left)) & _MASK


@kernel
def hash_kernel(data: U8, start: I64, pairs: U64, out: U64) -> None:
    """Hash the hex digits of each image; a 32-bit word contains the digits of two bytes."""
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
        # The lowest byte of the state `c` is reserved for the length, so the ninth digit goes into
        # the second byte.
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
