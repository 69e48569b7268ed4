"""SQL-level row changes become undo, redo and delivered changes.

Facts: redo-format §5.4–§5.9, §7.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    GROUP_FIRST,
    GROUP_LAST,
    GROUP_MOVED,
    OP_DRP,
    OP_IRP,
    OP_LKR,
    OP_QMD,
    OP_QMI,
    OP_URP,
    SLOT_SIZE,
    SUPPLEMENTAL_DELETE,
    SUPPLEMENTAL_INSERT,
    SUPPLEMENTAL_LOCK,
    SUPPLEMENTAL_UPDATE,
    UNDO_SIDE,
    Address,
    ColumnChange,
    RowPiece,
    Supplemental,
    Value,
    column_fields,
    delete_kdo,
    insert_kdo,
    lock_kdo,
    multi_kdo,
    multi_rows,
    stored_columns,
    stored_size,
    update_fields,
    update_kdo,
)
from olr_pg.simulator.model.lobs import drafted
from olr_pg.simulator.model.tables import Logging, Row, SimTable
from olr_pg.simulator.writer.chained_rows import side_of
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.fields.row_fields import FieldPair
    from olr_pg.simulator.writer.chained_rows import ChainWriter
    from olr_pg.simulator.writer.index_writer import IndexWriter
    from olr_pg.simulator.writer.iot_writer import LeafWriter
    from olr_pg.simulator.writer.lob_writer import LobWriter
    from olr_pg.simulator.writer.piece_writer import PieceWriter
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter


class RowStatements:
    """Row changes of SQL."""

    def __init__(
        self,
        tx: TransactionWriter,
        indexes: IndexWriter,
        pieces: PieceWriter,
        chains: ChainWriter,
        leaves: LeafWriter,
        lobs: LobWriter,
    ) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng
        self._indexes = indexes
        self._pieces = pieces
        self._chains = chains
        self._leaves = leaves
        self._lobs = lobs

    def insert(
        self, table: SimTable, cells: Sequence[Cell | None], *, extra: int = 0
    ) -> Row | None:
        """INSERT of one row; None where no transaction slot is free.

        `extra`: further bits of the supplemental flags.
        """
        if not self._tx.ready():
            return None
        if table.index_organised:
            return self._leaves.insert(table, cells)
        segment = table.segment_of(cells)
        cells = [self._lobs.stored(table, segment, at, cell) for at, cell in enumerate(cells)]
        parts = self._chains.parts(table, cells)
        if len(parts) > 1:
            return self._chains.insert(table, cells, parts, extra)
        piece = RowPiece(FB_ROW, stored_columns(cells), row_scn=table.row_scn)
        space = piece.size + SLOT_SIZE
        block = table.block_for(segment, space, self._tx.instance.scn)
        slot = block.next_slot()
        row = Row(table, block, slot, list(cells), self._tx.transaction)
        record = self._tx.record()
        base = self._pieces.kdo(table, block)
        change = self._pieces.delivered(DmlKind.INSERT, row, record.scn, {}, dict(enumerate(cells)))
        supplemental = self._supplemental(SUPPLEMENTAL_INSERT, row, 0, 1, extra=extra)
        row_scn = self._pieces.row_scn_field(table)

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            undo = delete_kdo(self._redo, own, OP_DRP | UNDO_SIDE, slot)
            redo = insert_kdo(self._redo, own, OP_IRP, piece, slot, itli)
            return [undo, *row_scn, *supplemental], [redo, *column_fields(piece.columns)]

        def revert() -> None:
            self._remove_row(row, space)

        block.put(slot, row)
        block.used += space
        table.add_live(row)
        self._tx.write(
            record, self._pieces.row_change(table, block, OP_IRP, OP_DRP, fields, revert, change)
        )
        record.emit()
        self._indexes.maintain(row, row.cells, insert=True)
        return row

    def insert_many(self, table: SimTable, rows: Sequence[Sequence[Cell | None]]) -> list[Row]:
        """Array INSERT into one block: QMI. Rows that do not fit are left out."""
        if table.index_organised or table.lobs:
            return [row for cells in rows if (row := self.insert(table, cells))]
        rows = [cells for cells in rows if len(self._chains.parts(table, cells)) == 1]
        segment = table.segment_of(rows[0]) if rows else None
        rows = [cells for cells in rows if table.segment_of(cells) is segment]
        if segment is None or not self._tx.ready():
            return []
        pieces = [RowPiece(FB_ROW, stored_columns(cells), row_scn=table.row_scn) for cells in rows]
        block = table.block_for(segment, pieces[0].size + SLOT_SIZE, self._tx.instance.scn)
        record = self._tx.record()
        made, slots = list[Row](), list[int]()
        for cells, piece in zip(rows, pieces, strict=True):
            if made and block.used + piece.size + SLOT_SIZE > table.row_space:
                break
            slot = block.next_slot()
            row = Row(table, block, slot, list(cells), self._tx.transaction)
            block.put(slot, row)
            block.used += piece.size + SLOT_SIZE
            table.add_live(row)
            made.append(row)
            slots.append(slot)
        kept = pieces[: len(made)]
        base = self._pieces.kdo(table, block)
        changes = tuple(
            self._pieces.delivered(DmlKind.INSERT, row, record.scn, {}, dict(enumerate(row.cells)))
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

        self._tx.write(
            record, self._pieces.row_change(table, block, OP_QMI, OP_QMD, fields, revert, *changes)
        )
        record.emit()
        for row in made:
            self._indexes.maintain(row, row.cells, insert=True)
        return made

    def delete(self, row: Row, *, extra: int = 0) -> bool:
        """DELETE of one row; False where it may not.

        `extra`: further bits of the supplemental flags.
        """
        if not self.may_change(row):
            return False
        if row.table.index_organised:
            return self._leaves.delete(row)
        if row.chain:
            return self._chains.delete(row, extra)
        table, block, owner = row.table, row.block, row.owner
        piece = RowPiece(FB_ROW, stored_columns(row.cells), row_scn=table.row_scn)
        record = self._tx.record()
        change = self._pieces.delivered(
            DmlKind.DELETE, row, record.scn, dict(enumerate(row.cells)), {}
        )
        base, held = self._pieces.kdo(table, block), owner is self._tx.transaction
        supplemental = self._supplemental(SUPPLEMENTAL_DELETE, row, 1, 0, extra=extra)
        row_scn = self._pieces.row_scn_field(table)

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            lock = itli if held else 0
            undo = insert_kdo(self._redo, own, OP_IRP | UNDO_SIDE, piece, row.slot, lock)
            redo = delete_kdo(self._redo, own, OP_DRP, row.slot)
            return [undo, *column_fields(piece.columns), *row_scn, *supplemental], [redo]

        revert = self._mark_deleted(row, piece.size + SLOT_SIZE)
        self._tx.write(
            record, self._pieces.row_change(table, block, OP_DRP, OP_IRP, fields, revert, change)
        )
        record.emit()
        self._indexes.maintain(row, row.cells, insert=False)
        return True

    def delete_many(self, rows: Sequence[Row]) -> bool:
        """Array DELETE of rows of one block: QMD. Rows of several pieces are no part of it."""
        if any(row.chain or row.table.index_organised for row in rows):
            return False
        if not rows or not all(self.may_change(row) for row in rows):
            return False
        table, block = rows[0].table, rows[0].block
        pieces = [
            RowPiece(FB_ROW, stored_columns(row.cells), row_scn=table.row_scn) for row in rows
        ]
        record = self._tx.record()
        changes = tuple(
            self._pieces.delivered(DmlKind.DELETE, row, record.scn, dict(enumerate(row.cells)), {})
            for row in rows
        )
        slots = [row.slot for row in rows]
        base = self._pieces.kdo(table, block)

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

        self._tx.write(
            record, self._pieces.row_change(table, block, OP_QMD, OP_QMI, fields, revert, *changes)
        )
        record.emit()
        for row in rows:
            self._indexes.maintain(row, row.cells, insert=False)
        return True

    def update(self, row: Row, new: Mapping[int, Cell | None]) -> bool:
        """UPDATE of one row; `new` by 0-based column. False where it may not or does not fit."""
        if not new or not self.may_change(row):
            return False
        if row.table.index_organised:
            return self._leaves.update(row, new)
        table, owner, old = row.table, row.owner, list(row.cells)
        block, slot = row.block, row.slot
        cells = [new.get(number, cell) for number, cell in enumerate(old)]
        segment = table.segment_of(cells)
        if segment.obj != block.obj:
            return self._move_to_partition(row, cells)
        new = {at: self._lobs.stored(table, segment, at, cell) for at, cell in new.items()}
        cells = [new.get(number, cell) for number, cell in enumerate(old)]
        if row.chain:
            return self._chains.update(row, new)
        # A NULL past both ends of the row that stays NULL leaves nothing in the redo.
        width = max(len(stored_columns(old)), len(stored_columns(cells)))
        new = {number: cell for number, cell in new.items() if number < width}
        if not new:
            return False
        undo_side, redo_side = self._sides(old, cells, list(new), FB_ROW)
        too_long = len(self._chains.parts(table, cells)) > 1
        if too_long or block.used + redo_side.size > table.row_space + table.update_reserve:
            return self._chains.spread(row, cells)
        record = self._tx.record()
        # Every column that the undo has no value of: a NULL past the old end of the row too.
        in_undo = [number for number in new if number < undo_side.width]
        logged = self._logged_columns(table, in_undo)
        before = {number: old[number] for number in sorted({*undo_side.numbers, *logged})}
        change = self._pieces.delivered(
            DmlKind.UPDATE, row, record.scn, before, dict(sorted(new.items()))
        )
        base, held = self._pieces.kdo(table, block), owner is self._tx.transaction
        row_scn = self._pieces.row_scn_field(table)
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
            undo = update_kdo(self._redo, own, OP_URP | UNDO_SIDE, undo_side, slot, lock)
            redo = update_kdo(self._redo, own, OP_URP, redo_side, slot, itli)
            return (
                [undo, *update_fields(self._redo, undo_side), *row_scn, *supplemental],
                [redo, *update_fields(self._redo, redo_side)],
            )

        def revert() -> None:
            row.cells, row.owner = old, owner
            block.used -= redo_side.size

        row.cells, row.owner = cells, self._tx.transaction
        block.used += redo_side.size
        self._tx.write(
            record, self._pieces.row_change(table, block, OP_URP, OP_URP, fields, revert, change)
        )
        record.emit()
        self._indexes.maintain_changed(row, old, cells)
        return True

    def _move_to_partition(self, row: Row, cells: list[Cell | None]) -> bool:
        """Move a row to another partition, as an update does: it is deleted here, inserted there.

        Records of such rows may bear the flag K (redo-format §4.3, by the document alone).
        """
        extra = self._rng.choice((0, GROUP_MOVED))
        if not self.delete(row, extra=extra):
            return False
        return self.insert(row.table, drafted(cells), extra=extra) is not None

    def lock(self, row: Row) -> bool:
        """SELECT … FOR UPDATE of one row: LKR."""
        if row.table.index_organised or not self.may_change(row):
            return False
        if row.owner is self._tx.transaction:
            return False
        table, owner = row.table, row.owner
        record = self._tx.record()
        base = self._pieces.kdo(table, row.block)
        supplemental = self._supplemental(SUPPLEMENTAL_LOCK, row, 0, 0)

        def fields(itli: int) -> FieldPair:
            own = base(itli)
            undo = lock_kdo(self._redo, own, OP_LKR | UNDO_SIDE, row.slot, 0)
            return [undo, *supplemental], [lock_kdo(self._redo, own, OP_LKR, row.slot, itli)]

        def revert() -> None:
            row.owner = owner

        row.owner = self._tx.transaction
        self._tx.write(
            record, self._pieces.row_change(table, row.block, OP_LKR, OP_LKR, fields, revert)
        )
        record.emit()
        return True

    def may_change(self, row: Row) -> bool:
        """Tell whether the session may change a row: nobody else has locked it."""
        owner = row.owner
        if row.deleted or (
            owner is not None and owner.active and owner is not self._tx.transaction
        ):
            return False
        return self._tx.ready()

    def _supplemental(
        self,
        kind: int,
        row: Row,
        before: int,
        after: int,
        columns: tuple[tuple[int, Value], ...] = (),
        *,
        extra: int = 0,
    ) -> list[bytes]:
        """Return the supplemental fields of a change of one record."""
        if row.table.logging is Logging.NONE:
            return []
        with_head = self._rng.random() < 0.2
        head = Address(row.block.dba, row.slot) if with_head else None
        group = GROUP_FIRST | GROUP_LAST | extra
        return Supplemental(kind, group, before, after, columns, head).fields(self._redo)

    def _logged_columns(self, table: SimTable, in_undo: Collection[int]) -> list[int]:
        return [number for number in table.logged if number not in in_undo]

    def _sides(
        self,
        old: Sequence[Cell | None],
        new: Sequence[Cell | None],
        changed: list[int],
        fb: int,
    ) -> tuple[ColumnChange, ColumnChange]:
        if self._rng.random() < 0.2:
            changed.reverse()
        before, after = stored_columns(old), stored_columns(new)
        growth = sum(map(stored_size, after)) - sum(map(stored_size, before))
        with_surplus = self._rng.random() < 0.5
        sides = [
            side_of(columns, changed, fb, size, with_surplus=with_surplus)
            for columns, size in ((before, -growth), (after, growth))
        ]
        return sides[0], sides[1]

    def _remove_row(self, row: Row, space: int) -> None:
        row.table.drop_live(row)
        row.block.release(row.slot)
        row.block.used -= space

    def _mark_deleted(self, row: Row, space: int) -> Callable[[], None]:
        owner, transaction = row.owner, self._tx.transaction
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
