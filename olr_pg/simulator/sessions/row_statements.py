"""Turns row changes of SQL into undo, redo and delivered changes.

Facts: redo-format §5.4–§5.9, §7.5.

It also contains the operations of DBMS_LOB: they write parts of a LOB, and then its new locator
into the row.

Facts: values-and-lobs §17.6, §20, §23.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from olr_pg.datatypes.lob_locator import LobForm
from olr_pg.simulator.fields.lob_layout import (
    BLOB,
    OPERATION_ERASE,
    OPERATION_TRIM,
    OPERATION_WRITE,
)
from olr_pg.simulator.fields.row_fields import (
    FB_ROW,
    GROUP_MOVED,
    OP_QMD,
    OP_QMI,
    SLOT_SIZE,
    SUPPLEMENTAL_LOCK,
    UNDO_SIDE,
    RowPiece,
    multi_kdo,
    multi_rows,
    stored_columns,
)
from olr_pg.simulator.model.lobs import LobCell, StoredLob, drafted, is_inline
from olr_pg.simulator.model.tables import Row, SimTable
from olr_pg.simulator.writer.lob_writer import VERSION_MAX, LobPlace, lob_cell
from olr_pg.simulator.writer.transaction_writer import mark_deleted
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.fields.row_fields import FieldPair
    from olr_pg.simulator.writer.chained_rows import ChainWriter
    from olr_pg.simulator.writer.iot_writer import IndexWriter, LeafWriter
    from olr_pg.simulator.writer.lob_writer import LobWriter
    from olr_pg.simulator.writer.piece_writer import PieceWriter
    from olr_pg.simulator.writer.transaction_writer import TransactionWriter


class RowStatements:
    """The statements that change single rows or arrays of rows."""

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
        """INSERT of one row; None if no transaction slot is free.

        `extra`: further bits of the supplemental flags.
        """
        if not self._tx.ready():
            return None
        if table.index_organised:
            return self._leaves.insert(table, cells)
        segment = table.segment_of(cells)
        cells = [self._lobs.stored(table, segment, at, cell) for at, cell in enumerate(cells)]
        return self._chains.insert(table, cells, extra)

    def insert_many(self, table: SimTable, rows: Sequence[Sequence[Cell | None]]) -> list[Row]:
        """Array INSERT into one block (QMI). Rows that do not fit are not inserted; return the
        others.
        """
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
        """DELETE of one row; False if the row is locked, or if no transaction slot is free.

        `extra`: further bits of the supplemental flags.
        """
        if not self.may_change(row):
            return False
        if row.table.index_organised:
            return self._leaves.delete(row)
        return self._chains.delete(row, extra)

    def delete_many(self, rows: Sequence[Row]) -> bool:
        """Array DELETE in one block (QMD); False if a row has several pieces or is locked."""
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
            mark_deleted(self._tx, row, piece.size + SLOT_SIZE)
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
        """UPDATE of one row; `new` has values by 0-based column. False if it is not possible."""
        if not new or not self.may_change(row):
            return False
        if row.table.index_organised:
            return self._leaves.update(row, new)
        table, old = row.table, row.cells
        cells = [new.get(number, cell) for number, cell in enumerate(old)]
        segment = table.segment_of(cells)
        if segment.obj != row.block.obj:
            return self._move_to_partition(row, cells)
        new = {at: self._lobs.stored(table, segment, at, cell) for at, cell in new.items()}
        cells = [new.get(number, cell) for number, cell in enumerate(old)]
        if row.chain:
            return self._chains.update(row, new)
        # A column after the end of the old and the new row stays NULL and is not in redo.
        width = max(len(stored_columns(old)), len(stored_columns(cells)))
        new = {number: cell for number, cell in new.items() if number < width}
        if not new:
            return False
        return self._chains.update_whole(row, cells, list(new))

    def _move_to_partition(self, row: Row, cells: list[Cell | None]) -> bool:
        """Move a row to another partition, as an UPDATE does: delete it, and insert it there.

        Records of such rows may have the flag K (redo-format §4.3; not seen in real redo).
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
        steps = [self._pieces.lock_step(row)]
        self._pieces.run(row, SUPPLEMENTAL_LOCK, steps, lambda _: ())
        return True

    def may_change(self, row: Row) -> bool:
        """Return whether the session can change a row: no other transaction has locked it."""
        owner = row.owner
        if row.deleted or (
            owner is not None and owner.active and owner is not self._tx.transaction
        ):
            return False
        return self._tx.ready()

    def _remove_row(self, row: Row, space: int) -> None:
        row.table.drop_live(row)
        row.block.release(row.slot)
        row.block.used -= space


