"""RAW and LONG RAW: bytes that mean themselves (values-and-lobs §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.datatypes.columns import ValueColumn, oracle_nulls
from olr_pg.datatypes.outcomes import Outcome, byte_at, fail
from olr_pg.kernels.compile import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Longs = npt.NDArray[np.int64]

_UUID_BYTES: Final = 16


def decode_raw(raw: bytes) -> str:
    """Lower-case hex."""
    return raw.hex()


def raw_to_bytea(values: ValueColumn) -> ValueColumn:
    """RAW → bytea: the same bytes in the same buffer."""
    return oracle_nulls(values)


def raw_to_uuid(values: ValueColumn) -> ValueColumn:
    """RAW(16) → uuid in the order of the bytes, as SYS_GUID has them (type-mapping §4.10).

    Raises:
        OlrPgError: 2053, a value of another length.
    """
    return _uuids(oracle_nulls(values), "RAW to uuid")


def blob_to_uuid(values: ValueColumn) -> ValueColumn:
    """Convert a BLOB's content as `raw_to_uuid` does a RAW; no bytes are no NULL here.

    Raises:
        OlrPgError: 2053, a value of another length.
    """
    return _uuids(values, "BLOB to uuid")


def _uuids(values: ValueColumn, conversion: str) -> ValueColumn:
    bad = np.flatnonzero((values.length >= 0) & (values.length != _UUID_BYTES))
    if len(bad):
        fail(int(bad[0]), Outcome.OVERFLOW, values, conversion)
    return values


def raw_to_text(values: ValueColumn) -> ValueColumn:
    """RAW → lower-case hex."""
    values = oracle_nulls(values)
    length = np.where(values.length < 0, values.length, 2 * values.length)
    out = np.empty(int(length[length > 0].sum()), np.uint8)
    offset = np.empty_like(values.offset)
    hex_kernel(*values, out, offset)
    return ValueColumn(out, offset, length)


@kernel
def hex_kernel(data: Bytes, offset: Longs, length: Longs, out: Bytes, out_offset: Longs) -> None:
    """Bytes → lower-case hex digits."""
    at = 0
    for row in range(len(length)):
        out_offset[row] = at
        start = offset[row]
        for i in range(start, start + length[row]):
            byte = byte_at(data, i)
            high, low = byte >> 4, byte & 15
            out[at] = high + (48 if high < 10 else 87)
            out[at + 1] = low + (48 if low < 10 else 87)
            at += 2
