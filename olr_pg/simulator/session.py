"""A session of the model: SQL-level row changes become undo, redo and delivered changes.

Facts: redo-format §4.0–§4.6, §5.4–§5.9, §7.5, §11.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.rows import (
    FB_ROW,
    GROUP_FIRST,
    GROUP_LAST,
    OP_DRP,
    OP_IRP,
    OP_LKR,
    OP_QMD,
    OP_QMI,
    OP_URP,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_LOCK,
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
    lock_kdo,
    multi_kdo,
    multi_rows,
    stored_size,
    update_fields,
    update_kdo,
)
from olr_pg.simulator.storage import (
    CLASS_DATA,
    ROW_SPACE,
    UPDATE_SPACE,
    DataBlock,
    Row,
    TransactionalBlock,
    undo_vector_block,
)
from olr_pg.simulator.tables import Logging, SimIndex, SimTable
from olr_pg.simulator.transactions import Change, Transaction, UndoEntry
from olr_pg.simulator.vectors import (
    KTUB_BEGIN,
    OPC_BEGIN,
    OPC_INDEX,
    OPC_ROW,
    TYP_DELAYED,
    TYP_NORMAL,
    UNDO_BEGIN,
    UNDO_BEGIN_NEW_BLOCK,
    UNDO_BEGIN_ONLY,
    UNDO_NEW_BLOCK,
    UNDO_REGULAR,
    CommitMark,
    Ktub,
    Session,
    UndoControl,
    block_cleanout,
    commit_fields,
    index_row,
    kdilk,
    ktb_continue,
    ktb_first,
    ktudb,
    ktudh,
    marker_fields,
    rollback_marker_fields,
    session_fields,
    undo_applied,
    undo_size,
)
from olr_pg.transactions.batch import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.simulator.cells import Cell
    from olr_pg.simulator.instance import Container, Instance, RecordWriter, RedoThread

    FieldPair = tuple[list[bytes], list[bytes]]

MAX_FREE_ROW: Final = 4858
SLOT_SIZE: Final = 2
KDO_XTYPE: Final = 11
XTYPE_ROLLBACK: Final = 2


@dataclass(frozen=True, slots=True)
class BlockChange:
    """One undo and redo pair to write.

    Attributes:
        fields: from the ITL entry to the fields after the KTB redo, undo side and redo side.
        undone_by: opcode of the vector that takes it back, None where there is none.
        revert: takes it back in the model.
        delivers: the change that it completes.
    """

    block: TransactionalBlock
    obj: int
    dataobj: int
    tablespace: int
    opc: tuple[int, int]
    code: tuple[int, int]
    undone_by: tuple[int, int] | None
    fields: Callable[[int], FieldPair]
    revert: Callable[[], None]
    delivers: tuple[Change, ...] = ()


def stored_columns(cells: Sequence[Cell | None]) -> tuple[Value, ...]:
    """The columns of a row as stored: NULLs at the end are not."""
    width = len(cells)
    while width and cells[width - 1] is None:
        width -= 1
    return tuple(cell.raw if cell else None for cell in cells[:width])


class SimSession:
    """A session. It has at most one transaction at a time."""

    def __init__(
        self,
        instance: Instance,
        container: Container,
        thread: RedoThread,
        attributes: Session,
    ) -> None:
        self.instance = instance
        self.container = container
        self.thread = thread
        self.attributes = attributes
        self.transaction: Transaction | None = None
        self._announced = -1
        self._redo = instance.redo
        self._rng = instance.rng

    # -- the statements ---------------------------------------------------------------------

    def begin_empty(self) -> bool:
        """Begin a transaction without a change (undo operation 5.7). False: no slot is free."""
        if self.transaction is not None or not self._open_transaction():
            return False
        record = self._record()
        self._write_begin_only(record)
        record.emit()
        return True

    def insert(self, table: SimTable, cells: Sequence[Cell | None]) -> Row | None:
        """INSERT of one row; None where no transaction slot is free."""
        if not self._ready():
            return None
        piece = RowPiece(FB_ROW, stored_columns(cells))
        space = piece.size + SLOT_SIZE
        block = table.block_for(space, ROW_SPACE, self.instance.scn)
        slot = block.next_slot()
        row = Row(table, block, slot, list(cells), self.transaction)
        record = self._record()
        base = self._kdo(table, block)
        change = self._delivered(DmlKind.INSERT, row, record.scn, {}, dict(enumerate(cells)))
        supplemental = self._supplemental(SUPPLEMENTAL_INSERT, row, 0, 1)

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            undo = delete_kdo(self._redo, own, OP_DRP | UNDO_SIDE, slot)
            redo = insert_kdo(self._redo, own, OP_IRP, piece, slot, itli)
            return [undo, *supplemental], [redo, *column_fields(piece.columns)]

        def revert() -> None:
            self._remove_row(row, space)

        block.put(slot, row)
        block.used += space
        table.add_live(row)
        self._write(record, self._row_change(table, block, OP_IRP, OP_DRP, fields, revert, change))
        record.emit()
        self._maintain_indexes(row, row.cells, insert=True)
        return row

    def insert_many(self, table: SimTable, rows: Sequence[Sequence[Cell | None]]) -> list[Row]:
        """Array INSERT into one block: QMI. Rows that do not fit are left out."""
        if not self._ready():
            return []
        pieces = [RowPiece(FB_ROW, stored_columns(cells)) for cells in rows]
        block = table.block_for(pieces[0].size + SLOT_SIZE, ROW_SPACE, self.instance.scn)
        record = self._record()
        made, slots = list[Row](), list[int]()
        for cells, piece in zip(rows, pieces, strict=True):
            if block.used + piece.size + SLOT_SIZE > ROW_SPACE:
                break
            slot = block.next_slot()
            row = Row(table, block, slot, list(cells), self.transaction)
            block.put(slot, row)
            block.used += piece.size + SLOT_SIZE
            table.add_live(row)
            made.append(row)
            slots.append(slot)
        kept = pieces[: len(made)]
        base = self._kdo(table, block)
        changes = tuple(
            self._delivered(DmlKind.INSERT, row, record.scn, {}, dict(enumerate(row.cells)))
            for row in made
        )

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            undo = multi_kdo(self._redo, own, OP_QMD | UNDO_SIDE, slots, 0)
            redo = multi_kdo(self._redo, own, OP_QMI, slots, itli)
            return [undo], [redo, *multi_rows(self._redo, kept, itli)]

        def revert() -> None:
            for row, piece in zip(reversed(made), reversed(kept), strict=True):
                self._remove_row(row, piece.size + SLOT_SIZE)

        self._write(
            record, self._row_change(table, block, OP_QMI, OP_QMD, fields, revert, *changes)
        )
        record.emit()
        for row in made:
            self._maintain_indexes(row, row.cells, insert=True)
        return made

    def delete(self, row: Row) -> bool:
        """DELETE of one row; False where it may not."""
        if not self._may_change(row):
            return False
        table, block, owner = row.table, row.block, row.owner
        piece = RowPiece(FB_ROW, stored_columns(row.cells))
        record = self._record()
        change = self._delivered(DmlKind.DELETE, row, record.scn, dict(enumerate(row.cells)), {})
        base, held = self._kdo(table, block), owner is self.transaction
        supplemental = self._supplemental(SUPPLEMENTAL_DELETE, row, 1, 0)

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            lock = itli if held else 0
            undo = insert_kdo(self._redo, own, OP_IRP | UNDO_SIDE, piece, row.slot, lock)
            redo = delete_kdo(self._redo, own, OP_DRP, row.slot)
            return [undo, *column_fields(piece.columns), *supplemental], [redo]

        revert = self._mark_deleted(row, piece.size + SLOT_SIZE)
        self._write(record, self._row_change(table, block, OP_DRP, OP_IRP, fields, revert, change))
        record.emit()
        self._maintain_indexes(row, row.cells, insert=False)
        return True

    def delete_many(self, rows: Sequence[Row]) -> bool:
        """Array DELETE of rows of one block: QMD."""
        if not rows or not all(self._may_change(row) for row in rows):
            return False
        table, block = rows[0].table, rows[0].block
        pieces = [RowPiece(FB_ROW, stored_columns(row.cells)) for row in rows]
        record = self._record()
        changes = tuple(
            self._delivered(DmlKind.DELETE, row, record.scn, dict(enumerate(row.cells)), {})
            for row in rows
        )
        slots = [row.slot for row in rows]
        base = self._kdo(table, block)

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            undo = multi_kdo(self._redo, own, OP_QMI | UNDO_SIDE, slots, 0)
            redo = multi_kdo(self._redo, own, OP_QMD, slots, itli)
            return [undo, *multi_rows(self._redo, pieces, 0)], [redo]

        reverts = [
            self._mark_deleted(row, piece.size + SLOT_SIZE)
            for row, piece in zip(rows, pieces, strict=True)
        ]

        def revert() -> None:
            for take_back in reversed(reverts):
                take_back()

        self._write(
            record, self._row_change(table, block, OP_QMD, OP_QMI, fields, revert, *changes)
        )
        record.emit()
        for row in rows:
            self._maintain_indexes(row, row.cells, insert=False)
        return True

    def update(self, row: Row, new: Mapping[int, Cell | None]) -> bool:
        """UPDATE of one row; `new` by 0-based column. False where it may not or does not fit."""
        if not new or not self._may_change(row):
            return False
        table, block, owner, old = row.table, row.block, row.owner, list(row.cells)
        cells = [new.get(number, cell) for number, cell in enumerate(old)]
        undo_side, redo_side = self._sides(old, cells, list(new))
        if block.used + redo_side.size > UPDATE_SPACE:
            return False
        record = self._record()
        logged = self._logged_columns(table, new)
        before = {number: old[number] for number in sorted({*new, *logged})}
        change = self._delivered(DmlKind.UPDATE, row, record.scn, before, dict(sorted(new.items())))
        base, held = self._kdo(table, block), owner is self.transaction
        supplemental = self._supplemental(
            SUPPLEMENTAL_UPDATE,
            row,
            undo_side.numbers[0] + 1,
            redo_side.numbers[0] + 1,
            tuple((number + 1, cell.raw if (cell := old[number]) else None) for number in logged),
        )

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            lock = itli if held else 0
            undo = update_kdo(self._redo, own, OP_URP | UNDO_SIDE, undo_side, row.slot, lock)
            redo = update_kdo(self._redo, own, OP_URP, redo_side, row.slot, itli)
            return (
                [undo, *update_fields(self._redo, undo_side), *supplemental],
                [redo, *update_fields(self._redo, redo_side)],
            )

        def revert() -> None:
            row.cells, row.owner = old, owner
            block.used -= redo_side.size

        row.cells, row.owner = cells, self.transaction
        block.used += redo_side.size
        self._write(record, self._row_change(table, block, OP_URP, OP_URP, fields, revert, change))
        record.emit()
        self._maintain_changed_indexes(row, old, cells)
        return True

    def lock(self, row: Row) -> bool:
        """SELECT … FOR UPDATE of one row: LKR."""
        if not self._may_change(row) or row.owner is self.transaction:
            return False
        table, owner = row.table, row.owner
        record = self._record()
        base = self._kdo(table, row.block)
        supplemental = self._supplemental(SUPPLEMENTAL_LOCK, row, 0, 0)

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            undo = lock_kdo(self._redo, own, OP_LKR | UNDO_SIDE, row.slot, 0)
            return [undo, *supplemental], [lock_kdo(self._redo, own, OP_LKR, row.slot, itli)]

        def revert() -> None:
            row.owner = owner

        row.owner = self.transaction
        self._write(record, self._row_change(table, row.block, OP_LKR, OP_LKR, fields, revert))
        record.emit()
        return True

    # -- the ends ---------------------------------------------------------------------------

    def savepoint(self) -> int:
        """A mark for `rollback_to`."""
        return len(self.transaction.undo) if self.transaction else 0

    def rollback_to(self, mark: int) -> None:
        """Take back the newest changes down to a savepoint; also a failed statement's."""
        transaction = self.transaction
        while transaction is not None and len(transaction.undo) > mark:
            if not self._undo_newest(transaction):
                break

    def commit(self) -> None:
        """COMMIT; nothing where no transaction is open."""
        transaction = self.transaction
        if transaction is None:
            return
        record = self.instance.record(self.thread, self.container, commit=True)
        with_undo = transaction.last_undo if self._rng.random() < 0.85 else None
        self._write_end(record, transaction, rolled_back=False, undo=with_undo)
        self._close(transaction, record.scn, committed=True)
        if transaction.changes:
            self.instance.committed.append(transaction)
        if self._rng.random() < self.instance.pace.flush_at_commit:
            self.thread.flush()

    def rollback(self) -> None:
        """ROLLBACK of the whole transaction."""
        transaction = self.transaction
        if transaction is None:
            return
        record = self._record()
        record.vector((24, 4), rollback_marker_fields(self._redo, transaction.xid_bytes))
        record.emit()
        self.rollback_to(0)
        record = self._record()
        self._write_end(record, transaction, rolled_back=True, undo=None)
        self._close(transaction, record.scn, committed=False)

    def _write_end(
        self,
        record: RecordWriter,
        transaction: Transaction,
        *,
        rolled_back: bool,
        undo: tuple[bytes, int] | None,
    ) -> None:
        segment = transaction.segment
        long_form = not rolled_back and self._redo.long_scn and self._rng.random() < 0.2
        with_time = self._redo.has_container
        mark = CommitMark(
            *(transaction.slot, transaction.sequence, rolled_back, undo, long_form),
            self.instance.unix_time if with_time else None,
        )
        header = undo_vector_block(segment.header, record.scn, cls=segment.header_class)
        record.vector((5, 4), commit_fields(self._redo, mark), header)
        outcome = 2 if rolled_back else 1
        record.vector(
            (24, 4),
            marker_fields(self._redo, transaction.xid_bytes, transaction.begin_scn, outcome, 0),
        )
        record.emit()

    def _close(self, transaction: Transaction, scn: int, *, committed: bool) -> None:
        transaction.active, transaction.commit_scn = False, scn
        for finish in transaction.on_end:
            finish(committed)
        transaction.on_end.clear()
        transaction.segment.retire(transaction)
        slot = transaction.segment.slots[transaction.slot]
        slot.holder, slot.commit_scn = None, scn
        if transaction.last_undo and transaction.undo_block:
            slot.last_uba, slot.last_dba = transaction.last_undo[0], transaction.undo_block.dba
        transaction.segment.max_commit_scn = scn
        transaction.undo.clear()
        self.transaction = None

    # -- undo and redo ----------------------------------------------------------------------

    def _record(self) -> RecordWriter:
        return self.instance.record(self.thread, self.container)

    def _ready(self) -> bool:
        return self.transaction is not None or self._open_transaction()

    def _open_transaction(self) -> bool:
        segments = self.container.segments[self.thread.number]
        segment = segments[self._rng.randrange(len(segments))]
        number = segment.free_slot()
        if number is None:
            return False
        slot = segment.slots[number]
        slot.sequence += 1
        xid = self._redo.xid(segment.usn, number, slot.sequence)
        slot.holder = Transaction(
            *(segment, number, slot.sequence, xid, self.thread.number, self.container.con_id)
        )
        self.transaction = slot.holder
        return True

    def _may_change(self, row: Row) -> bool:
        owner = row.owner
        if row.deleted or (owner is not None and owner.active and owner is not self.transaction):
            return False
        return self._ready()

    def _ktub(
        self,
        transaction: Transaction,
        change: BlockChange | None,
        *,
        begins: bool,
        prev_dba: int,
        rci: int,
    ) -> Ktub:
        return Ktub(
            change.obj if change else 0,
            change.dataobj if change else 0,
            change.tablespace if change else 0,
            prev_dba,
            change.opc if change else OPC_BEGIN,
            transaction.slot,
            rci,
            KTUB_BEGIN if begins else 0,
            1 if begins else transaction.sequence & 0xFFFF,
        )

    def _write_undo(
        self, record: RecordWriter, change: BlockChange | None, payload: Sequence[bytes]
    ) -> tuple[UndoEntry, bytes]:
        """Place and write the undo record (with 5.2 where it is due); the entry and its UBA."""
        transaction = self.transaction
        assert transaction is not None
        segment, begins = transaction.segment, not transaction.begin_scn
        size = undo_size([76 if begins else 24, *map(len, payload)])
        place = segment.place(transaction, size)
        transaction.undo_block = place.block
        ktub = self._ktub(
            transaction, change, begins=begins, prev_dba=place.prev_dba, rci=place.rci
        )
        uba = self._redo.uba(place.block.dba, place.block.incarnation, place.rec)
        header_flg, flg = self._undo_flags(begins, place.new_block, empty=change is None)
        if begins or place.new_block:
            self._write_header(record, uba, header_flg, size, begins=begins)
        if begins:
            image = ktub.begin_image(self._redo, self._control(transaction))
            transaction.begin_scn = record.scn
        else:
            image = ktub.image(self._redo)
        head = ktudb(
            *(self._redo, size, place.space_before, flg, transaction.xid_bytes),
            *(place.block.incarnation, place.rec),
        )
        block = undo_vector_block(
            place.block, record.scn, cls=segment.block_class, new=place.new_block
        )
        record.vector((5, 1), [head, image, *payload], block)
        transaction.last_undo = (uba, place.block.space)
        entry = UndoEntry(
            place,
            ktub,
            tuple(payload),
            change.undone_by if change else None,
            change.block if change else None,
            CLASS_DATA,
            None,
            change.revert if change else _nothing,
            len(transaction.changes),
        )
        return entry, uba

    def _undo_flags(self, begins: bool, new_block: bool, *, empty: bool) -> tuple[int, int]:
        in_container = self.container.con_id > 0
        if begins and empty:
            return (0x09, UNDO_BEGIN_NEW_BLOCK) if new_block else (0x451, UNDO_BEGIN_ONLY)
        if new_block:
            return (0x44A if begins else 0x0A), UNDO_NEW_BLOCK
        return (0x452 if in_container else 0x12), UNDO_BEGIN if begins else UNDO_REGULAR

    def _write_header(
        self, record: RecordWriter, uba: bytes, flg: int, size: int, *, begins: bool
    ) -> None:
        transaction = self.transaction
        assert transaction is not None
        segment = transaction.segment
        sequence = transaction.sequence if begins else 0
        fields = [ktudh(self._redo, transaction.slot, sequence, uba, flg, size)]
        if begins and self.container.con_id > 0 and self._redo.has_container:
            fields.append(self._redo.pack("I", self.container.uid))
        header = undo_vector_block(segment.header, record.scn, cls=segment.header_class)
        record.vector((5, 2), fields, header)

    def _control(self, transaction: Transaction) -> UndoControl:
        slot = transaction.segment.slots[transaction.slot]
        return UndoControl(
            *(slot.last_uba, transaction.segment.max_commit_scn, slot.commit_scn, slot.last_dba),
            self.attributes.user_number,
        )

    def _write_begin_only(self, record: RecordWriter) -> None:
        transaction = self.transaction
        assert transaction is not None
        entry, _ = self._write_undo(record, None, [])
        transaction.undo.append(entry)
        self._announce(record)

    def _announce(self, record: RecordWriter) -> None:
        full = self._announced != self.thread.sequence
        self._announced = self.thread.sequence
        fields = session_fields(self._redo, self.attributes, full=full)
        record.vector((5, 19 if full else 20), fields)

    def _write(self, record: RecordWriter, change: BlockChange) -> None:
        """Write the pair of a change, and what its transaction's begin asks for."""
        transaction = self.transaction
        assert transaction is not None
        begins = not transaction.begin_scn
        claim = change.block.claim(transaction)
        undo_rest, redo_rest = change.fields(claim.itli)
        payload = [claim.undo_ktb(self._redo), *undo_rest]
        entry, uba = self._write_undo(record, change, payload)
        cleanout = b""
        if claim.cleaned:
            cleanout = block_cleanout(self._redo, record.scn, claim.cleaned)
        if claim.fresh:
            ktb = ktb_first(self._redo, transaction.xid_bytes, uba, cleanout)
        else:
            ktb = ktb_continue(self._redo, uba, cleanout)
        typ = TYP_DELAYED if claim.cleaned else TYP_NORMAL
        block = change.block.change(record.scn, cls=CLASS_DATA, obj=change.dataobj, typ=typ)
        record.vector(change.code, [ktb, *redo_rest], block)
        change.block.take(claim, transaction, uba)
        transaction.undo.append(
            UndoEntry(
                *(entry.place, entry.ktub, entry.payload, entry.redo_code, entry.block),
                *(entry.cls, claim, entry.revert, entry.changes),
            )
        )
        transaction.changes.extend(change.delivers)
        if begins:
            self._announce(record)

    def _undo_newest(self, transaction: Transaction) -> bool:
        """Apply the newest undo record; False where it is the begin itself."""
        entry = transaction.undo[-1]
        if entry.block is None:
            return False
        transaction.undo.pop()
        record = self._record()
        ktub, block = entry.ktub, entry.block
        if entry.redo_code is not None:
            fields = list(entry.payload)
            if entry.redo_code[0] == 11:
                kdo = bytearray(fields[1])
                kdo[KDO_XTYPE] = kdo[KDO_XTYPE] & ~3 | XTYPE_ROLLBACK
                fields[1] = bytes(kdo)
            else:
                fields = [*fields[:1], index_row(self._redo, entry.payload[1][1], 0, 0)]
            where = block.change(record.scn, cls=CLASS_DATA, obj=ktub.dataobj)
            record.vector(entry.redo_code, fields, where)
        segment, undo_block = transaction.segment, entry.place.block
        applied = undo_applied(self._redo, ktub, 8192 - 40 - undo_block.count * 16 & 0xFFFF)
        if ktub.rci:
            where = undo_vector_block(undo_block, record.scn, cls=segment.block_class)
            record.vector((5, 6), applied, where)
        else:
            where = undo_vector_block(segment.header, record.scn, cls=segment.header_class)
            record.vector((5, 11), applied, where)
        record.emit()
        assert entry.claim is not None
        block.restore(entry.claim)
        entry.revert()
        del transaction.changes[entry.changes :]
        if transaction.undo:
            transaction.undo_block = transaction.undo[-1].place.block
        return True

    # -- rows -------------------------------------------------------------------------------

    def _kdo(self, table: SimTable, block: DataBlock) -> Callable[[int], KdoBase]:
        return lambda itli: KdoBase(block.dba, table.segment_dba, MAX_FREE_ROW, itli)

    def _row_change(
        self,
        table: SimTable,
        block: DataBlock,
        op: int,
        undo_op: int,
        fields: Callable[[int], FieldPair],
        revert: Callable[[], None],
        *delivers: Change,
    ) -> BlockChange:
        return BlockChange(
            *(block, table.obj, table.dataobj, table.tablespace, OPC_ROW),
            *((11, op), (11, undo_op), fields, revert, delivers),
        )

    def _delivered(
        self,
        kind: DmlKind,
        row: Row,
        scn: int,
        before: dict[int, Cell | None],
        after: dict[int, Cell | None],
    ) -> Change:
        return Change(kind, row.table, row.block.dba, row.slot, scn, before, after)

    def _supplemental(
        self,
        kind: int,
        row: Row,
        before: int,
        after: int,
        columns: tuple[tuple[int, Value], ...] = (),
    ) -> list[bytes]:
        if row.table.logging is Logging.NONE:
            return []
        head = Address(row.block.dba, row.slot) if self._rng.random() < 0.2 else None
        group = GROUP_FIRST | GROUP_LAST
        return Supplemental(kind, group, before, after, columns, head).fields(self._redo)

    def _logged_columns(self, table: SimTable, changed: Mapping[int, object]) -> list[int]:
        if table.logging is Logging.ALL:
            columns: Sequence[int] = range(len(table.columns))
        elif table.logging is Logging.PRIMARY_KEY:
            columns = sorted(table.key)
        else:
            columns = ()
        return [number for number in columns if number not in changed]

    def _sides(
        self, old: Sequence[Cell | None], new: Sequence[Cell | None], changed: list[int]
    ) -> tuple[ColumnChange, ColumnChange]:
        if self._rng.random() < 0.2:
            changed.reverse()
        before, after = stored_columns(old), stored_columns(new)
        growth = sum(map(stored_size, after)) - sum(map(stored_size, before))
        with_surplus = self._rng.random() < 0.5
        sides = [
            _side(columns, changed, size, with_surplus=with_surplus)
            for columns, size in ((before, -growth), (after, growth))
        ]
        return sides[0], sides[1]

    def _remove_row(self, row: Row, space: int) -> None:
        row.table.drop_live(row)
        row.block.release(row.slot)
        row.block.used -= space

    def _mark_deleted(self, row: Row, space: int) -> Callable[[], None]:
        owner, transaction = row.owner, self.transaction
        assert transaction is not None

        def finish(committed: bool) -> None:
            if committed and row.deleted and row.owner is transaction:
                row.block.release(row.slot)
                row.block.used -= space

        def revert() -> None:
            row.deleted, row.owner = False, owner
            row.table.add_live(row)
            transaction.on_end.remove(finish)

        row.deleted, row.owner = True, transaction
        row.table.drop_live(row)
        transaction.on_end.append(finish)
        return revert

    # -- indexes ----------------------------------------------------------------------------

    def _maintain_indexes(self, row: Row, cells: Sequence[Cell | None], *, insert: bool) -> None:
        for index in row.table.indexes:
            if any(cells[number] is not None for number in index.columns):
                self._write_index(row, index, cells, insert=insert)

    def _maintain_changed_indexes(
        self, row: Row, old: Sequence[Cell | None], new: Sequence[Cell | None]
    ) -> None:
        for index in row.table.indexes:
            before, after = ([c[n] for n in index.columns] for c in (old, new))
            if before == after:
                continue
            if any(cell is not None for cell in before):
                self._write_index(row, index, old, insert=False)
            if any(cell is not None for cell in after):
                self._write_index(row, index, new, insert=True)

    def _write_index(
        self, row: Row, index: SimIndex, cells: Sequence[Cell | None], *, insert: bool
    ) -> None:
        key = b"".join(
            bytes((len(cell.raw),)) + cell.raw if cell else b"\xff"
            for cell in (cells[number] for number in index.columns)
        )
        rowid = row.block.dba.to_bytes(4, "big") + row.slot.to_bytes(2, "big")
        tail = [rowid] if index.unique else []
        if not index.unique:
            key += b"\x06" + rowid
        block = index.blocks[sum(key) % len(index.blocks)]
        size = len(key) + 6 * index.unique + 4

        def fields(itli: int) -> FieldPair:
            info = index_row(self._redo, itli, sum(key) & 0x1FF, size)
            if insert:
                undo = kdilk(self._redo, 3, itli, index.segment_dba, block.dba)
                return [undo, key], [info, key, *tail]
            undo = kdilk(self._redo, 5, itli, index.segment_dba, block.dba)
            return [undo, key, *tail], [info]

        record = self._record()
        self._write(
            record,
            BlockChange(
                *(block, index.obj, index.obj, row.table.tablespace, OPC_INDEX),
                *((10, 2 if insert else 4), (10, 4) if insert else None, fields, _nothing),
            ),
        )
        record.emit()


def _nothing() -> None:
    """The revert of a change that the model's rows do not show."""


def _side(
    columns: Sequence[Value], changed: Sequence[int], size: int, *, with_surplus: bool
) -> ColumnChange:
    """One side of a URP; columns past the row's end are listed only now and then."""
    given = [number for number in changed if number < len(columns)]
    beyond = [number for number in changed if number >= len(columns)]
    numbers = given + beyond if with_surplus else given or beyond[:1]
    values = tuple(columns[number] for number in given)
    return ColumnChange(FB_ROW, len(columns), tuple(numbers), values, size)
