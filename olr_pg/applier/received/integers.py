"""Reads integers from messages in kernels, in either byte order, and adds them to digests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined, kernel

U8 = npt.NDArray[np.uint8]


@inlined
def read_u16(data: U8, at: int, big: bool) -> int:
    """Read the unsigned 16-bit integer at `at`."""
    place = np.uint64(at)
    if big:
        return int(data[place]) << 8 | int(data[place + np.uint64(1)])
    return int(data[place]) | int(data[place + np.uint64(1)]) << 8


@kernel
def read_u32(data: U8, at: int, big: bool) -> int:
    """Read the unsigned 32-bit integer at `at`."""
    low, high = read_u16(data, at, big), read_u16(data, at + 2, big)
    return low << 16 | high if big else low | high << 16


@inlined
def read_u64(data: U8, at: int, big: bool) -> np.uint64:
    """Read the unsigned 64-bit integer at `at`."""
    place, word = np.uint64(at), np.uint64(0)
    if big:
        for i in range(8):
            word |= np.uint64(data[place + np.uint64(i)]) << np.uint64(56 - 8 * i)
    else:
        # With unsigned indices, Numba does not check for negative ones, and the compiler combines
        # the eight loads into one.
        for i in range(8):
            word |= np.uint64(data[place + np.uint64(i)]) << np.uint64(8 * i)
    return word


@inlined
def mix(digest: np.uint64, word: np.uint64) -> np.uint64:
    """Return the digest with another word added."""
    digest = (digest ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return digest ^ (digest >> np.uint64(29))
