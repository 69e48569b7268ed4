"""A group of online logs as a database writes it, made from archived logs: one step at a time."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from olr_pg.redo.format.file_fields import BLOCK, FILE_HEADER, FIRST_DATA_BLOCK, LOG_HEADER

if TYPE_CHECKING:
    from pathlib import Path


def sealed(block: bytearray) -> bytes:
    """A block with its checksum right again; of block 0 it stands elsewhere (redo-format §1.2)."""
    at = BLOCK.at("checksum") if block[0] == 1 else 16
    block[at : at + 2] = b"\0\0"
    block[at : at + 2] = np.bitwise_xor.reduce(np.frombuffer(block, np.uint16)).tobytes()
    return bytes(block)


class OnlineGroup:
    """One file of a group, little endian, written in place.

    Args:
        path: of the file; it is made with empty blocks.
        blocks: behind block 0.

    Attributes:
        log: what is written into it now, as the archived log will be; None before `begin`.
        written: the block behind what was written of that.
    """

    def __init__(self, path: Path, blocks: int, block_size: int = 512) -> None:
        self.path = path
        self.block_size = block_size
        self._blocks = blocks
        self.log: bytes | None = None
        self.written = FIRST_DATA_BLOCK
        path.write_bytes(bytes((blocks + 1) * block_size))

    def begin(self, log: bytes) -> None:
        """Switch to this group: the header is that of a current log, stale blocks stay."""
        size = self.block_size
        first = bytearray(log[:size])
        struct.pack_into("<I", first, FILE_HEADER.at("blocks"), self._blocks)
        second = bytearray(log[size : 2 * size])
        struct.pack_into("<I", second, LOG_HEADER.at("nab"), 0xFFFFFFFF)
        at = LOG_HEADER.at("next scn")
        second[at : at + 8] = b"\xff" * 8
        self.log, self.written = log, FIRST_DATA_BLOCK
        self.put(0, sealed(first) + sealed(second))

    def write(self, blocks: int | None = None) -> None:
        """Write so many more blocks of the log, by default all."""
        assert self.log is not None
        size, end = self.block_size, len(self.log) // self.block_size
        end = end if blocks is None else min(end, self.written + blocks)
        self.put(self.written, self.log[self.written * size : end * size])
        self.written = end

    def close(self) -> None:
        """Switch to another group: the header has the log's end."""
        assert self.log is not None
        self.put(1, self.log[self.block_size : 2 * self.block_size])

    def put(self, block: int, data: bytes) -> None:
        """Overwrite blocks."""
        with self.path.open("r+b") as file:
            file.seek(block * self.block_size)
            file.write(data)
