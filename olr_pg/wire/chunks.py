"""Kernels that measure and write the Chunk elements of a row change, which contain its chunked
values.

A chunked value has ColumnValueSize 0 and IsChunked 1 in its row change. Its bytes follow in Chunk
elements of at most the chunk size, column after column. An empty value has one Chunk without bytes.
Facts: protocol, “Elements”.
"""

from __future__ import annotations

from typing import Any, Final

from olr_pg.kernels.bytes import copy_bytes
from olr_pg.kernels.compile import inlined
from olr_pg.wire.elements import ChunkFlags, ElementCode
from olr_pg.wire.frame_writing import put16, put64, put_head

CHUNK_BYTES: Final = 1 << 20
"""The default for the maximum bytes of a value in one Chunk element."""

_CHUNK: Final = int(ElementCode.CHUNK)
_LAST_OF_COLUMN: Final = int(ChunkFlags.LAST_OF_COLUMN)
_LAST_OF_ROW: Final = int(ChunkFlags.LAST_OF_ROW)
_FRAME_AND_HEAD: Final = 35
_FIXED: Final = _FRAME_AND_HEAD + 13
_NAME: Final = 37


@inlined
def value_size(dml: Any, entry: int) -> int:
    """Return the total size in bytes of a value's parts. The caller must have checked that the
    parts are within the data.
    """
    size = 0
    while entry >= 0:
        size += max(0, dml.values.length[entry])
        entry = dml.values.next[entry]
    return size


@inlined
def measure_chunks(
    dml: Any, row: int, base: int, column_size: Any, column_chunked: Any, chunk_bytes: int
) -> tuple[int, int]:
    """Return (total size in bytes, number) of the Chunk frames of a row change. The caller must
    have checked that its values are within the data.
    """
    total, frames = 0, 0
    for entry in range(dml.entry_first[row], dml.entry_first[row + 1]):
        column = base + dml.values.column[entry]
        if column_chunked[column] == 0 or dml.values.length[entry] < 0:
            continue
        size = value_size(dml, entry)
        chunks = max(1, (size + chunk_bytes - 1) // chunk_bytes)
        name = column_size[column] - _NAME
        total += size + chunks * (_FIXED + name)
        frames += chunks
    return total, frames


@inlined
def write_chunks(
    dml: Any, row: int, commit_scn: int, xid: int, base: int, column_size: Any, column_data: Any,
    column_chunked: Any, chunk_bytes: int, big: bool, out: Any, at: int,
) -> int:  # fmt: skip
    """Write the Chunk frames of a row change at `at`, and return their end."""
    last = -1
    for entry in range(dml.entry_first[row], dml.entry_first[row + 1]):
        if column_chunked[base + dml.values.column[entry]] and dml.values.length[entry] >= 0:
            last = entry
    for entry in range(dml.entry_first[row], last + 1):
        column = base + dml.values.column[entry]
        if column_chunked[column] == 0 or dml.values.length[entry] < 0:
            continue
        name = column_size[column] - _NAME
        left = value_size(dml, entry)
        part, within, more = entry, 0, True
        while more:
            size = min(left, chunk_bytes)
            left -= size
            more = left > 0
            flags = 0 if more else _LAST_OF_COLUMN
            if entry == last and not more:
                flags |= _LAST_OF_ROW
            put_head(out, at, _FIXED + name + size, _CHUNK, dml.scn[row], commit_scn, xid,
                     dml.time[row], big)  # fmt: skip
            at += _FRAME_AND_HEAD
            out[at] = name
            at = copy_bytes(out, at + 1, column_data[column], _NAME, _NAME + name)
            put16(out, at, int(column_chunked[column]), big)
            put16(out, at + 2, flags, big)
            put64(out, at + 4, size, big)
            at += 12
            while size > 0:
                count = min(dml.values.length[part] - within, size)
                if count <= 0:
                    part, within = dml.values.next[part], 0
                    continue
                start = dml.values.offset[part] + within
                at = copy_bytes(out, at, dml.data, start, start + count)
                within += count
                size -= count
    return at
