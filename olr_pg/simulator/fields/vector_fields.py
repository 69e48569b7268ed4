"""Fields of change vectors that do not change rows: transactions, sessions, cleanouts, noise.

Facts: redo-format §3 (header, field list), §4 (layer 5), §5.1 (KTB redo), §6.1 (index), §8.3
(24.4), §11.4 (templates); sizes and flags are those of real records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.fields.redo_format import RedoFormat, padding

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    `parent_scn` is the commit SCN of the parent, None if there is no parent. The place of its field
    in real redo is not known.
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