class LobStatements:
    """Statements that change parts of LOBs."""

    def __init__(self, tx: TransactionWriter, lobs: LobWriter, rows: RowStatements) -> None:
        self._tx, self._redo, self._rng = tx, tx.redo, tx.rng
        self._lobs = lobs
        self._rows = rows

    def write_lob(self, row: Row, at: int, offset: int, data: bytes) -> bool:
        """DBMS_LOB.WRITE from byte `offset` (0-based) on; at the end of the value, it is
        WRITEAPPEND.
        """
        state = self._lob_to_change(row, at)
        if state is None or not data:
            return False
        place = LobPlace(row.table, at + 1)
        content = state.content[:offset] + data + state.content[offset + len(data) :]
        self._lobs.log_operation(place, state, OPERATION_WRITE, len(data), offset)
        return self._rows.update(row, {at: self._spliced(place, state, content, offset, len(data))})

    def trim_lob(self, row: Row, at: int, size: int) -> bool:
        """DBMS_LOB.TRIM to `size` bytes."""
        state = self._lob_to_change(row, at)
        if state is None or size >= len(state.content):
            return False
        place, content = LobPlace(row.table, at + 1), state.content[:size]
        self._lobs.log_operation(place, state, OPERATION_TRIM, size, 0)
        stays = state.form is not LobForm.INLINE and size > 0 and self._rng.random() < 0.7
        if not stays:
            return self._rows.update(row, {at: self._lobs.rewrite(place, _next(state), content)})
        runs = _cut(state.runs, -(-size // state.storage.page))
        new = self._lobs.lead_to(place, replace(_next(state), content=content, runs=runs))
        return self._rows.update(row, {at: lob_cell(new)})

    def erase_lob(self, row: Row, at: int, offset: int, size: int) -> bool:
        """DBMS_LOB.ERASE: write zeros into a BLOB, blanks into a text."""
        state = self._lob_to_change(row, at)
        if state is None or not 0 < size <= len(state.content) - offset:
            return False
        place = LobPlace(row.table, at + 1)
        blank = bytes(size) if state.storage.kind == BLOB else b"\0 " * (size // 2)
        content = state.content[:offset] + blank + state.content[offset + len(blank) :]
        self._lobs.log_operation(place, state, OPERATION_ERASE, size, offset)
        return self._rows.update(
            row, {at: self._spliced(place, state, content, offset, len(blank))}
        )

    def wrote_lob(self, row: Row, cell: LobCell) -> bool:
        """Return whether the redo of the session's transaction contains the whole value."""
        if cell.stored.form is LobForm.INLINE:
            return True
        return row.owner is self._tx.transaction is not None and (
            self._tx.transaction.lobs.value(cell.stored) is not None
        )

    def _lob_to_change(self, row: Row, at: int) -> StoredLob | None:
        cell = row.cells[at]
        if not isinstance(cell, LobCell) or not self._rows.may_change(row):
            return None
        # The length and pages of such a LOB are only in its index, so its row would not change.
        if cell.stored.form is LobForm.INDEXED:
            return None
        self._tx.begin_in_redo()
        return cell.stored

    def _spliced(
        self, place: LobPlace, state: StoredLob, content: bytes, offset: int, size: int
    ) -> LobCell:
        """Write `size` bytes at `offset`; return the new cell. `content` is the whole value."""
        if state.form is LobForm.INLINE or is_inline(state.storage, len(content)):
            return self._lobs.rewrite(place, _next(state), content)
        page = state.storage.page
        first, had = offset // page, len(state.pages)
        count = -(-len(content) // page)
        runs = (*state.runs, *state.segment.allocate(self._rng, count - had))
        new = replace(_next(state), content=content, runs=runs)
        last = (offset + size - 1) // page
        if state.storage.securefile:
            for number in range(first, min(last + 1, had)):
                start = max(offset, number * page)
                end = min(offset + size, (number + 1) * page)
                self._lobs.write_in_place(place, new, number, start, end)
            self._lobs.load_pages(place, new, list(enumerate(new.pages))[had:])
        else:
            # A BASICFILE page is never overwritten: a new page replaces it.
            pages = new.pages
            for number in range(first, min(last + 1, had)):
                pages[number] = state.segment.allocate(self._rng, 1)[0][0]
            new = replace(new, runs=tuple((dba, 1) for dba in pages))
            self._lobs.load_pages(place, new, list(enumerate(new.pages))[first:])
        return lob_cell(self._lobs.lead_to(place, new))


def _next(state: StoredLob) -> StoredLob:
    """Return the state of the LOB with the next version."""
    return replace(state, version=state.version % VERSION_MAX + 1)


def _cut(runs: Sequence[tuple[int, int]], pages: int) -> tuple[tuple[int, int], ...]:
    """Return the runs of the first `pages` blocks."""
    kept = list[tuple[int, int]]()
    for first, blocks in runs:
        if pages > 0:
            kept.append((first, min(blocks, pages)))
        pages -= blocks
    return tuple(kept)
