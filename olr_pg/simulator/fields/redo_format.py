"""The form of a redo log, and the fields of its change vectors that do not change rows.

Version, byte order and block size determine how fields are packed; a database may also write its
redo in unusual ways. Facts: redo-format §0.3, §0.4, §3.1, §5.1.

The module encodes vectors of transactions, sessions, cleanouts and noise. Facts: redo-format §3
(header, field list), §4 (layer 5), §5.1 (KTB redo), §6.1 (index), §8.3 (24.4), §11.4 (templates);
sizes and flags are those of real records.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from olr_pg.scalars import SCN_NONE

if TYPE_CHECKING:
    from collections.abc import Sequence


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


NO_OBJECT: Final = 0xFFFFFFFF

TYP_NORMAL: Final = 0
TYP_NEW: Final = 1
TYP_DELAYED: Final = 2
TYP_MARKER: Final = 6
TYP_ENCRYPTED: Final = 0x80
"""Bit that is added to TYP if the fields are cipher text (redo-format §3.1)."""

KTB_FIRST: Final = 1
KTB_CONTINUE: Final = 2
KTB_UNUSED: Final = 3
KTB_PREVIOUS: Final = 4
KTB_CLEANOUT: Final = 0x10

ITL_COMMITTED: Final = 0x80

STATE_INACTIVE: Final = 9
STATE_CHILD_PREPARED: Final = 11
STATE_PARENT_COMMITTED: Final = 12
"""States of a transaction in 5.4 and 5.12 (redo-format §4.4, §4.7)."""

UNDO_BEGIN: Final = 0x12
UNDO_BEGIN_ONLY: Final = 0x10
UNDO_REGULAR: Final = 0x22
UNDO_NEW_BLOCK: Final = 0x0A
UNDO_BEGIN_NEW_BLOCK: Final = 0x08

KTUB_BEGIN: Final = 0x0C08
KTUB_DONE: Final = 0x0010
KTUB_HEAD: Final = 0x0001
KTUB_TAIL: Final = 0x0002
KTUB_BUFFER_SPLIT: Final = 0x0004
KTUB_MID: Final = 0x0100

OPC_ROW: Final = (11, 1)
OPC_INDEX: Final = (10, 22)
OPC_BEGIN: Final = (5, 7)


KDILK_PURGE: Final = 3
KDILK_RESTORE: Final = 5
KDILK_KEY_DATA: Final = 0x12
KDILK_WHOLE: Final = 0x1E
KDILK_COLUMNS: Final = 0x23


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """The block that a vector changes, as the vector header describes it.

    `scn` and `seq` are the block's state before the change.
    """

    cls: int = 0
    afn: int = 0
    dba: int = 0
    obj: int = 0
    scn: int = 0
    seq: int = 0
    typ: int = TYP_NORMAL


MARKER: Final = VectorBlock(typ=TYP_MARKER)


def change_vector(
    redo: RedoFormat,
    opcode: tuple[int, int],
    block: VectorBlock,
    fields: Sequence[bytes],
    *,
    con_id: int = 0,
    fill: int = 0,
) -> bytes:
    """Encode a change vector; `fill` is written to the bytes that Oracle leaves undefined."""
    sizes = [len(data) for data in fields]
    header = (
        bytes(opcode)
        + redo.pack("HHHI", block.cls, block.afn, block.obj >> 16, block.dba)
        + redo.scn8(block.scn)
        + redo.pack("BBH", block.seq, block.typ, block.obj & 0xFFFF)
    )
    if redo.has_container:
        header += redo.pack("HHHH", con_id, 0, 0, 0)
    parts = [header, redo.pack(f"{1 + len(sizes)}H", 2 + 2 * len(sizes), *sizes)]
    if not len(sizes) % 2:
        parts.append(bytes((fill, fill)))
    pads = [bytes((fill,)) * padding(rest) for rest in range(4)]
    for data in fields:
        parts += (data, pads[len(data) & 3])
    return b"".join(parts)


def undo_size(sizes: Sequence[int]) -> int:
    """Return ktudb.siz: the bytes of the fields from F2 on in the undo block (redo-format §4.2)."""
    table = 2 * (1 + len(sizes))
    return sum([size + 3 & ~3 for size in sizes]) + table + padding(table)


@dataclass(frozen=True, slots=True)
class Ktub:
    """The part of an undo record that names the change (redo-format §4.2).

    Attributes:
        prev_dba: the undo block of the transaction's previous record; 0 if it is this block.
        opc: operation that interprets the undo.
        rci: the number of the transaction's previous record in this block; 0 for none.
        wrp: low half of the transaction's sequence; 1 in the transaction's first record.
    """

    obj: int
    dataobj: int
    tablespace: int
    prev_dba: int
    opc: tuple[int, int]
    slot: int
    rci: int
    flg: int
    wrp: int

    def image(self, redo: RedoFormat, extra_flags: int = 0) -> bytes:
        """Encode the first 24 bytes, which all forms share."""
        return (
            redo.pack("IIII", self.obj, self.dataobj, self.tablespace, self.prev_dba)
            + bytes((*self.opc, self.slot & 0xFF, self.rci))
            + redo.pack("HH", self.flg | extra_flags, self.wrp)
        )

    def begin_image(self, redo: RedoFormat, control: UndoControl) -> bytes:
        """Encode the 76-byte form of a transaction's first undo record."""
        return (
            self.image(redo)
            + bytes(4)
            + control.uba
            + redo.scn8(control.max_commit_scn)
            + redo.scn8(control.commit_scn)
            + bytes(4)
            + redo.scn8(SCN_NONE)
            + redo.pack("III", control.dba, 0, control.user)
        )


