"""RAW and LONG RAW values: uninterpreted bytes (values-and-lobs §4).

The module also converts ROWID and UROWID values: addresses of Oracle rows, which are replicated as
text (values-and-lobs §11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.datatypes.columns import ValueColumn, nulls, oracle_nulls, per_distinct
from olr_pg.datatypes.outcomes import Outcome, byte_at, check, fail, malformed
from olr_pg.kernels.compile import kernel
from olr_pg.scalars import format_rowid

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


_TEXT_LENGTH: Final = 18
_EXTENDED_LENGTH: Final = 10
_RESTRICTED_LENGTH: Final = 6
_PHYSICAL: Final = 1
_PHYSICAL_LENGTH: Final = 13
_ALPHABET_TEXT: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_ALPHABET: Final = np.frombuffer(_ALPHABET_TEXT.encode("ascii"), np.uint8)


def decode_rowid(raw: bytes) -> str:
    """Return a ROWID as text: 18 characters, or ``BBBBBBBB.RRRR.FFFF`` for the restricted form.

    Raises:
        OlrPgError: 2050, the length is neither 10 nor 6 bytes.
    """
    if len(raw) == _EXTENDED_LENGTH:
        return format_rowid(
            int.from_bytes(raw[:4], "big"),
            int.from_bytes(raw[4:8], "big"),
            int.from_bytes(raw[8:], "big"),
        )
    if len(raw) == _RESTRICTED_LENGTH:
        dba, slot = int.from_bytes(raw[:4], "big"), int.from_bytes(raw[4:], "big")
        return f"{dba & 0x3FFFFF:08X}.{slot:04X}.{dba >> 22:04X}"
    raise malformed("ROWID", raw)


def decode_urowid(raw: bytes) -> str:
    """Return a UROWID as text. A physical UROWID becomes the text of a ROWID; any other becomes
    ``*`` and its bytes in base 64.

    The physical form is ``01, object u32, file u16, block u32, slot u16``. Two Oracle client
    libraries read this layout; it was not checked with real redo.
    """
    if not raw or (raw[0] == _PHYSICAL and len(raw) != _PHYSICAL_LENGTH):
        raise malformed("UROWID", raw)
    if raw[0] != _PHYSICAL:
        return "*" + _base_64(raw)
    file, block = int.from_bytes(raw[5:7], "big"), int.from_bytes(raw[7:11], "big")
    return format_rowid(
        int.from_bytes(raw[1:5], "big"),
        (file & 0x3FF) << 22 | block & 0x3FFFFF,
        int.from_bytes(raw[11:], "big"),
    )


def _base_64(raw: bytes) -> str:
    bits = int.from_bytes(raw, "big") << -8 * len(raw) % 6
    count = -(-8 * len(raw) // 6)
    return "".join(_ALPHABET_TEXT[bits >> 6 * i & 63] for i in range(count - 1, -1, -1))


def rowid_to_text(values: ValueColumn) -> ValueColumn:
    """Convert ROWID to its text of 18 characters.

    Raises:
        OlrPgError: 2050, the length of a value is neither 10 nor 6 bytes.
    """
    if (values.length == _RESTRICTED_LENGTH).any():
        return per_distinct(values, lambda raw: decode_rowid(raw).encode("ascii"))
    null = nulls(values)
    count = len(null)
    out = np.empty(count * _TEXT_LENGTH, np.uint8)
    row, outcome = rowid_kernel(*values, _ALPHABET, out)
    check(row, outcome, values, "ROWID")
    offset = np.arange(count, dtype=np.int64) * _TEXT_LENGTH
    return ValueColumn(out, offset, np.where(null, np.int64(-1), np.int64(_TEXT_LENGTH)))


def urowid_to_text(values: ValueColumn) -> ValueColumn:
    """Convert UROWID to text.

    Raises:
        OlrPgError: 2050, a value is malformed.
    """
    return per_distinct(values, lambda raw: decode_urowid(raw).encode("ascii"))


@kernel
def _write_digits(value: int, count: int, alphabet: Bytes, out: Bytes, at: int) -> None:
    for i in range(count):
        out[at + count - 1 - i] = alphabet[value >> 6 * i & 63]


@kernel
def rowid_kernel(
    data: Bytes, offset: Longs, length: Longs, alphabet: Bytes, out: Bytes
) -> tuple[int, int]:
    """Convert extended ROWIDs to 18 characters each. Returns (failed row or −1, outcome)."""
    for row in range(len(length)):
        if length[row] <= 0:
            continue
        if length[row] != 10:
            return row, 1
        start = offset[row]
        data_object, dba, slot = 0, 0, 0
        for i in range(4):
            data_object = data_object << 8 | byte_at(data, start + i)
            dba = dba << 8 | byte_at(data, start + 4 + i)
        for i in range(2):
            slot = slot << 8 | byte_at(data, start + 8 + i)
        at = row * 18
        _write_digits(data_object, 6, alphabet, out, at)
        _write_digits(dba >> 22, 3, alphabet, out, at + 6)
        _write_digits(dba & 0x3FFFFF, 6, alphabet, out, at + 9)
        _write_digits(slot, 3, alphabet, out, at + 15)
    return -1, 0
