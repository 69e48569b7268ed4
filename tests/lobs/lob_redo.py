"""Redo of LOB columns, written vector by vector, as values-and-lobs §16–§19 and §26 describe it.

One table ``APP.DOCS (ID NUMBER, TEXT CLOB, IMAGE BLOB)`` of a database with AL32UTF8, container 0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from olr_pg.dictionary.lob import Lob, LobSegment
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.simulator import cells
from olr_pg.simulator.layout import LwnGroup, RedoRecord
from olr_pg.simulator.redo_format import RedoFormat
from olr_pg.simulator.rows import (
    FB_ROW,
    GROUP_FIRST,
    GROUP_LAST,
    OP_DRP,
    OP_IRP,
    OP_URP,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_UPDATE,
    UNDO_SIDE,
    Address,
    ColumnChange,
    KdoBase,
    RowPiece,
    Supplemental,
    Value,
    column_fields,
    delete_kdo,
    insert_kdo,
    update_fields,
    update_kdo,
)
from olr_pg.simulator.vectors import (
    KTUB_DONE,
    TYP_MARKER,
    CommitMark,
    Ktub,
    VectorBlock,
    change_vector,
    commit_fields,
    kdilk,
    ktb_continue,
    ktb_unused,
    ktudb,
    ktudh,
)
from olr_pg.simulator.writer import LogIdentity, OpenLog

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal
    from pathlib import Path

TABLE_OBJ = 78233
BLOCK = 0x01800083
LOB_OBJ = {2: 78234, 3: 78236, 18: 78238}
LOB_INDEX = {2: 78235, 3: 78237}
PAGE = 8060
BASIC_PAGE = 8132
BLOB, CLOB, NCLOB = 1, 2, 4
TIME = 1_100_000_000


def table(*, securefile: bool = True) -> Table:
    """The table, in the form that a dictionary snapshot would have it."""

    def lob(column: int) -> Lob:
        own = LobSegment(
            LOB_OBJ[column], LOB_OBJ[column], LOB_INDEX[column], LOB_INDEX[column], 8192
        )
        return Lob((own,), securefile)

    columns = (
        Column("ID", 1, 1, 1, 2, 22, nullable=False),
        Column("TEXT", 2, 2, 2, 112, 4000, charset_id=873, charset_form=1, lob=lob(2)),
        Column("IMAGE", 3, 3, 3, 113, 4000, lob=lob(3)),
    )
    return Table("APP", "DOCS", TABLE_OBJ, TABLE_OBJ, columns, key_kind=KeyKind.PRIMARY, key=(1,))


def snapshot(*tables: Table) -> Snapshot:
    """A dictionary of these tables, by default of `table`."""
    return Snapshot(1, Database("LOBS", activation=1, resetlogs=(1,)), tables or (table(),))


def lob_id(number: int) -> bytes:
    """A LOB id."""
    return b"\0\0\0\1" + number.to_bytes(6)


def head(kind: int, number: int, *, secure: bool, inode: bool = True, wide: bool = True) -> bytes:
    """The first 20 bytes of a locator; `wide` for a multi-byte database's CLOB."""
    character = 2 if kind != BLOB and wide else 1
    flags = 0x80 if kind != BLOB and wide else 0
    return (
        struct.pack(">HHBBBBH", 0x70, 1, kind, 0x0C if inode else 0x08, flags,
                    0x80 if secure else 0, character) + lob_id(number)
    )  # fmt: skip