@dataclass(frozen=True, slots=True)
class UndoControl:
    """The former contents of a transaction's slot (prev ctl fields of the 76-byte ktub)."""

    uba: bytes
    max_commit_scn: int
    commit_scn: int
    dba: int
    user: int


def ktudb(redo: RedoFormat, siz: int, spc: int, flg: int, xid: bytes, seq: int, rec: int) -> bytes:
    """Encode F1 of a 5.1."""
    return redo.pack("HHHH", siz, spc, flg, 0) + xid + redo.pack("HBB", seq, rec, 0)


def ktudh(
    redo: RedoFormat,
    slot: int,
    sequence: int,
    uba: bytes,
    flg: int,
    siz: int,
    parent: bytes = bytes(8),
) -> bytes:
    """Encode F1 of a 5.2; with `sequence` 0, it changes the header but begins no transaction."""
    return redo.pack("HHI", slot, 0, sequence) + uba + redo.pack("HHB3x", flg, siz, 0) + parent


def undo_applied(redo: RedoFormat, ktub: Ktub, offset: int) -> list[bytes]:
    """Encode the fields of 5.6 and 5.11."""
    return [ktub.image(redo, KTUB_DONE) + bytes(4), redo.pack("HHHH", offset, 0, 2, 0)]


@dataclass(frozen=True, slots=True)
class CommitMark:
    """The end of a transaction in 5.4; `undo` is None if no ktucf field is written.

    `parent_scn` is the commit SCN of the parent, None if there is no parent. The place of the field
    with `parent_scn` in real redo is not known.
    """

    slot: int
    sequence: int
    rolled_back: bool
    undo: tuple[bytes, int] | None
    long_form: bool
    unix_time: int
    parent_scn: int | None = None
    scn_place: int = 0


def commit_fields(redo: RedoFormat, mark: CommitMark) -> list[bytes]:
    """Encode the fields of 5.4."""
    is_child = mark.parent_scn is not None
    flg = (4 if mark.rolled_back else 0) | (2 if mark.undo else 0) | (16 if mark.long_form else 0)
    fields = [
        redo.pack(
            "HHIHHIB3x",
            *(mark.slot, 0, mark.sequence, int(is_child), 0, STATE_INACTIVE, flg | int(is_child)),
        )
    ]
    if mark.undo:
        uba, space = mark.undo
        fields.append(uba + redo.pack("HHBBH", 0, space, 0, 0, 0))
    if mark.long_form:
        fields.append(redo.pack("IIIIII", 0, 0, mark.unix_time, 0, 0, 0))
    fields.append(redo.pack("I", mark.unix_time))
    if mark.parent_scn is not None:
        fields.insert(1 + mark.scn_place % len(fields), redo.scn8(mark.parent_scn))
    return fields


def parent_commit_fields(redo: RedoFormat, slot: int, sequence: int) -> list[bytes]:
    """Encode the fields of the 5.4 that commits a parent and its children."""
    return [redo.pack("HHIHHIB3x", slot, 0, sequence, 0, 0, STATE_PARENT_COMMITTED, 0)]


def state_fields(
    redo: RedoFormat, slot: int, sequence: int, state: int, unix_time: int | None = None
) -> list[bytes]:
    """Encode the fields of 5.12; sizes as in real records."""
    head = redo.pack("HHIHHIII", slot, 0, sequence, 0, 0, state, 0, 0)
    return [head] if unix_time is None else [head, redo.pack("I", unix_time)]


def marker_fields(
    redo: RedoFormat, xid: bytes, start_scn: int, outcome: int, flags: int
) -> list[bytes]:
    """Encode the fields of the 24.4 in the commit record; outcome 1 commit, 2 rollback."""
    return [
        redo.pack("I", 9000) + xid + redo.pack("HH", 0xFF, 0x0E),
        bytes((outcome, 0x0A, 0x09, 0x00)),
        redo.pack("HHH", flags, 1, 0),
        redo.scn8(start_scn),
    ]


