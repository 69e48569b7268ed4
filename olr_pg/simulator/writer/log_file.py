"""Writes a log: its header blocks, the blocks of its records, and the file with its name.

Bytes without a named field are zero in blocks 0 and 1 of every real log, so a header block rebuilt
from its fields equals the real block. Values that follow from other fields (checksum, block number,
byte-order mark, description) and constants are not fields. Facts: redo-format §1.2–§1.5; the header
blocks of the real 23ai logs, which fix the forms of the SCNs.

Records are laid out in blocks as redo-format §11.2 describes: LWN groups, block headers,
first-record offsets, checksums. The payloads of a group's blocks (block size − 16 bytes each) are
one byte stream. So NumPy can cut all blocks of a log and write their headers at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.fields.redo_format import RedoFormat, padding

if TYPE_CHECKING:
    from collections.abc import Sequence


OS_MARK: Final = 0xFFC00000
OS_TYPE: Final = 4
LITTLE_ENDIAN: Final = b"\x7d\x7c\x7b\x7a"
BIG_ENDIAN: Final = b"\x7a\x7b\x7c\x7d"
NO_FIRST_RECORD: Final = 0x8000
FILE_TYPE_LOG: Final = 2
DESCRIPTION_SIZE: Final = 64
MISC_FLAGS: Final = 0x10800011
ZERO_BLOCKS: Final = 8
FORMAT_ID: Final = 18
REDO_KEY_SIZE: Final = 48

_LONG_SCN: Final = "long SCN"
_SHORT_SCN: Final = "short SCN"
"""SCNs of 8 bytes (redo-format §0.3). A long SCN has 63 bits from 12.2 on, and 48 bits before. A
short SCN has 48 bits in every version.
"""


@dataclass(frozen=True, slots=True)
class OsHeader:
    """Block 0.

    Attributes:
        count: blocks after block 0.
        unknown: u32 at 32. Its meaning is unknown; it is 4 in the real 23ai logs, 0x81A0 in a 19c
            log.
    """

    count: int
    unknown: int = 0

    @staticmethod
    def read(redo: RedoFormat, block: bytes) -> OsHeader:
        """Read the fields of a block 0."""
        count, unknown = redo.unpack("I", block, 24)[0], redo.unpack("I", block, 32)[0]
        return OsHeader(count, unknown)

    def image(self, redo: RedoFormat) -> bytes:
        """Encode the block, with its checksum."""
        block = bytearray(redo.block_size)
        block[1] = redo.block_mark
        block[4:8] = redo.pack("I", OS_MARK)
        block[15] = OS_TYPE
        block[20:28] = redo.pack("II", redo.block_size, self.count)
        block[28:32] = BIG_ENDIAN if redo.big_endian else LITTLE_ENDIAN
        block[32:36] = redo.pack("I", self.unknown)
        block[16:18] = redo.pack("H", _stored_checksum(redo, bytes(block)))
        return bytes(block)


def _at(offset: int, layout: str, **default: int | bytes) -> Any:
    """Declare a field of block 1: its offset, and its `struct` layout or its form of SCN."""
    return field(metadata={"offset": offset, "layout": layout}, **default)  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderBlock:
    """Block 1, the redo log header. The times and `resetlogs` are redo times.

    Attributes:
        sequence: log sequence number.
        name: the name of the database, 8 bytes, NUL padded.
        control_sequence: sequence of the control file at the last write of the header.
        online_blocks: size of the online log in blocks.
        group: number of the online log's group.
        nab: blocks in use, including 0 and 1; 0xFFFFFFFF while the log is current.
        header_writes: how often the header was written; 2 in closed logs.
        next_scn: exclusive; `SCN_NONE` while the log is current.
        end_of_thread, disabled: whether the thread ends, or is disabled, at the end of this log.
        unknown: u32 at 252. The meaning of this field is unknown; its value is 2 in all real logs.
        largest_lwn: blocks of the largest LWN.
        real_next_scn: `SCN_NONE` in all real logs.
        redo_key: 48 random bytes: the key of encrypted redo, at offset 432 in 23ai and 448 in 19c.
        redo_key_flag: its meaning is not certain; 0x75 in the real 23ai logs.
    """

    sequence: int = _at(8, "I")
    dbid: int = _at(24, "I")
    name: bytes = _at(28, "8s")
    control_sequence: int = _at(36, "I")
    online_blocks: int = _at(40, "I")
    group: int = _at(48, "H")
    activation: int = _at(52, "I")
    nab: int = _at(156, "I")
    resetlogs: int = _at(160, "I")
    resetlogs_scn: int = _at(164, _LONG_SCN)
    header_writes: int = _at(172, "I", default=2)
    thread: int = _at(176, "H")
    first_scn: int = _at(180, _LONG_SCN)
    first_time: int = _at(188, "I")
    next_scn: int = _at(192, _LONG_SCN)
    next_time: int = _at(200, "I")
    end_of_thread: int = _at(204, "B", default=0)
    disabled: int = _at(205, "B", default=0)
    zero_blocks: int = _at(206, "B", default=ZERO_BLOCKS)
    format_id: int = _at(207, "B", default=FORMAT_ID)
    enabled_scn: int = _at(208, _LONG_SCN)
    enabled_time: int = _at(216, "I")
    closed_scn: int = _at(220, _LONG_SCN)
    closed_time: int = _at(228, "I")
    misc_flags: int = _at(236, "I", default=MISC_FLAGS)
    terminal_scn: int = _at(240, _SHORT_SCN, default=0)
    terminal_time: int = _at(248, "I", default=0)
    unknown: int = _at(252, "I", default=2)
    most_recent_scn: int = _at(260, _SHORT_SCN, default=0)
    largest_lwn: int = _at(268, "I")
    real_next_scn: int = _at(272, _LONG_SCN, default=SCN_NONE)
    apply_delay: int = _at(280, "I", default=0)
    previous_resetlogs_scn: int = _at(284, _SHORT_SCN, default=1)
    previous_resetlogs: int = _at(292, "I", default=0)
    misc_flags_2: int = _at(296, "I", default=0)
    standby_close_time: int = _at(304, "I", default=0)
    redo_key: bytes = _at(432, f"{REDO_KEY_SIZE}s", default=bytes(REDO_KEY_SIZE))
    redo_key_flag: int = _at(480, "H", default=0)

    @staticmethod
    def read(redo: RedoFormat, block: bytes) -> HeaderBlock:
        """Read the fields of block 1 of a log."""
        values = dict[str, Any]()
        for one in fields(HeaderBlock):
            offset, layout = one.metadata["offset"], one.metadata["layout"]
            if layout in (_LONG_SCN, _SHORT_SCN):
                values[one.name] = redo.read_scn8(block, offset)
            else:
                (values[one.name],) = redo.unpack(layout, block, offset)
        return HeaderBlock(**values)

    def image(self, redo: RedoFormat) -> bytes:
        """Encode the block, with its checksum."""
        block = bytearray(redo.block_size)
        head = redo.pack("BBHIIH", 1, redo.block_mark, 0, 1, self.sequence, NO_FIRST_RECORD)
        block[: BLOCK_HEADER_SIZE - 2] = head
        block[20:24] = redo.pack("I", redo.version)
        block[44:48] = redo.pack("I", redo.block_size)
        block[50:52] = redo.pack("H", FILE_TYPE_LOG)
        block[92 : 92 + DESCRIPTION_SIZE] = self.description.ljust(DESCRIPTION_SIZE, b"\0")
        for one in fields(self):
            offset, layout = one.metadata["offset"], one.metadata["layout"]
            value = getattr(self, one.name)
            if layout in (_LONG_SCN, _SHORT_SCN):
                data = redo.scn8(value, long=layout == _LONG_SCN)
            else:
                data = redo.pack(layout, value)
            block[offset : offset + len(data)] = data
        block[14:16] = redo.pack("H", _stored_checksum(redo, bytes(block)))
        return bytes(block)

    @property
    def archived_name(self) -> str:
        """The name of the archived log, by the format ``arch%t_%s_%r.dbf``."""
        return f"arch{self.thread}_{self.sequence}_{self.resetlogs}.dbf"

    @property
    def description(self) -> bytes:
        """The text in which the header describes the log."""
        return (
            f"T {self.thread:04d}, S {self.sequence:010d}, "
            f"SCN 0x{self.first_scn:016x}-0x{self.next_scn:016x}"
        ).encode("ascii")


def _stored_checksum(redo: RedoFormat, block: bytes) -> int:
    value = checksum(block)
    return (value >> 8 | value << 8) & 0xFFFF if redo.big_endian else value


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


FIRST_CONTROL_SEQUENCE: Final = 1000
GROUPS: Final = 3
UNKNOWN_NAB: Final = 0xFFFFFFFF
"""The number of blocks in use (nab) in the header of a current log."""


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """The header values that all logs of one thread and one incarnation share.

    Attributes:
        dbid: DBID of the whole database (the CDB).
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
    """A log that is still written. All times are redo times."""

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
        """Append one LWN with up to `strands` strands."""
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
        """Return the bytes of the archived log, which ends before `next_scn`."""
        return self.headers(next_scn, next_time) + self.sealed(0)

    def sealed(self, first: int, moved: int = 0) -> bytes:
        """Return the data blocks from `first` on (from 0), with headers; `first` begins an LWN.

        `moved` is added to the block numbers in the headers.
        """
        payloads, offsets, block = list[bytearray](), [np.zeros(0, np.uint16)], 0
        for payload, own in zip(self.payloads, self.first_offsets, strict=True):
            if block >= first:
                payloads.append(payload)
                offsets.append(own)
            block += len(own)
        stream = np.frombuffer(b"".join(payloads), np.uint8)
        block = FIRST_DATA_BLOCK + first + moved
        return seal_blocks(
            self.redo, stream, np.concatenate(offsets), self.sequence, block
        ).tobytes()

    @property
    def name(self) -> str:
        """The name of its archived log."""
        return self.header().archived_name

    def headers(self, next_scn: int, next_time: int) -> bytes:
        """Return blocks 0 and 1 of the archived log, which ends before `next_scn`."""
        header = self.closed(next_scn, next_time)
        return OsHeader(header.nab - 1).image(self.redo) + header.image(self.redo)

    def closed(self, next_scn: int, next_time: int) -> HeaderBlock:
        """Return block 1 of the archived log, which ends before `next_scn`."""
        return self._header(FIRST_DATA_BLOCK + self.blocks, next_scn, next_time)

    def header(self) -> HeaderBlock:
        """Return block 1 of the log while it is current."""
        return self._header(UNKNOWN_NAB, SCN_NONE, 0)

    def _header(self, nab: int, next_scn: int, next_time: int) -> HeaderBlock:
        own = self.identity
        return HeaderBlock(
            sequence=self.sequence,
            dbid=own.dbid,
            name=own.name.encode("ascii")[:8],
            control_sequence=FIRST_CONTROL_SEQUENCE + self.sequence,
            online_blocks=own.online_blocks,
            group=1 + self.sequence % GROUPS,
            activation=own.activation,
            nab=nab,
            resetlogs=own.resetlogs,
            resetlogs_scn=own.resetlogs_scn,
            thread=own.thread,
            first_scn=self.first_scn,
            first_time=self.first_time,
            next_scn=next_scn,
            next_time=next_time,
            enabled_scn=own.resetlogs_scn,
            enabled_time=own.resetlogs,
            closed_scn=self.first_scn,
            closed_time=self.first_time,
            largest_lwn=self.largest_lwn,
        )
