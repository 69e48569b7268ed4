"""Redo of LOB columns, written vector by vector, as values-and-lobs §16–§19 and §26 describe it.

One table ``APP.DOCS (ID NUMBER, TEXT CLOB, IMAGE BLOB)`` of a database with AL32UTF8, container 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from olr_pg.dictionary.model import Column, Database, KeyKind, Lob, LobSegment, Snapshot, Table
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.cells import (
    BASIC_PAGE,
    LOB_BLOCK,
    PAGE,
    direct_load_item,
    fill_item,
    header_item,
    info_item,
    kdli_common,
    list_item,
    list_part_item,
    load_data_item,
    lob_id,
    logged_item,
    long_field,
    operation_fields,
    zero_item,
)
from olr_pg.simulator.fields.redo_format import (
    KTUB_DONE,
    TYP_MARKER,
    CommitMark,
    Ktub,
    RedoFormat,
    VectorBlock,
    change_vector,
    commit_fields,
    kdilk,
    ktb_continue,
    ktb_unused,
    ktudb,
    ktudh,
)
from olr_pg.simulator.fields.row_fields import (
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
    ColumnChange,
    KdoBase,
    RowAddress,
    RowPiece,
    Supplemental,
    Value,
    column_fields,
    delete_kdo,
    insert_kdo,
    update_fields,
    update_kdo,
)
from olr_pg.simulator.writer.log_file import LogIdentity, LwnGroup, OpenLog, RedoRecord

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal
    from pathlib import Path

TABLE_OBJ = 78233
BLOCK = 0x01800083
UNDO_BLOCK = 0x00C00010
LOB_OBJ = {2: 78234, 3: 78236, 18: 78238}
LOB_INDEX = {2: 78235, 3: 78237}
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


@dataclass
class LobRedo:
    """One log in the making, with one transaction open at a time.

    Attributes:
        records: what was written so far.
        scn: of the next record.
        segment: undo segment of the transactions.
        undoes: object and opc of each undo record of the open transaction.
        block_type: of BASICFILE pages; empty for vectors that do not tell it.
        con_id: the container of the next vectors.
    """

    redo: RedoFormat = field(default_factory=RedoFormat)
    records: list[RedoRecord] = field(default_factory=list)
    scn: int = 1000
    sequence: int = 100
    undo: int = 0
    slot: int = 0
    segment: int = 1
    block_type: bytes = LOB_BLOCK
    con_id: int = 0
    undoes: list[tuple[int, tuple[int, int]]] = field(default_factory=list)

    # --- records ---

    def emit(self, *vectors: bytes) -> None:
        """One record."""
        self.scn += 1
        self.records.append(RedoRecord(self.scn, 1, b"".join(vectors)))

    def vector(
        self, op: tuple[int, int], fields: Sequence[bytes], obj: int = 0, **block: int
    ) -> bytes:
        """One vector."""
        where = VectorBlock(obj=obj, **block)
        return change_vector(self.redo, op, where, fields, con_id=self.con_id)

    @property
    def xid(self) -> bytes:
        """Of the open transaction."""
        return self.redo.xid(self.segment, 0, self.sequence)

    def begin(self) -> None:
        """5.2."""
        self.sequence += 1
        self.undo = 0
        self.undoes = []
        header = ktudh(self.redo, 0, self.sequence, bytes(8), 0x12, 100)
        self.emit(self.vector((5, 2), [header], cls=15 + 2 * self.segment))

    def end(self, *, rollback: bool = False) -> None:
        """5.4."""
        mark = CommitMark(0, self.sequence, rollback, None, False, 0)
        self.emit(self.vector((5, 4), commit_fields(self.redo, mark), cls=15 + 2 * self.segment))

    def roll_back(self) -> None:
        """5.6 of every undo record, newest first, then 5.4."""
        for record in range(len(self.undoes), 0, -1):
            self.emit(self.undone(*self.undoes[record - 1], record))
        self.end(rollback=True)

    def ktub(self, obj: int, opc: tuple[int, int], record: int) -> Ktub:
        """That of an undo record."""
        return Ktub(obj, obj, 4, 0, opc, 0, record, 0, self.sequence & 0xFFFF)

    def undo_vector(self, obj: int, opc: tuple[int, int], payload: Sequence[bytes]) -> bytes:
        """5.1."""
        self.undo += 1
        self.undoes.append((obj, opc))
        first = ktudb(self.redo, 100, 100, 0x22, self.xid, 1, self.undo)
        fields = [
            first,
            self.ktub(obj, opc, self.undo).image(self.redo),
            ktb_unused(self.redo),
            *payload,
        ]
        return self.vector((5, 1), fields, cls=16 + 2 * self.segment, dba=UNDO_BLOCK)

    def undone(self, obj: int, opc: tuple[int, int], record: int) -> bytes:
        """5.6 of an undo record."""
        ktub = self.ktub(obj, opc, record).image(self.redo, KTUB_DONE)
        fields = [ktub + bytes(4), self.redo.pack("HHHH", 0, 0, 2, 0)]
        return self.vector((5, 6), fields, cls=16 + 2 * self.segment, dba=UNDO_BLOCK)

    # --- rows ---

    def insert(self, number: Decimal, text: Value, image: Value) -> int:
        """INSERT; its slot."""
        return self.insert_row(cells.number(number).raw, text, image)

    def insert_row(self, *columns: Value) -> int:
        """INSERT of a row with any columns; its slot."""
        slot, self.slot = self.slot, self.slot + 1
        piece = RowPiece(FB_ROW, columns)
        base = KdoBase(BLOCK, BLOCK, 100, 1)
        supplemental = self.supplemental(SUPPLEMENTAL_INSERT, slot, 0, 1)
        undo = [delete_kdo(self.redo, base, OP_DRP | UNDO_SIDE, slot), *supplemental]
        redo = [insert_kdo(self.redo, base, OP_IRP, piece, slot, 1), *column_fields(piece.columns)]
        self.pair(undo, redo, OP_IRP)
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
        supplemental = self.supplemental(
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
        self.pair(undo, redo, OP_URP)

    def delete(self, slot: int, number: Decimal, text: Value, image: Value) -> None:
        """DELETE."""
        self.delete_row(slot, cells.number(number).raw, text, image)

    def delete_row(self, slot: int, *columns: Value) -> None:
        """DELETE of a row with any columns."""
        piece = RowPiece(FB_ROW, columns)
        base = KdoBase(BLOCK, BLOCK, 100, 1)
        supplemental = self.supplemental(SUPPLEMENTAL_DELETE, slot, 1, 0)
        undo = [
            insert_kdo(self.redo, base, OP_IRP | UNDO_SIDE, piece, slot, 1),
            *column_fields(piece.columns),
            *supplemental,
        ]
        self.pair(undo, [delete_kdo(self.redo, base, OP_DRP, slot)], OP_DRP)

    def undo_insert(self, slot: int, record: int) -> None:
        """The rollback of an INSERT."""
        base = KdoBase(BLOCK, BLOCK, 100, 1)
        redo = [ktb_continue(self.redo, bytes(8)), delete_kdo(self.redo, base, OP_DRP, slot)]
        self.emit(
            self.vector((11, OP_DRP), redo, TABLE_OBJ, dba=BLOCK),
            self.undone(TABLE_OBJ, (11, 1), record),
        )

    def supplemental(
        self,
        kind: int,
        slot: int,
        before: int,
        after: int,
        columns: tuple[tuple[int, Value], ...] = (),
    ) -> list[bytes]:
        """The fields of a change of one record."""
        logged = Supplemental(
            kind, GROUP_FIRST | GROUP_LAST, before, after, columns, RowAddress(BLOCK, slot)
        )
        return logged.fields(self.redo)

    def pair(self, undo: Sequence[bytes], redo: Sequence[bytes], code: int) -> None:
        """5.1 with a row vector, behind their KTB redo."""
        self.emit(
            self.undo_vector(TABLE_OBJ, (11, 1), undo),
            self.vector(
                (11, code), [ktb_continue(self.redo, bytes(8)), *redo], TABLE_OBJ, dba=BLOCK
            ),
        )

    # --- LOB storage ---

    def common(self, op: int, kind: int, dba: int) -> bytes:
        """KDLI common."""
        return kdli_common(self.redo, op, kind, dba)

    def direct_page(self, column: int, number: int, dba: int, content: bytes) -> None:
        """26.6, in the layout of real vectors (values-and-lobs §18.3)."""
        fields = [
            self.common(6, 0x20, dba),
            direct_load_item(self.redo, self.scn, self.xid, LOB_OBJ[column]),
            load_data_item(self.redo, number, len(content)),
            content,
            logged_item(self.redo, self.xid, TABLE_OBJ, column),
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
        return info_item(number)

    def fill(self, offset: int, content: bytes) -> bytes:
        """The fill item."""
        return fill_item(self.redo, offset, content)

    def zero(self, offset: int, size: int) -> bytes:
        """The zero item."""
        return zero_item(self.redo, offset, size)

    def block_list(self, runs: Sequence[tuple[int, int]]) -> bytes:
        """An lmap item of (first block, blocks)."""
        return list_item(self.redo, runs)

    def list_part(self, start: int, runs: Sequence[tuple[int, int]]) -> bytes:
        """An almap item."""
        return list_part_item(self.redo, start, runs)

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
        return header_item(self.redo, number, length, lists)

    def long_field(self, column: int, number: int, page: int, dba: int, content: bytes) -> None:
        """19.1: a BASICFILE page, which is always full; of the type of its block `block_type`."""
        padded = content.ljust(BASIC_PAGE, b"\xee")
        fields = [long_field(self.redo, LOB_OBJ[column], number, page, padded)]
        if self.block_type:
            fields.append(self.block_type)
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
        fields = operation_fields(
            self.redo, code, self.xid, number, column=column, table=TABLE_OBJ, size=size
        )
        self.emit(self.vector((11, 17), fields, typ=TYP_MARKER))

    # --- the file ---

    def write(self, folder: Path, *, group: int = 3, thread: int = 1) -> Path:
        """The log as a file, `group` records to an LWN."""
        identity = LogIdentity(1, "LOBS", 1, 1, 1, thread)
        log = OpenLog(self.redo, identity, 1, 1000, TIME)
        for start in range(0, len(self.records), group):
            records = tuple(self.records[start : start + group])
            log.write(LwnGroup(records, records[0].scn, TIME, records[-1].scn + 1))
        path = folder / f"lobs_{thread}_1.arc"
        path.write_bytes(log.close(self.scn + 1, TIME + 1))
        return path