def rollback_marker_fields(redo: RedoFormat, xid: bytes) -> list[bytes]:
    """Encode the fields of the 24.4 that announces a rollback, alone in its record."""
    return [redo.pack("I", 9000) + xid + redo.pack("HH", 0x71, 0x0B), b""]


@dataclass(frozen=True, slots=True)
class DatabaseSession:
    """A database session as 5.19 and 5.20 describe it."""

    number: int
    serial: int
    user: str
    user_number: int = 0
    os_user: str = "oracle"
    machine: str = "host"
    process: str = "4242"
    program: str = "sqlplus@host (TNS V1-V3)"
    audit: int = 30014


def session_fields(
    redo: RedoFormat, session: DatabaseSession, *, full: bool, name: str = ""
) -> list[bytes]:
    """Encode the fields of 5.19 (`full`) or 5.20; `name` is the transaction's name."""
    if redo.wide_session:
        first = redo.pack("HHI", 0, session.serial, session.number)
    else:
        first = redo.pack("HH", session.number, session.serial)
    flags = redo.pack("HHH", 0, 1, 0) if redo.has_container else redo.pack("H", 0)
    version = redo.pack("I", redo.version & 0xFF000000)
    audit = redo.pack("Q" if redo.is_23 else "I", session.audit)
    user = session.user.encode()
    if not full:
        return [first, name.encode(), flags, version, audit, b"", b"", user]
    texts = [session.os_user, session.machine, "", session.process, session.program, name]
    return [
        *(first, user, user, b""),
        *(text.encode() for text in texts),
        *(flags, version, audit, b"", b""),
    ]


def _ktb_head(redo: RedoFormat, op: int, *, cleaned: bool) -> bytes:
    flags = 0x0D if redo.ktb_start == 8 else 0x05
    return bytes((op | (KTB_CLEANOUT if cleaned else 0), flags)) + bytes(redo.ktb_start - 2)


def _with_cleanout(redo: RedoFormat, ktb: bytes, cleanout: bytes) -> bytes:
    # The cleanout begins at the same offset for every operation (redo-format §5.1).
    return ktb + bytes(redo.ktb_start + 36 - len(ktb)) + cleanout if cleanout else ktb


def ktb_first(redo: RedoFormat, xid: bytes, uba: bytes, cleanout: bytes = b"") -> bytes:
    """Encode KTB redo F: the transaction claims an ITL entry."""
    head = _ktb_head(redo, KTB_FIRST, cleaned=bool(cleanout))
    return _with_cleanout(redo, head + xid + uba, cleanout)


def ktb_continue(redo: RedoFormat, uba: bytes, cleanout: bytes = b"") -> bytes:
    """Encode KTB redo C: the entry already belongs to the transaction."""
    head = _ktb_head(redo, KTB_CONTINUE, cleaned=bool(cleanout))
    return _with_cleanout(redo, head + uba, cleanout)


def ktb_unused(redo: RedoFormat) -> bytes:
    """Encode KTB redo Z: the entry was never used."""
    return _ktb_head(redo, KTB_UNUSED, cleaned=False)


def ktb_previous(redo: RedoFormat, xid: bytes, uba: bytes, scn: int) -> bytes:
    """Encode KTB redo L: the entry belonged to this committed transaction."""
    head = _ktb_head(redo, KTB_PREVIOUS, cleaned=False)
    # lkc and flg are one 16-bit word: the flag byte comes first on big-endian platforms.
    locks = bytes((ITL_COMMITTED, 0)) if redo.big_endian else bytes((0, ITL_COMMITTED))
    return head + xid + uba + locks + redo.scn6r(scn)


@dataclass(frozen=True, slots=True)
class CleanedEntry:
    """An ITL entry that a cleanout marks as committed."""

    itli: int
    commit_scn: int


def block_cleanout(redo: RedoFormat, scn: int, entries: Sequence[CleanedEntry]) -> bytes:
    """Encode a block cleanout: F1 of 4.1, and the tail of KTB redo with bit 0x10."""
    version = 0x0D if redo.long_scn else 0x01
    parts = [bytes((2, len(entries), version, 0)), redo.scn8(scn, long=True)]
    parts += [bytes((entry.itli, 6)) + redo.scn6r(entry.commit_scn) for entry in entries]
    if redo.long_scn:
        parts.append(bytes(2 * len(entries) + 4))
    return b"".join(parts)


def kdilk(
    redo: RedoFormat, code: int, itli: int, segment: int, dba: int, *, logs: bool = False
) -> bytes:
    """Encode the index undo field; with `logs`, supplemental fields follow the row."""
    return bytes((code, itli, 0x95 if logs else 1, 0)) + redo.pack("IIiI", segment, dba, 0x7FFE, 0)


def index_row(redo: RedoFormat, itli: int, slot: int, size: int, *, others: bool = False) -> bytes:
    """Encode F2 of a leaf change; with `others`, other data follow the key."""
    return redo.pack("BBHH", itli, 0x10 if others else 0, slot, size)