def width_of(number: int) -> int:
    """Bytes that a number needs, at least 1."""
    return max(1, (number.bit_length() + 7) // 8)


def secure_in_row(
    kind: int, number: int, content: bytes, version: int = 1, *, wide: bool = True
) -> bytes:
    """A SECUREFILE locator with its bytes (values-and-lobs §26)."""
    size = width_of(len(content))
    inode = bytes((size - 1, 0)) + len(content).to_bytes(size) + bytes((version,)) + content
    return (
        head(kind, number, secure=True, wide=wide)
        + struct.pack(">HBBH", len(inode) + 6, 0x48, 0x90, len(inode))
        + inode
    )


def secure_extents(
    kind: int, number: int, length: int, extents: Sequence[tuple[int, int]], version: int = 1
) -> bytes:
    """A SECUREFILE locator of extents (first block, blocks), the last page partly filled."""
    size = width_of(length)
    left, listed = length, b""
    for first, blocks in extents:
        own = min(left, blocks * PAGE)
        left -= own
        listed += bytes((width_of(own) - 1,)) + first.to_bytes(4) + bytes((blocks,))
    inode = bytes((0x20 | size - 1, 0)) + length.to_bytes(size) + bytes((version,))
    inode += bytes((len(extents) - 1,)) + listed
    return (
        head(kind, number, secure=True)
        + struct.pack(">HBBH", len(inode) + 6, 0x40, 0x90, len(inode))
        + inode
    )


def secure_header(kind: int, number: int, length: int, dba: int) -> bytes:
    """A SECUREFILE locator that leads to a header block."""
    size = width_of(length)
    inode = bytes((0x40 | size - 1, 0)) + length.to_bytes(size) + b"\1" + dba.to_bytes(4)
    return (
        head(kind, number, secure=True)
        + struct.pack(">HBBH", len(inode) + 6, 0x40, 0x90, len(inode))
        + inode
    )


def secure_packed(kind: int, number: int, length: int, packed: bytes) -> bytes:
    """A compressed SECUREFILE locator with its zlib stream in the row."""
    size, width = width_of(length), width_of(len(packed))
    extra = bytes((0x21, 0x80, 0x04 | width - 1)) + len(packed).to_bytes(width)
    body = bytes((0x10 | size - 1, 0)) + length.to_bytes(size) + b"\1"
    body += len(packed).to_bytes(2) + packed
    rest = struct.pack(">BHH", 0x80, len(extra), len(body)) + extra + body
    return head(kind, number, secure=True) + struct.pack(">HBB", len(rest) + 4, 0x40, 0xD2) + rest


def secure_packed_extents(
    kind: int, number: int, length: int, packed: int, first: int, *, chunked: bool
) -> bytes:
    """A compressed SECUREFILE locator with one extent of stored bytes."""
    size, width = width_of(length), width_of(packed)
    extra = bytes((0x31, 0x02 if chunked else 0x81, 0x04 | width - 1)) + packed.to_bytes(width)
    blocks = -(-packed // PAGE)
    body = bytes((0x30 | size - 1, 0)) + length.to_bytes(size) + b"\1\0"
    body += bytes((size - 1,)) + first.to_bytes(4) + bytes((blocks,)) + length.to_bytes(size)
    rest = struct.pack(">HH", len(extra), len(body)) + extra + body
    return head(kind, number, secure=True) + struct.pack(">HBB", len(rest) + 4, 0x40, 0x92) + rest


def basic_in_row(kind: int, number: int, content: bytes) -> bytes:
    """A BASICFILE locator with its bytes."""
    return (
        head(kind, number, secure=False)
        + struct.pack(">HBBIH6s", len(content) + 16, 9, 0, 0, len(content), b"\0\0\0\0\0\1")
        + content
    )


def basic_pointers(kind: int, number: int, length: int, pages: Sequence[int]) -> bytes:
    """A BASICFILE locator with the blocks of its first pages."""
    listed = b"".join(page.to_bytes(4) for page in pages)
    full, rest = divmod(length, BASIC_PAGE)
    return (
        head(kind, number, secure=False)
        + struct.pack(">HBBIH6s", len(listed) + 16, 4, 0, full, rest, b"\0\0\0\0\0\1")
        + listed
    )


def basic_outside(kind: int, number: int) -> bytes:
    """The 20 bytes of a BASICFILE LOB that is never in the row."""
    return head(kind, number, secure=False, inode=False)


def index_data(page: int, length: int, blocks: Sequence[int]) -> bytes:
    """The 32 bytes of a LOB index row."""
    listed = b"".join(block.to_bytes(4) for block in blocks)
    if page:
        return listed.ljust(32, b"\0")
    full, rest = divmod(length, BASIC_PAGE)
    return (struct.pack(">IIH6s", 0, full, rest, b"\0\0\0\0\0\1") + listed).ljust(32, b"\0")


def index_key(number: int, page: int) -> bytes:
    """The 16 bytes of a LOB index key."""
    return b"\x0a" + lob_id(number) + b"\x04" + page.to_bytes(4)


@dataclass
class LobRedo:
    """One log in the making, with one transaction open at a time.

    Attributes:
        records: what was written so far.
        scn: of the next record.
    """

    redo: RedoFormat = field(default_factory=RedoFormat)
    records: list[RedoRecord] = field(default_factory=list)
    scn: int = 1000
    sequence: int = 100
    undo: int = 0
    slot: int = 0

    # --- records ---

    def emit(self, *vectors: bytes) -> None:
        """One record."""
        self.scn += 1
        self.records.append(RedoRecord(self.scn, 1, b"".join(vectors)))

    def vector(
        self, op: tuple[int, int], fields: Sequence[bytes], obj: int = 0, **block: int
    ) -> bytes:
        """One vector."""
        return change_vector(self.redo, op, VectorBlock(obj=obj, **block), fields)

    @property
    def xid(self) -> bytes:
        """Of the open transaction; undo segment 1."""
        return self.redo.xid(1, 0, self.sequence)

    def begin(self) -> None:
        """5.2."""
        self.sequence += 1
        self.undo = 0
        header = ktudh(self.redo, 0, self.sequence, bytes(8), 0x12, 100)
        self.emit(self.vector((5, 2), [header], cls=17))

    def end(self, *, rollback: bool = False) -> None:
        """5.4."""
        mark = CommitMark(0, self.sequence, rollback, None, False, None)
        self.emit(self.vector((5, 4), commit_fields(self.redo, mark), cls=17))

    def ktub(self, obj: int, opc: tuple[int, int]) -> Ktub:
        """That of the newest undo record."""
        return Ktub(obj, obj, 4, 0, opc, 0, self.undo, 0, self.sequence & 0xFFFF)

    def undo_vector(self, obj: int, opc: tuple[int, int], payload: Sequence[bytes]) -> bytes:
        """5.1."""
        self.undo += 1
        first = ktudb(self.redo, 100, 100, 0x22, self.xid, 1, self.undo)
        fields = [first, self.ktub(obj, opc).image(self.redo), ktb_unused(self.redo), *payload]
        return self.vector((5, 1), fields, cls=18, dba=0x00C00010)

    def undone(self, obj: int, opc: tuple[int, int], record: int) -> bytes:
        """5.6 of an undo record."""
        ktub = Ktub(obj, obj, 4, 0, opc, 0, record, 0, self.sequence & 0xFFFF)
        fields = [ktub.image(self.redo, KTUB_DONE) + bytes(4), self.redo.pack("HHHH", 0, 0, 2, 0)]
        return self.vector((5, 6), fields, cls=18, dba=0x00C00010)

    # --- rows ---

    def insert(self, number: Decimal, text: Value, image: Value) -> int:
        """INSERT; its slot."""
        return self.insert_row(cells.number(number).raw, text, image)

    def insert_row(self, *columns: Value) -> int:
        """INSERT of a row with any columns; its slot."""
        slot, self.slot = self.slot, self.slot + 1
        piece = RowPiece(FB_ROW, columns)
        base = KdoBase(BLOCK, BLOCK, 100, 1)
        supplemental = self._supplemental(SUPPLEMENTAL_INSERT, slot, 0, 1)
        undo = [delete_kdo(self.redo, base, OP_DRP | UNDO_SIDE, slot), *supplemental]
        redo = [insert_kdo(self.redo, base, OP_IRP, piece, slot, 1), *column_fields(piece.columns)]
        self._pair(undo, redo, OP_IRP)
        return slot

    def update(
        self,
        slot: int,
        number: Decimal,
        before: dict[int, Value],
        after: dict[int, Value],
        logged: dict[int, Value] | None = None,
        *,
        width: int = 3,
    ) -> None:
        """UPDATE of segment columns (from 1) of a row of `width` columns.

        The key is in the supplemental data, and `logged`.
        """
        base = KdoBase(BLOCK, BLOCK, 100, 1)
        numbers = tuple(column - 1 for column in sorted(after))
        old = ColumnChange(FB_ROW, width, numbers, tuple(before[n + 1] for n in numbers), 0)
        new = ColumnChange(FB_ROW, width, numbers, tuple(after[n + 1] for n in numbers), 0)
        supplemental = self._supplemental(
            SUPPLEMENTAL_UPDATE, slot, numbers[0] + 1, numbers[0] + 1,
            ((1, cells.number(number).raw), *(logged or {}).items()),
        )  # fmt: skip
        undo = [
            update_kdo(self.redo, base, OP_URP | UNDO_SIDE, old, slot, 1),
            *update_fields(self.redo, old),
            *supplemental,
        ]
        redo = [
            update_kdo(self.redo, base, OP_URP, new, slot, 1), *update_fields(self.redo, new)
        ]  # fmt: skip
        self._pair(undo, redo, OP_URP)

    def delete(self, slot: int, number: Decimal, text: Value, image: Value) -> None:
        """DELETE."""
        self.delete_row(slot, cells.number(number).raw, text, image)

    def delete_row(self, slot: int, *columns: Value) -> None:
        """DELETE of a row with any columns."""
        piece = RowPiece(FB_ROW, columns)
        base = KdoBase(BLOCK, BLOCK, 100, 1)
        supplemental = self._supplemental(SUPPLEMENTAL_DELETE, slot, 1, 0)
        undo = [
            insert_kdo(self.redo, base, OP_IRP | UNDO_SIDE, piece, slot, 1),
            *column_fields(piece.columns),
            *supplemental,
        ]
        self._pair(undo, [delete_kdo(self.redo, base, OP_DRP, slot)], OP_DRP)

    def undo_insert(self, slot: int, record: int) -> None:
        """The rollback of an INSERT."""
        base = KdoBase(BLOCK, BLOCK, 100, 1)
        redo = [ktb_continue(self.redo, bytes(8)), delete_kdo(self.redo, base, OP_DRP, slot)]
        self.emit(
            self.vector((11, OP_DRP), redo, TABLE_OBJ, dba=BLOCK),
            self.undone(TABLE_OBJ, (11, 1), record),
        )

    def _supplemental(
        self,
        kind: int,
        slot: int,
        before: int,
        after: int,
        columns: tuple[tuple[int, Value], ...] = (),
    ) -> list[bytes]:
        logged = Supplemental(
            kind, GROUP_FIRST | GROUP_LAST, before, after, columns, Address(BLOCK, slot)
        )
        return logged.fields(self.redo)

    def _pair(self, undo: Sequence[bytes], redo: Sequence[bytes], code: int) -> None:
        self.emit(
            self.undo_vector(TABLE_OBJ, (11, 1), undo),
            self.vector(
                (11, code), [ktb_continue(self.redo, bytes(8)), *redo], TABLE_OBJ, dba=BLOCK
            ),
        )

    # --- LOB storage ---

    def common(self, op: int, kind: int, dba: int) -> bytes:
        """KDLI common."""
        return self.redo.pack("BBBBHHI", op, kind, 2, 0, PAGE, 128, dba)

    def load_data(self, number: int, size: int) -> bytes:
        """The load data item of 56 bytes."""
        return b"\x04\0" + bytes(10) + lob_id(number) + bytes(30) + self.redo.pack("I", size)

    def suplog(self, column: int) -> bytes:
        """The suplog item."""
        return b"\x09\0\0\0" + self.xid + self.redo.pack("IHHI", TABLE_OBJ, 1, column, 0)

    def direct_page(self, column: int, number: int, dba: int, content: bytes) -> None:
        """26.6, in the layout of real vectors (values-and-lobs §18.3)."""
        load = (
            self.redo.pack("BBHI", 0x0B, 0, 0, 8192)
            + self.redo.scn8(self.scn)
            + self.xid
            + self.redo.pack("II", LOB_OBJ[column], 0)
        )
        fields = [
            self.common(6, 0x20, dba), load, self.load_data(number, len(content)), content,
            self.suplog(column),
        ]  # fmt: skip
        self.emit(self.vector((26, 6), fields, LOB_OBJ[column], dba=dba))

    def direct_pages(
        self, column: int, number: int, content: bytes, *extents: tuple[int, int]
    ) -> None:
        """26.6 of every page of a value."""
        blocks = [first + k for first, count in extents for k in range(count)]
        for place, dba in enumerate(blocks):
            page = content[place * PAGE : (place + 1) * PAGE]
            if page:
                self.direct_page(column, number, dba, page)

    def page_change(self, column: int, dba: int, *items: bytes) -> int:
        """5.1 with 26.2; the undo record's number."""
        obj = LOB_OBJ[column]
        self.emit(
            self.undo_vector(obj, (26, 1), [self.common(1, 0x20, dba)]),
            self.vector(
                (26, 2),
                [ktb_continue(self.redo, bytes(8)), self.common(0, 0x20, dba), *items],
                obj,
                dba=dba,
            ),
        )
        return self.undo

    def undo_page_change(self, column: int, dba: int, record: int, *items: bytes) -> None:
        """26.2 with 5.6: the rollback of a `page_change`."""
        obj = LOB_OBJ[column]
        self.emit(
            self.vector(
                (26, 2),
                [ktb_continue(self.redo, bytes(8)), self.common(0, 0x20, dba), *items],
                obj,
                dba=dba,
            ),
            self.undone(obj, (26, 1), record),
        )

    def info(self, number: int) -> bytes:
        """The info item."""
        return b"\x01" + lob_id(number) + bytes(6)

    def fill(self, offset: int, content: bytes) -> bytes:
        """The fill item."""
        return self.redo.pack("BBHHH", 6, 0, offset, PAGE, len(content)) + content

    def zero(self, offset: int, size: int) -> bytes:
        """The zero item."""
        return self.redo.pack("BBHHH", 5, 0, offset, size, 0)

    def block_list(self, runs: Sequence[tuple[int, int]]) -> bytes:
        """An lmap item of (first block, blocks)."""
        listed = b"".join(self.redo.pack("BBHI", 0, 0, count, first) for first, count in runs)
        return self.redo.pack("BBHI", 7, 0, 0, len(runs)) + listed

    def list_part(self, start: int, runs: Sequence[tuple[int, int]]) -> bytes:
        """An almap item."""
        listed = b"".join(self.redo.pack("BBHI", 0, 0, count, first) for first, count in runs)
        return self.redo.pack("BBHII", 0x0D, 0, 0, len(runs), start) + listed

    def index_tree(self, number: int, runs: Sequence[tuple[int, int]]) -> list[bytes]:
        """A load itree item, and an imap item of the same entries."""
        listed = b"".join(self.redo.pack("BBHI", 0, 0, count, first) for first, count in runs)
        load = bytearray(40)
        load[0] = 0x0F
        load[12:22] = lob_id(number)
        tree = self.redo.pack("BBHII", 0x10, 0, 0, len(runs), 0)
        return [bytes(load) + listed, tree + listed]

    def lob_header(self, number: int, length: int, lists: Sequence[int]) -> bytes:
        """A load LHB item."""
        item = bytearray(112)
        item[0] = 0x0C
        item[12:22] = lob_id(number)
        item[32:36] = self.redo.pack("I", length)
        item[64:80] = self.redo.pack("IIII", *(list(lists) + [0] * 4)[:4])
        return bytes(item)

    def long_field(self, column: int, number: int, page: int, dba: int, content: bytes) -> None:
        """19.1: a BASICFILE page, which is always full."""
        first = self.redo.pack("I", LOB_OBJ[column]) + lob_id(number) + bytes(2)
        first += self.redo.pack("IHHIII", 1, 0, 0, page, 0, 0)
        fields = [first + content.ljust(BASIC_PAGE, b"\xee")]
        self.emit(self.vector((19, 1), fields, LOB_OBJ[column], dba=dba, typ=1))

    def long_fields(self, column: int, number: int, content: bytes, blocks: Sequence[int]) -> None:
        """19.1 of every page of a value."""
        for page, dba in enumerate(blocks):
            own = content[page * BASIC_PAGE : (page + 1) * BASIC_PAGE]
            self.long_field(column, number, page, dba, own)

    def index_insert(self, column: int, key: bytes, data: bytes) -> None:
        """5.1 with 10.2."""
        obj = LOB_INDEX[column]
        undo = [kdilk(self.redo, 3, 1, BLOCK, BLOCK), key]
        redo = [ktb_continue(self.redo, bytes(8)), bytes(6), key, data]
        self.emit(
            self.undo_vector(obj, (10, 22), undo), self.vector((10, 2), redo, obj, dba=BLOCK + 9)
        )

    def index_update(self, column: int, key: bytes, data: bytes) -> None:
        """5.1 with 10.18."""
        obj = LOB_INDEX[column]
        undo = [kdilk(self.redo, 0x12, 1, BLOCK, BLOCK), key, bytes(32)]
        redo = [ktb_continue(self.redo, bytes(8)), bytes(6), data]
        self.emit(
            self.undo_vector(obj, (10, 22), undo), self.vector((10, 18), redo, obj, dba=BLOCK + 9)
        )

    def index_first(self, column: int, key: bytes, data: bytes) -> None:
        """5.1 with 10.8."""
        obj = LOB_INDEX[column]
        row = b"\1\1" + data + key
        redo = [ktb_continue(self.redo, bytes(8)), bytes(16), bytes(4), row]
        undo = [kdilk(self.redo, 3, 1, BLOCK, BLOCK)]
        self.emit(
            self.undo_vector(obj, (10, 22), undo), self.vector((10, 8), redo, obj, dba=BLOCK + 9)
        )

    def operation(self, code: int, column: int, number: int, size: int) -> None:
        """11.17 of kind 1, in the layout of a real record."""
        third = bytes((code, 0, 0, 0)) + self.xid + lob_id(number)
        third += self.redo.pack("HIIII", column, 1, PAGE, size, TABLE_OBJ) + bytes(40)
        self.emit(self.vector((11, 17), [bytes(16), b"\1", third, bytes(8)], typ=TYP_MARKER))

    # --- the file ---

    def write(self, folder: Path, *, group: int = 3) -> Path:
        """The log as a file, `group` records to an LWN."""
        log = OpenLog(self.redo, LogIdentity(1, "LOBS", 1, 1, 1), 1, 1000, TIME)
        for start in range(0, len(self.records), group):
            records = tuple(self.records[start : start + group])
            log.write(LwnGroup(records, records[0].scn, TIME, records[-1].scn + 1))
        path = folder / "lobs_1_1.arc"
        path.write_bytes(log.close(self.scn + 1, TIME + 1))
        return path
