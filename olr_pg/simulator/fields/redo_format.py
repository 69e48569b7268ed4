"""The properties of a redo log that depend on version, byte order and block size, and the unusual
ways in which a database may write its redo.

Facts: redo-format §0.3, §0.4, §3.1, §5.1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from olr_pg.scalars import SCN_NONE

COMPATIBLE: Final = MappingProxyType(
    {
        "11.2": 0x0B200400,
        "12.1": 0x0C100200,
        "12.2": 0x0C200100,
        "18": 0x12000000,
        "19": 0x13000000,
        "21": 0x15000000,
        "23": 0x17060000,
    }
)
"""The COMPATIBLE setting (compatVsn) of each release."""

BLOCK_SIZES: Final = (512, 1024, 4096)


@lru_cache(maxsize=1024)
def _struct(layout: str) -> struct.Struct:
    return struct.Struct(layout)


def padding(size: int) -> int:
    """Return the number of bytes from `size` to the next multiple of 4."""
    return -size & 3


@dataclass(frozen=True, slots=True)
class RedoFormat:
    """Version, byte order and block size of a log, and the packing that follows from them.

    Attributes:
        version: compatVsn of the file header.
        big_endian: byte order of the platform that writes the log.
        block_size: 512, 1024 or 4096 bytes.
    """

    version: int = COMPATIBLE["19"]
    big_endian: bool = False
    block_size: int = 512

    @property
    def has_container(self) -> bool:
        """Whether vectors and records name their container (from 12.1 on)."""
        return self.version >= 0x0C100000

    @property
    def long_scn(self) -> bool:
        """Whether SCNs of 8 bytes may have the 63-bit form (from 12.2 on)."""
        return self.version >= 0x0C200000

    @property
    def row_scn_size(self) -> int:
        """Bytes of a row's SCN in a table with row dependencies."""
        return 8 if self.long_scn else 6

    @property
    def wide_session(self) -> bool:
        """Whether 5.19 and 5.20 begin with 8 bytes, with the session as a u32 (from 19 on)."""
        return self.version >= 0x13000000

    @property
    def is_23(self) -> bool:
        """Whether the audit session id has 8 bytes and SUBSCN stays at 1 within an SCN (23ai)."""
        return self.version >= 0x17000000

    @property
    def vector_header_size(self) -> int:
        """Bytes before the field list of a change vector."""
        return 32 if self.has_container else 24

    @property
    def block_mark(self) -> int:
        """Byte 1 of every block (redo-format §1.3)."""
        return 0x82 if self.block_size == 4096 else 0x22

    @property
    def ktb_start(self) -> int:
        """The offset at which the data of KTB redo starts: 4 in 11.2, else 8."""
        return 8 if self.has_container else 4

    def pack(self, layout: str, *values: int | bytes) -> bytes:
        """Pack like `struct.pack`, in the byte order of the log; `layout` does not name a byte
        order.
        """
        return _struct((">" if self.big_endian else "<") + layout).pack(*values)

    def unpack(self, layout: str, data: bytes, offset: int = 0) -> tuple[int, ...]:
        """Unpack like `struct.unpack_from`, in the byte order of the log."""
        return _struct((">" if self.big_endian else "<") + layout).unpack_from(data, offset)

    def scn8(self, scn: int, *, long: bool = False) -> bytes:
        """Encode an SCN of 8 bytes; `long` selects the 63-bit form, which exists from 12.2 on."""
        if scn == SCN_NONE:
            return b"\xff" * 8
        if (long and self.long_scn) or scn >> 47:
            high = 0x8000 | scn >> 48 & 0x7FFF
            return self.pack("IHH", scn & 0xFFFFFFFF, high, scn >> 32 & 0xFFFF)
        return self.pack("IHH", scn & 0xFFFFFFFF, scn >> 32, 0)

    def scn6r(self, scn: int) -> bytes:
        """Encode a 6-byte SCN, wrap first; in the 63-bit form if version and value allow it."""
        if self.long_scn and not scn >> 32 & 0xFFFF:
            return self.pack("HI", 0x8000 | scn >> 48, scn & 0xFFFFFFFF)
        return self.pack("HI", scn >> 32 & 0x7FFF, scn & 0xFFFFFFFF)

    def read_scn8(self, data: bytes, offset: int = 0) -> int:
        """Read an SCN of 8 bytes; `SCN_NONE` if the bytes mean "none"."""
        base, high, middle = self.unpack("IHH", data, offset)
        if base == 0xFFFFFFFF and high == 0xFFFF:
            return SCN_NONE
        if high & 0x8000:
            return base | middle << 32 | (high & 0x7FFF) << 48
        return base | high << 32

    def uba(self, dba: int, seq: int, rec: int) -> bytes:
        """Encode an undo byte address."""
        return self.pack("IHBB", dba, seq, rec, 0)

    def xid(self, usn: int, slot: int, sequence: int) -> bytes:
        """Encode a transaction id."""
        return self.pack("HHI", usn, slot, sequence)


class SourceMode(StrEnum):
    """A way of writing redo (docs/simulator.md, "Modes").

    SHARED_UNDO: the undo of all PDBs is in the root, and undo vectors contain the root's container
    id. ENCRYPTED: some tables are in encrypted tablespaces, so that the redo of their blocks is
    cipher text. DEPENDENT_LOADS: direct loads also load tables with row dependencies. LEAF_LOADS:
    CREATE TABLE … AS SELECT creates index-organised tables, and writes their leaf blocks directly.
    PARALLEL_DML: several transactions, which commit together, carry out one statement. ONE_RECORD:
    the commit of some transactions is in the record of their last changes, before these changes.
    FLAGLESS: some changes of one row piece have a supplemental header without the flags "first" and
    "last". STUB_IMAGES: if the head piece of a row has no columns, its undo contains the piece in
    the form that it has in its block.
    """

    SHARED_UNDO = "shared-undo"
    ENCRYPTED = "encrypted"
    DEPENDENT_LOADS = "dependent-loads"
    LEAF_LOADS = "leaf-loads"
    PARALLEL_DML = "parallel-dml"
    ONE_RECORD = "one-record"
    FLAGLESS = "flagless"
    STUB_IMAGES = "stub-images"


UNDECODED_MODES = frozenset({SourceMode.ENCRYPTED, SourceMode.LEAF_LOADS})
"""Modes in which some changes cannot be decoded; ``undecoded.jsonl`` lists these changes."""
