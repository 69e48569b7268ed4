"""RAW and LONG RAW values: uninterpreted bytes (values-and-lobs §4)."""

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
    """Return the bytes as lower-case hex."""
    return raw.hex()


def raw_to_bytea(values: ValueColumn) -> ValueColumn:
    """Convert RAW to bytea. The result shares the buffer of `values`."""
    return oracle_nulls(values)


def raw_to_uuid(values: ValueColumn) -> ValueColumn:
    """Convert RAW(16) to uuid. The order of the bytes stays the same (type-mapping §4.10).

    Raises:
        OlrPgError: 2053, a value does not have 16 bytes.
    """
    return _uuids(oracle_nulls(values), "RAW to uuid")


def blob_to_uuid(values: ValueColumn) -> ValueColumn:
    """Convert the values of a BLOB column to uuid, like `raw_to_uuid`. An empty BLOB is not NULL,
    so it is an error.

    Raises:
        OlrPgError: 2053, a value does not have 16 bytes.
    """
    return _uuids(values, "BLOB to uuid")


def _uuids(values: ValueColumn, conversion: str) -> ValueColumn:
    bad = np.flatnonzero((values.length >= 0) & (values.length != _UUID_BYTES))
    if len(bad):
        fail(int(bad[0]), Outcome.OVERFLOW, values, conversion)
    return values


def raw_to_text(values: ValueColumn) -> ValueColumn:
    """Convert RAW to lower-case hex text."""
    values = oracle_nulls(values)
    length = np.where(values.length < 0, values.length, 2 * values.length)
    out = np.empty(int(length[length > 0].sum()), np.uint8)
    offset = np.empty_like(values.offset)
    hex_kernel(*values, out, offset)
    return ValueColumn(out, offset, length)


@kernel
def hex_kernel(data: Bytes, offset: Longs, length: Longs, out: Bytes, out_offset: Longs) -> None:
    """Convert bytes to lower-case hex digits."""
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
