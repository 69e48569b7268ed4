"""Lays out records in blocks: LWN groups, block headers, first-record offsets, checksums.

The algorithm is redo-format §11.2. The payloads of a group's blocks (block size − 16 bytes each)
are one byte stream. So NumPy can cut all blocks of a log and write their headers at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from olr_pg.simulator.fields.redo_format import RedoFormat, padding

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK_HEADER_SIZE: Final = 16
RECORD_HEADER_SIZE: Final = 24
LWN_HEADER_SIZE: Final = 68
FIRST_DATA_BLOCK: Final = 2
LWN_LENGTH: Final = 32
"""Offset of the LWN's length in the header of a chunk's first record."""

VLD_VALID: Final = 0x01
VLD_VOID: Final = 0x02
VLD_LWN: Final = 0x04


@dataclass(frozen=True, slots=True)
class RedoRecord:
    """A record without its header.

    Attributes:
        scn: 48 bits.
        subscn: from 1, counts the records of one SCN.
        vld: the VLD byte without the LWN bit; 1 valid, 2 void.
        con_uid: 0 outside CDBs and before 12.1.
    """

    scn: int
    subscn: int
    body: bytes
    vld: int = VLD_VALID
    con_uid: int = 0


@dataclass(frozen=True, slots=True)
class LwnGroup:
    """Records that were flushed together.

    Attributes:
        next_scn: the SCN field at offset 56.
        chunk: which redo strand contains the records, from 0; `chunks` is how many strands there
            are.
    """

    records: tuple[RedoRecord, ...]
    scn: int
    time: int
    next_scn: int
    chunk: int = 0
    chunks: int = 1

    def strands(self, count: int) -> list[LwnGroup]:
        """Divide the records among up to `count` strands; records of one SCN stay together."""
        parts = [list[RedoRecord]() for _ in range(count)]
        for record in self.records:
            parts[record.scn * 40_503 % 65_536 % count].append(record)
        filled = [tuple(part) for part in parts if part]
        return [
            replace(self, records=part, chunk=number, chunks=len(filled))
            for number, part in enumerate(filled)
        ]


def _first_header(redo: RedoFormat, group: LwnGroup) -> bytes:
    return (
        redo.pack("HHIIB3x", group.chunk, group.chunks, 0, 0, 0x0A)
        + redo.scn8(group.scn)
        + bytes(8)
        + redo.scn8(group.next_scn)
        + redo.pack("I", group.time)
    )


def record_images(redo: RedoFormat, group: LwnGroup) -> list[bytes]:
    """Encode the records of a group with their headers; the size of the LWN is still missing."""
    images = list[bytes]()
    for number, record in enumerate(group.records):
        extension = b"" if number else _first_header(redo, group)
        vld = record.vld | (0 if number else VLD_LWN)
        length = RECORD_HEADER_SIZE + len(extension) + len(record.body)
        header = redo.pack(
            "IBBHIHBBIHH",
            *(length, vld, 0, record.scn >> 32 & 0xFFFF, record.scn & 0xFFFFFFFF),
            *(record.subscn, 0, 0, record.con_uid, 0, 0),
        )
        images.append(header + extension + record.body)
    return images


def lay_out_group(
    redo: RedoFormat, images: Sequence[bytes]
) -> tuple[bytearray, npt.NDArray[np.uint16]]:
    """Return the payloads of an LWN's blocks, and each block's first-record offset (0 = none).

    The LWN size is patched into the first record (offsets 28 and 32).
    """
    payload = redo.block_size - BLOCK_HEADER_SIZE
    stream = bytearray()
    starts = list[int]()
    ends = list[int]()
    for image in images:
        left = -len(stream) % payload
        if left < RECORD_HEADER_SIZE:
            stream += bytes(left)  # A record header never spans two blocks.
        starts.append(len(stream))
        stream += image
        stream += bytes(padding(len(image)))
        ends.append(len(stream))
    count = -(-len(stream) // payload)
    stream[28:36] = redo.pack("II", count, count)
    stream += bytes(count * payload - len(stream))
    return stream, _first_offsets(redo, count, starts, ends)


def _first_offsets(
    redo: RedoFormat, count: int, starts: Sequence[int], ends: Sequence[int]
) -> npt.NDArray[np.uint16]:
    payload = redo.block_size - BLOCK_HEADER_SIZE
    first = np.zeros(count, np.uint16)
    for positions in (reversed(ends), reversed(starts)):
        for position in positions:
            block, offset = divmod(position, payload)
            # A record that ends at the border of a block has no data in the next block.
            if offset and offset <= payload - RECORD_HEADER_SIZE:
                first[block] = offset + BLOCK_HEADER_SIZE
    for position in starts:
        if position % payload == 0:
            first[position // payload] = BLOCK_HEADER_SIZE
    return first


def seal_blocks(
    redo: RedoFormat,
    payloads: npt.NDArray[np.uint8],
    first_offsets: npt.NDArray[np.uint16],
    sequence: int,
    first_block: int = FIRST_DATA_BLOCK,
) -> npt.NDArray[np.uint8]:
    """Make data blocks with headers and checksums; shape (blocks, block size)."""
    order = ">" if redo.big_endian else "<"
    size = redo.block_size
    blocks = np.zeros((len(first_offsets), size), np.uint8)
    blocks[:, BLOCK_HEADER_SIZE:] = payloads.reshape(-1, size - BLOCK_HEADER_SIZE)
    blocks[:, 0] = 1
    blocks[:, 1] = redo.block_mark
    words = blocks.view(order + "u4")
    words[:, 1] = np.arange(first_block, first_block + len(blocks))
    words[:, 2] = sequence
    halves = blocks.view(order + "u2")
    halves[:, 6] = first_offsets | 0x8000
    halves[:, 7] = np.bitwise_xor.reduce(halves, axis=1)
    return blocks


def checksum(block: bytes) -> int:
    """XOR the block's 16-bit words, little endian; 0 if the block contains its right checksum."""
    return int(np.bitwise_xor.reduce(np.frombuffer(block, "<u2")))
