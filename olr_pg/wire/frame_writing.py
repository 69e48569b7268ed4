"""Kernels that write integers, and the head of a framed element."""

from __future__ import annotations

from typing import Any, Final

import numba
import numpy as np

from olr_pg.kernels.bytes import store
from olr_pg.kernels.compile import inlined_for
from olr_pg.wire.messages import AnswerCode

_FRAME: Final = 6
_DATA: Final = int(AnswerCode.DATA)

_OUT: Final = numba.types.Array(numba.uint8, 1, "C")
_AT, _BIG = numba.int64, numba.boolean
_LONG: Final = numba.void(_OUT, _AT, numba.int64, _BIG)
_LONG_BITS: Final = numba.void(_OUT, _AT, numba.uint64, _BIG)
_HEAD: Final = numba.void(
    _OUT, _AT, numba.int64, numba.int64, *(numba.uint64,) * 3, numba.int64, _BIG
)


@inlined_for(_LONG)
def put16(out: Any, at: int, value: Any, big: bool) -> None:
    """Write 16 bits."""
    store(out, at, np.uint16(value), big)


@inlined_for(_LONG)
def put32(out: Any, at: int, value: Any, big: bool) -> None:
    """Write 32 bits."""
    store(out, at, np.uint32(value), big)


@inlined_for(_LONG_BITS)
def put64(out: Any, at: int, value: Any, big: bool) -> None:
    """Write 64 bits. A uint64 of 2⁶³ or more keeps its bits."""
    store(out, at, np.uint64(value), big)


@inlined_for(_HEAD)
def put_head(
    out: Any, at: int, frame: int, code: int, scn: int, commit_scn: int, xid: int, time: int,
    big: bool,
) -> None:  # fmt: skip
    """Write MessageSize, OperationCode and the 29 bytes that every element begins with."""
    put32(out, at, frame - 4, big)
    put16(out, at + 4, _DATA, big)
    out[at + _FRAME] = code
    put64(out, at + _FRAME + 1, scn, big)
    put64(out, at + _FRAME + 9, commit_scn, big)
    put64(out, at + _FRAME + 17, xid, big)
    put32(out, at + _FRAME + 25, time, big)
