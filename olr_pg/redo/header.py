"""Blocks 0 and 1 of a redo log: geometry and identity.

Facts: redo-format §1.1–§1.5, checked on real logs of 19c and 23ai.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.layout import (
    BLOCK_SIZES,
    NAB_OPEN,
    RedoLayout,
    format_version,
    is_known_version,
    layout_of,
)
from olr_pg.scalars import SCN_NONE

PROBE_BYTES: Final = 32
"""How many bytes of the file `probe_geometry` needs."""

_MAGIC_LITTLE: Final = b"\x7d\x7c\x7b\x7a"
_MAGIC_BIG: Final = b"\x7a\x7b\x7c\x7d"
_LONG_SCN: Final = 0x8000


@dataclass(frozen=True, slots=True)
class LogHeader:
    """The content of a log's blocks 0 and 1.

    Attributes:
        block_size: 512, 1024 or 4096 bytes.
        big_endian: byte order of the platform that wrote it.
        compat_version: the COMPATIBLE setting, as the file has it (0x13000000 = 19.0.0.0).
        dbid, db_name: of the database (the CDB, not the PDB).
        activation: activation id.
        resetlogs_id: a redo time that names the incarnation.
        next_scn: exclusive end of the log's SCNs; None while the log is being written.
        first_time, next_time: redo times.
        nab: blocks in use, blocks 0 and 1 included; None while the log is being written.
        file_blocks: blocks after block 0, as block 0 has it.
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
        """The way the vectors of this log are laid out."""
        return layout_of(self.compat_version, big_endian=self.big_endian)

    @property
    def version(self) -> str:
        """The COMPATIBLE setting as text."""
        return format_version(self.compat_version)


def probe_geometry(start: bytes | memoryview, *, path: str) -> tuple[int, bool]:
    """(block size, big endian) told by the first `PROBE_BYTES` bytes of a file.

    Raises:
        OlrPgError: 2003, the bytes do not begin a redo log; 2004, fewer bytes than a header.
    """
    start = bytes(start[:PROBE_BYTES])
    if len(start) < PROBE_BYTES:
        raise OlrPgError(Code.LOG_TRUNCATED, f"{len(start)} bytes are no whole block 0", file=path)
    magic = start[28:32]
    if start[0] != 0 or magic not in (_MAGIC_LITTLE, _MAGIC_BIG):
        raise OlrPgError(
            Code.NOT_A_REDO_LOG,
            f"no byte-order mark at offset 28 (found {magic.hex()})",
            file=path,
            offset=28,
        )
    big_endian = magic == _MAGIC_BIG
    block_size = int.from_bytes(start[20:24], "big" if big_endian else "little")
    if block_size not in BLOCK_SIZES or start[1] != _block_type(block_size):
        raise OlrPgError(
            Code.NOT_A_REDO_LOG,
            f"block size {block_size} with block type 0x{start[1]:02x} does not exist",
            file=path,
            offset=20,
        )
    return block_size, big_endian


def parse_log_header(block0: bytes, block1: bytes, *, path: str) -> LogHeader:
    """Parse and check the header of a log from its first two blocks.

    Args:
        block0, block1: exactly one block each.
        path: named in errors.

    Raises:
        OlrPgError: 2003 not a redo log, 2004 too short, 2005 checksum or block header wrong,
            2007 unknown version, 2008 the header was never written.
    """
    block_size, big_endian = probe_geometry(block0, path=path)
    for number, block in enumerate((block0, block1)):
        if len(block) != block_size:
            raise OlrPgError(
                Code.LOG_TRUNCATED, f"block {number} has {len(block)} bytes", file=path
            )
        if block_checksum(block):
            raise OlrPgError(Code.BLOCK_CORRUPT, "the checksum is wrong", file=path, block=number)
    order = ">" if big_endian else "<"
    kind, block_type, _, number, sequence = struct.unpack_from(order + "BBHII", block1)
    if (kind, block_type, number) != (1, _block_type(block_size), 1):
        raise OlrPgError(
            Code.BLOCK_CORRUPT, "the block header is not that of block 1", file=path, block=1
        )
    compat, dbid = struct.unpack_from(order + "II", block1, 20)
    if compat == 0:
        raise OlrPgError(
            Code.LOG_COPIED_TOO_EARLY, "its header was not yet written", file=path, block=1
        )
    if not is_known_version(compat):
        raise OlrPgError(
            Code.REDO_VERSION_UNSUPPORTED,
            f"COMPATIBLE {format_version(compat)} (0x{compat:08x})",
            file=path,
            block=1,
        )
    activation = struct.unpack_from(order + "I", block1, 52)[0]
    nab, resetlogs_id = struct.unpack_from(order + "II", block1, 156)
    thread = struct.unpack_from(order + "H", block1, 176)[0]
    first_time = struct.unpack_from(order + "I", block1, 188)[0]
    next_time = struct.unpack_from(order + "I", block1, 200)[0]
    next_scn = read_scn(block1, 192, big_endian=big_endian)
    return LogHeader(
        block_size=block_size,
        big_endian=big_endian,
        compat_version=compat,
        dbid=dbid,
        db_name=block1[28:36].rstrip(b"\0").decode("ascii", "replace"),
        activation=activation,
        resetlogs_id=resetlogs_id,
        resetlogs_scn=read_scn(block1, 164, big_endian=big_endian),
        thread=thread,
        sequence=sequence,
        first_scn=read_scn(block1, 180, big_endian=big_endian),
        next_scn=None if next_scn == SCN_NONE else next_scn,
        first_time=first_time,
        next_time=next_time,
        nab=None if nab == NAB_OPEN else nab,
        file_blocks=struct.unpack_from(order + "I", block0, 24)[0],
    )


def block_checksum(block: bytes) -> int:
    """XOR of the 16-bit words of a block; 0 for a sound one (redo-format §1.3)."""
    return int(np.bitwise_xor.reduce(np.frombuffer(block, np.uint16)))


def read_scn(data: bytes, offset: int, *, big_endian: bool) -> int:
    """Read an SCN slot of 8 bytes, either form; `SCN_NONE` for none (redo-format §0.3)."""
    base, wrap, extra = struct.unpack_from((">" if big_endian else "<") + "IHH", data, offset)
    if base == 0xFFFFFFFF and wrap == 0xFFFF:
        return SCN_NONE
    if wrap & _LONG_SCN:
        return int(base | extra << 32 | (wrap & 0x7FFF) << 48)
    return int(base | wrap << 32)


def _block_type(block_size: int) -> int:
    return 0x82 if block_size == 4096 else 0x22
