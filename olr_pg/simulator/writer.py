"""One archived log as a file: OS header, redo file header, data blocks, name.

Facts: redo-format §1.2, §1.4, §1.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.layout import (
    FIRST_DATA_BLOCK,
    LwnGroup,
    checksum,
    lay_out_group,
    record_images,
    seal_blocks,
)

if TYPE_CHECKING:
    from olr_pg.simulator.redo_format import RedoFormat

LWN_LENGTH: Final = 32
"""Where a chunk's first record has the length of its LWN."""

MISC_FLAGS: Final = 0x10800011
FORMAT_ID: Final = 18
ZERO_BLOCKS: Final = 8
UNKNOWN_NAB: Final = 0xFFFFFFFF
"""The number of blocks in use that the header of a current log has."""


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """What every log of one thread of one incarnation has in common.

    Attributes:
        dbid: of the whole database (the CDB).
        name: at most 8 characters.
        activation: activation id of the incarnation.
        resetlogs: resetlogs id, a redo time.
        resetlogs_scn: SCN of the resetlogs.
        thread: redo thread.
        online_blocks: size of the online log in blocks.
    """

    dbid: int
    name: str
    activation: int
    resetlogs: int
    resetlogs_scn: int
    thread: int = 1
    online_blocks: int = 409600


@dataclass(slots=True)
class OpenLog:
    """A log that groups are still written to. `first_time` and the times are redo times."""

    redo: RedoFormat
    identity: LogIdentity
    sequence: int
    first_scn: int
    first_time: int
    payloads: list[bytearray] = field(default_factory=list)
    first_offsets: list[np.ndarray[tuple[int], np.dtype[np.uint16]]] = field(default_factory=list)
    blocks: int = 0
    largest_lwn: int = 0

    def write(self, group: LwnGroup, strands: int = 1) -> None:
        """Append one LWN of up to so many strands."""
        chunks = [
            lay_out_group(self.redo, record_images(self.redo, chunk))
            for chunk in group.strands(strands)
        ]
        blocks = sum(len(first) for _, first in chunks)
        for payload, first in chunks:
            payload[LWN_LENGTH : LWN_LENGTH + 4] = self.redo.pack("I", blocks)
            self.payloads.append(payload)
            self.first_offsets.append(first)
        self.blocks += blocks
        self.largest_lwn = max(self.largest_lwn, blocks)

    def close(self, next_scn: int, next_time: int) -> bytes:
        """The bytes of the archived log, closed at `next_scn` (exclusive)."""
        data = b""
        if self.blocks:
            stream = np.frombuffer(b"".join(self.payloads), np.uint8)
            offsets = np.concatenate(self.first_offsets)
            data = seal_blocks(self.redo, stream, offsets, self.sequence).tobytes()
        return self.headers(next_scn, next_time) + data

    def headers(self, next_scn: int, next_time: int) -> bytes:
        """Blocks 0 and 1 of the archived log, closed at `next_scn` (exclusive)."""
        nab = FIRST_DATA_BLOCK + self.blocks
        return _os_header(self.redo, nab - 1) + self._redo_header(nab, next_scn, next_time)

    def online_headers(self, file_blocks: int) -> bytes:
        """Blocks 0 and 1 of the log while it is current, in a file of so many data blocks."""
        count = FIRST_DATA_BLOCK - 1 + file_blocks
        return _os_header(self.redo, count) + self._redo_header(UNKNOWN_NAB, SCN_NONE, 0)

    def _redo_header(self, nab: int, next_scn: int, next_time: int) -> bytes:
        redo, own = self.redo, self.identity
        block = bytearray(redo.block_size)

        def put(offset: int, data: bytes) -> None:
            block[offset : offset + len(data)] = data

        put(0, redo.pack("BBHIIHH", 1, block_mark(redo), 0, 1, self.sequence, 0x8000, 0))
        put(20, redo.pack("II", redo.version, own.dbid))
        put(28, own.name.encode("ascii")[:8])
        put(36, redo.pack("IIIHHI", 1000 + self.sequence, own.online_blocks, redo.block_size,
                          1 + self.sequence % 3, 2, own.activation))  # fmt: skip
        put(92, self._description(next_scn).encode("ascii"))
        put(156, redo.pack("II", nab, own.resetlogs))
        put(164, redo.scn8(own.resetlogs_scn, long=True) + redo.pack("IHH", 2, own.thread, 0))
        put(180, redo.scn8(self.first_scn, long=True) + redo.pack("I", self.first_time))
        put(192, redo.scn8(next_scn, long=True) + redo.pack("I", next_time))
        put(204, redo.pack("BBBB", 0, 0, ZERO_BLOCKS, FORMAT_ID))
        put(208, redo.scn8(own.resetlogs_scn, long=True) + redo.pack("I", own.resetlogs))
        put(220, redo.scn8(self.first_scn, long=True) + redo.pack("I", self.first_time))
        put(236, redo.pack("I", MISC_FLAGS))
        put(252, redo.pack("I", 2))
        put(268, redo.pack("I", self.largest_lwn) + redo.scn8(SCN_NONE))
        put(284, redo.scn8(1, long=True))
        put(14, redo.pack("H", _stored_checksum(redo, bytes(block))))
        return bytes(block)

    def _description(self, next_scn: int) -> str:
        return (
            f"T {self.identity.thread:04d}, S {self.sequence:010d}, "
            f"SCN 0x{self.first_scn:016x}-0x{next_scn:016x}"
        )


def block_mark(redo: RedoFormat) -> int:
    """Byte 1 of every block."""
    return 0x82 if redo.block_size == 4096 else 0x22


def _stored_checksum(redo: RedoFormat, block: bytes) -> int:
    value = checksum(block)
    return (value >> 8 | value << 8) & 0xFFFF if redo.big_endian else value


def _os_header(redo: RedoFormat, count: int) -> bytes:
    block = bytearray(redo.block_size)
    block[1] = block_mark(redo)
    block[4:8] = redo.pack("I", 0xFFC00000)
    block[15] = 4
    block[20:28] = redo.pack("II", redo.block_size, count)
    block[28:32] = b"\x7a\x7b\x7c\x7d" if redo.big_endian else b"\x7d\x7c\x7b\x7a"
    block[16:18] = redo.pack("H", _stored_checksum(redo, bytes(block)))
    return bytes(block)


def archived_name(name_format: str, identity: LogIdentity, sequence: int) -> str:
    """The file name of a log_archive_format: %t %T thread, %s %S sequence, %r resetlogs id,
    %d database id, %a activation id; capitals pad with zeros.
    """
    values = {
        "t": str(identity.thread),
        "T": f"{identity.thread:04d}",
        "s": str(sequence),
        "S": f"{sequence:010d}",
        "r": str(identity.resetlogs),
        "d": f"{identity.dbid:08x}",
        "a": f"{identity.activation:08x}",
    }
    return re.sub("%([tTsSrda])", lambda match: values[match[1]], name_format)
