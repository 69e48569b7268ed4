"""Blocks 0 and 1 of a log: their fields, read from a block and encoded into a block.

Bytes without a named field are zero in every real log, so a block rebuilt from its fields equals
the real block. Values that follow from other fields (checksum, block number, byte-order mark,
description) and constants are not fields. Facts: redo-format §1.2, §1.3, §1.4; the header blocks of
the real 23ai logs, which fix the forms of the SCNs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.fields.block_layout import BLOCK_HEADER_SIZE, checksum

if TYPE_CHECKING:
    from olr_pg.simulator.fields.redo_format import RedoFormat

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
        unknown: u32 at 252. Its meaning is unknown; it is 2 in all real logs.
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
        """Read the fields of a block 1."""
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
