"""A session of the model: SQL-level row changes become undo, redo and delivered changes.

Facts: redo-format §5.4–§5.9, §7.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.index_writer import IndexedWriter
from olr_pg.simulator.rows import (
    FB_HEAD,
    FB_MIGRATED,
    FB_ROW,
    GROUP_FIRST,
    GROUP_LAST,
    OP_DRP,
    OP_IRP,
    OP_LKR,
    OP_ORP,
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
    UPDATE_RESERVE,
    DataBlock,
    Row,
)
from olr_pg.simulator.tables import Logging, SimTable
from olr_pg.simulator.transaction_writer import BlockChange, nothing
from olr_pg.simulator.transactions import Change
from olr_pg.simulator.vectors import (
    OPC_ROW,
)
from olr_pg.transactions.batch import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from olr_pg.simulator.cells import Cell

    FieldPair = tuple[list[bytes], list[bytes]]

MAX_FREE_ROW: Final = 4858
SLOT_SIZE: Final = 2


def stored_columns(cells: Sequence[Cell | None]) -> tuple[Value, ...]:
    """The columns of a row as stored: NULLs at the end are not."""
    width = len(cells)
    while width and cells[width - 1] is None:
        width -= 1
    return tuple(cell.raw if cell else None for cell in cells[:width])


class SimSession(IndexedWriter):
    """A session that can do row changes."""

    def insert(self, table: SimTable, cells: Sequence[Cell | None]) -> Row | None:
        """INSERT of one row; None where no transaction slot is free."""
        if not self._ready():
            return None
        piece = RowPiece(FB_ROW, stored_columns(cells))
        space = piece.size + SLOT_SIZE
        block = table.block_for(space, self.instance.scn)
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
        block = table.block_for(pieces[0].size + SLOT_SIZE, self.instance.scn)
        record = self._record()
        made, slots = list[Row](), list[int]()
        for cells, piece in zip(rows, pieces, strict=True):
            if made and block.used + piece.size + SLOT_SIZE > table.row_space:
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
        if row.piece_block:
            return self._delete_migrated(row)
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
        """Array DELETE of rows of one block: QMD. Migrated rows are no part of it."""
        if any(row.piece_block for row in rows):
            return False
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
        table, owner, old = row.table, row.owner, list(row.cells)
        block, slot = row.data_place
        cells = [new.get(number, cell) for number, cell in enumerate(old)]
        # A NULL past both ends of the row that stays NULL leaves nothing in the redo.
        width = max(len(stored_columns(old)), len(stored_columns(cells)))
        new = {number: cell for number, cell in new.items() if number < width}
        if not new:
            return False
        fb = FB_MIGRATED if row.piece_block else FB_ROW
        undo_side, redo_side = self._sides(old, cells, list(new), fb)
        if block.used + redo_side.size > table.row_space + UPDATE_RESERVE:
            return self._migrate(row, cells)
        record = self._record()
        # Every column that the undo has no value of: a NULL past the old end of the row too.
        in_undo = [number for number in new if number < undo_side.width]
        logged = self._logged_columns(table, in_undo)
        before = {number: old[number] for number in sorted({*undo_side.numbers, *logged})}
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
            undo = update_kdo(self._redo, own, OP_URP | UNDO_SIDE, undo_side, slot, lock)
            redo = update_kdo(self._redo, own, OP_URP, redo_side, slot, itli)
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

    def _migrate(self, row: Row, cells: list[Cell | None]) -> bool:
        """Move a row that does not fit any more: 11.2 elsewhere, 11.6 leaves a stub."""
        table, block, owner, old = row.table, row.block, row.owner, list(row.cells)
        if row.piece_block or table.logging is Logging.NONE:
            return False
        head = Address(block.dba, row.slot)
        before = RowPiece(FB_ROW, stored_columns(old))
        after = RowPiece(FB_MIGRATED, stored_columns(cells), hrid=head)
        target = table.block_for(after.size + SLOT_SIZE, self.instance.scn)
        slot = target.next_slot()
        stub = RowPiece(FB_HEAD, (), nrid=Address(target.dba, slot))
        held = owner is self.transaction
        first = self._record()
        base = self._kdo(table, target)
        supplemental = self._supplemental(SUPPLEMENTAL_UPDATE, row, 0, 1, (), GROUP_FIRST)

        def insert_fields(itli: int) -> FieldPair:
            undo = delete_kdo(self._redo, base(itli), OP_DRP | UNDO_SIDE, slot)
            redo = insert_kdo(self._redo, base(itli), OP_IRP, after, slot, itli)
            return [undo, *supplemental], [redo, *column_fields(after.columns)]

        def take_out() -> None:
            target.release(slot)
            target.used -= after.size + SLOT_SIZE

        target.put(slot, row)
        target.used += after.size + SLOT_SIZE
        self._write(first, self._row_change(table, target, OP_IRP, OP_DRP, insert_fields, take_out))
        first.emit()
        second = self._record()
        change = self._moved(row, cells, first.scn)
        logged = tuple(
            (number + 1, None)
            for number in change.before
            if number >= len(before.columns) and table.logging is Logging.ALL
        )
        last = self._supplemental(SUPPLEMENTAL_UPDATE, row, 1, 0, logged, GROUP_LAST)
        own_base = self._kdo(table, block)

        def stub_fields(itli: int) -> FieldPair:
            own, lock = own_base(itli), itli if held else 0
            undo = insert_kdo(self._redo, own, OP_ORP | UNDO_SIDE, before, row.slot, lock)
            redo = insert_kdo(self._redo, own, OP_ORP, stub, row.slot, itli)
            return [undo, *column_fields(before.columns), *last], [redo]

        def move_back() -> None:
            row.cells, row.owner, row.piece_block = old, owner, None
            block.used += before.size - stub.size

        row.cells, row.owner = cells, self.transaction
        row.piece_block, row.piece_slot = target, slot
        block.used -= before.size - stub.size
        self._write(
            second, self._row_change(table, block, OP_ORP, OP_ORP, stub_fields, move_back, change)
        )
        second.emit()
        self._maintain_changed_indexes(row, old, cells)
        return True

    def _moved(self, row: Row, cells: Sequence[Cell | None], scn: int) -> Change:
        """The change of a migration: the redo has the whole row, old and new, and LogMiner shows
        all of it, the columns that stay equal too (real records that move a row).
        """
        old = row.cells
        stored = len(stored_columns(old))
        width = max(stored, len(stored_columns(cells)))
        known = sorted({*range(stored), *self._logged_columns(row.table, ())})
        after = {number: cells[number] for number in range(width)}
        before = {number: old[number] for number in known}
        return self._delivered(DmlKind.UPDATE, row, scn, before, after)

    def _delete_migrated(self, row: Row) -> bool:
        """DELETE of a migrated row: the stub first, then the piece."""
        table, held = row.table, row.owner is self.transaction
        (target, slot), head = row.data_place, Address(row.block.dba, row.slot)
        stub = RowPiece(FB_HEAD, (), nrid=Address(target.dba, slot))
        piece = RowPiece(FB_MIGRATED, stored_columns(row.cells), hrid=head)
        scn, revert = 0, nothing
        for block, at, part, group in (
            (row.block, row.slot, stub, GROUP_FIRST),
            (target, slot, piece, GROUP_LAST),
        ):
            record = self._record()
            scn = scn or record.scn
            starts = 1 if part is piece else 0
            logged = self._supplemental(SUPPLEMENTAL_DELETE, row, starts, 0, (), group)
            base = self._kdo(table, block)
            changes: tuple[Change, ...] = ()
            if part is piece:
                before = dict(enumerate(row.cells))
                changes = (self._delivered(DmlKind.DELETE, row, scn, before, {}),)
                revert = self._mark_deleted(row, piece.size + SLOT_SIZE)
            fields = self._piece_delete(base, part, at, logged, held=held)
            self._write(
                record, self._row_change(table, block, OP_DRP, OP_IRP, fields, revert, *changes)
            )
            record.emit()
        self._maintain_indexes(row, row.cells, insert=False)
        return True

    def _piece_delete(
        self,
        base: Callable[[int], KdoBase],
        piece: RowPiece,
        slot: int,
        supplemental: list[bytes],
        *,
        held: bool,
    ) -> Callable[[int], FieldPair]:
        def fields(itli: int) -> FieldPair:
            own, lock = base(itli), itli if held else 0
            undo = insert_kdo(self._redo, own, OP_IRP | UNDO_SIDE, piece, slot, lock)
            redo = delete_kdo(self._redo, own, OP_DRP, slot)
            return [undo, *column_fields(piece.columns), *supplemental], [redo]

        return fields

    def lock(self, row: Row) -> bool:
        """SELECT … FOR UPDATE of one row: LKR."""
        if row.piece_block or not self._may_change(row) or row.owner is self.transaction:
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

    def _may_change(self, row: Row) -> bool:
        owner = row.owner
        if row.deleted or (owner is not None and owner.active and owner is not self.transaction):
            return False
        return self._ready()

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
        group: int = GROUP_FIRST | GROUP_LAST,
    ) -> list[bytes]:
        if row.table.logging is Logging.NONE:
            return []
        migrated = row.piece_block is not None or group != GROUP_FIRST | GROUP_LAST
        with_head = migrated or self._rng.random() < 0.2
        head = Address(row.block.dba, row.slot) if with_head else None
        return Supplemental(kind, group, before, after, columns, head).fields(self._redo)

    def _logged_columns(self, table: SimTable, in_undo: Collection[int]) -> list[int]:
        if table.logging is Logging.ALL:
            columns: Sequence[int] = range(len(table.columns))
        elif table.logging is Logging.PRIMARY_KEY:
            columns = sorted(table.key)
        else:
            columns = ()
        return [number for number in columns if number not in in_undo]

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
            _side(columns, changed, fb, size, with_surplus=with_surplus)
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
                if row.piece_block:
                    row.piece_block.release(row.piece_slot)
                row.data_place[0].used -= space

        def revert() -> None:
            row.deleted, row.owner = False, owner
            row.table.add_live(row)
            transaction.on_end.remove(finish)

        row.deleted, row.owner = True, transaction
        row.table.drop_live(row)
        transaction.on_end.append(finish)
        return revert


def _side(
    columns: Sequence[Value], changed: Sequence[int], fb: int, size: int, *, with_surplus: bool
) -> ColumnChange:
    """One side of a URP; columns past the row's end are listed only now and then."""
    given = [number for number in changed if number < len(columns)]
    beyond = [number for number in changed if number >= len(columns)]
    numbers = given + beyond if with_surplus else given or beyond[:1]
    values = tuple(columns[number] for number in given)
    return ColumnChange(fb, len(columns), tuple(numbers), values, size)
