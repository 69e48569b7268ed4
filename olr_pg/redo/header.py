"""Parses blocks 0 and 1 of a redo log, which contain its block size, byte order and identity.

Facts: redo-format §1.1–§1.5, checked on real logs of 19c and 23ai.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.format.file_fields import (
    BLOCK,
    BLOCK_SIZES,
    BLOCK_TYPES,
    DB_NAME_SIZE,
    FILE_BLOCK_SIZE,
    FILE_HEADER,
    FILE_MAGIC,
    LOG_HEADER,
    NAB_OPEN,
    RedoLayout,
    format_version,
    is_known_version,
    layout_of,
)
from olr_pg.scalars import SCN_NONE

PROBE_BYTES: Final = FILE_HEADER.size
"""Number of bytes of the file that `probe_geometry` needs."""

_MAGIC_LITTLE: Final = b"\x7d\x7c\x7b\x7a"
_MAGIC_BIG: Final = b"\x7a\x7b\x7c\x7d"
_LONG_SCN: Final = 0x8000


@dataclass(frozen=True, slots=True)
class LogHeader:
    """The content of a log's blocks 0 and 1.

    Attributes:
        block_size: 512, 1024 or 4096 bytes.
        big_endian: True if a big-endian platform wrote the log.
        compat_version: the COMPATIBLE setting as a number (0x13000000 = 19.0.0.0).
        dbid, db_name: id and name of the database (of the CDB, not of a PDB).
        activation: activation id.
        resetlogs_id: a redo time that identifies the incarnation.
        next_scn: every SCN in the log is lower than `next_scn`; None while the log is being
            written.
        first_time, next_time: redo times of first_scn and next_scn.
        nab: number of used blocks, including blocks 0 and 1; None while the log is being written.
        file_blocks: number of blocks after block 0, as stored in block 0.
    """

    block_size: int
    big_endian: bool
    compat_version: int
    dbid: int
    db_name: str
    activation: int
    resetlogs_id: int
    resetlogs_scn: int
    thread: int
    sequence: int
    first_scn: int
    next_scn: int | None
    first_time: int
    next_time: int
    nab: int | None
    file_blocks: int

    @property
    def layout(self) -> RedoLayout:
        """The layout of this log's vectors."""
        return layout_of(self.compat_version, big_endian=self.big_endian)

    @property
    def version(self) -> str:
        """The COMPATIBLE setting as text."""
        return format_version(self.compat_version)


def probe_geometry(start: bytes | memoryview, *, path: str) -> tuple[int, bool]:
    """Return (block size, big endian) from the first `PROBE_BYTES` bytes of a file.

    Raises:
        OlrPgError: 2003 if the bytes are not the beginning of a redo log; 2004 if there are fewer
            bytes than `PROBE_BYTES`.
    """
    start = bytes(start[:PROBE_BYTES])
    if len(start) < PROBE_BYTES:
        raise OlrPgError(Code.LOG_TRUNCATED, f"block 0 is cut off: {len(start)} bytes", file=path)
    magic = start[FILE_MAGIC : FILE_MAGIC + 4]
    if start[0] != 0 or magic not in (_MAGIC_LITTLE, _MAGIC_BIG):
        raise OlrPgError(
            Code.NOT_A_REDO_LOG,
            f"no magic number of a log at offset {FILE_MAGIC} (found {magic.hex()})",
            file=path,
            offset=FILE_MAGIC,
        )
    big_endian = magic == _MAGIC_BIG
    block_size = FILE_HEADER.number(start, "block size", big=big_endian)
    if block_size not in BLOCK_SIZES or start[1] != BLOCK_TYPES[block_size]:
        raise OlrPgError(
            Code.NOT_A_REDO_LOG,
            f"block size {block_size} with block type 0x{start[1]:02x} is unknown",
            file=path,
            offset=FILE_BLOCK_SIZE,
        )
    return block_size, big_endian


def parse_log_header(block0: bytes, block1: bytes, *, path: str) -> LogHeader:
    """Parse and validate the header of a log from its first two blocks.

    Args:
        block0, block1: the bytes of exactly one block each.
        path: name of the file in error messages.

    Raises:
        OlrPgError: 2003: not a redo log; 2004: too short; 2005: wrong checksum or block header;
            2007: unknown version; 2008: the header was never written.
    """
    block_size, big_endian = probe_geometry(block0, path=path)
    for number, block in enumerate((block0, block1)):
        if len(block) != block_size:
            raise OlrPgError(
                Code.LOG_TRUNCATED, f"block {number} has {len(block)} bytes", file=path
            )
        if block_checksum(block):
            raise OlrPgError(Code.BLOCK_CORRUPT, "the checksum is wrong", file=path, block=number)
    place = [BLOCK.number(block1, name, big=big_endian) for name in ("kind", "type", "number")]
    if place != [1, BLOCK_TYPES[block_size], 1]:
        raise OlrPgError(
            Code.BLOCK_CORRUPT, "the block header does not belong to block 1", file=path, block=1
        )
    compat = LOG_HEADER.number(block1, "compat", big=big_endian)
    if compat == 0:
        raise OlrPgError(
            Code.LOG_COPIED_TOO_EARLY,
            "the header of the log was not yet written",
            file=path,
            block=1,
        )
    if not is_known_version(compat):
        raise OlrPgError(
            Code.REDO_VERSION_UNSUPPORTED,
            f"COMPATIBLE {format_version(compat)} (0x{compat:08x})",
            file=path,
            block=1,
        )
    return _log_header(block0, block1, block_size, big=big_endian)


def _log_header(block0: bytes, block1: bytes, block_size: int, *, big: bool) -> LogHeader:
    """Return the header from valid blocks 0 and 1."""

    def number(name: str) -> int:
        return LOG_HEADER.number(block1, name, big=big)

    def scn(name: str) -> int:
        return read_scn(block1, LOG_HEADER.at(name), big_endian=big)

    nab, next_scn, name_at = number("nab"), scn("next scn"), LOG_HEADER.at("db name")
    return LogHeader(
        block_size=block_size,
        big_endian=big,
        compat_version=number("compat"),
        dbid=number("dbid"),
        db_name=block1[name_at : name_at + DB_NAME_SIZE].rstrip(b"\0").decode("ascii", "replace"),
        activation=number("activation"),
        resetlogs_id=number("resetlogs id"),
        resetlogs_scn=scn("resetlogs scn"),
        thread=number("thread"),
        sequence=BLOCK.number(block1, "sequence", big=big),
        first_scn=scn("first scn"),
        next_scn=None if next_scn == SCN_NONE else next_scn,
        first_time=number("first time"),
        next_time=number("next time"),
        nab=None if nab == NAB_OPEN else nab,
        file_blocks=FILE_HEADER.number(block0, "blocks", big=big),
    )


def block_checksum(block: bytes) -> int:
    """Return the XOR of the 16-bit words of a block. The result is 0 if the block is undamaged
    (redo-format §1.3).
    """
    return int(np.bitwise_xor.reduce(np.frombuffer(block, np.uint16)))


def read_scn(data: bytes, offset: int, *, big_endian: bool) -> int:
    """Read an 8-byte SCN, which has one of two forms (redo-format §0.3); return `SCN_NONE` if the
    bytes contain no SCN.
    """
    base, wrap, extra = struct.unpack_from((">" if big_endian else "<") + "IHH", data, offset)
    if base == 0xFFFFFFFF and wrap == 0xFFFF:
        return SCN_NONE
    if wrap & _LONG_SCN:
        return int(base | extra << 32 | (wrap & 0x7FFF) << 48)
    return int(base | wrap << 32)
